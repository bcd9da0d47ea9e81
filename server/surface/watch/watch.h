/* watch.h - the server as a Sentinel: redoubt-server FILE --sentinel.
 *
 *     if (srv.loop.settings.sentinel && !watch_new(&srv, &why))
 *         ... why, as redis-sentinel words it ...
 *     server_init(&srv);
 *     server_run(&srv);          // calls the functions of srv.sentinel
 *
 * What a Sentinel decides is in sentinel/sentinel.h. This folder does what it asks for:
 *
 *     watch.c      the lines of the configuration, time, and actions
 *     peers.c      connections to masters, replicas and other Sentinels
 *     names.c      addresses of host names
 *     scripts.c    processes of scripts
 *     commands.c   SENTINEL
 *     set.c        its subcommands that change something
 *     table.c      the commands that are not those of a server: INFO, PUBLISH, ROLE, HELLO
 *
 * A Sentinel has no data set: it neither loads nor saves one, and has the commands whose flag is
 * ENGINE_CMD_SENTINEL.
 */
#ifndef SERVER_SURFACE_WATCH_WATCH_H
#define SERVER_SURFACE_WATCH_WATCH_H

#include "sentinel/sentinel.h"
#include "server/surface/server.h"

struct watch;

/* Makes the server a Sentinel, with the lines of its configuration. False: *why is the message, for
 * stderr if it begins with a line end, else for the log. */
bool watch_new(struct server *srv, struct rd_buf *why);

#endif
