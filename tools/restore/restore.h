/* restore.h - shared by the parts of `redoubt restore`; private to tools/restore/.
 *
 *     restore.c   options
 *     write.c     into files and folders
 *     send.c      into a running server
 *     report.c    the result
 */
#ifndef TOOLS_RESTORE_RESTORE_H
#define TOOLS_RESTORE_RESTORE_H

#include "backup/lay_out.h"
#include "client/target.h"
#include "tools/cli/filter.h"
#include "tools/vault/vault.h"

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
    uint64_t keys;  /* sent, or kept by the filter */
    size_t masters; /* of the running cluster that got them; 0: a single server */
    bool nothing;   /* the filter matches no key */
};

/* Whether the snapshot must be changed. */
bool restore_converts(const struct restore *run);
/* Whether the destination is a running server. */
bool restore_sends(const struct restore *run);

/* write.c: prepares run->out. */
void restore_set_layout(struct restore *run);
/* send.c */
bool restore_send(struct restore *run, struct rd_err *err);
/* report.c */
void restore_report(struct restore *run);

#endif
