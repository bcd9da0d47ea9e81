/* commands.h - a snapshot as the commands that rebuild it.
 *
 * Takes the events of a reader and writes RESP, as redis-cli --pipe and an AOF have it:
 *
 *     struct rdb_commands *c;
 *     struct rdb_reader_opts detail = {.detail = RDB_DETAIL_ELEMENTS};
 *     rdb_commands_new(&c, sink, NULL, &err);
 *     while (rdb_reader_next(r, &ev) == RDB_EVENT)
 *         if (!rdb_commands_put(c, &ev, &err)) ...
 *     rdb_commands_end(c, &err);
 *     rdb_commands_free(c);
 *
 *     string    SET key value
 *     list      RPUSH key element…                  set     SADD key member…
 *     zset      ZADD key score member …             hash    HSET key field value …
 *     stream    XADD key id field value …           one for each entry
 *               XADD key MAXLEN 0 0-1 x y           where there is none
 *               XSETID key last ENTRIESADDED n MAXDELETEDID id
 *               XGROUP CREATE key group last [ENTRIESREAD n]
 *               XCLAIM key group consumer 0 id TIME ms RETRYCOUNT n JUSTID FORCE
 *               XGROUP CREATECONSUMER key group consumer        of those that own nothing
 *               XDEL key id…                    after that, of what was made to be claimed
 *     then      HPEXPIREAT key ms FIELDS 1 field, PEXPIREAT key ms
 *     function  FUNCTION LOAD code                  and SELECT db before the keys of each
 *
 * A command has at most opts.max_elems elements (pairs of a hash or sorted set) and opts.max_bytes
 * bytes, unless one element alone is longer. An entry of a stream is always one command.
 *
 * What commands cannot make is RD_ERR_UNSUPPORTED naming the key, or, with opts.lossy, left out and
 * counted: values of modules, arrays, scores that are not numbers, entries out of order, functions
 * and field expiries where the server has none, and, from Redis 7.0 on, pending entries whose entry
 * was deleted, unless rdb_commands_pending() told of them. Not told, because servers keep them for
 * their own purposes and no command sets them: idle times and frequencies of keys, and when a
 * consumer was last seen. Aux fields are passed over.
 *
 * Memory: a command is gathered until it is full. A string in pieces goes out piece by piece; held
 * whole are a member of a sorted set, a field that may expire, the pending entries of one group (32
 * bytes each), the ids of rdb_commands_pending() (16 bytes each) and those of a stream's entries,
 * packed, up to 8 MiB.
 */
#ifndef RDB_COMMANDS_H
#define RDB_COMMANDS_H

#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"
#include "rdb/plain.h"

enum { RDB_COMMANDS_ELEMS = 64, RDB_COMMANDS_BYTES = 64 * 1024 };

struct rdb_commands_opts {
    enum rdb_dialect dialect; /* of the server that will read them; counts with version */
    int version;              /* the RDB version of that server; 0: one of Redis 7.0 or newer that
                                 knows whatever the data needs */
    size_t max_elems;         /* 0: RDB_COMMANDS_ELEMS */
    size_t max_bytes;         /* 0: RDB_COMMANDS_BYTES */
    bool replace;             /* DEL before each key; FUNCTION LOAD REPLACE */
    bool lossy;               /* leave out what commands cannot make */
};

/* What was left out with opts.lossy. */
struct rdb_commands_loss {
    uint64_t keys;
    uint64_t field_expires;
    uint64_t functions;
    uint64_t module_aux;
    uint64_t pending; /* entries of consumer groups */
    uint64_t other;   /* events */
};

struct rdb_commands;

/* The sink stays the caller's. opts may be NULL. */
RD_API bool rdb_commands_new(struct rdb_commands **ret, struct rd_sink *sink,
                             const struct rdb_commands_opts *opts, struct rd_err *err);

/* Takes every event in its order, with values by element (not RDB_PACKED: RD_ERR_USAGE). A key may
 * be left out by giving none of its events. After a failure it takes nothing more. */
