/* span.h - what an index of keys points to: parts of a stream, a log or a snapshot.
 *
 * An index (history/index_writer.h, history/index_reader.h) says in which spans of a file of data a
 * key is written. A span begins between two commands, or two records of a snapshot. Reading can
 * begin there with what the span says.
 */
#ifndef HISTORY_SPAN_H
#define HISTORY_SPAN_H

#include "base/api.h"
#include "base/siphash.h"

enum { HISTORY_DIGEST = 32 };

enum history_data {
    HISTORY_SEGMENT = 1, /* of a capture: offsets are those of the history */
    HISTORY_LOG = 2,     /* a file of an append-only log: offsets are those of the file */
    HISTORY_SNAPSHOT = 3 /* the same */
};

/* The data of which an index was made, and the key of its hashes. */
struct history_index_about {
    enum history_data kind;
    uint64_t size;                  /* bytes of the file */
    uint8_t digest[HISTORY_DIGEST]; /* whatever tells two such files apart */
    uint8_t salt[RD_SIPHASH_KEY];   /* random; the index says nothing about names without it */
};

enum history_span_flag {
    HISTORY_SPAN_IN_MULTI = 1 /* its first command is between MULTI and EXEC */
};

struct history_span {
    uint64_t offset; /* of its first byte */
    uint64_t end;    /* of the last; given by the reader */
    int64_t time_us; /* of its first command; INT64_MIN: not known */
    uint32_t db;     /* selected at its first command */
    uint32_t flags;  /* enum history_span_flag */
    uint64_t multi;  /* with IN_MULTI: offset of the MULTI; RD_NO_OFFSET: not known */
};

#endif
