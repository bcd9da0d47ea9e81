#include "base/mem.h"
#include "base/xxh3.h"
#include "history/mirror_impl.h"

/* ---- the mirrors ---- */

static size_t slot_of(const struct history_mirrors *mirrors, unsigned db, struct rd_slice name)
{
    size_t mask = mirrors->n_slots - 1;
    size_t slot = (size_t)(rd_xxh3_64(name) + db * UINT64_C(0x9e3779b97f4a7c15)) & mask;
    while (mirrors->slots[slot] != NULL &&
           (mirrors->slots[slot]->db != db || !rd_slice_eq(mirrors->slots[slot]->name, name)))
        slot = (slot + 1) & mask;
    return slot;
}

struct history_mirror *history_mirrors_find(const struct history_mirrors *mirrors, unsigned db,
                                            struct rd_slice name)
{
    return mirrors->n == 0 ? NULL : mirrors->slots[slot_of(mirrors, db, name)];
}

static bool fill_slots(struct history_mirrors *mirrors, size_t n_slots)
{
    struct history_mirror **slots = rd_calloc(n_slots, sizeof *slots);
    if (slots == NULL)
        return false;
    rd_free(mirrors->slots);
    mirrors->slots = slots;
    mirrors->n_slots = n_slots;
    for (size_t i = 0; i < mirrors->n; i++)
        slots[slot_of(mirrors, mirrors->list[i]->db, mirrors->list[i]->name)] = mirrors->list[i];
    return true;
}

static struct history_mirror *get(struct history_mirrors *mirrors, unsigned db,
                                  struct rd_slice name, struct rd_err *err)
{
    struct history_mirror *m = history_mirrors_find(mirrors, db, name);
    if (m != NULL)
        return m;
    if (mirrors->n == mirrors->cap) {
        size_t cap = mirrors->cap == 0 ? 8 : mirrors->cap * 2;
        struct history_mirror **list = rd_realloc(mirrors->list, cap * sizeof *list);
        if (list == NULL) {
            rd_err_nomem(err, cap * sizeof *list);
            return NULL;
        }
        mirrors->list = list;
        mirrors->cap = cap;
    }
    if ((mirrors->n + 1) * 2 > mirrors->n_slots &&
        !fill_slots(mirrors, mirrors->n_slots == 0 ? 16 : mirrors->n_slots * 2)) {
        rd_err_nomem(err, mirrors->n_slots * sizeof *mirrors->slots);
        return NULL;
    }
    m = rd_calloc(1, sizeof *m + name.len);
    if (m == NULL) {
        rd_err_nomem(err, sizeof *m);
        return NULL;
    }
    uint8_t *copy = (uint8_t *)(m + 1);
    if (name.len > 0)
        memcpy(copy, name.ptr, name.len);
    m->db = db;
    m->name = rd_slice(copy, name.len);
    m->expire_ms = ENGINE_NO_EXPIRE;
    mirrors->slots[slot_of(mirrors, db, name)] = m;
    mirrors->list[mirrors->n++] = m;
    return m;
}

static void empty(struct history_mirror *m)
{
    history_map_done(&m->map);
    history_map_done(&m->beside);
    history_seq_done(&m->seq);
    rd_buf_done(&m->bytes);
    rd_free(m->runs);
    m->runs = NULL;
    m->n_runs = m->cap_runs = 0;
    m->state = HISTORY_ABSENT;
    m->expire_ms = ENGINE_NO_EXPIRE;
}

void history_mirrors_reset(struct history_mirrors *mirrors)
{
    for (size_t i = 0; i < mirrors->n; i++) {
        empty(mirrors->list[i]);
        rd_free(mirrors->list[i]);
    }
    mirrors->n = mirrors->n_writers = 0;
    rd_free(mirrors->slots);
    mirrors->slots = NULL;
    mirrors->n_slots = 0;
}

void history_mirrors_done(struct history_mirrors *mirrors)
{
    history_mirrors_reset(mirrors);
    rd_free(mirrors->list);
    rd_free(mirrors->writers);
    mirrors->list = NULL;
    mirrors->writers = NULL;
    mirrors->cap = mirrors->cap_writers = 0;
}

/* ---- one mirror alone ---- */

static struct history_mirror *make(unsigned db, struct rd_slice name, struct rd_err *err)
{
    struct history_mirrors one = {0};
    struct history_mirror *m = get(&one, db, name, err);
    rd_free(one.list);
    rd_free(one.slots);
    return m;
}

void history_mirror_free(struct history_mirror *m)
{
    if (m == NULL)
        return;
    empty(m);
    rd_free(m);
}

