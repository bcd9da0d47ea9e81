#include "rdb/recover/correction.h"

#include "base/crc64.h"
#include "base/endian.h"
#include "base/mem.h"
#include "rdb/rdb.h"

#include <stdio.h>

/* The wrong byte may be part of the checksum itself. */
static bool in_trailer(uint64_t change, uint64_t size, struct rdb_correction *ret)
{
    unsigned i = 0;
    while ((change >> 8 * i & 0xff) == 0)
        i++;
    ret->at = size - RDB_TRAILER_LEN + i;
    ret->change = (uint8_t)(change >> 8 * i);
    return change >> 8 * i <= UINT8_MAX;
}

static struct rdb_correction find_byte(uint64_t stored, uint64_t computed, uint64_t size)
{
    struct rdb_correction correction = {0};
    if (stored == 0 || stored == computed || size <= RDB_TRAILER_LEN)
        return correction;
    if (in_trailer(stored ^ computed, size, &correction) ||
        rd_crc64_locate(computed, stored, size - RDB_TRAILER_LEN, &correction.at,
                        &correction.change))
        correction.kind = RDB_CORRECTION_BYTE;
    return correction;
}

/* Whether the checksum is that of the file with the header of a known version. `now` is the present
 * one. */
static bool is_sum_with(const struct rd_slice now, struct rd_slice header, uint64_t wrong,
                        uint64_t end)
{
    uint64_t change = rd_crc64(0, now.ptr, now.len) ^ rd_crc64(0, header.ptr, header.len);
    return change != 0 && rd_crc64_combine(change, 0, end - RDB_MAGIC_LEN) == wrong;
}

/* `wrong`: both checksums, added; `end`: of the bytes that they cover. */
static void find_header(struct rd_slice now, uint64_t wrong, uint64_t end,
                        struct rdb_correction *ret)
{
    enum { SPACE = 16 };
    char header[SPACE];
    for (int version = RDB_VERSION_CHECKSUM; version <= RDB_VERSION_VALKEY_MAX; version++) {
        bool valkey = version >= RDB_VERSION_VALKEY_MIN;
        if (!rdb_version_known(valkey ? RDB_VALKEY : RDB_REDIS, version))
            continue;
        snprintf(header, sizeof header, valkey ? "VALKEY%03d" : "REDIS%04d", version);
        if (!is_sum_with(now, rd_slice(header, RDB_MAGIC_LEN), wrong, end))
            continue;
        ret->kind = RDB_CORRECTION_HEADER;
        ret->at = 0;
        ret->len = RDB_MAGIC_LEN;
        memcpy(ret->bytes, header, RDB_MAGIC_LEN);
    }
}

bool rdb_recover_truncated(struct rd_src *src, struct rd_err *err)
{
    rd_err_adopt(err, rd_src_err(src));
    return rd_err_set(err, RD_ERR_IO, rd_src_offset(src),
                      "the input was truncated while it was read");
}

bool rdb_recover_sum(struct rd_src *src, uint64_t len, uint64_t *crc, uint8_t *copy,
                     struct rd_err *err)
{
    struct rd_slice s;
    while (len > 0) {
        if (rd_src_need(src, 1, &s) != RD_SRC_OK)
            return rdb_recover_truncated(src, err);
        size_t n = s.len < len ? s.len : (size_t)len;
        *crc = rd_crc64(*crc, s.ptr, n);
        if (copy != NULL) {
            memcpy(copy, s.ptr, n);
            copy += n;
        }
        rd_src_consume(src, n);
        len -= n;
    }
    return true;
}

bool rdb_recover_prove(struct rd_src *src, uint64_t end, bool *ret,
                       struct rdb_correction *ret_correction, struct rd_err *err)
{
    uint8_t head[RDB_MAGIC_LEN];
    uint64_t crc = 0;
    struct rd_slice s;
    *ret = false;
    if (ret_correction != NULL)
        *ret_correction = (struct rdb_correction){0};
    if (end == RD_NO_OFFSET || end <= RDB_MAGIC_LEN + RDB_TRAILER_LEN || !rd_src_can_seek(src))
        return true;
    if (!rd_src_seek(src, 0, err))
        return false;
    if (!rdb_recover_sum(src, sizeof head, &crc, head, err) ||
        !rdb_recover_sum(src, end - RDB_TRAILER_LEN - sizeof head, &crc, NULL, err))
        return false;
    if (rd_src_need(src, RDB_TRAILER_LEN, &s) != RD_SRC_OK)
        return rdb_recover_truncated(src, err);
    uint64_t stored = rd_get_le64(s.ptr);
    *ret = stored != 0 && stored == crc;
    if (ret_correction != NULL)
        *ret_correction = find_byte(stored, crc, end);
    if (ret_correction != NULL && ret_correction->kind == RDB_CORRECTION_NONE && stored != 0)
        find_header(rd_slice(head, sizeof head), stored ^ crc, end - RDB_TRAILER_LEN,
                    ret_correction);
    return true;
}

