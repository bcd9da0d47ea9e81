/* What happens in a run: chance chooses, and the nodes are compared at the end. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/scenario.h"

enum {
    STEPS = 500,
    HEAL_STEPS = 20000,
    ARGS_MAX = 5,
    SAFE_MAX = 64,
    DURABLE = 1 /* index of the durable node */
};

struct write {
    char key[24];
    uint64_t offset;
    struct repl_replid id;
    bool safe; /* the durable replica has acknowledged it */
};

struct run {
    struct world w;
    struct node nodes[5];
    struct node *master;
    struct write writes[SAFE_MAX];
    int n_writes;
    unsigned n_keys;
};

static uint64_t chance(struct run *r, uint64_t below)
{
    return world_random(&r->w, below);
}

/* ---- writes ---- */

static void run_words(struct node *n, const char *text, const char *value)
{
    char copy[64];
    struct rd_slice argv[ARGS_MAX];
    size_t argc = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = rd_slice_str(strcmp(word, "VALUE") == 0 ? value : word);
    node_run(n, argc, argv);
}

static void one_write(struct run *r)
{
    static const char *const kinds[] = {
        "SET a:? VALUE", "RPUSH l:? VALUE",    "LPOP l:?",         "SADD s:? VALUE x",
        "SPOP s:?",      "INCR n:?",           "HSET h:? VALUE 1", "ZADD z:? 1 VALUE",
        "DEL a:?",       "PEXPIRE l:? 100000", "SELECT ?",         "XADD x:? * f VALUE"};
    char text[64], value[3000];
    size_t len = chance(r, 20) == 0 ? chance(r, sizeof value - 1) : chance(r, 20);
    uint64_t kind = chance(r, sizeof kinds / sizeof *kinds);
    memset(value, 'a' + (char)chance(r, 26), len);
    value[len] = '\0';
    snprintf(text, sizeof text, "%s", kinds[kind]);
    char *number = strchr(text, '?');
    *number = (char)('0' + chance(r, 3));
    run_words(r->master, text, value);
}

static void writes(struct run *r)
{
    uint64_t n = 1 + chance(r, 4);
    bool multi = chance(r, 6) == 0;
    if (multi)
        run_words(r->master, "MULTI", "");
    for (uint64_t i = 0; i < n; i++)
        one_write(r);
    if (multi)
        run_words(r->master, "EXEC", "");
}

/* A write whose fate is followed. */
static void followed_write(struct run *r)
{
    struct write *write = &r->writes[r->n_writes];
    char text[64];
    if (r->n_writes == SAFE_MAX)
        return;
    snprintf(write->key, sizeof write->key, "w:%u", r->n_keys++);
    snprintf(text, sizeof text, "SET %s 1", write->key);
    run_words(r->master, "SELECT 0", "");
    run_words(r->master, text, "");
    write->offset = r->master->m->offset;
    write->id = r->master->m->id;
    write->safe = false;
    r->n_writes++;
}

/* As WAIT 1, with the durable node alone. */
static void look_at_acks(struct run *r)
{
    for (const struct wire *w = r->w.wires; w != NULL; w = w->next) {
        if (w->master != r->master || w->replica == NULL || w->replica->index != DURABLE ||
            w->peer.state != REPL_PEER_ONLINE)
            continue;
        for (int i = 0; i < r->n_writes; i++)
            if (!r->writes[i].safe && repl_replid_eq(&r->writes[i].id, &r->master->m->id) &&
                w->peer.ack >= r->writes[i].offset) {
                r->writes[i].safe = true;
                if (!node_has_key(&r->nodes[DURABLE], r->writes[i].key))
                    world_fail(&r->w, "%s was acknowledged and is not there", r->writes[i].key);
            }
    }
}

static bool has_all_safe(struct run *r, struct node *n)
{
    for (int i = 0; i < r->n_writes; i++)
        if (r->writes[i].safe && !node_has_key(n, r->writes[i].key))
            return false;
    return true;
}

/* ---- faults ---- */

static struct wire *any_wire(struct run *r)
{
    uint64_t n = 0;
    for (struct wire *w = r->w.wires; w != NULL; w = w->next)
        n++;
    struct wire *w = r->w.wires;
    for (uint64_t i = n > 0 ? chance(r, n) : 0; i > 0; i--)
        w = w->next;
    return w;
}

static void move_bytes(struct run *r)
{
    for (int i = 0; i < 8; i++) {
        struct wire *w = any_wire(r);
        if (w == NULL || r->w.now_ms < w->stalled_until_ms)
            continue;
        size_t n = chance(r, 3) == 0 ? chance(r, 20) : chance(r, 5000);
        if (chance(r, 2) == 0)
            wire_move_down(w, n);
        else
            wire_move_up(w, n);
    }
}

