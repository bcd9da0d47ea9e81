/* owners.c - the order between the streams of a cluster's masters.
 *
 * If a slot moves from master A to master B, the stream of B has RESTORE for each key, and that of
 * A has DEL. They arrive independently. Applied in the wrong order, the DEL would remove the key
 * that B has now. So the first command of B for the slot waits until the target has all that A had
 * written at that moment, which A is asked for.
 *
 * An owner is the stream whose commands for a slot need not wait. RESTORE always waits, because a
 * slot can move away and come back before its owner is known. DEL never waits: it ends the time of
 * a key in a stream. If a slot has moved to and fro while nothing was applied, all streams wait for
 * each other. Then the DEL of each move shows which RESTORE goes on.
 *
 * The owners are in the file `owners` of the spool. After a target has lost its last writes, those
 * of a minute before are used: they are older than the positions of the streams.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/siphash.h"
#include "base/words.h"
#include "capture/clock.h"
#include "client/info.h"
#include "tools/migrate/migrate.h"

enum { OLD_MS = 60000, ASK_MS = 20 };

static bool is_restore(struct rd_slice name)
{
    return rd_word_is(name, "restore") || rd_word_is(name, "restore-asking");
}

/* ---- the file ---- */

static bool path_of(const struct migrate *m, char *path, struct rd_err *err)
{
    int n = snprintf(path, MIGRATE_PATH_MAX, "%s/owners", m->spool);
    return (n > 0 && n < MIGRATE_PATH_MAX) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the name of the folder is too long");
}

/* A line for each stream: its folder, the offset from which its slots hold, and a digit for each
 * slot: bit 0: it owns the slot; bit 1: it did before. */
static bool save(const struct migrate *m, struct rd_err *err)
{
    const struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true, .buffer = 65536);
    const struct migrate_owners *o = &m->owners;
    char path[MIGRATE_PATH_MAX], line[CAPTURE_FOLDER_MAX + 40];
    struct rd_sink *out;
    if (!path_of(m, path, err) || !rd_sink_open_file(&out, path, &opts, err))
        return false;
    for (size_t i = 0; i < m->n_streams; i++) {
        int n = snprintf(line, sizeof line, "%s %" PRIu64 " ", m->streams[i]->folder,
                         m->streams[i]->owned_from);
        rd_sink_write(out, line, (size_t)n);
        for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++)
            rd_sink_byte(
                out, (uint8_t)('0' + (o->now[slot] == (int)i) + 2 * (o->before[slot] == (int)i)));
        rd_sink_byte(out, '\n');
    }
    return rd_sink_close(out, err);
}

static void load_line(struct migrate *m, char *line)
{
    char *folder = line, *at = strchr(line, ' ');
    if (at == NULL)
        return;
    *at++ = '\0';
    struct migrate_stream *stream = migrate_find_stream(m, folder);
    char *slots = strchr(at, ' ');
    if (stream == NULL || slots == NULL || strlen(slots + 1) < RD_HASH_SLOTS)
        return;
    stream->owned_from = strtoull(at, NULL, 10);
    stream->known = true;
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if ((slots[1 + slot] - '0') & 1)
            m->owners.now[slot] = stream->index;
        if ((slots[1 + slot] - '0') & 2)
            m->owners.before[slot] = stream->index;
    }
}

static bool load(struct migrate *m, bool *ret_found, struct rd_err *err)
{
    static char line[RD_HASH_SLOTS + CAPTURE_FOLDER_MAX + 64];
    char path[MIGRATE_PATH_MAX];
    if (!path_of(m, path, err))
        return false;
    FILE *file = fopen(path, "re");
    *ret_found = file != NULL;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        load_line(m, line);
    if (file != NULL)
        fclose(file);
    m->owners.changed_ms = capture_now_ms(); /* those of before stay for a while */
    return true;
}

/* ---- the beginning ---- */

/* The first topology is older than the streams. */
static bool begin_first(struct migrate *m, struct rd_err *err)
{
    struct migrate_owners *o = &m->owners;
    for (size_t i = 0; i < m->n_streams; i++) {
        m->streams[i]->known = true;
        for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++)
            if (capture_slots_have(&m->streams[i]->slots, slot))
                o->now[slot] = o->before[slot] = (int)i;
    }
    return save(m, err);
}

