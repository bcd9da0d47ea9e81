#include "rdb/salvage.h"

#include "base/buf.h"
#include "base/endian.h"
#include "base/mem.h"
#include "base/sized.h"
#include "rdb/recover/correction.h"
#include "rdb/recover/recover_impl.h"
#include "rdb/name_match.h"

#include <stdio.h>

const char *rdb_grade_word(enum rdb_grade grade)
{
    static const char *const words[] = {"none", "one", "both"};
    return words[grade];
}

const char *rdb_doubt_word(enum rdb_doubt doubt)
{
    switch (doubt) {
    case RDB_DOUBT_ANCHOR:
        return "no-anchor";
    case RDB_DOUBT_FIELD:
        return "may-be-field";
    case RDB_DOUBT_EXPIRY:
        return "expiry-unknown";
    case RDB_DOUBT_DB:
        return "database-unknown";
    case RDB_DOUBT_BESIDE:
        return "beside-damage";
    case RDB_DOUBT_MODULE:
        return "module-unknown";
    }
    return "";
}

/* One snapshot that is written. Records that follow each other in the input are written at once. */
struct output {
    struct rd_sink *sink; /* NULL: nothing is written */
    bool began;
    bool seal;
    uint64_t db;       /* selected in it */
    uint64_t from, to; /* of the input, not written yet */
    struct rdb_keyset keys;
};

struct salvage {
    struct scan scan;
    struct plan plan;
    const struct rdb_salvage_opts *opts;
    struct rdb_salvage_result *res;
    struct rdb_recover_input in;
    struct rdb_name_match match;
    struct rdb_recover_modules modules;
    struct output out, doubtful;
    struct rdb_salvage_run run; /* not reported yet; from == to: none */
    struct record rec;
    bool kept_key;           /* the last key is in the output */
    struct rd_buf templates; /* by number: enum template_place */
    struct rd_err *err;
};

/* Where the names are that hashes share. */
enum template_place {
    TEMPLATE_IN_OUT = 1,
    TEMPLATE_IN_DOUBTFUL = 2, /* the other output */
    TEMPLATE_DOUBTED = 4
};

/* The part of the walk that is in one span. */
struct place {
    const struct span *span;
    uint64_t damaged_from; /* records from here on may be damaged */
    uint64_t beside;       /* values from here on are beside damage */
    uint64_t n;            /* records before */
    uint64_t n_keys;       /* keys before */
    uint64_t db;           /* in which keys are written */
    uint64_t first_key;    /* its start, where the run begins with it; else RD_NO_OFFSET */
    bool selected, descends;
    uint64_t selector; /* the last one */
    bool after_damage; /* of a record, or of the header */
    bool db_doubt;
    bool in_slot; /* the keys of `slot` follow, so many as `slot_keys` */
    uint64_t slot, slot_keys;
    bool weigh_sizes; /* bytes are lost: a size that does not fit is evidence of damage */
};

/* -- output -- */

static bool sink_failed(struct salvage *v, struct output *out)
{
    rd_err_adopt(v->err, rd_sink_err(out->sink));
    return false;
}

static bool begin_output(struct salvage *v, struct output *out)
{
    char magic[16];
    if (out->began)
        return true;
    snprintf(magic, sizeof magic, v->res->dialect == RDB_VALKEY ? "VALKEY%03d" : "REDIS%04d",
             v->res->version);
    rd_sink_sum_begin(out->sink, 0);
    out->began = true;
    return rd_sink_write(out->sink, magic, RDB_MAGIC_LEN) || sink_failed(v, out);
}

static bool copy_range(struct salvage *v, struct output *out, uint64_t from, uint64_t to)
{
    if (from < to && !rd_src_seek(v->in.copy, from, v->err))
        return false;
    while (from < to) {
        struct rd_slice s;
        if (rd_src_need(v->in.copy, 1, &s) != RD_SRC_OK)
            return rdb_recover_truncated(v->in.copy, v->err);
        size_t n = s.len < to - from ? s.len : (size_t)(to - from);
        if (!rd_sink_write(out->sink, s.ptr, n))
            return sink_failed(v, out);
        rd_src_consume(v->in.copy, n);
        from += n;
    }
    return true;
}

static bool flush(struct salvage *v, struct output *out)
{
    uint64_t from = out->from;
    out->from = out->to;
    return copy_range(v, out, from, out->to);
}

