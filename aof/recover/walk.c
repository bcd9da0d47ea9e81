/* walk.c - walks over the commands of one file.
 *
 * Kept bytes are copied late: nothing from w->keep to the current position is written until the
 * next loss is settled, because a part of it can turn out to belong to a damaged transaction.
 */
#include "aof/recover/walk.h"

#include <stdio.h>

#include "aof/commands.h"
#include "aof/recover/resync.h"
#include "base/num.h"

enum {
    TICK_BYTES = 1 << 16,
    INNER_MAX = 1 << 20, /* bytes and commands in an argument */
    INNER_COMMANDS = 16
};

/* -- losses -- */

static void report_losses(struct walk *w, int64_t after)
{
    for (size_t i = 0; i < w->n_losses; i++) {
        w->losses[i].loss.after = after;
        w->losses[i].loss.why = w->losses[i].why;
        if (w->opts->loss != NULL)
            w->opts->loss(w->opts->ctx, &w->losses[i].loss);
    }
    w->n_losses = 0;
}

static void add_loss(struct walk *w, const struct aof_loss *loss, const char *why)
{
    struct aof_salvage_result *res = w->res;
    res->losses++;
    res->bytes_lost += loss->to - loss->from;
    res->transactions += loss->kind == AOF_LOSS_TRANSACTION;
    res->db_uncertain = res->db_uncertain || loss->db_uncertain;
    if (w->n_losses == WALK_LOSSES)
        report_losses(w, AOF_NO_TIME);
    struct walk_loss *l = &w->losses[w->n_losses++];
    l->loss = *loss;
    l->loss.file = w->name;
    l->loss.before = w->time_s;
    l->loss.after = AOF_NO_TIME;
    size_t len = strnlen(why, sizeof l->why - 1);
    memcpy(l->why, why, len);
    l->why[len] = 0;
}

/* -- writing -- */

static bool sink_failed(struct walk *w)
{
    rd_err_adopt(w->err, rd_sink_err(w->out));
    return false;
}

bool aof_recover_copy(struct walk *w, uint64_t from, uint64_t to)
{
    w->probe.win = rd_slice(NULL, 0);
    if (w->out == NULL || from == to)
        return true;
    if (!rd_src_seek(w->copy, from, w->err))
        return false;
    while (from < to) {
        struct rd_slice s;
        enum rd_src_status status = rd_src_need(w->copy, 1, &s);
        if (status == RD_SRC_FAIL || status == RD_SRC_MORE) {
            rd_err_adopt(w->err, rd_src_err(w->copy));
            return false;
        }
        if (status == RD_SRC_END)
            return rd_err_set(w->err, RD_ERR_IO, from, "the file was truncated while it was read");
        size_t len = s.len < to - from ? s.len : (size_t)(to - from);
        if (!rd_sink_write(w->out, s.ptr, len))
            return sink_failed(w);
        rd_src_consume(w->copy, len);
        from += len;
    }
    return true;
}

static bool put_select(struct walk *w, uint64_t db)
{
    char digits[RD_NUM_I64_MAX], line[80];
    size_t n = rd_num_put_u64(digits, db);
    int len =
        snprintf(line, sizeof line, "*2\r\n$6\r\nSELECT\r\n$%zu\r\n%.*s\r\n", n, (int)n, digits);
    w->res->selects_added++;
    return w->out == NULL || rd_sink_write(w->out, line, (size_t)len) || sink_failed(w);
}

/* Writes the kept bytes up to the mark; `next` is the start of the next piece. */
static bool settle(struct walk *w, const struct walk_mark *upto, const struct walk_mark *next)
{
    if (upto->at > w->keep.at) {
        if (w->keep.db != w->out_db && !put_select(w, w->keep.db))
            return false;
        if (!aof_recover_copy(w, w->keep.at, upto->at))
            return false;
        w->out_db = upto->db;
        w->res->commands += upto->commands - w->keep.commands;
        w->res->annotations += upto->annotations - w->keep.annotations;
    }
    w->keep = *next;
    return true;
}

/* -- databases -- */

