/* Memory usage: INFO memory, and the figures of MEMORY STATS. */
#include "server/surface/observe/info.h"

#include "base/os.h"
#include "engine/config.h"
#include "engine/db.h"
#include "engine/script.h"
#include "engine/snapshot.h"
#include "server/session/client/client.h"
#include "server/session/lazyfree.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STARTUP_MIN = 600 * 1024 };

/* Takes no memory from the heap, as fopen() does: the report of a crash needs it. */
uint64_t info_rss(void)
{
    char text[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *pages = strchr(text, ' '); /* the first number is the size */
    return pages == NULL ? 0 : strtoull(pages, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t clients_memory(const struct server *srv, bool replicas)
{
    uint64_t sum = 0;
    for (const struct client *c = srv->sessions.clients->first; c != NULL; c = c->next)
        if ((client_type(c) == CLIENT_TYPE_REPLICA) == replicas)
            sum += client_memory(c);
    return sum;
}

/* Of all clients, and of the stream for replicas. */
static uint64_t connections_memory(const struct server *srv)
{
    uint64_t of_replicas;
    return clients_memory(srv, false) + clients_memory(srv, true) +
           replication_memory(&srv->durable, &of_replicas);
}

/* The allocator is asked once, while the process has little data. An allocator without figures
 * (that of a sanitizer) counts as a small heap. */
static uint64_t startup_memory(struct server *srv)
{
    struct stats *stats = &srv->loop.stats;
    if (stats->startup_memory == 0) {
        struct rd_heap heap = rd_heap();
        uint64_t used = (uint64_t)heap.used + heap.mapped;
        uint64_t data = engine_memory(srv->sessions.engine, NULL) + connections_memory(srv);
        stats->startup_memory = used > data + STARTUP_MIN ? used - data : STARTUP_MIN;
    }
    return stats->startup_memory;
}

uint64_t info_used_memory(struct server *srv)
{
    return startup_memory(srv) + engine_memory(srv->sessions.engine, NULL) +
           engine_script_memory(srv->sessions.engine) + connections_memory(srv) +
           persist_memory(&srv->durable) + replication_beside_memory(&srv->durable);
}

void info_db_overhead(const struct engine_db *db, uint64_t *ret_keys, uint64_t *ret_expires)
{
    *ret_keys = engine_table_bytes(&db->keys) + engine_db_count(db) * sizeof(struct engine_entry);
    *ret_expires = engine_table_bytes(&db->expires) + engine_table_bytes(&db->parts);
}

void info_memory(struct server *srv, struct info_memory *ret)
{
    uint64_t lacking, replication = replication_memory(&srv->durable, &lacking);
    *ret = (struct info_memory){.startup = startup_memory(srv),
                                .rss = info_rss(),
                                .clients_normal = clients_memory(srv, false),
                                .clients_replicas = clients_memory(srv, true) + lacking,
                                .replication = replication,
                                .backlog = replication - lacking,
                                .not_evicted = persist_memory(&srv->durable) + lacking,
                                .aof_buffer = persist_memory(&srv->durable),
                                .functions = engine_kept_functions(srv->sessions.engine, NULL)};
    size_t links;
    info_cluster_links(srv, &links);
    ret->cluster_links = links;
    uint64_t connections =
        ret->clients_normal + ret->clients_replicas + ret->backlog + ret->cluster_links;
    uint64_t scripts = engine_script_memory(srv->sessions.engine);
    ret->used = ret->startup + engine_memory(srv->sessions.engine, NULL) + scripts + connections +
                ret->aof_buffer;
    if ((int64_t)ret->used > srv->loop.stats.peak_memory)
        srv->loop.stats.peak_memory = (int64_t)ret->used;
    ret->peak = (uint64_t)srv->loop.stats.peak_memory;
    ret->overhead = ret->startup + connections + ret->aof_buffer + ret->functions + scripts;
    if (!heap_ask(&ret->heap))
        ret->heap = (struct heap){.allocated = ret->used, .active = ret->rss, .resident = ret->rss};
    const struct engine_db *db;
    for (unsigned id = 0; (db = engine_db(srv->sessions.engine, id)) != NULL; id++) {
        uint64_t keys, expires;
        info_db_overhead(db, &keys, &expires);
        ret->keys += engine_db_count(db);
        ret->overhead += keys + expires;
    }
    ret->dataset = ret->used > ret->overhead ? ret->used - ret->overhead : 0;
}

/* ---- the section ---- */

static void put_human(struct rd_buf *out, const char *name, uint64_t bytes)
{
    char text[32];
    info_human(text, sizeof text, bytes);
    rd_buf_printf(out, "%s_human:%s\r\n", name, text);
}

static void put_both(struct rd_buf *out, const char *name, uint64_t bytes)
{
    stats_info_num(out, name, (int64_t)bytes);
    put_human(out, name, bytes);
}

static void put_percent(struct rd_buf *out, const char *name, uint64_t part, uint64_t whole)
{
    rd_buf_printf(out, "%s:%.2f%%\r\n", name, whole > 0 ? (double)part * 100 / (double)whole : 0.0);
}

static const char *policy_name(int policy)
{
    static const char *const names[] = {
        [ENGINE_NOEVICTION] = "noeviction",           [ENGINE_ALLKEYS_LRU] = "allkeys-lru",
        [ENGINE_ALLKEYS_LFU] = "allkeys-lfu",         [ENGINE_ALLKEYS_RANDOM] = "allkeys-random",
        [ENGINE_VOLATILE_LRU] = "volatile-lru",       [ENGINE_VOLATILE_LFU] = "volatile-lfu",
        [ENGINE_VOLATILE_RANDOM] = "volatile-random", [ENGINE_VOLATILE_TTL] = "volatile-ttl",
    };
    unsigned i = (unsigned)policy;
    return i < sizeof names / sizeof names[0] ? names[i] : "noeviction";
}

static uint64_t system_memory(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void put_use(const struct info_memory *m, struct rd_buf *out)
{
    put_both(out, "used_memory", m->used);
    put_both(out, "used_memory_rss", m->rss);
    put_both(out, "used_memory_peak", m->peak);
    put_percent(out, "used_memory_peak_perc", m->used, m->peak);
    stats_info_num(out, "used_memory_overhead", (int64_t)m->overhead);
    stats_info_num(out, "used_memory_startup", (int64_t)m->startup);
    stats_info_num(out, "used_memory_dataset", (int64_t)m->dataset);
    put_percent(out, "used_memory_dataset_perc", m->dataset,
                m->used > m->startup ? m->used - m->startup : 0);
    stats_info_num(out, "allocator_allocated", (int64_t)m->heap.allocated);
    stats_info_num(out, "allocator_active", (int64_t)m->heap.active);
    stats_info_num(out, "allocator_resident", (int64_t)m->heap.resident);
    put_both(out, "total_system_memory", system_memory());
}

static void put_scripts(struct server *srv, struct rd_buf *out)
{
    struct engine_script_stats stats;
    engine_script_stats(srv->sessions.engine, &stats);
    stats_info_num(out, "used_memory_lua", (int64_t)stats.eval_vm_bytes);
    stats_info_num(out, "used_memory_vm_eval", (int64_t)stats.eval_vm_bytes);
    put_human(out, "used_memory_lua", stats.eval_vm_bytes);
    stats_info_num(out, "used_memory_scripts_eval", (int64_t)stats.scripts_bytes);
    stats_info_num(out, "number_of_cached_scripts", (int64_t)stats.n_scripts);
    stats_info_num(out, "number_of_functions", (int64_t)stats.n_functions);
    stats_info_num(out, "number_of_libraries", (int64_t)stats.n_libraries);
    stats_info_num(out, "used_memory_vm_functions", (int64_t)stats.function_vm_bytes);
    put_both(out, "used_memory_vm_total", stats.eval_vm_bytes + stats.function_vm_bytes);
    stats_info_num(out, "used_memory_functions", (int64_t)stats.functions_bytes);
    put_both(out, "used_memory_scripts", stats.scripts_bytes + stats.functions_bytes);
}

void info_proportions(const struct info_memory *m, struct info_proportion ret[INFO_PROPORTIONS])
{
    const struct heap *h = &m->heap;
    const struct info_proportion all[INFO_PROPORTIONS] = {
        {{"allocator_frag_ratio", "allocator_frag_bytes"},
         {"allocator-fragmentation.ratio", "allocator-fragmentation.bytes"},
         h->active,
         h->allocated},
        {{"allocator_rss_ratio", "allocator_rss_bytes"},
         {"allocator-rss.ratio", "allocator-rss.bytes"},
         h->resident,
         h->active},
        {{"rss_overhead_ratio", "rss_overhead_bytes"},
         {"rss-overhead.ratio", "rss-overhead.bytes"},
         m->rss,
         h->resident},
        {{"mem_fragmentation_ratio", "mem_fragmentation_bytes"},
         {"fragmentation", "fragmentation.bytes"},
         m->rss,
         m->used},
    };
    memcpy(ret, all, sizeof all);
}

static void put_fragmentation(const struct info_memory *m, struct rd_buf *out)
{
    struct info_proportion all[INFO_PROPORTIONS];
    info_proportions(m, all);
    for (size_t i = 0; i < INFO_PROPORTIONS; i++) {
        stats_info_real(out, all[i].info[0], info_ratio(all[i].a, all[i].b));
        stats_info_num(out, all[i].info[1], info_more(all[i].a, all[i].b));
    }
}

void info_section_memory(struct server *srv, struct rd_buf *out)
{
    struct info_memory m;
    info_memory(srv, &m);
    put_use(&m, out);
    put_scripts(srv, out);
    put_both(out, "maxmemory", srv->loop.settings.maxmemory);
    stats_info_str(out, "maxmemory_policy", policy_name(srv->loop.settings.maxmemory_policy));
    put_fragmentation(&m, out);
    stats_info_num(out, "mem_not_counted_for_evict", (int64_t)m.not_evicted);
    stats_info_num(out, "mem_replication_backlog", (int64_t)m.backlog);
    stats_info_num(out, "mem_total_replication_buffers", (int64_t)m.replication);
    stats_info_num(out, "mem_clients_slaves", (int64_t)m.clients_replicas);
    stats_info_num(out, "mem_clients_normal", (int64_t)m.clients_normal);
    stats_info_num(out, "mem_cluster_links", (int64_t)m.cluster_links);
    stats_info_num(out, "mem_aof_buffer", (int64_t)m.aof_buffer);
    stats_info_str(out, "mem_allocator", heap_name());
    stats_info_num(out, "active_defrag_running", 0);
    stats_info_num(out, "lazyfree_pending_objects", (int64_t)srv->sessions.lazyfree_pending);
    stats_info_num(out, "lazyfreed_objects", (int64_t)srv->loop.stats.lazyfreed);
}
