/* DEBUG: for tests. debug_keys.c handles keys, debug_crash.c the end of the
 * process. */
#include "server/surface/config/config.h"
#include "server/surface/cmd/debug.h"

#include "base/num.h"
#include "engine/db.h"
#include "engine/glob.h"
#include "engine/mem.h"
#include "server/surface/cmd/commands.h"
#include "server/loop/heap.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication.h"
#include "server/session/dispatch/subcommand.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Text for C functions; long texts are truncated. */
static const char *text_of(struct rd_slice arg, char *dst, size_t size)
{
    size_t len = arg.len < size - 1 ? arg.len : size - 1;
    if (len > 0)
        memcpy(dst, arg.ptr, len);
    dst[len] = '\0';
    return dst;
}

static bool flag_of(const struct dispatch_call *call)
{
    char text[32];
    return atoi(text_of(call->argv[2], text, sizeof text)) != 0;
}

static void sub_active_expire(struct dispatch_call *call)
{
    server_of(call->sessions)->active_expire_off = !flag_of(call);
    engine_reply_ok(call->reply);
}

static void sub_skip_checksum(struct dispatch_call *call)
{
    call->sessions->durable->skip_checksum = flag_of(call);
    engine_config(call->sessions->engine)->skip_dump_checksum =
        call->sessions->durable->skip_checksum;
    engine_reply_ok(call->reply);
}

static void sub_pause_cron(struct dispatch_call *call)
{
    server_of(call->sessions)->cron_paused = flag_of(call);
    engine_reply_ok(call->reply);
}

static void sub_flush_sleep(struct dispatch_call *call)
{
    char text[32];
    call->sessions->flush_sleep_us = strtoull(text_of(call->argv[2], text, sizeof text), NULL, 10);
    engine_reply_ok(call->reply);
}

static void sub_sleep(struct dispatch_call *call)
{
    char text[64];
    double seconds = strtod(text_of(call->argv[2], text, sizeof text), NULL);
    if (seconds > 0 && seconds < 1e9) {
        struct timespec left = {.tv_sec = (time_t)seconds};
        left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
        nanosleep(&left, NULL);
    }
    engine_reply_ok(call->reply);
}

static void sub_log(struct dispatch_call *call)
{
    log_warning("DEBUG LOG: %.*s", (int)(call->argv[2].len < 4096 ? call->argv[2].len : 4096),
                (const char *)call->argv[2].ptr);
    engine_reply_ok(call->reply);
}

static void sub_error(struct dispatch_call *call)
{
    engine_reply_errorf(call->reply, "%.*s", (int)call->argv[2].len,
                        (const char *)call->argv[2].ptr);
    call->reply->error = false; /* not counted as an error */
}

static void sub_structsize(struct dispatch_call *call)
{
    char text[160];
    snprintf(text, sizeof text, "bits:%zu value:%zu entry:%zu table:%zu session:%zu client:%zu ",
             sizeof(void *) * 8, sizeof(struct engine_value), sizeof(struct engine_entry),
             sizeof(struct engine_table), sizeof(struct engine_session), sizeof(struct client));
    engine_reply_str(call->reply, text);
}

static void sub_change_repl_id(struct dispatch_call *call)
{
    log_warning("Changing replication IDs after receiving DEBUG change-repl-id");
    replication_change_id(call->sessions->durable);
    engine_reply_ok(call->reply);
}

static void sub_replicate(struct dispatch_call *call)
{
    replication_append_command(call->sessions->durable, call->argc - 2, call->argv + 2);
    engine_reply_ok(call->reply);
}

static void sub_client_eviction(struct dispatch_call *call)
{
    if (call->sessions->loop->settings.maxmemory_clients == 0)
        engine_reply_error(call->reply, "ERR maxmemory-clients is disabled.");
    else
        engine_reply_verbatim(call->reply,
                              rd_slice_str("Clients are not grouped into memory pools.\n"), "txt");
}

static void sub_reply_buffer(struct dispatch_call *call)
{
    struct clients *all = call->sessions->clients;
    int64_t ms = CLIENT_OUTPUT_PEAK_MS;
    if (dispatch_arg_is(call->argv[2], "resizing")) {
        char text[32];
        clients_keep_output_size(call->sessions,
                                 atoi(text_of(call->argv[3], text, sizeof text)) == 0);
        engine_reply_ok(call->reply);
    } else if (!dispatch_arg_is(call->argv[2], "peak-reset-time")) {
        subcommand_syntax(call);
    } else if (dispatch_arg_is(call->argv[3], "never")) {
        all->output_peak_ms = INT64_MAX;
        engine_reply_ok(call->reply);
    } else if (dispatch_arg_is(call->argv[3], "reset") ||
               dispatch_arg_i64(call, call->argv[3], INT64_MIN, INT64_MAX, &ms, NULL)) {
        all->output_peak_ms = ms;
        engine_reply_ok(call->reply);
    }
}