/* Parses "$6 CRLF SELECT CRLF $1 CRLF 7 CRLF" at `at`, without the count before it. */
static bool select_at(struct walk *w, uint64_t at, uint64_t *ret)
{
    static const char name[] = "$6\r\nselect\r\n$";
    enum { NAME_LEN = sizeof name - 1 };
    const uint8_t *p;
    size_t len = aof_recover_look(&w->in, at, 32, &p), i = NAME_LEN, n = 0;
    uint64_t size;
    if (len < NAME_LEN + 6)
        return false;
    for (size_t k = 0; k < NAME_LEN; k++)
        if ((p[k] >= 'A' && p[k] <= 'Z' ? p[k] | 0x20 : p[k]) != (uint8_t)name[k])
            return false;
    if (p[i + 1] != '\r' || p[i + 2] != '\n')
        return false;
    size = (uint64_t)(p[i] - '0');
    i += 3;
    while (i + n < len && p[i + n] >= '0' && p[i + n] <= '9')
        n++;
    return n == size && rd_num_get_u64(rd_slice(p + i, n), ret) && *ret <= INT32_MAX;
}

/* The database of the last readable SELECT in the range. */
static bool find_select(struct walk *w, uint64_t from, uint64_t to, uint64_t *ret)
{
    bool found = false;
    const uint8_t *p;
    while (from < to) {
        size_t len = aof_recover_look(&w->in, from, 1, &p);
        if (len == 0)
            break;
        if (len > to - from)
            len = (size_t)(to - from);
        const uint8_t *dollar = memchr(p, '$', len);
        if (dollar == NULL) {
            from += len;
            continue;
        }
        from += (uint64_t)(dollar - p);
        found = select_at(w, from, ret) || found;
        from++;
    }
    return found;
}

/* Whether the next command that depends on the database comes after a SELECT. */
static bool select_follows(struct walk *w, uint64_t at)
{
    struct frame f;
    while (aof_recover_frame(&w->probe, at, &f) == FRAME_OK) {
        if (f.kind == FRAME_COMMAND && aof_recover_is(&f, "SELECT"))
            return f.argc == 2 && f.has_db;
        if (f.kind == FRAME_COMMAND && !aof_recover_is(&f, "MULTI") && !aof_recover_is(&f, "EXEC"))
            return false;
        at = f.end;
    }
    return false;
}

/* Line ends and zeros: no command is known to be in them. */
static bool is_blank(struct walk *w, uint64_t from, uint64_t to, bool *ret_zeros)
{
    const uint8_t *p;
    *ret_zeros = false;
    while (from < to) {
        size_t len = aof_recover_look(&w->in, from, 1, &p);
        if (len == 0)
            return false;
        for (size_t i = 0; i < len && from < to; i++, from++) {
            if (p[i] != 0 && p[i] != '\r' && p[i] != '\n')
                return false;
            *ret_zeros |= p[i] == 0;
        }
    }
    return true;
}

/* -- gaps -- */

struct gap {
    enum aof_loss_kind kind;
    struct walk_mark from; /* end of the kept bytes */
    uint64_t to;
    uint64_t at; /* position of the failure, or RD_NO_OFFSET */
    const char *why, *how;
    bool counted;
    uint64_t commands;
    uint64_t unread;  /* the bytes from here to `to` are unknown */
    uint64_t db;      /* selected at `unread` */
    bool select_lost; /* it may hide a SELECT */
    bool multi_lost;  /* it may hide a MULTI */
};

/* Drops [from, to) and continues after it. */
static bool leave_out(struct walk *w, const struct gap *g)
{
    struct walk_mark next = {.at = g->to, .db = g->db};
    bool found = g->select_lost && find_select(w, g->unread, g->to, &next.db);
    struct aof_loss loss = {
        .kind = g->kind,
        .from = g->from.at,
        .to = g->to,
        .at = g->at,
        .resync = g->how,
        .counted = g->counted,
        .commands = g->commands,
        .db = g->from.db,
        .db_after = next.db,
        .db_uncertain = !found && g->select_lost && g->to < w->in.size && !select_follows(w, g->to),
    };
    bool zeros;
    if (g->kind == AOF_LOSS_RANGE && is_blank(w, g->from.at, g->to, &zeros)) {
        loss.commands = 0;
        loss.counted = !zeros; /* zeros may have replaced commands */
        loss.db_uncertain = loss.db_uncertain && zeros;
    }
    next.commands = g->from.commands;
    next.annotations = g->from.annotations;
    add_loss(w, &loss, g->why);
    if (!settle(w, &g->from, &next))
        return false;
    w->now = next;
    w->in_multi = w->in_inner = w->has_inner = false;
    w->has_near_exec = w->has_near_multi = w->has_prev = false;
    w->multi_lost = g->multi_lost;
    w->after_gap = g->kind != AOF_LOSS_TRANSACTION || g->unread < g->to;
    return !w->in.failed;
}