RD_API bool rdb_commands_put(struct rdb_commands *c, const struct rdb_event *ev,
                             struct rd_err *err);

/* After a KEY event: would rdb_commands_pending() be of use for this value? So it is with streams,
 * where the server is one of Redis 7.0 or newer. */
RD_API bool rdb_commands_wants_pending(const struct rdb_commands *c);

/* Ids of pending entries, ascending, none twice. A zeroed struct is an empty list. */
struct rdb_pending_ids {
    struct rdb_stream_id *ids;
    size_t n, cap;
};

/* Those of all groups of a serialized stream (without type byte), from its framing alone, which is
 * cheap; they replace what the list held. Where the value is damaged, they are those before
 * that. False: no memory. O(bytes) */
RD_API bool rdb_pending_ids_find(struct rdb_pending_ids *ids, struct rd_src *value,
                                 const struct rdb_type *type, struct rd_err *err);
RD_API void rdb_pending_ids_done(struct rdb_pending_ids *ids);

/* After that KEY event: what is pending. From 7.0 on XCLAIM passes what is not in the stream; so
 * those of them that the stream does not have any more are added where their place is, and deleted
 * again after the groups. In a snapshot they follow the entries: whoever wants to tell has
 * to look at the value twice. They are copied. */
RD_API bool rdb_commands_pending(struct rdb_commands *c, const struct rdb_pending_ids *ids,
                                 struct rd_err *err);

/* Takes strings of rdb_reader_texts() instead of their events. */
RD_API bool rdb_commands_put_texts(struct rdb_commands *c, const struct rdb_text *texts, size_t n,
                                   struct rd_err *err);

/* Takes keys of rdb_plain_take() instead of their events. All are of database db. */
RD_API bool rdb_commands_put_plain(struct rdb_commands *c, uint64_t db,
                                   const struct rdb_plain *keys, size_t n, struct rd_err *err);

/* Takes an entry of rdb_plain_entry() instead of its events. */
RD_API bool rdb_commands_put_entry(struct rdb_commands *c, struct rdb_stream_id id,
                                   const struct rdb_text *texts, size_t n, struct rd_err *err);

/* Instead of VALUE … VALUE_END after a KEY event: RESTORE with a payload of `len` bytes, which the
 * caller writes to *ret (see dump.h) between the two calls. Idle time and frequency go with it. */
RD_API bool rdb_commands_restore_begin(struct rdb_commands *c, uint64_t len, struct rd_sink **ret,
                                       struct rd_err *err);
RD_API bool rdb_commands_restore_end(struct rdb_commands *c, struct rd_err *err);

/* Instead of VALUE … VALUE_END after a KEY event: the key is left out and counted with opts.lossy,
 * else RD_ERR_UNSUPPORTED; `what` is static text for the error. */
RD_API bool rdb_commands_refuse(struct rdb_commands *c, const char *what, struct rd_err *err);

/* Instead of VALUE … VALUE_END after a KEY event: there is nothing to make (a collection without
 * elements). */
RD_API bool rdb_commands_drop(struct rdb_commands *c, struct rd_err *err);

/* Between two records: this database is selected where the commands will run (RDB_UNKNOWN: none
 * is), so that those of a part of a snapshot can follow others. */
RD_API void rdb_commands_selected(struct rdb_commands *c, uint64_t db);

/* Between two records: SELECT, unless the database is selected. */
RD_API bool rdb_commands_select(struct rdb_commands *c, uint64_t db, struct rd_err *err);

/* Hands everything to the sink, which is not closed. More records may follow. */
RD_API bool rdb_commands_end(struct rdb_commands *c, struct rd_err *err);
RD_API const struct rdb_commands_loss *rdb_commands_loss(const struct rdb_commands *c);

/* NULL is allowed. */
RD_API void rdb_commands_free(struct rdb_commands *c);

#endif
