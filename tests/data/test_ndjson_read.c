#include "data/ndjson_read.h"

#include "base/buf.h"
#include "base/src_impl.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>
#include <stdio.h>

static const char lines[] =
    "{\"rdb\":{\"dialect\":\"redis\",\"version\":11}}\n"
    "{\"aux\":{\"redis-ver\":\"7.2.5\"}}\n"
    "{\"db\":0,\"key\":\"s\",\"type\":\"string\",\"value\":\"text\"}\n"
    "\n"
    "{\"type\":\"list\",\"key\":\"l\",\"db\":0,\"expire_ms\":5,\"value\":[\"a\",\"b\\u0000\"]}\n"
    "{\"db\":3,\"key\":\"h\",\"type\":\"hash\",\"idle_s\":7,\"value\":{\"f\":\"1\",\"g\":\"2\"}}\n"
    "{\"db\":3,\"key\":\"z\",\"type\":\"zset\",\"freq\":9,\"value\":[[\"m\",1.5]]}\n";

/* What was read, a word for each event. */
struct reported {
    char text[1000];
    enum ndjson_status status;
    struct rd_err err;
};

static void note_event(struct reported *reported, const struct rdb_event *ev,
                       const struct ndjson_reader *r)
{
    size_t len = strlen(reported->text);
    char *at = reported->text + len;
    size_t room = sizeof reported->text - len;
    switch (ev->kind) {
    case RDB_HEADER:
        snprintf(at, room, "header %d; ", ev->header.version);
        break;
    case RDB_AUX:
        snprintf(at, room, "aux %.*s; ", (int)ev->aux.name.len, (const char *)ev->aux.name.ptr);
        break;
    case RDB_DB:
        snprintf(at, room, "db %d; ", (int)ev->db);
        break;
    case RDB_KEY:
        snprintf(at, room, "key %.*s@%d expire %lld idle %lld freq %lld, %d bytes; ",
                 (int)ev->key.name.len, (const char *)ev->key.name.ptr, (int)ev->offset,
                 ev->key.expire_ms == RDB_NO_EXPIRE ? -1 : (long long)ev->key.expire_ms,
                 ev->key.idle_s == RDB_UNKNOWN ? -1 : (long long)ev->key.idle_s,
                 ev->key.freq == RDB_UNKNOWN ? -1 : (long long)ev->key.freq,
                 (int)stage_size(ndjson_reader_value(r)));
        break;
    default:
        snprintf(at, room, "event %d; ", (int)ev->kind);
    }
}

static void read_all(struct rd_src *src, struct reported *reported)
{
    struct ndjson_reader *r = NULL;
    struct rdb_event ev;
    if (!ndjson_reader_new(&r, src, NULL, &reported->err)) {
        reported->status = NDJSON_FAIL;
        return;
    }
    while ((reported->status = ndjson_reader_next(r, &ev)) == NDJSON_EVENT)
        note_event(reported, &ev, r);
    if (reported->status == NDJSON_FAIL) {
        cr_assert_eq(ndjson_reader_next(r, &ev), NDJSON_FAIL);
        rd_err_adopt(&reported->err, ndjson_reader_err(r));
    }
    ndjson_reader_free(r);
}

static struct reported read_text(const char *text, size_t len, size_t feed)
{
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = 512);
    struct reported reported = {0};
    struct rd_src *memory, *src;
    cr_assert(rd_src_open_memory(&memory, rd_slice(text, len), NULL, &reported.err));
    cr_assert(rd_src_open_trickle(&src, memory, feed, &opts, &reported.err));
    read_all(src, &reported);
    rd_src_close(src);
    return reported;
}

static const char want[] =
    "header 11; aux redis-ver; db 0; key s@71 expire -1 idle -1 freq -1, 5 bytes; "
    "key l@122 expire 5 idle -1 freq -1, 6 bytes; db 3; "
    "key h@193 expire -1 idle 7 freq -1, 9 bytes; key z@263 expire -1 idle -1 freq 9, 11 bytes; ";

