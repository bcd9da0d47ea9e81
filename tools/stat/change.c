/* change.c - what changed between two snapshots. */
#include "base/mem.h"
#include "tools/stat/report.h"

#include <inttypes.h>
#include <stdlib.h>

enum { NAME = 34, TEXT = STAT_PATTERN_NAME_MAX };

/* A prefix, a pattern or a type in both snapshots. */
struct change {
    struct rd_slice name;
    uint64_t db;
    struct stat_share was, is;
    uint64_t missed;
    uint32_t at; /* of a pattern */
};

struct list {
    struct change *rows;
    size_t n;
    char *names; /* of patterns */
};

static uint64_t size_of(const struct change *change)
{
    uint64_t a = change->was.memory, b = change->is.memory;
    return a > b ? a - b : b - a;
}

static int by_size(const void *va, const void *vb)
{
    const struct change *a = va, *b = vb;
    if (size_of(a) != size_of(b))
        return size_of(a) < size_of(b) ? 1 : -1;
    if (a->name.len != b->name.len) /* a prefix before the longer ones that it contains */
        return a->name.len < b->name.len ? -1 : 1;
    return rd_slice_cmp(a->name, b->name);
}

static bool is_changed(const struct change *change)
{
    return size_of(change) > 0 || change->was.keys != change->is.keys;
}

static void done(struct list *list)
{
    rd_free(list->rows);
    rd_free(list->names);
}

static bool list_prefixes(const struct stat_prefixes *table, struct list *list, struct rd_err *err)
{
    *list = (struct list){.rows = rd_calloc(table->n + 1, sizeof *list->rows)};
    if (list->rows == NULL)
        return rd_err_nomem(err, table->n * sizeof *list->rows);
    for (size_t i = 0; i < table->n; i++) {
        const struct stat_prefix *row = &table->rows[i];
        struct change change = {.name = stat_prefix_name(table, row),
                                .db = row->db,
                                .was = row->was,
                                .is = {row->keys, row->memory},
                                .missed = row->missed};
        if (is_changed(&change))
            list->rows[list->n++] = change;
    }
    qsort(list->rows, list->n, sizeof *list->rows, by_size);
    return true;
}

/* Only the names of the first `max` rows are filled in. */
static bool list_patterns(const struct stat_patterns *tree, size_t max, struct list *list,
                          struct rd_err *err)
{
    struct stat_pattern_leaf *leaves;
    size_t n;
    if (!stat_patterns_leaves(tree, &leaves, &n, err))
        return false;
    *list = (struct list){.rows = rd_calloc(n + 1, sizeof *list->rows),
                          .names = rd_calloc(max + 1, TEXT)};
    for (size_t i = 0; list->rows != NULL && i < n; i++) {
        const struct stat_pattern *row = &tree->rows[leaves[i].at];
        struct change change = {
            .was = row->was, .is = {row->keys, row->memory}, .at = leaves[i].at};
        if (is_changed(&change))
            list->rows[list->n++] = change;
    }
    rd_free(leaves);
    if (list->rows == NULL || list->names == NULL) {
        done(list);
        return rd_err_nomem(err, n * sizeof *list->rows);
    }
    qsort(list->rows, list->n, sizeof *list->rows, by_size);
    for (size_t i = 0; i < list->n && i < max; i++)
        list->rows[i].name =
            stat_pattern_name(tree, list->rows[i].at, (uint8_t *)list->names + i * TEXT);
    return true;
}

/* ---- text ---- */

/* "+1.2 MiB", "-3", "0". */
static struct rd_shown signed_text(uint64_t was, uint64_t is, bool bytes)
{
    struct rd_shown text;
    uint64_t change = is > was ? is - was : was - is;
    snprintf(text.s, sizeof text.s, "%s%.40s",
             is > was   ? "+"
             : is < was ? "-"
                        : "",
             bytes ? rd_show_bytes(change).s : rd_show_count(change).s);
    return text;
}

