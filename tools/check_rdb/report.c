/* report.c - prints the result of check-rdb as text. */
#include "tools/check_rdb/check_rdb.h"

#include "base/num.h"
#include "rdb/version.h"

#include <inttypes.h>

enum { DOUBTS_SHOWN = 5, LOSSES_SHOWN = 10 }; /* without -v */

static bool is_empty(const struct check_file *file)
{
    return file->res.damaged && file->size == 0 && file->torn == RD_NO_OFFSET;
}

/* ---- the verdict ---- */

/* "2 errors and 1 warning" */
static struct rd_shown tally(uint64_t errors, uint64_t warnings)
{
    struct rd_shown text = {""};
    int len = 0;
    if (errors > 0)
        len =
            snprintf(text.s, sizeof text.s, "%" PRIu64 " error%s", errors, rd_show_plural(errors));
    if (warnings > 0)
        snprintf(text.s + len, sizeof text.s - (size_t)len, "%s%" PRIu64 " warning%s",
                 errors > 0 ? " and " : "", warnings, rd_show_plural(warnings));
    return text;
}

/* " at byte 557 (0x22d)"; if earlier records may be damaged, also where the structure breaks. */
static void print_damage(FILE *out, const struct check_file *file)
{
    const struct rdb_check_result *res = &file->res;
    bool earlier = check_is_earlier(file);
    fprintf(out, " at %sbyte %s", earlier ? "or after " : "", rd_show_place(file->damage).s);
    if (file->verdict == CHECK_TRUNCATED && res->record < res->err.offset) {
        fputs(": the record ", out);
        if (earlier)
            fprintf(out, "at byte %s", rd_show_place(res->record).s);
        else
            fputs("there", out);
        fprintf(out, " is cut off at byte %" PRIu64, res->err.offset);
    } else if (earlier) {
        fprintf(out, ": the structure breaks at byte %s", rd_show_place(res->err.offset).s);
    }
}

static void print_verdict(struct cli *cli, FILE *out, const struct check_file *file)
{
    const struct rdb_check_result *res = &file->res;
    enum cli_color color = file->verdict == CHECK_OK         ? CLI_GREEN
                           : file->verdict == CHECK_WARNINGS ? CLI_YELLOW
                                                             : CLI_RED;
    fprintf(out, "%s: %s", file->name, cli_color(cli, out, color));
    switch (file->verdict) {
    case CHECK_OK:
        fputs("sound", out);
        break;
    case CHECK_WARNINGS:
        fprintf(out, "sound, but %s", tally(0, res->warnings).s);
        break;
    case CHECK_CHECKSUM:
        fputs("checksum mismatch, structure is sound; names and values are not verified", out);
        if (file->damage > 0)
            fprintf(out, "; the damage begins at or after byte %s", rd_show_place(file->damage).s);
        break;
    case CHECK_TRUNCATED:
        fputs(is_empty(file) ? "empty" : "truncated", out);
        if (!is_empty(file))
            print_damage(out, file);
        break;
    case CHECK_UNSUPPORTED:
        fputs("not supported", out);
        print_damage(out, file);
        break;
    case CHECK_OTHER:
        fprintf(out, "another kind of file: %s", file->kind->name);
        break;
    case CHECK_DAMAGED:
    case CHECK_UNREADABLE:
        fputs("damaged", out);
        print_damage(out, file);
        break;
    }
    fprintf(out, "%s\n", cli_color(cli, out, CLI_PLAIN));
}

/* ---- format and content ---- */

static void label(FILE *out, const char *word)
{
    fprintf(out, "  %-10s ", word);
}

static void print_writer(FILE *out, const struct check_file *file)
{
    struct rd_slice valkey = check_aux_find(file, "valkey-ver");
    struct rd_slice version = valkey.len > 0 ? valkey : check_aux_find(file, "redis-ver");
    struct rd_slice ctime = check_aux_find(file, "ctime");
    int64_t s;
    bool dated = rd_num_get_i64(ctime, &s) && s > 0 && s < INT64_C(100000000000);
    if (version.len == 0 && !dated)
        return;
    label(out, "written");
    if (version.len > 0)
        fprintf(out, "by %s %s%s", valkey.len > 0 ? "Valkey" : "Redis", rd_show_plain(version).s,
                dated ? " " : "");
    if (dated)
        fprintf(out, "at %s", rd_show_time(s * 1000).s);
    fputc('\n', out);
}

