/* node.h - a server's replication without sockets, files and clock: an engine with both sides of
 * repl/, and a disk that survives a crash.
 *
 * What the sockets of a server would carry goes through struct wire, at a pace that the world
 * chooses. A node checks what no server could: that a partial sync continues exactly the bytes that
 * the replica has, and that none is refused that could be granted.
 */
#ifndef TESTS_SIM_NODE_H
#define TESTS_SIM_NODE_H

#include "base/resp.h"
#include "engine/engine.h"
#include "engine/session.h"
#include "repl/master.h"
#include "repl/psync.h"

struct node;

/* A connection from a replica to its master. */
struct wire {
    struct wire *next; /* of the world */
    struct node *master;
    struct node *replica;   /* NULL: it is disconnected, and the master does not know yet */
    struct rd_buf down, up; /* in transit */
    struct rd_buf out;      /* what the master said */
    struct rd_buf file;     /* the snapshot that it sends, with its frame */
    size_t file_at;
    bool has_file;
    struct repl_peer peer;
    struct rd_src *src; /* of `up`, at the master */
    struct rd_resp_reader *reader;
    int64_t stalled_until_ms;
};

/* The stream up to an offset. */
struct mark {
    uint64_t offset;
    uint64_t crc;
};

struct node {
    struct world *world;
    int index;
    bool durable; /* a crash loses no command that it ran, but its place in the history */

    struct engine *engine;
    struct engine_session local, stream; /* its own clients, and its master */
    struct repl_master *m;
    struct node *follows; /* NULL: it is a master */

    struct wire *link;
    struct repl_psync *psync;
    int64_t retry_ms;
    bool has_place;
    unsigned db;
    struct rd_buf held, incoming;
    struct repl_replid full_id;
    bool loading; /* a snapshot has arrived and is not the data set yet */
    bool beside;  /* … and the old data stays until then; else it is gone */
    int64_t loaded_ms;

    struct repl_snapshot snapshot;
    bool saving;
    int64_t saved_ms;
    struct rd_buf image;

    struct rd_buf disk;

    uint64_t crc; /* of the stream so far */
    struct mark *marks;
    size_t n_marks, cap_marks;
    struct repl_reader tail;
};

struct world {
    uint64_t random;
    const uint8_t *input; /* chance, as long as it lasts; NULL: only `random` */
    size_t input_len;
    int64_t now_ms;
    int n_nodes;
    struct wire *wires;
    uint64_t backlog_size;
    uint64_t partial, full; /* syncs */
    uint64_t unknown_id;    /* full syncs because the ids were forgotten */
    char failure[200];
};

uint64_t world_random(struct world *w, uint64_t below);
void world_fail(struct world *w, const char *fmt, ...) RD_PRINTF(2, 3);

void node_init(struct node *n, struct world *w, int index, bool durable);
void node_done(struct node *n);

/* A command of a client; only of a master. */
void node_run(struct node *n, size_t argc, const struct rd_slice *argv);

void node_follow(struct node *n, struct node *master);
void node_lead(struct node *n);

/* A master without replicas ends its history. */
void node_forget(struct node *n);

/* Writes the data set to the disk. */
void node_save(struct node *n);
/* Ends the process, in order or not, and starts it on what the disk holds. */
void node_restart(struct node *n, bool crash);

/* Timers. */
void node_tick(struct node *n);

bool node_has_key(struct node *n, const char *key);
void node_digest(struct node *n, uint8_t ret[20]);

/* Moves up to n bytes of a wire in one direction. */
/* Down: false if there was nothing, or the replica takes nothing now. */
bool wire_move_down(struct wire *w, size_t n);
void wire_move_up(struct wire *w, size_t n);
/* Cuts it: both sides learn it now, or the master later. */
void wire_cut(struct wire *w, bool both);

#endif
