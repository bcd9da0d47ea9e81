/* html.c - the report as a page. Its data is compact JSON: rows are arrays. page.js has the same
 * order of columns. */
#include "base/api.h"
#include "base/mem.h"
#include "rdb/version.h"
#include "tools/page/page.h"
#include "tools/stat/report.h"

#include "tools/stat_page.h"

#include <stdlib.h>

/* Bytes of the page for each list. */
enum {
    PREFIX_BYTES = 250000,
    PATTERN_BYTES = 190000,
    KEY_BYTES = 340000,
    KEYS_MAX = 65536,
    DBS_MAX = 100
};

struct writer {
    struct json_write *json;
    const struct stat_read *read;
    const struct stat_kept **keys; /* of groups; KEYS_MAX */
    uint32_t n_top;                /* keys of the lists of the whole snapshot come first */
    uint32_t n_keys;
    uint64_t key_bytes;
    uint64_t spent;         /* bytes of the current list */
    uint64_t keys_left_out; /* keys of groups */
    uint64_t rows_left_out;
};

static struct rd_slice shorten(struct rd_slice name)
{
    return rd_slice(name.ptr, name.len < STAT_KEPT_NAME_MAX ? name.len : STAT_KEPT_NAME_MAX);
}

/* ---- keys ---- */

static void put_key(struct writer *w, const struct stat_key *key, struct rd_slice name)
{
    struct json_write *json = w->json;
    json_array(json);
    json_uint(json, key->db);
    json_bytes(json, name);
    json_uint(json, key->name.len > name.len ? key->name.len : 0);
    json_uint(json, key->type->id);
    json_uint(json, key->memory);
    json_uint(json, key->elements);
    if (key->largest == RDB_UNKNOWN)
        json_null(json);
    else
        json_uint(json, key->largest);
    if (key->expire_ms != RDB_NO_EXPIRE)
        json_int(json, key->expire_ms);
    json_end(json);
}

static bool fits(struct writer *w, struct rd_slice name)
{
    enum { NUMBERS = 60 };
    uint64_t cost = NUMBERS + page_cost(name);
    if (w->key_bytes + cost > KEY_BYTES)
        return false;
    w->key_bytes += cost;
    return true;
}

static bool is_same(const struct stat_key *a, struct rd_slice a_name, const struct stat_key *b,
                    struct rd_slice b_name)
{
    return a->memory == b->memory && a->db == b->db && a->name.len == b->name.len &&
           rd_slice_eq(a_name, b_name);
}

/* The place of a row in a list, or its length. */
static size_t find_in(const struct stat_top *top, const struct stat_key *key, struct rd_slice name)
{
    size_t i = 0;
    while (i < top->n &&
           !is_same(&top->rows[i].key, shorten(stat_top_name(&top->rows[i])), key, shorten(name)))
        i++;
    return i;
}

static void put_top_keys(struct writer *w)
{
    const struct stat_sum *sum = &w->read->sum;
    const struct stat_top *tops[] = {&sum->by_memory, &sum->by_elements};
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; i < tops[t]->n; i++) {
            const struct stat_top_row *row = &tops[t]->rows[i];
            struct rd_slice name = shorten(stat_top_name(row));
            if (t == 1 && find_in(tops[0], &row->key, name) < w->n_top)
                continue;
            if (!fits(w, name))
                break;
            put_key(w, &row->key, name);
            if (t == 0)
                w->n_top++;
            w->n_keys++;
        }
    }
}

/* Returns the index of the key on the page plus 1, or 0 if the page has no room for it. */
static uint32_t index_of(struct writer *w, struct stat_kept *kept)
{
    const struct stat_top *top = &w->read->sum.by_memory;
    struct rd_slice name = rd_slice(kept->name, kept->name_len);
    if (kept->index != 0)
        return kept->index;
    if (w->n_top > 0 && kept->key.memory >= top->rows[w->n_top - 1].key.memory) {
        size_t at = find_in(top, &kept->key, name);
        if (at < w->n_top)
            return kept->index = (uint32_t)at + 1;
    }
    if (w->n_keys == KEYS_MAX || !fits(w, name))
        return 0;
    w->keys[w->n_keys] = kept;
    return kept->index = ++w->n_keys;
}

static void put_more_keys(struct writer *w)
{
    for (uint32_t i = 0; i < w->n_keys; i++)
        if (w->keys[i] != NULL)
            put_key(w, &w->keys[i]->key, rd_slice(w->keys[i]->name, w->keys[i]->name_len));
}

/* ---- details ---- */

static void put_shares(struct json_write *json, const struct stat_share *shares, unsigned n)
{
    json_array(json);
    for (unsigned i = 0; i < n; i++) {
        if (shares[i].keys == 0)
            continue;
        json_uint(json, i);
        json_uint(json, shares[i].keys);
        json_uint(json, shares[i].memory);
    }
    json_end(json);
}

