#include "history/index_format.h"

#include "base/crc64.h"
#include "base/endian.h"

static const char MAGIC[] = "RDKEYS\r\n";

enum { MAGIC_LEN = 8, SUM = 8, SUM_AT = INDEX_HEADER - SUM, LAST = 1 };

/* The header:
 *
 *       0  8  magic            72  8  start              112  1  bits of a span's number
 *       8  4  version          80  8  end                113  1  width of a bucket, bits
 *      12  4  kind of data     88  8  pairs              114  1  bits of the rest
 *      16 16  salt             96  4  spans              115  1  1: the last section
 *      32 32  digest          100  4  spans apart        120  8  position of the section
 *      64  8  size of data    104  4  buckets            152  8  checksum
 *                             108  4  bytes of postings
 */
void history_index_header_put(uint8_t dst[INDEX_HEADER], struct index_section *section)
{
    const struct index_shape *shape = &section->shape;
    memset(dst, 0, INDEX_HEADER);
    memcpy(dst, MAGIC, MAGIC_LEN);
    rd_put_le32(dst + 8, INDEX_VERSION);
    rd_put_le32(dst + 12, section->about.kind);
    memcpy(dst + 16, section->about.salt, sizeof section->about.salt);
    memcpy(dst + 32, section->about.digest, sizeof section->about.digest);
    rd_put_le64(dst + 64, section->about.size);
    rd_put_le64(dst + 72, section->start);
    rd_put_le64(dst + 80, section->end);
    rd_put_le64(dst + 88, section->pairs);
    rd_put_le32(dst + 96, section->spans);
    rd_put_le32(dst + 100, section->apart);
    rd_put_le32(dst + 104, shape->buckets);
    rd_put_le32(dst + 108, section->postings);
    dst[112] = (uint8_t)shape->span_bits;
    dst[113] = (uint8_t)shape->width;
    dst[114] = (uint8_t)shape->rest;
    dst[115] = section->last ? LAST : 0;
    rd_put_le64(dst + 120, section->at);
    section->seed = rd_crc64(0, dst, SUM_AT);
    rd_put_le64(dst + SUM_AT, section->seed);
}

/* What no writer produces would make the reader allocate or shift too much. */
static bool is_possible(const struct index_section *section)
{
    const struct index_shape *shape = &section->shape;
    return section->about.kind >= HISTORY_SEGMENT && section->about.kind <= HISTORY_SNAPSHOT &&
           section->start <= section->end && section->spans <= INDEX_SPANS_MAX &&
           section->apart <= section->spans && section->pairs <= INDEX_PAIRS_MAX &&
           shape->buckets >= 1 && shape->buckets <= INDEX_PAIRS_MAX && shape->span_bits <= 16 &&
           shape->width <= 20 && shape->rest <= INDEX_REST_MAX;
}

bool history_index_header_get(const uint8_t src[INDEX_HEADER], uint64_t at,
                              struct index_section *ret, struct rd_err *err)
{
    if (memcmp(src, MAGIC, MAGIC_LEN) != 0)
        return rd_err_set(err, RD_ERR_CORRUPT, at, "not an index of keys");
    if (rd_get_le32(src + 8) != INDEX_VERSION)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, at, "version %u of an index of keys",
                          rd_get_le32(src + 8));
    *ret = (struct index_section){
        .about = {.kind = rd_get_le32(src + 12), .size = rd_get_le64(src + 64)},
        .at = rd_get_le64(src + 120),
        .start = rd_get_le64(src + 72),
        .end = rd_get_le64(src + 80),
        .pairs = rd_get_le64(src + 88),
        .spans = rd_get_le32(src + 96),
        .apart = rd_get_le32(src + 100),
        .postings = rd_get_le32(src + 108),
        .shape = {rd_get_le32(src + 104), src[113], src[114], src[112]},
        .last = src[115] == LAST,
        .seed = rd_crc64(0, src, SUM_AT)};
    memcpy(ret->about.salt, src + 16, sizeof ret->about.salt);
    memcpy(ret->about.digest, src + 32, sizeof ret->about.digest);
    if (rd_get_le64(src + SUM_AT) != ret->seed || ret->at != at || !is_possible(ret))
        return rd_err_set(err, RD_ERR_CHECKSUM, at, "the header of an index of keys is damaged");
    return true;
}

void history_index_span_put(uint8_t dst[INDEX_SPAN], const struct history_span *span)
{
    rd_put_le64(dst, span->offset);
    rd_put_le64(dst + 8, (uint64_t)span->time_us);
    rd_put_le32(dst + 16, span->db);
    rd_put_le32(dst + 20, span->flags);
    rd_put_le64(dst + 24, span->multi);
}

void history_index_span_get(const uint8_t src[INDEX_SPAN], struct history_span *ret)
{
    *ret = (struct history_span){.offset = rd_get_le64(src),
                                 .time_us = (int64_t)rd_get_le64(src + 8),
                                 .db = rd_get_le32(src + 16),
                                 .flags = rd_get_le32(src + 20),
                                 .multi = rd_get_le64(src + 24)};
}

/* ---- the body: spans, spans apart, ends of the buckets, postings ---- */

uint64_t history_index_apart_at(const struct index_section *section)
{
    return (uint64_t)section->spans * INDEX_SPAN;
}

uint64_t history_index_buckets_at(const struct index_section *section)
{
    return history_index_apart_at(section) + (uint64_t)section->apart * 4;
}

uint64_t history_index_postings_at(const struct index_section *section)
{
    return history_index_buckets_at(section) + (uint64_t)section->shape.buckets * 4;
}

uint64_t history_index_body_len(const struct index_section *section)
{
    return history_index_postings_at(section) + section->postings;
}

uint64_t history_index_section_len(const struct index_section *section)
{
    uint64_t body = history_index_body_len(section);
    return INDEX_HEADER + body + (body + INDEX_CHUNK - 1) / INDEX_CHUNK * SUM;
}

uint64_t history_index_chunk_sum(const struct index_section *section, uint64_t chunk,
                                 const uint8_t *bytes, size_t len)
{
    return rd_crc64(section->seed ^ chunk, bytes, len);
}

/* ---- places ---- */

uint64_t history_index_hash(const uint8_t salt[RD_SIPHASH_KEY], struct rd_slice name)
{
    struct rd_siphash hash;
    rd_siphash_begin(&hash, salt);
    rd_siphash_add(&hash, name.ptr, name.len);
    return rd_siphash_end(&hash).lo >> (64 - INDEX_HASH_BITS);
}

uint64_t history_index_place(const struct index_shape *shape, uint64_t hash)
{
    __extension__ typedef unsigned __int128 u128;
    return (uint64_t)((u128)hash * ((uint64_t)shape->buckets << shape->width) >> INDEX_HASH_BITS);
}
