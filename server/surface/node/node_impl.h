/* node_impl.h - the state of a server that is a node of a cluster. Private to server/surface/node/.
 */
#ifndef SERVER_SURFACE_NODE_NODE_IMPL_H
#define SERVER_SURFACE_NODE_NODE_IMPL_H

#include "cluster/cluster.h"
#include "server/session/dispatch/dispatch.h"
#include "server/surface/node/node.h"

struct node_link;

/* What cannot be done while a script runs or data is loaded. The last role counts. */
struct node_todo {
    enum { NODE_STAYS, NODE_FOLLOWS, NODE_LEADS } role;
    char host[CLUSTER_ADDRESS_MAX + 1];
    int port;
    bool drops; /* the keys of these slots */
    struct cluster_slots drop;
};

struct node {
    struct server *srv;
    struct cluster *cluster;
    uv_timer_t timer;
    bool tick_due; /* noted by the timer */
    unsigned ticks;
    bool acting; /* in node_act() */
    struct node_todo todo;

    struct node_link *links;
    size_t n_links;
    uint64_t n_over_limit; /* links that were closed: cluster-link-sendbuf-limit */

    int dir_fd; /* of nodes.conf */
    int lock_fd;
    bool saved;    /* the last save succeeded */
    bool unsynced; /* the file: until node_file_sync() */

    struct cluster_slots served; /* of this node or its master, when clients were last checked */
    bool check_waiting;          /* clients that wait for keys */
};

static inline struct node *node_of(const struct dispatch_call *call)
{
    return server_of(call->sessions)->node;
}

/* Passes the time, and how far the replication is, to the library; before other functions of it. */
void node_clock(struct node *n);

/* Passes the settings, which CONFIG SET can change at any time. */
void node_settings(struct node *n);

/* Does what the library asks for. */
void node_act(struct node *n);

/* ---- bus.c ---- */

void node_links_accept(struct loop *loop, struct conn *conn);
void node_links_connect(struct node *n, const struct cluster_action *action);
void node_links_close(struct node *n, uint64_t conn);
void node_links_send(struct node *n, const struct cluster_action *action);
void node_links_drop_all(struct node *n);
/* Closes links with too many bytes to send. */
void node_links_limit(struct node *n);
/* Closes those with another node: opened here, and opened there. */
void node_links_kill(struct node *n, const struct cluster_node *other, bool to, bool from);
size_t node_links_memory(const struct node *n);

struct node_link_report {
    uint64_t conn;
    const char *events;
    size_t allocated, used; /* bytes to send */
};
/* False: there is no such connection. */
bool node_links_report(const struct node *n, uint64_t conn, struct node_link_report *ret);

/* ---- file.c ---- */

/* False: *why is set. */
bool node_file_open(struct node *n, struct rd_buf *why);
/* False: nothing has changed; the reason was logged. */
bool node_file_save(struct node *n, bool sync);
void node_file_sync(struct node *n);
void node_file_close(struct node *n);

/* ---- route.c ---- */

bool node_route(struct client *c, const struct engine_admit_script *script,
                const struct engine_request *request, struct engine_refusal *ret);

/* "MOVED 1234 127.0.0.1:6379". to NULL: CLUSTERDOWN. */
void node_redirect(const struct node *n, const struct client *c, const char *word, unsigned slot,
                   const struct cluster_node *to, char *dst, size_t size);

/* The port for clients like this one: with TLS, or without. */
unsigned node_port(const struct node *n, const struct client *c, const struct cluster_node *of);

/* ---- lose.c ---- */

void node_check_clients(struct node *n);

/* ---- commands.c ---- */

void node_register(struct server *srv);
/* NULL: replied that it is unknown. */
struct cluster_node *node_arg(struct dispatch_call *call, struct rd_slice id);
void node_cmd_cluster(struct dispatch_call *call);

/* ---- slots.c ---- */

void node_sub_addslots(struct dispatch_call *call);
void node_sub_addslotsrange(struct dispatch_call *call);
void node_sub_flushslots(struct dispatch_call *call);
void node_sub_setslot(struct dispatch_call *call);
void node_sub_keyslot(struct dispatch_call *call);
void node_sub_countkeysinslot(struct dispatch_call *call);
void node_sub_getkeysinslot(struct dispatch_call *call);

/* ---- describe.c, shards.c ---- */

void node_sub_info(struct dispatch_call *call);
void node_sub_nodes(struct dispatch_call *call);
void node_sub_replicas(struct dispatch_call *call);
void node_sub_slots(struct dispatch_call *call);
void node_sub_shards(struct dispatch_call *call);
void node_sub_links(struct dispatch_call *call);

#endif