static void print_format(FILE *out, const struct check_file *file)
{
    const struct rdb_check_result *res = &file->res;
    label(out, "format");
    if (res->has_header && res->newer) {
        fprintf(out, "%s, which is not supported", rdb_version_text(res->dialect, res->version).s);
    } else if (res->has_header) {
        fputs(rdb_version_text(res->dialect, res->version).s, out);
    } else if (res->err.code == RD_ERR_UNSUPPORTED && res->err.reason.id == RDB_REASON_VERSION) {
        fprintf(out, "RDB version %" PRIu64 ", which is not supported", res->err.reason.args[0]);
    } else {
        fputs("unknown header", out);
    }
    fputc('\n', out);
    if (res->has_header)
        print_writer(out, file);
    if (file->size == RD_NO_OFFSET)
        return;
    label(out, "size");
    fprintf(out, "%s byte%s", rd_show_count(file->size).s, rd_show_plural(file->size));
    if (file->size >= 1024)
        fprintf(out, ", %s", rd_show_bytes(file->size).s);
    fputc('\n', out);
}

static void print_kinds(FILE *out, const struct rdb_check_result *res)
{
    const char *link = ":";
    if (res->dbs > 1)
        fprintf(out, " in %" PRIu64 " databases", res->dbs);
    for (int kind = 0; kind < RDB_KIND_COUNT; kind++) {
        if (res->keys_by_kind[kind] == 0)
            continue;
        fprintf(out, "%s %s %s", link, rd_show_count(res->keys_by_kind[kind]).s,
                rdb_kind_name((enum rdb_kind)kind));
        link = ",";
    }
}

static void print_keys(FILE *out, const struct check_file *file)
{
    uint64_t keys = file->res.keys;
    if (file->res.damaged && !check_keys_before(file, &keys))
        return;
    label(out, file->res.damaged ? "up to here" : "content");
    fprintf(out, "%s key%s", rd_show_count(keys).s, rd_show_plural(keys));
    if (!file->res.damaged)
        print_kinds(out, &file->res);
    fputc('\n', out);
}

static void print_content(FILE *out, const struct check_file *file)
{
    const struct rdb_check_result *res = &file->res;
    print_keys(out, file);
    if (res->expires > 0 && !res->damaged) {
        label(out, "expiry");
        fprintf(out, "%s key%s expire%s, %s of them ha%s expired\n", rd_show_count(res->expires).s,
                rd_show_plural(res->expires), res->expires == 1 ? "s" : "",
                rd_show_count(res->expired).s, res->expired == 1 ? "s" : "ve");
    }
    if (res->functions > 0) {
        label(out, "functions");
        fprintf(out, "%s librar%s\n", rd_show_count(res->functions).s,
                res->functions == 1 ? "y" : "ies");
    }
    if (res->module_aux > 0) {
        label(out, "modules");
        fprintf(out, "%s record%s of module data\n", rd_show_count(res->module_aux).s,
                rd_show_plural(res->module_aux));
    }
    if (res->templates > 0) {
        label(out, "templates");
        fprintf(out, "%s list%s of field names that hashes share\n",
                rd_show_count(res->templates).s, rd_show_plural(res->templates));
    }
    if (file->slots > 0) {
        label(out, "slots");
        fprintf(out, "%s announced\n", rd_show_count(file->slots).s);
    }
}

static void print_sum(FILE *out, const struct check_file *file)
{
    const struct rdb_check_result *res = &file->res;
    label(out, "checksum");
    switch (res->sum) {
    case RDB_SUM_UNKNOWN:
        fputs("not reached\n", out);
        break;
    case RDB_SUM_NONE:
        fputs("none in this version\n", out);
        break;
    case RDB_SUM_OFF:
        fputs(file->scanned ? "none, the keys were read one by one\n"
                            : "disabled when it was saved\n",
              out);
        break;
    case RDB_SUM_OK:
        fprintf(out, "matches (%016" PRIx64 ")\n", res->stored);
        break;
    case RDB_SUM_BAD:
        fprintf(out, "mismatch: stored %016" PRIx64 ", computed %016" PRIx64 "\n", res->stored,
                res->computed);
        break;
    }
}

