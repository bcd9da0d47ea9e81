/* pipe.h - the stages between a file and an object, and back: digest, compress, seal, digest.
 *
 *     struct archive_file file = {.compression = ARCHIVE_COMPRESSION_LZ4};
 *     struct archive_pipe pipe = {.key = &key, .name = "20261123T013445Z-1f2e3d4c/dump.rdb.lz4"};
 *     if (!archive_pipe_open_sink(&sink, object, &pipe, &file, &err))
 *         ...
 *     ... rd_sink_write(sink, ...) ...
 *     rd_sink_close(sink, &err);         // now file.plain and file.stored are known
 *
 * One pass and bounded memory. An open sink or source owns the inner one. If opening fails, the
 * inner one is closed too.
 */
#ifndef ARCHIVE_PIPE_H
#define ARCHIVE_PIPE_H

#include "archive/manifest.h"
#include "base/sink.h"
#include "base/src.h"

struct archive_pipe {
    int level;                     /* of the compression; 0: its default */
    const struct rd_seal_key *key; /* NULL: not sealed */
    const char *name;              /* of the object in the repository, bound into the seal */
    const uint8_t *before;         /* RD_SEAL_BEFORE bytes: of the object before it; NULL: none */
    uint8_t random[RD_SEAL_RANDOM];
};

/* file->compression selects the compression; file->plain, stored and sealed are set. */
bool archive_pipe_open_sink(struct rd_sink **ret, struct rd_sink *inner,
                            const struct archive_pipe *pipe, struct archive_file *file,
                            struct rd_err *err);

/* The name is that of the object in the repository: "TARGET/sets/ID/OBJECT". Version 1 of the seal
 * binds only what is after the second slash.
 *
 * The plain bytes of an object. If sizes or digests differ from those of `file`, it fails at its
 * end: RD_ERR_CHECKSUM, or RD_ERR_TRUNCATED if bytes are missing. */
bool archive_pipe_open_src(struct rd_src **ret, struct rd_src *inner,
                           const struct archive_file *file, const struct rd_seal_ring *ring,
                           const char *name, struct rd_err *err);

/* The same for an object whose digests are not known: of file only compression and sealed are used.
 * info: see rd_seal_open_object(). */
bool archive_pipe_open_bare(struct rd_src **ret, struct rd_src *inner,
                            const struct archive_file *file, const struct rd_seal_ring *ring,
                            const char *name, struct rd_seal_info *info, struct rd_err *err);

/* Both refuse an object that is not sealed if the ring requires it (rd_seal_required()):
 * RD_ERR_CHECKSUM. */
bool archive_refuse_unsealed(struct rd_err *err);

/* A source that passes bytes on and fails at the end unless they match `sums`. */
bool archive_sums_open_src(struct rd_src **ret, struct rd_src *inner,
                           const struct archive_sums *sums, struct rd_err *err);

/* A sink that passes bytes on and sets *sums when it is closed. */
bool archive_sums_open_sink(struct rd_sink **ret, struct rd_sink *inner, struct archive_sums *sums,
                            struct rd_err *err);

/* A sink that passes bytes on to several sinks. One that fails is dropped, and its error is stored;
 * if the last one fails, the tee fails. Closing the tee closes the remaining ones. */
enum { ARCHIVE_TEE_MAX = 8 };

struct archive_tee {
    struct rd_sink *sinks[ARCHIVE_TEE_MAX]; /* NULL: dropped */
    struct rd_err errs[ARCHIVE_TEE_MAX];
    size_t n;
};

/* `tee` is borrowed. After the sink is closed, it has the result of each output. */
bool archive_tee_open(struct rd_sink **ret, struct archive_tee *tee, struct rd_err *err);

#endif
