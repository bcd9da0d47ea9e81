/* thread.h - private to base/: a thread that is no business of signals, which are for the program's
 * own.
 *
 *     pthread_t thread;
 *     if (!rd_thread_start(&thread, run, arg))
 *         ...                                  // none is to be had
 *     pthread_join(thread, NULL);
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

bool rd_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

/* Whether two threads can get further than one. */
bool rd_thread_can_help(void);

#endif
