#include "capture/download.h"

#include <poll.h>

#include "base/mem.h"
#include "capture/clock.h"
#include "rdb/version.h"

static bool wait_for(const struct capture_download *d, uint64_t limit_ms, bool more)
{
    struct pollfd p = {.fd = client_peer_fd(d->peer), .events = client_peer_events(d->peer, more)};
    return poll(&p, 1, limit_ms > 1000 ? 1000 : (int)limit_ms) >= 0;
}

static bool connect_to_master(struct capture_download *d, struct rd_err *err)
{
    enum client_status status;
    if (!client_peer_begin(&d->peer, d->target, err)) {
        d->peer = NULL;
        return false;
    }
    while ((status = client_peer_connect(d->peer, err)) == CLIENT_WAIT) {
        int ms = client_peer_wait_ms(d->peer);
        wait_for(d, ms >= 0 ? (uint64_t)ms : 1000, false);
    }
    if (status != CLIENT_OK)
        return false;
    const char *version = d->replica_version != NULL ? d->replica_version : RDB_REPLICA_VERSION;
    const struct repl_psync_opts opts =
        REPL_PSYNC_OPTS(.user = d->target->user, .password = d->target->password,
                        .version = version, .rdb_only = true, .rdb_filter = d->rdb_filter,
                        .timeout_ms = 2 * d->target->opts->timeout_ms);
    return repl_psync_new(&d->psync, &opts, err);
}

/* One step with the peer: something was sent or read, or time has passed. */
static bool carry(struct capture_download *d, struct rd_err *err)
{
    uint64_t wait_ms = repl_psync_tick(d->psync, capture_now_ms());
    struct rd_slice out;
    size_t len = 0;
    while ((out = repl_psync_output(d->psync)).len > 0) {
        enum client_status sent = client_peer_write_some(d->peer, out, &len, err);
        if (sent == CLIENT_FAIL)
            return false;
        if (sent == CLIENT_WAIT)
            break;
        repl_psync_sent(d->psync, len);
    }
    switch (client_peer_read_some(d->peer, d->buf, CAPTURE_DOWNLOAD_READ, &len, err)) {
    case CLIENT_OK:
        d->at = d->buf;
        d->end = d->at + len;
        return true;
    case CLIENT_WAIT:
        wait_for(d, wait_ms, out.len > 0);
        return true;
    case CLIENT_END:
        repl_psync_cut(d->psync);
        return true;
    default:
        return false;
    }
}

static bool refused(const struct capture_download *d, const struct repl_event *ev,
                    struct rd_err *err)
{
    rd_err_adopt(err, ev->err);
    if (ev->error_class == REPL_UNSUPPORTED && err != NULL)
        err->code = RD_ERR_UNSUPPORTED;
    rd_err_origin(err, d->target->name);
    return false;
}

/* Up to the next piece of the snapshot, or its end. */
static bool next_piece(struct capture_download *d, struct rd_err *err)
{
    while (d->piece.len == 0 && !d->ended) {
        struct repl_event ev;
        if (rd_watch_cancelled(d->watch))
            return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "stopped");
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
        case REPL_FULL:
            d->replid = ev.replid;
            d->offset = ev.offset;
            break;
        case REPL_PAYLOAD_BEGIN:
            rd_watch_begin(d->watch, d->target->name,
                           ev.payload.by_mark ? RD_NO_OFFSET : ev.payload.len, NULL);
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
    struct capture_download *d = impl;
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
    if (len > 0 && d->copy != NULL && !rd_sink_write(d->copy, buf, len)) {
        rd_err_adopt(err, rd_sink_err(d->copy));
        return RD_SRC_FAIL;
    }
    if (d->digest != NULL && !rd_digest_update(d->digest, buf, len, err))
        return RD_SRC_FAIL;
    rd_watch_at(d->watch, d->size);
    *ret_len = len;
    return len > 0 ? RD_SRC_OK : RD_SRC_END;
}

static const struct rd_src_ops download_ops = {.read = download_read};

bool capture_download_source(struct capture_download *d, struct rd_src **ret, struct rd_err *err)
{
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = d->target->name);
    return rd_src_new(ret, &download_ops, d, &opts, err);
}

bool capture_download_begin(struct capture_download *d, struct rd_err *err)
{
    d->buf = rd_alloc(CAPTURE_DOWNLOAD_READ);
    if (d->buf == NULL)
        return rd_err_nomem(err, CAPTURE_DOWNLOAD_READ);
    d->at = d->end = d->buf;
    return connect_to_master(d, err);
}

void capture_download_end(struct capture_download *d)
{
    repl_psync_free(d->psync);
    client_peer_close(d->peer);
    rd_free(d->buf);
    d->psync = NULL;
    d->peer = NULL;
    d->buf = NULL;
}
