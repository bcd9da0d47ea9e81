/* cluster.c - all masters of a cluster in one set, as of one moment.
 *
 * Each master is captured (capture/capture.h) into the spool: one after another they send a
 * snapshot, so that no two fork at once, and each one's stream is kept. When the last snapshot is
 * complete, all masters are asked for their offsets in one round. Each of them answers between the
 * first request and the last reply, and its offset identifies its data at that time. So the moment
 * is known up to the duration of the round, without the clocks of the masters.
 */
#include "backup/cluster.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backup/login.h"
#include "backup/snapshot.h"
#include "backup/system.h"
#include "base/mem.h"
#include "capture/capture.h"
#include "capture/segment_in.h"
#include "client/topology.h"

enum {
    PATIENCE_TRIES = 7,
    /* For the child of a master to exit after its snapshot. It may also be a save of its own. */
    CHILD_EXIT_MS = 5000
};

/* Of the folders in the spool. */
static const char prefix[] = "cluster-";

enum state { SNAPSHOTS, STREAMS };

struct member {
    struct client_target target; /* for requests; the link has its own */
    struct client_peer *peer;
    uint64_t cut;    /* the offset at the moment */
    uint64_t n_full; /* of the link, at the moment */
};

struct cluster {
    const struct backup_source *source;
    struct backup_set *set;
    struct capture capture;
    struct client_opts opts;
    sigset_t waiting;
    struct client_topology topology;
    struct member *members; /* as the nodes of the topology */
    enum state state;
    char folder[BACKUP_PATH_MAX];
};

/* ---- the spool ---- */

/* Removes a folder that contains folders of files. */
static void remove_tree(const char *path, unsigned depth)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    char inner[BACKUP_PATH_MAX];
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) >= (int)sizeof inner)
            continue;
        if (unlink(inner) != 0 && depth > 0)
            remove_tree(inner, depth - 1);
    }
    if (dir != NULL)
        closedir(dir);
    rmdir(path);
}

/* "cluster-TARGET-ID", and "cluster-ID" of older versions. */
static bool is_leftover(const char *name, const char *target)
{
    int64_t time_ms;
    size_t len = strlen(target);
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    name += sizeof prefix - 1;
    return archive_id_time(name, &time_ms) ||
           (strncmp(name, target, len) == 0 && name[len] == '-' &&
            archive_id_time(name + len + 1, &time_ms));
}

/* Removes the remains of a killed run. The lock of the target excludes other runs of the target;
 * another target may have the same spool. */
static void remove_leftovers(const char *spool, const char *target)
{
    DIR *dir = opendir(spool);
    const struct dirent *entry;
    char inner[BACKUP_PATH_MAX];
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (is_leftover(entry->d_name, target) &&
            snprintf(inner, sizeof inner, "%s/%s", spool, entry->d_name) < (int)sizeof inner)
            remove_tree(inner, 1);
    if (dir != NULL)
        closedir(dir);
}

static bool make_folder(struct cluster *c, struct rd_err *err)
{
    char spool[BACKUP_PATH_MAX];
    const struct backup_target *target = c->set->open->target;
    if (!backup_spool(target, spool, err))
        return false;
    remove_leftovers(spool, target->name);
    int len = snprintf(c->folder, sizeof c->folder, "%s/%s%s-%s", spool, prefix, target->name,
                       c->set->m.id);
    if (len < 0 || (size_t)len >= sizeof c->folder)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path of the spool is too long");
    c->capture.out = c->folder;
    if (mkdir(c->folder, 0700) == 0)
        return true;
    rd_err_sys(err, errno, "cannot create the folder");
    rd_err_origin(err, c->folder);
    return false;
}

/* ---- the members ---- */

static bool read_topology(struct cluster *c, struct client_topology *ret, struct rd_err *err)
{
    struct client_peer *peer;
    if (!client_peer_open(&peer, &c->capture.target, err))
        return false;
    bool ok = client_topology_read(ret, peer, err);
    client_peer_close(peer);
    return ok;
}

