#include "tools/cluster/check.h"

#include "client/info.h"

#include <stdio.h>

void cluster_server_done(struct cluster_server *server)
{
    client_target_done(&server->target);
    cluster_conf_done(&server->conf);
    rd_buf_done(&server->info);
}

static bool read_nodes(struct cluster_server *server, struct client_peer *peer)
{
    struct client_peer_reply reply = {0};
    struct cluster_conf conf = {0};
    struct rd_err bad = {0};
    bool ok = client_peer_ask(peer, "CLUSTER NODES", &reply, &server->why);
    if (ok && !cluster_conf_read_reply(&conf, reply.items[0].text, NULL, NULL, &bad))
        ok = rd_err_set(&server->why, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                        "unexpected reply to CLUSTER NODES: %s", bad.text);
    client_peer_reply_done(&reply);
    if (!ok)
        return false;
    cluster_conf_done(&server->conf);
    server->conf = conf;
    return true;
}

bool cluster_ask_view(struct cluster_server *server)
{
    struct client_peer *peer = NULL;
    rd_err_reset(&server->why);
    bool ok = client_peer_open(&peer, &server->target, &server->why) && read_nodes(server, peer);
    client_peer_close(peer);
    rd_err_origin(&server->why, server->target.name);
    return ok;
}

/* ---- what else is of interest ---- */

static bool ask_text(struct client_peer *peer, const char *command, struct rd_buf *ret,
                     struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = client_peer_ask(peer, command, &reply, err) &&
              (rd_buf_add(ret, reply.items[0].text.ptr, reply.items[0].text.len) ||
               rd_err_nomem(err, reply.items[0].text.len));
    client_peer_reply_done(&reply);
    return ok;
}

static bool ask_state(struct cluster_server *server, struct client_peer *peer)
{
    struct rd_buf text = {0};
    struct rd_slice state;
    bool ok = ask_text(peer, "CLUSTER INFO", &text, &server->why);
    if (ok && client_info_find(rd_buf_slice(&text), "cluster_state", &state))
        snprintf(server->state, sizeof server->state, "%.*s", (int)state.len,
                 (const char *)state.ptr);
    rd_buf_done(&text);
    return ok;
}

/* Some services refuse CONFIG: the settings are not known then. */
static void ask_settings(struct cluster_server *server, struct client_peer *peer)
{
    static const char *const names[] = {
#define X(name, danger) name,
        CLUSTER_SETTINGS(X)
#undef X
    };
    struct client_peer_reply reply = {0};
    struct rd_err ignored = {0};
    if (client_peer_ask(peer, "CONFIG GET *", &reply, &ignored)) {
        for (size_t i = 0; i < CLUSTER_N_SETTINGS; i++) {
            const struct client_peer_item *value = client_peer_item_find(reply.items, names[i]);
            if (value != NULL)
                rd_err_printable(server->values[i], sizeof server->values[i], value->text);
        }
    }
    client_peer_reply_done(&reply);
}

/* ---- keys in slots of other nodes ---- */

enum { BATCH = 512 };

static bool count_batch(struct cluster_server *server, struct client_peer *peer,
                        const unsigned *slots, size_t n)
{
    char line[60];
    for (size_t i = 0; i < n; i++) {
        snprintf(line, sizeof line, "CLUSTER COUNTKEYSINSLOT %u", slots[i]);
        if (!client_peer_send_line(peer, line, &server->why))
            return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct resp_node node;
        if (!client_peer_next_value(peer, &node, &server->why))
            return false;
        if (node.integer <= 0)
            continue;
        if (server->n_foreign == 0)
            server->first_foreign = slots[i];
        server->foreign[slots[i] / 64] |= (uint64_t)1 << (slots[i] % 64);
        server->n_foreign += (uint64_t)node.integer;
    }
    return true;
}

static bool count_foreign(struct cluster_server *server, struct client_peer *peer,
                          const struct cluster_slots *own)
{
    unsigned slots[BATCH];
    size_t n = 0;
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if (cluster_slots_has(own, slot))
            continue;
        slots[n++] = slot;
        if (n == BATCH && !count_batch(server, peer, slots, n))
            return false;
        n %= BATCH;
    }
    server->counted = count_batch(server, peer, slots, n);
    return server->counted;
}

bool cluster_ask_rest(struct cluster_server *server, const struct cluster_slots *own)
{
    struct client_peer *peer = NULL;
    bool ok = client_peer_open(&peer, &server->target, &server->why) &&
              ask_text(peer, "INFO", &server->info, &server->why) && ask_state(server, peer);
    if (ok)
        ask_settings(server, peer);
    ok = ok && (own == NULL || count_foreign(server, peer, own));
    client_peer_close(peer);
    rd_err_origin(&server->why, server->target.name);
    return ok;
}
