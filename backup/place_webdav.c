#include "backup/place_webdav.h"

#include "archive/http.h"
#include "archive/store_webdav.h"
#include "backup/system.h"

#include <stdio.h>

enum { PASSWORD_MAX = 4096 };

bool backup_is_webdav(const char *where)
{
    return strncmp(where, "webdav://", 9) == 0 || strncmp(where, "webdavs://", 10) == 0;
}

/* The first line of the file, which is terminated in *text. NULL: there is no password. */
static bool find_password(const struct backup_target *target, bool has_user, struct rd_buf *text,
                          const char **ret, struct rd_err *err)
{
    const char *file = backup_get(target, BACKUP_KEY_WEBDAV_PASS_FILE);
    *ret = has_user ? backup_env("WEBDAV_PASSWORD") : NULL;
    if (file == NULL)
        return true;
    bool ok = backup_read_file(file, PASSWORD_MAX, text, err) &&
              (rd_buf_add_byte(text, '\0') || rd_err_nomem(err, text->len));
    if (ok) {
        text->ptr[strcspn((char *)text->ptr, "\r\n")] = '\0';
        *ret = (const char *)text->ptr;
        ok = **ret != '\0' ||
             rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the first line, the password, is empty");
    }
    if (!ok)
        rd_err_origin(err, file);
    return ok;
}

/* The folder for objects that are being made. */
static bool find_spool(const struct backup_target *target, char ret[BACKUP_PATH_MAX],
                       struct rd_err *err)
{
    const char *tmp = backup_env("TMPDIR");
    if (backup_get(target, BACKUP_KEY_SPOOL) != NULL && backup_spool(target, ret, NULL))
        return true;
    int len = snprintf(ret, BACKUP_PATH_MAX, "%s", tmp != NULL && tmp[0] == '/' ? tmp : "/var/tmp");
    return len < BACKUP_PATH_MAX ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "TMPDIR is too long");
}

bool backup_open_webdav(struct archive_store **ret, const struct backup_target *target,
                        const char *where, uint64_t rate, const atomic_bool *cancel,
                        struct rd_err *err)
{
    char spool[BACKUP_PATH_MAX];
    struct rd_buf text = {0};
    struct archive_webdav_opts opts = {.url = where,
                                       .user = backup_get(target, BACKUP_KEY_WEBDAV_USER),
                                       .ca_file = backup_get(target, BACKUP_KEY_CA_FILE),
                                       .spool = spool,
                                       .random = backup_random,
                                       .tries = cancel != NULL,
                                       .wait_ms = backup_wait_ms,
                                       .rate = rate,
                                       .cancel = cancel};
    const char *place = strstr(where, "://") + 3;
    bool has_user = opts.user != NULL || memchr(place, '@', strcspn(place, "/")) != NULL;
    bool ok = archive_http_built("repositories on WebDAV servers", err) &&
              find_spool(target, spool, err) &&
              find_password(target, has_user, &text, &opts.password, err) &&
              archive_store_open_webdav(ret, &opts, err);
    if (text.len > 0)
        explicit_bzero(text.ptr, text.len);
    rd_buf_done(&text);
    return ok;
}
