/* choose.c - which commands are taken back, and the names of the keys that they changed. */
#include "tools/undo/undo.h"

#include "history/touch.h"

bool undo_is_chosen(const struct undo *u, struct history_place place, int64_t time_us)
{
    if (u->by_place)
        return !recorded_is_before(place, u->first) && !recorded_is_before(u->last, place);
    return time_us != INT64_MIN && time_us / 1000 >= u->from_ms && time_us / 1000 <= u->until_ms;
}

/* ---- one command, or its transaction ---- */

struct search {
    struct undo *u;
    struct history_place wanted;
    bool found, in_multi;
    struct history_place begin; /* of the transaction that is being read */
};

static bool look(void *ctx, const struct history_command *command, struct rd_err *err)
{
    struct search *s = ctx;
    struct history_place place = {command->part, command->offset};
    (void)err;
    if (command->kind == REPL_MULTI || !command->in_multi)
        s->begin = place;
    if (s->found) { /* up to the end of the transaction */
        s->u->last = place;
        return command->kind != REPL_EXEC;
    }
    if (command->offset > s->wanted.offset)
        return false;
    if (command->offset < s->wanted.offset)
        return true;
    s->found = true;
    s->in_multi = command->in_multi;
    s->u->first = command->in_multi ? s->begin : place;
    s->u->last = place;
    return command->in_multi && command->kind != REPL_EXEC;
}

static bool find_command(struct undo *u, struct rd_err *err)
{
    struct search s = {.u = u};
    u->by_place = true;
    if (!recorded_find_place(&u->in, u->command, &s.wanted, err))
        return false;
    bool ok = history_tape_read(&u->in.tape, s.wanted.part, NULL, look, &s, err);
    if (!ok && err->code != RD_ERR_OK)
        return false;
    return s.found ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no command begins at %.100s", u->command);
}

/* ---- the keys ---- */

struct collecting {
    struct undo *u;
    struct rd_err *err;
};

static bool is_wanted(const struct undo *u, struct rd_slice name)
{
    return recorded_matches(&u->in, name) &&
           (u->cli->n_args == 0 || history_names_has(&u->in.names, name));
}

static bool add_name(void *ctx, struct rd_slice name)
{
    struct collecting *c = ctx;
    return !is_wanted(c->u, name) || history_names_add(&c->u->names, name, NULL, c->err);
}

static bool collect(void *ctx, const struct history_command *command, struct rd_err *err)
{
    struct collecting *c = ctx;
    const struct resp_command *cmd = command->line;
    const struct history_place place = {command->part, command->offset};
    (void)err;
    if (command->kind != REPL_WRITE || !undo_is_chosen(c->u, place, command->time_us))
        return true;
    const struct rebuild_line line = {engine_command_resolve(cmd->argv, cmd->argc), cmd->argc,
                                      cmd->argv};
    enum history_touch touch = history_touch_of(&line, add_name, c);
    c->u->n_commands += touch != HISTORY_TOUCHES_NOTHING;
    c->u->any |= touch == HISTORY_TOUCHES_ANY;
    return c->err->code == RD_ERR_OK;
}

/* Whether commands of a part can be among the chosen. */
static bool may_have(const struct undo *u, size_t part)
{
    const struct history_part *p = &u->in.tape.parts[part];
    if (p->kind == HISTORY_SNAPSHOT)
        return false;
    if (u->by_place)
        return part == u->first.part || part == u->last.part;
    return p->latest_us == INT64_MAX || p->latest_us / 1000 >= u->from_ms;
}

/* A command that does not name its keys can have changed all that there are. */
static bool add_all(struct undo *u, struct rd_err *err)
{
    return recorded_each_name(&u->in, add_name, &(struct collecting){u, err}, err);
}

bool undo_choose(struct undo *u, struct rd_err *err)
{
    struct collecting c = {u, err};
    bool ok = u->command == NULL || find_command(u, err);
    for (size_t i = 0; ok && i < u->in.tape.n; i++)
        ok = !may_have(u, i) || history_tape_read(&u->in.tape, i, NULL, collect, &c, err);
    return ok && (!u->any || add_all(u, err));
}
