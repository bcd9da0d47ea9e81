/* cut_over.c - ends a migration: pauses the writes of the source, waits until the target has
 * everything, and removes the position keys.
 *
 * CLIENT PAUSE is repeated for a short time each, so that the source accepts writes again soon if
 * this process is killed. */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "capture/clock.h"
#include "client/info.h"
#include "tools/migrate/migrate.h"

enum { LEASE_MS = 20000, RENEW_MS = 5000, NEAR_BYTES = 1 << 20 };

static bool pause_one(struct migrate_paused *p, uint64_t ms, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    char line[64];
    snprintf(line, sizeof line, "CLIENT PAUSE %" PRIu64 " WRITE", ms);
    bool ok = client_peer_ask(p->peer, ms > 0 ? line : "CLIENT UNPAUSE", &reply, err);
    client_peer_reply_done(&reply);
    if (!ok)
        rd_err_origin(err, p->target.name);
    return ok;
}

/* What is left of --pause. */
static uint64_t rest_ms(const struct migrate *m)
{
    uint64_t spent = capture_now_ms() - m->paused_ms;
    return spent < m->pause_ms ? m->pause_ms - spent : 0;
}

static uint64_t lease_ms(const struct migrate *m)
{
    uint64_t rest = rest_ms(m);
    return rest < LEASE_MS ? rest : LEASE_MS;
}

/* ms 0: ends the pause. */
static bool pause_all(struct migrate *m, uint64_t ms, struct rd_err *err)
{
    bool ok = true;
    for (size_t i = 0; i < m->n_paused; i++)
        ok = pause_one(&m->paused[i], ms, ok ? err : NULL) && ok;
    return ok;
}

static bool open_all(struct migrate *m, struct rd_err *err)
{
    m->paused = rd_calloc(m->n_streams, sizeof *m->paused);
    if (m->paused == NULL)
        return rd_err_nomem(err, m->n_streams * sizeof *m->paused);
    for (size_t i = 0; i < m->n_streams; i++) {
        struct migrate_paused *p = &m->paused[m->n_paused];
        if (m->streams[i]->gone)
            continue;
        if (!migrate_source_target(m, m->streams[i], &p->target, err))
            return false;
        p->stream = m->streams[i];
        if (!client_peer_open(&p->peer, &p->target, err)) {
            client_target_done(&p->target);
            return false;
        }
        m->n_paused++;
    }
    return true;
}

/* The source has written nothing after these offsets. */
static bool ask_ends(struct migrate *m, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < m->n_paused; i++) {
        struct migrate_paused *p = &m->paused[i];
        struct rd_slice role;
        ok = client_peer_ask(p->peer, "INFO replication", &reply, err);
        if (ok && (!client_info_find(reply.items[0].text, "role", &role) ||
                   !rd_slice_is(role, "master") ||
                   !client_info_u64(reply.items[0].text, "master_repl_offset", &p->end)))
            ok = rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the source is not a master");
        if (!ok)
            rd_err_origin(err, p->target.name);
    }
    client_peer_reply_done(&reply);
    return ok;
}

static bool is_near(const struct migrate *m)
{
    for (size_t i = 0; i < m->n_streams; i++) {
        const struct migrate_stream *s = m->streams[i];
        if (!s->gone && (!s->is_open || !s->up || s->safe.offset + NEAR_BYTES < s->received))
            return false;
    }
    return m->attached;
}

bool migrate_pause(struct migrate *m, struct rd_err *err)
{
    if (m->pausing || !is_near(m))
        return true;
    m->pausing = true;
    m->paused_ms = m->renewed_ms = capture_now_ms();
    m->paused_unix_ms = cli_now_ms();
    if (!open_all(m, err) || !pause_all(m, lease_ms(m), err) || !ask_ends(m, err))
        return false;
    migrate_say(m, false, "the writes of the source are paused");
    return true;
}

bool migrate_pause_renew(struct migrate *m, struct rd_err *err)
{
    uint64_t now_ms = capture_now_ms(), lease = lease_ms(m);
    if (!m->pausing)
        return true;
    if (lease == 0)
        return rd_err_set(
            err, RD_ERR_LIMIT, RD_NO_OFFSET,
            "the cut-over was not finished within %s; the source accepts writes again",
            rd_show_duration(m->pause_ms).s);
    if (now_ms - m->renewed_ms < RENEW_MS)
        return true;
    m->renewed_ms = now_ms;
    return pause_all(m, lease, err);
}

bool migrate_is_drained(const struct migrate *m)
{
    for (size_t i = 0; i < m->n_paused; i++) {
        const struct migrate_stream *s = m->paused[i].stream;
        if (!s->is_open || s->safe.offset < m->paused[i].end)
            return false;
    }
    return m->pausing && m->attached && !m->rounds[0].sent && !m->rounds[1].sent;
}

void migrate_pause_end(struct migrate *m, bool stays)
{
    struct rd_err none = {0};
    if (m->pausing)
        pause_all(m, stays ? rest_ms(m) : 0, &none);
    for (size_t i = 0; i < m->n_paused; i++) {
        client_peer_close(m->paused[i].peer);
        client_target_done(&m->paused[i].target);
    }
    rd_free(m->paused);
    m->paused = NULL;
    m->n_paused = 0;
    m->pausing = false;
}

bool migrate_remove_positions(struct migrate *m, struct rd_err *err)
{
    char key[MIGRATE_KEY_MAX];
    struct resp_node node;
    for (size_t g = 0; g < m->target.n_groups; g++) {
        const struct rd_slice argv[] = {rd_slice_str("DEL"), migrate_group_key(m, g, key)};
        if (!client_peer_send(migrate_target_node(&m->target, g)->peer, argv, 2, err))
            return false;
    }
    for (size_t g = 0; g < m->target.n_groups; g++) {
        struct client_peer *peer = migrate_target_node(&m->target, g)->peer;
        if (!client_peer_next(peer, &node, err))
            return false;
        if (node.type == RESP_ERROR)
            return client_peer_refused(peer, node.text, err);
    }
    return true;
}
