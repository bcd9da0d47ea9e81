#include "data/module_types.h"
#include "tools/stat/report.h"

#include "base/mem.h"
#include "tools/stat/find.h"

static void put_count(struct cli_json *json, const struct stat_count *count)
{
    cli_json_put_uint(json, "keys", count->keys);
    cli_json_put_uint(json, "expires", count->expires);
    cli_json_put_uint(json, "elements", count->elements);
    cli_json_put_uint(json, "memory", count->memory);
    cli_json_put_uint(json, "stored", count->stored);
}

static void put_hist(struct cli_json *json, const char *name, const struct stat_hist *hist)
{
    cli_json_key(json, name);
    cli_json_obj(json);
    cli_json_put_uint(json, "n", hist->n);
    cli_json_put_uint(json, "p50", stat_hist_at(hist, 0.5));
    cli_json_put_uint(json, "p90", stat_hist_at(hist, 0.9));
    cli_json_put_uint(json, "p99", stat_hist_at(hist, 0.99));
    cli_json_put_uint(json, "p999", stat_hist_at(hist, 0.999));
    cli_json_put_uint(json, "max", hist->max);
    cli_json_end(json);
}

static void put_time(struct cli_json *json, const char *name, int64_t ms)
{
    cli_json_put_str(json, name, rd_show_time(ms).s);
}

static void put_meta(struct cli_json *json, const struct stat_read *read)
{
    const struct stat_meta *meta = &read->meta;
    cli_json_put_str(json, "dialect", rdb_dialect_name(meta->dialect));
    cli_json_put_int(json, "rdb_version", meta->version);
    if (meta->writer.version[0] != '\0') {
        cli_json_put_str(json, "server", meta->writer.valkey ? "valkey" : "redis");
        cli_json_put_str(json, "written_by", meta->writer.version);
    }
    if (meta->ctime_s > 0 && meta->ctime_s < INT64_MAX / 1000)
        put_time(json, "written_at", meta->ctime_s * 1000);
    if (meta->used_memory > 0)
        cli_json_put_int(json, "used_memory", meta->used_memory);
    cli_json_put_uint(json, "bytes", meta->bytes);
    cli_json_put_uint(json, "functions", meta->functions);
    cli_json_put_str(json, "memory_of", read->layout->name);
    put_time(json, "now", read->opts.now_ms);
}

/* The hash tables of a database, which are not part of any key's memory. */
static uint64_t tables_of(const struct stat_read *read, const struct stat_db *db)
{
    return stat_memory_tables(read->layout, db->count.keys, db->count.expires);
}

static uint64_t tables(const struct stat_read *read)
{
    uint64_t all = 0;
    for (size_t i = 0; i < read->sum.n_dbs; i++)
        all += tables_of(read, &read->sum.dbs[i]);
    return all;
}

