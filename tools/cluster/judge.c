#include "tools/cluster/check.h"

#include "base/mem.h"
#include "client/info.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* server: NULL: of the cluster. */
static RD_PRINTF(6, 7) bool add(struct cluster_check *check, const struct cluster_server *server,
                                const char *word, enum cluster_severity severity,
                                struct rd_err *err, const char *fmt, ...)
{
    size_t size = (check->n_remarks + 1) * sizeof *check->remarks;
    struct cluster_remark *grown = rd_realloc(check->remarks, size);
    va_list args;
    if (grown == NULL)
        return rd_err_nomem(err, size);
    check->remarks = grown;
    struct cluster_remark *remark = &grown[check->n_remarks++];
    *remark = (struct cluster_remark){.word = word, .severity = severity};
    if (server != NULL)
        snprintf(remark->node, sizeof remark->node, "%s", server->target.name);
    va_start(args, fmt);
    vsnprintf(remark->text, sizeof remark->text, fmt, args);
    va_end(args);
    return true;
}

static bool answers(const struct cluster_server *server)
{
    return server->why.code == RD_ERR_OK;
}

static bool is_replica(const struct cluster_server *server)
{
    const struct cluster_conf_node *myself = cluster_conf_myself(&server->conf);
    return myself != NULL && myself->master[0] != '\0';
}

/* ---- each node ---- */

static bool judge_answer(struct cluster_check *check, const struct cluster_server *server,
                         struct rd_err *err)
{
    char line[2 * RD_ERR_TEXT_MAX];
    struct rd_err why = server->why;
    if (answers(server))
        return server->state[0] == '\0' || strcmp(server->state, "ok") == 0 ||
               add(check, server, "state-not-ok", CLUSTER_ERROR, err,
                   "cluster_state is %s: commands are refused", server->state);
    why.origin[0] = '\0';
    rd_err_render(&why, line, sizeof line);
    return add(check, server, "no-answer", CLUSTER_ERROR, err, "no answer: %s", line);
}

/* Whether one of the views says that the slot is being moved from or to the node. */
static bool is_moving(const struct cluster_server *server, unsigned slot)
{
    const struct cluster_conf_node *myself = cluster_conf_myself(&server->conf);
    for (size_t i = 0; myself != NULL && i < myself->n_moves; i++) {
        if (myself->moves[i].slot == slot)
            return true;
    }
    return false;
}

static bool judge_keys(struct cluster_check *check, const struct cluster_server *server,
                       struct rd_err *err)
{
    unsigned n = 0, stray = 0, first = 0;
    for (unsigned slot = 0; slot < RD_HASH_SLOTS && server->n_foreign > 0; slot++) {
        if ((server->foreign[slot / 64] >> (slot % 64) & 1) == 0)
            continue;
        n++;
        if (!is_moving(server, slot) && stray++ == 0)
            first = slot;
    }
    if (n == 0)
        return true;
    if (stray == 0)
        return add(check, server, "keys-moving", CLUSTER_NOTE, err,
                   "%" PRIu64 " key%s in %u slot%s that %s being moved", server->n_foreign,
                   rd_show_plural(server->n_foreign), n, rd_show_plural(n), n == 1 ? "is" : "are");
    return add(check, server, "foreign-keys", CLUSTER_WARNING, err,
               "%" PRIu64 " key%s in %u slot%s of other nodes, the first %u: clients cannot "
               "reach them",
               server->n_foreign, rd_show_plural(server->n_foreign), n, rd_show_plural(n), first);
}

static bool judge_replication(struct cluster_check *check, const struct cluster_server *server,
                              struct rd_err *err)
{
    struct rd_slice info = rd_buf_slice(&server->info), link;
    if (!is_replica(server) || !client_info_find(info, "master_link_status", &link) ||
        rd_slice_is(link, "up"))
        return true;
    struct rd_slice syncing;
    bool sync =
        client_info_find(info, "master_sync_in_progress", &syncing) && rd_slice_is(syncing, "1");
    return add(check, server, "link-down", CLUSTER_WARNING, err, "no connection to the master%s",
               sync ? ": a full sync is under way" : "");
}

static bool judge_node(struct cluster_check *check, const struct cluster_server *server,
                       struct rd_err *err)
{
    if (!judge_answer(check, server, err))
        return false;
    return !answers(server) ||
           (judge_keys(check, server, err) && judge_replication(check, server, err));
}

/* ---- nodes among each other ---- */

static struct rd_slice version_of(const struct cluster_server *server)
{
    struct rd_slice info = rd_buf_slice(&server->info), version;
    if (client_info_find(info, "valkey_version", &version) ||
        client_info_find(info, "redis_version", &version))
        return version;
    return rd_slice("", 0);
}

static bool judge_versions(struct cluster_check *check, struct rd_err *err)
{
    const struct cluster_server *first = NULL;
    for (size_t i = 0; i < check->n_servers; i++) {
        const struct cluster_server *server = &check->servers[i];
        struct rd_slice version = version_of(server);
        if (!answers(server) || version.len == 0)
            continue;
        if (first == NULL)
            first = server;
        struct rd_slice other = version_of(first);
        if (!rd_slice_eq(version, other) &&
            !add(check, server, "version-differs", CLUSTER_NOTE, err, "version %s, but %s has %s",
                 rd_show_plain(version).s, first->target.name, rd_show_plain(other).s))
            return false;
    }
    return true;
}

