/* Masters, replicas and Sentinels, and their addresses. */
#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

#include "base/mem.h"
#include "sentinel/sentinel_impl.h"
#include "sentinel/text_impl.h"

/* ---- addresses ---- */

static bool is_ip(const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* Lines of the configuration and of hello messages contain it. */
static bool is_host(struct rd_slice host)
{
    for (size_t i = 0; i < host.len; i++) {
        if (host.ptr[i] <= ' ' || host.ptr[i] >= 127 || strchr(",\"'\\", host.ptr[i]) != NULL)
            return false;
    }
    return host.len > 0 && host.len <= SENTINEL_HOST_MAX;
}

bool sentinel_addr_read(struct sentinel *s, struct rd_slice host, int port, bool must,
                        struct sentinel_addr *ret)
{
    struct sentinel_addr addr = {.port = port};
    if (!is_host(host))
        return false;
    sentinel_text_copy(addr.host, sizeof addr.host, host);
    if (is_ip(addr.host) && host.len <= SENTINEL_IP_MAX) {
        sentinel_text_copy(addr.ip, sizeof addr.ip, host);
    } else if (!s->resolves) {
        return false;
    } else if (!s->opts.resolve(s->opts.ctx, addr.host, addr.ip)) {
        addr.ip[0] = 0;
        if (must)
            return false;
    }
    *ret = addr;
    return true;
}

/* Two names of one host are the same; so are two addresses, which may be of one that moved. */
bool sentinel_addr_same(const struct sentinel *s, const struct sentinel_addr *a,
                        const struct sentinel_addr *b)
{
    if (a->port != b->port)
        return false;
    if (s->resolves && strcasecmp(a->host, b->host) == 0)
        return true;
    return a->ip[0] != 0 && strcmp(a->ip, b->ip) == 0;
}

const char *sentinel_addr_host(const struct sentinel *s, const struct sentinel_addr *a)
{
    return s->announces_names || a->ip[0] == 0 ? a->host : a->ip;
}

const struct sentinel_addr *sentinel_current(const struct sentinel_instance *master)
{
    bool moved = sentinel_is(master, SENTINEL_FLAG_FAILING_OVER) && master->promoted != NULL &&
                 master->step >= SENTINEL_STEP_RECONF;
    return moved ? &master->promoted->addr : &master->addr;
}

/* ---- life ---- */

static void set_defaults(struct sentinel_instance *ri)
{
    struct sentinel *s = ri->s;
    ri->asked_ms = s->now_ms;
    ri->heard_hello_ms = s->now_ms;
    ri->published_ms = s->now_ms;
    ri->role_since_ms = s->now_ms;
    ri->follows_since_ms = s->now_ms;
    ri->role = ri->flags & (SENTINEL_FLAG_MASTER | SENTINEL_FLAG_REPLICA);
    ri->down_after_ms = s->times.default_down_after;
    ri->failover_timeout_ms = s->times.default_failover_timeout;
    ri->parallel_syncs = 1;
    ri->priority = SENTINEL_DEFAULT_PRIORITY;
    ri->announced = true;
}

struct sentinel_instance *sentinel_make(struct sentinel *s, unsigned kind, struct rd_slice name,
                                        const struct sentinel_addr *addr,
                                        struct sentinel_instance *master)
{
    struct sentinel_instance *ri = sentinel_alloc(s, sizeof *ri);
    if (ri == NULL)
        return NULL;
    *ri = (struct sentinel_instance){.s = s, .flags = kind, .addr = *addr, .master = master};
    set_defaults(ri);
    ri->name = sentinel_text_dup(name);
    ri->link = sentinel_link_new(s);
    if (ri->name == NULL || ri->link == NULL) {
        s->no_memory = true;
        sentinel_drop(ri);
        return NULL;
    }
    return ri;
}

static void drop_renames(struct sentinel_instance *ri)
{
    for (size_t i = 0; i < ri->n_renames; i++) {
        rd_free(ri->renames[i].from);
        rd_free(ri->renames[i].to);
    }
    rd_free(ri->renames);
}

void sentinel_drop(struct sentinel_instance *ri)
{
    sentinel_drop_all(&ri->replicas);
    sentinel_drop_all(&ri->sentinels);
    sentinel_link_drop(ri);
    if (ri->master != NULL && ri->master->promoted == ri)
        ri->master->promoted = NULL;
    drop_renames(ri);
    rd_buf_done(&ri->info);
    rd_free(ri->name);
    rd_free(ri->auth_user);
    rd_free(ri->auth_pass);
    rd_free(ri->notification_script);
    rd_free(ri->reconfig_script);
    rd_free(ri);
}

void sentinel_drop_all(struct sentinel_list *list)
{
    while (list->n > 0)
        sentinel_drop(list->at[--list->n]);
    rd_free(list->at);
    *list = (struct sentinel_list){0};
}

/* ---- replicas ---- */

struct sentinel_instance *sentinel_find_replica(const struct sentinel_instance *master,
                                                const struct sentinel_addr *addr)
{
    for (size_t i = 0; i < master->replicas.n; i++) {
        if (sentinel_addr_same(master->s, &master->replicas.at[i]->addr, addr))
            return master->replicas.at[i];
    }
    return NULL;
}

struct sentinel_instance *sentinel_add_replica(struct sentinel_instance *master,
                                               const struct sentinel_addr *addr)
{
    struct sentinel *s = master->s;
    char name[SENTINEL_HOST_MAX + 16];
    const char *host = sentinel_addr_host(s, addr);
    if (sentinel_find_replica(master, addr) != NULL)
        return NULL;
    bool ip6 = strchr(host, ':') != NULL;
    snprintf(name, sizeof name, ip6 ? "[%s]:%d" : "%s:%d", host, addr->port);
    struct sentinel_instance *ri =
        sentinel_make(s, SENTINEL_FLAG_REPLICA, rd_slice_str(name), addr, master);
    if (ri != NULL && !sentinel_add_to(s, &master->replicas, ri)) {
        sentinel_drop(ri);
        return NULL;
    }
    return ri;
}

/* ---- Sentinels ---- */

struct sentinel_instance *sentinel_find_sentinel(const struct sentinel_instance *master,
                                                 struct rd_slice id)
{
    for (size_t i = 0; i < master->sentinels.n; i++) {
        if (rd_slice_is(id, master->sentinels.at[i]->run_id))
            return master->sentinels.at[i];
    }
    return NULL;
}

struct sentinel_instance *sentinel_add_sentinel(struct sentinel_instance *master,
                                                struct rd_slice id,
                                                const struct sentinel_addr *addr)
{
    struct sentinel *s = master->s;
    struct sentinel_instance *ri = sentinel_make(s, SENTINEL_FLAG_SENTINEL, id, addr, master);
    if (ri == NULL)
        return NULL;
    sentinel_text_copy(ri->run_id, sizeof ri->run_id, id);
    if (!sentinel_add_to(s, &master->sentinels, ri)) {
        sentinel_drop(ri);
        return NULL;
    }
    sentinel_link_share(ri);
    return ri;
}

/* ---- another server is the master ---- */

static void forget_server(struct sentinel_instance *master)
{
    struct sentinel *s = master->s;
    struct sentinel_link *fresh = sentinel_link_new(s);
    if (fresh == NULL)
        return;
    sentinel_link_drop(master);
    master->link = fresh;
    master->flags = SENTINEL_FLAG_MASTER;
    master->leader[0] = 0;
    master->step = SENTINEL_STEP_NONE;
    master->step_since_ms = 0;
    master->failover_ms = 0;
    master->promoted = NULL;
    master->run_id[0] = 0;
    master->role = SENTINEL_FLAG_MASTER;
    master->role_since_ms = s->now_ms;
    master->info_ms = 0;
    master->info_waits = false;
    master->s_down_since_ms = 0;
    master->o_down_since_ms = 0;
    rd_buf_reset(&master->info);
}

void sentinel_reset_master(struct sentinel_instance *master, bool keep_sentinels)
{
    sentinel_drop_all(&master->replicas);
    if (!keep_sentinels)
        sentinel_drop_all(&master->sentinels);
    forget_server(master);
}

static void add_moved(struct sentinel_instance *master, const struct sentinel_addr *addr)
{
    if (sentinel_addr_same(master->s, addr, &master->addr))
        return;
    struct sentinel_instance *ri = sentinel_add_replica(master, addr);
    if (ri != NULL)
        sentinel_event(master->s, SENTINEL_LEVEL_NOTICE, "+slave", ri, "%s", "");
}

void sentinel_move_master(struct sentinel_instance *master, const struct sentinel_addr *to)
{
    const struct sentinel_addr from = master->addr, there = *to; /* to is of a replica */
    struct sentinel_list old = master->replicas;
    master->replicas = (struct sentinel_list){0};
    sentinel_reset_master(master, true);
    master->addr = there;
    for (size_t i = 0; i < old.n; i++)
        add_moved(master, &old.at[i]->addr);
    add_moved(master, &from);
    sentinel_drop_all(&old);
    sentinel_save(master->s);
}
