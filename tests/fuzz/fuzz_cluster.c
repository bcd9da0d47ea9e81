/* fuzz_cluster.c - a node of a cluster takes any messages of nodes that it knows, in any order, and
 * any nodes.conf.
 *
 * Input that begins as a message is a list of them; the senders are nodes that the node knows. Else
 * it is a nodes.conf.
 */
#include "cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/chance.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 65536, SENDERS_MAX = 8, TICKS = 12, LINKS_MAX = 32 };

struct peer {
    struct cluster *c;
    uint64_t random;
    int64_t now_ms;
    struct rd_slice input;
    unsigned links;
};

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_cluster: %s\n", what);
    abort();
}

static uint64_t random_number(void *ctx)
{
    struct peer *p = ctx;
    return chance_next(&p->random);
}

/* ---- what must be true at any time ---- */

static void look(const struct cluster *c)
{
    size_t myself = 0;
    unsigned owned = 0, in_table = 0;
    for (size_t i = 0; i < cluster_count(c); i++) {
        const struct cluster_node *n = cluster_at(c, i);
        myself += n == cluster_myself(c);
        owned += n->n_slots;
        check(n->n_slots == cluster_slots_count(&n->slots), "number of slots");
        check(n->master != n, "its own master");
        check(n->master == NULL || (n->flags & CLUSTER_BUS_MASTER) == 0, "a master has a master");
        check(n->master == NULL || cluster_find(c, rd_slice_str(n->master->id.s)) == n->master,
              "a master that is not there");
    }
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++)
        in_table += cluster_owner(c, slot) != NULL;
    check(myself == 1, "myself");
    check(owned == in_table, "slots of nodes and of the table");
}

/* What is written is read again. */
static void write_back(const struct cluster *c, int64_t now_ms)
{
    struct cluster_opts opts = {0};
    struct cluster *again = cluster_new(&opts);
    struct rd_buf text = {0};
    struct rd_err err = {0};
    check(cluster_write(c, &text), "out of memory");
    check(cluster_load(again, rd_buf_slice(&text), now_ms, &err), "cannot be read back");
    look(again);
    rd_buf_done(&text);
    cluster_free(again);
}

/* ---- the other nodes ---- */

static void give(struct peer *p, uint64_t conn, size_t piece)
{
    for (size_t at = 0; at < p->input.len; at += piece) {
        size_t len = p->input.len - at < piece ? p->input.len - at : piece;
        cluster_received(p->c, conn, rd_slice(p->input.ptr + at, len));
    }
}

static void act(struct peer *p)
{
    struct cluster_action a;
    while (cluster_next(p->c, &a)) {
        if (a.kind == CLUSTER_CONNECT && p->links++ < LINKS_MAX) {
            cluster_connected(p->c, a.conn, "10.0.0.1");
            give(p, a.conn, 4096);
        } else if (a.kind == CLUSTER_CONNECT) {
            cluster_closed(p->c, a.conn);
        } else if (a.kind == CLUSTER_SAVE) {
            cluster_saved(p->c, random_number(p) % 4 != 0);
        } else if (a.kind == CLUSTER_SEND) {
            struct cluster_message m;
            check(cluster_message_read(&m, a.bytes, NULL), "a message that nobody reads");
        }
    }
}

/* A nodes.conf with the senders of the messages. */
static void put_conf(struct rd_slice rest, struct rd_buf *text)
{
    struct cluster_message m;
    size_t len, n = 0;
    rd_buf_printf(text, "%040d 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-100\n", 0);
    while (n < SENDERS_MAX && cluster_message_frame(rest, &len, NULL) == CLUSTER_FRAME_READY) {
        bool new = cluster_message_read(&m, rd_slice(rest.ptr, len), NULL);
        new = new &&memmem(text->ptr, text->len, m.sender.s, 40) == NULL;
        if (new)
            rd_buf_printf(text, "%s 10.0.0.2:%zu@%zu master - 0 0 0 connected\n", m.sender.s,
                          7001 + n, 17001 + n);
        n += new;
        rest = rd_slice(rest.ptr + len, rest.len - len);
    }
    rd_buf_printf(text, "vars currentEpoch 1 lastVoteEpoch 0\n");
}

static void live(struct peer *p)
{
    uint64_t conn;
    cluster_settings(p->c)->node_timeout_ms = 1000;
    cluster_start(p->c, p->now_ms);
    act(p);
    conn = cluster_accepted(p->c, "10.0.0.1", "10.0.0.2");
    for (int i = 0; i < TICKS; i++) {
        p->now_ms += i % 3 == 0 ? 100 : 700;
        cluster_tick(p->c, p->now_ms);
        act(p);
        if (i % 4 == 0) {
            give(p, conn, i == 0 ? 7 : 4096);
            act(p);
        }
        look(p->c);
    }
    write_back(p->c, p->now_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peer p = {.random = size, .now_ms = 1700000000000, .input = rd_slice(data, size)};
    struct cluster_opts opts = {.ctx = &p, .random = random_number};
    struct rd_buf text = {0};
    if (size > INPUT_MAX)
        return 0;
    p.c = cluster_new(&opts);
    check(p.c != NULL, "out of memory");
    bool messages = size >= 4 && memcmp(data, "RCmb", 4) == 0;
    if (messages)
        put_conf(p.input, &text);
    if (cluster_load(p.c, messages ? rd_buf_slice(&text) : p.input, p.now_ms, NULL)) {
        look(p.c);
        live(&p);
    }
    check(!cluster_no_memory(p.c), "out of memory");
    rd_buf_done(&text);
    cluster_free(p.c);
    return 0;
}
