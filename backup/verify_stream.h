/* verify_stream.h - whether the archived stream of a target is what was archived.
 *
 *     struct backup_verify_stream v = {.watch = watch, .repo = repo, .sets = &sets, .ring = &ring,
 *                                      .level = BACKUP_LEVEL_PARSE, .damaged = on_damage};
 *     if (!backup_verify_stream(&v, &err))
 *         ... it cannot be known ...
 *     ... v.n_segments, v.n_damaged ...
 */
#ifndef BACKUP_VERIFY_STREAM_H
#define BACKUP_VERIFY_STREAM_H

#include "archive/stream.h"
#include "base/watch.h"
#include "rebuild/knows.h"

/* A part of what there is, another one each day: after so many days, all of it. */
struct backup_sample {
    unsigned part, of; /* part < of; of 0: all */
};

/* Whether what has this name is in the part. */
bool backup_sample_has(const struct backup_sample *sample, const char *name);

/* What is verified. Each level includes those before it. */
enum backup_level {
    BACKUP_LEVEL_LIST,   /* all objects are there, with their sizes */
    BACKUP_LEVEL_DIGEST, /* they are unchanged */
    BACKUP_LEVEL_PARSE,  /* their contents are sound */
    BACKUP_LEVEL_LOAD    /* a server loads them; a stream is only parsed */
};

struct backup_verify_stream {
    /* Set by the caller; borrowed. */
    const struct rd_watch *watch;
    struct archive_repo *repo;
    const struct archive_sets *sets; /* of repo */
    const struct rd_seal_ring *ring;
    enum backup_level level;
    struct backup_sample sample; /* of the segments that are read */
    /* Called when the segments were listed, and for each that is damaged or missing; may be NULL.
     */
    void (*listed)(void *ctx, const struct backup_verify_stream *v);
    void (*damaged)(void *ctx, const struct backup_verify_stream *v, const char *segment,
                    const struct rd_err *err);
    void *ctx;

    /* Set by this library, also where it fails. */
    bool is_listed; /* else nothing is known */
    bool known;     /* all that there is was read: n_damaged == 0 is a verdict */
    uint64_t n_segments, n_damaged;
    uint64_t n_read; /* segments whose bytes were read */
    uint64_t n_interruptions;
    uint64_t n_unknown;    /* sealed with a key that is not given */
    struct rd_err unknown; /* of the first of them */
    uint64_t n_gone;       /* removed since they were listed */
    struct rebuild_unsupported unsupported;
};

/* False: it cannot be known. */
bool backup_verify_stream(struct backup_verify_stream *v, struct rd_err *err);

/* Whether an error is about what is stored, and not about the way to it: a key that does not fit, a
 * disk that does not answer, memory. */
bool backup_is_damage(const struct rd_err *err);

#endif
