#include "base/mem.h"
#include "cluster/nodes_conf_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct reading {
    struct cluster_conf *conf;
    cluster_conf_problem_fn problem;
    void *ctx;
    struct rd_err *err;
    uint64_t offset; /* of the line */
    unsigned line;
    bool is_reply;
};

/* ---- the list of nodes ---- */

bool cluster_is_id(struct rd_slice text)
{
    if (text.len != CLUSTER_ID_LEN)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z'))
            return false;
    }
    return true;
}

void cluster_conf_free_node(struct cluster_conf_node *node)
{
    rd_free(node->more);
    rd_free(node->moves);
}

void cluster_conf_done(struct cluster_conf *conf)
{
    for (size_t i = 0; i < conf->n_nodes; i++)
        cluster_conf_free_node(&conf->nodes[i]);
    rd_free(conf->nodes);
    *conf = (struct cluster_conf){0};
}

struct cluster_conf_node *cluster_conf_add(struct cluster_conf *conf)
{
    if (conf->n_nodes == CLUSTER_NODES_MAX)
        return NULL;
    if (conf->n_nodes == conf->cap) {
        size_t cap = conf->cap > 0 ? conf->cap * 2 : 8;
        struct cluster_conf_node *nodes = rd_realloc(conf->nodes, cap * sizeof *nodes);
        if (nodes == NULL)
            return NULL;
        conf->nodes = nodes;
        conf->cap = cap;
    }
    struct cluster_conf_node *node = &conf->nodes[conf->n_nodes++];
    *node = (struct cluster_conf_node){0};
    return node;
}

bool cluster_conf_node_add_move(struct cluster_conf_node *node, const struct cluster_move *move)
{
    struct cluster_move *moves = rd_realloc(node->moves, (node->n_moves + 1) * sizeof *moves);
    if (moves == NULL)
        return false;
    node->moves = moves;
    node->moves[node->n_moves++] = *move;
    return true;
}

static bool copy_parts(struct cluster_conf_node *copy, const struct cluster_conf_node *node)
{
    if (node->more != NULL) {
        size_t size = strlen(node->more) + 1;
        copy->more = rd_alloc(size);
        if (copy->more == NULL)
            return false;
        memcpy(copy->more, node->more, size);
    }
    for (size_t i = 0; i < node->n_moves; i++) {
        if (!cluster_conf_node_add_move(copy, &node->moves[i]))
            return false;
    }
    return true;
}

struct cluster_conf_node *cluster_conf_copy_node(struct cluster_conf *conf,
                                                 const struct cluster_conf_node *node)
{
    struct cluster_conf_node *copy = cluster_conf_add(conf);
    if (copy == NULL)
        return NULL;
    *copy = *node;
    copy->more = NULL;
    copy->moves = NULL;
    copy->n_moves = 0;
    return copy_parts(copy, node) ? copy : NULL;
}

struct cluster_conf_node *cluster_conf_find(const struct cluster_conf *conf, const char *id)
{
    for (size_t i = 0; i < conf->n_nodes; i++) {
        if (strcmp(conf->nodes[i].id, id) == 0)
            return &conf->nodes[i];
    }
    return NULL;
}

struct cluster_conf_node *cluster_conf_myself(const struct cluster_conf *conf)
{
    for (size_t i = 0; i < conf->n_nodes; i++) {
        if (conf->nodes[i].flags & CLUSTER_FLAG_MYSELF)
            return &conf->nodes[i];
    }
    return NULL;
}

/* ---- problems ---- */

const char *cluster_conf_problem_word(enum cluster_conf_problem problem)
{
    switch (problem) {
#define X(name, number, word, fatal)                                                               \
    case number:                                                                                   \
        return word;
        CLUSTER_CONF_PROBLEMS(X)
#undef X
    }
    return "unknown";
}

bool cluster_conf_problem_fatal(enum cluster_conf_problem problem)
{
    switch (problem) {
#define X(name, number, word, fatal)                                                               \
    case number:                                                                                   \
        return fatal;
        CLUSTER_CONF_PROBLEMS(X)
#undef X
    }
    return true;
}

/* False: reading ends because of it. */
static bool report(struct reading *r, enum cluster_conf_problem problem, unsigned line,
                   const char *text)
{
    if (r->problem != NULL) {
        r->problem(r->ctx, problem, r->offset, line, text);
        return true;
    }
    if (!cluster_conf_problem_fatal(problem))
        return true;
    return rd_err_set(r->err, RD_ERR_CORRUPT, r->offset, "%s", text);
}

