#include "server/session/pubsub.h"

#include "base/num.h"
#include "engine/glob.h"
#include "engine/mem.h"
#include "engine/table.h"

struct subscription;

/* A channel or pattern with subscribers. */
struct topic {
    struct topic *prev, *next; /* of this kind */
    struct subscription *first, *last;
    size_t n;
    size_t name_len;
    uint8_t name[];
};

struct subscription {
    struct topic *topic;
    struct client *client;
    struct subscription *topic_prev, *topic_next;
    struct subscription *client_prev, *client_next;
};

struct topics {
    struct engine_table by_name;
    struct topic *first, *last;
};

struct pubsub {
    struct topics kinds[PUBSUB_KINDS];
    struct rd_buf frame;   /* the current message */
    struct rd_buf channel; /* the name of a keyspace channel */
    struct client *held;   /* client of the current command */
    struct rd_buf kept;    /* messages to insert before the reply */
    struct engine_listener listener;
};

struct pubsub_client {
    struct pubsub_list {
        struct engine_table by_name;
        struct subscription *first, *last;
    } kinds[PUBSUB_KINDS];
};

static struct rd_slice topic_name(const void *item)
{
    const struct topic *topic = item;
    return rd_slice(topic->name, topic->name_len);
}

static struct rd_slice subscription_name(const void *item)
{
    const struct subscription *s = item;
    return topic_name(s->topic);
}

static const struct engine_table_type topics_type = {.name = topic_name, .apart = true};
static const struct engine_table_type subscriptions_type = {.name = subscription_name,
                                                            .apart = true};

static void on_keyspace_event(void *ctx, enum engine_notify class, const char *event,
                              struct rd_slice key, unsigned db);

struct pubsub *pubsub_new(struct sessions *sessions)
{
    struct pubsub *pubsub = engine_scratch_alloc(sizeof *pubsub);
    *pubsub = (struct pubsub){0};
    for (unsigned i = 0; i < PUBSUB_KINDS; i++)
        engine_table_init(&pubsub->kinds[i].by_name, &topics_type, sessions->table_seed);
    pubsub->listener = (struct engine_listener){.notify = on_keyspace_event, .ctx = sessions};
    engine_listen(sessions->engine, &pubsub->listener);
    return pubsub;
}

void pubsub_free(struct sessions *sessions)
{
    struct pubsub *pubsub = sessions->pubsub;
    engine_unlisten(sessions->engine, &pubsub->listener);
    for (unsigned i = 0; i < PUBSUB_KINDS; i++)
        engine_table_done(&pubsub->kinds[i].by_name);
    rd_buf_done(&pubsub->frame);
    rd_buf_done(&pubsub->channel);
    rd_buf_done(&pubsub->kept);
    engine_scratch_free(pubsub);
}

/* ---- topics ---- */

static struct topic *topic_get(struct topics *topics, struct rd_slice name)
{
    struct engine_table_slot slot;
    struct topic *topic = engine_table_find_or_slot(&topics->by_name, name, &slot);
    if (topic != NULL)
        return topic;
    topic = engine_scratch_alloc(sizeof *topic + name.len);
    *topic = (struct topic){.prev = topics->last, .name_len = name.len};
    if (name.len > 0)
        memcpy(topic->name, name.ptr, name.len);
    *(topics->last != NULL ? &topics->last->next : &topics->first) = topic;
    topics->last = topic;
    engine_table_add_at(&topics->by_name, &slot, topic);
    return topic;
}

static void topic_drop(struct topics *topics, struct topic *topic)
{
    engine_table_remove(&topics->by_name, topic_name(topic));
    *(topic->prev != NULL ? &topic->prev->next : &topics->first) = topic->next;
    *(topic->next != NULL ? &topic->next->prev : &topics->last) = topic->prev;
    engine_scratch_free(topic);
}

static void topic_join(struct topic *topic, struct subscription *s)
{
    s->topic_prev = topic->last;
    *(topic->last != NULL ? &topic->last->topic_next : &topic->first) = s;
    topic->last = s;
    topic->n++;
}

static void topic_leave(struct topic *topic, struct subscription *s)
{
    *(s->topic_prev != NULL ? &s->topic_prev->topic_next : &topic->first) = s->topic_next;
    *(s->topic_next != NULL ? &s->topic_next->topic_prev : &topic->last) = s->topic_prev;
    topic->n--;
}

