/* sentinel.c - asks a Sentinel for its masters, replicas and Sentinels, and then the others. */
#include "tools/doctor/sentinel.h"

#include "base/mem.h"
#include "base/num.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>

/* Views that differ are asked for again: a failover may be in progress. */
enum { ATTEMPTS = 4, PAUSE_MS = 500 };

/* ---- fields ---- */

static void copy_text(char *dst, size_t size, struct rd_slice text)
{
    snprintf(dst, size, "%.*s", (int)(text.len < size ? text.len : size),
             text.len > 0 ? (const char *)text.ptr : "");
}

void doctor_instance_set(struct doctor_instance *instance, struct rd_slice name,
                         struct rd_slice value)
{
#define TEXT(word, field)                                                                          \
    {                                                                                              \
        word, offsetof(struct doctor_instance, field), sizeof instance->field                      \
    }
#define NUMBER(word, field)                                                                        \
    {                                                                                              \
        word, offsetof(struct doctor_instance, field), 0                                           \
    }
    static const struct {
        const char *word;
        size_t at, size; /* size 0: a number */
    } fields[] = {TEXT("name", name),
                  TEXT("ip", host),
                  TEXT("runid", id),
                  TEXT("flags", flags),
                  TEXT("notification-script", scripts[0]),
                  TEXT("client-reconfig-script", scripts[1]),
                  NUMBER("port", port),
                  NUMBER("quorum", quorum),
                  NUMBER("config-epoch", config_epoch),
                  NUMBER("down-after-milliseconds", down_after_ms),
                  NUMBER("failover-timeout", failover_timeout_ms),
                  NUMBER("parallel-syncs", parallel_syncs),
                  NUMBER("s-down-time", s_down_ms),
                  NUMBER("slave-priority", priority),
                  NUMBER("master-link-down-time", link_down_ms),
                  NUMBER("info-refresh", info_ms),
                  NUMBER("last-ok-ping-reply", ping_ms)};
#undef TEXT
#undef NUMBER
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char *at = (char *)instance + fields[i].at;
        uint64_t number = 0;
        if (!rd_slice_is(name, fields[i].word))
            continue;
        if (fields[i].size > 0)
            copy_text(at, fields[i].size, value);
        else if (rd_num_get_u64(value, &number))
            memcpy(at, &number, sizeof number);
    }
}

bool doctor_has_flag(const struct doctor_instance *instance, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = instance->flags; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == 0))
            return true;
    }
    return false;
}

/* ---- lists ---- */

static void *grown(void *old, size_t n, size_t size, struct rd_err *err)
{
    char *all = rd_realloc(old, (n + 1) * size);
    if (all == NULL)
        rd_err_nomem(err, (n + 1) * size);
    else
        memset(all + n * size, 0, size);
    return all;
}

struct doctor_instance *doctor_instances_add(struct doctor_instances *list, struct rd_err *err)
{
    struct doctor_instance *all = grown(list->at, list->n, sizeof *all, err);
    if (all == NULL)
        return NULL;
    list->at = all;
    return &all[list->n++];
}

struct doctor_master *doctor_view_add(struct doctor_view *view, struct rd_err *err)
{
    struct doctor_master *all = grown(view->masters, view->n, sizeof *all, err);
    if (all == NULL)
        return NULL;
    view->masters = all;
    return &all[view->n++];
}

const struct doctor_master *doctor_view_find(const struct doctor_view *view, const char *name)
{
    for (size_t i = 0; i < view->n; i++) {
        if (strcmp(view->masters[i].self.name, name) == 0)
            return &view->masters[i];
    }
    return NULL;
}

static void forget(struct doctor_view *view)
{
    for (size_t i = 0; i < view->n; i++) {
        rd_free(view->masters[i].replicas.at);
        rd_free(view->masters[i].sentinels.at);
    }
    rd_free(view->masters);
    view->masters = NULL;
    view->n = 0;
}

/* ---- one Sentinel ---- */

static void set_fields(struct doctor_instance *ret, const struct client_peer_item *item)
{
    for (size_t i = 0; i + 1 < item->n_children; i += 2)
        doctor_instance_set(ret, client_peer_item_at(item, i)->text,
                            client_peer_item_at(item, i + 1)->text);
}

/* SENTINEL WORD [NAME]. The names of subcommands are those that every version has. */
static bool ask_list(struct client_peer *peer, const char *word, const char *name,
                     struct client_peer_reply *reply, struct rd_err *err)
{
    const struct rd_slice argv[] = {rd_slice_str("SENTINEL"), rd_slice_str(word),
                                    rd_slice_str(name != NULL ? name : "")};
    return client_peer_ask_argv(peer, argv, name != NULL ? 3 : 2, reply, err);
}

static bool read_instances(struct doctor_instances *list, struct client_peer *peer,
                           const char *word, const char *name, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = ask_list(peer, word, name, &reply, err);
    for (size_t i = 0; ok && i < reply.items[0].n_children; i++) {
        struct doctor_instance *instance = doctor_instances_add(list, err);
        ok = instance != NULL;
        if (ok)
            set_fields(instance, client_peer_item_at(reply.items, i));
    }
    client_peer_reply_done(&reply);
    return ok;
}

static bool read_masters(struct doctor_view *view, struct client_peer *peer, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = ask_list(peer, "MASTERS", NULL, &reply, err);
    forget(view);
    for (size_t i = 0; ok && i < reply.items[0].n_children; i++) {
        struct doctor_master *m = doctor_view_add(view, err);
        ok = m != NULL;
        if (ok)
            set_fields(&m->self, client_peer_item_at(reply.items, i));
    }
    client_peer_reply_done(&reply);
    for (size_t i = 0; ok && i < view->n; i++) {
        struct doctor_master *m = &view->masters[i];
        ok = read_instances(&m->replicas, peer, "SLAVES", m->self.name, err) &&
             read_instances(&m->sentinels, peer, "SENTINELS", m->self.name, err);
    }
    return ok;
}

