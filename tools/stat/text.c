/* text.c - prints the report for a terminal of 80 columns. */
#include "rdb/version.h"
#include "data/module_types.h"
#include "tools/stat/report.h"

#include "base/mem.h"
#include "tools/stat/find.h"

#include <inttypes.h>

enum { BAR = 12, NAME = 34, HEAD = 64, TAIL = 32 };

_Static_assert(STAT_NAME_MAX >= 4 * (HEAD + TAIL) + 8, "a byte takes up to four");

struct rd_shown stat_percent(uint64_t part, uint64_t whole)
{
    struct rd_shown text;
    double share = whole == 0 ? 0 : 100 * ((double)part / (double)whole);
    snprintf(text.s, sizeof text.s, share > 0 && share < 9.95 ? "%.1f %%" : "%.0f %%", share);
    return text;
}

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Where the nth character of a text begins. */
static size_t place_of(const char *text, size_t n)
{
    size_t at = 0;
    for (; text[at] != '\0'; at++)
        if (!continues(text[at]) && n-- == 0)
            break;
    return at;
}

static size_t characters(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += !continues(*text);
    return n;
}

struct stat_name stat_fit(struct rd_slice bytes, size_t width)
{
    static const char dots[] = "...";
    struct stat_name name;
    uint8_t ends[HEAD + TAIL];
    if (bytes.len > sizeof ends) { /* the middle is not shown anyway */
        memcpy(ends, bytes.ptr, HEAD);
        memcpy(ends + HEAD, bytes.ptr + bytes.len - TAIL, TAIL);
        bytes = rd_slice(ends, sizeof ends);
    }
    rd_err_quote(name.s, sizeof name.s, bytes);
    size_t len = strlen(name.s) - 2;
    memmove(name.s, name.s + 1, len);
    name.s[len] = '\0';
    size_t n = characters(name.s);
    if (n > width) {
        size_t head = (width - 3) * 2 / 3, tail = place_of(name.s, n - (width - 3 - head));
        head = place_of(name.s, head);
        memcpy(name.s + head, dots, 3); /* over at least four characters */
        memmove(name.s + head + 3, name.s + tail, len - tail + 1);
    }
    return name;
}

struct stat_name stat_column(struct rd_slice bytes, size_t width)
{
    struct stat_name name = stat_fit(bytes, width);
    size_t len = strlen(name.s), n = characters(name.s);
    for (; n < width && len + 1 < sizeof name.s; n++)
        name.s[len++] = ' ';
    name.s[len] = '\0';
    return name;
}

/* Full blocks, and one of eighths. */
static struct rd_shown bar(uint64_t part, uint64_t whole)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    struct rd_shown text = {""};
    double share = whole == 0 ? 0 : (double)part / (double)whole;
    unsigned n = (unsigned)(share * (double)(BAR * 8) + 0.5);
    n = n == 0 && part > 0 ? 1 : n;
    n = n > BAR * 8 ? BAR * 8 : n;
    char *to = text.s;
    for (unsigned i = 0; i < n / 8; i++, to += 3)
        memcpy(to, "█", 4);
    strcpy(to, eighths[n % 8]);
    return text;
}

struct screen {
    const struct cli *cli;
    FILE *out;
    const struct stat_read *read;
    size_t n;
};

static void heading(const struct screen *s, const char *title, const char *columns)
{
    fprintf(s->out, "\n%s%s%s%s\n", cli_color(s->cli, s->out, CLI_BOLD), title,
            cli_color(s->cli, s->out, CLI_PLAIN), columns);
}

static void put_bar(const struct screen *s, uint64_t part, uint64_t whole)
{
    fprintf(s->out, " %6s %s%s%s\n", stat_percent(part, whole).s,
            cli_color(s->cli, s->out, CLI_GREEN), bar(part, whole).s,
            cli_color(s->cli, s->out, CLI_PLAIN));
}

/* ---- the sections ---- */

static void print_head(const struct screen *s, const char *path, bool replayed)
{
    const struct stat_read *read = s->read;
    const struct stat_meta *meta = &read->meta;
    const struct stat_count *all = &read->sum.all;
    fprintf(s->out, "%s%s%s\n", cli_color(s->cli, s->out, CLI_BOLD),
            stat_fit(rd_slice_str(path), 78).s, cli_color(s->cli, s->out, CLI_PLAIN));
    if (replayed)
        fputs("  read      a log or a capture, replayed: size and format are those of a\n"
              "            snapshot of its data\n",
              s->out);
    fprintf(s->out, "  format    %s", rdb_version_text(meta->dialect, meta->version).s);
    if (meta->writer.version[0] != '\0')
        fprintf(s->out, "\n  written   by %s %s", meta->writer.valkey ? "Valkey" : "Redis",
                meta->writer.version);
    if (meta->ctime_s > 0 && meta->ctime_s < INT64_MAX / 1000)
        fprintf(s->out, "%s at %s", meta->writer.version[0] != '\0' ? "" : "\n  written  ",
                rd_show_time(meta->ctime_s * 1000).s);
    fprintf(s->out, "\n  size      %s in the file\n", rd_show_bytes(meta->bytes).s);
    fprintf(s->out, "  keys      %s, %s with an expiry\n", rd_show_count(all->keys).s,
            rd_show_count(all->expires).s);
    fprintf(s->out, "  memory    %s, estimated for %s\n", rd_show_bytes(all->memory).s,
            read->layout->name);
    if (meta->used_memory > 0)
        fprintf(s->out, "            %s used by the server when it wrote the file\n",
                rd_show_bytes((uint64_t)meta->used_memory).s);
    if (all->keys > 0)
        fprintf(s->out, "            used_memory also has %s (%s) of hash tables, and buffers\n",
                rd_show_bytes(stat_json_tables(read)).s,
                stat_percent(stat_json_tables(read), all->memory).s);
}