/* Whether the broken command may have been this one. */
static bool may_be(const struct frame *f, const char *name)
{
    struct frame copy = *f;
    copy.argc = 1;
    return f->name_len == 0 || aof_recover_is(f, name) || aof_recover_is_near(&copy, name);
}

/* A line end followed by a command or argument: the commands read since the last loss were inside
 * an argument, whose own command is lost. */
static bool was_argument(struct walk *w, const struct frame *f, const struct aof_recover_way *way)
{
    return w->after_gap && way->exact && aof_recover_byte(&w->in, f->start) == '\r' &&
           aof_recover_byte(&w->in, f->start + 1) == '\n' && f->start - w->keep.at <= INNER_MAX &&
           w->now.commands - w->keep.commands < INNER_COMMANDS;
}

/* So much before the mark is lost. */
static void take_off(struct walk_mark *mark, uint64_t commands, uint64_t annotations)
{
    mark->commands -= commands;
    mark->annotations -= annotations;
}

static bool lose_transaction(struct walk *w, const struct walk_mark *from,
                             const struct walk_mark *to, const char *why)
{
    struct gap g = {
        .kind = AOF_LOSS_TRANSACTION,
        .from = *from,
        .to = to->at,
        .at = RD_NO_OFFSET,
        .why = why,
        .how = "the command after it",
        .counted = true,
        .commands = to->commands - from->commands,
        .unread = to->at,
        .db = to->db,
    };
    const struct walk_mark now = w->now, upto = *to;
    uint64_t lost = g.commands, lines = to->annotations - from->annotations;
    bool has_prev = w->has_prev && w->before_prev.at >= to->at;
    if (!leave_out(w, &g))
        return false;
    w->has_prev = has_prev;
    if (has_prev)
        take_off(&w->before_prev, lost, lines);
    /* Keeps the bytes between the end of the transaction and the current position. */
    if (now.at > upto.at) {
        w->now.at = now.at;
        w->now.db = now.db;
        w->now.commands = now.commands - lost;
        w->now.annotations = now.annotations - lines;
    }
    return true;
}

/* A MULTI in a transaction may be that of a script, with an EXEC of its own. It was not: the EXEC
 * before it was lost. */
static bool lose_outer(struct walk *w)
{
    const struct walk_mark outer = w->multi, inner = w->inner;
    struct walk_mark last = w->last_inner;
    bool in_inner = w->in_inner;
    if (!w->has_inner)
        return true;
    if (!lose_transaction(w, &outer, &inner, "MULTI in a transaction: its EXEC was lost"))
        return false;
    take_off(&last, inner.commands - outer.commands, inner.annotations - outer.annotations);
    w->in_multi = in_inner;
    w->multi = last;
    return true;
}

static void extend_to_transaction(const struct walk *w, struct gap *g)
{
    if (!w->in_multi || w->multi.at >= g->from.at)
        return;
    g->kind = AOF_LOSS_TRANSACTION;
    g->commands += g->from.commands - w->multi.commands;
    g->from = w->multi;
    g->counted = false;
    g->multi_lost = true; /* everything up to EXEC belongs to it */
}

static bool broke(struct walk *w, const struct frame *f)
{
    struct aof_recover_way way;
    if (!lose_outer(w))
        return false;
    const struct frame *prev = w->has_prev ? &w->prev : NULL;
    if (!aof_recover_resync(&w->in, &w->probe, &w->forms, f, prev, &way))
        return false;
    w->rest = way.rest;
    w->rest_end = way.rest_end;
    struct gap g = {
        .kind = AOF_LOSS_RANGE,
        .from = way.before ? w->before_prev : w->now,
        .to = way.to,
        .at = f->bad,
        .why = f->why,
        .how = way.how,
        .counted = way.exact,
        .commands = 1,
        .unread = way.from,
        .db = way.before ? w->before_prev.db : w->now.db,
        .select_lost = true,
        .multi_lost = true,
    };
    if (g.counted) {
        const struct frame *lost = way.before ? prev : f;
        g.select_lost = may_be(lost, "SELECT");
        g.multi_lost = may_be(lost, "MULTI");
    }
    if (was_argument(w, f, &way)) {
        g.from = w->keep;
        g.why = "commands inside an argument";
        g.counted = false;
    } else {
        extend_to_transaction(w, &g);
    }
    return leave_out(w, &g);
}

