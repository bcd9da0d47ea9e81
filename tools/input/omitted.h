/* omitted.h - reports what --lossy omits.
 *
 * The libraries report every omission to a callback (rdb/omission.h). The first ones and the counts
 * by reason go to stderr. With --json, all of them go to the JSON object; until then they are in
 * files without a name, so that memory is bounded.
 *
 *     struct omitted omitted;
 *     omitted_init(&omitted, cli);
 *     struct rdb_writer_opts opts = RDB_WRITER_OPTS(.lossy = true, OMITTED_CALLBACK(&omitted));
 *     ...
 *     if (!omitted_end(&omitted, &err))         // before the output is closed
 *         ...
 *     ok = omitted_report(&omitted, &err);      // after it
 *     omitted_done(&omitted);
 *
 * Omissions are reported in the order of the input, whatever the order of the calls. Two threads
 * may add at the same time.
 */
#ifndef TOOLS_INPUT_OMITTED_H
#define TOOLS_INPUT_OMITTED_H

#include "rdb/omission.h"
#include "tools/cli/cli.h"
#include "data/sort.h"

#include <pthread.h>

enum { OMITTED_SHOWN = 10, OMITTED_REASONS = 32, OMITTED_TEXT_MAX = 1024 };

/* Of all omissions with this reason. */
struct omitted_reason {
    enum rdb_omitted what;
    char text[RD_ERR_TEXT_MAX];
    uint64_t n;
};

struct omitted_shown {
    uint64_t order;
    char text[OMITTED_TEXT_MAX];
};

struct omitted {
    struct cli *cli;
    const char *file; /* set by the caller if there are several inputs, which are read in turn */
    pthread_mutex_t lock;
    uint64_t n;
    struct omitted_reason reasons[OMITTED_REASONS];
    size_t n_reasons;
    struct omitted_shown shown[OMITTED_SHOWN]; /* the first in the input */
    size_t n_shown;
    struct spool texts; /* with --json: an object for each, after a comma */
    struct rd_sink *to; /* appends to texts */
    struct sort places; /* order and number -> where its object is in texts */
    struct rd_err err;
};

#define OMITTED_CALLBACK(o) .omitted = omitted_add, .omitted_ctx = (o)

void omitted_init(struct omitted *o, struct cli *cli);
void omitted_done(struct omitted *o);

/* The callback: ctx is the struct omitted. */
void omitted_add(void *ctx, const struct rdb_omission *omission);

/* No more is added. False: an omission could not be stored. */
bool omitted_end(struct omitted *o, struct rd_err *err);

/* Prints the warnings and, with --json, writes the members left_out, omitted and omitted_by_reason.
 * False: an omission could not be read back. */
bool omitted_report(struct omitted *o, struct rd_err *err);

/* For the error of a run without --lossy: sets a hint that names the option, the server that the
 * output is for (NULL: not known) and what would be omitted. */
void omitted_hint(struct cli *cli, const char *server, const struct rd_err *err);

#endif
