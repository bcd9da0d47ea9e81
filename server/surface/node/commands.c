/* CLUSTER, and the commands that a node answers otherwise than a server. */
#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>

#include "base/num.h"
#include "engine/db.h"
#include "server/durable/replication/replication.h"
#include "server/session/client/client.h"
#include "server/session/dispatch/subcommand.h"
#include "server/session/pubsub.h"
#include "server/surface/cmd/commands.h"
#include "server/surface/node/node_impl.h"

static int shown(struct rd_slice arg)
{
    return (int)(arg.len < 128 ? arg.len : 128);
}

static void unknown_node(struct dispatch_call *call, struct rd_slice id)
{
    engine_reply_errorf(call->reply, "ERR Unknown node %.*s", shown(id), (const char *)id.ptr);
}

struct cluster_node *node_arg(struct dispatch_call *call, struct rd_slice id)
{
    struct cluster_node *found = cluster_find(node_of(call)->cluster, id);
    if (found == NULL)
        unknown_node(call, id);
    return found;
}

static bool has_keys(const struct dispatch_call *call)
{
    return engine_db_count(engine_db(call->sessions->engine, 0)) > 0;
}

/* OK, or the error. */
static void done(struct dispatch_call *call, const char *error)
{
    node_act(node_of(call));
    if (error != NULL)
        engine_reply_error(call->reply, error);
    else
        engine_reply_ok(call->reply);
}

/* ---- nodes ---- */

