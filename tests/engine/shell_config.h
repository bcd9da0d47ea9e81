/* shell_config.h - settings by their names in redis.conf, for the engine's shell.
 */
#ifndef TESTS_ENGINE_SHELL_CONFIG_H
#define TESTS_ENGINE_SHELL_CONFIG_H

#include "base/slice.h"
#include "engine/config.h"

/* "hash-max-listpack-entries", "512"; "lazyfree-lazy-expire", "yes". False: no such setting, or no
 * such value. Numbers are taken as they are, without the bounds of a server. */
bool shell_config_set(struct engine_config *config, struct rd_slice name, struct rd_slice text);

/* The letters of notify-keyspace-events as enum engine_notify; others mean nothing. */
unsigned shell_config_events(struct rd_slice letters);

#endif