static bool select_db(struct salvage *v, struct output *out, uint64_t db)
{
    uint8_t op[1 + 9] = {RDB_OP_SELECTDB};
    size_t n = 2;
    if (out->db == db)
        return true;
    out->db = db;
    if (db < 64) {
        op[1] = (uint8_t)db;
    } else if (db < 16384) {
        op[1] = (uint8_t)(0x40 | db >> 8);
        op[2] = (uint8_t)db;
        n = 3;
    } else {
        op[1] = 0x81;
        rd_put_be64(op + 2, db);
        n = 10;
    }
    return rd_sink_write(out->sink, op, n) || sink_failed(v, out);
}

/* Appends a record; `db` is that of a key, RDB_UNKNOWN for what belongs to none. */
static bool keep_record(struct salvage *v, struct output *out, const struct record *rec,
                        uint64_t db)
{
    if (out->sink == NULL)
        return true;
    bool follows = out->to == rec->start && (db == RDB_UNKNOWN || db == out->db);
    if (!follows) {
        if (!flush(v, out) || !begin_output(v, out) ||
            (db != RDB_UNKNOWN && !select_db(v, out, db)))
            return false;
        out->from = rec->start;
    }
    out->to = rec->end;
    return true;
}

static bool end_output(struct salvage *v, struct output *out)
{
    if (out->sink == NULL)
        return true;
    if (!flush(v, out) || !begin_output(v, out))
        return false;
    uint8_t end[1 + RDB_TRAILER_LEN] = {RDB_OP_EOF};
    if (!rd_sink_write(out->sink, end, 1))
        return sink_failed(v, out);
    if (out->seal)
        rd_put_le64(end + 1, rd_sink_sum(out->sink));
    return v->res->version < RDB_VERSION_CHECKSUM ||
           rd_sink_write(out->sink, end + 1, RDB_TRAILER_LEN) || sink_failed(v, out);
}

/* Equal hashes are not enough to drop a key. */
static bool is_same_name(struct salvage *v, const struct record *rec, uint64_t other)
{
    if (v->match.of == NULL)
        rdb_name_match_init(&v->match, v->scan.file, v->scan.dialect, v->scan.version);
    return rdb_name_match_compare(&v->match, rec->start, other) != RDB_NAME_DIFFERENT;
}

/* Was a key of this name kept before? If not, it is now. Another name of the same hash is kept in
 * another place. */
static bool is_known(struct salvage *v, struct output *out, const struct record *rec, bool *ret)
{
    struct rdb_keyset_slot key = {rec->hash, rec->start};
    struct rdb_keyset_slot other;
    enum rdb_keyset_status st;
    *ret = false;
    while ((st = rdb_keyset_add(&out->keys, &key, &other, v->err)) == RDB_KEYSET_KNOWN && !*ret) {
        *ret = is_same_name(v, rec, other.record);
        key.hash = key.hash * 0x9e3779b97f4a7c15u | 1;
    }
    rd_err_adopt(v->err, &v->match.err);
    return st != RDB_KEYSET_FAIL && v->match.err.code == RD_ERR_OK;
}

/* -- report -- */

static struct rd_slice name_of(const struct record *rec)
{
    return rd_slice(rec->key,
                    rec->key_len < sizeof rec->key ? (size_t)rec->key_len : sizeof rec->key);
}

static void show_loss(struct salvage *v, const struct rdb_loss *loss)
{
    struct rdb_loss shown = *loss;
    shown.from += v->in.shift;
    shown.to += v->in.shift;
    shown.at += shown.at != RD_NO_OFFSET ? v->in.shift : 0;
    if (v->opts->loss != NULL)
        v->opts->loss(v->opts->ctx, &shown);
}

static void report_loss(struct salvage *v, struct rdb_loss *loss, const struct record *rec)
{
    if (v->res->first_loss == RD_NO_OFFSET)
        v->res->first_loss = loss->from;
    if (loss->from < v->res->damage)
        v->res->damage = loss->from;
    if (rec != NULL && rec->has_key) {
        loss->has_key = true;
        loss->key_len = rec->key_len;
        loss->key = name_of(rec);
        loss->type = rec->type;
    }
    show_loss(v, loss);
}