/* Names are not looked up. */
static bool is_ip(const char *text)
{
    uint8_t address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

static void bad_port(struct dispatch_call *call, const char *which, struct rd_slice port)
{
    engine_reply_errorf(call->reply, "ERR Invalid TCP %s port specified: %.*s", which, shown(port),
                        (const char *)port.ptr);
}

static void sub_meet(struct dispatch_call *call)
{
    struct node *n = node_of(call);
    struct rd_slice host = call->argv[2], port = call->argv[3];
    int64_t number, bus = 0;
    char text[CLUSTER_ADDRESS_MAX + 1] = "";
    if (call->argc > 5) {
        subcommand_syntax(call);
        return;
    }
    if (!rd_num_get_i64(port, &number)) {
        bad_port(call, "base", port);
        return;
    }
    if (call->argc == 5 && !rd_num_get_i64(call->argv[4], &bus)) {
        bad_port(call, "bus", call->argv[4]);
        return;
    }
    if (host.len <= CLUSTER_ADDRESS_MAX && memchr(host.ptr, 0, host.len) == NULL)
        snprintf(text, sizeof text, "%.*s", (int)host.len, (const char *)host.ptr);
    bool in_range =
        number > 0 && number <= UINT16_MAX && bus >= 0 && bus <= UINT16_MAX && is_ip(text);
    if (!in_range ||
        cluster_meet(n->cluster, text, (unsigned)number, (unsigned)bus) != CLUSTER_OK) {
        engine_reply_errorf(call->reply, "ERR Invalid node address specified: %.*s:%.*s",
                            shown(host), (const char *)host.ptr, shown(port),
                            (const char *)port.ptr);
        return;
    }
    done(call, NULL);
}

/* `redis-cli --cluster del-node` tells every node, and stops at the first error. */
static void sub_forget(struct dispatch_call *call)
{
    struct cluster *c = node_of(call)->cluster;
    if (cluster_find(c, call->argv[2]) == NULL && cluster_is_forgotten(c, call->argv[2])) {
        done(call, NULL);
        return;
    }
    struct cluster_node *node = node_arg(call, call->argv[2]);
    if (node == NULL)
        return;
    switch (cluster_forget(c, node)) {
    case CLUSTER_IS_MYSELF:
        done(call, "ERR I tried hard but I can't forget myself...");
        break;
    case CLUSTER_IS_MASTER:
        done(call, "ERR Can't forget my master!");
        break;
    default:
        done(call, NULL);
    }
}

static void sub_replicate(struct dispatch_call *call)
{
    struct cluster *c = node_of(call)->cluster;
    struct cluster_node *node = node_arg(call, call->argv[2]);
    const struct cluster_node *me = cluster_myself(c);
    if (node == NULL)
        return;
    bool is_master = (me->flags & CLUSTER_BUS_MASTER) != 0;
    enum cluster_result result = node == me                                ? CLUSTER_IS_MYSELF
                                 : (node->flags & CLUSTER_BUS_MASTER) == 0 ? CLUSTER_NOT_MASTER
                                 : is_master && has_keys(call)             ? CLUSTER_HAS_SLOTS
                                                               : cluster_replicate(c, node);
    switch (result) {
    case CLUSTER_IS_MYSELF:
        done(call, "ERR Can't replicate myself");
        break;
    case CLUSTER_NOT_MASTER:
        done(call, "ERR I can only replicate a master, not a replica.");
        break;
    case CLUSTER_HAS_SLOTS:
        done(call, "ERR To set a master the node must be empty and without assigned slots.");
        break;
    default:
        done(call, NULL);
    }
}

static void sub_count_failure_reports(struct dispatch_call *call)
{
    struct cluster_node *node = node_arg(call, call->argv[2]);
    if (node != NULL)
        engine_reply_int(call->reply,
                         (int64_t)cluster_failure_reports(node_of(call)->cluster, node));
}

static void sub_myid(struct dispatch_call *call)
{
    engine_reply_str(call->reply, cluster_myself(node_of(call)->cluster)->id.s);
}

/* ---- failovers ---- */

static void sub_failover(struct dispatch_call *call)
{
    enum cluster_failover how = CLUSTER_FAILOVER;
    if (call->argc > 3) {
        subcommand_syntax(call);
        return;
    }
    if (call->argc == 3 && dispatch_arg_is(call->argv[2], "force")) {
        how = CLUSTER_FAILOVER_FORCE;
    } else if (call->argc == 3 && dispatch_arg_is(call->argv[2], "takeover")) {
        how = CLUSTER_FAILOVER_TAKEOVER;
    } else if (call->argc == 3) {
        dispatch_syntax(call);
        return;
    }
    switch (cluster_failover(node_of(call)->cluster, how)) {
    case CLUSTER_NOT_REPLICA:
        done(call, "ERR You should send CLUSTER FAILOVER to a replica");
        break;
    case CLUSTER_NO_MASTER:
        done(call, "ERR I'm a replica but my master is unknown to me");
        break;
    case CLUSTER_MASTER_DOWN:
        done(call, "ERR Master is down or failed, please use CLUSTER FAILOVER FORCE");
        break;
    default:
        done(call, NULL);
    }
}

/* ---- epochs ---- */

static void sub_bumpepoch(struct dispatch_call *call)
{
    struct node *n = node_of(call);
    const struct cluster_node *me = cluster_myself(n->cluster);
    char text[64];
    bool bumped = cluster_bump_epoch(n->cluster) == CLUSTER_OK;
    node_act(n);
    snprintf(text, sizeof text, "%s %llu", bumped ? "BUMPED" : "STILL",
             (unsigned long long)me->epoch);
    engine_reply_simple(call->reply, text);
}

static void sub_set_config_epoch(struct dispatch_call *call)
{
    int64_t epoch;
    if (!dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &epoch, NULL))
        return;
    if (epoch < 0) {
        engine_reply_errorf(call->reply, "ERR Invalid config epoch specified: %lld",
                            (long long)epoch);
        return;
    }
    switch (cluster_set_epoch(node_of(call)->cluster, (uint64_t)epoch)) {
    case CLUSTER_BUSY:
        done(call, "ERR The user can assign a config epoch only when the node does not know any "
                   "other node.");
        break;
    case CLUSTER_EPOCH_SET:
        done(call, "ERR Node config epoch is already non-zero");
        break;
    default:
        done(call, NULL);
    }
}

/* ---- the node itself ---- */

static void sub_saveconfig(struct dispatch_call *call)
{
    struct node *n = node_of(call);
    cluster_save_now(n->cluster);
    node_act(n);
    if (n->saved)
        engine_reply_ok(call->reply);
    else
        engine_reply_error(call->reply,
                           "ERR error saving the cluster node config: see the log of the server");
}

