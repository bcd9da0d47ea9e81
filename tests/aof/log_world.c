#include "tests/aof/log_world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "aof/reader.h"
#include "base/buf.h"
#include "base/resp.h"

unsigned world_db(unsigned n)
{
    return n / 3 % 3;
}

/* ---- reading ---- */

struct loading {
    struct world_log *log;
    char *why;
    unsigned db;
    bool in_multi;
    unsigned n_at_multi;
    uint64_t multi_at;
};

static bool wrong(struct loading *l, const char *fmt, ...) RD_PRINTF(2, 3);
static bool wrong(struct loading *l, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(l->why, 200, fmt, args);
    va_end(args);
    return false;
}

static bool take_set(struct loading *l, const struct resp_command *cmd)
{
    char want[2][32];
    unsigned n = l->log->n + 1;
    snprintf(want[0], sizeof want[0], "c%u", n);
    snprintf(want[1], sizeof want[1], "%u", world_db(n));
    if (cmd->argc != 3 || !rd_slice_is(cmd->argv[1], want[0]) ||
        !rd_slice_is(cmd->argv[2], want[1]) || l->db != world_db(n))
        return wrong(l, "command %u at %llu is not %s in database %u, but in %u: %.*s", n,
                     (unsigned long long)cmd->offset, want[0], world_db(n), l->db,
                     (int)cmd->argv[cmd->argc > 1].len, (const char *)cmd->argv[cmd->argc > 1].ptr);
    l->log->n = n;
    return true;
}

static bool take_command(struct loading *l, const struct resp_command *cmd)
{
    if (rd_slice_is(cmd->argv[0], "SELECT")) {
        l->db = (unsigned)(cmd->argv[1].ptr[0] - '0');
        return true;
    }
    if (rd_slice_is(cmd->argv[0], "MULTI") || rd_slice_is(cmd->argv[0], "EXEC")) {
        bool begins = cmd->argv[0].len == 5;
        if (l->in_multi == begins)
            return wrong(l, "a transaction is wrong at %llu", (unsigned long long)cmd->offset);
        l->in_multi = begins;
        l->n_at_multi = l->log->n;
        l->multi_at = cmd->offset;
        return true;
    }
    return take_set(l, cmd);
}

static bool skip_annotation(struct rd_src *src)
{
    struct rd_slice s;
    if (rd_src_need(src, 1, &s) != RD_SRC_OK || s.ptr[0] != '#')
        return false;
    const uint8_t *end = memchr(s.ptr, '\n', s.len);
    if (end != NULL)
        rd_src_consume(src, (size_t)(end - s.ptr) + 1);
    return end != NULL;
}

static bool take_file(struct loading *l, struct rd_src *src, bool last)
{
    struct rd_resp_reader *reader;
    struct resp_command cmd;
    enum resp_status status;
    bool ok = rd_resp_reader_new(&reader, src, NULL, NULL);
    l->db = 0;
    do {
        while (skip_annotation(src))
            ;
        struct rd_slice s;
        bool torn_line = rd_src_need(src, 1, &s) == RD_SRC_OK && s.ptr[0] == '#';
        l->log->end = rd_src_offset(src);
        status = torn_line ? RESP_FAIL : rd_resp_reader_next(reader, &cmd);
        if (status == RESP_COMMAND)
            ok = take_command(l, &cmd);
        if (status == RESP_FAIL)
            ok = last && (torn_line || rd_resp_reader_err(reader)->code == RD_ERR_TRUNCATED);
        if (status == RESP_FAIL && !ok)
            wrong(l, "%s: %s at %llu", l->log->last, rd_err_word(rd_resp_reader_err(reader)->code),
                  (unsigned long long)rd_resp_reader_err(reader)->offset);
    } while (ok && status == RESP_COMMAND);
    if (ok && l->in_multi) {
        ok = last || wrong(l, "%s ends in a transaction", l->log->last);
        l->log->n = l->n_at_multi;
        l->log->end = l->multi_at;
    }
    rd_resp_reader_free(reader);
    return ok;
}

static bool take_named(struct loading *l, const struct sim_fs *sim, const struct aof_file *file,
                       bool last)
{
    struct rd_slice bytes;
    struct rd_src *src;
    snprintf(l->log->last, SIM_NAME, "%s", file->name);
    l->log->n_files++;
    if (!sim_fs_get(sim, file->name, &bytes))
        return wrong(l, "%s is missing", file->name);
    l->log->size = bytes.len;
    l->log->end = 0;
    cr_assert(rd_src_open_memory(&src, bytes, NULL, NULL));
    bool ok = take_file(l, src, last);
    rd_src_close(src);
    return ok;
}

static bool take_files(struct loading *l, const struct sim_fs *sim, const struct aof_manifest *m)
{
    bool ok = true;
    const struct aof_file *base = aof_manifest_base(m);
    const struct aof_file *incr = aof_manifest_last_incr(m);
    if (base != NULL)
        ok = take_named(l, sim, base, incr == NULL);
    for (size_t i = 0; ok && i < aof_manifest_count(m); i++)
        if (aof_manifest_file(m, i)->type == AOF_INCR)
            ok = take_named(l, sim, aof_manifest_file(m, i), aof_manifest_file(m, i) == incr);
    return ok;
}

