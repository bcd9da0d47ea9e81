/* Every capture through the replica: events, offsets, digests.
 */
#include "tests/repl/captures.h"

#include "base/digest.h"
#include "engine/digest.h"
#include "engine/session.h"
#include "engine/snapshot.h"
#include "tests/repl/replica.h"
#include "tests/support/guard.h"

#include <criterion/criterion.h>
#include <stdio.h>

enum { ALL = 1 << 20, CAPTURES = 20 };

static const size_t SIZES[] = {1, 2, 3, 7, 4096, ALL};

static void run(struct replica *r, const struct capture *c, size_t piece)
{
    cr_assert(replica_init(r, &c->opts), "%s", c->path);
    replica_feed(r, c->bytes, piece);
}

/* ---- what the facts say ---- */

static void expect_snapshot(const struct capture *c, const struct replica *r)
{
    uint8_t sum[RD_DIGEST_MAX];
    char hex[RD_DIGEST_HEX];
    if (c->rdb == UINT64_MAX) {
        cr_expect_eq(r->snapshot.len, 0);
        return;
    }
    cr_expect_eq(r->snapshot.len, c->rdb_end - c->rdb, "%s", c->path);
    cr_assert(rd_digest_of(RD_DIGEST_SHA256, rd_buf_slice(&r->snapshot), sum, NULL));
    cr_expect_str_eq(rd_digest_hex(hex, rd_slice(sum, rd_digest_size(RD_DIGEST_SHA256))),
                     c->rdb_sha256, "%s", c->path);
}

static void expect_place(const struct capture *c, const struct replica *r)
{
    struct repl_resume place, safe;
    cr_expect_eq(repl_psync_place(r->p, &place), c->replid[0] != 0, "%s", c->path);
    cr_expect_eq(repl_psync_safe_place(r->p, &safe), c->replid[0] != 0, "%s", c->path);
    cr_expect_str_eq(place.replid.hex, c->replid, "%s", c->path);
    if (c->replid[0] != 0 && !c->opts.rdb_only)
        cr_expect(place.offset == c->end && safe.offset == c->end && !place.in_multi, "%s",
                  c->path);
}

static void expect_stream(const struct capture *c, const struct replica *r)
{
    const uint64_t want[] = {[REPL_PING] = c->pings,
                             [REPL_SELECT] = c->selects,
                             [REPL_MULTI] = c->multis,
                             [REPL_EXEC] = c->execs,
                             [REPL_GETACK] = c->getacks};
    struct rd_slice rest = rd_slice(c->bytes.ptr + c->stream, c->bytes.len - c->stream);
    cr_expect_eq(r->n_commands, c->commands, "%s: %ju", c->path, (uintmax_t)r->n_commands);
    for (size_t i = REPL_PING; i <= REPL_GETACK; i++)
        cr_expect_eq(r->n_kind[i], want[i], "%s: kind %zu: %ju", c->path, i,
                     (uintmax_t)r->n_kind[i]);
    cr_expect(rd_slice_eq(rd_buf_slice(&r->stream), rest), "%s: bytes of the stream", c->path);
}

static void as_reported(void *ctx, const struct capture *c)
{
    const size_t *piece = ctx;
    struct replica r;
    run(&r, c, *piece);
    size_t len = strlen(c->sent);
    const char *sent = replica_sent(&r);
    cr_expect(strncmp(sent, c->sent, len) == 0 && sent[len] == '|', "%s: %s", c->path, sent);
    expect_snapshot(c, &r);
    expect_place(c, &r);
    expect_stream(c, &r);
    cr_expect_eq(r.ended, c->opts.rdb_only, "%s: %s", c->path, r.err.text);
    cr_expect_eq(r.last.kind, c->opts.rdb_only ? REPL_END : REPL_COMMAND, "%s", c->path);
    replica_done(&r);
}

Test(captures, events_and_offsets_are_as_the_facts_say_in_pieces_of_any_size)
{
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        size_t piece = SIZES[i];
        cr_assert_eq(captures_each(as_reported, &piece), CAPTURES);
    }
}

/* ---- pieces ---- */

static void same_in_pieces(void *ctx, const struct capture *c)
{
    struct replica whole, pieces;
    (void)ctx;
    run(&whole, c, ALL);
    cr_expect_gt(whole.text.len, 0);
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        run(&pieces, c, SIZES[i]);
        cr_expect(rd_slice_eq(rd_buf_slice(&pieces.text), rd_buf_slice(&whole.text)),
                  "%s: other events in pieces of %zu", c->path, SIZES[i]);
        replica_done(&pieces);
    }
    replica_done(&whole);
}

Test(captures, the_size_of_pieces_does_not_change_an_event)
{
    captures_each(same_in_pieces, NULL);
}

