/* Connections, and the commands that wait for a reply on them. */
#include <stdio.h>
#include <strings.h>

#include "base/mem.h"
#include "sentinel/sentinel_impl.h"
#include "sentinel/text_impl.h"

/* ---- life ---- */

struct sentinel_link *sentinel_link_new(struct sentinel *s)
{
    struct sentinel_link *link = sentinel_alloc(s, sizeof *link);
    if (link == NULL)
        return NULL;
    link->refs = 1;
    link->waits_since_ms = s->now_ms;
    link->pong_ms = s->now_ms;
    link->available_ms = s->now_ms;
    link->heard_ms = s->now_ms;
    return link;
}

void sentinel_link_cut(struct sentinel *s, struct sentinel_conn *conn)
{
    if (conn->id != 0)
        sentinel_act(s, &(struct sentinel_action){.kind = SENTINEL_CLOSE, .conn = conn->id});
    for (size_t i = 0; i < conn->n_pending; i++) {
        const struct sentinel_pending *p = &conn->pending[(conn->first + i) % conn->cap];
        if (p->of != NULL && p->what == SENTINEL_SENT_INFO)
            p->of->info_waits = false;
    }
    conn->id = 0;
    conn->up = false;
    conn->first = conn->n_pending = 0;
}

void sentinel_link_cut_both(struct sentinel *s, struct sentinel_link *link)
{
    sentinel_link_cut(s, &link->cmd);
    sentinel_link_cut(s, &link->pubsub);
}

/* Replies to its commands are still counted. */
static void leave(struct sentinel_instance *ri)
{
    struct sentinel_conn *conn = &ri->link->cmd;
    for (size_t i = 0; i < conn->n_pending; i++) {
        struct sentinel_pending *p = &conn->pending[(conn->first + i) % conn->cap];
        if (p->of == ri)
            p->of = NULL;
    }
    ri->link->refs--;
}

void sentinel_link_drop(struct sentinel_instance *ri)
{
    struct sentinel_link *link = ri->link;
    if (link == NULL)
        return;
    leave(ri);
    ri->link = NULL;
    if (link->refs > 0)
        return;
    sentinel_link_cut_both(ri->s, link);
    rd_free(link->cmd.pending);
    rd_free(link->pubsub.pending);
    rd_free(link);
}

void sentinel_link_share(struct sentinel_instance *ri)
{
    struct sentinel *s = ri->s;
    for (size_t i = 0; i < s->masters.n; i++) {
        if (s->masters.at[i] == ri->master)
            continue;
        struct sentinel_instance *twin =
            sentinel_find_sentinel(s->masters.at[i], rd_slice_str(ri->run_id));
        if (twin == NULL)
            continue;
        sentinel_link_drop(ri);
        ri->link = twin->link;
        ri->link->refs++;
        return;
    }
}

/* ---- commands ---- */

static bool push(struct sentinel *s, struct sentinel_conn *conn, enum sentinel_sent what,
                 struct sentinel_instance *of)
{
    if (conn->n_pending == conn->cap) {
        size_t cap = conn->cap * 2 + 16;
        struct sentinel_pending *grown = sentinel_alloc(s, cap * sizeof *grown);
        if (grown == NULL)
            return false;
        for (size_t i = 0; i < conn->n_pending; i++)
            grown[i] = conn->pending[(conn->first + i) % conn->cap];
        rd_free(conn->pending);
        conn->pending = grown;
        conn->first = 0;
        conn->cap = cap;
    }
    conn->pending[(conn->first + conn->n_pending++) % conn->cap] =
        (struct sentinel_pending){what, of};
    return true;
}

enum { WORDS_MAX = 8 };

/* rename-command of the master, for its servers. */
static const char *renamed(const struct sentinel_instance *ri, const char *word)
{
    const struct sentinel_instance *m = sentinel_master_of(ri);
    for (size_t i = 0; i < m->n_renames && !sentinel_is(ri, SENTINEL_FLAG_SENTINEL); i++) {
        if (strcasecmp(m->renames[i].from, word) == 0)
            return m->renames[i].to;
    }
    return word;
}

static bool send_on(struct sentinel_instance *ri, struct sentinel_conn *conn,
                    enum sentinel_sent what, size_t n, const char *const *words)
{
    struct rd_slice argv[WORDS_MAX];
    struct sentinel *s = ri->s;
    if (!conn->up || conn->n_pending >= (size_t)SENTINEL_PENDING_MAX * ri->link->refs ||
        !push(s, conn, what, ri))
        return false;
    for (size_t i = 0; i < n; i++)
        argv[i] = rd_slice_str(i == 0 ? renamed(ri, words[0]) : words[i]);
    sentinel_act(s, &(struct sentinel_action){
                        .kind = SENTINEL_SEND, .conn = conn->id, .argv = argv, .argc = n});
    return true;
}

