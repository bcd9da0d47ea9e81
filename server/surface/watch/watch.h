/* watch.h - the server as a Sentinel: redoubt-server FILE --sentinel.
 *
 *     watch_add_commands();      // before the settings are read, which may name them
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
 *     table.c      the rows of SENTINEL, and what is not as in a server: PUBLISH, ROLE
 *
 * A Sentinel has no data set: it neither loads nor saves one. It has SENTINEL, whose rows it adds
 * to the table of commands, and the commands of the table at ENGINE_LEVEL_SENTINEL.
 */
#ifndef SERVER_SURFACE_WATCH_WATCH_H
#define SERVER_SURFACE_WATCH_WATCH_H

#include "sentinel/sentinel.h"
#include "server/surface/server.h"

struct watch;

/* Adds SENTINEL to the table of commands; server_free() of a Sentinel removes it. */
void watch_add_commands(void);

/* Makes the server a Sentinel, with the lines of its configuration. False: *why is the message, for
 * stderr if it begins with a line end, else for the log. */
bool watch_new(struct server *srv, struct rd_buf *why);

#endif
