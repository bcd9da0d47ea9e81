/* Commands on whole databases. */
#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/state_impl.h"
#include "engine/trash_impl.h"
#include "engine/watch.h"

void engine_cmd_dbsize(struct engine_call *call)
{
    engine_reply_int(call->reply, (int64_t)engine_db_count(call->db));
}

void engine_cmd_time(struct engine_call *call)
{
    engine_reply_array(call->reply, 2);
    engine_reply_bulk_int(call->reply, call->now_us / 1000000);
    engine_reply_bulk_int(call->reply, call->now_us % 1000000);
}

/* Whether another thread frees the memory. False: the error was replied. */
static bool flush_options(struct engine_call *call, bool *ret_lazy)
{
    *ret_lazy = call->config->lazyfree_lazy_user_flush;
    if (call->argc == 1)
        return true;
    *ret_lazy = engine_arg_is(call->argv[1], "async");
    if (call->argc == 2 && (*ret_lazy || engine_arg_is(call->argv[1], "sync")))
        return true;
    engine_reply_syntax(call);
    return false;
}

static void flush(struct engine_call *call, struct engine_db *db, bool lazy)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_KEYS);
    engine_watch_replaced(call, db, NULL);
    engine_block_signal_flush(call->engine, db);
    call->dirty += engine_trash_db(call->engine, db, lazy);
    engine_mem_leave(before);
}

/* Also for an empty database: a reader of the log must see the command. */
static void flushed(struct engine_call *call)
{
    engine_report_flush(call->engine);
    engine_reply_ok(call->reply);
    engine_effect(call, call->argc, call->argv);
}

void engine_cmd_flushdb(struct engine_call *call)
{
    bool lazy;
    if (!flush_options(call, &lazy))
        return;
    flush(call, call->db, lazy);
    flushed(call);
}

void engine_cmd_flushall(struct engine_call *call)
{
    bool lazy;
    if (!flush_options(call, &lazy))
        return;
    for (unsigned i = 0; i < call->engine->n_dbs; i++)
        flush(call, call->engine->dbs[i], lazy);
    engine_own_expires_forget(call->engine);
    call->engine->stats.flushes++;
    flushed(call);
}

void engine_cmd_swapdb(struct engine_call *call)
{
    int64_t first, second;
    if (call->config->cluster) {
        engine_reply_error(call->reply, "ERR SWAPDB is not allowed in cluster mode");
        return;
    }
    if (!engine_arg_range(call, call->argv[1], INT32_MIN, INT32_MAX, &first,
                          "invalid first DB index") ||
        !engine_arg_range(call, call->argv[2], INT32_MIN, INT32_MAX, &second,
                          "invalid second DB index"))
        return;
    struct engine_db *a = engine_call_db(call, first);
    struct engine_db *b = engine_call_db(call, second);
    if (a == NULL || b == NULL) {
        engine_reply_error(call->reply, "ERR DB index is out of range");
        return;
    }
    if (a != b) {
        engine_watch_replaced(call, a, b);
        engine_watch_replaced(call, b, a);
        engine_db_swap(a, b); /* sessions keep their database number */
        engine_block_signal_db(call->engine, a);
        engine_block_signal_db(call->engine, b);
    }
    call->dirty++;
    engine_reply_ok(call->reply);
}
