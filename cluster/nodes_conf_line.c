#include "base/mem.h"
#include "base/num.h"
#include "cluster/nodes_conf_impl.h"

#include <stdio.h>

enum {
    FIELD_ID,
    FIELD_ADDRESS,
    FIELD_FLAGS,
    FIELD_MASTER,
    FIELD_PING,
    FIELD_PONG,
    FIELD_EPOCH,
    FIELD_LINK,
    FIELDS
};

const struct cluster_flag_word cluster_flag_words[CLUSTER_N_FLAGS] = {
#define X(name, bit, word) {CLUSTER_FLAG_##name, word},
    CLUSTER_FLAGS(X)
#undef X
};

static enum cluster_conf_line bad(struct cluster_conf_fault *fault,
                                  enum cluster_conf_problem problem, const char *what,
                                  struct rd_slice text)
{
    char quoted[100];
    rd_err_quote(quoted, sizeof quoted, text);
    fault->problem = problem;
    snprintf(fault->text, sizeof fault->text, "%s: %s", what, quoted);
    return CLUSTER_CONF_LINE_BAD;
}

struct rd_slice cluster_conf_take_until(struct rd_slice *rest, char at)
{
    const uint8_t *end = rest->len > 0 ? memchr(rest->ptr, at, rest->len) : NULL;
    struct rd_slice part = rd_slice(rest->ptr, end != NULL ? (size_t)(end - rest->ptr) : rest->len);
    size_t used = part.len + (end != NULL ? 1 : 0);
    *rest = rd_slice(rest->ptr + used, rest->len - used);
    return part;
}

/* The next field; false: the line ends. */
static bool next_field(struct rd_slice *rest, struct rd_slice *ret)
{
    while (rest->len > 0 && rest->ptr[0] == ' ')
        *rest = rd_slice(rest->ptr + 1, rest->len - 1);
    if (rest->len == 0)
        return false;
    *ret = cluster_conf_take_until(rest, ' ');
    return true;
}

static bool last_index(struct rd_slice text, char of, size_t *ret)
{
    for (size_t i = text.len; i > 0; i--) {
        if (text.ptr[i - 1] == (uint8_t)of) {
            *ret = i - 1;
            return true;
        }
    }
    return false;
}

static bool get_port(struct rd_slice text, unsigned *ret)
{
    uint64_t number;
    if (!rd_num_get_u64(text, &number) || number > 65535)
        return false;
    *ret = (unsigned)number;
    return true;
}

static bool is_printable(struct rd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] <= ' ' || text.ptr[i] >= 0x7f)
            return false;
    }
    return true;
}

static bool keep_more(struct rd_slice more, char **ret)
{
    *ret = rd_alloc(more.len + 1);
    if (*ret == NULL)
        return false;
    memcpy(*ret, more.ptr, more.len);
    (*ret)[more.len] = '\0';
    return true;
}

/* HOST:PORT@BUSPORT,MORE */
static enum cluster_conf_line get_address(struct rd_slice field, struct cluster_conf_node *node,
                                          struct cluster_conf_fault *fault)
{
    static const char what[] = "not an address";
    struct rd_slice rest = field;
    struct rd_slice place = cluster_conf_take_until(&rest, ',');
    size_t colon;
    if (!is_printable(field) || !last_index(place, ':', &colon) || colon > CLUSTER_HOST_MAX)
        return bad(fault, CLUSTER_CONF_BAD_ADDRESS, what, field);
    struct rd_slice bus = rd_slice(place.ptr + colon + 1, place.len - colon - 1);
    bool has_bus = bus.len > 0 && memchr(bus.ptr, '@', bus.len) != NULL;
    struct rd_slice port = cluster_conf_take_until(&bus, '@');
    if (!get_port(port, &node->port) || (has_bus && !get_port(bus, &node->bus_port)))
        return bad(fault, CLUSTER_CONF_BAD_ADDRESS, what, field);
    memcpy(node->host, place.ptr, colon);
    if (place.len < field.len) {
        struct rd_slice more = rd_slice(field.ptr + place.len, field.len - place.len);
        if (!keep_more(more, &node->more))
            return CLUSTER_CONF_LINE_MEMORY;
    }
    return CLUSTER_CONF_LINE_NODE;
}

static enum cluster_conf_line get_flags(struct rd_slice field, struct cluster_conf_node *node,
                                        struct cluster_conf_fault *fault)
{
    struct rd_slice rest = field;
    while (rest.len > 0) {
        struct rd_slice word = cluster_conf_take_until(&rest, ',');
        unsigned flag = 0;
        for (size_t i = 0; i < CLUSTER_N_FLAGS; i++) {
            if (rd_slice_is(word, cluster_flag_words[i].word))
                flag = cluster_flag_words[i].flag;
        }
        if (flag == 0 && !rd_slice_is(word, "noflags"))
            return bad(fault, CLUSTER_CONF_BAD_FLAG, "unknown flag", word);
        node->flags |= flag;
    }
    return CLUSTER_CONF_LINE_NODE;
}

