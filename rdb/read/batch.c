/* batch.c - checks that are put off until the window is full.
 *
 * A check walks the framing first and keeps the compressed and packed strings of one window as
 * jobs. They do not depend on each other, so that two threads share them, and LZF strings are
 * verified four at a time. The window does not move before they are done; events may run ahead of
 * them by that much.
 */
#include "rdb/read/priv.h"

#include "base/team.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { JOBS_MAX = 1024, VERIFY_UNIT = 32, PACK_UNIT = 4, WORKERS = 2 };

/* The key that a job belongs to. */
struct owner {
    const struct rdb_type *type;
    uint64_t record;
    uint64_t db;
    uint64_t name_len;
    size_t shown_len;
    uint8_t shown[KEY_SHOWN];
};

struct job {
    const uint8_t *stored;
    uint64_t off; /* of the string */
    uint32_t stored_len;
    uint32_t total;
    uint32_t owner;
    uint8_t pack; /* PACK_ARG() */
    bool lzf;
    uint64_t n_elems; /* of its value before the string, for the error */
};

struct noted {
    uint64_t off;
    struct rdb_event ev;
    size_t shown_len;
    uint8_t shown[KEY_SHOWN];
};

/* What one thread works with. */
struct worker {
    struct rdb_reader *walker; /* walks packed strings; never reads from its source */
    struct rd_buf notes;       /* struct noted */
    struct rd_err err;         /* of the job that failed at the lowest offset */
    uint64_t err_off;
    uint32_t err_owner;
};

/* The jobs of a window. */
struct jobs {
    struct job packs[JOBS_MAX];
    struct job verifies[JOBS_MAX];
    struct rdb_lzf_job lzf[JOBS_MAX];
    struct owner owners[2 * JOBS_MAX]; /* every job may have its own */
    size_t n_packs, n_verifies, n_owners;
    uint64_t owner_record; /* of the last owner; records begin at 9 or later, so 0 is none */
    atomic_size_t next;    /* unit of work */
};

struct rdb_batch {
    struct jobs halves[2];
    struct jobs *now;  /* filled with the jobs of the window that is walked */
    struct jobs *last; /* under way: those of the window before; or NULL */
    struct worker workers[WORKERS];
};

bool rdb_batch_new(struct rdb_reader *r, struct rd_err *err)
{
    struct rdb_reader_opts opts = {
        .detail = RDB_DETAIL_CHECK, .notes = r->opts.notes, .max_name = r->opts.max_name};
    struct rdb_batch *b = rd_calloc(1, sizeof *b);
    if (b == NULL)
        return rd_err_nomem(err, sizeof *b);
    r->batch = b;
    b->now = &b->halves[0];
    if (r->opts.team != NULL && !rd_src_keep_last(r->src))
        r->opts.team = NULL;
    for (int i = 0; i < WORKERS; i++)
        if (!rdb_reader_new_records(&b->workers[i].walker, r->src, RDB_REDIS, RDB_VERSION_REDIS_MAX,
                                    &opts, err) ||
            !rdb_unique_begin(&b->workers[i].walker->unique, 0))
            return rd_err_nomem(err, sizeof *b);
    return true;
}

void rdb_batch_free(struct rdb_batch *b, struct rd_team *team)
{
    if (b != NULL && b->last != NULL)
        rd_team_join(team);
    for (int i = 0; b != NULL && i < WORKERS; i++) {
        rdb_reader_free(b->workers[i].walker);
        rd_buf_done(&b->workers[i].notes);
    }
    rd_free(b);
}

static uint32_t owner_of(struct rdb_reader *r)
{
    struct jobs *b = r->batch->now;
    if (b->n_owners > 0 && b->owner_record == r->record)
        return (uint32_t)b->n_owners - 1;
    struct owner *o = &b->owners[b->n_owners++];
    o->type = r->type;
    o->record = b->owner_record = r->record;
    o->db = r->db;
    o->name_len = r->name_len;
    o->shown_len = r->shown_len;
    rd_copy_short(o->shown, r->shown, r->shown_len);
    return (uint32_t)b->n_owners - 1;
}