/* ---- clients ---- */

static struct pubsub_client *client_get(struct client *c)
{
    if (c->pubsub != NULL)
        return c->pubsub;
    c->pubsub = engine_scratch_alloc(sizeof *c->pubsub);
    *c->pubsub = (struct pubsub_client){0};
    for (unsigned i = 0; i < PUBSUB_KINDS; i++)
        engine_table_init(&c->pubsub->kinds[i].by_name, &subscriptions_type,
                          c->sessions->table_seed);
    c->flags |= CLIENT_PUBSUB;
    c->session.subscribed = true;
    c->sessions->clients->n_pubsub++;
    return c->pubsub;
}

static void client_drop_if_empty(struct client *c)
{
    for (unsigned i = 0; i < PUBSUB_KINDS; i++)
        if (c->pubsub->kinds[i].first != NULL)
            return;
    for (unsigned i = 0; i < PUBSUB_KINDS; i++)
        engine_table_done(&c->pubsub->kinds[i].by_name);
    engine_scratch_free(c->pubsub);
    c->pubsub = NULL;
    c->flags &= ~(uint32_t)CLIENT_PUBSUB;
    c->session.subscribed = false;
    c->sessions->clients->n_pubsub--;
}

bool pubsub_subscribe(struct client *c, enum pubsub_kind kind, struct rd_slice name)
{
    struct pubsub_list *list = &client_get(c)->kinds[kind];
    if (engine_table_find(&list->by_name, name) != NULL)
        return false;
    struct topic *topic = topic_get(&c->sessions->pubsub->kinds[kind], name);
    struct subscription *s = engine_scratch_alloc(sizeof *s);
    *s = (struct subscription){.topic = topic, .client = c, .client_prev = list->last};
    *(list->last != NULL ? &list->last->client_next : &list->first) = s;
    list->last = s;
    topic_join(topic, s);
    engine_table_add(&list->by_name, s);
    return true;
}

bool pubsub_unsubscribe(struct client *c, enum pubsub_kind kind, struct rd_slice name)
{
    if (c->pubsub == NULL)
        return false;
    struct pubsub_list *list = &c->pubsub->kinds[kind];
    struct subscription *s = engine_table_remove(&list->by_name, name);
    if (s == NULL)
        return false;
    *(s->client_prev != NULL ? &s->client_prev->client_next : &list->first) = s->client_next;
    *(s->client_next != NULL ? &s->client_next->client_prev : &list->last) = s->client_prev;
    topic_leave(s->topic, s);
    if (s->topic->n == 0)
        topic_drop(&c->sessions->pubsub->kinds[kind], s->topic);
    engine_scratch_free(s);
    client_drop_if_empty(c);
    return true;
}

bool pubsub_first(const struct client *c, enum pubsub_kind kind, struct rd_slice *ret)
{
    if (c->pubsub == NULL || c->pubsub->kinds[kind].first == NULL)
        return false;
    *ret = topic_name(c->pubsub->kinds[kind].first->topic);
    return true;
}

void pubsub_forget(struct client *c)
{
    struct rd_slice name;
    for (unsigned i = 0; i < PUBSUB_KINDS; i++)
        while (pubsub_first(c, i, &name))
            pubsub_unsubscribe(c, i, name);
    if (c->sessions->pubsub != NULL && c->sessions->pubsub->held == c)
        c->sessions->pubsub->held = NULL;
}

/* ---- messages ---- */

static void put_bulk(struct rd_buf *buf, struct rd_slice bytes)
{
    char head[RD_NUM_I64_MAX + 3] = "$";
    size_t len = 1 + rd_num_put_u64(head + 1, bytes.len);
    head[len++] = '\r';
    head[len++] = '\n';
    if (!rd_buf_reserve(buf, len + bytes.len + 2))
        return;
    rd_buf_add(buf, head, len);
    rd_buf_add(buf, bytes.ptr, bytes.len);
    rd_buf_add(buf, "\r\n", 2);
}

