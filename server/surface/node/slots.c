/* CLUSTER ADDSLOTS, SETSLOT and others about slots. */
#include "base/num.h"
#include "engine/by_slot.h"
#include "engine/db.h"
#include "server/session/dispatch/subcommand.h"
#include "server/surface/node/node_impl.h"

/* ---- arguments ---- */

static bool arg_slot(struct dispatch_call *call, struct rd_slice arg, unsigned *ret)
{
    int64_t slot;
    if (!rd_num_get_i64(arg, &slot) || slot < 0 || slot >= RD_HASH_SLOTS) {
        engine_reply_error(call->reply, "ERR Invalid or out of range slot");
        return false;
    }
    *ret = (unsigned)slot;
    return true;
}

static bool deletes(const struct dispatch_call *call)
{
    return call->command->name[call->command->own_name_at] == 'd';
}

static bool refuse_slot(struct dispatch_call *call, unsigned slot, const char *why)
{
    engine_reply_errorf(call->reply, "ERR Slot %u %s", slot, why);
    return false;
}

/* Adds a range to those of the command, each of which must be free, or with DELSLOTS have an
 * owner. */
static bool add_range(struct dispatch_call *call, unsigned first, unsigned last,
                      struct cluster_slots *slots)
{
    const struct cluster *c = node_of(call)->cluster;
    for (unsigned slot = first; slot <= last; slot++) {
        const struct cluster_node *owner = cluster_owner(c, slot);
        if (deletes(call) && owner == NULL)
            return refuse_slot(call, slot, "is already unassigned");
        if (!deletes(call) && owner != NULL)
            return refuse_slot(call, slot, "is already busy");
        if (cluster_slots_has(slots, slot))
            return refuse_slot(call, slot, "specified multiple times");
        cluster_slots_add(slots, slot);
    }
    return true;
}

static void change(struct dispatch_call *call, const struct cluster_slots *slots)
{
    struct node *n = node_of(call);
    if (deletes(call))
        cluster_del_slots(n->cluster, slots);
    else
        cluster_add_slots(n->cluster, slots);
    node_act(n);
    engine_reply_ok(call->reply);
}

/* ---- ADDSLOTS, DELSLOTS, and with ranges ---- */

void node_sub_addslots(struct dispatch_call *call)
{
    struct cluster_slots slots = {{0}};
    unsigned slot;
    for (size_t i = 2; i < call->argc; i++) {
        if (!arg_slot(call, call->argv[i], &slot))
            return;
    }
    for (size_t i = 2; i < call->argc; i++) {
        if (!arg_slot(call, call->argv[i], &slot) || !add_range(call, slot, slot, &slots))
            return;
    }
    change(call, &slots);
}

static bool arg_range(struct dispatch_call *call, size_t at, unsigned *ret_first,
                      unsigned *ret_last)
{
    if (!arg_slot(call, call->argv[at], ret_first) || !arg_slot(call, call->argv[at + 1], ret_last))
        return false;
    if (*ret_first <= *ret_last)
        return true;
    engine_reply_errorf(call->reply, "ERR start slot number %u is greater than end slot number %u",
                        *ret_first, *ret_last);
    return false;
}

void node_sub_addslotsrange(struct dispatch_call *call)
{
    struct cluster_slots slots = {{0}};
    unsigned first, last;
    if (call->argc % 2 != 0) {
        dispatch_wrong_arity(call);
        return;
    }
    for (size_t i = 2; i < call->argc; i += 2) {
        if (!arg_range(call, i, &first, &last) || !add_range(call, first, last, &slots))
            return;
    }
    change(call, &slots);
}

void node_sub_flushslots(struct dispatch_call *call)
{
    struct node *n = node_of(call);
    struct cluster_slots slots = cluster_myself(n->cluster)->slots;
    if (engine_db_count(engine_db(call->sessions->engine, 0)) > 0) {
        engine_reply_error(call->reply, "ERR DB must be empty to perform CLUSTER FLUSHSLOTS.");
        return;
    }
    cluster_del_slots(n->cluster, &slots);
    node_act(n);
    engine_reply_ok(call->reply);
}

/* ---- SETSLOT ---- */

static const char not_a_master[] = "ERR Target node is not a master";

/* NULL: replied. */
static struct cluster_node *other(struct dispatch_call *call, const char *unknown)
{
    struct rd_slice id = call->argv[4];
    struct cluster_node *found = cluster_find(node_of(call)->cluster, id);
    if (found == NULL)
        engine_reply_errorf(call->reply, "ERR %s %.*s", unknown, (int)(id.len < 128 ? id.len : 128),
                            (const char *)id.ptr);
    return found;
}

