/* target.c - the servers of the target: a single server, or the masters of a cluster. */
#include "tools/migrate/migrate.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "client/info.h"

/* ---- error replies ---- */

bool migrate_is_temporary(struct rd_slice reply)
{
    static const char *const words[] = {"MOVED ",   "ASK ",       "TRYAGAIN",   "CLUSTERDOWN",
                                        "READONLY", "LOADING",    "MASTERDOWN", "OOM ",
                                        "MISCONF",  "NOREPLICAS", "BUSY ",      "UNBLOCKED",
                                        "FAILOVER", "IOERR",      "NOQUORUM",   "REDIRECT "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i]);
        if (reply.len >= len && memcmp(reply.ptr, words[i], len) == 0)
            return true;
    }
    return false;
}

/* ---- old connections ---- */

static bool kill_client(struct client_peer *peer, struct rd_slice id, struct rd_err *err)
{
    const struct rd_slice argv[] = {rd_slice_str("CLIENT"), rd_slice_str("KILL"),
                                    rd_slice_str("ID"), id};
    struct client_peer_reply reply = {0};
    bool ok = client_peer_ask_argv(peer, argv, 4, &reply, err);
    client_peer_reply_done(&reply);
    return ok;
}

/* The value of NAME=VALUE in a line of CLIENT LIST. */
static struct rd_slice field(struct rd_slice line, const char *name)
{
    size_t len = strlen(name);
    for (size_t at = 0; at + len < line.len; at++) {
        if ((at > 0 && line.ptr[at - 1] != ' ') || memcmp(line.ptr + at, name, len) != 0)
            continue;
        size_t end = at += len;
        while (end < line.len && line.ptr[end] != ' ')
            end++;
        return rd_slice(line.ptr + at, end - at);
    }
    return rd_slice(NULL, 0);
}

static bool kill_others(struct client_peer *peer, const char *title, uint64_t own,
                        struct rd_err *err)
{
    struct client_peer_reply list = {0};
    bool ok = client_peer_ask(peer, "CLIENT LIST", &list, err);
    struct rd_slice text = ok ? list.items[0].text : rd_slice(NULL, 0);
    while (ok && text.len > 0) {
        const uint8_t *end = memchr(text.ptr, '\n', text.len);
        size_t len = end != NULL ? (size_t)(end - text.ptr) : text.len;
        struct rd_slice line = rd_slice(text.ptr, len), id = field(line, "id=");
        uint64_t number;
        if (rd_slice_is(field(line, "name="), title) && rd_num_get_u64(id, &number) &&
            number != own) {
            struct rd_err gone = {0};
            ok = kill_client(peer, id, &gone) || gone.reason.id != 0 || gone.sys == 0;
            if (!ok)
                rd_err_adopt(err, &gone);
        }
        len += end != NULL;
        text = rd_slice(text.ptr + len, text.len - len);
    }
    client_peer_reply_done(&list);
    return ok;
}

/* Gives the connection the name of the migration, and closes others of this name: a process that
 * was killed may have sent commands that the server has not read yet. */
static bool fence(struct client_peer *peer, const char *name, struct rd_err *err)
{
    char title[MIGRATE_NAME_MAX + 32];
    snprintf(title, sizeof title, "redoubt-migrate-%s", name);
    const struct rd_slice set[] = {rd_slice_str("CLIENT"), rd_slice_str("SETNAME"),
                                   rd_slice_str(title)};
    struct client_peer_reply reply = {0};
    bool ok = client_peer_ask_argv(peer, set, 3, &reply, err) &&
              client_peer_ask(peer, "CLIENT ID", &reply, err);
    uint64_t own = ok ? (uint64_t)reply.items[0].integer : 0;
    client_peer_reply_done(&reply);
    return ok && kill_others(peer, title, own, err);
}

/* ---- the servers ---- */

/* A replica refuses writes. Its answer is temporary: it may become a master, or its address that of
 * one. */
static bool check_role(struct client_peer *peer, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    struct rd_slice role;
    bool ok = client_peer_ask(peer, "INFO replication", &reply, err);
    if (ok && client_info_find(reply.items[0].text, "role", &role) && !rd_slice_is(role, "master"))
        ok = rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the target is a replica");
    client_peer_reply_done(&reply);
    return ok;
}

static bool add_node(struct migrate_target *t, struct client_target *target, struct rd_err *err)
{
    struct migrate_node *nodes = rd_realloc(t->nodes, (t->n_nodes + 1) * sizeof *nodes);
    if (nodes == NULL) {
        client_target_done(target);
        return rd_err_nomem(err, (t->n_nodes + 1) * sizeof *nodes);
    }
    t->nodes = nodes;
    nodes[t->n_nodes++] = (struct migrate_node){.target = *target};
    return true;
}

