/* priv.h - the inside of salvage.
 *
 *     record.c   one record, with all that the deep check says of it
 *     resync.c   the search for the next place from which records can be read
 *     place.c    the first record that may be damaged, where the structure breaks behind it
 *     part.c     what was read of a collection before it breaks
 *     ../salvage.c   the walk over the file, what is kept and what is written
 */
#ifndef RDB_MEND_PRIV_H
#define RDB_MEND_PRIV_H

#include "base/buf.h"
#include "rdb/keyset.h"
#include "rdb/reader.h"
#include "rdb/salvage.h"

enum {
    WEIGHT_KEY = 8,
    WEIGHT_FIELD = 1,   /* of a string that may be a field of a hash with field expiries */
    WEIGHT_ANCHOR = 24, /* of an opcode that is rare in other bytes */
    CHAIN_STRONG = 64,  /* weight of records in a row that nobody doubts */
    CHAIN_AT_END = 3,   /* keys, where the file was cut behind them */
    SHAPES = 4096,
    RING = 256,           /* records remembered behind the present one */
    LOOK_BACK = 1 << 20,  /* bytes searched in them, and always the last record whole */
    CHAIN_BYTES = 4 << 20 /* a chain that is longer after one record is looked at later */
};

enum record_kind { RECORD_KEY, RECORD_DB, RECORD_HINT, RECORD_OTHER, RECORD_END };

struct record {
    enum record_kind kind;
    uint64_t start, end;
    uint64_t db;         /* RECORD_DB: the number; else the database it is in */
    const char *refused; /* the word of a finding that makes servers refuse it; or NULL */
    const struct rdb_type *type;
    uint8_t key[RDB_FINDING_KEY_MAX]; /* the name of a key, or of a field in front of the keys */
    uint64_t key_len;
    uint64_t hash;
    bool has_key;
    bool has_name; /* of a field */
    bool expires;
    bool unwanted; /* by the caller's choice */
    bool plausible_expiry;
    bool hollow; /* an empty string under an empty key: three zeros read so */
    int since;   /* first version that has all of it */
};

/* What the names of keys look like in this file. */
struct habits {
    uint64_t n;
    uint64_t n_printable;
    uint64_t shortest;
};

/* A source that ends early, so that a senseless length does not read the whole file. */
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
    struct rd_err err; /* what makes it impossible to go on: I/O, memory */
    struct habits habits;
    uint64_t shapes[SHAPES / 64]; /* a bit for how a name begins, and of which kind the key is */
    unsigned n_shapes;            /* bits that are set */
    uint64_t avoid; /* no chain may end a record here: what begins here is known to be broken */
    struct {
        uint64_t start;
        uint64_t db;
        bool kept;
        bool packed;   /* mend_is_packed() */
        uint8_t proof; /* mend_proof() */
    } ring[RING];
    uint64_t db_at;  /* where the last database began, or the first record */
    uint64_t n_ring; /* records put in; the last RING of them are there */
};

bool mend_scan_init(struct scan *s, struct rd_src *file, const struct rdb_salvage_opts *opts,
                    struct rd_err *err);
void mend_scan_done(struct scan *s);

/* Makes the reader for a version; anew when it changes. */
bool mend_scan_version(struct scan *s, enum rdb_dialect dialect, int version);

/* Stands at an offset, in a database, and does not read beyond `stop`. */
bool mend_scan_at(struct scan *s, uint64_t offset, uint64_t db, uint64_t stop);

/* MEND_OK: *ret; MEND_BROKEN: rdb_reader_err(s->reader), ret->start and what was read of it;
 * MEND_FAIL: s->err. */
enum mend_status { MEND_OK, MEND_BROKEN, MEND_FAIL };
enum mend_status mend_record(struct scan *s, struct record *ret);

bool mend_expiry_is_plausible(int64_t ms);
bool mend_is_printable(const struct record *rec);
void mend_habits_add(struct habits *h, const struct record *rec);

/* Nearly all names are printable: a few records read out of damage must not spoil it. */
static inline bool mend_names_printable(const struct habits *h)
{
    return h->n_printable * 20 >= h->n * 19;
}

/* A collection with the elements that were read before its record breaks. */
struct mend_part {
    enum rdb_dialect dialect;
    int version;          /* of the input */
    int out_version;      /* of the record that is written */
    struct rd_buf record; /* to be freed by the caller */
    uint64_t kept;        /* elements; 0: nothing that servers would take */
};

/* Can a part of such a value be kept in a file of that version? */
bool mend_part_possible(int version, const struct rdb_type *type);
bool mend_part_read(struct mend_part *part, struct rd_src *src, const struct record *rec,
                    struct rd_err *err);

struct way_back {
    bool found;
    uint64_t at;
    uint64_t db;
    const char *how;
};

/* Finds where records can be read again, after the record at `broken` could not be read. The place
 * may lie before it, inside one of the records in the ring. */
enum mend_status mend_resync(struct scan *s, uint64_t broken, uint64_t db, uint64_t fields_left,
                             struct way_back *ret);

/* How well the head of a record proves that it was written there, and so that the record before it
 * ends where it should. 0: it looks like nothing that belongs to this file. */
uint8_t mend_proof(const struct scan *s, const struct record *rec);

/* The name is one of this file, for mend_proof() of later ones. */
void mend_shape_add(struct scan *s, const struct record *rec);

/* Whether its end is proved by what the value says of its own length. */
bool mend_is_packed(const struct record *rec);

/* The record `rec` could not be read, or is none that a server would have written. The start of the
 * first record that may be damaged: it, or an earlier one that was read with a wrong length. */
uint64_t mend_place(const struct scan *s, const struct record *rec);

/* How many fields a hash with field expiries still had to give when mend_record() found it broken:
 * they look like string keys. Else 0. */
uint64_t mend_fields_left(const struct scan *s, const struct record *rec);

#endif
