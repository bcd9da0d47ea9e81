/* Runs a compiled script or function. */
#include "engine/script/run_impl.h"

#include "engine/mem.h"
#include "engine/script/debug.h"
#include "engine/script/functions.h"

#include <stdio.h>

/* The state of the generator for the seed 0, with which servers before 7.0 began each script. */
enum { SEED_OF_OLD_SERVERS = 0x330e };

struct engine_scripts *script_state(struct engine *e)
{
    if (e->scripts == NULL) {
        e->scripts = engine_calloc(1, sizeof *e->scripts);
        e->scripts->engine = e;
        e->scripts->random = (uint64_t)0x1234abcd << 16 | SEED_OF_OLD_SERVERS;
        e->scripts->stale = true;
    }
    return e->scripts;
}

const struct engine_running *engine_script_running(const struct engine *e)
{
    return e->scripts != NULL && e->scripts->run != NULL ? &e->scripts->run->about : NULL;
}

void script_announce(struct engine_call *call)
{
    const struct engine_hooks *hooks = &call->engine->hooks;
    if (hooks->script_command != NULL)
        hooks->script_command(hooks->ctx, call->request);
}

bool script_count_keys(struct engine_call *call, const char *not_number, size_t *ret_n)
{
    int64_t n;
    if (!engine_arg_i64(call, call->argv[2], &n, not_number))
        return false;
    if (n > (int64_t)(call->argc - 3)) {
        engine_reply_error(call->reply, "ERR Number of keys can't be greater than number of args");
        return false;
    }
    if (n < 0) {
        engine_reply_error(call->reply, "ERR Number of keys can't be negative");
        return false;
    }
    *ret_n = (size_t)n;
    return true;
}

/* ---- interruption ---- */

static void on_steps(lua_State *L, lua_Debug *at)
{
    struct script_run *run = script_vm_of(L)->run;
    const struct engine_hooks *hooks = &script_vm_of(L)->engine->hooks;
    (void)at;
    if (run == NULL || hooks->script_tick == NULL)
        return;
    if (lua_gethookcount(L) == 1)
        lua_sethook(L, on_steps, LUA_MASKCOUNT, SCRIPT_HOOK_STEPS);
    if (!run->about.killed)
        run->about.killed = hooks->script_tick(hooks->ctx, &run->about) || run->about.killed;
    script_stop_if_killed(L);
}

bool script_is_killed(lua_State *L)
{
    const struct script_run *run = script_vm_of(L)->run;
    return run != NULL && run->about.killed;
}

void script_stop_if_killed(lua_State *L)
{
    if (RD_LIKELY(!script_is_killed(L)))
        return;
    /* On every line from now on, so that pcall() cannot continue the script. */
    lua_sethook(L, on_steps, LUA_MASKLINE, 0);
    script_raise(L, "Script killed by user with SCRIPT KILL...");
}

/* ---- a run ---- */

static void push_list(lua_State *L, const struct rd_slice *list, size_t n)
{
    lua_createtable(L, n < INT32_MAX ? (int)n : 0, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushlstring(L, (const char *)list[i].ptr, list[i].len);
        lua_rawseti(L, -2, (int)i + 1);
    }
}

/* KEYS and ARGV: globals of a script, arguments of a function. Returns their number on the
 * stack. */
static int push_arguments(lua_State *L, const struct script_run *run)
{
    if (!run->about.is_eval) {
        push_list(L, run->keys, run->n_keys);
        push_list(L, run->args, run->n_args);
        return 2;
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, run->vm->globals);
    push_list(L, run->keys, run->n_keys);
    lua_setfield(L, -2, "KEYS");
    push_list(L, run->args, run->n_args);
    lua_setfield(L, -2, "ARGV");
    lua_pop(L, 1);
    return 0;
}

/* Pushes the text of a field, or NULL. */
static const char *field_text(lua_State *L, const char *name)
{
    script_error_field(L, name);
    const char *text = lua_isstring(L, -1) ? lua_tostring(L, -1) : NULL;
    lua_insert(L, -2); /* keeps the text on the stack */
    return text;
}

/* The error is on top of the stack. */
static void reply_failure(lua_State *L, const struct script_run *run)
{
    struct engine_reply *reply = run->call->reply;
    if (!lua_istable(L, -1)) {
        const char *text = lua_isstring(L, -1) ? lua_tostring(L, -1) : "execution failure";
        engine_reply_errorf(reply, "ERR Error running script %s, %.100s", run->about.name, text);
        return;
    }
    luaL_checkstack(L, 8, NULL);
    script_error_field(L, "ignore_error_stats_update");
    reply->counted |= lua_isboolean(L, -1) && lua_toboolean(L, -1);
    lua_pop(L, 1);
    const char *text = field_text(L, "err");
    const char *source = field_text(L, "source");
    const char *line = field_text(L, "line");
    if (source == NULL || line == NULL)
        lua_pushstring(L, text != NULL ? text : "");
    else
        lua_pushfstring(L, "%s script: %s, on %s:%s.", text != NULL ? text : "", run->about.name,
                        source, line);
    engine_reply_error_bytes(reply, rd_slice_str(lua_tostring(L, -1)));
}

