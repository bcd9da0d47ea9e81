/* survey.c - the first walk over a file: runs of records, and the lost ranges between them.
 *
 * A run can be graded only after the whole file was read, because the sizes that the file announces
 * and the end of the run are evidence for or against it. This pass therefore writes nothing.
 */
#include "rdb/recover/recover_impl.h"

#include "base/mem.h"
#include "rdb/modules.h"
#include "rdb/recover/correction.h"

enum {
    SPANS_MAX = 1 << 17,
    VALUE_SLACK = 64, /* bytes that damage may have inserted into a value */
    FAMILIAR_LEAST = 4,
    LONG_LEAST = 64, /* bytes */
    SIZES_SINCE = 7, /* first version with sizes of databases */
    NEW_MOST = 32    /* names of a new kind that do not confirm each other */
};

struct walk {
    struct scan *s;
    struct plan *plan;
    struct counts now; /* of the current span */
    struct record rec;
    uint64_t at, db;
    bool done;
    bool trusted;           /* all records so far follow each other from the start of the file */
    uint64_t empty_pair_at; /* start of the empty pair before this record, or RD_NO_OFFSET */
    uint64_t sized;         /* selectors followed by a size, in the whole file */
    uint64_t long_at;       /* the last record that is long enough to have swallowed others */
    struct {
        uint64_t start, end;  /* of the last selector of the span, with its size */
        struct counts before; /* counts before it */
    } selected;
    struct rd_err *err;
};

static bool scan_failed(struct walk *w)
{
    rd_err_adopt(w->err, &w->s->err);
    return false;
}

static struct span *add_span(struct walk *w)
{
    struct plan *plan = w->plan;
    if (plan->n == SPANS_MAX) {
        rd_err_set(w->err, RD_ERR_LIMIT, w->at, "more than %d places are damaged", SPANS_MAX);
        return NULL;
    }
    if (plan->n == plan->cap) {
        size_t cap = plan->cap == 0 ? 8 : 2 * plan->cap;
        struct span *bigger = rd_realloc(plan->spans, cap * sizeof *bigger);
        if (bigger == NULL) {
            rd_err_nomem(w->err, cap * sizeof *bigger);
            return NULL;
        }
        plan->spans = bigger;
        plan->cap = cap;
    }
    struct span *span = &plan->spans[plan->n++];
    *span = (struct span){.place = RD_NO_OFFSET, .beside = RD_NO_OFFSET};
    return span;
}

static void begin_span(struct walk *w, struct span *span, uint64_t at, uint64_t db)
{
    span->from = span->to = at;
    span->db = db;
    w->now = (struct counts){.selector_at = RD_NO_OFFSET, .excess_from = RD_NO_OFFSET};
    w->empty_pair_at = RD_NO_OFFSET;
    w->at = at;
    w->db = db;
    w->s->n_ring = 0; /* records before a lost range are final */
}

static struct span *present(const struct walk *w)
{
    return &w->plan->spans[w->plan->n - 1];
}

/* Whether more keys of the last database were read than it announces. */
static bool has_surplus(const struct counts *c)
{
    return c->last.has_size && c->last.keys > c->last.size;
}

/* The last database was read up to `at`, the next selector or the end of the run. */
static void note_excess(struct counts *c, uint64_t at, bool selector)
{
    /* Early versions did not write expired keys. */
    bool fewer = selector && c->last.has_size && c->last.keys + c->last.size_expires < c->last.size;
    if (has_surplus(c) || fewer) {
        c->few |= fewer;
        if (c->excess_from > c->size_at)
            c->excess_from = c->size_at;
        c->excess_to = at;
    }
    if (c->few || c->nested)
        c->excess_to = at;
}

/* The selector at `at` ends a database with more keys than it announces. If a snapshot begins in
 * one of its values, this and later selectors may be those of that snapshot. */
static bool find_nested(struct walk *w, uint64_t at)
{
    struct scan *s = w->s;
    struct counts *c = &w->now;
    if (c->nested || !has_surplus(c))
        return true;
    if (rdb_recover_holds_magic(s, c->size_at, at, &c->nested) == RDB_RECOVER_FAIL)
        return scan_failed(w);
    return rdb_recover_scan_at(s, w->rec.end, w->rec.db, UINT64_MAX) || scan_failed(w);
}

