/* live.h - reads the data of a server into a snapshot.
 *
 * Keys are found with SCAN and read with DUMP, many at a time. The replies are written as records
 * of a snapshot. Memory does not grow with the data.
 *
 *     struct client_live_out out = {.append = …, .write = …, .cut = …, .ctx = file};
 *     struct client_live_opts opts = {.target = &target};
 *     struct client_live_result result;
 *     if (!client_live_read(&opts, &out, &result, &err))
 *         ...
 *
 * The data may change during the read. A value and its expiry are of the same moment, or the key is
 * read again; but two keys may be of different moments. New keys may be missed, and deleted keys
 * are omitted. A key that was read twice has two records; the later one is valid.
 *
 * The bytes in transit are bounded: after long replies, fewer keys are requested at a time, down to
 * one. No string is held in memory as a whole.
 */
#ifndef CLIENT_LIVE_H
#define CLIENT_LIVE_H

#include "client/peer.h"

struct client_live_opts {
    const struct client_target *target; /* one database if it names one, else all */
    bool functions;                     /* read them too */
    /* Whether keys of a database, or a key with this name, are wanted; NULL: all are. Called before
     * the value is read. */
    bool (*wants)(void *ctx, uint64_t db, const struct rd_slice *name);
    void *ctx;
};

/* The destination of the snapshot: an empty file. The header, and records that turn out to be
 * unusable, are changed after they were written. */
struct client_live_out {
    bool (*append)(void *ctx, const void *bytes, size_t len, struct rd_err *err);
    /* Writes over existing bytes. */
    bool (*write)(void *ctx, uint64_t offset, const void *bytes, size_t len, struct rd_err *err);
    /* Removes the bytes from `size` on. */
    void (*cut)(void *ctx, uint64_t size);
    void *ctx;
};

struct client_live_result {
    uint64_t keys;     /* records that were written */
    uint64_t gone;     /* keys that SCAN returned and that did not exist any more */
    uint64_t changing; /* keys whose expiry changed at each read */
    uint64_t unknown;  /* keys of unknown types: omitted */
    char first_unknown[RD_ERR_TEXT_MAX];
    bool rough;        /* expiries are counted from PTTL and may be off by CLIENT_LIVE_ROUGH_MS */
    bool no_functions; /* the server has none, or does not allow reading them */
    bool functions_refused; /* the second of these */
};

enum { CLIENT_LIVE_ROUGH_MS = 1000 };

/* Fails with the errors of the connection and of `out`. */
bool client_live_read(const struct client_live_opts *opts, const struct client_live_out *out,
                      struct client_live_result *ret, struct rd_err *err);

#endif
