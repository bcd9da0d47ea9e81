/* download.h - the snapshot that a server sends to a replica, as a source.
 *
 *     struct capture_download d = {.watch = watch, .target = &target};
 *     if (!capture_download_begin(&d, &err) || !capture_download_source(&d, &src, &err))
 *         ...
 *     ... rd_src_need(src, …) ... rd_src_close(src);
 *     ... d.replid, d.offset ...
 *     capture_download_end(&d);
 *
 * The connection is carried on as far as the source's reader needs bytes. The server writes nothing
 * to its disk where it can send a snapshot without.
 */
#ifndef CAPTURE_DOWNLOAD_H
#define CAPTURE_DOWNLOAD_H

#include "base/digest.h"
#include "base/sink.h"
#include "base/watch.h"
#include "client/peer.h"
#include "repl/psync.h"

enum { CAPTURE_DOWNLOAD_READ = 256 * 1024 };

struct capture_download {
    const struct rd_watch *watch; /* its progress; cancelled: RD_ERR_IO. The caller ends it */
    const struct client_target *target;
    const char *replica_version; /* or NULL: RDB_REPLICA_VERSION */
    const char *rdb_filter;      /* see repl/psync.h */
    struct rd_sink *copy;        /* the bytes go here too; may be NULL */
    struct rd_digest *digest;    /* and here; may be NULL */

    uint64_t size;             /* bytes so far */
    struct repl_replid replid; /* what the snapshot is of; not set: the server does not say */
    uint64_t offset;

    struct client_peer *peer; /* private from here on */
    struct repl_psync *psync;
    uint8_t *buf, *at, *end; /* bytes of the peer that are not fed yet */
    struct rd_slice piece;   /* of the snapshot, not given out yet */
    bool ended;
};

/* Connects. capture_download_end() is called in any case. */
bool capture_download_begin(struct capture_download *d, struct rd_err *err);

/* d must outlive the source. */
bool capture_download_source(struct capture_download *d, struct rd_src **ret, struct rd_err *err);

void capture_download_end(struct capture_download *d);

#endif
