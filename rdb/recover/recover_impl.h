/* recover_impl.h - declarations shared by the parts of salvage.
 *
 *     record.c                 reads one record, with the results of the deep check
 *     resync.c                 searches for the next position from which records can be read
 *     survey.c                 the first pass over the file: readable records and lost ranges
 *     grade.c                  the evidence for each run of records, and its doubts
 *     version.c                finds out which version wrote the file
 *     place.c                  finds the first record that may be damaged, before the failure
 *     choose.c                 the bytes that are read: as they are, or with a correction
 *     transfer.c               what a transfer did to the file
 *     correction.c             what the checksum proves, and reading with a correction
 *     correction_misplaced.c   finds inserted bytes and exchanged blocks by the checksum
 *     fields.c                 the end of a damaged hash with field expiries
 *     modules.c                what proves the type of a module
 *     part.c                   the elements of a damaged collection that were read
 *     ../salvage.c             the second pass: writes and reports
 */
#ifndef RDB_RECOVER_RECOVER_IMPL_H
#define RDB_RECOVER_RECOVER_IMPL_H

#include "base/buf.h"
#include "rdb/keyset.h"
#include "rdb/reader.h"
#include "rdb/salvage.h"

enum {
    DBS_TRACKED = 64,
    WEIGHT_KEY = 8,
    WEIGHT_FIELD = 1,   /* of a string that may be a field of a hash with field expiries */
    WEIGHT_ANCHOR = 24, /* of an opcode that is rare in other bytes */
    CHAIN_STRONG = 64,  /* weight of consecutive records that are accepted as real */
    CHAIN_AT_END = 3,   /* keys, if the file was cut after them */
    SHAPES = 4096,
    RING = 256,           /* records remembered before the current one */
    LOOK_BACK = 1 << 20,  /* bytes of them that are searched; of the last record all */
    CHAIN_BYTES = 4 << 20 /* chains that exceed this after one record are examined later */
};

enum record_kind { RECORD_KEY, RECORD_DB, RECORD_HINT, RECORD_OTHER, RECORD_END };

struct record {
    enum record_kind kind;
    uint64_t start, end;
    uint64_t db;         /* RECORD_DB: the number; otherwise the database of the record */
    const char *refused; /* the id of a finding that makes servers refuse it, or NULL */
    const struct rdb_type *type;
    uint8_t key[RDB_FINDING_KEY_MAX]; /* the name of a key, or of a field before the keys */
    uint64_t key_len;
    uint64_t hash;
    bool has_key;
    bool has_name; /* of a field */
    bool expires;
    bool attributed; /* an expiry or the last access precedes its type */
    bool unwanted;   /* excluded by the caller */
    bool plausible_expiry;
    bool empty_pair; /* an empty string under an empty key: three zero bytes parse as this */
    bool has_slot;   /* RECORD_HINT: the size of a slot; RECORD_KEY: its slot */
    uint64_t slot;
    bool sizes;                 /* RECORD_HINT: the size of a database */
    uint64_t n_keys, n_expires; /* of either kind of size */
    int since;                  /* the first version that supports all of it */
    bool module_aux;            /* what a module keeps beside the keys */
    bool has_module;            /* it is of a module, or the value of a key is */
    uint64_t module_id;
    bool of_last;      /* a field of KeyDB that belongs to the key before it */
    bool is_template;  /* the names of fields that hashes share */
    uint64_t names_id; /* of this template, or of a hash; RDB_UNKNOWN: of none */
};

/* A database: its announced size, and what was read of it. */
struct db_state {
    uint64_t db;
    bool selected;
    bool has_size;
    uint64_t size, size_expires; /* as announced */
    uint64_t keys, expires;      /* as read */
};

