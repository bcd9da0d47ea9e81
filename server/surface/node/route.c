/* Whether this node has the keys of a command, and where they are otherwise. */
#include <stdio.h>
#include <string.h>

#include "engine/admit.h"
#include "engine/db.h"
#include "server/session/client/client.h"
#include "server/surface/node/node_impl.h"

enum { KEYS_MAX = 64 }; /* that need no allocation */

/* The keys of a command, or of those of a transaction. */
struct keys {
    const struct node *n;
    bool any;
    struct rd_slice first;
    unsigned slot;
    struct cluster_node *owner;
    bool migrating, importing; /* the slot */
    bool several;              /* different keys of a slot that is imported */
    bool channels;             /* they are shard channels, which need not be there */
    size_t n_here, n_missing;
};

enum verdict {
    HERE,
    MOVED,
    ASK,
    UNSTABLE,
    CROSS_SLOT,
    DOWN,
    DOWN_FOR_WRITES,
    NOT_SERVED /* the slot has no owner */
};

/* ---- replies ---- */

unsigned node_port(const struct node *n, const struct client *c, const struct cluster_node *of)
{
    bool tls = c->conn != NULL && c->conn->ssl != NULL;
    return n->srv->loop.settings.tls_cluster && !tls && of->plain_port != 0 ? of->plain_port
                                                                            : of->port;
}

static const char *endpoint(const struct node *n, const struct cluster_node *to)
{
    switch (n->srv->loop.settings.cluster_preferred_endpoint_type) {
    case SETTINGS_ENDPOINT_HOSTNAME:
        return to->hostname[0] != 0 ? to->hostname : "?";
    case SETTINGS_ENDPOINT_UNKNOWN:
        return "";
    default:
        return to->host;
    }
}

void node_redirect(const struct node *n, const struct client *c, const char *word, unsigned slot,
                   const struct cluster_node *to, char *dst, size_t size)
{
    snprintf(dst, size, "%s %u %s:%u", word, slot, endpoint(n, to), node_port(n, c, to));
}

static bool refuse(struct engine_refusal *ret, const char *text)
{
    ret->text = text;
    return false;
}

static bool refuse_client(const struct keys *k, const struct client *c, enum verdict verdict,
                          struct engine_refusal *ret)
{
    const struct cluster *cluster = k->n->cluster;
    ret->text = ret->line;
    switch (verdict) {
    case MOVED:
        node_redirect(k->n, c, "MOVED", k->slot, k->owner, ret->line, sizeof ret->line);
        return false;
    case ASK:
        node_redirect(k->n, c, "ASK", k->slot, cluster_migrating(cluster, k->slot), ret->line,
                      sizeof ret->line);
        return false;
    case UNSTABLE:
        return refuse(ret, "TRYAGAIN Multiple keys request during rehashing of slot");
    case CROSS_SLOT:
        return refuse(ret, "CROSSSLOT Keys in request don't hash to the same slot");
    case DOWN:
        return refuse(ret, "CLUSTERDOWN The cluster is down");
    case DOWN_FOR_WRITES:
        return refuse(ret, "CLUSTERDOWN The cluster is down and only accepts read commands");
    case NOT_SERVED:
        return refuse(ret, "CLUSTERDOWN Hash slot not served");
    default:
        return true;
    }
}

static bool refuse_script(enum verdict verdict, struct engine_refusal *ret)
{
    if (verdict == DOWN_FOR_WRITES)
        return refuse(ret, "ERR Script attempted to execute a write command while the cluster is "
                           "down and readonly");
    if (verdict == DOWN)
        return refuse(ret, "ERR Script attempted to execute a command while the cluster is down");
    return refuse(ret, "ERR Script attempted to access a non local key in a cluster node");
}

/* ---- the keys ---- */

static void take_first(struct keys *k, struct rd_slice key)
{
    const struct cluster *cluster = k->n->cluster;
    k->any = true;
    k->first = key;
    k->slot = rd_hash_slot(key);
    k->owner = cluster_owner(cluster, k->slot);
    if (k->owner == cluster_myself(cluster) && cluster_migrating(cluster, k->slot) != NULL)
        k->migrating = true;
    else
        k->importing = cluster_importing(cluster, k->slot) != NULL;
}

static void look(struct keys *k, struct rd_slice key)
{
    const struct sessions *sessions = &k->n->srv->sessions;
    const struct engine_entry *entry = engine_db_find(engine_db(sessions->engine, 0), key);
    bool here = entry != NULL && (entry->expire_ms == ENGINE_NO_EXPIRE ||
                                  entry->expire_ms > loop_now_ms(sessions->loop));
    k->n_here += here;
    k->n_missing += !here;
}

static enum verdict take_key(struct keys *k, struct rd_slice key)
{
    if (!k->any)
        take_first(k, key);
    else if (rd_hash_slot(key) != k->slot)
        return CROSS_SLOT;
    else if (k->importing && !rd_slice_eq(k->first, key))
        k->several = true;
    if (k->owner == NULL)
        return NOT_SERVED;
    if ((k->migrating || k->importing) && !k->channels)
        look(k, key);
    return HERE;
}

