/* choose.c - chooses the bytes that are read: those of the input, those before a transfer changed
 * them, or those that its checksum proves. */
#include "rdb/recover/correction.h"
#include "rdb/recover/recover_impl.h"
#include "rdb/recover/transfer.h"

enum { MISPLACED_MARGIN = 64 << 10 }; /* bytes */

static bool read_byte(struct rdb_recover_input *v, struct rd_src *src, uint64_t at, uint8_t *ret)
{
    struct rd_slice s;
    if (!rd_src_seek(src, at, v->err))
        return false;
    if (rd_src_need(src, 1, &s) != RD_SRC_OK)
        return rdb_recover_truncated(src, v->err);
    *ret = s.ptr[0];
    return true;
}

static bool make_plan(struct rdb_recover_input *v, struct rd_src *src, bool sealed)
{
    return rdb_recover_plan(v->scan, src, sealed, v->opts, v->plan, v->err);
}

static void discard_plan(struct rdb_recover_input *v)
{
    rdb_recover_plan_done(v->plan);
    rdb_recover_scan_done(v->scan);
    *v->plan = (struct plan){0};
}

/* Reads the file with the correction. *src is replaced if it is sound to the last record so. */
static bool try_correction(struct rdb_recover_input *v, const struct rdb_correction *correction,
                           struct rd_src **src)
{
    struct rdb_salvage_result *res = v->res;
    bool byte = correction->kind == RDB_CORRECTION_BYTE;
    if ((byte && !read_byte(v, *src, correction->at, &res->corrected_from)) ||
        !rdb_recover_open_corrected(&v->corrected[0], *src, correction, v->err) ||
        !make_plan(v, v->corrected[0], true))
        return false;
    res->corrected =
        rdb_recover_is_whole(v->plan, rd_src_size(v->corrected[0])) && !v->plan->guessed;
    if (!res->corrected) {
        discard_plan(v);
        rd_src_close(v->corrected[0]);
        v->corrected[0] = NULL;
        return true;
    }
    res->correction = correction->kind;
    res->corrected_at = correction->at;
    res->corrected_to = res->corrected_from ^ correction->change;
    res->corrected_len = correction->len;
    res->corrected_other = correction->other;
    memcpy(res->restored, correction->bytes, sizeof res->restored);
    *src = v->corrected[0];
    if (v->copy == NULL)
        return true;
    bool ok = rdb_recover_open_corrected(&v->corrected[1], v->copy, correction, v->err);
    v->copy = v->corrected[1];
    return ok;
}

/* The file was read without a correction. Bytes may be in the wrong place near the first record
 * that could not be read. */
static bool correct_places(struct rdb_recover_input *v, struct rd_src **src)
{
    const struct plan *plan = v->plan;
    struct rdb_correction correction;
    uint64_t from = plan->damage != RD_NO_OFFSET ? plan->damage : 0;
    uint64_t to = plan->n > 1 ? plan->spans[1].from : rd_src_size(*src);
    if (plan->n > 1 && plan->spans[1].lost_from < from)
        from = plan->spans[1].lost_from;
    from = from > MISPLACED_MARGIN ? from - MISPLACED_MARGIN : 0;
    if (!rdb_recover_find_misplaced(*src, from, to + MISPLACED_MARGIN, &correction, v->err))
        return false;
    if (correction.kind == RDB_CORRECTION_NONE)
        return true;
    discard_plan(v);
    return try_correction(v, &correction, src) && (v->res->corrected || make_plan(v, *src, false));
}

/* Finds the runs of records. *ret_sealed: the checksum at the end of the file, or before trailing
 * bytes, matches. *ret_exact: the snapshot ends with the source. */
static bool plan_bytes(struct rdb_recover_input *v, struct rd_src *src, bool *ret_sealed,
                       bool *ret_exact)
{
    struct rdb_correction correction;
    if (!rdb_recover_prove(src, rd_src_size(src), ret_sealed, &correction, v->err))
        return false;
    v->res->intact = *ret_sealed;
    if (correction.kind != RDB_CORRECTION_NONE && !try_correction(v, &correction, &src))
        return false;
    if (!v->res->corrected && (!make_plan(v, src, *ret_sealed) ||
                               (!*ret_sealed && !v->plan->end_proved && !correct_places(v, &src))))
        return false;
    *ret_sealed |= v->res->corrected;
    *ret_exact = v->plan->end == rd_src_size(src);
    if (!v->plan->found_end || *ret_exact)
        return true;
    *ret_sealed = v->plan->end_proved;
    return v->plan->n == 1 || rdb_recover_prove(src, v->plan->end, ret_sealed, NULL, v->err);
}

void rdb_recover_input_done(struct rdb_recover_input *v)
{
    for (size_t i = 0; i < 2; i++) {
        rd_src_close(v->corrected[i]);
        rd_src_close(v->restored[i]);
        v->corrected[i] = v->restored[i] = NULL;
    }
}

/* What precedes the snapshot, or the change of the text, explains the input: it is sound without,
 * or the bytes before it cannot be part of a snapshot. A whole snapshot may also be in a value, or
 * its header may have been moved there: bytes that are not text need the proof, and nothing may
 * follow the snapshot. */
