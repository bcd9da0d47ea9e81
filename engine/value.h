/* value.h - the value of a key: a type, an encoding and the data of the encoding.
 *
 * A value is 16 bytes in the entry of its key (engine/db.h) or, while it is made, on the stack of a
 * command. The holder owns the data that it points to; storing it under a key moves it.
 *
 *     INT           string: num
 *     EMBSTR        string: bytes; they lie in the entry of the key itself, after its name; those
 *                   of a copy that is not stored yet are a block
 *     RAW           string: bytes, a block of the heap, with room as engine_usable() says
 *     LISTPACK      hash, zset: lp, see engine/listpack.h
 *     INTSET        set: intset, see engine/intset.h
 *     QUICKLIST     list: list, see engine/value/list.h
 *     HASHTABLE     set, hash: engine/value/set.h, engine/value/hash.h
 *     SKIPLIST      zset: engine/value/zset.h
 *     STREAM_NODES  stream: engine/value/stream.h
 *     OPAQUE        module: opaque, the serialized value, kept and saved as it is
 *     VECTORS       module: a vector set, see engine/value/vectors.h
 *     BYTES         kept: a type that only newer servers have: its bytes, see engine/value/kept.h
 *
 * Each type has a file in engine/value/ with the functions that every type needs; the functions
 * here call the right one.
 */
#ifndef ENGINE_VALUE_H
#define ENGINE_VALUE_H

#include "base/err.h"
#include "base/num.h"
#include "base/slice.h"
#include "engine/config.h"
#include "engine/mem.h"
#include "rdb/event.h"

enum engine_type {
    ENGINE_STRING,
    ENGINE_LIST,
    ENGINE_SET,
    ENGINE_ZSET,
    ENGINE_HASH,
    ENGINE_MODULE,
    ENGINE_STREAM,
    ENGINE_KEPT, /* arrays of Redis 8.8 and path hashes of Valkey 9.2, for config.keep_newer */
    ENGINE_TYPES
};

enum engine_encoding {
    ENGINE_INT,
    ENGINE_EMBSTR,
    ENGINE_RAW,
    ENGINE_LISTPACK,
    ENGINE_INTSET,
    ENGINE_QUICKLIST,
    ENGINE_HASHTABLE,
    ENGINE_SKIPLIST,
    ENGINE_STREAM_NODES,
    ENGINE_OPAQUE,
    ENGINE_VECTORS,
    ENGINE_BYTES,
    ENGINE_ENCODINGS
};

/* The longest string that is stored with its key, as OBJECT ENCODING shows it. */
enum { ENGINE_EMBSTR_MAX = 44 };

struct engine_list;
struct engine_set;
struct engine_hash;
struct engine_zset;
struct engine_stream;
struct engine_opaque;
struct engine_vectors;
struct engine_kept;
struct engine_table;

struct engine_value {
    union {
        int64_t num;
        uint8_t *bytes;
        uint8_t *lp;
        uint8_t *intset;
        struct engine_list *list;
        struct engine_set *set;
        struct engine_hash *hash;
        struct engine_zset *zset;
        struct engine_stream *stream;
        struct engine_opaque *opaque;
        struct engine_vectors *vectors;
        struct engine_kept *kept;
    } u;
    uint32_t len; /* of the bytes of a string */
    unsigned type : 4;
    unsigned encoding : 4;
    unsigned lru : 24; /* last access or LFU counter; engine/evict.h */
};

/* "string", "list" …: the words of TYPE; "int", "embstr" …: those of OBJECT ENCODING. */
const char *engine_type_name(enum engine_type type);
const char *engine_encoding_name(const struct engine_value *v);

/* Prefetches the memory that the value points to. Harmless for a value without a pointer. */
static inline void engine_value_prefetch(const struct engine_value *v)
{
    __builtin_prefetch(v->u.bytes);
}

/* The same, and the next lines of a small collection, which is read from its first byte on. */
static inline void engine_value_prefetch_whole(const struct engine_value *v)
{
    engine_value_prefetch(v);
    if (v->encoding != ENGINE_LISTPACK)
        return;
    for (int line = 1; line < 4; line++)
        __builtin_prefetch(v->u.bytes + 64 * line);
}

/* Frees the data of the value. EMBSTR: nothing, its entry has the bytes. */
void engine_value_free(struct engine_value *v);

/* A copy that owns its data, to be stored: the bytes of an EMBSTR are in a block until then. */
struct engine_value engine_value_dup(const struct engine_value *v);

/* The number of elements: 1 for a string; pairs of a hash; entries of a stream. */
uint64_t engine_value_count(const struct engine_value *v);

