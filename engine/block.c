#include "engine/block.h"

#include "base/copy.h"
#include "engine/state_impl.h"

/* A waiter is in the queue of each key that its session waits for. */
struct engine_link {
    struct engine_link *prev;
    struct engine_link *next;
    struct engine_queue *queue;
    struct engine_waiter *waiter;
};

/* The waiters of one key, in order of arrival; an item of db->waiting. */
struct engine_queue {
    struct engine_link *first;
    struct engine_link *last;
    struct engine_ready *ready; /* queue entry that was not handled yet */
    size_t name_len;
    uint8_t name[];
};

/* A text that replaces an argument of a waiter's command. */
struct engine_extra {
    struct engine_extra *next;
    uint8_t bytes[];
};

/* One block, with the arguments and their bytes after the links. */
struct engine_waiter {
    struct engine *engine;
    struct engine_session *session;
    const struct engine_command *command;
    size_t argc;
    struct rd_slice *argv;
    struct engine_extra *extras;
    int64_t deadline_us;
    uint64_t number; /* in order of arrival */
    enum engine_type type;
    bool as_group; /* XREADGROUP */
    size_t n_links;
    struct engine_link links[];
};

enum phase {
    PHASE_TYPE, /* sessions that wait for the type of the key */
    PHASE_GONE  /* stream readers whose key is not a stream */
};

/* A key to check. */
struct engine_ready {
    struct engine_ready *next;
    unsigned db;
    enum phase phase;
    uint64_t done; /* waiters of the phase up to this number were handled */
    size_t key_len;
    uint8_t key[];
};

struct engine_block_state {
    struct engine_ready *first;
    struct engine_ready *last;
    uint64_t n_waiters; /* total number so far */
    engine_proto_fn proto;
    void *proto_ctx;
};

static struct rd_slice queue_name(const void *item)
{
    const struct engine_queue *queue = item;
    return rd_slice(queue->name, queue->name_len);
}

static const struct engine_table_type queues = {.name = queue_name};

struct engine_block_state *engine_block_state_new(void)
{
    struct engine_block_state *state = engine_scratch_alloc(sizeof *state);
    *state = (struct engine_block_state){.first = NULL};
    return state;
}

void engine_block_state_free(struct engine_block_state *state)
{
    while (state->first != NULL) {
        struct engine_ready *ready = state->first;
        state->first = ready->next;
        engine_scratch_free(ready);
    }
    engine_scratch_free(state);
}

void engine_block_set_proto(struct engine *e, engine_proto_fn fn, void *ctx)
{
    e->block->proto = fn;
    e->block->proto_ctx = ctx;
}

/* ---- queues ---- */

static struct engine_queue *queue_of(struct engine_db *db, struct rd_slice key)
{
    struct engine_table_slot slot;
    if (db->waiting.type == NULL)
        engine_table_init(&db->waiting, &queues, engine_table_seed());
    struct engine_queue *queue = engine_table_find_or_slot(&db->waiting, key, &slot);
    if (queue != NULL)
        return queue;
    queue = engine_scratch_alloc(sizeof *queue + key.len);
    *queue = (struct engine_queue){.name_len = key.len};
    if (key.len > 0)
        memcpy(queue->name, key.ptr, key.len);
    engine_table_add_at(&db->waiting, &slot, queue);
    return queue;
}

static void join(struct engine_queue *queue, struct engine_waiter *w)
{
    if (queue->last != NULL && queue->last->waiter == w)
        return; /* the key was named twice */
    struct engine_link *link = &w->links[w->n_links++];
    *link = (struct engine_link){.prev = queue->last, .queue = queue, .waiter = w};
    if (queue->last != NULL)
        queue->last->next = link;
    else
        queue->first = link;
    queue->last = link;
}

static void leave(struct engine_db *db, struct engine_link *link)
{
    struct engine_queue *queue = link->queue;
    if (link->prev != NULL)
        link->prev->next = link->next;
    else
        queue->first = link->next;
    if (link->next != NULL)
        link->next->prev = link->prev;
    else
        queue->last = link->prev;
    if (queue->first != NULL)
        return;
    engine_table_remove(&db->waiting, queue_name(queue));
    engine_scratch_free(queue);
}

/* ---- waiters ---- */

static size_t bytes_of(const struct engine_call *call)
{
    size_t len = 0;
    for (size_t i = 0; i < call->argc; i++)
        len += call->argv[i].len;
    return len;
}

static void copy_argv(struct engine_waiter *w, const struct engine_call *call, void *where)
{
    w->argc = call->argc;
    w->argv = where;
    uint8_t *bytes = (uint8_t *)(w->argv + call->argc);
    for (size_t i = 0; i < call->argc; i++) {
        w->argv[i] = rd_slice(bytes, call->argv[i].len);
        rd_copy_short(bytes, call->argv[i].ptr, call->argv[i].len);
        bytes += call->argv[i].len;
    }
}

