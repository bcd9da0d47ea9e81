/* info.h - INFO: what the server tells about itself, in the sections and fields of 7.0.
 */
#ifndef SERVER_INFO_H
#define SERVER_INFO_H

#include "server/server.h"

/* The text for these sections (none: the default ones). */
void info_text(struct server *srv, size_t n, const struct rd_slice *sections, struct rd_buf *out);

/* Bytes in use: the allocator's word where it has one; of the data set alone; resident. */
uint64_t info_used_memory(struct server *srv);
uint64_t info_rss(void);

#endif
