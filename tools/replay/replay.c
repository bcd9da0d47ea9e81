/* replay - replays a capture into a server. */
#include "tools/replay/replay.h"
#include "tools/tools.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Commands go to the same databases as in the recording. */
static bool check_target(const struct tool_replay *replay, struct rd_err *err)
{
    return !replay->target.has_db ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "the databases are those of the capture: -n cannot be used");
}

/* False: the path is what a server has, not a capture. */
static bool is_capture(struct tool_replay *replay, struct rd_err *err)
{
    static const char *const of_servers[] = {"dump.rdb", "appendonlydir", "appendonly.aof.manifest",
                                             "appendonly.aof"};
    char path[PATH_MAX];
    struct stat st;
    bool found = false;
    if (rebuild_stream_is(replay->path))
        return true;
    for (size_t i = 0; !found && i < sizeof of_servers / sizeof *of_servers; i++)
        found =
            snprintf(path, sizeof path, "%s/%s", replay->path, of_servers[i]) < (int)sizeof path &&
            stat(path, &st) == 0;
    if (!found)
        return true;
    cli_hint(replay->cli, "redoubt convert --to resp FILE | redis-cli --pipe sends the data of a "
                          "snapshot or log");
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "it has the data of a server, not a capture");
    rd_err_origin(err, replay->path);
    return false;
}

static bool begin(struct tool_replay *replay, struct rd_err *err)
{
    if (!is_capture(replay, err) || !rebuild_stream_open(&replay->in, replay->path, false, err) ||
        !replay_find(replay, err))
        return false;
    if (replay->dry_run)
        return true;
    if (!peer_target_find(&replay->target, &replay->servers, cli_url(replay->cli, 1), err) ||
        !check_target(replay, err) || !client_peer_open(&replay->peer, &replay->target, err) ||
        !replay_sender_init(&replay->sender, replay->peer, (size_t)replay->window, err))
        return false;
    /* A server that is emptied first must be able to hold what takes the place of its data. */
    bool ok = (replay->no_snapshot ||
               replay_snapshot_fits(replay, &replay->in.list.segments[replay->base], err)) &&
              replay_make_room(replay, err);
    if (!ok)
        rd_err_origin(err, replay->target.name);
    return ok;
}

static bool work(struct tool_replay *replay, struct rd_err *err)
{
    replay->db = UINT64_MAX;
    if (!begin(replay, err))
        return false;
    if (!replay->no_snapshot &&
        !replay_snapshot(replay, &replay->in.list.segments[replay->base], err))
        return false;
    if (replay_stream(replay, err))
        return true;
    if (replay->result.chapter != 0)
        rd_err_doing(err, "command after %" PRIu64 ":%" PRIu64, replay->result.to_chapter,
                     replay->result.to);
    return false;
}

static int run(struct tool_replay *replay)
{
    struct rd_err err = {0};
    bool same = true;
    bool ok = work(replay, &err);
    if (!ok && err.code == RD_ERR_PROTOCOL)
        peer_hint(replay->cli, &err);
    if (ok || replay->result.commands > 0)
        replay_report(replay);
    client_peer_close(replay->peer);
    replay->peer = NULL;
    if (ok && replay->verify && !replay->dry_run)
        ok = replay_verify(replay, &same, &err);
    bool partial = replay->sender.n_errors > 0;
    rebuild_stream_close(&replay->in);
    replay_sender_done(&replay->sender);
    replay_args_done(&replay->args);
    client_target_done(&replay->target);
    if (!ok)
        return cli_fail(replay->cli, &err);
    return !same ? CLI_FINDINGS : partial ? CLI_PARTIAL : CLI_OK;
}