/* ---- after the damage ---- */

static void print_more(FILE *out, const struct check_file *file, uint64_t n)
{
    if (n == 0)
        return;
    label(out, "");
    fprintf(out, "and %s more (%s--json)\n", rd_show_count(n).s, file->verbose ? "" : "-v, ");
}

static void print_loss(FILE *out, const struct check_file *file, const struct check_loss *loss)
{
    label(out, loss->kind == RDB_LOSS_KEY ? "dropped" : "lost");
    fprintf(out, "[%" PRIu64 ", %" PRIu64 ") %s", loss->from, loss->to,
            rd_show_bytes(loss->to - loss->from).s);
    if (loss->has_key) {
        fputs(", ", out);
        findings_print_key(out, check_slice(file, loss->key), loss->type, loss->db);
    }
    if (loss->kind == RDB_LOSS_PARTIAL)
        fprintf(out, " (its first %s element%s kept)", rd_show_count(loss->kept).s,
                loss->kept == 1 ? " is" : "s are");
    /* Where the structure breaks, the reason has a line of its own. */
    bool reported = file->res.damaged && loss->at == file->res.err.offset && !file->verbose;
    if (loss->why.len > 0 && !reported)
        fprintf(out, ": %s", rd_show_plain(check_slice(file, loss->why)).s);
    if (loss->at != RD_NO_OFFSET && !reported)
        fprintf(out, " at byte %s", rd_show_place(loss->at).s);
    if (loss->resync.len > 0 && file->verbose)
        fprintf(out, "; then: %s", rd_show_plain(check_slice(file, loss->resync)).s);
    fputc('\n', out);
}

/* Prints the doubts about a key. */
static void print_doubts(FILE *out, unsigned doubts)
{
    static const char *const words[RDB_DOUBTS] = {
        "it may be part of another value",
        "it may be a field of a damaged hash",
        "its expiry may be lost",
        "its database is uncertain",
        "it is next to damage, its name or value may be damaged",
        "its type of module is not known and nothing else has it"};
    const char *link = "";
    for (unsigned i = 0; i < RDB_DOUBTS; i++) {
        if ((doubts >> i & 1) == 0)
            continue;
        fprintf(out, "%s%s", link, words[i]);
        link = "; ";
    }
}

static void print_run(FILE *out, const struct rdb_salvage_run *run)
{
    static const char *const sides[] = {"no anchor", "anchored on one side",
                                        "anchored on both sides"};
    label(out, "run");
    fprintf(out, "[%" PRIu64 ", %" PRIu64 ") %s key%s in db %" PRIu64 ", %s", run->from, run->to,
            rd_show_count(run->keys).s, rd_show_plural(run->keys), run->db, sides[run->grade]);
    if (run->doubts != 0) {
        fputs(run->left_out ? "; omitted: " : "; doubtful: ", out);
        print_doubts(out, run->doubts);
    }
    fputc('\n', out);
}

static void print_runs(FILE *out, const struct check_file *file)
{
    size_t shown = 0;
    for (; shown < file->n_runs && shown < FINDINGS_KEPT; shown++)
        print_run(out, &file->runs[shown]);
    print_more(out, file, file->all_runs - shown);
}

/* The first keys that may be wrong. */
static void print_doubtful(FILE *out, const struct check_file *file)
{
    size_t shown, most = file->verbose ? FINDINGS_KEPT : DOUBTS_SHOWN;
    for (shown = 0; shown < file->n_doubts && shown < most; shown++) {
        const struct check_doubt *doubt = &file->doubts[shown];
        label(out, doubt->left_out ? "omitted" : "doubtful");
        findings_print_key(out, check_slice(file, doubt->key), doubt->type, doubt->db);
        fputs(": ", out);
        print_doubts(out, doubt->doubts);
        fputc('\n', out);
    }
    print_more(out, file, file->all_doubts - shown);
}