int script_run_protected(lua_State *L)
{
    struct script_run *run = lua_touserdata(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, run->vm->handler);
    int handler = lua_gettop(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, run->ref);
    int n = push_arguments(L, run);
    int status = lua_pcall(L, n, 1, handler);
    /* The conversion of the reply can run for long, but must not be interrupted. */
    script_watch(run->vm, NULL);
    if (status != 0)
        reply_failure(L, run);
    else
        script_add_value(L, run->call->reply, run->proto);
    return 0;
}

/* Collects the garbage of short scripts before Lua would begin by itself, and all that a script
 * with much of it leaves: maxmemory counts it. */
static void collect(struct script_vm *vm)
{
    enum { EVERY = 50, STEP_KIB = 20, MUCH = 8 << 20 };
    script_restore_gc(vm);
    if (vm->bytes / 2 > vm->live + MUCH) {
        lua_gc(vm->lua, LUA_GCCOLLECT, 0);
        vm->live = vm->bytes;
        return;
    }
    if (++vm->n_runs < EVERY)
        return;
    vm->n_runs = 0;
    lua_gc(vm->lua, LUA_GCSTEP, STEP_KIB);
}

/* Memory was short where no script could handle it. */
static void reply_broken(struct script_run *run, size_t mark)
{
    lua_State *L = run->vm->lua;
    struct engine_reply *reply = run->call->reply;
    const char *text = lua_isstring(L, -1) ? lua_tostring(L, -1) : "execution failure";
    if (!reply->off)
        reply->buf.len = mark;
    engine_reply_errorf(reply, "ERR Error running script %s, %.100s", run->about.name, text);
    lua_settop(L, 0);
}

static void enter_session(struct engine_scripts *s, struct engine_call *call)
{
    s->session = (struct engine_session){
        .engine = s->engine,
        .db = call->session->db,
        .role = call->session->role,
        .ctx = call->session->ctx,
        .in_exec = true,
        .in_script = true,
    };
}

static void run_vm(struct script_run *run)
{
    struct script_vm *vm = run->vm;
    const struct engine_hooks *hooks = &run->call->engine->hooks;
    struct engine_scripts *s = script_state(run->call->engine);
    size_t mark = engine_reply_mark(run->call->reply);
    enter_session(s, run->call);
    if (run->verbatim)
        s->random = SEED_OF_OLD_SERVERS;
    s->run = vm->run = run;
    if (!script_debug_attach(run) && hooks->script_tick != NULL)
        script_watch(vm, on_steps);
    /* As lua_cpcall(), without a new function for each run. */
    lua_rawgeti(vm->lua, LUA_REGISTRYINDEX, vm->runner);
    lua_pushlightuserdata(vm->lua, run);
    if (lua_pcall(vm->lua, 1, 0, 0) != 0)
        reply_broken(run, mark);
    script_watch(vm, NULL);
    collect(vm);
    s->run = vm->run = NULL;
    if (hooks->script_ended != NULL)
        hooks->script_ended(hooks->ctx, &run->about);
}

/* Rules for scripts with a first line. */
static bool may_start(struct engine_call *call, const struct script_start *start,
                      bool *ret_out_of_memory)
{
    const struct engine_hooks *hooks = &call->engine->hooks;
    if ((start->flags & (ENGINE_SCRIPT_NO_FLAGS | ENGINE_SCRIPT_NO_WRITES)) == 0 &&
        start->read_only && call->session->role == ENGINE_CLIENT) {
        engine_reply_error(call->reply,
                           "ERR Can not execute a script with write flag using *_ro command.");
        return false;
    }
    const char *why = NULL;
    if (hooks->script_start != NULL)
        why = hooks->script_start(hooks->ctx, call->session, start->flags, ret_out_of_memory);
    if (why != NULL)
        engine_reply_error(call->reply, why);
    return why == NULL;
}