static void end_run(struct salvage *v)
{
    struct rdb_salvage_run shown = v->run;
    shown.from += v->in.shift;
    shown.to += v->in.shift;
    if (v->run.from < v->run.to && v->opts->run != NULL)
        v->opts->run(v->opts->ctx, &shown);
    v->run.from = v->run.to = RD_NO_OFFSET;
}

/* The record belongs to the run, or begins one. */
static void add_to_run(struct salvage *v, const struct place *p, unsigned doubts, bool left_out,
                       bool key)
{
    struct rdb_salvage_run *run = &v->run;
    bool same = run->to == v->rec.start && run->grade == p->span->grade && run->doubts == doubts &&
                run->left_out == left_out && run->db == p->db;
    if (!same) {
        end_run(v);
        *run = (struct rdb_salvage_run){.from = v->rec.start,
                                        .db = p->db,
                                        .grade = p->span->grade,
                                        .doubts = doubts,
                                        .left_out = left_out};
    }
    run->to = v->rec.end;
    run->keys += key;
}

static void lost_key(struct salvage *v, const struct record *rec, const char *why)
{
    struct rdb_loss loss = {.kind = RDB_LOSS_KEY,
                            .from = rec->start,
                            .to = rec->end,
                            .at = RD_NO_OFFSET,
                            .why = why,
                            .db = rec->db};
    v->res->keys_dropped++;
    report_loss(v, &loss, rec);
}

/* -- what is kept -- */

/* The type of a module that may be damaged bytes. */
static bool is_unknown_module(const struct salvage *v, const struct record *rec)
{
    return rec->has_module && !v->res->proved && !v->scan.sealed &&
           !rdb_recover_module_is_proved(&v->modules, rec->module_id);
}

static unsigned doubts_of(const struct salvage *v, const struct place *p, const struct record *rec)
{
    const struct span *span = p->span;
    unsigned doubts = is_unknown_module(v, rec) ? RDB_DOUBT_MODULE : 0;
    if (span->grade == RDB_GRADE_NONE || p->n_keys < span->trim)
        doubts |= RDB_DOUBT_ANCHOR;
    else if (p->n_keys < span->trim + span->mark || rec->start < span->inside)
        doubts |= RDB_DOUBT_FIELD;
    /* More keys than the database announces: values were read as keys, or a selector was lost. */
    if (p->weigh_sizes && rec->start >= span->counts.excess_from &&
        rec->start < span->counts.excess_to)
        doubts |= RDB_DOUBT_FIELD | RDB_DOUBT_DB;
    /* A key of another slot, or one too many: it was read out of a value. */
    if (p->weigh_sizes && p->in_slot && (rec->slot != p->slot || p->slot_keys == 0))
        doubts |= RDB_DOUBT_FIELD;
    if (span->expiry_doubt && !rec->expires &&
        (rec->start == p->first_key || (span->trim > 0 && p->n_keys == span->trim)))
        doubts |= RDB_DOUBT_EXPIRY;
    if (p->db_doubt)
        doubts |= RDB_DOUBT_DB;
    bool first = p->after_damage && rec->start == p->first_key;
    if (first || rec->start >= p->damaged_from || rec->start >= p->beside)
        doubts |= RDB_DOUBT_BESIDE;
    return doubts;
}

/* -- hashes that share names -- */

static unsigned template_of(const struct salvage *v, const struct record *rec)
{
    return rec->names_id < v->templates.len ? v->templates.ptr[rec->names_id] : 0;
}

/* Both outputs get the names, because hashes in both may need them. */
static bool keep_template(struct salvage *v, bool left_out, unsigned doubts)
{
    const struct record *rec = &v->rec;
    while (v->templates.len <= rec->names_id)
        if (!rd_buf_add_byte(&v->templates, 0))
            return rd_err_nomem(v->err, 1);
    unsigned place = TEMPLATE_IN_DOUBTFUL | (left_out ? 0 : TEMPLATE_IN_OUT);
    v->templates.ptr[rec->names_id] = (uint8_t)(place | (doubts != 0 ? TEMPLATE_DOUBTED : 0));
    return keep_record(v, &v->doubtful, rec, RDB_UNKNOWN) &&
           (left_out || keep_record(v, &v->out, rec, RDB_UNKNOWN));
}

