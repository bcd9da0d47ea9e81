#include "server/durable/replication/replication.h"

#include <stdio.h>
#include <sys/random.h>

#include "base/digest.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/admit.h"
#include "engine/snapshot.h"
#include "server/loop/daemon.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication_impl.h"

enum { TICK_MS = 1000, FAILOVER_TICK_MS = 100 };

struct repl_replid replication_fresh_id(void)
{
    uint8_t random[REPL_REPLID_LEN / 2];
    struct repl_replid id = {{0}};
    if (getrandom(random, sizeof random, 0) != sizeof random)
        log_panic("the system provides no random numbers for a replication ID");
    rd_digest_hex(id.hex, rd_slice(random, sizeof random));
    return id;
}

void replication_no_memory(void)
{
    log_panic("out of memory");
}

void replication_init(struct durable *durable)
{
    struct repl_replid id = replication_fresh_id();
    const struct repl_master_opts opts = {.backlog_size =
                                              durable->loop->settings.repl_backlog_size};
    struct replication *r = rd_calloc(1, sizeof *r);
    if (r == NULL || !repl_master_new(&r->master, &opts, &id, NULL))
        replication_no_memory();
    durable->replication = r;
}

void replication_leave(struct durable *durable)
{
    link_free(durable->replication->link);
    durable->replication->link = NULL;
}

void replication_free(struct durable *durable)
{
    struct replication *r = durable->replication;
    if (r == NULL)
        return;
    repl_master_free(r->master);
    rd_free(r->failover.host);
    rd_free(r);
}

void replication_start(struct durable *durable)
{
    const struct settings *s = &durable->loop->settings;
    if (s->replicaof_host == NULL || replication_is_replica(durable))
        return;
    durable->replication->link = link_new(durable, s->replicaof_host, (int)s->replicaof_port);
    durable->replication->link->has_place = durable->replication->master->backlog != NULL;
    durable->replication->link->db = durable->replication->master->db; /* of the snapshot */
    replication_settings_changed(durable);
    link_connect(durable->replication->link);
}

void replication_settings_changed(struct durable *durable)
{
    struct engine_config *config = engine_config(durable->sessions->engine);
    bool replica = replication_is_replica(durable);
    config->replica = replica;
    log_role(replica ? 'S' : 'M');
    if (replica && durable->loop->settings.replica_ignore_maxmemory)
        config->maxmemory = 0;
    else
        config->maxmemory = durable->loop->settings.maxmemory;
    repl_master_set_size(durable->replication->master, durable->loop->settings.repl_backlog_size);
}

/* ---- the stream ---- */

bool replication_wants_effects(const struct durable *durable)
{
    return durable->replication->master->backlog != NULL && !replication_is_replica(durable);
}

void replication_keep(struct durable *durable)
{
    struct repl_master *m = durable->replication->master;
    if (m->backlog != NULL)
        return;
    if (!replication_is_replica(durable)) {
        struct repl_replid id = replication_fresh_id();
        repl_master_drop(m, &id);
    }
    if (!repl_master_keep(m))
        replication_no_memory();
    m->alone_since_ms = loop_mono_ms(durable->loop);
    durable->sessions->fx.off = false;
}

static bool append_word(struct repl_master *m, const struct engine_effect *effect, const char *word)
{
    struct rd_slice arg = rd_slice_str(word);
    return repl_master_write(m, effect->db, 1, &arg);
}

void replication_append(struct durable *durable, const struct engine_effects *fx)
{
    struct repl_master *m = durable->replication->master;
    bool ok = true;
    if (!replication_wants_effects(durable))
        return;
    for (size_t i = 0; ok && i < fx->n; i++) {
        const struct engine_effect *effect = &fx->list[i];
        if (i == fx->first && fx->transaction)
            ok = append_word(m, effect, "MULTI");
        if (ok && !effect->not_for_replicas)
            ok = repl_master_write(m, effect->db, effect->argc, effect->argv);
    }
    if (fx->transaction && fx->first < fx->n)
        ok = ok && append_word(m, &fx->list[fx->n - 1], "EXEC");
    if (!ok)
        replication_no_memory();
}