static bool find_members(struct cluster *c, struct rd_err *err)
{
    const struct client_target *seed = &c->capture.target;
    if (!read_topology(c, &c->topology, err))
        return false;
    if (c->topology.n_slots < RD_HASH_SLOTS)
        rd_watch_warn(c->source->watch,
                      "%u slots of the cluster have no master: they are not in the set",
                      RD_HASH_SLOTS - c->topology.n_slots);
    c->members = rd_calloc(c->topology.n + 1, sizeof *c->members);
    if (c->members == NULL)
        return rd_err_nomem(err, c->topology.n * sizeof *c->members);
    for (size_t i = 0; i < c->topology.n; i++) {
        const struct client_topology_node *node = &c->topology.nodes[i];
        struct member *m = &c->members[i];
        if (!client_target_at(&m->target, seed, rd_slice_str(node->host), node->port, err) ||
            !client_peer_open(&m->peer, &m->target, err))
            return false;
    }
    return c->topology.n > 0 ||
           rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the cluster has no master with slots");
}

static bool add_link(struct cluster *c, struct rd_err *err)
{
    size_t i = c->capture.n_links;
    const struct client_topology_node *node = &c->topology.nodes[i];
    struct client_target target;
    struct capture_link *link;
    char name[40];
    snprintf(name, sizeof name, "shard-%zu", i + 1);
    return client_target_at(&target, &c->capture.target, rd_slice_str(node->host), node->port,
                            err) &&
           capture_add_link(&c->capture, &target, name, &link, err);
}

/* Slots that moved during the backup would be in two masters, or in none. */
static bool check_topology(struct cluster *c, struct rd_err *err)
{
    struct client_topology now = {0};
    if (!read_topology(c, &now, err))
        return false;
    bool same = now.n == c->topology.n;
    for (size_t i = 0; same && i < now.n; i++) {
        const struct client_topology_node *a = &now.nodes[i], *b = &c->topology.nodes[i];
        same = strcmp(a->id, b->id) == 0 && a->n_ranges == b->n_ranges &&
               memcmp(a->ranges, b->ranges, a->n_ranges * sizeof *a->ranges) == 0;
    }
    client_topology_done(&now);
    return same ||
           rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the cluster changed during the backup");
}

/* ---- the moment ---- */

/* Looks for "NAME:NUMBER" in a reply to INFO. Returns false if there is none. */
static bool find_field(struct rd_slice info, const char *name, uint64_t *ret)
{
    const uint8_t *at = memmem(info.ptr, info.len, name, strlen(name));
    const uint8_t *end = info.ptr + info.len;
    *ret = 0;
    for (at = at != NULL ? at + strlen(name) : end; at < end && *at >= '0' && *at <= '9'; at++)
        *ret = 10 * *ret + (uint64_t)(*at - '0');
    return at < end;
}

static bool read_offset(struct member *m, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    if (!client_peer_read_reply(m->peer, &reply, err))
        return false;
    bool found = find_field(reply.items[0].text, "master_repl_offset:", &m->cut);
    client_peer_reply_done(&reply);
    return found || rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "%s does not report its offset",
                               m->target.name);
}

static bool ask_moment(struct cluster *c, struct rd_err *err)
{
    struct archive_manifest *m = &c->set->m;
    m->moment_from_us = capture_now_us();
    for (size_t i = 0; i < c->topology.n; i++)
        if (!client_peer_send_line(c->members[i].peer, "INFO replication", err) ||
            !client_peer_flush(c->members[i].peer, err))
            return false;
    for (size_t i = 0; i < c->topology.n; i++)
        if (!read_offset(&c->members[i], err))
            return false;
    m->moment_to_us = capture_now_us();
    for (size_t i = 0; i < c->topology.n; i++)
        c->members[i].n_full = c->capture.links[i]->n_full;
    c->state = STREAMS;
    return true;
}

/* The first round establishes the connections, so that the second one is short. */
static bool find_moment(struct cluster *c, struct rd_err *err)
{
    return ask_moment(c, err) && ask_moment(c, err);
}

static bool has_given_up(const struct capture_link *link, struct rd_err *err)
{
    if (link->state != CAPTURE_WAITING || link->tries < PATIENCE_TRIES)
        return false;
    rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the master can no longer be reached");
    rd_err_origin(err, link->target.name);
    return true;
}

static bool all_stream(const struct cluster *c)
{
    for (size_t i = 0; i < c->capture.n_links; i++)
        if (c->capture.links[i]->stream_ms == 0)
            return false;
    return true;
}

/* The child that wrote a snapshot lives until the master has removed it, after the last byte. */
static bool has_child(struct member *m, bool *ret, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    uint64_t running = 0;
    if (!client_peer_ask(m->peer, "INFO persistence", &reply, err))
        return false;
    *ret = find_field(reply.items[0].text, "rdb_bgsave_in_progress:", &running) && running != 0;
    client_peer_reply_done(&reply);
    return true;
}

