#include "stat/memory.h"

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
    LISTPACK_EX = 32, /* a packed hash whose fields expire */
    DICT_ENTRY = 24,
    BARE_ENTRY = 16,    /* of a table in which most elements need none */
    EMBEDDED_HEAD = 17, /* of an entry that holds its key */
    BUCKET = 64,
    BUCKET_PLACES = 7,
    FIELD_MAX = 128, /* a field and its value share an allocation up to here */
    LEVEL = 16,      /* of a node of a skip list */
    RAX_HEAD = 8     /* an empty radix tree */
};

static uint64_t object(const struct stat_layout *layout)
{
    return layout->place == STAT_NAME_IN_OBJECT ? 0 : OBJECT; /* that of the key */
}

static uint64_t sds_size(uint64_t len)
{
    uint64_t head = len < 32 ? 1 : len < 256 ? 3 : len < 65536 ? 5 : len < UINT32_MAX ? 9 : 17;
    return head + len + 1;
}

static bool has_ttls(enum rdb_type_id id)
{
    return id == RDB_TYPE_HASH_LISTPACK_EX || id == RDB_TYPE_HASH_LISTPACK_EX_PRE_GA;
}

/* An object that holds the name, and `more` bytes. */
static uint64_t object_size(uint64_t name_len, bool expires, uint64_t more)
{
    return OBJECT + 1 + sds_size(name_len) + more + (expires ? UINT64_C(8) : 0);
}

/* A string that is short enough is in the object, where it takes the form with three bytes. */
static uint64_t string_in_object(const struct stat_layout *l, const struct stat_string *string)
{
    uint64_t value = 3 + string->len + 1;
    uint64_t alone = object_size(string->name_len, string->expires, 0);
    uint64_t both = alone + value - (l->no_pointer ? sizeof(uint64_t) : 0);
    if (string->number)
        return stat_layout_alloc(l, alone);
    if (both <= l->embedded)
        return stat_layout_alloc(l, both);
    return stat_layout_alloc(l, alone) + stat_memory_sds(l, string->len);
}

uint64_t stat_memory_string(const struct stat_layout *layout, const struct stat_string *string)
{
    if (layout->place == STAT_NAME_IN_OBJECT)
        return string_in_object(layout, string);
    uint64_t key = stat_memory_key(layout, string->name_len, string->expires);
    if (string->number)
        return key + OBJECT;
    if (string->len > EMBEDDED_MAX)
        return key + OBJECT + stat_memory_sds(layout, string->len);
    return key + stat_layout_alloc(layout, OBJECT + 3 + string->len + 1);
}

uint64_t stat_memory_blob(const struct stat_layout *layout, enum rdb_type_id id, uint64_t len)
{
    return object(layout) + stat_layout_alloc(layout, len) + (has_ttls(id) ? LISTPACK_EX : 0);
}

uint64_t stat_memory_list(const struct stat_layout *layout, enum rdb_type_id id, uint64_t len)
{
    if (id == RDB_TYPE_LIST_ZIPLIST || (layout->list_packed && len <= LIST_NODE))
        return stat_memory_blob(layout, id, len);
    return object(layout) + stat_layout_alloc(layout, QUICKLIST) +
           stat_layout_alloc(layout, layout->node) + stat_layout_alloc(layout, len);
}

uint64_t stat_memory_key(const struct stat_layout *layout, uint64_t name_len, bool expires)
{
    switch (layout->place) {
    case STAT_NAME_IN_OBJECT:
        return stat_layout_alloc(layout, object_size(name_len, expires, 0));
    case STAT_NAME_IN_ENTRY:
        return stat_layout_alloc(layout, EMBEDDED_HEAD + sds_size(name_len));
    case STAT_NAME_APART:
        break;
    }
    return stat_layout_alloc(layout, DICT_ENTRY) + stat_memory_sds(layout, name_len);
}

/* ---- tables ---- */

static uint64_t power_of_two(uint64_t least, uint64_t n)
{
    while (least < n && least < UINT64_C(1) << 62)
        least *= 2;
    return least;
}

/* The entries of a table whose elements need one only where they meet: of n elements in m places,
 * m (1 - e^(-n/m)) are the first in theirs. */
static uint64_t met(uint64_t n, uint64_t places)
{
    double first = (double)places * -expm1(-(double)n / (double)places);
    return first < (double)n ? (uint64_t)((double)n - first) : 0;
}

