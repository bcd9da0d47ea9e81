#include "tests/rdb/read_all.h"

#include <stdlib.h>
#include "base/src_impl.h"

enum { TRICKLE_WINDOW = 4096 };

static void must(bool ok)
{
    if (!ok)
        abort();
}

static bool is_push(const struct way *way)
{
    return way->kind >= WAY_PUSH;
}

struct rd_src *way_open(const struct way *way, struct rd_slice file)
{
    struct rd_src *src = NULL, *inner;
    struct rd_src_opts opts =
        RD_SRC_OPTS(.window = way->kind == WAY_WINDOW ? way->size : TRICKLE_WINDOW);
    if (is_push(way)) {
        must(rd_src_open_push(&src, NULL, NULL));
    } else {
        must(rd_src_open_memory(&inner, file, NULL, NULL));
        src = inner;
        if (way->kind != WAY_MEMORY)
            must(rd_src_open_trickle(&src, inner, way->size, &opts, NULL));
    }
    return src;
}

/* Pushes the next bytes; false when there are no more. */
static bool push(struct rd_src *src, struct rd_slice *rest, size_t size)
{
    size_t room = rd_src_push_room(src);
    size_t n = rest->len < size ? rest->len : size;
    n = n < room ? n : room;
    if (rest->len == 0)
        return false;
    must(n > 0 || size == 0);
    must(rd_src_push(src, rd_slice(rest->ptr, n)));
    *rest = rd_slice(rest->ptr + n, rest->len - n);
    return true;
}

static enum rdb_status run(struct rdb_reader *r, struct rd_src *src, const struct way *way,
                           struct rd_slice rest, struct event_text *text)
{
    bool ended = false;
    struct rdb_event ev;
    /* No event is smaller than a byte, but for the notes and ends of values. */
    size_t limit = 1000 + 40 * rest.len;
    for (size_t i = 0; i < limit; i++) {
        enum rdb_status st = rdb_reader_next(r, &ev);
        if (st == RDB_EVENT) {
            if (text != NULL)
                event_text_add(text, &ev);
            if (way->kind == WAY_PUSH_EAGER && rest.len > 0 && rd_src_push_room(src) >= way->size)
                push(src, &rest, way->size);
            continue;
        }
        if (st != RDB_MORE)
            return st;
        must(is_push(way) && !ended);
        if (push(src, &rest, way->size))
            continue;
        if (way->kind == WAY_PUSH_OPEN)
            return st;
        rd_src_push_end(src);
        ended = true;
    }
    abort();
}

struct rd_err read_all(struct rd_slice file, const struct way *way,
                       const struct rdb_reader_opts *opts, struct event_text *text)
{
    struct rdb_reader *r;
    struct rd_src *src = way_open(way, file);
    must(rdb_reader_new(&r, src, opts, NULL));
    enum rdb_status st = run(r, src, way, file, text);
    struct rd_err err = *rdb_reader_err(r);
    must((st == RDB_FAIL) == (err.code != RD_ERR_OK));
    if (st == RDB_FAIL) {
        /* It stays failed. */
        struct rdb_event ev;
        must(rdb_reader_next(r, &ev) == RDB_FAIL);
    }
    if (st == RDB_MORE)
        err.code = RD_ERR_CANCELLED;
    rdb_reader_free(r);
    rd_src_close(src);
    return err;
}
