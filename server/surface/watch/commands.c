/* SENTINEL: what it shows. */
#include "server/surface/watch/watch_impl.h"

#include <stdio.h>

#include "base/num.h"

struct sentinel_instance *watch_master(struct dispatch_call *call, struct rd_slice name)
{
    struct sentinel_instance *m = sentinel_find(watch_of(call)->sentinel, name);
    if (m == NULL)
        engine_reply_error(call->reply, "ERR No such master with that name");
    return m;
}

/* ---- reports ---- */

struct fields {
    struct engine_reply *reply;
    uint64_t n;
};

static void put_field(void *ctx, const char *name, const char *value)
{
    struct fields *f = ctx;
    engine_reply_str(f->reply, name);
    engine_reply_str(f->reply, value);
    f->n++;
}

static void put_report(struct dispatch_call *call, const struct sentinel_instance *ri)
{
    struct fields f = {.reply = call->reply};
    size_t mark = engine_reply_mark(call->reply);
    sentinel_report(watch_of(call)->sentinel, ri, put_field, &f);
    engine_reply_mark_map(call->reply, mark, f.n);
}

static void masters(struct dispatch_call *call)
{
    const struct sentinel *s = watch_of(call)->sentinel;
    engine_reply_array(call->reply, sentinel_count(s));
    for (size_t i = 0; i < sentinel_count(s); i++)
        put_report(call, sentinel_at(s, i));
}

static void master(struct dispatch_call *call)
{
    const struct sentinel_instance *m = watch_master(call, call->argv[2]);
    if (m != NULL)
        put_report(call, m);
}

static void put_list(struct dispatch_call *call, enum sentinel_of of)
{
    const struct sentinel_instance *m = watch_master(call, call->argv[2]);
    uint64_t n = 0;
    if (m == NULL)
        return;
    size_t mark = engine_reply_mark(call->reply);
    for (size_t i = 0; i < sentinel_count_of(m, of); i++) {
        const struct sentinel_instance *ri = sentinel_at_of(m, of, i);
        if (of == SENTINEL_REPLICAS && !sentinel_is_announced(ri))
            continue;
        put_report(call, ri);
        n++;
    }
    engine_reply_mark_array(call->reply, mark, n);
}

static void replicas(struct dispatch_call *call)
{
    put_list(call, SENTINEL_REPLICAS);
}

static void sentinels(struct dispatch_call *call)
{
    put_list(call, SENTINEL_SENTINELS);
}

static void get_master_addr(struct dispatch_call *call)
{
    const struct sentinel *s = watch_of(call)->sentinel;
    const struct sentinel_instance *m = sentinel_find(watch_of(call)->sentinel, call->argv[2]);
    const char *host;
    char text[16];
    int port;
    if (m == NULL) {
        engine_reply_null_array(call->reply);
        return;
    }
    sentinel_address(s, m, &host, &port);
    snprintf(text, sizeof text, "%d", port);
    engine_reply_array(call->reply, 2);
    engine_reply_str(call->reply, host);
    engine_reply_str(call->reply, text);
}

static void my_id(struct dispatch_call *call)
{
    engine_reply_str(call->reply, sentinel_id(watch_of(call)->sentinel));
}

static void ckquorum(struct dispatch_call *call)
{
    const struct sentinel_instance *m = watch_master(call, call->argv[2]);
    size_t usable;
    if (m == NULL)
        return;
    unsigned reached = sentinel_quorum(watch_of(call)->sentinel, m, &usable);
    char text[256];
    if (reached == (SENTINEL_QUORUM | SENTINEL_MAJORITY)) {
        snprintf(text, sizeof text,
                 "OK %zu usable Sentinels. Quorum and failover authorization can be reached",
                 usable);
        engine_reply_simple(call->reply, text);
        return;
    }
    engine_reply_errorf(call->reply, "NOQUORUM %zu usable Sentinels. %s%s", usable,
                        (reached & SENTINEL_QUORUM) == 0
                            ? "Not enough available Sentinels to reach the specified quorum for "
                              "this master"
                            : "",
                        (reached & SENTINEL_MAJORITY) != 0 ? ""
                        : (reached & SENTINEL_QUORUM) == 0
                            ? ". Not enough available Sentinels to reach the majority and "
                              "authorize a failover"
                            : "Not enough available Sentinels to reach the majority and authorize "
                              "a failover");
}

