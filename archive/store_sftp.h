/* store_sftp.h - a repository on a host that is reached by SFTP.
 *
 *     const struct archive_sftp_opts opts = {.url = "sftp://backup@host:22/var/backups/redis",
 *                                            .key_file = …, .known_hosts = …};
 *     if (!archive_store_open_sftp(&store, &opts, &err))
 *         ...
 *
 * An object is written as NAME.new in chunks and renamed when it is whole; the rename fails where
 * the name is taken. An interrupted chunk resumes where it stopped. Files have the mode 0600,
 * folders 0700. The protocol as libcurl speaks it cannot ask the host to make a file durable: after
 * a power failure of that host the newest set may be incomplete, which `verify` finds.
 *
 * The host's key must be in known_hosts. Strings are copied.
 */
#ifndef ARCHIVE_STORE_SFTP_H
#define ARCHIVE_STORE_SFTP_H

#include "archive/store.h"

enum { ARCHIVE_SFTP_CHUNK = 8 * 1024 * 1024 };

struct archive_sftp_opts {
    const char *url;                 /* sftp://[USER@]HOST[:PORT]/PATH; the path is absolute */
    const char *key_file;            /* the private key; NULL: those that libssh2 finds */
    const char *known_hosts;         /* the file */
    size_t chunk;                    /* bytes; 0: ARCHIVE_SFTP_CHUNK */
    unsigned tries;                  /* of a request; 0: 6 */
    void (*wait_ms)(uint64_t ms);    /* between them */
    bool (*gone)(const char *owner); /* see archive/lock.h */
};

bool archive_store_open_sftp(struct archive_store **ret, const struct archive_sftp_opts *opts,
                             struct rd_err *err);

#endif
