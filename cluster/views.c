#include "base/mem.h"
#include "cluster/views_impl.h"

#include <stdlib.h>

const char *cluster_finding_word(enum cluster_finding_kind kind)
{
    switch (kind) {
#define X(name, number, word, severity)                                                            \
    case number:                                                                                   \
        return word;
        CLUSTER_FINDINGS(X)
#undef X
    }
    return "unknown";
}

enum cluster_severity cluster_finding_severity(enum cluster_finding_kind kind)
{
    switch (kind) {
#define X(name, number, word, severity)                                                            \
    case number:                                                                                   \
        return CLUSTER_##severity;
        CLUSTER_FINDINGS(X)
#undef X
    }
    return CLUSTER_ERROR;
}

bool cluster_views_add(struct cluster_views *all, const struct cluster_finding *finding,
                       struct rd_err *err)
{
    if (all->n_findings == all->findings_cap) {
        size_t cap = all->findings_cap > 0 ? all->findings_cap * 2 : 16;
        struct cluster_finding *findings = rd_realloc(all->findings, cap * sizeof *findings);
        if (findings == NULL)
            return rd_err_nomem(err, cap * sizeof *findings);
        all->findings = findings;
        all->findings_cap = cap;
    }
    all->findings[all->n_findings++] = *finding;
    return true;
}

static bool add_node_finding(struct cluster_views *all, enum cluster_finding_kind kind, size_t view,
                             size_t node, size_t other, struct rd_err *err)
{
    return cluster_views_add(
        all, &(struct cluster_finding){.kind = kind, .view = view, .node = node, .other = other},
        err);
}

void cluster_views_done(struct cluster_views *all)
{
    rd_free(all->nodes);
    rd_free(all->findings);
    *all = (struct cluster_views){0};
}

/* ---- the nodes ---- */

static int compare_ids(const void *a, const void *b)
{
    return strcmp(((const struct cluster_views_node *)a)->id,
                  ((const struct cluster_views_node *)b)->id);
}

size_t cluster_views_find(const struct cluster_views *all, const char *id)
{
    size_t low = 0, high = all->n_nodes;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(all->nodes[mid].id, id);
        if (order == 0)
            return mid;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return CLUSTER_NONE;
}

/* A node in a handshake has an id that is replaced at its end. */
static bool is_known(const struct cluster_conf_node *line)
{
    return (line->flags & CLUSTER_FLAG_HANDSHAKE) == 0;
}

static bool add_nodes_of(struct cluster_views *all, const struct cluster_conf *conf,
                         struct rd_err *err)
{
    size_t known = all->n_nodes; /* these are sorted */
    for (size_t i = 0; i < conf->n_nodes; i++) {
        const struct cluster_conf_node *line = &conf->nodes[i];
        struct cluster_views sorted = {.nodes = all->nodes, .n_nodes = known};
        if (!is_known(line) || cluster_views_find(&sorted, line->id) != CLUSTER_NONE)
            continue;
        if (all->n_nodes == CLUSTER_NODES_MAX)
            return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "more than %d nodes",
                              CLUSTER_NODES_MAX);
        if (all->n_nodes == all->cap) {
            size_t cap = all->cap > 0 ? all->cap * 2 : 16;
            struct cluster_views_node *nodes = rd_realloc(all->nodes, cap * sizeof *nodes);
            if (nodes == NULL)
                return rd_err_nomem(err, cap * sizeof *nodes);
            all->nodes = nodes;
            all->cap = cap;
        }
        struct cluster_views_node *node = &all->nodes[all->n_nodes++];
        *node = (struct cluster_views_node){.own_view = CLUSTER_NONE};
        memcpy(node->id, line->id, sizeof node->id);
    }
    if (all->n_nodes > known)
        qsort(all->nodes, all->n_nodes, sizeof *all->nodes, compare_ids);
    return true;
}

static bool find_own_views(struct cluster_views *all, struct rd_err *err)
{
    for (size_t i = 0; i < all->n_views; i++) {
        const struct cluster_conf_node *myself = cluster_conf_myself(all->views[i].conf);
        size_t at = myself != NULL ? cluster_views_find(all, myself->id) : CLUSTER_NONE;
        if (at == CLUSTER_NONE)
            continue;
        struct cluster_views_node *node = &all->nodes[at];
        if (node->own_view == CLUSTER_NONE)
            node->own_view = i;
        else if (!add_node_finding(all, CLUSTER_FINDING_SAME_SELF, i, at, CLUSTER_NONE, err))
            return false;
    }
    return true;
}

