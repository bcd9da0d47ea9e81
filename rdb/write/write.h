/* write.h - private to the writer.
 *
 *     ../writer.c    the public functions; which event may follow which
 *     record.c       everything outside of values
 *     string.c       strings that come in pieces; the key's record up to its value
 *     value.c        from VALUE to VALUE_END: calls the files below
 *     collection.c   sets, sorted sets, hashes, and lists before RDB 7
 *     pack.c         builds packed encodings of collections; sorting
 *     list.c         quicklists
 *     stream.c       streams: entries and nodes
 *     group.c        streams: groups and the parts after them
 *     unpack.c       unpacks blobs for targets that lack the encoding
 *     vectors.c      vector sets for the first patches of Redis 8.0
 *
 * A function that fails sets rdb_writer.err, unless a sink or the memory failed: rdb_writer_put()
 * finds out which. Nothing continues after a failure.
 */
#ifndef RDB_WRITE_WRITE_H
#define RDB_WRITE_WRITE_H

#include "base/buf.h"
#include "rdb/enc/pack.h"
#include "rdb/enc/put.h"
#include "rdb/vectors.h"
#include "rdb/writer.h"

enum {
    PIECES_HELD_MAX = 4 << 20, /* a longer string is written as it comes, not compressed */
    SPOOL_KEPT = 1 << 20,      /* memory that a spool keeps for the next value */
    HELD_MAX = 512,            /* elements of the largest packed encoding */
    PACKED_TEXT_MAX = 64,      /* bytes of an element of a packed encoding */
    PACKED_FEW = 128,          /* elements of a packed sorted set or set */
    NODE_BYTES_MAX = 8192,     /* of a list's node */
    STREAM_NODE_BYTES = 4096,
    STREAM_NODE_ENTRIES = 100,
    STREAM_ENTRY_MAX = 1 << 30, /* bytes of one entry, as servers limit it */
    ELEMENT_VERSION_MIN = 6     /* the oldest version that values are encoded for */
};

enum rdb_write_state {
    WRITE_START,
    WRITE_RECORDS, /* between records */
    WRITE_PIECES,  /* inside the string of an AUX or FUNCTION */
    WRITE_ITEMS,   /* inside MODULE_AUX or KEY_META */
    WRITE_RANGES,  /* inside SLOT_IMPORT */
    WRITE_KEY,     /* after KEY: VALUE or a copy follows */
    WRITE_VALUE,   /* inside a value */
    WRITE_SKIP,    /* inside a value that is omitted */
    WRITE_COPY,    /* between rdb_writer_copy_begin() and _end() */
    WRITE_TRAILER,
    WRITE_ENDED
};

/* Encoded bytes that wait until a count is known. */
struct rdb_write_spool {
    struct rd_buf buf;
    struct rd_sink *sink; /* appends to buf; NULL before its first use */
};

/* A string whose pieces are arriving. */
struct rdb_pieces {
    bool open;
    bool is_long; /* passed on piece by piece */
    uint64_t total;
    uint64_t seen;
    struct rd_buf held;
    char digits[RD_NUM_I64_MAX];
};

struct rdb_write_key {
    struct rd_buf name;
    struct rd_buf raw;  /* with opts.verbatim: the bytes of the record so far */
    struct rd_buf meta; /* metadata of modules, as stored */
    const struct rdb_type *type;
    uint64_t db;
    int64_t expire_ms;
    uint64_t idle_s;
    uint64_t freq;
};

/* An element of a collection: member, or field and value. */
struct rdb_unit {
    struct rd_slice text;
    struct rd_slice value; /* hash */
    double score;          /* zset */
    int64_t expire_ms;     /* hash */
};

/* An element that is collected until the encoding is decided; offsets into rdb_collection.bytes. */
struct rdb_held {
    uint32_t text;
    uint32_t value;
    uint8_t text_len;
    uint8_t value_len;
    union {
        double score;      /* zset */
        int64_t expire_ms; /* hash */
        int64_t num;       /* set of integers */
    };
};

enum rdb_field_ttl {
    FIELD_TTL_NONE,     /* the source has none */
    FIELD_TTL_LOST,     /* the target has none */
    FIELD_TTL_METADATA, /* Redis: HASH_METADATA and HASH_LISTPACK_EX */
    FIELD_TTL_HASH_2    /* Valkey */
};

enum rdb_collection_mode { COLLECTION_HELD, COLLECTION_TABLE, COLLECTION_COPIED };

struct rdb_collection {
    enum rdb_collection_mode mode;
    enum rdb_field_ttl ttl;
    unsigned n_held;
    unsigned limit;     /* of n_held */
    bool all_ints;      /* set: every member so far is an integer */
    bool field_open;    /* hash: a field arrived, its value has not */
    bool field_written; /* hash: that field is in the table already */
    uint64_t n;         /* units */
    bool spooled;       /* the table is written to rdb_writer.body */
    struct rd_sink *to; /* the destination of the table */
    struct rd_buf bytes;
    struct rd_buf field; /* hash: the field that waits for its value; the beginning of its name if
                            it is written already and may lose its expiry */
    struct rd_buf ttls;  /* table of unknown minimum: struct rdb_field_mark */
    struct rdb_held held[HELD_MAX];
};

