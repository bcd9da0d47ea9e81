#include "base/mem.h"
#include "history/tape_impl.h"

#include <limits.h>
#include <stdio.h>

struct history_part *history_tape_add(struct history_tape *tape, struct rd_err *err)
{
    if (tape->n == tape->cap) {
        size_t cap = tape->cap == 0 ? 16 : tape->cap * 2;
        struct history_part *parts = rd_realloc(tape->parts, cap * sizeof *parts);
        if (parts == NULL) {
            rd_err_nomem(err, cap * sizeof *parts);
            return NULL;
        }
        tape->parts = parts;
        tape->cap = cap;
    }
    struct history_part *part = &tape->parts[tape->n++];
    *part = (struct history_part){.time_us = INT64_MIN, .latest_us = INT64_MAX};
    return part;
}

bool history_tape_open(struct history_tape *ret, const char *path, struct rd_err *err)
{
    *ret = (struct history_tape){.path = path, .is_capture = rebuild_stream_is(path)};
    bool ok =
        ret->is_capture ? history_tape_open_capture(ret, err) : history_tape_open_log(ret, err);
    if (!ok)
        history_tape_close(ret);
    return ok;
}

bool history_tape_open_based(struct history_tape *ret, const struct history_base *base,
                             const char *name, struct rd_err *err)
{
    *ret = (struct history_tape){.path = name, .is_capture = true, .base = base};
    if (history_tape_open_capture(ret, err))
        return true;
    history_tape_close(ret);
    return false;
}

void history_tape_close(struct history_tape *tape)
{
    if (tape->is_capture)
        rebuild_stream_close(&tape->stream);
    rd_free(tape->parts);
    rd_free(tape->folder);
    *tape = (struct history_tape){0};
}

bool history_tape_read(struct history_tape *tape, size_t part, const struct history_span *span,
                       history_command_fn each, void *ctx, struct rd_err *err)
{
    const struct rd_err *failed = tape->base != NULL ? tape->base->failed : NULL;
    bool ok = tape->is_capture ? history_tape_read_capture(tape, part, span, each, ctx, err)
                               : history_tape_read_log(tape, part, span, each, ctx, err);
    if (!ok && failed != NULL && failed->code != RD_ERR_OK) {
        rd_err_reset(err);
        rd_err_adopt(err, failed);
    }
    return ok;
}

/* ---- snapshots ---- */

static bool open_file(const struct history_tape *tape, const struct history_part *part,
                      size_t window, struct rd_src **ret, struct rd_err *err)
{
    char path[PATH_MAX];
    if (tape->base != NULL)
        return tape->base->open(tape->base->ctx, ret, err);
    const char *folder = tape->is_capture ? tape->path : tape->folder;
    int len = folder == NULL ? snprintf(path, sizeof path, "%s", tape->path)
                             : snprintf(path, sizeof path, "%s/%s", folder, part->name);
    if (len < 0 || (size_t)len >= sizeof path)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path is too long");
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = window, .regular = folder != NULL);
    if (!rd_src_open_file(ret, path, &opts, err))
        return false;
    if (part->fixed || rd_src_decompress(ret, err))
        return true;
    rd_err_origin(err, part->name);
    rd_src_close(*ret);
    return false;
}

bool history_tape_open_file(const struct history_tape *tape, const struct history_part *part,
                            struct rd_src **ret, struct rd_err *err)
{
    return open_file(tape, part, 0, ret, err);
}

/* The reader of a part of a file needs to know the version of the file. */
static bool read_header(const struct history_tape *tape, const struct history_part *part,
                        enum rdb_dialect *ret_dialect, int *ret_version, struct rd_err *err)
{
    enum { SMALL = 4096 };
    struct rdb_reader *reader;
    struct rdb_event ev;
    struct rd_src *src;
    if (!open_file(tape, part, SMALL, &src, err))
        return false;
    bool ok = rdb_reader_new(&reader, src, NULL, err);
    if (ok) {
        ok = rdb_reader_next(reader, &ev) == RDB_EVENT;
        if (!ok)
            rd_err_adopt(err, rdb_reader_err(reader));
        *ret_dialect = rdb_reader_dialect(reader);
        *ret_version = rdb_reader_version(reader);
        rdb_reader_free(reader);
    }
    rd_src_close(src);
    return ok;
}

static bool begin_at(const struct history_tape *tape, const struct history_part *part,
                     struct history_records *records, const struct history_span *span,
                     struct rd_err *err)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED, .no_sum = true, .updates = true);
    enum rdb_dialect dialect;
    int version;
    if (!read_header(tape, part, &dialect, &version, err) ||
        !rd_src_seek(records->src, span->offset, err) ||
        !rdb_reader_new_records(&records->reader, records->src, dialect, version, &opts, err))
        return false;
    rdb_reader_restart(records->reader, span->db);
    return true;
}

bool history_tape_snapshot(struct history_tape *tape, size_t part, const struct history_span *span,
                           struct history_records *ret, struct rd_err *err)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED, .updates = true);
    const struct history_part *p = &tape->parts[part];
    *ret = (struct history_records){0};
    bool ok = history_tape_open_file(tape, p, &ret->src, err) &&
              (span == NULL || !p->fixed ? rdb_reader_new(&ret->reader, ret->src, &opts, err)
                                         : begin_at(tape, p, ret, span, err));
    if (ok)
        return true;
    rd_err_origin(err, p->name);
    history_records_close(ret);
    return false;
}

void history_records_close(struct history_records *records)
{
    rdb_reader_free(records->reader);
    rd_src_close(records->src);
    *records = (struct history_records){0};
}