static bool is_prefix(const struct rd_buf *a, const struct rd_buf *b)
{
    return a->len <= b->len && (a->len == 0 || memcmp(a->ptr, b->ptr, a->len) == 0);
}

/* Every third prefix, for there are 300 KB of them. */
static void prefix_is_the_begin(void *ctx, const struct capture *c)
{
    struct replica whole, cut;
    (void)ctx;
    run(&whole, c, ALL);
    for (size_t len = 0; len < c->bytes.len; len += len < 300 ? 1 : 97) {
        struct capture part = *c;
        uint8_t *bytes = guard_new(c->bytes.ptr, len);
        part.bytes = rd_slice(bytes, len);
        run(&cut, &part, ALL);
        cr_expect_not(cut.ended && cut.last.kind == REPL_ERROR, "%s to %zu: %s", c->path, len,
                      cut.err.text);
        cr_expect(is_prefix(&cut.text, &whole.text), "%s to %zu", c->path, len);
        cr_expect(is_prefix(&cut.snapshot, &whole.snapshot), "%s to %zu", c->path, len);
        if (!cut.ended) {
            replica_cut(&cut);
            cr_expect(cut.ended && cut.last.error_class == REPL_CLOSED, "%s to %zu", c->path, len);
        }
        replica_done(&cut);
        guard_free(bytes);
    }
    replica_done(&whole);
}

Test(captures, a_prefix_gives_a_prefix_of_the_events_and_a_cut_is_reported)
{
    captures_each(prefix_is_the_begin, NULL);
}

/* ---- a connection that breaks, and the next one ---- */

static bool is_suffix(const struct rd_buf *a, const struct rd_buf *b)
{
    return a->len <= b->len &&
           (a->len == 0 || memcmp(a->ptr, b->ptr + b->len - a->len, a->len) == 0);
}

static void resume_at(const struct capture *c, const struct replica *whole, size_t len)
{
    struct replica cut, next;
    struct repl_resume place;
    struct capture part = *c;
    char answer[80];
    part.bytes.len = len;
    run(&cut, &part, ALL);
    bool has_place = repl_psync_place(cut.p, &place);
    /* Of an open transaction, the rest, or the whole again. */
    bool again = place.in_multi && len % 2 == 0;
    if (again)
        cr_assert(repl_psync_safe_place(cut.p, &place) && !place.in_multi);
    if (has_place && place.offset > c->start) {
        struct repl_psync_opts opts = c->opts;
        opts.resume = place;
        cr_assert(replica_init(&next, &opts));
        replica_feed_text(&next,
                          c->opts.no_psync2 ? "+PONG\r\n+OK\r\n" : "+PONG\r\n+OK\r\n+OK\r\n");
        snprintf(answer, sizeof answer, "+CONTINUE %s\r\n", place.replid.hex);
        replica_feed_text(&next, answer);
        cr_assert_eq(next.last.kind, REPL_CONTINUE, "%s", next.err.text);
        next.text.len = 0;
        size_t at = c->stream + (place.offset - c->start);
        replica_feed(&next, rd_slice(c->bytes.ptr + at, c->bytes.len - at), ALL);
        cr_expect_eq(next.stream.len, c->end - place.offset, "%s: cut at %zu", c->path, len);
        if (!place.in_multi)
            cr_expect(is_suffix(&next.text, &whole->text), "%s: cut at %zu", c->path, len);
        if (!again)
            cr_expect_eq(cut.n_commands + next.n_commands, c->commands, "%s: cut at %zu", c->path,
                         len);
        replica_done(&next);
    }
    replica_done(&cut);
}

static void resumes(void *ctx, const struct capture *c)
{
    struct replica whole;
    (void)ctx;
    if (c->replid[0] == 0 || c->opts.rdb_only || c->opts.resume.offset > 0)
        return;
    run(&whole, c, ALL);
    for (size_t len = c->stream; len < c->bytes.len; len += 101)
        resume_at(c, &whole, len);
    replica_done(&whole);
}

Test(captures, a_stream_goes_on_where_it_broke_as_if_nothing_had_been)
{
    captures_each(resumes, NULL);
}

/* ---- flipped bits ---- */

static void flipped(void *ctx, const struct capture *c)
{
    (void)ctx;
    struct rd_buf bytes = {0};
    rd_buf_add(&bytes, c->bytes.ptr, c->bytes.len);
    for (size_t i = 0; i < bytes.len; i += i < 200 ? 1 : 211) {
        struct capture bad = *c;
        struct replica whole, pieces;
        bytes.ptr[i] ^= (uint8_t)(1u << (i % 8));
        bad.bytes = rd_buf_slice(&bytes);
        run(&whole, &bad, ALL);
        run(&pieces, &bad, 7);
        cr_expect(rd_slice_eq(rd_buf_slice(&pieces.text), rd_buf_slice(&whole.text)),
                  "%s: judged differently in pieces with byte %zu changed", c->path, i);
        replica_done(&whole);
        replica_done(&pieces);
        bytes.ptr[i] = c->bytes.ptr[i];
    }
    rd_buf_done(&bytes);
}