/* Whether the names of the hash are not in its output. */
static bool lacks_names(const struct salvage *v, const struct record *rec, bool left_out)
{
    unsigned place = left_out ? TEMPLATE_IN_DOUBTFUL : TEMPLATE_IN_OUT;
    return rec->names_id != RDB_UNKNOWN && (template_of(v, rec) & place) == 0;
}

static void report_doubt(struct salvage *v, const struct place *p, unsigned doubts, bool left_out)
{
    const struct rdb_salvage_doubt doubt = {.offset = v->rec.start + v->in.shift,
                                            .db = p->db,
                                            .key = name_of(&v->rec),
                                            .key_len = v->rec.key_len,
                                            .type = v->rec.type,
                                            .doubts = doubts,
                                            .left_out = left_out};
    if (v->opts->doubt != NULL)
        v->opts->doubt(v->opts->ctx, &doubt);
}

/* Drops a key that was kept before. Either of the two may be a false match. */
static void drop_duplicate(struct salvage *v)
{
    lost_key(v, &v->rec, "duplicate-key");
    if (v->scan.db_at < v->res->damage)
        v->res->damage = v->scan.db_at;
}

static bool take_key(struct salvage *v, const struct place *p)
{
    struct record *rec = &v->rec;
    bool known;
    unsigned doubts = doubts_of(v, p, rec);
    if ((template_of(v, rec) & TEMPLATE_DOUBTED) != 0)
        doubts |= RDB_DOUBT_BESIDE;
    v->kept_key = false;
    bool left_out =
        (doubts & (RDB_DOUBT_ANCHOR | RDB_DOUBT_MODULE)) != 0 || (v->opts->strict && doubts != 0);
    struct output *out = left_out ? &v->doubtful : &v->out;
    if (rec->refused != NULL || lacks_names(v, rec, left_out)) {
        if (!left_out)
            lost_key(v, rec, rec->refused != NULL ? rec->refused : "lost-template");
        return true;
    }
    if (!is_known(v, out, rec, &known))
        return false;
    if (known) {
        if (!left_out)
            drop_duplicate(v);
        return true;
    }
    if (rec->unwanted) {
        v->res->keys_unwanted += !left_out;
        return true;
    }
    add_to_run(v, p, doubts, left_out, true);
    if (doubts != 0)
        report_doubt(v, p, doubts, left_out);
    v->res->keys += !left_out;
    v->res->keys_left_out += left_out;
    v->res->keys_doubted += !left_out && doubts != 0;
    v->kept_key = !left_out;
    return keep_record(v, out, rec, p->db);
}

/* A field, a function, what a module keeps beside the keys. */
static bool take_other(struct salvage *v, const struct place *p)
{
    const struct record *rec = &v->rec;
    struct rdb_loss loss = {.kind = RDB_LOSS_RANGE,
                            .from = rec->start,
                            .to = rec->end,
                            .at = RD_NO_OFFSET,
                            .why = rec->refused,
                            .resync = "the next record",
                            .db = rec->db};
    if (rec->is_template && rec->refused == NULL && p->span->grade == RDB_GRADE_NONE)
        return keep_template(v, true, RDB_DOUBT_ANCHOR);
    if (p->span->grade == RDB_GRADE_NONE || (rec->of_last && !v->kept_key))
        return true;
    if (rec->module_aux && v->opts->no_modules) {
        v->res->modules_left_out++;
        return true;
    }
    if (rec->refused == NULL && is_unknown_module(v, rec)) {
        /* It need not be damaged. */
        loss.why = "module-unknown";
        v->res->ranges++;
        v->res->bytes_lost += rec->end - rec->start;
        show_loss(v, &loss);
        return true;
    }
    unsigned doubts = rec->start >= p->damaged_from ? RDB_DOUBT_BESIDE : 0;
    bool left_out = v->opts->strict && doubts != 0;
    if (rec->refused == NULL) {
        add_to_run(v, p, doubts, left_out, false);
        v->res->others += !left_out && !rec->has_name;
        if (rec->is_template)
            return keep_template(v, left_out, doubts);
        return left_out || keep_record(v, &v->out, rec, RDB_UNKNOWN);
    }
    v->res->ranges++;
    v->res->bytes_lost += rec->end - rec->start;
    report_loss(v, &loss, NULL);
    return true;
}

