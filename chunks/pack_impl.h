/* pack_impl.h - private to chunks/: packs, the objects that hold blobs.
 *
 *     TARGET/chunks/NAME.pack        NAME is the id of the set that wrote it, and numbers
 *
 * A pack is a magic, blobs, a parity, a directory and an end that says where the directory is. The
 * parity is the exclusive or of all blobs: a single damaged one is computed from the others.
 */
#ifndef CHUNKS_PACK_IMPL_H
#define CHUNKS_PACK_IMPL_H

#include "archive/repo.h"
#include "chunks/blob_impl.h"

enum {
    CHUNKS_PACK_BYTES = 32 * 1024 * 1024, /* a pack ends after the blob that reaches this */
    CHUNKS_PACK_MAGIC = 8,
    CHUNKS_PACK_END = 24
};

/* "TARGET/chunks/NAME.pack" */
bool chunks_pack_object(char ret[ARCHIVE_NAME_MAX], const char *target, const char *name,
                        struct rd_err *err);

/* ---- writing ---- */

struct chunks_packer {
    struct archive_repo *repo; /* borrowed, like the rest */
    struct chunks_codec *codec;
    const char *prefix; /* of the names: the id of the set, and the number of the file */
    unsigned number;
    char name[CHUNKS_PACK_NAME_MAX]; /* of the pack that is open */
    struct rd_sink *sink;            /* NULL: none is open */
    uint64_t offset;
    struct rd_buf directory, parity;
    size_t n_blobs;
    uint64_t bytes; /* of all packs that were ended */
    /* Called with each pack that is complete; may be NULL. */
    bool (*ended)(void *ctx, const char *name, uint64_t bytes, struct rd_err *err);
    void *ctx;
};

/* Appends a blob: stored are its bytes. Sets blob->offset and stored; p->name is its pack. */
bool chunks_packer_add(struct chunks_packer *p, struct chunks_blob *blob, struct rd_slice stored,
                       struct rd_err *err);
/* Ends the open pack, which exists from then on. */
bool chunks_packer_end(struct chunks_packer *p, struct rd_err *err);
/* Drops the open pack. */
void chunks_packer_done(struct chunks_packer *p);

/* ---- reading ---- */

struct chunks_directory {
    struct chunks_blob *blobs; /* in the order of their offsets; pack is 0 */
    size_t n;
    uint64_t parity; /* its offset */
    uint32_t parity_len;
};

/* Reads the directory of a pack of so many bytes. What it says is not proved: the names of blobs
 * are. */
bool chunks_directory_read(struct archive_store *store, struct chunks_codec *codec,
                           const char *name, uint64_t bytes, struct chunks_directory *ret,
                           struct rd_err *err);
/* The same of the plain bytes of a directory, before whose offset `at` everything else is. *d is
 * empty at first, and has to be freed also after a failure. */
bool chunks_directory_parse(struct chunks_directory *d, struct rd_slice plain, uint64_t at,
                            struct rd_err *err);
void chunks_directory_done(struct chunks_directory *d);

/* The stored bytes of blob i, computed from the parity and all others. */
bool chunks_directory_recover(struct archive_store *store, const char *target, const char *name,
                              const struct chunks_directory *d, size_t i, struct rd_buf *ret,
                              struct rd_err *err);

#endif
