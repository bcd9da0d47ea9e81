/* Which snapshot is made when, and for whom. */
#include "repl/master/master_impl.h"

static bool takes_mark(const struct repl_peer *peer)
{
    return (peer->capa & REPL_CAPA_EOF) != 0;
}

/* One snapshot by mark is sent to all of its peers at the same time; one by length is a file. Only
 * a snapshot with all data may be written over the file of the server. */
static bool fits(const struct repl_peer *peer, const struct repl_snapshot *snapshot)
{
    return peer->state == REPL_PEER_WAITS && peer->filter == snapshot->filter &&
           (!snapshot->by_mark || takes_mark(peer));
}

/* What the peer needs, and since when the first peer with the same needs waits. */
static void need_of(const struct repl_peer *peer, const struct repl_snapshot_policy *how,
                    struct repl_snapshot *ret, int64_t *ret_since_ms)
{
    bool by_mark = how->diskless || peer->filter != REPL_FILTER_ALL;
    *ret = (struct repl_snapshot){.by_mark = by_mark, .filter = peer->filter};
    *ret_since_ms = peer->waits_ms;
    for (const struct repl_peer *other = peer->master->first; other != NULL; other = other->next)
        if (other->state == REPL_PEER_WAITS && other->filter == peer->filter && !takes_mark(other))
            ret->by_mark = false;
    for (const struct repl_peer *other = peer->master->first; other != NULL; other = other->next) {
        if (!fits(other, ret))
            continue;
        ret->n_peers++;
        if (other->waits_ms < *ret_since_ms)
            *ret_since_ms = other->waits_ms;
    }
}

bool repl_master_due(const struct repl_master *m, const struct repl_snapshot_policy *how,
                     int64_t now_ms, struct repl_snapshot *ret)
{
    for (const struct repl_peer *peer = m->first; peer != NULL; peer = peer->next) {
        int64_t since_ms;
        if (peer->state != REPL_PEER_WAITS)
            continue;
        need_of(peer, how, ret, &since_ms);
        if (!ret->by_mark || now_ms - since_ms >= how->delay_ms ||
            (how->max_peers > 0 && ret->n_peers >= how->max_peers))
            return true;
    }
    return false;
}

static bool announce(struct repl_peer *peer)
{
    return peer->old || repl_peer_say(peer, "+FULLRESYNC %s %llu\r\n", peer->master->id.hex,
                                      (unsigned long long)peer->start);
}

unsigned repl_master_begin_snapshot(struct repl_master *m, const struct repl_snapshot *snapshot)
{
    unsigned n = 0;
    for (struct repl_peer *peer = m->first; peer != NULL; peer = peer->next) {
        if (!fits(peer, snapshot))
            continue;
        peer->by_mark = snapshot->by_mark;
        peer->start = m->offset;
        if (!announce(peer) || !repl_reader_open(&peer->reader, m->backlog, m->offset)) {
            peer->state = REPL_PEER_FAILS;
            continue;
        }
        peer->state = REPL_PEER_SAVES;
        n++;
    }
    m->db_known = false; /* the stream of these peers begins here */
    return n;
}

bool repl_peer_join(struct repl_peer *peer)
{
    for (struct repl_peer *other = peer->master->first; other != NULL; other = other->next) {
        if (other->state != REPL_PEER_SAVES || other->by_mark || other->filter != peer->filter)
            continue;
        peer->start = other->start;
        peer->by_mark = false;
        if (!announce(peer))
            return false;
        repl_reader_copy(&peer->reader, &other->reader);
        peer->state = REPL_PEER_SAVES;
        return true;
    }
    return false;
}

static void fail(struct repl_peer *peer)
{
    /* In a snapshot by mark, an error would be read as a part of the snapshot. */
    if (!peer->by_mark)
        repl_peer_say(peer, "-ERR BGSAVE failed, replication can't continue\r\n");
    repl_reader_close(&peer->reader);
    peer->state = REPL_PEER_FAILS;
}

void repl_master_end_snapshot(struct repl_master *m, bool by_mark, bool ok, int64_t now_ms)
{
    for (struct repl_peer *peer = m->first; peer != NULL; peer = peer->next) {
        if (peer->state != REPL_PEER_SAVES || peer->by_mark != by_mark)
            continue;
        if (!ok)
            fail(peer);
        else if (peer->by_mark)
            repl_peer_payload_sent(peer, now_ms);
        else
            peer->state = REPL_PEER_PAYLOAD;
    }
}

void repl_peer_payload(struct repl_peer *peer, uint64_t len)
{
    repl_peer_say(peer, "$%llu\r\n", (unsigned long long)len);
}

void repl_peer_payload_sent(struct repl_peer *peer, int64_t now_ms)
{
    peer->ack_ms = now_ms;
    peer->state = peer->rdb_only  ? REPL_PEER_ENDS
                  : peer->by_mark ? REPL_PEER_PROVES
                                  : REPL_PEER_ONLINE;
}