static RD_PRINTF(4, 5) bool report_node(struct reading *r, enum cluster_conf_problem problem,
                                        unsigned line, const char *fmt, ...)
{
    char text[RD_ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return report(r, problem, line, text);
}

/* ---- reading ---- */

static bool add_node(struct reading *r, struct cluster_conf_node *node)
{
    struct cluster_conf_node *added = cluster_conf_add(r->conf);
    if (added == NULL) {
        cluster_conf_free_node(node);
        if (r->conf->n_nodes == CLUSTER_NODES_MAX)
            return rd_err_set(r->err, RD_ERR_LIMIT, r->offset, "more than %d nodes",
                              CLUSTER_NODES_MAX);
        return rd_err_nomem(r->err, sizeof *node);
    }
    *added = *node;
    added->line = r->line;
    return true;
}

static bool read_line(struct reading *r, struct rd_slice line)
{
    struct cluster_conf_node node = {0};
    struct cluster_conf_fault fault = {0};
    bool after_vars = r->conf->has_vars;
    enum cluster_conf_line kind = cluster_conf_parse_line(line, r->conf, &node, &fault);
    if (kind == CLUSTER_CONF_LINE_NODE && after_vars) {
        /* Of an older file, so not better than what the newer lines contain. */
        cluster_conf_free_node(&node);
        return report(r, CLUSTER_CONF_AFTER_VARS, r->line, "a line after the last one of the file");
    }
    if (kind == CLUSTER_CONF_LINE_NODE)
        return add_node(r, &node);
    cluster_conf_free_node(&node);
    if (kind == CLUSTER_CONF_LINE_MEMORY)
        return rd_err_nomem(r->err, line.len);
    return kind == CLUSTER_CONF_LINE_VARS || report(r, fault.problem, r->line, fault.text);
}

static bool is_blank(struct rd_slice line)
{
    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] != ' ' && line.ptr[i] != '\r')
            return false;
    }
    return true;
}

static bool read_lines(struct reading *r, struct rd_slice text)
{
    for (size_t at = 0; at < text.len;) {
        const uint8_t *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t len = end != NULL ? (size_t)(end - (text.ptr + at)) : text.len - at;
        struct rd_slice line = rd_slice(text.ptr + at, len);
        r->offset = at;
        r->line++;
        at += len + 1;
        if (is_blank(line))
            continue;
        if (line.ptr[line.len - 1] == '\r')
            line.len--;
        if (end == NULL && !r->is_reply) {
            /* Even if it parses: a number can have lost its last digits. */
            if (!report(r, CLUSTER_CONF_LINE_CUT, r->line, "the last line has no end"))
                return false;
            continue;
        }
        if (!read_line(r, line))
            return false;
    }
    return true;
}

/* ---- the file as a whole ---- */

static int by_id(const void *a, const void *b)
{
    const struct cluster_conf_node *const *x = a, *const *y = b;
    int order = strcmp((*x)->id, (*y)->id);
    return order != 0 ? order : ((*x)->line > (*y)->line) - ((*x)->line < (*y)->line);
}

static int same_id(const void *a, const void *b)
{
    const struct cluster_conf_node *const *x = a, *const *y = b;
    return strcmp((*x)->id, (*y)->id);
}

/* The nodes in the order of their ids. NULL with err set: no memory. */
static const struct cluster_conf_node **sort_nodes(struct reading *r)
{
    const struct cluster_conf *conf = r->conf;
    const struct cluster_conf_node **sorted = rd_calloc(conf->n_nodes + 1, sizeof *sorted);
    if (sorted == NULL) {
        rd_err_nomem(r->err, (conf->n_nodes + 1) * sizeof *sorted);
        return NULL;
    }
    for (size_t i = 0; i < conf->n_nodes; i++)
        sorted[i] = &conf->nodes[i];
    qsort(sorted, conf->n_nodes, sizeof *sorted, by_id);
    return sorted;
}

/* The first line of a node counts: the others lose their id. */
static bool find_repeated(struct reading *r)
{
    const struct cluster_conf_node **sorted = sort_nodes(r);
    bool ok = sorted != NULL;
    for (size_t i = 1, first = 0; ok && i < r->conf->n_nodes; i++) {
        if (strcmp(sorted[first]->id, sorted[i]->id) != 0) {
            first = i;
            continue;
        }
        ok = report_node(r, CLUSTER_CONF_SAME_ID, sorted[i]->line, "a second line of the node %s",
                         sorted[i]->id);
        r->conf->nodes[sorted[i] - r->conf->nodes].id[0] = '\0';
    }
    rd_free(sorted);
    return ok;
}