/* CLIENT REPLY OFF affects replies only: messages are still sent. */
static void send_frame(struct pubsub *pubsub, struct client *c)
{
    bool resp3 = c->reply.proto == 3;
    struct rd_buf *out = resp3 && c == pubsub->held ? &pubsub->kept : &client_reply(c)->buf;
    size_t at = out->len;
    if (!rd_buf_add(out, pubsub->frame.ptr, pubsub->frame.len))
        return;
    if (resp3)
        out->ptr[at] = '>'; /* a push is an array with another first byte */
    client_queue_write(c);
}

static uint64_t send_to_all(struct pubsub *pubsub, const struct topic *topic)
{
    for (const struct subscription *s = topic->first; s != NULL; s = s->topic_next)
        send_frame(pubsub, s->client);
    return topic->n;
}

static void make_message(struct pubsub *pubsub, const char *begin, struct rd_slice channel,
                         struct rd_slice message)
{
    rd_buf_reset(&pubsub->frame);
    rd_buf_add(&pubsub->frame, begin, strlen(begin));
    put_bulk(&pubsub->frame, channel);
    put_bulk(&pubsub->frame, message);
}

static uint64_t publish_to_patterns(struct pubsub *pubsub, struct rd_slice channel,
                                    struct rd_slice message)
{
    static const char begin[] = "*4\r\n$8\r\npmessage\r\n";
    uint64_t n = 0;
    for (const struct topic *t = pubsub->kinds[PUBSUB_PATTERN].first; t != NULL; t = t->next) {
        if (!engine_glob_match(topic_name(t), channel, false))
            continue;
        rd_buf_reset(&pubsub->frame);
        rd_buf_add(&pubsub->frame, begin, sizeof begin - 1);
        put_bulk(&pubsub->frame, topic_name(t));
        put_bulk(&pubsub->frame, channel);
        put_bulk(&pubsub->frame, message);
        n += send_to_all(pubsub, t);
    }
    return n;
}

uint64_t pubsub_publish(struct sessions *sessions, enum pubsub_kind kind, struct rd_slice channel,
                        struct rd_slice message)
{
    struct pubsub *pubsub = sessions->pubsub;
    uint64_t n = 0;
    const struct topic *topic = engine_table_find(&pubsub->kinds[kind].by_name, channel);
    if (topic != NULL) {
        make_message(pubsub,
                     kind == PUBSUB_SHARD ? "*3\r\n$8\r\nsmessage\r\n" : "*3\r\n$7\r\nmessage\r\n",
                     channel, message);
        n = send_to_all(pubsub, topic);
    }
    if (kind == PUBSUB_CHANNEL)
        n += publish_to_patterns(pubsub, channel, message);
    return n;
}

static void tell_end(struct pubsub *pubsub, struct client *c, enum pubsub_kind kind,
                     struct rd_slice channel)
{
    static const char *const begins[] = {[PUBSUB_CHANNEL] = "*3\r\n$11\r\nunsubscribe\r\n",
                                         [PUBSUB_PATTERN] = "*3\r\n$12\r\npunsubscribe\r\n",
                                         [PUBSUB_SHARD] = "*3\r\n$12\r\nsunsubscribe\r\n"};
    rd_buf_reset(&pubsub->frame);
    rd_buf_add(&pubsub->frame, begins[kind], strlen(begins[kind]));
    put_bulk(&pubsub->frame, channel);
    rd_buf_printf(&pubsub->frame, ":%zu\r\n", pubsub_count(c, kind));
    send_frame(pubsub, c);
}

void pubsub_end_channel(struct sessions *sessions, enum pubsub_kind kind, struct rd_slice channel)
{
    struct pubsub *pubsub = sessions->pubsub;
    struct rd_buf name = {0}; /* the last subscriber frees the name of the channel */
    const struct topic *topic;
    if (!rd_buf_add(&name, channel.ptr, channel.len))
        return;
    while ((topic = engine_table_find(&pubsub->kinds[kind].by_name, rd_buf_slice(&name))) != NULL) {
        struct client *c = topic->first->client;
        pubsub_unsubscribe(c, kind, rd_buf_slice(&name));
        tell_end(pubsub, c, kind, rd_buf_slice(&name));
    }
    rd_buf_done(&name);
}

bool pubsub_hold(struct sessions *sessions, struct client *c)
{
    if (RD_UNLIKELY(sessions->pubsub->held != NULL))
        return false;
    sessions->pubsub->held = c;
    return true;
}

