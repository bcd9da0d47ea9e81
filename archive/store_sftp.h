/* store_sftp.h - a repository on a host with SFTP.
 *
 *     const struct archive_sftp_opts opts = {.url = "sftp://backup@host:22/var/backups/redis",
 *                                            .key_file = …, .known_hosts = …};
 *     if (!archive_store_open_sftp(&store, &opts, &err))
 *         ...
 *
 * An object is written as NAME.new in chunks and renamed when it is complete; the rename fails if
 * the name exists. An interrupted chunk is resumed. Files have the mode 0600, folders 0700. libcurl
 * cannot request an fsync from the host: after a power failure of that host the newest set may be
 * incomplete, which `verify` detects.
 *
 * The host's key must be in known_hosts. Strings are copied.
 */
#ifndef ARCHIVE_STORE_SFTP_H
#define ARCHIVE_STORE_SFTP_H

#include "archive/store.h"

#include <stdatomic.h>

enum { ARCHIVE_SFTP_CHUNK = 8 * 1024 * 1024 };

struct archive_sftp_opts {
    const char *url;              /* sftp://[USER@]HOST[:PORT]/PATH; the path is absolute */
    const char *key_file;         /* the private key; NULL: the keys that libssh2 finds */
    const char *known_hosts;      /* the file */
    size_t chunk;                 /* bytes; 0: ARCHIVE_SFTP_CHUNK */
    unsigned tries;               /* of a request; 0: 6 */
    void (*wait_ms)(uint64_t ms); /* between them */
    uint64_t rate;                /* bytes a second in each direction; 0: no limit */
    const atomic_bool *cancel;    /* true: requests end; NULL: none */
};

bool archive_store_open_sftp(struct archive_store **ret, const struct archive_sftp_opts *opts,
                             struct rd_err *err);

#endif
