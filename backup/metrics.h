/* metrics.h - figures about the sets of a target, for Prometheus.
 */
#ifndef BACKUP_METRICS_H
#define BACKUP_METRICS_H

#include "backup/open.h"

/* Whether no repository failed. */
bool backup_everywhere(const struct backup_open *open);

/* RD_ERR_USAGE if the figures of the archive would replace those of the sets. */
bool backup_metrics_check(const struct backup_target *target, struct rd_err *err);

/* Writes the file of figures, whole or not at all. good: all repositories have a new set. If no
 * repository can be listed, the figures of the sets stay as they are in the file. */
bool backup_metrics(const struct backup_target *target, struct backup_open *open, bool good,
                    struct rd_err *err);

/* Changes only the figure that says whether backups of the target are paused. */
bool backup_metrics_pause(const struct backup_target *target, bool paused, struct rd_err *err);

#endif
