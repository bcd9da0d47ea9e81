#include "history/replay_impl.h"

#include "base/mem.h"
#include "history/ask.h"
#include "history/touch.h"

enum history_state history_state_of(const struct rebuild_data *data, unsigned db,
                                    struct rd_slice name)
{
    if (rebuild_unknown_has(&data->unknown, db, name))
        return HISTORY_UNKNOWN;
    return engine_db_find(engine_db(data->engine, db), name) != NULL ? HISTORY_PRESENT
                                                                     : HISTORY_ABSENT;
}

/* ---- names ---- */

/* Another key is needed: the replay has to begin again. */
static bool pull(struct replay *r, struct rd_slice name)
{
    bool added;
    if (!history_names_add(&r->names, name, &added, r->err))
        return false;
    r->again |= added;
    if (r->opts->max_names == 0 || r->names.n - r->opts->names->n <= r->opts->max_names)
        return true;
    return rd_err_set(r->err, RD_ERR_LIMIT, RD_NO_OFFSET,
                      "the keys depend on more than %zu other keys", r->opts->max_names);
}

/* Whether a command changes one of the keys. */
bool history_replay_is_written(const struct replay *r, const struct rebuild_line *line,
                               const struct rebuild_line_keys *keys)
{
    for (size_t i = 0; i < keys->n; i++)
        if (rebuild_line_writes(&keys->list[i]) &&
            history_names_has(&r->names, line->argv[keys->list[i].index]))
            return true;
    return false;
}

/* Commands that take something from their first key and give it to the second: what the second one
 * holds does not matter for the first. */
static bool is_only_source(const struct replay *r, const struct rebuild_line *line,
                           const struct rebuild_line_keys *keys)
{
    return keys->n == 2 && rebuild_line_writes(&keys->list[0]) &&
           rebuild_line_writes(&keys->list[1]) &&
           history_names_has(&r->names, line->argv[keys->list[0].index]) &&
           !history_names_has(&r->names, line->argv[keys->list[1].index]) &&
           rebuild_line_gives(line);
}

static bool pull_read(struct replay *r, const struct rebuild_line *line,
                      const struct rebuild_line_keys *keys)
{
    if (is_only_source(r, line, keys))
        return true;
    for (size_t i = 0; i < keys->n; i++)
        if (rebuild_line_reads(line, &keys->list[i]) && !pull(r, line->argv[keys->list[i].index]))
            return false;
    return true;
}

/* ---- reading more than is named ---- */

void history_replay_pull_in_script(void *ctx, unsigned db, const struct rebuild_line *line)
{
    struct replay *r = ctx;
    struct rebuild_line_keys keys;
    (void)db;
    rebuild_line_find_keys(line, &keys);
    for (size_t i = 0; i < keys.n; i++)
        if (!pull(r, line->argv[keys.list[i].index]))
            break;
    rebuild_line_keys_done(&keys);
}

static bool pull_pattern(struct replay *r, struct rd_slice pattern, struct rd_slice element)
{
    struct rd_buf name = {0};
    const uint8_t *star = memchr(pattern.ptr, '*', pattern.len);
    if (star == NULL)
        return true;
    size_t before = (size_t)(star - pattern.ptr), after = pattern.len - before - 1;
    for (size_t i = 1; i + 2 < after; i++) /* "weight_*->field": the key ends before "->" */
        if (star[i] == '-' && star[i + 1] == '>') {
            after = i - 1;
            break;
        }
    bool ok = rd_buf_add(&name, pattern.ptr, before) &&
              rd_buf_add(&name, element.ptr, element.len) && rd_buf_add(&name, star + 1, after);
    ok = ok ? pull(r, rd_buf_slice(&name)) : rd_err_nomem(r->err, pattern.len);
    rd_buf_done(&name);
    return ok;
}

static bool pull_patterns(struct replay *r, const struct rebuild_line *line,
                          struct rd_slice element)
{
    for (size_t i = 2; i + 1 < line->argc; i++)
        if (rebuild_line_arg_is(line, i, "by") || rebuild_line_arg_is(line, i, "get")) {
            if (!pull_pattern(r, line->argv[i + 1], element))
                return false;
            i++;
        }
    return true;
}

