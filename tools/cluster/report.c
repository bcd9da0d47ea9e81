#include "tools/cluster/cluster.h"

#include <inttypes.h>

#define SHORT "%.8s" /* the beginning of an id, enough to tell nodes apart */

static const char *const severity_words[] = {
    [CLUSTER_NOTE] = "note",
    [CLUSTER_WARNING] = "warning",
    [CLUSTER_ERROR] = "error",
};

const char *cluster_severity_word(enum cluster_severity severity)
{
    return severity_words[severity];
}

/* In a file, a failed node is history. */
static enum cluster_severity severity_of(const struct cluster_run *run,
                                         const struct cluster_finding *f)
{
    bool failed = f->kind == CLUSTER_FINDING_FAILED || f->kind == CLUSTER_FINDING_MAYBE_FAILED;
    return run->live && failed ? CLUSTER_WARNING : cluster_finding_severity(f->kind);
}

size_t cluster_count(const struct cluster_run *run, enum cluster_severity severity)
{
    size_t n = 0;
    for (size_t i = 0; i < run->all.n_findings; i++)
        n += severity_of(run, &run->all.findings[i]) >= severity;
    return n;
}

/* ---- problems of one file ---- */

void cluster_say_problem(struct cluster_run *run, const struct cluster_file *file,
                         enum cluster_conf_problem problem, uint64_t offset, unsigned line,
                         const char *text)
{
    struct json_write *json = &run->cli->out;
    if (run->cli->json) {
        json_obj(json);
        json_put_str(json, "problem", cluster_conf_problem_word(problem));
        json_put_offset(json, "offset", line > 0 ? offset : RD_NO_OFFSET);
        json_put_uint(json, "line", line);
        json_put_str(json, "text", text);
        json_put_bool(json, "fatal", cluster_conf_problem_fatal(problem));
        json_end(json);
    } else if (!run->cli->quiet) {
        printf("%s", rd_show_plain(rd_slice_str(file->path)).s);
        if (line > 0)
            printf(", line %u at byte %" PRIu64, line, offset);
        printf(": %s%s\n", rd_show_sentence(rd_slice_str(text)).s,
               cluster_conf_problem_fatal(problem) ? "; servers do not start, or misread it" : "");
    }
}

/* ---- nodes ---- */

static const char *role_of(const struct cluster_conf_node *line, char *dst, size_t size)
{
    if (line->master[0] != '\0')
        snprintf(dst, size, "replica of " SHORT, line->master);
    else
        snprintf(dst, size, "master");
    return dst;
}

static const char *address_of(const struct cluster_conf_node *line, char *dst, size_t size)
{
    if (line->host[0] == '\0')
        snprintf(dst, size, "-");
    else
        snprintf(dst, size, "%s:%u", line->host, line->port);
    return dst;
}

static void print_slots(const struct cluster_slots *slots)
{
    unsigned first, last, n = 0;
    enum { SHOWN = 4 };
    for (unsigned at = 0; cluster_slots_next_range(slots, at, &first, &last); at = last + 1) {
        if (n++ >= SHOWN)
            continue;
        printf("%s%u", n > 1 ? "," : "", first);
        if (last > first)
            printf("-%u", last);
    }
    if (n > SHOWN)
        printf(" and %u more", n - SHOWN);
    printf("%s", n == 0 ? "-" : "");
}

static void print_nodes(const struct cluster_run *run)
{
    const struct cluster_views *all = &run->all;
    char address[CLUSTER_HOST_MAX + 20], role[40];
    printf("%-8s  %-21s  %-19s  %5s  %s\n", "node", "address", "role", "epoch", "slots");
    for (size_t i = 0; i < all->n_nodes; i++) {
        const struct cluster_views_node *node = &all->nodes[i];
        printf(SHORT "  %-21s  %-19s  %5" PRIu64 "  ", node->id,
               address_of(node->best, address, sizeof address),
               role_of(node->best, role, sizeof role), node->best->epoch);
        print_slots(&node->slots);
        printf("\n");
    }
}

static void put_ranges(struct json_write *json, const struct cluster_slots *slots)
{
    unsigned first, last;
    json_key(json, "slots");
    json_array(json);
    for (unsigned at = 0; cluster_slots_next_range(slots, at, &first, &last); at = last + 1) {
        json_array(json);
        json_uint(json, first);
        json_uint(json, last);
        json_end(json);
    }
    json_end(json);
}

static void put_nodes(const struct cluster_run *run)
{
    struct json_write *json = &run->cli->out;
    const struct cluster_views *all = &run->all;
    json_put_uint(json, "current_epoch", all->current_epoch);
    json_key(json, "nodes");
    json_array(json);
    for (size_t i = 0; i < all->n_nodes; i++) {
        const struct cluster_views_node *node = &all->nodes[i];
        json_obj(json);
        json_put_str(json, "id", node->id);
        json_put_str(json, "host", node->best->host[0] != '\0' ? node->best->host : NULL);
        json_put_uint(json, "port", node->best->port);
        json_put_str(json, "master", node->best->master[0] != '\0' ? node->best->master : NULL);
        json_put_uint(json, "epoch", node->best->epoch);
        json_put_str(json, "file",
                     node->own_view != CLUSTER_NONE ? all->views[node->own_view].name : NULL);
        put_ranges(json, &node->slots);
        json_end(json);
    }
    json_end(json);
}

