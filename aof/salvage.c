/* salvage.c - salvages a log file by file: the snapshot at the start, if any, and the commands. */
#include "aof/salvage.h"

#include <errno.h>

#include "aof/recover/resync.h"
#include "aof/recover/walk.h"
#include "base/mem.h"
#include "base/sized.h"

/* -- the first bytes of a file as a source -- */

struct part {
    struct rd_src *inner;
    uint64_t at, size;
};

static enum rd_src_status part_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    struct part *p = impl;
    struct rd_slice s;
    if (p->at >= p->size)
        return RD_SRC_END;
    if (!rd_src_seek(p->inner, p->at, err))
        return RD_SRC_FAIL;
    enum rd_src_status status = rd_src_need(p->inner, 1, &s);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(p->inner));
    if (status != RD_SRC_OK)
        return status;
    size_t len = s.len < cap ? s.len : cap;
    if (len > p->size - p->at)
        len = (size_t)(p->size - p->at);
    memcpy(buf, s.ptr, len);
    p->at += len;
    *ret_len = len;
    return RD_SRC_OK;
}

static bool part_seek(void *impl, uint64_t offset, struct rd_err *err)
{
    struct part *p = impl;
    (void)err;
    p->at = offset;
    return true;
}

static const struct rd_src_ops part_ops = {part_read, part_seek, rd_free};

static bool part_open(struct rd_src *inner, uint64_t size, struct rd_src **ret, struct rd_err *err)
{
    struct part *p = rd_alloc(sizeof *p);
    if (p == NULL)
        return rd_err_nomem(err, sizeof *p);
    *p = (struct part){.inner = inner, .size = size};
    const struct rd_src_opts opts =
        RD_SRC_OPTS(.origin = rd_src_origin(inner), .total = size, .sized = true);
    return rd_src_new(ret, &part_ops, p, &opts, err);
}

/* -- the snapshot -- */

/* The head of a snapshot that was lost is a part of the first range. */
static uint64_t loss_from(struct walk *w, const struct rdb_loss *loss)
{
    const uint8_t *p;
    size_t len = aof_recover_look(&w->probe, 0, RDB_MAGIC_LEN, &p);
    bool zeros = len >= RDB_MAGIC_LEN;
    for (size_t i = 0; i < RDB_MAGIC_LEN && zeros; i++)
        zeros = p[i] == 0;
    return zeros && loss->from == RDB_MAGIC_LEN ? 0 : loss->from;
}

static void on_snapshot_loss(void *ctx, const struct rdb_loss *loss)
{
    struct walk *w = ctx;
    const struct aof_loss l = {
        .kind = AOF_LOSS_SNAPSHOT,
        .file = w->name,
        .from = loss_from(w, loss),
        .to = loss->to,
        .at = loss->at,
        .why = loss->why,
        .resync = loss->resync,
        .before = AOF_NO_TIME,
        .after = AOF_NO_TIME,
        .db = loss->db,
        .db_after = loss->db,
        .snapshot = loss,
    };
    w->res->losses++;
    w->res->bytes_lost += loss->from - l.from;
    if (w->opts->loss != NULL)
        w->opts->loss(w->opts->ctx, &l);
}

static bool salvage_part(struct walk *w, struct rd_src *src, struct rd_src *copy)
{
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.loss = on_snapshot_loss, .ctx = w,
                                                    .seed = {w->opts->seed[0], w->opts->seed[1]});
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    if (!rdb_salvage(src, copy, w->out, &opts, &res, w->err))
        return false;
    w->res->snapshots++;
    w->res->keys += res.keys;
    w->res->keys_doubted += res.keys_doubted;
    w->res->keys_left_out += res.keys_left_out;
    w->res->bytes_lost += res.bytes_lost;
    return true;
}

/* The snapshot is the first `size` bytes and is damaged. */
static bool salvage_snapshot(struct walk *w, uint64_t size)
{
    struct rd_src *src = NULL, *copy = NULL;
    bool ok = part_open(w->in.src, size, &src, w->err) && part_open(w->copy, size, &copy, w->err) &&
              salvage_part(w, src, copy);
    rd_src_close(copy);
    rd_src_close(src);
    w->in.win = w->probe.win = rd_slice(NULL, 0);
    return ok;
}

/* Salvages the snapshot; *ret_end: its end, where commands may follow. */
static bool take_snapshot(struct walk *w, uint64_t *ret_end)
{
    const struct rdb_check_opts opts =
        RDB_CHECK_OPTS(.single_thread = true, .seed = {w->opts->seed[0], w->opts->seed[1]});
    struct rdb_check_result res = RDB_CHECK_RESULT();
    if (!rd_src_seek(w->in.src, 0, w->err) || !rdb_check(w->in.src, &opts, &res, w->err))
        return false;
    w->in.win = rd_slice(NULL, 0);
    *ret_end = res.end;
    if (res.damaged && !aof_recover_find_tail(&w->in, &w->probe, 0, ret_end))
        return false;
    if (res.damaged || res.errors > 0)
        return salvage_snapshot(w, *ret_end);
    w->res->keys_sound += res.keys;
    return aof_recover_copy(w, 0, res.end);
}

/* Whether it begins with the magic, or with the magic after one or two byte errors. */
static bool is_snapshot(struct aof_recover_in *in, bool expected)
{
    static const char *const magics[] = {"REDIS00", "VALKEY0"};
    const uint8_t *p;
    size_t len = aof_recover_look(in, 0, 9, &p);
    if (len == 0 || (len < 9 && !expected))
        return false;
    if (expected)
        return true;
    for (size_t m = 0; m < 2; m++) {
        unsigned same = 0;
        for (size_t i = 0; i < 7; i++)
            same += p[i] == (uint8_t)magics[m][i];
        if (same >= 5)
            return true;
    }
    return false;
}

