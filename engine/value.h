/* value.h - what a key holds: a type, an encoding, and what the encoding needs.
 *
 * A value is 16 bytes that lie in the entry of its key (engine/db.h) or, while it is made, on the
 * stack of a command. Whoever holds it owns what it points to; storing it under a key moves it.
 *
 *     encoding      types                what `u` is
 *     INT           string               num
 *     EMBSTR        string               bytes: they lie in the entry of the key itself, after its
 *                                        name; those of a copy that is not stored yet are a block
 *     RAW           string               bytes: a block of the heap, with room as engine_usable()
 * says LISTPACK      hash, zset           lp: engine/listpack.h INTSET        set intset:
 * engine/intset.h QUICKLIST     list                 list: engine/value/list.h HASHTABLE     set,
 * hash            set: engine/value/set.h; hash: engine/value/hash.h SKIPLIST      zset zset:
 * engine/value/zset.h STREAM        stream               stream: engine/value/stream.h OPAQUE
 * module               opaque: the serialized value, kept and saved as it is
 *
 * Each type has one file in engine/value/ with the functions that every type needs; the functions
 * here find the right one.
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
    ENGINE_ENCODINGS
};

/* The longest string that is kept beside its key, as OBJECT ENCODING shows it. */
enum { ENGINE_EMBSTR_MAX = 44 };

struct engine_list;
struct engine_set;
struct engine_hash;
struct engine_zset;
struct engine_stream;
struct engine_opaque;

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
    } u;
    uint32_t len; /* of the bytes of a string */
    unsigned type : 4;
    unsigned encoding : 4;
    unsigned lru : 24; /* last access, or LFU counter; engine/evict.h */
};

/* "string", "list" …: the words of TYPE; "int", "embstr" …: those of OBJECT ENCODING. */
const char *engine_type_name(enum engine_type type);
const char *engine_encoding_name(const struct engine_value *v);

/* Asks for the memory of what the value points to. What is no pointer does no harm. */
static inline void engine_value_prefetch(const struct engine_value *v)
{
    __builtin_prefetch(v->u.bytes);
}

/* Frees what the value points to. EMBSTR: nothing, its entry holds it. */
void engine_value_free(struct engine_value *v);

/* A copy that owns all it points to, to be stored: an EMBSTR lies in a block until then. */
struct engine_value engine_value_dup(const struct engine_value *v);

/* Elements: of a string 1; pairs of a hash; entries of a stream. */
uint64_t engine_value_count(const struct engine_value *v);

/* How much work freeing it is: blocks of the heap, about. Above 64 servers free in the background.
 */
size_t engine_value_effort(const struct engine_value *v);

/* When the first of its parts expires, or earlier; RDB_NO_EXPIRE: none does. Constant time. */
int64_t engine_value_next_expire(const struct engine_value *v);

/* DEBUG DIGEST-VALUE: mixes the contents into sum as servers of 7.0 do (engine/digest.h). */
void engine_value_digest(const struct engine_value *v, uint8_t sum[20]);

/* ---- strings ---- */

/* A RAW or INT string of its own: INT where the text is a canonical int64. */
struct engine_value engine_string_new(struct rd_slice text);

/* RAW in any case. */
struct engine_value engine_string_raw(struct rd_slice text);

/* The text; tmp holds the digits of INT. Lives until the value changes. */
static inline struct rd_slice engine_string_text(const struct engine_value *v,
                                                 char tmp[RD_NUM_I64_MAX])
{
    return v->encoding == ENGINE_INT ? rd_slice(tmp, rd_num_put_i64(tmp, v->u.num))
                                     : rd_slice(v->u.bytes, v->len);
}

size_t engine_string_len(const struct engine_value *v);

/* Makes it RAW with room for at least `len` bytes (its own bytes are kept, len is not changed), and
 * returns the block. Amortized constant per byte when called for each append. */
uint8_t *engine_string_room(struct engine_value *v, size_t len);

/* ---- to and from snapshots ----
 *
 * A type's load function is given the events of one value as a reader with RDB_DETAIL_PACKED gives
 * them, VALUE to VALUE_END; v is zeroed before the first, and owns what was made so far also after
 * a failure. What does not fit the encodings of `config` is converted as a server does on loading.
 */

typedef bool (*engine_load_fn)(struct engine_value *v, const struct rdb_event *ev,
                               const struct engine_config *config, struct rd_err *err);

struct rdb_writer;

/* Puts VALUE … VALUE_END; packed encodings as they are. */
typedef bool (*engine_save_fn)(const struct engine_value *v, struct rdb_writer *w,
                               struct rd_err *err);

/* What every type brings: one in each file of engine/value/. */
struct engine_type_ops {
    void (*free)(struct engine_value *v);
    void (*dup)(struct engine_value *ret,
                const struct engine_value *v); /* ret->type etc. are set */
    uint64_t (*count)(const struct engine_value *v);
    size_t (*effort)(const struct engine_value *v);
    int64_t (*next_expire)(const struct engine_value *v); /* NULL: parts do not expire */
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

const struct engine_type_ops *engine_type_ops(enum engine_type type);

/* What the blocks of a value count as: to be entered around whatever makes or changes one. Commands
 * of a family are called so already. */
enum engine_mem_kind engine_type_mem(enum engine_type type);

/* The type of the format that stands for all encodings of this one: for KEY events to a writer,
 * which takes the encoding from VALUE. */
const struct rdb_type *engine_type_in_files(enum engine_type type);

/* Strings of a snapshot may come in several pieces: this puts them together.
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