int rdb_batch_pack(struct rdb_reader *r, const struct rdb_str_head *head, const uint8_t *stored,
                   uint64_t off, uint8_t pack)
{
    struct jobs *b = r->batch->now;
    b->packs[b->n_packs++] = (struct job){.stored = stored,
                                          .off = off,
                                          .stored_len = (uint32_t)head->stored,
                                          .total = (uint32_t)head->total,
                                          .owner = owner_of(r),
                                          .pack = pack,
                                          .lzf = head->kind == RDB_STR_LZF};
    rdb_read_consume(r, head->size + (size_t)head->stored);
    return b->n_packs == JOBS_MAX ? rdb_batch_turn(r) : STEP_ON;
}

int rdb_batch_verify(struct rdb_reader *r, const struct rdb_str_head *head, const uint8_t *stored,
                     uint64_t off)
{
    struct jobs *b = r->batch->now;
    b->lzf[b->n_verifies] =
        (struct rdb_lzf_job){.in = stored, .len = (size_t)head->stored, .out_len = head->total};
    b->verifies[b->n_verifies++] =
        (struct job){.off = off, .owner = owner_of(r), .n_elems = r->n_elems};
    rdb_read_consume(r, head->size + (size_t)head->stored);
    return b->n_verifies == JOBS_MAX ? rdb_batch_turn(r) : STEP_ON;
}

/* -- the work -- */

static void failed(struct worker *w, uint64_t off, uint32_t owner, const struct rd_err *err)
{
    if (w->err.code != RD_ERR_OK && w->err_off <= off)
        return;
    w->err = *err;
    w->err_off = off;
    w->err_owner = owner;
}

static void adopt_owner(struct rdb_reader *r, const struct owner *o)
{
    r->type = o->type;
    r->record = o->record;
    r->db = o->db;
    r->name_len = o->name_len;
    r->shown_len = o->shown_len;
    rd_copy_short(r->shown, o->shown, o->shown_len);
}

static int begin_walk(struct rdb_reader *v, const struct job *job)
{
    struct walk *w = &v->walk;
    v->feed = (struct feed){.off = job->off, .total = job->total, .lzf = true, .wr = v->out};
    v->feed.p = job->stored;
    if (job->lzf) {
        if (!rdb_lzf_decode(job->stored, job->stored_len, v->out, job->total))
            return rdb_read_corrupt(v, job->off, "compressed string that does not decode");
        v->feed.p = v->out;
    }
    v->feed.end = v->feed.p + job->total;
    w->active = true;
    w->whole = true;
    w->started = w->long_open = false;
    w->part = 0;
    w->layout = job->pack & 15;
    rdb_pack_init(&w->pack, (enum rdb_codec)(job->pack >> 4), job->total);
    return STEP_ON;
}

static bool keep_note(struct worker *w, const struct job *job, const struct owner *owner)
{
    struct noted noted = {.off = job->off, .ev = w->walker->note, .shown_len = owner->shown_len};
    rd_copy_short(noted.shown, owner->shown, owner->shown_len);
    w->walker->note_set = false;
    return rd_buf_add(&w->notes, &noted, sizeof noted);
}

static void run_pack(struct jobs *b, struct worker *w, const struct job *job)
{
    struct rdb_reader *v = w->walker;
    struct rdb_event ev;
    const struct owner *owner = &b->owners[job->owner];
    adopt_owner(v, owner);
    if (v->err.code != RD_ERR_OK)
        rd_err_reset(&v->err);
    v->note_set = false;
    v->n_elems = 0;
    v->detail = RDB_DETAIL_CHECK;
    int st = STEP_ON;
    st = begin_walk(v, job);
    while (st == STEP_ON) {
        st = rdb_packed_run(v, &ev);
        if (!v->note_set)
            continue;
        if (!keep_note(w, job, owner))
            st = rdb_read_nomem(v, sizeof ev);
    }
    if (st == RDB_FAIL)
        failed(w, job->off, job->owner, &v->err);
}

static void run_verifies(struct jobs *b, struct worker *w, size_t from, size_t to)
{
    rdb_lzf_verify_many(b->lzf + from, to - from);
    for (size_t i = from; i < to; i++) {
        struct rdb_reader *v = w->walker;
        if (!b->lzf[i].bad)
            continue;
        adopt_owner(v, &b->owners[b->verifies[i].owner]);
        v->n_elems = b->verifies[i].n_elems;
        rd_err_reset(&v->err);
        rdb_read_corrupt(v, b->verifies[i].off, "compressed string that does not decode");
        failed(w, b->verifies[i].off, b->verifies[i].owner, &v->err);
    }
}