static bool is_better(const struct cluster_views_node *node, size_t view,
                      const struct cluster_conf_node *line)
{
    if (node->best == NULL || line->epoch != node->best->epoch)
        return node->best == NULL || line->epoch > node->best->epoch;
    return node->own_view == view && node->best_view != view;
}

static void find_best_lines(struct cluster_views *all)
{
    for (size_t i = 0; i < all->n_views; i++) {
        const struct cluster_conf *conf = all->views[i].conf;
        if (conf->current_epoch > all->current_epoch)
            all->current_epoch = conf->current_epoch;
        for (size_t k = 0; k < conf->n_nodes; k++) {
            const struct cluster_conf_node *line = &conf->nodes[k];
            size_t at = is_known(line) ? cluster_views_find(all, line->id) : CLUSTER_NONE;
            if (line->epoch > all->current_epoch)
                all->current_epoch = line->epoch;
            if (at == CLUSTER_NONE)
                continue;
            struct cluster_views_node *node = &all->nodes[at];
            node->n_views++;
            if (is_better(node, i, line)) {
                node->best = line;
                node->best_view = i;
                node->epoch = line->epoch;
            }
        }
    }
}

/* ---- findings about nodes ---- */

static bool is_replica(const struct cluster_conf_node *line)
{
    return line->master[0] != '\0';
}

static bool same_address(const struct cluster_conf_node *a, const struct cluster_conf_node *b)
{
    return strcmp(a->host, b->host) == 0 && a->port == b->port;
}

/* What a view says of a node, compared with the best line. */
static bool judge_line(struct cluster_views *all, size_t view, size_t at,
                       const struct cluster_conf_node *line, struct rd_err *err)
{
    const struct cluster_conf_node *best = all->nodes[at].best;
    bool myself = (line->flags & CLUSTER_FLAG_MYSELF) != 0;
    if (strcmp(line->master, best->master) != 0 &&
        !add_node_finding(all, CLUSTER_FINDING_ROLE, view, at, CLUSTER_NONE, err))
        return false;
    /* A node does not know its own address until another one uses it. */
    if (!(myself && line->host[0] == '\0') && !same_address(line, best) && best->host[0] != '\0' &&
        !add_node_finding(all, CLUSTER_FINDING_ADDRESS, view, at, CLUSTER_NONE, err))
        return false;
    if ((line->flags & CLUSTER_FLAG_FAILED) &&
        !add_node_finding(all, CLUSTER_FINDING_FAILED, view, at, CLUSTER_NONE, err))
        return false;
    return !(line->flags & CLUSTER_FLAG_MAYBE_FAILED) ||
           add_node_finding(all, CLUSTER_FINDING_MAYBE_FAILED, view, at, CLUSTER_NONE, err);
}

static bool judge_moves(struct cluster_views *all, size_t view, size_t at,
                        const struct cluster_conf_node *line, struct rd_err *err)
{
    for (size_t i = 0; i < line->n_moves; i++) {
        const struct cluster_move *move = &line->moves[i];
        struct cluster_finding finding = {
            .kind = move->importing ? CLUSTER_FINDING_IMPORTING : CLUSTER_FINDING_MOVING,
            .view = view,
            .node = at,
            .other = cluster_views_find(all, move->other),
            .first = move->slot,
            .last = move->slot,
        };
        if (!cluster_views_add(all, &finding, err))
            return false;
    }
    return true;
}

static bool judge_lines(struct cluster_views *all, size_t view, struct cluster_slots *seen,
                        struct rd_err *err)
{
    const struct cluster_conf *conf = all->views[view].conf;
    for (size_t i = 0; i < conf->n_nodes; i++) {
        const struct cluster_conf_node *line = &conf->nodes[i];
        if (!is_known(line)) {
            if (!add_node_finding(all, CLUSTER_FINDING_HANDSHAKE, view, CLUSTER_NONE, CLUSTER_NONE,
                                  err))
                return false;
            continue;
        }
        size_t at = cluster_views_find(all, line->id);
        cluster_slots_add(seen, (unsigned)at);
        if (!judge_line(all, view, at, line, err) || !judge_moves(all, view, at, line, err))
            return false;
    }
    return true;
}