/* A Sentinel that does not answer is a fact, not an error. */
static void ask_view(struct doctor_view *view)
{
    struct client_peer *peer = NULL;
    rd_err_reset(&view->why);
    if (client_peer_open(&peer, &view->target, &view->why))
        read_masters(view, peer, &view->why);
    client_peer_close(peer);
    rd_err_origin(&view->why, view->target.name);
}

/* ---- the others ---- */

static bool is_known(const struct doctor_sentinel *s, const struct doctor_instance *instance)
{
    for (size_t i = 0; i < s->n_others; i++) {
        if (s->others[i].target.port == instance->port &&
            strcmp(s->others[i].target.host, instance->host) == 0)
            return true;
    }
    return false;
}

static bool add_other(struct doctor_sentinel *s, const struct client_target *like,
                      const struct doctor_instance *instance, struct rd_err *err)
{
    struct doctor_view *all = grown(s->others, s->n_others, sizeof *all, err);
    if (all == NULL)
        return false;
    s->others = all;
    return client_target_at(&all[s->n_others++].target, like, rd_slice_str(instance->host),
                            instance->port, err);
}

static bool find_others(struct doctor_sentinel *s, const struct client_target *like,
                        struct rd_err *err)
{
    for (size_t i = 0; i < s->own.n; i++) {
        const struct doctor_instances *list = &s->own.masters[i].sentinels;
        for (size_t k = 0; k < list->n; k++) {
            const struct doctor_instance *other = &list->at[k];
            if (other->port == 0 || doctor_has_flag(other, "s_down") || is_known(s, other))
                continue;
            if (!add_other(s, like, other, err))
                return false;
        }
    }
    return true;
}

static bool is_ip(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* A name and an address may be of one server: its id decides. */
bool doctor_masters_differ(const struct doctor_instance *a, const struct doctor_instance *b)
{
    if (a->port == b->port && strcasecmp(a->host, b->host) == 0)
        return false;
    if (a->id[0] != 0 && strcmp(a->id, b->id) == 0)
        return false;
    return a->port != b->port || is_ip(a->host) == is_ip(b->host);
}

static bool settles(const struct doctor_sentinel *s)
{
    for (size_t i = 0; i < s->n_others; i++) {
        for (size_t k = 0; k < s->own.n; k++) {
            const struct doctor_instance *own = &s->own.masters[k].self;
            const struct doctor_master *other = doctor_view_find(&s->others[i], own->name);
            if (other != NULL && (doctor_masters_differ(own, &other->self) ||
                                  own->config_epoch != other->self.config_epoch))
                return true;
        }
    }
    return false;
}

static bool ask_others(struct doctor_sentinel *s, struct client_peer *peer, struct rd_err *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    for (int n = 1;; n++) {
        for (size_t i = 0; i < s->n_others; i++) {
            if (s->others[i].why.code == RD_ERR_OK)
                ask_view(&s->others[i]);
        }
        if (n == ATTEMPTS || !settles(s))
            return true;
        nanosleep(&pause, NULL);
        if (!read_masters(&s->own, peer, err))
            return false;
    }
}

/* The address under which another Sentinel knows this one. */
static void find_own_host(struct doctor_sentinel *s)
{
    for (size_t i = 0; i < s->n_others; i++) {
        for (size_t k = 0; k < s->others[i].n; k++) {
            const struct doctor_instances *list = &s->others[i].masters[k].sentinels;
            for (size_t j = 0; j < list->n; j++) {
                if (s->id[0] != 0 && strcmp(list->at[j].id, s->id) == 0)
                    snprintf(s->host, sizeof s->host, "%s", list->at[j].host);
            }
        }
    }
}

/* SENTINEL MYID exists since 6.2. */
static bool read_id(struct doctor_sentinel *s, struct client_peer *peer, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    struct rd_err why = {0};
    bool ok = client_peer_ask(peer, "SENTINEL MYID", &reply, &why);
    if (ok)
        copy_text(s->id, sizeof s->id, reply.items[0].text);
    client_peer_reply_done(&reply);
    if (ok ||
        (why.code == RD_ERR_PROTOCOL && why.reason.id != CLIENT_REASON_CLOSED && why.sys == 0))
        return true;
    rd_err_adopt(err, &why);
    return false;
}

bool doctor_is_sentinel(const struct doctor *d)
{
    struct rd_slice mode;
    return client_info_find(rd_buf_slice(&d->info), "redis_mode", &mode) &&
           rd_slice_is(mode, "sentinel");
}

bool doctor_ask_sentinel(struct doctor *d, struct client_peer *peer, struct rd_err *err)
{
    struct rd_slice file;
    struct doctor_sentinel *s = d->sentinel = rd_calloc(1, sizeof *s);
    if (s == NULL)
        return rd_err_nomem(err, sizeof *s);
    if (client_info_find(rd_buf_slice(&d->info), "config_file", &file))
        copy_text(s->file, sizeof s->file, file);
    if (!read_id(s, peer, err) || !read_masters(&s->own, peer, err) ||
        !find_others(s, client_peer_target(peer), err) || !ask_others(s, peer, err))
        return false;
    find_own_host(s);
    return true;
}

void doctor_sentinel_done(struct doctor *d)
{
    struct doctor_sentinel *s = d->sentinel;
    if (s == NULL)
        return;
    forget(&s->own);
    for (size_t i = 0; i < s->n_others; i++) {
        forget(&s->others[i]);
        client_target_done(&s->others[i].target);
    }
    rd_free(s->others);
    rd_free(s);
    d->sentinel = NULL;
}