bool sentinel_send(struct sentinel_instance *ri, enum sentinel_sent what, size_t n,
                   const char *const *words)
{
    return send_on(ri, &ri->link->cmd, what, n, words);
}

bool sentinel_send_ping(struct sentinel_instance *ri)
{
    static const char *const words[] = {"PING"};
    if (!sentinel_send(ri, SENTINEL_SENT_PING, 1, words))
        return false;
    ri->link->ping_ms = ri->s->now_ms;
    if (ri->link->waits_since_ms == 0)
        ri->link->waits_since_ms = ri->s->now_ms;
    return true;
}

/* In one transaction: a server that ends in between must not come back as what it was before, and
 * its clients must ask for the new master. */
bool sentinel_send_follow(struct sentinel_instance *ri, const struct sentinel_addr *addr)
{
    char port[16];
    snprintf(port, sizeof port, "%d", addr != NULL ? addr->port : 0);
    const char *const host = addr != NULL ? sentinel_addr_host(ri->s, addr) : "NO";
    const char *const calls[][4] = {{"MULTI"},
                                    {"SLAVEOF", host, addr != NULL ? port : "ONE"},
                                    {"CONFIG", "REWRITE"},
                                    {"CLIENT", "KILL", "TYPE", "normal"},
                                    {"CLIENT", "KILL", "TYPE", "pubsub"},
                                    {"EXEC"}};
    static const size_t counts[] = {1, 3, 2, 4, 4, 1};
    enum { CALLS = sizeof counts / sizeof *counts };
    if (ri->link->cmd.n_pending + CALLS > SENTINEL_PENDING_MAX)
        return false;
    for (size_t i = 0; i < CALLS; i++) {
        if (!sentinel_send(ri, SENTINEL_SENT_OTHER, counts[i], calls[i]))
            return false;
    }
    return true;
}

/* ---- connecting ---- */

static void open_conn(struct sentinel_instance *ri, struct sentinel_conn *conn)
{
    struct sentinel *s = ri->s;
    conn->id = ++s->next_conn;
    conn->up = false;
    conn->since_ms = s->now_ms;
    sentinel_act(
        s, &(struct sentinel_action){.kind = SENTINEL_CONNECT,
                                     .conn = conn->id,
                                     .host = ri->addr.ip,
                                     .port = ri->addr.port,
                                     .pubsub = conn == &ri->link->pubsub,
                                     .for_sentinel = sentinel_is(ri, SENTINEL_FLAG_SENTINEL)});
}

/* An address that a name has lost is looked up again: a container may come back with another. */
static bool find_address(struct sentinel_instance *ri)
{
    struct sentinel *s = ri->s;
    struct sentinel_addr fresh;
    bool lost = ri->addr.ip[0] == 0 || sentinel_is(ri, SENTINEL_FLAG_S_DOWN);
    if (lost && s->resolves && strcmp(ri->addr.host, ri->addr.ip) != 0 &&
        sentinel_addr_read(s, rd_slice_str(ri->addr.host), ri->addr.port, true, &fresh))
        ri->addr = fresh;
    return ri->addr.ip[0] != 0;
}

void sentinel_link_connect(struct sentinel_instance *ri)
{
    struct sentinel_link *link = ri->link;
    bool wants_pubsub = !sentinel_is(ri, SENTINEL_FLAG_SENTINEL);
    bool complete = link->cmd.id != 0 && (!wants_pubsub || link->pubsub.id != 0);
    if (complete || ri->addr.port == 0 ||
        (link->tried_ms != 0 && ri->s->now_ms - link->tried_ms < ri->s->times.ping_period))
        return;
    link->tried_ms = ri->s->now_ms;
    if (!find_address(ri))
        return;
    if (link->cmd.id == 0)
        open_conn(ri, &link->cmd);
    if (wants_pubsub && link->pubsub.id == 0)
        open_conn(ri, &link->pubsub);
}

/* ---- reports of the caller ---- */

static struct sentinel_conn *conn_of(struct sentinel_instance *ri, uint64_t id)
{
    if (ri->link->cmd.id == id)
        return &ri->link->cmd;
    return ri->link->pubsub.id == id ? &ri->link->pubsub : NULL;
}

static struct sentinel_conn *conn_in(const struct sentinel_list *list, uint64_t id,
                                     struct sentinel_instance **ret)
{
    struct sentinel_conn *conn = NULL;
    for (size_t i = 0; i < list->n && conn == NULL; i++) {
        conn = conn_of(list->at[i], id);
        *ret = list->at[i];
    }
    return conn;
}