/* A selector that only damage makes name a database that servers do not have by default so. */
static bool is_wild(const struct salvage *v, const struct place *p, const struct span *next)
{
    enum { NEAR = 64 };
    const struct record *rec = &v->rec;
    if (rec->db < RDB_RECOVER_DBS_DEFAULT || v->res->proved || v->plan.high > 1)
        return false;
    bool after = p->span->lost_from < p->span->from && p->n < 2;
    bool before =
        next != NULL && (rec->start >= next->place || next->lost_from - rec->start < NEAR);
    return v->plan.n == 1 || after || before;
}

enum { SINCE_SIZES = 7 };

static void take_db(struct salvage *v, struct place *p, const struct span *next)
{
    bool wild = is_wild(v, p, next);
    /* Databases are in order: another order is that of a snapshot inside of a value. */
    p->descends |= p->selected && v->rec.db <= p->selector && !v->res->proved;
    p->selected = true;
    p->selector = v->rec.db;
    /* Directly after damage the selector may be damaged, too. From version 7 on, the size after it
     * speaks for it. */
    bool bare = p->n == 0 && p->after_damage && v->scan.version < SINCE_SIZES;
    p->db_doubt = wild || bare || p->descends || v->rec.start >= p->damaged_from;
    p->db = wild ? rdb_recover_spare_db(&v->plan, p->db) : v->rec.db;
    if (p->span->grade == RDB_GRADE_NONE && p->db >= RDB_RECOVER_DBS_DEFAULT)
        p->db = 0;
    v->scan.db_at = v->rec.start;
}

static bool fail(struct salvage *v)
{
    rd_err_adopt(v->err, &v->scan.err);
    return false;
}

/* A file of a cluster announces each slot and the number of its keys. */
static void follow_slot(struct place *p, const struct record *rec)
{
    if (rec->kind == RECORD_DB) {
        p->in_slot = false;
    } else if (rec->kind == RECORD_HINT && rec->has_slot) {
        p->in_slot = true;
        p->slot = rec->slot;
        p->slot_keys = rec->n_keys;
    } else if (rec->kind == RECORD_KEY && p->slot_keys > 0) {
        p->slot_keys--;
    }
}

static bool take_span(struct salvage *v, const struct span *span, const struct span *next)
{
    struct place p = {.span = span,
                      .db = span->grade == RDB_GRADE_NONE ? span->db : span->start_db,
                      .damaged_from = next != NULL ? next->place : RD_NO_OFFSET,
                      .beside = next != NULL ? next->beside : RD_NO_OFFSET,
                      .first_key = span->from,
                      .after_damage = (span->lost_from < span->from && !span->apart) ||
                                      (v->plan.guessed && span->from == RDB_MAGIC_LEN),
                      .descends = span->magic,
                      .weigh_sizes = v->plan.n > 1 && !v->scan.sealed,
                      .db_doubt = span->db_doubt || span->magic};
    if (p.db >= RDB_RECOVER_DBS_DEFAULT && span->grade == RDB_GRADE_NONE)
        p.db = 0;
    /* Up to what is not known, all is as it was saved. */
    if (v->res->intact && span == v->plan.spans)
        p.damaged_from = p.beside = RD_NO_OFFSET;
    if (span->from < span->to && !rdb_recover_scan_at(&v->scan, span->from, span->db, UINT64_MAX))
        return fail(v);
    struct record *rec = &v->rec;
    rec->db = span->db;
    v->kept_key = false;
    for (uint64_t at = span->from; at < span->to; at = rec->end, p.n++) {
        v->scan.keys_db = p.db;
        enum rdb_recover_status st = rdb_recover_record(&v->scan, rec);
        if (st == RDB_RECOVER_FAIL)
            return fail(v);
        if (st == RDB_RECOVER_BROKEN || rec->end > span->to)
            return rd_err_set(v->err, RD_ERR_IO, at, "the input changed while it was read");
        rdb_recover_keep_templates(&v->scan);
        if (rec->kind == RECORD_DB)
            take_db(v, &p, next);
        if ((rec->kind == RECORD_KEY && !take_key(v, &p)) ||
            (rec->kind == RECORD_OTHER && !take_other(v, &p)))
            return false;
        p.n_keys += rec->kind == RECORD_KEY;
        follow_slot(&p, rec);
        if (v->res->corrected && v->res->correction != RDB_CORRECTION_TRANSFER &&
            at <= v->res->corrected_at && v->res->corrected_at < rec->end)
            v->res->damage = at;
    }
    end_run(v);
    return true;
}