static bool is_below(const struct node *n, const struct node *top)
{
    for (; n != NULL; n = n->follows)
        if (n == top)
            return true;
    return false;
}

/* Another place in the tree. */
static void move_node(struct run *r)
{
    struct node *n = &r->nodes[chance(r, (uint64_t)r->w.n_nodes)];
    struct node *to = &r->nodes[chance(r, (uint64_t)r->w.n_nodes)];
    if (n != r->master && !is_below(to, n) && n->follows != to)
        node_follow(n, to);
}

/* An operator promotes a replica that has what was promised. Those that were above it follow it. */
static void promote(struct run *r)
{
    struct node *n = &r->nodes[chance(r, (uint64_t)r->w.n_nodes)], *old = r->master;
    if (n == old || n->loading || !n->has_place || !has_all_safe(r, n))
        return;
    node_lead(n);
    r->master = n;
    for (int i = 0; i < r->w.n_nodes; i++)
        if (&r->nodes[i] != n && (&r->nodes[i] == old || chance(r, 2) == 0))
            node_follow(&r->nodes[i], n);
}

/* A master that crashes loses writes unless it is durable; that is not what is tested here. */
static void restart(struct run *r)
{
    struct node *n = &r->nodes[chance(r, (uint64_t)r->w.n_nodes)];
    bool crash = chance(r, 2) == 0 && (n != r->master || n->durable);
    node_restart(n, crash);
    if (n->durable && n != r->master)
        return;
    if (!crash && n == r->master && !has_all_safe(r, n))
        world_fail(&r->w, "a write is lost in an orderly restart");
}

static void fault(struct run *r)
{
    struct wire *w = any_wire(r);
    switch (chance(r, 14)) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (w != NULL)
            wire_cut(w, chance(r, 3) != 0);
        break;
    case 4:
    case 5:
        if (w != NULL)
            w->stalled_until_ms = r->w.now_ms + (int64_t)chance(r, 5000);
        break;
    case 6:
        node_save(&r->nodes[chance(r, (uint64_t)r->w.n_nodes)]);
        break;
    case 7:
    case 8:
        restart(r);
        break;
    case 9:
        promote(r);
        break;
    case 10: /* CONFIG SET repl-backlog-size */
        repl_master_set_size(r->nodes[chance(r, (uint64_t)r->w.n_nodes)].m, 1000u << chance(r, 8));
        break;
    case 11: /* repl-backlog-ttl */
        node_forget(r->master);
        break;
    default:
        move_node(r);
        break;
    }
}

static void tick_all(struct run *r)
{
    r->w.now_ms += (int64_t)chance(r, 200);
    for (int i = 0; i < r->w.n_nodes; i++)
        node_tick(&r->nodes[i]);
}

/* ---- the end ---- */

static bool is_settled(struct run *r)
{
    for (int i = 0; i < r->w.n_nodes; i++) {
        const struct node *n = &r->nodes[i];
        if (n != r->master &&
            (n->psync == NULL || n->loading || repl_psync_step(n->psync) != REPL_STEP_STREAM ||
             n->m->offset != r->master->m->offset))
            return false;
    }
    return true;
}

static void heal(struct run *r)
{
    for (struct wire *w = r->w.wires, *next; w != NULL; w = next) {
        next = w->next;
        w->stalled_until_ms = 0;
        if (w->replica == NULL)
            wire_cut(w, true);
    }
    for (int i = 0; i < HEAL_STEPS && !is_settled(r) && r->w.failure[0] == '\0'; i++) {
        if (i % 8 == 0)
            tick_all(r);
        move_bytes(r);
    }
}

static void compare(struct run *r)
{
    uint8_t want[20], have[20];
    if (!is_settled(r))
        world_fail(&r->w, "the nodes do not come to an end");
    if (!has_all_safe(r, r->master))
        world_fail(&r->w, "a write that was acknowledged is lost");
    node_digest(r->master, want);
    for (int i = 0; i < r->w.n_nodes; i++) {
        struct node *n = &r->nodes[i];
        node_digest(n, have);
        if (memcmp(want, have, sizeof want) != 0)
            world_fail(&r->w, "node %d has other data than its master", i);
        if (n->crc != r->master->crc)
            world_fail(&r->w, "node %d has another stream than its master", i);
    }
}

