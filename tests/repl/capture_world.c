#include "tests/repl/capture_world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/crc64.h"
#include "base/endian.h"
#include "base/sink.h"

static const uint64_t bases[] = {WORLD_BASE1, WORLD_BASE2};

struct repl_replid world_id(char digit)
{
    struct repl_replid id = {.hex = ""};
    memset(id.hex, digit, REPL_REPLID_LEN);
    return id;
}

/* ---- the bytes ---- */

void world_add_command(struct rd_buf *to, size_t argc, const struct rd_slice *argv)
{
    cr_assert(rd_buf_printf(to, "*%zu\r\n", argc));
    for (size_t i = 0; i < argc; i++)
        cr_assert(rd_buf_printf(to, "$%zu\r\n", argv[i].len) &&
                  rd_buf_add(to, argv[i].ptr, argv[i].len) && rd_buf_add(to, "\r\n", 2));
}

static void add_words(struct rd_buf *to, size_t argc, const char *const *words)
{
    struct rd_slice argv[4];
    for (size_t i = 0; i < argc; i++)
        argv[i] = rd_slice_str(words[i]);
    world_add_command(to, argc, argv);
}

static void note(struct world *world, unsigned h, size_t at, uint64_t db, bool in_multi)
{
    size_t n = world->n_commands[h]++;
    cr_assert_lt(n, WORLD_COMMANDS);
    world->commands[h][n] = (struct world_command){at, world->history[h].len - at, db, in_multi};
}

static void make_command(struct world *world, unsigned h, size_t i, uint64_t *db, bool *in_multi)
{
    struct rd_buf *to = &world->history[h];
    char key[32], value[40];
    size_t at = to->len;
    bool multi_after = *in_multi;
    snprintf(key, sizeof key, "key:%zu", i);
    snprintf(value, sizeof value, "%.*s", (int)(i * 7 % 31), "abcdefghijklmnopqrstuvwxyz01234567");
    if (i % 11 == 3) {
        *db = i % 4;
        snprintf(value, sizeof value, "%u", (unsigned)*db);
        add_words(to, 2, (const char *const[]){i % 2 ? "SELECT" : "select", value});
    } else if (i % 13 == 5) {
        add_words(to, 1, (const char *const[]){"MULTI"});
        *in_multi = multi_after = true;
    } else if (i % 13 == 9) {
        add_words(to, 1, (const char *const[]){"exec"});
        multi_after = false;
    } else if (world->long_len > 0 && i == 8) {
        char *big = malloc(world->long_len);
        memset(big, 'x', world->long_len);
        struct rd_slice argv[] = {rd_slice_str("SET"), rd_slice_str(key),
                                  rd_slice(big, world->long_len)};
        world_add_command(to, 3, argv);
        free(big);
    } else {
        add_words(to, 3, (const char *const[]){"SET", key, value});
    }
    note(world, h, at, *db, *in_multi);
    *in_multi = multi_after;
    if (i == 6)
        cr_assert(rd_buf_add(to, "\n", 1));
}

static void make_history(struct world *world, unsigned h, size_t n)
{
    uint64_t db = 0;
    bool in_multi = false;
    for (size_t i = 0; i < n; i++) {
        if (h == 0 && i == n / 2)
            world->rename_at = world->history[0].len;
        make_command(world, h, i, &db, &in_multi);
    }
}

static void make_snapshot(struct rd_buf *to)
{
    uint8_t sum[8];
    static const uint8_t body[] = "REDIS0009\xfe\x00\x00\x01k\x01v\xff";
    cr_assert(rd_buf_add(to, body, sizeof body - 1));
    rd_put_le64(sum, rd_crc64(0, to->ptr, to->len));
    cr_assert(rd_buf_add(to, sum, 8));
}

void world_init(struct world *world)
{
    if (world->sim == NULL)
        world->sim = sim_fs_new();
    if (world->chunk == 0)
        world->chunk = 100;
    if (world->n1 == 0)
        world->n1 = world->n2 = 30;
    world->now_us = 1700000000000000;
    make_history(world, 0, world->n1);
    make_history(world, 1, world->n2);
    make_snapshot(&world->snapshot);
}

