#include "repl/capture/format.h"

#include <inttypes.h>
#include <stdio.h>

#include "repl/capture/sum.h"
#include "base/num.h"

static const char header_magic[8] = {'R', 'D', 'C', 'A', 'P', 'T', '\r', '\n'};
static const char block_magic[4] = {'\xf1', 'B', 'L', 'K'};
static const char trailer_magic[4] = {'\xf1', 'E', 'N', 'D'};

enum header_flag {
    IN_MULTI = 1,
    BEGINS = 2,
    CONTINUES = 4,
    SNAPSHOT = 8,
    INTERRUPTED = 16, /* of version 2 */
};

/* ---- names ---- */

void repl_capture_name_put(char ret[REPL_CAPTURE_NAME], uint64_t number, uint64_t start,
                           const char *ending)
{
    snprintf(ret, REPL_CAPTURE_NAME, "%08" PRIu64 "-%" PRIu64 "%s", number, start, ending);
}

bool repl_capture_name_get(const char *name, const char *ending, uint64_t *ret_number,
                           uint64_t *ret_start)
{
    char again[REPL_CAPTURE_NAME];
    uint64_t start;
    size_t len = strlen(name), end_len = strlen(ending);
    const char *minus = strchr(name, '-');
    if (minus == NULL || len < end_len || len >= REPL_CAPTURE_NAME || minus > name + len - end_len)
        return false;
    const char *digits = name;
    while (*digits == '0')
        digits++;
    struct rd_slice text = rd_slice(minus + 1, (size_t)(name + len - end_len - (minus + 1)));
    uint64_t number;
    if (minus + 1 > name + len - end_len ||
        !rd_num_get_u64(rd_slice(digits, (size_t)(minus - digits)), &number) ||
        !rd_num_get_u64(text, &start))
        return false;
    repl_capture_name_put(again, number, start, ending);
    if (strcmp(again, name) != 0)
        return false;
    *ret_number = number;
    *ret_start = start;
    return true;
}

/* ---- header ---- */

static uint32_t version_of(const struct repl_capture_segment *seg)
{
    if (seg->last != 0)
        return CAPTURE_VERSION_MERGED;
    return seg->recorded ? CAPTURE_VERSION_RECORDED : CAPTURE_VERSION;
}

void repl_capture_header_put(uint8_t dst[CAPTURE_HEADER], const struct repl_capture_segment *seg,
                             uint64_t *ret_seed)
{
    memset(dst, 0, CAPTURE_HEADER);
    memcpy(dst, header_magic, 8);
    rd_put_le32(dst + 8, version_of(seg));
    rd_put_le32(dst + 12, (seg->in_multi ? IN_MULTI : 0u) | (seg->begins ? BEGINS : 0u) |
                              (seg->continues ? CONTINUES : 0u) |
                              (seg->has_snapshot ? SNAPSHOT : 0u) |
                              (seg->interrupted ? INTERRUPTED : 0u));
    rd_put_le64(dst + 16, seg->number);
    rd_put_le64(dst + 24, seg->start);
    rd_put_le64(dst + 32, (uint64_t)seg->start_us);
    rd_put_le64(dst + 40, seg->db);
    rd_put_le64(dst + 48, seg->chapter);
    rd_put_le64(dst + 56, seg->chapter_start);
    rd_put_le64(dst + 64, seg->offset2);
    rd_put_le64(dst + 72, seg->snapshot_size);
    memcpy(dst + 80, seg->snapshot_sha256, REPL_CAPTURE_SHA);
    memcpy(dst + 112, seg->run.hex, REPL_REPLID_LEN);
    memcpy(dst + 152, seg->replid.hex, REPL_REPLID_LEN);
    memcpy(dst + 192, seg->replid2.hex, REPL_REPLID_LEN);
    rd_put_le64(dst + 232, seg->interrupted ? (uint64_t)seg->since_us : 0);
    rd_put_le64(dst + 240, seg->last);
    if (seg->last != 0)
        memcpy(dst + 248, seg->last_sha256, REPL_CAPTURE_SHA);
    *ret_seed = capture_sum_put(dst, CAPTURE_HEADER - 8, 0);
}

/* 40 digits, or (optional) 40 zero bytes for none. */
static bool get_id(const uint8_t *src, bool optional, struct repl_replid *ret)
{
    if (optional && src[0] == 0) {
        *ret = (struct repl_replid){0};
        return true;
    }
    return repl_replid_get(rd_slice(src, REPL_REPLID_LEN), ret);
}

static bool get_ids(const uint8_t *src, struct repl_capture_segment *seg)
{
    return get_id(src + 112, true, &seg->run) && get_id(src + 152, false, &seg->replid) &&
           get_id(src + 192, true, &seg->replid2);
}