void cluster_report_nodes(const struct cluster_run *run)
{
    if (run->cli->json)
        put_nodes(run);
    else if (!run->cli->quiet && run->all.n_nodes > 0)
        print_nodes(run);
}

/* ---- findings ---- */

static const char *slots_text(const struct cluster_finding *f, char *dst, size_t size)
{
    if (f->first == f->last)
        snprintf(dst, size, "slot %u", f->first);
    else
        snprintf(dst, size, "slots %u-%u", f->first, f->last);
    return dst;
}

static const char *id_of(const struct cluster_views *all, size_t node)
{
    return node != CLUSTER_NONE ? all->nodes[node].id : "an unknown node";
}

static const struct cluster_conf_node *line_in(const struct cluster_views *all,
                                               const struct cluster_finding *f)
{
    return cluster_conf_find(all->views[f->view].conf, all->nodes[f->node].id);
}

/* Findings about one view. */
static void view_text(const struct cluster_views *all, const struct cluster_finding *f, char *dst,
                      size_t size)
{
    char a[CLUSTER_HOST_MAX + 20], b[CLUSTER_HOST_MAX + 20];
    const char *node = id_of(all, f->node), *other = id_of(all, f->other);
    switch (f->kind) {
    case CLUSTER_FINDING_SAME_SELF:
        snprintf(dst, size, "is of the node " SHORT ", as %s is: a copied file or volume", node,
                 all->views[all->nodes[f->node].own_view].name);
        break;
    case CLUSTER_FINDING_STRANGERS:
        snprintf(dst, size, "has no node in common with %s: another cluster", all->views[0].name);
        break;
    case CLUSTER_FINDING_OUTDATED:
        if (f->other != CLUSTER_NONE)
            snprintf(dst, size, "gives %s to " SHORT ", but " SHORT " took over later",
                     slots_text(f, a, sizeof a), other, node);
        else
            snprintf(dst, size, "has no owner for %s, which " SHORT " has",
                     slots_text(f, a, sizeof a), node);
        break;
    case CLUSTER_FINDING_MISSING:
        snprintf(dst, size, "does not know the node " SHORT " (%s)", node,
                 address_of(all->nodes[f->node].best, a, sizeof a));
        break;
    case CLUSTER_FINDING_ROLE:
        snprintf(dst, size, "has " SHORT " as %s, but it is %s", node,
                 role_of(line_in(all, f), a, sizeof a),
                 role_of(all->nodes[f->node].best, b, sizeof b));
        break;
    case CLUSTER_FINDING_ADDRESS:
        snprintf(dst, size, "has the address %s of " SHORT ", but the newest is %s",
                 address_of(line_in(all, f), a, sizeof a), node,
                 address_of(all->nodes[f->node].best, b, sizeof b));
        break;
    case CLUSTER_FINDING_MOVING:
        snprintf(dst, size, "has begun to move slot %u from " SHORT " to " SHORT, f->first, node,
                 other);
        break;
    case CLUSTER_FINDING_IMPORTING:
        snprintf(dst, size, "has begun to take slot %u to " SHORT " from " SHORT, f->first, node,
                 other);
        break;
    case CLUSTER_FINDING_FAILED:
        snprintf(dst, size, "considers " SHORT " failed", node);
        break;
    case CLUSTER_FINDING_MAYBE_FAILED:
        snprintf(dst, size, "cannot reach " SHORT, node);
        break;
    case CLUSTER_FINDING_HANDSHAKE:
        snprintf(dst, size, "has a node whose id it does not know yet");
        break;
    default: /* CLUSTER_FINDING_EPOCH_LOW */
        snprintf(dst, size, "has currentEpoch %" PRIu64 "; the newest is %" PRIu64,
                 all->views[f->view].conf->current_epoch, all->current_epoch);
    }
}