static void end_span(struct walk *w, uint64_t at)
{
    note_excess(&w->now, at, false);
    struct span *span = present(w);
    span->to = at;
    span->counts = w->now;
}

/* The first record that could not be read, or that cannot be there. */
static void suspect(struct walk *w)
{
    if (w->plan->damage == RD_NO_OFFSET)
        w->plan->damage = w->plan->guessed ? 0 : rdb_recover_place(w->s, &w->rec);
}

static void remember(struct walk *w)
{
    struct scan *s = w->s;
    const struct record *rec = &w->rec;
    s->ring[s->n_ring % RING].start = rec->start;
    s->ring[s->n_ring % RING].db = rec->db;
    s->ring[s->n_ring % RING].before = w->now;
    s->ring[s->n_ring % RING].packed = rdb_recover_is_packed(rec);
    s->ring[s->n_ring % RING].proof = rdb_recover_proof(s, rec);
    bool loose =
        rec->kind == RECORD_KEY && rec->type->id != RDB_TYPE_STRING && !rdb_recover_is_packed(rec);
    s->ring[s->n_ring % RING].loose = loose;
    s->ring[s->n_ring % RING].fields = loose && rdb_recover_has_fields(rec);
    s->ring[s->n_ring % RING].first = rdb_recover_shape_at(s, rec);
    s->ring[s->n_ring % RING].alien = rdb_recover_is_alien(s, rec);
    if (loose)
        memcpy(s->settled, s->shapes, sizeof s->settled);
    s->n_ring++;
}

/* Discards the records from `at` on. */
static void take_back(struct walk *w, uint64_t at)
{
    struct scan *s = w->s;
    while (s->n_ring > 0 && s->ring[(s->n_ring - 1) % RING].start >= at) {
        s->n_ring--;
        w->now = s->ring[s->n_ring % RING].before;
    }
    rdb_recover_take_back_templates(s, at);
}

/* The start of the oldest record in the ring, or of the current one. */
static uint64_t oldest(const struct walk *w)
{
    const struct scan *s = w->s;
    if (s->n_ring == 0)
        return w->rec.start;
    uint64_t i = s->n_ring > RING ? s->n_ring - RING : 0;
    return s->ring[i % RING].start;
}

/* Strings just before the damage, with names of a kind that did not occur before: they may be parts
 * of a value whose header is lost. With few keys before them, a few new names are not evidence.
 * Returns the start of the record before them, which may have swallowed that header; RD_NO_OFFSET:
 * there are none. */
static uint64_t new_names_from(const struct walk *w)
{
    const struct scan *s = w->s;
    uint64_t ret = RD_NO_OFFSET;
    uint64_t first = RD_NO_OFFSET;
    for (uint64_t i = 1; i <= RING && i <= s->n_ring; i++) {
        uint64_t at = (s->n_ring - i) % RING;
        if (s->ring[at].first == RD_NO_OFFSET)
            break;
        if (s->ring[at].first < first)
            first = s->ring[at].first;
        uint64_t before = s->ring[at].before.all_keys;
        bool enough = before >= FAMILIAR_LEAST || (before > 0 && i <= NEW_MOST);
        if (s->ring[at].start <= first && enough)
            ret = s->ring[(at + RING - (i < s->n_ring && i < RING)) % RING].start;
    }
    return ret;
}

/* Records that begin here or later may be damaged although they can be read. */
static uint64_t doubtful_from(const struct walk *w)
{
    const struct scan *s = w->s;
    uint64_t place = rdb_recover_place(s, &w->rec);
    uint64_t names = new_names_from(w);
    if (names < place)
        place = names;
    uint64_t least = oldest(w);
    /* Records after a collection that are unlike all earlier ones may be its elements. */
    for (uint64_t i = 1; i <= RING && i <= s->n_ring; i++) {
        uint64_t at = (s->n_ring - i) % RING;
        if (s->ring[at].loose && s->ring[at].start < place)
            place = s->ring[at].start;
        if (!s->ring[at].alien)
            break;
    }
    return place > least ? place : least;
}

/* Damage in a header may begin at the end of the value before it. If the file ends in the header,
 * nothing is damaged. */