/* The further buckets that k elements of one bucket need. */
static unsigned chain(unsigned k)
{
    return k <= BUCKET_PLACES ? 0 : (k - 2) / (BUCKET_PLACES - 1);
}

/* The further buckets of a table of n elements in m buckets. A full one gives its last place for
 * the address of the next. The number of elements of a bucket has Poisson's distribution. */
static uint64_t further_buckets(uint64_t n, uint64_t buckets)
{
    enum { MOST = 64 };
    double mean = (double)n / (double)buckets, chance = exp(-mean), sum = 0;
    for (unsigned k = 1; k < MOST; k++) {
        chance *= mean / k;
        sum += chance * chain(k);
    }
    return (uint64_t)(sum * (double)buckets + 0.5);
}

/* A table of n elements in this many buckets at least. */
static uint64_t bucket_table(uint64_t n, uint64_t least)
{
    uint64_t buckets = power_of_two(1, least);
    return n == 0 ? 0 : (buckets + further_buckets(n, buckets)) * BUCKET;
}

/* A table of elements that are allocations of their own, as it is after loading. One of buckets
 * is made for 32 elements for each five. */
static uint64_t table(const struct stat_layout *layout, enum stat_table_kind kind, uint64_t n)
{
    if (kind == STAT_TABLE_BUCKETS)
        return bucket_table(n, n == 0 ? 0 : (n - 1) * 5 / 32 + 1);
    uint64_t places = power_of_two(4, n);
    uint64_t entries = kind == STAT_TABLE_BARE ? met(n, places) * BARE_ENTRY
                                               : n * stat_layout_alloc(layout, DICT_ENTRY);
    return places * 8 + entries;
}

/* A table of a database, which grows with its keys: where it has buckets, when all are full on
 * average. */
static uint64_t keys_table(const struct stat_layout *layout, uint64_t n)
{
    if (layout->keys == STAT_TABLE_BUCKETS)
        return bucket_table(n, (n + BUCKET_PLACES - 1) / BUCKET_PLACES);
    return n > 0 ? table(layout, layout->keys, n) : 0;
}

uint64_t stat_memory_tables(const struct stat_layout *layout, uint64_t keys, uint64_t expires)
{
    uint64_t all = 0;
    if (layout->place == STAT_NAME_IN_OBJECT)
        return keys_table(layout, keys) + keys_table(layout, expires);
    if (keys > 0)
        all += power_of_two(4, keys) * 8; /* the entries belong to the keys */
    if (expires > 0)
        all += table(layout, STAT_TABLE_ENTRIES, expires);
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
                                 .inside = RD_NO_OFFSET,
                                 .rax = {.layout = layout},
                                 .pending = {.layout = layout}};
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
    value->blobs += stat_layout_alloc(value->layout, len);
    value->nodes++;
    value->largest_blob = len > value->largest_blob ? len : value->largest_blob;
}

/* The allocation of a field with its value: one if both are short, else two. The field then has
 * an address and the longer head that can note it. */
static uint64_t pair(const struct stat_layout *l, uint64_t field, uint64_t len, bool expires)
{
    bool long_head = expires && l->ttl_heads;
    uint64_t more = long_head ? UINT64_C(8) : 0; /* the expiry */
    uint64_t name = long_head ? 3 + field + 1 : sds_size(field);
    if (more + name + 3 + len + 1 <= FIELD_MAX)
        return stat_layout_alloc(l, more + name + 3 + len + 1);
    return stat_layout_alloc(l, more + 8 + 3 + field + 1) + stat_memory_sds(l, len);
}

/* The mean of a node of a skip list: of four nodes three have one level, of the other one in four
 * more than two, and so on. */
static uint64_t scored(const struct stat_layout *l, uint64_t len)
{
    enum { LEVELS = 6, ALL = 4096 };
    uint64_t fixed = l->members_embedded ? 16 + 1 + sds_size(len) : 24, sum = 0, weight = ALL;
    for (unsigned level = 1; level <= LEVELS; level++) {
        uint64_t of = level < LEVELS ? weight / 4 * 3 : weight;
        sum += of * stat_layout_alloc(l, fixed + level * LEVEL);
        weight -= of;
    }
    return sum / ALL + (l->members_embedded ? 0 : stat_memory_sds(l, len));
}

