/* copy.c - sends a snapshot of the spool to the groups of keys that have no position. */
#include "tools/migrate/migrate.h"
#include "tools/replay/replay.h"

#include <stdio.h>

#include "base/mem.h"
#include "client/info.h"

/* ---- what the target holds ---- */

static bool is_empty(struct client_peer *peer, bool *ret, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = client_peer_ask(peer, "INFO keyspace", &reply, err);
    if (ok)
        *ret = memmem(reply.items[0].text.ptr, reply.items[0].text.len, "\ndb", 3) == NULL;
    client_peer_reply_done(&reply);
    return ok;
}

static bool all_empty(struct migrate *m, bool *ret, struct rd_err *err)
{
    *ret = true;
    for (size_t i = 0; *ret && i < m->target.n_nodes; i++)
        if (!is_empty(m->target.nodes[i].peer, ret, err))
            return false;
    return true;
}

static bool empty_all(struct migrate *m, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < m->target.n_nodes; i++) {
        struct client_peer *peer = m->target.nodes[i].peer;
        struct rd_err none = {0};
        ok = client_peer_ask(peer, "FLUSHALL", &reply, err);
        if (ok) /* servers before 7.0 have no functions */
            client_peer_ask(peer, "FUNCTION FLUSH", &reply, &none);
    }
    client_peer_reply_done(&reply);
    return ok;
}

static bool set_mark(struct migrate *m, const struct repl_capture_segment *segment, bool owns,
                     struct rd_err *err)
{
    char key[MIGRATE_KEY_MAX];
    struct client_peer_reply reply = {0};
    snprintf(m->mark, sizeof m->mark, "%s %s %llu", owns ? "all" : "merge", segment->replid.hex,
             (unsigned long long)segment->start);
    const struct rd_slice argv[] = {rd_slice_str("HSET"), migrate_group_key(m, 0, key),
                                    rd_slice_str("copy"), rd_slice_str(m->mark)};
    bool ok = client_peer_ask_argv(migrate_target_node(&m->target, 0)->peer, argv, 4, &reply, err);
    client_peer_reply_done(&reply);
    m->has_mark = ok;
    return ok;
}

/* A copy that was cut begins again: with the same snapshot its keys are replaced; with another one
 * the keys of the first must go. That is possible only if the target had no other keys. */
static bool make_room(struct migrate *m, const struct repl_capture_segment *segment,
                      struct rd_err *err)
{
    char same[MIGRATE_POSITION_MAX + 16];
    bool empty, owns = m->has_mark && strncmp(m->mark, "all ", 4) == 0;
    snprintf(same, sizeof same, "merge %s %llu", segment->replid.hex,
             (unsigned long long)segment->start);
    if (m->has_mark && !owns && strcmp(m->mark, same) == 0)
        return true;
    if (m->has_mark && !owns && !m->flush) {
        cli_hint(m->cli, "--flush empties the target first");
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "an earlier copy was cut, and its snapshot is not in the spool any more: "
                          "the target may have keys of it that the source has deleted");
    }
    if (m->replace && !m->has_mark)
        return set_mark(m, segment, false, err);
    if (!owns && !m->flush) {
        if (!all_empty(m, &empty, err))
            return false;
        if (!empty) {
            cli_hint(m->cli, "--flush empties it first, --merge keeps its other keys and replaces "
                             "those of the same names");
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the target is not empty");
        }
    }
    return empty_all(m, err) && set_mark(m, segment, true, err);
}

/* ---- the keys ---- */

/* The commands of a snapshot leave another database selected. */
static bool select_first(struct client_peer *peer, struct rd_err *err)
{
    struct resp_node node;
    return client_peer_send_line(peer, "SELECT 0", err) && client_peer_next(peer, &node, err);
}

struct sending {
    struct migrate *m;
    struct rd_src *src;
    uint64_t offset; /* up to which the limit was applied */
    bool rehearses;
};

/* Gives a key its name in the target. One that is not wanted gets the name of a position key, which
 * the filter drops. */
static bool take_key(void *ctx, struct rdb_event *ev, struct rd_err *err)
{
    struct sending *s = ctx;
    struct migrate *m = s->m;
    uint64_t offset = rd_src_offset(s->src);
    if (!s->rehearses && m->rate > 0)
        migrate_pace(m, offset - s->offset);
    s->offset = offset;
    if (migrate_stopped(m))
        return rd_err_set(err, RD_ERR_CANCELLED, RD_NO_OFFSET, "stopped");
    if (m->n_renames == 0)
        return true;
    if (filter_wants(&m->filter, ev))
        return migrate_plan_rename(&m->plan, ev->key.name, &ev->key.name, err);
    ev->key.name = rd_slice_str(MIGRATE_PREFIX "-");
    return true;
}

