#include "base/sized.h"
#include "base/src_impl.h"
#include "rdb/read/reader_impl.h"
#include "rdb/version.h"

static bool piece_size(const struct rd_src *src, size_t *ret)
{
    size_t window = src->state->buf == NULL ? RD_SRC_WINDOW : src->state->cap;
    if (window < WINDOW_MIN)
        return false;
    *ret = window / 4 < PIECE_MAX ? window / 4 : PIECE_MAX;
    return true;
}

static int newest_version(const struct rdb_reader *r)
{
    return r->dialect == RDB_VALKEY ? RDB_VERSION_VALKEY_MAX : RDB_VERSION_REDIS_MAX;
}

/* A version before the first one of a dialect exists nowhere. Later ones may come. */
static int unknown_version(struct rdb_reader *r)
{
    bool valkey = r->dialect == RDB_VALKEY;
    int newest = newest_version(r);
    const struct rd_err_reason reason = {RDB_REASON_VERSION,
                                         {(uint64_t)r->version, (uint64_t)newest}};
    const struct rdb_version_text text = rdb_version_text(r->dialect, r->version);
    if (r->version > newest)
        rd_err_set_reason(&r->err, RD_ERR_UNSUPPORTED, valkey ? 6 : 5, reason,
                          "%s is newer than this program supports (%d)", text.s, newest);
    else
        rd_err_set_reason(&r->err, RD_ERR_UNSUPPORTED, valkey ? 6 : 5, reason, "%s does not exist",
                          text.s);
    rd_err_origin(&r->err, rd_src_origin(r->src));
    return RDB_FAIL;
}

static int header_step(struct rdb_reader *r, struct rdb_event *ev)
{
    struct rd_slice s;
    int st = rdb_read_need(r, RDB_MAGIC_LEN, &s);
    if (st != RDB_EVENT) {
        if (st == RDB_FAIL && r->err.code == RD_ERR_TRUNCATED)
            r->err.offset = rd_src_avail(r->src);
        return st;
    }
    static const char *const magic[] = {"REDIS", "VALKEY"};
    bool valkey = memcmp(s.ptr, magic[RDB_VALKEY], 6) == 0;
    if (memcmp(s.ptr, "VCS", 3) == 0 && s.ptr[3] < ' ') {
        rd_err_set(&r->err, RD_ERR_UNSUPPORTED, 0, "a snapshot in a compressed envelope");
        return RDB_FAIL;
    }
    if (!valkey && memcmp(s.ptr, magic[RDB_REDIS], 5) != 0)
        return rdb_read_corrupt(r, 0, "not an RDB file: it begins with neither REDIS nor VALKEY");
    r->dialect = valkey ? RDB_VALKEY : RDB_REDIS;
    r->version = 0;
    for (unsigned i = valkey ? 6 : 5; i < RDB_MAGIC_LEN; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return rdb_read_corrupt(r, i, "RDB version that is not a number");
        r->version = r->version * 10 + (s.ptr[i] - '0');
    }
    bool newer = r->version > newest_version(r);
    if (!rdb_version_known(r->dialect, r->version) && !(newer && r->opts.newer))
        return unknown_version(r);
    *ev = (struct rdb_event){.kind = RDB_HEADER, .inner = RD_NO_OFFSET};
    ev->raw = rd_slice(s.ptr, RDB_MAGIC_LEN);
    ev->header.dialect = r->dialect;
    ev->header.version = r->version;
    rdb_read_consume(r, RDB_MAGIC_LEN);
    if (r->version < RDB_VERSION_CHECKSUM || r->opts.no_sum) {
        r->summing = false;
        rd_src_sum_stop(r->src);
    }
    r->step = rdb_record_step;
    return RDB_EVENT;
}

static struct rdb_reader *new_reader(struct rd_src *src, const struct rdb_reader_opts *opts,
                                     struct rd_err *err)
{
    size_t piece;
    if (!piece_size(src, &piece)) {
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the source's window is too small");
        return NULL;
    }
    struct rdb_reader *r = rd_calloc(1, sizeof *r);
    if (r == NULL) {
        rd_err_nomem(err, sizeof *r);
        return NULL;
    }
    if (!rd_sized_copy(&r->opts, sizeof r->opts, opts, err)) {
        rd_free(r);
        return NULL;
    }
    r->src = src;
    if (r->opts.max_name == 0)
        r->opts.max_name = NAME_MAX_DEFAULT;
    if (r->opts.max_templates == 0)
        r->opts.max_templates = TEMPLATES_MAX_DEFAULT;
    r->key = rdb_hash_key(r->opts.seed);
    rdb_read_drop_attributes(r);
    r->piece = piece;
    r->out_cap = RDB_LZF_REACH + piece + 2 * RDB_LZF_TOKEN_OUT;
    r->out = rd_alloc(r->out_cap + RDB_LZF_SLACK);
    if (r->out == NULL) {
        rd_free(r);
        rd_err_nomem(err, piece);
        return NULL;
    }
    r->shared.all = rdb_templates_share(r->opts.templates);
    r->shared.n_kept = rdb_templates_count(r->shared.all);
    return r;
}

