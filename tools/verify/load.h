/* load.h - whether a server loads a set.
 *
 *     struct load load = {.cli = cli, .repo = repo, .set = set, .ring = ring, .program = program};
 *     if (!load_set(&load, &err))
 *         ... load.refused: the server does not load it, or has other keys; else it is unknown ...
 *     ... load.server, load.keys ...
 *
 * The set is restored into a private temporary folder. The server there has no TCP port. It runs as
 * a replica without a master, so that it keeps keys that have expired, and their number can be
 * compared.
 */
#ifndef TOOLS_VERIFY_LOAD_H
#define TOOLS_VERIFY_LOAD_H

#include "archive/repo.h"
#include "tools/cli/cli.h"

struct load {
    struct cli *cli;
    struct archive_repo *repo;
    const struct archive_set *set;
    const struct rd_seal_ring *ring;
    const char *program; /* NULL: the redoubt-server beside this program, or of $PATH */
    /* out */
    char server[80]; /* "redis 7.0.15"; empty: not known */
    uint64_t keys;   /* that it has */
    bool refused;
};

bool load_set(struct load *load, struct rd_err *err);

#endif