Test(ndjson_read, the_same_comes_out_however_the_input_comes)
{
    static const size_t feeds[] = {1, 2, 3, 7, 4096};
    for (size_t i = 0; i < sizeof feeds / sizeof *feeds; i++) {
        struct reported reported = read_text(lines, sizeof lines - 1, feeds[i]);
        cr_expect_eq(reported.status, NDJSON_END, "%s", reported.err.text);
        cr_expect_str_eq(reported.text, want, "%s", reported.text);
    }
}

Test(ndjson_read, no_prefix_gives_what_is_not_there)
{
    for (size_t n = 0; n < sizeof lines - 1; n++) {
        struct reported reported = read_text(lines, n, 4096);
        bool at_end = n == 0 || lines[n - 1] == '\n' || lines[n] == '\n';
        cr_expect_eq(reported.status, at_end ? NDJSON_END : NDJSON_FAIL, "%zu: %s", n,
                     reported.err.text);
        cr_expect(at_end || reported.err.code == RD_ERR_TRUNCATED ||
                  reported.err.code == RD_ERR_CORRUPT);
        if (n >= sizeof "{\"rdb\"" - 1) /* else a header is made up */
            cr_expect_eq(strncmp(reported.text, want, strlen(reported.text)), 0, "%zu: %s", n,
                         reported.text);
    }
}

Test(ndjson_read, flipped_bits_do_no_harm)
{
    char text[sizeof lines];
    for (size_t bit = 0; bit < 8 * (sizeof lines - 1); bit++) {
        memcpy(text, lines, sizeof lines);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        struct reported reported = read_text(text, sizeof lines - 1, 4096);
        cr_expect(reported.status == NDJSON_END || reported.err.code != RD_ERR_OK, "%zu", bit);
    }
}

Test(ndjson_read, any_allocation_may_fail)
{
    for (size_t n = 1;; n++) {
        struct reported reported = {0};
        struct rd_src *src;
        alloc_fault_begin(n);
        bool open =
            rd_src_open_memory(&src, rd_slice(lines, sizeof lines - 1), NULL, &reported.err);
        if (open) {
            read_all(src, &reported);
            rd_src_close(src);
        }
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0, "%zu", n);
        if (!r.failed)
            break;
        cr_assert(!open || reported.status == NDJSON_FAIL, "%zu", n);
        cr_assert_eq(reported.err.code, RD_ERR_MEMORY, "%zu: %s", n, reported.err.text);
    }
}

#define KEY "{\"db\":0,\"key\":\"k\",\"type\":"

static const struct {
    const char *text;
    enum rd_err_code code;
} wrong[] = {
    {"x", RD_ERR_CORRUPT},
    {"{\"nothing\":1}", RD_ERR_CORRUPT},
    {KEY "\"string\"}", RD_ERR_CORRUPT},
    {KEY "\"nonsense\",\"value\":\"\"}", RD_ERR_CORRUPT},
    {KEY "\"string\",\"value\":[]}", RD_ERR_CORRUPT},
    {KEY "\"list\",\"value\":\"x\"}", RD_ERR_CORRUPT},
    {KEY "\"hash\",\"value\":[\"f\"]}", RD_ERR_CORRUPT},
    {KEY "\"string\",\"encoding\":\"nonsense\",\"value\":\"\"}", RD_ERR_CORRUPT},
    {KEY "\"string\",\"value\":\"x\"} x", RD_ERR_CORRUPT},
    {KEY "\"string\",\"value\":\"x\" \"y\"}", RD_ERR_CORRUPT},
    {"{\"db\":0,\"value\":\"x\"}", RD_ERR_CORRUPT},
    {"{\"db\":-1,\"key\":\"k\"}", RD_ERR_CORRUPT},
    {"{\"db\":0,\"key\":5}", RD_ERR_CORRUPT},
    {KEY "\"module\",\"value\":\"\"}", RD_ERR_UNSUPPORTED},
    {"{\"module_aux\":{}}", RD_ERR_UNSUPPORTED},
};

Test(ndjson_read, lines_that_say_something_else_are_refused)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct reported reported = read_text(wrong[i].text, strlen(wrong[i].text), 4096);
        cr_expect_eq(reported.status, NDJSON_FAIL, "%s", wrong[i].text);
        cr_expect_eq(reported.err.code, wrong[i].code, "%s: %s", wrong[i].text, reported.err.text);
    }
}
