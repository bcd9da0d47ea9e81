#include "engine/engine.h"

#include "engine/state.h"

#include <stdio.h>

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

/* ---- one command ---- */

void engine_call_init(struct engine_call *call, struct engine *e, struct engine_session *s,
                      const struct engine_env *env, struct engine_reply *reply,
                      struct engine_effects *fx)
{
    *call = (struct engine_call){
        .engine = e,
        .session = s,
        .db = e->dbs[s->db],
        .config = &e->config,
        .reply = reply,
        .now_us = env->now_us,
        .now_ms = env->now_us / 1000,
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

enum engine_status engine_call_run(struct engine *e, struct engine_session *s,
                                   const struct engine_command *command, size_t argc,
                                   const struct rd_slice *argv, const struct engine_env *env,
                                   const struct rd_slice *only_key, struct engine_reply *reply,
                                   struct engine_effects *fx)
{
    struct engine_call call;
    struct engine_scope scope = engine_enter(e);
    engine_call_init(&call, e, s, env, reply, fx);
    call.keeps_due = e->config.standstill && (command->flags & ENGINE_CMD_WRITE) == 0;
    call.command = command;
    call.argc = argc;
    call.argv = argv;
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

/* ---- checks before a command ---- */

/* A refused command makes its transaction fail. EXEC itself ends it. */
static bool refuse(struct engine_session *s, const struct engine_command *command,
                   struct engine_reply *reply, const char *text)
{
    if (s->in_multi)
        s->dirty_exec = true;
    if (command == NULL || strcmp(command->name, "exec") != 0) {
        engine_reply_error(reply, text);
        return false;
    }
    engine_session_discard(s);
    engine_reply_errorf(reply, "EXECABORT Transaction discarded because of: %s",
                        strncmp(text, "ERR ", 4) == 0 ? text + 4 : text);
    return false;
}

/* The arguments of an unknown command, as many as fit in an error line. */
static void quote_args(char *dst, size_t size, size_t argc, const struct rd_slice *argv)
{
    enum { ARGS_MAX = 128 };
    size_t len = 0;
    dst[0] = '\0';
    for (size_t i = 1; i < argc && len < ARGS_MAX && len < size; i++) {
        size_t room = ARGS_MAX - len;
        int shown = (int)(argv[i].len < room ? argv[i].len : room);
        len += (size_t)snprintf(dst + len, size - len, "'%.*s' ", shown, (const char *)argv[i].ptr);
    }
}

/* For a subcommand of a known container. */
static void describe_unknown(char *dst, size_t size, size_t argc, const struct rd_slice *argv)
{
    enum { NAME_MAX = 128 };
    const struct engine_command *container = engine_command_find(argv[0]);
    struct rd_slice name = argv[container != NULL];
    int name_len = (int)(name.len < NAME_MAX ? name.len : NAME_MAX);
    if (container == NULL) {
        char args[512];
        quote_args(args, sizeof args, argc, argv);
        snprintf(dst, size, "ERR unknown command '%.*s', with args beginning with: %s", name_len,
                 (const char *)name.ptr, args);
        return;
    }
    char upper[32] = "";
    for (size_t i = 0; i < container->name_len && i < sizeof upper - 1; i++)
        upper[i] = (char)(container->name[i] & ~0x20);
    snprintf(dst, size, "ERR unknown subcommand '%.*s'. Try %s HELP.", name_len,
             (const char *)name.ptr, upper);
}

/* EXEC, DISCARD and commands that cannot be queued run immediately in MULTI. */
static bool runs_in_multi(const struct engine_command *command)
{
    static const char *const names[] = {"exec", "discard", "multi", "watch", "quit", "reset"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(command->name, names[i]) == 0)
            return true;
    return false;
}

/* EXEC is checked for the commands that it would run. */
static bool takes_memory(const struct engine_session *s, const struct engine_command *command)
{
    if ((command->flags & ENGINE_CMD_DENYOOM) != 0)
        return true;
    if (strcmp(command->name, "exec") != 0)
        return false;
    for (size_t i = 0; i < s->n_queued; i++)
        if ((s->queue[i].command->flags & ENGINE_CMD_DENYOOM) != 0)
            return true;
    return false;
}

/* The memory limit: evicts keys; false if that is not possible and the command would use more
 * memory. */
static bool has_room(struct engine *e, const struct engine_session *s,
                     const struct engine_command *command, const struct engine_env *env,
                     struct engine_effects *fx)
{
    if (e->config.maxmemory == 0 || s->role != ENGINE_CLIENT)
        return true;
    bool within = engine_evict(e, env, 0, fx);
    fx->first = fx->n;
    return within || !takes_memory(s, command);
}

/* ---- arguments that no value can hold ---- */

static bool is_longer(size_t argc, const struct rd_slice *argv, uint64_t max)
{
    for (size_t i = 1; i < argc; i++)
        if (argv[i].len > max)
            return true;
    return false;
}

static bool has_long_key(const struct engine_command *command, size_t argc,
                         const struct rd_slice *argv, uint64_t max)
{
    size_t n = 0;
    struct engine_key *keys = engine_scratch_alloc(argc * sizeof *keys);
    bool found = false;
    if (engine_command_keys(command, argv, argc, keys, argc, &n) == ENGINE_KEYS_OK)
        for (size_t i = 0; i < n && i < argc; i++)
            found |= argv[keys[i].index].len > max;
    engine_scratch_free(keys);
    return found;
}

/* No check is needed if the protocol limit excludes longer arguments. */
static bool too_long(const struct engine *e, const struct engine_session *s,
                     const struct engine_command *command, size_t argc, const struct rd_slice *argv)
{
    const struct engine_config *config = &e->config;
    bool held_back = s->role == ENGINE_CLIENT && config->proto_max_bulk_len <= config->name_max;
    if (RD_LIKELY(held_back) || !is_longer(argc, argv, config->name_max))
        return false;
    if (is_longer(argc, argv, config->value_max) || command->group == ENGINE_GROUP_STREAM)
        return true;
    if (command->group == ENGINE_GROUP_HASH && is_longer(argc, argv, config->field_max))
        return true;
    return has_long_key(command, argc, argv, config->name_max);
}

static bool acceptable(struct engine *e, struct engine_session *s,
                       const struct engine_command *command, size_t argc,
                       const struct rd_slice *argv, const struct engine_env *env,
                       struct engine_reply *reply, struct engine_effects *fx)
{
    char text[1024];
    if (RD_UNLIKELY(command == NULL)) {
        describe_unknown(text, sizeof text, argc, argv);
        return refuse(s, command, reply, text);
    }
    if (RD_UNLIKELY(!engine_command_arity_ok(command, argc))) {
        snprintf(text, sizeof text, "ERR wrong number of arguments for '%s' command",
                 command->name);
        return refuse(s, command, reply, text);
    }
    if (RD_UNLIKELY(s->in_multi && (command->flags & ENGINE_CMD_NO_MULTI) != 0))
        return refuse(s, command, reply, "ERR Command not allowed inside a transaction");
    if (RD_UNLIKELY(too_long(e, s, command, argc, argv)))
        return refuse(s, command, reply,
                      "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    if (RD_UNLIKELY(!has_room(e, s, command, env, fx)))
        return refuse(s, command, reply, "OOM command not allowed when used memory > 'maxmemory'.");
    return true;
}

enum engine_status engine_apply_command(struct engine *e, struct engine_session *s,
                                        const struct engine_command *command, size_t argc,
                                        const struct rd_slice *argv, const struct engine_env *env,
                                        struct engine_reply *reply, struct engine_effects *fx)
{
    engine_effects_reset(fx);
    if (!acceptable(e, s, command, argc, argv, env, reply, fx))
        return ENGINE_OK;
    if (s->in_multi && !runs_in_multi(command)) {
        engine_session_queue(s, command, argc, argv);
        engine_reply_simple(reply, "QUEUED");
        return ENGINE_OK;
    }
    if (RD_UNLIKELY(command->run == NULL))
        return ENGINE_ELSEWHERE;
    e->stats.commands++;
    enum engine_status status = engine_call_run(e, s, command, argc, argv, env, NULL, reply, fx);
    fx->transaction = fx->n - fx->first > 1 && !fx->apart;
    return status;
}

enum engine_status engine_apply(struct engine *e, struct engine_session *s, size_t argc,
                                const struct rd_slice *argv, const struct engine_env *env,
                                struct engine_reply *reply, struct engine_effects *fx)
{
    return engine_apply_command(e, s, engine_command_resolve(argv, argc), argc, argv, env, reply,
                                fx);
}