struct corrected {
    struct rd_src *inner;
    struct rdb_correction correction;
    uint64_t at; /* the next byte of the corrected file */
};

/* Where the bytes at `at` of the corrected file are in the input, which has them. *len is reduced
 * to those that follow each other there. */
static uint64_t place_of(const struct rdb_correction *c, uint64_t at, size_t *len)
{
    uint64_t to = UINT64_MAX; /* the end of the part in which `at` is */
    uint64_t place = at;
    if (c->kind == RDB_CORRECTION_INSERTED) {
        if (at < c->at)
            to = c->at;
        else
            place = at + c->len;
    } else if (c->kind == RDB_CORRECTION_EXCHANGED) {
        if (at < c->at) {
            to = c->at;
        } else if (at < c->at + c->len) {
            to = c->at + c->len;
            place = at - c->at + c->other;
        } else if (at < c->other) {
            to = c->other;
        } else if (at < c->other + c->len) {
            to = c->other + c->len;
            place = at - c->other + c->at;
        }
    } else if (c->kind == RDB_CORRECTION_MISSING) {
        if (at < c->at)
            to = c->at;
        else if (at >= c->at + c->len)
            place = at - c->len;
    }
    if (*len > to - at)
        *len = (size_t)(to - at);
    return place;
}

static enum rd_src_status corrected_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                         struct rd_err *err)
{
    struct corrected *m = impl;
    struct rd_slice s;
    const struct rdb_correction *c = &m->correction;
    size_t most = cap;
    *ret_len = 0;
    if (c->kind == RDB_CORRECTION_MISSING && m->at >= c->at && m->at - c->at < c->len) {
        *buf = c->bytes[m->at++ - c->at];
        *ret_len = 1;
        return RD_SRC_OK;
    }
    uint64_t place = place_of(c, m->at, &most);
    if (rd_src_offset(m->inner) != place && !rd_src_seek(m->inner, place, err))
        return RD_SRC_FAIL;
    enum rd_src_status st = rd_src_need(m->inner, 1, &s);
    if (st == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(m->inner));
    if (st != RD_SRC_OK)
        return st;
    *ret_len = s.len < most ? s.len : most;
    memcpy(buf, s.ptr, *ret_len);
    rd_src_consume(m->inner, *ret_len);
    if (c->kind == RDB_CORRECTION_BYTE && c->at >= m->at && c->at - m->at < *ret_len)
        buf[c->at - m->at] ^= c->change;
    for (size_t i = 0; c->kind == RDB_CORRECTION_HEADER && i < *ret_len && m->at + i < c->len; i++)
        buf[i] = c->bytes[m->at + i];
    m->at += *ret_len;
    return RD_SRC_OK;
}

static bool corrected_seek(void *impl, uint64_t offset, struct rd_err *err)
{
    struct corrected *m = impl;
    (void)err;
    m->at = offset;
    return true;
}

bool rdb_recover_open_corrected(struct rd_src **ret, struct rd_src *inner,
                                const struct rdb_correction *correction, struct rd_err *err)
{
    static const struct rd_src_ops ops = {
        .read = corrected_read, .seek = corrected_seek, .close = rd_free};
    uint64_t size = rd_src_size(inner);
    if (correction->kind == RDB_CORRECTION_INSERTED)
        size -= correction->len;
    else if (correction->kind == RDB_CORRECTION_MISSING)
        size += correction->len;
    const struct rd_src_opts opts =
        RD_SRC_OPTS(.origin = rd_src_origin(inner), .total = size, .sized = true);
    struct corrected *m = rd_alloc(sizeof *m);
    if (m == NULL)
        return rd_err_nomem(err, sizeof *m);
    *m = (struct corrected){.inner = inner, .correction = *correction};
    return rd_src_new(ret, &ops, m, &opts, err);
}