static void sub_leak(struct dispatch_call *call)
{
    uint8_t *copy = engine_scratch_alloc(call->argv[2].len + 1);
    memcpy(copy, call->argv[2].ptr, call->argv[2].len);
    engine_reply_ok(call->reply);
}

/* Scripts may use commands that are not for scripts. */
static void sub_deny_scripts(struct dispatch_call *call)
{
    engine_config(call->sessions->engine)->scripts_run_all =
        !rd_slice_eq(call->argv[2], rd_slice_str("0"));
    engine_reply_ok(call->reply);
}

static void sub_mallctl(struct dispatch_call *call)
{
    char name[128];
    uint64_t before, value = 0;
    bool sets = call->argc == 4;
    if (sets &&
        !dispatch_arg_i64(call, call->argv[3], INT64_MIN, INT64_MAX, (int64_t *)&value, NULL))
        return;
    int error =
        heap_number(text_of(call->argv[2], name, sizeof name), &before, sets ? &value : NULL);
    if (error == 0)
        engine_reply_int(call->reply, (int64_t)before);
    else
        engine_reply_errorf(call->reply, "ERR %s", strerror(error));
}

static void sub_mallctl_text(struct dispatch_call *call)
{
    char name[128];
    const char *value = "";
    text_of(call->argv[2], name, sizeof name);
    bool does = call->argc == 4;
    if (does && !dispatch_arg_is(call->argv[3], "void")) {
        engine_reply_error(call->reply, "ERR heap settings with a text value are read-only");
        return;
    }
    int error = does ? heap_do(name) : heap_text(name, &value);
    if (error != 0)
        engine_reply_errorf(call->reply, "ERR %s", strerror(error));
    else if (does)
        engine_reply_ok(call->reply);
    else
        engine_reply_str(call->reply, value);
}

/* Matches random patterns with random texts. */
static void sub_match_random(struct dispatch_call *call)
{
    enum { ROUNDS = 100 * 1000, LEN_MAX = 31 };
    uint8_t pattern[LEN_MAX], text[LEN_MAX];
    uint64_t state = (uint64_t)call->sessions->loop->mono_us;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < LEN_MAX; i++) {
            state = state * 6364136223846793005 + 1442695040888963407;
            pattern[i] = (uint8_t)(state >> 57);
            text[i] = (uint8_t)(state >> 50 & 0x7f);
        }
        engine_glob_match(rd_slice(pattern, (state >> 40) % (LEN_MAX + 1)),
                          rd_slice(text, (state >> 32) % (LEN_MAX + 1)), false);
    }
    engine_reply_simple(call->reply, "Apparently Redis did not crash: test passed");
}

static void sub_cluster_link(struct dispatch_call *call)
{
    struct server *srv = server_of(call->sessions);
    struct rd_slice way = call->argv[3], id = call->argv[4];
    bool all = dispatch_arg_is(way, "all");
    bool to = all || dispatch_arg_is(way, "to"), from = all || dispatch_arg_is(way, "from");
    if (!dispatch_arg_is(call->argv[2], "kill"))
        subcommand_syntax(call);
    else if (srv->cluster == NULL)
        engine_reply_error(call->reply,
                           "ERR Debug option only available for cluster mode enabled setup!");
    else if (!srv->cluster->kill_links(srv, id, to, from))
        engine_reply_errorf(call->reply, "ERR Unknown node %.*s",
                            (int)(id.len < 128 ? id.len : 128), (const char *)id.ptr);
    else if (!to && !from)
        engine_reply_errorf(call->reply, "ERR Unknown direction %.*s",
                            (int)(way.len < 128 ? way.len : 128), (const char *)way.ptr);
    else
        engine_reply_ok(call->reply);
}

/* ---- what is stored ---- */

static void answer(struct dispatch_call *call, const char *error)
{
    if (error == NULL)
        engine_reply_ok(call->reply);
    else
        engine_reply_error(call->reply, error);
}

static void sub_reload(struct dispatch_call *call)
{
    bool save = true, flush = true, merge = false;
    for (size_t i = 2; i < call->argc; i++) {
        if (dispatch_arg_is(call->argv[i], "merge")) {
            merge = true;
        } else if (dispatch_arg_is(call->argv[i], "noflush")) {
            flush = false;
        } else if (dispatch_arg_is(call->argv[i], "nosave")) {
            save = false;
        } else {
            engine_reply_error(call->reply, "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH "
                                            "and NOSAVE options.");
            return;
        }
    }
    answer(call, persist_debug_reload(call->sessions->durable, save, flush, merge, call->fx));
}

static void sub_loadaof(struct dispatch_call *call)
{
    answer(call, persist_debug_loadaof(call->sessions->durable));
}

static void sub_rewrite_all(struct dispatch_call *call)
{
    struct rd_err err = {0};
    if (config_rewrite(server_of(call->sessions), true, &err))
        engine_reply_ok(call->reply);
    else
        engine_reply_errorf(call->reply, "ERR CONFIG-REWRITE-FORCE-ALL failed: %s", err.text);
}

