/* live_impl.h - private to live*.c.
 *
 *     live.c          databases, SCAN, which keys are asked for
 *     live_record.c   DUMP becomes a record
 */
#ifndef TOOLS_LIVE_IMPL_H
#define TOOLS_LIVE_IMPL_H

#include "rdb/rdb.h"
#include "tools/live.h"

enum live_outcome { LIVE_READ, LIVE_GONE, LIVE_CHANGED, LIVE_UNKNOWN };

struct live {
    struct cli *cli;
    const struct live_opts *opts;
    struct live_result *result;
    struct peer *peer;
    struct spool *spool;
    struct rd_buf out; /* what is not in the spool yet */
    uint64_t db;
    const char *expire_command; /* PEXPIRETIME, else PTTL */
    int64_t server_ms;          /* PTTL: the server's clock */
    int version;                /* of the payloads; 0: none was seen */
    enum rdb_dialect dialect;
    size_t depth; /* keys that are asked for at a time */
};

bool live_begin_snapshot(struct live *live, struct rd_err *err);
bool live_put_functions(struct live *live, struct rd_err *err);
bool live_put_db(struct live *live, struct rd_err *err);

/* Asks for a key; live_take() takes the answer. Between them others may be asked for. */
bool live_ask(struct live *live, struct rd_slice name, struct rd_err *err);

/* What comes is a record only with LIVE_READ, or where changing keys are taken as they are.
 * *ret_bytes grows by what was received. */
bool live_take(struct live *live, struct rd_slice name, bool as_it_is, enum live_outcome *ret,
               uint64_t *ret_bytes, struct rd_err *err);

bool live_end_snapshot(struct live *live, struct rd_err *err);

#endif
