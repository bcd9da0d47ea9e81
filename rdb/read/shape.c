/* shape.c - the layout of each type of value, as a small program.
 *
 * A program is the grammar of a type: the interpreter in value.c runs it to skip, copy or check a
 * value, or to return its elements.
 */
#include "rdb/read/reader_impl.h"

#define PROGRAM static const struct instr

PROGRAM string_body[] = {{OP_STR, RDB_ROLE_STRING}, {OP_END, 0}};
PROGRAM list_body[] = {{OP_EACH, 0}, {OP_STR, RDB_ROLE_ELEMENT}, {OP_NEXT, 0}, {OP_END, 0}};
PROGRAM set_body[] = {{OP_EACH, 0}, {OP_STR, RDB_ROLE_MEMBER}, {OP_NEXT, 0}, {OP_END, 0}};
PROGRAM zset_body[] = {{OP_EACH, 0}, {OP_STR_SCORE_TEXT, 0}, {OP_NEXT, 0}, {OP_END, 0}};
PROGRAM zset_2_body[] = {{OP_EACH, 0}, {OP_STR_SCORE, 0}, {OP_NEXT, 0}, {OP_END, 0}};
PROGRAM hash_body[] = {
    {OP_EACH, 0}, {OP_STR, RDB_ROLE_FIELD}, {OP_STR, RDB_ROLE_VALUE}, {OP_NEXT, 0}, {OP_END, 0}};
PROGRAM hash_meta_body[] = {
    {OP_EACH, 0}, {OP_TTL, 0}, {OP_STR, RDB_ROLE_FIELD}, {OP_STR, RDB_ROLE_VALUE},
    {OP_NEXT, 0}, {OP_END, 0}};
PROGRAM hash_meta_pre_body[] = {
    {OP_EACH, 0}, {OP_TTL_ABS, 0}, {OP_STR, RDB_ROLE_FIELD}, {OP_STR, RDB_ROLE_VALUE},
    {OP_NEXT, 0}, {OP_END, 0}};
PROGRAM hash_2_body[] = {{OP_EACH, 0},
                         {OP_STR, RDB_ROLE_FIELD},
                         {OP_STR_EXPIRE, RDB_ROLE_VALUE},
                         {OP_NEXT, 0},
                         {OP_END, 0}};
PROGRAM path_hash_body[] = {
    {OP_EACH, 0}, {OP_PATH, 0}, {OP_EACH, 0}, {OP_STR, RDB_ROLE_FIELD}, {OP_STR, RDB_ROLE_VALUE},
    {OP_NEXT, 0}, {OP_NEXT, 0}, {OP_END, 0}};
PROGRAM bitmap_body[] = {{OP_BITMAP, 0}, {OP_END, 0}};
PROGRAM array_body[] = {{OP_EACH, 0}, {OP_ITEM, 0}, {OP_NEXT, 0}, {OP_END, 0}};
PROGRAM module_body[] = {{OP_MODULE, 0}, {OP_END, 0}};

