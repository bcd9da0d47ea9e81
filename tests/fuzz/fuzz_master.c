/* fuzz_master.c - a master reads whatever its replicas send, while snapshots begin, end and fail.
 *
 * Each byte pair chooses a peer and what happens; commands of peers are words of the rest. The
 * peers must keep the promises of repl/master.h in any order of events.
 */
#include "repl/master.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PEERS = 4, BACKLOG = 20000, ARGS_MAX = 6 };

#define ID "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

struct input {
    const uint8_t *ptr;
    size_t left;
};

struct world {
    struct repl_master *m;
    struct repl_peer peer[PEERS];
    struct rd_buf out[PEERS];
    struct input in;
    struct repl_snapshot snapshot;
    bool saves;
    int64_t now_ms;
};

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_master: %s\n", what);
    abort();
}

static uint8_t take_byte(struct input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->ptr++;
}

/* A word of the protocol, or bytes of the input. */
static struct rd_slice word(struct input *in)
{
    static const char *const words[] = {
        "listening-port",  "ip-address", "capa", "eof", "psync2", "ack",      "fack",    "getack",
        "rdb-filter-only", "functions",  "1",    "0",   "-1",     "rdb-only", "version", "6379"};
    uint8_t choice = take_byte(in);
    if (choice < 128)
        return rd_slice_str(words[choice % 16]);
    size_t len = choice % 64 < in->left ? choice % 64 : in->left;
    struct rd_slice s = rd_slice(in->ptr, len);
    in->ptr += len;
    in->left -= len;
    return s;
}

static void replconf(struct world *w, struct repl_peer *peer)
{
    struct rd_slice argv[ARGS_MAX] = {rd_slice_str("REPLCONF")};
    size_t argc = 1 + take_byte(&w->in) % ARGS_MAX;
    for (size_t i = 1; i < argc; i++)
        argv[i] = word(&w->in);
    size_t before = peer->out->len;
    enum repl_said said = repl_peer_replconf(peer, argc, argv, w->now_ms);
    struct rd_slice reply = rd_buf_slice(peer->out);
    if (said == REPL_SAID_OPTION)
        check(reply.ptr[before] == '+', "an option is answered");
    else if (said == REPL_SAID_WRONG)
        check(reply.ptr[before] == '-', "an error is answered");
    else
        check(reply.len == before, "an acknowledgement has no answer");
    for (size_t i = before; i + 2 < reply.len; i++)
        check(reply.ptr[i] >= ' ' || said == REPL_SAID_OPTION, "a control character");
    check(strlen(peer->address) <= REPL_ADDRESS_MAX, "the address");
}

static void psync(struct world *w, struct repl_peer *peer)
{
    uint8_t how = take_byte(&w->in);
    int64_t wanted = (int64_t)(how & 1 ? w->m->offset + 3 : 3) - take_byte(&w->in) % 8;
    struct rd_slice id = how & 2 ? word(&w->in) : how & 4 ? rd_slice_str(ID) : rd_slice_str("?");
    if (peer->state != REPL_PEER_TALKS)
        return;
    enum repl_verdict verdict =
        how & 8 ? repl_peer_sync(peer, w->now_ms) : repl_peer_psync(peer, id, wanted, w->now_ms);
    check((verdict == REPL_CONTINUES) == (peer->state == REPL_PEER_ONLINE), "the verdict");
    if (peer->state == REPL_PEER_WAITS && (how & 16))
        check(!repl_peer_join(peer) || peer->state == REPL_PEER_SAVES, "joining");
}

static void reconnect(struct world *w, size_t i)
{
    if (w->peer[i].master != NULL)
        repl_peer_done(&w->peer[i]);
    rd_buf_reset(&w->out[i]);
    repl_peer_init(&w->peer[i], w->m, &w->out[i]);
}