static bool parse_speed(struct tool_replay *replay)
{
    char *end;
    if (strcmp(replay->speed, "max") == 0)
        return true;
    replay->factor = 1;
    if (strcmp(replay->speed, "recorded") == 0)
        return true;
    replay->factor = strtod(replay->speed, &end);
    if (*end == 'x')
        end++;
    return end != replay->speed && *end == '\0' && replay->factor >= 1e-6 && replay->factor <= 1e9;
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int refuse_file(struct tool_replay *replay)
{
    struct rd_err err = {0};
    rd_err_set(&err, RD_ERR_USAGE, RD_NO_OFFSET, "this is a file, not the folder of a capture");
    rd_err_origin(&err, replay->path);
    cli_hint(replay->cli, "to load a snapshot or a log: redoubt convert --to resp FILE | "
                          "redis-cli --pipe");
    return cli_fail(replay->cli, &err);
}

static int check_options(struct tool_replay *replay)
{
    struct cli *cli = replay->cli;
    bool named = peer_opts_names_one(&replay->servers);
    replay->path = cli->args[0];
    if (is_file(replay->path))
        return refuse_file(replay);
    if (cli->n_args == 1 && !named && !replay->dry_run)
        return cli_usage_error(cli, "missing argument: replay [OPTION…] DIR URL");
    if (cli->n_args == 2 && named)
        return cli_usage_error(cli, "use either URL, or -h, -p, -s or -u, not both");
    if (cli->n_args == 2 && !client_target_is_url(cli->args[1]))
        return cli_usage_error(cli,
                               "the second argument must be the URL of a server: redis://HOST");
    if (!parse_speed(replay))
        return cli_usage_error(cli, "--speed must be recorded, max, or a factor such as 10 or 0.5");
    if (replay->window == 0 || replay->window > REPLAY_WINDOW_MAX)
        return cli_usage_error(cli, "--window must be from 1 to %d", REPLAY_WINDOW_MAX);
    if (replay->verify && replay->no_snapshot)
        return cli_usage_error(cli, "--verify requires the snapshot: the previous data of the "
                                    "server is unknown");
    if (replay->verify && replay->replace)
        return cli_usage_error(cli, "--verify requires an empty server: use --flush");
    return CLI_OK;
}

int tool_replay(struct cli *cli, int argc, char **argv)
{
    struct tool_replay replay = {.cli = cli,
                                 .speed = "recorded",
                                 .from_ms = INT64_MIN,
                                 .least_shift_ms = INT64_MAX,
                                 .until_ms = INT64_MIN,
                                 .window = REPLAY_WINDOW};
    const struct cli_opt opts[] = {
        {.name = "speed",
         .kind = CLI_STRING,
         .arg = "SPEED",
         .string = &replay.speed,
         .help = "recorded (default), max, or a factor: 10, 0.5"},
        {.name = "from",
         .kind = CLI_TIME,
         .arg = "T",
         .time_ms = &replay.from_ms,
         .help = "begin with commands that arrived at T"},
        {.name = "until",
         .kind = CLI_TIME,
         .arg = "T",
         .time_ms = &replay.until_ms,
         .help = "end with commands that arrived at T"},
        {.name = "from-offset",
         .brief = true,
         .kind = CLI_STRING,
         .arg = "N",
         .string = &replay.from_text,
         .help = "begin at offset N, or CHAPTER:N"},
        {.name = "until-offset",
         .brief = true,
         .kind = CLI_STRING,
         .arg = "N",
         .string = &replay.until_text,
         .help = "end at offset N, or CHAPTER:N"},
        {.name = "no-snapshot",
         .kind = CLI_FLAG,
         .flag = &replay.no_snapshot,
         .help = "send the stream only, to existing data"},
        {.name = "no-expired",
         .brief = true,
         .kind = CLI_FLAG,
         .flag = &replay.no_expired,
         .help = "omit expired keys of the snapshot"},
        {.name = "flush",
         .kind = CLI_FLAG,
         .flag = &replay.flush,
         .help = "empty the server first"},
        {.name = "replace",
         .brief = true,
         .kind = CLI_FLAG,
         .flag = &replay.replace,
         .help = "replace existing keys with those of the snapshot"},
        {.name = "expiry",
         .kind = CLI_ENUM,
         .arg = "relative|recorded",
         .words = "relative|recorded",
         .choice = &replay.expiry,
         .help = "relative: same time to live; recorded: same time"},
        {.name = "commands",
         .brief = true,
         .kind = CLI_FLAG,
         .flag = &replay.commands,
         .help = "send the snapshot without RESTORE"},
        {.name = "window",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &replay.window,
         .help = "commands sent before their replies; default 1024",
         .brief = true},
        {.name = "dry-run",
         .kind = CLI_FLAG,
         .flag = &replay.dry_run,
         .help = "print what would be sent, send nothing"},
        {.name = "verify",
         .kind = CLI_FLAG,
         .flag = &replay.verify,
         .help = "compare the server with the capture at the end"},
        PEER_OPTIONS(&replay.servers),
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] DIR URL",
        .about = "Sends a capture to a server (redis://HOST): its snapshot, then its commands\n"
                 "with the recorded timing.",
        .opts = opts,
        .min_args = 1,
        .max_args = 2,
        .example = "redoubt replay --speed 10 --flush --verify capture redis://test:6379",
    };
    int status;
    peer_opts_init(&replay.servers);
    if (cli_parse(cli, &usage, argc, argv, &status) && (status = check_options(&replay)) == CLI_OK)
        status = run(&replay);
    peer_opts_done(&replay.servers);
    return status;
}