/* Findings about the cluster. */
static void cluster_text(const struct cluster_views *all, const struct cluster_finding *f,
                         char *dst, size_t size)
{
    char slots[40];
    const char *node = id_of(all, f->node), *other = id_of(all, f->other);
    switch (f->kind) {
    case CLUSTER_FINDING_UNCOVERED:
        snprintf(dst, size, "%s: no node owns %s", slots_text(f, slots, sizeof slots),
                 f->first == f->last ? "it" : "them");
        break;
    case CLUSTER_FINDING_DISPUTED:
        snprintf(dst, size, "%s: " SHORT " and " SHORT " claim %s with the same epoch",
                 slots_text(f, slots, sizeof slots), node, other,
                 f->first == f->last ? "it" : "them");
        break;
    case CLUSTER_FINDING_LOST_MASTER:
        snprintf(dst, size, "the master " SHORT " of the replica " SHORT " is unknown",
                 all->nodes[f->node].best->master, node);
        break;
    case CLUSTER_FINDING_CHAIN:
        snprintf(dst, size, SHORT " replicates " SHORT ", which is a replica", node, other);
        break;
    case CLUSTER_FINDING_SAME_EPOCH:
        snprintf(dst, size, "the masters " SHORT " and " SHORT " have the same epoch %" PRIu64,
                 node, other, all->nodes[f->node].best->epoch);
        break;
    default: /* CLUSTER_FINDING_NO_REPLICA */
        snprintf(dst, size, "the master " SHORT " has no replica", node);
    }
}

static void put_finding(const struct cluster_run *run, const struct cluster_finding *f,
                        const char *text)
{
    struct json_write *json = &run->cli->out;
    const struct cluster_views *all = &run->all;
    json_obj(json);
    json_put_str(json, "finding", cluster_finding_word(f->kind));
    json_put_str(json, "severity", severity_words[severity_of(run, f)]);
    json_put_str(json, "file", f->view != CLUSTER_NONE ? all->views[f->view].name : NULL);
    json_put_str(json, "node", f->node != CLUSTER_NONE ? id_of(all, f->node) : NULL);
    json_put_str(json, "other", f->other != CLUSTER_NONE ? id_of(all, f->other) : NULL);
    if (f->last > 0 || f->kind == CLUSTER_FINDING_UNCOVERED) {
        json_put_uint(json, "first_slot", f->first);
        json_put_uint(json, "last_slot", f->last);
    }
    json_put_str(json, "text", text);
    json_end(json);
}

/* Of servers: every node notes the failure of another one, which is said once. *ret_n: how many. */
static bool is_repeated(const struct cluster_run *run, const struct cluster_finding *f,
                        size_t *ret_n)
{
    const struct cluster_views *all = &run->all;
    *ret_n = 0;
    if (!run->live ||
        (f->kind != CLUSTER_FINDING_FAILED && f->kind != CLUSTER_FINDING_MAYBE_FAILED))
        return false;
    for (size_t i = 0; i < all->n_findings; i++) {
        const struct cluster_finding *other = &all->findings[i];
        if (other->kind != f->kind || other->node != f->node)
            continue;
        if (++*ret_n == 1 && other != f)
            return true;
    }
    return false;
}

static void print_failed(const struct cluster_run *run, const struct cluster_finding *f, size_t n)
{
    const char *what = f->kind == CLUSTER_FINDING_FAILED
                           ? (n == 1 ? "node considers" : "nodes consider")
                           : (n == 1 ? "node cannot reach" : "nodes cannot reach");
    printf("%-7s  %zu %s " SHORT "%s\n", severity_words[severity_of(run, f)], n, what,
           id_of(&run->all, f->node), f->kind == CLUSTER_FINDING_FAILED ? " failed" : "");
}

static void report_finding(const struct cluster_run *run, const struct cluster_finding *f)
{
    const struct cluster_views *all = &run->all;
    enum cluster_severity severity = severity_of(run, f);
    size_t n;
    char text[RD_ERR_TEXT_MAX * 2 + CLUSTER_HOST_MAX];
    if (f->view != CLUSTER_NONE)
        view_text(all, f, text, sizeof text);
    else
        cluster_text(all, f, text, sizeof text);
    if (run->cli->json) {
        put_finding(run, f, text);
        return;
    }
    if (run->cli->quiet || (severity == CLUSTER_NOTE && run->cli->verbose == 0 && !run->live))
        return;
    if (is_repeated(run, f, &n))
        return;
    if (n > 0) {
        print_failed(run, f, n);
        return;
    }
    printf("%-7s  ", severity_words[severity]);
    if (f->view != CLUSTER_NONE)
        printf("%s ", rd_show_plain(rd_slice_str(all->views[f->view].name)).s);
    printf("%s\n", rd_show_sentence(rd_slice_str(text)).s);
}

void cluster_report_findings(const struct cluster_run *run)
{
    struct json_write *json = &run->cli->out;
    if (run->cli->json) {
        json_key(json, "findings");
        json_array(json);
    }
    for (size_t i = 0; i < run->all.n_findings; i++)
        report_finding(run, &run->all.findings[i]);
    if (run->cli->json)
        json_end(json);
    size_t notes = cluster_count(run, CLUSTER_NOTE) - cluster_count(run, CLUSTER_WARNING);
    if (!run->cli->json && !run->live && notes > 0 && run->cli->verbose == 0)
        cli_note(run->cli, "%zu note%s, such as nodes that were not reached: -v shows %s", notes,
                 rd_show_plural(notes), notes == 1 ? "it" : "them");
}
