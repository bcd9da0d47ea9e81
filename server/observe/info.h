/* info.h - INFO: what the server tells about itself, in the sections and fields of 7.0.
 *
 *     struct rd_buf text = {0};
 *     info_text(srv, 0, NULL, &text);              // the default sections
 *
 *     struct info_memory m;
 *     info_memory(srv, &m);
 *
 * Memory is what this program counted: bytes of the data set as the heap rounds them up, what
 * clients and logs hold, and what the process took before there was anything. The heap itself is
 * not asked, which would take a walk over all its free blocks.
 */
#ifndef SERVER_OBSERVE_INFO_H
#define SERVER_OBSERVE_INFO_H

#include "server/observe/heap.h"
#include "server/core/server.h"

/* The text for these sections (none: the default ones). Unknown ones add nothing. */
void info_text(struct server *srv, size_t n, const struct rd_slice *sections, struct rd_buf *out);

/* Bytes in use: of data set, clients, buffers. O(clients). */
uint64_t info_used_memory(struct server *srv);

/* Resident bytes of the process; 0: the system does not tell. */
uint64_t info_rss(void);

struct info_memory {
    uint64_t used, peak, startup;
    uint64_t overhead; /* all that is not keys and values: startup, clients, tables, buffers */
    uint64_t dataset;  /* the rest */
    uint64_t rss;
    /* Where the heap does not tell: what is used and resident. Large tables are pages of the system
     * (engine/table.c): they are used and no part of the heap, so `used` may be more than
     * heap.allocated. */
    struct heap heap;
    uint64_t clients_normal;
    uint64_t aof_buffer;
    uint64_t functions;
    uint64_t keys;
};

void info_memory(struct server *srv, struct info_memory *ret);

/* What two figures say together: a / b, and how much more a is than b. */
struct info_proportion {
    const char *info[2];  /* names of both in INFO */
    const char *stats[2]; /* in MEMORY STATS */
    uint64_t a, b;
};

enum { INFO_PROPORTIONS = 4 };

void info_proportions(const struct info_memory *m, struct info_proportion ret[INFO_PROPORTIONS]);

/* What the tables of a database take: of keys, of expiries. */
void info_db_overhead(const struct engine_db *db, uint64_t *ret_keys, uint64_t *ret_expires);

/* a / b, 0 where b is; how much more a is than b. */
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

void info_num(struct rd_buf *out, const char *name, int64_t value);
void info_str(struct rd_buf *out, const char *name, const char *value);
void info_real(struct rd_buf *out, const char *name, double value); /* two digits */

void info_section_memory(struct server *srv, struct rd_buf *out);
void info_section_persistence(struct server *srv, struct rd_buf *out);
void info_section_stats(struct server *srv, struct rd_buf *out);

#endif