void script_run(struct engine_call *call, const struct script_start *start)
{
    size_t n_keys = start->n_keys;
    bool out_of_memory = false;
    if (!may_start(call, start, &out_of_memory))
        return;
    bool flagged = (start->flags & ENGINE_SCRIPT_NO_FLAGS) == 0;
    struct script_run run = {
        .about =
            {
                .name = start->name,
                .is_eval = start->vm->kind == SCRIPT_VM_EVAL,
                .caller = call->session,
                .argc = call->argc,
                .argv = call->argv,
            },
        .call = call,
        .rules =
            {
                .read_only =
                    start->read_only || (flagged && (start->flags & ENGINE_SCRIPT_NO_WRITES) != 0),
                .allow_oom = flagged && (start->flags & ENGINE_SCRIPT_ALLOW_OOM) != 0,
                .out_of_memory = out_of_memory,
                .cross_slots =
                    !flagged || (start->flags & ENGINE_SCRIPT_ALLOW_CROSS_SLOT_KEYS) != 0,
                .obeyed = call->session->role != ENGINE_CLIENT,
                .all_commands = call->config->scripts_run_all,
            },
        .vm = start->vm,
        .ref = start->ref,
        .verbatim = start->vm->kind == SCRIPT_VM_EVAL && call->session->role != ENGINE_CLIENT,
        .proto = 2,
        .repl = SCRIPT_REPL_ALL,
        .n_keys = n_keys,
        .keys = call->argv + 3,
        .n_args = call->argc - 3 - n_keys,
        .args = call->argv + 3 + n_keys,
    };
    engine_effect_none(call);
    run_vm(&run);
}

/* ---- the door ---- */

void engine_scripts_free(struct engine_scripts *s)
{
    if (s == NULL)
        return;
    script_forget_all(s);
    script_functions_drop(s);
    engine_reply_done(&s->reply);
    engine_scratch_free(s->argv);
    engine_scratch_free(s->digits);
    engine_free(s);
}

void engine_scripts_outdated(struct engine *e)
{
    if (e->scripts != NULL)
        e->scripts->stale = true;
}

void engine_script_stats(struct engine *e, struct engine_script_stats *ret)
{
    struct engine_scripts *s = script_state(e);
    *ret = (struct engine_script_stats){
        .n_scripts = engine_table_count(&s->cache),
        .scripts_bytes = s->scripts_bytes,
        .n_libraries = s->n_libraries,
        .n_functions = s->n_functions,
        .functions_bytes = script_functions_bytes(s),
        .eval_vm_bytes = script_vm_bytes(s->eval),
        .function_vm_bytes = script_vm_bytes(s->functions),
    };
}

void engine_script_keep(struct engine *e, struct rd_slice body)
{
    char *error;
    if (script_add(script_state(e), body, true, &error) == NULL)
        engine_scratch_free(error);
}

bool engine_script_check_libraries(struct engine *e, struct rd_err *err)
{
    char *error;
    if (script_functions_ready(script_state(e), &error))
        return true;
    rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "%s", error);
    engine_scratch_free(error);
    return false;
}

uint64_t engine_script_memory(const struct engine *e)
{
    const struct engine_scripts *s = e->scripts;
    return s == NULL ? 0
                     : (s->eval != NULL ? s->eval->bytes : 0) +
                           (s->functions != NULL ? s->functions->bytes : 0);
}

/* What the flags of a script make of those of its command. */
static uint64_t adjust(uint64_t flags, unsigned script_flags)
{
    if (script_flags & ENGINE_SCRIPT_NO_FLAGS)
        return flags;
    flags &= ~(uint64_t)(ENGINE_CMD_STALE | ENGINE_CMD_DENYOOM | ENGINE_CMD_WRITE |
                         ENGINE_CMD_MAY_REPLICATE);
    if ((script_flags & (ENGINE_SCRIPT_ALLOW_OOM | ENGINE_SCRIPT_NO_WRITES)) == 0)
        flags |= ENGINE_CMD_DENYOOM;
    if ((script_flags & ENGINE_SCRIPT_NO_WRITES) == 0)
        flags |= ENGINE_CMD_WRITE;
    if (script_flags & ENGINE_SCRIPT_ALLOW_STALE)
        flags |= ENGINE_CMD_STALE;
    return flags;
}

static unsigned flags_of_text(struct rd_slice body)
{
    unsigned flags;
    size_t len;
    char *error;
    if (script_read_flags(body, &flags, &len, &error))
        return flags;
    engine_scratch_free(error);
    return ENGINE_SCRIPT_NO_FLAGS;
}

uint64_t engine_script_command_flags(struct engine *e, const struct engine_command *command,
                                     size_t argc, const struct rd_slice *argv)
{
    if (command->group != ENGINE_GROUP_SCRIPTING || command->container != NULL || argc < 3)
        return command->flags;
    struct engine_scripts *s = script_state(e);
    if (command->name[0] == 'f') {
        const struct script_function *fn = NULL;
        char *error;
        if (script_functions_ready(s, &error))
            fn = script_function_find(s, argv[1]);
        else
            engine_scratch_free(error);
        return fn != NULL ? adjust(command->flags, fn->flags) : command->flags;
    }
    if (strncmp(command->name, "evalsha", 7) == 0) {
        const struct script *script = script_find(s, argv[1]);
        return script != NULL ? adjust(command->flags, script->flags) : command->flags;
    }
    return adjust(command->flags, flags_of_text(argv[1]));
}
