/* batch.c - deferred checks of the strings in a window.
 *
 * A check walks the framing first and keeps the compressed and packed strings of one window as
 * jobs. They do not depend on each other, so that threads share them, and LZF strings are verified
 * four at a time.
 *
 * With helper threads, the jobs of the last windows run while the next window is walked. Parts of
 * a file are mostly framing, others mostly jobs, and no thread should wait for another. The walker
 * can be SETS - 1 windows ahead; then it helps with the jobs. The results of a window are always
 * collected when the walk is SETS - 1 windows further, so that the order of events and the first
 * error do not depend on the speed of the helpers.
 */
#include "base/copy.h"
#include "base/src_impl.h"
#include "rdb/read/reader_impl.h"

#include "base/worker.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { JOBS_MAX = 512, VERIFY_UNIT = 32, PACK_UNIT = 4, SETS = 12 };

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
    uint64_t n_elems; /* offset of the string in its value, for the error */
};

struct noted {
    uint64_t off;
    struct rdb_event ev;
    size_t shown_len;
    uint8_t shown[KEY_SHOWN];
};

/* The results of the jobs that one thread has done. */
struct outcome {
    struct rd_buf notes; /* struct noted */
    struct rd_err err;   /* of the job that failed at the lowest offset */
    uint64_t err_off;
    uint32_t err_owner;
};

/* The jobs of a window, divided into units. A thread takes a unit by adding one to `take`, whose
 * upper half is the number of units and whose lower half is the index of the next one. It is 0
 * while the set is filled. */
struct jobs {
    struct job packs[JOBS_MAX];
    struct job verifies[JOBS_MAX];
    struct rdb_lzf_job lzf[JOBS_MAX];
    struct owner owners[2 * JOBS_MAX]; /* every job may have its own */
    size_t n_packs, n_verifies, n_owners;
    uint64_t owner_record; /* of the last owner; records begin at 9 or later, so 0 is none */
    _Atomic uint64_t take;
    atomic_uint left; /* units that are not finished */
    struct outcome outcomes[RD_TEAM_MAX];
};

struct rdb_batch {
    struct jobs *sets; /* a ring */
    unsigned n_sets;
    struct jobs *now;             /* being filled with the jobs of the current window */
    uint64_t joined;              /* sets that are finished and collected, since the beginning */
    _Atomic uint64_t begun;       /* … that are finished or started: `now` is the next one */
    uint64_t helped[RD_TEAM_MAX]; /* … that each helper has examined; only the helper uses it */
    bool started;                 /* the helpers were */
    unsigned n_workers;           /* the walker, which is 0, and its helpers */
    struct rdb_reader *walkers[RD_TEAM_MAX]; /* walk packed strings; never read from their source */
};

bool rdb_batch_new(struct rdb_reader *r, struct rd_err *err)
{
    struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .notes = r->opts.notes,
                        .max_name = r->opts.max_name, .seed = {r->opts.seed[0], r->opts.seed[1]});
    struct rdb_batch *b = rd_calloc(1, sizeof *b);
    if (b == NULL)
        return rd_err_nomem(err, sizeof *b);
    r->batch = b;
    if (r->opts.worker != NULL && !rd_src_keep(r->src, SETS - 1))
        r->opts.worker = NULL;
    b->n_sets = r->opts.worker != NULL ? SETS : 1;
    b->n_workers = 1 + rd_worker_helpers(r->opts.worker);
    b->sets = b->now = rd_calloc(b->n_sets, sizeof *b->sets);
    if (b->sets == NULL)
        return rd_err_nomem(err, b->n_sets * sizeof *b->sets);
    for (unsigned i = 0; i < b->n_workers; i++)
        if (!rdb_reader_new_records(&b->walkers[i], r->src, RDB_REDIS, RDB_VERSION_REDIS_MAX, &opts,
                                    err) ||
            !rdb_unique_begin(&b->walkers[i]->unique, 0))
            return rd_err_nomem(err, sizeof *b);
    return true;
}

void rdb_batch_free(struct rdb_batch *b, struct rd_worker *worker)
{
    if (b == NULL)
        return;
    if (b->started)
        rd_worker_join(worker);
    for (unsigned i = 0; b->sets != NULL && i < b->n_sets; i++)
        for (unsigned k = 0; k < b->n_workers; k++)
            rd_buf_done(&b->sets[i].outcomes[k].notes);
    for (unsigned i = 0; i < b->n_workers; i++)
        rdb_reader_free(b->walkers[i]);
    rd_free(b->sets);
    rd_free(b);
}

