/* servers.h - the master of a capture, or the sentinels that know it, from options or settings.
 *
 *     struct capture_servers servers = {.n_sentinels = 0};
 *     peer_opts_init(&servers.peers);
 *     if (capture_servers_find(&servers, &capture, url, &err))
 *         ... capture_begin(&capture, &err) ...
 *     peer_opts_done(&servers.peers);
 */
#ifndef TOOLS_CAPTURE_SERVERS_H
#define TOOLS_CAPTURE_SERVERS_H

#include "capture/capture.h"
#include "tools/cli/peer_options.h"

/* Strings are borrowed. */
struct capture_servers {
    struct peer_opts peers;
    const char *sentinels[CAPTURE_SENTINELS_MAX]; /* HOST:PORT */
    size_t n_sentinels;
    const char *sentinel_pass_file; /* sentinels have a password of their own, if any */
};

/* RD_ERR_USAGE if there are too many. */
bool capture_servers_add_sentinel(struct capture_servers *servers, const char *text,
                                  struct rd_err *err);

/* Initializes the capture, with a random id of the run, and sets its target and sentinels. url as
 * in peer_target_find(). capture_close() is called in any case. */
bool capture_servers_find(struct capture_servers *servers, struct capture *capture, const char *url,
                          struct rd_err *err);

/* Adds the process that writes the capture to an RD_ERR_LOCKED of its folder. */
void capture_servers_holder(struct rd_err *err);

#endif
