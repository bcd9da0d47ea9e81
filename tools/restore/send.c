/* send.c - sends a set or a moment to a running server, or to the masters of a running cluster.
 *
 * Each snapshot of the set is complete before its first key is sent. A master of a cluster gets the
 * keys of its slots from every snapshot, so the cluster need not be divided as the old one was.
 */
#include "base/crc16.h"
#include "base/siphash.h"
#include "client/topology.h"
#include "tools/replay/replay.h"
#include "tools/restore/restore.h"

struct send {
    struct restore *run;
    struct client_topology cluster; /* n == 0: the target is not in a cluster */
    struct tool_replay replay;      /* with one master at a time */
    struct filter filter;           /* of the keys for that master */
    uint8_t slots[RD_HASH_SLOTS / 8];
    struct rd_siphash library; /* the one that is being read */
    uint64_t highest_db;       /* that the cluster is known to have */
};

/* ---- the masters ---- */

static bool find_masters(struct send *s, struct rd_err *err)
{
    struct client_peer *peer;
    bool clustered;
    if (!client_peer_open(&peer, &s->run->server, err))
        return false;
    bool ok = client_topology_exists(peer, &clustered, NULL, err) &&
              (!clustered || client_topology_read(&s->cluster, peer, err));
    client_peer_close(peer);
    if (ok && clustered && s->cluster.n_slots != RD_HASH_SLOTS) {
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                   "%u of the %d slots of the cluster have a master", s->cluster.n_slots,
                   RD_HASH_SLOTS);
        ok = false;
    }
    if (!ok)
        rd_err_origin(err, s->run->server.name);
    s->run->masters = s->cluster.n;
    return ok;
}

/* A master of the cluster: its address, and the filter for its keys. */
static bool choose_master(struct send *s, size_t i, struct client_target *ret, struct rd_err *err)
{
    const struct client_topology_node *node = &s->cluster.nodes[i];
    memset(s->slots, 0, sizeof s->slots);
    for (size_t k = 0; k < node->n_ranges; k++)
        for (unsigned slot = node->ranges[k].first; slot <= node->ranges[k].last; slot++)
            s->slots[slot / 8] |= (uint8_t)(1U << slot % 8);
    s->filter.slots = s->slots;
    return client_target_at(ret, &s->run->server, rd_slice_str(node->host), node->port, err);
}

typedef bool (*master_fn)(struct send *s, const char *name, const struct spool *spool,
                          struct rd_err *err);

static bool with_master(struct send *s, const struct client_target *target, master_fn fn,
                        const struct spool *spool, struct rd_err *err)
{
    struct tool_replay *replay = &s->replay;
    bool ok = client_peer_open(&replay->peer, target, err);
    if (ok) {
        ok = replay_sender_init(&replay->sender, replay->peer, replay->window, err) &&
             fn(s, target->name, spool, err);
        replay_sender_done(&replay->sender);
        client_peer_close(replay->peer);
    }
    if (!ok)
        rd_err_origin(err, target->name);
    return ok;
}

/* Calls fn with a connection to each master. The spool is for fn. */
static bool each_master(struct send *s, master_fn fn, const struct spool *spool, struct rd_err *err)
{
    if (s->cluster.n == 0)
        return with_master(s, &s->run->server, fn, spool, err);
    bool ok = true;
    for (size_t i = 0; ok && i < s->cluster.n; i++) {
        struct client_target target = {0};
        ok = choose_master(s, i, &target, err) && with_master(s, &target, fn, spool, err);
        client_target_done(&target);
    }
    return ok;
}

/* ---- what they get ---- */

static bool make_room(struct send *s, const char *name, const struct spool *spool,
                      struct rd_err *err)
{
    (void)name;
    (void)spool;
    bool ok = replay_make_room(&s->replay, err);
    if (!ok && err != NULL && err->code == RD_ERR_USAGE)
        cli_hint(s->run->cli, "--force replaces existing keys");
    return ok;
}

static bool send_keys(struct send *s, const char *name, const struct spool *spool,
                      struct rd_err *err)
{
    const struct replay_sender *sender = &s->replay.sender;
    struct rd_src *src;
    if (!spool_source(spool, name, &src, err))
        return false;
    bool ok = replay_source(&s->replay, src, &s->filter, 0, err);
    rd_src_close(src);
    if (!ok || sender->n_errors == 0)
        return ok;
    return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                      "the server refused %llu of %llu commands: %s",
                      (unsigned long long)sender->n_errors, (unsigned long long)sender->n_sent,
                      sender->errors[0].text);
}

/* Whether the master can hold its keys of the snapshot. */
static bool fits(struct send *s, const char *name, const struct spool *spool, struct rd_err *err)
{
    struct rd_src *src;
    if (!spool_source(spool, name, &src, err))
        return false;
    bool ok = replay_fits(&s->replay, src, &s->filter, err);
    rd_src_close(src);
    return ok;
}

/* Adds a function library to a sum that does not depend on their order. */
static void add_library(struct send *s, const struct rdb_string *code, struct rd_hash128 *sum)
{
    static const uint8_t key[RD_SIPHASH_KEY];
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice bytes = rdb_string_bytes(code, tmp);
    if (code->first)
        rd_siphash_begin(&s->library, key);
    rd_siphash_add(&s->library, bytes.ptr, bytes.len);
    if (code->more)
        return;
    *sum = rd_hash128_add(*sum, rd_siphash_end(&s->library));
}

