/* The regular work: connecting, asking, and what is down. */
#include <stdio.h>

#include "sentinel/sentinel_impl.h"

enum {
    TICKS_A_SECOND = 10, /* at least; at most twice as many */
    SAVE_RETRY_MS = 1000,
    REPLICA_INFO_MS = 1000 /* between two INFO to a replica that may be promoted soon */
};

static int64_t down_after(const struct sentinel_instance *ri)
{
    return sentinel_master_of(ri)->down_after_ms;
}

/* ---- what is sent again and again ---- */

static int64_t info_period(const struct sentinel_instance *ri)
{
    bool soon = sentinel_is(ri, SENTINEL_FLAG_REPLICA) &&
                (sentinel_is(ri->master, SENTINEL_FLAG_O_DOWN | SENTINEL_FLAG_FAILING_OVER) ||
                 ri->link_down_ms != 0);
    int64_t normal = ri->s->times.info_period;
    return soon && normal > REPLICA_INFO_MS ? REPLICA_INFO_MS : normal;
}

static void ask_info(struct sentinel_instance *ri)
{
    static const char *const words[] = {"INFO"};
    bool due = ri->info_ms == 0 || ri->s->now_ms - ri->info_ms > info_period(ri);
    if (!sentinel_is(ri, SENTINEL_FLAG_SENTINEL) && due && !ri->info_waits)
        ri->info_waits = sentinel_send(ri, SENTINEL_SENT_INFO, 1, words);
}

static void ask_ping(struct sentinel_instance *ri)
{
    int64_t period = ri->s->times.ping_period, now_ms = ri->s->now_ms;
    if (period > down_after(ri))
        period = down_after(ri);
    if (now_ms - ri->link->pong_ms > period && now_ms - ri->link->ping_ms > period / 2)
        sentinel_send_ping(ri);
}

bool sentinel_say_hello(struct sentinel_instance *ri)
{
    struct sentinel *s = ri->s;
    const struct sentinel_instance *m = sentinel_master_of(ri);
    const struct sentinel_addr *addr = sentinel_current(m);
    const char *host = s->announce_ip != NULL ? s->announce_ip : ri->link->own_ip;
    struct sentinel_hello hello = {.host = rd_slice_str(host),
                                   .port = s->announce_port != 0 ? s->announce_port : s->opts.port,
                                   .id = rd_slice_str(s->id),
                                   .epoch = s->epoch,
                                   .name = rd_slice_str(m->name),
                                   .master_host = rd_slice_str(sentinel_addr_host(s, addr)),
                                   .master_port = addr->port,
                                   .master_epoch = m->config_epoch};
    struct rd_buf text = {0};
    bool ok = sentinel_hello_write(&hello, &text) && rd_buf_add_byte(&text, 0);
    s->no_memory |= !ok;
    const char *const words[] = {"PUBLISH", "__sentinel__:hello", (const char *)text.ptr};
    ok = ok && sentinel_send(ri, SENTINEL_SENT_HELLO, 3, words);
    if (ok)
        ri->publishing_ms = s->now_ms;
    rd_buf_done(&text);
    return ok;
}

/* A message without an answer is repeated, but not in every tick. */
static void publish(struct sentinel_instance *ri)
{
    const struct sentinel *s = ri->s;
    if (s->now_ms - ri->published_ms > s->times.publish_period &&
        s->now_ms - ri->publishing_ms > s->times.publish_period / 2)
        sentinel_say_hello(ri);
}

static void soon(struct sentinel_instance *ri)
{
    int64_t due_ms = ri->s->now_ms - ri->s->times.publish_period - 1;
    if (ri->published_ms > due_ms)
        ri->published_ms = due_ms;
    ri->publishing_ms = 0;
}

void sentinel_publish_soon(struct sentinel_instance *master)
{
    soon(master);
    for (size_t i = 0; i < master->replicas.n; i++)
        soon(master->replicas.at[i]);
    for (size_t i = 0; i < master->sentinels.n; i++)
        soon(master->sentinels.at[i]);
}

static void send_regular(struct sentinel_instance *ri)
{
    if (!sentinel_link_up(ri))
        return;
    ask_info(ri);
    ask_ping(ri);
    publish(ri);
}

/* ---- subjectively down ---- */

/* Nobody answers. */
static bool connects_too_long(const struct sentinel_instance *ri, const struct sentinel_conn *conn)
{
    int64_t max_ms = down_after(ri) / 2;
    if (max_ms < ri->s->times.ping_period)
        max_ms = ri->s->times.ping_period;
    return conn->id != 0 && !conn->up && ri->s->now_ms - conn->since_ms > max_ms;
}

/* A connection over which nothing comes may be half dead. */
static void drop_dead(struct sentinel_instance *ri)
{
    const struct sentinel *s = ri->s;
    struct sentinel_link *link = ri->link;
    int64_t half = down_after(ri) / 2;
    if (connects_too_long(ri, &link->cmd))
        sentinel_link_cut(ri->s, &link->cmd);
    if (connects_too_long(ri, &link->pubsub))
        sentinel_link_cut(ri->s, &link->pubsub);
    if (link->cmd.id != 0 && s->now_ms - link->cmd.since_ms > s->times.min_link_reconnect_period &&
        link->waits_since_ms != 0 && s->now_ms - link->waits_since_ms > half &&
        s->now_ms - link->pong_ms > half)
        sentinel_link_cut(ri->s, &link->cmd);
    if (link->pubsub.id != 0 &&
        s->now_ms - link->pubsub.since_ms > s->times.min_link_reconnect_period &&
        s->now_ms - link->heard_ms > s->times.publish_period * 3)
        sentinel_link_cut(ri->s, &link->pubsub);
}

