/* line_impl.h - private to chunks/: chunks are named, compressed and sealed on a second thread.
 *
 * The caller fills jobs and takes them back in the same order, done. It alone uses the store.
 */
#ifndef CHUNKS_LINE_IMPL_H
#define CHUNKS_LINE_IMPL_H

#include "chunks/blob_impl.h"

#include <pthread.h>

enum { CHUNKS_JOBS = 4 };

struct chunks_job {
    struct rd_buf plain, stored;
    uint32_t ordinal, n_items;
    struct chunks_blob blob; /* kind is given, name and raw are set */
    struct rd_err err;
};

struct chunks_line {
    struct chunks_job jobs[CHUNKS_JOBS]; /* a ring */
    unsigned n_pushed, n_done, n_taken;
    struct chunks_codec codec; /* of the thread */
    uint8_t key[CHUNKS_KEY];
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool running, stop;
};

/* codec: target, key and random are set. */
bool chunks_line_init(struct chunks_line *line, const struct chunks_codec *codec,
                      const uint8_t key[CHUNKS_KEY], int level, struct rd_err *err);
void chunks_line_done(struct chunks_line *line);

/* An empty job, or NULL: take one first. */
struct chunks_job *chunks_line_slot(struct chunks_line *line);
void chunks_line_push(struct chunks_line *line);
/* The oldest job, waiting for it if `wait`; NULL: none is done, or none was pushed. It is valid
 * until chunks_line_drop(). */
struct chunks_job *chunks_line_take(struct chunks_line *line, bool wait);
void chunks_line_drop(struct chunks_line *line);

#endif
