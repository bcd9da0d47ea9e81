/* hosts.c - finds the masters: from the command line, from sentinels, all of a cluster, or that of
 * one shard.
 */
#include "capture/hosts.h"

#include <poll.h>

#include "base/mem.h"
#include "capture/capture.h"
#include "capture/topology.h"

enum { WATCH_MS = 10000, HURRY_MS = 1000, PATIENCE_MS = 3000 };

/* ---- sentinels ---- */

static void ask_sentinels(void *arg)
{
    struct capture *c = arg;
    struct capture_watch *w = &c->watch;
    w->ok = client_topology_find_master(&w->master, c->sentinels, c->n_sentinels, c->master,
                                        &w->target, &w->err);
}

/* ---- a cluster ---- */

/* Asks the members in turn until one answers. */
static void ask_cluster(void *arg)
{
    struct capture *c = arg;
    struct capture_watch *w = &c->watch;
    for (size_t i = 0; i <= w->n_seeds && !w->ok; i++) {
        const struct client_target *seed = i < w->n_seeds ? &w->seeds[i] : &w->target;
        struct client_peer *peer;
        rd_err_reset(&w->err);
        if (!client_peer_open(&peer, seed, &w->err))
            continue;
        w->ok = client_topology_read(&w->cluster, peer, &w->err);
        rd_err_origin(&w->err, seed->name);
        client_peer_close(peer);
    }
}

static void drop_seeds(struct capture_watch *w)
{
    for (size_t i = 0; i < w->n_seeds; i++)
        client_target_done(&w->seeds[i]);
    rd_free(w->seeds);
    w->seeds = NULL;
    w->n_seeds = 0;
}

/* Makes copies, because the links may change in the meantime. */
static bool collect_seeds(struct capture *c, struct rd_err *err)
{
    struct capture_watch *w = &c->watch;
    drop_seeds(w);
    if (c->n_links == 0)
        return true;
    w->seeds = rd_calloc(c->n_links, sizeof *w->seeds);
    if (w->seeds == NULL)
        return rd_err_nomem(err, c->n_links * sizeof *w->seeds);
    for (size_t i = 0; i < c->n_links; i++) {
        const struct client_target *t = &c->links[i]->target;
        if (!client_target_at(&w->seeds[w->n_seeds], &w->target, rd_slice_str(t->host), t->port,
                              err))
            return false;
        w->n_seeds++;
    }
    return true;
}

/* ---- queries ---- */

static bool is_of_shard(const struct capture *c)
{
    return c->shard.file != NULL && !c->shard.off && !c->cluster && c->n_sentinels == 0 &&
           c->target.socket[0] == '\0';
}

static bool is_watched(const struct capture *c)
{
    return c->cluster || c->n_sentinels > 0 || is_of_shard(c);
}

static bool ask(struct capture *c, struct rd_err *err)
{
    struct capture_watch *w = &c->watch;
    w->ok = false;
    rd_err_reset(&w->err);
    if (c->cluster && !collect_seeds(c, err))
        return false;
    if (is_of_shard(c)) {
        drop_seeds(w);
        if (!capture_shard_seeds(c, err))
            return false;
    }
    capture_job_start(&w->job,
                      c->cluster       ? ask_cluster
                      : is_of_shard(c) ? capture_shard_ask
                                       : ask_sentinels,
                      c);
    return true;
}

/* The target with a shorter timeout: the query is repeated. */
static bool begin_watch(struct capture *c, struct rd_err *err)
{
    struct capture_watch *w = &c->watch;
    const struct client_target *t = &c->target;
    const char *host = t->socket[0] != '\0' ? "127.0.0.1" : t->host;
    uint64_t port = t->socket[0] != '\0' ? CLIENT_PORT : t->port;
    capture_job_init(&w->job);
    w->opts = *t->opts;
    if (w->opts.timeout_ms == 0 || w->opts.timeout_ms > PATIENCE_MS)
        w->opts.timeout_ms = PATIENCE_MS;
    if (!client_target_at(&w->target, t, rd_slice_str(host), port, err))
        return false;
    for (size_t i = 0; i < c->n_sentinels; i++)
        c->sentinels[i].opts = &w->opts;
    memcpy(w->target.socket, t->socket, sizeof t->socket);
    memcpy(w->target.name, t->name, sizeof t->name);
    w->target.opts = &w->opts;
    return true;
}

static bool copy_target(struct client_target *ret, const struct capture *c, const char *host,
                        uint64_t port, struct rd_err *err)
{
    return client_target_at(ret, &c->target, rd_slice_str(host), port, err);
}