/* Counts since the last lost range. */
struct counts {
    uint64_t keys, expires; /* before the first selector */
    uint64_t all_keys;
    uint64_t varied;    /* keys that are not strings, or have an expiry */
    uint64_t swallow;   /* the last key before the first selector that may have taken in records, */
    uint64_t swallowed; /* and the bytes of all of these; swallow counts from 1 */
    uint64_t lead;      /* keys at the start that may be fields of a hash */
    uint64_t aux;       /* fields that precede all keys */
    uint64_t size_at;   /* of the last size of a database */
    uint64_t selectors; /* followed by a size, from version 7 on */
    uint64_t high;      /* of these: of a database number beyond the default of servers */
    uint64_t first_db;
    uint64_t dbs_seen;    /* a bit for each of the first 64 databases */
    uint64_t sized;       /* selectors with a size */
    uint64_t selector_at; /* of the last record if it is a selector; else RD_NO_OFFSET */
    int needed;           /* the first version that supports all of it */
    bool lead_ended;
    bool first_expires;   /* the first key */
    bool descends;        /* a selector's number is not greater than the previous one */
    struct db_state last; /* of the last selector */
    /* The range of databases with more keys than announced, or with fewer if another selector
     * follows. If `few` or `nested`, it extends to the end of the run. */
    uint64_t excess_from, excess_to;
    bool few;    /* a database has fewer keys than it announces, and another selector follows */
    bool nested; /* a database has more, and a snapshot begins in one of its values: later selectors
                    may be those of that snapshot */
};

/* Statistics of the names of keys in this file. */
struct name_stats {
    uint64_t n;
    uint64_t n_printable;
    uint64_t shortest;
    uint64_t least; /* bytes of the shortest record */
};

/* A source that ends early, so that a wrong length does not make the reader read the whole file. */
struct limited {
    struct rd_src *inner;
    uint64_t stop;
};

struct scan {
    struct rd_src *file;
    struct limited limit;
    struct rd_src *src; /* over limit */
    struct rdb_reader *reader;
    const struct rdb_salvage_opts *opts;
    struct rdb_hash_key key; /* of record.hash */
    uint64_t size;
    enum rdb_dialect dialect;
    int version;
    struct rd_err err; /* the reason why salvage cannot continue: I/O, memory */
    struct name_stats name_stats;
    uint64_t shapes[SHAPES / 64];  /* a bit for each kind of key and beginning of its name */
    unsigned n_shapes;             /* bits that are set */
    uint64_t shape_at[SHAPES];     /* the first record that has the shape */
    uint64_t trusted_to;           /* shapes that occur before this offset belong to the file */
    uint64_t settled[SHAPES / 64]; /* shapes of the keys before the last loose collection */
    uint64_t avoid; /* chains must not end a record here: the record at this offset is known to be
                       broken */
    struct {
        uint64_t start;
        uint64_t db;
        struct counts before;
        bool packed;    /* rdb_recover_is_packed() */
        bool alien;     /* a string unlike any key before the last collection */
        bool loose;     /* a collection whose end is proved only by its count */
        bool fields;    /* and a hash with field expiries */
        uint8_t proof;  /* rdb_recover_proof() */
        uint64_t first; /* of a string without expiry: the first record with a name of its shape */
    } ring[RING];
    uint64_t db_at;   /* start of the last database, or of the first record */
    uint64_t keys_db; /* names are compared in this database; RDB_UNKNOWN: in that of the key */
    bool sealed;      /* the checksum at the end of the file matches */
    uint64_t n_ring;  /* records added; the last RING of them are available */
};

bool rdb_recover_scan_init(struct scan *s, struct rd_src *file, const struct rdb_salvage_opts *opts,
                           struct rd_err *err);
void rdb_recover_scan_done(struct scan *s);

/* Creates the reader for a version; called again if the version changes. */
bool rdb_recover_scan_version(struct scan *s, enum rdb_dialect dialect, int version);

/* Moves to an offset, in a database; reading ends at `stop`. */
bool rdb_recover_scan_at(struct scan *s, uint64_t offset, uint64_t db, uint64_t stop);

/* Moving forgets the templates of hashes that were read on trial. The first function keeps all that
 * were read since, the second takes back those that begin at `from` or later. */