/* What makes saved keys uncertain. The evidence for each range of keys is for -v. */
static void print_uncertain(FILE *out, const struct check_file *file)
{
    const struct rdb_salvage_result *sv = &file->salvage;
    if (sv->ranges == 0 && sv->keys_doubted == 0 && sv->keys_left_out == 0)
        return;
    if (file->verbose)
        print_runs(out, file);
    print_doubtful(out, file);
}

/* Whether no checksum proves the bytes of the input although it should have one. */
static bool is_unproved(const struct check_file *file)
{
    return file->searched && !file->salvage.proved &&
           (file->res.damaged || file->res.sum == RDB_SUM_BAD);
}

/* The file ends before the record that ends a snapshot. */
static bool is_cut(const struct check_file *file)
{
    return file->res.damaged && file->res.err.code == RD_ERR_TRUNCATED &&
           file->torn == RD_NO_OFFSET && !file->salvage.found_end && !file->salvage.corrected;
}

static void print_losses(FILE *out, const struct check_file *file)
{
    uint64_t n = 0;
    size_t shown, most = file->verbose ? file->n_losses : LOSSES_SHOWN;
    for (shown = 0; shown < file->n_losses && shown < most; shown++)
        print_loss(out, file, &file->losses[shown]);
    for (size_t i = 0; i <= RDB_LOSS_PARTIAL; i++)
        n += file->n_loss[i];
    print_more(out, file, n - shown);
}

static void print_saved(FILE *out, const struct check_file *file)
{
    const struct rdb_salvage_result *sv = &file->salvage;
    uint64_t before;
    fprintf(out, "%s key%s", rd_show_count(sv->keys).s, rd_show_plural(sv->keys));
    if (file->res.damaged && check_keys_before(file, &before) && sv->keys > before)
        fprintf(out, ", %s of them after the damage", rd_show_count(sv->keys - before).s);
    if (sv->keys_doubted > 0)
        fprintf(out, ", %s of them doubtful", rd_show_count(sv->keys_doubted).s);
    if (sv->ranges > 0 && (sv->bytes_lost > 0 || !is_cut(file)))
        fprintf(out, "; lost: %s range%s of %s", rd_show_count(sv->ranges).s,
                rd_show_plural(sv->ranges), rd_show_bytes(sv->bytes_lost).s);
    else if (sv->before == RDB_BEFORE_SNAPSHOT)
        fputs("; an unfinished snapshot before it is left out", out);
    else if (file->res.trailing_data)
        fprintf(out, "; %s byte%s after the snapshot %s left out",
                rd_show_count(file->res.trailing).s, rd_show_plural(file->res.trailing),
                file->res.trailing == 1 ? "is" : "are");
    else if (file->torn == RD_NO_OFFSET && !is_cut(file))
        fputs(is_unproved(file) ? "; no record is lost" : "; no bytes are lost", out);
    if (is_cut(file))
        fputs("; what came after the end of the file is not known", out);
    if (file->torn != RD_NO_OFFSET)
        fprintf(out, "; the bytes after byte %s cannot be decompressed",
                rd_show_place(file->torn).s);
    if (sv->keys_dropped > 0)
        fprintf(out, ", %s key%s rejected by servers", rd_show_count(sv->keys_dropped).s,
                rd_show_plural(sv->keys_dropped));
    if (sv->keys_left_out > 0)
        fprintf(out, "; %s omitted as doubtful", rd_show_count(sv->keys_left_out).s);
    if (sv->keys_unwanted > 0)
        fprintf(out, "; %s key%s excluded by filters", rd_show_count(sv->keys_unwanted).s,
                rd_show_plural(sv->keys_unwanted));
    if (sv->modules_left_out > 0)
        fprintf(out, "; %s record%s of module data excluded with the values of modules",
                rd_show_count(sv->modules_left_out).s, rd_show_plural(sv->modules_left_out));
    fputc('\n', out);
}

