/* snapshot.h - a data set from an RDB, and into one.
 *
 *     struct engine_env env = {.now_us = now};
 *     struct engine_load_info info;
 *     if (!engine_load(e, src, NULL, &env, &info, &err))
 *         ...                                  // the engine holds what was read so far
 *
 *     struct engine_save_opts opts = {.compress = true, .now_ms = now / 1000};
 *     if (!engine_save(e, sink, &opts, &err))
 *         ...
 *
 * All versions and dialects that rdb/reader.h reads are loaded; packed values are taken as they are
 * where servers of 7.0 have the same encoding and it is within the limits of the settings, else
 * they become what such a server makes of them. What has no place in the data set is kept and given
 * out again on saving: AUX fields, functions (their code, unread), auxiliary data of modules.
 * Values of modules are kept as their serialized bytes (ENGINE_OPAQUE).
 *
 * Keys that are due are dropped on loading, as a master does, and left out on saving, unless
 * keep_expired is set. So are, on saving, fields of hashes that are due.
 */
#ifndef ENGINE_SNAPSHOT_H
#define ENGINE_SNAPSHOT_H

#include "base/sink.h"
#include "base/src.h"
#include "engine/engine.h"
#include "rdb/reader.h"

/* ---- loading ---- */

struct engine_load_opts {
    bool keep_expired; /* as a replica does, which waits for its master's DEL */
    bool no_sum;       /* do not compute the checksum, as rdbchecksum no */
    bool no_aux;       /* forget AUX fields: a server writes its own */
    bool merge; /* the engine may hold keys; those that the snapshot has, too, are replaced */
    /* NULL, or told of each collection without elements, which is left out. */
    void (*on_empty)(void *ctx, struct rd_slice key);
    void *ctx;
};

struct engine_load_info {
    enum rdb_dialect dialect;
    int version;
    uint64_t keys;    /* loaded */
    uint64_t expired; /* dropped, because they were due */
    uint64_t empty;   /* left out: collections without elements */
    uint64_t functions;
    int64_t saved_s; /* when it was made, by its AUX field ctime; INT64_MIN: it does not say */
    uint64_t offset; /* bytes read of the file */
};

/* Into an engine that holds no keys; what was kept of another snapshot is forgotten. A source that
 * is fed must have its end pushed already. ret and opts may be NULL.
 *
 * Errors: those of the reader; RD_ERR_CHECKSUM; RD_ERR_LIMIT for a database that the engine does
 * not have; RD_ERR_CORRUPT for a key that comes twice. */
bool engine_load(struct engine *e, struct rd_src *src, const struct engine_load_opts *opts,
                 const struct engine_env *env, struct engine_load_info *ret, struct rd_err *err);

/* The same in steps, for a server that answers meanwhile, or is fed by a socket:
 *
 *     struct engine_loader *l;
 *     if (!engine_loader_new(&l, e, src, NULL, &env, &err))
 *         ...
 *     while ((status = engine_loader_step(l, 1000, &err)) == RDB_EVENT)
 *         ... engine_loader_info(l)->offset ...
 *     engine_loader_free(l);
 *
 * A step takes up to n_keys keys. RDB_EVENT: there is more; RDB_MORE: the source has to be fed;
 * RDB_END: all was loaded; RDB_FAIL: see err. */
struct engine_loader;

bool engine_loader_new(struct engine_loader **ret, struct engine *e, struct rd_src *src,
                       const struct engine_load_opts *opts, const struct engine_env *env,
                       struct rd_err *err);
/* The same from a reader that somebody else has, with RDB_DETAIL_PACKED: the snapshot before a
 * log. The reader is borrowed; the size of its source is not known. */
bool engine_loader_new_reader(struct engine_loader **ret, struct engine *e,
                              struct rdb_reader *reader, const struct engine_load_opts *opts,
                              const struct engine_env *env, struct rd_err *err);

enum rdb_status engine_loader_step(struct engine_loader *l, uint64_t n_keys, struct rd_err *err);
const struct engine_load_info *engine_loader_info(const struct engine_loader *l);

/* NULL is allowed. What was loaded stays in the engine. */
void engine_loader_free(struct engine_loader *l);

/* ---- saving ---- */

struct engine_aux {
    struct rd_slice name;
    struct rd_slice value;
};

struct engine_save_opts {
    enum rdb_dialect dialect;
    int version;       /* 0: what 7.0 writes (Redis 10), of another dialect the newest */
    bool compress;     /* rdbcompression */
    bool no_checksum;  /* not rdbchecksum */
    bool lossy;        /* leave out what the version cannot hold, instead of failing */
    bool keep_expired; /* write keys that are due, and fields where they can be written as such */
    bool with_access;  /* write idle times or frequencies, as 7.0 does when maxmemory-policy uses
                          them; without a policy that does, neither is written */
    bool two_threads;  /* where there are two processors; the bytes are the same. each() is called
                          once for up to a thousand keys then, and some tens of MB are used where
                          collections are large */
    int64_t now_ms;
    /* NULL, or called after each key, with how many there were: progress. */
    void (*each)(void *ctx, uint64_t n_keys);
    void *ctx;
    const struct engine_aux *aux; /* the file's AUX fields; of those that were kept, one that has */
    size_t n_aux;                 /* the same name gives way */
};

/* All databases, in the order of their numbers. Changes nothing; no command may run meanwhile.
 * Errors: of the sink, and RD_ERR_UNSUPPORTED naming the key that the version cannot hold. */
bool engine_save(struct engine *e, struct rd_sink *sink, const struct engine_save_opts *opts,
                 struct rd_err *err);

/* Libraries of functions that the snapshot held: how many (ret_n may be NULL), and bytes in all. */
uint64_t engine_kept_functions(const struct engine *e, uint64_t *ret_n);

/* FUNCTION FLUSH: they are not saved any more. */
void engine_drop_functions(struct engine *e);

/* The version of Redis RDB that holds every key: 10, or 12 where fields of hashes expire. */
int engine_save_version(const struct engine *e);

/* Dialect and version for a caller that names none: those of the snapshot that was loaded, but
 * Redis 10 at least, and Redis 12 where fields of hashes expire. */
void engine_save_fitting(const struct engine *e, enum rdb_dialect *ret_dialect, int *ret_version);

#endif
