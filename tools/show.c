/* show.c - `redoubt show`: the commands of a log, one a line.
 */
#include "base/mem.h"
#include "base/num.h"
#include "tools/show_impl.h"
#include "tools/tools.h"

#include <errno.h>
#include <inttypes.h>

enum { TAIL_MAX = 1000000 };

/* "[FILE:]N": the place; without FILE it is meant in every file. */
struct place {
    const char *text; /* NULL: none was given */
    char file[NAME_MAX + 1];
    size_t index; /* of FILE among those read; SIZE_MAX: not reached */
    uint64_t offset;
};

struct show {
    struct cli *cli;
    struct aof_job job;
    bool full, count, follow, ndjson;
    int64_t from_ms, until_ms;
    uint64_t tail;
    struct place from, until;
    struct filter keys, dbs;
    bool negate, key_rule;
    const char *commands[16];
    size_t n_commands;

    struct aof_manifest manifest;
    struct show_follow waiting;
    struct aof_reader *reader;
    uint64_t db; /* of the command whose keys are looked at */
    struct rd_buf line;
    struct rd_buf *ring; /* the last lines, with --tail */
    uint64_t n_ring;     /* put in */
    uint64_t n_passed;   /* commands of files that an earlier reader read */
    uint64_t number;     /* of the last command in the whole log */
    uint64_t n_shown, n_seen;
};

/* ---- what is wanted ---- */

static bool parse_place(struct place *p, struct rd_err *err)
{
    if (p->text == NULL)
        return true;
    const char *colon = strrchr(p->text, ':');
    size_t len = colon != NULL ? (size_t)(colon - p->text) : 0;
    if (len >= sizeof p->file || (colon != NULL && len == 0) ||
        !rd_num_get_u64(rd_slice_str(colon != NULL ? colon + 1 : p->text), &p->offset))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "an offset is a number of bytes, or FILE:N");
    memcpy(p->file, p->text, len);
    p->file[len] = '\0';
    return true;
}

/* -1, 0, 1: the event is before, at, behind the place. */
static int compare_place(const struct place *p, const struct aof_event *ev)
{
    if (p->file[0] == '\0' || p->index == ev->index)
        return ev->offset < p->offset ? -1 : ev->offset > p->offset;
    return p->index == SIZE_MAX || ev->index < p->index ? -1 : 1;
}

static bool in_range(const struct show *show, const struct aof_event *ev)
{
    int64_t ms = ev->time_s == AOF_NO_TIME       ? INT64_MIN
                 : ev->time_s > INT64_MAX / 1000 ? INT64_MAX
                                                 : ev->time_s * 1000;
    if (show->from_ms != INT64_MIN && ms < show->from_ms)
        return false;
    if (show->until_ms != INT64_MIN && ms > show->until_ms)
        return false;
    if (show->from.text != NULL && compare_place(&show->from, ev) < 0)
        return false;
    return show->until.text == NULL || compare_place(&show->until, ev) <= 0;
}

static bool wants_key(const struct filter *filter, struct rd_slice key, uint64_t db)
{
    const struct rdb_event ev = {.kind = RDB_KEY, .key = {.name = key, .db = db}};
    return filter_wants(filter, &ev);
}

static bool on_key(void *ctx, struct rd_slice key)
{
    const struct show *show = ctx;
    return wants_key(&show->keys, key, show->db);
}

static bool wants_keys(struct show *show, const struct aof_event *ev)
{
    show->db = ev->db;
    if (!wants_key(&show->dbs, rd_slice("", 0), ev->db))
        return false;
    if (!show->key_rule)
        return true;
    return show_keys(&ev->entry.command, on_key, show);
}

static bool is_wanted(struct show *show, const struct aof_event *ev)
{
    bool named = show->n_commands == 0;
    for (size_t i = 0; i < show->n_commands && !named; i++)
        named = show_name_is(ev->entry.command.argv[0], show->commands[i]);
    return named && in_range(show, ev) && wants_keys(show, ev);
}

/* ---- output ---- */

static void write_line(struct show *show, const struct rd_buf *line)
{
    bool json = show->cli->json;
    if (json)
        rd_sink_write(show->cli->out.out, show->n_shown == 0 ? "\n" : ",\n",
                      show->n_shown == 0 ? 1 : 2);
    show->n_shown++;
    if (json) {
        rd_sink_write(show->cli->out.out, line->ptr, line->len);
        return;
    }
    fwrite(line->ptr, 1, line->len, stdout);
    putchar('\n');
}

static void write_tail(struct show *show)
{
    uint64_t n = show->n_ring < show->tail ? show->n_ring : show->tail;
    for (uint64_t i = show->n_ring - n; i < show->n_ring; i++)
        write_line(show, &show->ring[i % show->tail]);
    show->n_ring = 0;
}

