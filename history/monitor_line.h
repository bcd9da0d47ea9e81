/* monitor_line.h - one line of the output of MONITOR.
 *
 *     struct history_monitor_line line = {0};
 *     if (history_monitor_line_parse(&line, text) == HISTORY_LINE_COMMAND)
 *         ... line.time_us, line.db, line.client, line.argv[0 to line.argc - 1] ...
 *     history_monitor_line_done(&line);
 *
 * Servers since 2.6 write
 *
 *     1700000000.123456 [0 10.0.0.5:41234] "set" "key" "a \"quoted\" word\x00"
 *
 * with the time of their clock, the database, and the address of the client, which is unix:PATH for
 * a socket, and "lua" for a command of a script. A plus sign before it, as on a connection, is
 * passed over.
 *
 * Threads: nothing is shared. Cost: linear in the bytes.
 */
#ifndef HISTORY_MONITOR_LINE_H
#define HISTORY_MONITOR_LINE_H

#include "base/buf.h"

enum history_line {
    HISTORY_LINE_COMMAND,
    HISTORY_LINE_OTHER, /* it is not a line of MONITOR: "OK", an empty line, something torn */
    HISTORY_LINE_NO_MEMORY
};

/* A zeroed struct is ready. Slices live until the next call, or as long as the text. */
struct history_monitor_line {
    int64_t time_us; /* of the server */
    uint64_t db;
    struct rd_slice client;
    bool in_script;
    size_t argc;
    struct rd_slice *argv;
    /* Private. */
    struct rd_buf words, bytes;
};

enum history_line history_monitor_line_parse(struct history_monitor_line *ret,
                                             struct rd_slice text);
void history_monitor_line_done(struct history_monitor_line *line);

#endif