static bool add_masters(struct migrate_target *t, const struct client_topology *cluster,
                        struct rd_err *err)
{
    if (cluster->n_slots != RD_HASH_SLOTS)
        return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                          "%u of the %d slots of the cluster have a master", cluster->n_slots,
                          RD_HASH_SLOTS);
    for (size_t i = 0; i < cluster->n; i++) {
        const struct client_topology_node *node = &cluster->nodes[i];
        struct client_target target = {0};
        if (!client_target_at(&target, &t->first, rd_slice_str(node->host), node->port, err) ||
            !add_node(t, &target, err))
            return false;
        for (size_t k = 0; k < node->n_ranges; k++)
            for (unsigned slot = node->ranges[k].first; slot <= node->ranges[k].last; slot++)
                t->node_of[slot] = (uint16_t)(t->n_nodes - 1);
    }
    return true;
}

static bool copy_first(struct migrate_target *t, struct client_target *ret, struct rd_err *err)
{
    if (!client_target_at(ret, &t->first, rd_slice_str(t->first.host), t->first.port, err))
        return false;
    memcpy(ret->socket, t->first.socket, sizeof ret->socket);
    memcpy(ret->name, t->first.name, sizeof ret->name);
    return true;
}

/* Asks a member, or learns that the server is not one. */
static bool ask_member(const struct client_target *target, bool *ret_clustered,
                       struct client_topology *cluster, struct rd_err *err)
{
    struct client_peer *peer;
    if (!client_peer_open(&peer, target, err))
        return false;
    bool ok = client_topology_exists(peer, ret_clustered, NULL, err) &&
              (!*ret_clustered || client_topology_read(cluster, peer, err));
    client_peer_close(peer);
    if (!ok)
        rd_err_origin(err, target->name);
    return ok;
}

/* Any member can answer: the one that the user named may be down. */
static bool find_masters(struct migrate_target *t, struct rd_err *err)
{
    struct client_topology cluster = {0};
    struct client_target first = {0};
    struct rd_err why = {0};
    bool clustered = false;
    bool ok = ask_member(&t->first, &clustered, &cluster, &why);
    for (size_t i = 0; !ok && t->clustered && i < t->n_nodes; i++) {
        struct rd_err other = {0};
        ok = ask_member(&t->nodes[i].target, &clustered, &cluster, &other);
    }
    if (!ok) {
        rd_err_adopt(err, &why);
        client_topology_done(&cluster);
        return false;
    }
    for (size_t i = 0; i < t->n_nodes; i++)
        client_target_done(&t->nodes[i].target);
    t->n_nodes = 0;
    t->clustered = clustered;
    t->n_groups = clustered ? RD_HASH_SLOTS : 1;
    ok = clustered ? add_masters(t, &cluster, err)
                   : copy_first(t, &first, err) && add_node(t, &first, err);
    client_topology_done(&cluster);
    return ok;
}

static bool has_several(struct client_peer *peer, bool *ret, struct rd_err *err)
{
    struct resp_node node;
    if (!client_peer_send_line(peer, "SELECT 1", err) || !client_peer_next(peer, &node, err))
        return false;
    *ret = node.type == RESP_SIMPLE;
    return client_peer_send_line(peer, "SELECT 0", err) && client_peer_next(peer, &node, err);
}

bool migrate_target_connect(struct migrate_target *t, const char *name, struct rd_err *err)
{
    migrate_target_disconnect(t);
    if (!find_masters(t, err))
        return false;
    for (size_t i = 0; i < t->n_nodes; i++) {
        struct migrate_node *node = &t->nodes[i];
        if (!client_peer_open(&node->peer, &node->target, err) || !check_role(node->peer, err) ||
            !has_several(node->peer, &t->several_dbs, err) || !fence(node->peer, name, err)) {
            rd_err_origin(err, node->target.name);
            return false;
        }
    }
    return true;
}

void migrate_target_disconnect(struct migrate_target *t)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        client_peer_close(t->nodes[i].peer);
        t->nodes[i].peer = NULL;
    }
}

void migrate_target_done(struct migrate_target *t)
{
    migrate_target_disconnect(t);
    for (size_t i = 0; i < t->n_nodes; i++)
        client_target_done(&t->nodes[i].target);
    rd_free(t->nodes);
    client_target_done(&t->first);
    *t = (struct migrate_target){0};
}
