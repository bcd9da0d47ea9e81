/* round.c - commands of the stream, as transactions that also set the position.
 *
 *     MULTI, SELECT, commands …, HSET POSITION-KEY at:FOLDER POSITION, EXEC
 *
 * A round has one transaction for each group of keys that has commands in it. While the servers
 * work on a round, the next one is built; it is sent when all replies of the first have arrived. */
#include "tools/migrate/migrate.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"

/* ---- building ---- */

bool migrate_round_begin(struct migrate_round *round, struct migrate_stream *stream,
                         size_t n_groups, struct rd_err *err)
{
    if (round->n_groups != n_groups) {
        rd_free(round->of_group);
        round->of_group = rd_alloc(n_groups * sizeof *round->of_group);
        round->n_groups = round->of_group != NULL ? n_groups : 0;
        if (round->of_group == NULL)
            return rd_err_nomem(err, n_groups * sizeof *round->of_group);
        memset(round->of_group, -1, n_groups * sizeof *round->of_group);
    }
    for (size_t i = 0; i < round->n; i++)
        if (round->batches[i].group < n_groups)
            round->of_group[round->batches[i].group] = -1;
    round->n = 0;
    round->stream = stream;
    round->bytes = round->commands = 0;
    round->sent = round->cut = round->held = false;
    round->time_us = 0;
    return true;
}

bool migrate_round_batch(struct migrate_round *round, unsigned group, struct migrate_batch **ret,
                         struct rd_err *err)
{
    if (round->of_group[group] >= 0) {
        *ret = &round->batches[round->of_group[group]];
        return true;
    }
    if (round->n == round->cap) {
        size_t cap = round->cap == 0 ? 16 : 2 * round->cap;
        struct migrate_batch *batches = rd_realloc(round->batches, cap * sizeof *batches);
        if (batches == NULL)
            return rd_err_nomem(err, cap * sizeof *batches);
        memset(batches + round->cap, 0, (cap - round->cap) * sizeof *batches);
        round->batches = batches;
        round->cap = cap;
    }
    struct migrate_batch *batch = &round->batches[round->n];
    rd_buf_reset(&batch->bytes);
    batch->group = group;
    batch->db = 0;
    batch->n = 0;
    batch->remark = false;
    round->of_group[group] = (int32_t)round->n++;
    *ret = batch;
    return true;
}

static bool add_mark(struct migrate_batch *batch, uint64_t offset, struct rd_err *err)
{
    if (batch->n == batch->cap_marks) {
        size_t cap = batch->cap_marks == 0 ? 4 : 2 * batch->cap_marks;
        struct migrate_mark *marks = rd_realloc(batch->marks, cap * sizeof *marks);
        if (marks == NULL)
            return rd_err_nomem(err, cap * sizeof *marks);
        batch->marks = marks;
        batch->cap_marks = cap;
    }
    batch->marks[batch->n++] = (struct migrate_mark){offset, batch->bytes.len};
    return true;
}

bool migrate_batch_add_bytes(struct migrate_batch *batch, struct rd_slice bytes, uint64_t offset,
                             struct rd_err *err)
{
    return add_mark(batch, offset, err) &&
           (rd_buf_add(&batch->bytes, bytes.ptr, bytes.len) || rd_err_nomem(err, bytes.len));
}

static bool put_header(struct rd_buf *buf, char type, uint64_t n)
{
    char text[RD_NUM_I64_MAX + 4];
    size_t len = 0;
    text[len++] = type;
    len += rd_num_put_u64(text + len, n);
    text[len++] = '\r';
    text[len++] = '\n';
    return rd_buf_add(buf, text, len);
}

bool migrate_batch_add(struct migrate_batch *batch, const struct rd_slice *argv, size_t argc,
                       uint64_t offset, struct rd_err *err)
{
    if (!add_mark(batch, offset, err))
        return false;
    bool ok = put_header(&batch->bytes, '*', argc);
    for (size_t i = 0; ok && i < argc; i++)
        ok = put_header(&batch->bytes, '$', argv[i].len) &&
             rd_buf_add(&batch->bytes, argv[i].ptr, argv[i].len) &&
             rd_buf_add(&batch->bytes, "\r\n", 2);
    return ok || rd_err_nomem(err, batch->bytes.len);
}

