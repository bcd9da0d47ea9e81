/* figures.h - the numbers of a link, for reports and monitoring.
 *
 *     const struct capture_figures f = capture_figures(link, capture_now_ms());
 */
#ifndef CAPTURE_FIGURES_H
#define CAPTURE_FIGURES_H

#include "capture/link.h"

struct capture_figures {
    uint64_t received, written, synced, acked; /* offsets */
    uint64_t lag_bytes;                        /* received and not acknowledged */
    uint64_t lag_ms; /* age of these bytes; without a connection, time since the last byte */
    bool up;
};

struct capture_figures capture_figures(const struct capture_link *link, uint64_t now_ms);

/* Bytes of all files of the link. */
uint64_t capture_disk_bytes(const struct capture_link *link);

#endif
