#include "tools/cli/findings.h"

#include "base/mem.h"

#include <inttypes.h>

/* ---- storage ---- */

bool findings_count(struct findings *found, const char *word, enum rdb_severity severity)
{
    size_t i = 0;
    while (i < found->n_counts && strcmp(found->counts[i].word, word) != 0)
        i++;
    if (i == FINDINGS_WORDS)
        i--;
    else if (i == found->n_counts)
        found->counts[found->n_counts++] =
            (struct finding_count){.word = word, .severity = severity};
    return found->counts[i].n++ < FINDINGS_KEPT;
}

void findings_add(struct findings *found, const struct finding *f)
{
    if (found->n == found->cap) {
        size_t cap = found->cap == 0 ? 16 : 2 * found->cap;
        void *bigger = rd_realloc(found->all, cap * sizeof *found->all);
        if (bigger == NULL) {
            rd_err_nomem(&found->err, cap * sizeof *found->all);
            return;
        }
        found->all = bigger;
        found->cap = cap;
    }
    found->all[found->n++] = *f;
}

struct finding_text findings_keep(struct findings *found, struct rd_slice bytes)
{
    struct finding_text text = {.at = found->bytes.len, .len = bytes.len};
    if (rd_buf_add(&found->bytes, bytes.ptr, bytes.len))
        return text;
    rd_err_nomem(&found->err, bytes.len);
    return (struct finding_text){0};
}

void findings_done(struct findings *found)
{
    rd_buf_done(&found->bytes);
    rd_free(found->all);
    *found = (struct findings){0};
}

/* ---- text output ---- */

void findings_print_key(FILE *out, struct rd_slice key, const struct rdb_type *type, uint64_t db)
{
    fprintf(out, "%s %s in db %" PRIu64, type != NULL ? rdb_kind_name(type->kind) : "key",
            rd_show_quote(key).s, db);
}

static void print_where(FILE *out, const struct findings *found, const struct finding *f)
{
    if (f->offset != RD_NO_OFFSET)
        fprintf(out, " at byte %s", rd_show_place(f->offset).s);
    if (f->inner != RD_NO_OFFSET)
        fprintf(out, " + %" PRIu64, f->inner);
    if (f->has_file)
        fprintf(out, " of %s", rd_show_plain(findings_slice(found, f->file)).s);
    if (f->line > 0)
        fprintf(out, ", line %" PRIu64, f->line);
    if (f->command > 0)
        fprintf(out, ", command %" PRIu64, f->command);
    if (f->has_key) {
        fputs(", ", out);
        findings_print_key(out, findings_slice(found, f->key), f->type, f->db);
    }
}

static void print_finding(struct cli *cli, FILE *out, const struct findings *found,
                          const struct finding *f)
{
    static const enum cli_color colors[] = {CLI_DIM, CLI_YELLOW, CLI_RED};
    fprintf(out, "  %s%-10s%s %s", cli_color(cli, out, colors[f->severity]),
            rdb_severity_name(f->severity), cli_color(cli, out, CLI_PLAIN), f->word);
    print_where(out, found, f);
    fprintf(out, ": %s\n", rd_show_sentence(findings_slice(found, f->text)).s);
}

static void print_severity(struct cli *cli, FILE *out, const struct findings *found,
                           enum rdb_severity severity)
{
    for (size_t i = 0; i < found->n; i++)
        if (found->all[i].severity == severity)
            print_finding(cli, out, found, &found->all[i]);
    for (size_t i = 0; i < found->n_counts; i++)
        if (found->counts[i].severity == severity && found->counts[i].n > FINDINGS_KEPT)
            fprintf(out, "  %-10s %s: … and %s more\n", rdb_severity_name(severity),
                    found->counts[i].word, rd_show_count(found->counts[i].n - FINDINGS_KEPT).s);
}

void findings_print(struct cli *cli, FILE *out, const struct findings *found)
{
    for (int severity = RDB_SEVERITY_ERROR; severity >= RDB_SEVERITY_INFO; severity--)
        print_severity(cli, out, found, (enum rdb_severity)severity);
}

/* ---- JSON output ---- */

static void put_text(struct json_write *json, const char *key, const struct findings *found,
                     struct finding_text text)
{
    json_key(json, key);
    json_bytes(json, findings_slice(found, text));
}

static void put_file(struct json_write *json, const struct findings *found, const struct finding *f)
{
    json_key(json, "file");
    if (f->has_file)
        json_bytes(json, findings_slice(found, f->file));
    else
        json_null(json);
}

static void put_finding(struct json_write *json, const struct findings *found,
                        const struct finding *f, bool log)
{
    json_obj(json);
    json_put_str(json, "id", f->word);
    json_put_str(json, "severity", rdb_severity_name(f->severity));
    if (log)
        put_file(json, found, f);
    json_put_offset(json, "offset", f->offset);
    json_put_offset(json, "inner", f->inner);
    if (log) {
        json_put_offset(json, "line", f->line != 0 ? f->line : RD_NO_OFFSET);
        json_put_offset(json, "command", f->command != 0 ? f->command : RD_NO_OFFSET);
    } else {
        json_put_offset(json, "record", f->record);
    }
    if (f->has_key) {
        json_put_uint(json, "db", f->db);
        put_text(json, "key", found, f->key);
        json_put_str(json, "type", f->type != NULL ? rdb_kind_name(f->type->kind) : NULL);
    }
    put_text(json, "text", found, f->text);
    json_end(json);
}

void findings_json(struct json_write *json, const struct findings *found, bool log)
{
    json_key(json, "findings");
    json_array(json);
    for (size_t i = 0; i < found->n; i++)
        put_finding(json, found, &found->all[i], log);
    json_end(json);
    json_key(json, "findings_by_id");
    json_obj(json);
    for (size_t i = 0; i < found->n_counts; i++)
        json_put_uint(json, found->counts[i].word, found->counts[i].n);
    json_end(json);
}

void findings_json_total(struct json_write *json, uint64_t errors, uint64_t warnings,
                         uint64_t infos)
{
    json_key(json, "findings_total");
    json_obj(json);
    json_put_uint(json, "error", errors);
    json_put_uint(json, "warning", warnings);
    json_put_uint(json, "info", infos);
    json_end(json);
}
