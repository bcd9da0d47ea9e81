/* crash.h - what is told of a crash: signal, address, stack and the server's own figures, in the
 * log, between "=== REDIS BUG REPORT START" and "=== REDIS BUG REPORT END". Then the process ends
 * by that signal, as it would have.
 */
#ifndef SERVER_OBSERVE_CRASH_H
#define SERVER_OBSERVE_CRASH_H

#include "server/core/server.h"

/* SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, as long as crash-log-enabled says yes; and memory
 * that is used up, which ends by SIGABRT. srv is borrowed until the end. */
void crash_watch(struct server *srv);

/* watchdog-period: called every turn of the cron; when the next call does not come within the
 * period, the stack of where the process is goes to the log. SIGALRM from elsewhere has it logged,
 * too. */
void crash_watchdog(const struct server *srv);

/* Until crash_end_patience(): SIGINT ends the process at once, without the snapshot that is just
 * being written. */
void crash_begin_patience(void);
void crash_end_patience(void);

/* SIGABRT with the report, after the reason. */
_Noreturn void crash_now(const char *why);

#endif
