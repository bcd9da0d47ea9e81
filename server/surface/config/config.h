/* config.h - changing the settings of a running server.
 */
#ifndef SERVER_SURFACE_CONFIG_CONFIG_H
#define SERVER_SURFACE_CONFIG_CONFIG_H

#include "server/surface/server.h"

struct settings_item;

/* CONFIG SET of several directives, all or none: applies them (ports, logs, appendonly …), and
 * restores the old values if one fails. why: the error of Redis 7.0. */
bool config_set(struct server *srv, size_t n, const struct rd_slice *names,
                const struct rd_slice *values, struct rd_buf *why);

/* CONFIG REWRITE: keeps the comments and the order of the file, replaces changed values and appends
 * missing ones; writes a temporary file and renames it. `all`: includes default values. The text of
 * err is the reason of a failure. */
bool config_rewrite(struct server *srv, bool all, struct rd_err *err);

/* Logs a warning for each directive that differs from its default and has no effect in this server;
 * `only` NULL: for all directives. unused.c */
void config_warn_unused(const struct settings *s, const struct settings_item *only);

#endif
