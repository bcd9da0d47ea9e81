/* log_world.h - a server as seen by its log: commands that are numbered, and what was promised.
 *
 * Command n is `SET c<n> <db>` in database world_db(n). After any failure or crash the log must
 * hold commands 1 to m, in order and once, with m >= the last that was promised, and no part of a
 * transaction. world_load() reads it with the most simple-minded of readers; the checks compare
 * that with what aof/reader.h says.
 */
#ifndef TESTS_AOF_LOG_WORLD_H
#define TESTS_AOF_LOG_WORLD_H

#include "aof/writer.h"
#include "tests/support/sim_fs.h"

enum { WORLD_COMMANDS = 128, WORLD_TRANSACTIONS = 16 };

struct world {
    struct sim_fs *sim;
    struct rd_fs fs;
    struct aof_writer *w;
    enum aof_fsync fsync;
    int64_t now_ms;
    bool child_ok; /* a rewrite's base was written */
    unsigned issued;
    unsigned promised;
    uint64_t reply_at[WORLD_COMMANDS + 1];
    struct {
        unsigned first, last;
    } multi[WORLD_TRANSACTIONS];
    unsigned n_multi;
};

struct world_log {
    unsigned n;          /* commands 1 … n */
    bool exists;         /* there is a manifest */
    char last[SIM_NAME]; /* file */
    uint64_t size, end;  /* of it; end: after what is whole */
    unsigned n_files;    /* without history */
};

unsigned world_db(unsigned n);

/* False: the log does not load, *why says why. */
bool world_load(const struct sim_fs *sim, struct world_log *ret, char why[200]);

/* Opens the writer over world->sim, cutting what the log says is torn. */
bool world_open(struct world *world, const struct world_log *log, struct rd_err *err);
bool world_command(struct world *world);
bool world_transaction(struct world *world, unsigned n_commands);
/* Flush, and fsync if asked; replies go out. */
bool world_turn(struct world *world, bool sync);
/* What a child does: a base of all commands so far, in the file `temp`, not durable. */
bool world_write_base(struct world *world, const char *temp);

/* Twelve turns with a transaction and three rewrites, one of which is given up. It continues after
 * failures as a server does, until the writer is dead or the file system has crashed. *closed: the
 * writer was closed in order. */
void world_run(struct world *world, bool *ret_closed);

/* Asserts what is said above about what is in `sim`. */
void world_check(const struct world *world, struct sim_fs *sim, const char *what);
/* And that another writer continues from there. It changes `sim`. */
void world_check_continues(const struct world *world, struct sim_fs *sim, const char *what);

#endif