bool migrate_batch_select(struct migrate_batch *batch, uint64_t db, uint64_t offset,
                          struct rd_err *err)
{
    char number[RD_NUM_I64_MAX];
    if (batch->db == db)
        return true;
    batch->db = db;
    const struct rd_slice argv[] = {rd_slice_str("SELECT"),
                                    rd_slice(number, rd_num_put_u64(number, db))};
    return migrate_batch_add(batch, argv, 2, offset, err);
}

/* The command that sets the position of the group. */
static bool add_position(struct migrate *m, struct migrate_round *round,
                         struct migrate_batch *batch, struct rd_err *err)
{
    char key[MIGRATE_KEY_MAX], field[CAPTURE_FOLDER_MAX + 4], text[MIGRATE_POSITION_MAX];
    const struct migrate_stream *stream = round->stream;
    const struct migrate_position at = {
        .replid = stream->replid, .offset = round->end.offset, .db = stream->db};
    int len = snprintf(field, sizeof field, "at:%s", stream->folder);
    const struct rd_slice argv[] = {
        rd_slice_str("HSET"),         migrate_group_key(m, batch->group, key),
        rd_slice(field, (size_t)len), rd_slice(text, migrate_position_put(text, &at)),
        rd_slice_str("copy"),         rd_slice_str(m->mark)};
    return migrate_batch_select(batch, 0, round->end.offset, err) &&
           migrate_batch_add(batch, argv, batch->remark ? 6 : 4, round->end.offset, err);
}

/* ---- sending ---- */

static const char multi[] = "*1\r\n$5\r\nMULTI\r\n";
static const char exec[] = "*1\r\n$4\r\nEXEC\r\n";

static bool send_batch(struct client_peer *peer, const struct migrate_batch *batch,
                       struct rd_err *err)
{
    bool alone = batch->n == 1; /* only the position */
    return (alone || client_peer_send_bytes(peer, rd_slice(multi, sizeof multi - 1), err)) &&
           client_peer_send_bytes(peer, rd_buf_slice(&batch->bytes), err) &&
           (alone || client_peer_send_bytes(peer, rd_slice(exec, sizeof exec - 1), err));
}

bool migrate_round_send(struct migrate *m, struct migrate_round *round, struct rd_err *err)
{
    struct migrate_target *t = &m->target;
    round->sent = true;
    for (size_t i = 0; i < round->n; i++)
        if (!add_position(m, round, &round->batches[i], err) ||
            !send_batch(migrate_target_node(t, round->batches[i].group)->peer, &round->batches[i],
                        err))
            return false;
    for (size_t i = 0; i < t->n_nodes; i++)
        if (!client_peer_flush(t->nodes[i].peer, err))
            return false;
    return true;
}

/* ---- replies ---- */

/* The name of a command in the bytes of a batch: "*2\r\n$4\r\nINCR\r\n…". */
static void name_of(const struct migrate_batch *batch, size_t index, char *dst, size_t size)
{
    const uint8_t *at = batch->bytes.ptr + batch->marks[index].at;
    const uint8_t *end = batch->bytes.ptr + batch->bytes.len;
    for (int lines = 0; at < end && lines < 2; at++)
        lines += *at == '\n';
    const uint8_t *line = memchr(at, '\r', (size_t)(end - at));
    rd_show_escape(dst, size, rd_slice(at, line != NULL ? (size_t)(line - at) : 0));
}

static void note_refusal(struct migrate *m, const struct migrate_batch *batch, size_t index,
                         struct rd_slice text)
{
    struct migrate_result *r = &m->result;
    if (r->n_refused++ >= MIGRATE_ERRORS)
        return;
    struct migrate_refusal *refusal = &r->refused[r->n_refused - 1];
    refusal->offset = batch->marks[index].offset;
    name_of(batch, index, refusal->name, sizeof refusal->name);
    rd_show_escape(refusal->text, sizeof refusal->text, text);
    migrate_say(m, true, "the target refused %s of offset %llu: %s", refusal->name,
                (unsigned long long)refusal->offset, refusal->text);
}

