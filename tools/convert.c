/* convert - a snapshot into lines of JSON, or into a snapshot of another version or dialect.
 *
 * To the version it has, a snapshot is copied: every record goes over as the bytes it was. To
 * another one, a value is copied where the target knows its type and written anew where not.
 */
#include "rdb/reader.h"
#include "rdb/writer.h"
#include "tools/filter.h"
#include "tools/ndjson.h"
#include "tools/tools.h"

#include <inttypes.h>

enum target { TO_RDB, TO_AOF, TO_RESP, TO_NDJSON, TO_CSV, TO_NOTHING };

struct job {
    struct cli *cli;
    int target;
    uint64_t version; /* 0: as it comes */
    int dialect;      /* -1: as it comes */
    bool lossy;
    bool meta;
    bool rewrite;
    bool force;
    int strings;
    const char *out_path;
    struct filter filter;

    struct rd_src *src;
    struct rd_sink *out;
    struct rdb_reader *reader;
    struct rdb_writer *writer;
    struct ndjson *lines;
    uint64_t keys;
};

static bool job_adopt(const struct job *job, struct rd_err *err)
{
    rd_err_adopt(err, rdb_reader_err(job->reader));
    return false;
}

/* A checksum of zero means that the writer kept none. */
static bool check_sum(const struct rdb_event *ev, struct rd_err *err)
{
    if (RD_LIKELY(ev->kind != RDB_TRAILER) || !ev->trailer.summed || ev->trailer.stored == 0 ||
        ev->trailer.stored == ev->trailer.computed)
        return true;
    return rd_err_set(err, RD_ERR_CHECKSUM, ev->offset,
                      "the file says %016" PRIx64 ", its bytes have %016" PRIx64,
                      ev->trailer.stored, ev->trailer.computed);
}

/* With a filter: passes a key that is not wanted, and what the file says beside the keys about keys
 * that may be gone. *ret_drop: the event is used up. */
static bool apply_filter(struct job *job, const struct rdb_event *ev, bool *ret_drop,
                         struct rd_err *err)
{
    *ret_drop = false;
    if (!filter_active(&job->filter))
        return true;
    if (ev->kind == RDB_KEY && !filter_wants(&job->filter, ev)) {
        *ret_drop = true;
        return rdb_reader_skip_value(job->reader) == RDB_EVENT || job_adopt(job, err);
    }
    if (ev->kind == RDB_KEY_META_BEGIN)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, ev->offset,
                          "keys with module metadata cannot be filtered");
    if (job->target == TO_RDB)
        *ret_drop = ev->kind == RDB_DB_SIZE || ev->kind == RDB_SLOT ||
                    (ev->kind == RDB_AUX && rd_slice_is(ev->aux.name, "slot-info"));
    return true;
}

/* ---- to lines ---- */

static bool run_ndjson(struct job *job, struct rd_err *err)
{
    const struct ndjson_opts opts = {.strings = (enum json_form)job->strings, .meta = job->meta};
    if (!rdb_reader_new(&job->reader, job->src, NULL, err) ||
        !ndjson_new(&job->lines, job->out, &opts, err))
        return false;
    struct rdb_event ev;
    enum rdb_status status;
    while ((status = rdb_reader_next(job->reader, &ev)) == RDB_EVENT) {
        bool drop;
        cli_tick(job->cli);
        if (!check_sum(&ev, err) || !apply_filter(job, &ev, &drop, err))
            return false;
        if (drop)
            continue;
        job->keys += ev.kind == RDB_KEY;
        if (!ndjson_put(job->lines, &ev, err))
            return false;
    }
    return status == RDB_END || job_adopt(job, err);
}

/* ---- to a snapshot ---- */

/* What the target is, by the options and by what the input is. A version alone says whose it is:
 * Valkey's own numbers begin at 80. *ret_version 0: the newest. */