/* SSUBSCRIBE and SUNSUBSCRIBE with all arguments, SPUBLISH with the first. */
static enum verdict take_channels(struct keys *k, const struct engine_command *command, size_t argc,
                                  const struct rd_slice *argv)
{
    size_t end = command->arity > 0 ? 2 : argc;
    enum verdict verdict = HERE;
    for (size_t i = 1; i < end && verdict == HERE; i++)
        verdict = take_key(k, argv[i]);
    return verdict;
}

static enum verdict take_command(struct keys *k, const struct engine_command *command, size_t argc,
                                 const struct rd_slice *argv)
{
    struct engine_key some[KEYS_MAX], *keys = some;
    enum verdict verdict = HERE;
    size_t n = 0;
    if (command->group == ENGINE_GROUP_PUBSUB)
        return command->n_key_specs > 0 ? take_channels(k, command, argc, argv) : HERE;
    if (engine_command_keys(command, argv, argc, some, KEYS_MAX, &n) != ENGINE_KEYS_OK)
        return HERE;
    if (n > KEYS_MAX) {
        keys = engine_scratch_alloc(n * sizeof *keys);
        engine_command_keys(command, argv, argc, keys, n, &n);
    }
    for (size_t i = 0; i < n && verdict == HERE; i++)
        verdict = take_key(k, argv[keys[i].index]);
    if (keys != some)
        engine_scratch_free(keys);
    return verdict;
}

static enum verdict take_queue(struct keys *k, const struct engine_session *s)
{
    enum verdict verdict = HERE;
    for (size_t i = 0; s->in_multi && i < s->n_queued && verdict == HERE; i++) {
        const struct engine_queued *q = &s->queue[i];
        verdict = take_command(k, q->command, q->argc, q->argv);
    }
    return verdict;
}

/* ---- the verdict ---- */

static enum verdict judge_state(const struct keys *k, bool writes)
{
    const struct settings *s = &k->n->srv->loop.settings;
    if (cluster_is_ok(k->n->cluster))
        return HERE;
    if (k->channels)
        return s->cluster_allow_pubsubshard_when_down ? HERE : DOWN;
    if (!s->cluster_allow_reads_when_down)
        return DOWN;
    return writes ? DOWN_FOR_WRITES : HERE;
}

static enum verdict judge_slot(const struct keys *k, const struct client *c, bool asking,
                               bool writes)
{
    const struct cluster_node *me = cluster_myself(k->n->cluster);
    if (k->migrating && k->n_missing > 0)
        return k->n_here > 0 ? UNSTABLE : ASK;
    if (k->importing && asking)
        return k->several && k->n_missing > 0 ? UNSTABLE : HERE;
    if (k->owner == me)
        return HERE;
    bool may_read = (c->flags & CLIENT_READONLY) != 0 || k->channels;
    return may_read && !writes && me->master == k->owner ? HERE : MOVED;
}

static enum verdict judge(struct keys *k, const struct client *c,
                          const struct engine_request *request)
{
    const struct engine_command *command = request->command;
    bool queue = (command->flags & ENGINE_CMD_RUNS_QUEUE) != 0;
    bool asking = (c->flags & CLIENT_ASKING) != 0 || (command->flags & ENGINE_CMD_ASKING) != 0;
    uint64_t flags = command->flags | (queue ? c->session.queued_any : 0);
    bool writes = (flags & ENGINE_CMD_WRITE) != 0;
    k->channels = command->group == ENGINE_GROUP_PUBSUB;
    enum verdict verdict =
        queue ? take_queue(k, &c->session) : take_command(k, command, request->argc, request->argv);
    if (verdict != HERE || !k->any)
        return verdict;
    verdict = judge_state(k, (command->flags & ENGINE_CMD_WRITE) != 0);
    if (verdict != HERE)
        return verdict;
    /* The keys of an open slot can be moved. */
    if ((k->migrating || k->importing) && strcmp(command->name, "migrate") == 0)
        return HERE;
    return judge_slot(k, c, asking, writes);
}

static bool route_in_script(const struct keys *k, struct client *c,
                            const struct engine_admit_script *script, enum verdict verdict,
                            struct engine_refusal *ret)
{
    if (verdict != HERE)
        return refuse_script(verdict, ret);
    if (!k->any || script->cross_slots)
        return true;
    if (c->slot >= 0 && (unsigned)c->slot != k->slot)
        return refuse(ret, "ERR Script attempted to access keys that do not hash to the same slot");
    c->slot = (int)k->slot;
    return true;
}

bool node_route(struct client *c, const struct engine_admit_script *script,
                const struct engine_request *request, struct engine_refusal *ret)
{
    struct keys k = {.n = server_of(c->sessions)->node};
    enum verdict verdict = judge(&k, c, request);
    if (script != NULL)
        return route_in_script(&k, c, script, verdict, ret);
    c->slot = k.any ? (int)k.slot : -1;
    return refuse_client(&k, c, verdict, ret);
}
