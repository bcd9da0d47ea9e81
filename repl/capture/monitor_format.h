/* monitor_format.h - the format of a recording of MONITOR; see docs/format/capture.md. */
#ifndef REPL_CAPTURE_MONITOR_FORMAT_H
#define REPL_CAPTURE_MONITOR_FORMAT_H

#include "repl/monitor.h"

enum {
    MONITOR_HEADER = 64,
    MONITOR_BLOCK = 56,
    MONITOR_RECORD = 8, /* before each line */
    MONITOR_VERSION = 1
};

enum { MONITOR_END = 8, MONITOR_FLAGS = 15 }; /* a flag of the last block of a closed file */

#define MONITOR_WAITS 0x80000000u /* in the length: the client waits for a key */

struct monitor_header {
    uint64_t number; /* of the segment */
    int64_t start_us;
};

struct monitor_block {
    uint32_t flags, len, n_lines;
    int64_t base_us;  /* the times of its lines count from here */
    int64_t until_us; /* commands that the server ran up to here are in this block or before */
    uint64_t crc;     /* of its lines */
};

void repl_monitor_header_put(uint8_t dst[MONITOR_HEADER], const struct monitor_header *header,
                             uint64_t *ret_seed);
bool repl_monitor_header_get(const uint8_t src[MONITOR_HEADER], struct monitor_header *ret,
                             uint64_t *ret_seed, struct rd_err *err);
void repl_monitor_block_put(uint8_t dst[MONITOR_BLOCK], const struct monitor_block *block,
                            uint64_t seed);
/* False: not the header of a block of this file. */
bool repl_monitor_block_get(const uint8_t src[MONITOR_BLOCK], uint64_t seed,
                            struct monitor_block *ret);

#endif
