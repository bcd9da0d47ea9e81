/* value_file.h - one value of the engine as a snapshot, and back.
 *
 *     value_file_save(&engine_set_ops, &v, RDB_TYPE_SET, 10, &file);
 *     cr_assert(value_file_load(&engine_set_ops, rd_buf_slice(&file), &config, &again, &err));
 *
 * The value is that of the only key, "k". If payloads are loaded, the snapshot's is available:
 *
 *     struct rd_slice payload = value_file_payload(&file, RDB_TYPE_ZSET_2);
 *     cr_assert(value_file_load_payload(&engine_zset_ops, payload, 0, &config, &again, &err));
 */
#ifndef TESTS_ENGINE_VALUE_FILE_H
#define TESTS_ENGINE_VALUE_FILE_H

#include "engine/engine.h"
#include "engine/value.h"
#include "rdb/reader.h"
#include "rdb/writer.h"

#include <criterion/criterion.h>

static inline void value_file_save(const struct engine_type_ops *ops, const struct engine_value *v,
                                   enum rdb_type_id type, int version, struct rd_buf *ret)
{
    const struct rdb_writer_opts opts =
        RDB_WRITER_OPTS(.dialect = RDB_REDIS, .version = version, .compress = true);
    struct rdb_event key = {.kind = RDB_KEY, .inner = RD_NO_OFFSET};
    struct rd_sink *sink;
    struct rdb_writer *w;
    struct rd_err err = {0};
    key.key.name = rd_slice_str("k");
    key.key.type = rdb_type_get(type);
    key.key.expire_ms = RDB_NO_EXPIRE;
    key.key.idle_s = key.key.freq = RDB_UNKNOWN;
    cr_assert(rd_sink_open_buf(&sink, ret, NULL, &err));
    cr_assert(rdb_writer_new(&w, sink, &opts, &err));
    cr_assert(rdb_writer_put(w, &key, &err), "%s", err.text);
    cr_assert(ops->save(v, w, &err), "%s", err.text);
    cr_assert(rdb_writer_end(w, &err) && rd_sink_close(sink, &err), "%s", err.text);
    rdb_writer_free(w);
}

/* As far as the reader and the value take it: false with err for what the value refuses; what the
 * reader refuses ends it. Memory is counted for the kind that is entered. */
static inline bool value_file_load(const struct engine_type_ops *ops, struct rd_slice file,
                                   const struct engine_config *config, struct engine_value *ret,
                                   struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED);
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    bool ok = true, in_value = false, done = false;
    cr_assert(rd_src_open_memory(&src, file, NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, &opts, NULL));
    while (ok && !done && rdb_reader_next(r, &ev) == RDB_EVENT) {
        in_value |= ev.kind == RDB_VALUE;
        if (in_value)
            ok = ops->load(ret, &ev, config, err);
        done = ev.kind == RDB_VALUE_END;
    }
    rdb_reader_free(r);
    rd_src_close(src);
    return ok;
}

/* Type and value, as DUMP has them before its trailer. Changes the file. */
static inline struct rd_slice value_file_payload(struct rd_buf *file, enum rdb_type_id type)
{
    const uint8_t key[] = {rdb_type_get(type)->number, 1, 'k'};
    enum { KEY = sizeof key, END = 1 + 8 };
    uint8_t *at = memmem(file->ptr, file->len, key, KEY);
    cr_assert_not_null(at);
    at[KEY - 1] = at[0];
    return rd_slice(at + KEY - 1, file->len - (size_t)(at - file->ptr) - (KEY - 1) - END);
}

/* The reader takes the whole of it, in a window of so many bytes (0: any), or the value refuses. */
static inline bool value_file_load_payload(const struct engine_type_ops *ops,
                                           struct rd_slice payload, size_t window,
                                           const struct engine_config *config,
                                           struct engine_value *ret, struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED);
    const struct rd_src_opts src_opts = RD_SRC_OPTS(.window = window);
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    enum rdb_status st = RDB_EVENT;
    bool ok = true;
    cr_assert(rd_src_open_memory(&src, payload, &src_opts, NULL));
    cr_assert(rdb_reader_new_value(&r, src, RDB_REDIS, 10, &opts, NULL));
    while (ok && (st = rdb_reader_next(r, &ev)) == RDB_EVENT)
        ok = ops->load(ret, &ev, config, err);
    cr_assert(!ok || st == RDB_END, "%s", rdb_reader_err(r)->text);
    rdb_reader_free(r);
    rd_src_close(src);
    return ok;
}

#endif