/* [SLOT->-ID] or [SLOT-<-ID] */
static bool get_move(struct rd_slice field, struct cluster_move *ret)
{
    struct rd_slice rest = rd_slice(field.ptr + 1, field.len - 1);
    struct rd_slice number = cluster_conf_take_until(&rest, '-');
    uint64_t slot;
    if (rest.len != CLUSTER_ID_LEN + 3 || rest.ptr[rest.len - 1] != ']' || rest.ptr[1] != '-' ||
        (rest.ptr[0] != '>' && rest.ptr[0] != '<') || !rd_num_get_u64(number, &slot) ||
        slot >= RD_HASH_SLOTS || !cluster_is_id(rd_slice(rest.ptr + 2, CLUSTER_ID_LEN)))
        return false;
    *ret = (struct cluster_move){.slot = (unsigned)slot, .importing = rest.ptr[0] == '<'};
    memcpy(ret->other, rest.ptr + 2, CLUSTER_ID_LEN);
    return true;
}

static enum cluster_conf_line get_slot(struct rd_slice field, struct cluster_conf_node *node,
                                       struct cluster_conf_fault *fault)
{
    static const char what[] = "not a slot";
    if (field.ptr[0] == '[') {
        struct cluster_move move;
        if (!get_move(field, &move))
            return bad(fault, CLUSTER_CONF_BAD_SLOT, what, field);
        return cluster_conf_node_add_move(node, &move) ? CLUSTER_CONF_LINE_NODE
                                                       : CLUSTER_CONF_LINE_MEMORY;
    }
    struct rd_slice rest = field;
    uint64_t first, last;
    bool ok = rd_num_get_u64(cluster_conf_take_until(&rest, '-'), &first);
    last = first;
    if (ok && (rest.len > 0 || field.ptr[field.len - 1] == '-'))
        ok = rd_num_get_u64(rest, &last);
    if (!ok || first > last || last >= RD_HASH_SLOTS)
        return bad(fault, CLUSTER_CONF_BAD_SLOT, what, field);
    cluster_slots_add_range(&node->slots, (unsigned)first, (unsigned)last);
    return CLUSTER_CONF_LINE_NODE;
}

/* "currentEpoch 8 lastVoteEpoch 7"; servers ignore other names. */
static enum cluster_conf_line get_vars(struct rd_slice rest, struct cluster_conf *conf,
                                       struct cluster_conf_fault *fault)
{
    struct rd_slice name, value;
    while (next_field(&rest, &name)) {
        uint64_t number;
        if (!next_field(&rest, &value))
            return bad(fault, CLUSTER_CONF_BAD_LINE, "variable without a value", name);
        if (!rd_num_get_u64(value, &number))
            return bad(fault, CLUSTER_CONF_BAD_NUMBER, "not a number", value);
        if (rd_slice_is(name, "currentEpoch"))
            conf->current_epoch = number;
        else if (rd_slice_is(name, "lastVoteEpoch"))
            conf->last_vote_epoch = number;
    }
    conf->has_vars = true;
    return CLUSTER_CONF_LINE_VARS;
}

static enum cluster_conf_line get_numbers(const struct rd_slice *fields,
                                          struct cluster_conf_node *node,
                                          struct cluster_conf_fault *fault)
{
    uint64_t time;
    for (int i = FIELD_PING; i <= FIELD_PONG; i++) {
        if (!rd_num_get_u64(fields[i], &time))
            return bad(fault, CLUSTER_CONF_BAD_NUMBER, "not a time", fields[i]);
    }
    if (!rd_num_get_u64(fields[FIELD_EPOCH], &node->epoch))
        return bad(fault, CLUSTER_CONF_BAD_NUMBER, "not an epoch", fields[FIELD_EPOCH]);
    return CLUSTER_CONF_LINE_NODE;
}

static enum cluster_conf_line get_ids(const struct rd_slice *fields, struct cluster_conf_node *node,
                                      struct cluster_conf_fault *fault)
{
    struct rd_slice id = fields[FIELD_ID], master = fields[FIELD_MASTER];
    if (!cluster_is_id(id))
        return bad(fault, CLUSTER_CONF_BAD_ID, "not the id of a node", id);
    memcpy(node->id, id.ptr, CLUSTER_ID_LEN);
    if (rd_slice_is(master, "-"))
        return CLUSTER_CONF_LINE_NODE;
    if (!cluster_is_id(master))
        return bad(fault, CLUSTER_CONF_BAD_ID, "not the id of a node", master);
    memcpy(node->master, master.ptr, CLUSTER_ID_LEN);
    return CLUSTER_CONF_LINE_NODE;
}

enum cluster_conf_line cluster_conf_parse_line(struct rd_slice line, struct cluster_conf *conf,
                                               struct cluster_conf_node *node,
                                               struct cluster_conf_fault *fault)
{
    struct rd_slice rest = line, fields[FIELDS], slot;
    size_t n = 0;
    while (n < FIELDS && next_field(&rest, &fields[n])) {
        if (n == 0 && rd_slice_is(fields[0], "vars"))
            return get_vars(rest, conf, fault);
        n++;
    }
    if (n < FIELDS)
        return bad(fault, CLUSTER_CONF_BAD_LINE, "fewer than eight fields", line);
    enum cluster_conf_line kind = get_ids(fields, node, fault);
    if (kind == CLUSTER_CONF_LINE_NODE)
        kind = get_address(fields[FIELD_ADDRESS], node, fault);
    if (kind == CLUSTER_CONF_LINE_NODE)
        kind = get_flags(fields[FIELD_FLAGS], node, fault);
    if (kind == CLUSTER_CONF_LINE_NODE)
        kind = get_numbers(fields, node, fault);
    node->connected = rd_slice_is(fields[FIELD_LINK], "connected");
    while (kind == CLUSTER_CONF_LINE_NODE && next_field(&rest, &slot))
        kind = get_slot(slot, node, fault);
    return kind;
}
