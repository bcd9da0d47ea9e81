/* lookup.h - looks up the addresses of a host without stopping the loop: the name servers of a
 * machine that has lost its network answer after many seconds.
 *
 *     if (!lookup_numeric(host, port, &addresses))
 *         lookup = lookup_start(loop, host, port, on_found, ctx);
 *     ...
 *     lookup_cancel(lookup);     // unless on_found() was called
 *
 * Each lookup has a thread of its own, which getaddrinfo() may keep for as long as it likes:
 * neither another lookup nor the end of the loop waits for it.
 */
#ifndef SERVER_LOOP_LOOKUP_H
#define SERVER_LOOP_LOOKUP_H

#include <netdb.h>

#include "server/loop/loop.h"

struct lookup;

/* Called once, in a callback of the loop. error: of getaddrinfo(); all: NULL if it is not 0. The
 * callee frees the addresses with freeaddrinfo(); the lookup is gone. */
typedef void (*lookup_fn)(void *ctx, struct addrinfo *all, int error);

/* True: the host is an address, and *ret has to be freed. */
bool lookup_numeric(const char *host, const char *port, struct addrinfo **ret);

/* NULL: no memory, or no thread. */
struct lookup *lookup_start(struct loop *loop, const char *host, const char *port, lookup_fn found,
                            void *ctx);

/* The function is not called any more. NULL is allowed. */
void lookup_cancel(struct lookup *lookup);

#endif
