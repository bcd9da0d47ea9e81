#include "history/indexes.h"

#include "base/digest.h"
#include "base/sink.h"
#include "history/index_writer.h"
#include "history/touch.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

enum { STRIDE = 64 * 1024 };

/* ---- making ---- */

struct making {
    struct history_index_writer *w;
    uint64_t stride;
    uint64_t begun; /* offset of the last span */
    bool any;       /* there is one */
    uint64_t end;
    struct rd_err *err;
    bool ok;
};

static bool begin_span(struct making *m, const struct history_span *span)
{
    if (m->any && span->offset - m->begun < m->stride)
        return true;
    m->any = true;
    m->begun = span->offset;
    m->ok = history_index_writer_span(m->w, span, m->err);
    return m->ok;
}

static bool add_name(void *ctx, struct rd_slice name)
{
    struct making *m = ctx;
    m->ok = history_index_writer_key(m->w, name, m->err);
    return m->ok;
}

static bool add_command(void *ctx, const struct history_command *command, struct rd_err *err)
{
    struct making *m = ctx;
    const struct resp_command *cmd = command->line;
    (void)err;
    if (command->offset >= m->end)
        return false; /* the rest of a transaction: the index of the next segment has it */
    const struct history_span span = {
        .offset = command->offset,
        .time_us = command->time_us,
        .db = (uint32_t)command->db,
        .flags = command->in_multi && command->kind != REPL_MULTI ? HISTORY_SPAN_IN_MULTI : 0};
    if (!begin_span(m, &span))
        return false;
    if (command->kind != REPL_WRITE)
        return true;
    const struct rebuild_line line = {engine_command_resolve(cmd->argv, cmd->argc), cmd->argc,
                                      cmd->argv};
    if (history_touch_of(&line, add_name, m) == HISTORY_TOUCHES_ANY)
        history_index_writer_apart(m->w);
    return m->ok;
}

/* A span begins at a record. Hashes with shared field names cannot be read without what comes
 * before them. */
static bool add_records(struct making *m, struct history_records *records, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    uint64_t db = 0;
    while ((status = rdb_reader_next(records->reader, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_DB)
            db = ev.db;
        if (ev.kind == RDB_TEMPLATE || ev.kind == RDB_UPDATE)
            return rd_err_set(err, RD_ERR_UNSUPPORTED, ev.offset, "records depend on others");
        if (ev.kind != RDB_KEY)
            continue;
        const struct history_span span = {
            .offset = rdb_reader_record(records->reader), .time_us = INT64_MIN, .db = (uint32_t)db};
        if (!begin_span(m, &span) || !add_name(m, ev.key.name))
            return false;
        if (rdb_reader_skip_value(records->reader) == RDB_FAIL)
            break;
    }
    m->end = rd_src_offset(records->src);
    rd_err_adopt(err, rdb_reader_err(records->reader));
    return status == RDB_END;
}

static bool add_snapshot(struct making *m, struct history_tape *tape, size_t part,
                         struct rd_err *err)
{
    struct history_records records;
    if (!history_tape_snapshot(tape, part, NULL, &records, err))
        return false;
    bool ok = add_records(m, &records, err);
    history_records_close(&records);
    return ok;
}

bool history_indexes_make(const struct history_indexes *indexes, struct history_tape *tape,
                          size_t part, struct rd_sink *sink, struct rd_err *err)
{
    const struct history_part *p = &tape->parts[part];
    struct history_index_about about = p->about;
    struct making m = {.stride = indexes->stride > 0 ? indexes->stride : STRIDE,
                       .end = p->end,
                       .err = err,
                       .ok = true};
    memcpy(about.salt, indexes->salt, sizeof about.salt);
    if (!p->fixed)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "it may change");
    if (!history_index_writer_new(&m.w, &about, sink, err))
        return false;
    bool ok = p->kind == HISTORY_SNAPSHOT
                  ? add_snapshot(&m, tape, part, err)
                  : history_tape_read(tape, part, NULL, add_command, &m, err) ||
                        err->code == RD_ERR_OK; /* it went far enough */
    ok = ok && m.ok && history_index_writer_end(m.w, m.end, err);
    history_index_writer_free(m.w);
    return ok;
}

