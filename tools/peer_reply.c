/* peer_reply.c - whole replies as trees. */
#include "base/mem.h"
#include "tools/peer_impl.h"

enum { ITEMS_FIRST = 64 };

static bool grow(struct peer_reply *reply, struct rd_err *err)
{
    size_t cap = reply->cap == 0 ? ITEMS_FIRST : reply->cap * 2;
    if (reply->n < reply->cap)
        return true;
    struct peer_item *items = rd_realloc(reply->items, cap * sizeof *items);
    if (items == NULL)
        return rd_err_nomem(err, cap * sizeof *items);
    reply->items = items;
    reply->cap = cap;
    return true;
}

/* Until all of the reply is there, text.ptr is not set: the bytes move as they grow. */
static bool add(struct peer_reply *reply, const struct resp_node *node, struct rd_err *err)
{
    size_t used = reply->bytes.len + (reply->n + 1) * sizeof *reply->items;
    if (used > PEER_REPLY_MAX || node->text.len > PEER_REPLY_MAX - used)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the reply is too long");
    if (!grow(reply, err))
        return false;
    if (!rd_buf_add(&reply->bytes, node->text.ptr, node->text.len))
        return rd_err_nomem(err, node->text.len);
    reply->items[reply->n++] = (struct peer_item){.type = node->type,
                                                  .null = node->null,
                                                  .integer = node->integer,
                                                  .text = {.len = node->text.len},
                                                  .n_children = (size_t)node->n_children};
    return true;
}

/* From the last to the first: what an item holds follows it, and its span is known. */
static void join(struct peer_reply *reply)
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

bool peer_read_reply(struct peer *peer, struct peer_reply *reply, struct rd_err *err)
{
    struct resp_node node;
    reply->n = 0;
    rd_buf_reset(&reply->bytes);
    do {
        /* Attributes are not asked for, and would not fit the tree. */
        if (!peer_next(peer, &node, err))
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
        return peer_refused(peer, reply->items[0].text, err);
    return true;
}

bool peer_ask(struct peer *peer, const char *line, struct peer_reply *reply, struct rd_err *err)
{
    return peer_send_line(peer, line, err) && peer_read_reply(peer, reply, err);
}

bool peer_ask_argv(struct peer *peer, const struct rd_slice *argv, size_t argc,
                   struct peer_reply *reply, struct rd_err *err)
{
    return peer_send(peer, argv, argc, err) && peer_read_reply(peer, reply, err);
}

void peer_reply_done(struct peer_reply *reply)
{
    rd_free(reply->items);
    rd_buf_done(&reply->bytes);
    *reply = (struct peer_reply){0};
}

const struct peer_item *peer_item_at(const struct peer_item *item, size_t place)
{
    if (place >= item->n_children)
        return NULL;
    const struct peer_item *child = item + 1;
    while (place-- > 0)
        child += child->span;
    return child;
}

const struct peer_item *peer_item_find(const struct peer_item *item, const char *name)
{
    const struct peer_item *child = item + 1;
    for (size_t i = 0; i + 1 < item->n_children; i += 2) {
        const struct peer_item *value = child + child->span;
        if (rd_slice_is(child->text, name))
            return value;
        child = value + value->span;
    }
    return NULL;
}
