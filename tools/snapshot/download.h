/* download.h - the snapshot that a server sends to a replica, as a source.
 *
 *     struct download d = {.cli = cli, .target = &target};
 *     if (!download_begin(&d, &err) || !download_source(&d, &src, &err))
 *         ...
 *     ... rd_src_need(src, …) ... rd_src_close(src);
 *     ... d.replid, d.offset ...
 *     download_end(&d);
 *
 * The connection is carried on as far as the source's reader needs bytes. The server writes nothing
 * to its disk where it can send a snapshot without.
 */
#ifndef TOOLS_SNAPSHOT_DOWNLOAD_H
#define TOOLS_SNAPSHOT_DOWNLOAD_H

#include <stdatomic.h>

#include "base/digest.h"
#include "repl/psync.h"
#include "tools/cli/cli.h"
#include "client/peer.h"

enum { DOWNLOAD_READ = 256 * 1024 };

struct download {
    struct cli *cli;
    const struct client_target *target;
    const char *replica_version; /* or NULL: RDB_REPLICA_VERSION */
    const char *rdb_filter;      /* see repl/psync.h */
    struct rd_sink *copy;        /* the bytes go here too; may be NULL */
    struct rd_digest *digest;    /* and here; may be NULL */
    const atomic_bool *cancel;   /* true: give up, with RD_ERR_IO; may be NULL */

    uint64_t size;             /* bytes so far */
    struct repl_replid replid; /* what the snapshot is of; not set: the server does not say */
    uint64_t offset;

    struct client_peer *peer; /* private from here on */
    struct repl_psync *psync;
    uint8_t *buf, *at, *end; /* bytes of the peer that are not fed yet */
    struct rd_slice piece;   /* of the snapshot, not given out yet */
    bool ended;
};

/* Connects. download_end() is called in any case. */
bool download_begin(struct download *d, struct rd_err *err);

/* d must outlive the source. */
bool download_source(struct download *d, struct rd_src **ret, struct rd_err *err);

void download_end(struct download *d);

#endif
