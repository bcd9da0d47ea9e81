/* verify.c - `redoubt verify`: whether sets are what they were when they were made. */
#include "backup/verify.h"
#include "base/num.h"
#include "tools/input/snapshot_in.h"
#include "tools/tools.h"
#include "tools/vault/vault.h"

#include <inttypes.h>
#include <stdio.h>

enum { SAMPLE_MAX = 1000, DAY_MS = 86400000 };

struct run {
    struct cli *cli;
    struct vault vault;
    struct backup_verify verify;
    int level; /* enum backup_level */
    const char *sample_text;
    const struct backup_open *open; /* the target that is verified */
    struct json_later streams;      /* with --json */
    struct json_later chunks;
};

static const char *level_word(enum backup_level level)
{
    static const char *const words[] = {"list", "digest", "parse", "load"};
    return words[level];
}

/* ---- sets ---- */

/* A target may have several repositories: "nightly ID in /var/backups: ". */
static void print_set(const struct run *run, const struct backup_verified *v)
{
    bool several = run->open->n > 1;
    printf("%s %s%s%s: ", v->repo->target, v->set->id, several ? " in " : "",
           several ? v->repo->store->origin : "");
}

static void print_good(const struct run *run, const struct backup_verified *v)
{
    const char *word = level_word(v->level);
    const char *signature = v->authentic ? ", signature" : "";
    print_set(run, v);
    if (v->loaded)
        printf("ok (%s into %s, %s key%s%s)\n", word, v->load.server, rd_show_count(v->load.keys).s,
               rd_show_plural(v->load.keys), signature);
    else
        printf("ok (%s%s)\n", word, signature);
}

static void print_verified(const struct run *run, const struct backup_verified *v)
{
    static const char *const words[] = {[BACKUP_DAMAGED] = "DAMAGED",
                                        [BACKUP_UNSEALED] = "REFUSED",
                                        [BACKUP_NOT_LOADED] = "NOT LOADED",
                                        [BACKUP_UNKNOWN_KEY] = "not verified"};
    char line[1024];
    if (v->verdict != BACKUP_GOOD) {
        print_set(run, v);
        printf("%s: %s\n", words[v->verdict], rd_err_render(&v->err, line, sizeof line));
    } else if (!run->cli->quiet) {
        print_good(run, v);
    }
}

static void put_load(struct json_write *json, const struct backup_verified *v)
{
    json_put_str(json, "server", v->load.server[0] != '\0' ? v->load.server : NULL);
    json_put_bool(json, "loaded", v->loaded);
    if (v->loaded)
        json_put_uint(json, "keys", v->load.keys);
}

static void put_verdict(struct run *run, const struct backup_verified *v)
{
    struct json_write *json = &run->cli->out;
    if (v->verdict == BACKUP_UNKNOWN_KEY) {
        json_put_bool(json, "unknown_key", true);
        return;
    }
    json_put_str(json, "level", level_word(v->level));
    json_put_bool(json, "good", v->verdict == BACKUP_GOOD);
    json_put_bool(json, "authentic", v->authentic);
    json_put_bool(json, "refused", v->unsealed);
    if (v->level == BACKUP_LEVEL_LOAD)
        put_load(json, v);
}

static void put_verified(struct run *run, const struct backup_verified *v)
{
    struct json_write *json = &run->cli->out;
    json_obj(json);
    json_put_str(json, "target", v->repo->target);
    json_put_str(json, "repository", v->repo->store->origin);
    json_put_str(json, "id", v->set->id);
    put_verdict(run, v);
    if (v->verdict != BACKUP_GOOD) {
        json_key(json, "error");
        cli_json_err(json, &v->err);
    }
    json_end(json);
}

static void on_set(void *ctx, const struct backup_verified *v)
{
    struct run *run = ctx;
    if (v->load.counted)
        snapshot_in_report(run->cli, &v->load.counts, false);
    if (run->cli->json)
        put_verified(run, v);
    else
        print_verified(run, v);
}

/* ---- chunks ---- */

enum { NAMES_SHOWN = 5 };