/* A command with too few arguments: servers crash or stop when they load it. */
static bool lose_short(struct walk *w, const struct frame *f)
{
    if (!lose_outer(w))
        return false;
    struct gap g = {
        .kind = AOF_LOSS_RANGE,
        .from = w->now,
        .to = f->end,
        .at = f->start,
        .why = "a command with too few arguments",
        .how = "the command after it",
        .counted = true,
        .commands = 1,
        .unread = f->end,
        .db = w->now.db,
    };
    extend_to_transaction(w, &g);
    return leave_out(w, &g);
}

/* The bytes of a torn command that follow those that were written into it. */
static bool lose_rest(struct walk *w)
{
    if (!lose_outer(w))
        return false;
    struct gap g = {
        .kind = AOF_LOSS_RANGE,
        .from = w->now,
        .to = w->rest_end,
        .at = RD_NO_OFFSET,
        .why = "the rest of the torn command before the commands before it",
        .how = "the command after it",
        .counted = true,
        .unread = w->rest_end,
        .db = w->now.db,
        .multi_lost = w->multi_lost,
    };
    w->rest = w->rest_end = 0;
    extend_to_transaction(w, &g);
    return leave_out(w, &g);
}

/* -- transactions -- */

static void begin_inner(struct walk *w, const struct walk_mark *start)
{
    if (!w->has_inner)
        w->inner = *start;
    w->last_inner = *start;
    w->in_inner = w->has_inner = true;
}

static bool take_multi(struct walk *w, const struct walk_mark *start)
{
    struct walk_mark at = *start;
    const struct walk_mark before = w->now;
    if ((w->in_inner || w->has_near_exec) && !lose_outer(w))
        return false;
    take_off(&at, before.commands - w->now.commands, before.annotations - w->now.annotations);
    if (w->in_multi && !w->has_near_exec) {
        begin_inner(w, &at);
        return true;
    }
    if (w->in_multi) {
        const struct walk_mark end = w->behind_exec;
        if (!lose_transaction(w, &w->multi, &end, "MULTI in a transaction: its EXEC was lost"))
            return false;
        at = (struct walk_mark){at.at, at.db, w->now.commands - 1, w->now.annotations};
    }
    w->multi = at;
    w->in_multi = true;
    w->has_near_exec = w->has_near_multi = false;
    w->multi_lost = false;
    return true;
}

static bool take_exec(struct walk *w, const struct walk_mark *start)
{
    if (w->in_inner) {
        w->in_inner = w->has_near_exec = false;
        return true;
    }
    if (w->in_multi) {
        w->in_multi = w->has_inner = w->has_near_exec = w->multi_lost = false;
        return true;
    }
    const struct walk_mark end = w->now;
    if (w->has_near_multi)
        return lose_transaction(w, &w->near_multi, &end, "EXEC, and its MULTI was damaged");
    if (w->multi_lost || w->after_gap)
        return lose_transaction(w, &w->keep, &end, "EXEC, and its MULTI was lost");
    return lose_transaction(w, start, &end, "EXEC without MULTI");
}

/* No server writes it, and a server that loads it keeps the transaction open. */
static bool take_discard(struct walk *w)
{
    const struct walk_mark end = w->now;
    w->in_multi = w->in_inner = w->has_inner = w->has_near_exec = w->multi_lost = false;
    return lose_transaction(w, &w->multi, &end, "DISCARD in a transaction");
}

static void doubt(struct walk *w, const struct frame *f, bool known)
{
    struct rd_slice name = rd_slice(f->name, f->name_len);
    if (w->opts->known != NULL ? w->opts->known(w->opts->ctx, name) : known)
        return;
    const struct aof_doubt d = {
        .file = w->name, .offset = f->start, .name = name, .inner = RD_NO_OFFSET};
    w->res->doubts++;
    if (w->opts->doubt != NULL)
        w->opts->doubt(w->opts->ctx, &d);
}