/* "new", "gone" or the growth in percent. */
static struct rd_shown growth(const struct stat_share *was, const struct stat_share *is)
{
    struct rd_shown text;
    if (was->keys == 0)
        snprintf(text.s, sizeof text.s, "new");
    else if (is->keys == 0)
        snprintf(text.s, sizeof text.s, "gone");
    else
        snprintf(text.s, sizeof text.s, "%s%.0f %%", is->memory >= was->memory ? "+" : "",
                 100 * ((double)is->memory / (double)(was->memory + !was->memory) - 1));
    return text;
}

static void heading(const struct cli *cli, FILE *out, const char *title, const char *columns)
{
    fprintf(out, "\n%s%-*s%s%s\n", cli_color(cli, out, CLI_BOLD), NAME + 2, title,
            cli_color(cli, out, CLI_PLAIN), columns);
}

static void print_row(FILE *out, const char *name, const struct stat_share *was,
                      const struct stat_share *is)
{
    fprintf(out, "  %-*s %11s %10s %10s %8s\n", NAME, name,
            signed_text(was->keys, is->keys, false).s, rd_show_bytes(is->memory).s,
            signed_text(was->memory, is->memory, true).s, growth(was, is).s);
}

static void print_list(const struct cli *cli, FILE *out, const char *title, const struct list *list,
                       size_t n, bool dbs)
{
    if (list->n == 0)
        return;
    heading(cli, out, title, "       keys     memory     change");
    for (size_t i = 0; i < list->n && i < n; i++) {
        const struct change *row = &list->rows[i];
        char name[STAT_NAME_MAX + 32], db[32] = "";
        if (dbs)
            snprintf(db, sizeof db, "db%" PRIu64 " ", row->db);
        snprintf(name, sizeof name, "%s%s", db, stat_fit(row->name, NAME - strlen(db)).s);
        print_row(out, name, &row->was, &row->is);
    }
    if (list->n > n)
        fprintf(out, "  and %s with smaller changes\n", rd_show_count(list->n - n).s);
}

static struct stat_share share_of(const struct stat_count *count)
{
    return (struct stat_share){count->keys, count->memory};
}

static void print_totals(const struct cli *cli, FILE *out, const struct stat_read *read,
                         const struct stat_read *old)
{
    struct stat_share was = share_of(&old->sum.all), is = share_of(&read->sum.all);
    heading(cli, out, "Totals", "       keys     memory     change");
    print_row(out, "all", &was, &is);
    for (unsigned kind = 0; kind < RDB_KIND_COUNT; kind++) {
        struct stat_count a = stat_sum_kind(&old->sum, (enum rdb_kind)kind);
        struct stat_count b = stat_sum_kind(&read->sum, (enum rdb_kind)kind);
        was = share_of(&a);
        is = share_of(&b);
        if (was.keys + is.keys > 0)
            print_row(out, rdb_kind_name((enum rdb_kind)kind), &was, &is);
    }
    was = share_of(&old->sum.expiry[STAT_EXPIRY_NEVER]);
    is = share_of(&read->sum.expiry[STAT_EXPIRY_NEVER]);
    print_row(out, "without expiry", &was, &is);
}

static void print_file(const struct cli *cli, FILE *out, const char *word, const char *path,
                       const struct stat_read *read)
{
    fprintf(out, "%s %s%s%s\n", word, cli_color(cli, out, CLI_BOLD),
            stat_fit(rd_slice_str(path), 70).s, cli_color(cli, out, CLI_PLAIN));
    fprintf(out, "    %s keys, %s, estimated for %s\n", rd_show_count(read->sum.all.keys).s,
            rd_show_bytes(read->sum.all.memory).s, read->layout->name);
    if (read->sum.written_ms > 0)
        fprintf(out, "    written at %s\n", rd_show_time(read->sum.written_ms).s);
}

