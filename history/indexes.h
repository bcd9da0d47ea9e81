/* indexes.h - the indexes of a tape: made when they are needed, and kept.
 *
 *     struct history_indexes indexes = {.folder = folder, .salt = ...};
 *     struct history_spans spans = {0};
 *     bool whole;
 *     if (!history_indexes_find(&indexes, &tape, part, &names, &spans, &whole, &err))
 *         ...
 *     ... read the part in each of `spans`, or (whole) all of it ...
 *     history_spans_done(&spans);
 *
 * An index that is missing, damaged, or of other data is made again from the data. That of a
 * segment which is being written is about its beginning; what came later is one more span, until it
 * is long enough for a new index. For many names at once, everything is read. It is a file in
 * a folder, readable by those who can read the data. If it cannot be stored, the part is read as a
 * whole each time.
 *
 * In the folder of a capture, indexes have the names of their files and go with them
 * (repl/capture.h). In any other folder, one that nobody has read for HISTORY_INDEX_DAYS is removed
 * when another one is made.
 */
#ifndef HISTORY_INDEXES_H
#define HISTORY_INDEXES_H

#include "base/buf.h"
#include "history/index_reader.h"
#include "history/tape.h"

#define HISTORY_INDEX_ENDING REPL_CAPTURE_KEYS

enum { HISTORY_INDEX_DAYS = 30 };

struct history_indexes {
    const char *folder;        /* NULL: none are kept */
    const struct rd_fs *given; /* a folder with indexes that are right, by the names of the parts;
                                     NULL: none */
    uint8_t salt[RD_SIPHASH_KEY]; /* for those that are made; random */
    uint64_t stride;              /* bytes of their spans, at least; 0: 64 KiB */
    /* Called when one is about to be made; may be NULL. */
    void (*making)(void *ctx, const struct history_part *part);
    void *ctx;
    uint64_t made, used;  /* counts */
    struct rd_err failed; /* the first error of storing one; not an error of the call */
};

struct history_name_list {
    const struct rd_slice *list;
    size_t n;
};

/* Adds the spans of a part in which one of the names, or any key, may be written. *ret_whole: there
 * is no index, read the whole part. False: the data cannot be read, or RD_ERR_MEMORY. */
bool history_indexes_find(struct history_indexes *indexes, struct history_tape *tape, size_t part,
                          const struct history_name_list *names, struct history_spans *ret,
                          bool *ret_whole, struct rd_err *err);

/* Removes the indexes in a folder that nobody has read for HISTORY_INDEX_DAYS before this one was
 * made: those with names of 32 digits, a dash, a character, and the ending. */
void history_indexes_tidy(const char *folder, const char *made);

/* Makes the index of a part and writes it to the sink. RD_ERR_UNSUPPORTED: this part can have none.
 */
bool history_indexes_make(const struct history_indexes *indexes, struct history_tape *tape,
                          size_t part, struct rd_sink *sink, struct rd_err *err);

#endif
