/* Snapshots for replicas: to the server's own file, or from the child to the sockets.
 *
 * A diskless snapshot goes through a pair of sockets, the pipe. The server reads a part of it,
 * gives it to all replicas, and reads the next part when all of them have taken it: the slowest
 * sets the pace, and the memory for it does not grow.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication_impl.h"

enum { PART = 256 * 1024 };

struct replicas_snapshot {
    struct durable *durable;
    int pipe;
    uv_poll_t poll;
    bool reading;
    uint8_t *part;
    size_t len;  /* of the part */
    bool at_end; /* of the pipe */
    bool killed; /* no replica is left */
    bool busy;   /* in one of its functions */
};

/* ---- diskless ---- */

static bool gets_it(const struct repl_peer *peer)
{
    return peer->state == REPL_PEER_SAVES && peer->by_mark;
}

static unsigned count_replicas(const struct durable *durable)
{
    unsigned n = 0;
    for (const struct repl_peer *peer = durable->replication->master->first; peer != NULL;
         peer = peer->next)
        n += gets_it(peer);
    return n;
}

bool replicas_snapshot_is_diskless(const struct durable *durable)
{
    return durable->replication->snapshot != NULL;
}

static void on_closed(uv_handle_t *handle)
{
    struct replicas_snapshot *s = handle->data;
    close(s->pipe);
    rd_free(s->part);
    rd_free(s);
}

static void end_transfer(struct replicas_snapshot *s)
{
    if (uv_is_closing((uv_handle_t *)&s->poll))
        return;
    s->durable->replication->snapshot = NULL;
    uv_poll_stop(&s->poll);
    uv_close((uv_handle_t *)&s->poll, on_closed);
}

static void log_streamed(const struct replica *replica)
{
    char name[REPLICA_NAME];
    replica_name(replica->client, name, sizeof name);
    log_notice("Streamed RDB transfer with replica %s succeeded (socket). Waiting for REPLCONF ACK "
               "from slave to enable streaming",
               name);
    if (!replica->peer.rdb_only)
        replica_log_success(replica->client);
}

static void log_result(const struct durable *durable, bool ok)
{
    for (struct repl_peer *peer = durable->replication->master->first; peer != NULL;
         peer = peer->next) {
        if (!gets_it(peer))
            continue;
        if (ok)
            log_streamed(replica_of_peer(peer));
        else
            log_warning("SYNC failed. BGSAVE child returned an error");
    }
}

/* The child has ended, and everything it wrote has been sent. */
static void finish(struct replicas_snapshot *s, bool ok)
{
    struct durable *durable = s->durable;
    end_transfer(s);
    log_result(durable, ok);
    repl_master_end_snapshot(durable->replication->master, true, ok, loop_mono_ms(durable->loop));
    replicas_advance(durable);
}

/* False: the connection is broken. */
static bool send_part(struct replicas_snapshot *s, struct replica *replica)
{
    struct client *c = replica->client;
    while (replica->piped < s->len && client_pending_output(c) == 0) {
        ssize_t n = conn_write(c->conn, s->part + replica->piped, s->len - replica->piped);
        if (n == CONN_AGAIN)
            break;
        if (n < 0)
            return false;
        replica->piped += (size_t)n;
        replica->progress_ms = loop_mono_ms(s->durable->loop);
        s->durable->replication->bytes_out += (uint64_t)n;
        s->durable->loop->stats.net_out += (uint64_t)n;
    }
    replica->piped_left = replica->piped < s->len;
    return true;
}

/* Whether all replicas have received the whole part. Closes those whose connection is broken. */
static bool send_part_to_all(struct replicas_snapshot *s)
{
    bool all = true;
    for (struct repl_peer *peer = s->durable->replication->master->first; peer != NULL;
         peer = peer->next) {
        struct replica *replica = replica_of_peer(peer);
        if (!gets_it(peer) || (replica->client->flags & CLIENT_CLOSE_ASAP))
            continue;
        if (!send_part(s, replica)) {
            log_warning("Diskless rdb transfer, write error sending DB to replica: %s",
                        strerror(errno));
            replica->piped_left = false;
            client_close_asap(replica->client);
            continue;
        }
        if (replica->piped_left) {
            conn_watch(replica->client->conn, true, true);
            all = false;
        }
    }
    return all;
}

