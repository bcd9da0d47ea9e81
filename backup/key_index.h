/* key_index.h - the index of keys of an archived segment: makes it, and finds its parts.
 *
 *     struct backup_key_index index = {.open = false};
 *     bool ok = backup_key_index_begin(&index, &in.header, salt, &err);
 *     for each event of the segment:   ok = ok && backup_key_index_add(&index, &ev, &err);
 *     ok = ok && backup_key_index_end(&index, &in, &err);
 *     ... ok: backup_key_index_copy(&index, sink, &err), any number of times ...
 *     backup_key_index_done(&index);
 *
 * Besides the index of history/index_writer.h it contains the beginning and the end of the segment,
 * without its blocks. So a capture whose segments are elsewhere can be listed, and a place in a
 * segment found, without the segment. docs/format/key-index.md specifies the format.
 *
 * Memory: that of history/index_writer.h; the index is in a temporary file.
 */
#ifndef BACKUP_KEY_INDEX_H
#define BACKUP_KEY_INDEX_H

#include "capture/segment_in.h"
#include "history/index_maker.h"

struct backup_key_index {
    bool open;
    struct spool spool;
    struct rd_sink *sink;
    struct history_index_maker *maker;
    struct history_multi multi;
};

/* `header` of a closed segment; `salt` is random. */
bool backup_key_index_begin(struct backup_key_index *ret, const struct repl_capture_segment *header,
                            const uint8_t salt[RD_SIPHASH_KEY], struct rd_err *err);
bool backup_key_index_add(struct backup_key_index *index, const struct repl_capture_event *ev,
                          struct rd_err *err);
bool backup_key_index_end(struct backup_key_index *index, const struct segment_in *in,
                          struct rd_err *err);
/* The segment is not read to its end by the caller: reads it, and makes the whole index. */
bool backup_key_index_make(struct backup_key_index *ret, struct segment_in *in,
                           const uint8_t salt[RD_SIPHASH_KEY], struct rd_err *err);
bool backup_key_index_copy(const struct backup_key_index *index, struct rd_sink *to,
                           struct rd_err *err);
/* A zeroed struct is allowed. */
void backup_key_index_done(struct backup_key_index *index);

/* ---- reading ---- */

/* Where the parts are in a spool. */
struct backup_key_index_parts {
    uint64_t keys_at, keys_len; /* the index of keys; keys_len 0: there is none */
    uint64_t head_at, end_at;   /* of the segment: REPL_CAPTURE_HEAD bytes, and end_len bytes */
    uint64_t end_len;
};

/* The parts of an index, from `at` to the end of the spool. RD_ERR_CORRUPT. That it belongs to a
 * segment is not proved by this. */
bool backup_key_index_find(const struct spool *spool, uint64_t at,
                           struct backup_key_index_parts *ret, struct rd_err *err);

#endif
