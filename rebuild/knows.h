/* knows.h - whether a replay can run a command, before it is needed: for tools that store commands.
 *
 *     struct rebuild_unsupported unsupported = {0};
 *     if (rebuild_unsupported_note(&unsupported, argc, argv))
 *         ... the first one: unsupported.text ...
 *
 * This is about names, subcommands and the number of arguments. An unknown option is found only
 * when the command runs.
 */
#ifndef REBUILD_KNOWS_H
#define REBUILD_KNOWS_H

#include "base/resp.h"

enum rebuild_knows {
    REBUILD_KNOWS,        /* the engine runs it, or it has no effect on data */
    REBUILD_KNOWS_KEYS,   /* only which keys it changes: they will be unknown */
    REBUILD_KNOWS_NOTHING /* a replay refuses it */
};

enum rebuild_knows rebuild_knows(size_t argc, const struct rd_slice *argv);

struct rebuild_unsupported {
    uint64_t n;
    uint64_t n_nothing; /* of these */
    char text[240];     /* about the first: its name, and what a replay does */
};

/* True: it is the first command that cannot be run. */
bool rebuild_unsupported_note(struct rebuild_unsupported *unsupported, size_t argc,
                              const struct rd_slice *argv);

/* The same if only the name is known. */
bool rebuild_unsupported_note_name(struct rebuild_unsupported *unsupported, struct rd_slice name);

#endif
