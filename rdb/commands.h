/* commands.h - converts a snapshot to the commands that rebuild it.
 *
 * Reads the events of a reader and writes RESP, as used by redis-cli --pipe and in an AOF.
 *
 * Example: prints a snapshot as commands.
 *
 *     #include <rdb/reader.h>
 *     #include <unistd.h>
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     struct rd_sink *out;
 *     struct rdb_reader *r;
 *     struct rdb_commands *c;
 *     struct rdb_event ev;
 *     if (!rd_src_open_file(&src, "dump.rdb", NULL, &err) ||
 *         !rdb_reader_new(&r, src, NULL, &err) ||
 *         !rd_sink_open_fd(&out, STDOUT_FILENO, false, NULL, &err) ||
 *         !rdb_commands_new(&c, out, NULL, &err))
 *         return 1;
 *     bool ok = true;
 *     while (ok && rdb_reader_next(r, &ev) == RDB_EVENT)
 *         ok = rdb_commands_put(c, &ev, &err);
 *     ok = ok && rdb_commands_end(c, &err);
 *     rdb_commands_free(c);
 *     rdb_reader_free(r);
 *     rd_src_close(src);
 *     return rd_sink_close(out, &err) && ok ? 0 : 1;
 *
 * The commands of each type:
 *
 *     string    SET key value
 *     list      RPUSH key element…                  set     SADD key member…
 *     zset      ZADD key score member …             hash    HSET key field value …
 *     stream    XADD key id field value …           one for each entry
 *               XADD key MAXLEN 0 0-1 x y           if it has no entries
 *               XSETID key last ENTRIESADDED n MAXDELETEDID id
 *               XGROUP CREATE key group last [ENTRIESREAD n]
 *               XCLAIM key group consumer 0 id TIME ms RETRYCOUNT n JUSTID FORCE
 *               XGROUP CREATECONSUMER key group consumer        if it owns nothing
 *               XREADGROUP GROUP group consumer STREAMS key 0   instead, before RDB version 10
 *               XDEL key id…                    deletes the entries added for XCLAIM
 *     then      HPEXPIREAT key ms FIELDS 1 field, PEXPIREAT key ms
 *     function  FUNCTION LOAD code                  and SELECT db before the keys of each database
 *
 * A command has at most opts.max_elems elements (pairs of a hash or sorted set) and opts.max_bytes
 * bytes, unless a single element is longer. An entry of a stream is always one command.
 *
 * Data that commands cannot create is RD_ERR_UNSUPPORTED with the name of the key or, with
 * opts.lossy, left out and counted: values of modules, arrays, scores that are not numbers, entries
 * out of order, functions and field expiries if the server lacks them, and, from Redis 7.0 on,
 * pending entries whose entry was deleted, unless rdb_commands_pending() listed them. Some fields
 * are dropped silently, because no command sets them: idle times and frequencies of keys, and the
 * time at which a consumer was last seen. Aux fields are ignored, except for the expiries of
 * members that KeyDB writes, which are refused or left out like other data.
 *
 * Memory: a command is collected until it is full. A string in pieces is written piece by piece.
 * Held in memory are a member of a sorted set, a field that may expire, the pending entries of one
 * group (32 bytes each), the ids of rdb_commands_pending() (16 bytes each) and the packed ids of a
 * stream's entries (up to 8 MiB).
 *
 * Threads: one thread at a time uses a converter together with its sink; different converters
 *   are independent.
 * Ownership: a converter borrows its sink, which must outlive it. The caller frees the
 *   converter.
 * Errors: false and *err. After a failure every call fails.
 * Cost: linear in the bytes.
 */
#ifndef RDB_COMMANDS_H
#define RDB_COMMANDS_H

#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"
#include "rdb/event.h"
#include "rdb/omission.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RDB_COMMANDS_ELEMS = 64, RDB_COMMANDS_BYTES = 64 * 1024 };

