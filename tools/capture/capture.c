/* capture - records the snapshot and stream of a master in a folder, as a replica. */
#include "tools/capture/priv.h"
#include "tools/tools.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/time.h"

enum { WAIT_MAX_MS = 60000 };

static volatile sig_atomic_t stopped;

uint64_t capture_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int64_t capture_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- signals ---- */

static void on_signal(int number)
{
    stopped = number;
}

int capture_stopped(void)
{
    return stopped;
}

/* Signals are unblocked in ppoll() only, so that none is missed. */
void capture_catch_signals(struct capture *c)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal}, old;
    sigset_t blocked;
    if (c->catching)
        return;
    c->catching = true;
    sigemptyset(&action.sa_mask);
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (sigaction(numbers[i], NULL, &old) != 0 || old.sa_handler == SIG_IGN)
            continue;
        sigaction(numbers[i], &action, NULL);
        sigaddset(&blocked, numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &blocked, &c->waiting);
}

/* ---- links ---- */

bool capture_add_link(struct capture *c, const struct client_target *target, const char *folder,
                      struct capture_link **ret, struct rd_err *err)
{
    struct capture_link *link = NULL;
    struct client_target owned = *target;
    if (c->n_links == c->cap_links) {
        size_t cap = c->cap_links == 0 ? 4 : 2 * c->cap_links;
        struct capture_link **links = rd_realloc(c->links, cap * sizeof(*links));
        if (links == NULL) {
            client_target_done(&owned);
            return rd_err_nomem(err, cap * sizeof(*links));
        }
        c->links = links;
        c->cap_links = cap;
    }
    bool ok = capture_link_new(&link, c, target, folder, err);
    if (link == NULL)
        client_target_done(&owned);
    else
        c->links[c->n_links++] = link;
    *ret = link;
    return ok;
}

/* ---- the loop ---- */

static bool prepare(struct capture *c, struct pollfd *polls, uint64_t *ret_wait_ms, bool *ret_over,
                    struct rd_err *err)
{
    uint64_t now_ms = capture_now_ms();
    *ret_over = true;
    for (size_t i = 0; i < c->n_links; i++) {
        if (!capture_link_prepare(c->links[i], now_ms, &polls[i], ret_wait_ms, err))
            return false;
        *ret_over &= c->links[i]->state == CAPTURE_DONE;
    }
    capture_report_tick(c, now_ms, ret_wait_ms);
    return c->tick == NULL || c->tick(c, now_ms, ret_wait_ms, err);
}

static bool turn(struct capture *c, bool *ret_over, struct rd_err *err)
{
    uint64_t wait_ms = WAIT_MAX_MS;
    /* Links are added here only, and nowhere else in this turn. */
    if (!capture_hosts_tick(c, capture_now_ms(), &wait_ms, err))
        return false;
    size_t n = c->n_links;
    struct pollfd *polls = rd_calloc(n, sizeof *polls);
    if (polls == NULL)
        return rd_err_nomem(err, n * sizeof *polls);
    bool ok = prepare(c, polls, &wait_ms, ret_over, err) && capture_timely_clock(c, err);
    const struct capture_stamp stamp = capture_stamp_now();
    const struct timespec limit = {.tv_sec = (time_t)(wait_ms / 1000),
                                   .tv_nsec = (long)(wait_ms % 1000) * 1000000};
    int n_ready = ok && !*ret_over ? ppoll(polls, n, &limit, &c->waiting) : -1;
    uint64_t now_ms = capture_now_ms();
    for (size_t i = 0; ok && n_ready >= 0 && i < n; i++) {
        if (polls[i].revents == 0)
            capture_timely_idle(c->links[i], &stamp);
        else
            ok = capture_link_work(c->links[i], polls[i].revents, now_ms, err);
    }
    rd_free(polls);
    return ok;
}

static bool finish(struct capture *c, struct rd_err *err)
{
    bool ok = true;
    for (size_t i = 0; i < c->n_links; i++)
        ok = capture_link_finish(c->links[i], capture_now_ms(), ok ? err : NULL) && ok;
    return ok;
}

static bool loop(struct capture *c, struct rd_err *err)
{
    bool over = false;
    capture_catch_signals(c);
    while (!over && stopped == 0)
        if (!turn(c, &over, err))
            return false;
    return true;
}

bool capture_run(struct capture *c, struct rd_err *err)
{
    bool ok = (c->n_links > 0 || capture_hosts_begin(c, err)) && loop(c, err);
    return finish(c, ok ? err : NULL) && ok;
}

