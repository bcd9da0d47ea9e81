#include "base/mem.h"
#include "cluster/views_impl.h"

/* Who claims a slot, after the views that were read so far. */
struct claim {
    uint16_t node, rival; /* index plus one; 0: none */
    uint64_t epoch;
};

/* Whether the node itself denies what a view says of it. */
static bool is_denied(const struct cluster_views *all, const struct cluster_views_node *node,
                      const struct cluster_conf_node *line, unsigned slot)
{
    if (node->own_view == CLUSTER_NONE)
        return false;
    const struct cluster_conf_node *own = cluster_conf_myself(all->views[node->own_view].conf);
    return own != line && own->epoch >= line->epoch && !cluster_slots_has(&own->slots, slot);
}

static void add_claim(struct claim *claim, size_t node, uint64_t epoch)
{
    uint16_t index = (uint16_t)(node + 1);
    if (claim->node == 0 || epoch > claim->epoch)
        *claim = (struct claim){.node = index, .epoch = epoch};
    else if (epoch == claim->epoch && index != claim->node && claim->rival == 0)
        claim->rival = index;
}

static void read_claims(const struct cluster_views *all, const struct cluster_conf *conf,
                        struct claim *claims)
{
    for (size_t i = 0; i < conf->n_nodes; i++) {
        const struct cluster_conf_node *line = &conf->nodes[i];
        size_t node = cluster_views_find(all, line->id);
        if (node == CLUSTER_NONE)
            continue;
        for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
            if (cluster_slots_has(&line->slots, slot) &&
                !is_denied(all, &all->nodes[node], line, slot))
                add_claim(&claims[slot], node, line->epoch);
        }
    }
}

/* Adds a finding for each range of slots with the same claim that `is_found` accepts. */
static bool report_ranges(struct cluster_views *all, const struct claim *claims,
                          enum cluster_finding_kind kind, bool (*is_found)(const struct claim *),
                          struct rd_err *err)
{
    for (unsigned slot = 0, last; slot < RD_HASH_SLOTS; slot = last + 1) {
        const struct claim *claim = &claims[slot];
        last = slot;
        while (last + 1 < RD_HASH_SLOTS && claims[last + 1].node == claim->node &&
               claims[last + 1].rival == claim->rival)
            last++;
        if (!is_found(claim))
            continue;
        struct cluster_finding finding = {
            .kind = kind,
            .view = CLUSTER_NONE,
            .node = claim->node != 0 ? claim->node - 1U : CLUSTER_NONE,
            .other = claim->rival != 0 ? claim->rival - 1U : CLUSTER_NONE,
            .first = slot,
            .last = last,
        };
        if (!cluster_views_add(all, &finding, err))
            return false;
    }
    return true;
}

static bool is_uncovered(const struct claim *claim)
{
    return claim->node == 0;
}

static bool is_disputed(const struct claim *claim)
{
    return claim->rival != 0;
}

/* ---- views that are behind ---- */

/* The owners in one view, as indexes plus one. */
static void owners_of(const struct cluster_views *all, const struct cluster_conf *conf,
                      uint16_t *owners)
{
    memset(owners, 0, RD_HASH_SLOTS * sizeof *owners);
    for (size_t i = 0; i < conf->n_nodes; i++) {
        size_t node = cluster_views_find(all, conf->nodes[i].id);
        if (node == CLUSTER_NONE)
            continue;
        for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
            if (cluster_slots_has(&conf->nodes[i].slots, slot))
                owners[slot] = (uint16_t)(node + 1);
        }
    }
}

static bool report_outdated(struct cluster_views *all, size_t view, const uint16_t *owners,
                            struct rd_err *err)
{
    for (unsigned slot = 0, last; slot < RD_HASH_SLOTS; slot = last + 1) {
        last = slot;
        while (last + 1 < RD_HASH_SLOTS && owners[last + 1] == owners[slot] &&
               all->owner[last + 1] == all->owner[slot])
            last++;
        if (all->owner[slot] == 0 || owners[slot] == all->owner[slot])
            continue;
        struct cluster_finding finding = {
            .kind = CLUSTER_FINDING_OUTDATED,
            .view = view,
            .node = all->owner[slot] - 1U,
            .other = owners[slot] != 0 ? owners[slot] - 1U : CLUSTER_NONE,
            .first = slot,
            .last = last,
        };
        if (!cluster_views_add(all, &finding, err))
            return false;
    }
    return true;
}

static bool decide(struct cluster_views *all, struct claim *claims, uint16_t *owners,
                   struct rd_err *err)
{
    for (size_t i = 0; i < all->n_views; i++)
        read_claims(all, all->views[i].conf, claims);
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        all->owner[slot] = claims[slot].rival == 0 ? claims[slot].node : 0;
        if (all->owner[slot] != 0)
            cluster_slots_add(&all->nodes[all->owner[slot] - 1].slots, slot);
    }
    bool ok = report_ranges(all, claims, CLUSTER_FINDING_UNCOVERED, is_uncovered, err) &&
              report_ranges(all, claims, CLUSTER_FINDING_DISPUTED, is_disputed, err);
    for (size_t i = 0; ok && i < all->n_views; i++) {
        if (all->views[i].conf->n_nodes == 0)
            continue;
        owners_of(all, all->views[i].conf, owners);
        ok = report_outdated(all, i, owners, err);
    }
    return ok;
}

bool cluster_views_decide_slots(struct cluster_views *all, struct rd_err *err)
{
    struct claim *claims = rd_calloc(RD_HASH_SLOTS, sizeof *claims);
    uint16_t *owners = rd_calloc(RD_HASH_SLOTS, sizeof *owners);
    bool ok = claims != NULL && owners != NULL ? decide(all, claims, owners, err)
                                               : rd_err_nomem(err, RD_HASH_SLOTS * sizeof *claims);
    rd_free(claims);
    rd_free(owners);
    return ok;
}

unsigned cluster_views_prefer(struct cluster_views *all, size_t node)
{
    unsigned n = 0;
    for (size_t i = 0; i < all->n_findings; i++) {
        const struct cluster_finding *f = &all->findings[i];
        if (f->kind != CLUSTER_FINDING_DISPUTED || (f->node != node && f->other != node))
            continue;
        for (unsigned slot = f->first; slot <= f->last; slot++) {
            if (all->owner[slot] != 0)
                continue;
            all->owner[slot] = (uint16_t)(node + 1);
            cluster_slots_add(&all->nodes[node].slots, slot);
            n++;
        }
    }
    if (n > 0)
        all->nodes[node].epoch = ++all->current_epoch;
    return n;
}