/* -- what is lost -- */

/* Writes what could be read of a collection that breaks. */
static bool keep_part(struct salvage *v, uint64_t *ret_kept)
{
    const struct record *rec = &v->rec;
    struct rdb_recover_part part = {
        .dialect = v->res->dialect, .version = v->scan.version, .out_version = v->res->version};
    bool known = false;
    bool ok = rdb_recover_part_read(&part, v->in.copy, rec, v->err);
    if (ok && part.kept > 0)
        ok = is_known(v, &v->out, rec, &known);
    if (known)
        part.kept = 0;
    if (ok && part.kept > 0)
        ok = flush(v, &v->out) && begin_output(v, &v->out) && select_db(v, &v->out, rec->db) &&
             (rd_sink_write(v->out.sink, part.record.ptr, part.record.len) ||
              sink_failed(v, &v->out));
    *ret_kept = part.kept;
    rd_buf_done(&part.record);
    return ok;
}

/* Reads the record once more that broke. *ret_text: why. */
static bool read_broken(struct salvage *v, const struct span *span, uint64_t db, const char **why,
                        uint64_t *at)
{
    static const char *const words[] = {
        [RDB_RECOVER_WHY_ZEROS] = "a range of zeros",
        [RDB_RECOVER_WHY_EARLY_END] = "end mark with records after it",
        [RDB_RECOVER_WHY_SELECTOR] = "selector of a database without its size",
        [RDB_RECOVER_WHY_SIZE] = "size of a database without its selector",
        [RDB_RECOVER_WHY_ORDER] = "selector of a database after those of later ones"};
    *at = span->broken;
    if (span->why != RDB_RECOVER_WHY_ERROR && span->why != RDB_RECOVER_WHY_REFUSED) {
        *why = words[span->why];
        v->rec.has_key = false;
        return true;
    }
    v->rec.db = db;
    v->scan.keys_db = db;
    if (!rdb_recover_scan_at(&v->scan, span->broken, db, UINT64_MAX) ||
        rdb_recover_record(&v->scan, &v->rec) == RDB_RECOVER_FAIL)
        return fail(v);
    const struct rd_err *err = rdb_reader_err(v->scan.reader);
    *why = v->rec.refused != NULL ? v->rec.refused : err->text;
    *at = v->rec.refused != NULL ? span->broken : err->offset;
    return true;
}

static bool lost_range(struct salvage *v, const struct span *span, uint64_t db)
{
    struct rdb_loss loss = {.kind = RDB_LOSS_RANGE,
                            .from = span->lost_from,
                            .to = span->from,
                            .resync =
                                span->resync != NULL ? span->resync : "no sound record after it",
                            .db = db};
    char text[RD_ERR_TEXT_MAX];
    if (!read_broken(v, span, db, &loss.why, &loss.at))
        return false;
    snprintf(text, sizeof text, "%s", loss.why);
    loss.why = text;
    const struct record *rec = &v->rec;
    bool whole = span->framed && rec->end == span->from;
    if (span->why == RDB_RECOVER_WHY_REFUSED && whole && rec->refused != NULL) {
        lost_key(v, rec, rec->refused);
        return true;
    }
    bool head = span->lost_from == span->broken && rec->has_key;
    if (head && v->opts->partial && v->out.sink != NULL && rec->refused == NULL && !rec->unwanted &&
        rdb_recover_part_possible(v->res->version, rec->type)) {
        if (!keep_part(v, &loss.kept))
            return false;
        if (loss.kept > 0) {
            loss.kind = RDB_LOSS_PARTIAL;
            v->res->keys_partial++;
            v->res->keys++;
        }
    }
    v->res->ranges++;
    v->res->bytes_lost += loss.to - loss.from;
    report_loss(v, &loss, head ? rec : NULL);
    return true;
}

/* -- the second walk -- */

/* The version of the output. If it is only guessed, the first one that supports all records. */
static int version_of(const struct plan *plan)
{
    bool known = rdb_version_known(plan->dialect, plan->version);
    if (!plan->guessed || (known && (plan->by_release != 0 || plan->dialect == RDB_VALKEY)))
        return plan->version;
    return plan->dialect == RDB_VALKEY ? RDB_VERSION_VALKEY_MAX : plan->needed;
}

