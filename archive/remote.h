/* remote.h - shared by the stores that use libcurl; private to archive/.
 *
 *     struct archive_remote_retry retry = {0};
 *     do {
 *         archive_remote_begin(&remote, url, "https", &body, problem);
 *         ... curl_easy_setopt(remote.curl, …) ...
 *         code = archive_remote_perform(&remote, problem, origin, &err);
 *     } while (code != CURLE_OK && ... && archive_remote_again(&remote, &retry));
 */
#ifndef ARCHIVE_REMOTE_H
#define ARCHIVE_REMOTE_H

#include <curl/curl.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/err.h"

enum { ARCHIVE_URL_MAX = 2048 };

struct archive_remote {
    CURL *curl;
    unsigned tries;               /* of a request */
    void (*wait_ms)(uint64_t ms); /* between two of them; may be NULL */
    const atomic_bool *cancel;    /* true: requests end within a second; may be NULL */
    uint64_t rate;                /* bytes a second in each direction, at most; 0: no limit */
    bool connected;               /* the last request left a connection that may be used again */
};

/* tries: 0 for the default. rate: see archive_remote. */
bool archive_remote_open(struct archive_remote *ret, unsigned tries, void (*wait_ms)(uint64_t ms),
                         uint64_t rate, const atomic_bool *cancel, struct rd_err *err);
void archive_remote_close(struct archive_remote *remote);

/* Receives the body of an answer. A body larger than `max` ends the request. */
struct archive_remote_body {
    struct rd_buf *out; /* NULL: the body is dropped */
    size_t max;
};

/* Resets the handle and sets the options that all requests have in common. problem: CURL_ERROR_SIZE
 * bytes. */
void archive_remote_begin(const struct archive_remote *remote, const char *url,
                          const char *protocols, struct archive_remote_body *body, char *problem);

/* Performs the request. On failure err has this origin. */
CURLcode archive_remote_perform(const struct archive_remote *remote, const char *problem,
                                const char *origin, struct rd_err *err);

struct archive_remote_retry {
    unsigned n;
    uint64_t wait_ms;
};

/* Waits before the next try, each time twice as long; false: the maximum is reached. */
bool archive_remote_again(const struct archive_remote *remote, struct archive_remote_retry *retry);

/* Adds as many bytes as make *buf `max` long, and moves *ptr and *len past them. */
bool archive_remote_fill(struct rd_buf *buf, size_t max, const uint8_t **ptr, size_t *len,
                         struct rd_err *err);

/* A copy for rd_free(); NULL stays NULL. */
bool archive_remote_copy(char **ret, const char *text, struct rd_err *err);

/* The size of part number n (from 0) of an upload whose parts begin with this size. It grows, so
 * that 10,000 parts, the maximum, are enough for 4.9 TiB with parts of 8 MiB at first. */
size_t archive_remote_part_size(size_t base, size_t n);

#endif
