#include "cluster/cluster_impl.h"

#include "base/digest.h"
#include "base/mem.h"

/* ---- memory and chance ---- */

void *cluster_alloc(struct cluster *c, size_t size)
{
    void *block = rd_calloc(1, size);
    c->no_memory |= block == NULL;
    return block;
}

bool cluster_grow(struct cluster *c, void **items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return true;
    size_t more = *cap * 2 + 4;
    void *grown = rd_realloc(*items, more * size);
    if (grown == NULL) {
        c->no_memory = true;
        return false;
    }
    *items = grown;
    *cap = more;
    return true;
}

uint64_t cluster_random(struct cluster *c, uint64_t below)
{
    return c->opts.random(c->opts.ctx) % below;
}

void cluster_draw_id(struct cluster *c, struct cluster_id *ret)
{
    rd_digest_draw_hex(ret->s, CLUSTER_ID_LEN, c->opts.random, c->opts.ctx);
}

int64_t cluster_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- life ---- */

struct cluster *cluster_new(const struct cluster_opts *opts)
{
    struct cluster *c = rd_calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->opts = *opts;
    c->settings = (struct cluster_settings){.node_timeout_ms = 15000,
                                            .replica_validity_factor = 10,
                                            .replica_ping_ms = 10000,
                                            .migration_barrier = 1,
                                            .require_full_coverage = true,
                                            .allow_replica_migration = true,
                                            .port = 6379,
                                            .bus_port = 16379,
                                            .dropped = -1};
    return c;
}

void cluster_free(struct cluster *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->n_nodes; i++) {
        rd_free(c->nodes[i]->reports);
        rd_free(c->nodes[i]);
    }
    rd_free(c->nodes);
    cluster_links_free(c);
    cluster_actions_free(c);
    rd_free(c->forgotten);
    rd_free(c);
}

struct cluster_settings *cluster_settings(struct cluster *c)
{
    return &c->settings;
}

void cluster_settings_changed(struct cluster *c)
{
    if (c->myself != NULL)
        cluster_refresh_myself(c);
}

static void add_myself(struct cluster *c)
{
    struct cluster_id id;
    cluster_draw_id(c, &id);
    c->myself = cluster_node_add(c, &id, CLUSTER_BUS_MYSELF | CLUSTER_BUS_MASTER);
    if (c->myself != NULL)
        c->myself->shard = id;
}

void cluster_start(struct cluster *c, int64_t now_ms)
{
    cluster_clock(c, now_ms);
    if (c->myself == NULL)
        add_myself(c);
    if (c->myself == NULL)
        return;
    c->started = true;
    c->started_ms = c->now_ms;
    cluster_refresh_myself(c);
    cluster_save_synced(c);
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "this node is %s", c->myself->id.s);
    if (!cluster_is_master(c->myself))
        cluster_refollow(c);
}

bool cluster_no_memory(const struct cluster *c)
{
    return c->no_memory;
}

/* Times that were noted must not be in the future: if the clock is set back, the time here goes on
 * from where it was. */
void cluster_clock(struct cluster *c, int64_t now_ms)
{
    if (now_ms < c->wall_ms)
        c->ahead_ms += c->wall_ms - now_ms;
    c->wall_ms = now_ms;
    c->now_ms = now_ms + c->ahead_ms;
}

void cluster_set_replication(struct cluster *c, const struct cluster_replication *state)
{
    c->replication = *state;
}

/* A master that ended before it saved its promotion would come back as a replica. If others had
 * heard of it meanwhile, its old master would be a replica of it, and the slots would have no
 * master. */
static void note_claims(struct cluster *c, bool ok)
{
    bool was_mute = c->mute;
    c->claims = c->claims && !ok;
    c->mute = c->claims;
    if (c->mute != was_mute)
        cluster_update_state(c);
    if (was_mute && !c->mute)
        cluster_broadcast_pong(c);
}

void cluster_saved(struct cluster *c, bool ok)
{
    struct cluster_node *n;
    c->save_due = !ok;
    note_claims(c, ok);
    if (!c->vote.waits)
        return;
    c->vote.waits = false;
    n = cluster_node_find(c, &c->vote.of);
    if (ok && n != NULL && c->vote.epoch == c->current_epoch)
        cluster_send_plain(c, n, CLUSTER_MESSAGE_AUTH_ACK);
}

void cluster_save_now(struct cluster *c)
{
    cluster_save_synced(c);
}

/* ---- what it knows ---- */

size_t cluster_count(const struct cluster *c)
{
    return c->n_nodes;
}

struct cluster_node *cluster_at(const struct cluster *c, size_t i)
{
    return c->nodes[i];
}

struct cluster_node *cluster_myself(const struct cluster *c)
{
    return c->myself;
}

static bool read_id(struct rd_slice id, struct cluster_id *ret)
{
    if (!cluster_is_id(id))
        return false;
    memcpy(ret->s, id.ptr, CLUSTER_ID_LEN);
    ret->s[CLUSTER_ID_LEN] = 0;
    return true;
}

struct cluster_node *cluster_find(const struct cluster *c, struct rd_slice id)
{
    struct cluster_id key;
    return read_id(id, &key) ? cluster_node_find(c, &key) : NULL;
}

bool cluster_is_forgotten(struct cluster *c, struct rd_slice id)
{
    struct cluster_id key;
    return read_id(id, &key) && cluster_is_banned(c, &key);
}

struct cluster_node *cluster_owner(const struct cluster *c, unsigned slot)
{
    return c->owner[slot];
}

struct cluster_node *cluster_migrating(const struct cluster *c, unsigned slot)
{
    return c->migrating[slot];
}

struct cluster_node *cluster_importing(const struct cluster *c, unsigned slot)
{
    return c->importing[slot];
}

bool cluster_is_ok(const struct cluster *c)
{
    return c->ok;
}

bool cluster_paused(const struct cluster *c)
{
    return c->manual.replica != NULL;
}

uint64_t cluster_current_epoch(const struct cluster *c)
{
    return c->current_epoch;
}

uint64_t cluster_last_vote_epoch(const struct cluster *c)
{
    return c->last_vote_epoch;
}

unsigned cluster_size(const struct cluster *c)
{
    unsigned n = 0;
    for (size_t i = 0; i < c->n_nodes; i++)
        n += cluster_votes(c->nodes[i]);
    return n;
}

const struct cluster_stats *cluster_stats(const struct cluster *c)
{
    return &c->stats;
}
