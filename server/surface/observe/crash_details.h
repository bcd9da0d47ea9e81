/* crash_details.h - the long parts of a crash report. Private to crash.c.
 */
#ifndef SERVER_SURFACE_OBSERVE_CRASH_DETAILS_H
#define SERVER_SURFACE_OBSERVE_CRASH_DETAILS_H

#include "server/surface/server.h"

/* "CONFIG DEBUG OUTPUT": the settings that most often explain a crash. */
void crash_config(const struct server *srv);

/* "FAST MEMORY TEST": writes patterns to the resident pages and restores them. The other threads of
 * the server are ended first. Allocates no memory. */
void crash_memory_test(const struct server *srv);

/* "DUMPING CODE AROUND EIP": the function with this instruction, in hexadecimal. */
void crash_code(const void *instruction);

#endif