static uint64_t beside_from(const struct walk *w, bool at_end)
{
    const struct scan *s = w->s;
    if (at_end || s->n_ring == 0 || rdb_recover_is_proved(s, &w->rec))
        return w->rec.start;
    return s->ring[(s->n_ring - 1) % RING].start;
}

/* The start of the record that contains the position where records are readable again. */
static uint64_t start_around(const struct walk *w, uint64_t at)
{
    const struct scan *s = w->s;
    uint64_t i = s->n_ring;
    while (i > 1 && s->ring[(i - 1) % RING].start > at)
        i--;
    return s->ring[(i - 1) % RING].start;
}

/* Finds the end of the hash with field expiries that is broken, or that is one of the last records
 * and ends elsewhere than it seemed. *ret_from: the start of the hash. */
static enum rdb_recover_status find_fields(struct walk *w, struct resync *ret, uint64_t *ret_from)
{
    enum { LAST = 16 };
    struct scan *s = w->s;
    *ret_from = w->rec.start;
    enum rdb_recover_status st = rdb_recover_fields(s, &w->rec, ret);
    for (uint64_t i = 1; st == RDB_RECOVER_OK && !ret->found && i <= LAST && i <= s->n_ring; i++) {
        uint64_t at = (s->n_ring - i) % RING;
        struct record hash = {.db = s->ring[at].db};
        if (!s->ring[at].fields)
            continue;
        if (!rdb_recover_scan_at(s, s->ring[at].start, hash.db, UINT64_MAX))
            return RDB_RECOVER_FAIL;
        st = rdb_recover_record(s, &hash);
        if (st != RDB_RECOVER_OK)
            return st == RDB_RECOVER_FAIL ? st : RDB_RECOVER_OK;
        st = rdb_recover_fields(s, &hash, ret);
        ret->found &= ret->at != hash.end;
        *ret_from = ret->found ? hash.start : w->rec.start;
        break;
    }
    return st;
}

/* The record at rec.start is broken: finds the next readable position; the bytes in between are
 * lost. */
static bool broken(struct walk *w, enum rdb_recover_why why, uint64_t at)
{
    struct scan *s = w->s;
    struct resync way = {0};
    const struct rd_err *cause = rdb_reader_err(s->reader);
    bool is_error = why == RDB_RECOVER_WHY_ERROR;
    struct span lost = {.broken = w->rec.start,
                        .why = why,
                        .fields_left = is_error ? rdb_recover_fields_left(s, &w->rec) : 0,
                        .at_end = is_error && cause->code == RD_ERR_TRUNCATED,
                        .headed = (is_error || why == RDB_RECOVER_WHY_REFUSED) &&
                                  rdb_recover_has_head(s, &w->rec)};
    w->plan->unsupported |= is_error && cause->code == RD_ERR_UNSUPPORTED;
    suspect(w);
    w->rec.db = w->db;
    lost.place = doubtful_from(w);
    lost.beside = beside_from(w, lost.at_end);
    if (w->trusted)
        s->trusted_to = lost.place;
    lost.proved = is_error && rdb_recover_is_anchor(s, &w->rec);
    bool framed = why == RDB_RECOVER_WHY_REFUSED || (is_error && !lost.at_end);
    uint64_t from = w->rec.start;
    uint64_t hash = from;
    if (find_fields(w, &way, &hash) == RDB_RECOVER_FAIL)
        return scan_failed(w);
    if (way.found) {
        lost.at_end = false;
        lost.fields_left = 0;
        lost.fields = way.fields;
        lost.apart = way.apart;
    } else if (framed && rdb_recover_framed(s, &w->rec, at, &way) == RDB_RECOVER_FAIL) {
        return scan_failed(w);
    }
    lost.framed = way.found;
    if (!way.found && framed && way.value_end != RD_NO_OFFSET)
        lost.inside = way.value_end + VALUE_SLACK;
    if (!way.found && rdb_recover_resync(s, w->rec.start, w->db, &way) == RDB_RECOVER_FAIL)
        return scan_failed(w);
    /* The end of a snapshot inside a value: the start of the value is unknown. */
    bool nested = why == RDB_RECOVER_WHY_EARLY_END && way.found && way.at == w->rec.end;
    if (why == RDB_RECOVER_WHY_EARLY_END && way.found && !nested &&
        rdb_recover_holds_magic(s, w->rec.start, way.at, &nested) == RDB_RECOVER_FAIL)
        return scan_failed(w);
    if (nested)
        lost.place = present(w)->from;
    w->trusted &= lost.framed;
    if (way.found && (way.at < from || hash < from)) {
        uint64_t keys = w->now.all_keys;
        from = hash < from ? hash : start_around(w, way.at);
        take_back(w, from);
        lost.taken_back = keys - w->now.all_keys;
    }
    /* A selector without a record after it may be damage, too. */
    bool begins = way.selector && w->plan->n == 1 && w->now.selectors == 1;
    bool sizes = w->sized > 0 || s->version < 7 || begins; /* a size always follows, or never */
    if (way.found && sizes && from == w->rec.start && w->now.selector_at != RD_NO_OFFSET) {
        from = w->now.selector_at;
        lost.selected = true;
        lost.selector = w->db;
        if (lost.place > from)
            lost.place = from;
        take_back(w, from);
    }
    end_span(w, from);
    present(w)->early_end = why == RDB_RECOVER_WHY_EARLY_END;
    struct span *next = add_span(w);
    if (next == NULL)
        return false;
    lost.lost_from = from;
    lost.resync = way.found ? way.how : NULL;
    lost.named = way.named;
    lost.trace = way.trace;
    /* A record that may be damaged may have swallowed the header of a value. */
    uint64_t magic_from = lost.place < from ? lost.place : from;
    if (way.found &&
        rdb_recover_holds_magic(s, magic_from, way.at, &lost.magic) == RDB_RECOVER_FAIL)
        return scan_failed(w);
    *next = lost;
    begin_span(w, next, way.found ? way.at : s->size, way.found ? way.db : w->db);
    w->done = !way.found;
    return !way.found || rdb_recover_scan_at(s, w->at, w->db, UINT64_MAX) || scan_failed(w);
}