bool rdb_reader_new(struct rdb_reader **ret, struct rd_src *src, const struct rdb_reader_opts *opts,
                    struct rd_err *err)
{
    struct rdb_reader *r = new_reader(src, opts, err);
    if (r == NULL)
        return false;
    if (r->opts.batch && r->opts.detail == RDB_DETAIL_CHECK && !rdb_batch_new(r, err)) {
        rdb_reader_free(r);
        return false;
    }
    r->step = header_step;
    r->summing = !r->opts.no_sum;
    if (r->summing)
        rd_src_sum_begin(src, 0);
    *ret = r;
    return true;
}

bool rdb_reader_new_value(struct rdb_reader **ret, struct rd_src *src, enum rdb_dialect dialect,
                          int version, const struct rdb_reader_opts *opts, struct rd_err *err)
{
    struct rdb_reader *r = new_reader(src, opts, err);
    if (r == NULL)
        return false;
    r->dialect = dialect;
    r->version = version;
    r->single = true;
    r->step = rdb_payload_step;
    *ret = r;
    return true;
}

bool rdb_reader_new_records(struct rdb_reader **ret, struct rd_src *src, enum rdb_dialect dialect,
                            int version, const struct rdb_reader_opts *opts, struct rd_err *err)
{
    struct rdb_reader *r = new_reader(src, opts, err);
    if (r == NULL)
        return false;
    r->dialect = dialect;
    r->version = version;
    r->step = rdb_record_step;
    *ret = r;
    return true;
}

void rdb_reader_restart(struct rdb_reader *r, uint64_t db)
{
    rd_err_reset(&r->err);
    r->step = rdb_record_step;
    r->db = db;
    r->type = NULL;
    r->detail = r->opts.detail;
    r->tee = NULL;
    r->depth = 0;
    r->pass_left = 0;
    r->pieces.active = false;
    r->walk.active = false;
    r->summing = false;
    r->note_set = false;
    r->ranges_left = r->meta_left = 0;
    r->has_meta = false;
    rdb_read_drop_attributes(r);
    rd_buf_reset(&r->big);
    rd_src_sum_stop(r->src);
}

void rdb_reader_set_detail(struct rdb_reader *r, enum rdb_detail detail)
{
    r->opts.detail = detail;
}

void rdb_reader_free(struct rdb_reader *r)
{
    if (r == NULL)
        return;
    rdb_batch_free(r->batch, r->opts.worker);
    rd_buf_done(&r->notes);
    rd_buf_done(&r->big);
    rd_buf_done(&r->text);
    rd_buf_done(&r->text2);
    rd_buf_done(&r->meta);
    rd_buf_done(&r->node.shared);
    rdb_unique_done(&r->unique);
    rdb_bitmap_done(r);
    rdb_templates_free(r->shared.all);
    rdb_templates_free(r->shared.own);
    rd_free(r->out);
    rd_free(r);
}

/* The walk failed: a deferred check is before that position, so its failure comes first. */
static void fail_first(struct rdb_reader *r)
{
    struct rd_err err = r->err;
    rd_err_reset(&r->err);
    if (rdb_batch_run(r) != RDB_FAIL)
        r->err = err;
}

/* Between two calls the caller may have pushed more into the source, which moves its window:
 * borrowed bytes keep their distance to the next byte. */
static void follow_window(struct rdb_reader *r)
{
    struct feed *f = &r->feed;
    if (RD_LIKELY(r->src->cur == r->seen_cur) || f->lzf || f->p == NULL ||
        !(r->walk.active || r->pieces.active))
        return;
    f->end = r->src->cur + (f->end - r->seen_cur);
    f->p = r->src->cur + (f->p - r->seen_cur);
}

static enum rdb_status next_event(struct rdb_reader *r, struct rdb_event *ret)
{
    for (;;) {
        if (RD_UNLIKELY(r->notes.len > 0) && rdb_batch_next_note(r, ret))
            return RDB_EVENT;
        if (RD_UNLIKELY(r->note_set)) {
            *ret = r->note;
            r->note_set = false;
            return RDB_EVENT;
        }
        int st = r->step(r, ret);
        if (RD_UNLIKELY(st == RDB_FAIL) && r->batch != NULL)
            fail_first(r);
        if (st != STEP_ON)
            return (enum rdb_status)st;
    }
}

