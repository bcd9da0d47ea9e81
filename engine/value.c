#include "engine/value.h"

#include "engine/table.h"
#include "engine/value/hash.h"
#include "engine/value/kept.h"

static const struct engine_type_ops *const all_ops[ENGINE_TYPES] = {
    [ENGINE_STRING] = &engine_string_ops, [ENGINE_LIST] = &engine_list_ops,
    [ENGINE_SET] = &engine_set_ops,       [ENGINE_ZSET] = &engine_zset_ops,
    [ENGINE_HASH] = &engine_hash_ops,     [ENGINE_MODULE] = &engine_module_ops,
    [ENGINE_STREAM] = &engine_stream_ops, [ENGINE_KEPT] = &engine_kept_ops,
};

static const enum engine_mem_kind mem_kinds[ENGINE_TYPES] = {
    [ENGINE_STRING] = ENGINE_MEM_STRING, [ENGINE_LIST] = ENGINE_MEM_LIST,
    [ENGINE_SET] = ENGINE_MEM_SET,       [ENGINE_ZSET] = ENGINE_MEM_ZSET,
    [ENGINE_HASH] = ENGINE_MEM_HASH,     [ENGINE_MODULE] = ENGINE_MEM_OTHER,
    [ENGINE_STREAM] = ENGINE_MEM_STREAM, [ENGINE_KEPT] = ENGINE_MEM_OTHER,
};

const char *engine_type_name(enum engine_type type)
{
    static const char *const names[ENGINE_TYPES] = {"string", "list",   "set",    "zset",
                                                    "hash",   "module", "stream", "kept"};
    return names[type];
}

const char *engine_encoding_name(const struct engine_value *v)
{
    static const char *const names[ENGINE_ENCODINGS] = {
        "int",       "embstr",   "raw",    "listpack", "intset", "quicklist",
        "hashtable", "skiplist", "stream", "raw",      "raw",    "raw",
    };
    if (v->type == ENGINE_HASH && engine_hash_is_triples(v))
        return "listpackex";
    return names[v->encoding];
}

const struct engine_type_ops *engine_type_ops(enum engine_type type)
{
    return all_ops[type];
}

enum engine_mem_kind engine_type_mem(enum engine_type type)
{
    return mem_kinds[type];
}

const struct rdb_type *engine_value_in_files(const struct engine_value *v)
{
    static const enum rdb_type_id types[ENGINE_TYPES] = {
        [ENGINE_STRING] = RDB_TYPE_STRING,
        [ENGINE_LIST] = RDB_TYPE_LIST_QUICKLIST_2,
        [ENGINE_SET] = RDB_TYPE_SET,
        [ENGINE_ZSET] = RDB_TYPE_ZSET_2,
        [ENGINE_HASH] = RDB_TYPE_HASH,
        [ENGINE_MODULE] = RDB_TYPE_MODULE_2,
        [ENGINE_STREAM] = RDB_TYPE_STREAM_LISTPACKS_2,
    };
    return v->type == ENGINE_KEPT ? v->u.kept->type : rdb_type_get(types[v->type]);
}

void engine_value_free(struct engine_value *v)
{
    enum engine_mem_kind before = engine_mem_enter(mem_kinds[v->type]);
    all_ops[v->type]->free(v);
    engine_mem_leave(before);
    v->u.num = 0;
}

struct engine_value engine_value_dup(const struct engine_value *v)
{
    struct engine_value copy = *v;
    enum engine_mem_kind before = engine_mem_enter(mem_kinds[v->type]);
    all_ops[v->type]->dup(&copy, v);
    engine_mem_leave(before);
    return copy;
}

struct engine_table *engine_value_table(const struct engine_value *v)
{
    const struct engine_type_ops *ops = all_ops[v->type];
    return ops->table != NULL ? ops->table(v) : NULL;
}

void engine_value_hold(struct engine_value *v, bool on)
{
    struct engine_table *table = engine_value_table(v);
    if (table != NULL)
        engine_table_hold(table, on);
}

uint64_t engine_value_count(const struct engine_value *v)
{
    return all_ops[v->type]->count(v);
}

size_t engine_value_effort(const struct engine_value *v)
{
    return all_ops[v->type]->effort(v);
}

int64_t engine_value_next_expire(const struct engine_value *v)
{
    const struct engine_type_ops *ops = all_ops[v->type];
    return ops->next_expire != NULL ? ops->next_expire(v) : RDB_NO_EXPIRE;
}

void engine_value_digest(const struct engine_value *v, uint8_t sum[20])
{
    all_ops[v->type]->digest(v, sum);
}

static void gather(struct engine_pieces *pieces, struct rd_slice piece)
{
    if (piece.len > pieces->cap - pieces->len) {
        size_t cap = pieces->len + piece.len;
        pieces->cap = cap + cap / 2;
        pieces->ptr = engine_scratch_realloc(pieces->ptr, pieces->cap);
    }
    if (piece.len > 0)
        memcpy(pieces->ptr + pieces->len, piece.ptr, piece.len);
    pieces->len += piece.len;
}

bool engine_pieces_take(struct engine_pieces *pieces, const struct rdb_string *str,
                        struct rd_slice *ret)
{
    struct rd_slice piece = rdb_string_bytes(str, pieces->tmp);
    if (str->first && !str->more) {
        *ret = piece;
        return true;
    }
    if (str->first)
        pieces->len = 0;
    gather(pieces, piece);
    *ret = rd_slice(pieces->ptr, pieces->len);
    return !str->more;
}

void engine_pieces_done(struct engine_pieces *pieces)
{
    engine_scratch_free(pieces->ptr);
    *pieces = (struct engine_pieces){0};
}
