#include "tools/stat/memory.h"

#include <math.h>

/* Structures that are the same in all servers. */
enum {
    OBJECT = 16,
    QUICKLIST = 40,
    ZSET = 16,
    SKIPLIST = 32,
    SKIPLIST_HEAD = 640, /* 24 bytes and 32 levels */
    LISTPACK_HEAD = 7,   /* with the end mark */
    INTSET_HEAD = 8,
    GROUP = 40,
    PENDING_ENTRY = 24,
    EMBEDDED_MAX = 44, /* strings up to here share the allocation of their object */
    LIST_NODE = 8192,  /* bytes of a list's node */
    HASH_PACKED_MAX = 512,
    ZSET_PACKED_MAX = 128,
    SET_PACKED_MAX = 128,
    INTSET_MAX = 512,
    ELEM_PACKED_MAX = STAT_PACKED_ELEMENT,
    FIELD_TTL = 32,    /* of a field that expires */
    LISTPACK_EX = 32,  /* a packed hash whose fields expire */
    EMBEDDED_HEAD = 17 /* of an entry that holds its key */
};

/* A skip list node takes 24 bytes and 16 for each of its levels; three of four nodes have one
 * level, and so on. The mean of the allocations 48, 64, 80, 96 … (40, 56, 80, 96 … with a quantum
 * of 8) with the weights 3/4, 3/16, 3/64 … is 53.3 (45.8). */
enum { SKIPLIST_NODE_X3 = 160, SKIPLIST_NODE_FINE_X3 = 137 };

enum layout_id { REDIS_OLD, REDIS_3, REDIS_70, REDIS_72, REDIS_74, VALKEY_8, VALKEY_9 };

static const struct stat_layout layouts[] = {
    [REDIS_OLD] = {"Redis 3.0 and before", 24, 96, 24, 24, 32, 32, 24, .quantum = 8, .exact = true},
    [REDIS_3] = {"Redis 3.2 to 6.2", 24, 96, 24, 24, 32, 32, 24, .quantum = 8, .exact = true},
    [REDIS_70] = {"Redis 7.0", 24, 56, 24, 24, 40, 80, 24, .quantum = 16},
    [REDIS_72] = {"Redis 7.2", 24, 56, 24, 24, 32, 80, 32, .set_listpack = true, .quantum = 8,
                  .list_packed = true},
    [REDIS_74] = {"Redis 7.4 and later", 24, 56, 24, 24, 32, 80, 32, .set_listpack = true,
                  .quantum = 8, .list_packed = true},
    [VALKEY_8] = {"Valkey 8", 24, 56, 24, 16, 32, 80, 32, .set_listpack = true, .quantum = 8,
                  .list_packed = true, .embedded_key = true, .bare_keys = true},
    [VALKEY_9] = {"Valkey 9", 0, 64, 16, 0, 32, 80, 32, .set_listpack = true, .buckets = true,
                  .quantum = 8, .list_packed = true},
};

const struct stat_layout *stat_layout_of(enum rdb_dialect dialect, int version)
{
    if (dialect == RDB_VALKEY)
        return &layouts[VALKEY_9];
    if (version >= 12)
        return &layouts[REDIS_74];
    if (version == 11)
        return &layouts[REDIS_72];
    if (version == 10)
        return &layouts[REDIS_70];
    return &layouts[version >= 7 ? REDIS_3 : REDIS_OLD];
}

const struct stat_layout *stat_layout_of_valkey(const struct stat_layout *layout,
                                                struct rd_slice text)
{
    bool eight = text.len > 1 && text.ptr[0] == '8' && text.ptr[1] == '.';
    return layout == &layouts[REDIS_72] && eight ? &layouts[VALKEY_8] : layout;
}

const struct stat_layout *stat_layout_for(enum cli_server server)
{
    static const enum layout_id of[CLI_SERVER_COUNT] = {
        [CLI_REDIS_2_8] = REDIS_OLD, [CLI_REDIS_3_0] = REDIS_OLD, [CLI_REDIS_3_2] = REDIS_3,
        [CLI_REDIS_4_0] = REDIS_3,   [CLI_REDIS_5_0] = REDIS_3,   [CLI_REDIS_6_0] = REDIS_3,
        [CLI_REDIS_6_2] = REDIS_3,   [CLI_REDIS_7_0] = REDIS_70,  [CLI_REDIS_7_2] = REDIS_72,
        [CLI_REDIS_7_4] = REDIS_74,  [CLI_REDIS_8_0] = REDIS_74,  [CLI_VALKEY_7_2] = REDIS_72,
        [CLI_VALKEY_8] = VALKEY_8,   [CLI_VALKEY_9] = VALKEY_9,   [CLI_VALKEY_9_2] = VALKEY_9,
        [CLI_REDIS_8_6] = REDIS_74,  [CLI_REDIS_8_8] = REDIS_74,  [CLI_REDIS_8_10] = REDIS_74};
    return &layouts[of[server]];
}