static void print_damage(const struct run *run, const struct archive_repo *repo,
                         const struct chunks_damage *d)
{
    char line[1024];
    bool several = run->open->n > 1;
    printf("%s pack %s%s%s: DAMAGED: %s", repo->target, d->pack, several ? " in " : "",
           several ? repo->store->origin : "", d->what);
    if (d->set != NULL)
        printf(" of the set %s", d->set->id);
    if (d->n_keys > 0)
        printf(", %s key%s", rd_show_count(d->n_keys).s, rd_show_plural(d->n_keys));
    for (size_t i = 0; i < d->n_names && i < NAMES_SHOWN; i++)
        printf("%s%s", i == 0 ? ": " : ", ", rd_show_quote(d->names[i]).s);
    if (d->n_names > NAMES_SHOWN)
        printf(", …");
    printf(": %s%s\n", rd_err_render(d->err, line, sizeof line),
           d->recoverable ? "; the parity of the pack gives the bytes" : "");
}

static void put_damage(struct json_write *json, const struct archive_repo *repo,
                       const struct chunks_damage *d)
{
    json_obj(json);
    json_put_str(json, "target", repo->target);
    json_put_str(json, "repository", repo->store->origin);
    json_put_str(json, "pack", d->pack);
    json_put_str(json, "chunk", d->chunk);
    json_put_str(json, "what", d->what);
    json_put_str(json, "id", d->set != NULL ? d->set->id : NULL);
    json_put_bool(json, "recoverable", d->recoverable);
    json_put_uint(json, "keys", d->n_keys);
    json_key(json, "names");
    json_array(json);
    for (size_t i = 0; i < d->n_names; i++)
        json_bytes(json, d->names[i]);
    json_end(json);
    json_key(json, "error");
    cli_json_err(json, d->err);
    json_end(json);
}

static void on_chunks(void *ctx, const struct archive_repo *repo,
                      const struct chunks_damage *damage)
{
    struct run *run = ctx;
    if (run->cli->json)
        put_damage(&run->chunks.json, repo, damage);
    else
        print_damage(run, repo, damage);
}

/* ---- the stream ---- */

static void on_stream_listed(void *ctx, const struct backup_verify_stream *stream)
{
    struct run *run = ctx;
    struct json_write *json = &run->streams.json;
    (void)stream;
    if (!run->cli->json)
        return;
    json_obj(json);
    json_key(json, "damaged");
    json_array(json);
}

static void on_segment(void *ctx, const struct backup_verify_stream *stream, const char *name,
                       const struct rd_err *err)
{
    struct run *run = ctx;
    struct json_write *json = &run->streams.json;
    bool several = run->open->n > 1;
    char line[1024];
    if (!run->cli->json) {
        printf("%s %s%s%s: DAMAGED: %s\n", stream->repo->target,
               rd_show_plain(rd_slice_str(name)).s, several ? " in " : "",
               several ? stream->repo->store->origin : "", rd_err_render(err, line, sizeof line));
        return;
    }
    json_obj(json);
    json_key(json, "segment");
    json_bytes(json, rd_slice_str(name));
    json_key(json, "error");
    cli_json_err(json, err);
    json_end(json);
}

/* No server loads a stream: with --level load it is parsed. */
static const char *stream_word(const struct backup_verify_stream *stream)
{
    return level_word(stream->level < BACKUP_LEVEL_LOAD ? stream->level : BACKUP_LEVEL_PARSE);
}

static void put_stream(struct json_write *json, const struct backup_verify_stream *stream)
{
    json_end(json);
    json_put_str(json, "target", stream->repo->target);
    json_put_str(json, "repository", stream->repo->store->origin);
    json_put_str(json, "level", stream_word(stream));
    json_put_uint(json, "segments", stream->n_segments);
    if (stream->sample.of > 0)
        json_put_uint(json, "segments_read", stream->n_read);
    json_put_uint(json, "interruptions", stream->n_interruptions);
    if (stream->known || stream->n_damaged > 0)
        json_put_bool(json, "good", stream->n_damaged == 0);
    json_end(json);
}

