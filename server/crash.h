/* crash.h - what is told of a crash: signal, address, stack and the server's own figures, in the
 * log, between "=== REDIS BUG REPORT START" and "=== REDIS BUG REPORT END". Then the process ends
 * by that signal, as it would have.
 */
#ifndef SERVER_CRASH_H
#define SERVER_CRASH_H

#include "server/server.h"

/* SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, as long as crash-log-enabled says yes. srv is
 * borrowed until the end. */
void crash_watch(struct server *srv);

/* SIGABRT with the report, after the reason. */
_Noreturn void crash_now(const char *why);

#endif
