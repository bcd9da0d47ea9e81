/* check.c - `redoubt cluster check`: asks every node of a cluster and compares the answers. */
#include "tools/cluster/check.h"

#include "base/mem.h"

#include <stdio.h>
#include <time.h>

/* Views that differ are asked for again: news travels for a moment after each change. */
enum { ATTEMPTS = 4, PAUSE_MS = 500 };

/* ---- which nodes there are ---- */

static bool has_address(const struct cluster_check *check, const char *host, unsigned port)
{
    for (size_t i = 0; i < check->n_servers; i++) {
        const struct client_target *target = &check->servers[i].target;
        if (target->port == port && strcmp(target->host, host) == 0)
            return true;
    }
    return false;
}

static struct cluster_server *add_server(struct cluster_check *check, struct rd_err *err)
{
    size_t size = (check->n_servers + 1) * sizeof *check->servers;
    struct cluster_server *grown = rd_realloc(check->servers, size);
    if (grown == NULL) {
        rd_err_nomem(err, size);
        return NULL;
    }
    check->servers = grown;
    grown[check->n_servers] = (struct cluster_server){0};
    return &grown[check->n_servers++];
}

static bool knows(const struct cluster_check *check, const char *id)
{
    for (size_t i = 0; i < check->n_servers; i++) {
        const struct cluster_conf_node *myself = cluster_conf_myself(&check->servers[i].conf);
        if (myself != NULL && strcmp(myself->id, id) == 0)
            return true;
    }
    return false;
}

/* Adds the nodes that a server knows and that were not asked. */
static bool add_known(struct cluster_check *check, size_t at, bool *ret_new, struct rd_err *err)
{
    enum { NOT_ASKED = CLUSTER_FLAG_MYSELF | CLUSTER_FLAG_HANDSHAKE | CLUSTER_FLAG_NO_ADDRESS };
    for (size_t i = 0; i < check->servers[at].conf.n_nodes; i++) {
        struct cluster_conf_node node = check->servers[at].conf.nodes[i];
        if ((node.flags & NOT_ASKED) != 0 || node.host[0] == '\0' || node.port == 0 ||
            knows(check, node.id) || has_address(check, node.host, node.port))
            continue;
        struct cluster_server *server = add_server(check, err);
        if (server == NULL || !client_target_at(&server->target, &check->servers[0].target,
                                                rd_slice_str(node.host), node.port, err))
            return false;
        cluster_ask_view(server);
        *ret_new = true;
    }
    return true;
}

/* Every node names others, so a node that the first one has forgotten is found, too. */
static bool find_all(struct cluster_check *check, struct rd_err *err)
{
    bool is_new = true;
    while (is_new) {
        is_new = false;
        for (size_t i = 0; i < check->n_servers; i++) {
            if (!add_known(check, i, &is_new, err))
                return false;
        }
    }
    return true;
}

/* ---- views ---- */

static bool compare(struct cluster_check *check, struct rd_err *err)
{
    struct cluster_run *run = check->run;
    cluster_views_done(&run->all);
    rd_free(check->views);
    check->views = rd_calloc(check->n_servers, sizeof *check->views);
    check->n_views = 0;
    if (check->views == NULL)
        return rd_err_nomem(err, check->n_servers * sizeof *check->views);
    for (size_t i = 0; i < check->n_servers; i++) {
        const struct cluster_server *server = &check->servers[i];
        if (server->why.code == RD_ERR_OK)
            check->views[check->n_views++] =
                (struct cluster_view){server->target.name, &server->conf};
    }
    return cluster_views_compare(&run->all, check->views, check->n_views, err);
}

/* Whether the views differ in what gossip will settle. */
static bool is_settling(const struct cluster_views *all)
{
    for (size_t i = 0; i < all->n_findings; i++) {
        switch (all->findings[i].kind) {
        case CLUSTER_FINDING_OUTDATED:
        case CLUSTER_FINDING_MISSING:
        case CLUSTER_FINDING_ROLE:
        case CLUSTER_FINDING_ADDRESS:
        case CLUSTER_FINDING_HANDSHAKE:
        case CLUSTER_FINDING_SAME_EPOCH:
            return true;
        default:
            break;
        }
    }
    return false;
}

static bool read_views(struct cluster_check *check, struct rd_err *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    for (unsigned n = 1;; n++) {
        if (!find_all(check, err) || !compare(check, err))
            return false;
        if (n == ATTEMPTS || !is_settling(&check->run->all))
            return true;
        nanosleep(&pause, NULL);
        for (size_t i = 0; i < check->n_servers; i++)
            cluster_ask_view(&check->servers[i]);
    }
}

/* ---- the rest ---- */