PROGRAM zipmap_body[] = {{OP_PACK, PACK_ARG(RDB_ZIPMAP, LAYOUT_HASH)}, {OP_END, 0}};
PROGRAM list_zl_body[] = {{OP_PACK, PACK_ARG(RDB_ZIPLIST, LAYOUT_LIST)}, {OP_END, 0}};
PROGRAM intset_body[] = {{OP_PACK, PACK_ARG(RDB_INTSET, LAYOUT_SET)}, {OP_END, 0}};
PROGRAM zset_zl_body[] = {{OP_PACK, PACK_ARG(RDB_ZIPLIST, LAYOUT_ZSET)}, {OP_END, 0}};
PROGRAM hash_zl_body[] = {{OP_PACK, PACK_ARG(RDB_ZIPLIST, LAYOUT_HASH)}, {OP_END, 0}};
PROGRAM hash_lp_body[] = {{OP_PACK, PACK_ARG(RDB_LISTPACK, LAYOUT_HASH)}, {OP_END, 0}};
PROGRAM zset_lp_body[] = {{OP_PACK, PACK_ARG(RDB_LISTPACK, LAYOUT_ZSET)}, {OP_END, 0}};
PROGRAM set_lp_body[] = {{OP_PACK, PACK_ARG(RDB_LISTPACK, LAYOUT_SET)}, {OP_END, 0}};
PROGRAM hash_lpx_body[] = {{OP_PACK, PACK_ARG(RDB_LISTPACK, LAYOUT_HASH_TTL)}, {OP_END, 0}};
/* Hashes whose names are in a template, or before the values. */
PROGRAM template_lp_body[] = {{OP_TEMPLATE_PACK, 0}, {OP_END, 0}};
PROGRAM template_array_body[] = {
    {OP_EACH, 0}, {OP_TEMPLATE_FIELD, 0}, {OP_STR, RDB_ROLE_VALUE}, {OP_NEXT, 0}, {OP_END, 0}};
PROGRAM quicklist_body[] = {
    {OP_EACH, 0}, {OP_PACK, PACK_ARG(RDB_ZIPLIST, LAYOUT_LIST)}, {OP_NEXT, 0}, {OP_END, 0}};
PROGRAM quicklist_2_body[] = {
    {OP_EACH, 0}, {OP_CONTAINER, 0}, {OP_NODE, 0}, {OP_NEXT, 0}, {OP_END, 0}};

/* Generations of the stream layout: 1 (type 15), 2 (19), 3 (21), 4 (26), 5 (27). */
#define STREAM_NODES                                                                               \
    {OP_EACH, 0}, {OP_STREAM_NODE, 0},                                                             \
    {                                                                                              \
        OP_NEXT, 0                                                                                 \
    }
#define STREAM_GROUP_HEAD(gen)                                                                     \
    {OP_STREAM_TAIL, gen}, {OP_EACH, 0}, {OP_GROUP, gen}, {OP_EACH, 0}, {OP_PENDING, 0},           \
        {OP_NEXT, 0}, {OP_CONSUMERS, 0}, {OP_EACH, 0}, {OP_CONSUMER, gen}, {OP_EACH, 0},           \
        {OP_OWNED, 0}, {OP_NEXT, 0},                                                               \
    {                                                                                              \
        OP_NEXT, 0                                                                                 \
    }
#define STREAM_IDMP                                                                                \
    {OP_IDMP, 0}, {OP_EACH, 0}, {OP_PRODUCER, 0}, {OP_EACH, 0}, {OP_PRODUCED, 0}, {OP_NEXT, 0},    \
        {OP_NEXT, 0},                                                                              \
    {                                                                                              \
        OP_IDMP_END, 0                                                                             \
    }
#define STREAM_BODY(gen)                                                                           \
    STREAM_NODES, STREAM_GROUP_HEAD(gen), {OP_GROUP_END, 0},                                       \
    {                                                                                              \
        OP_NEXT, 0                                                                                 \
    }

PROGRAM stream_body[] = {STREAM_BODY(1), {OP_END, 0}};
PROGRAM stream_2_body[] = {STREAM_BODY(2), {OP_END, 0}};
PROGRAM stream_3_body[] = {STREAM_BODY(3), {OP_END, 0}};
PROGRAM stream_4_body[] = {STREAM_BODY(4), STREAM_IDMP, {OP_END, 0}};
PROGRAM stream_5_body[] = {STREAM_NODES,   STREAM_GROUP_HEAD(5), {OP_NACKS, 0},     {OP_EACH, 0},
                           {OP_NACKED, 0}, {OP_NEXT, 0},         {OP_GROUP_END, 0}, {OP_NEXT, 0},
                           STREAM_IDMP,    {OP_END, 0}};

