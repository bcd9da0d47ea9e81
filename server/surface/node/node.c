#include "server/surface/node/node_impl.h"

#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "engine/by_slot.h"
#include "engine/db.h"
#include "engine/script.h"
#include "server/durable/replication/replication.h"
#include "server/loop/daemon.h"
#include "server/loop/log.h"
#include "server/session/client/client.h"
#include "server/session/dispatch/script.h"
#include "server/session/pubsub.h"

enum { TICK_MS = 100, SYNC_TICKS = 10, PAUSE_MS = 10000 };

static uint64_t random_number(void *ctx)
{
    (void)ctx;
    return sessions_seed();
}

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- settings ---- */

static uint16_t or_else(int64_t announced, int64_t port)
{
    return (uint16_t)(announced != 0 ? announced : port);
}

static int64_t base_port(const struct settings *s)
{
    return s->tls_cluster ? s->tls_port : s->port;
}

static int64_t bus_port(const struct settings *s)
{
    return s->cluster_port != 0 ? s->cluster_port : base_port(s) + CLUSTER_BUS_DISTANCE;
}

static void set_ports(const struct node *n, struct cluster_settings *to)
{
    const struct settings *s = &n->srv->loop.settings;
    uint16_t plain = or_else(s->cluster_announce_port, s->port);
    to->port = s->tls_cluster ? or_else(s->cluster_announce_tls_port, s->tls_port) : plain;
    to->plain_port = s->tls_cluster ? plain : 0;
    to->bus_port = or_else(s->cluster_announce_bus_port, n->srv->loop.bus_port);
}

void node_settings(struct node *n)
{
    const struct settings *s = &n->srv->loop.settings;
    struct cluster_settings *to = cluster_settings(n->cluster);
    to->node_timeout_ms = s->cluster_node_timeout;
    to->replica_validity_factor = s->cluster_replica_validity_factor;
    to->replica_ping_ms = s->repl_ping_replica_period * 1000;
    to->migration_barrier = (unsigned)s->cluster_migration_barrier;
    to->require_full_coverage = s->cluster_require_full_coverage;
    to->replica_no_failover = s->cluster_replica_no_failover;
    to->allow_replica_migration = s->cluster_allow_replica_migration;
    set_ports(n, to);
    snprintf(to->address, sizeof to->address, "%s", s->cluster_announce_ip);
    snprintf(to->hostname, sizeof to->hostname, "%s", s->cluster_announce_hostname);
    cluster_settings_changed(n->cluster);
}

/* ---- time ---- */

void node_clock(struct node *n)
{
    struct cluster_replication state = {.offset = replication_offset(&n->srv->durable)};
    replication_link_state(&n->srv->durable, &state.link_up, &state.data_age_ms);
    cluster_set_replication(n->cluster, &state);
    cluster_clock(n->cluster, wall_ms());
}

static void on_timer(uv_timer_t *timer)
{
    struct node *n = timer->data;
    n->tick_due = true;
}

static void tick(struct node *n)
{
    n->tick_due = false;
    node_settings(n);
    node_clock(n);
    node_links_limit(n);
    cluster_tick(n->cluster, wall_ms());
    node_act(n);
    if (++n->ticks % SYNC_TICKS == 0)
        node_file_sync(n);
}

/* ---- roles and keys ---- */

static bool must_wait(const struct node *n)
{
    const struct sessions *sessions = &n->srv->sessions;
    return sessions->state != SESSIONS_RUNNING || sessions->loading || sessions->async_loading ||
           dispatch_script_busy(sessions) != 0 || engine_script_running(sessions->engine) != NULL;
}

static void drop_keys(struct node *n)
{
    struct sessions *sessions = &n->srv->sessions;
    struct engine_env env = session_env(sessions);
    struct engine_effects fx = {.off = sessions->fx.off};
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if (!cluster_slots_has(&n->todo.drop, slot))
            continue;
        engine_by_slot_delete(sessions->engine, slot, &env, &fx);
        sessions_propagate(sessions, &fx);
        engine_effects_reset(&fx);
    }
    engine_effects_done(&fx);
}

