/* event.h - a snapshot as a stream of events, from the reader to the writer.
 *
 *     HEADER  AUX*  { AUX | DB | DB_SIZE | SLOT | FUNCTION | MODULE_AUX … | TEMPLATE | key }*
 *     TRAILER
 *
 *     key     = KEY  value
 *     value   = VALUE  body  VALUE_END
 *     body    = ELEM*                              string, list, set, zset, hash, array
 *             | (PACKED | PACKED_LONG? ELEM*)*     the same, if packed values were requested or
 *                                                  announced
 *             | (PACKED_LONG? { ENTRY ELEM* }* | PACKED)* STREAM group*      stream
 *             | MODULE_ITEM*                       module
 *     group   = GROUP  PENDING*  { CONSUMER OWNED* }*  NACKED*
 *     stream, type 26 on: … group*  IDMP { PRODUCER PRODUCED* }* IDMP_END
 *     MODULE_AUX = MODULE_AUX  MODULE_ITEM*  VALUE_END
 *     metadata   = KEY_META_BEGIN { KEY_META MODULE_ITEM* VALUE_END }*    before its KEY; not with
 *                                                                         opts.attach_meta
 *
 * A hash that shares its field names with others (Redis 8.10) is a hash like any other: its events
 * have the names. Its KEY has the type that contains the names, whatever the file has, and
 * rdb_reader_copy_value() gives a value of this type.
 *
 * Every event has the offset of its first byte. Bytes in an event are borrowed from the reader and
 * valid until its next call.
 *
 * Example: prints a string of an event.
 *
 *     char digits[RD_NUM_I64_MAX];
 *     struct rdb_string string = {.is_int = true, .num = 42};
 *     struct rd_slice text = rdb_string_bytes(&string, digits);
 *     printf("%.*s\n", (int)text.len, (const char *)text.ptr);
 *
 * Threads: an event is data; it has no state.
 * Ownership: the caller allocates an event. What it points to belongs to the reader and is valid
 *   until the reader's next call.
 * Errors: nothing here fails.
 * Cost: constant time.
 */
#ifndef RDB_EVENT_H
#define RDB_EVENT_H

#include "base/num.h"
#include "rdb/rdb.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rdb_event_kind {
    RDB_HEADER = 0,
    RDB_AUX = 1,            /* aux; chunked by aux.value.more */
    RDB_DB = 2,             /* db */
    RDB_DB_SIZE = 3,        /* db_size */
    RDB_SLOT = 4,           /* slot: Redis opcode 244 */
    RDB_SLOT_IMPORT = 5,    /* slot_import: Valkey opcode 243; ranges follow as RDB_SLOT_RANGE */
    RDB_SLOT_RANGE = 6,     /* slot_range */
    RDB_FUNCTION = 7,       /* function; chunked by function.code.more */
    RDB_MODULE_AUX = 8,     /* module */
    RDB_KEY_META_BEGIN = 9, /* key_meta: Redis opcode 243, before its KEY; classes follow */
    RDB_KEY_META = 10,      /* module: one class; its items and a VALUE_END follow */
    RDB_KEY = 11,           /* key */
    RDB_VALUE = 12,         /* value */
    RDB_ELEM = 13,          /* elem */
    RDB_PACKED = 14,        /* packed */
    RDB_ENTRY = 15,         /* entry: one live stream entry; 2 * n_fields ELEM follow */
    RDB_STREAM = 16,        /* stream */
    RDB_GROUP = 17,         /* group */
    RDB_PENDING = 18,       /* pending: an entry of the group's pending list */
    RDB_CONSUMER = 19,      /* consumer */
    RDB_OWNED = 20,         /* id: a pending entry that the consumer owns */
    RDB_IDMP = 21,          /* idmp: idempotent XADD (stream type 26 on); producers follow */
    RDB_PRODUCER = 22,      /* producer; its ids follow as PRODUCED */
    RDB_PRODUCED = 23,      /* produced */
    RDB_IDMP_END = 24,      /* idmp_end */
    RDB_NACKED = 25,        /* id (stream type 27) */
    RDB_MODULE_ITEM = 26,   /* item */
    RDB_VALUE_END = 27,     /* value_end */
    RDB_NOTE = 28,          /* note: well framed, but not as a server writes it */
    RDB_TRAILER = 29,       /* trailer */
    RDB_PACKED_LONG = 30, /* packed, without bytes: with opts.long_packed, before the elements of a
                               packed string that come one by one */
    RDB_TEMPLATE = 31,    /* fields: Redis opcode 242, names that hashes share. Without `raw` */
    RDB_UPDATE = 32       /* with opts.updates: Valkey opcode 242, a command that changes what was
                               read before. It is `raw` without its first byte */
};