static void print_correction(FILE *out, const struct check_file *file)
{
    const struct rdb_salvage_result *sv = &file->salvage;
    switch (sv->correction) {
    case RDB_CORRECTION_NONE:
    case RDB_CORRECTION_TRANSFER:
        return;
    case RDB_CORRECTION_BYTE:
        label(out, file->salvaged ? "corrected" : "wrong byte");
        fprintf(out, "%s%s is 0x%02x and must be 0x%02x", file->salvaged ? "byte " : "",
                rd_show_place(sv->corrected_at).s, sv->corrected_from, sv->corrected_to);
        break;
    case RDB_CORRECTION_INSERTED:
        label(out, file->salvaged ? "corrected" : "inserted");
        fprintf(out, "the %s byte%s at byte %s %s not part of the snapshot",
                rd_show_count(sv->corrected_len).s, rd_show_plural(sv->corrected_len),
                rd_show_place(sv->corrected_at).s, sv->corrected_len == 1 ? "is" : "are");
        break;
    case RDB_CORRECTION_EXCHANGED:
        label(out, file->salvaged ? "corrected" : "exchanged");
        fprintf(out, "the %s bytes at byte %s and at byte %s are in each other's place",
                rd_show_count(sv->corrected_len).s, rd_show_place(sv->corrected_at).s,
                rd_show_place(sv->corrected_other).s);
        break;
    case RDB_CORRECTION_MISSING:
        label(out, file->salvaged ? "corrected" : "missing");
        fprintf(out, "the %s byte%s", rd_show_count(sv->corrected_len).s,
                rd_show_plural(sv->corrected_len));
        for (uint64_t i = 0; i < sv->corrected_len; i++)
            fprintf(out, " 0x%02x", sv->restored[i]);
        fprintf(out, " belong%s before byte %s%s", sv->corrected_len == 1 ? "s" : "",
                rd_show_place(sv->corrected_at).s,
                sv->restored[0] == '\r' ? ", as if a program had removed a carriage return" : "");
        break;
    case RDB_CORRECTION_HEADER:
        label(out, file->salvaged ? "corrected" : "header");
        fprintf(out, "the header must be %.9s", (const char *)sv->restored);
        break;
    }
    fputs(", as the checksum proves\n", out);
}

/* What a transfer did to the file. */
static void print_transfer(FILE *out, const struct check_file *file)
{
    static const char *const before[] = {[RDB_BEFORE_NONE] = "",
                                         [RDB_BEFORE_REPLICATION] = ", the replies of a master,",
                                         [RDB_BEFORE_TEXT] = ", text,",
                                         [RDB_BEFORE_BYTES] = "",
                                         [RDB_BEFORE_SNAPSHOT] = ", the beginning of another one,"};
    const struct rdb_salvage_result *sv = &file->salvage;
    const char *proof = sv->proved ? ", as the checksum proves" : "";
    if (sv->before_len > 0) {
        label(out, file->salvaged ? "corrected" : "before");
        fprintf(out, "%s byte%s%s precede%s the snapshot%s\n", rd_show_count(sv->before_len).s,
                rd_show_plural(sv->before_len), before[sv->before], sv->before_len == 1 ? "s" : "",
                proof);
    }
    if (sv->after_len > 0) {
        label(out, file->salvaged ? "corrected" : "after");
        fprintf(out, "%s byte%s follow%s the snapshot%s\n", rd_show_count(sv->after_len).s,
                rd_show_plural(sv->after_len), sv->after_len == 1 ? "s" : "", proof);
    }
    if ((sv->text & RDB_TEXT_CRLF) != 0) {
        label(out, file->salvaged ? "corrected" : "text mode");
        fprintf(out, "each line feed became a carriage return and a line feed%s\n", proof);
    }
    if ((sv->text & RDB_TEXT_UTF8) != 0) {
        label(out, file->salvaged ? "corrected" : "text mode");
        fprintf(out, "the bytes were converted from Latin-1 or Windows-1252 to UTF-8%s\n", proof);
    }
}

/* The version that is read, if it is not that of the header. */
static void print_version(FILE *out, const struct check_file *file)
{
    const struct rdb_salvage_result *sv = &file->salvage;
    struct rdb_version_text records = rdb_version_text(sv->dialect, sv->version);
    if (!sv->guessed_version || sv->keys == 0)
        return;
    label(out, "version");
    if (file->res.newer)
        fprintf(out, "the saved records are those of %s\n", records.s);
    else if (sv->header_version != 0)
        fprintf(out, "the header says RDB version %d; the records look like %s\n",
                sv->header_version, records.s);
    else
        fprintf(out, "the header is damaged; the records look like %s\n", records.s);
}

