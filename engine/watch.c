#include "engine/watch.h"

#include "base/copy.h"
#include "engine/state_impl.h"

/* A watched key, and its watchers. */
struct watched {
    struct engine_watch *first;
    uint32_t key_len;
    uint8_t key[];
};

/* The watch of one session on one key; in the lists of both. */
struct engine_watch {
    struct engine_session *session;
    struct engine_db *db;
    struct watched *watched;
    struct engine_watch *next_of_key;
    struct engine_watch *next_of_session;
    bool was_due; /* when it was watched: a key already expired then may go without failing EXEC */
};

static struct rd_slice watched_name(const void *item)
{
    const struct watched *w = item;
    return rd_slice(w->key, w->key_len);
}

static const struct engine_table_type watched_type = {.name = watched_name};

static struct watched *watched_get(struct engine_db *db, struct rd_slice key, uint64_t seed)
{
    if (db->watched.type == NULL)
        engine_table_init(&db->watched, &watched_type, seed);
    struct watched *w = engine_table_find(&db->watched, key);
    if (w != NULL)
        return w;
    w = engine_scratch_alloc(sizeof *w + key.len);
    w->first = NULL;
    w->key_len = (uint32_t)key.len;
    rd_copy_short(w->key, key.ptr, key.len);
    engine_table_add(&db->watched, w);
    return w;
}

enum key_state {
    KEY_NONE,
    KEY_DUE, /* exists, but commands do not see it */
    KEY_THERE,
};

static enum key_state key_state(const struct engine_call *call, const struct engine_db *db,
                                struct rd_slice key)
{
    const struct engine_entry *entry = engine_db_find(db, key);
    if (entry == NULL)
        return KEY_NONE;
    return engine_call_due(call, entry) ? KEY_DUE : KEY_THERE;
}

void engine_watch_add(struct engine_call *call, struct rd_slice key)
{
    struct engine_session *s = call->session;
    struct watched *w = watched_get(call->db, key, call->engine->seed);
    for (const struct engine_watch *watch = w->first; watch != NULL; watch = watch->next_of_key)
        if (watch->session == s)
            return;
    struct engine_watch *watch = engine_scratch_alloc(sizeof *watch);
    *watch = (struct engine_watch){
        .session = s,
        .db = call->db,
        .watched = w,
        .next_of_key = w->first,
        .next_of_session = s->watches,
        .was_due = key_state(call, call->db, key) == KEY_DUE,
    };
    w->first = watch;
    s->watches = watch;
    s->n_watches++;
}

static void unlink_watch(struct engine_watch *watch)
{
    struct watched *w = watch->watched;
    struct engine_watch **at = &w->first;
    while (*at != watch)
        at = &(*at)->next_of_key;
    *at = watch->next_of_key;
    if (w->first != NULL)
        return;
    engine_table_remove(&watch->db->watched, watched_name(w));
    engine_scratch_free(w);
}

void engine_watch_drop(struct engine_session *s)
{
    while (s->watches != NULL) {
        struct engine_watch *watch = s->watches;
        s->watches = watch->next_of_session;
        unlink_watch(watch);
        engine_scratch_free(watch);
    }
    s->n_watches = 0;
    s->dirty_cas = false;
}

void engine_watch_touch(struct engine_db *db, struct rd_slice key)
{
    const struct watched *w = engine_table_find(&db->watched, key);
    if (w == NULL)
        return;
    for (struct engine_watch *watch = w->first; watch != NULL; watch = watch->next_of_key)
        watch->session->dirty_cas = true;
}

/* The key becomes what `after` says. An expired key counts as missing: its removal or reappearance
 * is not a change for watchers. */
static void become(struct engine_watch *watch, enum key_state before, enum key_state after)
{
    bool was_none = before == KEY_NONE || watch->was_due;
    if (was_none && after != KEY_THERE)
        watch->was_due = after == KEY_DUE;
    else
        watch->session->dirty_cas = true;
}

static void become_all(const struct watched *w, enum key_state before, enum key_state after)
{
    for (struct engine_watch *watch = w->first; watch != NULL; watch = watch->next_of_key)
        become(watch, before, after);
}

void engine_watch_expired(struct engine_db *db, struct rd_slice key)
{
    if (engine_table_count(&db->watched) == 0)
        return;
    const struct watched *w = engine_table_find(&db->watched, key);
    if (w != NULL)
        become_all(w, KEY_DUE, KEY_NONE);
}

void engine_watch_replaced(const struct engine_call *call, struct engine_db *db,
                           const struct engine_db *by)
{
    struct engine_table_iter iter;
    if (engine_table_count(&db->watched) == 0)
        return;
    engine_table_iter_begin(&iter, &db->watched);
    for (const struct watched *w; (w = engine_table_iter_next(&iter)) != NULL;) {
        enum key_state before = key_state(call, db, watched_name(w));
        enum key_state after = by != NULL ? key_state(call, by, watched_name(w)) : KEY_NONE;
        if (before != KEY_NONE || after != KEY_NONE)
            become_all(w, before, after);
    }
    engine_table_iter_end(&iter);
}

bool engine_watch_any_due(const struct engine_call *call)
{
    for (const struct engine_watch *w = call->session->watches; w != NULL; w = w->next_of_session)
        if (!w->was_due && key_state(call, w->db, watched_name(w->watched)) == KEY_DUE)
            return true;
    return false;
}
