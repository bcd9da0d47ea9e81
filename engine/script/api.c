/* The table `redis` of scripts. */
#include "engine/script/debug.h"
#include "engine/script/run_impl.h"

#include "base/digest.h"
#include "base/num.h"
#include "base/num_g17.h"
#include "engine/mem.h"

#include <math.h>
#include <stdio.h>

enum { NUMBER_LEN = SCRIPT_NUMBER_LEN, ARGV_MIN = 32, COMMAND_WORK = 5000 };

static const char version[] = "7.0.15";
enum { VERSION_NUMBER = 0x0007000f };

/* ---- arguments of a command ---- */

struct arguments {
    struct rd_slice *list; /* of struct engine_scripts */
    size_t n;
};

/* As "%.17g". */
static size_t put_number(char *dst, lua_Number n)
{
    if (n > -1e15 && n < 1e15 && n == (lua_Number)(int64_t)n && (n != 0 || !signbit(n)))
        return rd_num_put_i64(dst, (int64_t)n);
    return rd_num_put_g17(dst, n);
}

static void make_room(struct engine_scripts *s, size_t n)
{
    if (n <= s->cap_argv)
        return;
    s->cap_argv = n > ARGV_MIN ? n : ARGV_MIN;
    s->argv = engine_scratch_realloc(s->argv, s->cap_argv * sizeof *s->argv);
    s->digits = engine_scratch_realloc(s->digits, s->cap_argv * sizeof *s->digits);
}

/* False: the error is on the stack. Strings stay on the stack, so that their bytes are valid. */
static bool read_arguments(lua_State *L, struct arguments *args)
{
    int n = lua_gettop(L);
    struct engine_scripts *s = script_state(script_vm_of(L)->engine);
    args->n = (size_t)n;
    if (n == 0) {
        static const char text[] = "Please specify at least one argument for this redis lib call";
        script_push_error(L, text, sizeof text - 1);
        return false;
    }
    make_room(s, args->n);
    args->list = s->argv;
    for (int i = 0; i < n; i++) {
        int type = lua_type(L, i + 1);
        if (type == LUA_TNUMBER) {
            size_t len = put_number(s->digits[i], lua_tonumber(L, i + 1));
            args->list[i] = rd_slice(s->digits[i], len);
        } else if (type == LUA_TSTRING) {
            size_t len;
            const char *ptr = lua_tolstring(L, i + 1, &len);
            args->list[i] = rd_slice(ptr, len);
        } else {
            static const char text[] =
                "Lua redis lib command arguments must be strings or integers";
            lua_settop(L, 0);
            script_push_error(L, text, sizeof text - 1);
            return false;
        }
    }
    return true;
}

/* ---- redis.call() and redis.pcall() ---- */

static const struct engine_command *resolve(struct engine *e, const struct arguments *args)
{
    const struct engine_hooks *hooks = &e->hooks;
    if (hooks->resolve != NULL)
        return hooks->resolve(hooks->ctx, args->list, args->n);
    return engine_command_resolve(args->list, args->n);
}

/* Whether the command may run; otherwise *ret is the reason. */
static bool admit(struct script_run *run, const struct engine_request *request,
                  struct engine_refusal *ret)
{
    const struct engine_hooks *hooks = &run->call->engine->hooks;
    struct engine_admit admit = {
        .who = ENGINE_ADMIT_SCRIPT, .script = &run->rules, .later_versions = true};
    if (hooks->script_admit != NULL)
        hooks->script_admit(hooks->ctx, request->session, &admit);
    return engine_admit(&admit, request, ret) == ENGINE_ADMIT_RUN;
}

/* redis.set_repl(): the effects of the last command go to some receivers only. */
static void limit_effects(struct script_run *run, size_t from)
{
    struct engine_effects *fx = run->call->fx;
    size_t kept = from;
    for (size_t i = from; i < fx->n; i++) {
        fx->list[i].not_for_log = (run->repl & SCRIPT_REPL_AOF) == 0;
        fx->list[i].not_for_replicas = (run->repl & SCRIPT_REPL_REPLICA) == 0;
        fx->list[kept] = fx->list[i];
        kept += run->repl != 0;
    }
    fx->n = kept;
}

static void run_command(struct script_run *run, const struct engine_request *request)
{
    struct engine *e = run->call->engine;
    struct engine_env env = engine_call_env(run->call);
    size_t effects_before = request->fx->n;
    engine_reply_reset(request->reply);
    request->reply->proto = run->proto;
    run->rules.wrote |= (request->command->flags & ENGINE_CMD_WRITE) != 0;
    run->about.wrote = run->rules.wrote;
    e->stats.commands++;
    engine_call_run_any(e, request, &env);
    if (run->repl != SCRIPT_REPL_ALL)
        limit_effects(run, effects_before);
}

