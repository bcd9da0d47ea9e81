/* probe.c - whether a backup could read the source, without reading it. */
#include "backup/probe.h"

#include <errno.h>
#include <unistd.h>

#include "backup/login.h"
#include "backup/source.h"
#include "capture/capture.h"
#include "client/topology.h"

/* ---- one server ---- */

static bool reply_has(const struct resp_node *node, const char *text)
{
    return node->type == RESP_ERROR &&
           memmem(node->text.ptr, node->text.len, text, strlen(text)) != NULL;
}

static bool ask(struct client_peer *peer, const char *line, struct resp_node *ret,
                struct rd_err *err)
{
    return client_peer_send_line(peer, line, err) && client_peer_next(peer, ret, err);
}

/* Servers count the arguments before they execute a command. */
static bool knows_sync(struct client_peer *peer, bool *ret, struct rd_err *err)
{
    struct resp_node node;
    if (!ask(peer, "SYNC too many arguments", &node, err))
        return false;
    *ret = reply_has(&node, "number of arguments");
    return *ret || rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                              "the server refuses PSYNC and SYNC: \"%.*s\"", (int)node.text.len,
                              (const char *)node.text.ptr);
}

/* A master does not synchronize while another reply is pending, but it refuses this only after it
 * has looked at the rights of the user. So nothing begins, whatever the answer is. The reply to
 * PING does not matter: a user of replicas need not have the right. */
static bool probe_sync(struct client_peer *peer, struct rd_err *err)
{
    struct resp_node node;
    bool known;
    if (!client_peer_send_line(peer, "PING", err) ||
        !client_peer_send_line(peer, "PSYNC ? -1", err) || !client_peer_next(peer, &node, err) ||
        !client_peer_next(peer, &node, err))
        return false;
    if (node.type != RESP_ERROR || reply_has(&node, "pending"))
        return true;
    if (reply_has(&node, "unknown command"))
        return knows_sync(peer, &known, err);
    return client_peer_refused(peer, node.text, err);
}

/* The commands that read a server key by key. The key does not exist, usually. */
static bool probe_scan(struct client_peer *peer, struct rd_err *err)
{
    static const char *const lines[] = {"INFO keyspace", "SCAN 0 COUNT 1", "PTTL redoubt-probe",
                                        "DUMP redoubt-probe"};
    struct client_peer_reply reply = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof lines / sizeof *lines; i++)
        ok = client_peer_ask(peer, lines[i], &reply, err);
    client_peer_reply_done(&reply);
    return ok;
}

static bool probe_peer(const struct client_target *place, bool scan, struct rd_err *err)
{
    struct client_peer *peer;
    if (!client_peer_open(&peer, place, err))
        return false;
    bool ok = scan ? probe_scan(peer, err) : probe_sync(peer, err);
    client_peer_close(peer);
    return ok;
}

/* ---- a cluster ---- */

static bool read_topology(const struct client_target *place, struct client_topology *ret,
                          struct rd_err *err)
{
    struct client_peer *peer;
    if (!client_peer_open(&peer, place, err))
        return false;
    bool ok = client_topology_read(ret, peer, err);
    client_peer_close(peer);
    return ok;
}

static bool probe_masters(const struct client_target *place, struct rd_err *err)
{
    struct client_topology cluster = {0};
    bool ok = read_topology(place, &cluster, err);
    for (size_t i = 0; ok && i < cluster.n; i++) {
        struct client_target master = {.port = 0};
        ok = client_target_at(&master, place, rd_slice_str(cluster.nodes[i].host),
                              cluster.nodes[i].port, err) &&
             probe_peer(&master, false, err);
        client_target_done(&master);
    }
    client_topology_done(&cluster);
    return ok;
}

/* ---- sentinels ---- */

static bool ask_sentinels(const struct backup_target *target, const struct client_target *like,
                          struct client_target *ret, struct rd_err *err)
{
    struct client_target sentinels[CAPTURE_SENTINELS_MAX];
    size_t n = 0;
    bool ok =
        backup_login_sentinels(target, like, sentinels, CAPTURE_SENTINELS_MAX, &n, err) &&
        client_topology_find_master(ret, sentinels, n, backup_login_master(target), like, err);
    for (size_t i = 0; i < n; i++)
        client_target_done(&sentinels[i]);
    return ok;
}

static bool probe_sentinels(const struct backup_target *target, const struct client_target *like,
                            struct rd_err *err)
{
    struct client_target master = {.port = 0};
    bool ok = ask_sentinels(target, like, &master, err) && probe_peer(&master, false, err);
    client_target_done(&master);
    return ok;
}

/* ---- any source ---- */

static bool probe_place(const struct backup_target *target, const struct client_target *place,
                        struct rd_err *err)
{
    bool scan, cluster;
    if (!backup_get_bool(target, BACKUP_KEY_SCAN, &scan, err) ||
        !backup_get_bool(target, BACKUP_KEY_CLUSTER, &cluster, err))
        return false;
    if (backup_get(target, BACKUP_KEY_SOURCE) == NULL)
        return probe_sentinels(target, place, err);
    return cluster ? probe_masters(place, err) : probe_peer(place, scan, err);
}

static bool probe_server(const struct backup_target *target, const char *url, struct rd_err *err)
{
    struct client_opts opts;
    struct client_target place;
    if (!backup_login_find(target, url, &opts, &place, err))
        return false;
    bool ok = probe_place(target, &place, err);
    client_target_done(&place);
    return ok;
}

bool backup_probe(const struct backup_target *target, struct rd_err *err)
{
    const char *source = backup_get(target, BACKUP_KEY_SOURCE);
    char path[BACKUP_PATH_MAX];
    bool is_log;
    if (source == NULL && backup_get(target, BACKUP_KEY_SENTINEL) == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no source is given");
    if (source == NULL || client_target_is_url(source))
        return probe_server(target, source, err);
    if (!backup_source_find(source, path, &is_log, err))
        return false;
    if (access(path, is_log ? R_OK | X_OK : R_OK) == 0)
        return true;
    rd_err_sys(err, errno, "cannot read the source");
    rd_err_origin(err, path);
    return false;
}
