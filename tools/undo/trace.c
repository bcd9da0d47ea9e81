/* trace.c - replays keys, and keeps what each was before and after the commands. */
#include "tools/undo/undo.h"

#include "base/mem.h"
#include "history/ask.h"

static struct undo_key *key_of(struct undo *u, unsigned db, struct rd_slice name,
                               struct rd_err *err)
{
    struct rd_buf both = {0};
    bool added = false;
    bool ok = rd_buf_printf(&both, "%u ", db) && rd_buf_add(&both, name.ptr, name.len) &&
              history_names_add(&u->found, rd_buf_slice(&both), &added, err);
    size_t number = ok ? history_names_find(&u->found, rd_buf_slice(&both)) : 0;
    rd_buf_done(&both);
    if (!ok) {
        rd_err_nomem(err, name.len);
        return NULL;
    }
    if (!added)
        return &u->keys[number];
    if (u->n_keys == u->cap_keys) {
        size_t cap = u->cap_keys == 0 ? 64 : u->cap_keys * 2;
        struct undo_key *keys = rd_realloc(u->keys, cap * sizeof *keys);
        if (keys == NULL) {
            rd_err_nomem(err, cap * sizeof *keys);
            return NULL;
        }
        u->keys = keys;
        u->cap_keys = cap;
    }
    u->keys[u->n_keys] = (struct undo_key){.db = db, .name = name};
    return &u->keys[u->n_keys++];
}

static bool needs_dump(const struct history_mirror *m)
{
    return m->type == ENGINE_STREAM || m->type == ENGINE_MODULE || m->type == ENGINE_KEPT;
}

bool undo_dump(struct rebuild_data *data, const struct history_mirror *m, struct rd_buf *ret,
               struct rd_err *err)
{
    struct history_answer answer;
    struct rd_slice text;
    rd_buf_reset(ret);
    if (m == NULL || m->state != HISTORY_PRESENT || !needs_dump(m))
        return true;
    if (!history_ask_key(&answer, data, m->db, "DUMP", m->name, "", err))
        return false;
    bool ok = !history_answer_next(&answer, &text) || rd_buf_add(ret, text.ptr, text.len) ||
              rd_err_nomem(err, text.len);
    history_answer_done(&answer);
    return ok;
}

/* The first value is before the commands, the last one after them. */
static bool note(struct undo *u, const struct history_visit *visit, unsigned db,
                 struct rd_slice name, struct rd_err *err)
{
    const struct history_mirror *m = history_mirrors_find(&u->mirrors, db, name);
    size_t was = u->n_keys;
    if (u->in.db != RECORDED_ANY_DB && u->in.db != db)
        return true;
    bool is_there = m != NULL && m->state != HISTORY_ABSENT;
    struct undo_key *key = key_of(u, db, name, err);
    if (key == NULL)
        return false;
    key->unknown |= is_there && m->state == HISTORY_UNKNOWN;
    if (visit->moment == HISTORY_BEFORE && was == u->n_keys)
        return true;
    struct history_mirror *copy = is_there ? history_mirror_copy(m, err) : NULL;
    if (is_there && copy == NULL)
        return false;
    if (visit->moment == HISTORY_BEFORE) {
        key->before = copy;
        return undo_dump(visit->data, copy, &key->dump_before, err);
    }
    history_mirror_free(key->after);
    key->after = copy;
    return true;
}

/* Names are those of the batch, which stay as they are. */
static bool note_named(struct undo *u, const struct history_visit *visit, struct rd_err *err)
{
    const struct rebuild_line *line = visit->line;
    struct rebuild_line_keys keys;
    bool ok = true;
    rebuild_line_find_keys(line, &keys);
    for (size_t i = 0; ok && i < keys.n; i++) {
        size_t k = history_names_find(&u->names, line->argv[keys.list[i].index]);
        if (k != SIZE_MAX && rebuild_line_writes(&keys.list[i]))
            ok = note(u, visit, rebuild_line_db(line, &keys.list[i], visit->db), u->names.list[k],
                      err);
        if (ok && k != SIZE_MAX && rebuild_line_is_move(line))
            ok = note(u, visit, rebuild_line_move_db(line, visit->db), u->names.list[k], err);
    }
    rebuild_line_keys_done(&keys);
    return ok;
}

/* What the command does not name may be any key that is there, or was. */
static bool note_all(struct undo *u, const struct history_visit *visit, struct rd_err *err)
{
    for (size_t i = 0; i < u->mirrors.n; i++) {
        const struct history_mirror *m = u->mirrors.list[i];
        size_t k = history_names_find(&u->names, m->name);
        if (k != SIZE_MAX && !note(u, visit, m->db, u->names.list[k], err))
            return false;
    }
    return true;
}

static bool visit(void *ctx, const struct history_visit *visit, struct rd_err *err)
{
    struct undo *u = ctx;
    bool chosen =
        visit->moment != HISTORY_LOADED && undo_is_chosen(u, visit->place, visit->time_us);
    if (!history_mirrors_visit(&u->mirrors, visit, err))
        return false;
    return !chosen || (visit->for_any ? note_all(u, visit, err) : note_named(u, visit, err));
}

static void forget_keys(struct undo *u)
{
    for (size_t i = 0; i < u->n_keys; i++) {
        history_mirror_free(u->keys[i].before);
        history_mirror_free(u->keys[i].after);
        rd_buf_done(&u->keys[i].dump_before);
    }
    u->n_keys = 0;
    history_names_done(&u->found);
}

static void restart(void *ctx)
{
    struct undo *u = ctx;
    forget_keys(u);
    history_mirrors_reset(&u->mirrors);
}

bool undo_trace(struct undo *u, size_t at, size_t n, struct rd_err *err)
{
    struct history_names batch = {0};
    bool ok = true;
    restart(u);
    for (size_t i = at; ok && i < at + n && i < u->names.n; i++)
        ok = history_names_add(&batch, u->names.list[i], NULL, err);
    const struct history_replay_opts opts = {.tape = &u->in.tape,
                                             .indexes = &u->in.indexes,
                                             .names = &batch,
                                             .now_us = u->cli->began_ms * 1000,
                                             .visit = visit,
                                             .restart = restart,
                                             .ctx = u};
    ok = ok && history_replay(&opts, err);
    history_names_done(&batch);
    return ok;
}

void undo_trace_done(struct undo *u)
{
    forget_keys(u);
    rd_free(u->keys);
    history_mirrors_done(&u->mirrors);
}
