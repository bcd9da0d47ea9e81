/* live_impl.h - private to live*.c.
 *
 *     live.c          databases, SCAN, which keys are asked for
 *     live_record.c   DUMP becomes a record
 */
#ifndef CLIENT_LIVE_IMPL_H
#define CLIENT_LIVE_IMPL_H

#include "rdb/rdb.h"
#include "client/live.h"

enum client_live_outcome {
    CLIENT_LIVE_READ,
    CLIENT_LIVE_GONE,
    CLIENT_LIVE_CHANGED,
    CLIENT_LIVE_UNKNOWN
};

struct client_live {
    const struct client_live_opts *opts;
    struct client_live_result *result;
    struct client_peer *peer;
    const struct client_live_out *to;
    uint64_t size;     /* of what was appended to it */
    struct rd_buf out; /* what was not yet */
    uint64_t db;
    const char *expire_command; /* PEXPIRETIME, or PTTL */
    int64_t server_ms;          /* PTTL: the server's clock */
    int version;                /* of the payloads; 0: not known yet */
    enum rdb_dialect dialect;
    size_t depth; /* keys that are requested at a time */
};

bool client_live_begin_snapshot(struct client_live *live, struct rd_err *err);
bool client_live_put_functions(struct client_live *live, struct rd_err *err);
bool client_live_put_db(struct client_live *live, struct rd_err *err);

/* Requests a key; client_live_take() reads the answer. Other keys may be requested in between. */
bool client_live_ask(struct client_live *live, struct rd_slice name, struct rd_err *err);

/* Reads the answer. The record of the key is passed on if the outcome is CLIENT_LIVE_READ, and with
 * `as_it_is` also if it is CLIENT_LIVE_CHANGED. *ret_bytes grows by the size of the answer. */
bool client_live_take(struct client_live *live, struct rd_slice name, bool as_it_is,
                      enum client_live_outcome *ret, uint64_t *ret_bytes, struct rd_err *err);

bool client_live_end_snapshot(struct client_live *live, struct rd_err *err);

#endif
