/* http.h - one small request to a web service: a heartbeat, or keys of an instance.
 *
 *     struct rd_buf body = {0};
 *     const struct archive_http ask = {.url = "https://example.org/ping", .timeout_s = 10};
 *     long status;
 *     if (!archive_http_ask(&ask, &status, &body, &err))
 *         ... the service did not answer ...
 *     rd_buf_done(&body);
 *
 * URLs, headers and answers may be secrets: no error contains them.
 */
#ifndef ARCHIVE_HTTP_H
#define ARCHIVE_HTTP_H

#include "base/buf.h"
#include "base/err.h"

enum { ARCHIVE_HTTP_HEADERS = 2, ARCHIVE_HTTP_MAX = 65536 /* bytes of an answer */ };

struct archive_http {
    const char *url;                           /* http:// or https:// */
    bool put;                                  /* PUT without a body, instead of GET */
    const char *headers[ARCHIVE_HTTP_HEADERS]; /* "Name: value"; NULL: none */
    const char *ca_file;                       /* trusted CA certificates; NULL: the system's */
    unsigned timeout_s;                        /* of the whole request */
    bool direct;                               /* no proxy and no redirection */
};

/* False with RD_ERR_UNSUPPORTED: the program was built without libcurl, which `what` needs. */
bool archive_http_built(const char *what, struct rd_err *err);

/* Sends the request and appends the body of the answer to *ret_body, which may be NULL. False with
 * RD_ERR_PROTOCOL: the server did not answer; RD_ERR_USAGE: the URL is not valid. */
bool archive_http_ask(const struct archive_http *ask, long *ret_status, struct rd_buf *ret_body,
                      struct rd_err *err);

#endif
