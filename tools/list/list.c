/* list.c - `redoubt list`: the sets of repositories. */
#include "archive/stream.h"
#include "tools/tools.h"
#include "tools/vault/vault.h"

#include <inttypes.h>
#include <stdio.h>

enum { CLOCK_TOLERANCE_MS = 300000 };

struct run {
    struct cli *cli;
    struct vault vault;
    const char *max_age_text;
    uint64_t max_age_ms; /* 0: not asked for */
    bool details;
    bool streams; /* the second pass of --json */
    int status;
};

static const char *state(const struct archive_set *set)
{
    if (set->err.code != RD_ERR_OK || set->missing > 0 || set->marked[ARCHIVE_MARK_DAMAGED])
        return "damaged";
    return set->marked[ARCHIVE_MARK_PINNED] ? "pinned" : "ok";
}

static bool of_snapshot(const struct archive_manifest *m)
{
    return m->n_files > 0 && m->files[0].role == ARCHIVE_ROLE_RDB;
}

static uint64_t plain_bytes(const struct archive_manifest *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->n_files; i++)
        bytes += m->files[i].plain.bytes;
    return bytes;
}

/* ---- JSON ---- */

static void put_dbs(struct cli_json *json, const struct archive_manifest *m)
{
    cli_json_key(json, "dbs");
    cli_json_array(json);
    for (size_t i = 0; i < m->n_dbs; i++) {
        cli_json_obj(json);
        cli_json_put_uint(json, "db", m->dbs[i].db);
        cli_json_put_uint(json, "keys", m->dbs[i].keys);
        cli_json_put_uint(json, "expires", m->dbs[i].expires);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void put_files(struct cli_json *json, const struct archive_manifest *m)
{
    cli_json_key(json, "files");
    cli_json_array(json);
    for (size_t i = 0; i < m->n_files; i++) {
        const struct archive_file *file = &m->files[i];
        cli_json_obj(json);
        cli_json_put_str(json, "name", file->name);
        cli_json_put_str(json, "object", file->object);
        cli_json_put_str(json, "role", archive_role_word(file->role));
        cli_json_put_str(json, "compression", archive_compression_word(file->compression));
        cli_json_put_bool(json, "sealed", file->sealed);
        cli_json_put_uint(json, "bytes", file->plain.bytes);
        cli_json_put_uint(json, "stored_bytes", file->stored.bytes);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void put_nodes(struct cli_json *json, const struct archive_manifest *m)
{
    if (m->n_nodes == 0)
        return;
    cli_json_put_int(json, "moment_from_us", m->moment_from_us);
    cli_json_put_int(json, "moment_to_us", m->moment_to_us);
    cli_json_key(json, "nodes");
    cli_json_array(json);
    for (size_t i = 0; i < m->n_nodes; i++) {
        const struct archive_node *node = &m->nodes[i];
        cli_json_obj(json);
        cli_json_put_str(json, "id", node->id);
        cli_json_put_str(json, "host", node->host);
        cli_json_put_uint(json, "port", node->port);
        cli_json_put_str(json, "slots", node->slots);
        cli_json_put_str(json, "replid", node->replid);
        cli_json_put_uint(json, "base", node->base);
        cli_json_put_uint(json, "offset", node->offset);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void put_manifest(struct cli_json *json, const struct archive_manifest *m)
{
    cli_json_put_str(json, "source", m->source);
    cli_json_put_str(json, "server", m->server);
    cli_json_put_str(json, "tool", m->tool);
    cli_json_put_int(json, "begin_ms", m->begin_ms);
    cli_json_put_int(json, "end_ms", m->end_ms);
    cli_json_put_int(json, "data_ms", m->data_ms);
    cli_json_put_str(json, "replid", m->replid[0] != '\0' ? m->replid : NULL);
    if (m->replid[0] != '\0')
        cli_json_put_uint(json, "offset", m->offset);
    cli_json_put_uint(json, "bytes", plain_bytes(m));
    if (of_snapshot(m)) {
        cli_json_put_uint(json, "keys", m->keys);
        cli_json_put_uint(json, "expires", m->expires);
        put_dbs(json, m);
    }
    cli_json_put_bool(json, "one_moment", !m->scan);
    put_nodes(json, m);
    cli_json_put_str(json, "key_id", m->key_id[0] != '\0' ? m->key_id : NULL);
    put_files(json, m);
}

static void put_set(struct cli_json *json, const struct archive_repo *repo,
                    const struct archive_set *set)
{
    cli_json_obj(json);
    cli_json_put_str(json, "target", repo->target);
    cli_json_put_str(json, "repository", repo->store->origin);
    cli_json_put_str(json, "id", set->id);
    cli_json_put_str(json, "time", cli_time(set->time_ms).s);
    cli_json_put_str(json, "state", state(set));
    cli_json_put_bool(json, "good", archive_set_good(set));
    cli_json_put_bool(json, "pinned", set->marked[ARCHIVE_MARK_PINNED]);
    cli_json_put_uint(json, "stored_bytes", set->bytes);
    if (set->err.code == RD_ERR_OK) {
        put_manifest(json, &set->m);
    } else {
        cli_json_key(json, "error");
        cli_json_err(json, &set->err);
    }
    cli_json_end(json);
}

/* ---- text ---- */

static void print_set(const struct archive_set *set)
{
    const struct archive_manifest *m = &set->m;
    printf("  %s  %-7s  %12s", set->id, state(set), cli_bytes(set->bytes).s);
    if (set->err.code == RD_ERR_OK) {
        if (m->n_nodes > 0)
            printf("  %zu master%s,", m->n_nodes, cli_plural(m->n_nodes));
        if (of_snapshot(m))
            printf("  %s key%s", cli_count(m->keys).s, cli_plural(m->keys));
        else
            printf("  log");
        printf("  %s%s%s", cli_plain(rd_slice_str(m->server)).s,
               m->key_id[0] != '\0' ? ", sealed" : "", m->scan ? ", not one moment" : "");
    }
    printf("\n");
}

static void print_details(const struct archive_set *set)
{
    const struct archive_manifest *m = &set->m;
    if (set->err.code != RD_ERR_OK)
        return;
    printf("      source %s, offset %llu of %s\n", cli_plain(rd_slice_str(m->source)).s,
           (unsigned long long)m->offset,
           m->replid[0] != '\0' ? cli_plain(rd_slice_str(m->replid)).s : "no known history");
    for (size_t i = 0; i < m->n_files; i++)
        printf("      %s, %s, plain %s\n", m->files[i].object,
               cli_bytes(m->files[i].stored.bytes).s, cli_bytes(m->files[i].plain.bytes).s);
}

static void print_sets(struct run *run, const struct archive_repo *repo,
                       const struct archive_sets *sets)
{
    printf("%s in %s\n", repo->target, cli_plain(rd_slice_str(repo->store->origin)).s);
    for (size_t i = 0; i < sets->n; i++) {
        if (sets->sets[i].incomplete)
            continue;
        print_set(&sets->sets[i]);
        if (run->details)
            print_details(&sets->sets[i]);
    }
}

/* ---- the stream ---- */

static void put_chain(struct run *run, const struct archive_repo *repo,
                      const struct archive_stream *stream, size_t begin, size_t end,
                      const struct archive_range *range)
{
    struct cli_json *json = &run->cli->out;
    uint64_t bytes = 0;
    for (size_t i = begin; i < end; i++)
        bytes += stream->segments[i].bytes;
    cli_json_obj(json);
    cli_json_put_str(json, "target", repo->target);
    cli_json_put_str(json, "repository", repo->store->origin);
    cli_json_put_str(json, "run", stream->segments[begin].run);
    cli_json_put_str(json, "replid", stream->segments[end - 1].replid);
    cli_json_put_uint(json, "segments", end - begin);
    cli_json_put_uint(json, "stored_bytes", bytes);
    cli_json_put_uint(json, "start", stream->segments[begin].start);
    cli_json_put_uint(json, "end", stream->segments[end - 1].end);
    cli_json_put_uint(json, "bases", range->bases);
    if (range->bases > 0) {
        cli_json_put_uint(json, "from_offset", range->from);
        cli_json_put_uint(json, "to_offset", range->to);
        cli_json_put_str(json, "from_time", cli_time(range->from_ms).s);
        cli_json_put_str(json, "to_time", cli_time(range->to_ms).s);
    }
    cli_json_end(json);
}

static void print_chain(const struct archive_stream *stream, size_t begin, size_t end,
                        const struct archive_range *range)
{
    if (range->bases > 0)
        printf("  any moment from %s to %s, offsets %" PRIu64 " to %" PRIu64 "\n",
               cli_time(range->from_ms).s, cli_time(range->to_ms).s, range->from, range->to);
    else
        printf("  a stream without a set: offsets %" PRIu64 " to %" PRIu64 "\n",
               stream->segments[begin].start, stream->segments[end - 1].end);
}

static bool list_stream(struct run *run, struct archive_repo *repo, const struct archive_sets *sets,
                        struct rd_err *err)
{
    struct archive_stream stream;
    if (!archive_stream_list(repo, &stream, err))
        return false;
    for (size_t begin = 0, end; begin < stream.n; begin = end) {
        struct archive_range range;
        end = archive_stream_chain(&stream, begin);
        archive_stream_range(&stream, begin, end, sets, &range);
        if (run->cli->json)
            put_chain(run, repo, &stream, begin, end, &range);
        else if (!run->cli->quiet)
            print_chain(&stream, begin, end, &range);
    }
    archive_stream_done(&stream);
    return true;
}

/* ---- the tool ---- */

/* The newest good set is young enough, or that is a finding. */
static void check_age(struct run *run, const struct archive_repo *repo, struct archive_sets *sets)
{
    const struct archive_set *newest = archive_sets_find(sets, NULL, cli_now_ms());
    if (run->max_age_ms == 0)
        return;
    if (newest == NULL) {
        cli_warn(run->cli, "%s has no good set in %s", repo->target, repo->store->origin);
        run->status = CLI_FINDINGS;
        return;
    }
    int64_t age_ms = cli_now_ms() - newest->time_ms;
    if (age_ms < -CLOCK_TOLERANCE_MS) {
        cli_warn(run->cli, "%s: all good sets are in the future: a clock is wrong", repo->target);
        run->status = CLI_FINDINGS;
        return;
    }
    if (age_ms <= (int64_t)run->max_age_ms)
        return;
    cli_warn(run->cli, "%s: the newest good set, %s, is %s old", repo->target, newest->id,
             cli_duration((uint64_t)age_ms).s);
    run->status = CLI_FINDINGS;
}

static bool list_repo(struct run *run, struct archive_repo *repo, struct rd_err *err)
{
    struct archive_sets sets;
    if (!archive_repo_list(repo, &sets, err))
        return false;
    bool ok = true;
    if (run->streams) {
        ok = list_stream(run, repo, &sets, err);
    } else if (run->cli->json) {
        for (size_t i = 0; i < sets.n; i++)
            if (!sets.sets[i].incomplete)
                put_set(&run->cli->out, repo, &sets.sets[i]);
    } else {
        if (!run->cli->quiet)
            print_sets(run, repo, &sets);
        ok = list_stream(run, repo, &sets, err);
    }
    if (!run->streams)
        check_age(run, repo, &sets);
    archive_sets_done(&sets);
    return ok;
}

static bool list_target(struct run *run, const struct vault_target *target, struct rd_err *err)
{
    struct vault_open open;
    if (!vault_open(target, VAULT_LIST, &open, err))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < open.n; i++)
        ok = list_repo(run, &open.repos[i], err);
    vault_close(&open);
    return ok;
}

static bool list_targets(struct run *run, struct rd_err *err)
{
    for (size_t i = 0; i < run->vault.n_targets; i++)
        if (!list_target(run, &run->vault.targets[i], err))
            return false;
    return true;
}

static int list_all(struct run *run)
{
    struct cli *cli = run->cli;
    struct rd_err err = {0};
    if (run->max_age_text != NULL &&
        (!archive_get_duration(rd_slice_str(run->max_age_text), &run->max_age_ms) ||
         run->max_age_ms == 0))
        return cli_usage_error(cli, "--max-age is a time such as 25h");
    if (!vault_load(&run->vault, cli->args, cli->n_args, &err))
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_json_key(&cli->out, "sets");
        cli_json_array(&cli->out);
    }
    if (!list_targets(run, &err))
        return cli_fail(cli, &err);
    if (!cli->json)
        return run->status;
    cli_json_end(&cli->out);
    cli_json_key(&cli->out, "streams");
    cli_json_array(&cli->out);
    run->streams = true;
    if (!list_targets(run, &err))
        return cli_fail(cli, &err);
    cli_json_end(&cli->out);
    return run->status;
}

int tool_list(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    size_t n = vault_options(&run.vault, opts, VAULT_FOR_REPOSITORY);
    opts[n++] = (struct cli_opt){.name = "max-age",
                                 .kind = CLI_STRING,
                                 .arg = "TIME",
                                 .string = &run.max_age_text,
                                 .help = "exit status 1 unless one is so young: 25h"};
    opts[n++] = (struct cli_opt){.name = "details",
                                 .kind = CLI_FLAG,
                                 .flag = &run.details,
                                 .help = "files and sources, too"};
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [TARGET…]",
        .about = "Lists the backups of each TARGET of the configuration, and the times that the\n"
                 "archived stream covers.",
        .opts = opts,
        .max_args = CLI_MANY,
        .example = "redoubt list nightly --max-age 25h",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = list_all(&run);
    vault_done(&run.vault);
    return status;
}
