/* log.h - the log: "PID:M 22 Nov 2026 01:45:19.131 # text", to stdout or logfile, and syslog.
 *
 * Programs parse some of these lines, so their texts are those of redis-server.
 */
#ifndef SERVER_LOOP_LOG_H
#define SERVER_LOOP_LOG_H

#include "base/api.h"
#include "server/settings/settings.h"

/* Applies the settings: file ("" is stdout), level, syslog. Reopens nothing: each line opens the
 * file, so that it can be moved away. Before this is called, lines go to stdout. */
void log_setup(const struct settings *settings);

/* The letter of the lines: 'M' master, 'S' replica, 'C' child. */
void log_role(char role);

void log_debug(const char *fmt, ...) RD_PRINTF(1, 2);
void log_verbose(const char *fmt, ...) RD_PRINTF(1, 2);
void log_notice(const char *fmt, ...) RD_PRINTF(1, 2);
void log_warning(const char *fmt, ...) RD_PRINTF(1, 2);

/* Logs the reason and ends the process with SIGABRT, which makes the crash report (with
 * use-exit-on-panic: with status 1). */
_Noreturn void log_panic(const char *why);

/* For signal handlers: writes the text alone; async-signal-safe. */
void log_from_handler(const char *text);

/* Writes bytes without a frame. */
void log_raw(const char *text);

/* A descriptor of the log, for code that writes to it directly; negative: there is none. */
int log_open(void);
void log_close(int fd);

#endif