static void set_result(struct salvage *v)
{
    struct rdb_salvage_result *res = v->res;
    const struct plan *plan = &v->plan;
    res->dialect = plan->dialect;
    res->version = version_of(plan);
    res->guessed_version = plan->guessed;
    res->header_version = plan->header_version;
    res->found_end = plan->found_end;
    res->damage = !res->corrected                     ? plan->damage
                  : res->corrected_at < RDB_MAGIC_LEN ? 0
                                                      : res->corrected_at;
}

/* Offsets of the input, in place of those of the snapshot in it. */
static void shift_result(struct salvage *v)
{
    struct rdb_salvage_result *res = v->res;
    res->first_loss += res->first_loss != RD_NO_OFFSET ? v->in.shift : 0;
    if (res->correction == RDB_CORRECTION_TRANSFER)
        res->damage = 0;
    else
        res->damage += res->damage != RD_NO_OFFSET ? v->in.shift : 0;
    res->corrected_at += v->in.shift;
    res->corrected_other += v->in.shift;
}

static bool run(struct salvage *v, struct rd_src *src)
{
    bool sealed;
    if (!rdb_recover_choose(&v->in, src, &sealed))
        return false;
    bool has_sum = v->plan.version >= RDB_VERSION_CHECKSUM;
    v->res->intact &= has_sum;
    v->res->proved = v->res->intact || (sealed && v->plan.found_end && !v->plan.guessed && has_sum);
    set_result(v);
    if (!rdb_recover_modules_count(&v->scan, &v->plan, &v->modules, v->err))
        return false;
    v->out.seal = v->res->sealed =
        (v->res->proved || v->opts->reseal) && v->res->version >= RDB_VERSION_CHECKSUM;
    uint64_t db = 0;
    for (size_t i = 0; i < v->plan.n; i++) {
        const struct span *span = &v->plan.spans[i];
        const struct span *next = i + 1 < v->plan.n ? span + 1 : NULL;
        if (i > 0 && !lost_range(v, span, db))
            return false;
        if (!take_span(v, span, next))
            return false;
        if (span->grade != RDB_GRADE_NONE)
            db = span->counts.selectors > 0 ? span->counts.last.db : span->start_db;
    }
    shift_result(v);
    return end_output(v, &v->out) && end_output(v, &v->doubtful);
}

bool rdb_salvage(struct rd_src *src, struct rd_src *copy, struct rd_sink *out,
                 const struct rdb_salvage_opts *opts, struct rdb_salvage_result *ret,
                 struct rd_err *err)
{
    struct rd_err own = {0};
    struct rd_err *e = err != NULL ? err : &own;
    struct rdb_salvage_opts how;
    struct rdb_salvage_result res =
        RDB_SALVAGE_RESULT(.first_loss = RD_NO_OFFSET, .damage = RD_NO_OFFSET);
    if (!rd_sized_is_set(ret, e))
        return false;
    rd_sized_return(ret, &res, sizeof res);
    if (!rd_sized_copy(&how, sizeof how, opts, e))
        return false;
    struct salvage *v = rd_calloc(1, sizeof *v);
    if (v == NULL)
        return rd_err_nomem(e, sizeof *v);
    v->opts = &how;
    v->res = &res;
    v->in = (struct rdb_recover_input){
        .scan = &v->scan, .plan = &v->plan, .opts = &how, .res = &res, .copy = copy, .err = e};
    v->out = (struct output){.sink = out, .db = UINT64_MAX};
    v->doubtful = (struct output){.sink = how.doubtful, .db = UINT64_MAX};
    v->run.from = v->run.to = RD_NO_OFFSET;
    v->err = e;
    bool ok = run(v, src);
    res.unchecked = v->out.keys.lost;
    rd_sized_return(ret, &res, sizeof res);
    rdb_name_match_done(&v->match);
    rdb_recover_modules_done(&v->modules);
    rdb_recover_plan_done(&v->plan);
    rdb_recover_scan_done(&v->scan);
    rdb_recover_input_done(&v->in);
    rdb_keyset_done(&v->out.keys);
    rdb_keyset_done(&v->doubtful.keys);
    rd_buf_done(&v->templates);
    rd_free(v);
    return ok;
}