static bool is_explained(const struct rdb_recover_input *v, const struct rdb_transfer *t,
                         bool sealed, bool exact)
{
    bool readable = t->before == RDB_BEFORE_REPLICATION || t->before == RDB_BEFORE_TEXT;
    bool whole = sealed || rdb_recover_is_whole(v->plan, v->plan->end);
    if (t->before == RDB_BEFORE_BYTES)
        return sealed && exact && !v->plan->guessed;
    return (t->text == 0 && readable) || (whole && !v->plan->guessed);
}

static void set_transfer(struct rdb_recover_input *v, const struct rdb_transfer *t, bool sealed)
{
    struct rdb_salvage_result *res = v->res;
    bool ends = v->plan->found_end && v->plan->end < t->len && !res->corrected;
    res->before = t->before;
    res->before_len = t->at;
    res->after_len = t->after + (ends ? t->len - v->plan->end : 0);
    res->text = t->text;
    v->shift = t->text == 0 ? t->at : 0;
    if (sealed && !res->corrected) {
        res->corrected = true;
        res->correction = RDB_CORRECTION_TRANSFER;
    }
}

/* The snapshot as it was before a transfer, if that explains the input, or as it must be.
 * *ret_good: the keys in it that have an anchor. */
static bool plan_transfer(struct rdb_recover_input *v, struct rd_src *src,
                          const struct rdb_transfer *t, bool *ret_sealed, bool *ret_taken,
                          uint64_t *ret_good)
{
    const struct rdb_salvage_result none = *v->res;
    struct rd_src *copy = v->copy;
    bool exact = false;
    bool must = *ret_taken;
    if (!rdb_recover_open_restored(&v->restored[0], src, t, v->err) ||
        (copy != NULL && !rdb_recover_open_restored(&v->restored[1], copy, t, v->err)))
        return false;
    v->copy = v->restored[1];
    if (!plan_bytes(v, v->restored[0], ret_sealed, &exact))
        return false;
    *ret_good = v->plan->good;
    *ret_taken = must || is_explained(v, t, *ret_sealed, exact);
    if (*ret_taken) {
        set_transfer(v, t, *ret_sealed);
        return true;
    }
    discard_plan(v);
    rdb_recover_input_done(v);
    v->copy = copy;
    *v->res = none;
    return true;
}

/* Tries the changes of the text that nothing contradicts, all of them and then one alone: every LF
 * may have followed a CR before. *ret_taken: one explains the input. Otherwise *ret is the one with
 * which most keys can be read, and *ret_good their number. */
static bool try_transfers(struct rdb_recover_input *v, struct rd_src *src, bool *ret_sealed,
                          bool *ret_taken, struct rdb_transfer *ret, uint64_t *ret_good)
{
    static const unsigned changes[] = {RDB_TEXT_CRLF | RDB_TEXT_UTF8, RDB_TEXT_UTF8, RDB_TEXT_CRLF};
    unsigned possible = 0;
    *ret_taken = false;
    *ret = (struct rdb_transfer){0};
    *ret_good = 0;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0] && !*ret_taken; i++) {
        struct rdb_transfer t;
        uint64_t good = 0;
        if (i > 0 && possible != changes[0])
            break;
        if (!rdb_recover_find_transfer(src, changes[i], &t, v->err) ||
            (t.found && !plan_transfer(v, src, &t, ret_sealed, ret_taken, &good)))
            return false;
        possible = i == 0 ? t.text : possible;
        if (t.text != 0 && good > *ret_good) {
            *ret = t;
            *ret_good = good;
        }
    }
    return true;
}

/* No checksum proves the file. An output that was appended to, such as that of a transfer that was
 * repeated, may end with a whole snapshot. */
static bool choose_last(struct rdb_recover_input *v, struct rd_src *src, bool *ret_sealed,
                        bool *ret_taken)
{
    struct rdb_transfer last;
    uint64_t good;
    *ret_taken = false;
    if (v->plan->n > 0 && v->plan->spans[0].early_end)
        return true; /* it begins with a whole one, too */
    if (!rdb_recover_find_last(src, &last, v->err))
        return false;
    if (!last.found)
        return true;
    discard_plan(v);
    *ret_taken = true;
    return plan_transfer(v, src, &last, ret_sealed, ret_taken, &good);
}

bool rdb_recover_choose(struct rdb_recover_input *v, struct rd_src *src, bool *ret_sealed)
{
    struct rdb_transfer best;
    bool exact = false;
    bool taken;
    uint64_t good;
    if (!try_transfers(v, src, ret_sealed, &taken, &best, &good))
        return false;
    if (taken)
        return true;
    if (!plan_bytes(v, src, ret_sealed, &exact))
        return false;
    if (!*ret_sealed && !choose_last(v, src, ret_sealed, &taken))
        return false;
    if (taken)
        return true;
    /* The snapshot is damaged, too. Without the change of the text, more of it can be read. */
    if (v->plan->good >= good)
        return true;
    discard_plan(v);
    rd_src_close(v->corrected[0]);
    rd_src_close(v->corrected[1]);
    v->corrected[0] = v->corrected[1] = NULL;
    taken = true;
    return plan_transfer(v, src, &best, ret_sealed, &taken, &good);
}