bool world_load(const struct sim_fs *sim, struct world_log *ret, char why[200])
{
    struct loading l = {.log = ret, .why = why};
    struct rd_slice text;
    struct rd_src *src;
    struct aof_manifest m;
    struct rd_err err = {0};
    *ret = (struct world_log){0};
    if (!sim_fs_get(sim, "appendonly.aof.manifest", &text))
        return true;
    ret->exists = true;
    cr_assert(rd_src_open_memory(&src, text, NULL, NULL));
    aof_manifest_init(&m);
    bool ok = aof_manifest_read(&m, src, NULL, NULL, &err);
    ok = ok ? take_files(&l, sim, &m) : wrong(&l, "the manifest: %s", err.text);
    aof_manifest_done(&m);
    rd_src_close(src);
    return ok;
}

/* ---- writing ---- */

bool world_open(struct world *world, const struct world_log *log, struct rd_err *err)
{
    struct aof_writer_opts opts = {.fsync = world->fsync, .timestamps = true};
    if (log != NULL && log->exists) {
        opts.cut = true;
        opts.cut_to = log->end;
    }
    world->fs = sim_fs_calls(world->sim);
    world->w = NULL;
    return aof_writer_open(&world->w, &world->fs, &opts, err);
}

static bool append(struct world *world, unsigned n)
{
    char key[16], value[16];
    snprintf(key, sizeof key, "c%u", n);
    snprintf(value, sizeof value, "%u", world_db(n));
    struct rd_slice argv[] = {rd_slice_str("SET"), rd_slice_str(key), rd_slice_str(value)};
    return aof_writer_append(world->w, world_db(n), argv, 3, world->now_ms, NULL);
}

bool world_command(struct world *world)
{
    if (!append(world, world->issued + 1))
        return false;
    world->reply_at[++world->issued] = aof_writer_appended(world->w);
    return true;
}

bool world_transaction(struct world *world, unsigned n_commands)
{
    unsigned first = world->issued + 1;
    bool ok = aof_writer_multi_begin(world->w, world_db(first), world->now_ms, NULL);
    for (unsigned i = 0; ok && i < n_commands; i++)
        ok = append(world, first + i);
    if (!ok || !aof_writer_multi_end(world->w, NULL)) {
        aof_writer_multi_drop(world->w);
        return false;
    }
    for (unsigned i = 0; i < n_commands; i++)
        world->reply_at[first + i] = aof_writer_appended(world->w);
    world->issued += n_commands;
    world->multi[world->n_multi].first = first;
    world->multi[world->n_multi++].last = world->issued;
    return true;
}

static void reply(struct world *world)
{
    while (world->promised < world->issued &&
           world->reply_at[world->promised + 1] <= aof_writer_durable(world->w))
        world->promised++;
}

bool world_turn(struct world *world, bool sync)
{
    world->now_ms += 400;
    bool ok = aof_writer_flush(world->w, NULL);
    if (ok && sync)
        ok = aof_writer_sync(world->w, NULL);
    reply(world);
    return ok;
}

bool world_write_base(struct world *world, const char *temp)
{
    struct rd_buf text = {0};
    bool ok = true;
    for (unsigned n = 1; ok && n <= world->issued; n++)
        ok = rd_buf_printf(&text, "*2\r\n$6\r\nSELECT\r\n$1\r\n%u\r\n", world_db(n)) &&
             rd_buf_printf(&text, "*3\r\n$3\r\nSET\r\n$%d\r\nc%u\r\n$1\r\n%u\r\n", n < 10 ? 2 : 3,
                           n, world_db(n));
    int fd = ok ? world->fs.open(world->fs.ctx, temp, RD_FS_CREATE) : -1;
    ok = fd >= 0;
    for (size_t at = 0; ok && at < text.len;) {
        ssize_t n = world->fs.write(world->fs.ctx, fd, text.ptr + at, text.len - at);
        ok = n > 0;
        at += ok ? (size_t)n : 0;
    }
    if (fd >= 0)
        world->fs.close(world->fs.ctx, fd);
    rd_buf_done(&text);
    return ok;
}

static const char temp_base[] = "temp-rewriteaof-bg-1.aof";

static void rewrite(struct world *world, unsigned turn)
{
    if (turn == 4 || turn == 8 || turn == 10) {
        world->child_ok =
            aof_writer_rewrite_begin(world->w, NULL) && world_write_base(world, temp_base);
        return;
    }
    if ((turn != 6 && turn != 9 && turn != 11) || !aof_writer_rewriting(world->w))
        return;
    if (turn == 9 || !world->child_ok)
        aof_writer_rewrite_abort(world->w, temp_base);
    else
        aof_writer_rewrite_commit(world->w, temp_base, false, NULL);
}

