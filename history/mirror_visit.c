/* The mirrors of all keys follow one command. */
#include "history/mirror_impl.h"

static bool follow_key(struct history_mirrors *mirrors, const struct history_visit *visit,
                       unsigned db, struct rd_slice name, const struct rebuild_line *line,
                       const struct engine_key *key, uint32_t writer, struct rd_err *err)
{
    bool is_there = history_state_of(visit->data, db, name) != HISTORY_ABSENT;
    struct history_mirror *m = is_there ? history_mirrors_get(mirrors, db, name, err)
                                        : history_mirrors_find(mirrors, db, name);
    if (m == NULL)
        return !is_there;
    struct follow f = {.mirrors = mirrors,
                       .m = m,
                       .data = visit->data,
                       .line = line,
                       .key = key != NULL ? key->index : 0,
                       .writer = writer,
                       .replaced = line != NULL && rebuild_line_replaces(line, key),
                       .err = err};
    f.whole = f.replaced;
    return history_follow(&f);
}

/* Whatever it is now: of commands that do not say which keys they change. */
static bool follow_all(struct history_mirrors *mirrors, const struct history_visit *visit,
                       uint32_t writer, struct rd_err *err)
{
    bool ok = true;
    for (unsigned db = 0; ok && db < REBUILD_DATABASES; db++) {
        if (engine_db_count(engine_db(visit->data->engine, db)) == 0 && visit->data->unknown.n == 0)
            continue;
        for (size_t i = 0; ok && i < visit->names->n; i++)
            if (history_state_of(visit->data, db, visit->names->list[i]) != HISTORY_ABSENT)
                ok = follow_key(mirrors, visit, db, visit->names->list[i], NULL, NULL, writer, err);
    }
    for (size_t i = 0; ok && i < mirrors->n; i++)
        if (mirrors->list[i]->state != HISTORY_ABSENT)
            ok = follow_key(mirrors, visit, mirrors->list[i]->db, mirrors->list[i]->name, NULL,
                            NULL, writer, err);
    return ok;
}

/* The value of a mirror goes to another one. */
static bool move_value(struct history_mirror *from, struct history_mirror *to,
                       const struct follow *f)
{
    struct history_mirror was = *from;
    struct follow other = *f;
    if (from == to)
        return true;
    other.m = to;
    if (to->state == HISTORY_PRESENT && !history_follow_clear(&other))
        return false;
    history_mirror_empty(to);
    *from = (struct history_mirror){
        .db = was.db, .name = was.name, .expire_ms = ENGINE_NO_EXPIRE, .writer = f->writer};
    was.db = to->db;
    was.name = to->name;
    was.writer = f->writer;
    *to = was;
    other.m = from;
    return history_follow_edit(&other, &(struct history_edit){.kind = HISTORY_KEY_MOVED,
                                                              .name = to->name,
                                                              .index = to->db}) &&
           history_follow_edit(f, &(struct history_edit){.kind = HISTORY_KEY_MOVED,
                                                         .name = from->name,
                                                         .index = from->db});
}

static bool follow_move(struct history_mirrors *mirrors, const struct history_visit *visit,
                        uint32_t writer, struct rd_err *err)
{
    const struct rebuild_line *line = visit->line;
    bool is_move = rebuild_line_is_move(line);
    unsigned db = is_move ? rebuild_line_move_db(line, visit->db) : visit->db;
    struct rd_slice name = is_move ? line->argv[1] : line->argv[2];
    struct history_mirror *from = history_mirrors_find(mirrors, visit->db, line->argv[1]);
    if (from == NULL || from->state != HISTORY_PRESENT ||
        history_state_of(visit->data, visit->db, line->argv[1]) != HISTORY_ABSENT)
        return true;
    struct follow f = {
        .mirrors = mirrors, .m = from, .data = visit->data, .writer = writer, .err = err};
    if (!history_names_has(visit->names, name)) { /* it is not followed there */
        history_mirror_empty(from);
        from->writer = writer;
        return history_follow_edit(
            &f, &(struct history_edit){.kind = HISTORY_KEY_MOVED, .name = name, .index = db});
    }
    if (history_state_of(visit->data, db, name) != HISTORY_PRESENT)
        return true;
    f.m = history_mirrors_get(mirrors, db, name, err);
    return f.m != NULL && move_value(from, f.m, &f);
}

static bool swap_dbs(struct history_mirrors *mirrors, const struct history_visit *visit,
                     uint32_t writer, struct rd_err *err)
{
    const struct rebuild_line *line = visit->line;
    uint64_t a, b;
    if (line->argc != 3 || !rd_num_get_u64(line->argv[1], &a) || !rd_num_get_u64(line->argv[2], &b))
        return true;
    for (size_t i = 0; i < mirrors->n; i++) {
        struct history_mirror *m = mirrors->list[i];
        if (m->db != a && m->db != b)
            continue;
        unsigned was = m->db;
        struct follow f = {.mirrors = mirrors, .m = m, .writer = writer, .err = err};
        m->db = (unsigned)(m->db == a ? b : a);
        if (m->state == HISTORY_PRESENT) {
            m->writer = writer;
            if (!history_follow_edit(&f, &(struct history_edit){.kind = HISTORY_KEY_MOVED,
                                                                .name = m->name,
                                                                .index = was}))
                return false;
        }
    }
    return mirrors->n == 0 || history_mirrors_fill_slots(mirrors, mirrors->n_slots) ||
           rd_err_nomem(err, 0);
}

static bool follow_named(struct history_mirrors *mirrors, const struct history_visit *visit,
                         uint32_t writer, struct rd_err *err)
{
    const struct rebuild_line *line = visit->line;
    struct rebuild_line_keys keys;
    bool ok = !rebuild_line_moves(line) || follow_move(mirrors, visit, writer, err);
    rebuild_line_find_keys(line, &keys);
    for (size_t i = 0; ok && i < keys.n; i++) {
        struct rd_slice name = line->argv[keys.list[i].index];
        bool moved = rebuild_line_moves(line);
        if (rebuild_line_writes(&keys.list[i]) && history_names_has(visit->names, name))
            ok = follow_key(mirrors, visit, rebuild_line_db(line, &keys.list[i], visit->db), name,
                            moved ? NULL : line, &keys.list[i], writer, err);
    }
    if (ok && rebuild_line_is_move(line))
        ok = follow_key(mirrors, visit, rebuild_line_move_db(line, visit->db), line->argv[1], NULL,
                        NULL, writer, err);
    rebuild_line_keys_done(&keys);
    return ok;
}

bool history_mirrors_visit(struct history_mirrors *mirrors, const struct history_visit *visit,
                           struct rd_err *err)
{
    uint32_t writer;
    if (visit->moment == HISTORY_BEFORE)
        return true;
    if (!history_mirrors_add_writer(mirrors, visit, &writer, err))
        return false;
    if (visit->line != NULL && visit->line->command != NULL &&
        rebuild_line_is(visit->line, "swapdb") && !swap_dbs(mirrors, visit, writer, err))
        return false;
    return visit->for_any ? follow_all(mirrors, visit, writer, err)
                          : follow_named(mirrors, visit, writer, err);
}