static bool add_next_link(struct cluster *c, uint64_t now_ms, struct rd_err *err)
{
    size_t last = c->capture.n_links - 1;
    bool busy = false;
    if (now_ms < c->capture.links[last]->stream_ms + CHILD_EXIT_MS &&
        !has_child(&c->members[last], &busy, err))
        return false;
    return busy || add_link(c, err);
}

static bool finish_streams(struct cluster *c, struct rd_err *err)
{
    for (size_t i = 0; i < c->topology.n; i++) {
        struct capture_link *link = c->capture.links[i];
        const struct member *m = &c->members[i];
        if (link->n_full != m->n_full) {
            rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                       "the replication history of the master changed: take another backup");
            rd_err_origin(err, link->target.name);
            return false;
        }
        if (link->stream_ms != 0 && repl_capture_writer_written(link->store.writer) >= m->cut)
            link->state = CAPTURE_DONE;
    }
    return true;
}

static void on_event(struct capture *capture, const struct capture_link *link, const char *event,
                     bool trouble, const char *text)
{
    const struct cluster *c = capture->ctx;
    (void)event;
    if (trouble)
        rd_watch_warn(c->source->watch, "%s: %s", link->target.name, text);
}

static bool tick(struct capture *capture, uint64_t now_ms, uint64_t *ret_wait_ms,
                 struct rd_err *err)
{
    struct cluster *c = capture->ctx;
    capture_sooner(ret_wait_ms, 50);
    for (size_t i = 0; i < capture->n_links; i++)
        if (has_given_up(capture->links[i], err))
            return false;
    if (c->state == STREAMS)
        return finish_streams(c, err);
    if (!all_stream(c))
        return true;
    return capture->n_links < c->topology.n ? add_next_link(c, now_ms, err) : find_moment(c, err);
}

/* ---- into the set ---- */

static bool take_rdb(struct cluster *c, const struct repl_capture_segment *segment, size_t i,
                     struct rd_err *err)
{
    char file[REPL_CAPTURE_NAME], path[BACKUP_PATH_MAX], name[40];
    struct rd_src *src;
    repl_capture_snapshot_name(segment, file);
    snprintf(name, sizeof name, "shard-%zu.rdb", i + 1);
    if (snprintf(path, sizeof path, "%s/shard-%zu/%s", c->folder, i + 1, file) >= (int)sizeof path)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path of the spool is too long");
    if (!rd_src_open_file(&src, path, NULL, err))
        return false;
    bool ok = backup_snapshot_take(c->set, src, name, err);
    rd_src_close(src);
    if (ok)
        unlink(path);
    return ok;
}

static bool take_segment(struct cluster *c, const struct repl_capture_segment *segment, size_t i,
                         struct rd_err *err)
{
    char path[BACKUP_PATH_MAX], name[40 + REPL_CAPTURE_NAME];
    struct segment_in in;
    struct rd_src *src;
    snprintf(name, sizeof name, "shard-%zu-%s", i + 1, segment->name);
    if (snprintf(path, sizeof path, "%s/shard-%zu/%s", c->folder, i + 1, segment->name) >=
        (int)sizeof path)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path of the spool is too long");
    if (!segment_in_open_file(&in, path, segment->number, segment->start, err))
        return false;
    bool ok = segment_in_verify(&in, err);
    segment_in_close(&in);
    if (!ok || !rd_src_open_file(&src, path, NULL, err))
        return false;
    ok = backup_set_file_begin(c->set, name, ARCHIVE_ROLE_STREAM, err) &&
         backup_set_file_end(c->set, backup_set_copy(c->set, src, err), err);
    rd_src_close(src);
    if (ok)
        unlink(path);
    return ok;
}

static bool put_slots(struct archive_node *ret, const struct client_topology_node *node,
                      struct rd_err *err)
{
    size_t len = 0;
    for (size_t i = 0; i < node->n_ranges && len < sizeof ret->slots; i++)
        len += (size_t)snprintf(ret->slots + len, sizeof ret->slots - len, "%s%u-%u",
                                i > 0 ? "," : "", node->ranges[i].first, node->ranges[i].last);
    return len < sizeof ret->slots ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET,
                      "the slots of %s are in too many ranges: %zu", node->id, node->n_ranges);
}