static bool goes_on(const struct world *world)
{
    return !world->sim->crashed && aof_writer_state(world->w) != AOF_WRITER_DEAD;
}

static bool sync_due(const struct world *world, unsigned turn)
{
    return world->fsync == AOF_FSYNC_ALWAYS ||
           (world->fsync == AOF_FSYNC_EVERYSEC &&
            (turn % 3 == 0 || aof_writer_state(world->w) == AOF_WRITER_SYNC_FAILED));
}

void world_run(struct world *world, bool *ret_closed)
{
    *ret_closed = false;
    if (!world_open(world, NULL, NULL))
        return;
    for (unsigned turn = 1; turn <= 12 && goes_on(world); turn++) {
        /* A server refuses clients while something is wrong. */
        if (aof_writer_state(world->w) == AOF_WRITER_OK) {
            for (unsigned i = 0; i <= turn % 3; i++)
                world_command(world);
            if (turn % 5 == 3)
                world_transaction(world, 4);
        }
        world_turn(world, sync_due(world, turn));
        rewrite(world, turn);
        reply(world);
    }
    if (!goes_on(world)) {
        aof_writer_abort(world->w);
        return;
    }
    /* What failed once heals. */
    for (unsigned i = 0; i < 3; i++)
        world_turn(world, true);
    *ret_closed = aof_writer_close(world->w, NULL);
}

/* ---- asserting ---- */

static bool open_named(void *ctx, const struct aof_file *file, struct rd_src **ret,
                       struct rd_err *err)
{
    struct rd_slice bytes;
    if (!sim_fs_get(ctx, file->name, &bytes))
        return rd_err_sys(err, ENOENT, "%s", file->name);
    return rd_src_open_memory(ret, bytes, &RD_SRC_OPTS(.origin = file->name), err);
}

/* The library's own reader finds the same. */
static void check_reader(struct sim_fs *sim, const struct world_log *log, const char *what)
{
    struct rd_slice text;
    struct rd_src *src;
    struct aof_manifest m;
    struct aof_reader *r;
    struct aof_event ev;
    enum aof_status status;
    unsigned n = 0;
    if (!log->exists)
        return;
    cr_assert(sim_fs_get(sim, "appendonly.aof.manifest", &text));
    cr_assert(rd_src_open_memory(&src, text, NULL, NULL));
    aof_manifest_init(&m);
    cr_assert(aof_manifest_read(&m, src, NULL, NULL, NULL));
    rd_src_close(src);
    struct aof_reader_opts opts = AOF_READER_OPTS(.open = open_named, .ctx = sim);
    cr_assert(aof_reader_new(&r, &m, &opts, NULL));
    while ((status = aof_reader_next(r, &ev)) == AOF_EVENT)
        if (ev.kind == AOF_COMMAND && rd_slice_is(ev.entry.command.argv[0], "SET"))
            n++;
    if (status == AOF_END) {
        cr_assert_eq(log->end, log->size, "%s", what);
        cr_assert_eq(n, log->n, "%s", what);
    } else {
        cr_assert_eq(aof_reader_err(r)->code, RD_ERR_TRUNCATED, "%s", what);
        cr_assert_str_eq(aof_reader_err(r)->origin, log->last, "%s", what);
        cr_assert_eq(aof_reader_safe(r), log->end, "%s", what);
    }
    aof_reader_free(r);
    aof_manifest_done(&m);
}

static unsigned check_log(const struct world *world, struct sim_fs *sim, struct world_log *log,
                          const char *what)
{
    char why[200];
    cr_assert(world_load(sim, log, why), "%s: %s", what, why);
    check_reader(sim, log, what);
    cr_assert_geq(log->n, world->promised, "%s: %u of %u promised commands are there", what, log->n,
                  world->promised);
    cr_assert_leq(log->n, world->issued, "%s", what);
    for (unsigned i = 0; i < world->n_multi; i++)
        cr_assert(log->n < world->multi[i].first || log->n >= world->multi[i].last,
                  "%s: %u commands: a part of a transaction", what, log->n);
    return log->n;
}

void world_check(const struct world *world, struct sim_fs *sim, const char *what)
{
    struct world_log log;
    check_log(world, sim, &log, what);
}

void world_check_continues(const struct world *world, struct sim_fs *sim, const char *what)
{
    struct world_log log;
    struct rd_err err = {0};
    struct world next = {.sim = sim, .fsync = AOF_FSYNC_ALWAYS, .now_ms = world->now_ms};
    next.issued = next.promised = check_log(world, sim, &log, what);
    cr_assert(world_open(&next, &log, &err), "%s: opening: %s", what, err.text);
    cr_assert(world_command(&next) && world_command(&next));
    cr_assert(world_turn(&next, true), "%s", what);
    cr_assert_eq(next.promised, next.issued, "%s", what);
    aof_writer_abort(next.w);
    struct sim_fs *left = sim_fs_after_crash(sim, SIM_NONE, 0);
    cr_assert_eq(check_log(&next, left, &log, what), next.issued, "%s", what);
    sim_fs_free(left);
}