static uint32_t owner_of(struct rdb_reader *r)
{
    struct jobs *set = r->batch->now;
    if (set->n_owners > 0 && set->owner_record == r->record)
        return (uint32_t)set->n_owners - 1;
    struct owner *o = &set->owners[set->n_owners++];
    o->type = r->type;
    o->record = set->owner_record = r->record;
    o->db = r->db;
    o->name_len = r->name_len;
    o->shown_len = r->shown_len;
    rd_copy_short(o->shown, r->shown, r->shown_len);
    return (uint32_t)set->n_owners - 1;
}

int rdb_batch_pack(struct rdb_reader *r, const struct rdb_str_head *head, const uint8_t *stored,
                   uint64_t off, uint8_t pack)
{
    struct jobs *set = r->batch->now;
    set->packs[set->n_packs++] = (struct job){.stored = stored,
                                              .off = off,
                                              .stored_len = (uint32_t)head->stored,
                                              .total = (uint32_t)head->total,
                                              .owner = owner_of(r),
                                              .pack = pack,
                                              .lzf = head->kind == RDB_STR_LZF};
    rdb_read_consume(r, head->size + (size_t)head->stored);
    return set->n_packs == JOBS_MAX ? rdb_batch_turn(r) : STEP_ON;
}

int rdb_batch_verify(struct rdb_reader *r, const struct rdb_str_head *head, const uint8_t *stored,
                     uint64_t off)
{
    struct jobs *set = r->batch->now;
    set->lzf[set->n_verifies] =
        (struct rdb_lzf_job){.in = stored, .len = (size_t)head->stored, .out_len = head->total};
    set->verifies[set->n_verifies++] =
        (struct job){.off = off, .owner = owner_of(r), .n_elems = r->n_elems};
    rdb_read_consume(r, head->size + (size_t)head->stored);
    return set->n_verifies == JOBS_MAX ? rdb_batch_turn(r) : STEP_ON;
}

/* -- the work -- */

static void failed(struct outcome *o, uint64_t off, uint32_t owner, const struct rd_err *err)
{
    if (o->err.code != RD_ERR_OK && o->err_off <= off)
        return;
    o->err = *err;
    o->err_off = off;
    o->err_owner = owner;
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
    struct rdb_read_walk *w = &v->walk;
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

static bool keep_note(struct outcome *o, struct rdb_reader *v, const struct job *job,
                      const struct owner *owner)
{
    struct noted noted = {.off = job->off, .ev = v->note, .shown_len = owner->shown_len};
    rd_copy_short(noted.shown, owner->shown, owner->shown_len);
    v->note_set = false;
    return rd_buf_add(&o->notes, &noted, sizeof noted);
}

static void run_pack(struct jobs *set, struct outcome *o, struct rdb_reader *v,
                     const struct job *job)
{
    struct rdb_event ev;
    const struct owner *owner = &set->owners[job->owner];
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
        if (!keep_note(o, v, job, owner))
            st = rdb_read_nomem(v, sizeof ev);
    }
    if (st == RDB_FAIL)
        failed(o, job->off, job->owner, &v->err);
}

static void run_verifies(struct jobs *set, struct outcome *o, struct rdb_reader *v, size_t from,
                         size_t to)
{
    rdb_lzf_verify_many(set->lzf + from, to - from);
    for (size_t i = from; i < to; i++) {
        if (!set->lzf[i].bad)
            continue;
        adopt_owner(v, &set->owners[set->verifies[i].owner]);
        v->n_elems = set->verifies[i].n_elems;
        rd_err_reset(&v->err);
        rdb_read_corrupt(v, set->verifies[i].off, "compressed string that does not decode");
        failed(o, set->verifies[i].off, set->verifies[i].owner, &v->err);
    }
}

static size_t units_of(size_t n_jobs, size_t unit)
{
    return (n_jobs + unit - 1) / unit;
}

static void run_unit(struct jobs *set, struct outcome *o, struct rdb_reader *v, size_t unit)
{
    size_t n_verify = units_of(set->n_verifies, VERIFY_UNIT);
    if (unit < n_verify) {
        size_t from = unit * VERIFY_UNIT;
        size_t to = from + VERIFY_UNIT < set->n_verifies ? from + VERIFY_UNIT : set->n_verifies;
        run_verifies(set, o, v, from, to);
        return;
    }
    size_t from = (unit - n_verify) * PACK_UNIT;
    for (size_t i = from; i < from + PACK_UNIT && i < set->n_packs; i++)
        run_pack(set, o, v, &set->packs[i]);
}