bool migrate_owners_begin(struct migrate *m, struct rd_err *err)
{
    struct migrate_owners *o = &m->owners;
    bool found;
    if (o->begun || m->n_streams == 0 || !m->source.capture.cluster)
        return true;
    o->begun = true;
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++)
        o->now[slot] = o->before[slot] = -1;
    if (!load(m, &found, err))
        return false;
    return found || begin_first(m, err);
}

void migrate_owners_rewind(struct migrate *m)
{
    bool old = false;
    for (size_t i = 0; i < m->n_streams; i++) {
        struct migrate_stream *stream = m->streams[i];
        stream->clear = 0;
        stream->blocked = stream->waits = false;
        old |= stream->is_open && stream->safe.offset < stream->owned_from;
    }
    if (old)
        memcpy(m->owners.now, m->owners.before, sizeof m->owners.now);
}

/* ---- waiting ---- */

bool migrate_source_target(struct migrate *m, const struct migrate_stream *stream,
                           struct client_target *ret, struct rd_err *err)
{
    const struct client_target *like = &m->source_like;
    if (like->socket[0] == '\0' || m->source.capture.cluster)
        return client_target_of(ret, like, rd_slice_str(stream->name), CLIENT_PORT, err);
    if (!client_target_at(ret, like, rd_slice_str(like->host), like->port, err))
        return false;
    memcpy(ret->socket, like->socket, sizeof ret->socket);
    memcpy(ret->name, like->name, sizeof ret->name);
    return true;
}

static bool ask_offset(struct migrate *m, const struct migrate_stream *stream, uint64_t *ret)
{
    struct client_peer_reply reply = {0};
    struct client_target target = {0};
    struct client_peer *peer;
    struct rd_err none = {0};
    if (stream->gone) {
        *ret = stream->received;
        return true;
    }
    if (!migrate_source_target(m, stream, &target, &none))
        return false;
    bool ok = client_peer_open(&peer, &target, &none);
    if (ok) {
        ok = client_peer_ask(peer, "INFO replication", &reply, &none) &&
             client_info_u64(reply.items[0].text, "master_repl_offset", ret);
        client_peer_close(peer);
    }
    client_peer_reply_done(&reply);
    client_target_done(&target);
    return ok;
}

/* Asks the other masters how far they are. False: one does not answer. */
static bool begin_wait(struct migrate *m, struct migrate_stream *stream)
{
    struct rd_err none = {0};
    uint64_t now_ms = capture_now_ms();
    if (now_ms < stream->ask_ms)
        return false;
    stream->ask_ms = now_ms + ASK_MS;
    if (!migrate_find_streams(m, &none))
        return false;
    stream->clear_next = stream->received;
    stream->slots_next = stream->slots;
    for (size_t i = 0; i < m->n_streams; i++)
        if (m->streams[i] != stream && !ask_offset(m, m->streams[i], &stream->need[i]))
            return false;
    stream->waits = true;
    return true;
}

/* From here on the stream owns its slots. */
static bool adopt(struct migrate *m, struct migrate_stream *stream, struct rd_err *err)
{
    struct migrate_owners *o = &m->owners;
    uint64_t now_ms = capture_now_ms();
    bool changed = false;
    stream->clear = stream->clear_next;
    stream->waits = stream->blocked = false;
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        bool has = capture_slots_have(&stream->slots_next, slot);
        changed |= has && o->now[slot] != stream->index;
    }
    if (!changed)
        return true;
    if (now_ms - o->changed_ms >= OLD_MS) {
        memcpy(o->before, o->now, sizeof o->before);
        o->changed_ms = now_ms;
    }
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++)
        if (capture_slots_have(&stream->slots_next, slot))
            o->now[slot] = stream->index;
    for (size_t i = 0; i < m->n_streams; i++)
        m->streams[i]->owned_from = m->streams[i]->safe.offset;
    return save(m, err);
}

static bool others_are_there(const struct migrate *m, const struct migrate_stream *stream)
{
    for (size_t i = 0; i < m->n_streams; i++)
        if (m->streams[i] != stream && m->streams[i]->is_open &&
            m->streams[i]->safe.offset < stream->need[i])
            return false;
    return true;
}

/* ---- all wait for each other ---- */

