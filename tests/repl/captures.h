/* captures.h - what replicas received from real servers, and what is known about it.
 *
 *     static void visit(void *ctx, const struct capture *c) { … c->bytes … }
 *     cr_assert_gt(captures_each(visit, ctx), 0);
 */
#ifndef TESTS_REPL_CAPTURES_H
#define TESTS_REPL_CAPTURES_H

#include "repl/psync.h"

/* A row of fixtures/captures.tsv; "-" is an empty text, or UINT64_MAX. */
struct capture {
    char path[64];
    char sent[256];
    char replid[48];
    uint64_t start, end;
    uint64_t reply, header, rdb, rdb_end, stream;
    char mark[48];
    char rdb_sha256[72];
    uint64_t commands, pings, selects, multis, execs, getacks;
    char initial[48], final[48];
    struct rd_slice bytes;
    struct repl_psync_opts opts; /* with which a replica sends what was sent */
};

/* All of them; returns how many. Aborts where the files are not what they should be. */
unsigned captures_each(void (*visit)(void *ctx, const struct capture *c), void *ctx);

#endif
