/* replica.h - a replica for tests: gives bytes to a struct repl_psync in pieces and remembers.
 *
 *     struct replica r;
 *     replica_init(&r, &opts);
 *     replica_feed(&r, bytes, 7);        // in pieces of 7
 *     r.text, r.snapshot, r.stream, r.sent
 *     replica_done(&r);
 */
#ifndef TESTS_REPL_REPLICA_H
#define TESTS_REPL_REPLICA_H

#include "base/buf.h"
#include "repl/psync.h"

struct replica {
    struct repl_psync *p;
    struct rd_buf text;     /* a line for each event; pieces of the snapshot are left out */
    struct rd_buf snapshot; /* bytes of the snapshot */
    struct rd_buf stream;   /* bytes of commands and empty lines */
    struct rd_buf sent; /* words of the commands that the replica sent, each command ended by '|' */
    uint64_t n_commands, n_kind[REPL_GETACK + 1];
    bool ended; /* REPL_END or REPL_ERROR came */
    struct repl_event last;
    struct rd_err err; /* of a REPL_ERROR */
    /* Called for each event after it was noted; may be NULL. */
    void (*on_event)(void *ctx, struct replica *r, const struct repl_event *ev);
    void *ctx;
};

/* NULL: no such memory. */
bool replica_init(struct replica *r, const struct repl_psync_opts *opts);

/* In pieces of at most n bytes; takes events after each. Stops at the end. */
void replica_feed(struct replica *r, struct rd_slice bytes, size_t n);
void replica_feed_text(struct replica *r, const char *text);

/* Takes the events that wait, and what is to be sent. */
void replica_drain(struct replica *r);
void replica_cut(struct replica *r);

/* The text, ended by NUL; and then it is empty. */
const char *replica_text(struct replica *r);
const char *replica_sent(struct replica *r);

void replica_done(struct replica *r);

#endif