static bool is_error(const struct resp_node *node)
{
    return node->type == RESP_ERROR || node->type == RESP_BULK_ERROR;
}

/* A whole transaction was refused because of a command. */
static bool refuse_command(const struct migrate *m, const struct migrate_batch *batch, size_t index,
                           const char *text, struct rd_err *err)
{
    char name[48];
    name_of(batch, index, name, sizeof name);
    rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
               "the target does not accept %s of offset %llu: %s", name,
               (unsigned long long)batch->marks[index].offset, text);
    rd_err_origin(err, m->target.first.name);
    return false;
}

static bool fail_again(bool *ret_again, struct rd_err *err, const char *text)
{
    *ret_again = true;
    return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "%s", text);
}

/* The answers to the commands of a transaction, before EXEC. */
static bool take_queued(struct migrate *m, struct client_peer *peer,
                        const struct migrate_batch *batch, bool *ret_again, struct rd_err *err)
{
    struct resp_node node;
    char text[RD_ERR_TEXT_MAX] = "";
    bool temporary = false;
    size_t at = 0;
    for (size_t i = 0; i <= batch->n; i++) {
        if (!client_peer_next(peer, &node, err))
            return fail_again(ret_again, err, "");
        if (!is_error(&node) || text[0] != '\0')
            continue;
        temporary = migrate_is_temporary(node.text);
        rd_show_escape(text, sizeof text, node.text);
        at = i > 0 ? i - 1 : 0;
    }
    if (text[0] == '\0')
        return true;
    return temporary ? fail_again(ret_again, err, text) : refuse_command(m, batch, at, text, err);
}

static bool take_executed(struct migrate *m, struct client_peer *peer,
                          const struct migrate_batch *batch, bool *ret_again, struct rd_err *err)
{
    struct resp_node node;
    char text[RD_ERR_TEXT_MAX];
    size_t child = 0;
    do {
        if (!client_peer_next(peer, &node, err))
            return fail_again(ret_again, err, "");
        if (node.depth == 0 && is_error(&node)) {
            rd_show_escape(text, sizeof text, node.text);
            return fail_again(ret_again, err, text);
        }
        if (node.depth == 0 && node.null)
            return fail_again(ret_again, err, "the transaction was not executed");
        if (node.depth == 1 && is_error(&node) && child < batch->n)
            note_refusal(m, batch, child, node.text);
        child += node.depth == 1;
    } while (!node.last);
    return true;
}

static bool take_batch(struct migrate *m, struct client_peer *peer,
                       const struct migrate_batch *batch, bool *ret_again, struct rd_err *err)
{
    struct resp_node node;
    char text[RD_ERR_TEXT_MAX];
    if (batch->n > 1)
        return take_queued(m, peer, batch, ret_again, err) &&
               take_executed(m, peer, batch, ret_again, err);
    if (!client_peer_next(peer, &node, err))
        return fail_again(ret_again, err, "");
    if (!is_error(&node))
        return true;
    rd_show_escape(text, sizeof text, node.text);
    return migrate_is_temporary(node.text) ? fail_again(ret_again, err, text)
                                           : refuse_command(m, batch, 0, text, err);
}

bool migrate_round_finish(struct migrate *m, struct migrate_round *round, bool *ret_again,
                          struct rd_err *err)
{
    struct migrate_stream *stream = round->stream;
    *ret_again = false;
    for (size_t i = 0; i < round->n; i++) {
        const struct migrate_batch *batch = &round->batches[i];
        struct migrate_node *node = migrate_target_node(&m->target, batch->group);
        if (!take_batch(m, node->peer, batch, ret_again, err)) {
            rd_err_origin(err, node->target.name);
            return false;
        }
        stream->applied[batch->group] = round->end;
    }
    m->result.commands += round->commands;
    m->result.bytes += round->bytes;
    if (round->time_us != 0)
        stream->time_us = round->time_us;
    round->sent = false;
    return true;
}

void migrate_round_done(struct migrate_round *round)
{
    for (size_t i = 0; i < round->cap; i++) {
        rd_buf_done(&round->batches[i].bytes);
        rd_free(round->batches[i].marks);
    }
    rd_free(round->batches);
    rd_free(round->of_group);
    *round = (struct migrate_round){0};
}