/* Empties the dataset of a replica, as a master's of which nothing is left. */
static void flush(struct dispatch_call *call)
{
    struct sessions *sessions = call->sessions;
    const struct rd_slice argv[] = {rd_slice_str("FLUSHALL")};
    struct engine_env env = session_env(sessions);
    struct engine_effects fx = {.off = call->fx->off};
    struct engine_reply reply = {.off = true};
    struct engine_session session;
    engine_session_init(&session, sessions->engine, ENGINE_CLIENT);
    engine_apply(sessions->engine, &session, 1, argv, &env, &reply, &fx);
    for (size_t i = 0; i < fx.n; i++)
        engine_effects_add(call->fx, fx.list[i].db, fx.list[i].argc, fx.list[i].argv);
    engine_effects_done(&fx);
    engine_session_done(&session);
    engine_reply_done(&reply);
}

static void sub_reset(struct dispatch_call *call)
{
    struct node *n = node_of(call);
    bool hard = call->argc == 3 && dispatch_arg_is(call->argv[2], "hard");
    bool is_master = (cluster_myself(n->cluster)->flags & CLUSTER_BUS_MASTER) != 0;
    if (call->argc > 3) {
        subcommand_syntax(call);
        return;
    }
    if (call->argc == 3 && !hard && !dispatch_arg_is(call->argv[2], "soft")) {
        dispatch_syntax(call);
        return;
    }
    if (is_master && has_keys(call)) {
        engine_reply_error(call->reply,
                           "ERR CLUSTER RESET can't be called with master nodes containing keys");
        return;
    }
    cluster_reset(n->cluster, hard);
    node_act(n);
    if (!is_master)
        flush(call);
    engine_reply_ok(call->reply);
}

/* ---- HELP ---- */

static void sub_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "ADDSLOTS <slot> [<slot> ...], ADDSLOTSRANGE <first> <last> [<first> <last> ...]",
        "    Make this node the owner of slots that have none.",
        "BUMPEPOCH",
        "    Give this node the greatest configuration epoch.",
        "COUNT-FAILURE-REPORTS <node>",
        "    Count the masters that could not reach a node.",
        "COUNTKEYSINSLOT <slot>",
        "    Count the keys of a slot.",
        "DELSLOTS <slot> [<slot> ...], DELSLOTSRANGE <first> <last> [<first> <last> ...]",
        "    Forget the owners of slots.",
        "FAILOVER [FORCE|TAKEOVER]",
        "    Make this replica the master.",
        "FLUSHSLOTS",
        "    Give up all slots of this node.",
        "FORGET <node>",
        "    Remove a node from those that this one knows.",
        "GETKEYSINSLOT <slot> <count>",
        "    List keys of a slot.",
        "INFO",
        "    Describe the state of the cluster.",
        "KEYSLOT <key>",
        "    Show the slot of a key.",
        "LINKS",
        "    List the connections to and from other nodes.",
        "MEET <address> <port> [<bus port>]",
        "    Add a node to the cluster.",
        "MYID",
        "    Show the ID of this node.",
        "NODES",
        "    List the nodes with their slots.",
        "REPLICAS <node>",
        "    List the replicas of a master.",
        "REPLICATE <node>",
        "    Make this node a replica of a master.",
        "RESET [HARD|SOFT]",
        "    Forget all nodes and slots.",
        "SAVECONFIG",
        "    Write the configuration file of the cluster.",
        "SET-CONFIG-EPOCH <epoch>",
        "    Set the configuration epoch of a new node.",
        "SETSLOT <slot> (IMPORTING <node>|MIGRATING <node>|NODE <node>|STABLE)",
        "    Begin or end to move a slot, or set its owner.",
        "SHARDS",
        "    List the masters with their replicas and slots.",
        "SLOTS",
        "    List ranges of slots with their nodes.",
        NULL,
    };
    dispatch_help(call, lines);
}

/* ---- the table ---- */

