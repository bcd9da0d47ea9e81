/* One mirror follows the engine: its state, type and time to live; the value by its type. */
#include "base/mem.h"
#include "history/mirror_impl.h"

/* ---- what all types need ---- */

bool history_follow_is(const struct follow *f, const char *command)
{
    return f->line != NULL && rebuild_line_is(f->line, command);
}

bool history_follow_edit(const struct follow *f, const struct history_edit *edit)
{
    return f->mirrors->on_edit == NULL || f->mirrors->on_edit(f->mirrors->ctx, f->m, edit, f->err);
}

bool history_follow_ask(const struct follow *f, struct history_answer *ret, const char *command,
                        const char *rest)
{
    return history_ask_key(ret, f->data, f->m->db, command, f->m->name, rest, f->err);
}

bool history_follow_number(const struct follow *f, const char *command, uint64_t *ret)
{
    struct history_answer answer;
    struct rd_slice text;
    if (!history_follow_ask(f, &answer, command, ""))
        return false;
    bool ok = history_answer_next(&answer, &text) && rd_num_get_u64(text, ret);
    history_answer_done(&answer);
    return ok || rd_err_set(f->err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "%s gave no number", command);
}

bool history_follow_put(const struct follow *f, struct history_map *map, enum history_part_of of,
                        struct rd_slice name, struct rd_slice content, bool is_written)
{
    struct history_element *e = history_map_find(map, name);
    struct history_edit edit = {.kind = HISTORY_ADDED, .of = of, .name = name, .after = content};
    if (e != NULL) {
        bool same = rd_slice_eq(history_element_content(e), content);
        edit.kind = same ? HISTORY_WRITTEN : HISTORY_CHANGED;
        edit.before = history_element_content(e);
        if (same && !is_written && !f->whole)
            return true;
        if (same) {
            e->writer = f->writer;
            return history_follow_edit(f, &edit);
        }
    }
    return history_follow_edit(f, &edit) && history_map_put(map, name, content, f->writer, f->err);
}

bool history_follow_take(const struct follow *f, struct history_map *map, enum history_part_of of,
                         struct rd_slice name)
{
    struct history_element *e = history_map_find(map, name);
    if (e == NULL)
        return true;
    const struct history_edit edit = {.kind = HISTORY_REMOVED,
                                      .of = of,
                                      .name = history_element_name(e),
                                      .before = history_element_content(e)};
    bool ok = history_follow_edit(f, &edit);
    history_map_remove(map, name);
    return ok;
}

bool history_follow_insert(const struct follow *f, size_t at, struct rd_slice name,
                           struct rd_slice content)
{
    const struct history_edit edit = {
        .kind = HISTORY_ADDED, .name = name, .index = at, .after = content};
    return history_follow_edit(f, &edit) &&
           history_seq_insert(&f->m->seq, at, name, content, f->writer, f->err);
}

bool history_follow_cut(const struct follow *f, size_t at, size_t n)
{
    bool ok = true;
    for (size_t i = at; ok && i < at + n; i++) {
        const struct history_element *e = history_seq_at(&f->m->seq, i);
        ok = history_follow_edit(f, &(struct history_edit){.kind = HISTORY_REMOVED,
                                                           .name = history_element_name(e),
                                                           .index = i,
                                                           .before = history_element_content(e)});
    }
    history_seq_remove(&f->m->seq, at, n);
    return ok;
}

/* ---- one key ---- */

static bool follow_value(const struct follow *f)
{
    switch (f->m->type) {
    case ENGINE_STRING:
        return history_follow_string(f);
    case ENGINE_LIST:
        return history_follow_list(f);
    case ENGINE_HASH:
    case ENGINE_SET:
    case ENGINE_ZSET:
        return history_follow_map(f);
    case ENGINE_STREAM:
        return history_follow_stream(f);
    default:
        return history_follow_opaque(f);
    }
}

