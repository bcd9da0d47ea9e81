#include "archive/pause.h"

#include "json/members.h"
#include "json/write.h"

#include <inttypes.h>
#include <stdio.h>

enum { PAUSE_MAX = 16 * 1024 };

static bool name_of(char ret[ARCHIVE_NAME_MAX], const struct archive_repo *repo, struct rd_err *err)
{
    int len = snprintf(ret, ARCHIVE_NAME_MAX, "%s/marks/paused", repo->target);
    return (len > 0 && len < ARCHIVE_NAME_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

static void parse(struct archive_pause *ret, struct rd_slice text)
{
    struct json_members in;
    struct archive_pause pause = {.paused = true};
    char name[32];
    json_members_open(&in, text);
    json_members_begin(&in, '{');
    while (json_members_next(&in, name, sizeof name)) {
        if (strcmp(name, "since_ms") == 0)
            json_members_i64(&in, &pause.since_ms);
        else if (strcmp(name, "host") == 0)
            json_members_string(&in, pause.host, sizeof pause.host);
        else if (strcmp(name, "reason") == 0)
            json_members_string(&in, pause.reason, sizeof pause.reason);
        else
            json_members_skip(&in);
    }
    if (json_members_end(&in))
        *ret = pause;
    else
        *ret = (struct archive_pause){.paused = true};
    json_members_close(&in);
}

bool archive_pause_read(struct archive_repo *repo, struct archive_pause *ret, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct rd_buf text = {0};
    struct rd_err why = {0};
    if (!name_of(name, repo, err))
        return false;
    bool ok = archive_store_read(repo->store, name, PAUSE_MAX, &text, &why);
    *ret = (struct archive_pause){.paused = false};
    if (ok)
        parse(ret, rd_buf_slice(&text));
    else if (why.code == RD_ERR_LIMIT)
        *ret = (struct archive_pause){.paused = true};
    else if (!archive_store_is_missing(&why))
        rd_err_adopt(err, &why);
    rd_buf_done(&text);
    return ok || why.code == RD_ERR_LIMIT || archive_store_is_missing(&why);
}

bool archive_pause_set(struct archive_repo *repo, const struct archive_pause *pause,
                       struct archive_pause *ret, bool *ret_new, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct rd_buf text = {0};
    struct rd_err why = {0};
    *ret_new = false;
    if (!archive_pause_read(repo, ret, err))
        return false;
    if (ret->paused)
        return true;
    bool ok = name_of(name, repo, err) &&
              ((rd_buf_printf(&text, "{\"since_ms\": %" PRId64 ",\n \"host\": ", pause->since_ms) &&
                json_quote(&text, pause->host) && rd_buf_printf(&text, ",\n \"reason\": ") &&
                json_quote(&text, pause->reason) && rd_buf_add(&text, "}\n", 2)) ||
               rd_err_nomem(err, text.len));
    if (ok && archive_store_write(repo->store, name, rd_buf_slice(&text), &why)) {
        *ret = *pause;
        *ret_new = ret->paused = true;
    } else if (ok) { /* another process may have paused it meanwhile */
        ok = archive_store_exists(&why) && archive_pause_read(repo, ret, err) && ret->paused;
        if (!ok)
            rd_err_adopt(err, &why);
    }
    rd_buf_done(&text);
    return ok;
}

bool archive_pause_clear(struct archive_repo *repo, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    return name_of(name, repo, err) && repo->store->ops->remove(repo->store, name, err);
}
