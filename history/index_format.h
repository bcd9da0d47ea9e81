/* index_format.h - the format of an index of keys; private to history/.
 *
 * docs/format/key-index.md specifies it. history/index_writer.h writes an index;
 * history/index_reader.h looks keys up in it.
 */
#ifndef HISTORY_INDEX_FORMAT_H
#define HISTORY_INDEX_FORMAT_H

#include "base/err.h"
#include "base/siphash.h"
#include "history/span.h"

enum {
    INDEX_VERSION = 2,
    INDEX_HEADER = 160,
    INDEX_SPAN = 32,
    INDEX_CHUNK = 1024,        /* bytes of the body under one checksum */
    INDEX_PER_BUCKET = 128,    /* pairs of a key and a span, on average */
    INDEX_SPANS_MAX = 1 << 16, /* of a section */
    INDEX_PAIRS_MAX = 1 << 21,
    INDEX_HASH_BITS = 44, /* of the hash of a name that are used */
    INDEX_REST_MAX = 12,  /* see struct index_shape */
};

/* How the pairs of a section are packed. A key has a place among `buckets` << width places. */
struct index_shape {
    uint32_t buckets;
    unsigned width;     /* bits of a place within its bucket */
    unsigned rest;      /* bits of the distance between two places that are not unary */
    unsigned span_bits; /* of the number of a span */
};

struct index_section {
    struct history_index_about about;
    uint64_t at;         /* of its header in the file */
    uint64_t start, end; /* offsets in the data */
    uint64_t pairs;
    uint32_t spans, apart, postings; /* numbers; bytes */
    struct index_shape shape;
    bool last;
    uint64_t seed; /* the checksum of the header, with which those of the chunks begin */
};

void history_index_header_put(uint8_t dst[INDEX_HEADER], struct index_section *section);
/* `at`: where the header was read. RD_ERR_CHECKSUM, or RD_ERR_UNSUPPORTED. */
bool history_index_header_get(const uint8_t src[INDEX_HEADER], uint64_t at,
                              struct index_section *ret, struct rd_err *err);

void history_index_span_put(uint8_t dst[INDEX_SPAN], const struct history_span *span);
/* Without `end`. */
void history_index_span_get(const uint8_t src[INDEX_SPAN], struct history_span *ret);

/* Where the parts of the body begin, from its start, and where it ends. */
uint64_t history_index_apart_at(const struct index_section *section);
uint64_t history_index_buckets_at(const struct index_section *section);
uint64_t history_index_postings_at(const struct index_section *section);
uint64_t history_index_body_len(const struct index_section *section);
/* Of the whole section: header, body, checksums. */
uint64_t history_index_section_len(const struct index_section *section);

uint64_t history_index_chunk_sum(const struct index_section *section, uint64_t chunk,
                                 const uint8_t *bytes, size_t len);

uint64_t history_index_hash(const uint8_t salt[RD_SIPHASH_KEY], struct rd_slice name);
uint64_t history_index_place(const struct index_shape *shape, uint64_t hash);

#endif
