/* priv.h - shared by the parts of `redoubt backup`; private to tools/backup/.
 */
#ifndef TOOLS_BACKUP_PRIV_H
#define TOOLS_BACKUP_PRIV_H

#include "archive/pipe.h"
#include "tools/cli/peer_options.h"
#include "tools/vault/vault.h"

/* ---- set.c: a set that is being written to all repositories ---- */

/* Where a set comes from, instead of the source of its target. */
struct backup_from {
    const struct client_target *server; /* NULL: */
    const char *snapshot;               /* this file, with the position below */
    const char *source;                 /* the description of the source in the manifest */
    const char *replid;
    uint64_t offset;
};

struct set_writer {
    struct backup_open *open;
    const struct backup_from *from; /* NULL: the source of the target */
    const atomic_bool *cancel;      /* true: stop; may be NULL */
    const struct rd_seal_key *key;  /* NULL: not sealed */
    enum archive_compression compression;
    int level;
    struct archive_manifest m;
    struct archive_tee tee;
    size_t place[ARCHIVE_TEE_MAX]; /* the repository of a sink of the tee */
    struct archive_file file;
    struct rd_sink *sink;
    bool asked_server; /* for a snapshot: it has forked, probably */
    bool locked_out;   /* nothing was begun, because another run has the lock */
};

/* Chooses an id; the caller fills in the rest of set->m. */
bool set_begin(struct set_writer *set, int64_t now_ms, struct rd_err *err);
/* A new file, whose bytes go to set->sink. */
bool set_file_begin(struct set_writer *set, const char *name, enum archive_role role,
                    struct rd_err *err);
/* Ends the file. Without `good`, or if all repositories fail, it is removed. */
bool set_file_end(struct set_writer *set, bool good, struct rd_err *err);
/* Writes the manifests. A repository that fails has open->errs. */
bool set_commit(struct set_writer *set, struct rd_err *err);
/* Removes the objects of an abandoned set, as far as possible. */
void set_abandon(struct set_writer *set);
void set_done(struct set_writer *set);

/* Writes all bytes of src to set->sink. */
bool set_copy(struct set_writer *set, struct rd_src *src, struct rd_err *err);
/* A source that passes on the bytes of another, which it does not own, and gives them to the sink
 * of the set. It fails when the set is cancelled. */
bool set_tap(struct rd_src **ret, struct rd_src *inner, struct set_writer *set, struct rd_err *err);

/* ---- take.c: a whole set ---- */

/* Applies the target's settings for compression. RD_ERR_USAGE. */
bool backup_settings(const struct backup_target *target, struct set_writer *set,
                     struct rd_err *err);
/* Locks the repositories, removes the remains of interrupted backups, and writes a set. After a
 * failure nothing of it is left. */
bool backup_take(struct cli *cli, struct set_writer *set, struct rd_err *err);
/* If the target says so, removes the sets that no rule keeps. */
bool backup_prune_after(const struct backup_target *target, struct backup_open *open,
                        struct rd_err *err);

/* ---- source.c, log.c: where data come from ---- */

/* The login of the target at its server. */
void backup_peer_options(struct peer_opts *opts, const struct backup_target *target);

/* Sets a hint about an error of a server that could not be read. */
void backup_server_hint(struct cli *cli, const struct rd_err *err);

/* RD_ERR_USAGE if the settings of the source contradict each other. */
bool backup_check_source(const struct backup_target *target, struct rd_err *err);

/* What a path of a source means: a snapshot, or the folder of a log. In the folder of a server, its
 * log if it has one, because that is what the server would load, or dump.rdb, which may be missing.
 */
bool backup_find_files(const char *source, char ret[BACKUP_PATH_MAX], bool *ret_is_log,
                       struct rd_err *err);

/* probe.c: whether the source could be read. Nothing is read, and no server writes a snapshot. Sets
 * a hint. */
bool backup_probe(struct cli *cli, const struct backup_target *target, struct rd_err *err);

/* Reads the source of the target into the set: a server, a snapshot or a log. */
bool backup_read_source(struct cli *cli, struct set_writer *set, struct rd_err *err);
bool backup_read_log(struct cli *cli, struct set_writer *set, const char *folder,
                     struct rd_err *err);

/* Reads a snapshot to its end, checks it and adds it to the set. Updates the counts of the
 * manifest. */
bool backup_take_snapshot(struct set_writer *set, struct rd_src *src, const char *name,
                          struct rd_err *err);

/* scan.c: key by key; the manifest records that the keys are of different moments. */
bool backup_read_scan(struct cli *cli, struct set_writer *set, const struct client_target *target,
                      struct rd_err *err);

/* cluster.c: all masters of a cluster, as of one moment. */
bool backup_read_cluster(struct cli *cli, struct set_writer *set, const char *url,
                         struct rd_err *err);

/* The manifest of a log in a folder: "appendonly.aof.manifest"; false with err where there is none
 * (*ret_none) or several. */
bool backup_find_log(const char *folder, char ret[ARCHIVE_FILE_NAME_MAX], bool *ret_none,
                     struct rd_err *err);

/* ---- after.c: hooks and figures ---- */

enum backup_hook { BACKUP_HOOK_PRE, BACKUP_HOOK_POST, BACKUP_HOOK_FAILED };

bool backup_hook(const struct backup_target *target, enum backup_hook hook,
                 const struct archive_manifest *m, const struct rd_err *failed, struct rd_err *err);

/* Whether no repository failed. */
bool backup_everywhere(const struct backup_open *open);

/* Writes the file of figures, whole or not at all. good: all repositories have a new set. If no
 * repository can be listed, the figures of the sets stay as they are in the file. */
bool backup_metrics(const struct backup_target *target, struct backup_open *open, bool good,
                    struct rd_err *err);

/* heartbeat.c: requests the URL for a success or a failure, if the target has one. */
bool backup_heartbeat(const struct backup_target *target, bool good, struct rd_err *err);

#endif