/* The end of a field's record in the spool, and its expiry. */
struct rdb_field_mark {
    uint64_t end;
    int64_t expire_ms;
};

struct rdb_list {
    enum rdb_type_id type;
    enum rdb_codec codec;
    uint64_t n_nodes;
    bool open; /* a node is being built */
    struct rdb_packer packer;
    struct rd_buf node;
    struct rdb_packer_around around; /* of a long element */
};

/* Several strings in one buffer: for each its length, a size_t, and its bytes. */
struct rdb_texts {
    struct rd_buf buf;
};

struct rdb_stream_writer {
    enum rdb_type_id type;
    struct rd_sink *to; /* the destination of the part after the nodes */
    uint64_t n_nodes;
    bool tail_begun; /* the STREAM event arrived */
    bool producers;  /* the following events are omitted */
    /* the node being built */
    bool node_open;
    struct rdb_stream_id node_id;
    unsigned node_entries;
    uint64_t master_count;   /* fields of the node's first entry */
    struct rdb_texts master; /* their names */
    struct rd_buf node;
    struct rdb_packer packer;
    /* the entry being written */
    bool entry_open;
    struct rdb_stream_id entry_id;
    uint64_t entry_fields;
    uint64_t texts_left;
    size_t entry_bytes;
    struct rdb_texts entry; /* field, value, field, … */
    /* announced and not arrived yet */
    bool group_open;
    uint64_t groups_left;
    uint64_t pending_left;
    uint64_t owned_left;
    uint64_t n_consumers; /* of the group */
    uint64_t n_nacked;    /* entries that were given back to it */
    uint64_t producers_left;
    uint64_t ids_left;
    bool idmp_done; /* the settings of idempotent entries are complete */
};

struct rdb_path_writer {
    uint64_t n_paths;
    uint64_t n_fields; /* of the last path */
    bool field_open;   /* its value is missing */
};

/* A vector set whose nodes are written in the first form. */
struct rdb_write_vectors {
    bool converts;
    struct rdb_vectors walk;
    uint64_t count, id; /* of the node, not written yet */
};

struct rdb_writer {
    struct rd_sink *out; /* the caller's */
    struct rdb_writer_opts opts;
    struct rdb_omitted_counts loss;
    struct rd_err err;
    enum rdb_write_state state;
    enum rdb_event_kind open_kind; /* whose pieces or items are arriving */
    bool failed;
    bool started;    /* the header is written */
    bool dropping;   /* the open record is omitted */
    bool by_server;  /* what is refused now is refused because of opts.server */
    bool zero_sum;   /* the trailer has no checksum */
    bool raw_record; /* the open record is written as its raw bytes */
    uint64_t offset; /* of the event */
    uint64_t db;
    uint64_t ranges_left;
    uint64_t n_metadata; /* omitted records that belong to the next key */
    struct rdb_put put;
    struct rdb_pieces pieces;
    struct rdb_write_spool body;
    struct rdb_write_spool side;
    struct rdb_write_spool tail;
    struct rdb_write_key key;
    /* the value */
    const struct rdb_type *source; /* its type in the input */
    uint64_t count;
    int64_t min_expire_ms;
    bool had_string; /* string: it is complete */
    struct rdb_collection collection;
    struct rdb_list list;
    struct rdb_stream_writer stream;
    struct rdb_write_vectors vectors;
    struct rdb_path_writer paths;
};

/* RD_ERR_USAGE: no reader returns this. */
bool rdb_write_misuse(struct rdb_writer *w, const char *what);

/* RD_ERR_UNSUPPORTED, naming the key. */
bool rdb_write_unsupported(struct rdb_writer *w, const char *what);

/* The target has no such data. With opts.lossy the omission is counted and reported (true); else as
 * above. `element`: see struct rdb_omission. */
bool rdb_write_refuse(struct rdb_writer *w, enum rdb_omitted what, const char *name,
                      struct rd_slice element);

/* The same for a key, whose value is then skipped. Call it before anything of the record is
 * written. */
bool rdb_write_refuse_key(struct rdb_writer *w, const char *name);

/* The same for what opts.server cannot have, although the version can hold it. */
bool rdb_write_refuse_key_of_server(struct rdb_writer *w, const char *name);

static inline bool rdb_write_has(const struct rdb_writer *w, int version)
{
    return w->opts.version >= version;
}

