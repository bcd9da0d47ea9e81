/* apply.h - applies a value that CONFIG SET has changed. Private to server/settings/.
 */
#ifndef SERVER_SURFACE_CONFIG_APPLY_H
#define SERVER_SURFACE_CONFIG_APPLY_H

#include "server/settings/item.h"
#include "server/surface/server.h"

/* False: that failed; *why is the message of Redis 7.0, or the text in room. */
typedef bool (*config_apply_fn)(struct server *srv, struct settings_reading *reading);

/* NULL: this directive alone needs no action. */
config_apply_fn config_apply_for(const struct settings_item *item);

/* Called once after every CONFIG SET, whatever it changed. */
void config_apply_all(struct server *srv);

#endif