static void print_good_stream(const struct run *run, const struct backup_verify_stream *stream)
{
    bool several = run->open->n > 1;
    uint64_t n = stream->n_interruptions;
    printf("%s stream%s%s: ok, ", stream->repo->target, several ? " in " : "",
           several ? stream->repo->store->origin : "");
    if (stream->sample.of > 0)
        printf("%" PRIu64 " of ", stream->n_read);
    printf("%" PRIu64 " segment%s (%s)", stream->n_segments, rd_show_plural(stream->n_segments),
           stream_word(stream));
    if (n > 0)
        printf(", %" PRIu64 " interruption%s", n, rd_show_plural(n));
    printf("\n");
}

static void print_unknown_stream(const struct run *run, const struct backup_verify_stream *stream)
{
    bool several = run->open->n > 1;
    char line[1024];
    printf("%s stream%s%s: %" PRIu64 " segment%s not verified: %s\n", stream->repo->target,
           several ? " in " : "", several ? stream->repo->store->origin : "", stream->n_unknown,
           rd_show_plural(stream->n_unknown), rd_err_render(&stream->unknown, line, sizeof line));
}

static void on_stream(void *ctx, const struct backup_verify_stream *stream)
{
    struct run *run = ctx;
    if (run->cli->json) {
        put_stream(&run->streams.json, stream);
        return;
    }
    if (stream->known && stream->n_damaged == 0 && stream->n_segments > 0 && !run->cli->quiet)
        print_good_stream(run, stream);
    if (stream->n_unknown > 0)
        print_unknown_stream(run, stream);
}

/* ---- the tool ---- */

static bool verify_repo(void *ctx, struct backup_open *open, size_t i, struct rd_err *err)
{
    struct run *run = ctx;
    run->open = open;
    return backup_verify(&run->verify, open, i, err);
}

/* What the verdict is about: nothing is known of what was not read. */
static void put_sample(struct run *run)
{
    struct json_write *json = &run->cli->out;
    const struct backup_verify *v = &run->verify;
    json_key(json, "sample");
    json_obj(json);
    json_put_uint(json, "part", v->sample.part + 1);
    json_put_uint(json, "of", v->sample.of);
    json_put_uint(json, "sets", v->n_sets);
    json_put_uint(json, "sets_read", v->n_sets_read);
    json_put_uint(json, "packs", v->n_packs);
    json_put_uint(json, "packs_read", v->n_packs_read);
    json_put_uint(json, "segments", v->n_segments);
    json_put_uint(json, "segments_read", v->n_segments_read);
    json_end(json);
}

static void report_sample(struct run *run)
{
    const struct backup_verify *v = &run->verify;
    if (v->sample.of == 0)
        return;
    if (run->cli->json)
        put_sample(run);
    else if (!run->cli->quiet)
        printf("part %u of %u: read %" PRIu64 " of %" PRIu64 " sets, %" PRIu64 " of %" PRIu64
               " packs of chunks and %" PRIu64 " of %" PRIu64
               " segments; the others were only listed\n",
               v->sample.part + 1, v->sample.of, v->n_sets_read, v->n_sets, v->n_packs_read,
               v->n_packs, v->n_segments_read, v->n_segments);
}

/* Damage takes precedence over what could not be read. */
static int conclude(struct run *run, const struct vault_each *each)
{
    struct cli *cli = run->cli;
    const struct backup_verify *v = &run->verify;
    report_sample(run);
    if (cli->json) {
        json_put_uint(&cli->out, "good", v->n_good);
        json_put_uint(&cli->out, "damaged", v->n_bad);
        json_put_uint(&cli->out, "unknown_keys", v->n_unknown);
        json_put_uint(&cli->out, "without_sets", v->n_empty);
        vault_each_put_errors(each, &cli->out);
    }
    if (v->n_bad > 0 || v->n_damaged_segments > 0 || v->n_damaged_chunks > 0)
        return CLI_FINDINGS;
    if (v->n_unknown > 0 || v->n_unknown_segments > 0) {
        cli_warn(cli, "%zu set%s and %" PRIu64 " segment%s are sealed with keys that are not given",
                 v->n_unknown, rd_show_plural(v->n_unknown), v->n_unknown_segments,
                 rd_show_plural(v->n_unknown_segments));
        return CLI_USAGE;
    }
    if (each->status != CLI_OK)
        return each->status;
    return v->n_empty > 0 || v->n_good == 0 ? CLI_FINDINGS : CLI_OK;
}