static void change(struct world *w)
{
    uint8_t len = take_byte(&w->in);
    char value[256] = {0};
    const struct rd_slice argv[] = {rd_slice_str("SET"), rd_slice_str("k"), rd_slice(value, len)};
    uint64_t before = w->m->offset;
    check(repl_master_write(w->m, len % 3, 3, argv), "out of memory");
    check(w->m->backlog == NULL || w->m->offset > before + len, "the offset");
}

static void snapshot(struct world *w, uint8_t how)
{
    const struct repl_snapshot_policy policy = {.diskless = how & 1, .delay_ms = how & 2 ? 50 : 0};
    if (w->saves) {
        repl_master_end_snapshot(w->m, w->snapshot.by_mark, (how & 4) == 0, w->now_ms);
        w->saves = false;
    } else if (repl_master_due(w->m, &policy, w->now_ms, &w->snapshot)) {
        check(repl_master_begin_snapshot(w->m, &w->snapshot) == w->snapshot.n_peers,
              "the peers of the snapshot");
        w->saves = true;
    }
}

static void other_history(struct world *w, uint8_t how)
{
    struct repl_replid id;
    repl_replid_get(rd_slice_str(how & 1 ? ID : "0123456789012345678901234567890123456789"), &id);
    if (how & 2) {
        for (size_t i = 0; i < PEERS; i++)
            reconnect(w, i);
        check(repl_master_become(w->m, &id, w->m->offset + how), "out of memory");
        w->saves = false;
    } else {
        repl_master_promote(w->m, &id);
    }
}

static void read_stream(struct world *w, struct repl_peer *peer)
{
    struct rd_slice s = repl_peer_stream(peer);
    size_t n = s.len > 0 ? take_byte(&w->in) % s.len + 1 : 0;
    check(peer->state == REPL_PEER_ONLINE || s.len == 0, "a stream before its time");
    uint64_t pending = repl_peer_pending(peer);
    if (n > 0)
        repl_peer_sent(peer, n);
    check(peer->reader.block == NULL || repl_peer_pending(peer) == pending - n, "what is pending");
}

static void step(struct world *w)
{
    uint8_t what = take_byte(&w->in);
    size_t i = take_byte(&w->in) % PEERS;
    struct repl_peer *peer = &w->peer[i];
    w->now_ms += what;
    switch (what % 10) {
    case 0:
    case 1:
        replconf(w, peer);
        break;
    case 2:
        psync(w, peer);
        break;
    case 3:
        change(w);
        break;
    case 4:
        snapshot(w, what / 10);
        break;
    case 5:
        read_stream(w, peer);
        break;
    case 6:
        if (peer->state == REPL_PEER_PAYLOAD) {
            repl_peer_payload(peer, what);
            repl_peer_payload_sent(peer, w->now_ms);
        }
        break;
    case 7:
        reconnect(w, i);
        break;
    case 8:
        repl_master_keep_alive(w->m);
        repl_master_ping(w->m);
        repl_master_set_size(w->m, what % 2 ? BACKLOG : 2 * BACKLOG);
        break;
    default:
        other_history(w, what / 10);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = {.in = {data, size}};
    struct repl_replid id;
    uint64_t of_peers;
    repl_replid_get(rd_slice_str(ID), &id);
    check(repl_master_new(&w.m, &(struct repl_master_opts){.backlog_size = BACKLOG}, &id, NULL) &&
              repl_master_keep(w.m),
          "out of memory");
    for (size_t i = 0; i < PEERS; i++)
        reconnect(&w, i);
    while (w.in.left > 0)
        step(&w);
    for (size_t i = 0; i < PEERS; i++) {
        repl_peer_done(&w.peer[i]);
        rd_buf_done(&w.out[i]);
    }
    check(w.m->n_peers == 0 && w.m->first == NULL && w.m->last == NULL, "the list of peers");
    check(repl_master_memory(w.m, &of_peers) < (size_t)8 * BACKLOG, "memory without readers");
    repl_master_free(w.m);
    return 0;
}