static void print_salvage(FILE *out, const struct check_file *file)
{
    const struct rdb_salvage_result *sv = &file->salvage;
    print_transfer(out, file);
    print_correction(out, file);
    print_version(out, file);
    print_losses(out, file);
    print_uncertain(out, file);
    label(out, file->out != NULL ? "saved" : "can save");
    if (is_empty(file)) {
        fputs("nothing: the file has 0 bytes, and what it held is not known\n", out);
    } else if (sv->guessed_version && sv->header_version == 0 && sv->keys == 0) {
        fputs("nothing: no intact header or record found\n", out);
    } else {
        print_saved(out, file);
        if (is_unproved(file)) {
            label(out, "unverified");
            fputs("no checksum covers the saved names, values, expiries and databases\n", out);
        }
    }
}

/* Prints the state of OUT. */
static void print_out(struct cli *cli, FILE *out, const struct check_file *file)
{
    const struct rdb_salvage_result *sv = &file->salvage;
    if (file->doubtful != NULL)
        fprintf(out, "%s: %s doubtful key%s\n", rd_show_plain(rd_slice_str(file->doubtful)).s,
                rd_show_count(sv->keys_left_out).s, rd_show_plural(sv->keys_left_out));
    if (file->out == NULL) {
        fprintf(out, "%s%s: %s%s\n", cli_color(cli, out, CLI_RED), file->name,
                file->nothing_matched ? "no key matches the filter: nothing was saved"
                                      : "nothing could be saved",
                cli_color(cli, out, CLI_PLAIN));
        return;
    }
    bool is_stdout = strcmp(file->out, "-") == 0;
    fprintf(out, "%s: %s key%s",
            is_stdout ? "standard output" : rd_show_plain(rd_slice_str(file->out)).s,
            rd_show_count(file->out_keys).s, rd_show_plural(file->out_keys));
    if (sv->keys_doubted > 0)
        fprintf(out, " (%s doubtful)", rd_show_count(sv->keys_doubted).s);
    if (is_stdout)
        fputs(", not verified", out);
    else if (!file->well_formed)
        fputs(", NOT WELL FORMED", out);
    else
        fputs(check_is_verified(file) ? ", verified" : ", well formed", out);
    if (is_unproved(file) && !is_stdout)
        fputs("; contents not verified", out);
    else if (!is_unproved(file) && !sv->proved)
        fputs("; the input has no checksum", out);
    fputc('\n', out);
}

static const char *with_correction(const struct rdb_salvage_result *sv)
{
    switch (sv->correction) {
    case RDB_CORRECTION_INSERTED:
        return "without the inserted bytes";
    case RDB_CORRECTION_EXCHANGED:
        return "with both blocks in their places";
    case RDB_CORRECTION_MISSING:
        return "with the missing bytes";
    case RDB_CORRECTION_HEADER:
        return "with the right header";
    case RDB_CORRECTION_TRANSFER:
        return "as it was before the transfer";
    default:
        return "with the wrong byte corrected";
    }
}

/* The last line of a file with damage: what can be done. */
static void print_way_out(struct cli *cli, FILE *out, const struct check_file *file)
{
    static const char *const words[] = {[CHECK_CHECKSUM] = "checksum mismatch",
                                        [CHECK_DAMAGED] = "damaged",
                                        [CHECK_TRUNCATED] = "truncated",
                                        [CHECK_UNSUPPORTED] = "not supported"};
    const struct rdb_salvage_result *sv = &file->salvage;
    if (file->verdict == CHECK_OK || file->verdict == CHECK_WARNINGS || file->kind != NULL)
        return;
    fprintf(out, "%s: %s%s%s", file->name, cli_color(cli, out, CLI_RED),
            is_empty(file) ? "empty" : words[file->verdict], cli_color(cli, out, CLI_PLAIN));
    if (!file->searched && file->once)
        fputs("; the rest of the input was not searched: use a file, or --salvage OUT", out);
    else if (file->searched && sv->corrected)
        fprintf(out, "; --salvage OUT writes it %s", with_correction(sv));
    else if (file->searched && sv->keys > 0)
        fprintf(out, "; --salvage OUT saves %s key%s", rd_show_count(sv->keys).s,
                rd_show_plural(sv->keys));
    else if (file->searched)
        fputs("; nothing can be saved", out);
    if (file->searched && !sv->corrected && sv->keys_doubted > 0)
        fprintf(out, ", %s of them doubtful", rd_show_count(sv->keys_doubted).s);
    fputc('\n', out);
}

