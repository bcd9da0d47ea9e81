#include "history/index_maker.h"

#include "base/mem.h"
#include "history/index_writer.h"
#include "history/touch.h"

struct history_index_maker {
    struct history_index_writer *w;
    uint64_t end, stride;
    bool any;       /* there is a span */
    uint64_t begun; /* offset of the last span */
    uint64_t upto;  /* after the last command */
    struct history_touch_memo memo;
    struct rd_err *err;
    bool ok;
};

bool history_index_maker_new(struct history_index_maker **ret,
                             const struct history_index_about *about, uint64_t end, uint64_t stride,
                             struct rd_sink *sink, struct rd_err *err)
{
    struct history_index_maker *m = rd_calloc(1, sizeof *m);
    if (m == NULL)
        return rd_err_nomem(err, sizeof *m);
    m->end = end;
    m->stride = stride != 0 ? stride : HISTORY_INDEX_STRIDE;
    if (history_index_writer_new(&m->w, about, sink, err)) {
        *ret = m;
        return true;
    }
    rd_free(m);
    return false;
}

void history_index_maker_free(struct history_index_maker *m)
{
    if (m == NULL)
        return;
    history_index_writer_free(m->w);
    rd_free(m);
}

bool history_index_maker_begins(const struct history_index_maker *m, uint64_t offset)
{
    return !m->any || offset - m->begun >= m->stride;
}

void history_index_maker_digest(struct history_index_maker *m, const uint8_t digest[HISTORY_DIGEST])
{
    history_index_writer_digest(m->w, digest);
}

static bool begin_span(struct history_index_maker *m, const struct history_span *span,
                       struct rd_err *err)
{
    if (!history_index_maker_begins(m, span->offset))
        return true;
    m->any = true;
    m->begun = span->offset;
    return history_index_writer_span(m->w, span, err);
}

static bool add_name(void *ctx, struct rd_slice name)
{
    struct history_index_maker *m = ctx;
    m->ok = history_index_writer_key(m->w, name, m->err);
    return m->ok;
}

bool history_index_maker_command(struct history_index_maker *m,
                                 const struct history_command *command, struct rd_err *err)
{
    const struct resp_command *cmd = command->line;
    bool in_multi = command->in_multi && command->kind != REPL_MULTI;
    const struct history_span span = {.offset = command->offset,
                                      .time_us = command->time_us,
                                      .db = (uint32_t)command->db,
                                      .flags = in_multi ? HISTORY_SPAN_IN_MULTI : 0,
                                      .multi = in_multi ? command->multi : 0};
    if (command->offset >= m->end)
        return true;
    if (!begin_span(m, &span, err))
        return false;
    m->upto = command->offset + command->len;
    if (command->kind != REPL_WRITE)
        return true;
    m->err = err;
    m->ok = true;
    if (history_touch_next(&m->memo, cmd, add_name, m) == HISTORY_TOUCHES_ANY)
        history_index_writer_apart(m->w);
    return m->ok;
}

bool history_index_maker_record(struct history_index_maker *m, uint64_t offset, uint64_t db,
                                struct rd_slice key, struct rd_err *err)
{
    const struct history_span span = {.offset = offset, .time_us = INT64_MIN, .db = (uint32_t)db};
    return begin_span(m, &span, err) && history_index_writer_key(m->w, key, err);
}

bool history_index_maker_end(struct history_index_maker *m, struct rd_err *err)
{
    return history_index_writer_end(m->w, m->end != RD_NO_OFFSET ? m->end : m->upto, err);
}
