#include "engine/script/vm_impl.h"

#include "base/mem.h"

#include <string.h>

/* ---- interruption ---- */

void script_watch(struct script_vm *vm, lua_Hook tick)
{
    vm->tick = tick;
    vm->running = vm->lua;
    vm->work = vm->allocated = 0;
    lua_sethook(vm->lua, tick, tick != NULL ? LUA_MASKCOUNT : 0, SCRIPT_HOOK_STEPS);
}

void script_tick(lua_State *L)
{
    struct script_vm *vm = script_vm_of(L);
    lua_Debug at = {.event = LUA_HOOKCOUNT};
    vm->work = 0;
    if (vm->tick != NULL)
        vm->tick(L, &at);
}

/* The next step of the interpreter is interrupted, as a signal may do. The hook of a script that
 * was killed interrupts each line and stays. */
static void interrupt_soon(struct script_vm *vm)
{
    vm->allocated = 0;
    if (vm->tick != NULL && lua_gethookmask(vm->running) == LUA_MASKCOUNT)
        lua_sethook(vm->running, vm->tick, LUA_MASKCOUNT, 1);
}

static void *take_memory(void *ctx, void *ptr, size_t before, size_t after)
{
    struct script_vm *vm = ctx;
    if (after == 0) {
        vm->bytes -= before;
        rd_free(ptr);
        return NULL;
    }
    void *moved = ptr == NULL ? rd_alloc(after) : rd_realloc(ptr, after);
    if (moved == NULL)
        return NULL;
    vm->bytes += after - before;
    vm->allocated += after > before ? after - before : 0;
    if (vm->allocated > SCRIPT_BYTES_MAX)
        interrupt_soon(vm);
    return moved;
}

struct script_vm *script_vm_of(lua_State *L)
{
    void *ctx;
    lua_getallocf(L, &ctx);
    return ctx;
}

size_t script_vm_bytes(const struct script_vm *vm)
{
    return vm == NULL ? 0 : (size_t)lua_gc(vm->lua, LUA_GCCOUNT, 0) * 1024;
}

/* ---- the buffer of library functions ---- */

enum { OUT_MIN = 64, OUT_KEEP = 64 * 1024, OUT_MAX = 1 << 30 };

struct rd_buf *script_out(lua_State *L)
{
    struct script_vm *vm = script_vm_of(L);
    if (vm->out.cap > OUT_KEEP) {
        rd_buf_done(&vm->out);
        vm->out = (struct rd_buf){0};
    }
    vm->out.len = 0;
    script_out_room(L, &vm->out, OUT_MIN); /* so that it has an address */
    return &vm->out;
}

void script_out_grow(lua_State *L, struct rd_buf *out, size_t len)
{
    if (len > OUT_MAX || out->len > OUT_MAX - len || !rd_buf_reserve(out, len))
        luaL_error(L, "not enough memory");
}

void script_out_push(lua_State *L, struct rd_buf *out)
{
    if (out->len > OUT_MAX)
        luaL_error(L, "not enough memory");
    lua_pushlstring(L, out->len > 0 ? (const char *)out->ptr : "", out->len);
}

/* ---- tables ---- */

void script_raw_field(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_rawget(L, -2);
}

void script_error_field(lua_State *L, const char *name)
{
    enum { TABLES_MAX = 100 };
    luaL_checkstack(L, 4, NULL);
    lua_pushvalue(L, -1);
    for (int i = 0; i < TABLES_MAX && lua_istable(L, -1); i++) {
        script_raw_field(L, name);
        if (!lua_isnil(L, -1)) {
            lua_remove(L, -2);
            return;
        }
        lua_pop(L, 1);
        if (!lua_getmetatable(L, -1))
            break;
        script_raw_field(L, "__index");
        lua_replace(L, -3); /* in place of the table */
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    lua_pushnil(L);
}

/* ---- arrays ---- */

void script_make_array(lua_State *L, int n)
{
    int place = lua_gettop(L) - n;
    lua_createtable(L, script_array_size(n), 0);
    lua_replace(L, place);
    for (int i = n; i > 0; i--)
        lua_rawseti(L, place, i);
}

/* ---- globals ---- */

/* Table on top: the metatable of the globals, which is itself locked for scripts. */
static void set_index(lua_State *L, lua_CFunction fn)
{
    lua_newtable(L);
    lua_pushcfunction(L, fn);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

static void lock_field(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    script_lock(L);
    lua_setfield(L, -2, name);
}

static void open_libraries(lua_State *L, enum script_vm_kind kind)
{
    script_open_lua(L);
    lua_pushvalue(L, LUA_GLOBALSINDEX);
    script_open_bit(L);
    lua_setfield(L, -2, "bit");
    script_open_cjson(L);
    lua_setfield(L, -2, "cjson");
    script_open_cmsgpack(L);
    lua_setfield(L, -2, "cmsgpack");
    script_open_struct(L);
    lua_setfield(L, -2, "struct");
    script_open_redis(L, kind);
    lua_setfield(L, -2, "redis");
    lua_getfield(L, -1, "math");
    script_open_random(L);
    lua_pop(L, 1);
    static const char *const tables[] = {"bit",   "cjson",  "cmsgpack", "coroutine", "math",
                                         "redis", "string", "struct",   "table"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        lock_field(L, tables[i]);
    lua_pop(L, 1);
}

/* The metatable of strings, as scripts see it. */
static void make_text_meta(struct script_vm *vm)
{
    lua_State *L = vm->lua;
    lua_newtable(L);
    lua_getglobal(L, "string");
    lua_setfield(L, -2, "__index");
    script_lock(L);
    vm->text_meta = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* What scripts see as their globals: a locked table that reads from the real one. */
static void hide_globals(struct script_vm *vm)
{
    lua_State *L = vm->lua;
    lua_pushvalue(L, LUA_GLOBALSINDEX);
    set_index(L, script_no_global);
    lua_getmetatable(L, -1);
    script_lock(L);
    vm->env_meta = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, -1);
    vm->globals = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, -1);
    script_lock(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "_G");
    lua_replace(L, LUA_GLOBALSINDEX);
    lua_pop(L, 1);
}

static int open_all(lua_State *L)
{
    struct script_vm *vm = lua_touserdata(L, 1);
    open_libraries(L, vm->kind);
    lua_pushcfunction(L, script_run_protected);
    vm->runner = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushcfunction(L, script_error_handler);
    vm->handler = luaL_ref(L, LUA_REGISTRYINDEX);
    if (vm->kind == SCRIPT_VM_EVAL) {
        lua_pushcfunction(L, script_error_handler);
        lua_setglobal(L, "__redis__err__handler");
    } else {
        lua_newtable(L);
        script_open_load_api(L);
        lua_setfield(L, -2, "redis");
        set_index(L, script_no_global);
        vm->api = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    make_text_meta(vm);
    hide_globals(vm);
    return 0;
}

/* ---- life ---- */

struct script_vm *script_vm_new(struct engine *e, enum script_vm_kind kind)
{
    struct script_vm *vm = rd_calloc(1, sizeof *vm);
    if (vm == NULL)
        return NULL;
    vm->engine = e;
    vm->kind = kind;
    vm->lua = lua_newstate(take_memory, vm);
    if (vm->lua == NULL || lua_cpcall(vm->lua, open_all, vm) != 0) {
        script_vm_free(vm);
        return NULL;
    }
    return vm;
}

void script_vm_free(struct script_vm *vm)
{
    if (vm == NULL)
        return;
    if (vm->lua != NULL)
        lua_close(vm->lua);
    rd_buf_done(&vm->out);
    rd_free(vm);
}
