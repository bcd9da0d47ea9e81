/* restore.h - shared by the parts of `redoubt restore`; private to tools/restore/.
 *
 *     restore.c   options
 *     several.c   several targets at one moment
 *     write.c     into files and folders
 *     send.c      into a running server
 *     report.c    the result
 */
#ifndef TOOLS_RESTORE_RESTORE_H
#define TOOLS_RESTORE_RESTORE_H

#include "backup/lay_out.h"
#include "base/siphash.h"
#include "client/target.h"
#include "tools/cli/filter.h"
#include "tools/vault/vault.h"

/* Of several targets, all are tried before the first one is written. */
enum restore_step { RESTORE_ONE, RESTORE_TRY, RESTORE_WRITE };

struct restore {
    struct cli *cli;
    struct vault vault;
    char *to;          /* owned */
    const char *shown; /* `to` without a password */
    struct client_target server;
    bool force, dry_run;
    int layout; /* enum backup_layout */
    const char *offset_text, *before_text;
    uint64_t version; /* of the RDB; 0: as it is */
    int dialect;      /* -1: as it is */
    struct filter filter;
    struct rd_buf patterns; /* of --key */

    struct backup_restore r;
    struct backup_lay_out out;
    enum restore_step step;
    size_t target;               /* which one */
    uint64_t earlier;            /* keys of the targets before it */
    struct rd_hash128 libraries; /* of functions, in the first snapshot; only of what is sent */
    bool differ;                 /* another snapshot has others */
    uint64_t keys;               /* sent, or kept by the filter */
    size_t masters;              /* of the running cluster that got them; 0: a single server */
    bool nothing;                /* the filter matches no key */
};

/* Whether the snapshot must be changed. */
bool restore_converts(const struct restore *run);
/* Whether the destination is a running server. */
bool restore_sends(const struct restore *run);

/* Restores a target of the configuration. */
bool restore_target(struct restore *run, size_t target, struct rd_err *err);

/* several.c: all targets of the configuration, as of one time. The first one returns what is
 * wrong with the options, or NULL. */
const char *restore_several_wrong(const struct restore *run);
bool restore_several(struct restore *run, struct rd_err *err);

/* write.c: prepares run->out. */
void restore_set_layout(struct restore *run);
/* send.c */
bool restore_send(struct restore *run, struct rd_err *err);
/* report.c */
void restore_report(struct restore *run);

#endif
