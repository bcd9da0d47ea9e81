/* backlog.h - the recent part of a replication stream, shared by everyone who reads it.
 *
 * The stream is a list of blocks. A reader pins the block at its position and thereby all later
 * ones; the backlog keeps at least its own size. Bytes that many replicas still need are therefore
 * in memory once.
 *
 *     struct repl_backlog *b;
 *     struct repl_reader r = {0};
 *     if (!repl_backlog_new(&b, 1000, 1 << 20, &err))          // the next byte has offset 1000
 *         ...
 *     repl_backlog_reserve(b, len)                             // the only call that can fail
 *     repl_backlog_add(b, bytes, len);
 *     if (repl_reader_open(&r, b, 1000))                       // false: not held any more
 *         while ((s = repl_reader_bytes(&r)).len > 0)
 *             repl_reader_take(&r, send(fd, s.ptr, s.len, 0));
 *     repl_reader_close(&r);
 *     repl_backlog_free(b);
 *
 * Offsets count the bytes of the history before a byte, as in repl/stream.h.
 */
#ifndef REPL_BACKLOG_H
#define REPL_BACKLOG_H

#include "base/err.h"
#include "base/slice.h"

struct repl_backlog;
struct repl_block;

/* A zeroed struct is closed. */
struct repl_reader {
    struct repl_backlog *backlog;
    struct repl_block *block;
    size_t at; /* in the block */
};

/* An empty backlog at this offset that keeps the last `size` bytes. */
bool repl_backlog_new(struct repl_backlog **ret, uint64_t offset, uint64_t size,
                      struct rd_err *err);

/* All readers must be closed. NULL is allowed. */
void repl_backlog_free(struct repl_backlog *b);

/* Allocates space so that the next `len` bytes can be added. False: out of memory, and nothing
 * changed. */
bool repl_backlog_reserve(struct repl_backlog *b, size_t len);

/* Appends bytes for which space is reserved, and drops old ones. */
void repl_backlog_add(struct repl_backlog *b, const void *ptr, size_t len);

/* The offset of the oldest byte that is held, and of the next byte. */
uint64_t repl_backlog_start(const struct repl_backlog *b);
uint64_t repl_backlog_end(const struct repl_backlog *b);

void repl_backlog_set_size(struct repl_backlog *b, uint64_t size);

/* Bytes of memory, of blocks that only readers keep, too. */
uint64_t repl_backlog_memory(const struct repl_backlog *b);

/* False: the backlog does not hold the bytes from this offset on. */
bool repl_reader_open(struct repl_reader *r, struct repl_backlog *b, uint64_t offset);

/* A second reader at the position of an open one. */
void repl_reader_copy(struct repl_reader *r, const struct repl_reader *from);

/* The next bytes in one piece, valid until the next call with this reader; empty at the end of the
 * stream, and for a closed reader. */
struct rd_slice repl_reader_bytes(struct repl_reader *r);
void repl_reader_take(struct repl_reader *r, size_t len);

/* Offset of the next byte to read. */
uint64_t repl_reader_offset(const struct repl_reader *r);
void repl_reader_close(struct repl_reader *r);

#endif