void rdb_recover_keep_templates(struct scan *s);
void rdb_recover_take_back_templates(struct scan *s, uint64_t from);

/* RDB_RECOVER_OK: *ret; RDB_RECOVER_BROKEN: rdb_reader_err(s->reader), ret->start and the fields
 * that were read; RDB_RECOVER_FAIL: s->err. */
enum rdb_recover_status { RDB_RECOVER_OK, RDB_RECOVER_BROKEN, RDB_RECOVER_FAIL };
enum rdb_recover_status rdb_recover_record(struct scan *s, struct record *ret);

bool rdb_recover_expiry_is_plausible(int64_t ms);
bool rdb_recover_is_printable(const struct record *rec);
void rdb_recover_name_stats_add(struct name_stats *h, const struct record *rec);

/* Nearly all names are printable. A few false records from damaged bytes must not change that. */
static inline bool rdb_recover_names_printable(const struct name_stats *h)
{
    return h->n_printable * 20 >= h->n * 19;
}

/* A collection with the elements that were read before the damage. */
struct rdb_recover_part {
    enum rdb_dialect dialect;
    int version;          /* of the input */
    int out_version;      /* of the record that is written */
    struct rd_buf record; /* to be freed by the caller */
    uint64_t kept;        /* elements; 0: servers would not accept any part */
};

/* Whether a part of such a value can be kept in a file of that version. */
bool rdb_recover_part_possible(int version, const struct rdb_type *type);
bool rdb_recover_part_read(struct rdb_recover_part *part, struct rd_src *src,
                           const struct record *rec, struct rd_err *err);

/* The size of a database, or a selector with a size, that was found in a lost range. */
struct named_db {
    bool found;
    bool has_db;
    uint64_t db;
    uint64_t size, expires;
};

struct resync {
    bool found;
    uint64_t at;
    uint64_t db;
    const char *how;
    bool selector;         /* the first record is a selector */
    uint64_t value_end;    /* as announced by the lengths of the broken record, or RD_NO_OFFSET */
    bool apart;            /* sound parts of the broken value precede `at` */
    uint64_t fields;       /* so many strings from `at` on may be fields of the broken hash */
    struct named_db named; /* the last selector in the lost range */
    struct named_db trace; /* the selector or size that ends exactly where records are readable
                              again */
};

/* Finds the next position from which records are readable, after the record at `broken` could not
 * be read. The position may be before it, inside one of the records in the ring. */
enum rdb_recover_status rdb_recover_resync(struct scan *s, uint64_t broken, uint64_t db,
                                           struct resync *ret);

/* The end of the record at `broken` by the lengths that it announces, if sound records follow;
 * otherwise *ret is unchanged. */
enum rdb_recover_status rdb_recover_framed(struct scan *s, const struct record *broken,
                                           uint64_t broke_at, struct resync *ret);

/* A hash whose fields without expiry look like string keys. */
bool rdb_recover_has_fields(const struct record *rec);

/* The end of such a hash that is damaged, by the number of fields that it announces. */
enum rdb_recover_status rdb_recover_fields(struct scan *s, const struct record *broken,
                                           struct resync *ret);

/* Whether sound records follow from `at`. `many`: several of them, or all up to the end of the
 * file; otherwise a long one is enough. *ret_next: the end of the first one; may be NULL. */
enum rdb_recover_status rdb_recover_leads_on(struct scan *s, uint64_t at, uint64_t db, bool many,
                                             bool *ret, uint64_t *ret_next);

/* Whether a snapshot begins in [from, to). Records found after it may be part of its contents. */
enum rdb_recover_status rdb_recover_holds_magic(struct scan *s, uint64_t from, uint64_t to,
                                                bool *ret);

/* How strongly the header of a record proves that it was written there, and that the previous
 * record therefore ends correctly. 0: it does not look like a record of this file. */
uint8_t rdb_recover_proof(const struct scan *s, const struct record *rec);
bool rdb_recover_has_head(const struct scan *s, const struct record *rec);
bool rdb_recover_is_proved(const struct scan *s, const struct record *rec);