static void end_walk(struct walk *w)
{
    end_span(w, w->rec.start);
    w->plan->found_end = true;
    w->plan->end = w->rec.end;
    w->done = true;
}

/* An end mark before the end of the file is real if nothing was lost before it and its checksum
 * matches. Otherwise it may be a damaged byte: it is, if records follow. (At the end of a second
 * snapshot the checksum matches, too, because that of a snapshot with its checksum is 0.) */
static bool early_end(struct walk *w)
{
    struct scan *s = w->s;
    struct resync way;
    bool sealed = false;
    if (w->plan->n == 1 && (!rdb_recover_scan_at(s, 0, 0, UINT64_MAX) ||
                            !rdb_recover_prove(s->src, w->rec.end, &sealed, NULL, &s->err)))
        return scan_failed(w);
    if (sealed) {
        end_walk(w);
        present(w)->to_end = w->plan->end_proved = true;
        return true;
    }
    if (rdb_recover_resync(w->s, w->rec.start, w->db, &way) == RDB_RECOVER_FAIL)
        return scan_failed(w);
    if (way.found)
        return broken(w, RDB_RECOVER_WHY_EARLY_END, w->rec.start);
    end_walk(w);
    present(w)->early_end = true;
    return true;
}

/* A collection whose name is like none before the damage may be read out of a value, and then its
 * count may lead it over records. */
static bool may_swallow(const struct walk *w)
{
    const struct record *rec = &w->rec;
    return w->plan->n > 1 && rec->type->id != RDB_TYPE_STRING && !rdb_recover_is_packed(rec) &&
           rec->end - rec->start >= LONG_LEAST && !rdb_recover_is_anchor(w->s, rec);
}

static void count_key(struct walk *w)
{
    struct scan *s = w->s;
    const struct record *rec = &w->rec;
    struct counts *c = &w->now;
    bool field = !c->lead_ended && rdb_recover_looks_like_field(s, rec);
    c->lead += field;
    c->lead_ended = !field;
    c->varied += rec->type->id != RDB_TYPE_STRING || (rec->expires && rec->plausible_expiry);
    if (c->all_keys++ == 0)
        c->first_expires = rec->expires;
    if (c->selectors == 0) {
        c->keys++;
        c->expires += rec->expires;
        if (may_swallow(w)) {
            c->swallow = c->keys;
            c->swallowed += rec->end - rec->start;
        }
    } else {
        c->last.keys++;
        c->last.expires += rec->expires;
    }
    if (rec->refused == NULL) {
        rdb_recover_name_stats_add(&s->name_stats, rec);
        rdb_recover_shape_add(s, rec);
    }
}

