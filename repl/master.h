/* master.h - the master side of replication, without sockets or clocks.
 *
 * A struct repl_master is the history of one data set: its ids, the offset, the backlog, and the
 * peers, which are the replicas connected to it. A server that is a replica itself has one, too: it
 * passes the stream of its master on.
 *
 *     struct repl_master *m;
 *     if (!repl_master_new(&m, &opts, &id, &err))              // id: 40 random digits
 *         ...
 *     repl_master_write(m, db, argc, argv);                    // every change of the data
 *
 *     struct repl_peer peer;                                   // a connection
 *     repl_peer_init(&peer, m, &out);                          // replies are appended to `out`
 *     repl_peer_replconf(&peer, argc, argv, now_ms);           // REPLCONF arrived
 *     repl_peer_psync(&peer, id, offset, now_ms);              // PSYNC arrived
 *     ... send `out`, then repl_peer_stream(&peer) ...
 *     repl_peer_done(&peer);
 *
 * A peer that needs a snapshot waits. The caller makes one snapshot for all that wait:
 *
 *     if (repl_master_due(m, &how, now_ms, &snapshot)) {       // now and then
 *         // +FULLRESYNC to all that wait for it
 *         repl_master_begin_snapshot(m, &snapshot);
 *         ... save the data set as it is now ...
 *         repl_master_end_snapshot(m, snapshot.by_mark, ok, now_ms);
 *     }
 *
 * The states of a peer:
 *
 *     REPL_PEER_TALKS    only REPLCONF so far
 *     REPL_PEER_WAITS    needs a snapshot that has not begun
 *     REPL_PEER_SAVES    its snapshot is being made; the stream from there on is kept for it
 *     REPL_PEER_PAYLOAD  a snapshot by length is complete and has to be sent: repl_peer_payload(),
 *                        the bytes, repl_peer_payload_sent()
 *     REPL_PEER_PROVES   a snapshot by mark was sent; the first acknowledgement shows that all of
 *                        it arrived
 *     REPL_PEER_ONLINE   receives the stream
 *     REPL_PEER_ENDS     asked for a snapshot only, and has it: the caller closes the connection
 *     REPL_PEER_FAILS    the snapshot failed, an error was sent: the same
 *
 * While a snapshot by mark is made, the caller sends its bytes to the peers that wait for it
 * (SAVES, by_mark), with the frame of repl/payload.h.
 *
 * Fields can be read by anyone; they are written in repl/ only.
 */
#ifndef REPL_MASTER_H
#define REPL_MASTER_H

#include "base/buf.h"
#include "repl/backlog.h"
#include "repl/payload.h"
#include "repl/replid.h"

enum { REPL_ADDRESS_MAX = 255 /* host names too */, REPL_VERSION_MAX = 32 };

enum repl_peer_state {
    REPL_PEER_TALKS,
    REPL_PEER_WAITS,
    REPL_PEER_SAVES,
    REPL_PEER_PAYLOAD,
    REPL_PEER_PROVES,
    REPL_PEER_ONLINE,
    REPL_PEER_ENDS,
    REPL_PEER_FAILS
};

/* Capabilities of a replica. Others are ignored. */
enum repl_capa { REPL_CAPA_EOF = 1, REPL_CAPA_PSYNC2 = 2 };

/* The data that a replica asks for: REPLCONF rdb-filter-only. */
enum repl_filter { REPL_FILTER_ALL, REPL_FILTER_NOTHING, REPL_FILTER_FUNCTIONS };

struct repl_peer {
    struct repl_master *master;
    struct repl_peer *prev, *next; /* of the master's list; not in it while it only talks */
    enum repl_peer_state state;
    struct rd_buf *out;

    uint16_t port; /* announced; 0: not */
    char address[REPL_ADDRESS_MAX + 1];
    char version[REPL_VERSION_MAX + 1];
    unsigned capa; /* enum repl_capa */
    bool rdb_only;
    enum repl_filter filter;
    bool old; /* asked with SYNC: sends no acknowledgements */

    bool by_mark;              /* the snapshot that it waits for, or got */
    uint64_t start;            /* offset of that snapshot */
    int64_t waits_ms;          /* since when it waits for a snapshot */
    struct repl_reader reader; /* its position in the stream */
    uint64_t ack, durable;     /* offsets that it acknowledged; durable: FACK */
    int64_t ack_ms;            /* when; while it receives a snapshot, when it was last alive */
    void *ctx;                 /* of the caller */
};

struct repl_master_opts {
    uint64_t backlog_size; /* bytes */
};

struct repl_master {
    struct repl_master_opts opts;
    struct repl_replid id, id2;   /* of this history, and of the one before; id2 not set: none */
    uint64_t offset;              /* bytes of the history */
    uint64_t second;              /* id2 holds up to this offset */
    struct repl_backlog *backlog; /* NULL: nothing is kept, and writes do not count */
    struct repl_peer *first, *last;
    unsigned n_peers;
    int64_t alone_since_ms; /* since when there have been no peers */
    bool db_known;
    unsigned db; /* selected in the stream */
};

/* ---- the history ---- */

bool repl_master_new(struct repl_master **ret, const struct repl_master_opts *opts,
                     const struct repl_replid *id, struct rd_err *err);

/* All peers must be done. NULL is allowed. */
void repl_master_free(struct repl_master *m);

void repl_master_set_size(struct repl_master *m, uint64_t backlog_size);

/* Starts to keep the stream, if it is not kept yet; false: out of memory. */
bool repl_master_keep(struct repl_master *m);

/* Stops it, and forgets the second id; no peer may be left. */
void repl_master_drop(struct repl_master *m, const struct repl_replid *fresh);

