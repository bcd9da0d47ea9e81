/* file.h - reads a segment: its header, its blocks one by one, its end.
 *
 *     struct capture_file f;
 *     if (repl_capture_file_open(&f, fs, name, &err) != CAPTURE_OPEN_OK)
 *         ...
 *     struct capture_cursor c;
 *     repl_capture_cursor_init(&c, &f);
 *     while ((st = repl_capture_cursor_next(&c, &block, &err)) == CAPTURE_NEXT_BLOCK)
 *         ... block.head.len bytes at block.data ...
 *     repl_capture_file_close(&f);
 */
#ifndef REPL_CAPTURE_FILE_H
#define REPL_CAPTURE_FILE_H

#include "repl/capture/format.h"

struct capture_file {
    struct rd_fs fs;
    int fd;   /* -1: not open */
    bool few; /* a few places are read */
    struct repl_capture_segment seg;
    uint64_t seed;
    struct capture_trailer trailer; /* while seg.closed */
    uint8_t *window;
    size_t cap;
    size_t len;
    uint64_t at; /* of the window in the file */
};

enum capture_open {
    CAPTURE_OPEN_OK,
    CAPTURE_OPEN_TORN, /* its creation was interrupted; it holds no data */
    CAPTURE_OPEN_GONE, /* the file does not exist */
    CAPTURE_OPEN_FAIL
};

/* Closed already unless OK. Errors have the name as their origin. */
enum capture_open repl_capture_file_open(struct capture_file *f, const struct rd_fs *fs,
                                         const char *name, struct rd_err *err);
/* The same, to read a few places of it. */
enum capture_open repl_capture_file_open_at(struct capture_file *f, const struct rd_fs *fs,
                                            const char *name, struct rd_err *err);
void repl_capture_file_close(struct capture_file *f);

/* Updates the size of the file and whether it has been closed. */
bool repl_capture_file_refresh(struct capture_file *f, struct rd_err *err);

/* Up to n bytes at a place of the file, borrowed until the next call; *ret_len < n: it ends. */
bool repl_capture_file_read(struct capture_file *f, uint64_t at, size_t n, const uint8_t **ret,
                            size_t *ret_len, struct rd_err *err);

/* The index of a closed segment; entries lie in *ret until the next read. */
bool repl_capture_file_index(struct capture_file *f, const uint8_t **ret, struct rd_err *err);

struct capture_piece {
    struct capture_block head;
    const uint8_t *data; /* borrowed until the next call that takes the file */
    const uint8_t *times;
    uint64_t at; /* of the header in the file */
};

struct capture_cursor {
    struct capture_file *f;
    uint64_t at;     /* of the next header */
    uint64_t offset; /* of the next byte of the stream */
    bool inside;     /* of a command */
    int64_t latest_us;
};

enum capture_next {
    CAPTURE_NEXT_BLOCK,
    CAPTURE_NEXT_END,  /* of a closed segment */
    CAPTURE_NEXT_LIVE, /* of an open segment: bytes after it, if any, are torn or being written */
    CAPTURE_NEXT_FAIL
};

void repl_capture_cursor_init(struct capture_cursor *c, struct capture_file *f);
enum capture_next repl_capture_cursor_next(struct capture_cursor *c, struct capture_piece *ret,
                                           struct rd_err *err);

/* Skips the next block by its header. False: no more blocks, or (err set) it cannot be read. */
bool repl_capture_cursor_hop(struct capture_cursor *c, struct capture_block *ret,
                             struct rd_err *err);

/* The header of the block at a place. False: none is there, or it cannot be read. */
bool repl_capture_file_head(struct capture_file *f, uint64_t at, struct capture_block *ret);

/* Moves to the last place at or before `offset` (NO_TIME), or the last one before which nothing
 * came at or after `time_us` (time_us not NO_TIME), that begins between two commands. Goes by the
 * index, then from header to header. */
bool repl_capture_cursor_seek(struct capture_cursor *c, uint64_t offset, int64_t time_us,
                              struct rd_err *err);

#endif
