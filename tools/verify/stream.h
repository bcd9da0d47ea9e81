/* stream.h - whether the archived stream of a target is what was archived.
 *
 *     struct verify_stream v = {.cli = cli, .repo = repo, .ring = &ring, .level = level};
 *     if (!verify_stream(&v, &err))
 *         ... it cannot be known ...
 *     ... v.n_segments, v.n_damaged ...
 */
#ifndef TOOLS_VERIFY_STREAM_H
#define TOOLS_VERIFY_STREAM_H

#include "archive/stream.h"
#include "rebuild/knows.h"
#include "tools/cli/cli.h"

enum verify_level { VERIFY_LIST, VERIFY_DIGEST, VERIFY_PARSE, VERIFY_LOAD };

struct verify_stream {
    struct cli *cli;
    struct cli_json *json; /* an open array for the results; NULL: they are printed */
    struct archive_repo *repo;
    const struct archive_sets *sets; /* of repo */
    const struct rd_seal_ring *ring;
    enum verify_level level;
    bool several; /* the target has other repositories: lines of text name this one */
    uint64_t n_segments, n_damaged;         /* out */
    uint64_t n_unknown;                     /* out: sealed with a key that is not given */
    struct rd_err unknown;                  /* out: of the first of them */
    uint64_t n_gone;                        /* out: removed since they were listed */
    struct rebuild_unsupported unsupported; /* out */
};

/* Reports each damaged segment, and the whole. With json: an object. */
bool verify_stream(struct verify_stream *v, struct rd_err *err);

/* Whether an error is about what is stored, and not about the way to it. */
bool verify_is_damage(const struct rd_err *err);

#endif
