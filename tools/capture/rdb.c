/* rdb.c - fetches the snapshot only: verifies it while writing, and renames it when it is complete
 * and sound.
 *
 * The check (rdb/check.h) reads a source. Here the source is the connection: each read of the check
 * receives bytes from the master and also writes them to the output.
 */
#include "tools/capture/priv.h"
#include "tools/input/spool.h"

#include <stdio.h>

struct download {
    struct capture *capture;
    struct peer_target target;
    struct peer *peer;
    struct repl_psync *psync;
    struct rd_sink *out;
    uint8_t *at, *end;     /* bytes of the peer that are not fed yet */
    struct rd_slice piece; /* of the snapshot, not returned yet */
    bool ended;
    uint64_t size;
    struct rdb_check_result res;
    char finding[RD_ERR_TEXT_MAX + 60]; /* the first error */
};

/* ---- the connection ---- */

static bool wait_for(const struct download *d, uint64_t limit_ms, bool more)
{
    struct pollfd p = {.fd = peer_fd(d->peer), .events = peer_events(d->peer, more)};
    return poll(&p, 1, limit_ms > 1000 ? 1000 : (int)limit_ms) >= 0;
}

static bool connect_to_master(struct download *d, struct rd_err *err)
{
    enum peer_status status;
    if (!peer_begin(&d->peer, &d->target, err)) {
        d->peer = NULL;
        return false;
    }
    while ((status = peer_connect(d->peer, err)) == PEER_WAIT) {
        int ms = peer_wait_ms(d->peer);
        wait_for(d, ms >= 0 ? (uint64_t)ms : 1000, false);
    }
    if (status != PEER_OK)
        return false;
    const struct repl_psync_opts opts = {.user = d->target.user,
                                         .password = d->target.password,
                                         .version = d->capture->replica_version,
                                         .rdb_only = true,
                                         .rdb_filter =
                                             d->capture->functions_only ? "functions" : NULL,
                                         .timeout_ms = 2 * d->capture->servers.timeout_ms};
    return repl_psync_new(&d->psync, &opts, err);
}

/* One step with the peer: sends or receives bytes, or waits. */
static bool carry(struct download *d, struct rd_err *err)
{
    uint64_t wait_ms = repl_psync_tick(d->psync, capture_now_ms());
    struct rd_slice out;
    size_t len = 0;
    while ((out = repl_psync_output(d->psync)).len > 0) {
        enum peer_status sent = peer_write_some(d->peer, out, &len, err);
        if (sent == PEER_FAIL)
            return false;
        if (sent == PEER_WAIT)
            break;
        repl_psync_sent(d->psync, len);
    }
    switch (peer_read_some(d->peer, d->capture->buf, CAPTURE_READ, &len, err)) {
    case PEER_OK:
        d->at = d->capture->buf;
        d->end = d->at + len;
        return true;
    case PEER_WAIT:
        wait_for(d, wait_ms, out.len > 0);
        return true;
    case PEER_END:
        repl_psync_cut(d->psync);
        return true;
    default:
        return false;
    }
}

static bool refused(const struct download *d, const struct repl_event *ev, struct rd_err *err)
{
    rd_err_adopt(err, ev->err);
    if (ev->class == REPL_UNSUPPORTED && err != NULL)
        err->code = RD_ERR_UNSUPPORTED;
    rd_err_origin(err, d->target.name);
    return false;
}

/* Continues up to the next piece of the snapshot, or its end. */
static bool next_piece(struct download *d, struct rd_err *err)
{
    while (d->piece.len == 0 && !d->ended) {
        struct repl_event ev;
        d->at += repl_psync_feed(d->psync, rd_slice(d->at, (size_t)(d->end - d->at)));
        switch (repl_psync_next(d->psync, &ev)) {
        case REPL_MORE:
            if (d->at == d->end && !carry(d, err))
                return false;
            break;
        case REPL_PAYLOAD:
            d->piece = ev.bytes;
            d->size += ev.bytes.len;
            break;
        case REPL_PAYLOAD_BEGIN:
            cli_progress_begin(d->capture->cli, d->target.name,
                               ev.payload.by_mark ? RD_NO_OFFSET : ev.payload.len);
            break;
        case REPL_PAYLOAD_END:
        case REPL_END:
            d->ended = true;
            break;
        case REPL_ERROR:
            return refused(d, &ev, err);
        default:
            break;
        }
    }
    return true;
}