struct rdb_commands_opts {
    size_t size;              /* of this struct: set by RDB_COMMANDS_OPTS() */
    enum rdb_dialect dialect; /* of the server that will read them; used with version */
    int version;              /* the RDB version of that server; 0: Redis 7.0 or newer with every
                                 feature that the data needs */
    size_t max_elems;         /* 0: RDB_COMMANDS_ELEMS */
    size_t max_bytes;         /* 0: RDB_COMMANDS_BYTES */
    bool replace;             /* DEL before each key; FUNCTION LOAD REPLACE */
    bool lossy;               /* leave out data that commands cannot create */
    rdb_omitted_fn omitted;   /* called for all that lossy leaves out; may be NULL */
    void *omitted_ctx;
};
#define RDB_COMMANDS_OPTS(...) RD_SIZED(rdb_commands_opts, __VA_ARGS__)

struct rdb_commands;

/* The caller keeps the sink. opts may be NULL. */
RD_API bool rdb_commands_new(struct rdb_commands **ret, struct rd_sink *sink,
                             const struct rdb_commands_opts *opts, struct rd_err *err);

/* Adds the next event; values must be given by element (RDB_PACKED is RD_ERR_USAGE). To leave out a
 * key, do not pass its events. After a failure every call fails. */
RD_API bool rdb_commands_put(struct rdb_commands *c, const struct rdb_event *ev,
                             struct rd_err *err);

/* After a KEY event: whether rdb_commands_pending() helps with this value. True for streams if the
 * target server is Redis 7.0 or newer. */
RD_API bool rdb_commands_wants_pending(const struct rdb_commands *c);

/* Ids of pending entries, ascending, without duplicates. A zeroed struct is an empty list. Open:
 * programs may fill it themselves. */
struct rdb_pending_ids {
    struct rdb_stream_id *ids;
    size_t n, cap;
};

/* Collects the pending ids of all groups of a serialized stream (without type byte) and replaces
 * the contents of the list. It reads only the framing, which is fast. If the value is damaged, the
 * list holds the ids before the damage. False: out of memory. O(bytes). */
RD_API bool rdb_pending_ids_find(struct rdb_pending_ids *ids, struct rd_src *value,
                                 const struct rdb_type *type, struct rd_err *err);
RD_API void rdb_pending_ids_done(struct rdb_pending_ids *ids);

/* After that KEY event: sets the pending ids, which are copied. From 7.0 on XCLAIM ignores ids that
 * are not in the stream. So deleted entries that are still pending are added in order, and deleted
 * again after the groups. In a snapshot the pending ids follow the entries, so the caller must read
 * the value twice. */
RD_API bool rdb_commands_pending(struct rdb_commands *c, const struct rdb_pending_ids *ids,
                                 struct rd_err *err);

/* Instead of VALUE … VALUE_END after a KEY event: RESTORE with a payload of `len` bytes, which the
 * caller writes to *ret (see dump.h) between the two calls. RESTORE includes the idle time and the
 * frequency. */
RD_API bool rdb_commands_restore_begin(struct rdb_commands *c, uint64_t len, struct rd_sink **ret,
                                       struct rd_err *err);
RD_API bool rdb_commands_restore_end(struct rdb_commands *c, struct rd_err *err);

/* Instead of VALUE … VALUE_END after a KEY event: with opts.lossy the key is left out and counted,
 * else the call fails with RD_ERR_UNSUPPORTED. `what` is static text for the error. */
RD_API bool rdb_commands_refuse(struct rdb_commands *c, const char *what, struct rd_err *err);

/* Instead of VALUE … VALUE_END after a KEY event: writes nothing for the key (a collection without
 * elements). */
RD_API bool rdb_commands_drop(struct rdb_commands *c, struct rd_err *err);

/* Between two records: declares which database is selected when the commands run (RDB_UNKNOWN:
 * none), so that the commands of a part of a snapshot can follow others. */
RD_API void rdb_commands_selected(struct rdb_commands *c, uint64_t db);

/* Between two records: writes SELECT, unless the database is selected already. */
RD_API bool rdb_commands_select(struct rdb_commands *c, uint64_t db, struct rd_err *err);

/* Writes all buffered commands to the sink, which is not closed. More records may follow. */
RD_API bool rdb_commands_end(struct rdb_commands *c, struct rd_err *err);
RD_API const struct rdb_omitted_counts *rdb_commands_loss(const struct rdb_commands *c);

/* NULL is allowed. */
RD_API void rdb_commands_free(struct rdb_commands *c);

#ifdef __cplusplus
}
#endif

#endif
