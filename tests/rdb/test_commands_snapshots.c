/* Every snapshot among the fixtures as commands. */
#include "rdb/commands.h"

#include <criterion/criterion.h>

#include "base/resp.h"
#include "base/src_impl.h"
#include "rdb/plain.h"
#include "tests/rdb/read_all.h"
#include "tests/rdb/snapshots.h"
#include "tests/support/alloc_fault.h"

struct how {
    struct rdb_commands_opts opts;
    struct way way;
    bool texts; /* read many strings at a time if available */
};

struct made {
    struct rd_buf bytes;
    struct rdb_omitted_counts loss;
    struct rd_err err;
};

static bool put_all(struct rdb_reader *r, struct rdb_commands *c, const struct how *how,
                    struct rd_err *err)
{
    struct rdb_event ev;
    struct rdb_text texts[7];
    enum rdb_status status;
    while ((status = rdb_reader_next(r, &ev)) == RDB_EVENT) {
        if (!rdb_commands_put(c, &ev, err))
            return false;
        size_t n = how->texts && ev.kind == RDB_ELEM ? rdb_reader_texts(r, texts, 7) : 0;
        if (n > 0 && !rdb_commands_put_texts(c, texts, n, err))
            return false;
    }
    if (status == RDB_FAIL)
        rd_err_adopt(err, rdb_reader_err(r));
    return status == RDB_END && rdb_commands_end(c, err);
}

static bool make(struct rd_src *src, const struct how *how, struct made *ret)
{
    struct rd_sink *sink = NULL;
    struct rdb_reader *r = NULL;
    struct rdb_commands *c = NULL;
    *ret = (struct made){0};
    bool ok = rd_sink_open_buf(&sink, &ret->bytes, NULL, &ret->err) &&
              rdb_reader_new(&r, src, NULL, &ret->err) &&
              rdb_commands_new(&c, sink, &how->opts, &ret->err) && put_all(r, c, how, &ret->err);
    if (c != NULL)
        ret->loss = *rdb_commands_loss(c);
    rdb_commands_free(c);
    rdb_reader_free(r);
    if (!ok)
        rd_sink_abort(sink);
    return ok && rd_sink_close(sink, &ret->err);
}

static bool make_from(struct rd_slice file, const struct how *how, struct made *ret)
{
    struct rd_src *src = way_open(&how->way, file);
    bool ok = make(src, how, ret);
    rd_src_close(src);
    return ok;
}

/* They are whole commands up to the end, none longer than was asked for. */
static void expect_commands(const struct snapshot *s, const struct made *made, size_t max_args)
{
    struct rd_src *src;
    struct rd_resp_reader *r;
    struct resp_command command;
    enum resp_status status;
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&made->bytes), NULL, NULL));
    cr_assert(rd_resp_reader_new(&r, src, NULL, NULL));
    while ((status = rd_resp_reader_next(r, &command)) == RESP_COMMAND) {
        bool entry = rd_slice_is(command.argv[0], "XADD");
        cr_assert(entry || command.argc <= max_args, "%s: %zu arguments", s->path, command.argc);
    }
    cr_assert_eq(status, RESP_END, "%s: %s", s->path, rd_resp_reader_err(r)->text);
    rd_resp_reader_free(r);
    rd_src_close(src);
}

enum { SMALL = 3 * 1024, ARGS_OTHER = 13, NUMBER_ZSET_2 = 5 };

/* No commands are made of path hashes. */
static bool has_elements(const struct snapshot *s)
{
    return strstr(s->path, "path-hash") == NULL;
}

static void compare_ways(void *ctx, const struct snapshot *s)
{
    static const struct rdb_commands_opts opts[] = {
        {.size = sizeof(struct rdb_commands_opts), .lossy = true},
        {.size = sizeof(struct rdb_commands_opts),
         .lossy = true,
         .dialect = RDB_REDIS,
         .version = 9,
         .replace = true},
        {.size = sizeof(struct rdb_commands_opts),
         .lossy = true,
         .dialect = RDB_REDIS,
         .version = 6,
         .max_elems = 3,
         .max_bytes = 60},
    };
    unsigned *n_lost = ctx;
    if (!has_elements(s))
        return;
    for (size_t i = 0; i < sizeof opts / sizeof *opts; i++) {
        struct how how = {.opts = opts[i], .way = {WAY_MEMORY, 0}};
        struct made events, texts, pieces;
        cr_assert(make_from(s->bytes, &how, &events), "%s: %s", s->path, events.err.text);
        how.texts = true;
        cr_assert(make_from(s->bytes, &how, &texts), "%s: %s", s->path, texts.err.text);
        cr_expect(rd_slice_eq(rd_buf_slice(&events.bytes), rd_buf_slice(&texts.bytes)), "%s, %zu",
                  s->path, i);
        how.way = (struct way){WAY_WINDOW, 512};
        cr_assert(make_from(s->bytes, &how, &pieces), "%s: %s", s->path, pieces.err.text);
        size_t elems = opts[i].max_elems == 0 ? RDB_COMMANDS_ELEMS : opts[i].max_elems;
        size_t args = 2 + 2 * elems < ARGS_OTHER ? ARGS_OTHER : 2 + 2 * elems;
        expect_commands(s, &events, args);
        expect_commands(s, &pieces, args);
        cr_expect(memcmp(&events.loss, &pieces.loss, sizeof events.loss) == 0, "%s", s->path);
        *n_lost += events.loss.keys + events.loss.functions + events.loss.module_aux > 0;
        rd_buf_done(&events.bytes);
        rd_buf_done(&texts.bytes);
        rd_buf_done(&pieces.bytes);
    }
}