/* The end of what is there: from now on lines are written as they come. */
static void caught_up(struct show *show)
{
    if (show->ring != NULL) {
        write_tail(show);
        for (uint64_t i = 0; i < show->tail; i++)
            rd_buf_done(&show->ring[i]);
        rd_free(show->ring);
        show->ring = NULL;
    }
    if (show->cli->json)
        rd_sink_flush(show->cli->out.out);
    fflush(stdout);
}

/* The line is in show->line. */
static void put_line(struct show *show)
{
    if (show->ring == NULL) {
        write_line(show, &show->line);
        return;
    }
    struct rd_buf *slot = &show->ring[show->n_ring++ % show->tail];
    struct rd_buf was = *slot;
    *slot = show->line;
    show->line = was;
}

static bool put_command(struct show *show, const struct aof_event *ev, struct rd_err *err)
{
    rd_buf_reset(&show->line);
    bool ok = show->cli->json || show->ndjson
                  ? show_line_json(&show->line, ev)
                  : show_line_text(&show->line, ev, show->cli->verbose > 0, show->full);
    if (!ok)
        return rd_err_nomem(err, show->line.len);
    put_line(show);
    return true;
}

/* ---- reading ---- */

static bool has_filter(const struct show *show)
{
    return show->key_rule || filter_active(&show->dbs) || show->n_commands > 0 || show->count ||
           show->from_ms != INT64_MIN || show->until_ms != INT64_MIN || show->from.text != NULL ||
           show->until.text != NULL;
}

static void note_writer(struct show_snapshot *s, const struct rdb_event *ev)
{
    char tmp[RD_NUM_I64_MAX];
    bool valkey = rd_slice_is(ev->aux.name, "valkey-ver");
    if (!valkey && !rd_slice_is(ev->aux.name, "redis-ver"))
        return;
    struct rd_slice version = rdb_string_bytes(&ev->aux.value, tmp);
    snprintf(s->writer, sizeof s->writer, "%s %.*s", valkey ? "Valkey" : "Redis",
             (int)(version.len < 40 ? version.len : 40), (const char *)version.ptr);
}

static bool put_snapshot(struct show *show, const struct aof_event *ev, struct rd_err *err)
{
    struct show_snapshot s = {.file = ev->name};
    struct rdb_event inner;
    enum rdb_status status;
    while ((status = rdb_reader_next(ev->snapshot, &inner)) == RDB_EVENT) {
        if (inner.kind == RDB_AUX)
            note_writer(&s, &inner);
        if (inner.kind != RDB_KEY)
            continue;
        s.keys++;
        if (rdb_reader_skip_value(ev->snapshot) != RDB_EVENT)
            break;
    }
    if (status != RDB_END)
        return true; /* the reader of the log tells why */
    rd_buf_reset(&show->line);
    if (!(show->cli->json || show->ndjson ? show_snapshot_json(&show->line, &s)
                                          : show_snapshot_text(&show->line, &s)))
        return rd_err_nomem(err, show->line.len);
    put_line(show);
    return true;
}

static void begin_file(struct show *show, const struct aof_event *ev)
{
    struct place *places[] = {&show->from, &show->until};
    for (size_t i = 0; i < 2; i++)
        if (strcmp(places[i]->file, ev->name) == 0)
            places[i]->index = ev->index;
}

static bool take(struct show *show, struct aof_event *ev, struct rd_err *err)
{
    if (!show->job.has_manifest)
        ev->name = show->job.name;
    switch (ev->kind) {
    case AOF_FILE_BEGIN:
        begin_file(show, ev);
        return true;
    case AOF_RDB:
        return has_filter(show) || put_snapshot(show, ev, err);
    case AOF_COMMAND:
        ev->number += show->n_passed;
        show->number = ev->number;
        if (!is_wanted(show, ev))
            return true;
        show->n_seen++;
        return show->count || put_command(show, ev, err);
    default:
        return true;
    }
}

static bool read_all(struct show *show, struct rd_err *err)
{
    struct aof_event ev;
    for (;;) {
        switch (aof_reader_next(show->reader, &ev)) {
        case AOF_EVENT:
            if (!take(show, &ev, err))
                return false;
            break;
        case AOF_MORE:
            caught_up(show);
            show_follow_wait(&show->waiting);
            break;
        case AOF_END:
            return true;
        default:
            rd_err_adopt(err, aof_reader_err(show->reader));
            cli_hint(show->cli, "check-aof tells what is damaged and what can be done");
            return false;
        }
    }
}

