/* grade.c - grades each run of records by the evidence that it is real.
 *
 * Bytes can parse as records without being records of the file: inside a string that contains a
 * snapshot, or in a hash whose fields look like keys. A run after a lost range is accepted if
 * evidence outside of it agrees: it begins where a record ends by its own lengths, or with the
 * selector of a new database, or it leads to the end of the file or to the header of a record that
 * belongs to this file. One that is only likely to be real is kept with all its keys marked. The
 * announced sizes of databases limit how many keys a lost range can hide, and show how many of the
 * keys after it are too many.
 */
#include "rdb/recover/recover_impl.h"

enum {
    KEY_LEAST = 4,   /* size of the smallest key: type, name and value of one byte */
    RANGE_SMALL = 96 /* bytes; if the end of a lost record is known, so much may belong to other
                        records */
};

struct grader {
    const struct scan *s;
    struct plan *plan;
    struct db_state db; /* at the end of the last run that has an anchor */
    uint64_t size_at;   /* where the size of that database is announced */
    bool size_doubt;    /* the announced size may be damaged */
    /* Since the last run with an anchor, before the current run: */
    uint64_t lost_from;    /* where the first lost range begins */
    uint64_t damaged_from; /* the first record that may be damaged */
    bool db_lost;          /* the last selector may belong to a snapshot inside a value */
    bool any_keys;
    bool bare; /* the last selector is damaged, or is not one: it has neither a size nor keys */
    /* Since the last run with an anchor: */
    bool at_end;       /* a record broke because the file ends */
    bool magic;        /* a snapshot begins */
    bool headed;       /* the header of a key was lost */
    uint64_t lost;     /* bytes of lost ranges */
    uint64_t supposed; /* keys of runs without an anchor that the announced size speaks for */
    /* Of all runs: */
    uint64_t bytes_per_key;
};

uint64_t rdb_recover_spare_db(const struct plan *plan, uint64_t db)
{
    for (uint64_t i = db + 1; i < RDB_RECOVER_DBS_DEFAULT; i++)
        if ((plan->dbs_seen >> i & 1) == 0)
            return i;
    return db < RDB_RECOVER_DBS_DEFAULT ? db : 0;
}

/* -- anchors -- */

/* Whether the run looks like a snapshot inside a value, or leads to the end of one. */
static bool is_nested(const struct grader *g, const struct span *span)
{
    const struct counts *c = &span->counts;
    if (span->early_end || (c->aux > 0 && g->any_keys && (c->selectors > 0 || c->keys > 0)))
        return true;
    if (g->bare && span->to_end)
        return c->descends;
    return c->descends || (c->selectors > 0 && g->db.selected && c->first_db <= g->db.db);
}

/* Whether the whole run is part of the broken value, by the lengths that the value announces. */
static bool is_inside(const struct span *span)
{
    return span->inside > span->to && !span->to_end;
}

/* The number of bytes before a run that may contain keys which were not read. Records that may be
 * damaged may have swallowed others. */
static uint64_t bytes_before(const struct grader *g, const struct span *span)
{
    uint64_t from = g->damaged_from < g->lost_from ? g->damaged_from : g->lost_from;
    uint64_t bytes = span->from > from ? span->from - from : 0;
    bool one = span->framed && g->lost_from == span->lost_from;
    return one && bytes > RANGE_SMALL ? RANGE_SMALL : bytes;
}

/* The largest number of keys that so many lost bytes can contain. */
static uint64_t could_hide(const struct grader *g, uint64_t bytes)
{
    uint64_t least = g->s->name_stats.least;
    return bytes / (least > KEY_LEAST ? least : KEY_LEAST) + 1;
}

static bool is_size_doubtful(const struct grader *g)
{
    return g->db.has_size && g->size_at >= g->damaged_from;
}

/* Whether the database before the run announces more keys than the lost range can contain. Then a
 * selector at the start of the run is part of a value. */
static bool is_too_early(const struct grader *g, const struct span *span)
{
    return g->db.has_size && !is_size_doubtful(g) &&
           g->db.size > g->db.keys + could_hide(g, bytes_before(g, span));
}

static bool has_left(const struct grader *g, const struct span *span)
{
    const struct counts *c = &span->counts;
    if (span->magic)
        return false;
    if (span->framed && span->why != RDB_RECOVER_WHY_REFUSED)
        return true;
    return c->selectors > 0 && c->keys == 0 && c->sized > 0 && !is_too_early(g, span);
}

