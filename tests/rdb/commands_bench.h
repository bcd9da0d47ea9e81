/* commands_bench.h - commands into memory, from events that a test makes up.
 *
 *     struct commands_bench out;
 *     cr_assert(commands_begin(&out, NULL) && commands_put_key(&out, RDB_TYPE_SET, 1));
 *     cr_assert(commands_put_elem(&out, RDB_ROLE_MEMBER, "m", 9) && commands_put_end(&out));
 *     commands_expect(&out, SELECT_0 "*3\r\n$4\r\nSADD\r\n…");
 *     commands_end(&out);
 */
#ifndef TESTS_RDB_COMMANDS_BENCH_H
#define TESTS_RDB_COMMANDS_BENCH_H

#include "base/buf.h"
#include "rdb/commands.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>

struct commands_bench {
    struct rd_buf bytes;
    struct rd_sink *sink;
    struct rdb_commands *commands;
    struct rd_err err;
};

static inline bool commands_begin(struct commands_bench *out, const struct rdb_commands_opts *opts)
{
    *out = (struct commands_bench){0};
    return rd_sink_open_buf(&out->sink, &out->bytes, NULL, &out->err) &&
           rdb_commands_new(&out->commands, out->sink, opts, &out->err);
}

static inline void commands_end(struct commands_bench *out)
{
    rdb_commands_free(out->commands);
    rd_sink_abort(out->sink);
    rd_buf_done(&out->bytes);
}

static inline bool commands_put(struct commands_bench *out, const struct rdb_event *ev)
{
    return rdb_commands_put(out->commands, ev, &out->err);
}

/* A KEY event for the key "k". */
static inline struct rdb_event commands_key(enum rdb_type_id type)
{
    struct rdb_event ev = {.kind = RDB_KEY};
    ev.key.name = rd_slice_str("k");
    ev.key.type = rdb_type_get(type);
    ev.key.expire_ms = RDB_NO_EXPIRE;
    ev.key.idle_s = ev.key.freq = RDB_UNKNOWN;
    return ev;
}

static inline bool commands_put_key(struct commands_bench *out, enum rdb_type_id type,
                                    uint64_t count)
{
    struct rdb_event key = commands_key(type), value = {.kind = RDB_VALUE};
    value.value.type = key.key.type;
    value.value.count = count;
    return commands_put(out, &key) && commands_put(out, &value);
}

/* An element in pieces of at most n bytes. */
static inline bool commands_put_elem(struct commands_bench *out, enum rdb_role role,
                                     const char *text, size_t n)
{
    size_t len = strlen(text), at = 0;
    do {
        struct rdb_event ev = {.kind = RDB_ELEM};
        size_t now = len - at < n ? len - at : n;
        ev.elem.role = role;
        ev.elem.score = 1.5;
        ev.elem.expire_ms = RDB_NO_EXPIRE;
        ev.elem.str = (struct rdb_string){.ptr = (const uint8_t *)text + at,
                                          .len = now,
                                          .total = len,
                                          .first = at == 0,
                                          .more = at + now < len};
        if (!commands_put(out, &ev))
            return false;
        at += now;
    } while (at < len);
    return true;
}

static inline bool commands_put_end(struct commands_bench *out)
{
    struct rdb_event ev = {.kind = RDB_VALUE_END};
    return commands_put(out, &ev);
}

static inline void commands_expect(struct commands_bench *out, const char *want)
{
    cr_assert(rdb_commands_end(out->commands, &out->err), "%s", out->err.text);
    cr_assert(rd_sink_flush(out->sink));
    cr_assert(rd_slice_is(rd_buf_slice(&out->bytes), want), "%.*s", (int)out->bytes.len,
              (const char *)out->bytes.ptr);
}

#define SELECT_0 "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"

/* Does the work with each allocation failing in its turn: no leak, and nothing else than the lack
 * of memory. Returns how many there were, and one. */
static inline size_t commands_fail_allocations(bool (*work)(struct commands_bench *out))
{
    for (size_t n = 1;; n++) {
        struct commands_bench out;
        alloc_fault_begin(n);
        bool ok = work(&out) && rdb_commands_end(out.commands, &out.err);
        commands_end(&out);
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        if (!result.failed)
            return n;
        cr_assert(ok || out.err.code == RD_ERR_MEMORY, "allocation %zu", n);
    }
}

#endif
