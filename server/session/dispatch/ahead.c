#include "server/session/dispatch/ahead.h"

#include "base/resp_frame.h"

enum { ARGS_MAX = 64, KEY_MAX = 1024 };

/* The first key of most commands is the first argument. Prefetching anything else does no harm. */
static size_t next_command(struct ahead *a, const struct engine_db *db, struct rd_slice bytes)
{
    static const struct rd_resp_limits limits = {.max_args = ARGS_MAX, .max_bulk = UINT32_MAX};
    struct rd_slice argv[2];
    uint64_t argc;
    size_t len =
        rd_resp_whole(bytes.ptr, bytes.ptr + bytes.len, 0, &limits, argv, 2, ARGS_MAX, &argc);
    if (len > 0 && argc > 1 && argv[1].len <= KEY_MAX)
        engine_db_ahead(db, &a->keys, argv[1]);
    return len;
}

void ahead(struct ahead *a, const struct engine_db *db, struct rd_slice rest, uint64_t at)
{
    if (a->at <= at) {
        a->at = at;
        a->n = 0;
    } else if (a->n > 0) {
        a->n--;
    }
    while (a->n < ENGINE_DB_AHEAD && a->at - at < rest.len) {
        size_t pos = (size_t)(a->at - at);
        size_t len = next_command(a, db, rd_slice(rest.ptr + pos, rest.len - pos));
        if (len == 0)
            return;
        a->at += len;
        a->n++;
    }
}