/* A string of the file, whole or in pieces. Open: it is part of struct rdb_event. */
struct rdb_string {
    const uint8_t *ptr; /* bytes of this piece; not set when is_int */
    size_t len;         /* of this piece */
    uint64_t total;     /* length of the whole string (not set when is_int) */
    int64_t num;        /* the value, when is_int */
    bool is_int;        /* stored as an integer; rdb_string_bytes() gives its text */
    bool more;          /* another piece follows in the next event of this kind */
    bool first;         /* the first (or only) piece */
};

/* The bytes of a piece. tmp holds the digits when it is an integer. */
static inline struct rd_slice rdb_string_bytes(const struct rdb_string *s, char tmp[RD_NUM_I64_MAX])
{
    return s->is_int ? rd_slice(tmp, rd_num_put_i64(tmp, s->num)) : rd_slice(s->ptr, s->len);
}

/* The role of a string in its value. */
enum rdb_role {
    RDB_ROLE_STRING = 0,  /* the value of a string key */
    RDB_ROLE_ELEMENT = 1, /* of a list */
    RDB_ROLE_MEMBER = 2,  /* of a set or zset */
    RDB_ROLE_FIELD = 3,   /* of a hash or stream entry; a VALUE follows */
    RDB_ROLE_VALUE = 4,   /* of the preceding field */
    RDB_ROLE_ITEM = 5,    /* of an array */
    RDB_ROLE_PATH = 6     /* of a path hash, in one piece; its fields follow */
};

/* Open: an id is two numbers. */
struct rdb_stream_id {
    uint64_t ms;
    uint64_t seq;
};

static inline int rdb_stream_id_cmp(struct rdb_stream_id a, struct rdb_stream_id b)
{
    if (a.ms != b.ms)
        return a.ms < b.ms ? -1 : 1;
    return (a.seq > b.seq) - (a.seq < b.seq);
}

#define RDB_UNKNOWN   UINT64_MAX /* a count that the file does not contain */
#define RDB_NO_EXPIRE INT64_MIN  /* no expiry */

/* Encodings of several elements in one string. */
enum rdb_codec { RDB_LISTPACK = 0, RDB_ZIPLIST = 1, RDB_ZIPMAP = 2, RDB_INTSET = 3 };

#define RDB_CODEC_COUNT 4

/* Problems in well-framed records. Each has a number, a stable word and a severity; it is an error
 * if servers refuse to load the file because of it. */