/* Whether there is a MULTI without an EXEC among the commands [at, end). */
static bool leaves_open(struct walk *w, uint64_t at, uint64_t end)
{
    struct frame f;
    bool open = false;
    while (at < end && aof_recover_frame(&w->probe, at, &f) == FRAME_OK) {
        open = aof_recover_is(&f, "MULTI") || (open && !aof_recover_is(&f, "EXEC"));
        at = f.end;
    }
    return open;
}

/* Its framing is intact, so it is not divided: a value may be a text of commands. */
static void doubt_whole(struct walk *w, const struct frame *f, const struct walk_mark *start)
{
    const struct aof_doubt d = {.file = w->name,
                                .offset = f->start,
                                .name = rd_slice(f->name, f->name_len),
                                .inner = aof_recover_inside(&w->in, &w->probe, f->start, f->end)};
    if (d.inner == f->end)
        return;
    if (!w->in_multi && leaves_open(w, d.inner, f->end)) {
        w->has_near_multi = true;
        w->near_multi = *start;
    }
    w->res->swallowed++;
    if (w->opts->doubt != NULL)
        w->opts->doubt(w->opts->ctx, &d);
}

static bool take_command(struct walk *w, const struct frame *f, const struct walk_mark *start,
                         bool known)
{
    if (f->argc == 2 && f->has_db && aof_recover_is(f, "SELECT"))
        w->now.db = f->db;
    if (w->opts->tick != NULL && f->start / TICK_BYTES != f->end / TICK_BYTES)
        w->opts->tick(w->opts->ctx, f->end);
    doubt(w, f, known);
    doubt_whole(w, f, start);
    aof_recover_forms_add(&w->forms, f);
    if (f->argc > 1)
        return true;
    if (aof_recover_is(f, "MULTI"))
        return take_multi(w, start);
    if (aof_recover_is(f, "EXEC"))
        return take_exec(w, start);
    if (w->in_multi && aof_recover_is(f, "DISCARD"))
        return take_discard(w);
    if (!w->in_multi && aof_recover_is_near(f, "MULTI")) {
        w->has_near_multi = true;
        w->near_multi = *start;
    } else if (w->in_multi && !w->has_near_exec && aof_recover_is_near(f, "EXEC")) {
        w->has_near_exec = true;
        w->behind_exec = w->now;
    }
    return true;
}

static bool take_frame(struct walk *w, const struct frame *f)
{
    const struct walk_mark start = w->now;
    unsigned min_args = 0;
    bool known =
        f->kind == FRAME_COMMAND && aof_command_look_up(rd_slice(f->name, f->name_len), &min_args);
    if (f->kind == FRAME_COMMAND && f->argc < min_args)
        return lose_short(w, f);
    w->now.at = f->end;
    w->prev = *f;
    w->before_prev = start;
    w->has_prev = true;
    if (f->kind == FRAME_COMMAND) {
        w->now.commands++;
        return take_command(w, f, &start, known);
    }
    w->now.annotations++;
    if (f->time_s != AOF_NO_TIME) {
        report_losses(w, f->time_s);
        w->time_s = f->time_s;
    }
    return true;
}

static bool finish(struct walk *w)
{
    if (!lose_outer(w))
        return false;
    if (w->in_multi) {
        const struct walk_mark end = w->has_near_exec ? w->behind_exec : w->now;
        if (!lose_transaction(w, &w->multi, &end, "the file ends inside a transaction"))
            return false;
    }
    if (!settle(w, &w->now, &w->now))
        return false;
    report_losses(w, AOF_NO_TIME);
    return true;
}

bool aof_recover_walk(struct walk *w, uint64_t at)
{
    w->now = w->keep = (struct walk_mark){.at = at};
    w->out_db = 0;
    for (;;) {
        struct frame f;
        if (w->rest_end != 0 && w->now.at == w->rest) {
            if (!lose_rest(w))
                return false;
            continue;
        }
        enum frame_status status = aof_recover_frame(&w->in, w->now.at, &f);
        if (status == FRAME_FAIL)
            return false;
        if (status == FRAME_END)
            return finish(w);
        if (!(status == FRAME_OK ? take_frame(w, &f) : broke(w, &f)))
            return false;
    }
}