static enum rd_src_status download_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                        struct rd_err *err)
{
    struct download *d = impl;
    size_t len = 0;
    while (len < cap) {
        if (d->piece.len == 0 && !d->ended && !next_piece(d, err))
            return RD_SRC_FAIL;
        if (d->piece.len == 0)
            break;
        size_t n = d->piece.len < cap - len ? d->piece.len : cap - len;
        memcpy(buf + len, d->piece.ptr, n);
        d->piece = rd_slice(d->piece.ptr + n, d->piece.len - n);
        len += n;
    }
    if (len > 0 && !rd_sink_write(d->out, buf, len)) {
        rd_err_adopt(err, rd_sink_err(d->out));
        return RD_SRC_FAIL;
    }
    cli_progress_at(d->capture->cli, d->size);
    *ret_len = len;
    return len > 0 ? RD_SRC_OK : RD_SRC_END;
}

static const struct rd_src_ops download_ops = {.read = download_read};

/* ---- the check ---- */

static void on_finding(void *ctx, const struct rdb_finding *finding)
{
    struct download *d = ctx;
    if (finding->severity != RDB_SEVERITY_ERROR || d->finding[0] != '\0')
        return;
    snprintf(d->finding, sizeof d->finding, "byte %" PRIu64 ": %s", finding->offset, finding->text);
}

static bool judge(struct download *d, struct rd_err *err)
{
    const struct rdb_check_result *res = &d->res;
    if (res->damaged)
        rd_err_adopt(err, &res->err);
    else if (res->trailing > 0)
        rd_err_set(err, RD_ERR_CORRUPT, res->end, "there are bytes after the end of the snapshot");
    else if (res->sum == RDB_SUM_BAD)
        rd_err_set(err, RD_ERR_CHECKSUM, res->end, "checksum mismatch in the snapshot");
    else if (res->errors > 0)
        rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "%s", d->finding);
    else
        return true;
    rd_err_origin(err, d->target.name);
    return false;
}

static bool check(struct download *d, struct rd_err *err)
{
    const struct rd_src_opts src_opts = {.origin = d->target.name};
    struct spool keys = {0};
    struct rdb_spool for_keys = spool_for_keys(&keys);
    struct rdb_check_opts opts = {.finding = on_finding, .ctx = d, .spool = &for_keys};
    struct rd_src *src;
    cli_seed(opts.seed);
    if (!rd_src_new(&src, &download_ops, d, &src_opts, err))
        return false;
    bool ok = rdb_check(src, &opts, &d->res, err) && judge(d, err);
    rd_src_close(src);
    spool_done(&keys);
    return ok;
}

/* ---- the tool ---- */

static bool find_target(struct download *d, struct rd_err *err)
{
    struct capture *c = d->capture;
    if (c->n_sentinels > 0)
        return capture_hosts_find_master(c, &d->target, err);
    d->target = c->target;
    c->target.user = c->target.password = NULL;
    return true;
}

static bool work(struct download *d, struct rd_err *err)
{
    struct capture *c = d->capture;
    bool ok = find_target(d, err) && connect_to_master(d, err);
    if (!ok) {
        capture_hint(c, err);
        return false;
    }
    if (!cli_open_out(c->cli, c->rdb_only, c->force, true, &d->out, err))
        return false;
    ok = check(d, err);
    cli_progress_end(c->cli);
    struct rd_sink *out = d->out;
    d->out = NULL;
    if (ok)
        return rd_sink_close(out, err);
    rd_sink_abort(out);
    if (!d->res.damaged)
        capture_hint(c, err);
    return false;
}

static void print_summary(const struct download *d)
{
    struct cli *cli = d->capture->cli;
    const char *name = d->capture->rdb_only;
    uint64_t keys = d->res.keys, functions = d->res.functions;
    if (cli->json) {
        cli_json_put_str(&cli->out, "target", d->target.name);
        cli_json_put_str(&cli->out, "file", name);
        cli_json_put_uint(&cli->out, "bytes", d->size);
        cli_json_put_uint(&cli->out, "keys", keys);
        cli_json_put_uint(&cli->out, "functions", functions);
        cli_json_put_bool(&cli->out, "verified", true);
    } else if (strcmp(name, "-") != 0 && !cli->quiet) {
        printf("%s: %s, %s key%s, %s librar%s, verified\n", name, cli_bytes(d->size).s,
               cli_count(keys).s, cli_plural(keys), cli_count(functions).s,
               functions == 1 ? "y" : "ies");
    }
}

int capture_rdb(struct capture *capture)
{
    struct download d = {.capture = capture, .at = capture->buf, .end = capture->buf};
    struct rd_err err = {0};
    bool ok = work(&d, &err);
    repl_psync_free(d.psync);
    peer_close(d.peer);
    if (ok)
        print_summary(&d);
    peer_target_done(&d.target);
    return ok ? CLI_OK : cli_fail(capture->cli, &err);
}