static void choose_target(const struct job *job, const struct rdb_event *header,
                          enum rdb_dialect *ret_dialect, int *ret_version)
{
    *ret_dialect = header->header.dialect;
    *ret_version = (int)job->version;
    if (job->dialect >= 0)
        *ret_dialect = (enum rdb_dialect)job->dialect;
    else if (job->version != 0)
        *ret_dialect = job->version < RDB_VERSION_VALKEY_MIN ? RDB_REDIS : RDB_VALKEY;
    if (job->version == 0 && *ret_dialect == header->header.dialect)
        *ret_version = header->header.version;
}

/* The writer is made when the header has told what there is to be kept. */
static bool begin_writer(struct job *job, const struct rdb_event *header, struct rd_err *err)
{
    struct rdb_writer_opts opts = {.compress = true, .lossy = job->lossy};
    choose_target(job, header, &opts.dialect, &opts.version);
    opts.verbatim = !job->rewrite && opts.dialect == header->header.dialect &&
                    opts.version == header->header.version;
    return rdb_writer_new(&job->writer, job->out, &opts, err);
}

static bool copy_value(struct job *job, struct rd_err *err)
{
    struct rd_sink *to;
    if (!rdb_writer_copy_begin(job->writer, &to, err))
        return false;
    if (rdb_reader_copy_value(job->reader, to) != RDB_EVENT)
        return job_adopt(job, err);
    return rdb_writer_copy_end(job->writer, err);
}

static bool put_event(struct job *job, const struct rdb_event *ev, struct rd_err *err)
{
    if (ev->kind == RDB_HEADER && !begin_writer(job, ev, err))
        return false;
    if (!rdb_writer_put(job->writer, ev, err))
        return false;
    if (ev->kind != RDB_KEY)
        return true;
    job->keys++;
    if (job->rewrite || !rdb_writer_can_copy(job->writer, ev->key.type))
        return true;
    return copy_value(job, err);
}

static bool run_rdb(struct job *job, struct rd_err *err)
{
    if (!rdb_reader_new(&job->reader, job->src, NULL, err))
        return false;
    struct rdb_event ev;
    enum rdb_status status;
    while ((status = rdb_reader_next(job->reader, &ev)) == RDB_EVENT) {
        bool drop;
        cli_tick(job->cli);
        if (!check_sum(&ev, err) || !apply_filter(job, &ev, &drop, err) ||
            (!drop && !put_event(job, &ev, err)))
            return false;
    }
    if (status != RDB_END)
        return job_adopt(job, err);
    return rdb_writer_end(job->writer, err);
}

/* ---- the tool ---- */

static uint64_t report_loss(struct job *job)
{
    if (job->writer == NULL)
        return 0;
    const struct rdb_writer_loss *loss = rdb_writer_loss(job->writer);
    const struct {
        uint64_t n;
        const char *what;
    } rows[] = {
        {loss->keys, "keys"},           {loss->field_expires, "expiries of hash fields"},
        {loss->functions, "functions"}, {loss->module_aux, "module records"},
        {loss->other, "other records"},
    };
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].n > 0)
            cli_warn(job->cli, "left out: %s %s", cli_count(rows[i].n).s, rows[i].what);
        all += rows[i].n;
    }
    return all;
}

static bool work(struct job *job, struct rd_err *err)
{
    const char *path = job->cli->args[0];
    if (!cli_open_in(job->cli, path, &job->src, err))
        return false;
    if (!cli_open_out(job->cli, job->out_path, job->force, job->target == TO_RDB, &job->out, err))
        return false;
    bool ok = job->target == TO_RDB ? run_rdb(job, err) : run_ndjson(job, err);
    if (!ok) {
        rd_err_origin(err, job->src->origin);
        return false;
    }
    uint64_t bytes = rd_sink_offset(job->out);
    struct rd_sink *out = job->out;
    job->out = NULL;
    if (!rd_sink_close(out, err))
        return false;
    uint64_t lost = report_loss(job);
    if (job->cli->json) {
        cli_json_put_uint(&job->cli->out, "keys", job->keys);
        cli_json_put_uint(&job->cli->out, "bytes", bytes);
        cli_json_put_uint(&job->cli->out, "left_out", lost);
    }
    return true;
}