static void print_count(const struct screen *s, const char *name, const struct stat_count *count)
{
    fprintf(s->out, "  %-18s %12s %15s %10s", name, rd_show_count(count->keys).s,
            rd_show_count(count->elements).s, rd_show_bytes(count->memory).s);
    put_bar(s, count->memory, s->read->sum.all.memory);
}

/* "  JSON", or the module's own name. */
static void print_module(const struct screen *s, const struct stat_module *module)
{
    char name[RDB_MODULE_NAME_LEN + 1], row[40];
    const char *words = module_type_words(module->id);
    rdb_module_name(module->id, name);
    snprintf(row, sizeof row, "  %s", module->id == 0 ? "others" : words != NULL ? words : name);
    print_count(s, row, &module->count);
}

static void print_types(const struct screen *s)
{
    const struct stat_sum *sum = &s->read->sum;
    heading(s, "Types              ", "          keys        elements     memory");
    for (unsigned kind = 0; kind < RDB_KIND_COUNT; kind++) {
        struct stat_count count = stat_sum_kind(sum, (enum rdb_kind)kind);
        if (count.keys > 0)
            print_count(s, rdb_kind_name((enum rdb_kind)kind), &count);
    }
    for (size_t i = 0; i < sum->n_modules; i++)
        print_module(s, &sum->modules[i]);
    heading(s, "Encodings          ", "          keys        elements     memory");
    for (unsigned id = 0; id < RDB_TYPE_COUNT; id++) {
        const struct rdb_type *type = rdb_type_get((enum rdb_type_id)id);
        bool plain = type->kind == RDB_KIND_STRING || type->kind == RDB_KIND_STREAM;
        char name[64];
        if (sum->types[id].keys == 0)
            continue;
        snprintf(name, sizeof name, "%s%s%s", plain ? "" : rdb_kind_name(type->kind),
                 plain ? "" : " ", type->encoding);
        print_count(s, stat_fit(rd_slice_str(name), 18).s, &sum->types[id]);
    }
}

static void print_databases(const struct screen *s)
{
    const struct stat_sum *sum = &s->read->sum;
    uint64_t more = sum->n_dbs > s->n ? sum->n_dbs - s->n : 0;
    if (sum->n_dbs < 2)
        return;
    heading(s, "Databases          ", "          keys        elements     memory");
    for (size_t i = 0; i < sum->n_dbs && i < s->n; i++) {
        char name[32];
        snprintf(name, sizeof name, "db %" PRIu64, sum->dbs[i].db);
        print_count(s, name, &sum->dbs[i].count);
    }
    if (more > 0)
        fprintf(s->out, "  and %s more\n", rd_show_count(more).s);
}

static void print_expiry(const struct screen *s)
{
    const struct stat_sum *sum = &s->read->sum;
    if (sum->all.expires == 0)
        return;
    heading(s, "Expiry             ", "          keys        elements     memory");
    for (unsigned i = 0; i < STAT_EXPIRY_COUNT; i++)
        if (sum->expiry[i].keys > 0)
            print_count(s, stat_expiry_words((enum stat_expiry)i), &sum->expiry[i]);
}

/* "db3 " if there are several databases. */
static struct rd_shown db_of(const struct screen *s, uint64_t db)
{
    struct rd_shown text = {""};
    if (s->read->sum.n_dbs > 1)
        snprintf(text.s, sizeof text.s, "db%" PRIu64 " ", db);
    return text;
}

static void print_prefixes(const struct screen *s)
{
    const struct stat_prefixes *table = &s->read->sum.prefixes;
    if (table->n == 0)
        return;
    heading(s, "Prefixes", "                                    keys     memory");
    for (size_t i = 0; i < table->n && i < s->n; i++) {
        const struct stat_prefix *row = &table->rows[i];
        struct rd_shown db = db_of(s, row->db);
        size_t room = NAME - strlen(db.s);
        fprintf(s->out, "  %s%s %12s %10s", db.s, stat_column(stat_prefix_name(table, row), room).s,
                rd_show_count(row->keys).s, rd_show_bytes(row->memory).s);
        put_bar(s, row->memory, s->read->sum.all.memory);
    }
    if (table->n > s->n)
        fprintf(s->out, "  and %s smaller\n", rd_show_count(table->n - s->n).s);
    if (table->floor > 0)
        fprintf(s->out, "  Not all prefixes could be tracked; the others take at most %s each.\n",
                rd_show_bytes(table->floor).s);
}

