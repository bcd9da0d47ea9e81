/* acl.h - the user of a client. So far the only user is "default", with the password of
 * requirepass.
 */
#ifndef SERVER_CORE_ACL_H
#define SERVER_CORE_ACL_H

#include "server/client/client.h"

bool acl_default_has_password(const struct server *srv);

/* True: the client is now this user. Takes the same time for every wrong password. */
bool acl_authenticate(struct client *c, struct rd_slice user, struct rd_slice password);

/* Sets the user of a client that has just connected. */
void acl_reset(struct client *c);

#endif