static struct migrate_seen *seen_of(struct migrate *m, struct rd_slice key)
{
    static const uint8_t none[RD_SIPHASH_KEY];
    struct rd_siphash state;
    rd_siphash_begin(&state, none);
    rd_siphash_add(&state, key.ptr, key.len);
    struct rd_hash128 hash = rd_siphash_end(&state);
    struct migrate_seen *seen = &m->owners.seen[hash.lo % MIGRATE_SEEN];
    if (seen->hash != hash.hi)
        *seen = (struct migrate_seen){.hash = hash.hi, .holder = -1, .left = -1};
    return seen;
}

/* A key moves from the stream that deletes it to the one that restores it. */
static void note(struct migrate *m, int own, const struct repl_capture_event *ev)
{
    const struct rd_slice *argv = ev->command.argv;
    bool deletes = rd_word_is(argv[0], "del") || rd_word_is(argv[0], "unlink");
    m->owners.stuck = 0;
    if (!deletes && !is_restore(argv[0]))
        return;
    for (size_t i = 0; i < m->plan.n_keys; i++) {
        struct migrate_seen *seen = seen_of(m, argv[m->plan.keys[i].index]);
        seen->left = deletes ? own : -1;
        if (!deletes)
            seen->holder = own;
        else if (seen->holder == own)
            seen->holder = -1;
    }
}

static bool is_stuck(const struct migrate *m, const struct migrate_stream *stream)
{
    for (size_t i = 0; i < m->n_streams; i++) {
        const struct migrate_stream *other = m->streams[i];
        if (other != stream && other->is_open && !other->blocked &&
            other->safe.offset < stream->need[i])
            return false;
    }
    return true;
}

static bool arrived_first(const struct migrate *m, const struct migrate_stream *stream)
{
    for (size_t i = 0; i < m->n_streams; i++) {
        const struct migrate_stream *other = m->streams[i];
        if (other != stream && other->is_open && other->blocked &&
            other->blocked_us < stream->blocked_us)
            return false;
    }
    return true;
}

/* A key goes on in the stream that has it: it was restored there, or another one has deleted it.
 * If that is true of no command, the one that arrived first goes on. */
static bool may_go_on(struct migrate *m, const struct migrate_stream *stream,
                      const struct repl_capture_event *ev)
{
    const struct rd_slice *argv = ev->command.argv;
    const struct migrate_seen *seen = seen_of(m, argv[m->plan.keys[0].index]);
    if (!is_stuck(m, stream))
        return false;
    if (is_restore(argv[0]) ? seen->left >= 0 && seen->left != stream->index
                            : seen->holder == stream->index)
        return true;
    return ++m->owners.stuck > 4 * m->n_streams && arrived_first(m, stream);
}

bool migrate_owners_join(struct migrate *m, struct migrate_stream *stream)
{
    stream->joins |= (stream->waits || begin_wait(m, stream)) && others_are_there(m, stream);
    return stream->joins;
}

static bool must_wait(const struct migrate *m, const struct migrate_stream *stream,
                      const struct repl_capture_event *ev)
{
    const struct rd_slice *argv = ev->command.argv;
    if (ev->offset < stream->clear || rd_word_is(argv[0], "del") || rd_word_is(argv[0], "unlink"))
        return false;
    unsigned slot = rd_hash_slot(argv[m->plan.keys[0].index]);
    return is_restore(argv[0]) || m->owners.now[slot] != stream->index;
}

bool migrate_owners_pass(struct migrate *m, struct migrate_stream *stream,
                         const struct repl_capture_event *ev, bool *ret_pass, struct rd_err *err)
{
    bool ok = true;
    *ret_pass = true;
    if (m->n_streams < 2 || m->plan.n_keys == 0)
        return true;
    if (must_wait(m, stream, ev)) {
        stream->blocked = true;
        stream->blocked_us = ev->time_us;
        bool knows = stream->waits || begin_wait(m, stream);
        *ret_pass = knows && (others_are_there(m, stream) || may_go_on(m, stream, ev));
        if (*ret_pass && others_are_there(m, stream))
            ok = adopt(m, stream, err);
    }
    if (*ret_pass) {
        stream->blocked = false;
        note(m, stream->index, ev);
    }
    return ok;
}