static void set_migrating(struct dispatch_call *call, unsigned slot)
{
    struct cluster *c = node_of(call)->cluster;
    struct cluster_node *to;
    if (cluster_owner(c, slot) != cluster_myself(c))
        engine_reply_errorf(call->reply, "ERR I'm not the owner of hash slot %u", slot);
    else if ((to = other(call, "I don't know about node")) == NULL)
        return;
    else if ((to->flags & CLUSTER_BUS_MASTER) == 0)
        engine_reply_error(call->reply, not_a_master);
    else if (cluster_set_migrating(c, slot, to) == CLUSTER_IS_MYSELF)
        engine_reply_error(call->reply, "ERR I'm already the owner of this hash slot");
    else
        engine_reply_ok(call->reply);
}

static void set_importing(struct dispatch_call *call, unsigned slot)
{
    struct cluster *c = node_of(call)->cluster;
    struct cluster_node *from;
    if (cluster_owner(c, slot) == cluster_myself(c))
        engine_reply_errorf(call->reply, "ERR I'm already the owner of hash slot %u", slot);
    else if ((from = other(call, "I don't know about node")) == NULL)
        return;
    else if (cluster_set_importing(c, slot, from) == CLUSTER_NOT_MASTER)
        engine_reply_error(call->reply, not_a_master);
    else
        engine_reply_ok(call->reply);
}

static void set_owner(struct dispatch_call *call, unsigned slot)
{
    struct cluster *c = node_of(call)->cluster;
    struct cluster_node *to = other(call, "Unknown node"), *me = cluster_myself(c);
    if (to == NULL)
        return;
    if ((to->flags & CLUSTER_BUS_MASTER) == 0) {
        engine_reply_error(call->reply, not_a_master);
        return;
    }
    if (cluster_owner(c, slot) == me && to != me &&
        engine_by_slot_count(call->sessions->engine, slot) > 0) {
        engine_reply_errorf(call->reply,
                            "ERR Can't assign hashslot %u to a different node while I still hold "
                            "keys for this hash slot.",
                            slot);
        return;
    }
    cluster_set_owner(c, slot, to);
    engine_reply_ok(call->reply);
}

void node_sub_setslot(struct dispatch_call *call)
{
    struct node *n = node_of(call);
    struct rd_slice what = call->argv[3];
    unsigned slot;
    if ((cluster_myself(n->cluster)->flags & CLUSTER_BUS_MASTER) == 0) {
        engine_reply_error(call->reply, "ERR Please use SETSLOT only with masters.");
        return;
    }
    if (!arg_slot(call, call->argv[2], &slot))
        return;
    if (dispatch_arg_is(what, "migrating") && call->argc == 5) {
        set_migrating(call, slot);
    } else if (dispatch_arg_is(what, "importing") && call->argc == 5) {
        set_importing(call, slot);
    } else if (dispatch_arg_is(what, "stable") && call->argc == 4) {
        cluster_set_stable(n->cluster, slot);
        engine_reply_ok(call->reply);
    } else if (dispatch_arg_is(what, "node") && call->argc == 5) {
        set_owner(call, slot);
    } else {
        engine_reply_error(
            call->reply,
            "ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP");
    }
    node_act(n);
}

/* ---- keys ---- */

void node_sub_keyslot(struct dispatch_call *call)
{
    engine_reply_int(call->reply, rd_hash_slot(call->argv[2]));
}

void node_sub_countkeysinslot(struct dispatch_call *call)
{
    int64_t slot;
    if (!dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &slot, NULL))
        return;
    if (slot < 0 || slot >= RD_HASH_SLOTS)
        engine_reply_error(call->reply, "ERR Invalid slot");
    else
        engine_reply_int(call->reply,
                         (int64_t)engine_by_slot_count(call->sessions->engine, (unsigned)slot));
}

static void put_key(void *ctx, struct rd_slice key)
{
    engine_reply_bulk(ctx, key);
}

void node_sub_getkeysinslot(struct dispatch_call *call)
{
    struct engine *e = call->sessions->engine;
    int64_t slot, max;
    if (!dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &slot, NULL) ||
        !dispatch_arg_i64(call, call->argv[3], INT64_MIN, INT64_MAX, &max, NULL))
        return;
    if (slot < 0 || slot >= RD_HASH_SLOTS || max < 0) {
        engine_reply_error(call->reply, "ERR Invalid slot or number of keys");
        return;
    }
    size_t mark = engine_reply_mark(call->reply);
    uint64_t n = engine_by_slot_each(e, (unsigned)slot, (uint64_t)max, put_key, call->reply);
    engine_reply_mark_array(call->reply, mark, n);
}
