#include "data/module_types.h"

#include "rdb/rdb.h"

#include <string.h>

static const struct module_field bloom[] = {
    {MODULE_UINT, "items", 0, 0, 0},           {MODULE_UINT, "n_filters", 0, 1, 0},
    {MODULE_UINT, "options", 2, 0, 0},         {MODULE_UINT, "expansion", 4, 0, 0},
    {MODULE_LIST, "filters", 0, 1, 0},         {MODULE_UINT, "capacity", 0, 0, 0},
    {MODULE_DOUBLE, "error_rate", 0, 0, 0},    {MODULE_UINT, "hashes", 0, 0, 0},
    {MODULE_DOUBLE, "bits_per_item", 0, 0, 0}, {MODULE_UINT, "bits", 1, 0, 0},
    {MODULE_UINT, "log2_bits", 1, 0, 0},       {MODULE_BYTES, "bytes", 0, 0, 0},
    {MODULE_UINT, "items", 0, 0, 0},           {MODULE_END, NULL, 0, 0, 0},
    {MODULE_END_ALL, NULL, 0, 0, 0},
};

static const struct module_field cuckoo[] = {
    {MODULE_UINT, "n_filters", 0, 1, 0},   {MODULE_UINT, "buckets", 0, 0, 0},
    {MODULE_UINT, "items", 0, 0, 0},       {MODULE_UINT, "deletes", 4, 0, 0},
    {MODULE_UINT, "bucket_size", 4, 0, 0}, {MODULE_UINT, "max_iterations", 4, 0, 0},
    {MODULE_UINT, "expansion", 4, 0, 0},   {MODULE_LIST, "filters", 0, 1, 0},
    {MODULE_UINT, "buckets", 4, 0, 0},     {MODULE_BYTES, "bytes", 0, 0, 0},
    {MODULE_END, NULL, 0, 0, 0},           {MODULE_END_ALL, NULL, 0, 0, 0},
};

static const struct module_field count_min[] = {
    {MODULE_UINT, "width", 0, 0, 0}, {MODULE_UINT, "depth", 0, 0, 0},
    {MODULE_UINT, "count", 0, 0, 0}, {MODULE_BYTES, "bytes", 0, 0, 0},
    {MODULE_END_ALL, NULL, 0, 0, 0},
};

/* The counts of the items are in the heap, in the layout of the machine that wrote it. */
static const struct module_field top_k[] = {
    {MODULE_UINT, "k", 0, 1, 0},
    {MODULE_UINT, "width", 0, 0, 0},
    {MODULE_UINT, "depth", 0, 0, 0},
    {MODULE_DOUBLE, "decay", 0, 0, 0},
    {MODULE_BYTES, "counter_bytes", 0, 0, 0},
    {MODULE_BYTES, "heap_bytes", 0, 0, 0},
    {MODULE_LIST, "items", 0, 1, 0},
    {MODULE_TEXT_Z, NULL, 0, 0, 0},
    {MODULE_END, NULL, 0, 0, 0},
    {MODULE_END_ALL, NULL, 0, 0, 0},
};

static const struct module_field t_digest[] = {
    {MODULE_DOUBLE, "compression", 0, 0, 0},
    {MODULE_DOUBLE, "min", 0, 0, 0},
    {MODULE_DOUBLE, "max", 0, 0, 0},
    {MODULE_SINT, "capacity", 0, 0, 0},
    {MODULE_SINT, "merged_nodes", 0, 1, 0},
    {MODULE_SINT, "unmerged_nodes", 0, 0, 0},
    {MODULE_SINT, "compressions", 0, 0, 0},
    {MODULE_DOUBLE, "merged_weight", 0, 0, 0},
    {MODULE_DOUBLE, "unmerged_weight", 0, 0, 0},
    {MODULE_LIST, "means", 0, 1, 0},
    {MODULE_DOUBLE, NULL, 0, 0, 0},
    {MODULE_END, NULL, 0, 0, 0},
    {MODULE_LIST, "weights", 0, 1, 0},
    {MODULE_DOUBLE, NULL, 0, 0, 0},
    {MODULE_END, NULL, 0, 0, 0},
    {MODULE_END_ALL, NULL, 0, 0, 0},
};

