/* plan.h - what becomes of a command of the stream in a target.
 *
 *     struct migrate_plan plan = {.cluster = true, .filter = &filter};
 *     if (!migrate_plan_make(&plan, db, argv, argc, &err))
 *         ...
 *     for (size_t i = 0; i < plan.n; i++)
 *         ... plan.pieces[i].slot, .argv, .argc ...
 *     migrate_plan_done(&plan);
 *
 * A command goes to one group of keys as it is, or, if it names keys of several groups and can be
 * divided (DEL, UNLINK, MSET), in pieces. What a target cannot do is refused by name: nothing is
 * dropped except keys that the filter drops, and position keys (position.h).
 *
 * Threads: one thread at a time uses a plan. Memory: the arguments of a command that is divided.
 */
#ifndef TOOLS_MIGRATE_PLAN_H
#define TOOLS_MIGRATE_PLAN_H

#include "base/err.h"
#include "data/filter.h"
#include "engine/command.h"

/* Keys that begin with `from` begin with `to` in the target. */
struct migrate_rename {
    struct rd_slice from, to;
};

enum { MIGRATE_RENAMES_MAX = 16 };

enum migrate_kind {
    MIGRATE_NOTHING,    /* the target does not need it */
    MIGRATE_PIECES,     /* to the groups of the pieces */
    MIGRATE_EVERYWHERE, /* to every server: functions, scripts */
    MIGRATE_FLUSH,      /* of a database, or all */
    MIGRATE_SWAP,       /* SWAPDB, to a single server */
    MIGRATE_REFUSED     /* `why` says what the target cannot do */
};

struct migrate_piece {
    unsigned slot; /* 0 for a single server */
    const struct rd_slice *argv;
    size_t argc;
    bool unchanged; /* all arguments are those of the command */
};

struct migrate_plan {
    /* Set by the caller. */
    bool cluster;
    bool several_dbs;            /* the target has more databases than 0 */
    const struct filter *filter; /* NULL: all keys */
    bool selects;                /* the user wants a part of the keys */
    const struct migrate_rename *renames;
    size_t n_renames;

    /* The result, until the next call. */
    enum migrate_kind kind;
    struct migrate_piece *pieces;
    size_t n;
    bool all_dbs; /* FLUSH */
    char why[200];

    /* Private. */
    size_t cap_pieces;
    struct engine_key *keys;
    size_t n_keys, cap_keys;
    struct rd_slice *args;
    size_t cap_args;
    uint8_t *names; /* of renamed keys */
    size_t cap_names;
};

/* The arguments are borrowed until the next call. RD_ERR_MEMORY. */
bool migrate_plan_make(struct migrate_plan *plan, uint64_t db, const struct rd_slice *argv,
                       size_t argc, struct rd_err *err);
void migrate_plan_done(struct migrate_plan *plan);

/* The name of a key in the target: `key` itself, or bytes of the plan until the next call. */
bool migrate_plan_rename(struct migrate_plan *plan, struct rd_slice key, struct rd_slice *ret,
                         struct rd_err *err);
/* Whether a key of the target is a copy of a key that is wanted. */
bool migrate_plan_has(struct migrate_plan *plan, uint64_t db, struct rd_slice key);

/* Whether keys are left out or renamed. */
bool migrate_plan_selects(const struct migrate_plan *plan);
/* Whether a key of the source is copied. */
bool migrate_plan_wants(const struct migrate_plan *plan, uint64_t db, struct rd_slice key);

#endif