void capture_close(struct capture *c, struct rd_err *err)
{
    bool ok = true;
    capture_hosts_end(c);
    for (size_t i = 0; i < c->n_links; i++) {
        ok = capture_store_close(&c->links[i]->store, ok ? err : NULL) && ok;
        capture_link_free(c->links[i]);
    }
    rd_free(c->links);
    c->links = NULL;
    c->n_links = c->cap_links = 0;
    capture_job_free(&c->syncer);
    client_target_done(&c->target);
    rd_free(c->buf);
    c->buf = NULL;
}

static int run(struct capture *c)
{
    struct rd_err err = {0};
    capture_report_begin(c);
    bool ok = capture_run(c, &err);
    capture_report_end(c);
    capture_close(c, &err);
    if (err.code == RD_ERR_OK && ok)
        return stopped != 0 ? CLI_SIGNAL + stopped : CLI_OK;
    capture_hint(c, &err);
    return cli_fail(c->cli, &err);
}

/* ---- options ---- */

static bool add_sentinel(void *ctx, const char *value, struct rd_err *err)
{
    struct capture *c = ctx;
    if (c->n_sentinels == CAPTURE_SENTINELS_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "too many sentinels");
    c->sentinel_texts[c->n_sentinels++] = value;
    return true;
}

/* "90", "15m", "2h30m": a duration, as after the minus of a relative time. */
static bool set_duration(void *ctx, const char *value, struct rd_err *err)
{
    struct capture *c = ctx;
    char text[64];
    int64_t ms;
    size_t len = strlen(value);
    bool plain = len > 0 && strspn(value, "0123456789") == len;
    if (len + 3 > sizeof text)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "not a duration");
    snprintf(text, sizeof text, "-%s%s", value, plain ? "s" : "");
    if (!rd_time_get(text, 0, &ms) || ms >= 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "not a duration such as 90s or 2h");
    c->duration_ms = (uint64_t)-ms;
    return true;
}

static bool set_until(void *ctx, const char *value, struct rd_err *err)
{
    struct capture *c = ctx;
    c->has_until = true;
    return rd_num_get_u64(rd_slice_str(value), &c->until) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "not an offset");
}

/* Whether the text is three numbers separated by points. */
static bool is_version(const char *text)
{
    for (int i = 0; i < 3; i++) {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 3 || text[digits] != (i < 2 ? '.' : '\0'))
            return false;
        text += digits + 1;
    }
    return true;
}

/* Returns the error of invalid options or combinations, or NULL. */
static const char *contradiction(struct capture *c)
{
    bool named = c->cli->n_args > 0 || peer_opts_has_one(&c->servers);
    bool stream = c->out != NULL || c->duration_ms != 0 || c->has_until || c->max_size != 0 ||
                  c->segment_size != 0 || c->report.metrics != NULL || c->wait;
    if (!named && c->n_sentinels == 0)
        return "missing argument: capture URL -o DIR";
    if (named && c->n_sentinels > 0)
        return "--sentinel finds the master: do not give a URL as well";
    if (c->cli->n_args > 0 && peer_opts_names_one(&c->servers))
        return "use either URL, or -h, -p, -s or -u, not both";
    if (c->cli->n_args > 0 && !client_target_is_url(c->cli->args[0]))
        return "not a server URL: use redis://HOST, rediss://HOST or unix:///PATH";
    if (c->cluster && c->n_sentinels > 0)
        return "--cluster and --sentinel cannot be used together";
    if (c->rdb_only == NULL && c->functions_only)
        return "--functions-only requires --rdb-only FILE";
    if (c->rdb_only != NULL && (stream || c->cluster))
        return "--rdb-only cannot be used with --cluster or options for the stream";
    if (c->rdb_only == NULL && c->out == NULL)
        return "missing output: use -o DIR or --rdb-only FILE";
    if (c->cluster && c->has_until)
        return "--until-offset cannot be used with --cluster";
    if (c->replica_version != NULL && !is_version(c->replica_version))
        return "--replica-version must be three numbers, such as 7.2.0";
    if (c->servers.has_db)
        return "a capture includes all databases: -n cannot be used";
    return NULL;
}