static bool has_right(const struct span *span, const struct span *next)
{
    if (span->to_end)
        return true;
    return next != NULL && next->proved && !next->at_end && !span->magic;
}

/* Whether the run may be a part of a value, whatever its ends are. */
static bool may_be_value(const struct grader *g, const struct span *span)
{
    /* The file ends inside a value: everything found in the value belongs to it. */
    bool at_end = g->at_end && !span->to_end;
    return is_nested(g, span) || is_inside(span) || span->untrusted || at_end;
}

static enum rdb_grade grade_of(const struct grader *g, const struct span *span,
                               const struct span *next, bool first)
{
    if (first && span->lost_from == span->from)
        return span->to_end ? RDB_GRADE_BOTH : RDB_GRADE_ONE;
    if (may_be_value(g, span))
        return RDB_GRADE_NONE;
    bool left = has_left(g, span);
    bool right = has_right(span, next);
    return left && right ? RDB_GRADE_BOTH : left || right ? RDB_GRADE_ONE : RDB_GRADE_NONE;
}

/* -- databases and sizes -- */

/* Whether all keys up to the next selector, or to the end, are in the run. */
static bool is_closed(const struct span *span)
{
    return span->counts.selectors > 0 || span->to_end;
}

/* The number of the next database that is selected after the start of a run, or 0. */
static uint64_t next_db(const struct grader *g, const struct span *span)
{
    const struct plan *plan = g->plan;
    for (const struct span *p = span; p < plan->spans + plan->n; p++)
        if (p->counts.selectors > 0)
            return p->counts.first_db;
    return 0;
}

/* Up to this many keys of the run may be parts of a value. */
static void doubt_first(struct span *span, uint64_t n)
{
    uint64_t left = span->counts.keys - span->trim;
    span->mark = n < left ? n : left;
}

/* Whether a database with that number can begin in the lost range. */
static bool is_next(const struct grader *g, const struct span *span, uint64_t db)
{
    uint64_t next = next_db(g, span);
    return (!g->db.selected || db > g->db.db) && (next == 0 || db < next) &&
           db < RDB_RECOVER_DBS_DEFAULT;
}

/* Whether the selector and size in the lost range are those of the run. */
static bool fits(const struct grader *g, const struct span *span, const struct named_db *named,
                 uint64_t bytes)
{
    if (!named->found || named->size < span->counts.keys)
        return false;
    if (named->has_db && !is_next(g, span, named->db))
        return false;
    return !is_closed(span) || named->size - span->counts.keys <= could_hide(g, bytes);
}

static void enter_db(struct grader *g, struct span *span, const struct named_db *named)
{
    uint64_t db = named->has_db ? named->db : rdb_recover_spare_db(g->plan, g->db.db);
    g->db = (struct db_state){.db = db,
                              .selected = true,
                              .has_size = true,
                              .size = named->size,
                              .size_expires = named->expires};
    span->start_db = db;
    if (db < 64)
        g->plan->dbs_seen |= (uint64_t)1 << db;
}

/* More keys were read than the database has: some are not keys, or a selector was lost. `left` keys
 * had not been read yet, and at least `lost` of them are in the lost range. */
static void surplus(struct grader *g, struct span *span, uint64_t bytes, uint64_t lost)
{
    const struct counts *c = &span->counts;
    uint64_t left = g->db.size - g->db.keys;
    uint64_t hidden = could_hide(g, bytes);
    uint64_t more = c->keys + lost - left;
    bool hash = span->fields_left > 0;
    if (g->size_doubt && !hash) {
        span->db_doubt = true;
        return;
    }
    bool fields =
        g->s->dialect == RDB_REDIS && g->s->version >= RDB_RECOVER_VERSION_ALL && c->lead >= more;
    bool alone = (g->plan->dbs_seen & (g->plan->dbs_seen - 1)) == 0;
    if (hash || left > hidden || (fields && alone)) {
        span->trim = more < c->keys ? more : c->keys;
        span->db_doubt = true;
        doubt_first(span, hash && bytes > RANGE_SMALL ? could_hide(g, RANGE_SMALL) : hidden);
        return;
    }
    span->db_doubt = true;
    span->start_db = rdb_recover_spare_db(g->plan, g->db.db);
    if (span->start_db < 64)
        g->plan->dbs_seen |= (uint64_t)1 << span->start_db;
    g->db = (struct db_state){.db = span->start_db, .selected = true};
}

/* `missing` announced keys were not read. For each key of the run that is not real, the lost range
 * contains one more. */
