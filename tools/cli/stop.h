/* stop.h - ends a long run in an orderly way when a signal asks for it.
 *
 *     sigset_t waiting;
 *     const volatile sig_atomic_t *stop = cli_stop_begin(&waiting);
 *     while (*stop == 0)
 *         ... ppoll(polls, n, &limit, &waiting) ...
 *     cli_stop_end(&waiting);       // or: return CLI_SIGNAL + cli_stopped()
 *
 * Threads: the main thread only. State: that of the process.
 */
#ifndef TOOLS_CLI_STOP_H
#define TOOLS_CLI_STOP_H

#include <signal.h>

/* Catches SIGINT, SIGTERM and SIGHUP, and blocks them except while the caller waits with the mask,
 * so that none is missed. Threads that are started later inherit the mask. Returns the flag, which
 * gets the number of the signal. */
const volatile sig_atomic_t *cli_stop_begin(sigset_t *ret_waiting);

/* The signal that came; 0: none did. */
int cli_stopped(void);

/* Restores the common handlers and the mask. A signal that came meanwhile ends the program now. */
void cli_stop_end(const sigset_t *waiting);

#endif