static struct engine_waiter *waiter_new(const struct engine_call *call, size_t n_keys)
{
    size_t links = n_keys * sizeof(struct engine_link);
    size_t slices = call->argc * sizeof(struct rd_slice);
    struct engine_waiter *w = engine_scratch_alloc(sizeof *w + links + slices + bytes_of(call));
    *w = (struct engine_waiter){.engine = call->engine,
                                .session = call->session,
                                .command = call->command,
                                .number = ++call->engine->block->n_waiters};
    w->as_group = strcmp(call->command->name, "xreadgroup") == 0;
    copy_argv(w, call, w->links + n_keys);
    return w;
}

void engine_block(struct engine_call *call, enum engine_type type, size_t n_keys,
                  const struct rd_slice *keys, int64_t deadline_us)
{
    call->status = ENGINE_BLOCKED;
    if (call->session->waiter != NULL)
        return; /* the command ran again and stays blocked */
    struct engine_waiter *w = waiter_new(call, n_keys);
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_OTHER);
    w->type = type;
    w->deadline_us = deadline_us;
    for (size_t i = 0; i < n_keys; i++)
        join(queue_of(call->db, keys[i]), w);
    call->session->waiter = w;
    engine_mem_leave(before);
}

void engine_block_argument(struct engine_call *call, size_t index, struct rd_slice text)
{
    struct engine_waiter *w = call->session->waiter;
    if (w == NULL || call->only_key != NULL || index >= w->argc)
        return;
    struct engine_extra *extra = engine_scratch_alloc(sizeof *extra + text.len);
    rd_copy_short(extra->bytes, text.ptr, text.len);
    extra->next = w->extras;
    w->extras = extra;
    w->argv[index] = rd_slice(extra->bytes, text.len);
}

/* The session no longer waits. */
static void release(struct engine_waiter *w)
{
    struct engine_scope scope = engine_enter(w->engine);
    struct engine_db *db = w->engine->dbs[w->session->db];
    for (size_t i = 0; i < w->n_links; i++)
        leave(db, &w->links[i]);
    if (engine_table_count(&db->waiting) == 0)
        engine_table_done(&db->waiting);
    w->session->waiter = NULL;
    engine_leave(w->engine, scope);
    while (w->extras != NULL) {
        struct engine_extra *extra = w->extras;
        w->extras = extra->next;
        engine_scratch_free(extra);
    }
    engine_scratch_free(w);
}

bool engine_block_key(const struct engine_session *s, struct rd_slice *ret)
{
    if (s->waiter == NULL || s->waiter->n_links == 0)
        return false;
    *ret = queue_name(s->waiter->links[0].queue);
    return true;
}

int64_t engine_block_deadline(const struct engine_session *s)
{
    return s->waiter->deadline_us;
}

void engine_block_cancel(struct engine_session *s, enum engine_unblock why,
                         struct engine_reply *reply)
{
    release(s->waiter);
    if (why == ENGINE_TIMEOUT)
        engine_reply_null_array(reply);
    else if (why == ENGINE_UNBLOCKED)
        engine_reply_error(reply, "UNBLOCKED client unblocked via CLIENT UNBLOCK");
}

/* ---- keys that became ready ---- */

bool engine_ready(const struct engine *e)
{
    return e->block->first != NULL;
}

static void queue_ready(struct engine_block_state *state, unsigned db, struct engine_queue *queue)
{
    if (queue->ready != NULL)
        return;
    struct engine_ready *ready = engine_scratch_alloc(sizeof *ready + queue->name_len);
    *ready = (struct engine_ready){.db = db, .key_len = queue->name_len};
    memcpy(ready->key, queue->name, queue->name_len);
    queue->ready = ready;
    if (state->last != NULL)
        state->last->next = ready;
    else
        state->first = ready;
    state->last = ready;
}

void engine_block_signal(struct engine *e, struct engine_db *db, struct rd_slice key)
{
    if (engine_table_count(&db->waiting) == 0)
        return;
    struct engine_queue *queue = engine_table_find(&db->waiting, key);
    if (queue != NULL)
        queue_ready(e->block, db->id, queue);
}

void engine_block_signal_db(struct engine *e, struct engine_db *db)
{
    if (engine_table_count(&db->waiting) == 0)
        return;
    struct engine_table_iter it;
    engine_table_iter_begin(&it, &db->waiting);
    for (void *queue; (queue = engine_table_iter_next(&it)) != NULL;)
        queue_ready(e->block, db->id, queue);
    engine_table_iter_end(&it);
}

