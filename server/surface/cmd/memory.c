/* MEMORY. */
#include "engine/debug.h"
#include "server/session/client/client.h"
#include "server/surface/cmd/commands.h"
#include "server/surface/observe/info.h"
#include "server/session/dispatch/subcommand.h"

#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 5, SMALL = 5 * 1024 * 1024 };

static void sub_usage(struct dispatch_call *call)
{
    int64_t samples = SAMPLES;
    for (size_t i = 3; i < call->argc; i += 2) {
        if (!dispatch_arg_is(call->argv[i], "samples") || i + 1 == call->argc) {
            dispatch_syntax(call);
            return;
        }
        if (!dispatch_arg_i64(call, call->argv[i + 1], INT64_MIN, INT64_MAX, &samples, NULL))
            return;
        if (samples < 0) {
            dispatch_syntax(call);
            return;
        }
    }
    const struct engine_db *db = engine_db(call->sessions->engine, call->c->session.db);
    const struct engine_entry *entry = engine_db_find(db, call->argv[2]);
    if (entry == NULL)
        engine_reply_null(call->reply);
    else
        engine_reply_int(call->reply, (int64_t)engine_debug_memory(entry, (size_t)samples));
}

/* ---- STATS ---- */

static void put_num(struct dispatch_call *call, const char *name, int64_t value)
{
    engine_reply_str(call->reply, name);
    engine_reply_int(call->reply, value);
}

static void put_real(struct dispatch_call *call, const char *name, double value)
{
    engine_reply_str(call->reply, name);
    engine_reply_double(call->reply, value);
}

/* The number of databases with keys. */
static uint64_t put_databases(struct dispatch_call *call)
{
    const struct engine_db *db;
    uint64_t n = 0;
    for (unsigned id = 0; (db = engine_db(call->sessions->engine, id)) != NULL; id++) {
        if (engine_db_count(db) == 0)
            continue;
        char name[32];
        uint64_t keys, expires;
        info_db_overhead(db, &keys, &expires);
        snprintf(name, sizeof name, "db.%u", id);
        engine_reply_str(call->reply, name);
        engine_reply_map(call->reply, 3);
        put_num(call, "overhead.hashtable.main", (int64_t)keys);
        put_num(call, "overhead.hashtable.expires", (int64_t)expires);
        put_num(call, "overhead.hashtable.slot-to-keys", 0);
        n++;
    }
    return n;
}

static uint64_t put_overhead(struct dispatch_call *call, const struct info_memory *m)
{
    put_num(call, "peak.allocated", (int64_t)m->peak);
    put_num(call, "total.allocated", (int64_t)m->used);
    put_num(call, "startup.allocated", (int64_t)m->startup);
    put_num(call, "replication.backlog", (int64_t)m->backlog);
    put_num(call, "clients.slaves", (int64_t)m->clients_replicas);
    put_num(call, "clients.normal", (int64_t)m->clients_normal);
    put_num(call, "cluster.links", (int64_t)m->cluster_links);
    put_num(call, "aof.buffer", (int64_t)m->aof_buffer);
    put_num(call, "lua.caches", 0);
    put_num(call, "functions.caches", (int64_t)m->functions);
    uint64_t n = put_databases(call);
    put_num(call, "overhead.total", (int64_t)m->overhead);
    return 11 + n;
}

static uint64_t put_rest(struct dispatch_call *call, const struct info_memory *m)
{
    uint64_t net = m->used > m->startup ? m->used - m->startup : 0;
    const struct heap *h = &m->heap;
    put_num(call, "keys.count", (int64_t)m->keys);
    put_num(call, "keys.bytes-per-key", m->keys > 0 ? (int64_t)(net / m->keys) : 0);
    put_num(call, "dataset.bytes", (int64_t)m->dataset);
    put_real(call, "dataset.percentage", info_ratio(m->dataset, net) * 100);
    put_real(call, "peak.percentage", info_ratio(m->used, m->peak) * 100);
    put_num(call, "allocator.allocated", (int64_t)h->allocated);
    put_num(call, "allocator.active", (int64_t)h->active);
    put_num(call, "allocator.resident", (int64_t)h->resident);
    struct info_proportion all[INFO_PROPORTIONS];
    info_proportions(m, all);
    for (size_t i = 0; i < INFO_PROPORTIONS; i++) {
        put_real(call, all[i].stats[0], info_ratio(all[i].a, all[i].b));
        put_num(call, all[i].stats[1], info_more(all[i].a, all[i].b));
    }
    return 16;
}

static void sub_stats(struct dispatch_call *call)
{
    struct info_memory m;
    info_memory(server_of(call->sessions), &m);
    size_t mark = engine_reply_mark(call->reply);
    uint64_t n = put_overhead(call, &m);
    n += put_rest(call, &m);
    engine_reply_mark_map(call->reply, mark, n);
}

/* ---- DOCTOR ---- */

static unsigned put_advice(const struct info_memory *m, size_t n_clients, struct rd_buf *out)
{
    unsigned n = 0;
    if (m->peak > m->used + m->used / 2) {
        rd_buf_printf(out,
                      "- Peak: the peak memory usage was more than 1.5 times the current usage. "
                      "The process may still hold pages from then; MEMORY PURGE releases some.\n");
        n++;
    }
    if (m->rss > m->used + m->used / 2) {
        rd_buf_printf(out, "- Fragmentation: the process holds %.2f times the memory in use.\n",
                      info_ratio(m->rss, m->used));
        n++;
    }
    if (n_clients > 0 && m->clients_normal / n_clients > 200 * 1024) {
        rd_buf_printf(out, "- Client buffers: clients use more than 200 KiB each on average. See "
                           "CLIENT LIST for clients that do not read their replies.\n");
        n++;
    }
    return n;
}

static void sub_doctor(struct dispatch_call *call)
{
    struct info_memory m;
    struct rd_buf text = {0};
    info_memory(server_of(call->sessions), &m);
    if (m.used < SMALL)
        rd_buf_printf(&text, "The data set is too small for a report.\n");
    else if (put_advice(&m, call->sessions->clients->n, &text) == 0)
        rd_buf_printf(&text, "No memory problems found.\n");
    engine_reply_verbatim(call->reply, rd_buf_slice(&text), "txt");
    rd_buf_done(&text);
}

/* ---- the heap ---- */

static void sub_purge(struct dispatch_call *call)
{
    heap_purge();
    engine_reply_ok(call->reply);
}

static void sub_malloc_stats(struct dispatch_call *call)
{
    struct rd_buf text = {0};
    heap_report(&text);
    engine_reply_verbatim(call->reply, rd_buf_slice(&text), "txt");
    rd_buf_done(&text);
}

static void sub_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "DOCTOR",
        "    Report problems with memory usage.",
        "MALLOC-STATS",
        "    Show the statistics of the allocator.",
        "PURGE",
        "    Release unused memory of the allocator.",
        "STATS",
        "    Show memory usage by category, in bytes.",
        "USAGE <key> [SAMPLES <count>]",
        "    Estimate the bytes of a key from <count> of its elements (5 by default; 0: all).",
        NULL,
    };
    dispatch_help(call, lines);
}

static const struct subcommand subcommands[] = {
    {"usage", sub_usage},
    {"stats", sub_stats},
    {"doctor", sub_doctor},
    {"purge", sub_purge},
    {"malloc-stats", sub_malloc_stats},
    {"help", sub_help},
};

void server_cmd_memory(struct dispatch_call *call)
{
    SUBCOMMAND_RUN(call, subcommands);
}
