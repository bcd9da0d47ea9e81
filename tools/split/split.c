/* split - splits a snapshot by database, slots, prefix, size or shard. */
#include "jobs/split.h"
#include "tools/cli/filter.h"
#include "tools/cli/watch.h"
#include "tools/input/snapshot_in.h"
#include "tools/tools.h"

static bool report(struct cli *cli, const struct split_opts *opts,
                   const struct split_result *result, struct rd_err *err)
{
    if (result->crowded)
        cli_warn(cli, "more than %s prefixes: the keys of the others are in other.rdb",
                 rd_show_count(opts->rule.max_parts).s);
    for (size_t i = 0; i < result->n_files; i++) {
        const struct split_file *file = &result->files[i];
        cli_note(cli, "%s: %s key%s, %s", file->name, rd_show_count(file->keys).s,
                 rd_show_plural(file->keys), rd_show_bytes(file->bytes).s);
    }
    if (cli->json)
        split_result_put(result, &cli->out);
    return omitted_report(opts->omitted, cli->json ? &cli->out : NULL, err);
}

static int run(struct cli *cli, const struct snapshot_in_opts *log, struct split_opts *opts)
{
    const struct rd_watch watch = cli_job_watch(cli);
    const struct snapshot_in_job in = {.cli = cli, .opts = log};
    struct split_result result = {.files = NULL};
    struct omitted omitted;
    struct rd_err err = {0};
    omitted_init(&omitted, &watch, cli->json);
    opts->input = snapshot_in_job(&in, cli->args[0]);
    opts->omitted = &omitted;
    bool ok = split_run(opts, &watch, &result, &err) &&
              (result.is_void || report(cli, opts, &result, &err));
    bool is_void = result.is_void;
    omitted_done(&omitted);
    split_result_done(&result);
    if (!ok)
        return cli_fail(cli, &err);
    return is_void ? cli_filter_nothing(cli, "written") : CLI_OK;
}

static void choose_access(void *ctx, const char *path, struct rd_sink_opts *opts)
{
    cli_choose_access(ctx, path, opts);
}

/* The value of --by: a word, or a word and what it needs. */
static bool choose_by(void *ctx, const char *text, struct rd_err *err)
{
    struct split_rule *rule = ctx;
    uint64_t n;
    for (int by = SPLIT_DB; by < SPLIT_CRC32; by++)
        if (strcmp(text, split_by_word((enum split_by)by)) == 0) {
            rule->by = by;
            return true;
        }
    if (strncmp(text, "ring:", 5) == 0) {
        rule->by = SPLIT_RING;
        rule->names = text + 5;
        return true;
    }
    if (strncmp(text, "crc32:", 6) != 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "\"%s\" is not one of db, slot-range, prefix, size, crc32:N, ring:NAMES",
                          rd_show_plain(rd_slice_str(text)).s);
    if (!rd_num_get_u64(rd_slice_str(text + 6), &n) || n < 1 || n > SPLIT_PARTS_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "crc32:N requires a number from 1 to %d",
                          SPLIT_PARTS_MAX);
    rule->by = SPLIT_CRC32;
    rule->n_shards = n;
    return true;
}

/* Options for another way of splitting would have no effect. */
static int check_options(struct cli *cli, struct split_opts *opts, const char *slots,
                         const char *separator)
{
    struct split_rule *rule = &opts->rule;
    struct rd_err err = {0};
    if (rule->by == SPLIT_NOTHING)
        return cli_usage_error(cli, "missing option: --by db, slot-range, prefix, size, crc32:N or "
                                    "ring:NAMES");
    if (opts->folder == NULL || opts->folder[0] == '\0')
        return cli_usage_error(cli, "missing output: use -o DIR");
    if ((slots != NULL) != (rule->by == SPLIT_SLOTS))
        return cli_usage_error(cli, "--by slot-range and --slots must be used together");
    if ((rule->size != 0) != (rule->by == SPLIT_SIZE))
        return cli_usage_error(cli, "--by size and --size must be used together");
    bool prefix = separator != NULL || rule->depth != 0 || rule->max_parts != 0;
    if (prefix && rule->by != SPLIT_PREFIX)
        return cli_usage_error(cli, "--separator, --depth and --max-open require --by prefix");
    if (separator != NULL && separator[0] == '\0')
        return cli_usage_error(cli, "--separator must not be empty");
    rule->separator = rd_slice_str(separator != NULL ? separator : ":");
    rule->depth = rule->depth != 0 ? rule->depth : 1;
    rule->max_parts = rule->max_parts != 0 ? rule->max_parts : SPLIT_PARTS_DEFAULT;
    if (rule->max_parts >= SPLIT_PARTS_MAX)
        return cli_usage_error(cli, "--max-open must be at most %d", SPLIT_PARTS_MAX - 1);
    if (rule->by == SPLIT_RING && !split_ring(rule, &err))
        return cli_fail(cli, &err);
    if ((slots != NULL && !split_ranges(rule, slots, &err)) || !filter_check(opts->filter, &err))
        return cli_fail(cli, &err);
    return CLI_OK;
}

int tool_split(struct cli *cli, int argc, char **argv)
{
    struct snapshot_in_opts log = SNAPSHOT_IN_ALL;
    struct filter filter;
    struct split_opts split = {
        .rule.by = SPLIT_NOTHING, .filter = &filter, .access = choose_access, .ctx = cli};
    const char *slots = NULL, *separator = NULL;
    const struct cli_opt opts[] = {
        {.name = "by",
         .kind = CLI_EACH,
         .arg = "WHAT",
         .words = "db|slot-range|prefix|size|crc32:|ring:",
         .each = choose_by,
         .ctx = &split.rule,
         .help = "db, slot-range, prefix, size, crc32:N or ring:NAMES"},
        {.name = "output",
         .letter = 'o',
         .kind = CLI_STRING,
         .arg = "DIR",
         .string = &split.folder,
         .help = "folder for the parts and index.json"},
        {.name = "slots",
         .kind = CLI_STRING,
         .arg = "RANGES",
         .string = &slots,
         .help = "slot-range: 3 (equal ranges), or 0-5460,5461-9999"},
        {.name = "separator",
         .kind = CLI_STRING,
         .arg = "S",
         .string = &separator,
         .help = "prefix: separator; default \":\""},
        {.name = "prefix-separator", .kind = CLI_STRING, .arg = "S", .string = &separator},
        {.name = "depth",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &split.rule.depth,
         .help = "prefix: number of parts; default 1"},
        {.name = "max-open",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &split.rule.max_parts,
         .help = "prefix: maximum of files; default 200"},
        {.name = "size",
         .kind = CLI_SIZE,
         .arg = "SIZE",
         .number = &split.rule.size,
         .help = "size: end a part at the key that reaches SIZE"},
        {.name = "force",
         .kind = CLI_FLAG,
         .flag = &split.replace,
         .help = "replace files that exist"},
        FILTER_OPTIONS(&filter),
        SNAPSHOT_IN_FROM_OPTION(&log),
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "--by WHAT [OPTION…] IN -o DIR",
        .about = "Splits a snapshot or a log into snapshots that can be loaded separately.",
        .opts = opts,
        .min_args = 1,
        .max_args = 1,
        .example = "redoubt split --by slot-range --slots 3 dump.rdb -o masters",
    };
    int status;
    cli_filter_init(&filter, cli, cli_now_ms());
    if (cli_parse(cli, &usage, argc, argv, &status)) {
        status = check_options(cli, &split, slots, separator);
        if (status == CLI_OK)
            status = run(cli, &log, &split);
    }
    split_ring_done(&split.rule);
    filter_done(&filter);
    return status;
}
