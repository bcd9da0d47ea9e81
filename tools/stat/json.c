#include "data/module_types.h"
#include "tools/stat/report.h"

#include "base/mem.h"
#include "tools/stat/find.h"

static void put_count(struct json_write *json, const struct stat_count *count)
{
    json_put_uint(json, "keys", count->keys);
    json_put_uint(json, "expires", count->expires);
    json_put_uint(json, "elements", count->elements);
    json_put_uint(json, "memory", count->memory);
    json_put_uint(json, "stored", count->stored);
}

static void put_hist(struct json_write *json, const char *name, const struct stat_hist *hist)
{
    json_key(json, name);
    json_obj(json);
    json_put_uint(json, "n", hist->n);
    json_put_uint(json, "p50", stat_hist_at(hist, 0.5));
    json_put_uint(json, "p90", stat_hist_at(hist, 0.9));
    json_put_uint(json, "p99", stat_hist_at(hist, 0.99));
    json_put_uint(json, "p999", stat_hist_at(hist, 0.999));
    json_put_uint(json, "max", hist->max);
    json_end(json);
}

static void put_time(struct json_write *json, const char *name, int64_t ms)
{
    json_put_str(json, name, rd_show_time(ms).s);
}

static void put_meta(struct json_write *json, const struct stat_read *read)
{
    const struct stat_meta *meta = &read->meta;
    json_put_str(json, "dialect", rdb_dialect_name(meta->dialect));
    json_put_int(json, "rdb_version", meta->version);
    if (meta->writer.version[0] != '\0') {
        json_put_str(json, "server", meta->writer.valkey ? "valkey" : "redis");
        json_put_str(json, "written_by", meta->writer.version);
    }
    if (meta->ctime_s > 0 && meta->ctime_s < INT64_MAX / 1000)
        put_time(json, "written_at", meta->ctime_s * 1000);
    if (meta->used_memory > 0)
        json_put_int(json, "used_memory", meta->used_memory);
    json_put_uint(json, "bytes", meta->bytes);
    json_put_uint(json, "functions", meta->functions);
    json_put_str(json, "memory_of", read->layout->name);
    put_time(json, "now", read->opts.now_ms);
}

/* The hash tables of a database, which are not part of any key's memory. */
static uint64_t tables_of(const struct stat_read *read, const struct stat_db *db)
{
    return stat_memory_tables(read->layout, db->count.keys, db->count.expires);
}

uint64_t stat_json_tables(const struct stat_read *read)
{
    uint64_t all = 0;
    for (size_t i = 0; i < read->sum.n_dbs; i++)
        all += tables_of(read, &read->sum.dbs[i]);
    return all;
}

static void put_types(struct json_write *json, const struct stat_sum *sum)
{
    json_key(json, "types");
    json_array(json);
    for (unsigned kind = 0; kind < RDB_KIND_COUNT; kind++) {
        struct stat_count count = stat_sum_kind(sum, (enum rdb_kind)kind);
        if (count.keys == 0)
            continue;
        json_obj(json);
        json_put_str(json, "type", rdb_kind_name((enum rdb_kind)kind));
        put_count(json, &count);
        put_hist(json, "element_bytes", &sum->lengths[kind]);
        json_put_uint(json, "keys_not_sampled", sum->passed[kind]);
        if (kind != RDB_KIND_STRING)
            put_hist(json, "key_elements", &sum->elements[kind]);
        put_hist(json, "key_memory", &sum->memory[kind]);
        json_end(json);
    }
    json_end(json);
}

static void put_encodings(struct json_write *json, const struct stat_sum *sum)
{
    json_key(json, "encodings");
    json_array(json);
    for (unsigned id = 0; id < RDB_TYPE_COUNT; id++) {
        const struct rdb_type *type = rdb_type_get((enum rdb_type_id)id);
        if (sum->types[id].keys == 0)
            continue;
        json_obj(json);
        json_put_str(json, "type", rdb_kind_name(type->kind));
        json_put_str(json, "encoding", type->encoding);
        put_count(json, &sum->types[id]);
        json_end(json);
    }
    json_end(json);
}

static void put_modules(struct json_write *json, const struct stat_sum *sum)
{
    if (sum->n_modules == 0)
        return;
    json_key(json, "modules");
    json_array(json);
    for (size_t i = 0; i < sum->n_modules; i++) {
        const struct stat_module *module = &sum->modules[i];
        char name[RDB_MODULE_NAME_LEN + 1];
        rdb_module_name(module->id, name);
        json_obj(json);
        json_put_str(json, "module", module->id != 0 ? name : NULL);
        json_put_str(json, "kind", module_type_words(module->id));
        put_count(json, &module->count);
        json_end(json);
    }
    json_end(json);
}

static void put_databases(struct json_write *json, const struct stat_read *read)
{
    const struct stat_sum *sum = &read->sum;
    json_key(json, "databases");
    json_array(json);
    for (size_t i = 0; i < sum->n_dbs; i++) {
        json_obj(json);
        json_put_uint(json, "db", sum->dbs[i].db);
        put_count(json, &sum->dbs[i].count);
        json_put_uint(json, "tables", tables_of(read, &sum->dbs[i]));
        json_end(json);
    }
    json_end(json);
    if (sum->more_dbs.keys == 0)
        return;
    json_key(json, "more_databases");
    json_obj(json);
    put_count(json, &sum->more_dbs);
    json_end(json);
}

