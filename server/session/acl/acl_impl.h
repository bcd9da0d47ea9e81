/* acl_impl.h - the table of users. Private to this folder.
 */
#ifndef SERVER_SESSION_ACL_ACL_IMPL_H
#define SERVER_SESSION_ACL_ACL_IMPL_H

#include "server/session/acl/user_impl.h"

struct acl_users {
    struct acl_user **list; /* by name */
    size_t n, cap;
};

struct acl_log {
    struct acl_log_entry *first, *last;
    size_t n;
};

struct acl {
    struct acl_users users;
    struct acl_user *fallback; /* the user `default`, always the same structure */
    struct acl_log log;
};

struct acl_user *acl_users_find(const struct acl_users *users, struct rd_slice name);
void acl_users_add(struct acl_users *users, struct acl_user *user);
struct acl_user *acl_users_remove(struct acl_users *users, struct rd_slice name);
void acl_users_free(struct acl_users *users);

/* The rules of `default` before any configuration. */
void acl_make_default(struct acl_user *user);

/* Joins the words of a selector whose parentheses are in different words. False: *ret_open is the
 * word with an unmatched parenthesis. */
bool acl_join(const struct rd_slice *words, size_t n, struct acl_list *ret, size_t *ret_open);

/* Disconnects the clients of a user that is about to be freed. */
void acl_drop_clients(struct sessions *sessions, const struct acl_user *user);

/* Disconnects the subscribers whose channels `now` does not allow; `before` is their user. */
void acl_drop_subscribers(struct sessions *sessions, const struct acl_user *now,
                          const struct acl_user *before);

void acl_log_add(struct client *c, enum acl_verdict verdict, enum acl_context context,
                 struct rd_slice object, struct rd_slice user);
void acl_log_done(struct acl_log *log);

#endif