void replication_append_command(struct durable *durable, size_t argc, const struct rd_slice *argv)
{
    struct repl_master *m = durable->replication->master;
    unsigned db = durable->sessions->current != NULL ? durable->sessions->current->session.db : 0;
    if (replication_wants_effects(durable) && !repl_master_write(m, db, argc, argv))
        replication_no_memory();
}

/* ---- WAIT ---- */

static void serve_waiting(struct durable *durable)
{
    struct repl_master *m = durable->replication->master;
    durable->replication->acked = false;
    if (durable->replication->n_waiting == 0)
        return;
    for (struct client *c = durable->sessions->clients->first, *next; c != NULL; c = next) {
        next = c->next;
        if (c->waits != CLIENT_WAITS_ACKS || repl_master_acked(m, c->write_offset) < c->wait_acks)
            continue;
        client_wait_end(c, ENGINE_TIMEOUT);
    }
}

void replication_ask_acks(struct durable *durable)
{
    durable->replication->ask_acks = false;
    if (!replication_is_replica(durable) && !repl_master_getack(durable->replication->master))
        replication_no_memory();
}

/* During a pause the offset must not grow. */
void replication_before_sleep(struct durable *durable)
{
    struct replication *r = durable->replication;
    failover_step(durable);
    if (r->link != NULL)
        link_resume(r->link);
    if (r->ask_acks && durable->sessions->clients->pause_until_ms == 0)
        replication_ask_acks(durable);
    if (r->acked)
        serve_waiting(durable);
    for (struct repl_peer *peer = r->master->first, *next; peer != NULL; peer = next) {
        next = peer->next;
        if (repl_peer_stream(peer).len > 0)
            client_queue_write(replica_of_peer(peer)->client);
    }
}

/* ---- time ---- */

static bool is_late(const struct durable *durable, const struct replica *replica)
{
    int64_t timeout_ms = durable->loop->settings.repl_timeout * 1000;
    const struct repl_peer *peer = &replica->peer;
    if (repl_peer_is_online(peer))
        return !peer->old && loop_mono_ms(durable->loop) - peer->ack_ms > timeout_ms;
    /* One that has all of the current part waits for the others. */
    return peer->state == REPL_PEER_SAVES && peer->by_mark && replica->piped_left &&
           loop_mono_ms(durable->loop) - replica->progress_ms > timeout_ms;
}

static void drop_late(struct durable *durable)
{
    for (struct repl_peer *peer = durable->replication->master->first, *next; peer != NULL;
         peer = next) {
        struct replica *replica = replica_of_peer(peer);
        char name[REPLICA_NAME];
        next = peer->next;
        if (!is_late(durable, replica))
            continue;
        replica_name(replica->client, name, sizeof name);
        log_warning("Disconnecting timedout replica (%s sync): %s",
                    peer->state == REPL_PEER_SAVES ? "full" : "streaming", name);
        client_free(replica->client);
    }
}

/* No replica returned in time. The memory is better used otherwise, and a history that no replica
 * followed must not be continued. */
static void drop_backlog(struct durable *durable)
{
    struct repl_master *m = durable->replication->master;
    int64_t ttl_s = durable->loop->settings.repl_backlog_ttl;
    if (m->n_peers > 0)
        m->alone_since_ms = loop_mono_ms(durable->loop);
    if (m->backlog == NULL || m->n_peers > 0 || ttl_s == 0 || replication_is_replica(durable) ||
        (loop_mono_ms(durable->loop) - m->alone_since_ms) / 1000 < ttl_s)
        return;
    struct repl_replid id = replication_fresh_id();
    repl_master_drop(m, &id);
    log_notice("Replication backlog freed after %d seconds without connected replicas.",
               (int)ttl_s);
}

static void tick(struct durable *durable)
{
    struct replication *r = durable->replication;
    bool master = !replication_is_replica(durable);
    if (r->link != NULL)
        link_cron(r->link);
    bool failing_over = durable->sessions->clients->pauses[CLIENT_PAUSE_FAILOVER].until_ms != 0 ||
                        r->failover.state != FAILOVER_NONE;
    if (master && r->master->n_peers > 0 && !failing_over &&
        r->ticks % durable->loop->settings.repl_ping_replica_period == 0 &&
        !repl_master_ping(r->master))
        replication_no_memory();
    repl_master_keep_alive(r->master);
    for (struct repl_peer *peer = r->master->first; peer != NULL; peer = peer->next)
        client_queue_write(replica_of_peer(peer)->client);
    drop_late(durable);
    drop_backlog(durable);
    replicas_snapshot_try(durable);
    replicas_remove_file(durable);
    r->ticks++;
}