static void push_refusal(lua_State *L, struct script_run *run, const struct engine_command *command,
                         const char *why)
{
    const struct engine_hooks *hooks = &run->call->engine->hooks;
    if (hooks->script_refused != NULL)
        hooks->script_refused(hooks->ctx, command, why);
    lua_settop(L, 0);
    if (strncmp(why, "ERR ", 4) == 0)
        why += 4;
    else
        why = lua_pushfstring(L, "-%s", why);
    script_push_error(L, why, strlen(why));
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "ignore_error_stats_update");
}

static struct script_run *running(lua_State *L, const char *name)
{
    struct script_run *run = script_vm_of(L)->run;
    if (run != NULL)
        return run;
    char text[96];
    snprintf(text, sizeof text, "%s can only be called inside a script invocation", name);
    script_raise(L, text);
    return NULL;
}

/* Pushes one value; true: it is an error. */
static bool call_command(lua_State *L, struct script_run *run)
{
    struct arguments args;
    struct engine_scripts *s = script_state(run->call->engine);
    script_work(L, COMMAND_WORK);
    if (!read_arguments(L, &args))
        return true;
    script_debug_command(run, args.n, args.list);
    const struct engine_command *command = resolve(run->call->engine, &args);
    const struct engine_request request = {.session = &s->session,
                                           .command = command,
                                           .argc = args.n,
                                           .argv = args.list,
                                           .reply = &s->reply,
                                           .fx = run->call->fx};
    struct engine_refusal refusal;
    const char *why = NULL;
    if (!admit(run, &request, &refusal))
        why = refusal.text;
    else
        why = script_verbatim_refuses(run, command);
    if (why != NULL) {
        push_refusal(L, run, command, why);
        return true;
    }
    run_command(run, &request);
    lua_settop(L, 0);
    const struct rd_buf *reply = &s->reply.buf;
    script_push_reply(L, reply->ptr, reply->len);
    script_verbatim_ran(L, run, command);
    script_debug_reply(run, rd_slice(reply->ptr, reply->len));
    return reply->len > 0 && reply->ptr[0] == '-';
}

static int redis_call(lua_State *L)
{
    return call_command(L, running(L, "redis.call/pcall")) ? lua_error(L) : 1;
}

static int redis_pcall(lua_State *L)
{
    call_command(L, running(L, "redis.call/pcall"));
    return 1;
}

static int redis_acl_check_cmd(lua_State *L)
{
    struct arguments args;
    struct script_run *run = running(L, "redis.acl_check_cmd");
    const struct engine_hooks *hooks = &run->call->engine->hooks;
    if (!read_arguments(L, &args))
        return lua_error(L);
    const struct engine_command *command = resolve(run->call->engine, &args);
    if (command == NULL)
        return script_raise(L, "Invalid command passed to redis.acl_check_cmd()");
    const struct engine_request request = {
        .session = run->about.caller, .command = command, .argc = args.n, .argv = args.list};
    bool ok = hooks->script_permits == NULL || hooks->script_permits(hooks->ctx, &request);
    lua_pushboolean(L, ok);
    return 1;
}

/* ---- replies ---- */

static bool is_one_string(lua_State *L)
{
    static const char text[] = "wrong number or type of arguments";
    if (lua_gettop(L) == 1 && lua_type(L, 1) == LUA_TSTRING)
        return true;
    script_push_error(L, text, sizeof text - 1);
    return false;
}

static int redis_error_reply(lua_State *L)
{
    if (!is_one_string(L))
        return 1;
    if (lua_tostring(L, 1)[0] != '-') {
        lua_pushliteral(L, "-");
        lua_insert(L, 1);
        lua_concat(L, 2);
    }
    const char *text = lua_tostring(L, 1);
    script_push_error(L, text, strlen(text));
    return 1;
}

static int redis_status_reply(lua_State *L)
{
    if (!is_one_string(L))
        return 1;
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "ok");
    return 1;
}

static int redis_sha1hex(lua_State *L)
{
    uint8_t sum[RD_DIGEST_MAX];
    char hex[RD_DIGEST_HEX];
    size_t len = 0;
    if (lua_gettop(L) != 1)
        return script_raise(L, "wrong number of arguments");
    const char *ptr = lua_tolstring(L, 1, &len);
    script_work(L, len / 64);
    if (!rd_digest_of(RD_DIGEST_SHA1, rd_slice(ptr != NULL ? ptr : "", len), sum, NULL))
        return script_raise(L, "SHA-1 is not available");
    lua_pushstring(L, rd_digest_hex(hex, rd_slice(sum, rd_digest_size(RD_DIGEST_SHA1))));
    return 1;
}