/* The first class that has keys, and the number of keys of it and of the next ones. */
static void put_sizes(struct json_write *json, const struct stat_detail *detail)
{
    unsigned from = 0, to = STAT_SIZES;
    while (from < to && detail->sizes[from] == 0)
        from++;
    while (to > from && detail->sizes[to - 1] == 0)
        to--;
    json_array(json);
    json_uint(json, from);
    for (; from < to; from++)
        json_uint(json, detail->sizes[from]);
    json_end(json);
}

static int by_size(const void *va, const void *vb)
{
    const struct stat_kept *a = *(struct stat_kept *const *)va, *b = *(struct stat_kept *const *)vb;
    return (a->key.memory < b->key.memory) - (a->key.memory > b->key.memory);
}

static void put_detail(struct writer *w, const struct stat_detail *detail)
{
    struct json_write *json = w->json;
    struct stat_kept *kept[STAT_KEPT];
    if (detail == NULL)
        return;
    put_shares(json, detail->kinds, RDB_KIND_COUNT);
    put_shares(json, detail->expiry, STAT_EXPIRY_COUNT);
    put_sizes(json, detail);
    memcpy(kept, detail->kept, sizeof kept);
    qsort(kept, detail->n_kept, sizeof *kept, by_size);
    json_array(json);
    for (size_t i = 0; i < detail->n_kept; i++) {
        uint32_t index = index_of(w, kept[i]);
        if (index > 0)
            json_uint(json, index - 1);
        w->keys_left_out += index == 0;
    }
    json_end(json);
}

/* ---- prefixes and patterns ---- */

static void put_prefix(struct writer *w, const struct stat_prefixes *table,
                       const struct stat_prefix *row)
{
    struct json_write *json = w->json;
    json_array(json);
    json_uint(json, row->db);
    json_bytes(json, stat_prefix_name(table, row));
    json_uint(json, row->keys);
    json_uint(json, row->memory);
    json_uint(json, row->was.keys);
    json_uint(json, row->was.memory);
    json_uint(json, row->missed);
    put_detail(w, stat_detail_at(&table->details, row->detail));
    json_end(json);
}

static void put_prefixes(struct writer *w)
{
    const struct stat_prefixes *table = &w->read->sum.prefixes;
    size_t i = 0;
    json_key(w->json, "separator");
    json_bytes(w->json, table->separator);
    json_key(w->json, "prefixes");
    json_array(w->json);
    for (w->spent = 0; i < table->n && w->spent < PREFIX_BYTES; i++) {
        uint64_t from = rd_sink_offset(w->json->out);
        struct rd_slice name = stat_prefix_name(table, &table->rows[i]);
        put_prefix(w, table, &table->rows[i]);
        w->spent += rd_sink_offset(w->json->out) - from + page_cost(name) - name.len;
    }
    json_end(w->json);
    json_put_uint(w->json, "prefixes_left_out", table->n - i);
    json_put_uint(w->json, "unlisted_prefix_at_most", table->floor);
}

/* Of each database: its number and its detail. */
static void put_databases(struct writer *w)
{
    const struct stat_sum *sum = &w->read->sum;
    json_key(w->json, "db_details");
    json_array(w->json);
    for (size_t i = 0; sum->n_dbs > 1 && i < sum->n_dbs && i < DBS_MAX; i++) {
        json_array(w->json);
        json_uint(w->json, sum->dbs[i].db);
        put_detail(w, stat_detail_at(&sum->db_details, sum->dbs[i].detail));
        json_end(w->json);
    }
    json_end(w->json);
}

struct node {
    const struct stat_pattern *row;
    uint32_t at;
};

