/* What nodes say of third nodes, and of themselves beyond the header. */
#include <stdio.h>

#include "cluster/cluster_impl.h"

enum { GOSSIP_MIN = 3, GOSSIP_SHARE = 10, GOSSIP_FUTURE_MS = 500 };

/* ---- what this node says ---- */

static bool add(struct cluster *c, const struct cluster_node *n, struct cluster_words *ret)
{
    struct cluster_gossip entry = {.id = n->id,
                                   .ping_s = (uint32_t)(n->ping_ms / 1000),
                                   .pong_s = (uint32_t)(n->pong_ms / 1000),
                                   .port = n->port,
                                   .plain_port = n->plain_port,
                                   .bus_port = n->bus_port,
                                   .flags = n->flags};
    snprintf(entry.address, sizeof entry.address, "%s", n->host);
    bool ok = cluster_gossip_add(&ret->gossip, &entry);
    c->no_memory |= !ok;
    ret->n_gossip = (uint16_t)(ret->n_gossip + ok);
    return ok;
}

static bool is_told(const struct cluster_node *n)
{
    return !cluster_is(n, CLUSTER_BUS_HANDSHAKE | CLUSTER_BUS_NO_ADDRESS | CLUSTER_BUS_MYSELF) &&
           n->host[0] != 0;
}

/* A random node that can be told in general; those that may have failed are told anyway. */
static bool is_news(const struct cluster_node *n)
{
    return is_told(n) && !cluster_is(n, CLUSTER_BUS_MAYBE_FAILED) && (n->linked || n->n_slots > 0);
}

static void add_failing(struct cluster *c, struct cluster_words *ret)
{
    for (size_t i = 0; i < c->n_nodes && ret->n_gossip < UINT16_MAX; i++) {
        if (is_told(c->nodes[i]) && cluster_is(c->nodes[i], CLUSTER_BUS_MAYBE_FAILED))
            add(c, c->nodes[i], ret);
    }
}

/* A tenth of the nodes, at least three, from a random place of the table on. */
void cluster_gossip_choose(struct cluster *c, const struct cluster_link *link,
                           struct cluster_words *ret)
{
    size_t wanted = c->n_nodes / GOSSIP_SHARE, at = (size_t)cluster_random(c, c->n_nodes);
    wanted = wanted < GOSSIP_MIN ? GOSSIP_MIN : wanted;
    for (size_t i = 0; i < c->n_nodes && ret->n_gossip < wanted; i++) {
        const struct cluster_node *n = c->nodes[(at + i) % c->n_nodes];
        if (n != link->node && is_news(n))
            add(c, n, ret);
    }
    add_failing(c, ret);
}

static void add_extension(struct cluster *c, struct cluster_words *ret,
                          const struct cluster_extension *e)
{
    bool ok = cluster_extension_add(&ret->extensions, e);
    c->no_memory |= !ok;
    ret->n_extensions = (uint16_t)(ret->n_extensions + ok);
}

/* Servers 7.0 read hostnames, but say so only if they have one themselves. */
void cluster_extensions_choose(struct cluster *c, const struct cluster_link *link,
                               struct cluster_words *ret)
{
    const struct cluster_node *me = c->myself;
    if (me->hostname[0] != 0)
        add_extension(c, ret,
                      &(struct cluster_extension){.type = CLUSTER_EXTENSION_HOSTNAME,
                                                  .content = rd_slice_str(me->hostname)});
    if (!link->reads_extensions)
        return;
    if (me->human_name[0] != 0)
        add_extension(c, ret,
                      &(struct cluster_extension){.type = CLUSTER_EXTENSION_HUMAN_NAME,
                                                  .content = rd_slice_str(me->human_name)});
    for (size_t i = 0; i < c->n_forgotten; i++) {
        const struct cluster_forgotten *f = &c->forgotten[i];
        if (f->told && f->until_ms >= c->now_ms + 1000)
            add_extension(
                c, ret,
                &(struct cluster_extension){.type = CLUSTER_EXTENSION_FORGOTTEN,
                                            .id = f->id,
                                            .seconds = (uint64_t)(f->until_ms - c->now_ms) / 1000});
    }
    add_extension(c, ret,
                  &(struct cluster_extension){.type = CLUSTER_EXTENSION_SHARD, .id = me->shard});
}

/* ---- what others say ---- */

static void note_failure(struct cluster *c, struct cluster_node *sender, struct cluster_node *n,
                         unsigned flags)
{
    if (!cluster_votes(sender) || n == c->myself)
        return;
    if ((flags & CLUSTER_FAILING) == 0) {
        cluster_unreport(n, sender);
        return;
    }
    cluster_report(c, n, sender);
    cluster_judge(c, n);
}