static bool draw_run(struct capture *c, struct rd_err *err)
{
    uint8_t bytes[REPL_REPLID_LEN / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return rd_err_sys(err, errno, "cannot get random bytes");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(c->run.hex + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

bool capture_prepare(struct capture *c, const char *url, struct rd_err *err)
{
    capture_job_init(&c->syncer);
    c->buf = rd_alloc(CAPTURE_READ);
    return (c->buf != NULL || rd_err_nomem(err, CAPTURE_READ)) && draw_run(c, err) &&
           peer_target_find(&c->target, &c->servers, url, err);
}

static int start(struct capture *c)
{
    struct rd_err err = {0};
    const char *wrong = contradiction(c);
    if (wrong != NULL)
        return cli_usage_error(c->cli, "%s", wrong);
    int status = CLI_OK;
    if (!capture_prepare(c, cli_url(c->cli, 0), &err))
        status = cli_fail(c->cli, &err);
    else if (c->target.has_db)
        status =
            cli_usage_error(c->cli, "a capture includes all databases: the URL must not name one");
    else if (c->rdb_only != NULL)
        status = capture_rdb(c);
    else
        return run(c);
    capture_close(c, NULL);
    return status;
}

static int parse_and_start(struct capture *c, const struct cli_opt *opts, int argc, char **argv)
{
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] URL -o DIR | --rdb-only FILE",
        .about = "Connects to a master as a replica, and records its snapshot and stream in a\n"
                 "folder. A new run resumes where the last one ended.",
        .opts = opts,
        .max_args = 1,
        .example = "redoubt capture --keep-size 10gb redis://10.0.0.7 -o /var/lib/capture",
    };
    int status;
    peer_opts_init(&c->servers);
    if (cli_parse(c->cli, &usage, argc, argv, &status))
        status = start(c);
    peer_opts_done(&c->servers);
    return status;
}

int tool_capture(struct cli *cli, int argc, char **argv)
{
    struct capture c = {.cli = cli, .ack = CAPTURE_ACK_WRITTEN, .master = "mymaster"};
    const struct cli_opt opts[] = {
        {.name = "output",
         .letter = 'o',
         .kind = CLI_STRING,
         .arg = "DIR",
         .string = &c.out,
         .help = "the folder; an existing capture is resumed"},
        {.name = "ack",
         .kind = CLI_ENUM,
         .arg = "WHAT",
         .words = "received|written|synced",
         .choice = &c.ack,
         .help = "acknowledge received, written or synced data"},
        {.name = "duration",
         .kind = CLI_EACH,
         .arg = "TIME",
         .each = set_duration,
         .ctx = &c,
         .help = "stop T after the stream began: 90s, 2h30m"},
        {.name = "until-offset",
         .kind = CLI_EACH,
         .arg = "N",
         .each = set_until,
         .ctx = &c,
         .help = "stop at the command that reaches this offset"},
        {.name = "max-size", .kind = CLI_SIZE, .number = &c.max_size},
        {.name = "keep-size",
         .kind = CLI_SIZE,
         .arg = "SIZE",
         .number = &c.max_size,
         .help = "delete the oldest segments beyond this size"},
        {.name = "segment-size",
         .brief = true,
         .kind = CLI_SIZE,
         .arg = "SIZE",
         .number = &c.segment_size,
         .help = "size of a file; default 64mb"},
        {.name = "wait",
         .brief = true,
         .kind = CLI_FLAG,
         .flag = &c.wait,
         .help = "keep trying if the master cannot be reached at first"},
        {.name = "cluster",
         .kind = CLI_FLAG,
         .flag = &c.cluster,
         .help = "every master of the cluster, one folder each"},
        {.name = "sentinel",
         .kind = CLI_EACH,
         .arg = "HOST:PORT",
         .each = add_sentinel,
         .ctx = &c,
         .help = "ask this sentinel for the master; repeatable"},
        {.name = "master-name",
         .brief = true,
         .kind = CLI_STRING,
         .arg = "NAME",
         .string = &c.master,
         .help = "name of the master in Sentinel; default mymaster"},
        {.name = "master", .kind = CLI_STRING, .string = &c.master},
        {.name = "sentinel-pass-file",
         .brief = true,
         .kind = CLI_STRING,
         .arg = "FILE",
         .string = &c.sentinel_pass_file,
         .help = "read the sentinels' password from FILE"},
        {.name = "metrics-file",
         .brief = true,
         .kind = CLI_STRING,
         .arg = "FILE",
         .string = &c.report.metrics,
         .help = "write Prometheus metrics to FILE every second"},
        {.name = "metrics", .kind = CLI_STRING, .string = &c.report.metrics},
        {.name = "rdb-only",
         .kind = CLI_STRING,
         .arg = "FILE",
         .string = &c.rdb_only,
         .help = "fetch and verify the snapshot only; - is stdout"},
        {.name = "functions-only",
         .brief = true,
         .kind = CLI_FLAG,
         .flag = &c.functions_only,
         .help = "with --rdb-only: the functions only"},
        {.name = "replica-version",
         .brief = true,
         .kind = CLI_STRING,
         .arg = "X.Y.Z",
         .string = &c.replica_version,
         .help = "version reported to the master, which may choose the RDB version by it"},
        {.name = "force",
         .brief = true,
         .kind = CLI_FLAG,
         .flag = &c.force,
         .help = "replace FILE if it exists"},
        PEER_OPTIONS(&c.servers),
        {0},
    };
    return parse_and_start(&c, opts, argc, argv);
}
