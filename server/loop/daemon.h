/* daemon.h - settings of the server process: background, limits, title, supervisors.
 *
 *     daemon_begin(argc, argv);                        // first of all
 *     ... settings_load() ...
 *     daemon_enter(&loop->settings);                    // before anything else is opened
 *     ... server_init(), ports are opened ...
 *     daemon_announce(loop);                            // pid file, logo or line, warnings
 *     ... data is loaded ...
 *     daemon_ready();                                  // notifies systemd
 *     daemon_status("...");                            // when that changes
 *     daemon_stopping();                               // at the end
 */
#ifndef SERVER_LOOP_DAEMON_H
#define SERVER_LOOP_DAEMON_H

#include "server/loop/loop.h"

enum { DAEMON_FILES_RESERVED = 32 }; /* descriptors reserved for other uses than clients */

/* Reserves the memory of argv and environ, where titles are written later. argv stays readable. */
void daemon_begin(int argc, char **argv);

/* Applies supervised and daemonize. With daemonize this returns in the child; the parent has
 * exited. */
void daemon_enter(struct settings *settings);

/* Sets title, CPUs, huge pages, OOM score and the limit of open files, which can lower maxclients.
 * Logs. False: there are too few descriptors to start. */
bool daemon_prepare(struct loop *loop);

/* The arguments of the process, terminated by NULL; NULL before daemon_begin(). The system shows
 * the title instead. */
char *const *daemon_argv(void);

/* A copy of this absolute path replaces the first argument, because a restart can happen in another
 * directory. */
void daemon_config_file(const char *path);

/* Sets the process title to proc-title-template with `what` for {title}; NULL: the name of the
 * program. Does nothing with set-proc-title no. */
void daemon_title(struct loop *loop, const char *what);

/* Writes oom_score_adj for a master, a replica or a child. False: that failed (logged). */
bool daemon_oom_score(const struct settings *settings, bool child);

/* Binds the process to CPUs: "0-3,8,10-14:2"; "" means all. An invalid list changes nothing. For
 * the server and each of its children. */
void daemon_cpus(const char *list);

/* Raises the limit of open files to `want` or as near as possible; returns the limit now.
 * ret_errno: the reason why it is lower; may be NULL. */
uint64_t daemon_open_files(uint64_t want, int *ret_errno);

/* After the ports are open: writes the pid file, logs " PID: 1234", the mode, "Server initialized"
 * and warnings about this system. */
void daemon_announce(const struct loop *loop);

/* Removes the pid file, if this process wrote it and no other process has replaced it. For every
 * way to end the process; a signal handler may call it. */
void daemon_remove_pidfile(void);

void daemon_ready(void);
/* What `systemctl status` shows of the server. */
void daemon_status(const char *fmt, ...) RD_PRINTF(1, 2);
void daemon_stopping(void);

/* --check-system: returns 0 if all checks pass, else 1. Prints to stdout. */
int daemon_check_system(void);

#endif