Test(captures, a_flipped_bit_is_judged_alike_in_pieces_of_any_size)
{
    captures_each(flipped, NULL);
}

/* ---- data ---- */

struct copy {
    const struct capture *c;
    struct engine *engine;
    struct engine_session session;
    struct engine_reply reply;
    struct engine_effects effects;
};

static const struct engine_env ENV = {.now_us = 1795167151885000};

/* What fixtures/README.md defines: each key counts with its database, name and DIGEST-VALUE. */
static void sum_of_keys(struct engine *e, uint8_t sum[ENGINE_DIGEST])
{
    struct engine_db *db;
    memset(sum, 0, ENGINE_DIGEST);
    for (unsigned id = 0; (db = engine_db(e, id)) != NULL; id++) {
        struct engine_table_iter it;
        engine_table_iter_begin(&it, &db->keys);
        for (const struct engine_entry *entry; (entry = engine_table_iter_next(&it)) != NULL;) {
            struct rd_buf text = {0};
            struct rd_slice key = engine_entry_key(entry);
            uint8_t value[ENGINE_DIGEST] = {0};
            if (entry->value.type != ENGINE_ZSET)
                cr_assert(engine_digest_key(db, key, value));
            rd_buf_printf(&text, "%u:", id);
            rd_buf_add(&text, key.ptr, key.len);
            rd_buf_add_byte(&text, ':');
            rd_buf_add(&text, value, sizeof value);
            engine_digest_xor(sum, rd_buf_slice(&text));
            rd_buf_done(&text);
        }
        engine_table_iter_end(&it);
    }
}

/* Before 5.0 servers report only a digest of everything. */
static void expect_digest(struct copy *copy, const char *want, const char *when)
{
    uint8_t sum[ENGINE_DIGEST];
    char hex[RD_DIGEST_HEX];
    if (want[0] == 0)
        return;
    if (strncmp(copy->c->path, "redis-2", 7) == 0 || strncmp(copy->c->path, "redis-4", 7) == 0)
        engine_digest(copy->engine, sum);
    else
        sum_of_keys(copy->engine, sum);
    cr_expect_str_eq(rd_digest_hex(hex, rd_slice(sum, sizeof sum)), want, "%s, %s", copy->c->path,
                     when);
}

static void load_snapshot(struct copy *copy, const struct replica *r)
{
    const struct engine_load_opts opts = {.keep_expired = true};
    struct rd_src *src;
    struct rd_err err = {0};
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&r->snapshot), NULL, NULL));
    cr_assert(engine_load(copy->engine, src, &opts, &ENV, NULL, &err), "%s: %s", copy->c->path,
              err.text);
    rd_src_close(src);
    expect_digest(copy, copy->c->initial, "snapshot");
}

/* The database that the replica reports is used, and SELECT is not run. */
static void apply(void *ctx, struct replica *r, const struct repl_event *ev)
{
    struct copy *copy = ctx;
    if (ev->kind == REPL_PAYLOAD_END)
        load_snapshot(copy, r);
    if (ev->kind != REPL_COMMAND || ev->place.kind == REPL_SELECT)
        return;
    copy->session.db = (unsigned)ev->place.db;
    copy->reply.error = false;
    engine_apply(copy->engine, &copy->session, ev->command.argc, ev->command.argv, &ENV,
                 &copy->reply, &copy->effects);
}

static void same_data(void *ctx, const struct capture *c)
{
    struct engine_config config;
    struct replica r;
    struct copy copy = {.c = c};
    (void)ctx;
    if (c->initial[0] == 0)
        return;
    engine_config_init(&config);
    copy.engine = engine_new(&(struct engine_opts){.seed = 1, .config = &config});
    engine_session_init(&copy.session, copy.engine, ENGINE_MASTER);
    copy.reply = (struct engine_reply){.proto = 2, .off = true};
    copy.effects.off = true;
    cr_assert(replica_init(&r, &c->opts));
    r.on_event = apply;
    r.ctx = &copy;
    replica_feed(&r, c->bytes, 4096);
    expect_digest(&copy, c->final, "end");
    replica_done(&r);
    engine_session_done(&copy.session);
    engine_reply_done(&copy.reply);
    engine_effects_done(&copy.effects);
    engine_delete(copy.engine);
}

Test(captures, the_data_at_the_end_has_the_digest_that_the_master_reported)
{
    captures_each(same_data, NULL);
}