static bool send_node(struct migrate *m, struct migrate_stream *stream,
                      const struct repl_capture_segment *segment, struct migrate_node *node,
                      const struct filter *filter, bool rehearses, struct rd_err *err)
{
    struct tool_replay replay = {.cli = m->cli,
                                 .replace = true,
                                 .expiry = REPLAY_RECORDED,
                                 .least_shift_ms = INT64_MAX,
                                 .window = REPLAY_WINDOW,
                                 .peer = node->peer};
    struct rd_src *src;
    if (!rebuild_stream_open_snapshot(&stream->in, segment, &src, err))
        return false;
    struct sending sending = {.m = m, .src = src, .rehearses = rehearses};
    replay.on_key = take_key;
    replay.on_key_ctx = &sending;
    bool ok = replay_sender_init(&replay.sender, node->peer, replay.window, err) &&
              (rehearses ? replay_fits(&replay, src, filter, err)
                         : replay_source(&replay, src, filter, 0, err));
    rd_src_close(src);
    ok = ok && select_first(node->peer, err);
    if (ok && replay.sender.n_errors > 0)
        ok = rd_err_set(
            err,
            migrate_is_temporary(rd_slice_str(replay.sender.errors[0].text)) ? RD_ERR_PROTOCOL
                                                                             : RD_ERR_UNSUPPORTED,
            RD_NO_OFFSET, "the target refused %llu of %llu commands of the snapshot: %s",
            (unsigned long long)replay.sender.n_errors, (unsigned long long)replay.sender.n_sent,
            replay.sender.errors[0].text);
    if (!rehearses)
        m->result.keys += replay.result.keys;
    replay_sender_done(&replay.sender);
    if (!ok)
        rd_err_origin(err, node->target.name);
    return ok;
}

/* Every master gets the keys of its groups that have no position. */
static bool send_all(struct migrate *m, struct migrate_stream *stream,
                     const struct repl_capture_segment *segment, bool rehearses, struct rd_err *err)
{
    uint8_t slots[RD_HASH_SLOTS / 8];
    struct migrate_target *t = &m->target;
    struct filter filter = m->n_renames > 0 ? m->own_filter : m->filter;
    bool ok = true;
    for (size_t i = 0; ok && i < t->n_nodes; i++) {
        bool any = !t->clustered;
        memset(slots, 0, sizeof slots);
        for (unsigned slot = 0; t->clustered && slot < RD_HASH_SLOTS; slot++)
            if (t->node_of[slot] == i && stream->applied[slot].chapter == 0) {
                slots[slot / 8] |= (uint8_t)(1U << slot % 8);
                any = true;
            }
        if (t->clustered)
            filter.slots = slots;
        ok = !any || send_node(m, stream, segment, &t->nodes[i], &filter, rehearses, err);
    }
    return ok;
}

/* The groups without a position get that of the snapshot. */
static bool set_positions(struct migrate *m, struct migrate_stream *stream,
                          const struct repl_capture_segment *segment, bool *ret_again,
                          struct rd_err *err)
{
    struct migrate_round *round = &m->rounds[0];
    struct migrate_batch *batch;
    const struct migrate_place at = {segment->chapter, segment->start};
    stream->replid = segment->replid;
    stream->db = segment->db;
    if (!migrate_round_begin(round, stream, m->target.n_groups, err))
        return false;
    round->end = at;
    for (size_t g = 0; g < m->target.n_groups; g++)
        if (stream->applied[g].chapter == 0 &&
            !migrate_round_batch(round, (unsigned)g, &batch, err))
            return false;
    bool ok = migrate_round_send(m, round, err);
    *ret_again = !ok;
    return ok && migrate_round_finish(m, round, ret_again, err);
}

bool migrate_copy(struct migrate *m, struct migrate_stream *stream,
                  const struct repl_capture_segment *segment, bool *ret_again, struct rd_err *err)
{
    bool fresh = true;
    for (size_t i = 0; i < m->n_streams; i++)
        for (size_t g = 0; m->streams[i]->is_open && g < m->target.n_groups; g++)
            fresh &= m->streams[i]->applied[g].chapter == 0;
    if (!send_all(m, stream, segment, true, err) || (fresh && !make_room(m, segment, err))) {
        *ret_again = err->code == RD_ERR_PROTOCOL;
        return false;
    }
    migrate_say(m, false, "copying the snapshot of offset %llu, %s",
                (unsigned long long)segment->start, rd_show_bytes(segment->snapshot_size).s);
    if (!send_all(m, stream, segment, false, err)) {
        *ret_again = err->code == RD_ERR_PROTOCOL;
        return false;
    }
    m->result.copies++;
    return set_positions(m, stream, segment, ret_again, err);
}

bool migrate_recopy(struct migrate *m, struct rd_err *err)
{
    bool owns = m->has_mark && strncmp(m->mark, "all ", 4) == 0;
    if (!owns)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "a new copy cannot begin: the target has keys that are not of this "
                          "migration, and it is not known which ones the source has deleted");
    migrate_say(m, true, "beginning a new full copy");
    return empty_all(m, err);
}