bool repl_capture_header_get(const uint8_t src[CAPTURE_HEADER], struct repl_capture_segment *ret,
                             uint64_t *ret_seed, struct rd_err *err)
{
    struct repl_capture_segment seg = {.last_us = REPL_CAPTURE_NO_TIME};
    if (memcmp(src, header_magic, 8) != 0)
        return rd_err_set(err, RD_ERR_CORRUPT, 0, "not a segment of a capture");
    *ret_seed = rd_get_le64(src + CAPTURE_HEADER - 8);
    if (!capture_sum_is(src, CAPTURE_HEADER - 8, 0))
        return rd_err_set(err, RD_ERR_CHECKSUM, 0, "checksum mismatch in the header");
    uint32_t version = rd_get_le32(src + 8), flags = rd_get_le32(src + 12);
    uint32_t known = IN_MULTI | BEGINS | CONTINUES | SNAPSHOT;
    if (version < CAPTURE_VERSION || version > CAPTURE_VERSION_MERGED)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, 8, "version %" PRIu32 " of the format", version);
    seg.recorded = version >= CAPTURE_VERSION_RECORDED;
    if ((flags & ~(known | (seg.recorded ? INTERRUPTED : 0u))) != 0)
        return rd_err_set(err, RD_ERR_CORRUPT, 12, "unknown flags %#" PRIx32, flags);
    seg.in_multi = (flags & IN_MULTI) != 0;
    seg.begins = (flags & BEGINS) != 0;
    seg.continues = (flags & CONTINUES) != 0;
    seg.has_snapshot = (flags & SNAPSHOT) != 0;
    seg.interrupted = (flags & INTERRUPTED) != 0;
    seg.since_us = seg.interrupted ? (int64_t)rd_get_le64(src + 232) : 0;
    seg.until_us = seg.interrupted ? REPL_CAPTURE_NEVER : 0;
    seg.number = rd_get_le64(src + 16);
    if (version == CAPTURE_VERSION_MERGED) {
        seg.last = rd_get_le64(src + 240);
        memcpy(seg.last_sha256, src + 248, REPL_CAPTURE_SHA);
    }
    seg.start = rd_get_le64(src + 24);
    seg.start_us = (int64_t)rd_get_le64(src + 32);
    seg.db = rd_get_le64(src + 40);
    seg.chapter = rd_get_le64(src + 48);
    seg.chapter_start = rd_get_le64(src + 56);
    seg.offset2 = rd_get_le64(src + 64);
    seg.snapshot_size = rd_get_le64(src + 72);
    memcpy(seg.snapshot_sha256, src + 80, REPL_CAPTURE_SHA);
    if (!get_ids(src, &seg))
        return rd_err_set(err, RD_ERR_CORRUPT, 112, "the ids are not 40 hexadecimal digits");
    if (version == CAPTURE_VERSION_MERGED && seg.last <= seg.number)
        return rd_err_set(err, RD_ERR_CORRUPT, 240, "it ends with segment %" PRIu64, seg.last);
    seg.latest_us = REPL_CAPTURE_NO_TIME;
    seg.end = seg.start;
    *ret = seg;
    return true;
}

/* ---- block ---- */

void repl_capture_block_put(uint8_t dst[CAPTURE_BLOCK], const struct capture_block *block,
                            uint64_t seed)
{
    memcpy(dst, block_magic, 4);
    rd_put_le32(dst + 4, block->flags);
    rd_put_le32(dst + 8, block->len);
    rd_put_le32(dst + 12, block->times_len);
    rd_put_le64(dst + 16, block->offset);
    rd_put_le64(dst + 24, (uint64_t)block->first_us);
    rd_put_le64(dst + 32, (uint64_t)block->latest_us);
    rd_put_le64(dst + 40, block->synced);
    rd_put_le64(dst + 48, block->db);
    rd_put_le64(dst + 56, block->crc);
    capture_sum_put(dst, CAPTURE_BLOCK - 8, seed);
}

bool repl_capture_block_get(const uint8_t src[CAPTURE_BLOCK], uint64_t seed,
                            struct capture_block *ret)
{
    if (memcmp(src, block_magic, 4) != 0 || !capture_sum_is(src, CAPTURE_BLOCK - 8, seed))
        return false;
    *ret = (struct capture_block){.flags = rd_get_le32(src + 4),
                                  .len = rd_get_le32(src + 8),
                                  .times_len = rd_get_le32(src + 12),
                                  .offset = rd_get_le64(src + 16),
                                  .first_us = (int64_t)rd_get_le64(src + 24),
                                  .latest_us = (int64_t)rd_get_le64(src + 32),
                                  .synced = rd_get_le64(src + 40),
                                  .db = rd_get_le64(src + 48),
                                  .crc = rd_get_le64(src + 56)};
    return (ret->flags & ~(uint32_t)CAPTURE_BLOCK_FLAGS) == 0 && ret->len > 0 &&
           ret->len <= CAPTURE_DATA_MAX && ret->times_len <= CAPTURE_TIMES_MAX &&
           ret->offset <= UINT64_MAX - ret->len;
}

/* ---- index and trailer ---- */

