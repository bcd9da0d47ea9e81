/* ahead.h - fetches the keys of the commands that follow in an input, while earlier ones run.
 *
 * A lookup waits for memory that is not in the caches of the processor: it takes a fifth of the
 * time of a SET. Of pipelined commands and of a master's stream, the next keys are known.
 */
#ifndef SERVER_SESSION_DISPATCH_AHEAD_H
#define SERVER_SESSION_DISPATCH_AHEAD_H

#include "engine/db.h"

/* Zeroed at the start of an input. */
struct ahead {
    struct engine_db_ahead keys;
    uint64_t at; /* the position up to which commands are known */
    unsigned n;  /* commands between the next one and that position */
};

/* Called before each command. rest: the bytes after it, which begin at position `at` of the input.
 * They may be incomplete or wrong; what is not a whole small command is not looked at. */
void ahead(struct ahead *a, const struct engine_db *db, struct rd_slice rest, uint64_t at);

#endif
