/* master_impl.h - shared by repl/master.c and repl/master/.
 */
#ifndef REPL_MASTER_MASTER_IMPL_H
#define REPL_MASTER_MASTER_IMPL_H

#include "repl/master.h"

/* Adds a peer to the list, so that it counts as a replica. */
void repl_peer_enlist(struct repl_peer *peer);

/* A line to the peer; false: out of memory. */
bool repl_peer_say(struct repl_peer *peer, const char *fmt, ...) RD_PRINTF(2, 3);

#endif