/* Whether the target can have this type of module. The dialect alone can tell. */
static inline bool rdb_write_has_module(const struct rdb_writer *w, uint64_t id)
{
    enum rdb_server server = w->opts.dialect == RDB_VALKEY ? RDB_SERVER_VALKEY : w->opts.server;
    return rdb_server_has_module(server, id);
}

/* string.c */

enum rdb_piece_status {
    PIECE_FAIL,
    PIECE_HELD,  /* it was stored; more must arrive */
    PIECE_WHOLE, /* *ret is the whole string */
    PIECE_FIRST, /* *ret is the first piece of a long string */
    PIECE_NEXT,  /* … another */
    PIECE_LAST   /* … the last */
};

/* Adds a piece of a string. A string of more than `held_max` bytes is passed on in pieces; others
 * are assembled. The bytes are valid until the next call or the next event. */
enum rdb_piece_status rdb_write_piece(struct rdb_writer *w, const struct rdb_string *s,
                                      uint64_t held_max, struct rd_slice *ret);

/* Writes the result of rdb_write_piece(): a whole string, or a piece of one in raw form. */
bool rdb_write_put_piece(struct rdb_writer *w, struct rd_sink *to, enum rdb_piece_status st,
                         struct rd_slice text);
static inline bool rdb_write_piece_ends(enum rdb_piece_status st)
{
    return st == PIECE_WHOLE || st == PIECE_LAST;
}

/* Both in one call: *ret_ends is true if the string is complete. */
bool rdb_write_string(struct rdb_writer *w, struct rd_sink *to, const struct rdb_string *s,
                      bool *ret_ends);

/* Empties a spool for the next use. */
bool rdb_spool_begin(struct rdb_writer *w, struct rdb_write_spool *spool);
/* The bytes written to it. */
bool rdb_spool_bytes(struct rdb_write_spool *spool, struct rd_slice *ret);
/* Appends it to a sink. */
bool rdb_spool_move(struct rdb_write_spool *spool, struct rd_sink *to);
void rdb_spool_done(struct rdb_write_spool *spool);

/* paths.c */
bool rdb_paths_begin(struct rdb_writer *w);
bool rdb_paths_elem(struct rdb_writer *w, const struct rdb_event *ev);
bool rdb_paths_end(struct rdb_writer *w);

/* record.c */
bool rdb_write_header(struct rdb_writer *w);
bool rdb_write_record(struct rdb_writer *w, const struct rdb_event *ev);
bool rdb_write_pieces(struct rdb_writer *w, const struct rdb_event *ev);
bool rdb_write_items(struct rdb_writer *w, const struct rdb_event *ev);
bool rdb_write_range(struct rdb_writer *w, const struct rdb_event *ev);
bool rdb_write_item(struct rdb_writer *w, struct rd_sink *to, const struct rdb_event *ev);

/* Writes the key's record up to its value, with the chosen type. */
bool rdb_write_prefix(struct rdb_writer *w, enum rdb_type_id type);

/* value.c */
bool rdb_write_value_begin(struct rdb_writer *w, const struct rdb_event *ev);
bool rdb_write_value(struct rdb_writer *w, const struct rdb_event *ev);

/* collection.c */
void rdb_collection_begin(struct rdb_writer *w);
bool rdb_collection_elem(struct rdb_writer *w, const struct rdb_event *ev);
bool rdb_collection_add(struct rdb_writer *w, const struct rdb_unit *unit);
bool rdb_collection_end(struct rdb_writer *w);

/* pack.c: writes the record with the collected elements, packed; *ret is false if no packed
 * encoding of the target can hold them, and then nothing was written. */
bool rdb_collection_pack(struct rdb_writer *w, bool *ret);

/* list.c */
bool rdb_list_begin(struct rdb_writer *w);
bool rdb_list_elem(struct rdb_writer *w, const struct rdb_event *ev);
bool rdb_list_add(struct rdb_writer *w, struct rd_slice text);
bool rdb_list_packed(struct rdb_writer *w, const struct rdb_event *ev);
bool rdb_list_end(struct rdb_writer *w);

/* stream.c */
bool rdb_stream_begin(struct rdb_writer *w);
bool rdb_stream_event(struct rdb_writer *w, const struct rdb_event *ev);
bool rdb_stream_end(struct rdb_writer *w);

/* group.c: the part after the nodes */
bool rdb_group_begin(struct rdb_writer *w, const struct rdb_event *ev);
bool rdb_group_event(struct rdb_writer *w, const struct rdb_event *ev);
bool rdb_group_end(struct rdb_writer *w);

/* vectors.c: between begin and end, the items of a vector set */
void rdb_write_vectors_begin(struct rdb_writer *w);
bool rdb_write_vectors_item(struct rdb_writer *w, const struct rdb_event *ev);
bool rdb_write_vectors_end(struct rdb_writer *w);

/* unpack.c */
bool rdb_write_unpack(struct rdb_writer *w, const struct rdb_event *ev);

#endif