void world_done(struct world *world)
{
    sim_fs_free(world->sim);
    rd_buf_done(&world->history[0]);
    rd_buf_done(&world->history[1]);
    rd_buf_done(&world->snapshot);
}

/* ---- playing ---- */

struct repl_capture_writer *world_writer(struct world *world)
{
    struct repl_capture_writer *w;
    struct rd_fs fs = sim_fs_calls(world->sim);
    return repl_capture_writer_open(&w, &fs, &world->opts, &world->err) ? w : NULL;
}

bool world_begin(struct world *world, struct repl_capture_writer *w, unsigned history)
{
    struct repl_replid id = world_id(history == 0 ? 'a' : 'c');
    size_t half = world->snapshot.len / 2;
    const uint8_t *ptr = world->snapshot.ptr;
    return repl_capture_writer_begin(w, &id, bases[history], world->now_us, &world->err) &&
           repl_capture_writer_snapshot(w, rd_slice(ptr, half), &world->err) &&
           repl_capture_writer_snapshot(w, rd_slice(ptr + half, world->snapshot.len - half),
                                        &world->err) &&
           repl_capture_writer_snapshot_end(w, world->now_us, &world->err);
}

/* Connections are lost, and all arrives again, by turns. */
static bool break_off(struct world *world, struct repl_capture_writer *w, unsigned turn)
{
    if (world->breaking == 0 || turn % world->breaking != 0)
        return true;
    return turn / world->breaking % 2 == 1
               ? repl_capture_writer_interrupted(w, world->now_us, world->now_us + 9, &world->err)
               : repl_capture_writer_in_time(w, world->now_us, &world->err);
}

static void note_durable(struct world *world, const struct repl_capture_writer *w, unsigned h)
{
    uint64_t written = repl_capture_writer_written(w), synced = repl_capture_writer_synced(w);
    cr_assert_leq(synced, written);
    cr_assert_leq(written, repl_capture_writer_received(w));
    world->reported[h] = written;
    world->durable[h] = synced;
}

bool world_feed(struct world *world, struct repl_capture_writer *w, unsigned history, size_t to)
{
    size_t at = (size_t)(repl_capture_writer_received(w) - bases[history]);
    for (unsigned turn = 1; at < to; turn++) {
        size_t n = to - at < world->chunk ? to - at : world->chunk;
        world->now_us += 250;
        if (!repl_capture_writer_append(w, rd_slice(world->history[history].ptr + at, n),
                                        world->now_us, &world->err) ||
            !repl_capture_writer_flush(w, &world->err))
            return false;
        if (world->syncing > 0 && turn % world->syncing == 0 &&
            !repl_capture_writer_sync(w, &world->err))
            return false;
        if (!break_off(world, w, turn))
            return false;
        note_durable(world, w, history);
        at += n;
    }
    return true;
}

static bool play_on(struct world *world, struct repl_capture_writer *w)
{
    struct repl_capture_point point;
    struct repl_replid b = world_id('b');
    char id = repl_capture_writer_point(w, &point) ? point.replid.hex[0] : '-';
    if (id != '-' && !repl_capture_writer_continue(w, NULL, world->now_us, &world->err))
        return false;
    if (id == '-' && !world_begin(world, w, 0))
        return false;
    if (id == '-' || id == 'a') {
        if (!world_feed(world, w, 0, world->rename_at) ||
            !repl_capture_writer_continue(w, &b, world->now_us, &world->err))
            return false;
        id = 'b';
    }
    if (id == 'b' && (!world_feed(world, w, 0, world->history[0].len) || !world_begin(world, w, 1)))
        return false;
    return world_feed(world, w, 1, world->history[1].len);
}

bool world_play(struct world *world)
{
    rd_err_reset(&world->err);
    struct repl_capture_writer *w = world_writer(world);
    if (w == NULL)
        return false;
    if (play_on(world, w))
        return repl_capture_writer_close(w, &world->err);
    repl_capture_writer_abort(w);
    return false;
}

/* ---- checking ---- */