/* A packed string, as MEMORY USAGE counts it. */
static uint64_t packed_size(const struct stat_layout *layout, uint64_t len)
{
    return layout->exact ? len : stat_memory_alloc(layout, len);
}

static bool has_ttls(enum rdb_type_id id)
{
    return id == RDB_TYPE_HASH_LISTPACK_EX || id == RDB_TYPE_HASH_LISTPACK_EX_PRE_GA;
}

uint64_t stat_memory_string(const struct stat_layout *layout, uint64_t len, bool number)
{
    if (number)
        return OBJECT;
    if (len > EMBEDDED_MAX)
        return OBJECT + stat_memory_sds(layout, len);
    /* Up to 6.2 the server counts two bytes for the head and the NUL. */
    return layout->exact ? OBJECT + len + 2 : stat_memory_alloc(layout, OBJECT + 3 + len + 1);
}

uint64_t stat_memory_blob(const struct stat_layout *layout, enum rdb_type_id id, uint64_t len)
{
    return OBJECT + packed_size(layout, len) + (has_ttls(id) ? LISTPACK_EX : 0);
}

uint64_t stat_memory_list(const struct stat_layout *layout, enum rdb_type_id id, uint64_t len)
{
    if (id == RDB_TYPE_LIST_ZIPLIST || (layout->list_packed && len <= LIST_NODE))
        return stat_memory_blob(layout, id, len);
    return OBJECT + QUICKLIST + layout->node + packed_size(layout, len);
}

uint64_t stat_memory_key(const struct stat_layout *layout, uint64_t name_len)
{
    uint64_t head = name_len < 32 ? 1 : name_len < 256 ? 3 : name_len < 65536 ? 5 : 9;
    if (layout->embedded_key)
        return stat_memory_alloc(layout, EMBEDDED_HEAD + head + name_len + 1);
    return layout->key_entry + stat_memory_sds(layout, name_len);
}

/* The number of slots of a table for n entries. */
static uint64_t table(const struct stat_layout *layout, uint64_t n)
{
    uint64_t slots = 4;
    if (layout->buckets)
        n = n / 6 + 1;
    while (slots < n && slots < UINT64_C(1) << 62)
        slots *= 2;
    return layout->buckets ? slots * 64 : slots * 8;
}

uint64_t stat_memory_tables(const struct stat_layout *layout, uint64_t keys, uint64_t expires)
{
    uint64_t all = keys > 0 ? table(layout, keys) : 0;
    if (expires > 0)
        all += table(layout, expires) + expires * layout->key_entry;
    return all;
}

/* ---- elements ---- */

static uint64_t int_digits(int64_t num)
{
    char text[RD_NUM_I64_MAX];
    return rd_num_put_i64(text, num);
}

/* The size of a listpack entry. */
static uint64_t packed_int(int64_t v)
{
    if (v >= 0 && v <= 127)
        return 2;
    if (v >= -4096 && v <= 4095)
        return 3;
    if (v >= INT16_MIN && v <= INT16_MAX)
        return 4;
    if (v >= -(1 << 23) && v < 1 << 23)
        return 5;
    return v >= INT32_MIN && v <= INT32_MAX ? 6 : 10;
}

static uint64_t packed_text(uint64_t len)
{
    uint64_t size = len + (len < 64 ? 1 : len < 4096 ? 2 : 5);
    return size + (size < 128 ? 1 : size < 16383 ? 2 : size < 2097151 ? 3 : 5);
}

void stat_value_begin(struct stat_value *value, const struct stat_layout *layout,
                      const struct rdb_type *type)
{
    *value = (struct stat_value){.layout = layout,
                                 .type = type,
                                 .low = INT64_MAX,
                                 .high = INT64_MIN,
                                 .inside = RD_NO_OFFSET};
}