/* ---- results ---- */

static bool follow_master(struct capture *c, uint64_t now_ms, struct rd_err *err)
{
    struct capture_watch *w = &c->watch;
    struct capture_link *link = c->n_links > 0 ? c->links[0] : NULL;
    struct client_target target;
    const struct client_target *at = link != NULL ? &link->target : NULL;
    bool same = at != NULL && at->port == w->master.port && strcmp(at->host, w->master.host) == 0;
    bool ok = same || copy_target(&target, c, w->master.host, w->master.port, err);
    client_target_done(&w->master);
    if (same || !ok)
        return ok;
    if (link == NULL)
        return capture_add_link(c, &target, "", &link, err);
    capture_link_move(link, &target, now_ms);
    return true;
}

static bool apply(struct capture *c, uint64_t now_ms, struct rd_err *err)
{
    struct capture_watch *w = &c->watch;
    if (c->n_sentinels > 0)
        return follow_master(c, now_ms, err);
    bool ok = is_of_shard(c) ? capture_shard_apply(c, now_ms, err)
                             : capture_topology_apply(c, &w->cluster, now_ms, err);
    client_topology_done(&w->cluster);
    return ok;
}

/* The server may be away: what its shard is, is asked meanwhile. */
static bool begin_shard(struct capture *c, struct rd_err *err)
{
    struct capture_link *link;
    struct client_target target;
    c->watch.next_ms = capture_now_ms();
    return capture_shard_load(c, err) &&
           copy_target(&target, c, c->target.host, c->target.port, err) &&
           capture_add_link(c, &target, "", &link, err);
}

bool capture_hosts_begin(struct capture *c, struct rd_err *err)
{
    struct capture_watch *w = &c->watch;
    struct capture_link *link;
    if (!is_watched(c)) {
        struct client_target target = c->target;
        c->target.user = c->target.password = NULL; /* owned by the link now */
        return capture_add_link(c, &target, "", &link, err);
    }
    if (!begin_watch(c, err))
        return false;
    if (is_of_shard(c))
        return begin_shard(c, err);
    if ((c->cluster && !capture_topology_load(c, err)) || !ask(c, err))
        return false;
    while (!capture_job_ended(&w->job))
        poll(NULL, 0, 5);
    w->next_ms = capture_now_ms() + WATCH_MS;
    if (w->ok)
        return apply(c, capture_now_ms(), err);
    rd_err_adopt(err, &w->err);
    return false;
}

bool capture_hosts_find_master(struct capture *c, struct client_target *ret, struct rd_err *err)
{
    struct capture_watch *w = &c->watch;
    struct client_target master;
    if (!begin_watch(c, err) || !client_topology_find_master(&master, c->sentinels, c->n_sentinels,
                                                             c->master, &w->target, err))
        return false;
    bool ok = copy_target(ret, c, master.host, master.port, err);
    client_target_done(&master);
    capture_hosts_end(c);
    return ok;
}

static bool is_unsettled(const struct capture_link *link)
{
    return link->state == CAPTURE_WAITING || (link->doubted_ms != 0 && link->state != CAPTURE_DONE);
}

bool capture_hosts_tick(struct capture *c, uint64_t now_ms, uint64_t *ret_wait_ms,
                        struct rd_err *err)
{
    struct capture_watch *w = &c->watch;
    if (!is_watched(c))
        return true;
    if (capture_job_ended(&w->job)) {
        w->next_ms = now_ms + (w->ok ? WATCH_MS : HURRY_MS);
        if (w->ok && !apply(c, now_ms, err))
            return false;
        if (!w->ok && is_of_shard(c))
            capture_shard_failed(c);
        for (size_t i = 0; i < c->n_links; i++)
            if (is_unsettled(c->links[i]))
                w->next_ms = now_ms + HURRY_MS;
    }
    if (!w->job.busy && now_ms >= w->next_ms && !ask(c, err))
        return false;
    capture_sooner(ret_wait_ms, w->job.busy ? 50 : w->next_ms - now_ms);
    return true;
}

void capture_hosts_hurry(struct capture *c, uint64_t now_ms)
{
    if (c->watch.next_ms > now_ms)
        c->watch.next_ms = now_ms;
}

void capture_hosts_end(struct capture *c)
{
    struct capture_watch *w = &c->watch;
    capture_job_free(&w->job);
    drop_seeds(w);
    client_target_done(&w->target);
    client_target_done(&w->master);
    client_topology_done(&w->cluster);
    capture_shard_done(c);
}
