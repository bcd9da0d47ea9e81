/* CLUSTER INFO, NODES and REPLICAS. */
#include <inttypes.h>

#include "server/session/client/client.h"
#include "server/surface/node/node_impl.h"

/* ---- INFO ---- */

static void put_num(struct rd_buf *out, const char *name, uint64_t value)
{
    rd_buf_printf(out, "%s:%" PRIu64 "\r\n", name, value);
}

static void put_slots(const struct cluster *c, struct rd_buf *out)
{
    uint64_t assigned = 0, maybe = 0, failed = 0;
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        const struct cluster_node *owner = cluster_owner(c, slot);
        if (owner == NULL)
            continue;
        assigned++;
        if ((owner->flags & CLUSTER_BUS_FAILED) != 0)
            failed++;
        else if ((owner->flags & CLUSTER_BUS_MAYBE_FAILED) != 0)
            maybe++;
    }
    put_num(out, "cluster_slots_assigned", assigned);
    put_num(out, "cluster_slots_ok", assigned - maybe - failed);
    put_num(out, "cluster_slots_pfail", maybe);
    put_num(out, "cluster_slots_fail", failed);
}

static void put_messages(const uint64_t counts[CLUSTER_N_MESSAGES], const char *word,
                         struct rd_buf *out)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < CLUSTER_N_MESSAGES; i++) {
        sum += counts[i];
        if (counts[i] > 0)
            rd_buf_printf(out, "cluster_stats_messages_%s_%s:%" PRIu64 "\r\n",
                          cluster_message_word((enum cluster_message_type)i), word, counts[i]);
    }
    rd_buf_printf(out, "cluster_stats_messages_%s:%" PRIu64 "\r\n", word, sum);
}

static void reply_text(struct dispatch_call *call, struct rd_buf *text)
{
    engine_reply_verbatim(call->reply, rd_buf_slice(text), "txt");
    rd_buf_done(text);
}

void node_sub_info(struct dispatch_call *call)
{
    const struct node *n = node_of(call);
    const struct cluster *c = n->cluster;
    const struct cluster_node *me = cluster_myself(c);
    struct rd_buf out = {0};
    rd_buf_printf(&out, "cluster_state:%s\r\n", cluster_is_ok(c) ? "ok" : "fail");
    put_slots(c, &out);
    put_num(&out, "cluster_known_nodes", cluster_count(c));
    put_num(&out, "cluster_size", cluster_size(c));
    put_num(&out, "cluster_current_epoch", cluster_current_epoch(c));
    put_num(&out, "cluster_my_epoch", me->master != NULL ? me->master->epoch : me->epoch);
    put_messages(cluster_stats(c)->sent, "sent", &out);
    put_messages(cluster_stats(c)->received, "received", &out);
    put_num(&out, "total_cluster_links_buffer_limit_exceeded", n->n_over_limit);
    reply_text(call, &out);
}

/* ---- NODES ---- */

static void put_flags(const struct cluster_node *node, struct rd_buf *out)
{
    static const struct {
        unsigned flag;
        const char *word;
    } words[] = {{CLUSTER_BUS_MYSELF, "myself"},     {CLUSTER_BUS_MASTER, "master"},
                 {CLUSTER_BUS_REPLICA, "slave"},     {CLUSTER_BUS_MAYBE_FAILED, "fail?"},
                 {CLUSTER_BUS_FAILED, "fail"},       {CLUSTER_BUS_HANDSHAKE, "handshake"},
                 {CLUSTER_BUS_NO_ADDRESS, "noaddr"}, {CLUSTER_BUS_NO_FAILOVER, "nofailover"}};
    const char *before = "";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if ((node->flags & words[i].flag) == 0)
            continue;
        rd_buf_printf(out, "%s%s", before, words[i].word);
        before = ",";
    }
    if (before[0] == 0)
        rd_buf_printf(out, "noflags");
}

static void put_own_slots(const struct cluster *c, const struct cluster_node *node,
                          struct rd_buf *out)
{
    unsigned first, last;
    for (unsigned at = 0; cluster_slots_next_range(&node->slots, at, &first, &last); at = last + 1)
        rd_buf_printf(out, first == last ? " %u" : " %u-%u", first, last);
    for (unsigned slot = 0; node == cluster_myself(c) && slot < RD_HASH_SLOTS; slot++) {
        const struct cluster_node *to = cluster_migrating(c, slot);
        const struct cluster_node *from = cluster_importing(c, slot);
        if (to != NULL)
            rd_buf_printf(out, " [%u->-%s]", slot, to->id.s);
        else if (from != NULL)
            rd_buf_printf(out, " [%u-<-%s]", slot, from->id.s);
    }
}

static void put_node(const struct dispatch_call *call, const struct cluster_node *node,
                     struct rd_buf *out)
{
    const struct node *n = node_of(call);
    bool linked = node->link != NULL || node == cluster_myself(n->cluster);
    rd_buf_printf(out, "%s %s:%u@%u", node->id.s, node->host, node_port(n, call->c, node),
                  node->bus_port);
    if (node->hostname[0] != 0)
        rd_buf_printf(out, ",%s", node->hostname);
    rd_buf_add_byte(out, ' ');
    put_flags(node, out);
    rd_buf_printf(out, " %s %" PRId64 " %" PRId64 " %" PRIu64 " %s",
                  node->master != NULL ? node->master->id.s : "-", node->ping_ms, node->pong_ms,
                  node->master != NULL ? node->master->epoch : node->epoch,
                  linked ? "connected" : "disconnected");
    put_own_slots(n->cluster, node, out);
}

void node_sub_nodes(struct dispatch_call *call)
{
    const struct cluster *c = node_of(call)->cluster;
    struct rd_buf out = {0};
    for (size_t i = 0; i < cluster_count(c); i++) {
        put_node(call, cluster_at(c, i), &out);
        rd_buf_add_byte(&out, '\n');
    }
    reply_text(call, &out);
}

void node_sub_replicas(struct dispatch_call *call)
{
    const struct cluster *c = node_of(call)->cluster;
    const struct cluster_node *master = node_arg(call, call->argv[2]);
    uint64_t n = 0;
    if (master == NULL)
        return;
    if ((master->flags & CLUSTER_BUS_MASTER) == 0) {
        engine_reply_error(call->reply, "ERR The specified node is not a master");
        return;
    }
    size_t mark = engine_reply_mark(call->reply);
    for (size_t i = 0; i < cluster_count(c); i++) {
        struct rd_buf line = {0};
        if (cluster_at(c, i)->master != master)
            continue;
        put_node(call, cluster_at(c, i), &line);
        engine_reply_bulk(call->reply, rd_buf_slice(&line));
        rd_buf_done(&line);
        n++;
    }
    engine_reply_mark_array(call->reply, mark, n);
}
