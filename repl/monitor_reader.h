/* monitor_reader.h - reads a recording of MONITOR.
 *
 *     struct repl_monitor_reader *r;
 *     struct repl_monitor_record record;
 *     if (!repl_monitor_reader_open(&r, &fs, name, &err))
 *         ...
 *     while ((status = repl_monitor_reader_next(r, &record, &err)) == REPL_MONITOR_RECORD)
 *         switch (record.kind) {
 *         case REPL_MONITOR_AT_BLOCK: record.flags; record.time_us; record.until_us
 *         case REPL_MONITOR_AT_LINE:  record.text, which arrived at record.time_us
 *         case REPL_MONITOR_AT_WAITS: record.text is the address of a client
 *         }
 *     repl_monitor_reader_close(r);
 *
 * A block is verified before anything is given from it. Memory: a block. A file may be read while
 * it is written. A file whose writer was killed may have a torn end, which is left out.
 */
#ifndef REPL_MONITOR_READER_H
#define REPL_MONITOR_READER_H

#include "base/slice.h"
#include "repl/monitor.h"

enum repl_monitor_status { REPL_MONITOR_RECORD, REPL_MONITOR_OVER, REPL_MONITOR_FAIL };

enum repl_monitor_kind { REPL_MONITOR_AT_BLOCK, REPL_MONITOR_AT_LINE, REPL_MONITOR_AT_WAITS };

/* Borrowed until the next call. */
struct repl_monitor_record {
    enum repl_monitor_kind kind;
    int64_t time_us; /* of arrival; of a block: when it begins */
    struct rd_slice text;
    unsigned flags;   /* of a block: enum repl_monitor_flag */
    int64_t until_us; /* of a block: all that the server ran before is in it or before it; or
                         REPL_CAPTURE_NO_TIME: as before */
};

struct repl_monitor_reader;

/* RD_ERR_CORRUPT, RD_ERR_CHECKSUM, RD_ERR_UNSUPPORTED, RD_ERR_IO, RD_ERR_MEMORY, with the name of
 * the file as origin. */
bool repl_monitor_reader_open(struct repl_monitor_reader **ret, const struct rd_fs *fs,
                              const char *name, struct rd_err *err);
/* FAIL: the same errors, with the offset in the file. */
enum repl_monitor_status repl_monitor_reader_next(struct repl_monitor_reader *r,
                                                  struct repl_monitor_record *ret,
                                                  struct rd_err *err);
/* NULL is allowed. */
void repl_monitor_reader_close(struct repl_monitor_reader *r);

/* The recordings in a folder, in the order of their times; each is a name of REPL_CAPTURE_NAME
 * bytes in *ret, which the caller frees with rd_free(). */
bool repl_monitor_list(char (**ret)[REPL_CAPTURE_NAME], size_t *ret_n, const struct rd_fs *fs,
                       struct rd_err *err);

#endif