static bool put_node(struct cluster *c, size_t i, const struct repl_capture_segment *base,
                     struct rd_err *err)
{
    const struct client_topology_node *node = &c->topology.nodes[i];
    struct archive_node n = {.port = node->port, .base = base->start, .offset = c->members[i].cut};
    snprintf(n.id, sizeof n.id, "%s", node->id);
    snprintf(n.host, sizeof n.host, "%s", node->host);
    snprintf(n.replid, sizeof n.replid, "%s", base->replid.hex);
    return put_slots(&n, node, err) && archive_manifest_add_node(&c->set->m, &n, err);
}

/* The snapshot with which the last chapter begins, and the stream up to the moment. */
static bool take_list(struct cluster *c, size_t i, const struct repl_capture_list *list,
                      struct rd_err *err)
{
    size_t base = list->n;
    while (base-- > 0 && !list->segments[base].has_snapshot)
        ;
    if (base >= list->n)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the capture has no snapshot");
    struct backup_set *set = c->set;
    size_t first = set->m.n_files;
    bool ok =
        put_node(c, i, &list->segments[base], err) && take_rdb(c, &list->segments[base], i, err);
    for (size_t k = base; ok && k < list->n && list->segments[k].start < c->members[i].cut; k++)
        ok = take_segment(c, &list->segments[k], i, err);
    for (; ok && first < set->m.n_files; first++)
        set->m.files[first].node = i + 1;
    return ok;
}

static bool take_member(struct cluster *c, size_t i, struct rd_err *err)
{
    char path[BACKUP_PATH_MAX + 40];
    struct repl_capture_list list;
    struct rd_fs fs;
    snprintf(path, sizeof path, "%s/shard-%zu", c->folder, i + 1);
    if (!rd_fs_open_folder(&fs, path, false, err))
        return false;
    bool ok = repl_capture_list(&list, &fs, err);
    if (ok) {
        ok = take_list(c, i, &list, err);
        repl_capture_list_done(&list);
    }
    rd_fs_close_posix(&fs);
    return ok;
}

/* ---- all of it ---- */

/* Only closed segments are stored. */
static bool close_segments(struct cluster *c, struct rd_err *err)
{
    for (size_t i = 0; i < c->capture.n_links; i++)
        if (!repl_capture_writer_roll(c->capture.links[i]->store.writer, err))
            return false;
    return true;
}

static bool capture_all(struct cluster *c, const char *url, struct rd_err *err)
{
    struct capture *capture = &c->capture;
    bool ok = capture_init(capture, backup_random, err) &&
              backup_login_find(c->set->open->target, url, &c->opts, &capture->target, err);
    if (ok)
        snprintf(c->set->m.source, sizeof c->set->m.source, "%s", c->capture.target.name);
    ok = ok && find_members(c, err) && make_folder(c, err) && add_link(c, err);
    if (ok && c->source->signals != NULL) {
        capture->stop = c->source->signals->begin(&c->waiting);
        capture->waiting = &c->waiting;
    }
    ok = ok && capture_run(capture, err);
    if (ok && capture->stop != NULL && *capture->stop != 0)
        ok = rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "stopped by a signal");
    return ok && check_topology(c, err) && close_segments(c, err);
}

static void done(struct cluster *c)
{
    if (c->folder[0] != '\0')
        remove_tree(c->folder, 1);
    for (size_t i = 0; c->members != NULL && i < c->topology.n; i++) {
        client_peer_close(c->members[i].peer);
        client_target_done(&c->members[i].target);
    }
    rd_free(c->members);
    client_topology_done(&c->topology);
}

bool backup_cluster_read(const struct backup_source *source, struct backup_set *set,
                         const char *url, struct rd_err *err)
{
    struct cluster c = {.source = source, .set = set};
    c.capture =
        (struct capture){.ack = CAPTURE_ACK_WRITTEN, .event = on_event, .tick = tick, .ctx = &c};
    rd_watch_begin(source->watch, "the masters of the cluster", RD_NO_OFFSET, NULL);
    bool ok = capture_all(&c, url, err);
    size_t n = c.topology.n;
    capture_close(&c.capture, ok ? err : NULL);
    ok = ok && err->code == RD_ERR_OK;
    for (size_t i = 0; ok && i < n; i++)
        ok = take_member(&c, i, err);
    rd_watch_end(source->watch);
    set->m.data_ms = set->m.moment_to_us / 1000;
    done(&c);
    if (c.capture.waiting != NULL)
        source->signals->end(&c.waiting);
    return ok;
}