static void work(void *arg, unsigned worker)
{
    struct rdb_batch *batch = arg;
    struct jobs *b = batch->last;
    struct worker *w = &batch->workers[worker];
    size_t verify_units = (b->n_verifies + VERIFY_UNIT - 1) / VERIFY_UNIT;
    size_t units = verify_units + (b->n_packs + PACK_UNIT - 1) / PACK_UNIT;
    size_t unit;
    while ((unit = atomic_fetch_add(&b->next, 1)) < units) {
        if (unit < verify_units) {
            size_t from = unit * VERIFY_UNIT;
            size_t to = from + VERIFY_UNIT < b->n_verifies ? from + VERIFY_UNIT : b->n_verifies;
            run_verifies(b, w, from, to);
            continue;
        }
        size_t from = (unit - verify_units) * PACK_UNIT;
        for (size_t i = from; i < from + PACK_UNIT && i < b->n_packs; i++)
            run_pack(b, w, &b->packs[i]);
    }
}

static int by_offset(const void *a, const void *b)
{
    const struct noted *x = a;
    const struct noted *y = b;
    if (x->off != y->off)
        return x->off < y->off ? -1 : 1;
    return (x->ev.inner > y->ev.inner) - (x->ev.inner < y->ev.inner);
}

/* Puts the notes of all threads in the order of the file. */
static bool collect_notes(struct rdb_reader *r)
{
    struct rdb_batch *b = r->batch;
    for (int i = 0; i < WORKERS; i++) {
        struct rd_buf *notes = &b->workers[i].notes;
        if (notes->len > 0 && !rd_buf_add(&r->notes, notes->ptr, notes->len))
            return false;
        rd_buf_reset(notes);
    }
    if (r->notes.len > 0)
        qsort(r->notes.ptr, r->notes.len / sizeof(struct noted), sizeof(struct noted), by_offset);
    r->notes_at = 0;
    return true;
}

bool rdb_batch_next_note(struct rdb_reader *r, struct rdb_event *ret)
{
    if (r->notes_at >= r->notes.len) {
        rd_buf_reset(&r->notes);
        r->notes_at = 0;
        return false;
    }
    /* The buffer is not added to before all of it was given out. */
    const struct noted *noted = (const struct noted *)(const void *)(r->notes.ptr + r->notes_at);
    r->notes_at += sizeof *noted;
    *ret = noted->ev;
    ret->note.key = rd_slice(noted->shown, noted->shown_len);
    return true;
}

/* Waits for the jobs that are under way, and sees what came of them. */
static int join(struct rdb_reader *r)
{
    struct rdb_batch *b = r->batch;
    if (b->last == NULL)
        return STEP_ON;
    if (r->opts.team != NULL)
        rd_team_join(r->opts.team);
    const struct worker *bad = NULL;
    for (int i = 0; i < WORKERS; i++) {
        const struct worker *w = &b->workers[i];
        if (w->err.code != RD_ERR_OK && (bad == NULL || w->err_off < bad->err_off))
            bad = w;
    }
    const struct owner *owners = b->last->owners;
    b->last->n_packs = b->last->n_verifies = b->last->n_owners = 0;
    b->last = NULL;
    if (bad != NULL) {
        rd_err_adopt(&r->err, &bad->err);
        adopt_owner(r, &owners[bad->err_owner]);
        return RDB_FAIL;
    }
    return collect_notes(r) ? STEP_ON : rdb_read_nomem(r, r->notes.len);
}

int rdb_batch_turn(struct rdb_reader *r)
{
    struct rdb_batch *b = r->batch;
    int st = join(r);
    if (st != STEP_ON || b->now->n_packs + b->now->n_verifies == 0)
        return st;
    b->last = b->now;
    b->now = b->last == &b->halves[0] ? &b->halves[1] : &b->halves[0];
    atomic_store(&b->last->next, 0);
    if (r->opts.team != NULL) {
        rd_team_start(r->opts.team, work, b);
        return STEP_ON;
    }
    work(b, 0);
    return join(r);
}

int rdb_batch_run(struct rdb_reader *r)
{
    int st = rdb_batch_turn(r);
    return st == STEP_ON ? join(r) : st;
}