static void ask_all(struct cluster_check *check)
{
    const struct cluster_views *all = &check->run->all;
    for (size_t i = 0; i < check->n_servers; i++) {
        struct cluster_server *server = &check->servers[i];
        const struct cluster_conf_node *myself = cluster_conf_myself(&server->conf);
        size_t node = myself != NULL ? cluster_views_find(all, myself->id) : CLUSTER_NONE;
        if (server->why.code != RD_ERR_OK)
            continue;
        bool master = node != CLUSTER_NONE && myself->master[0] == '\0';
        cluster_ask_rest(server, master ? &all->nodes[node].slots : NULL);
    }
}

static size_t count_remarks(const struct cluster_check *check, enum cluster_severity severity)
{
    size_t n = 0;
    for (size_t i = 0; i < check->n_remarks; i++)
        n += check->remarks[i].severity >= severity;
    return n;
}

static void put_remark(struct json_write *json, const struct cluster_remark *remark)
{
    json_obj(json);
    json_put_str(json, "remark", remark->word);
    json_put_str(json, "severity", cluster_severity_word(remark->severity));
    json_put_str(json, "server", remark->node[0] != '\0' ? remark->node : NULL);
    json_put_str(json, "text", remark->text);
    json_end(json);
}

/* What several nodes have in common is printed once. */
static void print_remark(const struct cluster_check *check, const struct cluster_remark *remark)
{
    size_t n = 0;
    for (size_t i = 0; remark->node[0] != '\0' && i < check->n_remarks; i++) {
        const struct cluster_remark *other = &check->remarks[i];
        if (strcmp(other->text, remark->text) != 0)
            continue;
        if (++n == 1 && other != remark)
            return;
    }
    printf("%-7s  %s", cluster_severity_word(remark->severity), remark->node);
    if (n > 1)
        printf(" and %zu more", n - 1);
    printf("%s%s\n", remark->node[0] != '\0' ? ": " : "",
           rd_show_sentence(rd_slice_str(remark->text)).s);
}

static void report_remarks(const struct cluster_check *check)
{
    struct cli *cli = check->run->cli;
    if (cli->json) {
        json_key(&cli->out, "remarks");
        json_array(&cli->out);
    }
    for (int severity = CLUSTER_ERROR; severity >= CLUSTER_NOTE; severity--) {
        for (size_t i = 0; i < check->n_remarks; i++) {
            if ((int)check->remarks[i].severity != severity)
                continue;
            if (cli->json)
                put_remark(&cli->out, &check->remarks[i]);
            else if (!cli->quiet)
                print_remark(check, &check->remarks[i]);
        }
    }
    if (cli->json)
        json_end(&cli->out);
}

static void say_verdict(const struct cluster_check *check, size_t n)
{
    struct cli *cli = check->run->cli;
    size_t silent = check->n_servers - check->n_views;
    if (cli->json) {
        json_put_str(&cli->out, "verdict", n == 0 ? "sound" : "problems");
        json_put_uint(&cli->out, "n_problems", n);
        json_put_uint(&cli->out, "n_servers", check->n_servers);
        json_put_uint(&cli->out, "n_silent", silent);
        return;
    }
    if (cli->quiet)
        return;
    if (n == 0)
        printf("verdict: all %u slots are covered, and all %zu nodes agree\n", RD_HASH_SLOTS,
               check->n_servers);
    else
        printf("verdict: %zu problem%s\n", n, rd_show_plural(n));
}

static bool work(struct cluster_check *check, int *ret_status, struct rd_err *err)
{
    struct cluster_run *run = check->run;
    struct cluster_server *first = add_server(check, err);
    if (first == NULL ||
        !peer_target_find(&first->target, &run->opts.peer, cli_url(run->cli, 1), err))
        return false;
    if (!cluster_ask_view(first)) {
        rd_err_adopt(err, &first->why);
        peer_hint(run->cli, err);
        return false;
    }
    if (!read_views(check, err))
        return false;
    ask_all(check);
    if (!cluster_judge(check, err))
        return false;
    cluster_report_nodes(run);
    cluster_report_findings(run);
    report_remarks(check);
    size_t n = cluster_count(run, CLUSTER_WARNING) + count_remarks(check, CLUSTER_WARNING);
    say_verdict(check, n);
    *ret_status = n == 0 ? CLI_OK : CLI_FINDINGS;
    return true;
}

int cluster_check(struct cluster_run *run)
{
    struct cluster_check check = {.run = run};
    struct rd_err err = {0};
    int status;
    run->live = true;
    if (!work(&check, &status, &err))
        status = cli_fail(run->cli, &err);
    cluster_views_done(&run->all);
    for (size_t i = 0; i < check.n_servers; i++)
        cluster_server_done(&check.servers[i]);
    rd_free(check.servers);
    rd_free(check.views);
    rd_free(check.remarks);
    return status;
}
