/* spool.h - bytes in a temporary file without a name.
 *
 * Input from a pipe or a decompressor cannot be read twice or out of order. A spool stores it in a
 * file in $TMPDIR (or /tmp). The file never has a name, so nothing remains however the program
 * ends.
 *
 *     struct spool spool = {0};
 *     if (!spool_copy(&spool, src, NULL, NULL, &err) || !spool_source(&spool, "dump", &again,
 * &err))
 *         ...
 *     rd_src_close(again);
 *     spool_done(&spool);
 *
 * The file is created for the first bytes. A zeroed struct is an empty spool.
 */
#ifndef DATA_SPOOL_H
#define DATA_SPOOL_H

#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"
#include "rdb/check.h"

struct spool {
    int fd; /* valid when open */
    bool open;
    uint64_t size;
    struct rd_err torn; /* why the input of spool_copy_torn() ended early */
};

bool spool_append(struct spool *spool, const void *bytes, size_t len, struct rd_err *err);

/* Overwrites existing bytes. */
bool spool_write(struct spool *spool, uint64_t offset, const void *bytes, size_t len,
                 struct rd_err *err);

/* Makes it so large, with zeros for bytes that were not written. Several threads may call
 * spool_write() afterwards. */
bool spool_resize(struct spool *spool, uint64_t size, struct rd_err *err);

/* All its bytes in memory, until spool_unmap(). The system may drop and read them again as it needs
 * memory; if the disk fails then, a signal ends the process. */
bool spool_map(const struct spool *spool, struct rd_slice *ret, struct rd_err *err);
void spool_unmap(struct rd_slice map);

/* A sink that appends; close it before reading the spool. */
bool spool_sink(struct spool *spool, struct rd_sink **ret, struct rd_err *err);

/* Exactly len bytes at offset. */
bool spool_read(const struct spool *spool, uint64_t offset, void *bytes, size_t len,
                struct rd_err *err);

/* Appends its bytes to a sink; they also stay in the spool. */
bool spool_move(const struct spool *spool, struct rd_sink *to, struct rd_err *err);

/* Appends the rest of src. tick may be NULL; it is called for every piece. */
bool spool_copy(struct spool *spool, struct rd_src *src, void (*tick)(void *ctx), void *ctx,
                struct rd_err *err);

/* The same for callers that can use a part of the input: if src fails because its data is wrong
 * (compressed input that is cut or damaged), returns true with the bytes up to there, and `torn` is
 * the error. */
bool spool_copy_torn(struct spool *spool, struct rd_src *src, void (*tick)(void *ctx), void *ctx,
                     struct rd_err *err);

/* The offset at which the input failed, or RD_NO_OFFSET. */
uint64_t spool_torn_at(const struct spool *spool);

/* A seekable source of known size over the current content. Any number of them can be open, each
 * with its own position. The spool must outlive them. */
bool spool_source(const struct spool *spool, const char *origin, struct rd_src **ret,
                  struct rd_err *err);

/* The same, but the source fails where the input failed. */
bool spool_source_torn(const struct spool *spool, const char *origin, struct rd_src **ret,
                       struct rd_err *err);

/* The spool as the storage for hashes of keys that rdb_check() needs. */
struct rdb_spool spool_for_keys(struct spool *spool);

void spool_done(struct spool *spool);

#endif
