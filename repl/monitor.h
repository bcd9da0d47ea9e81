/* monitor.h - recordings of MONITOR in the folder of a capture: which clients sent the commands.
 *
 * A file has lines of MONITOR with the times of their arrival. It is named after the segment that
 * was written in the meantime, and is deleted with it; docs/format/capture.md describes it. The
 * writer is in repl/monitor_writer.h, the reader in repl/monitor_reader.h.
 *
 * A recording consists of pieces. Within a piece every line was recorded.
 */
#ifndef REPL_MONITOR_H
#define REPL_MONITOR_H

#include "base/fs.h"
#include "repl/capture.h"

enum {
    REPL_MONITOR_BLOCK_MAX = 1024 * 1024, /* bytes of lines in a block */
    REPL_MONITOR_LINE_MAX = 512 * 1024    /* longer ones are not recorded */
};

#define REPL_MONITOR_ENDING ".monitor"

/* How a block begins. */
enum repl_monitor_flag {
    REPL_MONITOR_BEGINS = 1,  /* a piece begins */
    REPL_MONITOR_WAITING = 2, /* of another connection; clients that wait are listed in the block */
    REPL_MONITOR_UNKNOWN = 4  /* of another connection; clients that wait could not be listed */
};

#endif