static void do_waiting(struct node *n)
{
    struct durable *durable = &n->srv->durable;
    struct node_todo *todo = &n->todo;
    if ((todo->role == NODE_STAYS && !todo->drops) || must_wait(n))
        return;
    if (todo->drops)
        drop_keys(n);
    if (todo->role == NODE_FOLLOWS && !replication_follows(durable, todo->host, todo->port))
        replication_follow(durable, todo->host, todo->port);
    else if (todo->role == NODE_LEADS && replication_is_replica(durable))
        replication_lead(durable);
    n->todo = (struct node_todo){.role = NODE_STAYS};
}

static void add_drop(struct node *n, const struct cluster_slots *slots)
{
    n->todo.drops = true;
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if (cluster_slots_has(slots, slot))
            cluster_slots_add(&n->todo.drop, slot);
    }
}

/* ---- actions ---- */

static void put_log(const struct cluster_action *action)
{
    if (action->level == CLUSTER_LEVEL_WARNING)
        log_warning("Cluster: %s", action->text);
    else if (action->level == CLUSTER_LEVEL_NOTICE)
        log_notice("Cluster: %s", action->text);
    else
        log_debug("Cluster: %s", action->text);
}

static void pause_clients(struct node *n)
{
    struct sessions *sessions = &n->srv->sessions;
    clients_pause(sessions, CLIENT_PAUSE_FAILOVER, loop_mono_ms(sessions->loop) + PAUSE_MS, true);
}

static void act(struct node *n, const struct cluster_action *a)
{
    struct sessions *sessions = &n->srv->sessions;
    switch (a->kind) {
    case CLUSTER_CONNECT:
        node_links_connect(n, a);
        break;
    case CLUSTER_CLOSE:
        node_links_close(n, a->conn);
        break;
    case CLUSTER_SEND:
        node_links_send(n, a);
        break;
    case CLUSTER_SAVE:
        n->saved = node_file_save(n, a->sync);
        cluster_saved(n->cluster, n->saved);
        break;
    case CLUSTER_REPLICATE:
        n->todo.role = NODE_FOLLOWS;
        snprintf(n->todo.host, sizeof n->todo.host, "%s", a->host);
        n->todo.port = a->port;
        break;
    case CLUSTER_PROMOTE:
        n->todo.role = NODE_LEADS;
        break;
    case CLUSTER_DROP_KEYS:
        add_drop(n, a->slots);
        break;
    case CLUSTER_PUBLISH:
        pubsub_publish(sessions, a->sharded ? PUBSUB_SHARD : PUBSUB_CHANNEL, a->channel, a->bytes);
        break;
    case CLUSTER_PAUSE:
        pause_clients(n);
        break;
    case CLUSTER_RESUME:
        clients_unpause(sessions, CLIENT_PAUSE_FAILOVER);
        break;
    case CLUSTER_STATE:
        log_notice("Cluster state changed: %s", cluster_is_ok(n->cluster) ? "ok" : "fail");
        n->check_waiting = true;
        break;
    case CLUSTER_MODULE: /* there are no modules */
        break;
    case CLUSTER_LOG:
        put_log(a);
        break;
    }
}

void node_act(struct node *n)
{
    struct cluster_action action;
    if (n->acting) /* the caller below continues */
        return;
    n->acting = true;
    while (cluster_next(n->cluster, &action))
        act(n, &action);
    n->acting = false;
    if (cluster_no_memory(n->cluster))
        log_panic("out of memory");
    do_waiting(n);
}

/* ---- what the data says of slots ---- */

static bool has_other_databases(const struct node *n)
{
    const struct engine_db *db;
    for (unsigned id = 1; (db = engine_db(n->srv->sessions.engine, id)) != NULL; id++)
        if (engine_db_count(db) > 0)
            return true;
    return false;
}

/* A slot with keys belongs to this node, or is being moved to it. */
static void claim_slot(struct node *n, unsigned slot)
{
    struct cluster_node *me = cluster_myself(n->cluster), *owner = cluster_owner(n->cluster, slot);
    struct cluster_slots one = {{0}};
    if (owner == me || cluster_importing(n->cluster, slot) != NULL)
        return;
    if (owner == NULL) {
        log_notice("I have keys for unassigned slot %u. Taking responsibility for it.", slot);
        cluster_slots_add(&one, slot);
        cluster_add_slots(n->cluster, &one);
        return;
    }
    log_notice("I have keys for slot %u, but the slot is assigned to another node. Setting it to "
               "importing state.",
               slot);
    cluster_set_importing(n->cluster, slot, owner);
}

