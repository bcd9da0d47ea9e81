/* client_peer_reply.c - whole replies as trees. */
#include "base/mem.h"
#include "client/peer_impl.h"

enum { ITEMS_FIRST = 64 };

static bool grow(struct client_peer_reply *reply, struct rd_err *err)
{
    size_t cap = reply->cap == 0 ? ITEMS_FIRST : reply->cap * 2;
    if (reply->n < reply->cap)
        return true;
    struct client_peer_item *items = rd_realloc(reply->items, cap * sizeof *items);
    if (items == NULL)
        return rd_err_nomem(err, cap * sizeof *items);
    reply->items = items;
    reply->cap = cap;
    return true;
}

/* text.ptr is set when the whole reply was read: the bytes move while they grow. */
static bool add(struct client_peer_reply *reply, const struct resp_node *node, struct rd_err *err)
{
    size_t used = reply->bytes.len + (reply->n + 1) * sizeof *reply->items;
    if (used > CLIENT_REPLY_MAX || node->text.len > CLIENT_REPLY_MAX - used)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the reply is too long");
    if (!grow(reply, err))
        return false;
    if (!rd_buf_add(&reply->bytes, node->text.ptr, node->text.len))
        return rd_err_nomem(err, node->text.len);
    reply->items[reply->n++] = (struct client_peer_item){.type = node->type,
                                                         .null = node->null,
                                                         .integer = node->integer,
                                                         .text = {.len = node->text.len},
                                                         .n_children = (size_t)node->n_children};
    return true;
}

/* From the last to the first: the descendants of an item follow it, so their spans are known. */
static void join(struct client_peer_reply *reply)
{
    const uint8_t *at = reply->bytes.ptr;
    for (size_t i = 0; i < reply->n; i++) {
        reply->items[i].text.ptr = at;
        at += reply->items[i].text.len;
    }
    for (size_t i = reply->n; i-- > 0;) {
        size_t span = 1;
        for (size_t child = 0; child < reply->items[i].n_children; child++)
            span += reply->items[i + span].span;
        reply->items[i].span = span;
    }
}

bool client_peer_read_reply(struct client_peer *peer, struct client_peer_reply *reply,
                            struct rd_err *err)
{
    struct resp_node node;
    reply->n = 0;
    rd_buf_reset(&reply->bytes);
    do {
        /* Attributes are never requested, and do not fit into the tree. */
        if (!client_peer_next(peer, &node, err))
            return false;
        if (node.type == RESP_ATTRIBUTE)
            return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                              "replies with attributes are not supported");
        if (!add(reply, &node, err)) {
            rd_err_origin(err, peer->target->name);
            return false;
        }
    } while (!node.last);
    join(reply);
    if (reply->items[0].type == RESP_ERROR || reply->items[0].type == RESP_BULK_ERROR)
        return client_peer_refused(peer, reply->items[0].text, err);
    return true;
}

bool client_peer_ask(struct client_peer *peer, const char *line, struct client_peer_reply *reply,
                     struct rd_err *err)
{
    return client_peer_send_line(peer, line, err) && client_peer_read_reply(peer, reply, err);
}

bool client_peer_ask_argv(struct client_peer *peer, const struct rd_slice *argv, size_t argc,
                          struct client_peer_reply *reply, struct rd_err *err)
{
    return client_peer_send(peer, argv, argc, err) && client_peer_read_reply(peer, reply, err);
}

void client_peer_reply_done(struct client_peer_reply *reply)
{
    rd_free(reply->items);
    rd_buf_done(&reply->bytes);
    *reply = (struct client_peer_reply){0};
}

const struct client_peer_item *client_peer_item_at(const struct client_peer_item *item,
                                                   size_t place)
{
    if (place >= item->n_children)
        return NULL;
    const struct client_peer_item *child = item + 1;
    while (place-- > 0)
        child += child->span;
    return child;
}

const struct client_peer_item *client_peer_item_find(const struct client_peer_item *item,
                                                     const char *name)
{
    const struct client_peer_item *child = item + 1;
    for (size_t i = 0; i + 1 < item->n_children; i += 2) {
        const struct client_peer_item *value = child + child->span;
        if (rd_slice_is(child->text, name))
            return value;
        child = value + value->span;
    }
    return NULL;
}