/* SORT with patterns: one key for each element, and one more in each pair of a sorted set. */
static bool pull_sorted(struct replay *r, unsigned db, const struct rebuild_line *line)
{
    static const char *const commands[] = {
        [ENGINE_LIST] = "LRANGE", [ENGINE_SET] = "SMEMBERS", [ENGINE_ZSET] = "ZRANGE"};
    struct history_answer answer;
    struct rd_slice element;
    enum engine_type type;
    bool ok = true;
    if (!history_type_of(&r->data, db, line->argv[1], &type) ||
        (type != ENGINE_LIST && type != ENGINE_SET && type != ENGINE_ZSET))
        return true;
    if (!history_ask_key(&answer, &r->data, db, commands[type], line->argv[1],
                         type == ENGINE_SET ? "" : "0 -1", r->err))
        return false;
    while (ok && history_answer_next(&answer, &element))
        ok = pull_patterns(r, line, element);
    history_answer_done(&answer);
    return ok;
}

/* ---- one command ---- */

bool history_replay_visit(struct replay *r, enum history_moment moment,
                          const struct history_command *command, const struct rebuild_line *line,
                          bool for_any)
{
    const struct history_visit v = {.moment = moment,
                                    .place = {command->part, command->offset},
                                    .time_us = command->time_us,
                                    .db = (unsigned)command->db,
                                    .in_multi = command->in_multi,
                                    .multi = command->multi,
                                    .line = line,
                                    .for_any = for_any,
                                    .data = &r->data,
                                    .names = &r->names};
    return r->opts->visit(r->opts->ctx, &v, r->err);
}

/* Before the first command that concerns a key, where what was before is not known. */
static bool meet(struct replay *r, unsigned db, struct rd_slice name)
{
    struct rd_buf both = {0};
    bool added = false;
    if (!history_names_has(&r->names, name))
        return true;
    bool ok = (rd_buf_printf(&both, "%u ", db) && rd_buf_add(&both, name.ptr, name.len)) ||
              rd_err_nomem(r->err, name.len);
    ok = ok && history_names_add(&r->known, rd_buf_slice(&both), &added, r->err);
    if (added)
        rebuild_unknown_add_key(&r->data.unknown, db, name);
    rd_buf_done(&both);
    return ok;
}

static bool meet_all(struct replay *r, unsigned db, const struct rebuild_line *line,
                     const struct rebuild_line_keys *keys)
{
    for (size_t i = 0; i < keys->n; i++)
        if (!meet(r, rebuild_line_db(line, &keys->list[i], db), line->argv[keys->list[i].index]))
            return false;
    return !rebuild_line_is_move(line) || meet(r, rebuild_line_move_db(line, db), line->argv[1]);
}

/* A key that nobody asked for has a part of its history only: it must not be there. */
static void drop_others(struct replay *r, unsigned db, const struct rebuild_line *line,
                        const struct rebuild_line_keys *keys)
{
    for (size_t i = 0; i < keys->n; i++) {
        struct rd_slice name = line->argv[keys->list[i].index];
        if (!history_names_has(&r->names, name))
            rebuild_data_drop(&r->data, rebuild_line_db(line, &keys->list[i], db), name);
    }
}

/* After a command of which not even the keys are known. */
static void forget_all(struct replay *r)
{
    r->data.counts.lost = false;
    for (size_t i = 0; i < r->names.n; i++)
        for (unsigned db = 0; db < REBUILD_DATABASES; db++)
            if (db == r->data.session.db ||
                history_state_of(&r->data, db, r->names.list[i]) == HISTORY_PRESENT)
                rebuild_unknown_add_key(&r->data.unknown, db, r->names.list[i]);
}

static bool run(struct replay *r, const struct history_command *command,
                const struct rebuild_line *line, const struct rebuild_line_keys *keys, bool for_any)
{
    const struct rebuild_step step = {.command = command->line,
                                      .name = r->opts->tape->parts[command->part].name,
                                      .offset = command->offset,
                                      .now_us = command->time_us == INT64_MIN ? r->data.now_us
                                                                              : command->time_us};
    unsigned db = (unsigned)command->db;
    r->data.session.db = db;
    if ((r->unknown_start && !meet_all(r, db, line, keys)) ||
        !history_replay_visit(r, HISTORY_BEFORE, command, line, for_any) ||
        !rebuild_data_apply(&r->data, &step, r->err))
        return false;
    if (r->data.counts.lost)
        forget_all(r);
    drop_others(r, db, line, keys);
    return r->again || history_replay_visit(r, HISTORY_AFTER, command, line, for_any);
}

