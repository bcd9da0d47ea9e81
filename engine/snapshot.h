/* snapshot.h - loads a data set from an RDB file and saves it.
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
 * All versions and dialects that rdb/reader.h reads can be loaded. Packed values are kept unchanged
 * if servers of Redis 7.0 have the same encoding and the value is within the limits of the
 * settings; else they are converted as by such a server. Records without a place in the data set
 * are kept and written again on saving: AUX fields, functions (their code, not parsed), auxiliary
 * data of modules. Module values are kept as their serialized bytes (ENGINE_OPAQUE), and with
 * config.keep_newer also those of types that only newer servers have (ENGINE_KEPT).
 *
 * Unless keep_expired is set, expired keys are dropped on loading, as by a master, and omitted on
 * saving. Expired hash fields are also omitted on saving.
 */
#ifndef ENGINE_SNAPSHOT_H
#define ENGINE_SNAPSHOT_H

#include "base/sink.h"
#include "base/src.h"
#include "engine/engine.h"
#include "rdb/reader.h"

/* ---- loading ---- */

struct engine_load_opts {
    bool keep_expired; /* as a replica does, which waits for the DEL of its master */
    bool no_sum;       /* do not compute the checksum; like rdbchecksum no */
    bool no_aux;       /* drop AUX fields: a server writes its own */
    bool keep_scripts; /* load the scripts of AUX fields, as servers before 7.0 do */
    bool merge;        /* the engine may hold keys; keys of the snapshot replace them */
    /* NULL, or called for each empty collection, which is omitted. */
    void (*on_empty)(void *ctx, struct rd_slice key);
    /* NULL, or called for each AUX field whose value is short. */
    void (*on_aux)(void *ctx, struct rd_slice name, struct rd_slice value);
    /* NULL, or called for each expired key, which is dropped. */
    void (*on_expired)(void *ctx, unsigned db, struct rd_slice key);
    /* NULL, or called for each command among the keys (RDB_UPDATE), if the reader gives them: runs
     * it. */
    bool (*on_update)(void *ctx, unsigned db, struct rd_slice command, struct rd_err *err);
    void *ctx;
};

struct engine_load_info {
    enum rdb_dialect dialect;
    int version;
    uint64_t keys;    /* loaded */
    uint64_t expired; /* expired keys dropped */
    uint64_t empty;   /* empty collections omitted */
    uint64_t functions;
    int64_t saved_s; /* creation time, from the AUX field ctime; INT64_MIN: unknown */
    uint64_t offset; /* bytes read of the file */
};

/* The engine must hold no keys; records kept from another snapshot are dropped. A push source must
 * already have its end. ret and opts may be NULL.
 *
 * Errors: those of the reader; RD_ERR_CHECKSUM; RD_ERR_LIMIT for a database that the engine does
 * not have; RD_ERR_CORRUPT for a duplicate key. */
bool engine_load(struct engine *e, struct rd_src *src, const struct engine_load_opts *opts,
                 const struct engine_env *env, struct engine_load_info *ret, struct rd_err *err);

/* The same in steps, for a server that answers clients meanwhile or reads from a socket:
 *
 *     struct engine_loader *l;
 *     if (!engine_loader_new(&l, e, src, NULL, &env, &err))
 *         ...
 *     while ((status = engine_loader_step(l, 1000, &err)) == RDB_EVENT)
 *         ... engine_loader_info(l)->offset ...
 *     engine_loader_free(l);
 *
 * A step loads up to n_keys keys. RDB_EVENT: there is more; RDB_MORE: the source needs input;
 * RDB_END: all was loaded; RDB_FAIL: see err. */
struct engine_loader;

bool engine_loader_new(struct engine_loader **ret, struct engine *e, struct rd_src *src,
                       const struct engine_load_opts *opts, const struct engine_env *env,
                       struct rd_err *err);
/* The same from a reader of the caller, with RDB_DETAIL_PACKED: the snapshot before a log. The
 * reader is borrowed; the size of its source is unknown. */
bool engine_loader_new_reader(struct engine_loader **ret, struct engine *e,
                              struct rdb_reader *reader, const struct engine_load_opts *opts,
                              const struct engine_env *env, struct rd_err *err);

enum rdb_status engine_loader_step(struct engine_loader *l, uint64_t n_keys, struct rd_err *err);
const struct engine_load_info *engine_loader_info(const struct engine_loader *l);

/* NULL is allowed. The loaded keys stay in the engine. */
void engine_loader_free(struct engine_loader *l);

/* ---- saving ---- */

struct engine_aux {
    struct rd_slice name;
    struct rd_slice value;
};

struct engine_save_opts {
    enum rdb_dialect dialect;
    int version;       /* 0: the version of Redis 7.0 (10); in another dialect, the newest */
    bool compress;     /* rdbcompression */
    bool no_checksum;  /* not rdbchecksum */
    bool lossy;        /* omit what the version cannot represent, instead of failing */
    bool keep_expired; /* write expired keys, and expired fields if the version has field
                        * expiries */
    bool no_keys;      /* only the other records: functions, AUX fields, modules */
    bool no_functions;
    bool with_access; /* write idle times or frequencies, as Redis 7.0 does if maxmemory-policy
                        * uses them; without such a policy, neither is written */
    bool two_threads; /* use two processors if available; the bytes are the same. each() is then
                        * called once for up to a thousand keys, and large collections take some
                        * tens of MB */
    int64_t now_ms;
    /* NULL, or called after each key with the number of keys so far: progress. */
    void (*each)(void *ctx, uint64_t n_keys);
    void *ctx;
    const struct engine_aux *aux; /* the file's AUX fields; they replace kept ones */
    size_t n_aux;                 /* of the same name */
};

/* Saves all databases, in the order of their numbers. Changes nothing; no command may run
 * meanwhile. Errors: those of the sink, and RD_ERR_UNSUPPORTED with the key that the version cannot
 * represent. */
bool engine_save(struct engine *e, struct rd_sink *sink, const struct engine_save_opts *opts,
                 struct rd_err *err);

/* Function libraries of the snapshot: their number (ret_n may be NULL) and total bytes. */
uint64_t engine_kept_functions(const struct engine *e, uint64_t *ret_n);

/* FUNCTION FLUSH: removes them. */
void engine_drop_functions(struct engine *e);

/* The RDB version of Redis that can represent every key: 10, 12 if hash fields have an expiry, or
 * 13 if a stream remembers producers. */
int engine_save_version(const struct engine *e);

/* The dialect for values that Redis and Valkey store in different ways, such as hashes whose fields
 * expire: that of config.level, or of the snapshot that was loaded. */
enum rdb_dialect engine_dialect(const struct engine *e);

/* The default dialect and version: those of the loaded snapshot, or those of Redis that
 * engine_save_version() gives if the snapshot's cannot represent every key. At least Redis 10. */
void engine_save_fitting(const struct engine *e, enum rdb_dialect *ret_dialect, int *ret_version);

#endif
