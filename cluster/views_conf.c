#include "cluster/views_impl.h"

enum { NOT_KEPT = CLUSTER_FLAG_MYSELF | CLUSTER_FLAG_MAYBE_FAILED | CLUSTER_FLAG_FAILED };

/* A move is kept if it can still take place. */
static bool is_possible(const struct cluster_views *all, size_t myself,
                        const struct cluster_move *move)
{
    size_t other = cluster_views_find(all, move->other);
    size_t owner = all->owner[move->slot];
    return other != CLUSTER_NONE && other != myself &&
           owner == (move->importing ? other : myself) + 1;
}

static bool copy_moves(const struct cluster_views *all, size_t myself,
                       struct cluster_conf_node *copy)
{
    size_t view = all->nodes[myself].own_view;
    const struct cluster_conf_node *own =
        view != CLUSTER_NONE ? cluster_conf_myself(all->views[view].conf) : NULL;
    for (size_t i = 0; own != NULL && i < own->n_moves; i++) {
        if (is_possible(all, myself, &own->moves[i]) &&
            !cluster_conf_node_add_move(copy, &own->moves[i]))
            return false;
    }
    return true;
}

static bool copy_node(const struct cluster_views *all, size_t at, size_t myself,
                      struct cluster_conf *conf, struct rd_err *err)
{
    const struct cluster_views_node *node = &all->nodes[at];
    struct cluster_conf_node *copy = cluster_conf_copy_node(conf, node->best);
    if (copy == NULL)
        return rd_err_nomem(err, sizeof *copy);
    copy->flags &= ~(unsigned)NOT_KEPT;
    copy->flags |= at == myself ? CLUSTER_FLAG_MYSELF : 0;
    copy->slots = node->slots;
    size_t master = copy->master[0] != '\0' ? cluster_views_find(all, copy->master) : at;
    copy->epoch = all->nodes[master != CLUSTER_NONE ? master : at].epoch;
    copy->connected = true;
    copy->n_moves = 0;
    if (at == myself && !copy_moves(all, myself, copy))
        return rd_err_nomem(err, sizeof *copy->moves);
    return true;
}

bool cluster_views_conf(const struct cluster_views *all, size_t myself, uint64_t last_vote_epoch,
                        struct cluster_conf *ret, struct rd_err *err)
{
    struct cluster_conf conf = {
        .has_vars = true, .current_epoch = all->current_epoch, .last_vote_epoch = last_vote_epoch};
    for (size_t at = 0; at < all->n_nodes; at++) {
        if (!copy_node(all, at, myself, &conf, err)) {
            cluster_conf_done(&conf);
            return false;
        }
    }
    *ret = conf;
    return true;
}
