/* crash_details.h - parts of a crash report that are long. Private to crash.c.
 */
#ifndef SERVER_OBSERVE_CRASH_DETAILS_H
#define SERVER_OBSERVE_CRASH_DETAILS_H

#include "server/core/server.h"

/* "CONFIG DEBUG OUTPUT": the values that most often explain a crash. */
void crash_config(const struct server *srv);

/* "FAST MEMORY TEST": writes patterns into the pages that are in memory, and restores them. The
 * other threads of the server are ended first. Takes no memory. */
void crash_memory_test(void);

/* "DUMPING CODE AROUND EIP": the function that holds this instruction, in hexadecimal digits. */
void crash_code(const void *instruction);

#endif
