/* migrate - copies servers and clusters into others, and keeps the copy current. */
#include "tools/migrate/migrate.h"

#include <stdio.h>

#include "base/mem.h"
#include "tools/cli/stop.h"
#include "tools/tools.h"

/* ---- the servers ---- */

static bool ask_clustered(const struct client_target *target, bool *ret, struct rd_err *err)
{
    struct client_peer *peer;
    if (!client_peer_open(&peer, target, err))
        return false;
    bool ok = client_topology_exists(peer, ret, NULL, err);
    client_peer_close(peer);
    if (!ok)
        rd_err_origin(err, target->name);
    return ok;
}

static bool find_servers(struct migrate *m, struct rd_err *err)
{
    struct capture *c = &m->source.capture;
    c->out = m->spool;
    c->ack = CAPTURE_ACK_WRITTEN;
    if (!capture_servers_find(&m->servers, c, cli_url(m->cli, 0), err) ||
        !peer_target_find(&m->target.first, &m->servers.peers, cli_url(m->cli, 1), err))
        return false;
    if (c->target.has_db || m->target.first.has_db)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "all databases are copied: use --db instead of a database in a URL");
    if (!peer_target_find(&m->source_like, &m->servers.peers, cli_url(m->cli, 0), err))
        return false;
    return m->servers.n_sentinels > 0 || ask_clustered(&c->target, &c->cluster, err);
}

/* If the spool is lost, the source may still have what follows the position of the target. */
static bool resume(struct migrate *m, struct rd_err *err)
{
    struct migrate_position at;
    bool found;
    if (!migrate_target_connect(&m->target, m->name, err) ||
        !migrate_find_position(m, &at, &found, err))
        return false;
    migrate_detach(m);
    return !found || m->source.capture.cluster || migrate_source_resume(m->spool, &at, err);
}

static bool begin_filter(struct migrate *m, struct rd_err *err)
{
    m->plan.selects = filter_active(&m->filter);
    m->plan.filter = &m->filter;
    m->plan.renames = m->renames;
    m->plan.n_renames = m->n_renames;
    return filter_check(&m->filter, err) && filter_add_not(&m->filter, NULL, err) &&
           filter_add_prefix(&m->filter, MIGRATE_PREFIX, err) &&
           filter_add_not(&m->own_filter, NULL, err) &&
           filter_add_prefix(&m->own_filter, MIGRATE_PREFIX, err);
}

/* The source stays paused only if the target has the same data. */
static bool cut_over(struct migrate *m, struct rd_err *err)
{
    if (!m->pausing || migrate_stopped(m))
        return true;
    bool ok = migrate_compare(m, err) &&
              (!m->verdict.same || !m->remove_positions || migrate_remove_positions(m, err));
    migrate_pause_end(m, ok && m->verdict.same);
    return ok;
}

static bool work(struct migrate *m, struct rd_err *err)
{
    m->tags = rd_alloc(sizeof *m->tags);
    if (m->tags == NULL)
        return rd_err_nomem(err, sizeof *m->tags);
    migrate_tags_init(m->tags);
    if (!begin_filter(m, err) || !find_servers(m, err) || !resume(m, err))
        return false;
    m->stop = cli_stop_begin(&m->waiting);
    return migrate_source_begin(&m->source, err) && migrate_apply(m, err) && cut_over(m, err);
}

static void end(struct migrate *m)
{
    migrate_detach(m);
    migrate_source_end(&m->source);
    for (size_t i = 0; i < m->n_streams; i++) {
        if (m->streams[i]->is_open)
            rebuild_stream_close(&m->streams[i]->in);
        rd_free(m->streams[i]->applied);
        rd_free(m->streams[i]);
    }
    rd_free(m->streams);
    migrate_round_done(&m->rounds[0]);
    migrate_round_done(&m->rounds[1]);
    migrate_plan_done(&m->plan);
    replay_args_done(&m->args);
    migrate_target_done(&m->target);
    client_target_done(&m->source_like);
    rd_free(m->tags);
}

static int run(struct migrate *m)
{
    struct rd_err err = {0};
    bool ok = work(m, &err);
    bool partial = m->result.n_refused > 0 && !m->verdict.done;
    migrate_pause_end(m, false);
    cli_progress_end(m->cli);
    if (m->source.has_thread)
        migrate_report_events(m);
    if (ok || m->result.attaches > 0)
        migrate_report(m);
    end(m);
    if (!ok) {
        capture_servers_holder(&err);
        if (err.code == RD_ERR_PROTOCOL)
            peer_hint(m->cli, &err);
        return cli_fail(m->cli, &err);
    }
    if (cli_stopped() != 0)
        return CLI_SIGNAL + cli_stopped();
    if (m->verdict.done && !m->verdict.same)
        return CLI_FINDINGS;
    return partial ? CLI_PARTIAL : CLI_OK;
}

/* ---- options ---- */

