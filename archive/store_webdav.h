/* store_webdav.h - a repository on a WebDAV server (RFC 4918).
 *
 *     const struct archive_webdav_opts opts = {.url = "webdavs://cloud.example.org/dav/backups",
 *                                              .user = …, .password = …, .spool = "/var/tmp",
 *                                              .random = …};
 *     if (!archive_store_open_webdav(&store, &opts, &err))
 *         ...
 *
 * What is relied upon: PROPFIND of depth 0 and 1, MKCOL, PUT, MOVE with "Overwrite: F", GET with
 * Range, and DELETE. Nothing is asked of the server in depth "infinity", and no lock.
 *
 * An object is uploaded as NAME.RANDOM.new, beside its place. If the server then reports all of its
 * bytes, it is moved to its name, unless that exists. So it appears completely or not at all. Some
 * servers look whether the name exists, and rename then: of two processes that put the same name in
 * the same moment, the second may replace the object of the first. Seen with Apache 2.4, and not
 * with lighttpd 1.4 and rclone. The locks of
 * archive/lock.h do not depend on it, since no two processes put the same one. That an object is
 * durable when the server says that it is stored cannot be checked.
 *
 * An upload has a length, because many servers refuse chunks or store nothing of them. An object
 * larger than ARCHIVE_WEBDAV_MEMORY waits in a file without a name in `spool` until it is complete,
 * and is uploaded then. It is not resumed: an upload that fails begins again.
 *
 * What an answer proves: only a whole document "multistatus" in the namespace "DAV:", with status
 * 207, says what a folder has. Status 404 may come from a proxy. So an object, or a folder, is
 * missing only if the folder above is listed and lacks it; if that is missing too, the one above it
 * decides. Everything else is an error. DELETE is believed with status 204; otherwise the folder is
 * listed. Redirections are not followed.
 *
 * DELETE of a folder also deletes what is in it. An empty folder is therefore renamed first, to a
 * name that nobody knows, and deleted if it is still empty; and only if nothing in it has changed
 * for a day, so that no other process is about to put its first object into it.
 *
 * The login is sent only after the server has asked for it, by Digest if it offers that, else by
 * Basic; over webdav:// anyone on the way can read the data, and with Basic the password too.
 * Digest takes two requests for each one.
 *
 * Memory: an upload of ARCHIVE_WEBDAV_MEMORY, one range, and the list of one folder, of at most
 * 64 MiB as the server sends it. Strings are copied. Errors never contain the password.
 */
#ifndef ARCHIVE_STORE_WEBDAV_H
#define ARCHIVE_STORE_WEBDAV_H

#include "archive/store.h"

#include <stdatomic.h>

enum { ARCHIVE_WEBDAV_MEMORY = 8 * 1024 * 1024 };

struct archive_webdav_opts {
    /* webdav://[USER@]HOST[:PORT]/PATH (HTTP) or webdavs://… (HTTPS). %XX in USER and PATH is
     * decoded; other characters that a URL cannot have are sent as %XX. */
    const char *url;
    const char *user;     /* unless the URL has one; NULL: no login */
    const char *password; /* NULL: none */
    const char *ca_file;  /* trusted authorities; NULL: the system's list */
    const char *spool;    /* the folder for large objects */
    bool (*random)(void *ret, size_t size, struct rd_err *err); /* for names */
    unsigned tries;                                             /* of a request; 0: 6 */
    void (*wait_ms)(uint64_t ms);                               /* between them */
    uint64_t rate;             /* bytes a second in each direction; 0: no limit */
    const atomic_bool *cancel; /* true: requests end; NULL: none */
};

/* RD_ERR_USAGE: the URL is not valid, or has a password, or there is a user without a password. */
bool archive_store_open_webdav(struct archive_store **ret, const struct archive_webdav_opts *opts,
                               struct rd_err *err);

#endif
