/* segment_in.h - reads one closed segment of a capture, without those before and after it.
 *
 *     struct segment_in in = {0};
 *     if (!segment_in_open(&in, src, number, start, &err))
 *         ...
 *     ... in.header ...
 *     while (segment_in_next(&in, &ev, &err))
 *         ...
 *     ok = !in.failed;
 *     segment_in_close(&in);
 *
 * The source is copied to a spool (spool.h), because the index is at the end of a segment.
 */
#ifndef CAPTURE_SEGMENT_IN_H
#define CAPTURE_SEGMENT_IN_H

#include "base/src.h"
#include "repl/capture_reader.h"
#include "data/spool.h"

struct segment_in {
    struct spool spool;
    const struct rd_fs *folder; /* NULL: fd is a descriptor of the system */
    int fd;                     /* of the spool, or of a file */
    bool owns_fd;
    uint64_t size;
    char name[REPL_CAPTURE_NAME]; /* as in a capture: "00000001-1500.seg" */
    struct rd_fs fs;
    struct repl_capture_segment header;
    struct repl_capture_reader *reader;
    bool failed; /* reading ended with an error */
};

/* Reads the source to its end and closes it. The name must be that of a segment with this number
 * and offset. RD_ERR_CORRUPT if it is not a closed segment of that name. */
bool segment_in_open(struct segment_in *in, struct rd_src *src, uint64_t number, uint64_t start,
                     struct rd_err *err);

/* The same for a file, which is not copied. */
bool segment_in_open_file(struct segment_in *in, const char *path, uint64_t number, uint64_t start,
                          struct rd_err *err);

/* The same for a file of this folder, whose calls are borrowed. */
bool segment_in_open_in(struct segment_in *in, const struct rd_fs *folder, uint64_t number,
                        uint64_t start, struct rd_err *err);

/* Checks the SHA-256 of the file: RD_ERR_CHECKSUM. */
bool segment_in_verify(struct segment_in *in, struct rd_err *err);

/* The next command or blank. False at the end or, with in->failed and err set, after an error. */
bool segment_in_next(struct segment_in *in, struct repl_capture_event *ret, struct rd_err *err);

/* A zeroed struct is allowed. */
void segment_in_close(struct segment_in *in);

#endif
