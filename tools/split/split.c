/* split - splits a snapshot by database, slots, prefix, size or shard. */
#include "tools/input/snapshot_in.h"
#include "tools/input/proof.h"
#include "tools/split/split.h"
#include "tools/tools.h"

#include "base/mem.h"

#include <errno.h>
#include <sys/stat.h>

enum { PLAIN = 64 }; /* number of plain keys read at a time */

static bool adopt(const struct split *split, struct rd_err *err)
{
    rd_err_adopt(err, rdb_reader_err(split->reader));
    return false;
}

/* ---- the pass over the snapshot ---- */

static bool take_key(struct split *split, const struct rdb_event *ev, struct rd_err *err)
{
    struct split_part *part;
    bool wanted;
    cli_tick(split->cli);
    if (!sized_wants(&split->sized, ev, &wanted, err))
        return false;
    if (!wanted) {
        rdb_beside_drop(&split->beside);
        return rdb_reader_skip_value(split->reader) == RDB_EVENT || adopt(split, err);
    }
    split->keys++;
    if (!split_route(split, ev->key.name, ev->key.db, &part, err))
        return false;
    split->last = part;
    return split_put_key(split, part, ev, err);
}

/* The fields that KeyDB writes after a key go to its part. Sizes of slots no longer apply. */
static bool take_aux(struct split *split, const struct rdb_event *ev, struct rd_err *err)
{
    if (rd_slice_is(ev->aux.name, "slot-info"))
        return true;
    enum rdb_beside_aux of = rdb_beside_aux(ev->aux.name);
    if ((of == RDB_BESIDE_MEMBER || of == RDB_BESIDE_WHEN) && split->last != NULL)
        return rdb_writer_put(split->last->writer, ev, err);
    return split_put_all(split, ev, err);
}

/* Plain keys that follow a key of this database. A filter may need more than a plain key has. */
static bool take_plain(struct split *split, uint64_t db, struct rd_err *err)
{
    struct rdb_plain keys[PLAIN];
    struct split_part *part;
    size_t n;
    if (filter_active(&split->filter))
        return true;
    while ((n = rdb_plain_take(split->reader, UINT64_MAX, keys, PLAIN)) > 0) {
        cli_tick(split->cli);
        split->keys += n;
        for (size_t i = 0; i < n; i++)
            if (!split_route(split, keys[i].name, db, &part, err) ||
                !split_put_plain(split, part, &keys[i], db, err))
                return false;
    }
    return true;
}

static bool take_header(struct split *split, const struct rdb_event *ev, struct rd_err *err)
{
    split->dialect = ev->header.dialect;
    split->version = ev->header.version;
    return split_open_all(split, err);
}

/* The announced number of keys applies to a part only if the part is the whole database. */
static bool take_db_size(struct split *split, const struct rdb_event *ev)
{
    split->has_db_size = split->rule.by == SPLIT_DB && !filter_active(&split->filter);
    split->db_size = *ev;
    split->db_size.raw = (struct rd_slice){0};
    return true;
}

static bool take_trailer(struct split *split, const struct rdb_event *ev, struct rd_err *err)
{
    split->trailer = *ev;
    split->trailer.raw = (struct rd_slice){0};
    return snapshot_in_check_end(split->cli, split->src, &split->log, ev, err) &&
           proof_check(split->cli, split->cli->args[0], &split->spool, split->src, ev, err);
}

static bool take_event(struct split *split, const struct rdb_event *ev, struct rd_err *err)
{
    if (ev->kind != RDB_KEY && !rdb_beside_wants(&split->beside, ev))
        return true;
    switch (ev->kind) {
    case RDB_KEY:
        return take_key(split, ev, err) && take_plain(split, ev->key.db, err);
    case RDB_HEADER:
        return take_header(split, ev, err);
    case RDB_TRAILER:
        return take_trailer(split, ev, err);
    case RDB_DB_SIZE:
        return take_db_size(split, ev);
    case RDB_DB:
        split->has_db_size = false;
        return true;
    case RDB_SLOT:
    case RDB_NOTE:
        return true;
    case RDB_AUX:
        return take_aux(split, ev, err);
    default:
        return split_put_all(split, ev, err);
    }
}

static bool read_all(struct split *split, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    while ((status = rdb_reader_next(split->reader, &ev)) == RDB_EVENT)
        if (!take_event(split, &ev, err))
            return false;
    return status == RDB_END || adopt(split, err);
}

/* ---- index.json ---- */

