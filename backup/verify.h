/* verify.h - whether the sets and the stream of a repository are what they were when they were
 * made.
 *
 *     struct backup_verify v = {.watch = watch, .level = BACKUP_LEVEL_PARSE,
 *                               .verified = on_set, .ctx = &report};
 *     if (!backup_verify(&v, &open, i, &err))
 *         ... something of this repository could not be verified ...
 *     ... v.n_good, v.n_bad, v.stream ...
 *
 * Verdicts are remembered in the repository, so that `prune` and `restore` know them. A set that
 * one server does not load, and one that is not sealed, is not damaged.
 */
#ifndef BACKUP_VERIFY_H
#define BACKUP_VERIFY_H

#include "backup/load.h"
#include "backup/open.h"
#include "backup/verify_stream.h"
#include "chunks/examine.h"

enum backup_verdict {
    BACKUP_GOOD,
    BACKUP_DAMAGED,
    BACKUP_UNSEALED,   /* although there is a key: it may be forged */
    BACKUP_NOT_LOADED, /* the server does not load it, or has other keys then */
    BACKUP_UNKNOWN_KEY /* sealed with a key that is not given: nothing is known about the set */
};

/* A set that was verified. */
struct backup_verified {
    const struct archive_repo *repo;
    const struct archive_set *set;
    enum backup_verdict verdict;
    enum backup_level level; /* up to which it was verified */
    struct rd_err err;       /* unless it is good */
    bool unsealed;           /* although there is a key */
    bool authentic;          /* the signature of the manifest was verified */
    bool loaded;             /* by a server */
    struct backup_load load; /* of BACKUP_LEVEL_LOAD */
};

struct backup_verify {
    /* Set by the caller; borrowed. */
    const struct rd_watch *watch;
    enum backup_level level;
    struct backup_sample sample; /* of sets, packs and segments: others are only listed */
    const char *id;              /* only this set, or "latest"; NULL: all sets and the stream */
    const char *server;          /* see struct backup_load */
    int64_t now_ms;              /* of commands without a time, in a log that is loaded */
    /* Called after each set; when the stream was listed, for each of its segments that is damaged,
     * and after them. Each may be NULL. */
    void (*verified)(void *ctx, const struct backup_verified *verified);
    void (*stream_listed)(void *ctx, const struct backup_verify_stream *stream);
    void (*segment_damaged)(void *ctx, const struct backup_verify_stream *stream,
                            const char *segment, const struct rd_err *err);
    void (*stream_verified)(void *ctx, const struct backup_verify_stream *stream);
    /* Before the sets, for each damage of a pack of chunks and each set that it hurts. May be NULL.
     * */
    void (*chunks_damaged)(void *ctx, const struct archive_repo *repo,
                           const struct chunks_damage *damage);
    void *ctx;

    /* Set by this library: of all repositories for which it was called. */
    size_t n_good, n_bad, n_unknown;
    size_t n_empty; /* repositories without sets */
    uint64_t n_damaged_segments, n_unknown_segments;
    uint64_t n_damaged_chunks; /* and other parts of packs */
    /* With a sample: what there is, and what was read. */
    uint64_t n_sets, n_sets_read, n_packs, n_packs_read, n_segments, n_segments_read;
};

/* Repository i. False: something could not be read. The sets and segments before it were verified,
 * and also those after a set whose manifest cannot be used. */
bool backup_verify(struct backup_verify *v, struct backup_open *open, size_t i, struct rd_err *err);

#endif
