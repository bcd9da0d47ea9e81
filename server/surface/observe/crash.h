/* crash.h - the crash report: signal, address, stack and figures of the server, in the log, between
 * "=== REDIS BUG REPORT START" and "=== REDIS BUG REPORT END". Then the same signal terminates the
 * process.
 */
#ifndef SERVER_SURFACE_OBSERVE_CRASH_H
#define SERVER_SURFACE_OBSERVE_CRASH_H

#include "server/surface/server.h"

/* Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT if crash-log-enabled is yes, and out of
 * memory, which ends with SIGABRT. srv is borrowed for the life of the process. */
void crash_watch(struct server *srv);

/* watchdog-period: called in every turn of the cron. If the next call does not come within the
 * period, the current stack of the process is logged. A SIGALRM from elsewhere logs it, too. */
void crash_watchdog(const struct server *srv);

/* Until crash_end_patience(), SIGINT ends the process immediately, without the snapshot in
 * progress. */
void crash_begin_patience(void);
void crash_end_patience(void);

#endif