static bool open_file(void *ctx, const struct aof_file *file, struct rd_src **ret,
                      struct rd_err *err)
{
    struct show *show = ctx;
    char path[PATH_MAX];
    const struct aof_file *last = aof_manifest_last_incr(&show->manifest);
    if (!show->follow || file != last)
        return aof_job_open(&show->job, file, ret, err);
    show->waiting.seq = file->seq;
    return aof_job_full_path(&show->job, file->name, path, sizeof path, err) &&
           show_follow_open(&show->waiting, path, ret, err);
}

static bool read_manifest(struct show *show, struct rd_err *err)
{
    struct rd_src *src;
    if (!aof_job_open_manifest(&show->job, &src, err))
        return false;
    bool ok = aof_manifest_read(&show->manifest, src, NULL, NULL, err);
    rd_src_close(src);
    rd_err_origin(err, show->job.name);
    return ok;
}

/* After a rotation: what the manifest has behind the file that was read. */
static bool read_rest(struct show *show, uint64_t seq, struct rd_err *err)
{
    aof_manifest_done(&show->manifest);
    aof_manifest_init(&show->manifest);
    if (!read_manifest(show, err))
        return false;
    for (size_t i = show->manifest.n_files; i-- > 0;)
        if (show->manifest.files[i].type != AOF_INCR || show->manifest.files[i].seq <= seq)
            aof_manifest_remove(&show->manifest, i);
    return true;
}

static bool show_folder(struct show *show, struct rd_err *err)
{
    const struct aof_reader_opts opts = {.open = open_file, .ctx = show, .log = {.whole = true}};
    bool ok = read_manifest(show, err);
    while (ok && show->manifest.n_files > 0) {
        show->waiting.seq = 0;
        ok = aof_reader_new(&show->reader, &show->manifest, &opts, err) && read_all(show, err);
        aof_reader_free(show->reader);
        show->reader = NULL;
        if (!ok || show->waiting.seq == 0)
            break;
        show->n_passed = show->number;
        ok = read_rest(show, show->waiting.seq, err);
    }
    return ok;
}

static bool show_one(struct show *show, struct rd_err *err)
{
    const struct aof_reader_opts opts = {.log = {.whole = true}};
    struct rd_src *src;
    bool wait = show->follow && !show->job.is_stdin;
    if (!(wait ? show_follow_open(&show->waiting, show->job.path, &src, err)
               : cli_open_in(show->cli, show->job.path, &src, err)))
        return false;
    bool ok = aof_reader_new_file(&show->reader, src, &opts, err) && read_all(show, err);
    aof_reader_free(show->reader);
    show->reader = NULL;
    if (wait)
        rd_src_close(src);
    else
        cli_close_in(show->cli, src);
    rd_err_origin(err, show->job.shown);
    return ok;
}

/* ---- options ---- */

static bool add_command(void *ctx, const char *value, struct rd_err *err)
{
    struct show *show = ctx;
    if (show->n_commands == sizeof show->commands / sizeof *show->commands)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "too many --command");
    show->commands[show->n_commands++] = value;
    return true;
}

static bool add_not(void *ctx, const char *value, struct rd_err *err)
{
    struct show *show = ctx;
    (void)value;
    if (show->negate)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "--not stands there twice");
    show->negate = true;
    return true;
}

typedef bool (*add_fn)(void *ctx, const char *value, struct rd_err *err);

static bool add_rule(struct show *show, struct filter *filter, add_fn add, const char *value,
                     struct rd_err *err)
{
    bool negate = show->negate;
    show->negate = false;
    show->key_rule = show->key_rule || filter == &show->keys;
    return (!negate || filter_add_not(filter, NULL, err)) && add(filter, value, err);
}

static bool add_db(void *ctx, const char *value, struct rd_err *err)
{
    struct show *show = ctx;
    return add_rule(show, &show->dbs, filter_add_db, value, err);
}

static bool add_key(void *ctx, const char *value, struct rd_err *err)
{
    struct show *show = ctx;
    return add_rule(show, &show->keys, filter_add_key, value, err);
}

static bool add_key_regex(void *ctx, const char *value, struct rd_err *err)
{
    struct show *show = ctx;
    return add_rule(show, &show->keys, filter_add_key_regex, value, err);
}

static bool add_prefix(void *ctx, const char *value, struct rd_err *err)
{
    struct show *show = ctx;
    return add_rule(show, &show->keys, filter_add_prefix, value, err);
}

static bool add_slot(void *ctx, const char *value, struct rd_err *err)
{
    struct show *show = ctx;
    return add_rule(show, &show->keys, filter_add_slot, value, err);
}

/* ---- the tool ---- */