enum { META_MAX = 64 << 20 };

static bool hold_meta(struct rdb_reader *r, struct rd_slice bytes)
{
    if (r->meta.len + bytes.len > META_MAX)
        return rd_err_set(&r->err, RD_ERR_LIMIT, r->meta_at, "metadata of a key over 64 MiB");
    return rd_buf_add(&r->meta, bytes.ptr, bytes.len) || rd_err_nomem(&r->err, bytes.len);
}

/* Whether the event was taken. A failure is in r->err. */
static bool take_meta(struct rdb_reader *r, struct rdb_event *ev)
{
    if (ev->kind == RDB_KEY_META_BEGIN) {
        const uint8_t head[] = {RDB_OP_KEY_META, (uint8_t)ev->key_meta.n_classes};
        rd_buf_reset(&r->meta);
        r->has_meta = true;
        r->meta_at = ev->offset;
        return hold_meta(r, rd_slice(head, sizeof head)) || r->err.code != RD_ERR_OK;
    }
    if (!r->has_meta || ev->kind == RDB_NOTE)
        return false;
    if (ev->kind != RDB_KEY) {
        (void)hold_meta(r, ev->raw);
        return true;
    }
    ev->key.meta = rd_buf_slice(&r->meta);
    ev->raw = rd_slice(NULL, 0);
    ev->key.record = ev->offset = r->meta_at;
    r->has_meta = false;
    return false;
}

enum rdb_status rdb_reader_next(struct rdb_reader *r, struct rdb_event *ret)
{
    if (r->err.code != RD_ERR_OK)
        return RDB_FAIL;
    follow_window(r);
    enum rdb_status st = next_event(r, ret);
    while (RD_UNLIKELY(r->opts.attach_meta) && st == RDB_EVENT && take_meta(r, ret))
        st = r->err.code == RD_ERR_OK ? next_event(r, ret) : RDB_FAIL;
    r->seen_cur = r->src->cur;
    return st;
}

/* Skipping and copying both run the value's shape without returning events. */
static enum rdb_status run_quietly(struct rdb_reader *r)
{
    if (r->err.code != RD_ERR_OK)
        return RDB_FAIL;
    if (r->type == NULL || r->single || r->batch != NULL) {
        rdb_read_fail(r, RD_ERR_USAGE, rdb_read_offset(r), "no value at this position");
        return RDB_FAIL;
    }
    if (rdb_value_pass(r)) {
        r->tee = NULL;
        return r->err.code == RD_ERR_OK ? RDB_EVENT : RDB_FAIL;
    }
    r->detail = RDB_DETAIL_FRAMES;
    follow_window(r);
    for (;;) {
        struct rdb_event ev;
        int st = r->step(r, &ev);
        if (r->err.code != RD_ERR_OK)
            return RDB_FAIL;
        if (st == STEP_ON || (st == RDB_EVENT && ev.kind != RDB_VALUE_END))
            continue;
        if (st == RDB_EVENT)
            r->tee = NULL;
        return (enum rdb_status)st;
    }
}

enum rdb_status rdb_reader_skip_value(struct rdb_reader *r)
{
    return run_quietly(r);
}

enum rdb_status rdb_reader_copy_value(struct rdb_reader *r, struct rd_sink *to)
{
    r->tee = to;
    return run_quietly(r);
}

const struct rd_err *rdb_reader_err(const struct rdb_reader *r)
{
    return &r->err;
}

uint64_t rdb_reader_record(const struct rdb_reader *r)
{
    return r->record;
}

bool rdb_reader_where(const struct rdb_reader *r, struct rd_slice *ret_key,
                      const struct rdb_type **ret_type, uint64_t *ret_db)
{
    if (r->type == NULL || r->single)
        return false;
    *ret_key = rd_slice(r->shown, r->shown_len);
    *ret_type = r->type;
    *ret_db = r->db;
    return true;
}

uint64_t rdb_reader_enterprise(const struct rdb_reader *r, uint64_t *ret_first)
{
    *ret_first = r->enterprise_at;
    return r->n_enterprise;
}

struct rdb_templates *rdb_reader_templates(const struct rdb_reader *r)
{
    return r->shared.all;
}

int rdb_reader_version(const struct rdb_reader *r)
{
    return r->version;
}

enum rdb_dialect rdb_reader_dialect(const struct rdb_reader *r)
{
    return r->dialect;
}