/* Counts the bytes of an element in a packed collection, as long as the collection may be packed.
*/
static void note_packed(struct stat_value *value, const struct rdb_string *str, uint64_t len)
{
    int64_t num = str->num;
    bool whole = !str->is_int && str->first && !str->more;
    if (str->is_int || (whole && len <= RD_NUM_I64_MAX && len > 0 &&
                        rd_num_get_i64(rd_slice(str->ptr, str->len), &num))) {
        value->n_digits++;
        value->low = num < value->low ? num : value->low;
        value->high = num > value->high ? num : value->high;
        value->packed += packed_int(num);
        value->number = true;
        return;
    }
    value->packed += packed_text(len);
}

static void add_node(struct stat_value *value, uint64_t len)
{
    value->blobs += value->type->kind == RDB_KIND_STREAM ? stat_memory_alloc(value->layout, len)
                                                         : packed_size(value->layout, len);
    value->nodes++;
    value->largest_blob = len > value->largest_blob ? len : value->largest_blob;
}

void stat_value_elem(struct stat_value *value, const struct rdb_event *ev)
{
    const struct rdb_string *str = &ev->elem.str;
    if (ev->elem.role == RDB_ROLE_VALUE && !str->more)
        value->ttls += ev->elem.expire_ms != RDB_NO_EXPIRE;
    if (!str->first)
        return;
    uint64_t len = str->is_int ? int_digits(str->num) : str->total;
    value->length = len;
    value->largest = len > value->largest ? len : value->largest;
    if (value->inside != RD_NO_OFFSET && ev->offset == value->inside)
        return;
    if (value->type->id == RDB_TYPE_LIST_QUICKLIST_2) {
        value->plain = true;
        add_node(value, len);
        return;
    }
    value->elems++;
    value->strings += stat_memory_sds(value->layout, len);
    if (value->elems <= 2 * HASH_PACKED_MAX || value->type->kind == RDB_KIND_LIST)
        note_packed(value, str, len);
    if (value->type->kind == RDB_KIND_ZSET && value->elems <= ZSET_PACKED_MAX) {
        char digits[RD_NUM_F64_MAX];
        double score = ev->elem.score;
        bool whole = score >= -9e15 && score <= 9e15 && score == (double)(int64_t)score;
        value->packed +=
            whole ? packed_int((int64_t)score) : packed_text(rd_num_put_f64(digits, score));
    }
}

void stat_value_blob(struct stat_value *value, const struct rdb_event *ev)
{
    add_node(value, ev->packed.blob.len);
    if (ev->kind == RDB_PACKED_LONG)
        value->inside = ev->offset;
    value->plain |= ev->packed.plain;
    if (value->type->kind == RDB_KIND_STREAM)
        stat_rax_add(&value->rax, ev->packed.node);
}

/* ---- streams ---- */

static void end_pending(struct stat_value *value)
{
    if (value->pending.n > 0 || value->other > 0)
        value->other += stat_rax_memory(&value->pending);
    value->pending = (struct stat_rax){0};
}

void stat_value_group(struct stat_value *value, const struct rdb_event *ev)
{
    switch (ev->kind) {
    case RDB_GROUP:
        end_pending(value);
        value->other += GROUP;
        break;
    case RDB_PENDING:
        value->other += PENDING_ENTRY;
        stat_rax_add(&value->pending, ev->pending.id);
        break;
    case RDB_CONSUMER:
        end_pending(value);
        value->other += value->layout->consumer + ev->consumer.name.len;
        break;
    case RDB_OWNED:
        stat_rax_add(&value->pending, ev->id);
        break;
    case RDB_PRODUCER:
        value->other += OBJECT + stat_memory_sds(value->layout, ev->producer.name.len);
        break;
    case RDB_PRODUCED:
        value->other += OBJECT + stat_memory_sds(value->layout, ev->produced.name.len);
        break;
    default:
        break;
    }
}

static uint64_t stream_memory(struct stat_value *value)
{
    end_pending(value);
    return OBJECT + value->layout->stream + stat_rax_memory(&value->rax) + value->blobs +
           value->other;
}

/* ---- collections ---- */

static uint64_t listpack(const struct stat_value *value)
{
    return OBJECT + packed_size(value->layout, LISTPACK_HEAD + value->packed);
}