static bool prepare(struct show *show, struct rd_err *err)
{
    show->waiting.job = &show->job;
    if (show->negate)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "--not stands in front of a condition");
    if (show->tail > TAIL_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "--tail takes at most a million");
    if (!parse_place(&show->from, err) || !parse_place(&show->until, err))
        return false;
    if (show->tail == 0)
        return true;
    show->ring = rd_calloc((size_t)show->tail, sizeof *show->ring);
    return show->ring != NULL || rd_err_nomem(err, (size_t)show->tail * sizeof *show->ring);
}

static int run(struct show *show)
{
    struct rd_err err = {0};
    struct cli_json *json = &show->cli->out;
    if (!prepare(show, &err) || !aof_job_find(&show->job, &err))
        return cli_fail(show->cli, &err);
    if (show->cli->json) {
        cli_json_key(json, "entries");
        cli_json_array(json);
    }
    bool ok = show->job.has_manifest ? show_folder(show, &err) : show_one(show, &err);
    caught_up(show);
    if (show->cli->json) {
        cli_json_end(json);
        cli_json_put_uint(json, "commands", show->n_seen);
    } else if (show->count) {
        printf("%" PRIu64 "\n", show->n_seen);
    }
    return ok ? CLI_OK : cli_fail(show->cli, &err);
}

static void done(struct show *show)
{
    for (uint64_t i = 0; show->ring != NULL && i < show->tail; i++)
        rd_buf_done(&show->ring[i]);
    rd_free(show->ring);
    rd_buf_done(&show->line);
    filter_done(&show->keys);
    filter_done(&show->dbs);
    aof_manifest_done(&show->manifest);
    aof_job_done(&show->job);
}

int tool_show(struct cli *cli, int argc, char **argv)
{
    struct show show = {.cli = cli,
                        .job = {.cli = cli},
                        .from_ms = INT64_MIN,
                        .until_ms = INT64_MIN,
                        .from = {.index = SIZE_MAX},
                        .until = {.index = SIZE_MAX}};
    filter_init(&show.keys, 0);
    filter_init(&show.dbs, 0);
    aof_manifest_init(&show.manifest);
    const struct cli_opt opts[] = {
        {.name = "command",
         .kind = CLI_EACH,
         .arg = "NAME",
         .each = add_command,
         .ctx = &show,
         .help = "only this command; may be given several times"},
        {.name = "from",
         .kind = CLI_TIME,
         .arg = "T",
         .time_ms = &show.from_ms,
         .help = "what was written at T or later"},
        {.name = "until",
         .kind = CLI_TIME,
         .arg = "T",
         .time_ms = &show.until_ms,
         .help = "what was written at T or earlier"},
        {.name = "from-offset",
         .kind = CLI_STRING,
         .arg = "[FILE:]N",
         .string = &show.from.text,
         .help = "what begins at byte N or behind it"},
        {.name = "until-offset",
         .kind = CLI_STRING,
         .arg = "[FILE:]N",
         .string = &show.until.text,
         .help = "what begins at byte N or before it"},
        {.name = "full",
         .kind = CLI_FLAG,
         .flag = &show.full,
         .help = "do not shorten long arguments"},
        {.name = "follow",
         .letter = 'f',
         .kind = CLI_FLAG,
         .flag = &show.follow,
         .help = "wait for more, also in files that come later"},
        {.name = "tail",
         .letter = 'n',
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &show.tail,
         .help = "the last N lines alone"},
        {.name = "count",
         .letter = 'c',
         .kind = CLI_FLAG,
         .flag = &show.count,
         .help = "how many commands there are"},
        {.name = "ndjson",
         .kind = CLI_FLAG,
         .flag = &show.ndjson,
         .help = "one JSON object a line"},
        FILTER_OPTION("db", "N", add_db, &show, "commands in database N"),
        FILTER_OPTION("key", "GLOB", add_key, &show, "commands with such a key"),
        FILTER_OPTION("key-regex", "ERE", add_key_regex, &show, "commands with such a key"),
        FILTER_OPTION("prefix", "P", add_prefix, &show, "commands with such a key"),
        FILTER_OPTION("slot", "A[-B]", add_slot, &show, "commands with a key of these slots"),
        FILTER_OPTION("not", NULL, add_not, &show, "the opposite of the option that follows"),
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] DIR|FILE",
        .about = "Prints the commands of a log, one a line: the time of the last annotation, the\n"
                 "file and offset, the database, and the command as it would be typed.",
        .opts = opts,
        .min_args = 1,
        .max_args = 1,
        .example = "redoubt show --command FLUSHALL --command FLUSHDB appendonlydir",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status)) {
        show.job.path = cli->args[0];
        status = run(&show);
    }
    done(&show);
    return status;
}