/* The rules end with the state of their aggregation, and the samples are compressed. */
static const struct module_field time_series[] = {
    {MODULE_TEXT, "series", 0, 0, 0},
    {MODULE_UINT, "retention_ms", 0, 0, 0},
    {MODULE_UINT, "chunk_bytes", 0, 0, 0},
    {MODULE_UINT, "options", 1, 0, 0},
    {MODULE_UINT, "last_ms", 2, 0, 0},
    {MODULE_DOUBLE, "last_value", 2, 0, 0},
    {MODULE_UINT, "samples", 2, 0, 0},
    {MODULE_UINT, "duplicate_policy", 3, 0, 0},
    {MODULE_UINT, NULL, 2, 1, 0},
    {MODULE_IF, NULL, 2, 1, 0xff},
    {MODULE_TEXT, "source", 0, 0, 0},
    {MODULE_FI, NULL, 0, 0, 0},
    {MODULE_UINT, "ignore_max_ms", 8, 0, 0},
    {MODULE_DOUBLE, "ignore_max_difference", 8, 0, 0},
    {MODULE_UINT, NULL, 0, 2, 0},
    {MODULE_LIST, "labels", 0, 2, 0},
    {MODULE_TEXT, "name", 0, 0, 0},
    {MODULE_TEXT, "value", 0, 0, 0},
    {MODULE_END, NULL, 0, 0, 0},
    {MODULE_UINT, "n_rules", 0, 0, 0},
    {MODULE_REST, NULL, 0, 0, 0},
};

/* The last numbers of an item are its place in the graph. */
static const struct module_field vector_set[] = {
    {MODULE_UINT, "dimension", 0, 0, 0},
    {MODULE_UINT, "n_items", 0, 1, 0},
    {MODULE_UINT, "configuration", 0, 0, 0}, /* bits 0-7: quantization, 8-23: links of a node */
    {MODULE_UINT, NULL, 0, 2, 0},
    {MODULE_IF, NULL, 0, 2, 1},
    {MODULE_UINT, "input_dimension", 0, 0, 0},
    {MODULE_BYTES, "projection_bytes", 0, 0, 0},
    {MODULE_FI, NULL, 0, 0, 0},
    {MODULE_LIST, "items", 0, 1, 0},
    {MODULE_TEXT, "name", 0, 0, 0},
    {MODULE_IF, NULL, 0, 2, 2},
    {MODULE_TEXT, "attributes", 0, 0, 0},
    {MODULE_FI, NULL, 0, 0, 0},
    {MODULE_BYTES, "vector_bytes", 0, 0, 0},
    {MODULE_UINT, NULL, 0, 3, 0},
    {MODULE_LIST, NULL, 0, 3, 0},
    {MODULE_UINT, NULL, 0, 0, 0},
    {MODULE_END, NULL, 0, 0, 0},
    {MODULE_END, NULL, 0, 0, 0},
    {MODULE_END_ALL, NULL, 0, 0, 0},
};

/* RedisJSON 1 and valkey-json 1 write version 0; RedisJSON 2.0 writes 2, later ones and valkey-json
 * 3. */
static const struct module_type types[] = {
    {"ReJSON-RL", "JSON", 0, 0, MODULE_JSON_TREE, NULL},
    {"ReJSON-RL", "JSON", 2, 3, MODULE_JSON_TEXT, NULL},
    {"MBbloom--", "Bloom filter", 0, 4, MODULE_FIELDS, bloom},
    {"MBbloomCF", "Cuckoo filter", 0, 4, MODULE_FIELDS, cuckoo},
    {"CMSk-TYPE", "count-min sketch", 0, 0, MODULE_FIELDS, count_min},
    {"TopK-TYPE", "top-k", 0, 0, MODULE_FIELDS, top_k},
    {"TDIS-TYPE", "t-digest", 0, 0, MODULE_FIELDS, t_digest},
    {"TSDB-TYPE", "time series", 0, 9, MODULE_FIELDS, time_series},
    {"vectorset", "vector set", 0, 0, MODULE_FIELDS, vector_set},
};

enum { TYPES = sizeof types / sizeof *types };

const struct module_type *module_type_of(uint64_t id)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    unsigned version = rdb_module_encver(id);
    rdb_module_name(id, name);
    for (size_t i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0 && types[i].first <= version &&
            version <= types[i].last)
            return &types[i];
    return NULL;
}

const char *module_type_words(uint64_t id)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    rdb_module_name(id, name);
    for (size_t i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].words;
    return NULL;
}
