/* capture_world.h - a master as its capture sees it: two histories, one after the other.
 *
 * History 1 begins with a snapshot at offset WORLD_BASE1, under the id 'a', and changes its name to
 * 'b' on the way; history 2 ('c') begins with a snapshot at WORLD_BASE2. Their bytes are made once:
 * commands of all lengths, SELECT, MULTI and EXEC, an empty line. world_play() opens a writer and
 * lets it capture whatever it has not got yet, from the point that it reports; so it may be called
 * again after a crash, until it returns true. world_check() reads all of it back.
 */
#ifndef TESTS_REPL_CAPTURE_WORLD_H
#define TESTS_REPL_CAPTURE_WORLD_H

#include "base/buf.h"
#include "repl/capture_reader.h"
#include "repl/capture_writer.h"
#include "tests/support/sim_fs.h"

enum { WORLD_BASE1 = 1000, WORLD_BASE2 = 50, WORLD_COMMANDS = 512 };

struct world_command {
    size_t at, len; /* in the bytes of its history */
    uint64_t db;
    bool in_multi;
};

struct world {
    struct sim_fs *sim;
    struct repl_capture_writer_opts opts;
    size_t chunk;      /* bytes that arrive at once */
    unsigned syncing;  /* every so many chunks */
    unsigned breaking; /* the same: interrupted, and in time again; with opts.recorded */
    size_t n1, n2;     /* commands of each history */
    size_t long_len;   /* of a value in the midst of each history */

    struct rd_buf history[2];
    struct world_command commands[2][WORLD_COMMANDS];
    size_t n_commands[2];
    size_t rename_at; /* in the bytes of history 1 */
    struct rd_buf snapshot;
    int64_t now_us;

    uint64_t durable[2];  /* offsets reported as durable */
    uint64_t reported[2]; /* offsets reported as written */
    struct rd_err err;
};

struct repl_replid world_id(char digit);
void world_init(struct world *world);
void world_done(struct world *world);

/* True: everything was captured and the writer closed. Else world->err. */
bool world_play(struct world *world);

/* Asserts that the capture in `sim` is sound and holds both histories from first to last (from
 * wherever it begins, with `cut`), and every command where it is. */
void world_check(const struct world *world, struct sim_fs *sim, bool cut, const char *what);

void world_add_command(struct rd_buf *to, size_t argc, const struct rd_slice *argv);

/* A writer with what world_play() gave it, one step after the other. */
struct repl_capture_writer *world_writer(struct world *world);
bool world_begin(struct world *world, struct repl_capture_writer *w, unsigned history);
bool world_feed(struct world *world, struct repl_capture_writer *w, unsigned history, size_t to);

#endif