static const struct shape shapes[RDB_TYPE_COUNT] = {
    [RDB_TYPE_STRING] = {PRELUDE_NONE, string_body},
    [RDB_TYPE_LIST] = {PRELUDE_COUNT, list_body},
    [RDB_TYPE_SET] = {PRELUDE_COUNT, set_body},
    [RDB_TYPE_ZSET] = {PRELUDE_COUNT, zset_body},
    [RDB_TYPE_HASH] = {PRELUDE_COUNT, hash_body},
    [RDB_TYPE_ZSET_2] = {PRELUDE_COUNT, zset_2_body},
    [RDB_TYPE_MODULE] = {PRELUDE_NONE, NULL},
    [RDB_TYPE_MODULE_2] = {PRELUDE_MODULE, module_body},
    [RDB_TYPE_HASH_ZIPMAP] = {PRELUDE_NONE, zipmap_body},
    [RDB_TYPE_LIST_ZIPLIST] = {PRELUDE_NONE, list_zl_body},
    [RDB_TYPE_SET_INTSET] = {PRELUDE_NONE, intset_body},
    [RDB_TYPE_ZSET_ZIPLIST] = {PRELUDE_NONE, zset_zl_body},
    [RDB_TYPE_HASH_ZIPLIST] = {PRELUDE_NONE, hash_zl_body},
    [RDB_TYPE_LIST_QUICKLIST] = {PRELUDE_NODES, quicklist_body},
    [RDB_TYPE_STREAM_LISTPACKS] = {PRELUDE_NODES, stream_body},
    [RDB_TYPE_HASH_LISTPACK] = {PRELUDE_NONE, hash_lp_body},
    [RDB_TYPE_ZSET_LISTPACK] = {PRELUDE_NONE, zset_lp_body},
    [RDB_TYPE_LIST_QUICKLIST_2] = {PRELUDE_NODES, quicklist_2_body},
    [RDB_TYPE_STREAM_LISTPACKS_2] = {PRELUDE_NODES, stream_2_body},
    [RDB_TYPE_SET_LISTPACK] = {PRELUDE_NONE, set_lp_body},
    [RDB_TYPE_STREAM_LISTPACKS_3] = {PRELUDE_NODES, stream_3_body},
    [RDB_TYPE_HASH_METADATA_PRE_GA] = {PRELUDE_COUNT, hash_meta_pre_body},
    [RDB_TYPE_HASH_LISTPACK_EX_PRE_GA] = {PRELUDE_NONE, hash_lpx_body},
    [RDB_TYPE_HASH_METADATA] = {PRELUDE_TTL_COUNT, hash_meta_body},
    [RDB_TYPE_HASH_LISTPACK_EX] = {PRELUDE_TTL, hash_lpx_body},
    [RDB_TYPE_STREAM_LISTPACKS_4] = {PRELUDE_NODES, stream_4_body},
    [RDB_TYPE_STREAM_LISTPACKS_5] = {PRELUDE_NODES, stream_5_body},
    [RDB_TYPE_ARRAY] = {PRELUDE_ARRAY, array_body},
    [RDB_TYPE_HASH_2] = {PRELUDE_COUNT, hash_2_body},
    [RDB_TYPE_PATH_HASH] = {PRELUDE_COUNT, path_hash_body},
    [RDB_TYPE_HASH_TMPL_LP] = {PRELUDE_NAMES, template_lp_body},
    [RDB_TYPE_HASH_TMPL_LP_REF] = {PRELUDE_NONE, template_lp_body},
    [RDB_TYPE_HASH_TMPL_ARRAY] = {PRELUDE_NAMES, template_array_body},
    [RDB_TYPE_HASH_TMPL_ARRAY_REF] = {PRELUDE_TEMPLATE, template_array_body},
    [RDB_TYPE_BITMAP] = {PRELUDE_BITMAP, bitmap_body},
};

const struct shape *rdb_shape(enum rdb_type_id type)
{
    return &shapes[type];
}