/* The cost of freeing it: the approximate number of heap blocks. Above 64, servers free it in the
 * background.
 */
size_t engine_value_effort(const struct engine_value *v);

/* The earliest expiry of its parts, or an earlier time; RDB_NO_EXPIRE: none. Constant time. */
int64_t engine_value_next_expire(const struct engine_value *v);

/* The table of its members or fields; NULL: its encoding has none. */
struct engine_table *engine_value_table(const struct engine_value *v);

/* Postpones the resize of its table, if it has one; see engine_table_hold(). */
void engine_value_hold(struct engine_value *v, bool on);

/* DEBUG DIGEST-VALUE: mixes the content into sum as servers of Redis 7.0 do (engine/digest.h). */
void engine_value_digest(const struct engine_value *v, uint8_t sum[20]);

/* ---- strings ---- */

/* A RAW or INT string with its own data: INT if the text is a canonical int64. */
struct engine_value engine_string_new(struct rd_slice text);

/* Always RAW. */
struct engine_value engine_string_raw(struct rd_slice text);

/* The text; tmp receives the digits of INT. Valid until the value changes. */
static inline struct rd_slice engine_string_text(const struct engine_value *v,
                                                 char tmp[RD_NUM_I64_MAX])
{
    return v->encoding == ENGINE_INT ? rd_slice(tmp, rd_num_put_i64(tmp, v->u.num))
                                     : rd_slice(v->u.bytes, v->len);
}

size_t engine_string_len(const struct engine_value *v);

/* Makes it RAW with room for at least `len` bytes (keeps its bytes and its length), and returns the
 * block. Amortized constant time per byte if called for each append. */
uint8_t *engine_string_room(struct engine_value *v, size_t len);

/* ---- to and from snapshots ----
 *
 * The load function of a type receives the events of one value from a reader with
 * RDB_DETAIL_PACKED, VALUE to VALUE_END. v is zeroed before the first event, and owns the data so
 * far even after a failure. Values that do not fit the encodings of `config` are converted as by a
 * server.
 */

typedef bool (*engine_load_fn)(struct engine_value *v, const struct rdb_event *ev,
                               const struct engine_config *config, struct rd_err *err);

struct rdb_writer;

/* Writes VALUE … VALUE_END; packed encodings unchanged. */
typedef bool (*engine_save_fn)(const struct engine_value *v, struct rdb_writer *w,
                               struct rd_err *err);

/* The functions of a type; one struct in each file of engine/value/. */
struct engine_type_ops {
    void (*free)(struct engine_value *v);
    void (*dup)(struct engine_value *ret,
                const struct engine_value *v); /* ret->type etc. are set */
    uint64_t (*count)(const struct engine_value *v);
    size_t (*effort)(const struct engine_value *v);
    int64_t (*next_expire)(const struct engine_value *v);        /* NULL: parts do not expire */
    struct engine_table *(*table)(const struct engine_value *v); /* NULL: no encoding has one */
    void (*digest)(const struct engine_value *v, uint8_t sum[20]);
    engine_load_fn load;
    engine_save_fn save;
};

extern const struct engine_type_ops engine_string_ops;
extern const struct engine_type_ops engine_list_ops;
extern const struct engine_type_ops engine_set_ops;
extern const struct engine_type_ops engine_zset_ops;
extern const struct engine_type_ops engine_hash_ops;
extern const struct engine_type_ops engine_module_ops;
extern const struct engine_type_ops engine_stream_ops;
extern const struct engine_type_ops engine_kept_ops;

const struct engine_type_ops *engine_type_ops(enum engine_type type);

/* The kind of memory of a value's blocks: enter it around code that makes or changes one. Commands
 * are called with the kind of their family. */
enum engine_mem_kind engine_type_mem(enum engine_type type);

/* The RDB type that stands for all encodings of the value's type: for KEY events to a writer, which
 * reads the encoding from VALUE. */
const struct rdb_type *engine_value_in_files(const struct engine_value *v);

/* Strings of a snapshot can come in several pieces: this joins them.
 *
 *     struct engine_pieces pieces = {0};
 *     if (!engine_pieces_take(&pieces, &ev->elem.str, &text))
 *         return true;                       // more to come
 *     use(text);                             // until the next call
 */
struct engine_pieces {
    uint8_t *ptr;
    size_t len;
    size_t cap;
    char tmp[RD_NUM_I64_MAX];
};

bool engine_pieces_take(struct engine_pieces *pieces, const struct rdb_string *str,
                        struct rd_slice *ret);
void engine_pieces_done(struct engine_pieces *pieces);

#endif
