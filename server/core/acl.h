/* acl.h - who a client is. So far there is one user, "default", with the password of requirepass.
 */
#ifndef SERVER_CORE_ACL_H
#define SERVER_CORE_ACL_H

#include "server/client/client.h"

bool acl_default_has_password(const struct server *srv);

/* True: the client is this user from now on. Takes the same time for every wrong password. */
bool acl_authenticate(struct client *c, struct rd_slice user, struct rd_slice password);

/* As a client that has just connected. */
void acl_reset(struct client *c);

#endif
