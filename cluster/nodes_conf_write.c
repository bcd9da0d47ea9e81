#include "cluster/nodes_conf_impl.h"

#include <inttypes.h>

/* "myself,master" */
static bool put_flags(const struct cluster_conf_node *node, struct rd_buf *text)
{
    const char *before = "";
    bool ok = true;
    for (size_t i = 0; i < CLUSTER_N_FLAGS; i++) {
        if ((node->flags & cluster_flag_words[i].flag) == 0)
            continue;
        ok = ok && rd_buf_printf(text, "%s%s", before, cluster_flag_words[i].word);
        before = ",";
    }
    return before[0] != '\0' ? ok : rd_buf_printf(text, "noflags");
}

static bool put_slots(const struct cluster_conf_node *node, struct rd_buf *text)
{
    unsigned first, last;
    bool ok = true;
    for (unsigned at = 0; ok && cluster_slots_next_range(&node->slots, at, &first, &last);
         at = last + 1) {
        ok = first == last ? rd_buf_printf(text, " %u", first)
                           : rd_buf_printf(text, " %u-%u", first, last);
    }
    for (size_t i = 0; ok && i < node->n_moves; i++) {
        const struct cluster_move *move = &node->moves[i];
        ok = rd_buf_printf(text, " [%u-%s-%s]", move->slot, move->importing ? "<" : ">",
                           move->other);
    }
    return ok;
}

static bool put_node(const struct cluster_conf_node *node, struct rd_buf *text)
{
    bool ok = rd_buf_printf(text, "%s %s:%u", node->id, node->host, node->port);
    if (ok && (node->bus_port != 0 || node->port == 0))
        ok = rd_buf_printf(text, "@%u", node->bus_port);
    ok = ok && rd_buf_printf(text, "%s ", node->more != NULL ? node->more : "") &&
         put_flags(node, text) &&
         rd_buf_printf(text, " %s 0 0 %" PRIu64 " %s", node->master[0] != '\0' ? node->master : "-",
                       node->epoch, node->connected ? "connected" : "disconnected");
    return ok && put_slots(node, text) && rd_buf_printf(text, "\n");
}

bool cluster_conf_write(const struct cluster_conf *conf, struct rd_buf *text)
{
    for (size_t i = 0; i < conf->n_nodes; i++) {
        if (!put_node(&conf->nodes[i], text))
            return false;
    }
    return rd_buf_printf(text, "vars currentEpoch %" PRIu64 " lastVoteEpoch %" PRIu64 "\n",
                         conf->current_epoch, conf->last_vote_epoch);
}