/* The same, but the name must resemble one from before the first damage. Records after damage
 * cannot prove themselves. */
bool rdb_recover_is_anchor(const struct scan *s, const struct record *rec);

/* Adds the name to those of this file, for rdb_recover_proof() of later names. */
void rdb_recover_shape_add(struct scan *s, const struct record *rec);

/* The first record whose name is similar to that of `rec`, a string without expiry; else
 * RD_NO_OFFSET. */
uint64_t rdb_recover_shape_at(const struct scan *s, const struct record *rec);

/* The kind of key and the beginning of its name, as a number below SHAPES. */
unsigned rdb_recover_shape(const struct record *rec);

/* Whether keys of that kind before an offset have names that begin alike. */
bool rdb_recover_is_shape_before(const struct scan *s, const struct record *rec, uint64_t offset);

/* A string without expiry whose name begins unlike all names before the last loose collection. */
bool rdb_recover_is_alien(const struct scan *s, const struct record *rec);

/* Whether its end is proved by the length that the value itself contains. */
bool rdb_recover_is_packed(const struct record *rec);

/* The record `rec` could not be read, or servers do not write such records. Returns the start of
 * the first record that may be damaged: `rec`, or an earlier one that was read with a wrong length.
 */
uint64_t rdb_recover_place(const struct scan *s, const struct record *rec);

/* The number of remaining fields of a hash with field expiries when rdb_recover_record() failed in
 * it: they look like string keys. Otherwise 0. */
uint64_t rdb_recover_fields_left(const struct scan *s, const struct record *rec);

/* A field without expiry is stored as 0, name, value, like a string without attributes. */
bool rdb_recover_looks_like_field(const struct scan *s, const struct record *rec);

/* -- the plan -- */

enum rdb_recover_why {
    RDB_RECOVER_WHY_ERROR,
    RDB_RECOVER_WHY_ZEROS,
    RDB_RECOVER_WHY_EARLY_END,
    RDB_RECOVER_WHY_SELECTOR,
    RDB_RECOVER_WHY_REFUSED,
    RDB_RECOVER_WHY_SIZE,
    RDB_RECOVER_WHY_ORDER
};

/* A run of records, and the lost range before it (none: lost_from == from). */
struct span {
    uint64_t lost_from;
    uint64_t broken; /* the record that could not be read, in the lost range or before it */
    uint64_t fields_left;
    enum rdb_recover_why why;
    const char *resync;
    struct named_db named, trace;
    bool magic;    /* a snapshot begins in it: the following records may be its contents */
    bool selected; /* the lost range begins with a selector, of the database `selector` */
    uint64_t selector;
    bool framed;         /* the lost range is one record, by its own lengths */
    bool apart;          /* and sound parts of it precede the run: its first key is not next to
                            damage */
    uint64_t fields;     /* keys at the start of the run that may be fields of that record */
    bool at_end;         /* it is broken because the file ends */
    bool headed;         /* it contains at least one key: the broken record has a name */
    bool untrusted;      /* its selectors contradict those of the run that leads to the end of the
                            file */
    bool proved;         /* the header of the broken record belongs to this file */
    uint64_t taken_back; /* keys that were read before the damage, and later discarded */
    uint64_t inside;     /* records that begin before this offset may be part of the broken value */
    uint64_t place;      /* records of the previous run that begin here or later may be damaged */
    uint64_t beside;     /* the same, but these records end correctly; only their contents may be
                            damaged */

    uint64_t from, to;
    uint64_t db; /* in which it begins, as read */
    struct counts counts;
    bool to_end;    /* the end of the file follows */
    bool early_end; /* an end mark follows that is not the end of the file */
    bool false_end; /* its last selectors are parts of a value */

    enum rdb_grade grade;
    uint64_t start_db; /* in which it begins, if known */
    uint64_t trim;     /* keys at its start beyond the announced number */
    uint64_t mark;     /* keys after these that may be fields */
    bool db_doubt;     /* of the keys before its first selector */
    bool expiry_doubt; /* of its first key */
};