/* ---- settings of a run ---- */

static int redis_setresp(lua_State *L)
{
    struct script_run *run = running(L, "redis.setresp");
    if (lua_gettop(L) != 1)
        return script_raise(L, "redis.setresp() requires one argument.");
    lua_Number proto = lua_tonumber(L, 1);
    if (!(proto >= 2 && proto < 4))
        return script_raise(L, "RESP version must be 2 or 3.");
    run->proto = (unsigned)proto;
    return 0;
}

static int redis_set_repl(lua_State *L)
{
    struct script_run *run = running(L, "redis.set_repl");
    if (lua_gettop(L) != 1)
        return script_raise(L, "redis.set_repl() requires two arguments.");
    lua_Number flags = lua_tonumber(L, 1);
    if (!(flags > -1 && flags < SCRIPT_REPL_ALL + 1))
        return script_raise(L, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or "
                               "REPL_NONE.");
    run->repl = (unsigned)flags;
    return 0;
}

static int redis_replicate_commands(lua_State *L)
{
    const struct script_run *run = script_vm_of(L)->run;
    lua_pushboolean(L, run == NULL || !run->verbatim || !run->rules.wrote);
    return 1;
}

/* ---- redis.log() ---- */

static int redis_log(lua_State *L)
{
    enum { DEBUG, WARNING = 3 };
    const struct engine_hooks *hooks = &script_vm_of(L)->engine->hooks;
    int argc = lua_gettop(L);
    if (argc < 2)
        return script_raise(L, "redis.log() requires two arguments or more.");
    if (!lua_isnumber(L, 1))
        return script_raise(L, "First argument must be a number (log level).");
    lua_Number level = lua_tonumber(L, 1);
    if (!(level > DEBUG - 1 && level < WARNING + 1))
        return script_raise(L, "Invalid debug level.");
    if (hooks->script_log == NULL)
        return 0;
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    for (int i = 2; i <= argc; i++) {
        if (!lua_isstring(L, i))
            continue;
        if (i > 2)
            luaL_addchar(&text, ' ');
        lua_pushvalue(L, i);
        luaL_addvalue(&text);
    }
    luaL_pushresult(&text);
    size_t len;
    const char *ptr = lua_tolstring(L, -1, &len);
    hooks->script_log(hooks->ctx, (int)level, rd_slice(ptr, len));
    return 0;
}

/* ---- the table ---- */

static void add_numbers(lua_State *L)
{
    static const struct {
        const char *name;
        int value;
    } all[] = {
        {"REPL_NONE", 0},
        {"REPL_AOF", SCRIPT_REPL_AOF},
        {"REPL_SLAVE", SCRIPT_REPL_REPLICA},
        {"REPL_REPLICA", SCRIPT_REPL_REPLICA},
        {"REPL_ALL", SCRIPT_REPL_ALL},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        lua_pushnumber(L, all[i].value);
        lua_setfield(L, -2, all[i].name);
    }
}

void script_add_log_api(lua_State *L)
{
    static const char *const levels[] = {"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"};
    for (int i = 0; i < 4; i++) {
        lua_pushnumber(L, i);
        lua_setfield(L, -2, levels[i]);
    }
    lua_pushcfunction(L, redis_log);
    lua_setfield(L, -2, "log");
    lua_pushnumber(L, VERSION_NUMBER);
    lua_setfield(L, -2, "REDIS_VERSION_NUM");
    lua_pushstring(L, version);
    lua_setfield(L, -2, "REDIS_VERSION");
}

void script_open_redis(lua_State *L, enum script_vm_kind kind)
{
    static const luaL_Reg all[] = {
        {"call", redis_call},
        {"pcall", redis_pcall},
        {"setresp", redis_setresp},
        {"sha1hex", redis_sha1hex},
        {"error_reply", redis_error_reply},
        {"status_reply", redis_status_reply},
        {"set_repl", redis_set_repl},
        {"acl_check_cmd", redis_acl_check_cmd},
        {NULL, NULL},
    };
    static const luaL_Reg of_eval[] = {
        {"breakpoint", script_debug_breakpoint},
        {"debug", script_debug_print},
        {"replicate_commands", redis_replicate_commands},
        {NULL, NULL},
    };
    lua_newtable(L);
    luaL_register(L, NULL, all);
    if (kind == SCRIPT_VM_EVAL)
        luaL_register(L, NULL, of_eval);
    add_numbers(L);
    script_add_log_api(L);
}
