/* receive_impl.h - a snapshot that arrives; private to receive*.c.
 */
#ifndef SERVER_DURABLE_REPLICATION_RECEIVE_IMPL_H
#define SERVER_DURABLE_REPLICATION_RECEIVE_IMPL_H

#include "engine/snapshot.h"
#include "server/durable/replication/replication_impl.h"

/* The destination of loading. A second dataset replaces the old one at the end. */
enum receive_target {
    RECEIVE_FILE,   /* a file; from there, once it was checked, into the data set */
    RECEIVE_MEMORY, /* the data set, which is empty */
    RECEIVE_BESIDE  /* a second data set */
};

enum { RECEIVE_WINDOW = 1024 * 1024 };

struct receive {
    struct durable *durable;
    struct repl_link *link;
    enum receive_target target;
    bool same_history;
    uint64_t total, read; /* bytes; total 0: unknown */
    int64_t last_s;       /* when the last byte arrived */

    char temp[64];
    int file;
    uint64_t synced;
    struct receive_check *check; /* of the complete file; NULL: not active */

    struct rd_src *src;
    struct engine *beside; /* NULL: none */
    struct engine_loader *loader;
    struct replication_place place;
    struct rd_buf rest; /* bytes that arrived, but do not fit into src */
    size_t rest_at;
    bool ended;      /* all bytes have arrived */
    uv_idle_t *idle; /* continues after clients were served; NULL: not active */
    bool loading;    /* … has begun */
    bool served;     /* clients use the old data meanwhile */
    bool done;
    bool log_was_on; /* the append-only file, which is closed while the data is replaced */
};

/* Reads all of the file in another thread. The data set and the file of the server stay as they
 * are until it is known to be sound. False: failed and logged. */
bool receive_check_begin(struct receive *r);
/* Whether it runs. */
bool receive_check_runs(const struct receive *r);
/* Takes the verdict. False: the file is damaged, which was logged. */
bool receive_check_end(struct receive *r);
/* The result is not wanted any more. */
void receive_check_stop(struct receive *r);

/* The loop continues with r as soon as clients were served. */
void receive_load_wake(struct receive *r);
/* Begins to load from r->src. Each returns false after a failure, which was logged. */
bool receive_load_begin(struct receive *r);
/* More bytes for r->src, or the end of them. */
bool receive_load_bytes(struct receive *r, struct rd_slice bytes);
bool receive_load_end(struct receive *r);
/* Frees everything that loading uses. An incomplete dataset is dropped. */
void receive_load_stop(struct receive *r);

/* Loading or checking failed. What is not supported now will not be in a second, either. */
void receive_failed(const struct receive *r, const struct rd_err *err);

/* Runs a command among the keys; for struct engine_load_opts, ctx is the receive. */
bool receive_update(void *ctx, unsigned db, struct rd_slice command, struct rd_err *err);

/* The file was loaded: it replaces that of the server. False: it could not, which was logged. */
bool receive_install(struct receive *r);

/* From here on no child may write or send a snapshot of the old data. */
void receive_kill_child(const struct receive *r);

#endif