static void begin(struct run *r, uint64_t seed, const uint8_t *input, size_t len)
{
    *r = (struct run){.w = {.random = seed * 0x2545f4914f6cdd1du + 1, .now_ms = 1000000}};
    r->w.input = input;
    r->w.input_len = len;
    r->w.n_nodes = 2 + (int)chance(r, 4);
    r->w.backlog_size = 1000u << chance(r, 8);
    for (int i = 0; i < r->w.n_nodes; i++)
        node_init(&r->nodes[i], &r->w, i, i == DURABLE);
    r->master = &r->nodes[0];
    for (int i = 1; i < r->w.n_nodes; i++)
        node_follow(&r->nodes[i], &r->nodes[chance(r, (uint64_t)i)]);
    for (int i = 1; i < r->w.n_nodes; i++)
        r->nodes[i].has_place = false;
}

static void step(struct run *r)
{
    uint64_t what = chance(r, 100);
    if (what < 25)
        writes(r);
    else if (what < 28)
        followed_write(r);
    else if (what < 60)
        tick_all(r);
    else if (what < 65)
        fault(r);
    else
        move_bytes(r);
    look_at_acks(r);
}

static void add_up(const struct run *r, struct sim_sums *sums)
{
    sums->partial += r->w.partial;
    sums->full += r->w.full;
    sums->unknown_id += r->w.unknown_id;
    for (int i = 0; i < r->n_writes; i++)
        sums->safe += r->writes[i].safe;
}

const char *sim_run(uint64_t seed, const uint8_t *input, size_t len, struct sim_sums *sums)
{
    static struct run r;
    static char failure[sizeof r.w.failure];
    begin(&r, seed, input, len);
    for (int i = 0; i < STEPS && r.w.failure[0] == '\0'; i++)
        if (input == NULL || r.w.input_len > 0)
            step(&r);
    run_words(r.master, "DISCARD", "");
    heal(&r);
    if (r.w.failure[0] == '\0')
        compare(&r);
    add_up(&r, sums);
    memcpy(failure, r.w.failure, sizeof failure);
    for (int i = 0; i < r.w.n_nodes; i++)
        node_done(&r.nodes[i]);
    return failure[0] == '\0' ? NULL : failure;
}

/* ---- a cut after every byte ---- */

/* The master and its replica exchange bytes one by one, until they have the same data or *n_bytes
 * were sent to the replica, which are subtracted. */
static void come_to_terms(struct run *r, uint64_t *n_bytes)
{
    for (int i = 0; i < HEAL_STEPS && !is_settled(r); i++) {
        struct wire *w = r->nodes[1].link;
        tick_all(r);
        if (w == NULL || w != r->nodes[1].link)
            continue;
        wire_move_up(w, SIZE_MAX);
        while (*n_bytes > 0 && !is_settled(r) && wire_move_down(w, 1))
            --*n_bytes;
        if (*n_bytes == 0)
            return;
    }
}

/* *ret_more: there would have been more bytes. */
static const char *cut_after(uint64_t n_bytes, struct sim_sums *sums, bool *ret_more)
{
    static struct run r;
    static char failure[sizeof r.w.failure];
    r = (struct run){.w = {.random = 1, .now_ms = 1000000, .n_nodes = 2, .backlog_size = 100000}};
    for (int i = 0; i < 2; i++)
        node_init(&r.nodes[i], &r.w, i, false);
    r.master = &r.nodes[0];
    run_words(r.master, "SET a VALUE", "before");
    node_follow(&r.nodes[1], r.master);
    r.nodes[1].has_place = false;
    come_to_terms(&r, &n_bytes);
    run_words(r.master, "MULTI", "");
    run_words(r.master, "SELECT 1", "");
    run_words(r.master, "RPUSH l VALUE", "after");
    run_words(r.master, "INCR n", "");
    run_words(r.master, "EXEC", "");
    run_words(r.master, "SET a VALUE", "");
    come_to_terms(&r, &n_bytes);
    *ret_more = n_bytes == 0;
    uint64_t full = r.w.full;
    bool had_place = r.nodes[1].has_place;
    if (r.nodes[1].link != NULL)
        wire_cut(r.nodes[1].link, chance(&r, 2) == 0);
    heal(&r);
    if (r.w.failure[0] == '\0')
        compare(&r);
    if (had_place && r.w.full != full)
        world_fail(&r.w, "a full sync although the backlog holds the gap");
    add_up(&r, sums);
    memcpy(failure, r.w.failure, sizeof failure);
    for (int i = 0; i < 2; i++)
        node_done(&r.nodes[i]);
    return failure[0] == '\0' ? NULL : failure;
}

const char *sim_cut_everywhere(struct sim_sums *sums, uint64_t *ret_n)
{
    const char *failure = NULL;
    bool more = true;
    for (*ret_n = 0; more && failure == NULL; ++*ret_n)
        failure = cut_after(*ret_n, sums, &more);
    return failure;
}