/* ---- keeping ---- */

/* In a folder of captures by the name of the part; in any other, files of several logs may have the
 * same name. */
static bool name_of(const struct history_tape *tape, const struct history_part *part,
                    char ret[NAME_MAX + 1])
{
    char hex[RD_DIGEST_HEX];
    int len = tape->is_capture
                  ? snprintf(ret, NAME_MAX + 1, "%s" HISTORY_INDEX_ENDING, part->name)
                  : snprintf(ret, NAME_MAX + 1, "%s-%u" HISTORY_INDEX_ENDING,
                             rd_digest_hex(hex, rd_slice(part->about.digest, 16)), part->kind);
    return len > 0 && len <= NAME_MAX;
}

static bool store(struct history_indexes *indexes, struct history_tape *tape, size_t part,
                  const char *name, struct rd_err *err)
{
    char path[PATH_MAX];
    struct rd_sink *sink;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", indexes->folder, name) >= sizeof path)
        return rd_err_set(&indexes->failed, RD_ERR_USAGE, RD_NO_OFFSET, "the path is too long");
    if (!rd_sink_open_file(&sink, path, &RD_SINK_OPTS(.mode = 0600, .replace = true),
                           &indexes->failed))
        return false;
    if (indexes->making != NULL)
        indexes->making(indexes->ctx, &tape->parts[part]);
    if (!history_indexes_make(indexes, tape, part, sink, err)) {
        rd_sink_abort(sink);
        return false;
    }
    indexes->made++;
    return rd_sink_close(sink, &indexes->failed);
}

static bool look_up(struct history_indexes *indexes, const struct history_part *part,
                    const struct rd_fs *fs, const char *name, const struct history_name_list *names,
                    struct history_spans *ret, struct rd_err *err)
{
    struct history_index_reader *r;
    if (!history_index_reader_open(&r, fs, name, err))
        return false;
    bool ok = history_index_is_of(history_index_reader_about(r), &part->about);
    for (size_t i = 0; ok && i < names->n; i++)
        ok = history_index_reader_find(r, names->list[i], ret, err);
    ok = ok && history_index_reader_apart(r, ret, err);
    history_index_reader_close(r);
    indexes->used += ok;
    return ok;
}

bool history_indexes_find(struct history_indexes *indexes, struct history_tape *tape, size_t part,
                          const struct history_name_list *names, struct history_spans *ret,
                          bool *ret_whole, struct rd_err *err)
{
    const struct history_part *p = &tape->parts[part];
    char name[NAME_MAX + 1];
    struct rd_fs fs;
    struct rd_err why = {0};
    struct history_spans found = {0};
    *ret_whole = true;
    if (indexes->folder == NULL || !p->fixed || !name_of(tape, p, name) ||
        !rd_fs_open_folder(&fs, indexes->folder, false, &indexes->failed))
        return true;
    bool ok = look_up(indexes, p, &fs, name, names, &found, &why);
    if (!ok && why.code != RD_ERR_MEMORY) {
        history_spans_done(&found);
        rd_err_reset(&why);
        ok = store(indexes, tape, part, name, &why) &&
             look_up(indexes, p, &fs, name, names, &found, &why);
    }
    rd_fs_close_posix(&fs);
    *ret_whole = !ok;
    if (ok) {
        history_spans_done(ret);
        *ret = found;
        return true;
    }
    history_spans_done(&found);
    if (why.code == RD_ERR_OK || why.code == RD_ERR_UNSUPPORTED)
        return true;
    rd_err_adopt(err, &why);
    return false;
}
