#include "engine/engine.h"

#include "engine/admit.h"
#include "engine/own_expires.h"
#include "engine/state_impl.h"

static _Thread_local uint64_t table_seed = 0x9e3779b97f4a7c15u;

/* SplitMix64: expands one seed to the state of a generator. */
static uint64_t spread(uint64_t *x)
{
    uint64_t z = *x += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t engine_table_seed(void)
{
    return table_seed;
}

void engine_table_use_seed(uint64_t seed)
{
    table_seed = seed;
}

/* ---- life ---- */

static void make_dbs(struct engine *e)
{
    e->n_dbs = e->config.databases;
    e->dbs = engine_alloc(e->n_dbs * sizeof(struct engine_db *));
    for (unsigned i = 0; i < e->n_dbs; i++) {
        e->dbs[i] = engine_alloc(sizeof *e->dbs[i]);
        engine_db_init(e->dbs[i], i, e->seed);
    }
    if (e->config.cluster)
        engine_db_keep_slots(e->dbs[0], e->seed);
}

struct engine *engine_new(const struct engine_opts *opts)
{
    struct engine_mem before = engine_mem;
    struct engine *e = engine_calloc(1, sizeof *e);
    uint64_t seed = opts->seed;
    if (opts->config != NULL)
        e->config = *opts->config;
    else
        engine_config_init(&e->config);
    e->seed = spread(&seed);
    if (opts->table_seed != 0)
        e->seed = opts->table_seed;
    for (int i = 0; i < 4; i++)
        e->random[i] = spread(&seed);
    make_dbs(e);
    e->block = engine_block_state_new();
    e->depth = 1;
    engine_leave(e, (struct engine_scope){.before = before});
    return e;
}

void engine_delete(struct engine *e)
{
    if (e == NULL)
        return;
    for (unsigned i = 0; i < e->n_dbs; i++) {
        engine_db_done(e->dbs[i]);
        engine_free(e->dbs[i]);
    }
    engine_free(e->dbs);
    engine_block_state_free(e->block);
    engine_victims_done(&e->victims);
    engine_extra_free(e->extra);
    engine_own_expires_free(e->own_expires);
    engine_scripts_free(e->scripts);
    engine_free(e);
}

struct engine_scope engine_enter(struct engine *e)
{
    struct engine_scope scope = {.before = engine_mem};
    engine_mem.kind = ENGINE_MEM_OTHER;
    table_seed = e->seed;
    e->depth++;
    return scope;
}

void engine_leave(struct engine *e, struct engine_scope scope)
{
    engine_mem.kind = scope.before.kind;
    if (--e->depth > 0)
        return;
    for (int i = 0; i < ENGINE_MEM_KINDS; i++)
        e->mem.bytes[i] += engine_mem.bytes[i] - scope.before.bytes[i];
}

void engine_set_hooks(struct engine *e, const struct engine_hooks *hooks)
{
    e->hooks = *hooks;
}

void engine_listen(struct engine *e, struct engine_listener *listener)
{
    struct engine_listener **at = &e->listeners;
    while (*at != NULL)
        at = &(*at)->next;
    listener->next = NULL;
    *at = listener;
}

void engine_unlisten(struct engine *e, struct engine_listener *listener)
{
    struct engine_listener **at = &e->listeners;
    while (*at != NULL && *at != listener)
        at = &(*at)->next;
    if (*at != NULL)
        *at = listener->next;
}

void engine_report_flush(struct engine *e)
{
    for (const struct engine_listener *l = e->listeners; l != NULL; l = l->next)
        if (l->flushed != NULL)
            l->flushed(l->ctx);
}

struct engine_config *engine_config(struct engine *e)
{
    return &e->config;
}

struct engine_db *engine_db(struct engine *e, unsigned id)
{
    return id < e->n_dbs ? e->dbs[id] : NULL;
}

const struct engine_stats *engine_stats(const struct engine *e)
{
    return &e->stats;
}

void engine_stats_reset(struct engine *e)
{
    e->stats.hits = e->stats.misses = e->stats.expired = e->stats.evicted = 0;
}

uint64_t engine_memory(const struct engine *e, uint64_t ret_by_kind[])
{
    for (int i = 0; ret_by_kind != NULL && i < ENGINE_MEM_KINDS; i++)
        ret_by_kind[i] = e->mem.bytes[i] > 0 ? (uint64_t)e->mem.bytes[i] : 0;
    int64_t total = engine_mem_total(&e->mem);
    return total > 0 ? (uint64_t)total : 0;
}

void engine_resize_step(struct engine *e, unsigned n_buckets)
{
    struct engine_scope scope = engine_enter(e);
    engine_mem.kind = ENGINE_MEM_KEYS;
    for (unsigned i = 0; i < e->n_dbs; i++) {
        engine_table_step(&e->dbs[i]->keys, n_buckets);
        engine_table_step(&e->dbs[i]->expires, n_buckets);
        engine_table_step(&e->dbs[i]->parts, n_buckets);
    }
    engine_leave(e, scope);
}

void engine_hold_tables(struct engine *e, bool on)
{
    struct engine_scope scope = engine_enter(e);
    engine_mem.kind = ENGINE_MEM_KEYS;
    e->tables_held = on;
    for (unsigned i = 0; i < e->n_dbs; i++) {
        engine_table_hold(&e->dbs[i]->keys, on);
        engine_table_hold(&e->dbs[i]->expires, on);
        engine_table_hold(&e->dbs[i]->parts, on);
    }
    engine_leave(e, scope);
}

/* ---- one command ---- */

void engine_call_init(struct engine_call *call, struct engine *e, struct engine_session *s,
                      const struct engine_env *env, struct engine_reply *reply,
                      struct engine_effects *fx)
{
    int64_t due_us = env->due_us != 0 ? env->due_us : env->now_us;
    *call = (struct engine_call){
        .engine = e,
        .session = s,
        .db = e->dbs[s->db],
        .config = &e->config,
        .reply = reply,
        .now_us = env->now_us,
        .now_ms = env->now_us / 1000,
        .due_us = due_us,
        .due_ms = due_us / 1000,
        .may_block = !s->in_exec && s->role == ENGINE_CLIENT,
        .want_effects = !fx->off,
        .fx = fx,
    };
}

static enum engine_mem_kind kind_of_group(unsigned group)
{
    switch (group) {
    case ENGINE_GROUP_LIST:
        return ENGINE_MEM_LIST;
    case ENGINE_GROUP_SET:
        return ENGINE_MEM_SET;
    case ENGINE_GROUP_HASH:
        return ENGINE_MEM_HASH;
    case ENGINE_GROUP_ZSET:
    case ENGINE_GROUP_GEO:
        return ENGINE_MEM_ZSET;
    case ENGINE_GROUP_STREAM:
        return ENGINE_MEM_STREAM;
    case ENGINE_GROUP_STRING:
    case ENGINE_GROUP_BITMAP:
    case ENGINE_GROUP_HLL:
        return ENGINE_MEM_STRING;
    default:
        return ENGINE_MEM_OTHER;
    }
}

/* The command is its own effect if it changed something and did not set another one. */
static void add_own_effect(struct engine_call *call, unsigned db)
{
    if (!call->own_effect || call->dirty == 0 || !call->want_effects)
        return;
    if (RD_UNLIKELY(!engine_call_has_own_name(call)))
        engine_call_add_renamed(call, db, call->argc, call->argv);
    else if (call->copy_effect)
        engine_effects_add(call->fx, db, call->argc, call->argv);
    else
        engine_effects_borrow(call->fx, db, call->argc, call->argv);
}

enum engine_status engine_call_run(struct engine *e, const struct engine_request *request,
                                   const struct engine_env *env, const struct rd_slice *only_key)
{
    struct engine_call call;
    struct engine_scope scope = engine_enter(e);
    struct engine_session *s = request->session;
    const struct engine_command *command = request->command;
    engine_call_init(&call, e, s, env, request->reply, request->fx);
    call.keeps_due =
        (e->config.standstill || e->config.replica) && (command->flags & ENGINE_CMD_WRITE) == 0;
    call.request = request;
    call.command = command;
    call.argc = request->argc;
    call.argv = request->argv;
    call.only_key = only_key;
    call.own_effect = true;
    call.copy_effect = s->in_exec || only_key != NULL;
    unsigned db = s->db;
    engine_mem.kind = kind_of_group(command->group);
    command->run(&call);
    add_own_effect(&call, db);
    e->stats.dirty += call.dirty;
    engine_leave(e, scope);
    return call.status;
}

void engine_call_run_any(struct engine *e, const struct engine_request *request,
                         const struct engine_env *env)
{
    const struct engine_hooks *hooks = &e->hooks;
    if (request->command->run != NULL)
        engine_call_run(e, request, env, NULL);
    else if (hooks->foreign != NULL)
        hooks->foreign(hooks->ctx, request);
    else
        engine_reply_errorf(request->reply, "ERR the command '%s' is not available here",
                            request->command->name);
    for (const struct engine_listener *l = e->listeners; l != NULL; l = l->next)
        if (l->ran != NULL)
            l->ran(l->ctx, request);
}

/* ---- one command, checked ---- */

enum engine_status engine_apply_admitted(struct engine *e, const struct engine_request *request,
                                         const struct engine_env *env, bool queue)
{
    struct engine_effects *fx = request->fx;
    if (RD_UNLIKELY(queue)) {
        engine_session_queue(request->session, request->command, request->argc, request->argv);
        engine_reply_simple(request->reply, "QUEUED");
        return ENGINE_OK;
    }
    if (RD_UNLIKELY(request->command->run == NULL))
        return ENGINE_ELSEWHERE;
    e->stats.commands++;
    enum engine_status status = engine_call_run(e, request, env, NULL);
    fx->transaction = fx->n - fx->first > 1 && !fx->apart;
    return status;
}

struct evicting {
    struct engine *engine;
    const struct engine_env *env;
    struct engine_effects *fx;
};

static bool make_room(void *ctx)
{
    const struct evicting *evicting = ctx;
    bool within = engine_evict(evicting->engine, evicting->env, 0, evicting->fx);
    evicting->fx->first = evicting->fx->n;
    return within;
}

enum engine_status engine_apply_command(struct engine *e, const struct engine_request *request,
                                        const struct engine_env *env)
{
    static const struct engine_admit_hooks hooks = {.make_room = make_room};
    bool is_client = request->session->role == ENGINE_CLIENT;
    bool limited = e->config.maxmemory != 0 && is_client;
    struct evicting evicting = {e, env, request->fx};
    const struct engine_admit admit = {
        .who = is_client ? ENGINE_ADMIT_CLIENT : ENGINE_ADMIT_LOG,
        .state = limited ? ENGINE_ADMIT_MEMORY_LIMITED : 0,
        .later_versions = true,
        .hooks = &hooks,
        .ctx = &evicting,
    };
    struct engine_refusal refusal;
    engine_effects_reset(request->fx);
    enum engine_admit_answer answer = engine_admit(&admit, request, &refusal);
    if (RD_UNLIKELY(answer == ENGINE_ADMIT_REFUSE)) {
        engine_refuse(request, &refusal);
        return ENGINE_OK;
    }
    return engine_apply_admitted(e, request, env, answer == ENGINE_ADMIT_QUEUE);
}

enum engine_status engine_apply(struct engine *e, struct engine_session *s, size_t argc,
                                const struct rd_slice *argv, const struct engine_env *env,
                                struct engine_reply *reply, struct engine_effects *fx)
{
    const struct engine_request request = {.session = s,
                                           .command = engine_command_resolve(argv, argc),
                                           .argc = argc,
                                           .argv = argv,
                                           .reply = reply,
                                           .fx = fx};
    return engine_apply_command(e, &request, env);
}