/* Removes all elements, one edit each. */
bool history_follow_clear(const struct follow *f)
{
    struct history_mirror *m = f->m;
    struct history_map *const maps[] = {&m->map, &m->beside};
    bool ok = m->seq.n == 0 || history_follow_cut(f, 0, m->seq.n);
    for (size_t i = 0; i < 2; i++) {
        struct history_element **sorted = history_map_sorted(maps[i]);
        for (size_t k = 0; ok && sorted != NULL && k < maps[i]->n; k++)
            ok = history_follow_edit(
                f, &(struct history_edit){.kind = HISTORY_REMOVED,
                                          .of = i == 0 ? HISTORY_OF_VALUE : history_beside_of(m),
                                          .name = history_element_name(sorted[k]),
                                          .before = history_element_content(sorted[k])});
        rd_free(sorted);
    }
    if (ok && m->bytes.len > 0)
        ok = history_follow_edit(
            f, &(struct history_edit){.kind = HISTORY_REMOVED, .before = rd_buf_slice(&m->bytes)});
    return ok;
}

/* The key is not what it was: removed, or of another type. */
static bool end_value(const struct follow *f, bool is_gone)
{
    struct history_mirror *m = f->m;
    bool ok = m->state != HISTORY_PRESENT || history_follow_clear(f);
    bool had = m->state != HISTORY_ABSENT;
    history_mirror_empty(m);
    m->writer = f->writer;
    return ok && (!is_gone || !had ||
                  history_follow_edit(f, &(struct history_edit){.kind = HISTORY_KEY_REMOVED}));
}

static bool become_unknown(const struct follow *f)
{
    if (f->m->state == HISTORY_UNKNOWN && f->line == NULL)
        return true;
    history_mirror_empty(f->m);
    f->m->state = HISTORY_UNKNOWN;
    f->m->writer = f->writer;
    return history_follow_edit(f, &(struct history_edit){.kind = HISTORY_KEY_UNKNOWN});
}

static bool follow_expiry(const struct follow *f, int64_t expire_ms)
{
    const struct history_edit edit = {.kind = HISTORY_EXPIRY, .old_expire_ms = f->m->expire_ms};
    if (f->m->expire_ms == expire_ms)
        return true;
    f->m->expire_ms = expire_ms;
    f->m->expire_writer = f->writer;
    return history_follow_edit(f, &edit);
}

/* Brings a mirror up to the engine. */
bool history_follow(struct follow *f)
{
    struct history_mirror *m = f->m;
    enum history_state state = history_state_of(f->data, m->db, m->name);
    if (state == HISTORY_UNKNOWN)
        return become_unknown(f);
    if (state == HISTORY_ABSENT)
        return m->state == HISTORY_ABSENT || end_value(f, true);
    const struct engine_entry *entry = engine_db_find(engine_db(f->data->engine, m->db), m->name);
    enum engine_type type = (enum engine_type)entry->value.type;
    int64_t expire_ms = entry->expire_ms;
    if (m->state == HISTORY_PRESENT && m->type != type && !end_value(f, false))
        return false;
    if (m->state != HISTORY_PRESENT) {
        m->state = HISTORY_PRESENT;
        m->type = type;
        m->writer = f->writer;
        f->whole = true;
        if (!history_follow_edit(f, &(struct history_edit){.kind = HISTORY_KEY_CREATED}))
            return false;
    }
    return follow_value(f) && follow_expiry(f, expire_ms);
}

struct history_mirror *history_mirror_read(struct rebuild_data *data, unsigned db,
                                           struct rd_slice name, struct rd_err *err)
{
    struct history_mirrors mirrors = {0};
    struct history_mirror *m = history_mirror_make(db, name, err);
    struct follow f = {.mirrors = &mirrors, .m = m, .data = data, .err = err};
    if (m == NULL || history_follow(&f))
        return m;
    history_mirror_free(m);
    return NULL;
}