static void doubt_rest(struct grader *g, struct span *span, uint64_t missing, uint64_t bytes)
{
    uint64_t hidden = could_hide(g, bytes) + span->taken_back;
    if (!is_closed(span))
        doubt_first(span, hidden);
    else if (hidden > missing && (missing != 1 || bytes > RANGE_SMALL))
        doubt_first(span, hidden - missing);
}

/* The size of the database is known. */
static void weigh(struct grader *g, struct span *span, uint64_t bytes)
{
    const struct counts *c = &span->counts;
    uint64_t left = g->db.size - g->db.keys;
    uint64_t hidden = could_hide(g, bytes);
    uint64_t lost = span->headed; /* a lost expiry is not a key */
    if (left < c->keys + lost) {
        surplus(g, span, bytes, lost);
        return;
    }
    uint64_t missing = left - c->keys;
    uint64_t next = next_db(g, span);
    uint64_t expires = g->db.expires + c->expires;
    /* All remaining keys of the database may be lost, with a selector after them. */
    bool other = left <= hidden && next != g->db.db + 1;
    doubt_rest(g, span, missing, bytes);
    if (is_closed(span) && missing > hidden)
        other = true;
    /* The keys may fit by chance: they are of another database if their expiries do not. The lost
     * range may end with the expiry of the first one. */
    uint64_t may_expire = expires + missing + !c->first_expires;
    if (expires > g->db.size_expires || (is_closed(span) && g->db.size_expires > may_expire))
        other = true;
    span->db_doubt = other;
}

/* Whether the run can be the rest of the database in which it is read. */
static bool is_rest(const struct grader *g, const struct span *span, uint64_t bytes)
{
    uint64_t keys = g->db.keys + span->counts.keys + span->headed;
    if (!g->db.has_size || keys > g->db.size)
        return false;
    return !is_closed(span) || g->db.size - keys <= could_hide(g, bytes);
}

static void without_size(struct grader *g, struct span *span, uint64_t bytes)
{
    uint64_t next = next_db(g, span);
    if (span->fields_left > 0)
        span->trim = span->fields_left < span->counts.lead ? span->fields_left : span->counts.lead;
    doubt_first(span, could_hide(g, bytes) + span->taken_back);
    if (next == 0 || next > g->db.db + 1)
        span->db_doubt = true;
}

/* Applies the evidence of a lost range of so many bytes before a run. */
static void judge(struct grader *g, struct span *span, uint64_t bytes)
{
    const struct counts *c = &span->counts;
    g->size_doubt = is_size_doubtful(g);
    bool sized = g->db.has_size && g->db.keys < g->db.size;
    bool full = g->db.has_size && g->db.keys == g->db.size;
    if (c->keys > 0 || !is_closed(span)) {
        if (is_rest(g, span, bytes)) {
            weigh(g, span, bytes);
        } else if (fits(g, span, &span->named, bytes)) {
            /* It may be part of a value if the previous database still lacks keys. */
            bool more = g->db.has_size && g->db.keys + span->headed < g->db.size;
            enter_db(g, span, &span->named);
            span->db_doubt = !is_closed(span) || more;
            doubt_rest(g, span, span->named.size - c->keys, bytes);
        } else if (fits(g, span, &span->trace, bytes)) {
            enter_db(g, span, &span->trace);
            span->db_doubt = true;
        } else if (span->selected && is_next(g, span, span->selector)) {
            g->db = (struct db_state){.db = span->selector, .selected = true};
            span->start_db = span->selector;
            span->db_doubt = true;
        } else if (sized || full) {
            weigh(g, span, bytes);
        } else {
            without_size(g, span, bytes);
        }
    }
    bool all_expire =
        is_closed(span) && g->db.has_size && g->db.expires + c->expires == g->db.size_expires;
    span->expiry_doubt = !all_expire;
    span->db_doubt |= g->db_lost;
}

/* A collection among doubtful keys, or next to them, may have taken in records: its bytes count as
 * lost. */
static void after_loss(struct grader *g, struct span *span)
{
    const struct counts *c = &span->counts;
    const struct span before = *span;
    const struct db_state db = g->db;
    const uint64_t dbs_seen = g->plan->dbs_seen;
    uint64_t bytes = bytes_before(g, span);
    judge(g, span, bytes);
    uint64_t doubted = span->trim + span->mark;
    bool follows = doubted > 0 && c->swallow <= doubted + 1;
    if (c->swallow == 0 || (!follows && c->swallow > could_hide(g, bytes)))
        return;
    *span = before;
    g->db = db;
    g->plan->dbs_seen = dbs_seen;
    judge(g, span, bytes + c->swallowed);
    if (span->mark < c->swallow)
        doubt_first(span, c->swallow);
}