/* OLD=NEW, which may be empty. */
static bool add_rename(void *ctx, const char *value, struct rd_err *err)
{
    struct migrate *m = ctx;
    const char *equals = strchr(value, '=');
    if (equals == NULL || m->n_renames == MIGRATE_RENAMES_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s",
                          equals == NULL ? "not OLD=NEW" : "too many prefixes are renamed");
    m->renames[m->n_renames++] = (struct migrate_rename){rd_slice(value, (size_t)(equals - value)),
                                                         rd_slice_str(equals + 1)};
    return true;
}

static int check(struct migrate *m)
{
    struct cli *cli = m->cli;
    for (size_t i = 0; i < cli->n_args; i++)
        if (!client_target_is_url(cli->args[i]))
            return cli_usage_error(cli, "not a server URL: use redis://HOST, rediss://HOST or "
                                        "unix:///PATH");
    if (!migrate_name_is(m->name))
        return cli_usage_error(cli,
                               "--name must have letters, digits, '-', '_' and '.', at most "
                               "%d of them",
                               MIGRATE_NAME_MAX - 1);
    if (m->cut_over && m->until_caught_up)
        return cli_usage_error(cli, "--cut-over and --until-caught-up cannot be used together");
    if (m->remove_positions && !m->cut_over)
        return cli_usage_error(cli, "--remove-position requires --cut-over");
    if (m->flush && m->replace)
        return cli_usage_error(cli, "--flush and --merge cannot be used together");
    return CLI_OK;
}

int tool_migrate(struct cli *cli, int argc, char **argv)
{
    struct migrate m = {.cli = cli,
                        .name = "migrate",
                        .spool = "redoubt-migrate",
                        .spool_size = 1 << 30,
                        .pause_ms = 60000};
    const struct cli_opt opts[] = {
        {.name = "spool",
         .kind = CLI_STRING,
         .arg = "DIR",
         .string = &m.spool,
         .help = "folder for received data; default redoubt-migrate"},
        {.name = "name",
         .kind = CLI_STRING,
         .arg = "NAME",
         .string = &m.name,
         .help = "name of the migration; default migrate"},
        {.name = "flush",
         .kind = CLI_FLAG,
         .flag = &m.flush,
         .help = "empty the target before a copy begins"},
        {.name = "merge",
         .kind = CLI_FLAG,
         .flag = &m.replace,
         .help = "keep other keys of the target"},
        {.name = "recopy",
         .kind = CLI_FLAG,
         .flag = &m.recopy,
         .help = "begin a new full copy if the stream cannot continue"},
        {.name = "spool-size",
         .brief = true,
         .kind = CLI_SIZE,
         .arg = "SIZE",
         .number = &m.spool_size,
         .help = "keep this much that the target has; default 1gb"},
        {.name = "until-caught-up",
         .kind = CLI_FLAG,
         .flag = &m.until_caught_up,
         .help = "end when the target has everything"},
        {.name = "cut-over",
         .kind = CLI_FLAG,
         .flag = &m.cut_over,
         .help = "pause the source, compare, and end"},
        {.name = "pause",
         .kind = CLI_SPAN,
         .arg = "TIME",
         .number = &m.pause_ms,
         .help = "longest pause of the source; default 60s"},
        {.name = "remove-position",
         .brief = true,
         .kind = CLI_FLAG,
         .flag = &m.remove_positions,
         .help = "with --cut-over: remove the position keys"},
        FILTER_OPTION("db", "N", filter_add_db, &m.filter, "keys of database N"),
        FILTER_OPTION("match", "GLOB", filter_add_match, &m.filter,
                      "keys that match a KEYS pattern"),
        FILTER_OPTION("match-regex", "ERE", filter_add_match_regex, &m.filter,
                      "keys that match a regex"),
        FILTER_OPTION("prefix", "P", filter_add_prefix, &m.filter, "keys that begin with P"),
        FILTER_OPTION("slot", "A[-B]", filter_add_slot, &m.filter, "keys of these cluster slots"),
        FILTER_OPTION("not", NULL, filter_add_not, &m.filter, "negate the next option"),
        {.name = "rename-prefix",
         .brief = true,
         .kind = CLI_EACH,
         .arg = "OLD=NEW",
         .each = add_rename,
         .ctx = &m,
         .help = "keys that begin with OLD begin with NEW in the target"},
        {.name = "limit-rate",
         .brief = true,
         .kind = CLI_SIZE,
         .arg = "SIZE",
         .number = &m.rate,
         .help = "send at most SIZE a second"},
        PEER_URL_OPTIONS(&m.servers.peers),
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] SOURCE TARGET",
        .about = "Copies a server or a cluster into another one and keeps the copy current, until\n"
                 "it is stopped. A new run continues where the last one ended.",
        .opts = opts,
        .min_args = 2,
        .max_args = 2,
        .example = "redoubt migrate redis://old.example redis://new.example",
    };
    int status;
    peer_opts_init(&m.servers.peers);
    cli_filter_init(&m.filter, cli, cli_now_ms());
    cli_filter_init(&m.own_filter, cli, cli_now_ms());
    if (cli_parse(cli, &usage, argc, argv, &status) && (status = check(&m)) == CLI_OK)
        status = run(&m);
    peer_opts_done(&m.servers.peers);
    filter_done(&m.filter);
    filter_done(&m.own_filter);
    return status;
}
