/* walk.h - walks over the commands of one file, and decides which are kept and which are lost.
 *
 * Private to salvage.
 */
#ifndef AOF_RECOVER_WALK_H
#define AOF_RECOVER_WALK_H

#include "aof/recover/frame.h"
#include "aof/salvage.h"

enum { WALK_LOSSES = 64 };

/* A position between two commands, and the state there. */
struct walk_mark {
    uint64_t at;
    uint64_t db;
    uint64_t commands, annotations; /* before it, kept or to be kept */
};

/* A loss waits until it is known which time annotation follows. */
struct walk_loss {
    struct aof_loss loss;
    char why[RD_ERR_TEXT_MAX];
};

struct walk {
    const struct aof_salvage_opts *opts;
    struct aof_salvage_result *res;
    const char *name;
    struct aof_recover_in in, probe;
    struct rd_src *copy;
    struct rd_sink *out; /* or NULL */
    struct rd_err *err;
    struct walk_mark now;
    struct walk_mark keep;          /* start of the commands that are kept and not yet written */
    struct aof_recover_forms forms; /* of the commands up to here */
    uint64_t rest, rest_end;        /* see struct aof_recover_way */
    uint64_t out_db;                /* selected at the end of the output */
    int64_t time_s;
    bool in_multi;
    struct walk_mark multi;
    /* In the transaction: a MULTI, up to its own EXEC and after it. */
    bool in_inner, has_inner;
    struct walk_mark inner, last_inner; /* the first one, and the last one */
    bool has_near_exec; /* in the transaction: a command that may be its damaged EXEC */
    struct walk_mark behind_exec;
    bool has_near_multi; /* outside: a command that may be a damaged MULTI */
    struct walk_mark near_multi;
    bool multi_lost; /* a MULTI may lie in the gap before `keep` */
    bool after_gap;  /* bytes before `keep` could not be read */
    bool has_prev;
    struct frame prev; /* the entry that ends at now.at */
    struct walk_mark before_prev;
    struct walk_loss losses[WALK_LOSSES];
    size_t n_losses;
};

/* Copies [from, to) to the output. */
bool aof_recover_copy(struct walk *w, uint64_t from, uint64_t to);

/* Walks over the commands from `at` to the end of the file and writes those that are kept. */
bool aof_recover_walk(struct walk *w, uint64_t at);

#endif