void replication_cron(struct durable *durable)
{
    struct replication *r = durable->replication;
    bool failing_over = r->failover.state != FAILOVER_NONE;
    if (loop_mono_ms(durable->loop) < r->next_tick_ms)
        return;
    r->next_tick_ms = loop_mono_ms(durable->loop) + (failing_over ? FAILOVER_TICK_MS : TICK_MS);
    tick(durable);
}

/* ---- roles ---- */

/* Clients that are blocked on a key would wait forever, or get the wrong data. What they sent after
 * that command was meant for a master. */
static void end_waits(struct durable *durable)
{
    for (struct client *c = durable->sessions->clients->first; c != NULL; c = c->next) {
        if (c->waits != CLIENT_WAITS_KEY && c->waits != CLIENT_WAITS_ACKS)
            continue;
        client_wait_fail(c, "UNBLOCKED force unblock from blocking operation, instance state "
                            "changed (master -> replica?)");
        client_close_soon(c);
    }
}

void replication_follow(struct durable *durable, const char *host, int port)
{
    struct replication *r = durable->replication;
    bool was_master = r->link == NULL;
    bool had_place = was_master || r->link->has_place;
    unsigned db = !was_master ? r->link->db : r->master->db_known ? r->master->db : 0;
    end_waits(durable);
    if (!was_master)
        link_log_lost(r->link);
    link_free(r->link);
    r->link = link_new(durable, host, port);
    r->link->has_place = had_place;
    r->link->db = db;
    settings_follow(&durable->loop->settings, host, port);
    daemon_oom_score(&durable->loop->settings, false);
    replication_settings_changed(durable);
    if (was_master) {
        log_notice("Before turning into a replica, using my own master parameters to synthesize a "
                   "cached master: I may be able to synchronize with the new master with just a "
                   "partial transfer.");
        durable->sessions->fx.off = !persist_wants_effects(durable);
    }
    link_connect(r->link);
}

void replication_lead(struct durable *durable)
{
    struct replication *r = durable->replication;
    struct repl_replid fresh = replication_fresh_id();
    bool has_place = r->link->has_place;
    link_log_lost(r->link);
    link_forget_place(r->link);
    link_free(r->link);
    r->link = NULL;
    settings_follow(&durable->loop->settings, NULL, 0);
    daemon_oom_score(&durable->loop->settings, false);
    daemon_status("Ready to accept connections");
    replication_settings_changed(durable);
    if (has_place) {
        repl_master_promote(r->master, &fresh);
        log_warning("Setting secondary replication ID to %s, valid up to offset: %llu. New "
                    "replication ID is %s",
                    r->master->id2.hex, (unsigned long long)r->master->second + 1, fresh.hex);
    } else {
        repl_master_drop(r->master, &fresh);
    }
    /* Replicas learn the new id when they reconnect, and resume. */
    replicas_disconnect(durable);
    r->master->alone_since_ms = loop_mono_ms(durable->loop);
    durable->sessions->fx.off = !durable_wants_effects(durable);
}

void replication_log_role(const struct client *c, const char *what, const char *why)
{
    struct rd_buf line = {0};
    client_describe(c, &line);
    rd_buf_add_byte(&line, 0);
    log_notice("%s enabled (%s request from '%s')", what, why, (const char *)line.ptr);
    rd_buf_done(&line);
}

void replication_change_id(struct durable *durable)
{
    struct repl_master *m = durable->replication->master;
    m->id = replication_fresh_id();
    m->id2 = (struct repl_replid){{0}};
    m->second = 0;
}

/* ---- what nodes of a cluster tell each other ---- */

uint64_t replication_offset(const struct durable *durable)
{
    const struct replication *r = durable->replication;
    return r->link != NULL && !r->link->has_place ? 0 : r->master->offset;
}

void replication_link_state(const struct durable *durable, bool *ret_up, int64_t *ret_age_ms)
{
    const struct repl_link *link = durable->replication->link;
    *ret_up = link_is_up(durable);
    *ret_age_ms = INT64_MAX;
    if (*ret_up)
        *ret_age_ms = loop_mono_ms(durable->loop) - link->heard_ms;
    else if (link != NULL && link->has_place)
        *ret_age_ms = loop_mono_ms(durable->loop) - link->down_since_s * 1000;
}