static bool count_db(struct walk *w)
{
    struct counts *c = &w->now;
    uint64_t db = w->rec.db;
    if (!find_nested(w, w->rec.start))
        return false;
    note_excess(c, w->rec.start, true);
    if (c->selectors++ == 0)
        c->first_db = db;
    else
        c->descends |= db <= c->last.db;
    if (db < DBS_TRACKED) {
        c->dbs_seen |= (uint64_t)1 << db;
        if (w->plan->taken_in[db] == RD_NO_OFFSET)
            w->plan->taken_in[db] = w->long_at;
    }
    c->high += db >= RDB_RECOVER_DBS_DEFAULT;
    c->last = (struct db_state){.db = db, .selected = true};
    c->lead_ended = true;
    return true;
}

/* Whether a record cannot be at this position: a selector without a size if others have one, or a
 * size without a selector. */
static bool is_misplaced(const struct walk *w, enum rdb_recover_why *why)
{
    const struct record *rec = &w->rec;
    bool after_selector = w->now.selector_at != RD_NO_OFFSET;
    *why = RDB_RECOVER_WHY_SELECTOR;
    if (after_selector && !rec->sizes)
        return w->sized > 0;
    *why = RDB_RECOVER_WHY_SIZE;
    return rec->sizes && !after_selector;
}

/* A field that precedes all keys. (Scripts follow the keys.) */
static bool is_opening(const struct record *rec)
{
    static const char *const names[] = {"redis-ver", "valkey-ver", "redis-bits", "ctime",
                                        "used-mem"};
    for (size_t i = 0; rec->has_name && i < sizeof names / sizeof *names; i++)
        if (rd_slice_is(rd_slice(rec->key, rec->key_len < sizeof rec->key ? (size_t)rec->key_len
                                                                          : sizeof rec->key),
                        names[i]))
            return true;
    return false;
}

static bool take_record(struct walk *w)
{
    struct counts *c = &w->now;
    const struct record *rec = &w->rec;
    remember(w);
    c->needed = rec->since > c->needed ? rec->since : c->needed;
    if (rec->refused != NULL)
        suspect(w);
    w->plan->has_modules |= rec->has_module && !rdb_module_is_known(rec->module_id);
    rdb_recover_keep_templates(w->s);
    switch (rec->kind) {
    case RECORD_KEY:
        count_key(w);
        break;
    case RECORD_DB:
        w->selected.start = rec->start;
        w->selected.end = rec->end;
        w->selected.before = w->now;
        if (!count_db(w))
            return false;
        w->db = rec->db;
        w->s->db_at = rec->start;
        break;
    case RECORD_HINT:
        if (c->selector_at != RD_NO_OFFSET)
            w->selected.end = rec->end;
        if (rec->sizes) {
            c->last.has_size = true;
            c->last.size = rec->n_keys;
            c->last.size_expires = rec->n_expires;
            c->sized++;
            c->size_at = rec->start;
            w->sized++;
        }
        break;
    case RECORD_OTHER:
        c->aux += is_opening(rec);
        break;
    case RECORD_END:
        break;
    }
    c->selector_at = rec->kind == RECORD_DB ? rec->start : RD_NO_OFFSET;
    bool is_long = rec->kind == RECORD_KEY && !rdb_recover_is_packed(rec) &&
                   rec->end - rec->start >= LONG_LEAST;
    /* Without sizes, selectors of a snapshot inside a value cannot be distinguished from those of
     * the file. */
    if (is_long && (w->s->version >= SIZES_SINCE || w->long_at < present(w)->from))
        w->long_at = rec->start;
    if (w->s->opts->tick != NULL && rec->kind == RECORD_KEY)
        w->s->opts->tick(w->s->opts->ctx, rec->start);
    return true;
}

/* Databases are in ascending order: after damage, a selector of an earlier database shows that the
 * records since the previous selector belong to another run, and that one of the two is part of a
 * value. */
