/* report.h - events, metrics and progress of a capture.
 */
#ifndef TOOLS_CAPTURE_REPORT_H
#define TOOLS_CAPTURE_REPORT_H

#include "capture/capture.h"
#include "tools/metrics/metrics.h"

enum { CAPTURE_REPORT_MS = 1000 /* between two lines of progress */ };

struct capture_report {
    struct cli *cli;
    struct metrics metrics;
    uint64_t next_ms;
    uint64_t bytes; /* received up to the last line */
    uint64_t bytes_ms;
};

/* Sets the hint for an error of a connection. */
void capture_report_hint(struct cli *cli, const struct rd_err *err);

/* Reports an event: a line on stderr, an object in JSON. */
void capture_report_event(struct cli *cli, const struct capture_link *link, const char *event,
                          bool trouble, const char *text);

void capture_report_begin(struct capture_report *report, const struct capture *capture);
/* In every turn; *ret_wait_ms is the maximum time until the next call. */
void capture_report_tick(struct capture_report *report, const struct capture *capture,
                         uint64_t now_ms, uint64_t *ret_wait_ms);
void capture_report_end(struct capture_report *report, const struct capture *capture);

#endif
