/* source.h - where the data of a set come from: a server, a cluster, a snapshot or a log.
 */
#ifndef TOOLS_BACKUP_SOURCE_H
#define TOOLS_BACKUP_SOURCE_H

#include "backup/heartbeat.h"
#include "backup/hook.h"
#include "backup/metrics.h"
#include "backup/take.h"
#include "tools/cli/peer_options.h"
#include "tools/vault/vault.h"

/* The login of the target at its server. */
void source_peer_options(struct peer_opts *opts, const struct backup_target *target);

/* Sets a hint about an error of a server that could not be read. */
void source_hint(struct cli *cli, const struct rd_err *err);

/* RD_ERR_USAGE if the settings of the source contradict each other. */
bool source_check(const struct backup_target *target, struct rd_err *err);

/* What a path of a source means: a snapshot, or the folder of a log. In the folder of a server, its
 * log if it has one, because that is what the server would load, or dump.rdb, which may be missing.
 */
bool source_find_files(const char *source, char ret[BACKUP_PATH_MAX], bool *ret_is_log,
                       struct rd_err *err);

/* probe.c: whether the source could be read. Nothing is read, and no server writes a snapshot. Sets
 * a hint. */
bool source_probe(struct cli *cli, const struct backup_target *target, struct rd_err *err);

/* Reads the source of the target into the set: a server, a snapshot or a log. */
bool source_read(struct cli *cli, struct backup_set *set, struct rd_err *err);
bool source_read_log(struct cli *cli, struct backup_set *set, const char *folder,
                     struct rd_err *err);

/* Reads a snapshot to its end, checks it and adds it to the set. Updates the counts of the
 * manifest. */
bool source_take_snapshot(struct backup_set *set, struct rd_src *src, const char *name,
                          struct rd_err *err);

/* scan.c: key by key; the manifest records that the keys are of different moments. */
bool source_read_scan(struct cli *cli, struct backup_set *set, const struct client_target *target,
                      struct rd_err *err);

/* cluster.c: all masters of a cluster, as of one moment. */
bool source_read_cluster(struct cli *cli, struct backup_set *set, const char *url,
                         struct rd_err *err);

/* The manifest of a log in a folder: "appendonly.aof.manifest"; false with err where there is none
 * (*ret_none) or several. */
bool source_find_log(const char *folder, char ret[ARCHIVE_FILE_NAME_MAX], bool *ret_none,
                     struct rd_err *err);

/* backup_take() of what the target, or set->from, says. */
bool source_take(struct cli *cli, struct backup_set *set, struct rd_err *err);

#endif