static uint64_t list_memory(const struct stat_value *value)
{
    uint64_t nodes = value->nodes, bytes = value->blobs;
    bool small = value->layout->list_packed && nodes == 1 && !value->plain &&
                 value->largest_blob <= LIST_NODE && value->elems == 0;
    if (value->type->id == RDB_TYPE_LIST_ZIPLIST || small)
        return OBJECT + bytes;
    if (value->elems > 0) { /* that came one by one: linked lists and plain nodes */
        if (nodes == 0 && value->layout->list_packed && value->packed <= LIST_NODE)
            return listpack(value);
        uint64_t more = value->packed / LIST_NODE + 1;
        nodes += more;
        bytes += value->packed + more * LISTPACK_HEAD;
    }
    return OBJECT + QUICKLIST + nodes * value->layout->node + bytes;
}

static uint64_t intset(const struct stat_value *value)
{
    uint64_t width = value->low >= INT16_MIN && value->high <= INT16_MAX   ? 2
                     : value->low >= INT32_MIN && value->high <= INT32_MAX ? 4
                                                                           : 8;
    return OBJECT + packed_size(value->layout, INTSET_HEAD + value->elems * width);
}

/* The entries of a set's table of pointers. Where a member needs none as long as it is alone in its
 * place: of n members in m places, m (1 - e^(-n/m)) are the first in theirs. */
static uint64_t set_entries(const struct stat_layout *l, uint64_t n)
{
    if (!l->bare_keys || n == 0)
        return n * l->set_entry;
    double places = (double)(table(l, n) / 8);
    double alone = places * -expm1(-(double)n / places);
    return (uint64_t)(((double)n - alone) * l->set_entry);
}

static uint64_t set_memory(const struct stat_value *value)
{
    const struct stat_layout *l = value->layout;
    if (value->elems <= INTSET_MAX && value->n_digits == value->elems)
        return intset(value);
    if (l->set_listpack && value->elems <= SET_PACKED_MAX && value->largest <= ELEM_PACKED_MAX)
        return listpack(value);
    return OBJECT + l->dict + table(l, value->elems) + set_entries(l, value->elems) +
           value->strings;
}

static uint64_t zset_memory(const struct stat_value *value)
{
    const struct stat_layout *l = value->layout;
    if (value->elems <= ZSET_PACKED_MAX && value->largest <= ELEM_PACKED_MAX)
        return listpack(value);
    return OBJECT + ZSET + SKIPLIST + SKIPLIST_HEAD + l->dict + table(l, value->elems) +
           value->elems * l->entry +
           value->elems * (l->quantum == 8 ? SKIPLIST_NODE_FINE_X3 : SKIPLIST_NODE_X3) / 3 +
           value->strings;
}

static uint64_t hash_memory(const struct stat_value *value)
{
    const struct stat_layout *l = value->layout;
    uint64_t pairs = value->elems / 2;
    if (pairs <= HASH_PACKED_MAX && value->largest <= ELEM_PACKED_MAX && value->ttls == 0)
        return listpack(value);
    return OBJECT + l->dict + table(l, pairs) + pairs * l->entry + value->strings +
           value->ttls * FIELD_TTL;
}

uint64_t stat_value_end(struct stat_value *value, uint64_t bytes)
{
    bool packed = value->nodes > 0 && value->elems == 0;
    uint64_t around = OBJECT + (has_ttls(value->type->id) ? LISTPACK_EX : 0);
    switch (value->type->kind) {
    case RDB_KIND_STRING:
        return stat_memory_string(value->layout, value->largest, value->number);
    case RDB_KIND_LIST:
        return list_memory(value);
    case RDB_KIND_STREAM:
        return stream_memory(value);
    case RDB_KIND_SET:
        return packed ? OBJECT + value->blobs : set_memory(value);
    case RDB_KIND_ZSET:
        return packed ? OBJECT + value->blobs : zset_memory(value);
    case RDB_KIND_HASH:
        return packed ? around + value->blobs : hash_memory(value);
    case RDB_KIND_ARRAY:
        return OBJECT + value->elems * 8 + value->strings;
    case RDB_KIND_MODULE:
        break;
    }
    return OBJECT + stat_memory_alloc(value->layout, bytes);
}

uint64_t stat_value_packed(const struct stat_value *value)
{
    static const uint64_t most[RDB_KIND_COUNT] = {[RDB_KIND_SET] = SET_PACKED_MAX,
                                                  [RDB_KIND_ZSET] = ZSET_PACKED_MAX,
                                                  [RDB_KIND_HASH] = 2 * HASH_PACKED_MAX};
    bool few = value->elems > 0 && value->elems <= most[value->type->kind];
    return few && value->nodes == 0 && value->ttls == 0 ? listpack(value) : 0;
}