/* ---- for other Sentinels ---- */

static void is_master_down(struct dispatch_call *call)
{
    struct watch *w = watch_of(call);
    int64_t port, epoch;
    if (!dispatch_arg_i64(call, call->argv[3], INT32_MIN, INT32_MAX, &port, NULL) ||
        !dispatch_arg_i64(call, call->argv[4], 0, INT64_MAX, &epoch, NULL))
        return;
    sentinel_ask(w->sentinel, call->argv[2], (int)port, (uint64_t)epoch, call->argv[5]);
    watch_act(w); /* a vote is saved before it is given */
    struct sentinel_answer answer = sentinel_answer(w->sentinel);
    engine_reply_array(call->reply, 3);
    engine_reply_int(call->reply, answer.down);
    engine_reply_str(call->reply, answer.leader);
    engine_reply_int(call->reply, (int64_t)answer.epoch);
}

/* ---- replies to INFO ---- */

static void put_info(struct dispatch_call *call, const struct sentinel_instance *ri)
{
    int64_t age_ms;
    struct rd_slice info = sentinel_info_cache(watch_of(call)->sentinel, ri, &age_ms);
    engine_reply_array(call->reply, 2);
    engine_reply_int(call->reply, age_ms);
    if (info.len > 0)
        engine_reply_bulk(call->reply, info);
    else
        engine_reply_null(call->reply);
}

static bool is_named(const struct dispatch_call *call, const struct sentinel_instance *m)
{
    for (size_t i = 2; i < call->argc; i++) {
        if (rd_slice_is(call->argv[i], sentinel_name(m)))
            return true;
    }
    return false;
}

static void info_cache(struct dispatch_call *call)
{
    const struct sentinel *s = watch_of(call)->sentinel;
    uint64_t n = 0;
    size_t mark = engine_reply_mark(call->reply);
    for (size_t i = 0; i < sentinel_count(s); i++) {
        const struct sentinel_instance *m = sentinel_at(s, i);
        size_t n_replicas = sentinel_count_of(m, SENTINEL_REPLICAS);
        if (!is_named(call, m))
            continue;
        engine_reply_str(call->reply, sentinel_name(m));
        engine_reply_array(call->reply, n_replicas + 1);
        put_info(call, m);
        for (size_t k = 0; k < n_replicas; k++)
            put_info(call, sentinel_at_of(m, SENTINEL_REPLICAS, k));
        n++;
    }
    engine_reply_mark_map(call->reply, mark, n);
}

/* ---- scripts ---- */

static void put_script(struct engine_reply *r, const struct sentinel_script_state *script)
{
    char pid[24], time[24], retries[24];
    snprintf(pid, sizeof pid, "%lld", (long long)script->pid);
    snprintf(time, sizeof time, "%lld",
             (long long)(script->running ? script->run_ms : script->delay_ms));
    snprintf(retries, sizeof retries, "%d", script->retries);
    engine_reply_map(r, 5);
    engine_reply_str(r, "argv");
    engine_reply_array(r, script->argc);
    for (size_t i = 0; i < script->argc; i++)
        engine_reply_bulk(r, script->argv[i]);
    engine_reply_str(r, "flags");
    engine_reply_str(r, script->running ? "running" : "scheduled");
    engine_reply_str(r, "pid");
    engine_reply_str(r, pid);
    engine_reply_str(r, script->running ? "run-time" : "run-delay");
    engine_reply_str(r, time);
    engine_reply_str(r, "retry-num");
    engine_reply_str(r, retries);
}