bool replication_follows(const struct durable *durable, const char *host, int port)
{
    const struct repl_link *link = durable->replication->link;
    return link != NULL && link->port == port && strcmp(link->host, host) == 0;
}

/* ---- snapshots ---- */

size_t replication_aux(const struct durable *durable, struct engine_aux aux[REPLICATION_AUX],
                       char text[REPLICATION_AUX][REPLICATION_AUX_TEXT])
{
    static const char *const names[REPLICATION_AUX] = {"repl-stream-db", "repl-id", "repl-offset"};
    const struct replication *r = durable->replication;
    const struct repl_master *m = r->master;
    if (r->link != NULL ? !r->link->has_place : m->backlog == NULL)
        return 0;
    unsigned db = r->link != NULL ? r->link->db : m->db_known ? m->db : 0;
    snprintf(text[0], REPLICATION_AUX_TEXT, "%u", db);
    snprintf(text[1], REPLICATION_AUX_TEXT, "%s", m->id.hex);
    snprintf(text[2], REPLICATION_AUX_TEXT, "%llu", (unsigned long long)m->offset);
    for (size_t i = 0; i < REPLICATION_AUX; i++)
        aux[i] = (struct engine_aux){rd_slice_str(names[i]), rd_slice_str(text[i])};
    return REPLICATION_AUX;
}

void replication_place_read(struct replication_place *place, struct rd_slice name,
                            struct rd_slice value)
{
    int64_t n = 0;
    bool number = rd_num_get_i64(value, &n) && n >= 0;
    if (rd_slice_is(name, "repl-id") && !repl_replid_get(value, &place->id))
        place->id = (struct repl_replid){{0}};
    if (rd_slice_is(name, "repl-offset") && number)
        place->offset = n;
    if (rd_slice_is(name, "repl-stream-db") && number && n <= INT32_MAX)
        place->db = (unsigned)n;
}

void replication_restored(struct durable *durable, const struct replication_place *place)
{
    struct repl_master *m = durable->replication->master;
    if (!repl_replid_is_set(&place->id) || place->offset < 0)
        return;
    bool replica = durable->loop->settings.replicaof_host != NULL;
    bool ok = replica ? repl_master_become(m, &place->id, (uint64_t)place->offset)
                      : repl_master_restore(m, &place->id, (uint64_t)place->offset);
    if (!ok)
        replication_no_memory();
    m->alone_since_ms = loop_mono_ms(durable->loop);
    m->db = place->db;
}

/* ---- refusals ---- */

/* Whether enough replicas are connected for a write. */
static bool has_good_replicas(const struct durable *durable)
{
    const struct settings *s = &durable->loop->settings;
    if (replication_is_replica(durable) || s->min_replicas_to_write == 0 ||
        s->min_replicas_max_lag == 0)
        return true;
    return repl_master_good(durable->replication->master, s->min_replicas_max_lag * 1000,
                            loop_mono_ms(durable->loop)) >= s->min_replicas_to_write;
}

uint32_t replication_limits(const struct durable *durable)
{
    uint32_t limits = has_good_replicas(durable) ? 0 : ENGINE_ADMIT_LACKS_REPLICAS;
    if (RD_LIKELY(!replication_is_replica(durable)))
        return limits;
    if (durable->loop->settings.replica_read_only)
        limits |= ENGINE_ADMIT_READONLY_REPLICA;
    if (!durable->loop->settings.replica_serve_stale_data && !link_is_up(durable))
        limits |= ENGINE_ADMIT_STALE;
    return limits;
}

uint64_t replication_memory(const struct durable *durable, uint64_t *ret_of_replicas)
{
    return repl_master_memory(durable->replication->master, ret_of_replicas);
}

uint64_t replication_beside_memory(const struct durable *durable)
{
    const struct repl_link *link = durable->replication->link;
    return link != NULL ? receive_memory(link) : 0;
}

void replication_reset_stats(struct durable *durable)
{
    struct replication *r = durable->replication;
    r->full_syncs = r->partial_syncs = r->partial_refused = 0;
    r->bytes_in = r->bytes_out = 0;
}
