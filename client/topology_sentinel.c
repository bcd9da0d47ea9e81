/* topology_sentinel.c - finds the master that sentinels know. */
#include "base/num.h"
#include "client/topology.h"

/* The address that one sentinel returns; null if it does not know the name. */
static bool ask_sentinel(struct client_target *ret, const struct client_target *sentinel,
                         const char *name, const struct client_target *like, struct rd_err *err)
{
    const struct rd_slice argv[] = {rd_slice_str("SENTINEL"),
                                    rd_slice_str("get-master-addr-by-name"), rd_slice_str(name)};
    struct client_peer_reply reply = {0};
    struct client_peer *peer;
    char quoted[100];
    uint64_t port;
    if (!client_peer_open(&peer, sentinel, err))
        return false;
    bool ok = client_peer_ask_argv(peer, argv, 3, &reply, err);
    const struct client_peer_item *host = ok ? client_peer_item_at(reply.items, 0) : NULL;
    const struct client_peer_item *number = ok ? client_peer_item_at(reply.items, 1) : NULL;
    if (ok && reply.items[0].null)
        ok = rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the sentinel does not know master %s",
                        rd_err_quote(quoted, sizeof quoted, rd_slice_str(name)));
    else if (ok && (number == NULL || !rd_num_get_u64(number->text, &port)))
        ok = rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "unexpected reply to SENTINEL");
    rd_err_origin(err, sentinel->name);
    ok = ok && client_target_at(ret, like, host->text, port, err);
    client_peer_reply_done(&reply);
    client_peer_close(peer);
    return ok;
}

/* A sentinel may not have noticed yet that another server was promoted. */
static bool check_role(const struct client_target *target, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    struct rd_err why = {0};
    struct client_peer *peer;
    if (!client_peer_open(&peer, target, err))
        return false;
    bool ok = client_peer_ask(peer, "ROLE", &reply, &why);
    const struct client_peer_item *role = ok ? client_peer_item_at(reply.items, 0) : NULL;
    bool refused = !ok && why.reason.id == RESP_REASON_NOPERM;
    bool master = role != NULL && rd_slice_is(role->text, "master");
    client_peer_reply_done(&reply);
    client_peer_close(peer);
    if (refused || master)
        return true;
    rd_err_adopt(err, &why);
    rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
               "a sentinel reports this server as a master, but it is not");
    rd_err_origin(err, target->name);
    return false;
}

bool client_topology_find_master(struct client_target *ret, const struct client_target *sentinels,
                                 size_t n, const char *name, const struct client_target *like,
                                 struct rd_err *err)
{
    struct rd_err why = {0};
    rd_err_set(&why, RD_ERR_USAGE, RD_NO_OFFSET, "no sentinel to ask");
    for (size_t i = 0; i < n; i++) {
        struct client_target target = {0};
        rd_err_reset(&why);
        if (ask_sentinel(&target, &sentinels[i], name, like, &why) && check_role(&target, &why)) {
            *ret = target;
            return true;
        }
        client_target_done(&target);
    }
    rd_err_adopt(err, &why);
    return false;
}