static void put_part(struct json_write *json, const struct split_part *part)
{
    json_obj(json);
    json_put_str(json, "file", part->name);
    switch (part->of) {
    case SPLIT_OF_DB:
        json_put_uint(json, "db", part->first);
        break;
    case SPLIT_OF_SLOTS:
        json_key(json, "slots");
        json_array(json);
        json_uint(json, part->first);
        json_uint(json, part->last);
        json_end(json);
        break;
    case SPLIT_OF_PREFIX:
        json_key(json, "prefix");
        json_bytes(json, rd_buf_slice(&part->prefix));
        break;
    case SPLIT_OF_NUMBER:
        json_put_uint(json, "part", part->first);
        break;
    case SPLIT_OF_SHARD:
        json_put_uint(json, "remainder", part->first);
        break;
    case SPLIT_OF_NODE:
        json_key(json, "node");
        json_bytes(json, rd_buf_slice(&part->prefix));
        break;
    case SPLIT_OF_REST:
        json_put_bool(json, "other", true);
        break;
    }
    json_put_uint(json, "keys", part->keys);
    json_put_uint(json, "bytes", part->bytes);
    json_end(json);
}

static const char *const by_words[] = {"db", "slot-range", "prefix", "size", "crc32", "ring"};

/* The fields of both index.json and --json. */
static void put_fields(struct json_write *json, const struct split *split)
{
    json_put_str(json, "by", by_words[split->rule.by]);
    json_put_str(json, "dialect", rdb_dialect_name(split->dialect));
    json_put_int(json, "version", split->version);
    json_put_uint(json, "keys", split->keys);
    json_key(json, "parts");
    json_array(json);
    for (size_t i = 0; i < split->n_parts; i++)
        put_part(json, split->parts[i]);
    json_end(json);
}

static bool open_index(struct split *split, struct rd_sink **ret, struct rd_err *err)
{
    struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = 4096, .replace = split->force);
    char *path = split_path(split, "index.json");
    if (path != NULL)
        cli_choose_access(split->cli, path, &opts);
    bool ok = path != NULL ? rd_sink_open_file(ret, path, &opts, err) : rd_err_nomem(err, 1);
    rd_free(path);
    return ok;
}

static void write_index(const struct split *split, struct rd_sink *to)
{
    struct json_write json;
    json_init(&json, to);
    json_obj(&json);
    json_put_int(&json, "redoubt", 1);
    json_put_str(&json, "tool", "split");
    put_fields(&json, split);
    json_end(&json);
    rd_sink_byte(to, '\n');
}

/* ---- the tool ---- */

static bool make_folder(struct split *split, struct rd_err *err)
{
    if (mkdir(split->folder, 0700) == 0)
        split->made_folder = true;
    else if (errno != EEXIST)
        return rd_err_sys(err, errno, "cannot create the folder %s", split->folder);
    return true;
}

static bool refuse_other_input(struct split *split, struct rd_err *err)
{
    struct rd_slice s;
    if (rd_src_need(split->src, 5, &s) == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(split->src));
        return false;
    }
    if (s.len == 0 || (s.ptr[0] != '*' && s.ptr[0] != '{' && s.ptr[0] != '#' &&
                       !(s.len >= 5 && memcmp(s.ptr, "file ", 5) == 0)))
        return true;
    cli_hint(split->cli, "redoubt convert can convert it to a snapshot");
    return rd_err_set(err, RD_ERR_UNSUPPORTED, 0, "cannot split JSON lines, or a log from a pipe");
}

static bool make_parts(struct split *split, struct rd_err *err)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_ELEMENTS, .attach_meta = true);
    split->wb = rd_write_behind_new();
    return refuse_other_input(split, err) &&
           proof_keep(split->cli, split->cli->args[0], &split->spool, &split->src, err) &&
           sized_begin(&split->sized, &split->filter, split->cli, split->cli->args[0],
                       &split->spool, &split->src, err) &&
           stage_begin(&split->preamble, &split->to_preamble, err) &&
           rdb_reader_new(&split->reader, split->src, &opts, err) && read_all(split, err) &&
           split_open_one(split, err) && split_end(split, err);
}

/* The index is renamed last: if it exists, all parts exist. */
static bool work(struct split *split, struct rd_sink **index, struct rd_err *err)
{
    if (!snapshot_in_open(split->cli, split->cli->args[0], &split->log, &split->spool, &split->src,
                          err) ||
        !make_folder(split, err) || !open_index(split, index, err))
        return false;
    if (!make_parts(split, err)) {
        rd_err_origin(err, rd_src_origin(split->src));
        return false;
    }
    split->is_void = split->keys == 0 && filter_active(&split->filter);
    if (split->is_void)
        return true;
    write_index(split, *index);
    struct rd_sink *to = *index;
    if (!omitted_end(&split->omitted, err) || !split_place(split, err))
        return false;
    *index = NULL;
    return rd_sink_close(to, err);
}