struct plan {
    struct span *spans;
    size_t n, cap;
    enum rdb_dialect dialect;
    int version;        /* the version as which the file is read */
    int needed;         /* the first version that supports all runs with an anchor */
    int by_release;     /* the version that the release in the aux fields writes, or 0 */
    int header_version; /* of the header, or 0 */
    bool guessed;
    bool sealed;
    bool found_end;
    bool end_proved;  /* trailing bytes follow `end`, and the checksum before it matches */
    bool unsupported; /* the file contains something that the version does not support */
    bool has_modules; /* it contains types of modules that are not known by name */
    uint64_t end;     /* of the end mark and checksum, if there is one */
    uint64_t damage;  /* as rdb_salvage_result.damage */
    uint64_t good;    /* keys in runs that have an anchor */
    uint64_t dbs_seen;
    uint64_t high;  /* selectors of database numbers beyond the default of servers */
    uint64_t sized; /* selectors with a size */
    /* For each database, the record before its first selector that may have swallowed others: if
     * that selector is false, records that begin here or later may be parts of a value. */
    uint64_t taken_in[DBS_TRACKED];
};

/* -- modules -- */

enum { RDB_RECOVER_MODULES_MAX = 256 };

/* How many records have each type of a module, up to a number of types. */
struct rdb_recover_modules {
    struct rdb_recover_module {
        uint64_t id;
        uint64_t n;
    } * ids;
    size_t n;
    bool all; /* all are proved */
};

/* Counts those in the runs of a plan that is graded, unless the checksum proves all of them. */
bool rdb_recover_modules_count(struct scan *s, const struct plan *plan,
                               struct rdb_recover_modules *ret, struct rd_err *err);
bool rdb_recover_module_is_proved(const struct rdb_recover_modules *m, uint64_t id);
void rdb_recover_modules_done(struct rdb_recover_modules *m);

enum {
    RDB_RECOVER_DBS_DEFAULT = 16,
    RDB_RECOVER_VERSION_ALL = 12,
    RDB_RECOVER_VERSION_LEAST = 6,
    RDB_RECOVER_VERSION_ENTERPRISE = 9 /* files of this version may contain opcodes of Redis
                                          Enterprise */
};

/* Finds the version and reads the whole file. sealed: its last bytes are the checksum of the rest.
 */
bool rdb_recover_plan(struct scan *s, struct rd_src *src, bool sealed,
                      const struct rdb_salvage_opts *opts, struct plan *ret, struct rd_err *err);
void rdb_recover_plan_done(struct plan *plan);

/* Whether the whole file was read, from its start to the end mark at its end. */
bool rdb_recover_is_whole(const struct plan *plan, uint64_t size);

/* What is read, and from where. */
struct rdb_recover_input {
    struct scan *scan;
    struct plan *plan;
    const struct rdb_salvage_opts *opts;
    struct rdb_salvage_result *res;
    struct rd_src *copy;         /* from which records are copied; or NULL */
    struct rd_src *restored[2];  /* the input and its copy as before a transfer; or NULL */
    struct rd_src *corrected[2]; /* the same with the correction; or NULL */
    uint64_t shift;              /* bytes of the input before the snapshot */
    struct rd_err *err;
};

/* Makes the plan, for the bytes that explain the input best, and notes in v->res what is corrected.
 * *ret_sealed: the checksum at the end of the snapshot matches. */
bool rdb_recover_choose(struct rdb_recover_input *v, struct rd_src *src, bool *ret_sealed);

/* Closes the sources over the input. */
void rdb_recover_input_done(struct rdb_recover_input *v);

/* One pass, with the version that the scan is set to. */
bool rdb_recover_survey(struct scan *s, struct plan *ret, struct rd_err *err);

void rdb_recover_grade(const struct scan *s, struct plan *plan);

/* A database for keys whose database is unknown: the first after `db` that is not selected
 * anywhere. */
uint64_t rdb_recover_spare_db(const struct plan *plan, uint64_t db);

#endif