static void put_types(struct cli_json *json, const struct stat_sum *sum)
{
    cli_json_key(json, "types");
    cli_json_array(json);
    for (unsigned kind = 0; kind < RDB_KIND_COUNT; kind++) {
        struct stat_count count = stat_sum_kind(sum, (enum rdb_kind)kind);
        if (count.keys == 0)
            continue;
        cli_json_obj(json);
        cli_json_put_str(json, "type", rdb_kind_name((enum rdb_kind)kind));
        put_count(json, &count);
        put_hist(json, "element_bytes", &sum->lengths[kind]);
        cli_json_put_uint(json, "keys_not_sampled", sum->passed[kind]);
        if (kind != RDB_KIND_STRING)
            put_hist(json, "key_elements", &sum->elements[kind]);
        put_hist(json, "key_memory", &sum->memory[kind]);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void put_encodings(struct cli_json *json, const struct stat_sum *sum)
{
    cli_json_key(json, "encodings");
    cli_json_array(json);
    for (unsigned id = 0; id < RDB_TYPE_COUNT; id++) {
        const struct rdb_type *type = rdb_type_get((enum rdb_type_id)id);
        if (sum->types[id].keys == 0)
            continue;
        cli_json_obj(json);
        cli_json_put_str(json, "type", rdb_kind_name(type->kind));
        cli_json_put_str(json, "encoding", type->encoding);
        put_count(json, &sum->types[id]);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void put_modules(struct cli_json *json, const struct stat_sum *sum)
{
    if (sum->n_modules == 0)
        return;
    cli_json_key(json, "modules");
    cli_json_array(json);
    for (size_t i = 0; i < sum->n_modules; i++) {
        const struct stat_module *module = &sum->modules[i];
        char name[RDB_MODULE_NAME_LEN + 1];
        rdb_module_name(module->id, name);
        cli_json_obj(json);
        cli_json_put_str(json, "module", module->id != 0 ? name : NULL);
        cli_json_put_str(json, "kind", module_type_words(module->id));
        put_count(json, &module->count);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void put_databases(struct cli_json *json, const struct stat_read *read)
{
    const struct stat_sum *sum = &read->sum;
    cli_json_key(json, "databases");
    cli_json_array(json);
    for (size_t i = 0; i < sum->n_dbs; i++) {
        cli_json_obj(json);
        cli_json_put_uint(json, "db", sum->dbs[i].db);
        put_count(json, &sum->dbs[i].count);
        cli_json_put_uint(json, "tables", tables_of(read, &sum->dbs[i]));
        cli_json_end(json);
    }
    cli_json_end(json);
    if (sum->more_dbs.keys == 0)
        return;
    cli_json_key(json, "more_databases");
    cli_json_obj(json);
    put_count(json, &sum->more_dbs);
    cli_json_end(json);
}

static void put_expiry(struct cli_json *json, const struct stat_sum *sum)
{
    cli_json_key(json, "expiry");
    cli_json_array(json);
    for (unsigned i = 0; i < STAT_EXPIRY_COUNT; i++) {
        cli_json_obj(json);
        cli_json_put_str(json, "when", stat_expiry_words((enum stat_expiry)i));
        if (stat_expiry_seconds((enum stat_expiry)i) > 0)
            cli_json_put_int(json, "up_to_s", stat_expiry_seconds((enum stat_expiry)i));
        put_count(json, &sum->expiry[i]);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void put_prefix(struct cli_json *json, const struct stat_prefixes *table,
                       const struct stat_prefix *row)
{
    cli_json_obj(json);
    cli_json_key(json, "prefix");
    cli_json_bytes(json, stat_prefix_name(table, row));
    cli_json_put_uint(json, "db", row->db);
    cli_json_put_uint(json, "level", row->level);
    cli_json_put_uint(json, "keys", row->keys);
    cli_json_put_uint(json, "expires", row->expires);
    cli_json_put_uint(json, "elements", row->elements);
    cli_json_put_uint(json, "memory", row->memory);
    cli_json_put_uint(json, "memory_without_expiry", row->lasting);
    cli_json_put_uint(json, "missed_at_most", row->missed);
    cli_json_key(json, "types");
    cli_json_obj(json);
    for (unsigned kind = 0; kind < RDB_KIND_COUNT; kind++)
        if (row->of_kind[kind] > 0)
            cli_json_put_uint(json, rdb_kind_name((enum rdb_kind)kind), row->of_kind[kind]);
    cli_json_end(json);
    cli_json_end(json);
}

static void put_prefixes(struct cli_json *json, const struct stat_prefixes *table, size_t n)
{
    cli_json_key(json, "separator");
    cli_json_bytes(json, table->separator);
    cli_json_key(json, "prefixes");
    cli_json_array(json);
    for (size_t i = 0; i < table->n && i < n; i++)
        put_prefix(json, table, &table->rows[i]);
    cli_json_end(json);
    cli_json_put_uint(json, "prefixes_left_out", table->n > n ? table->n - n : 0);
    cli_json_put_uint(json, "unlisted_prefix_at_most", table->floor);
}

static void put_pattern(void *ctx, const struct stat_pattern *row, struct rd_slice name)
{
    struct cli_json *json = ctx;
    cli_json_obj(json);
    cli_json_key(json, "pattern");
    cli_json_bytes(json, name);
    cli_json_put_uint(json, "keys", row->keys);
    cli_json_put_uint(json, "expires", row->expires);
    cli_json_put_uint(json, "elements", row->elements);
    cli_json_put_uint(json, "memory", row->memory);
    cli_json_end(json);
}

static bool put_patterns(struct cli_json *json, const struct stat_patterns *tree, size_t max,
                         struct rd_err *err)
{
    size_t more = 0;
    if (tree->rows == NULL)
        return true;
    cli_json_key(json, "patterns");
    cli_json_array(json);
    bool ok = stat_patterns_largest(tree, max, put_pattern, json, &more, err);
    cli_json_end(json);
    if (ok)
        cli_json_put_uint(json, "patterns_left_out", more);
    return ok;
}

static void put_findings(struct cli_json *json, const struct stat_read *read)
{
    struct stat_finding found[STAT_FINDINGS_MAX];
    size_t n = stat_find(read, found);
    cli_json_key(json, "findings");
    cli_json_array(json);
    for (size_t i = 0; i < n; i++) {
        cli_json_obj(json);
        cli_json_put_str(json, "code", found[i].code);
        cli_json_put_str(json, "text", found[i].text);
        cli_json_put_str(json, "advice", found[i].advice);
        cli_json_put_uint(json, "memory", found[i].memory);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void put_key(struct cli_json *json, const struct stat_top_row *row)
{
    const struct stat_key *key = &row->key;
    cli_json_obj(json);
    cli_json_put_uint(json, "db", key->db);
    cli_json_key(json, "key");
    cli_json_bytes(json, stat_top_name(row));
    if (key->name.len > STAT_TOP_NAME_MAX)
        cli_json_put_uint(json, "key_length", key->name.len);
    cli_json_put_str(json, "type", rdb_kind_name(key->type->kind));
    cli_json_put_str(json, "encoding", key->type->encoding);
    cli_json_put_uint(json, "memory", key->memory);
    cli_json_put_uint(json, "stored", key->stored);
    cli_json_put_uint(json, "elements", key->elements);
    if (key->largest != RDB_UNKNOWN)
        cli_json_put_uint(json, "largest_element", key->largest);
    if (key->expire_ms != RDB_NO_EXPIRE)
        cli_json_put_int(json, "expire_ms", key->expire_ms);
    cli_json_end(json);
}

static void put_top(struct cli_json *json, const char *name, const struct stat_top *top, size_t n)
{
    cli_json_key(json, name);
    cli_json_array(json);
    for (size_t i = 0; i < top->n && i < n; i++)
        put_key(json, &top->rows[i]);
    cli_json_end(json);
}

void stat_json_sums(struct cli_json *json, const struct stat_read *read)
{
    const struct stat_sum *sum = &read->sum;
    put_meta(json, read);
    cli_json_key(json, "total");
    cli_json_obj(json);
    put_count(json, &sum->all);
    cli_json_put_uint(json, "tables", tables(read));
    cli_json_end(json);
    put_types(json, sum);
    put_encodings(json, sum);
    put_modules(json, sum);
    put_databases(json, read);
    put_expiry(json, sum);
    put_findings(json, read);
}

bool stat_json_put(struct cli_json *json, const struct stat_read *read, size_t n,
                   struct rd_err *err)
{
    const struct stat_sum *sum = &read->sum;
    stat_json_sums(json, read);
    put_top(json, "biggest", &sum->by_memory, n);
    put_top(json, "most_elements", &sum->by_elements, n);
    put_prefixes(json, &sum->prefixes, n);
    return put_patterns(json, &sum->patterns, n, err);
}