/* Parents before their children. */
static int by_place(const void *va, const void *vb)
{
    const struct node *a = va, *b = vb;
    if (stat_pattern_most(a->row) != stat_pattern_most(b->row))
        return stat_pattern_most(a->row) < stat_pattern_most(b->row) ? 1 : -1;
    if (a->row->level != b->row->level)
        return a->row->level < b->row->level ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static void put_pattern(struct writer *w, const struct stat_patterns *tree, const struct node *node,
                        uint32_t parent)
{
    struct json_write *json = w->json;
    const struct stat_pattern *row = node->row;
    json_array(json);
    json_uint(json, parent);
    json_bytes(json, stat_pattern_part(row));
    json_uint(json, row->keys);
    json_uint(json, row->memory);
    json_uint(json, row->was.keys);
    json_uint(json, row->was.memory);
    json_uint(json, row->leaf ? 1 : 0);
    put_detail(w, stat_detail_at(&tree->details, row->detail));
    json_end(json);
}

/* `places` is where each row of the tree is on the page. The first one is the root. */
static void put_patterns(struct writer *w, struct node *nodes, size_t n, uint32_t *places)
{
    const struct stat_patterns *tree = &w->read->sum.patterns;
    size_t i = 0;
    json_key(w->json, "patterns");
    json_array(w->json);
    for (w->spent = 0; i < n && w->spent < PATTERN_BYTES; i++) {
        uint64_t from = rd_sink_offset(w->json->out);
        struct rd_slice part = stat_pattern_part(nodes[i].row);
        places[nodes[i].at] = (uint32_t)i;
        put_pattern(w, tree, &nodes[i], places[nodes[i].row->parent]);
        w->spent += rd_sink_offset(w->json->out) - from + page_cost(part) - part.len;
    }
    json_end(w->json);
    json_put_uint(w->json, "patterns_left_out", n - i);
}

static bool sort_patterns(struct writer *w, struct rd_err *err)
{
    const struct stat_patterns *tree = &w->read->sum.patterns;
    struct node *nodes = rd_calloc(STAT_PATTERN_CAP, sizeof *nodes);
    uint32_t *places = rd_calloc(STAT_PATTERN_CAP, sizeof *places);
    size_t n = 0;
    bool ok = nodes != NULL && places != NULL;
    for (uint32_t i = 0; ok && i < STAT_PATTERN_CAP; i++)
        if (tree->rows[i].used)
            nodes[n++] = (struct node){&tree->rows[i], i};
    if (ok) {
        qsort(nodes, n, sizeof *nodes, by_place);
        put_patterns(w, nodes, n, places);
    }
    rd_free(nodes);
    rd_free(places);
    return ok || rd_err_nomem(err, STAT_PATTERN_CAP * sizeof *nodes);
}

/* ---- the page ---- */

static void put_types(struct json_write *json)
{
    json_key(json, "kind_names");
    json_array(json);
    for (unsigned i = 0; i < RDB_KIND_COUNT; i++)
        json_str(json, rdb_kind_name((enum rdb_kind)i));
    json_end(json);
    json_key(json, "type_names");
    json_array(json);
    for (unsigned i = 0; i < RDB_TYPE_COUNT; i++) {
        const struct rdb_type *type = rdb_type_get((enum rdb_type_id)i);
        json_array(json);
        json_uint(json, type->kind);
        json_str(json, type->encoding);
        json_end(json);
    }
    json_end(json);
}

static void put_snapshot(struct json_write *json, const struct stat_read *read, const char *path)
{
    json_key(json, "file");
    json_bytes(json, rd_slice_str(path));
    json_put_str(json, "format", rdb_version_text(read->meta.dialect, read->meta.version).s);
    stat_json_sums(json, read);
}

static bool put_all(struct writer *w, const char *path, const struct stat_read *old,
                    const char *old_path, struct rd_err *err)
{
    struct json_write *json = w->json;
    put_snapshot(json, w->read, path);
    if (old != NULL) {
        json_key(json, "old");
        json_obj(json);
        put_snapshot(json, old, old_path);
        json_end(json);
    }
    if (w->read->made_ms > 0)
        json_put_str(json, "made_at", rd_show_time(w->read->made_ms / 1000 * 1000).s);
    json_put_str(json, "made_by", redoubt_version_string());
    json_put_uint(json, "kept", STAT_KEPT);
    put_types(json);
    json_key(json, "top_keys");
    json_array(json);
    put_top_keys(w);
    json_end(json);
    put_databases(w);
    put_prefixes(w);
    if (!sort_patterns(w, err))
        return false;
    json_key(json, "more_keys");
    json_array(json);
    put_more_keys(w);
    json_end(json);
    json_put_uint(json, "keys_left_out", w->keys_left_out);
    return true;
}

static bool make_data(struct rd_buf *buf, const struct stat_read *read, const char *path,
                      const struct stat_read *old, const char *old_path, struct rd_err *err)
{
    struct rd_sink *sink;
    struct json_write json;
    struct writer w = {.json = &json, .read = read};
    w.keys = rd_calloc(KEYS_MAX, sizeof *w.keys);
    if (w.keys == NULL)
        return rd_err_nomem(err, KEYS_MAX * sizeof *w.keys);
    bool ok = rd_sink_open_buf(&sink, buf, NULL, err);
    if (ok) {
        json_init(&json, sink);
        json_obj(&json);
        ok = put_all(&w, path, old, old_path, err);
        json_end(&json);
        ok = rd_sink_close(sink, err) && ok;
    }
    rd_free(w.keys);
    return ok;
}

bool stat_html_write(struct rd_sink *out, const struct stat_read *read, const char *path,
                     const struct stat_read *old, const char *old_path, struct rd_err *err)
{
    struct rd_buf data = {0};
    bool ok = make_data(&data, read, path, old, old_path, err) &&
              page_write(out, rd_slice(stat_page, sizeof stat_page), rd_buf_slice(&data), err);
    rd_buf_done(&data);
    return ok;
}
