/* omitted.h - reports what --lossy omits.
 *
 * The libraries report every omission to a callback (rdb/omission.h). The first ones and the counts
 * by reason go to the watch. For JSON, all of them are kept, in files without a name, so that
 * memory is bounded.
 *
 *     struct omitted omitted;
 *     omitted_init(&omitted, watch, json != NULL);
 *     struct rdb_writer_opts opts = RDB_WRITER_OPTS(.lossy = true, OMITTED_CALLBACK(&omitted));
 *     ...
 *     if (!omitted_end(&omitted, &err))         // before the output is closed
 *         ...
 *     ok = omitted_report(&omitted, json, &err);   // after it
 *     omitted_done(&omitted);
 *
 * Omissions are reported in the order of the input, whatever the order of the calls. Two threads
 * may add at the same time.
 */
#ifndef JOBS_OMITTED_H
#define JOBS_OMITTED_H

#include "base/watch.h"
#include "data/sort.h"
#include "json/write.h"
#include "rdb/omission.h"

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
    const struct rd_watch *watch;
    bool keep;        /* all of them, for JSON */
    const char *file; /* set by the caller if there are several inputs, which are read in turn */
    pthread_mutex_t lock;
    uint64_t n;
    struct omitted_reason reasons[OMITTED_REASONS];
    size_t n_reasons;
    struct omitted_shown shown[OMITTED_SHOWN]; /* the first in the input */
    size_t n_shown;
    struct spool texts; /* with keep: an object for each, after a comma */
    struct rd_sink *to; /* appends to texts */
    struct sort places; /* order and number -> where its object is in texts */
    struct rd_err err;
};

/* For the options of the libraries; o may be NULL. */
#define OMITTED_CALLBACK(o) .omitted = (o) != NULL ? omitted_add : NULL, .omitted_ctx = (o)

/* The watch is borrowed. keep: omitted_report() will have a place for JSON. */
void omitted_init(struct omitted *o, const struct rd_watch *watch, bool keep);
void omitted_done(struct omitted *o);

/* The callback: ctx is the struct omitted. */
void omitted_add(void *ctx, const struct rdb_omission *omission);

/* No more is added. False: an omission could not be stored. */
bool omitted_end(struct omitted *o, struct rd_err *err);

/* Warns, and if json is not NULL, writes the members left_out, omitted and omitted_by_reason to the
 * open object. False: an omission could not be read back. */
bool omitted_report(struct omitted *o, struct json_write *json, struct rd_err *err);

/* For the error of a run without --lossy: sets a hint that names the option, the server that the
 * output is for (NULL: not known) and what would be omitted. */
void omitted_hint(const struct rd_watch *watch, const char *server, const struct rd_err *err);

#endif
