/* apply.h - what has to be done when CONFIG SET has changed a value. Private to
 * settings*.c.
 */
#ifndef SERVER_SETTINGS_APPLY_H
#define SERVER_SETTINGS_APPLY_H

#include "server/settings/item.h"

/* False: it could not be done; *why is what 7.0 tells, or room's text. */
typedef bool (*settings_apply_fn)(struct server *srv, struct settings_reading *reading);

/* NULL: nothing is to be done for this directive alone. */
settings_apply_fn settings_apply_for(const struct settings_item *item);

/* Once after every CONFIG SET, whatever it changed. */
void settings_apply_all(struct server *srv);

#endif