/* Compares a setting with that of the first node that has told it. */
static bool judge_setting(struct cluster_check *check, size_t at, const char *name, bool danger,
                          struct rd_err *err)
{
    const struct cluster_server *first = NULL;
    for (size_t i = 0; i < check->n_servers; i++) {
        const struct cluster_server *server = &check->servers[i];
        if (server->values[at][0] == '\0')
            continue;
        if (first == NULL)
            first = server;
        if (strcmp(server->values[at], first->values[at]) != 0 &&
            !add(check, server, "setting-differs", danger ? CLUSTER_WARNING : CLUSTER_NOTE, err,
                 "%s is %s, but %s has %s", name, server->values[at], first->target.name,
                 first->values[at]))
            return false;
    }
    return true;
}

static bool judge_settings(struct cluster_check *check, struct rd_err *err)
{
    static const struct {
        const char *name;
        bool danger;
    } settings[] = {
#define X(name, danger) {name, danger},
        CLUSTER_SETTINGS(X)
#undef X
    };
    for (size_t i = 0; i < CLUSTER_N_SETTINGS; i++) {
        if (!judge_setting(check, i, settings[i].name, settings[i].danger, err))
            return false;
    }
    return true;
}

/* ---- hosts ---- */

static bool has_slots(const struct cluster_views_node *node)
{
    return cluster_slots_count(&node->slots) > 0;
}

/* Masters whose host fails together: without a majority of them, nothing is failed over. */
static bool judge_hosts(struct cluster_check *check, struct rd_err *err)
{
    const struct cluster_views *all = &check->run->all;
    size_t masters = 0;
    for (size_t i = 0; i < all->n_nodes; i++)
        masters += has_slots(&all->nodes[i]);
    for (size_t i = 0; i < all->n_nodes; i++) {
        const struct cluster_views_node *node = &all->nodes[i];
        size_t here = 0, before = 0;
        for (size_t k = 0; has_slots(node) && k < all->n_nodes; k++) {
            if (!has_slots(&all->nodes[k]) ||
                strcmp(all->nodes[k].best->host, node->best->host) != 0)
                continue;
            here++;
            before += k < i;
        }
        if (before == 0 && here > 1 && here * 2 >= masters &&
            !add(check, NULL, "masters-on-one-host", CLUSTER_NOTE, err,
                 "%zu of %zu masters are on the host %s: if it fails, no replica is promoted", here,
                 masters, node->best->host))
            return false;
    }
    return true;
}

static bool judge_replica_hosts(struct cluster_check *check, struct rd_err *err)
{
    const struct cluster_views *all = &check->run->all;
    size_t n = 0, replicas = 0;
    const struct cluster_views_node *first = NULL;
    for (size_t i = 0; i < all->n_nodes; i++) {
        const struct cluster_views_node *node = &all->nodes[i];
        size_t master = node->best->master[0] != '\0' ? cluster_views_find(all, node->best->master)
                                                      : CLUSTER_NONE;
        replicas += node->best->master[0] != '\0';
        if (master == CLUSTER_NONE || strcmp(all->nodes[master].best->host, node->best->host) != 0)
            continue;
        if (n++ == 0)
            first = node;
    }
    return n == 0 || add(check, NULL, "replica-on-same-host", CLUSTER_NOTE, err,
                         "%zu of %zu replicas are on the host of their master, such as %.8s on %s",
                         n, replicas, first->id, first->best->host);
}

/* ---- slots without an owner ---- */

static bool has_keys(const struct cluster_server *server, unsigned slot)
{
    return server->counted && (server->foreign[slot / 64] >> (slot % 64) & 1) != 0;
}

/* What `redis-cli --cluster fix` would do with them. */
static bool judge_uncovered(struct cluster_check *check, struct rd_err *err)
{
    const struct cluster_views *all = &check->run->all;
    unsigned uncovered = 0, found = 0;
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if (all->owner[slot] != 0)
            continue;
        bool here = false;
        for (size_t i = 0; i < check->n_servers && !here; i++)
            here = has_keys(&check->servers[i], slot);
        uncovered++;
        found += here;
    }
    if (uncovered == 0)
        return true;
    return add(check, NULL, "fix-would", CLUSTER_NOTE, err,
               "redis-cli --cluster fix would give %u slots to other masters; %u of them have keys "
               "on a node that answers. The keys of the others would not come back, even if "
               "their node does: it drops them as slots of other nodes",
               uncovered, found);
}

bool cluster_judge(struct cluster_check *check, struct rd_err *err)
{
    for (size_t i = 0; i < check->n_servers; i++) {
        if (!judge_node(check, &check->servers[i], err))
            return false;
    }
    return judge_uncovered(check, err) && judge_versions(check, err) &&
           judge_settings(check, err) && judge_hosts(check, err) && judge_replica_hosts(check, err);
}