static bool loaded(struct server *srv)
{
    struct node *n = srv->node;
    if (has_other_databases(n)) {
        log_warning("You can't have keys in a DB different than DB 0 when in Cluster mode. "
                    "Exiting.");
        return false;
    }
    node_clock(n);
    if ((cluster_myself(n->cluster)->flags & CLUSTER_BUS_MASTER) != 0) {
        for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++)
            if (engine_by_slot_count(srv->sessions.engine, slot) > 0)
                claim_slot(n, slot);
    }
    node_act(n);
    return true;
}

/* ---- life ---- */

static void turn(struct server *srv)
{
    struct node *n = srv->node;
    if (n->tick_due)
        tick(n);
    do_waiting(n);
    node_check_clients(n);
}

/* A replica loads its data as one: with keys that have expired, which only its master deletes, and
 * with its place in the stream of its master. */
static void begin_as_replica(struct node *n)
{
    struct settings *s = &n->srv->loop.settings;
    if (n->todo.role != NODE_FOLLOWS)
        return;
    settings_follow(s, n->todo.host, n->todo.port);
    daemon_oom_score(s, false);
    n->todo.role = NODE_STAYS;
}

/* Nodes are answered while data is loaded, too. */
static bool start(struct server *srv)
{
    struct node *n = srv->node;
    uv_timer_init(srv->loop.uv, &n->timer);
    n->timer.data = n;
    uv_timer_start(&n->timer, on_timer, TICK_MS, TICK_MS);
    node_settings(n);
    node_clock(n);
    cluster_start(n->cluster, wall_ms());
    node_act(n);
    begin_as_replica(n);
    if (n->saved)
        return true;
    log_warning("Fatal: can't update cluster config file.");
    return false;
}

static void begin(struct server *srv)
{
    srv->loop.bus_accepted = node_links_accept;
    srv->sessions.hooks.route = node_route;
    node_register(srv);
}

static void on_closed(uv_handle_t *handle)
{
    rd_free(handle->data);
}

static void end(struct server *srv)
{
    struct node *n = srv->node;
    if (n == NULL)
        return;
    node_links_drop_all(n);
    cluster_free(n->cluster);
    node_file_close(n);
    srv->node = NULL;
    if (n->timer.data != NULL)
        uv_close((uv_handle_t *)&n->timer, on_closed);
    else
        rd_free(n);
}

static size_t links(const struct server *srv, size_t *ret_bytes)
{
    *ret_bytes = node_links_memory(srv->node);
    return srv->node->n_links;
}

static bool kill_links(struct server *srv, struct rd_slice id, bool to, bool from)
{
    struct node *n = srv->node;
    const struct cluster_node *other = cluster_find(n->cluster, id);
    if (other == NULL)
        return false;
    node_clock(n);
    node_links_kill(n, other, to, from);
    node_act(n);
    return true;
}

static const struct server_cluster is_node = {.begin = begin,
                                              .start = start,
                                              .loaded = loaded,
                                              .turn = turn,
                                              .end = end,
                                              .links = links,
                                              .kill_links = kill_links};

static bool check_port(const struct settings *s, struct rd_buf *why)
{
    if (bus_port(s) <= UINT16_MAX)
        return true;
    rd_buf_printf(why,
                  "Redis port number too high for cluster mode: the port of the cluster bus is the "
                  "port plus %d, and must not be greater than %d. Exiting.",
                  CLUSTER_BUS_DISTANCE, UINT16_MAX);
    return false;
}

bool node_new(struct server *srv, struct rd_buf *why)
{
    const struct settings *s = &srv->loop.settings;
    struct node *n = rd_calloc(1, sizeof *n);
    if (n == NULL)
        log_panic("out of memory");
    n->srv = srv;
    n->dir_fd = n->lock_fd = -1;
    n->cluster = cluster_new(&(struct cluster_opts){.ctx = n, .random = random_number});
    if (n->cluster == NULL)
        log_panic("out of memory");
    srv->node = n;
    srv->cluster = &is_node;
    srv->loop.bus_port = bus_port(s);
    return check_port(s, why) && node_file_open(n, why);
}