static void print_pattern(void *ctx, const struct stat_pattern *row, struct rd_slice name)
{
    const struct screen *s = ctx;
    fprintf(s->out, "  %s %12s %10s", stat_column(name, NAME).s, rd_show_count(row->keys).s,
            rd_show_bytes(row->memory).s);
    put_bar(s, row->memory, s->read->sum.all.memory);
}

static bool print_patterns(struct screen *s, struct rd_err *err)
{
    const struct stat_patterns *tree = &s->read->sum.patterns;
    size_t more = 0;
    if (tree->rows[0].child == 0)
        return true;
    heading(s, "Patterns", "                                    keys     memory");
    if (!stat_patterns_largest(tree, s->n, print_pattern, s, &more, err))
        return false;
    if (more > 0)
        fprintf(s->out, "  and %s smaller\n", rd_show_count(more).s);
    return true;
}

/* ---- findings ---- */

/* Prints words in lines of at most WIDTH columns. */
static void print_wrapped(FILE *out, const char *text, int indent)
{
    enum { WIDTH = 78 };
    int at = 0;
    for (const char *p = text; *p != '\0';) {
        int len = (int)strcspn(p, " ");
        if (at > 0 && at + 1 + len > WIDTH) {
            fputc('\n', out);
            at = 0;
        }
        at += fprintf(out, "%*s%.*s", at == 0 ? indent : 1, "", len, p);
        p += len + (p[len] == ' ');
    }
    fputc('\n', out);
}

static void print_findings(const struct screen *s)
{
    struct stat_finding found[STAT_FINDINGS_MAX];
    size_t n = stat_find(s->read, found);
    if (n > 0)
        heading(s, "Findings", "");
    for (size_t i = 0; i < n; i++) {
        print_wrapped(s->out, found[i].text, 2);
        print_wrapped(s->out, found[i].advice, 4);
    }
}

static void print_top(const struct screen *s, const char *title, const struct stat_top *top)
{
    if (top->n == 0)
        return;
    heading(s, title, "   type           elements    longest     memory");
    for (size_t i = 0; i < top->n && i < s->n; i++) {
        const struct stat_top_row *row = &top->rows[i];
        struct rd_shown db = db_of(s, row->key.db);
        size_t room = 26 - strlen(db.s);
        fprintf(s->out, "  %s%s %-6s %15s %10s %10s\n", db.s,
                stat_column(stat_top_name(row), room).s, rdb_kind_name(row->key.type->kind),
                rd_show_count(row->key.elements).s, rd_show_bytes(row->key.largest).s,
                rd_show_bytes(row->key.memory).s);
    }
}

static void print_hist(const struct screen *s, const char *type, const char *what,
                       const struct stat_hist *hist, bool bytes)
{
    static const double shares[] = {0.5, 0.9, 0.99, 0.999, 1};
    if (hist->n == 0)
        return;
    fprintf(s->out, "  %-6s %-16s", type, what);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        uint64_t at = stat_hist_at(hist, shares[i]);
        fprintf(s->out, " %10s", bytes ? rd_show_bytes(at).s : rd_show_count(at).s);
    }
    fputc('\n', s->out);
}

static void print_sizes(const struct screen *s)
{
    const struct stat_sum *sum = &s->read->sum;
    uint64_t passed = 0;
    heading(s, "Sizes",
            "                          50 %       90 %       99 %     99.9 %    "
            "largest");
    for (unsigned kind = 0; kind < RDB_KIND_COUNT; kind++) {
        const char *type = rdb_kind_name((enum rdb_kind)kind);
        if (sum->memory[kind].n == 0)
            continue;
        print_hist(s, type, kind == RDB_KIND_STRING ? "length" : "element length",
                   &sum->lengths[kind], true);
        passed += sum->passed[kind];
        print_hist(s, "", "elements per key", &sum->elements[kind], false);
        print_hist(s, "", "memory per key", &sum->memory[kind], true);
    }
    if (passed > 0)
        fprintf(s->out, "  Element lengths come from a sample; use --exact to measure all.\n");
}

bool stat_text_print(const struct cli *cli, FILE *out, const struct stat_read *read,
                     const char *path, bool replayed, size_t n, struct rd_err *err)
{
    struct screen s = {cli, out, read, n};
    print_head(&s, path, replayed);
    if (read->sum.all.keys == 0)
        return true;
    print_findings(&s);
    print_types(&s);
    print_databases(&s);
    print_expiry(&s);
    print_prefixes(&s);
    if (!print_patterns(&s, err))
        return false;
    print_top(&s, "Biggest keys          ", &read->sum.by_memory);
    print_top(&s, "Most elements         ", &read->sum.by_elements);
    print_sizes(&s);
    return true;
}
