/* spool.h - bytes set aside in a file without a name.
 *
 * What comes through a pipe or out of a decompressor cannot be read twice or out of order. A spool
 * keeps it, outside of memory, in a file in $TMPDIR (or /tmp) that has no name from the beginning:
 * whatever ends the program, nothing is left over.
 *
 *     struct spool spool = {0};
 *     if (!spool_copy(&spool, src, NULL, NULL, &err) || !spool_source(&spool, "dump", &again,
 * &err))
 *         ...
 *     rd_src_close(again);
 *     spool_done(&spool);
 *
 * The file comes into being with the first bytes. A zeroed struct is an empty spool.
 */
#ifndef TOOLS_INPUT_SPOOL_H
#define TOOLS_INPUT_SPOOL_H

#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"
#include "rdb/check.h"

struct spool {
    int fd; /* valid when open */
    bool open;
    uint64_t size;
    struct rd_err torn; /* what ended the input of spool_copy_torn() early */
};

bool spool_append(struct spool *spool, const void *bytes, size_t len, struct rd_err *err);

/* Writes over bytes that are there. */
bool spool_write(struct spool *spool, uint64_t offset, const void *bytes, size_t len,
                 struct rd_err *err);

/* A sink that appends; to be closed before the spool is read. */
bool spool_sink(struct spool *spool, struct rd_sink **ret, struct rd_err *err);

/* Exactly len bytes at offset. */
bool spool_read(const struct spool *spool, uint64_t offset, void *bytes, size_t len,
                struct rd_err *err);

/* Appends what is left of src. tick, which may be NULL, is called for every piece */
bool spool_copy(struct spool *spool, struct rd_src *src, void (*tick)(void *ctx), void *ctx,
                struct rd_err *err);

/* The same for who can make use of a part: where the bytes of src are at fault (what is compressed
 * is cut, or damaged), what came until then is enough, and `torn` says why there is no more. */
bool spool_copy_torn(struct spool *spool, struct rd_src *src, void (*tick)(void *ctx), void *ctx,
                     struct rd_err *err);

/* The offset at which the input was torn, or RD_NO_OFFSET. */
uint64_t spool_torn_at(const struct spool *spool);

/* A source over what the spool holds now, which can seek and knows its size; any number of them can
 * be open, each with a position of its own. The spool must outlive them. */
bool spool_source(const struct spool *spool, const char *origin, struct rd_src **ret,
                  struct rd_err *err);

/* The same, but where the input was torn the source fails, too. */
bool spool_source_torn(const struct spool *spool, const char *origin, struct rd_src **ret,
                       struct rd_err *err);

/* The spool as the place for hashes of keys that rdb_check() asks for. */
struct rdb_spool spool_for_keys(struct spool *spool);

void spool_done(struct spool *spool);

#endif