static void print_report(struct cli *cli, FILE *to, const struct check_file *file)
{
    FILE *out = cli_wrap_begin(cli, to);
    print_verdict(cli, out, file);
    if (is_empty(file)) {
        label(out, "size");
        fputs("0 bytes\n", out);
    } else if (file->kind == NULL) {
        print_format(out, file);
        print_content(out, file);
        print_sum(out, file);
    }
    if (!is_empty(file))
        findings_print(cli, out, &file->findings);
    if (file->searched)
        print_salvage(out, file);
    if (file->salvaged)
        print_out(cli, out, file);
    else
        print_way_out(cli, out, file);
    cli_wrap_end(cli);
}

/* ---- stderr ---- */

/* If the damage may begin before the break, the error has the earliest position. */
static struct rd_err leading(const struct check_file *file)
{
    struct rd_err err = file->res.err;
    const struct rd_err *shown = &file->res.err;
    bool proved =
        file->searched && (file->salvage.first_loss < file->res.record || file->salvage.corrected);
    if (!check_is_earlier(file) || (shown->code == RD_ERR_UNSUPPORTED && !proved))
        return err;
    rd_err_reset(&err);
    rd_err_set(&err, proved ? RD_ERR_CORRUPT : shown->code, file->damage,
               "damage at or after this byte, first detected at byte %" PRIu64 " (0x%" PRIx64
               "): %s",
               shown->offset, shown->offset, shown->text);
    return err;
}

static void hint(struct cli *cli, const struct check_file *file)
{
    if (file->salvaged)
        return;
    if (!file->searched && file->once)
        cli_hint(cli, "the rest of the input was not searched: use a file, or --salvage OUT");
    else if (file->searched && file->salvage.corrected)
        cli_hint(cli, "--salvage OUT writes the file %s", with_correction(&file->salvage));
    else if (file->searched && file->salvage.keys > 0)
        cli_hint(cli, "--salvage OUT can save %s key%s", rd_show_count(file->salvage.keys).s,
                 rd_show_plural(file->salvage.keys));
}

struct rd_err check_other_kind(const struct check_file *file)
{
    struct rd_err err = {0};
    rd_err_set(&err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
               "it is another kind of file: %s, not a snapshot", file->kind->name);
    rd_err_origin(&err, file->name);
    return err;
}

static enum rd_err_code code_of(const struct finding *f)
{
    return f->id == RDB_FINDING_CHECKSUM ? RD_ERR_CHECKSUM : RD_ERR_CORRUPT;
}

static void report_finding(struct cli *cli, const struct check_file *file, const struct finding *f)
{
    struct rd_err err = {0};
    struct rd_shown_name text = rd_show_plain(check_slice(file, f->text));
    if (f->inner != RD_NO_OFFSET)
        rd_err_set_inner(&err, code_of(f), f->offset, f->inner, "%s", text.s);
    else
        rd_err_set(&err, code_of(f), f->offset, "%s", text.s);
    if (f->has_key)
        rd_err_doing(&err, "%s %.120s in db %" PRIu64,
                     f->type != NULL ? rdb_kind_name(f->type->kind) : "key",
                     rd_show_quote(check_slice(file, f->key)).s, f->db);
    rd_err_origin(&err, file->name);
    cli_report(cli, &err);
}

