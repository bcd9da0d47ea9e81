#include "repl/capture/monitor_format.h"

#include <inttypes.h>
#include <string.h>

#include "repl/capture/sum.h"

static const char header_magic[8] = {'R', 'D', 'M', 'O', 'N', 'I', '\r', '\n'};
static const char block_magic[4] = {'\xf1', 'M', 'O', 'N'};

void repl_monitor_header_put(uint8_t dst[MONITOR_HEADER], const struct monitor_header *header,
                             uint64_t *ret_seed)
{
    memset(dst, 0, MONITOR_HEADER);
    memcpy(dst, header_magic, 8);
    rd_put_le32(dst + 8, MONITOR_VERSION);
    rd_put_le64(dst + 16, header->number);
    rd_put_le64(dst + 24, (uint64_t)header->start_us);
    *ret_seed = capture_sum_put(dst, MONITOR_HEADER - 8, 0);
}

bool repl_monitor_header_get(const uint8_t src[MONITOR_HEADER], struct monitor_header *ret,
                             uint64_t *ret_seed, struct rd_err *err)
{
    if (memcmp(src, header_magic, 8) != 0)
        return rd_err_set(err, RD_ERR_CORRUPT, 0, "not a recording of MONITOR");
    *ret_seed = rd_get_le64(src + MONITOR_HEADER - 8);
    if (!capture_sum_is(src, MONITOR_HEADER - 8, 0))
        return rd_err_set(err, RD_ERR_CHECKSUM, 0, "checksum mismatch in the header");
    if (rd_get_le32(src + 8) != MONITOR_VERSION)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, 8, "version %" PRIu32 " of the format",
                          rd_get_le32(src + 8));
    *ret = (struct monitor_header){rd_get_le64(src + 16), (int64_t)rd_get_le64(src + 24)};
    return true;
}

void repl_monitor_block_put(uint8_t dst[MONITOR_BLOCK], const struct monitor_block *block,
                            uint64_t seed)
{
    memset(dst, 0, MONITOR_BLOCK);
    memcpy(dst, block_magic, 4);
    rd_put_le32(dst + 4, block->flags);
    rd_put_le32(dst + 8, block->len);
    rd_put_le32(dst + 12, block->n_lines);
    rd_put_le64(dst + 16, (uint64_t)block->base_us);
    rd_put_le64(dst + 24, (uint64_t)block->until_us);
    rd_put_le64(dst + 32, block->crc);
    capture_sum_put(dst, MONITOR_BLOCK - 8, seed);
}

bool repl_monitor_block_get(const uint8_t src[MONITOR_BLOCK], uint64_t seed,
                            struct monitor_block *ret)
{
    if (memcmp(src, block_magic, 4) != 0 || !capture_sum_is(src, MONITOR_BLOCK - 8, seed))
        return false;
    *ret = (struct monitor_block){.flags = rd_get_le32(src + 4),
                                  .len = rd_get_le32(src + 8),
                                  .n_lines = rd_get_le32(src + 12),
                                  .base_us = (int64_t)rd_get_le64(src + 16),
                                  .until_us = (int64_t)rd_get_le64(src + 24),
                                  .crc = rd_get_le64(src + 32)};
    return (ret->flags & ~(uint32_t)MONITOR_FLAGS) == 0 && ret->len <= REPL_MONITOR_BLOCK_MAX;
}