static void pending_scripts(struct dispatch_call *call)
{
    const struct sentinel *s = watch_of(call)->sentinel;
    struct sentinel_script_state script;
    engine_reply_array(call->reply, sentinel_script_count(s));
    for (size_t i = 0; i < sentinel_script_count(s); i++) {
        sentinel_script_at(s, i, &script);
        put_script(call->reply, &script);
    }
}

static void help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "CKQUORUM <master-name>",
        "    Report whether enough Sentinels can be reached to agree that the master is down,",
        "    and to authorize a failover.",
        "CONFIG SET <param> <value>",
        "    Set a parameter of this Sentinel.",
        "CONFIG GET <param>",
        "    Return parameters of this Sentinel.",
        "DEBUG [<param> <value> ...]",
        "    Return or change the periods of this Sentinel, in milliseconds.",
        "FAILOVER <master-name>",
        "    Fail over a master without asking the other Sentinels.",
        "FLUSHCONFIG",
        "    Write the configuration file, with the present state.",
        "GET-MASTER-ADDR-BY-NAME <master-name>",
        "    Return the address and the port of a master.",
        "INFO-CACHE <master-name> [<master-name> ...]",
        "    Return the last INFO of masters and of their replicas.",
        "IS-MASTER-DOWN-BY-ADDR <ip> <port> <current-epoch> <runid>",
        "    Report whether this Sentinel cannot reach a master, and vote for a leader.",
        "MASTER <master-name>",
        "    Return the state of a master.",
        "MASTERS",
        "    Return the state of all masters.",
        "MONITOR <name> <ip> <port> <quorum>",
        "    Begin to monitor a master.",
        "MYID",
        "    Return the ID of this Sentinel.",
        "PENDING-SCRIPTS",
        "    Return the scripts that run or wait.",
        "REMOVE <master-name>",
        "    Stop monitoring a master.",
        "REPLICAS <master-name>",
        "    Return the state of the replicas of a master.",
        "RESET <pattern>",
        "    Forget replicas, Sentinels and failovers of the masters whose names match.",
        "SENTINELS <master-name>",
        "    Return the state of the other Sentinels of a master.",
        "SET <master-name> <option> <value> [<option> <value> ...]",
        "    Set options of a master.",
        "SIMULATE-FAILURE [CRASH-AFTER-ELECTION] [CRASH-AFTER-PROMOTION] [HELP]",
        "    End the process at a step of a failover.",
        NULL};
    dispatch_help(call, lines);
}

void watch_cmd_sentinel(struct dispatch_call *call)
{
    static const struct {
        const char *name;
        dispatch_fn run;
    } subcommands[] = {{"masters", masters},
                       {"master", master},
                       {"replicas", replicas},
                       {"slaves", replicas},
                       {"sentinels", sentinels},
                       {"get-master-addr-by-name", get_master_addr},
                       {"is-master-down-by-addr", is_master_down},
                       {"myid", my_id},
                       {"ckquorum", ckquorum},
                       {"info-cache", info_cache},
                       {"pending-scripts", pending_scripts},
                       {"monitor", watch_sub_monitor},
                       {"remove", watch_sub_remove},
                       {"reset", watch_sub_reset},
                       {"failover", watch_sub_failover},
                       {"flushconfig", watch_sub_flushconfig},
                       {"set", watch_sub_set},
                       {"config", watch_sub_config},
                       {"debug", watch_sub_debug},
                       {"simulate-failure", watch_sub_simulate},
                       {"help", help}};
    watch_clock(watch_of(call));
    for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++) {
        if (dispatch_arg_is(call->argv[1], subcommands[i].name)) {
            subcommands[i].run(call);
            watch_act(watch_of(call));
            return;
        }
    }
    dispatch_unknown_subcommand(call);
}
