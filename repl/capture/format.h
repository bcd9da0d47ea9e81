/* format.h - the format of a segment; see docs/format/capture.md. */
#ifndef REPL_CAPTURE_FORMAT_H
#define REPL_CAPTURE_FORMAT_H

#include "base/buf.h"
#include "repl/capture.h"

enum {
    CAPTURE_VERSION = 1,
    CAPTURE_VERSION_RECORDED = 2, /* interruptions are recorded */
    CAPTURE_VERSION_MERGED = 3,   /* and it was made of several segments */
    CAPTURE_HEADER = REPL_CAPTURE_HEAD,
    CAPTURE_BLOCK = 72, /* header of a block */
    CAPTURE_TRAILER = REPL_CAPTURE_TAIL,
    CAPTURE_ENTRY = 24, /* of the index */
    CAPTURE_DATA_MAX = 4 * 1024 * 1024,
    CAPTURE_TIMES_MAX = 128 * 1024,
    CAPTURE_STRIDE = 64 * 1024,   /* bytes of the file between two entries of the index */
    CAPTURE_INDEX_MAX = 8 * 1024, /* entries; then every second one goes and the stride doubles */
};

#define CAPTURE_LOCK "capture.lock"
#define CAPTURE_PART ".part" /* after the name of a snapshot that is not complete */

enum capture_block_flag {
    CAPTURE_BEGINS_INSIDE = 1, /* its first byte is inside a command */
    CAPTURE_ENDS_INSIDE = 2,   /* it ends inside a command */
    CAPTURE_IN_MULTI = 4,      /* its first command is between MULTI and EXEC */
    CAPTURE_IN_TIME = 8,       /* the interruption ended before its first command */
    CAPTURE_BLOCK_FLAGS = 15,
};

struct capture_block {
    uint32_t flags;
    uint32_t len;       /* bytes of the stream */
    uint32_t times_len; /* bytes after them with the times of arrival */
    uint64_t offset;    /* of the first byte */
    int64_t first_us;   /* when its first command (or this piece of one) arrived */
    int64_t latest_us;  /* the latest time in the block */
    uint64_t synced;    /* the stream up to here was durable when the block was written */
    uint64_t db;        /* selected at its first command */
    uint64_t crc;       /* of data and times */
};

struct capture_entry {
    uint64_t at;       /* of the block's header in the file */
    uint64_t offset;   /* of its first byte */
    int64_t latest_us; /* of all blocks before it in the segment, or NO_TIME */
};

struct capture_trailer {
    uint32_t n_entries;
    bool in_multi;
    uint64_t index_at; /* where the index begins in the file */
    uint64_t end;      /* offset in the stream */
    int64_t last_us, latest_us;
    int64_t until_us;
    uint64_t db;
    uint64_t index_crc;
    uint8_t sha256[REPL_CAPTURE_SHA];
};

/* "00000001-1500.seg"; ending ".seg" or ".rdb". */
void repl_capture_name_put(char ret[REPL_CAPTURE_NAME], uint64_t number, uint64_t start,
                           const char *ending);
bool repl_capture_name_get(const char *name, const char *ending, uint64_t *ret_number,
                           uint64_t *ret_start);

/* The header of *seg. *ret_seed: its checksum, with which all checksums of the segment begin, so
 * that a block of another segment is not accepted. */
void repl_capture_header_put(uint8_t dst[CAPTURE_HEADER], const struct repl_capture_segment *seg,
                             uint64_t *ret_seed);
bool repl_capture_header_get(const uint8_t src[CAPTURE_HEADER], struct repl_capture_segment *ret,
                             uint64_t *ret_seed, struct rd_err *err);

void repl_capture_block_put(uint8_t dst[CAPTURE_BLOCK], const struct capture_block *block,
                            uint64_t seed);
/* False: not the header of a block of this segment, or invalid values. */
bool repl_capture_block_get(const uint8_t src[CAPTURE_BLOCK], uint64_t seed,
                            struct capture_block *ret);

void repl_capture_entry_put(uint8_t dst[CAPTURE_ENTRY], const struct capture_entry *entry);
void repl_capture_entry_get(const uint8_t src[CAPTURE_ENTRY], struct capture_entry *ret);

/* Without the SHA-256 (the last 32 bytes), which covers the rest. */
void repl_capture_trailer_put(uint8_t dst[CAPTURE_TRAILER], const struct capture_trailer *trailer,
                              uint64_t seed);
bool repl_capture_trailer_get(const uint8_t src[CAPTURE_TRAILER], uint64_t seed, uint64_t file_size,
                              struct capture_trailer *ret);

/* ---- times of a block ----
 *
 * A sequence of pairs: a number of bytes, and the time difference to the next bytes. */

/* At most 20 bytes; returns how many. */
size_t repl_capture_time_put(uint8_t *dst, uint64_t n_bytes, int64_t delta_us);

struct capture_times {
    const uint8_t *cur, *end;
    uint64_t len;  /* of the data */
    uint64_t upto; /* of the data: now_us holds before this place */
    int64_t now_us;
    uint64_t step_us; /* added at `upto` */
};

void repl_capture_times_init(struct capture_times *t, const struct capture_block *block,
                             const uint8_t *times);
/* Advances to the byte `at` of the data, which must not be before the last one. False: no writer
 * produces these bytes. */
bool repl_capture_times_at(struct capture_times *t, uint64_t at, int64_t *ret_us);

#endif
