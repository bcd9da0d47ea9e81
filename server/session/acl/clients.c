/* Disconnects clients when rules change. */
#include "server/session/acl/acl_impl.h"

#include "server/session/pubsub.h"

/* The client of the current command gets its reply first. */
static void drop(struct client *c)
{
    if (c->sessions->current == c)
        client_close_soon(c);
    else
        client_close_asap(c);
}

void acl_drop_clients(struct sessions *sessions, const struct acl_user *user)
{
    for (struct client *c = sessions->clients->first; c != NULL; c = c->next) {
        if (c->user != user)
            continue;
        c->user = sessions->acl->fallback;
        c->authenticated = false;
        drop(c);
    }
}

/* The channels of all selectors. */
static bool granted(const struct acl_user *user, struct rd_slice name, bool is_pattern)
{
    for (size_t i = 0; i < user->n_selectors; i++)
        if (acl_channel_allowed(&user->selectors[i].channels, name, is_pattern))
            return true;
    return false;
}

static bool any_has_all(const struct acl_user *user)
{
    for (size_t i = 0; i < user->n_selectors; i++)
        if (user->selectors[i].all_channels)
            return true;
    return false;
}

static bool any_has_some(const struct acl_user *user)
{
    for (size_t i = 0; i < user->n_selectors; i++)
        if (user->selectors[i].channels.n > 0)
            return true;
    return false;
}

struct subscriptions {
    const struct acl_user *user;
    bool is_pattern;
    bool refused;
};

static void look_at(void *ctx, struct rd_slice name)
{
    struct subscriptions *all = ctx;
    all->refused |= !granted(all->user, name, all->is_pattern);
}

static bool may_stay(const struct client *c, const struct acl_user *user)
{
    struct subscriptions all = {.user = user};
    for (unsigned kind = 0; kind < PUBSUB_KINDS; kind++) {
        all.is_pattern = kind == PUBSUB_PATTERN;
        pubsub_each_of(c, kind, look_at, &all);
    }
    return !all.refused;
}

void acl_drop_subscribers(struct sessions *sessions, const struct acl_user *now,
                          const struct acl_user *before)
{
    if (any_has_all(now) || !(any_has_all(before) || any_has_some(before)))
        return;
    for (struct client *c = sessions->clients->first; c != NULL; c = c->next)
        if (c->user == before && !may_stay(c, now))
            drop(c);
}