/* A command that changes one of the keys, or may change any. */
static bool take_relevant(struct replay *r, const struct history_command *command,
                          const struct rebuild_line *line, const struct rebuild_line_keys *keys,
                          bool for_any)
{
    if (!for_any && !pull_read(r, line, keys))
        return false;
    if (!r->again && line->command != NULL && rebuild_line_reads_more(line) &&
        !pull_sorted(r, (unsigned)command->db, line))
        return false;
    return r->again || run(r, command, line, keys, for_any);
}

bool history_replay_take(struct replay *r, const struct history_command *command)
{
    const struct resp_command *cmd = command->line;
    const struct rebuild_line line = {engine_command_resolve(cmd->argv, cmd->argc), cmd->argc,
                                      cmd->argv};
    enum history_touch touch = history_touch_of(&line, NULL, NULL);
    struct rebuild_line_keys keys = {.list = NULL};
    if (touch == HISTORY_TOUCHES_NOTHING)
        return true;
    if (command->db >= REBUILD_DATABASES)
        return rd_err_set(r->err, RD_ERR_LIMIT, command->offset, "database %llu",
                          (unsigned long long)command->db);
    if (touch == HISTORY_TOUCHES_ANY)
        return take_relevant(r, command, &line, &keys, true);
    rebuild_line_find_keys(&line, &keys);
    bool ok = !history_replay_is_written(r, &line, &keys) ||
              take_relevant(r, command, &line, &keys, false);
    rebuild_line_keys_done(&keys);
    return ok;
}

/* ---- the stream ---- */

static bool is_exec(const struct resp_command *cmd)
{
    return cmd->argv[0].len == 4; /* the other end of a transaction is DISCARD */
}

static bool take(void *ctx, const struct history_command *command, struct rd_err *err)
{
    struct replay *r = ctx;
    uint64_t chapter = r->opts->tape->parts[command->part].chapter;
    (void)err;
    if (chapter == r->chapter && command->offset < r->next)
        return true; /* the end of a transaction that was read before */
    r->chapter = chapter;
    r->next = command->offset + command->len;
    if (command->kind == REPL_MULTI)
        history_replay_queue_empty(r);
    else if (command->kind == REPL_EXEC && is_exec(command->line))
        return history_replay_queue_run(r);
    else if (command->kind == REPL_EXEC || !command->in_multi)
        history_replay_queue_empty(r);
    if (command->kind != REPL_WRITE)
        return true;
    return command->in_multi ? history_replay_queue_add(r, command)
                             : history_replay_take(r, command);
}

/* ---- the whole ---- */

static bool read_commands(struct replay *r, size_t part, const struct history_spans *spans,
                          bool whole)
{
    struct history_tape *tape = r->opts->tape;
    if (tape->parts[part].unknown) {
        history_replay_begin_data(r);
        r->unknown_start = true;
    }
    if (whole)
        return history_tape_read(tape, part, NULL, take, r, r->err);
    for (size_t i = 0; i < spans->n; i++)
        if (!history_tape_read(tape, part, &spans->list[i], take, r, r->err))
            return false;
    return true;
}

static bool take_part(struct replay *r, size_t part)
{
    const struct history_name_list names = {r->names.list, r->names.n};
    struct history_spans spans = {0};
    bool whole;
    bool ok =
        history_indexes_find(r->opts->indexes, r->opts->tape, part, &names, &spans, &whole, r->err);
    ok = ok && (r->opts->tape->parts[part].kind == HISTORY_SNAPSHOT
                    ? history_replay_load(r, part, &spans, whole)
                    : read_commands(r, part, &spans, whole));
    history_spans_done(&spans);
    return ok;
}

static bool pass(struct replay *r)
{
    bool ok = true;
    r->again = false;
    r->chapter = r->next = 0;
    history_replay_queue_empty(r);
    history_replay_begin_data(r);
    for (size_t i = 0; ok && i < r->opts->tape->n; i++)
        ok = take_part(r, i);
    return ok;
}

bool history_replay(const struct history_replay_opts *opts, struct rd_err *err)
{
    struct replay r = {.opts = opts, .err = err};
    bool ok = true;
    for (size_t i = 0; ok && i < opts->names->n; i++)
        ok = history_names_add(&r.names, opts->names->list[i], NULL, err);
    ok = ok && pass(&r);
    while (ok && r.again) {
        if (opts->restart != NULL)
            opts->restart(opts->ctx);
        ok = pass(&r);
    }
    history_replay_queue_empty(&r);
    rd_free(r.queue);
    if (r.begun)
        rebuild_data_end(&r.data);
    history_names_done(&r.names);
    history_names_done(&r.known);
    return ok;
}