static void put_expiry(struct json_write *json, const struct stat_sum *sum)
{
    json_key(json, "expiry");
    json_array(json);
    for (unsigned i = 0; i < STAT_EXPIRY_COUNT; i++) {
        json_obj(json);
        json_put_str(json, "when", stat_expiry_words((enum stat_expiry)i));
        if (stat_expiry_seconds((enum stat_expiry)i) > 0)
            json_put_int(json, "up_to_s", stat_expiry_seconds((enum stat_expiry)i));
        put_count(json, &sum->expiry[i]);
        json_end(json);
    }
    json_end(json);
}

static void put_prefix(struct json_write *json, const struct stat_prefixes *table,
                       const struct stat_prefix *row)
{
    json_obj(json);
    json_key(json, "prefix");
    json_bytes(json, stat_prefix_name(table, row));
    json_put_uint(json, "db", row->db);
    json_put_uint(json, "level", row->level);
    json_put_uint(json, "keys", row->keys);
    json_put_uint(json, "expires", row->expires);
    json_put_uint(json, "elements", row->elements);
    json_put_uint(json, "memory", row->memory);
    json_put_uint(json, "memory_without_expiry", row->lasting);
    json_put_uint(json, "missed_at_most", row->missed);
    json_key(json, "types");
    json_obj(json);
    for (unsigned kind = 0; kind < RDB_KIND_COUNT; kind++)
        if (row->of_kind[kind] > 0)
            json_put_uint(json, rdb_kind_name((enum rdb_kind)kind), row->of_kind[kind]);
    json_end(json);
    json_end(json);
}

static void put_prefixes(struct json_write *json, const struct stat_prefixes *table, size_t n)
{
    json_key(json, "separator");
    json_bytes(json, table->separator);
    json_key(json, "prefixes");
    json_array(json);
    for (size_t i = 0; i < table->n && i < n; i++)
        put_prefix(json, table, &table->rows[i]);
    json_end(json);
    json_put_uint(json, "prefixes_left_out", table->n > n ? table->n - n : 0);
    json_put_uint(json, "unlisted_prefix_at_most", table->floor);
}

static void put_pattern(void *ctx, const struct stat_pattern *row, struct rd_slice name)
{
    struct json_write *json = ctx;
    json_obj(json);
    json_key(json, "pattern");
    json_bytes(json, name);
    json_put_uint(json, "keys", row->keys);
    json_put_uint(json, "expires", row->expires);
    json_put_uint(json, "elements", row->elements);
    json_put_uint(json, "memory", row->memory);
    json_end(json);
}

static bool put_patterns(struct json_write *json, const struct stat_patterns *tree, size_t max,
                         struct rd_err *err)
{
    size_t more = 0;
    if (tree->rows == NULL)
        return true;
    json_key(json, "patterns");
    json_array(json);
    bool ok = stat_patterns_largest(tree, max, put_pattern, json, &more, err);
    json_end(json);
    if (ok)
        json_put_uint(json, "patterns_left_out", more);
    return ok;
}

static void put_findings(struct json_write *json, const struct stat_read *read)
{
    struct stat_finding found[STAT_FINDINGS_MAX];
    size_t n = stat_find(read, found);
    json_key(json, "findings");
    json_array(json);
    for (size_t i = 0; i < n; i++) {
        json_obj(json);
        json_put_str(json, "code", found[i].code);
        json_put_str(json, "text", found[i].text);
        json_put_str(json, "advice", found[i].advice);
        json_put_uint(json, "memory", found[i].memory);
        json_end(json);
    }
    json_end(json);
}

static void put_key(struct json_write *json, const struct stat_top_row *row)
{
    const struct stat_key *key = &row->key;
    json_obj(json);
    json_put_uint(json, "db", key->db);
    json_key(json, "key");
    json_bytes(json, stat_top_name(row));
    if (key->name.len > STAT_TOP_NAME_MAX)
        json_put_uint(json, "key_length", key->name.len);
    json_put_str(json, "type", rdb_kind_name(key->type->kind));
    json_put_str(json, "encoding", key->type->encoding);
    json_put_uint(json, "memory", key->memory);
    json_put_uint(json, "stored", key->stored);
    json_put_uint(json, "elements", key->elements);
    if (key->largest != RDB_UNKNOWN)
        json_put_uint(json, "largest_element", key->largest);
    if (key->expire_ms != RDB_NO_EXPIRE)
        json_put_int(json, "expire_ms", key->expire_ms);
    json_end(json);
}

static void put_top(struct json_write *json, const char *name, const struct stat_top *top, size_t n)
{
    json_key(json, name);
    json_array(json);
    for (size_t i = 0; i < top->n && i < n; i++)
        put_key(json, &top->rows[i]);
    json_end(json);
}

void stat_json_sums(struct json_write *json, const struct stat_read *read)
{
    const struct stat_sum *sum = &read->sum;
    put_meta(json, read);
    json_key(json, "total");
    json_obj(json);
    put_count(json, &sum->all);
    json_put_uint(json, "tables", stat_json_tables(read));
    json_end(json);
    put_types(json, sum);
    put_encodings(json, sum);
    put_modules(json, sum);
    put_databases(json, read);
    put_expiry(json, sum);
    put_findings(json, read);
}

bool stat_json_put(struct json_write *json, const struct stat_read *read, size_t n,
                   struct rd_err *err)
{
    const struct stat_sum *sum = &read->sum;
    stat_json_sums(json, read);
    put_top(json, "biggest", &sum->by_memory, n);
    put_top(json, "most_elements", &sum->by_elements, n);
    put_prefixes(json, &sum->prefixes, n);
    return put_patterns(json, &sum->patterns, n, err);
}