static const struct subcommand subcommands[] = {
    {"addslots", node_sub_addslots},
    {"addslotsrange", node_sub_addslotsrange},
    {"bumpepoch", sub_bumpepoch},
    {"count-failure-reports", sub_count_failure_reports},
    {"countkeysinslot", node_sub_countkeysinslot},
    {"delslots", node_sub_addslots},
    {"delslotsrange", node_sub_addslotsrange},
    {"failover", sub_failover},
    {"flushslots", node_sub_flushslots},
    {"forget", sub_forget},
    {"getkeysinslot", node_sub_getkeysinslot},
    {"help", sub_help},
    {"info", node_sub_info},
    {"keyslot", node_sub_keyslot},
    {"links", node_sub_links},
    {"meet", sub_meet},
    {"myid", sub_myid},
    {"nodes", node_sub_nodes},
    {"replicas", node_sub_replicas},
    {"replicate", sub_replicate},
    {"reset", sub_reset},
    {"saveconfig", sub_saveconfig},
    {"set-config-epoch", sub_set_config_epoch},
    {"setslot", node_sub_setslot},
    {"shards", node_sub_shards},
    {"slaves", node_sub_replicas},
    {"slots", node_sub_slots},
};

void node_cmd_cluster(struct dispatch_call *call)
{
    node_settings(node_of(call));
    node_clock(node_of(call));
    SUBCOMMAND_RUN(call, subcommands);
}

/* ---- other commands ---- */

static void cmd_readonly(struct dispatch_call *call)
{
    call->c->flags |= CLIENT_READONLY;
    engine_reply_ok(call->reply);
}

static void cmd_readwrite(struct dispatch_call *call)
{
    call->c->flags &= ~(uint32_t)CLIENT_READONLY;
    engine_reply_ok(call->reply);
}

static void cmd_asking(struct dispatch_call *call)
{
    call->c->flags |= CLIENT_ASKING;
    engine_reply_ok(call->reply);
}

/* Messages go to all nodes, and so to the clients of replicas, too. */
static void publish(struct dispatch_call *call, enum pubsub_kind kind)
{
    struct node *n = node_of(call);
    uint64_t receivers = pubsub_publish(call->sessions, kind, call->argv[1], call->argv[2]);
    cluster_publish(n->cluster, call->argv[1], call->argv[2], kind == PUBSUB_SHARD);
    node_act(n);
    engine_reply_int(call->reply, (int64_t)receivers);
}

static void cmd_publish(struct dispatch_call *call)
{
    publish(call, PUBSUB_CHANNEL);
}

static void cmd_spublish(struct dispatch_call *call)
{
    publish(call, PUBSUB_SHARD);
}

static void cmd_replicaof(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR REPLICAOF not allowed in cluster mode.");
}

static void cmd_failover(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR FAILOVER not allowed in cluster mode. Use CLUSTER "
                                    "FAILOVER command instead.");
}

/* DEBUG DROP-CLUSTER-PACKET-FILTER type: for tests of clusters. */
static void cmd_debug(struct dispatch_call *call)
{
    int64_t type;
    if (call->argc != 3 || !dispatch_arg_is(call->argv[1], "drop-cluster-packet-filter")) {
        server_cmd_debug(call);
        return;
    }
    if (!dispatch_arg_i64(call, call->argv[2], INT_MIN, INT_MAX, &type, NULL))
        return;
    cluster_settings(node_of(call)->cluster)->dropped = (int)type;
    engine_reply_ok(call->reply);
}

void node_register(struct server *srv)
{
    static const struct dispatch_row rows[] = {
        {"cluster", node_cmd_cluster}, {"readonly", cmd_readonly}, {"readwrite", cmd_readwrite},
        {"asking", cmd_asking},        {"publish", cmd_publish},   {"spublish", cmd_spublish},
        {"replicaof", cmd_replicaof},  {"slaveof", cmd_replicaof}, {"failover", cmd_failover},
        {"debug", cmd_debug},
    };
    dispatch_register(&srv->sessions, rows, sizeof rows / sizeof *rows);
}
