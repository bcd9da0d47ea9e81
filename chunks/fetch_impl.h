/* fetch_impl.h - private to chunks/: blobs of a recipe, from the packs of a repository.
 */
#ifndef CHUNKS_FETCH_IMPL_H
#define CHUNKS_FETCH_IMPL_H

#include "chunks/pack_impl.h"

enum { CHUNKS_AHEAD = 2 * 1024 * 1024, CHUNKS_EXTENTS = 6 };

/* Bytes of a pack that were read. */
struct chunks_extent {
    size_t pack;
    uint64_t offset, used; /* used: a number that grows with each use */
    struct rd_buf bytes;
};

/* Where the blobs of a pack are that prune has rewritten. */
struct chunks_moved {
    uint8_t name[CHUNKS_NAME];
    char pack[CHUNKS_PACK_NAME_MAX];
    uint64_t offset;
};

struct chunks_moves {
    bool known;
    struct chunks_moved *moved; /* by name */
    size_t n;
};

struct chunks_ahead; /* chunks/ahead_impl.h */
struct chunks_atlas; /* in fetch.c */

struct chunks_fetch {
    struct archive_store *store;
    struct chunks_codec codec;
    const struct chunks_recipe *recipe; /* borrowed */
    bool ahead;                         /* read more than the blob: what follows is needed soon */
    struct chunks_ahead *threads;       /* borrowed; they may have the blob; NULL: none */
    struct chunks_extent extents[CHUNKS_EXTENTS];
    uint64_t clock;
    struct rd_buf stored;       /* of the blob */
    struct chunks_atlas *atlas; /* where packs are */
    bool shares;                /* the atlas is that of another one */
    uint64_t n_requests, n_bytes;
    uint64_t n_recovered; /* blobs that were damaged, and computed from the rest of their packs */
};

/* codec: target, ring and sealed are set. */
bool chunks_fetch_init(struct chunks_fetch *f, struct archive_store *store,
                       const struct chunks_codec *codec, const struct chunks_recipe *recipe,
                       struct rd_err *err);
/* Another one for the same recipe, for one other thread, with the keys that were found. */
bool chunks_fetch_share(struct chunks_fetch *f, const struct chunks_fetch *with,
                        struct archive_store *store, struct rd_err *err);
void chunks_fetch_done(struct chunks_fetch *f);

/* Appends the plain bytes, also of a damaged blob if the rest of its pack is whole. */
bool chunks_fetch_blob(struct chunks_fetch *f, const struct chunks_blob *blob, struct rd_buf *ret,
                       struct rd_err *err);
/* Whether such a failure means that the blob is damaged or not there; else the store may give it at
 * another time. */
bool chunks_fetch_is_lost(const struct rd_err *why);
/* chunks_fetch_blob() without f->threads, and without computing anything from the rest of a pack.
 */
bool chunks_fetch_intact(struct chunks_fetch *f, const struct chunks_blob *blob, struct rd_buf *ret,
                         struct rd_err *err);
/* The stored bytes. */
bool chunks_fetch_stored(struct chunks_fetch *f, const struct chunks_blob *blob, struct rd_buf *ret,
                         struct rd_err *err);
/* Reads the bytes of several blobs of one pack, by their offsets, with one request, so that they
 * are there. */
void chunks_fetch_span(struct chunks_fetch *f, const struct chunks_blob *const *blobs, size_t n);

/* The list of what became of a pack: TARGET/chunks/NAME.moved. *ret stays empty if there is none.
 */
bool chunks_moves_read(struct archive_store *store, struct chunks_codec *codec, const char *pack,
                       struct chunks_moves *ret, struct rd_err *err);
/* The same of its plain bytes. *ret is empty at first; free ret->moved also after a failure. */
bool chunks_moves_parse(struct chunks_moves *ret, struct rd_slice plain, struct rd_err *err);
bool chunks_moves_print(const struct chunks_moves *moves, struct rd_buf *ret, struct rd_err *err);
const struct chunks_moved *chunks_moves_find(const struct chunks_moves *moves,
                                             const uint8_t name[CHUNKS_NAME]);
bool chunks_moves_object(char ret[ARCHIVE_NAME_MAX], const char *target, const char *pack,
                         struct rd_err *err);

#endif