static void check_command(const struct world *world, unsigned h,
                          const struct repl_capture_event *ev, const char *what)
{
    size_t at = (size_t)(ev->offset - bases[h]);
    for (size_t i = 0; i < world->n_commands[h]; i++) {
        const struct world_command *c = &world->commands[h][i];
        if (c->at != at)
            continue;
        cr_assert_eq(c->len, ev->bytes.len, "%s", what);
        cr_assert_eq(c->db, ev->place.db, "%s: command %zu", what, i);
        cr_assert_eq(c->in_multi, ev->place.in_multi, "%s: command %zu", what, i);
        cr_assert_geq(ev->command.argc, 1);
        return;
    }
    cr_assert(false, "%s: no command begins at %zu", what, at);
}

static void check_bytes(const struct world *world, unsigned h, uint64_t offset,
                        struct rd_slice bytes, const char *what)
{
    uint64_t at = offset - bases[h];
    cr_assert_leq(at + bytes.len, world->history[h].len, "%s", what);
    cr_assert_eq(memcmp(world->history[h].ptr + at, bytes.ptr, bytes.len), 0, "%s", what);
}

static void read_all(const struct world *world, struct sim_fs *sim, bool cut, const char *what)
{
    struct repl_capture_reader *r;
    struct repl_capture_event ev;
    struct rd_fs fs = sim_fs_calls(sim);
    struct repl_capture_reader_opts opts = {.max_whole = world->long_len + 100};
    uint64_t next[2] = {cut ? UINT64_MAX : WORLD_BASE1, cut ? UINT64_MAX : WORLD_BASE2};
    enum repl_capture_status st;
    char id = '-';
    int64_t last_us = 0;
    cr_assert(repl_capture_reader_open(&r, &fs, &opts, NULL));
    while ((st = repl_capture_reader_next(r, &ev)) == REPL_CAPTURE_EVENT) {
        unsigned h = ev.segment->replid.hex[0] == 'c';
        if (ev.kind == REPL_CAPTURE_CHAPTER) {
            cr_assert_neq(id, ev.segment->replid.hex[0], "%s: the same chapter again", what);
            id = ev.segment->replid.hex[0];
            continue;
        }
        cr_assert_eq(id, ev.segment->replid.hex[0], "%s: a chapter that was not reported", what);
        if (next[h] == UINT64_MAX)
            next[h] = ev.offset;
        cr_assert_eq(ev.offset, next[h], "%s: a gap", what);
        check_bytes(world, h, ev.offset, ev.bytes, what);
        if (ev.kind == REPL_CAPTURE_COMMAND)
            check_command(world, h, &ev, what);
        cr_assert_geq(ev.time_us, last_us, "%s", what);
        last_us = ev.time_us;
        next[h] += ev.bytes.len;
        cr_assert_eq(repl_capture_reader_offset(r), next[h]);
    }
    cr_assert_eq(st, REPL_CAPTURE_END, "%s: %s in %s", what, repl_capture_reader_err(r)->text,
                 repl_capture_reader_err(r)->origin);
    cr_assert_eq(repl_capture_reader_torn(r), 0);
    if (!cut)
        cr_assert_eq(next[0], WORLD_BASE1 + world->history[0].len, "%s", what);
    cr_assert_eq(next[1], WORLD_BASE2 + world->history[1].len, "%s", what);
    repl_capture_reader_close(r);
}

static void note_finding(void *ctx, const struct repl_capture_finding *finding)
{
    cr_log_error("%s: %s: %s", (const char *)ctx, finding->name, finding->err->text);
}

void world_check(const struct world *world, struct sim_fs *sim, bool cut, const char *what)
{
    struct rd_fs fs = sim_fs_calls(sim);
    struct repl_capture_verify_result res;
    char text[120];
    snprintf(text, sizeof text, "%s", what);
    struct repl_capture_verify_opts opts = {.finding = note_finding, .ctx = text};
    read_all(world, sim, cut, what);
    cr_assert(repl_capture_verify(&fs, &opts, &res, NULL));
    cr_assert_eq(res.findings, 0, "%s", what);
    cr_assert_eq(res.torn, 0, "%s", what);
    if (!cut) {
        cr_assert_eq(res.bytes, world->history[0].len + world->history[1].len, "%s", what);
        cr_assert_eq(res.commands, world->n_commands[0] + world->n_commands[1], "%s", what);
        cr_assert_eq(res.chapters, 3, "%s", what);
        cr_assert_eq(res.snapshots, 2, "%s", what);
    }
}