static void prepare(struct run *run)
{
    run->verify.watch = &run->vault.watch;
    run->verify.level = (enum backup_level)run->level;
    run->verify.now_ms = run->cli->began_ms;
    run->verify.verified = on_set;
    run->verify.stream_listed = on_stream_listed;
    run->verify.segment_damaged = on_segment;
    run->verify.stream_verified = on_stream;
    run->verify.chunks_damaged = on_chunks;
    run->verify.ctx = run;
    snapshot_in_watch_memory(run->cli);
}

/* --sample 1/N: the part of today, in UTC. NULL, or what is wrong. */
static const char *set_sample(struct run *run)
{
    const char *text = run->sample_text;
    uint64_t of;
    if (text == NULL)
        return NULL;
    if (strncmp(text, "1/", 2) != 0 || !rd_num_get_u64(rd_slice_str(text + 2), &of) || of < 2 ||
        of > SAMPLE_MAX)
        return "--sample must be a fraction from 1/2 to 1/1000";
    if (run->verify.id != NULL || run->level == BACKUP_LEVEL_LIST)
        return "--sample cannot be combined with --set and --level list";
    run->verify.sample.of = (unsigned)of;
    run->verify.sample.part = (unsigned)((uint64_t)(cli_now_ms() / DAY_MS) % of);
    return NULL;
}

static int verify_all(struct run *run)
{
    struct cli *cli = run->cli;
    struct vault_each each = {0};
    struct rd_err err = {0};
    const char *wrong = set_sample(run);
    if (wrong != NULL)
        return cli_usage_error(cli, "%s", wrong);
    prepare(run);
    bool ok = vault_load(&run->vault, cli->args, cli->n_args, &err) &&
              vault_each_init(&each, cli, &run->vault, BACKUP_READ, &err) &&
              (!cli->json ||
               (json_later_init(&run->streams, &err) && json_later_init(&run->chunks, &err)));
    if (ok && cli->json) {
        json_key(&cli->out, "sets");
        json_array(&cli->out);
    }
    if (ok)
        vault_each(&each, verify_repo, run);
    if (ok && cli->json) {
        json_end(&cli->out);
        ok = json_later_put(&run->streams, &cli->out, "streams", &err) &&
             json_later_put(&run->chunks, &cli->out, "chunks", &err);
    }
    int status = ok ? conclude(run, &each) : cli_fail(cli, &err);
    vault_each_done(&each);
    return status;
}

int tool_verify(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli, .level = BACKUP_LEVEL_DIGEST};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    size_t n = vault_options(&run.vault, opts,
                             BACKUP_FOR_REPOSITORY | BACKUP_FOR_KEYS | BACKUP_FOR_READING);
    opts[n++] = (struct cli_opt){.name = "level",
                                 .kind = CLI_ENUM,
                                 .words = "list|digest|parse|load",
                                 .choice = &run.level,
                                 .help = "what to verify; default: digest"};
    opts[n++] = (struct cli_opt){.name = "set",
                                 .kind = CLI_STRING,
                                 .arg = "ID",
                                 .string = &run.verify.id,
                                 .help = "this set only, or \"latest\""};
    opts[n++] = (struct cli_opt){.name = "sample",
                                 .kind = CLI_STRING,
                                 .arg = "1/N",
                                 .string = &run.sample_text,
                                 .help = "read a part, another one each day: all in N days"};
    opts[n++] = (struct cli_opt){.name = "server",
                                 .kind = CLI_STRING,
                                 .arg = "PROGRAM",
                                 .string = &run.verify.server,
                                 .help = "loads the sets; default: redoubt-server"};
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [TARGET…]",
        .about = "Verifies the backups of each TARGET: that all files are there (list), unchanged\n"
                 "(digest) and sound (parse), and that a server loads them (load). Verifies the\n"
                 "archived stream as well.",
        .opts = opts,
        .max_args = CLI_MANY,
        .example = "redoubt verify nightly --level parse",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = verify_all(&run);
    vault_done(&run.vault);
    return status;
}