static bool report(struct split *split, struct rd_err *err)
{
    struct cli *cli = split->cli;
    if (split->crowded)
        cli_warn(cli, "more than %s prefixes: the keys of the others are in other.rdb",
                 rd_show_count(split->rule.max_parts).s);
    for (size_t i = 0; i < split->n_parts; i++) {
        const struct split_part *part = split->parts[i];
        cli_note(cli, "%s: %s key%s, %s", part->name, rd_show_count(part->keys).s,
                 rd_show_plural(part->keys), rd_show_bytes(part->bytes).s);
    }
    if (cli->json)
        put_fields(&cli->out, split);
    return omitted_report(&split->omitted, err);
}

static int run(struct split *split)
{
    struct rd_err err = {0};
    struct rd_sink *index = NULL;
    omitted_init(&split->omitted, split->cli);
    split->beside = (struct rdb_beside){.no_modules = !filter_may_want_modules(&split->filter),
                                        OMITTED_CALLBACK(&split->omitted)};
    bool ok = work(split, &index, &err);
    if (ok && split->src != NULL)
        cli_progress_end(split->cli);
    ok = ok && (split->is_void || report(split, &err));
    omitted_done(&split->omitted);
    rdb_reader_free(split->reader);
    sized_end(&split->sized);
    rd_sink_abort(index);
    split_done(split, !ok || split->is_void);
    rd_write_behind_free(split->wb);
    snapshot_in_close(split->cli, split->src, &split->spool);
    if (!ok)
        return cli_fail(split->cli, &err);
    return split->is_void ? cli_filter_nothing(split->cli, "written") : CLI_OK;
}

/* The value of --by: a word, or a word and what it needs. */
static bool choose_by(void *ctx, const char *text, struct rd_err *err)
{
    struct split_rule *rule = ctx;
    uint64_t n;
    for (int by = SPLIT_DB; by < SPLIT_CRC32; by++)
        if (strcmp(text, by_words[by]) == 0) {
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
static int check_options(struct split *split, const char *slots, const char *separator)
{
    struct split_rule *rule = &split->rule;
    struct rd_err err = {0};
    if (rule->by == SPLIT_NOTHING)
        return cli_usage_error(split->cli,
                               "missing option: --by db, slot-range, prefix, size, crc32:N or "
                               "ring:NAMES");
    if (split->folder == NULL || split->folder[0] == '\0')
        return cli_usage_error(split->cli, "missing output: use -o DIR");
    if ((slots != NULL) != (rule->by == SPLIT_SLOTS))
        return cli_usage_error(split->cli, "--by slot-range and --slots must be used together");
    if ((rule->size != 0) != (rule->by == SPLIT_SIZE))
        return cli_usage_error(split->cli, "--by size and --size must be used together");
    bool prefix = separator != NULL || rule->depth != 0 || rule->max_parts != 0;
    if (prefix && rule->by != SPLIT_PREFIX)
        return cli_usage_error(split->cli,
                               "--separator, --depth and --max-open require --by prefix");
    if (separator != NULL && separator[0] == '\0')
        return cli_usage_error(split->cli, "--separator must not be empty");
    rule->separator = rd_slice_str(separator != NULL ? separator : ":");
    rule->depth = rule->depth != 0 ? rule->depth : 1;
    rule->max_parts = rule->max_parts != 0 ? rule->max_parts : SPLIT_PARTS_DEFAULT;
    if (rule->max_parts >= SPLIT_PARTS_MAX)
        return cli_usage_error(split->cli, "--max-open must be at most %d", SPLIT_PARTS_MAX - 1);
    if (rule->by == SPLIT_RING && !split_ring(rule, &err))
        return cli_fail(split->cli, &err);
    if ((slots != NULL && !split_ranges(rule, slots, &err)) || !filter_check(&split->filter, &err))
        return cli_fail(split->cli, &err);
    return CLI_OK;
}

int tool_split(struct cli *cli, int argc, char **argv)
{
    struct split split = {.cli = cli, .rule.by = SPLIT_NOTHING, .log = SNAPSHOT_IN_ALL};
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
         .flag = &split.force,
         .help = "replace files that exist"},
        FILTER_OPTIONS(&split.filter),
        SNAPSHOT_IN_FROM_OPTION(&split.log),
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
    cli_filter_init(&split.filter, cli, cli_now_ms());
    if (cli_parse(cli, &usage, argc, argv, &status)) {
        status = check_options(&split, slots, separator);
        if (status == CLI_OK)
            status = run(&split);
    }
    split_ring_done(&split.rule);
    filter_done(&split.filter);
    return status;
}
