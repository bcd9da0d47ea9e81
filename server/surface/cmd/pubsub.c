/* SUBSCRIBE and related commands, PUBLISH, PUBSUB. */
#include "engine/glob.h"
#include "server/surface/cmd/commands.h"
#include "server/session/pubsub.h"
#include "server/durable/replication/replication.h"
#include "server/session/dispatch/subcommand.h"

/* The number of subscriptions in replies to a client. */
static size_t subscription_count(const struct client *c, enum pubsub_kind kind)
{
    if (kind == PUBSUB_SHARD)
        return pubsub_count(c, PUBSUB_SHARD);
    return pubsub_count(c, PUBSUB_CHANNEL) + pubsub_count(c, PUBSUB_PATTERN);
}

/* CLIENT REPLY OFF does not suppress it: it is a message, not a reply. */
static void push_subscription(struct dispatch_call *call, const char *what,
                              const struct rd_slice *name, enum pubsub_kind kind)
{
    bool off = call->reply->off;
    call->reply->off = false;
    engine_reply_push(call->reply, 3);
    engine_reply_str(call->reply, what);
    if (name != NULL)
        engine_reply_bulk(call->reply, *name);
    else
        engine_reply_null(call->reply);
    engine_reply_int(call->reply, (int64_t)subscription_count(call->c, kind));
    call->reply->off = off;
}

static void subscribe(struct dispatch_call *call, enum pubsub_kind kind, const char *what)
{
    for (size_t i = 1; i < call->argc; i++) {
        pubsub_subscribe(call->c, kind, call->argv[i]);
        push_subscription(call, what, &call->argv[i], kind);
    }
}

static void unsubscribe_all(struct dispatch_call *call, enum pubsub_kind kind, const char *what)
{
    struct rd_slice name;
    if (!pubsub_first(call->c, kind, &name)) {
        push_subscription(call, what, NULL, kind);
        return;
    }
    struct rd_buf copy = {0}; /* removing the last subscriber frees the name */
    do {
        rd_buf_reset(&copy);
        rd_buf_add(&copy, name.ptr, name.len);
        name = rd_buf_slice(&copy);
        pubsub_unsubscribe(call->c, kind, name);
        push_subscription(call, what, &name, kind);
    } while (pubsub_first(call->c, kind, &name));
    rd_buf_done(&copy);
}

static void unsubscribe(struct dispatch_call *call, enum pubsub_kind kind, const char *what)
{
    if (call->argc == 1)
        unsubscribe_all(call, kind, what);
    for (size_t i = 1; i < call->argc; i++) {
        pubsub_unsubscribe(call->c, kind, call->argv[i]);
        push_subscription(call, what, &call->argv[i], kind);
    }
}

void server_cmd_subscribe(struct dispatch_call *call)
{
    subscribe(call, PUBSUB_CHANNEL, "subscribe");
}

void server_cmd_unsubscribe(struct dispatch_call *call)
{
    unsubscribe(call, PUBSUB_CHANNEL, "unsubscribe");
}

void server_cmd_psubscribe(struct dispatch_call *call)
{
    subscribe(call, PUBSUB_PATTERN, "psubscribe");
}

void server_cmd_punsubscribe(struct dispatch_call *call)
{
    unsubscribe(call, PUBSUB_PATTERN, "punsubscribe");
}

void server_cmd_ssubscribe(struct dispatch_call *call)
{
    if (call->in_exec) /* SUBSCRIBE and PSUBSCRIBE are allowed there, as in redis-server */
        engine_reply_error(call->reply, "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client");
    else
        subscribe(call, PUBSUB_SHARD, "ssubscribe");
}

void server_cmd_sunsubscribe(struct dispatch_call *call)
{
    unsubscribe(call, PUBSUB_SHARD, "sunsubscribe");
}

/* Clients of replicas get the message too; a log has no subscribers. */
static void publish(struct dispatch_call *call, enum pubsub_kind kind)
{
    uint64_t n = pubsub_publish(call->sessions, kind, call->argv[1], call->argv[2]);
    engine_reply_int(call->reply, (int64_t)n);
    struct engine_effects *fx = call->fx;
    if (fx->off || call->c == NULL || !replication_wants_effects(call->sessions->durable))
        return;
    engine_effects_add(fx, call->c->session.db, call->argc, call->argv);
    fx->list[fx->n - 1].not_for_log = true;
}

void server_cmd_publish(struct dispatch_call *call)
{
    publish(call, PUBSUB_CHANNEL);
}

void server_cmd_spublish(struct dispatch_call *call)
{
    publish(call, PUBSUB_SHARD);
}

/* ---- PUBSUB ---- */

struct listing {
    struct dispatch_call *call;
    uint64_t n;
};

static void list_one(void *ctx, struct rd_slice name)
{
    struct listing *listing = ctx;
    struct dispatch_call *call = listing->call;
    if (call->argc > 2 && !engine_glob_match(call->argv[2], name, false))
        return;
    engine_reply_bulk(call->reply, name);
    listing->n++;
}

static void list_names(struct dispatch_call *call, enum pubsub_kind kind)
{
    struct listing listing = {.call = call};
    if (call->argc > 3) {
        subcommand_syntax(call);
        return;
    }
    size_t mark = engine_reply_mark(call->reply);
    pubsub_each(call->sessions, kind, list_one, &listing);
    engine_reply_mark_array(call->reply, mark, listing.n);
}

static void count_listeners(struct dispatch_call *call, enum pubsub_kind kind)
{
    engine_reply_array(call->reply, 2 * (call->argc - 2));
    for (size_t i = 2; i < call->argc; i++) {
        engine_reply_bulk(call->reply, call->argv[i]);
        engine_reply_int(call->reply,
                         (int64_t)pubsub_listeners(call->sessions, kind, call->argv[i]));
    }
}

static void sub_channels(struct dispatch_call *call)
{
    list_names(call, PUBSUB_CHANNEL);
}

static void sub_numsub(struct dispatch_call *call)
{
    count_listeners(call, PUBSUB_CHANNEL);
}

static void sub_numpat(struct dispatch_call *call)
{
    engine_reply_int(call->reply, (int64_t)pubsub_total(call->sessions, PUBSUB_PATTERN));
}

static void sub_shardchannels(struct dispatch_call *call)
{
    list_names(call, PUBSUB_SHARD);
}

static void sub_shardnumsub(struct dispatch_call *call)
{
    count_listeners(call, PUBSUB_SHARD);
}

static void sub_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "CHANNELS [<pattern>]",
        "    List the channels that have subscribers and match the pattern.",
        "NUMPAT",
        "    Count the subscribed patterns.",
        "NUMSUB [<channel> ...]",
        "    Count the subscribers of these channels, without pattern subscribers.",
        "SHARDCHANNELS [<pattern>]",
        "    List the shard channels that have subscribers and match the pattern.",
        "SHARDNUMSUB [<shardchannel> ...]",
        "    Count the subscribers of these shard channels.",
        NULL,
    };
    dispatch_help(call, lines);
}

static const struct subcommand subcommands[] = {
    {"channels", sub_channels},           {"numsub", sub_numsub},           {"numpat", sub_numpat},
    {"shardchannels", sub_shardchannels}, {"shardnumsub", sub_shardnumsub}, {"help", sub_help},
};

void server_cmd_pubsub(struct dispatch_call *call)
{
    SUBCOMMAND_RUN(call, subcommands);
}