static bool drop_repeated(struct reading *r)
{
    struct cluster_conf *conf = r->conf;
    size_t kept = 0;
    if (!find_repeated(r))
        return false;
    for (size_t i = 0; i < conf->n_nodes; i++) {
        if (conf->nodes[i].id[0] == '\0')
            cluster_conf_free_node(&conf->nodes[i]);
        else
            conf->nodes[kept++] = conf->nodes[i];
    }
    conf->n_nodes = kept;
    return true;
}

/* The first owner of a slot counts, as in servers. */
static bool drop_second_owners(struct reading *r)
{
    struct cluster_slots seen = {0};
    for (size_t i = 0; i < r->conf->n_nodes; i++) {
        struct cluster_conf_node *node = &r->conf->nodes[i];
        bool said = false;
        for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
            if (!cluster_slots_has(&node->slots, slot))
                continue;
            if (!cluster_slots_has(&seen, slot)) {
                cluster_slots_add(&seen, slot);
                continue;
            }
            cluster_slots_remove(&node->slots, slot);
            if (!said &&
                !report_node(r, CLUSTER_CONF_SAME_SLOT, node->line, "slot %u has two owners", slot))
                return false;
            said = true;
        }
    }
    return true;
}

static bool check_masters(struct reading *r)
{
    const struct cluster_conf_node **sorted = sort_nodes(r);
    bool ok = sorted != NULL;
    for (size_t i = 0; ok && i < r->conf->n_nodes; i++) {
        const struct cluster_conf_node *node = &r->conf->nodes[i];
        struct cluster_conf_node wanted = {.line = 0};
        const struct cluster_conf_node *key = &wanted;
        if (node->master[0] == '\0')
            continue;
        memcpy(wanted.id, node->master, sizeof wanted.id);
        if (bsearch(&key, sorted, r->conf->n_nodes, sizeof *sorted, same_id) == NULL)
            ok = report_node(r, CLUSTER_CONF_NO_MASTER, node->line, "the master %s has no line",
                             node->master);
    }
    rd_free(sorted);
    return ok;
}

static bool check_myself(struct reading *r)
{
    struct cluster_conf_node *first = NULL;
    for (size_t i = 0; i < r->conf->n_nodes; i++) {
        struct cluster_conf_node *node = &r->conf->nodes[i];
        if (!(node->flags & CLUSTER_FLAG_MYSELF))
            continue;
        if (first == NULL) {
            first = node;
            continue;
        }
        node->flags &= ~(unsigned)CLUSTER_FLAG_MYSELF;
        if (!report(r, CLUSTER_CONF_TWO_MYSELF, node->line, "a second node has the flag myself"))
            return false;
    }
    return first != NULL || report(r, CLUSTER_CONF_NO_MYSELF, 0, "no node has the flag myself");
}

static bool check_whole(struct reading *r)
{
    uint64_t max_epoch = 0;
    r->offset = 0;
    if (!drop_repeated(r) || !drop_second_owners(r) || !check_masters(r) || !check_myself(r))
        return false;
    for (size_t i = 0; i < r->conf->n_nodes; i++) {
        if (r->conf->nodes[i].epoch > max_epoch)
            max_epoch = r->conf->nodes[i].epoch;
    }
    if (r->is_reply)
        return true;
    if (!r->conf->has_vars)
        return report(r, CLUSTER_CONF_NO_VARS, 0, "the last line, with the epochs, is missing");
    return r->conf->current_epoch >= max_epoch ||
           report(r, CLUSTER_CONF_EPOCH_LOW, 0, "currentEpoch is lower than the epoch of a node");
}

static bool read_text(struct cluster_conf *ret, struct rd_slice text, bool is_reply,
                      cluster_conf_problem_fn problem, void *ctx, struct rd_err *err)
{
    struct cluster_conf conf = {0};
    struct reading r = {
        .conf = &conf, .problem = problem, .ctx = ctx, .err = err, .is_reply = is_reply};
    *ret = (struct cluster_conf){0};
    if (text.len > CLUSTER_CONF_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, CLUSTER_CONF_MAX, "more than %d bytes",
                          CLUSTER_CONF_MAX);
    bool ok = text.len > 0 ? read_lines(&r, text) && check_whole(&r)
                           : report(&r, CLUSTER_CONF_EMPTY, 0, "the file is empty");
    if (!ok) {
        cluster_conf_done(&conf);
        return false;
    }
    *ret = conf;
    return true;
}

bool cluster_conf_read(struct cluster_conf *ret, struct rd_slice text,
                       cluster_conf_problem_fn problem, void *ctx, struct rd_err *err)
{
    return read_text(ret, text, false, problem, ctx, err);
}

bool cluster_conf_read_reply(struct cluster_conf *ret, struct rd_slice text,
                             cluster_conf_problem_fn problem, void *ctx, struct rd_err *err)
{
    return read_text(ret, text, true, problem, ctx, err);
}