static uint64_t allocated(struct stat_value *value, const struct rdb_event *ev, uint64_t len)
{
    const struct stat_layout *l = value->layout;
    bool field = ev->elem.role == RDB_ROLE_FIELD;
    if (ev->elem.role == RDB_ROLE_PATH)
        return stat_memory_sds(l, len);
    if (value->type->kind == RDB_KIND_ZSET)
        return scored(l, len);
    if (value->type->kind != RDB_KIND_HASH || !l->fields_embedded)
        return stat_memory_sds(l, len);
    if (field)
        value->field = len;
    return field ? 0 : pair(l, value->field, len, ev->elem.expire_ms != RDB_NO_EXPIRE);
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
    value->strings += allocated(value, ev, len);
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

/* A name in a radix tree: a run of bytes and an end. */
static uint64_t named(const struct stat_layout *l, uint64_t len)
{
    return stat_layout_alloc(l, ((len + 11) & ~UINT64_C(7)) + 8) + 16;
}

static uint64_t rax_head(const struct stat_layout *l)
{
    return stat_layout_alloc(l, l->rax);
}

/* The tree of the pending entries of a group or of a consumer. */
static void end_pending(struct stat_value *value)
{
    if (value->pending.open)
        value->other += rax_head(value->layout) + stat_rax_memory(&value->pending);
    value->pending = (struct stat_rax){.layout = value->layout};
}

static void begin_group(struct stat_value *value, uint64_t name_len)
{
    const struct stat_layout *l = value->layout;
    end_pending(value);
    value->pending.open = true;
    value->group_ids = 0;
    if (value->groups++ == 0)
        value->other += rax_head(l);
    value->other +=
        named(l, name_len) + stat_layout_alloc(l, GROUP) + rax_head(l) + RAX_HEAD + l->group;
}

static void begin_consumer(struct stat_value *value, uint64_t name_len)
{
    const struct stat_layout *l = value->layout;
    end_pending(value);
    value->pending.open = true;
    value->other +=
        named(l, name_len) + stat_layout_alloc(l, l->consumer) + stat_memory_sds(l, name_len);
}

void stat_value_group(struct stat_value *value, const struct rdb_event *ev)
{
    const struct stat_layout *l = value->layout;
    switch (ev->kind) {
    case RDB_GROUP:
        begin_group(value, ev->group.name.len);
        break;
    case RDB_PENDING:
        value->other += l->pending;
        value->group_ids++;
        value->most_ids = value->group_ids > value->most_ids ? value->group_ids : value->most_ids;
        stat_rax_add(&value->pending, ev->pending.id);
        break;
    case RDB_CONSUMER:
        begin_consumer(value, ev->consumer.name.len);
        break;
    case RDB_OWNED:
        stat_rax_add(&value->pending, ev->id);
        break;
    case RDB_PRODUCER:
        value->other += OBJECT + stat_memory_sds(l, ev->producer.name.len);
        break;
    case RDB_PRODUCED:
        value->other += OBJECT + stat_memory_sds(l, ev->produced.name.len);
        break;
    default:
        break;
    }
}

static uint64_t stream_memory(struct stat_value *value)
{
    const struct stat_layout *l = value->layout;
    end_pending(value);
    return object(l) + stat_layout_alloc(l, l->stream) + rax_head(l) +
           stat_rax_memory(&value->rax) + value->blobs + value->other +
           value->most_ids * l->pending_id;
}

/* ---- collections ---- */

static uint64_t listpack(const struct stat_value *value)
{
    return object(value->layout) + stat_layout_alloc(value->layout, LISTPACK_HEAD + value->packed);
}

static uint64_t list_memory(const struct stat_value *value)
{
    uint64_t nodes = value->nodes, bytes = value->blobs;
    bool small = value->layout->list_packed && nodes == 1 && !value->plain &&
                 value->largest_blob <= LIST_NODE && value->elems == 0;
    if (value->type->id == RDB_TYPE_LIST_ZIPLIST || small)
        return object(value->layout) + bytes;
    if (value->elems > 0) { /* that came one by one: linked lists and plain nodes */
        if (nodes == 0 && value->layout->list_packed && value->packed <= LIST_NODE)
            return listpack(value);
        uint64_t more = value->packed / LIST_NODE + 1;
        nodes += more;
        bytes += value->packed + more * LISTPACK_HEAD;
    }
    return object(value->layout) + stat_layout_alloc(value->layout, QUICKLIST) +
           nodes * stat_layout_alloc(value->layout, value->layout->node) + bytes;
}

static uint64_t intset(const struct stat_value *value)
{
    uint64_t width = value->low >= INT16_MIN && value->high <= INT16_MAX   ? 2
                     : value->low >= INT32_MIN && value->high <= INT32_MAX ? 4
                                                                           : 8;
    return object(value->layout) +
           stat_layout_alloc(value->layout, INTSET_HEAD + value->elems * width);
}

/* A collection that is a table of n elements, without their strings. */
static uint64_t table_memory(const struct stat_layout *l, uint64_t n)
{
    return object(l) + stat_layout_alloc(l, l->dict) + table(l, l->sets, n);
}

static uint64_t set_memory(const struct stat_value *value)
{
    const struct stat_layout *l = value->layout;
    if (value->elems <= INTSET_MAX && value->n_digits == value->elems)
        return intset(value);
    if (l->set_listpack && value->elems <= SET_PACKED_MAX && value->largest <= ELEM_PACKED_MAX)
        return listpack(value);
    return table_memory(l, value->elems) + value->strings;
}

static uint64_t zset_memory(const struct stat_value *value)
{
    const struct stat_layout *l = value->layout;
    if (value->elems <= ZSET_PACKED_MAX && value->largest <= ELEM_PACKED_MAX)
        return listpack(value);
    enum stat_table_kind kind =
        l->members_embedded || l->sets == STAT_TABLE_BUCKETS ? l->sets : STAT_TABLE_ENTRIES;
    return object(l) + ZSET + SKIPLIST + SKIPLIST_HEAD + stat_layout_alloc(l, l->dict) +
           table(l, kind, value->elems) + value->strings;
}

static uint64_t hash_memory(const struct stat_value *value)
{
    const struct stat_layout *l = value->layout;
    uint64_t pairs = value->elems / 2;
    bool few = pairs <= HASH_PACKED_MAX && value->largest <= ELEM_PACKED_MAX;
    if (few && value->ttls == 0)
        return listpack(value);
    enum stat_table_kind kind = l->fields_embedded ? l->sets : STAT_TABLE_ENTRIES;
    uint64_t ttls =
        l->ttl_hash + value->ttls * l->field_ttl + (pairs - value->ttls) * l->field_no_ttl;
    return object(l) + stat_layout_alloc(l, l->dict) + table(l, kind, pairs) + value->strings +
           (value->ttls > 0 ? ttls : 0);
}

uint64_t stat_value_end(struct stat_value *value, uint64_t bytes)
{
    bool packed = value->nodes > 0 && value->elems == 0;
    uint64_t around = object(value->layout) + (has_ttls(value->type->id) ? LISTPACK_EX : 0);
    switch (value->type->kind) {
    case RDB_KIND_STRING:
        return 0; /* stat_memory_string() knows all of it */
    case RDB_KIND_LIST:
        return list_memory(value);
    case RDB_KIND_STREAM:
        return stream_memory(value);
    case RDB_KIND_SET:
        return packed ? object(value->layout) + value->blobs : set_memory(value);
    case RDB_KIND_ZSET:
        return packed ? object(value->layout) + value->blobs : zset_memory(value);
    case RDB_KIND_HASH:
        return packed ? around + value->blobs : hash_memory(value);
    case RDB_KIND_ARRAY:
        return object(value->layout) + value->elems * 8 + value->strings;
    case RDB_KIND_MODULE:
        break;
    }
    return object(value->layout) + stat_layout_alloc(value->layout, bytes);
}

uint64_t stat_value_key(struct stat_value *value, uint64_t bytes, uint64_t name_len, bool expires)
{
    const struct stat_string string = {
        .name_len = name_len, .len = value->largest, .number = value->number, .expires = expires};
    if (value->type->kind == RDB_KIND_STRING)
        return stat_memory_string(value->layout, &string);
    return stat_value_end(value, bytes) + stat_memory_key(value->layout, name_len, expires);
}

uint64_t stat_value_packed(const struct stat_value *value)
{
    static const uint64_t most[RDB_KIND_COUNT] = {[RDB_KIND_SET] = SET_PACKED_MAX,
                                                  [RDB_KIND_ZSET] = ZSET_PACKED_MAX,
                                                  [RDB_KIND_HASH] = 2 * HASH_PACKED_MAX};
    bool few = value->elems > 0 && value->elems <= most[value->type->kind];
    return few && value->nodes == 0 && value->ttls == 0 ? listpack(value) : 0;
}