/* A cluster of Valkey 9 can have several databases, others have only database 0. */
static bool has_db(struct send *s, uint64_t db, bool *ret, struct rd_err *err)
{
    struct client_peer *peer;
    struct resp_node node;
    char line[sizeof "SELECT " + RD_NUM_I64_MAX];
    if (!client_peer_open(&peer, &s->run->server, err))
        return false;
    snprintf(line, sizeof line, "SELECT %llu", (unsigned long long)db);
    bool ok = client_peer_send_line(peer, line, err) && client_peer_next(peer, &node, err);
    *ret = ok && node.type == RESP_SIMPLE;
    client_peer_close(peer);
    return ok;
}

static bool fits_cluster(struct send *s, const struct rdb_event *key, struct rd_err *err)
{
    bool has = key->key.db <= s->highest_db;
    if (s->cluster.n == 0 || has || !filter_wants(&s->run->filter, key))
        return true;
    if (!has_db(s, key->key.db, &has, err))
        return false;
    if (has) {
        s->highest_db = key->key.db;
        return true;
    }
    cli_hint(s->run->cli, "--db 0 restores only its keys; a cluster of Valkey 9 can have more "
                          "databases (cluster-databases)");
    return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                      "database %llu has keys, and the cluster does not have it",
                      (unsigned long long)key->key.db);
}

/* Whether nothing is restored but one snapshot. */
static bool is_alone(const struct send *s)
{
    return s->run->step == RESTORE_ONE && !backup_restore_is_cluster(s->run->r.set);
}

/* Reads what a cluster cannot hold, and what of the set of a cluster is not sent. */
static bool examine(struct send *s, const struct spool *spool, bool first, struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES);
    struct rdb_reader *reader = NULL;
    struct rd_hash128 sum = {0};
    struct rdb_event ev;
    struct rd_src *src;
    enum rdb_status status = RDB_END;
    if (s->cluster.n == 0 && is_alone(s))
        return true;
    if (!spool_source(spool, s->run->server.name, &src, err))
        return false;
    bool ok = rdb_reader_new(&reader, src, &opts, err);
    while (ok && (status = rdb_reader_next(reader, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_FUNCTION)
            add_library(s, &ev.function.code, &sum);
        ok = ev.kind != RDB_KEY || fits_cluster(s, &ev, err);
    }
    if (ok && status != RDB_END) {
        rd_err_adopt(err, rdb_reader_err(reader));
        ok = false;
    }
    rdb_reader_free(reader);
    rd_src_close(src);
    if (first)
        s->run->libraries = sum;
    s->run->differ = s->run->differ || !rd_hash128_eq(s->run->libraries, sum);
    return ok;
}

/* The masters of a cluster should have the same libraries: those of the first snapshot are sent. */
static bool send_file(struct send *s, const struct archive_file *file, bool first,
                      struct rd_err *err)
{
    struct spool spool = {0};
    bool examined = !is_alone(s);
    s->replay.no_functions = !first;
    bool ok = backup_restore_spool(&s->run->r, file, &spool, err) &&
              (examined || (examine(s, &spool, first, err) && each_master(s, fits, &spool, err))) &&
              each_master(s, send_keys, &spool, err);
    spool_done(&spool);
    return ok;
}

static bool examine_file(struct send *s, const struct archive_file *file, bool first,
                         struct rd_err *err)
{
    struct spool spool = {0};
    bool ok = backup_restore_spool(&s->run->r, file, &spool, err) &&
              examine(s, &spool, first, err) && each_master(s, fits, &spool, err);
    spool_done(&spool);
    return ok;
}

typedef bool (*file_fn)(struct send *s, const struct archive_file *file, bool first,
                        struct rd_err *err);

/* Calls fn with each snapshot; `first`: of all targets. */
static bool each_file(struct send *s, file_fn fn, struct rd_err *err)
{
    const struct archive_manifest *m = &s->run->r.set->m;
    bool ok = true, first = s->run->target == 0;
    if (!backup_restore_is_cluster(s->run->r.set))
        return fn(s, &m->files[0], first, err);
    for (size_t i = 0; ok && i < m->n_files; i++) {
        if (m->files[i].role != ARCHIVE_ROLE_RDB)
            continue;
        ok = fn(s, &m->files[i], first, err);
        first = false;
    }
    return ok;
}

/* All snapshots are examined before the first key of the first one is sent. */
static bool send_files(struct send *s, struct rd_err *err)
{
    enum restore_step step = s->run->step;
    if (step != RESTORE_WRITE && !is_alone(s) && !each_file(s, examine_file, err))
        return false;
    return step == RESTORE_TRY || each_file(s, send_file, err);
}

/* Before the first key: the keys of the first targets are there when the next ones are sent. */
static bool is_ready(struct send *s, struct rd_err *err)
{
    return s->run->step == RESTORE_WRITE || each_master(s, make_room, NULL, err);
}

bool restore_send(struct restore *run, struct rd_err *err)
{
    struct send s = {.run = run,
                     .replay = {.cli = run->cli,
                                .replace = run->force,
                                .expiry = REPLAY_RECORDED,
                                .least_shift_ms = INT64_MAX,
                                .window = REPLAY_WINDOW},
                     .filter = run->filter};
    bool ok = find_masters(&s, err) && is_ready(&s, err) && send_files(&s, err);
    if (ok && run->differ && run->step != RESTORE_TRY) {
        run->cli->partial = true;
        run->differ = false;
        cli_warn(run->cli, "the masters have different function libraries: those of the first one "
                           "are restored");
    }
    run->keys = run->earlier + s.replay.result.keys;
    run->nothing = ok && run->step == RESTORE_ONE && run->keys == 0 && filter_active(&run->filter);
    client_topology_done(&s.cluster);
    return ok;
}