static bool copy_map(const struct history_map *from, struct history_map *to, struct rd_err *err)
{
    size_t at = 0;
    for (struct history_element *e; (e = history_map_next(from, &at)) != NULL;)
        if (!history_map_put(to, history_element_name(e), history_element_content(e), 0, err))
            return false;
    return true;
}

static bool copy_seq(const struct history_seq *from, struct history_seq *to, struct rd_err *err)
{
    for (size_t i = 0; i < from->n; i++) {
        const struct history_element *e = history_seq_at(from, i);
        if (!history_seq_insert(to, i, history_element_name(e), history_element_content(e), 0, err))
            return false;
    }
    return true;
}

struct history_mirror *history_mirror_copy(const struct history_mirror *m, struct rd_err *err)
{
    struct history_mirror *copy = make(m->db, m->name, err);
    if (copy == NULL)
        return NULL;
    copy->state = m->state;
    copy->type = m->type;
    copy->expire_ms = m->expire_ms;
    if (copy_map(&m->map, &copy->map, err) && copy_map(&m->beside, &copy->beside, err) &&
        copy_seq(&m->seq, &copy->seq, err) &&
        (rd_buf_add(&copy->bytes, m->bytes.ptr, m->bytes.len) || rd_err_nomem(err, m->bytes.len)))
        return copy;
    history_mirror_free(copy);
    return NULL;
}

static bool add_writer(struct history_mirrors *mirrors, const struct history_visit *visit,
                       uint32_t *ret, struct rd_err *err)
{
    if (mirrors->n_writers == mirrors->cap_writers) {
        size_t cap = mirrors->cap_writers == 0 ? 64 : mirrors->cap_writers * 2;
        struct history_writer *writers = rd_realloc(mirrors->writers, cap * sizeof *writers);
        if (writers == NULL)
            return rd_err_nomem(err, cap * sizeof *writers);
        mirrors->writers = writers;
        mirrors->cap_writers = cap;
    }
    *ret = (uint32_t)mirrors->n_writers++;
    mirrors->writers[*ret] = (struct history_writer){
        visit->place, visit->time_us, visit->line == NULL ? NULL : visit->line->command,
        visit->moment == HISTORY_LOADED};
    return true;
}

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
static bool clear_value(const struct follow *f)
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
    bool ok = m->state != HISTORY_PRESENT || clear_value(f);
    bool had = m->state != HISTORY_ABSENT;
    empty(m);
    m->writer = f->writer;
    return ok && (!is_gone || !had ||
                  history_follow_edit(f, &(struct history_edit){.kind = HISTORY_KEY_REMOVED}));
}

static bool become_unknown(const struct follow *f)
{
    if (f->m->state == HISTORY_UNKNOWN && f->line == NULL)
        return true;
    empty(f->m);
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
static bool follow(struct follow *f)
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
    struct history_mirror *m = make(db, name, err);
    struct follow f = {.mirrors = &mirrors, .m = m, .data = data, .err = err};
    if (m == NULL || follow(&f))
        return m;
    history_mirror_free(m);
    return NULL;
}

/* ---- one command ---- */

static bool follow_key(struct history_mirrors *mirrors, const struct history_visit *visit,
                       unsigned db, struct rd_slice name, const struct rebuild_line *line,
                       const struct engine_key *key, uint32_t writer, struct rd_err *err)
{
    bool is_there = history_state_of(visit->data, db, name) != HISTORY_ABSENT;
    struct history_mirror *m =
        is_there ? get(mirrors, db, name, err) : history_mirrors_find(mirrors, db, name);
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
    return follow(&f);
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
    if (to->state == HISTORY_PRESENT && !clear_value(&other))
        return false;
    empty(to);
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
        empty(from);
        from->writer = writer;
        return history_follow_edit(
            &f, &(struct history_edit){.kind = HISTORY_KEY_MOVED, .name = name, .index = db});
    }
    if (history_state_of(visit->data, db, name) != HISTORY_PRESENT)
        return true;
    f.m = get(mirrors, db, name, err);
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
    return mirrors->n == 0 || fill_slots(mirrors, mirrors->n_slots) || rd_err_nomem(err, 0);
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
    if (!add_writer(mirrors, visit, &writer, err))
        return false;
    if (visit->line != NULL && visit->line->command != NULL &&
        rebuild_line_is(visit->line, "swapdb") && !swap_dbs(mirrors, visit, writer, err))
        return false;
    return visit->for_any ? follow_all(mirrors, visit, writer, err)
                          : follow_named(mirrors, visit, writer, err);
}