static void sub_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "AOF-FLUSH-SLEEP <microsec>",
        "    Wait this long before each write of the log.",
        "ASSERT, OOM, PANIC, SEGFAULT",
        "    Crash the process in the given way.",
        "CHANGE-REPL-ID",
        "    Change the replication IDs.",
        "CONFIG-REWRITE-FORCE-ALL",
        "    CONFIG REWRITE of all settings, including the defaults.",
        "CRASH-AND-RECOVER [<milliseconds>]",
        "    Restart the server without saving.",
        "DIGEST",
        "    Return a digest of the whole data set.",
        "DIGEST-VALUE <key> [<key> ...]",
        "    Return a digest of each value.",
        "ERROR <string>",
        "    Return this error.",
        "LEAK <string>",
        "    Leak a block of memory.",
        "LOG <message>",
        "    Write the message to the log.",
        "HTSTATS <dbid>, HTSTATS-KEY <key>",
        "    Show hash table statistics of a database or of a value.",
        "LISTPACK <key>, QUICKLIST <key>, SDSLEN <key>, OBJECT <key>",
        "    Show how a value is stored.",
        "LOADAOF",
        "    Reload the data set from the log.",
        "MALLCTL <name> [<number>], MALLCTL-STR <name> [VOID]",
        "    Read or change a value of the allocator.",
        "PAUSE-CRON <0|1>",
        "    Stop or resume the periodic tasks.",
        "POPULATE <count> [<prefix>] [<size>]",
        "    Add the keys \"key:0\", \"key:1\" and so on.",
        "PROTOCOL <type>",
        "    Return a value of this type: string, integer, double, bignum, null, array, set,",
        "    map, attrib, push, verbatim, true, false.",
        "QUICKLIST-PACKED-THRESHOLD <size>",
        "    Set the size from which a list element has a node of its own.",
        "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
        "    Save the data set, clear it and load it again.",
        "REPLICATE <command>",
        "    Send a command to the replicas, without running it here.",
        "REPLYBUFFER (PEAK-RESET-TIME|RESIZING) <value>",
        "    Set the lifetime of the peak of a reply buffer, in milliseconds, NEVER or RESET;",
        "    choose whether reply buffers shrink.",
        "RESTART [<milliseconds>]",
        "    Shut down cleanly, then restart the server.",
        "SET-ACTIVE-EXPIRE <0|1>",
        "    Turn active expiry on or off.",
        "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
        "    Choose whether to skip the checksums of snapshots and of RESTORE.",
        "SLEEP <seconds>",
        "    Block the server for this long.",
        "STRINGMATCH-TEST",
        "    Match random patterns with random strings.",
        "STRUCTSIZE",
        "    Show the sizes of some structs.",
        NULL,
    };
    dispatch_help(call, lines);
}

static const struct cmd_debug_sub common_subs[] = {
    {"set-active-expire", 3, 3, sub_active_expire},
    {"set-skip-checksum-validation", 3, 3, sub_skip_checksum},
    {"pause-cron", 3, 3, sub_pause_cron},
    {"aof-flush-sleep", 3, 3, sub_flush_sleep},
    {"sleep", 3, 3, sub_sleep},
    {"log", 3, 3, sub_log},
    {"error", 3, 3, sub_error},
    {"protocol", 3, 3, cmd_debug_protocol},
    {"structsize", 2, 2, sub_structsize},
    {"change-repl-id", 2, 2, sub_change_repl_id},
    {"replicate", 3, 0, sub_replicate},
    {"client-eviction", 2, 2, sub_client_eviction},
    {"replybuffer", 4, 4, sub_reply_buffer},
    {"leak", 3, 3, sub_leak},
    {"set-disable-deny-scripts", 3, 3, sub_deny_scripts},
    {"mallctl", 3, 4, sub_mallctl},
    {"mallctl-str", 3, 4, sub_mallctl_text},
    {"stringmatch-test", 2, 2, sub_match_random},
    {"clusterlink", 5, 5, sub_cluster_link},
    {"reload", 2, 0, sub_reload},
    {"loadaof", 2, 2, sub_loadaof},
    {"config-rewrite-force-all", 2, 2, sub_rewrite_all},
    {"help", 2, 2, sub_help},
    {NULL, 0, 0, NULL},
};

static bool run_one_of(struct dispatch_call *call, const struct cmd_debug_sub *subs)
{
    for (const struct cmd_debug_sub *sub = subs; sub->name != NULL; sub++) {
        if (!dispatch_arg_is(call->argv[1], sub->name) || call->argc < sub->min_args ||
            (sub->max_args > 0 && call->argc > sub->max_args))
            continue;
        sub->run(call);
        return true;
    }
    return false;
}

void server_cmd_debug(struct dispatch_call *call)
{
    if (!run_one_of(call, common_subs) && !run_one_of(call, cmd_debug_keys_subs) &&
        !run_one_of(call, cmd_debug_crash_subs))
        subcommand_syntax(call);
}
