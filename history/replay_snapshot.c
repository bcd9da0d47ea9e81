#include "history/replay_impl.h"

#include "base/endian.h"

enum { DB_OPCODE = 0xfe, EXPIRE_OPCODE = 0xfc, END_OPCODE = 0xff, LONG_LEN = 0x80 };

void history_replay_begin_data(struct replay *r)
{
    if (r->begun)
        rebuild_data_end(&r->data);
    rebuild_data_begin(&r->data, r->opts->now_us);
    r->data.keep_unknown = true;
    r->data.on_script_line = history_replay_pull_in_script;
    r->data.ctx = r;
    r->begun = true;
    r->unknown_start = false;
    history_names_done(&r->known);
}

static bool put_len(struct rd_buf *buf, uint64_t len)
{
    uint8_t bytes[5] = {LONG_LEN};
    rd_put_be32(bytes + 1, (uint32_t)len);
    return rd_buf_add(buf, bytes, sizeof bytes);
}

/* The beginning of a record, up to its value. */
static bool put_head(struct rd_buf *buf, const struct rdb_event *ev)
{
    uint8_t expiry[9] = {EXPIRE_OPCODE};
    rd_put_le64(expiry + 1, (uint64_t)ev->key.expire_ms);
    return rd_buf_add_byte(buf, DB_OPCODE) && put_len(buf, ev->key.db) &&
           (ev->key.expire_ms == RDB_NO_EXPIRE || rd_buf_add(buf, expiry, sizeof expiry)) &&
           rd_buf_add_byte(buf, ev->key.type->number) && put_len(buf, ev->key.name.len) &&
           rd_buf_add(buf, ev->key.name.ptr, ev->key.name.len);
}

static enum rdb_status copy_record(struct history_records *records, const struct rdb_event *ev,
                                   struct rd_buf *to, struct rd_err *err)
{
    struct rd_sink *sink;
    if (!put_head(to, ev)) {
        rd_err_nomem(err, to->len);
        return RDB_FAIL;
    }
    if (!rd_sink_open_buf(&sink, to, NULL, err))
        return RDB_FAIL;
    enum rdb_status status = rdb_reader_copy_value(records->reader, sink);
    if (status == RDB_FAIL)
        rd_err_adopt(err, rdb_reader_err(records->reader));
    return rd_sink_close(sink, err) ? status : RDB_FAIL;
}

/* Copies the records of the keys that begin before `end`. */
static bool copy_records(struct replay *r, struct history_records *records, uint64_t end,
                         struct rd_buf *to)
{
    struct rdb_event ev;
    enum rdb_status status;
    while ((status = rdb_reader_next(records->reader, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_UPDATE)
            return rd_err_set(r->err, RD_ERR_UNSUPPORTED, ev.offset, "a command among the keys");
        if (ev.kind != RDB_KEY)
            continue;
        if (ev.key.record >= end)
            return true;
        status = history_names_has(&r->names, ev.key.name) ? copy_record(records, &ev, to, r->err)
                                                           : rdb_reader_skip_value(records->reader);
        if (status == RDB_FAIL)
            break;
    }
    if (status == RDB_FAIL)
        rd_err_adopt(r->err, rdb_reader_err(records->reader));
    return status == RDB_END;
}

/* A checksum of 0 is that of a server that computes none. */
static bool put_end(struct rd_buf *buf, struct rd_err *err)
{
    static const uint8_t end[] = {END_OPCODE, 0, 0, 0, 0, 0, 0, 0, 0};
    return rd_buf_add(buf, end, sizeof end) || rd_err_nomem(err, sizeof end);
}

static bool load_records(struct replay *r, const struct rd_buf *bytes, enum rdb_dialect dialect,
                         int version)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED, .no_sum = true);
    struct rdb_reader *reader;
    struct rd_src *src;
    if (!rd_src_open_memory(&src, rd_buf_slice(bytes), NULL, r->err))
        return false;
    bool ok = rdb_reader_new_records(&reader, src, dialect, version, &opts, r->err);
    if (ok) {
        ok = rebuild_data_load(&r->data, reader, "snapshot", NULL, r->err);
        rdb_reader_free(reader);
    }
    rd_src_close(src);
    return ok;
}

static bool load_span(struct replay *r, size_t part, const struct history_span *span)
{
    struct history_records records;
    struct rd_buf bytes = {0};
    if (!history_tape_snapshot(r->opts->tape, part, span, &records, r->err))
        return false;
    bool ok = copy_records(r, &records, span != NULL ? span->end : UINT64_MAX, &bytes);
    enum rdb_dialect dialect = rdb_reader_dialect(records.reader);
    int version = rdb_reader_version(records.reader);
    history_records_close(&records);
    if (!ok)
        rd_err_origin(r->err, r->opts->tape->parts[part].name);
    ok = ok &&
         (bytes.len == 0 || (put_end(&bytes, r->err) && load_records(r, &bytes, dialect, version)));
    rd_buf_done(&bytes);
    return ok;
}

bool history_replay_load(struct replay *r, size_t part, const struct history_spans *spans,
                         bool whole)
{
    const struct history_command at = {.part = part, .time_us = r->opts->tape->parts[part].time_us};
    history_replay_begin_data(r);
    if (whole && !load_span(r, part, NULL))
        return false;
    for (size_t i = 0; !whole && i < spans->n; i++)
        if (!load_span(r, part, &spans->list[i]))
            return false;
    return r->again || history_replay_visit(r, HISTORY_LOADED, &at, NULL, true);
}
