/* daemon.h - what a server does to its own process: background, limits, titles, supervisors.
 *
 *     daemon_begin(argc, argv);                        // first of all
 *     ... settings_load() ...
 *     daemon_enter(&srv->settings);                    // before anything else is opened
 *     ... server_init(), ports are opened ...
 *     daemon_announce(srv);                            // pid file, logo or line, warnings
 *     ... data is loaded ...
 *     daemon_ready();                                  // tells systemd
 *     daemon_stopping();                               // at the end
 */
#ifndef SERVER_CORE_DAEMON_H
#define SERVER_CORE_DAEMON_H

#include "server/core/server.h"

enum { DAEMON_FILES_RESERVED = 32 }; /* descriptors that are not clients */

/* Which value of oom-score-adj-values counts. */
enum daemon_class { DAEMON_MASTER, DAEMON_REPLICA, DAEMON_CHILD };

/* Keeps the room of argv and environ, where titles are written later. argv stays readable. */
void daemon_begin(int argc, char **argv);

/* supervised and daemonize, as the settings ask for. Under daemonize this returns in the child; the
 * parent has ended. */
void daemon_enter(struct settings *settings);

/* Title, processors, huge pages, oom score and the limit of open files, which may make
 * maxclients smaller. Logs. False: there are too few descriptors to start at all. */
bool daemon_prepare(struct server *srv);

/* The words that the process was started with, ended by NULL; NULL before daemon_begin(). What the
 * system shows of them is the title. */
char *const *daemon_argv(void);

/* A copy of this absolute path replaces the first argument: a restart may be in another folder. */
void daemon_config_file(const char *path);

/* The title of the process: that of proc-title-template for `what` in the place of {title}; NULL:
 * the program's own name. Nothing with set-proc-title no. */
void daemon_title(struct server *srv, const char *what);

/* Writes oom_score_adj. False: it could not (logged). */
bool daemon_oom_score(const struct settings *settings, enum daemon_class class);

/* Binds the process to processors: "0-3,8,10-14:2"; "" is all, what cannot be read changes nothing.
 * For the server and each of its children. */
void daemon_cpus(const char *list);

/* Raises the limit of open files to `want` or as near as it goes; returns what there is now.
 * ret_errno: why it is no more; may be NULL. */
uint64_t daemon_open_files(uint64_t want, int *ret_errno);

/* After the ports were opened: the pid file, " PID: 1234" and the mode, "Server initialized", and
 * what is unwise about this system. */
void daemon_announce(const struct server *srv);

void daemon_ready(void);
void daemon_stopping(void);

/* Who really supervises: "no", "systemd" or "upstart". */
const char *daemon_supervisor(void);

/* --check-system: 0: all is well, 1: something is not. Prints to stdout. */
int daemon_check_system(void);

#endif