/* A replica becomes a master: the history continues under a fresh id, and replicas of the old one
 * may continue here. */
void repl_master_promote(struct repl_master *m, const struct repl_replid *fresh);

/* Another history, at this offset; the backlog is empty. Peers keep their readers of the old one:
 * the caller closes them before. False: out of memory. */
bool repl_master_become(struct repl_master *m, const struct repl_replid *id, uint64_t offset);

/* The same history under another id, as +CONTINUE ID reported. */
void repl_master_rename(struct repl_master *m, const struct repl_replid *id);

/* At the start: the data is that of `id` at this offset, as a snapshot says. A master continues it
 * under its own id. False: out of memory. */
bool repl_master_restore(struct repl_master *m, const struct repl_replid *id, uint64_t offset);

/* ---- the stream ---- */

/* Each returns false if memory is short; the stream is then unchanged. Without a backlog they do
 * nothing. */
bool repl_master_write(struct repl_master *m, unsigned db, size_t argc,
                       const struct rd_slice *argv);
bool repl_master_words(struct repl_master *m, size_t argc, const char *const *words);
/* Bytes of the stream of this server's own master. */
bool repl_master_pass(struct repl_master *m, struct rd_slice bytes);

/* PING to all peers in the stream, and an empty line to those that wait for a snapshot. */
bool repl_master_ping(struct repl_master *m);
void repl_master_keep_alive(struct repl_master *m);
bool repl_master_getack(struct repl_master *m);

/* Whether the peer has its snapshot: PROVES or ONLINE. */
bool repl_peer_is_online(const struct repl_peer *peer);

/* Peers that receive the stream and acknowledged this offset, or that are online and were heard of
 * in the last max_lag_ms. */
unsigned repl_master_acked(const struct repl_master *m, uint64_t offset);
unsigned repl_master_good(const struct repl_master *m, int64_t max_lag_ms, int64_t now_ms);

/* Bytes of memory: all blocks, and the part that only peers need. */
uint64_t repl_master_memory(const struct repl_master *m, uint64_t *ret_of_peers);

/* ---- a peer ---- */

void repl_peer_init(struct repl_peer *peer, struct repl_master *m, struct rd_buf *out);
void repl_peer_done(struct repl_peer *peer);

enum repl_said {
    REPL_SAID_OPTION, /* "+OK" was replied */
    REPL_SAID_WRONG,  /* an error was replied */
    REPL_SAID_ACK,    /* no reply */
    REPL_SAID_ONLINE, /* an acknowledgement, with which it began to receive the stream */
    REPL_SAID_GETACK  /* a question to a replica; not handled here */
};

/* REPLCONF, with argv[0]. */
enum repl_said repl_peer_replconf(struct repl_peer *peer, size_t argc, const struct rd_slice *argv,
                                  int64_t now_ms);

/* An empty line from the peer: it loads its snapshot, and cannot acknowledge anything yet. */
void repl_peer_heard(struct repl_peer *peer, int64_t now_ms);

enum repl_verdict {
    REPL_CONTINUES,    /* a partial sync: +CONTINUE was replied */
    REPL_ASKS_FULL,    /* it asked for a full sync; from here on it waits for a snapshot */
    REPL_OTHER_ID,     /* it has another history */
    REPL_PAST_SECOND,  /* it is past the offset up to which id2 holds */
    REPL_NOT_HELD,     /* the backlog does not hold the bytes */
    REPL_AHEAD,        /* the offset is in the future */
    REPL_SYNC_REFUSED, /* an error was replied: part of the data needs the capability eof */
    REPL_SYNC_NOMEM    /* out of memory: nothing was replied */
};

/* PSYNC; `wanted` is its offset, which counts from 1. Without a backlog, the caller first begins
 * one (repl_master_keep). */
enum repl_verdict repl_peer_psync(struct repl_peer *peer, struct rd_slice id, int64_t wanted,
                                  int64_t now_ms);
enum repl_verdict repl_peer_sync(struct repl_peer *peer, int64_t now_ms);

/* The next bytes of the stream to send; repl_peer_sent() removes them. Empty unless ONLINE. */
struct rd_slice repl_peer_stream(struct repl_peer *peer);
void repl_peer_sent(struct repl_peer *peer, size_t len);

/* Bytes that wait for this peer in the stream. */
uint64_t repl_peer_pending(const struct repl_peer *peer);

/* Its snapshot has len bytes: the header is appended to `out`. Then, after the last byte. */
void repl_peer_payload(struct repl_peer *peer, uint64_t len);
void repl_peer_payload_sent(struct repl_peer *peer, int64_t now_ms);

/* ---- snapshots ---- */

struct repl_snapshot {
    bool by_mark;
    enum repl_filter filter;
    unsigned n_peers; /* that wait for it */
};

struct repl_snapshot_policy {
    bool diskless;
    int64_t delay_ms;   /* of a diskless one, so that more replicas can arrive */
    unsigned max_peers; /* do not wait for more than these; 0: any number */
};

/* Whether a snapshot has to be made now: the one that the longest waiting peer needs. */
bool repl_master_due(const struct repl_master *m, const struct repl_snapshot_policy *how,
                     int64_t now_ms, struct repl_snapshot *ret);

/* A peer that waits joins a snapshot by length that is being made for another one. */
bool repl_peer_join(struct repl_peer *peer);

/* The snapshot begins with the data as it is now. Returns the number of peers. */
unsigned repl_master_begin_snapshot(struct repl_master *m, const struct repl_snapshot *snapshot);

/* It is complete, or it failed. By length: the peers are in PAYLOAD then; by mark, in PROVES. */
void repl_master_end_snapshot(struct repl_master *m, bool by_mark, bool ok, int64_t now_ms);

#endif