static void report_errors(struct cli *cli, const struct check_file *file)
{
    if (file->checked && file->kind != NULL) {
        struct rd_err err = check_other_kind(file);
        if (file->kind->hint != NULL)
            cli_hint(cli, "%s", file->kind->hint);
        cli_report(cli, &err);
    } else if (file->checked && file->res.damaged) {
        struct rd_err err = leading(file);
        rd_err_origin(&err, file->name);
        hint(cli, file);
        cli_report(cli, &err);
    }
    for (size_t i = 0; file->checked && i < file->findings.n; i++) {
        const struct finding *f = &file->findings.all[i];
        bool reported = f->severity != RDB_SEVERITY_ERROR || check_is_structural(f);
        if (reported || (!cli->quiet && file->res.sum != RDB_SUM_BAD))
            continue;
        if (f->id == RDB_FINDING_CHECKSUM && !file->res.damaged)
            hint(cli, file);
        report_finding(cli, file, f);
    }
    if (file->err.code != RD_ERR_OK)
        cli_report(cli, &file->err);
}

/* Where both the report and the errors are read, damage is reported once. */
void check_report(struct cli *cli, FILE *out, const struct check_file *file)
{
    bool report = !cli->json && !cli->quiet && file->verdict != CHECK_UNREADABLE;
    bool once = report && file->checked && file->kind == NULL && file->err.code == RD_ERR_OK &&
                cli_report_is_enough(cli, out);
    if (!once)
        report_errors(cli, file);
    if (cli->json)
        check_json_put(&cli->out, file);
    else if (report)
        print_report(cli, out, file);
}

/* ---- events ---- */

static void begin_event(FILE *out, const struct rdb_event *ev, const char *word)
{
    fprintf(out, "  %-22s %-9s ", rd_show_place(ev->offset).s, word);
}

static void print_key_event(FILE *out, const struct rdb_event *ev)
{
    begin_event(out, ev, "key");
    fprintf(out, "db %" PRIu64 " %s/%s %s", ev->key.db, rdb_kind_name(ev->key.type->kind),
            ev->key.type->encoding, rd_show_quote(ev->key.name).s);
    if (ev->key.expire_ms != RDB_NO_EXPIRE)
        fprintf(out, " expires %s", rd_show_time(ev->key.expire_ms).s);
    if (ev->key.idle_s != RDB_UNKNOWN)
        fprintf(out, " idle %" PRIu64 " s", ev->key.idle_s);
    if (ev->key.freq != RDB_UNKNOWN)
        fprintf(out, " freq %" PRIu64, ev->key.freq);
    fputc('\n', out);
}

static void print_aux_event(FILE *out, const struct rdb_event *ev)
{
    char tmp[RD_NUM_I64_MAX];
    if (!ev->aux.value.is_int && !ev->aux.value.first)
        return;
    begin_event(out, ev, "aux");
    fprintf(out, "%s = %s\n", rd_show_quote(ev->aux.name).s,
            rd_show_quote(rdb_string_bytes(&ev->aux.value, tmp)).s);
}

void check_report_event(FILE *out, const struct rdb_event *ev)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    switch (ev->kind) {
    case RDB_KEY:
        print_key_event(out, ev);
        break;
    case RDB_AUX:
        print_aux_event(out, ev);
        break;
    case RDB_DB:
        begin_event(out, ev, "db");
        fprintf(out, "%" PRIu64 "\n", ev->db);
        break;
    case RDB_DB_SIZE:
        begin_event(out, ev, "db-size");
        fprintf(out, "%" PRIu64 " key%s, %" PRIu64 " with an expiry\n", ev->db_size.keys,
                rd_show_plural(ev->db_size.keys), ev->db_size.expires);
        break;
    case RDB_SLOT:
        begin_event(out, ev, "slot");
        fprintf(out, "%" PRIu64 ": %" PRIu64 " key%s, %" PRIu64 " with an expiry\n", ev->slot.slot,
                ev->slot.keys, rd_show_plural(ev->slot.keys), ev->slot.expires);
        break;
    case RDB_FUNCTION:
        if (!ev->function.code.is_int && !ev->function.code.first)
            break;
        begin_event(out, ev, "function");
        fprintf(out, "library of %" PRIu64 " byte%s\n", ev->function.code.total,
                rd_show_plural(ev->function.code.total));
        break;
    case RDB_MODULE_AUX:
        rdb_module_name(ev->module.id, name);
        begin_event(out, ev, "module");
        fprintf(out, "%s\n", name);
        break;
    case RDB_TRAILER:
        fprintf(out, "  %-22s end\n", rd_show_place(ev->offset).s);
        break;
    default:
        break;
    }
}