#define RDB_NOTES(X)                                                                               \
    X(DUPLICATE_MEMBER, 101, "duplicate-member", ERROR)                                            \
    X(UNSORTED_SET, 102, "unsorted-intset", ERROR)                                                 \
    X(UNSORTED_ZSET, 103, "unsorted-zset", WARNING)                                                \
    X(NAN_SCORE, 104, "nan-score", ERROR)                                                          \
    X(BAD_SCORE, 105, "bad-score", ERROR)                                                          \
    X(EMPTY_COLLECTION, 106, "empty-collection", WARNING)                                          \
    X(EMPTY_INTSET, 107, "empty-intset", ERROR)                                                    \
    X(EMPTY_ZIPMAP, 108, "empty-zipmap", ERROR)                                                    \
    X(DANGLING, 109, "attributes-without-key", WARNING)                                            \
    X(ENTRY_ORDER, 110, "stream-entry-order", WARNING)                                             \
    X(ENTRY_COUNT, 111, "stream-length", WARNING)                                                  \
    X(DUPLICATE_NODE, 112, "duplicate-node", ERROR)                                                \
    X(DUPLICATE_PENDING, 113, "duplicate-pending", ERROR)                                          \
    X(DUPLICATE_GROUP, 114, "duplicate-group", ERROR)                                              \
    X(DUPLICATE_CONSUMER, 115, "duplicate-consumer", ERROR)                                        \
    X(PENDING_OWNER, 116, "pending-without-consumer", ERROR)                                       \
    X(PENDING_UNKNOWN, 117, "pending-unknown", ERROR)                                              \
    X(FIELD_TTL_ORDER, 118, "field-ttl-order", ERROR)                                              \
    X(FIELD_TTL_RANGE, 119, "field-ttl-range", ERROR)                                              \
    X(UNCHECKED_MEMBERS, 120, "unchecked-members", INFO)                                           \
    X(NOT_CANONICAL, 121, "not-canonical", INFO)                                                   \
    X(NO_NODES, 122, "stream-without-entries", ERROR)                                              \
    X(UNSORTED_TEMPLATE, 123, "unsorted-template", ERROR)                                          \
    X(TEMPLATE_ID, 124, "template-id-order", WARNING)

enum rdb_severity { RDB_SEVERITY_INFO = 0, RDB_SEVERITY_WARNING = 1, RDB_SEVERITY_ERROR = 2 };

enum rdb_note_id {
#define X(name, number, word, severity) RDB_NOTE_##name = number,
    RDB_NOTES(X)
#undef X
};

RD_API const char *rdb_note_word(enum rdb_note_id id);
RD_API enum rdb_severity rdb_note_severity(enum rdb_note_id id);

/* Open: events are read by the million, into a struct of the caller, and programs make them for
 * the writer. */