static void watch_pipe(struct replicas_snapshot *s, bool yes);

static void begin_part(struct durable *durable)
{
    for (struct repl_peer *peer = durable->replication->master->first; peer != NULL;
         peer = peer->next) {
        replica_of_peer(peer)->piped = 0;
        replica_of_peer(peer)->progress_ms = loop_mono_ms(durable->loop);
    }
}

/* The child waits for this before it ends. */
static void end_pipe(const struct replicas_snapshot *s)
{
    log_warning("Diskless rdb transfer, done reading from pipe, %u replicas still up.",
                count_replicas(s->durable));
    shutdown(s->pipe, SHUT_WR);
}

/* Reads parts and sends them until a replica has to wait. */
static void move_on(struct replicas_snapshot *s)
{
    enum { PARTS_A_TURN = 8 };
    for (int i = 0; i < PARTS_A_TURN; i++) {
        if (!send_part_to_all(s)) {
            watch_pipe(s, false);
            return;
        }
        if (s->at_end)
            return;
        ssize_t n = read(s->pipe, s->part, PART);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        s->at_end = n <= 0;
        s->len = n > 0 ? (size_t)n : 0;
        begin_part(s->durable);
        if (s->at_end)
            end_pipe(s);
    }
    watch_pipe(s, !s->at_end);
}

static void settle(struct replicas_snapshot *s)
{
    struct durable *durable = s->durable;
    if (count_replicas(durable) == 0 && !s->killed) {
        s->killed = true;
        if (!s->at_end)
            log_warning("Diskless rdb transfer, last replica dropped, killing fork child.");
        persist_kill_transfer(durable);
    }
    if (persist_transfer_runs(durable) && !s->killed)
        return;
    if (s->killed || (s->at_end && send_part_to_all(s)))
        finish(s, !s->killed && persist_transfer_ok(durable));
}

static void on_pipe(uv_poll_t *poll, int status, int events)
{
    struct replicas_snapshot *s = poll->data;
    (void)status;
    (void)events;
    loop_awake(s->durable->loop);
    replicas_snapshot_go_on(s->durable);
}

static void watch_pipe(struct replicas_snapshot *s, bool yes)
{
    if (yes == s->reading)
        return;
    s->reading = yes;
    if (yes)
        uv_poll_start(&s->poll, UV_READABLE, on_pipe);
    else
        uv_poll_stop(&s->poll);
}

void replicas_snapshot_go_on(struct durable *durable)
{
    struct replicas_snapshot *s = durable->replication->snapshot;
    if (s == NULL || s->busy)
        return;
    s->busy = true;
    move_on(s);
    settle(s);
    s->busy = false;
}

void replicas_snapshot_streamed(struct durable *durable)
{
    replicas_snapshot_go_on(durable);
    replicas_snapshot_try(durable);
}

static bool start_diskless(struct durable *durable, const struct repl_snapshot *how)
{
    int fds[2];
    struct replicas_snapshot *s = rd_calloc(1, sizeof *s);
    struct repl_payload payload = {.by_mark = true};
    struct repl_replid mark = replication_fresh_id();
    memcpy(payload.mark, mark.hex, REPL_MARK_LEN);
    if (s == NULL || (s->part = rd_alloc(PART)) == NULL)
        replication_no_memory();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        rd_free(s->part);
        rd_free(s);
        return false;
    }
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    bool ok = persist_transfer(durable, fds[1], &payload, how->filter);
    close(fds[1]);
    if (!ok) {
        close(fds[0]);
        rd_free(s->part);
        rd_free(s);
        return false;
    }
    s->durable = durable;
    s->pipe = fds[0];
    durable->replication->snapshot = s;
    uv_poll_init(durable->loop->uv, &s->poll, s->pipe);
    s->poll.data = s;
    watch_pipe(s, true);
    return true;
}

/* ---- after a snapshot on disk ---- */

static bool needs_file(const struct repl_peer *peer)
{
    return peer->state == REPL_PEER_WAITS || peer->state == REPL_PEER_SAVES ||
           peer->state == REPL_PEER_PAYLOAD;
}

