/* info.h - INFO, with the sections and fields of Redis 7.0.
 *
 *     struct rd_buf text = {0};
 *     info_text(srv, 0, NULL, &text);              // the default sections
 *
 *     struct info_memory m;
 *     info_memory(srv, &m);
 *
 * Memory is what this program counts: bytes of the data set as the allocator rounds them up, memory
 * of clients and logs, and what the process used before it had any data. The allocator is not
 * asked, since that would take a walk over all its free blocks.
 */
#ifndef SERVER_SURFACE_OBSERVE_INFO_H
#define SERVER_SURFACE_OBSERVE_INFO_H

#include "server/loop/heap.h"
#include "server/surface/server.h"

/* The text of these sections (none: the default ones). Unknown sections add nothing. */
void info_text(struct server *srv, size_t n, const struct rd_slice *sections, struct rd_buf *out);

/* Bytes in use by the data set, clients and buffers. O(clients). */
uint64_t info_used_memory(struct server *srv);

/* Resident bytes of the process; 0: not available. */
uint64_t info_rss(void);

struct info_memory {
    uint64_t used, peak, startup;
    uint64_t overhead; /* everything except keys and values: startup, clients, tables, buffers */
    uint64_t dataset;  /* the rest */
    uint64_t rss;
    /* If the allocator has no figures: used and resident. Large tables are mapped pages
     * (engine/table.c) that are used but not part of the heap, so `used` can exceed
     * heap.allocated. */
    struct heap heap;
    uint64_t clients_normal, clients_replicas; /* the latter with the stream that they lack */
    uint64_t backlog;                          /* of replication, without that */
    uint64_t replication;                      /* blocks of the stream */
    uint64_t not_evicted;                      /* not counted for maxmemory */
    uint64_t aof_buffer;
    uint64_t cluster_links;
    uint64_t functions;
    uint64_t keys;
};

/* Connections to and from other nodes of the cluster; 0 if this is no node. */
size_t info_cluster_links(const struct server *srv, size_t *ret_bytes);

void info_memory(struct server *srv, struct info_memory *ret);

/* A ratio and a difference of two figures: a / b, and a - b. */
struct info_proportion {
    const char *info[2];  /* names of both fields in INFO */
    const char *stats[2]; /* in MEMORY STATS */
    uint64_t a, b;
};

enum { INFO_PROPORTIONS = 4 };

void info_proportions(const struct info_memory *m, struct info_proportion ret[INFO_PROPORTIONS]);

/* Bytes of the tables of a database: keys, expiries. */
void info_db_overhead(const struct engine_db *db, uint64_t *ret_keys, uint64_t *ret_expires);

/* a / b, or 0 if b is 0; and a - b. */
static inline double info_ratio(uint64_t a, uint64_t b)
{
    return b > 0 ? (double)a / (double)b : 0;
}
static inline int64_t info_more(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b);
}

/* "918.75K". */
void info_human(char *dst, size_t size, uint64_t bytes);

/* ---- parts of the text, for info*.c ---- */

void info_section_memory(struct server *srv, struct rd_buf *out);
void info_section_persistence(struct server *srv, struct rd_buf *out);
void info_section_stats(struct server *srv, struct rd_buf *out);

#endif