struct rdb_event {
    enum rdb_event_kind kind;
    uint64_t offset; /* of the first byte, in the stream the reader was given */
    uint64_t inner;  /* offset inside the packed string at `offset`, else RD_NO_OFFSET */
    struct rd_slice
        raw; /* outside of values (AUX … KEY, FUNCTION, MODULE_AUX and its items): the bytes of the
                file that this event represents; together they are the file. Not set for a KEY whose
                attributes precede another record, for a KEY whose value refers to a template, and
                for TEMPLATE. */
    union {
        struct {
            enum rdb_dialect dialect;
            int version;
        } header;
        struct {
            struct rd_slice name;
            struct rdb_string value;
        } aux;
        uint64_t db;
        struct {
            uint64_t keys;
            uint64_t expires;
        } db_size;
        struct {
            uint64_t slot;
            uint64_t keys;
            uint64_t expires;
        } slot;
        struct {
            struct rd_slice job;
            uint64_t n_ranges;
        } slot_import;
        struct {
            uint64_t first;
            uint64_t last;
        } slot_range;
        struct {
            struct rdb_string code;
            bool pre_ga; /* opcode 246, whose pieces are not code; see docs/format/rdb.md */
        } function;
        struct {
            uint64_t id;   /* RDB_MODULE_AUX: module id; RDB_KEY_META: the 32-bit class */
            uint64_t when; /* RDB_MODULE_AUX: 1 before the keys, 2 after */
        } module;
        struct {
            uint64_t n_classes;
        } key_meta;
        struct {
            uint64_t id;
            uint64_t n_fields;
        } fields;
        struct {
            struct rd_slice name;
            const struct rdb_type *type;
            uint64_t db;
            uint64_t record;      /* offset of the record: of its expiry opcode, if it has one */
            int64_t expire_ms;    /* unix time in ms, or RDB_NO_EXPIRE */
            uint64_t idle_s;      /* or RDB_UNKNOWN */
            uint64_t freq;        /* 0 to 255, or RDB_UNKNOWN */
            bool expire_in_s;     /* stored by opcode 253, in seconds */
            struct rd_slice meta; /* with opts.attach_meta: the metadata of modules, as stored, with
                                     the opcode; else empty */
        } key;
        struct {
            const struct rdb_type *type;
            uint64_t count;        /* elements (pairs for hash and zset, paths for path hashes), or
                               RDB_UNKNOWN until the end */
            uint64_t nodes;        /* quicklists and streams: nodes; else RDB_UNKNOWN */
            uint64_t module_id;    /* modules */
            int64_t min_expire_ms; /* hashes with field TTLs: as stored; else RDB_NO_EXPIRE */
        } value;
        struct {
            enum rdb_role role;
            struct rdb_string str;
            double score;      /* zset: set on the last piece of the member */
            int64_t expire_ms; /* hash: of the field, set on the last piece of the VALUE */
            uint64_t index;    /* array: position; PATH: number of its fields; else not set */
        } elem;
        struct {
            enum rdb_codec codec;
            struct rd_slice blob;      /* decompressed, validated; LONG: only its length */
            uint64_t count;            /* entries in it; LONG: 0 */
            struct rdb_stream_id node; /* streams: the id to which entries are relative */
            bool plain;                /* quicklist 2: one plain element, not an encoding */
        } packed;
        struct {
            struct rdb_stream_id id;
            uint64_t n_fields;
        } entry;
        struct {
            uint64_t length;
            struct rdb_stream_id last_id;
            struct rdb_stream_id first_id;       /* from type 19 on; see has_offsets */
            struct rdb_stream_id max_deleted_id; /* from type 19 on */
            uint64_t entries_added;              /* from type 19 on */
            bool has_offsets;
            uint64_t n_groups;
        } stream;
        struct {
            struct rd_slice name;
            struct rdb_stream_id last_id;
            uint64_t
                entries_read; /* from type 19 on; RDB_UNKNOWN also if the server did not know it */
            uint64_t n_pending;
        } group;
        struct {
            struct rdb_stream_id id;
            int64_t delivery_ms;
            uint64_t delivery_count;
        } pending;
        struct {
            struct rd_slice name;
            int64_t seen_ms;
            int64_t active_ms; /* from type 21 on, -1: never; else RDB_NO_EXPIRE */
            uint64_t n_owned;
        } consumer;
        struct rdb_stream_id id;
        struct {
            uint64_t duration;
            uint64_t max_size;
            uint64_t n_producers;
        } idmp;
        struct {
            uint64_t added;
            uint64_t duplicates;
        } idmp_end;
        struct {
            struct rd_slice name;
            uint64_t n_ids;
        } producer;
        struct {
            struct rd_slice name;
            struct rdb_stream_id id;
        } produced;
        struct {
            uint64_t opcode; /* enum rdb_module_opcode */
            union {
                int64_t sint;
                uint64_t uint;
                float f32;
                double f64;
            };
            struct rdb_string str;
        } item;
        struct {
            uint64_t count; /* elements seen; pairs for hash and zset, entries for streams */
            uint64_t bytes; /* of the value in the file, without key and type */
        } value_end;
        struct {
            enum rdb_note_id id;
            uint64_t detail;     /* a count or an index, by id; else RDB_UNKNOWN */
            const char *text;    /* static */
            struct rd_slice key; /* the first bytes of the key's name, if the note concerns a
                                    value */
            const struct rdb_type *type; /* of the value; NULL if it concerns none */
            uint64_t db;
            uint64_t record; /* where the record begins */
        } note;
        struct {
            bool present;    /* the version has a checksum */
            uint64_t stored; /* 0: the writer disabled the checksum */
            uint64_t computed;
            bool summed; /* `computed` is known */
        } trailer;
    };
};

enum rdb_module_opcode {
    RDB_MODULE_END = 0,
    RDB_MODULE_SINT = 1,
    RDB_MODULE_UINT = 2,
    RDB_MODULE_FLOAT = 3,
    RDB_MODULE_DOUBLE = 4,
    RDB_MODULE_STRING = 5
};

#ifdef __cplusplus
}
#endif

#endif