/* -- one file -- */

static bool salvage_file(struct walk *w, bool snapshot)
{
    uint64_t at = 0;
    if (is_snapshot(&w->in, snapshot) && !take_snapshot(w, &at))
        return false;
    return !w->in.failed && aof_recover_walk(w, at);
}

static bool salvage_opened(struct rd_src *src, struct rd_src *copy, struct rd_sink *out,
                           const char *name, bool snapshot, const struct aof_salvage_opts *opts,
                           struct aof_salvage_result *ret, struct rd_err *err)
{
    struct rd_err own = {0};
    struct walk *w = rd_calloc(1, sizeof *w);
    if (w == NULL)
        return rd_err_nomem(err, sizeof *w);
    if (!rd_src_can_seek(src) || rd_src_size(src) == RD_NO_OFFSET) {
        rd_free(w);
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "cannot salvage input that cannot seek");
    }
    w->opts = opts;
    w->res = ret;
    w->name = name;
    w->copy = copy;
    w->out = out;
    w->err = err != NULL ? err : &own;
    w->time_s = AOF_NO_TIME;
    aof_recover_in_init(&w->in, src, w->err);
    aof_recover_in_init(&w->probe, copy, w->err);
    bool ok = salvage_file(w, snapshot);
    rd_free(w);
    ret->files += ok;
    return ok;
}

bool aof_salvage_file(struct rd_src *src, struct rd_src *copy, struct rd_sink *out,
                      const char *name, bool snapshot, const struct aof_salvage_opts *opts,
                      struct aof_salvage_result *ret, struct rd_err *err)
{
    struct aof_salvage_opts own;
    struct aof_salvage_result res;
    if (!rd_sized_copy(&own, sizeof own, opts, err) || !rd_sized_copy(&res, sizeof res, ret, err))
        return false;
    bool ok = salvage_opened(src, copy, out, name, snapshot, &own, &res, err);
    rd_sized_return(ret, &res, sizeof res);
    return ok;
}

/* -- the whole log -- */

static bool open_twice(const struct aof_salvage_opts *opts, const struct aof_file *file,
                       struct rd_src **ret_src, struct rd_src **ret_copy, struct rd_err *err)
{
    if (!opts->open(opts->ctx, file, ret_src, err))
        return false;
    if (!opts->open(opts->ctx, file, ret_copy, err)) {
        rd_src_close(*ret_src);
        return false;
    }
    const struct rd_src *plain = *ret_src;
    if (rd_src_unwrap(ret_src, err) && *ret_src == plain)
        return true;
    rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
               "a base in a compressed envelope cannot be salvaged");
    rd_err_origin(err, file->name);
    rd_src_close(*ret_src);
    rd_src_close(*ret_copy);
    return false;
}

/* A file from which nothing can be kept. */
static void lost_file(const struct aof_file *file, const char *why,
                      const struct aof_salvage_opts *opts, struct aof_salvage_result *ret)
{
    const struct aof_loss loss = {
        .kind = AOF_LOSS_FILE,
        .file = file->name,
        .at = RD_NO_OFFSET,
        .why = why,
        .before = AOF_NO_TIME,
        .after = AOF_NO_TIME,
    };
    ret->losses++;
    if (opts->loss != NULL)
        opts->loss(opts->ctx, &loss);
}

static bool write_file(const struct aof_file *file, struct rd_src *src, struct rd_src *copy,
                       const struct aof_salvage_opts *opts, struct aof_salvage_result *ret,
                       struct rd_err *err)
{
    struct rd_sink *sink = NULL;
    bool ok =
        (opts->create == NULL || opts->create(opts->ctx, file, &sink, err)) &&
        salvage_opened(src, copy, sink, file->name, aof_file_holds_snapshot(file), opts, ret, err);
    if (ok && sink != NULL)
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return ok;
}

static bool one_file(const struct aof_file *file, const struct aof_salvage_opts *opts,
                     struct aof_manifest *out, struct aof_salvage_result *ret, struct rd_err *err)
{
    struct rd_src *src, *copy;
    struct rd_err own = {0};
    if (!open_twice(opts, file, &src, &copy, &own)) {
        if (own.code != RD_ERR_IO || own.sys != ENOENT) {
            rd_err_adopt(err, &own);
            return false;
        }
        ret->files_missing++;
        lost_file(file, "the file is missing", opts, ret);
        return true;
    }
    bool empty = rd_src_size(src) == 0 && aof_file_holds_snapshot(file);
    bool ok = empty || write_file(file, src, copy, opts, ret, err);
    rd_src_close(copy);
    rd_src_close(src);
    if (empty) {
        lost_file(file, "the file is empty: the snapshot is lost", opts, ret);
        return true;
    }
    struct aof_file kept = *file;
    kept.line = 0;
    kept.end_offset = -1; /* the recorded offset no longer applies */
    if (ok && aof_manifest_add(out, &kept) == NULL)
        ok = rd_err_nomem(err, sizeof kept);
    return ok;
}

bool aof_salvage(const struct aof_manifest *in, const struct aof_salvage_opts *opts,
                 struct aof_manifest *out, struct aof_salvage_result *ret, struct rd_err *err)
{
    struct aof_salvage_opts own;
    struct aof_salvage_result res = AOF_SALVAGE_RESULT();
    if (!rd_sized_is_set(ret, err))
        return false;
    bool ok = rd_sized_copy(&own, sizeof own, opts, err);
    for (size_t i = 0; i < aof_manifest_count(in) && ok; i++)
        if (aof_manifest_file(in, i)->type != AOF_HISTORY)
            ok = one_file(aof_manifest_file(in, i), &own, out, &res, err);
    rd_sized_return(ret, &res, sizeof res);
    return ok;
}
