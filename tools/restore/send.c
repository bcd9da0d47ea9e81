/* send.c - sends a set or a moment to a running server. */
#include "tools/replay/priv.h"
#include "tools/restore/priv.h"

static bool send_to(struct restore *run, struct replay *replay, struct rd_src *src,
                    struct rd_err *err)
{
    bool ok = client_peer_open(&replay->peer, &replay->target, err) &&
              replay_sender_init(&replay->sender, replay->peer, replay->window, err) &&
              replay_make_room(replay, err) && replay_source(replay, src, &run->filter, 0, err);
    run->keys = replay->result.keys;
    if (!ok && err != NULL && err->code == RD_ERR_USAGE)
        cli_hint(run->cli, "--force replaces existing keys");
    if (ok && replay->sender.n_errors > 0) {
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                   "the server refused %llu of %llu commands: %s",
                   (unsigned long long)replay->sender.n_errors,
                   (unsigned long long)replay->sender.n_sent, replay->sender.errors[0].text);
        rd_err_origin(err, replay->target.name);
        ok = false;
    }
    replay_sender_done(&replay->sender);
    client_peer_close(replay->peer);
    return ok;
}

/* The snapshot is complete before the first key is sent. */
bool restore_send(struct restore *run, struct rd_err *err)
{
    struct replay replay = {.cli = run->cli,
                            .replace = run->force,
                            .expiry = REPLAY_RECORDED,
                            .least_shift_ms = INT64_MAX,
                            .window = REPLAY_WINDOW};
    struct spool spool = {0};
    struct rd_src *src;
    peer_opts_init(&replay.servers);
    bool ok = peer_target_find(&replay.target, &replay.servers, run->to, err) &&
              restore_spool(run, &run->set->m.files[0], &spool, err) &&
              spool_source(&spool, replay.target.name, &src, err);
    if (ok) {
        ok = send_to(run, &replay, src, err);
        rd_src_close(src);
    }
    spool_done(&spool);
    client_target_done(&replay.target);
    peer_opts_done(&replay.servers);
    run->nothing = ok && run->keys == 0 && filter_active(&run->filter);
    return ok;
}