/* An answer that another node got is as good as one of its own. */
static void note_pong(struct cluster *c, struct cluster_node *n, const struct cluster_gossip *g)
{
    int64_t pong_ms = (int64_t)g->pong_s * 1000;
    if ((g->flags & CLUSTER_FAILING) == 0 && n->ping_ms == 0 && n->n_reports == 0 &&
        pong_ms > n->pong_ms && pong_ms <= c->now_ms + GOSSIP_FUTURE_MS)
        n->pong_ms = pong_ms;
}

/* A node that this one cannot reach, and another one can, may have moved. */
static void note_address(struct cluster *c, struct cluster_node *n, const struct cluster_gossip *g)
{
    bool same =
        strcmp(n->host, g->address) == 0 && n->port == g->port && n->bus_port == g->bus_port;
    if (n == c->myself || same || !cluster_is(n, CLUSTER_FAILING) || g->address[0] == 0 ||
        (g->flags & (CLUSTER_FAILING | CLUSTER_BUS_NO_ADDRESS)) != 0)
        return;
    cluster_link_close(c, n);
    cluster_node_set_address(n, g->address, g->port, g->plain_port, g->bus_port);
    n->flags &= ~(unsigned)CLUSTER_BUS_NO_ADDRESS;
    cluster_save_synced(c);
    if (n == c->myself->master)
        cluster_refollow(c);
}

static void meet_unknown(struct cluster *c, const struct cluster_gossip *g)
{
    const unsigned roles = CLUSTER_BUS_MASTER | CLUSTER_BUS_REPLICA;
    struct cluster_node *n;
    if ((g->flags & (CLUSTER_BUS_NO_ADDRESS | CLUSTER_BUS_HANDSHAKE)) != 0 || g->address[0] == 0 ||
        g->port == 0 || g->bus_port == 0 || cluster_is_banned(c, &g->id))
        return;
    n = cluster_node_add(c, &g->id, g->flags & roles ? g->flags & roles : CLUSTER_BUS_MASTER);
    if (n == NULL)
        return;
    if ((n->flags & roles) == roles)
        n->flags &= ~(unsigned)CLUSTER_BUS_REPLICA;
    cluster_node_set_address(n, g->address, g->port, g->plain_port, g->bus_port);
    cluster_save_synced(c);
}

void cluster_on_gossip(struct cluster *c, struct cluster_node *sender,
                       const struct cluster_message *m)
{
    struct cluster_gossip g;
    for (size_t i = 0; i < m->n_gossip; i++) {
        cluster_gossip_at(m, i, &g);
        struct cluster_node *n = cluster_node_find(c, &g.id);
        if (n == NULL) {
            meet_unknown(c, &g);
        } else if (n != c->myself) {
            note_failure(c, sender, n, g.flags);
            note_pong(c, n, &g);
            note_address(c, n, &g);
        }
    }
}

/* ---- extensions ---- */

static void forget_told(struct cluster *c, struct cluster_node *sender,
                        const struct cluster_extension *e)
{
    struct cluster_node *n = cluster_node_find(c, &e->id);
    int64_t ms = e->seconds > 86400 ? 86400000 : (int64_t)e->seconds * 1000;
    if (n == NULL || n == sender || n == c->myself || n == c->myself->master)
        return;
    cluster_ban(c, &e->id, ms, false);
    cluster_node_remove(c, n);
    cluster_save_synced(c);
}

/* Texts that are not sent are empty. A node without extensions that it must send, such as one of
 * version 7.0, says so of its hostname by a message that has none. */
void cluster_on_extensions(struct cluster *c, struct cluster_node *sender,
                           const struct cluster_message *m)
{
    struct cluster_extension e;
    bool any = (m->message_flags[0] & CLUSTER_MESSAGE_HAS_EXTENSIONS) != 0 && m->n_extensions > 0;
    struct rd_slice hostname = rd_slice(NULL, 0), human_name = hostname;
    size_t at = 0;
    while (any && cluster_extension_next(m, &at, &e)) {
        if (e.type == CLUSTER_EXTENSION_HOSTNAME)
            hostname = e.content;
        else if (e.type == CLUSTER_EXTENSION_HUMAN_NAME)
            human_name = e.content;
        else if (e.type == CLUSTER_EXTENSION_SHARD)
            sender->shard = e.id;
        else if (e.type == CLUSTER_EXTENSION_FORGOTTEN)
            forget_told(c, sender, &e);
    }
    if (!rd_slice_is(hostname, sender->hostname) ||
        (any && !rd_slice_is(human_name, sender->human_name)))
        cluster_save_synced(c);
    cluster_set_text(sender->hostname, hostname);
    if (any)
        cluster_set_text(sender->human_name, human_name);
}
