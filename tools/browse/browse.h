/* browse.h - `redoubt browse`: what the page opens, and the server on the loopback address that
 * gives it to the page.
 *
 * The server answers GET and HEAD of /TOKEN/ (the page), /TOKEN/list.json (what there is) and
 * /TOKEN/file/N (item N). Anything else gets status 403 or 404 and no byte of data.
 */
#ifndef TOOLS_BROWSE_BROWSE_H
#define TOOLS_BROWSE_BROWSE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a token, in hexadecimal digits, with the NUL. */
enum { BROWSE_TOKEN_BYTES = 16, BROWSE_TOKEN = 2 * BROWSE_TOKEN_BYTES + 1 };

struct browse_http_opts {
    struct rd_slice page; /* HTML with its Content-Security-Policy in a meta element */
    struct rd_slice list; /* JSON: docs/man/redoubt-browse.1.scd */
    size_t n_items;       /* of the list */
    char token[BROWSE_TOKEN];
    uint16_t port; /* 0: one that is free */
    /* Opens an item, for each request of it. The server closes *ret_fd, of which it reads *ret_len
     * bytes from the beginning. The text of an error is sent to the page. */
    bool (*open)(void *ctx, size_t item, int *ret_fd, uint64_t *ret_len, struct rd_err *err);
    /* The server listens at this URL. False: end. */
    bool (*ready)(void *ctx, const char *url);
    void *ctx;
};

/* Serves on 127.0.0.1 in the calling thread until a signal ends the process; returns only on
 * failure. Requests are answered at the same time, but open() keeps all of them waiting. The
 * process ignores SIGPIPE afterwards. RD_ERR_UNSUPPORTED: built without libmicrohttpd; RD_ERR_IO:
 * the port is in use; RD_ERR_USAGE: the page is no page of `./run web`. */
bool browse_http_serve(const struct browse_http_opts *opts, struct rd_err *err);

/* Writes what is sent in place of `page` to the buffer: may ask this server for files. ret_policy
 * gets its Content-Security-Policy. RD_ERR_USAGE: it is no page of `./run web`. */
bool browse_page_prepare(struct rd_slice page, struct rd_buf *ret, struct rd_buf *ret_policy,
                         struct rd_err *err);

/* Who asks: what the headers of a request say. */
struct browse_request {
    uint16_t port;    /* of this server */
    unsigned n_hosts; /* Host headers so far */
    bool foreign;     /* another host name, another origin, or a request of another site */
};

/* Takes one header. Names are compared without case; others than Host, Origin and Sec-Fetch-Site
 * are ignored. value may be NULL. */
void browse_request_header(struct browse_request *request, const char *name, const char *value);

/* Whether exactly one Host was named, and nothing is foreign. */
bool browse_request_is_own(const struct browse_request *request);

/* The rest of a path after /TOKEN/; NULL: the path has not this token. Takes the same time for each
 * wrong token of this length. */
const char *browse_path_after_token(const char *path, const char *token);

#endif
