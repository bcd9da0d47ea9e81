/* torn_log.h - logs that were damaged as disks and servers damage them, and what of them is intact.
 *
 * A damaged file is put together from pieces of one or two sound logs, so the position of each
 * intact command is known. What a reader of the framing cannot know is decided by the plainest of
 * readers: a torn command that takes in the bytes after it and still ends where a command begins is
 * a whole command to everyone.
 */
#ifndef TESTS_AOF_TORN_LOG_H
#define TESTS_AOF_TORN_LOG_H

#include "base/buf.h"

#define TORN_DAMAGES(X)                                                                            \
    X(SHORT, "a short write, then the same command")                                               \
    X(SHORT_LOST, "a short write, then other commands")                                            \
    X(SHORT_TWICE, "two short writes")                                                             \
    X(CUT, "a cut")                                                                                \
    X(ZEROS, "a block of zeros")                                                                   \
    X(ZEROS_INSERTED, "zeros between bytes")                                                       \
    X(DOUBLED, "a block written twice")                                                            \
    X(MISSING, "a missing block")                                                                  \
    X(TWO_WRITERS, "two writers")                                                                  \
    X(FLIP, "one bit")

enum torn_damage {
#define X(name, text) TORN_##name,
    TORN_DAMAGES(X)
#undef X
        TORN_KINDS
};

const char *torn_damage_name(enum torn_damage damage);

/* A command or an annotation whose bytes are in the damaged file, one after another. */
struct torn_entry {
    size_t from, to; /* in the damaged file */
    size_t db;
    size_t group_at;        /* where its transaction begins */
    bool annotation, multi; /* multi: a transaction begins */
    bool needed;     /* salvage must keep it: its start can be known, and so can its transaction */
    bool torn_group; /* of a transaction that is not intact */
    bool accepted;   /* not needed, but no reader can see that it was changed */
    size_t n_within; /* whole commands that it took in */
};

struct torn_log {
    struct rd_buf bytes;
    struct torn_entry *entries; /* in the order of the file */
    size_t n;
    bool broken; /* a reader of the framing sees the damage */
};

/* The same seed gives the same log. */
struct torn_log torn_log_make(uint64_t seed, enum torn_damage damage);
void torn_log_done(struct torn_log *log);

#endif