static int64_t silent_ms(const struct sentinel_instance *ri)
{
    const struct sentinel_link *link = ri->link;
    if (link->waits_since_ms != 0)
        return ri->s->now_ms - link->waits_since_ms;
    return link->cmd.up ? 0 : ri->s->now_ms - link->available_ms;
}

bool sentinel_is_silent(const struct sentinel_instance *ri)
{
    return silent_ms(ri) > down_after(ri);
}

/* A master that reports to be a replica, and does not become a master again. */
static bool is_demoted(const struct sentinel_instance *ri)
{
    return sentinel_is(ri, SENTINEL_FLAG_MASTER) && ri->role == SENTINEL_FLAG_REPLICA &&
           ri->s->now_ms - ri->role_since_ms > down_after(ri) + ri->s->times.info_period * 2;
}

static void check_down(struct sentinel_instance *ri)
{
    struct sentinel *s = ri->s;
    drop_dead(ri);
    bool down = sentinel_is_silent(ri) || is_demoted(ri) ||
                (sentinel_is(ri, SENTINEL_FLAG_REBOOTED) &&
                 s->now_ms - ri->rebooted_ms > ri->reboot_down_after_ms);
    if (down && !sentinel_is(ri, SENTINEL_FLAG_S_DOWN)) {
        ri->s_down_since_ms = s->now_ms;
        ri->flags |= SENTINEL_FLAG_S_DOWN;
        sentinel_event(s, SENTINEL_LEVEL_WARNING, "+sdown", ri, "%s", "");
    } else if (!down && sentinel_is(ri, SENTINEL_FLAG_S_DOWN)) {
        ri->flags &= ~(unsigned)(SENTINEL_FLAG_S_DOWN | SENTINEL_FLAG_KILL_SENT);
        sentinel_event(s, SENTINEL_LEVEL_WARNING, "-sdown", ri, "%s", "");
    }
}

bool sentinel_down_for(const struct sentinel_instance *ri, int64_t ms)
{
    int64_t since =
        ri->s_down_since_ms > ri->o_down_since_ms ? ri->s_down_since_ms : ri->o_down_since_ms;
    return since == 0 || ri->s->now_ms - since > ms;
}

/* ---- objectively down ---- */

static void check_objectively(struct sentinel_instance *m)
{
    struct sentinel *s = m->s;
    unsigned n = 0;
    if (sentinel_is(m, SENTINEL_FLAG_S_DOWN)) {
        n = 1;
        for (size_t i = 0; i < m->sentinels.n; i++)
            n += sentinel_is(m->sentinels.at[i], SENTINEL_FLAG_MASTER_DOWN);
    }
    bool down = n >= m->quorum;
    if (down && !sentinel_is(m, SENTINEL_FLAG_O_DOWN)) {
        sentinel_event(s, SENTINEL_LEVEL_WARNING, "+odown", m, " #quorum %u/%u", n, m->quorum);
        m->flags |= SENTINEL_FLAG_O_DOWN;
        m->o_down_since_ms = s->now_ms;
    } else if (!down && sentinel_is(m, SENTINEL_FLAG_O_DOWN)) {
        sentinel_event(s, SENTINEL_LEVEL_WARNING, "-odown", m, "%s", "");
        m->flags &= ~(unsigned)SENTINEL_FLAG_O_DOWN;
    }
}

/* ---- a tick ---- */

static void handle(struct sentinel_instance *ri)
{
    sentinel_link_connect(ri);
    send_regular(ri);
    if (!ri->s->tilt)
        check_down(ri);
}

static void handle_list(struct sentinel_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        handle(list->at[i]);
}

static void handle_master(struct sentinel_instance *m)
{
    handle(m);
    if (!m->s->tilt) {
        check_objectively(m);
        if (sentinel_failover_due(m)) {
            sentinel_failover_begin(m);
            sentinel_ask_others(m, true);
        }
        sentinel_failover_step(m);
        sentinel_ask_others(m, false);
    }
    handle_list(&m->replicas);
    handle_list(&m->sentinels);
    if (m->step == SENTINEL_STEP_UPDATE)
        sentinel_failover_finish(m);
}

/* The process did not run, or the clock was set: what is known of times is wrong. */
static void check_tilt(struct sentinel *s)
{
    int64_t passed = s->now_ms - s->ticked_ms;
    bool jumped = s->ticked_ms != 0 && (s->set_back || passed > s->times.tilt_trigger);
    s->ticked_ms = s->now_ms;
    s->set_back = false;
    if (jumped) {
        s->tilt = true;
        s->tilt_ms = s->now_ms;
        sentinel_event_plain(s, SENTINEL_LEVEL_WARNING, "+tilt", NULL, "%s", "#tilt mode entered");
    } else if (s->tilt && s->now_ms - s->tilt_ms >= s->times.tilt_period) {
        s->tilt = false;
        sentinel_event_plain(s, SENTINEL_LEVEL_WARNING, "-tilt", NULL, "%s", "#tilt mode exited");
    }
}

uint64_t sentinel_tick(struct sentinel *s, int64_t now_ms)
{
    sentinel_clock(s, now_ms);
    check_tilt(s);
    if (s->unsaved && s->now_ms - s->save_tried_ms >= SAVE_RETRY_MS)
        sentinel_save(s);
    for (size_t i = 0; i < s->masters.n; i++)
        handle_master(s->masters.at[i]);
    sentinel_scripts_tick(s);
    return 1000 / (TICKS_A_SECOND + sentinel_random(s, TICKS_A_SECOND));
}