/* -- the size as evidence for a run without an anchor -- */

/* The keys of the same database in later runs that probably have an anchor. */
static uint64_t keys_after(const struct grader *g, const struct span *span)
{
    uint64_t keys = 0;
    for (const struct span *p = span + 1; p < g->plan->spans + g->plan->n; p++) {
        if (p->to_end || (p->framed && p->why != RDB_RECOVER_WHY_REFUSED))
            keys += p->counts.keys;
        if (is_closed(p))
            break;
    }
    return keys;
}

/* The bytes of lost ranges from the current one to the next run with an anchor. */
static uint64_t lost_after(const struct grader *g, const struct span *span)
{
    uint64_t bytes = 0;
    for (const struct span *p = span + 1; p < g->plan->spans + g->plan->n; p++) {
        bytes += p->from - p->lost_from;
        if (is_closed(p))
            break;
    }
    return bytes;
}

/* What the announced size of a database says about a run: it is nearer to the number of keys with
 * those of the run, or without them. */
enum vote { VOTE_NONE, VOTE_WITH, VOTE_WITHOUT };

/* Keys that so many lost bytes are likely to contain. */
static uint64_t likely_in(const struct grader *g, uint64_t bytes)
{
    return bytes / (g->bytes_per_key + 1) + 1;
}

/* Of the database in which the run begins. If it lacks fewer keys, a selector was lost, or the run
 * is not real. */
static enum vote vote_before(const struct grader *g, const struct span *span)
{
    const struct counts *c = &span->counts;
    bool closed = c->selectors > 0;
    uint64_t known = g->db.keys + g->supposed + (closed ? 0 : keys_after(g, span));
    uint64_t likely = likely_in(g, g->lost + (closed ? 0 : lost_after(g, span)));
    if (!g->db.selected || !g->db.has_size || is_size_doubtful(g) || c->keys == 0 ||
        known > g->db.size || c->keys > g->db.size - known)
        return VOTE_NONE;
    uint64_t missing = g->db.size - known;
    return 2 * missing > 2 * likely + c->keys ? VOTE_WITH : VOTE_WITHOUT;
}

/* Of the last database that is selected in it, to which later keys belong. In a value that is a
 * database, all of them are in the run. */
static enum vote vote_after(const struct grader *g, const struct span *span)
{
    const struct db_state *last = &span->counts.last;
    uint64_t after = keys_after(g, span), bytes = lost_after(g, span);
    if (span->counts.selectors == 0)
        return VOTE_NONE;
    if (!last->has_size || last->keys > last->size)
        return VOTE_WITHOUT;
    uint64_t rest = last->size - last->keys;
    bool near = 2 * rest > after + likely_in(g, bytes) && rest <= after + could_hide(g, bytes);
    return near ? VOTE_WITH : VOTE_WITHOUT;
}

/* Whether the run is likely to be real, although it has no anchor: a size speaks for it, or its
 * keys are of several kinds, as which bytes of a value rarely read. A size that speaks against it
 * counts if at least half of its keys are of that database. */
static bool is_supposed(const struct grader *g, const struct span *span)
{
    const struct counts *c = &span->counts;
    if (c->all_keys == c->lead || span->magic || may_be_value(g, span))
        return false;
    enum vote before = vote_before(g, span), after = vote_after(g, span);
    bool first = c->selectors == 0 || 2 * c->keys >= c->all_keys;
    bool last = c->selectors > 0 && 2 * c->last.keys >= c->all_keys;
    if ((before == VOTE_WITHOUT && first) || (after == VOTE_WITHOUT && last))
        return false;
    return before == VOTE_WITH || after == VOTE_WITH || c->varied > 1;
}

/* Keeps the run, with all its keys marked, except what may be the fields of a hash. For the runs
 * after it, it counts as lost. */
static void suppose(struct grader *g, struct span *span)
{
    const struct counts *c = &span->counts;
    span->grade = RDB_GRADE_ONE;
    span->start_db = g->db.db;
    span->trim = c->lead;
    span->mark = c->all_keys - c->lead;
    span->db_doubt = span->expiry_doubt = true;
    g->supposed += c->keys;
    if (c->selectors > 0) {
        g->db = c->last;
        g->db_lost = true;
        g->supposed = 0;
    }
    if (c->needed > g->plan->needed)
        g->plan->needed = c->needed;
}