static int run(struct job *job)
{
    struct rd_err err = {0};
    bool ok = work(job, &err);
    ndjson_free(job->lines);
    rdb_writer_free(job->writer);
    rdb_reader_free(job->reader);
    rd_sink_abort(job->out);
    if (job->src != NULL)
        cli_close_in(job->cli, job->src);
    return ok ? CLI_OK : cli_fail(job->cli, &err);
}

/* Options of the other target would be ignored in silence. */
static bool fits_target(const struct job *job)
{
    if (job->target == TO_NDJSON)
        return job->version == 0 && job->dialect < 0 && !job->lossy && !job->rewrite;
    return !job->meta && job->strings == JSON_UTF8;
}

static int check_options(struct job *job)
{
    static const char *const words[] = {"rdb", "aof", "resp", "ndjson", "csv"};
    bool to_stdout = job->out_path == NULL || strcmp(job->out_path, "-") == 0;
    struct rd_err err = {0};
    if (job->target == TO_NOTHING)
        return cli_usage_error(job->cli, "say what to convert to: --to ndjson or --to rdb");
    if (job->cli->json && to_stdout)
        return cli_usage_error(job->cli, "--json needs -o OUT: both would go to standard output");
    if (job->version > 999)
        return cli_usage_error(job->cli, "there is no RDB version %llu",
                               (unsigned long long)job->version);
    if (!filter_check(&job->filter, &err))
        return cli_fail(job->cli, &err);
    if (job->target == TO_RDB || job->target == TO_NDJSON)
        return fits_target(job) ? CLI_OK
                                : cli_usage_error(job->cli, "an option does not go with --to %s",
                                                  words[job->target]);
    rd_err_set(&err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "converting to %s is not supported yet",
               words[job->target]);
    return cli_fail(job->cli, &err);
}

int tool_convert(struct cli *cli, int argc, char **argv)
{
    struct job job = {.cli = cli, .target = TO_NOTHING, .dialect = -1};
    const struct cli_opt opts[] = {
        {.name = "to",
         .kind = CLI_ENUM,
         .arg = "FORMAT",
         .words = "rdb|aof|resp|ndjson|csv",
         .choice = &job.target,
         .help = "rdb or ndjson (aof, resp and csv: not yet)"},
        {.name = "output",
         .letter = 'o',
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &job.out_path,
         .help = "where to write; standard output unless told"},
        {.name = "rdb-version",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &job.version,
         .help = "rdb: 6 to 12 (redis), 80 (valkey)"},
        {.name = "dialect",
         .kind = CLI_ENUM,
         .arg = "NAME",
         .words = "redis|valkey",
         .choice = &job.dialect,
         .help = "rdb: whose format; as in IN unless told"},
        {.name = "lossy",
         .kind = CLI_FLAG,
         .flag = &job.lossy,
         .help = "rdb: drop and count what the target cannot hold"},
        {.name = "rewrite",
         .kind = CLI_FLAG,
         .flag = &job.rewrite,
         .help = "rdb: write every value anew, copy none"},
        {.name = "meta",
         .kind = CLI_FLAG,
         .flag = &job.meta,
         .help = "ndjson: also version, aux fields, functions"},
        {.name = "strings",
         .kind = CLI_ENUM,
         .arg = "FORM",
         .words = "utf8|hex|base64",
         .choice = &job.strings,
         .help = "ndjson: how bytes are written"},
        {.name = "force",
         .kind = CLI_FLAG,
         .flag = &job.force,
         .help = "replace OUT when it exists"},
        FILTER_OPTIONS(&job.filter),
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "--to ndjson|rdb [OPTION…] IN [-o OUT]",
        .about = "Converts a snapshot to lines of JSON, or to another RDB version or dialect.",
        .opts = opts,
        .min_args = 1,
        .max_args = 1,
        .example = "redoubt convert --to ndjson dump.rdb | jq -c 'select(.type == \"hash\")'",
    };
    int status;
    filter_init(&job.filter, cli_now_ms());
    if (cli_parse(cli, &usage, argc, argv, &status)) {
        status = check_options(&job);
        if (status == CLI_OK)
            status = run(&job);
    }
    filter_done(&job.filter);
    return status;
}
