/* webdav_request.h - the requests of a store on a WebDAV server; private to archive/.
 *
 *     struct archive_webdav_request r = {.method = "DELETE", .url = url};
 *     if (!archive_webdav_perform(s, &r, &err))
 *         ... the host does not answer ...
 *     if (r.status != 204)
 *         ... archive_webdav_fail(s, &r, &err) ...
 *
 * A request that fails temporarily (the network, 408, 423, 429, 5xx but not 501, 505 and 507) is
 * repeated, with delays that double.
 */
#ifndef ARCHIVE_WEBDAV_REQUEST_H
#define ARCHIVE_WEBDAV_REQUEST_H

#include "archive/remote.h"
#include "archive/store_webdav.h"
#include "archive/web.h"
#include "archive/webdav_answer.h"

struct archive_webdav {
    struct archive_store store;
    struct archive_remote remote;
    char host[300];                     /* "https://HOST:PORT" */
    char path[ARCHIVE_WEBDAV_PATH_MAX]; /* of the repository: decoded, no slash at its end */
    char *user, *password, *ca_file, *spool;
    bool (*random)(void *ret, size_t size, struct rd_err *err);
    long auth; /* CURLAUTH_…: what the server asked for, or all that it may ask for */
    char folder[ARCHIVE_WEBDAV_PATH_MAX]; /* this one was there; "": not known */
};

struct archive_webdav *archive_webdav_of(struct archive_store *store);

struct archive_webdav_request {
    const char *method;
    const char *url;
    const char *type;       /* the header Content-Type, or NULL */
    const char *headers[2]; /* additional ones, or NULL */
    struct rd_slice body;
    int fd; /* if size > 0: the body is this file */
    uint64_t size, sent;
    struct rd_buf *out; /* receives the body of an answer with one of these statuses */
    long wanted[2];
    size_t max;     /* of out */
    size_t dropped; /* bytes of an answer with another status */
    long status;    /* of the last answer */
    bool is_long;   /* it does not fit out */
    bool lost;      /* there was a try whose effect is not known */
    struct archive_web_head head;
};

/* False: the host does not answer. Otherwise r->status is the status of the last answer. */
bool archive_webdav_perform(struct archive_webdav *s, struct archive_webdav_request *r,
                            struct rd_err *err);
/* The error of an answer that does not say that the request was done; returns false. */
bool archive_webdav_fail(const struct archive_webdav *s, const struct archive_webdav_request *r,
                         struct rd_err *err);

/* The decoded path of an object or folder. RD_ERR_LIMIT */
bool archive_webdav_path(const struct archive_webdav *s, const char *name,
                         char ret[ARCHIVE_WEBDAV_PATH_MAX], struct rd_err *err);
/* The URL of a decoded path; a folder has a slash at its end. RD_ERR_LIMIT */
bool archive_webdav_url(const struct archive_webdav *s, const char *path, bool is_folder,
                        char ret[ARCHIVE_URL_MAX], struct rd_err *err);
/* The path of the folder above; *ret_name is the last part of path. False: path is the root. */
bool archive_webdav_above(const char *path, char ret[ARCHIVE_WEBDAV_PATH_MAX],
                          const char **ret_name);

/* PROPFIND of an object (depth 0) or of a folder and what is in it (depth 1). *ret_missing: status
 * 404, which proves nothing; then it fails without an error. *ret_date_s: Date; may be NULL. */
bool archive_webdav_look(struct archive_webdav *s, const char *path, unsigned depth,
                         struct archive_webdav_list *ret, bool *ret_missing, int64_t *ret_date_s,
                         struct rd_err *err);

/* DELETE, MKCOL or MOVE to another path ("Overwrite: F"), of an object or a folder. */
bool archive_webdav_delete(struct archive_webdav *s, const char *path, bool is_folder,
                           struct archive_webdav_request *r, struct rd_err *err);
bool archive_webdav_move(struct archive_webdav *s, const char *from, const char *to, bool is_folder,
                         struct archive_webdav_request *r, struct rd_err *err);
/* Makes a folder, and those above it, unless they exist. */
bool archive_webdav_make(struct archive_webdav *s, const char *path, struct rd_err *err);

#endif