static uint64_t bytes_per_key(const struct plan *plan)
{
    uint64_t bytes = 0, keys = 0;
    for (size_t i = 0; i < plan->n; i++) {
        bytes += plan->spans[i].to - plan->spans[i].from;
        keys += plan->spans[i].counts.all_keys;
    }
    return keys > 0 ? bytes / keys : bytes;
}

/* Whether the run ends with a selector without a size, while others have one. */
static bool ends_bare(const struct grader *g, const struct span *span)
{
    const struct db_state *last = &span->counts.last;
    return span->counts.selectors > 0 && last->keys == 0 && !last->has_size && g->plan->sized > 0;
}

static void pass_run(struct grader *g, const struct span *span)
{
    const struct counts *c = &span->counts;
    uint64_t before = g->db.selected ? g->db.db : UINT64_MAX;
    g->db.keys += c->keys - span->trim;
    g->db.expires += c->expires;
    if (c->selectors > 0) {
        g->db = c->last;
        g->supposed = 0;
    }
    bool lost = span->early_end || span->false_end || c->nested;
    if (lost)
        g->db.selected = g->db.has_size = false;
    g->db_lost = lost || (g->db_lost && c->selectors == 0);
    g->bare = ends_bare(g, span);
    if (g->bare) {
        g->db = (struct db_state){.db = rdb_recover_spare_db(g->plan, before)};
        g->db_lost = true;
    }
    if (c->sized > 0)
        g->size_at = c->size_at;
    g->any_keys |= c->all_keys > 0 || c->selectors > 0;
}

static void note_dbs(struct plan *plan)
{
    plan->dbs_seen = 0;
    plan->high = 0;
    plan->sized = 0;
    for (size_t i = 0; i < plan->n; i++) {
        plan->dbs_seen |= plan->spans[i].counts.dbs_seen;
        plan->high += plan->spans[i].counts.high;
        plan->sized += plan->spans[i].counts.sized;
    }
}

/* Databases are in ascending order. The run that leads to the end of the file ends correctly:
 * earlier selectors of its databases, or of later ones, are parts of values. */
static void compare_order(struct plan *plan)
{
    struct span *last = &plan->spans[plan->n - 1];
    uint64_t from = RD_NO_OFFSET;
    if (plan->n < 2 || plan->sealed || !last->to_end || last->counts.selectors == 0 ||
        last->counts.first_db >= DBS_TRACKED)
        return;
    for (uint64_t db = last->counts.first_db; db < DBS_TRACKED; db++)
        if (plan->taken_in[db] < from)
            from = plan->taken_in[db];
    for (struct span *span = plan->spans; span < last; span++) {
        span->untrusted = span->from > from;
        if (span->from <= from && span->to > from && span[1].place > from) {
            span[1].place = from;
            span->false_end = true;
        }
    }
}

void rdb_recover_grade(const struct scan *s, struct plan *plan)
{
    struct grader g = {
        .s = s, .plan = plan, .lost_from = RDB_MAGIC_LEN, .damaged_from = RD_NO_OFFSET};
    g.bytes_per_key = bytes_per_key(plan);
    plan->good = 0;
    plan->needed = RDB_RECOVER_VERSION_LEAST;
    note_dbs(plan);
    compare_order(plan);
    for (size_t i = 0; i < plan->n; i++) {
        struct span *span = &plan->spans[i];
        const struct span *next = i + 1 < plan->n ? span + 1 : NULL;
        span->start_db = g.db.db;
        if (g.lost_from == RD_NO_OFFSET)
            g.lost_from = span->lost_from;
        if (span->place < g.damaged_from)
            g.damaged_from = span->place;
        g.at_end |= span->at_end;
        g.magic |= span->magic;
        g.headed |= span->headed;
        span->magic = g.magic;
        span->headed = g.headed;
        span->grade = grade_of(&g, span, next, i == 0);
        g.lost += span->from - span->lost_from;
        if (span->grade == RDB_GRADE_NONE && is_supposed(&g, span)) {
            suppose(&g, span);
            continue;
        }
        if (span->from == span->to || span->grade == RDB_GRADE_NONE)
            continue;
        if (i > 0 || span->lost_from != span->from)
            after_loss(&g, span);
        if (span->mark < span->fields)
            doubt_first(span, span->fields);
        span->expiry_doubt &= !span->apart;
        pass_run(&g, span);
        plan->good += span->counts.all_keys - span->trim;
        if (span->counts.needed > plan->needed)
            plan->needed = span->counts.needed;
        g.lost_from = g.damaged_from = RD_NO_OFFSET;
        g.at_end = g.magic = g.headed = false;
        g.lost = 0;
    }
}
