/* web.h - what the stores over HTTP have in common; private to archive/.
 *
 *     archive_remote_begin(&remote, url, "http,https", &body, problem);
 *     archive_web_set_up(&remote, &sent, &head);
 *     code = archive_remote_perform(&remote, problem, origin, &err);
 *     lost |= archive_web_repeated(&remote, code);
 */
#ifndef ARCHIVE_WEB_H
#define ARCHIVE_WEB_H

#include "archive/remote.h"

enum { ARCHIVE_WEB_ETAG_MAX = 128, ARCHIVE_WEB_WORD_MAX = 64 };

/* What the head of an answer says. */
struct archive_web_head {
    bool has_length;
    uint64_t length;                  /* Content-Length */
    char etag[ARCHIVE_WEB_ETAG_MAX];  /* "": none */
    char range[ARCHIVE_WEB_WORD_MAX]; /* Content-Range; "": none */
    char code[ARCHIVE_WEB_WORD_MAX];  /* x-ms-error-code; "": none */
    bool has_id;                      /* x-ms-request-id */
    int64_t date_s, modified_s;       /* Date and Last-Modified; -1: none */
};

struct archive_web_sent {
    const char *method;
    struct rd_slice body; /* of other methods than GET and HEAD */
    struct curl_slist *headers;
    const char *ca_file; /* NULL: the system's list */
};

/* The remaining options of a request. *ret_head is cleared, and filled when it is performed. */
void archive_web_set_up(struct archive_remote *remote, const struct archive_web_sent *sent,
                        struct archive_web_head *ret_head);

/* libcurl itself repeats a request if a connection that it used before ends without an answer. To
 * be called after each request: whether it may have been sent twice. */
bool archive_web_repeated(struct archive_remote *remote, CURLcode code);

/* Whether another try may succeed. */
bool archive_web_passes(long status, CURLcode code);

/* The body of an answer that should have none is the page of a proxy, or of a portal. */
bool archive_web_is_blank(struct rd_slice body);

/* "": nothing is added. False: out of memory. */
bool archive_web_add_header(struct curl_slist **list, const char *header);

/* A URL contains only unreserved characters: the others become %XX. A slash stays with `path`.
 * False: it is longer than size. */
bool archive_web_escape(char *ret, size_t size, struct rd_slice text, bool path);

#endif
