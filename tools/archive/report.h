/* report.h - reports of an archive: events, a progress line, figures for Prometheus, the result.
 */
#ifndef TOOLS_ARCHIVE_REPORT_H
#define TOOLS_ARCHIVE_REPORT_H

#include "backup/archiver.h"
#include "tools/metrics/metrics.h"

struct archive_report {
    struct cli *cli;
    struct backup_archiver *a;
    uint64_t report_ms, note_ms;
    struct metrics metrics;
};

/* Begins to listen for requests of metrics, if that is wanted: see metrics_begin(). */
bool archive_report_open(struct archive_report *report, struct rd_err *err);
/* Also if that has failed. */
void archive_report_close(struct archive_report *report);

void archive_report_begin(struct archive_report *report);
void archive_report_tick(struct archive_report *report, uint64_t now_ms, uint64_t *ret_wait_ms);
/* After the threads have ended. */
void archive_report_end(struct archive_report *report);

#endif