static bool is_out_of_order(const struct walk *w)
{
    return w->plan->n > 1 && !w->s->sealed && w->rec.kind == RECORD_DB && w->now.selectors > 0 &&
           w->rec.db <= w->now.last.db;
}

/* Ends the run before its last selector, and continues after it. */
static bool split(struct walk *w)
{
    uint64_t start = w->selected.start;
    uint64_t end = w->selected.end;
    uint64_t db = present(w)->db;
    w->now = w->selected.before;
    end_span(w, start);
    struct span *next = add_span(w);
    if (next == NULL)
        return false;
    next->lost_from = next->broken = next->place = next->beside = start;
    next->why = RDB_RECOVER_WHY_ORDER;
    next->resync = "the next record";
    begin_span(w, next, end, db);
    return rdb_recover_scan_at(w->s, w->at, w->db, UINT64_MAX) || scan_failed(w);
}

/* Whether servers would refuse the record, and it may be damaged bytes that read as a record. The
 * only records between keys that are not keys are fields: libraries precede the keys. */
static bool is_false_record(const struct walk *w)
{
    const struct record *rec = &w->rec;
    bool between = rec->kind == RECORD_OTHER && !rec->has_name && w->now.all_keys > 0;
    return rec->refused != NULL && !w->s->sealed && (rec->kind == RECORD_KEY || between);
}

static bool one_record(struct walk *w)
{
    struct scan *s = w->s;
    struct record *rec = &w->rec;
    enum rdb_recover_why why;
    rec->db = w->db;
    enum rdb_recover_status st = rdb_recover_record(s, rec);
    if (st == RDB_RECOVER_FAIL)
        return scan_failed(w);
    if (st == RDB_RECOVER_BROKEN)
        return broken(w, RDB_RECOVER_WHY_ERROR, rdb_reader_err(s->reader)->offset);
    if (rec->empty_pair && w->empty_pair_at != RD_NO_OFFSET) {
        rec->start = w->empty_pair_at;
        rec->has_key = false;
        take_back(w, w->empty_pair_at);
        return broken(w, RDB_RECOVER_WHY_ZEROS, rec->start);
    }
    w->empty_pair_at = rec->empty_pair ? rec->start : RD_NO_OFFSET;
    if (is_false_record(w))
        return broken(w, RDB_RECOVER_WHY_REFUSED, rec->start);
    if (is_misplaced(w, &why)) {
        if (why == RDB_RECOVER_WHY_SELECTOR) {
            rec->start = w->now.selector_at;
            rec->has_key = rec->has_name = false;
            rec->kind = RECORD_OTHER;
            take_back(w, rec->start);
            w->db = s->n_ring > 0 ? s->ring[(s->n_ring - 1) % RING].db : present(w)->db;
        }
        return broken(w, why, rec->start);
    }
    if (is_out_of_order(w))
        return split(w);
    if (rec->kind != RECORD_END) {
        w->at = rec->end;
        return take_record(w);
    }
    if (rec->end != s->size)
        return early_end(w);
    end_walk(w);
    present(w)->to_end = true;
    return true;
}

bool rdb_recover_survey(struct scan *s, struct plan *ret, struct rd_err *err)
{
    struct walk *w = rd_calloc(1, sizeof *w);
    if (w == NULL)
        return rd_err_nomem(err, sizeof *w);
    w->s = s;
    w->plan = ret;
    w->err = err;
    w->trusted = true;
    ret->n = 0;
    ret->found_end = ret->end_proved = ret->unsupported = ret->has_modules = false;
    ret->end = ret->damage = RD_NO_OFFSET;
    for (size_t i = 0; i < DBS_TRACKED; i++)
        ret->taken_in[i] = RD_NO_OFFSET;
    struct span *first = add_span(w);
    bool ok = first != NULL;
    if (ok) {
        first->lost_from = first->broken = RDB_MAGIC_LEN;
        begin_span(w, first, RDB_MAGIC_LEN, 0);
        w->done = s->size <= RDB_MAGIC_LEN;
        ok = w->done || rdb_recover_scan_at(s, RDB_MAGIC_LEN, 0, UINT64_MAX) || scan_failed(w);
    }
    while (ok && !w->done)
        ok = one_record(w);
    rd_free(w);
    return ok;
}