void repl_capture_entry_put(uint8_t dst[CAPTURE_ENTRY], const struct capture_entry *entry)
{
    rd_put_le64(dst, entry->at);
    rd_put_le64(dst + 8, entry->offset);
    rd_put_le64(dst + 16, (uint64_t)entry->latest_us);
}

void repl_capture_entry_get(const uint8_t src[CAPTURE_ENTRY], struct capture_entry *ret)
{
    ret->at = rd_get_le64(src);
    ret->offset = rd_get_le64(src + 8);
    ret->latest_us = (int64_t)rd_get_le64(src + 16);
}

enum { TRAILER_CRC = CAPTURE_TRAILER - REPL_CAPTURE_SHA - 8 };

void repl_capture_trailer_put(uint8_t dst[CAPTURE_TRAILER], const struct capture_trailer *trailer,
                              uint64_t seed)
{
    memset(dst, 0, CAPTURE_TRAILER);
    memcpy(dst, trailer_magic, 4);
    rd_put_le32(dst + 4, trailer->n_entries);
    rd_put_le64(dst + 8, trailer->index_at);
    rd_put_le64(dst + 16, trailer->end);
    rd_put_le64(dst + 24, (uint64_t)trailer->last_us);
    rd_put_le64(dst + 32, (uint64_t)trailer->latest_us);
    rd_put_le64(dst + 40, trailer->db);
    rd_put_le64(dst + 48, trailer->index_crc);
    rd_put_le64(dst + 56, trailer->in_multi);
    rd_put_le64(dst + 64, (uint64_t)trailer->until_us);
    capture_sum_put(dst, TRAILER_CRC, seed);
}

bool repl_capture_trailer_get(const uint8_t src[CAPTURE_TRAILER], uint64_t seed, uint64_t file_size,
                              struct capture_trailer *ret)
{
    if (memcmp(src, trailer_magic, 4) != 0 || !capture_sum_is(src, TRAILER_CRC, seed))
        return false;
    *ret = (struct capture_trailer){.n_entries = rd_get_le32(src + 4),
                                    .index_at = rd_get_le64(src + 8),
                                    .end = rd_get_le64(src + 16),
                                    .last_us = (int64_t)rd_get_le64(src + 24),
                                    .latest_us = (int64_t)rd_get_le64(src + 32),
                                    .db = rd_get_le64(src + 40),
                                    .index_crc = rd_get_le64(src + 48),
                                    .in_multi = rd_get_le64(src + 56) != 0,
                                    .until_us = (int64_t)rd_get_le64(src + 64)};
    memcpy(ret->sha256, src + CAPTURE_TRAILER - REPL_CAPTURE_SHA, REPL_CAPTURE_SHA);
    uint64_t after = (uint64_t)ret->n_entries * CAPTURE_ENTRY + CAPTURE_TRAILER;
    return ret->n_entries <= CAPTURE_INDEX_MAX && ret->index_at >= CAPTURE_HEADER &&
           after <= file_size && ret->index_at == file_size - after;
}

/* ---- times ---- */

static size_t put_varint(uint8_t *dst, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        dst[n++] = (uint8_t)(v | 0x80);
    dst[n++] = (uint8_t)v;
    return n;
}

static bool get_varint(struct capture_times *t, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && t->cur < t->end; shift += 7) {
        uint8_t byte = *t->cur++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *ret = v;
            return true;
        }
    }
    return false;
}

size_t repl_capture_time_put(uint8_t *dst, uint64_t n_bytes, int64_t delta_us)
{
    /* The sign is the lowest bit, so that small differences in both directions are short. */
    uint64_t zigzag = (uint64_t)delta_us << 1 ^ (delta_us < 0 ? UINT64_MAX : 0);
    size_t n = put_varint(dst, n_bytes);
    return n + put_varint(dst + n, zigzag);
}

static bool next_run(struct capture_times *t)
{
    uint64_t n_bytes, zigzag;
    t->now_us = (int64_t)((uint64_t)t->now_us + t->step_us);
    if (t->cur == t->end) {
        t->upto = t->len;
        return true;
    }
    if (!get_varint(t, &n_bytes) || !get_varint(t, &zigzag) || n_bytes == 0 ||
        n_bytes >= t->len - t->upto)
        return false;
    t->upto += n_bytes;
    t->step_us = zigzag >> 1 ^ ((zigzag & 1) != 0 ? UINT64_MAX : 0);
    return true;
}

void repl_capture_times_init(struct capture_times *t, const struct capture_block *block,
                             const uint8_t *times)
{
    *t = (struct capture_times){.cur = times,
                                .end = times + block->times_len,
                                .now_us = block->first_us,
                                .len = block->len};
}

bool repl_capture_times_at(struct capture_times *t, uint64_t at, int64_t *ret_us)
{
    while (at >= t->upto)
        if (at >= t->len || !next_run(t))
            return false;
    *ret_us = t->now_us;
    return true;
}
