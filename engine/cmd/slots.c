/* slots.c - removes the keys of hash slots that have gone to another node of a cluster. Only logs
 * and the streams of masters have these commands here. */
#include "base/crc16.h"
#include "engine/call.h"
#include "engine/cmd/cmd.h"

struct slots {
    bool in[RD_HASH_SLOTS];
};

static bool arg_slot(struct engine_call *call, struct rd_slice arg, int64_t *ret)
{
    return engine_arg_range(call, arg, 0, RD_HASH_SLOTS - 1, ret, "Invalid or out of range slot");
}

/* The keys of all databases: a cluster of Redis has one, and one of Valkey migrates them all. */
static void remove_keys(struct engine_call *call, const struct slots *slots)
{
    struct engine_db *before = call->db;
    for (unsigned i = 0; (call->db = engine_call_db(call, i)) != NULL; i++) {
        struct engine_table_iter it;
        engine_table_iter_begin(&it, &call->db->keys);
        for (struct engine_entry *e; (e = engine_table_iter_next(&it)) != NULL;) {
            if (!slots->in[rd_hash_slot(engine_entry_key(e))])
                continue;
            engine_touch(call, engine_entry_key(e), 1);
            engine_call_delete(call, e);
        }
        engine_table_iter_end(&it);
    }
    call->db = before;
}

/* TRIMSLOTS RANGES n { start end } */
void engine_cmd_trimslots(struct engine_call *call)
{
    struct slots slots = {{false}};
    int64_t n, start, end;
    if (!engine_arg_is(call->argv[1], "ranges")) {
        engine_reply_syntax(call);
        return;
    }
    if (!engine_arg_range(call, call->argv[2], 1, RD_HASH_SLOTS, &n, "invalid number of ranges"))
        return;
    if ((size_t)n * 2 != call->argc - 3) {
        engine_reply_wrong_arity(call);
        return;
    }
    for (size_t i = 3; i < call->argc; i += 2) {
        if (!arg_slot(call, call->argv[i], &start) || !arg_slot(call, call->argv[i + 1], &end))
            return;
        for (int64_t slot = start; slot <= end; slot++)
            slots.in[slot] = true;
    }
    remove_keys(call, &slots);
    engine_reply_ok(call->reply);
}

void engine_cmd_cluster_flushslot(struct engine_call *call)
{
    struct slots slots = {{false}};
    int64_t slot;
    if (!arg_slot(call, call->argv[2], &slot))
        return;
    slots.in[slot] = true;
    remove_keys(call, &slots);
    engine_reply_ok(call->reply);
}