Test(commands_snapshots, strings_many_at_a_time_make_the_commands_that_events_make)
{
    unsigned n_lost = 0;
    cr_assert_gt(snapshots_each_sound(SMALL, compare_ways, &n_lost), 100);
    cr_expect_gt(n_lost, 10);
}

static void add(struct rd_buf *file, const void *bytes, size_t len)
{
    cr_assert(rd_buf_add(file, bytes, len));
}

/* 20 elements of `strings` strings, of which the tenth has one of 5000 bytes. */
static void add_table(struct rd_buf *file, uint8_t type, unsigned strings)
{
    const uint8_t key[] = {type, 1, type, 20};
    uint8_t text[5002] = {0x40 | 5000 >> 8, 5000 & 0xff};
    add(file, key, sizeof key);
    for (uint8_t i = 0; i < 20; i++) {
        for (uint8_t k = 0; k < strings; k++) {
            const uint8_t small[] = {2, 'a' + k, 'a' + i};
            memset(text + 2, 'z', 5000);
            if (i == 10 && k == strings - 1)
                add(file, text, sizeof text);
            else
                add(file, small, sizeof small);
        }
        if (type == NUMBER_ZSET_2) /* one of them is not a number */
            add(file, i == 15 ? "\0\0\0\0\0\0\xf8\x7f" : "\0\0\0\0\0\0\xf8\x3f", 8);
    }
}

Test(commands_snapshots, tables_of_short_and_long_strings_make_the_same_either_way)
{
    /* The last but one does not ascend: texts stop there, and the reader reports it. */
    static const char intset[] = "\x0b\1i\x10\2\0\0\0\4\0\0\0\1\0\5\0\2\0\7\0";
    struct snapshot s = {.path = "tables"};
    struct rd_buf file = {0};
    unsigned n_lost = 0;
    add(&file, "REDIS0009\xfe\0", 11);
    add_table(&file, 1, 1);
    add_table(&file, 2, 1);
    add_table(&file, 4, 2);
    add_table(&file, NUMBER_ZSET_2, 1);
    add(&file, intset, sizeof intset - 1);
    add(&file, "\xff\0\0\0\0\0\0\0\0", 9);
    s.bytes = rd_buf_slice(&file);
    compare_ways(&n_lost, &s);
    rd_buf_done(&file);
}

static void refuse(void *ctx, const struct snapshot *s)
{
    unsigned *n_refused = ctx;
    struct how how = {.opts = RDB_COMMANDS_OPTS(.dialect = RDB_REDIS, .version = 6),
                      .way = {WAY_MEMORY, 0}};
    struct how lossy = how;
    struct made made, rest;
    if (!has_elements(s))
        return;
    lossy.opts.lossy = true;
    bool ok = make_from(s->bytes, &how, &made);
    cr_assert(make_from(s->bytes, &lossy, &rest), "%s: %s", s->path, rest.err.text);
    bool lost = rest.loss.keys + rest.loss.functions + rest.loss.field_expires +
                    rest.loss.module_aux + rest.loss.pending + rest.loss.other >
                0;
    cr_expect_eq(ok, !lost, "%s: what is refused is what would be left out", s->path);
    if (!ok) {
        cr_expect_eq(made.err.code, RD_ERR_UNSUPPORTED, "%s: %s", s->path, made.err.text);
        cr_expect_lt(made.err.offset, s->bytes.len, "%s", s->path);
        ++*n_refused;
    }
    rd_buf_done(&made.bytes);
    rd_buf_done(&rest.bytes);
}

Test(commands_snapshots, what_an_old_server_cannot_run_is_refused_at_its_place)
{
    unsigned n_refused = 0;
    cr_assert_gt(snapshots_each_sound(SMALL, refuse, &n_refused), 100);
    cr_expect_gt(n_refused, 10);
}

/* With each allocation failing in its turn: no leak, and nothing else than the lack of memory. */
static void fail_allocations(void *ctx, const struct snapshot *s)
{
    const struct how how = {
        .opts = RDB_COMMANDS_OPTS(.lossy = true), .texts = true, .way = {WAY_WINDOW, 512}};
    size_t *n_failed = ctx;
    if (s->bytes.len < 600)
        return;
    for (size_t n = 1;; n++, ++*n_failed) {
        struct made made;
        alloc_fault_begin(n);
        struct rd_src *src = NULL, *inner;
        bool opened = rd_src_open_memory(&inner, s->bytes, NULL, NULL) &&
                      rd_src_open_trickle(&src, inner, 512, NULL, NULL);
        bool ok = opened && make(src, &how, &made);
        if (opened) {
            rd_buf_done(&made.bytes);
            rd_src_close(src);
        }
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "%s: allocation %zu", s->path, n);
        cr_assert_eq(ok, !result.failed, "%s: allocation %zu", s->path, n);
        cr_assert(ok || !opened || strncmp(made.err.text, "out of memory", 13) == 0, "%s: %s",
                  s->path, made.err.text);
        if (ok)
            return;
    }
}

Test(commands_snapshots, memory_that_is_short_is_an_error_and_nothing_leaks)
{
    size_t n_failed = 0;
    snapshots_each_sound(SMALL, fail_allocations, &n_failed);
    cr_expect_gt(n_failed, 500);
}