/* Does units of the set until none is left. A helper may come late, when the set was joined and is
 * being filled again or was started again: it then takes nothing, or units of the new jobs. */
static void run_set(struct rdb_batch *b, struct jobs *set, unsigned worker)
{
    for (;;) {
        uint64_t taken = atomic_fetch_add(&set->take, 1);
        if ((uint32_t)taken >= taken >> 32)
            return;
        run_unit(set, &set->outcomes[worker], b->walkers[worker], (uint32_t)taken);
        atomic_fetch_sub(&set->left, 1);
    }
}

/* The work of a helper. The walker helps when it waits: see join(). */
static void work(void *arg, unsigned worker)
{
    struct rdb_batch *b = arg;
    if (worker == 0)
        return;
    for (uint64_t *at = &b->helped[worker]; *at < atomic_load(&b->begun); ++*at)
        run_set(b, &b->sets[*at % b->n_sets], worker);
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
static bool collect_notes(struct rdb_reader *r, struct jobs *set)
{
    for (unsigned i = 0; i < r->batch->n_workers; i++) {
        struct rd_buf *notes = &set->outcomes[i].notes;
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
    /* The buffer is not extended before all of it was returned. */
    const struct noted *noted = (const struct noted *)(const void *)(r->notes.ptr + r->notes_at);
    r->notes_at += sizeof *noted;
    *ret = noted->ev;
    ret->note.key = rd_slice(noted->shown, noted->shown_len);
    return true;
}

/* The last units of helpers are short, so this spins. */
static void await(struct jobs *set)
{
    enum { LOOKS = 1000 };
    for (unsigned i = 0; atomic_load(&set->left) > 0; i++)
        if (i >= LOOKS)
            sched_yield();
}

/* Waits for the oldest started set and collects its results. */
static int join(struct rdb_reader *r)
{
    struct rdb_batch *b = r->batch;
    struct jobs *set = &b->sets[b->joined % b->n_sets];
    run_set(b, set, 0);
    await(set);
    atomic_store(&set->take, 0);
    b->joined++;
    const struct outcome *bad = NULL;
    for (unsigned i = 0; i < b->n_workers; i++) {
        const struct outcome *o = &set->outcomes[i];
        if (o->err.code != RD_ERR_OK && (bad == NULL || o->err_off < bad->err_off))
            bad = o;
    }
    set->n_packs = set->n_verifies = set->n_owners = 0;
    if (bad != NULL) {
        rd_err_adopt(&r->err, &bad->err);
        adopt_owner(r, &set->owners[bad->err_owner]);
        return RDB_FAIL;
    }
    return collect_notes(r, set) ? STEP_ON : rdb_read_nomem(r, r->notes.len);
}

/* Starts the jobs of the window that was walked. */
static void begin(struct rdb_reader *r)
{
    struct rdb_batch *b = r->batch;
    struct jobs *set = b->now;
    size_t units = units_of(set->n_verifies, VERIFY_UNIT) + units_of(set->n_packs, PACK_UNIT);
    atomic_store(&set->left, (unsigned)units);
    atomic_store(&set->take, (uint64_t)units << 32);
    uint64_t begun = atomic_fetch_add(&b->begun, 1) + 1;
    b->now = &b->sets[begun % b->n_sets];
    if (r->opts.worker == NULL || units == 0)
        return;
    b->started = true;
    rd_worker_start(r->opts.worker, work, b);
}

static bool is_idle(struct rdb_batch *b)
{
    return b->joined == b->begun && b->now->n_packs + b->now->n_verifies == 0;
}

int rdb_batch_turn(struct rdb_reader *r)
{
    struct rdb_batch *b = r->batch;
    if (is_idle(b))
        return STEP_ON;
    begin(r);
    return b->begun - b->joined == b->n_sets ? join(r) : STEP_ON;
}

int rdb_batch_run(struct rdb_reader *r)
{
    struct rdb_batch *b = r->batch;
    int st = STEP_ON;
    if (!is_idle(b))
        begin(r);
    while (st == STEP_ON && b->joined < b->begun)
        st = join(r);
    return st;
}
