#include "backup/heartbeat.h"

#include "archive/http.h"
#include "backup/system.h"

#include <stdio.h>

enum { TIMEOUT_S = 5, TRIES = 3, PAUSE_MS = 500, URL_MAX = 4096 };

/* The URL for a failure: its own, or "/fail" after the path of the other. */
static bool failed_url(const struct backup_target *target, const char *url, char ret[URL_MAX],
                       struct rd_err *err)
{
    const char *own = backup_get(target, BACKUP_KEY_HEARTBEAT_FAILED_URL);
    size_t path = strcspn(url, "?#");
    bool slash = path > 0 && url[path - 1] == '/';
    int len = own != NULL ? snprintf(ret, URL_MAX, "%s", own)
                          : snprintf(ret, URL_MAX, "%.*s%sfail%s", (int)path, url, slash ? "" : "/",
                                     url + path);
    return (len > 0 && len < URL_MAX) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the URL is too long");
}

/* Repeats the request after a short failure. */
static bool send_beat(const struct archive_http *ask, struct rd_err *err)
{
    for (unsigned i = 1;; i++) {
        struct rd_err failed = {0};
        long status = 0;
        uint64_t begin_ms = backup_boot_ms();
        bool ok = archive_http_ask(ask, &status, NULL, &failed);
        if (ok && status >= 200 && status < 300)
            return true;
        if (ok)
            rd_err_set(&failed, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                       "the server answered with status %ld", status);
        bool passes = ok ? status >= 500 || status == 429 : failed.code == RD_ERR_PROTOCOL;
        if (i == TRIES || !passes || backup_boot_ms() - begin_ms >= (TIMEOUT_S - 1) * 1000) {
            rd_err_adopt(err, &failed);
            return false;
        }
        backup_wait_ms(PAUSE_MS);
    }
}

bool backup_heartbeat(const struct backup_target *target, bool good, struct rd_err *err)
{
    const char *url = backup_get(target, BACKUP_KEY_HEARTBEAT_URL);
    const char *own = backup_get(target, BACKUP_KEY_HEARTBEAT_FAILED_URL);
    char failed[URL_MAX] = "";
    bool ok = true;
    if (good ? url == NULL : url == NULL && own == NULL)
        return true;
    if (!good)
        ok = failed_url(target, url != NULL ? url : "", failed, err);
    const struct archive_http ask = {.url = good ? url : failed, .timeout_s = TIMEOUT_S};
    ok = ok && send_beat(&ask, err);
    explicit_bzero(failed, sizeof failed);
    rd_err_doing(err, "the heartbeat of %s", target->name);
    return ok;
}
