/* What hello messages of other Sentinels change. */
#include <stdio.h>

#include "sentinel/sentinel_impl.h"
#include "sentinel/text_impl.h"

void sentinel_note_epoch(struct sentinel_instance *m, uint64_t epoch)
{
    struct sentinel *s = m->s;
    if (epoch <= s->epoch)
        return;
    s->epoch = epoch;
    sentinel_save(s);
    sentinel_event_plain(s, SENTINEL_LEVEL_WARNING, "+new-epoch", m, "%llu",
                         (unsigned long long)epoch);
}

/* A Sentinel has another address: for all masters that it watches, which share one link. */
static void move_sentinel(struct sentinel_instance *moved, const struct sentinel_addr *addr)
{
    struct sentinel *s = moved->s;
    unsigned more = 0;
    sentinel_event(s, SENTINEL_LEVEL_NOTICE, "+sentinel-address-switch", moved->master,
                   " ip %s port %d for %s", sentinel_addr_host(s, addr), addr->port, moved->run_id);
    for (size_t i = 0; i < s->masters.n; i++) {
        struct sentinel_instance *ri =
            sentinel_find_sentinel(s->masters.at[i], rd_slice_str(moved->run_id));
        if (ri == NULL)
            continue;
        ri->addr = *addr;
        sentinel_link_cut_both(s, ri->link);
        more += ri != moved;
    }
    if (more > 0)
        sentinel_event(s, SENTINEL_LEVEL_NOTICE, "+sentinel-address-update", moved,
                       " %u additional matching instances", more);
}

static void forget_sentinel(struct sentinel *s, const char *id)
{
    for (size_t i = 0; i < s->masters.n; i++) {
        struct sentinel_instance *m = s->masters.at[i];
        struct sentinel_instance *ri = sentinel_find_sentinel(m, rd_slice_str(id));
        if (ri == NULL)
            continue;
        sentinel_take_from(&m->sentinels, ri);
        sentinel_drop(ri);
    }
}

/* Another Sentinel had the address of a new one: it has been replaced, or announces itself soon. */
static void take_address(struct sentinel_instance *m, const struct sentinel_addr *addr)
{
    struct sentinel *s = m->s;
    char id[SENTINEL_ID_LEN + 1];
    for (size_t i = 0; i < m->sentinels.n; i++) {
        struct sentinel_instance *ri = m->sentinels.at[i];
        if (!sentinel_addr_same(s, &ri->addr, addr))
            continue;
        sentinel_event(s, SENTINEL_LEVEL_NOTICE, "+sentinel-invalid-addr", ri, "%s", "");
        snprintf(id, sizeof id, "%s", ri->run_id);
        forget_sentinel(s, id);
        return;
    }
}

static struct sentinel_instance *meet(struct sentinel_instance *m,
                                      const struct sentinel_hello *hello,
                                      const struct sentinel_addr *addr)
{
    struct sentinel *s = m->s;
    struct sentinel_instance *ri = sentinel_find_sentinel(m, hello->id);
    if (ri != NULL && sentinel_addr_same(s, &ri->addr, addr))
        return ri;
    if (ri != NULL) {
        move_sentinel(ri, addr);
    } else {
        take_address(m, addr);
        ri = sentinel_add_sentinel(m, hello->id, addr);
        if (ri == NULL)
            return NULL;
        sentinel_event(s, SENTINEL_LEVEL_NOTICE, "+sentinel", ri, "%s", "");
    }
    sentinel_save(s);
    return ri;
}

/* A failover that another Sentinel has made is newer than what is known here, and than a failover
 * that is in progress here: if that one went on, two masters would have the same epoch. */
static void follow_failover(struct sentinel_instance *m, struct sentinel_instance *from,
                            const struct sentinel_hello *hello)
{
    struct sentinel *s = m->s;
    struct sentinel_addr to;
    if (hello->master_epoch <= m->config_epoch || hello->master_port == 0 ||
        !sentinel_addr_read(s, hello->master_host, hello->master_port, true, &to))
        return;
    const struct sentinel_addr old = *sentinel_current(m);
    bool late =
        sentinel_is(m, SENTINEL_FLAG_FAILING_OVER) && m->failover_epoch <= hello->master_epoch;
    bool moved = !sentinel_addr_same(s, &to, &old);
    m->config_epoch = hello->master_epoch;
    if (!moved && !late) {
        sentinel_save(s);
        return;
    }
    sentinel_event(s, SENTINEL_LEVEL_WARNING, "+config-update-from", from, "%s", "");
    if (moved) {
        sentinel_event_plain(s, SENTINEL_LEVEL_WARNING, "+switch-master", m, "%s %s %d %s %d",
                             m->name, sentinel_addr_host(s, &old), old.port,
                             sentinel_addr_host(s, &to), to.port);
        sentinel_tell_clients(m, false, &old, &to);
    }
    sentinel_move_master(m, &to);
}

void sentinel_on_hello(struct sentinel *s, struct rd_slice text)
{
    struct sentinel_hello hello;
    struct sentinel_addr addr;
    struct sentinel_instance *from = NULL;
    if (!sentinel_hello_read(text, &hello) || rd_slice_is(hello.id, s->id))
        return;
    struct sentinel_instance *m = sentinel_find(s, hello.name);
    if (m == NULL)
        return;
    if (sentinel_addr_read(s, hello.host, hello.port, true, &addr))
        from = meet(m, &hello, &addr);
    if (hello.epoch > s->epoch)
        m->epoch_heard_ms = s->now_ms;
    sentinel_note_epoch(m, hello.epoch); /* also of one whose address cannot be found */
    if (from == NULL)
        return;
    sentinel_note_epoch(m, hello.master_epoch); /* not greater, unless it was edited by hand */
    follow_failover(m, from, &hello);
    from->heard_hello_ms = s->now_ms;
}

void sentinel_hello(struct sentinel *s, struct rd_slice text)
{
    sentinel_on_hello(s, text);
}