/* With rdb-del-sync-files, a server without persistence keeps no file of its data. */
void replicas_remove_file(struct durable *durable)
{
    const struct settings *s = &durable->loop->settings;
    struct replication *r = durable->replication;
    r->file_for_replicas &= s->rdb_del_sync_files;
    if (!r->file_for_replicas || s->appendonly || s->n_save > 0)
        return;
    for (const struct repl_peer *peer = r->master->first; peer != NULL; peer = peer->next)
        if (needs_file(peer))
            return;
    r->file_for_replicas = false;
    if (unlink(s->dbfilename) == 0)
        log_notice("Removing the RDB file used to feed replicas in a persistence-less instance");
}

/* ---- starting a snapshot ---- */

static void start(struct durable *durable, const struct repl_snapshot *how)
{
    struct repl_master *m = durable->replication->master;
    log_notice("Starting BGSAVE for SYNC with target: %s",
               how->by_mark ? "replicas sockets" : "disk");
    /* The replies are in the order of the stream: the offset is that of the fork. */
    repl_master_begin_snapshot(m, how);
    for (struct repl_peer *peer = m->first; peer != NULL; peer = peer->next) {
        struct replica *replica = replica_of_peer(peer);
        if (peer->state != REPL_PEER_SAVES)
            continue;
        replica->piped = 0;
        replica->piped_left = false;
        client_queue_write(replica->client);
    }
    if (how->by_mark ? start_diskless(durable, how) : persist_bgsave(durable)) {
        durable->replication->file_for_replicas |=
            !how->by_mark && durable->loop->settings.rdb_del_sync_files;
        return;
    }
    log_warning("BGSAVE for replication failed");
    repl_master_end_snapshot(m, how->by_mark, false, loop_mono_ms(durable->loop));
    replicas_advance(durable);
}

static struct repl_snapshot_policy policy(const struct durable *durable)
{
    const struct settings *s = &durable->loop->settings;
    return (struct repl_snapshot_policy){
        .diskless = s->repl_diskless_sync,
        .delay_ms = s->repl_diskless_sync_delay * 1000,
        .max_peers = (unsigned)s->repl_diskless_sync_max_replicas,
    };
}

void replicas_snapshot_try(struct durable *durable)
{
    struct repl_snapshot snapshot;
    const struct repl_snapshot_policy how = policy(durable);
    if (durable->replication->snapshot != NULL ||
        durable->persist->info.child != PERSIST_NO_CHILD ||
        !repl_master_due(durable->replication->master, &how, loop_mono_ms(durable->loop),
                         &snapshot))
        return;
    start(durable, &snapshot);
}

void replicas_snapshot_unwanted(struct durable *durable)
{
    bool on_disk =
        durable->persist->info.child == PERSIST_CHILD_RDB && durable->replication->snapshot == NULL;
    for (const struct repl_peer *peer = durable->replication->master->first; peer != NULL;
         peer = peer->next)
        if (peer->state == REPL_PEER_SAVES)
            return;
    /* With save points it may be the snapshot that is due anyway. */
    if (on_disk && durable->loop->settings.n_save == 0)
        persist_kill_bgsave(durable);
}

void replicas_snapshot_wanted(struct durable *durable, struct replica *replica)
{
    const struct repl_snapshot_policy how = policy(durable);
    const struct persist_info *info = &durable->persist->info;
    if (info->child == PERSIST_CHILD_RDB && durable->replication->snapshot == NULL) {
        if (repl_peer_join(&replica->peer)) {
            log_notice("Waiting for end of BGSAVE for SYNC");
            client_queue_write(replica->client);
        } else {
            log_notice("Can't attach the replica to the current BGSAVE. Waiting for next BGSAVE "
                       "for SYNC");
        }
    } else if (durable->replication->snapshot != NULL) {
        log_notice("Current BGSAVE has socket target. Waiting for next BGSAVE for SYNC");
    } else if (info->child != PERSIST_NO_CHILD) {
        log_notice("No BGSAVE in progress, but another BG operation is active. BGSAVE for "
                   "replication delayed");
    } else if (how.diskless && how.delay_ms > 0 && (replica->peer.capa & REPL_CAPA_EOF)) {
        log_notice("Delay next BGSAVE for diskless SYNC");
    } else {
        replicas_snapshot_try(durable);
    }
}