bool stat_change_print(const struct cli *cli, FILE *out, const struct stat_read *read,
                       const char *path, const struct stat_read *old, const char *old_path,
                       size_t n, struct rd_err *err)
{
    const struct stat_prefixes *table = &read->sum.prefixes;
    struct list prefixes, patterns;
    bool dbs = read->sum.n_dbs > 1 || old->sum.n_dbs > 1;
    if (!list_prefixes(table, &prefixes, err))
        return false;
    if (!list_patterns(&read->sum.patterns, n, &patterns, err)) {
        done(&prefixes);
        return false;
    }
    print_file(cli, out, "old", old_path, old);
    print_file(cli, out, "new", path, read);
    if (read->layout != old->layout)
        fprintf(out, "    The estimates are for two servers; --for makes them comparable.\n");
    print_totals(cli, out, read, old);
    print_list(cli, out, "Prefixes by change", &prefixes, n, dbs);
    if (table->floor > 0)
        fprintf(out, "  Not all prefixes could be tracked; the others take at most %s each.\n",
                rd_show_bytes(table->floor).s);
    print_list(cli, out, "Patterns by change", &patterns, n, false);
    if (prefixes.n == 0 && patterns.n == 0)
        fprintf(out, "\nNo prefix or pattern has other totals.\n");
    done(&prefixes);
    done(&patterns);
    return true;
}

/* ---- JSON ---- */

static void put_shares(struct json_write *json, const struct stat_share *was,
                       const struct stat_share *is)
{
    json_put_uint(json, "keys_before", was->keys);
    json_put_uint(json, "keys", is->keys);
    json_put_uint(json, "memory_before", was->memory);
    json_put_uint(json, "memory", is->memory);
}

static void put_types(struct json_write *json, const struct stat_read *read,
                      const struct stat_read *old)
{
    json_key(json, "types");
    json_array(json);
    for (unsigned kind = 0; kind < RDB_KIND_COUNT; kind++) {
        struct stat_count a = stat_sum_kind(&old->sum, (enum rdb_kind)kind);
        struct stat_count b = stat_sum_kind(&read->sum, (enum rdb_kind)kind);
        struct stat_share was = share_of(&a), is = share_of(&b);
        if (was.keys + is.keys == 0)
            continue;
        json_obj(json);
        json_put_str(json, "type", rdb_kind_name((enum rdb_kind)kind));
        put_shares(json, &was, &is);
        json_end(json);
    }
    json_end(json);
}

static void put_list(struct json_write *json, const char *name, const char *member,
                     const struct list *list, size_t n, bool prefixes)
{
    json_key(json, name);
    json_array(json);
    for (size_t i = 0; i < list->n && i < n; i++) {
        const struct change *row = &list->rows[i];
        json_obj(json);
        json_key(json, member);
        json_bytes(json, row->name);
        if (prefixes)
            json_put_uint(json, "db", row->db);
        put_shares(json, &row->was, &row->is);
        if (prefixes)
            json_put_uint(json, "missed_at_most", row->missed);
        json_end(json);
    }
    json_end(json);
}

bool stat_change_json(struct json_write *json, const struct stat_read *read,
                      const struct stat_read *old, const char *old_path, size_t n,
                      struct rd_err *err)
{
    struct list prefixes, patterns;
    if (!list_prefixes(&read->sum.prefixes, &prefixes, err))
        return false;
    if (!list_patterns(&read->sum.patterns, n, &patterns, err)) {
        done(&prefixes);
        return false;
    }
    json_key(json, "old");
    json_obj(json);
    json_put_str(json, "file", old_path);
    stat_json_sums(json, old);
    json_end(json);
    json_key(json, "changes");
    json_obj(json);
    put_types(json, read, old);
    put_list(json, "prefixes", "prefix", &prefixes, n, true);
    json_put_uint(json, "prefixes_left_out", prefixes.n > n ? prefixes.n - n : 0);
    put_list(json, "patterns", "pattern", &patterns, n, false);
    json_put_uint(json, "patterns_left_out", patterns.n > n ? patterns.n - n : 0);
    json_end(json);
    done(&prefixes);
    done(&patterns);
    return true;
}