static struct sentinel_conn *find_conn(struct sentinel *s, uint64_t id,
                                       struct sentinel_instance **ret)
{
    struct sentinel_conn *conn = id == 0 ? NULL : conn_in(&s->masters, id, ret);
    for (size_t i = 0; i < s->masters.n && conn == NULL && id != 0; i++) {
        conn = conn_in(&s->masters.at[i]->replicas, id, ret);
        if (conn == NULL)
            conn = conn_in(&s->masters.at[i]->sentinels, id, ret);
    }
    return conn;
}

static void authenticate(struct sentinel_instance *ri, struct sentinel_conn *conn)
{
    const struct sentinel *s = ri->s;
    const struct sentinel_instance *m = sentinel_master_of(ri);
    bool to_sentinel = sentinel_is(ri, SENTINEL_FLAG_SENTINEL);
    bool shared = to_sentinel && s->password == NULL; /* the user `default` has this password */
    const char *user = to_sentinel ? s->user : m->auth_user;
    const char *password = to_sentinel ? s->password : m->auth_pass;
    if (shared) {
        user = NULL;
        password = s->opts.password != NULL && s->opts.password[0] != 0 ? s->opts.password : NULL;
    }
    const char *const full[] = {"AUTH", user, password}, *const plain[] = {"AUTH", password};
    if (password != NULL)
        send_on(ri, conn, SENTINEL_SENT_OTHER, user != NULL ? 3 : 2, user != NULL ? full : plain);
}

static void introduce(struct sentinel_instance *ri, struct sentinel_conn *conn, const char *kind)
{
    char name[64];
    snprintf(name, sizeof name, "sentinel-%.8s-%s", ri->s->id, kind);
    const char *const words[] = {"CLIENT", "SETNAME", name};
    send_on(ri, conn, SENTINEL_SENT_OTHER, 3, words);
}

void sentinel_connected(struct sentinel *s, uint64_t id, const char *own_ip)
{
    static const char *const subscribe[] = {"SUBSCRIBE", "__sentinel__:hello"};
    struct sentinel_instance *ri;
    struct sentinel_conn *conn = find_conn(s, id, &ri);
    if (conn == NULL || conn->up)
        return;
    bool pubsub = conn == &ri->link->pubsub;
    conn->up = true;
    conn->since_ms = s->now_ms;
    authenticate(ri, conn);
    introduce(ri, conn, pubsub ? "pubsub" : "cmd");
    if (pubsub) {
        ri->link->heard_ms = s->now_ms;
        send_on(ri, conn, SENTINEL_SENT_OTHER, 2, subscribe);
    } else {
        sentinel_text_copy(ri->link->own_ip, sizeof ri->link->own_ip, rd_slice_str(own_ip));
        sentinel_send_ping(ri);
    }
}

void sentinel_closed(struct sentinel *s, uint64_t id)
{
    struct sentinel_instance *ri;
    struct sentinel_conn *conn = find_conn(s, id, &ri);
    if (conn == NULL)
        return;
    conn->id = 0; /* the caller knows */
    sentinel_link_cut(s, conn);
}

static bool take(struct sentinel_conn *conn, struct sentinel_pending *ret)
{
    if (conn->n_pending == 0)
        return false;
    *ret = conn->pending[conn->first];
    conn->first = (conn->first + 1) % conn->cap;
    conn->n_pending--;
    return true;
}

static void on_info(struct sentinel_instance *ri, const struct sentinel_reply *reply)
{
    ri->info_waits = false;
    if (reply->type == '$')
        sentinel_on_info(ri, reply->text);
}

void sentinel_replied(struct sentinel *s, uint64_t id, const struct sentinel_reply *reply)
{
    struct sentinel_instance *ri;
    struct sentinel_pending pending;
    struct sentinel_conn *conn = find_conn(s, id, &ri);
    if (conn == NULL || !take(conn, &pending))
        return;
    if (pending.what == SENTINEL_SENT_PING)
        sentinel_on_pong(ri, reply);
    else if (pending.of == NULL)
        return;
    else if (pending.what == SENTINEL_SENT_INFO)
        on_info(pending.of, reply);
    else if (pending.what == SENTINEL_SENT_HELLO && reply->type != '-')
        pending.of->published_ms = s->now_ms;
    else if (pending.what == SENTINEL_SENT_ASK)
        sentinel_on_answer(pending.of, reply);
}

void sentinel_message(struct sentinel *s, uint64_t id, struct rd_slice text)
{
    struct sentinel_instance *ri;
    struct sentinel_conn *conn = find_conn(s, id, &ri);
    if (conn == NULL || conn != &ri->link->pubsub)
        return;
    ri->link->heard_ms = s->now_ms;
    sentinel_on_hello(s, text);
}
