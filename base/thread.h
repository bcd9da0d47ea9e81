/* thread.h - starts a thread with all signals blocked, so that the caller's thread handles them.
 *
 *     pthread_t thread;
 *     if (!rd_thread_start(&thread, run, arg))
 *         ...                                  // no thread is available
 *     pthread_join(thread, NULL);
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

bool rd_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

/* How many threads can run in parallel: the processors that this process may use. */
unsigned rd_thread_processors(void);

/* Whether a second thread can run in parallel. */
bool rd_thread_can_help(void);

#endif
