/* maxmemory-clients: the total memory of clients, and which clients to close. The same for clients
 * that have not logged in, whose memory is always limited. */
#include "server/session/client/client.h"

#include "server/session/acl/acl.h"
#include "server/loop/log.h"

/* With a lower limit, clients could not connect to the server to correct the setting. */
enum { LIMIT_MIN = 128 * 1024 };

/* ---- clients that have not logged in ---- */

static void forget_anonymous(struct client *c)
{
    c->sessions->clients->anonymous -= c->anonymous;
    c->anonymous = 0;
}

static void close_largest_anonymous(struct clients *all)
{
    struct client *found = all->first;
    for (struct client *c = all->first; c != NULL; c = c->next)
        if (c->anonymous > found->anonymous)
            found = c;
    if (found == NULL)
        return;
    log_verbose("Closing the client id=%llu addr=%s: clients that have not logged in use too much "
                "memory",
                (unsigned long long)found->id, found->peer);
    found->sessions->loop->stats.output_buffer_limit_closed++;
    forget_anonymous(found);
    client_close_asap(found);
    if (!client_is_running(found))
        client_input_done(found); /* now: many clients can send in one turn */
}

/* What a login needs fits into the smallest buffers. */
static size_t anonymous_memory(const struct client *c)
{
    size_t output = c->reply.buf.cap;
    return client_input_memory(c) + (output > CLIENT_OUTPUT_MIN ? output : 0);
}

static void count_anonymous(struct client *c)
{
    struct clients *all = c->sessions->clients;
    forget_anonymous(c);
    if (!acl_login_needed(c))
        return;
    c->anonymous = anonymous_memory(c);
    all->anonymous += c->anonymous;
    while (all->first != NULL && all->anonymous > CLIENT_ANONYMOUS_MAX)
        close_largest_anonymous(all);
}

/* ---- maxmemory-clients ---- */

static void uncount(struct client *c)
{
    c->sessions->clients->memory -= c->counted;
    c->counted = 0;
}

void client_uncount(struct client *c)
{
    uncount(c);
    forget_anonymous(c);
}

void client_count(struct client *c)
{
    struct clients *all = c->sessions->clients;
    if (c->conn != NULL && (c->flags & CLIENT_CLOSE_ASAP) == 0 &&
        RD_UNLIKELY(c->anonymous > 0 || acl_login_needed(c)))
        count_anonymous(c);
    if (!all->counting || c->conn == NULL || (c->flags & CLIENT_CLOSE_ASAP))
        return;
    uncount(c);
    if (client_type(c) == CLIENT_TYPE_REPLICA)
        return;
    c->counted = client_memory(c);
    all->memory += c->counted;
}

static void begin(struct clients *all)
{
    all->counting = true;
    for (struct client *c = all->first; c != NULL; c = c->next)
        client_count(c);
}

static void end(struct clients *all)
{
    for (struct client *c = all->first; c != NULL; c = c->next)
        uncount(c);
    all->counting = false;
}

/* NULL: all others are exempt */
static struct client *largest(const struct clients *all)
{
    struct client *found = NULL;
    for (struct client *c = all->first; c != NULL; c = c->next)
        if (c->counted > 0 && (c->flags & CLIENT_NO_EVICT) == 0 &&
            (found == NULL || c->counted > found->counted))
            found = c;
    return found;
}

static void evict(struct client *c)
{
    struct rd_buf line = {0};
    client_describe(c, &line);
    rd_buf_add_byte(&line, 0);
    log_notice("Evicting client: %s", (const char *)line.ptr);
    rd_buf_done(&line);
    c->sessions->loop->stats.evicted_clients++;
    uncount(c);
    client_free(c);
}

void clients_evict(struct sessions *sessions)
{
    struct clients *all = sessions->clients;
    uint64_t limit = settings_maxmemory_clients(&sessions->loop->settings);
    if (limit == 0 && !all->counting)
        return;
    if (limit == 0) {
        end(all);
        return;
    }
    if (!all->counting)
        begin(all);
    limit = limit > LIMIT_MIN ? limit : LIMIT_MIN;
    while (all->memory > limit) {
        struct client *c = largest(all);
        if (c == NULL)
            return;
        evict(c);
    }
}

bool clients_evict_before(struct client *c)
{
    struct sessions *sessions = c->sessions;
    if (sessions->current != NULL && sessions->current != c)
        return false; /* inside the command of another client: not now */
    clients_evict(sessions);
    return c->flags & CLIENT_CLOSE_ASAP;
}