static void drop_ready(struct engine_block_state *state)
{
    struct engine_ready *ready = state->first;
    state->first = ready->next;
    if (state->first == NULL)
        state->last = NULL;
    engine_scratch_free(ready);
}

/* ---- serving ---- */

struct serving {
    struct engine *engine;
    const struct engine_env *env;
    struct engine_reply *reply;
    struct engine_effects *fx;
};

static struct rd_slice ready_key(const struct engine_ready *ready)
{
    return rd_slice(ready->key, ready->key_len);
}

/* The type of the key, ENGINE_TYPES if it does not exist. An expired key is removed now. */
static enum engine_type type_now(const struct serving *sv, const struct engine_ready *ready,
                                 struct engine_session *s)
{
    struct engine_call call;
    struct engine_entry *entry = engine_db_find(sv->engine->dbs[ready->db], ready_key(ready));
    if (entry == NULL)
        return ENGINE_TYPES;
    engine_call_init(&call, sv->engine, s, sv->env, sv->reply, sv->fx);
    if (!engine_call_due(&call, entry))
        return entry->value.type;
    engine_call_expire_now(&call, entry);
    return ENGINE_TYPES;
}

/* False: it stays blocked. */
static bool serve_waiter(const struct serving *sv, struct engine_ready *ready,
                         struct engine_waiter *w)
{
    const struct engine_block_state *state = sv->engine->block;
    sv->reply->proto = state->proto != NULL ? state->proto(state->proto_ctx, w->session) : 2;
    ready->done = w->number;
    if (ready->phase == PHASE_TYPE) {
        struct rd_slice key = ready_key(ready);
        const struct engine_request request = {.session = w->session,
                                               .command = w->command,
                                               .argc = w->argc,
                                               .argv = w->argv,
                                               .reply = sv->reply,
                                               .fx = sv->fx};
        return engine_call_run(sv->engine, &request, sv->env, &key) != ENGINE_BLOCKED;
    }
    engine_reply_error(sv->reply, "UNBLOCKED the stream key no longer exists");
    return true;
}

static bool is_meant(const struct engine_waiter *w, enum phase phase, enum engine_type type)
{
    return phase == PHASE_TYPE ? w->type == type : w->as_group;
}

/* The next waiter of the queue in this phase that can be served. */
static struct engine_session *serve_phase(const struct serving *sv, struct engine_ready *ready,
                                          const struct engine_queue *queue, enum engine_type type)
{
    const struct engine_link *link = queue->first;
    while (link != NULL && link->waiter->number <= ready->done)
        link = link->next;
    for (; link != NULL; link = link->next) {
        struct engine_waiter *w = link->waiter;
        if (!is_meant(w, ready->phase, type) || !serve_waiter(sv, ready, w))
            continue;
        struct engine_session *s = w->session;
        release(w);
        return s;
    }
    return NULL;
}

/* The next session that waits for this key; NULL: no other session can be served. */
static struct engine_session *serve_key(const struct serving *sv, struct engine_ready *ready)
{
    const struct engine_table *waiting = &sv->engine->dbs[ready->db]->waiting;
    if (engine_table_count(waiting) == 0)
        return NULL;
    struct engine_queue *queue = engine_table_find(waiting, ready_key(ready));
    if (queue == NULL)
        return NULL;
    if (queue->ready == ready)
        queue->ready = NULL; /* from now on it can become ready again */
    struct engine_session *s = NULL;
    enum engine_type type = type_now(sv, ready, queue->first->waiter->session);
    if (ready->phase == PHASE_TYPE)
        s = serve_phase(sv, ready, queue, type);
    if (s != NULL || type == ENGINE_STREAM)
        return s;
    if (ready->phase == PHASE_TYPE) {
        ready->phase = PHASE_GONE;
        ready->done = 0;
    }
    return serve_phase(sv, ready, queue, type);
}

bool engine_serve(struct engine *e, const struct engine_env *env,
                  struct engine_session **ret_session, struct engine_reply *reply,
                  struct engine_effects *fx)
{
    struct serving sv = {.engine = e, .env = env, .reply = reply, .fx = fx};
    struct engine_session *s = NULL;
    engine_reply_reset(reply);
    engine_effects_reset(fx);
    if (e->block->first == NULL)
        return false;
    struct engine_scope scope = engine_enter(e);
    while (s == NULL && e->block->first != NULL) {
        s = serve_key(&sv, e->block->first);
        if (s == NULL)
            drop_ready(e->block);
    }
    engine_leave(e, scope);
    fx->transaction = fx->n - fx->first > 1;
    if (s != NULL)
        *ret_session = s;
    return s != NULL;
}