void pubsub_release(struct sessions *sessions, size_t at)
{
    struct pubsub *pubsub = sessions->pubsub;
    struct client *c = pubsub->held;
    pubsub->held = NULL;
    if (RD_LIKELY(pubsub->kept.len == 0))
        return;
    struct rd_buf *out = c != NULL ? &client_reply(c)->buf : NULL;
    if (out != NULL && at > out->len)
        at = out->len;
    if (out != NULL && rd_buf_reserve(out, pubsub->kept.len)) {
        memmove(out->ptr + at + pubsub->kept.len, out->ptr + at, out->len - at);
        memcpy(out->ptr + at, pubsub->kept.ptr, pubsub->kept.len);
        out->len += pubsub->kept.len;
    }
    rd_buf_reset(&pubsub->kept);
}

/* ---- PUBSUB ---- */

size_t pubsub_count(const struct client *c, enum pubsub_kind kind)
{
    return c->pubsub != NULL ? engine_table_count(&c->pubsub->kinds[kind].by_name) : 0;
}

size_t pubsub_total(const struct sessions *sessions, enum pubsub_kind kind)
{
    return engine_table_count(&sessions->pubsub->kinds[kind].by_name);
}

size_t pubsub_memory(const struct client *c)
{
    if (c->pubsub == NULL)
        return 0;
    size_t sum = sizeof *c->pubsub;
    for (unsigned i = 0; i < PUBSUB_KINDS; i++) {
        const struct engine_table *table = &c->pubsub->kinds[i].by_name;
        sum += engine_table_bytes(table);
        sum += engine_table_count(table) * sizeof(struct subscription);
    }
    return sum;
}

size_t pubsub_listeners(const struct sessions *sessions, enum pubsub_kind kind,
                        struct rd_slice name)
{
    const struct topic *topic = engine_table_find(&sessions->pubsub->kinds[kind].by_name, name);
    return topic != NULL ? topic->n : 0;
}

void pubsub_each(const struct sessions *sessions, enum pubsub_kind kind, pubsub_each_fn fn,
                 void *ctx)
{
    for (const struct topic *t = sessions->pubsub->kinds[kind].first; t != NULL; t = t->next)
        fn(ctx, topic_name(t));
}

void pubsub_each_of(const struct client *c, enum pubsub_kind kind, pubsub_each_fn fn, void *ctx)
{
    const struct subscription *s = c->pubsub != NULL ? c->pubsub->kinds[kind].first : NULL;
    for (; s != NULL; s = s->client_next)
        fn(ctx, topic_name(s->topic));
}

/* ---- keyspace events ---- */

static bool nobody_listens(const struct pubsub *pubsub)
{
    return pubsub->kinds[PUBSUB_CHANNEL].first == NULL &&
           pubsub->kinds[PUBSUB_PATTERN].first == NULL;
}

static struct rd_slice event_channel(struct pubsub *pubsub, const char *kind, unsigned db,
                                     struct rd_slice name)
{
    char digits[RD_NUM_I64_MAX];
    rd_buf_reset(&pubsub->channel);
    rd_buf_add(&pubsub->channel, kind, strlen(kind));
    rd_buf_add(&pubsub->channel, digits, rd_num_put_u64(digits, db));
    rd_buf_add(&pubsub->channel, "__:", 3);
    rd_buf_add(&pubsub->channel, name.ptr, name.len);
    return rd_buf_slice(&pubsub->channel);
}

static void on_keyspace_event(void *ctx, enum engine_notify class, const char *event,
                              struct rd_slice key, unsigned db)
{
    struct sessions *sessions = ctx;
    unsigned wanted = sessions->loop->settings.notify_keyspace_events;
    struct rd_slice name = rd_slice_str(event);
    if ((wanted & class) == 0 || nobody_listens(sessions->pubsub))
        return;
    if (wanted & ENGINE_NOTIFY_KEYSPACE)
        pubsub_publish(sessions, PUBSUB_CHANNEL,
                       event_channel(sessions->pubsub, "__keyspace@", db, key), name);
    if (wanted & ENGINE_NOTIFY_KEYEVENT)
        pubsub_publish(sessions, PUBSUB_CHANNEL,
                       event_channel(sessions->pubsub, "__keyevent@", db, name), key);
}