/* Nodes that a view does not have. If it has none of the first view's, one finding says so. */
static bool judge_missing(struct cluster_views *all, size_t view, const struct cluster_slots *seen,
                          struct rd_err *err)
{
    const struct cluster_conf *first = all->views[0].conf;
    bool common = first->n_nodes == 0;
    for (size_t i = 0; i < first->n_nodes && !common; i++) {
        size_t at =
            is_known(&first->nodes[i]) ? cluster_views_find(all, first->nodes[i].id) : CLUSTER_NONE;
        common = at != CLUSTER_NONE && cluster_slots_has(seen, (unsigned)at);
    }
    if (!common)
        return add_node_finding(all, CLUSTER_FINDING_STRANGERS, view, CLUSTER_NONE, CLUSTER_NONE,
                                err);
    for (size_t at = 0; at < all->n_nodes; at++) {
        if (!cluster_slots_has(seen, (unsigned)at) &&
            !add_node_finding(all, CLUSTER_FINDING_MISSING, view, at, CLUSTER_NONE, err))
            return false;
    }
    return true;
}

static bool judge_views(struct cluster_views *all, struct rd_err *err)
{
    for (size_t i = 0; i < all->n_views; i++) {
        const struct cluster_conf *conf = all->views[i].conf;
        struct cluster_slots seen = {0}; /* a set of nodes: there are not more of them than slots */
        if (conf->n_nodes == 0)
            continue;
        if (!judge_lines(all, i, &seen, err) || !judge_missing(all, i, &seen, err))
            return false;
        if (conf->has_vars && conf->current_epoch < all->current_epoch &&
            !add_node_finding(all, CLUSTER_FINDING_EPOCH_LOW, i, CLUSTER_NONE, CLUSTER_NONE, err))
            return false;
    }
    return true;
}

static bool judge_replica(struct cluster_views *all, size_t at, struct rd_err *err)
{
    size_t master = cluster_views_find(all, all->nodes[at].best->master);
    if (master == CLUSTER_NONE)
        return add_node_finding(all, CLUSTER_FINDING_LOST_MASTER, CLUSTER_NONE, at, CLUSTER_NONE,
                                err);
    all->nodes[master].n_replicas++;
    return !is_replica(all->nodes[master].best) ||
           add_node_finding(all, CLUSTER_FINDING_CHAIN, CLUSTER_NONE, at, master, err);
}

static bool judge_masters(struct cluster_views *all, struct rd_err *err)
{
    for (size_t at = 0; at < all->n_nodes; at++) {
        const struct cluster_views_node *node = &all->nodes[at];
        unsigned slots = cluster_slots_count(&node->slots);
        if (is_replica(node->best) || slots == 0)
            continue;
        if (node->n_replicas == 0 &&
            !add_node_finding(all, CLUSTER_FINDING_NO_REPLICA, CLUSTER_NONE, at, CLUSTER_NONE, err))
            return false;
        for (size_t k = at + 1; k < all->n_nodes; k++) {
            const struct cluster_conf_node *other = all->nodes[k].best;
            if (!is_replica(other) && other->epoch == node->best->epoch &&
                cluster_slots_count(&all->nodes[k].slots) > 0 &&
                !add_node_finding(all, CLUSTER_FINDING_SAME_EPOCH, CLUSTER_NONE, at, k, err))
                return false;
        }
    }
    return true;
}

static bool judge_nodes(struct cluster_views *all, struct rd_err *err)
{
    for (size_t at = 0; at < all->n_nodes; at++) {
        if (is_replica(all->nodes[at].best) && !judge_replica(all, at, err))
            return false;
    }
    return judge_masters(all, err);
}

static int compare_findings(const void *a, const void *b)
{
    const struct cluster_finding *x = a, *y = b;
    int order = (int)cluster_finding_severity(y->kind) - (int)cluster_finding_severity(x->kind);
    if (order == 0)
        order = (x->kind > y->kind) - (x->kind < y->kind);
    if (order == 0)
        order = (x->view > y->view) - (x->view < y->view);
    if (order == 0)
        order = (x->node > y->node) - (x->node < y->node);
    return order != 0 ? order : (x->first > y->first) - (x->first < y->first);
}

bool cluster_views_compare(struct cluster_views *ret, const struct cluster_view *views, size_t n,
                           struct rd_err *err)
{
    struct cluster_views all = {.views = views, .n_views = n};
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = add_nodes_of(&all, views[i].conf, err);
    ok = ok && find_own_views(&all, err);
    if (ok)
        find_best_lines(&all);
    if (!ok || !cluster_views_decide_slots(&all, err) || !judge_views(&all, err) ||
        !judge_nodes(&all, err)) {
        cluster_views_done(&all);
        return false;
    }
    if (all.n_findings > 0)
        qsort(all.findings, all.n_findings, sizeof *all.findings, compare_findings);
    *ret = all;
    return true;
}
