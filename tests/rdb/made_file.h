/* made_file.h - snapshots that a test makes byte by byte, and what salvage makes of them.
 *
 *     struct rd_buf file = {0}, out = {0};
 *     struct made_seen seen = {0};
 *     struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.loss = made_see, .ctx = &seen);
 *     made_add(&file, "REDIS0011\xfe\0", 11);
 *     made_keys(&file, "key", 5);              // key:0 to key:4
 *     made_end(&file);
 *     cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
 */
#ifndef TESTS_RDB_MADE_FILE_H
#define TESTS_RDB_MADE_FILE_H

#include "base/buf.h"
#include "base/endian.h"
#include "rdb/salvage.h"

#include <criterion/criterion.h>
#include <stdio.h>

static inline bool made_salvage(struct rd_slice file, const struct rdb_salvage_opts *opts,
                                struct rd_buf *out, struct rdb_salvage_result *res,
                                struct rd_err *err)
{
    struct rd_src *src, *copy;
    struct rd_sink *sink = NULL;
    struct rdb_salvage_opts none = RDB_SALVAGE_OPTS();
    cr_assert(rd_src_open_memory(&src, file, NULL, NULL));
    cr_assert(rd_src_open_memory(&copy, file, NULL, NULL));
    if (out != NULL)
        cr_assert(rd_sink_open_buf(&sink, out, NULL, NULL));
    bool ok = rdb_salvage(src, copy, sink, opts != NULL ? opts : &none, res, err);
    if (out != NULL)
        cr_assert(rd_sink_close(sink, NULL));
    rd_src_close(src);
    rd_src_close(copy);
    return ok;
}

static inline void made_add(struct rd_buf *buf, const void *bytes, size_t len)
{
    cr_assert(rd_buf_add(buf, bytes, len));
}

/* A length in its form of four bytes. */
static inline void made_len32(struct rd_buf *buf, size_t len)
{
    uint8_t head[5] = {0x80};
    rd_put_be32(head + 1, (uint32_t)len);
    made_add(buf, head, sizeof head);
}

static inline void made_text(struct rd_buf *buf, const char *text)
{
    size_t len = strlen(text);
    cr_assert_lt(len, 64);
    cr_assert(rd_buf_add_byte(buf, (uint8_t)len));
    made_add(buf, text, len);
}

static inline void made_key(struct rd_buf *buf, const char *name)
{
    cr_assert(rd_buf_add_byte(buf, 0));
    made_text(buf, name);
    made_text(buf, "value");
}

static inline void made_keys(struct rd_buf *buf, const char *prefix, int n)
{
    char name[32];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s:%d", prefix, i);
        made_key(buf, name);
    }
}

static inline void made_end(struct rd_buf *buf)
{
    made_add(buf, "\xff\0\0\0\0\0\0\0\0", 9);
}

/* names: of keys, as text. */
static inline bool has_name(const struct rd_buf *names, const char *name)
{
    return strstr((const char *)names->ptr, name) != NULL;
}

struct made_seen {
    unsigned n;
    struct rdb_loss last;
    char key[64];
};

static inline void made_see(void *ctx, const struct rdb_loss *loss)
{
    struct made_seen *seen = ctx;
    seen->n++;
    seen->last = *loss;
    if (loss->has_key)
        snprintf(seen->key, sizeof seen->key, "%.*s", (int)loss->key.len,
                 (const char *)loss->key.ptr);
}

#endif
