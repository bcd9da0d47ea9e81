/* Lua's own libraries, without what leaves the sandbox.
 *
 * There is no io, os, package or debug. Byte code is not loaded: the interpreter does not verify
 * it. What bypasses metatables knows locked tables.
 */
#include "engine/script/debug.h"
#include "engine/script/vm_impl.h"

#include <string.h>

/* ---- locked tables ---- */

static int refuse_write(lua_State *L)
{
    return luaL_error(L, "Attempt to modify a readonly table");
}

/* From a function of Lua, the text has no position. */
static int refuse(lua_State *L)
{
    lua_pushliteral(L, "Attempt to modify a readonly table");
    return lua_error(L);
}

bool script_is_locked(lua_State *L, int idx)
{
    if (!lua_getmetatable(L, idx))
        return false;
    lua_pop(L, 1);
    const struct script_vm *vm = script_vm_of(L);
    const void *table = lua_topointer(L, idx);
    for (size_t i = 0; i < vm->n_locked; i++)
        if (vm->locked[i] == table)
            return true;
    return false;
}

void script_push_real(lua_State *L, int idx)
{
    if (lua_type(L, idx) != LUA_TTABLE || !script_is_locked(L, idx)) {
        lua_pushvalue(L, idx);
        return;
    }
    lua_getmetatable(L, idx);
    lua_getfield(L, -1, "__index");
    lua_remove(L, -2);
}

void script_lock(lua_State *L)
{
    struct script_vm *vm = script_vm_of(L);
    lua_newtable(L);
    lua_newtable(L);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, refuse_write);
    lua_setfield(L, -2, "__newindex");
    lua_setmetatable(L, -2);
    lua_remove(L, -2);
    if (vm->n_locked < SCRIPT_LOCKED_MAX)
        vm->locked[vm->n_locked++] = lua_topointer(L, -1);
}

int script_no_global(lua_State *L)
{
    if (lua_gettop(L) != 2)
        return luaL_error(L, "Wrong number of arguments to luaProtectedTableError");
    if (!lua_isstring(L, 2))
        return luaL_error(L,
                          "Second argument to luaProtectedTableError must be a string or number");
    return luaL_error(L, "Script attempted to access nonexistent global variable '%s'",
                      lua_tostring(L, 2));
}

/* ---- functions that bypass metatables ---- */

static int safe_next(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    if (script_is_locked(L, 1)) {
        script_push_real(L, 1);
        lua_replace(L, 1);
    }
    if (lua_next(L, 1))
        return 2;
    lua_pushnil(L);
    return 1;
}

/* Upvalues: the plain next(), and the one that knows locked tables. */
static int safe_pairs(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushvalue(L, lua_upvalueindex(script_is_locked(L, 1) ? 2 : 1));
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

static int safe_rawget(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    script_push_real(L, 1);
    lua_replace(L, 1);
    lua_rawget(L, 1);
    return 1;
}

static int safe_rawset(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    luaL_checkany(L, 3);
    lua_settop(L, 3);
    if (script_is_locked(L, 1))
        return refuse(L);
    lua_rawset(L, 1);
    return 1;
}

static int safe_setmetatable(lua_State *L)
{
    int type = lua_type(L, 2);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argcheck(L, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
    if (script_is_locked(L, 1))
        return refuse(L);
    if (luaL_getmetafield(L, 1, "__metatable"))
        return luaL_error(L, "cannot change a protected metatable");
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

/* Locked tables have no metatable that a script could see, except the globals. */
static int safe_getmetatable(lua_State *L)
{
    const struct script_vm *vm = script_vm_of(L);
    luaL_checkany(L, 1);
    if (lua_type(L, 1) == LUA_TSTRING) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, vm->text_meta);
        return 1;
    }
    if (lua_type(L, 1) == LUA_TTABLE && script_is_locked(L, 1)) {
        if (lua_topointer(L, 1) == lua_topointer(L, LUA_GLOBALSINDEX))
            lua_rawgeti(L, LUA_REGISTRYINDEX, vm->env_meta);
        else
            lua_pushnil(L);
        return 1;
    }
    if (!lua_getmetatable(L, 1)) {
        lua_pushnil(L);
        return 1;
    }
    luaL_getmetafield(L, 1, "__metatable");
    return 1;
}

/* ---- compiling ---- */

/* Lua's lexer counts characters as int. */
enum { TEXT_MAX = 1 << 30 };

/* A text that begins with a blank is not byte code for Lua, and has the same lines. */
struct text_source {
    const char *ptr; /* NULL: ask the function at 1 */
    size_t len;
    size_t total;
    bool begun;
};

static size_t count_text(lua_State *L, struct text_source *from, size_t len)
{
    if (len > TEXT_MAX - from->total)
        luaL_error(L, "the text is too long to compile");
    from->total += len;
    return len;
}

static const char *read_once(lua_State *L, void *ctx, size_t *ret_len)
{
    struct text_source *from = ctx;
    *ret_len = count_text(L, from, from->len);
    from->len = 0;
    return *ret_len > 0 ? from->ptr : NULL;
}

static const char *read_text(lua_State *L, void *ctx, size_t *ret_len)
{
    struct text_source *from = ctx;
    if (!from->begun) {
        from->begun = true;
        *ret_len = 1;
        return " ";
    }
    if (from->ptr != NULL)
        return read_once(L, ctx, ret_len);
    luaL_checkstack(L, 2, "too many nested functions");
    script_work(L, 100);
    lua_pushvalue(L, 1);
    lua_call(L, 0, 1);
    if (lua_isnil(L, -1)) {
        *ret_len = 0;
        return NULL;
    }
    if (!lua_isstring(L, -1))
        luaL_error(L, "reader function must return a string");
    lua_replace(L, 3); /* keeps the piece alive */
    const char *piece = lua_tolstring(L, 3, ret_len);
    count_text(L, from, *ret_len);
    return piece;
}

/* Lua's parser does not protect the name of the text from the garbage collector (CVE-2025-49844).
 * Equal strings are the same object, so a copy on the stack does. */
static int load_named(lua_State *L, lua_Reader reader, void *from, const char *name)
{
    lua_pushstring(L, name);
    int status = lua_load(L, reader, from, name);
    lua_remove(L, -2);
    return status;
}

int script_compile(lua_State *L, struct rd_slice text, const char *name)
{
    struct text_source from = {.ptr = (const char *)text.ptr, .len = text.len};
    return load_named(L, read_once, &from, name);
}

static int loaded(lua_State *L, int status)
{
    if (status == 0)
        return 1;
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

static int safe_loadstring(lua_State *L)
{
    struct text_source from = {0};
    from.ptr = luaL_checklstring(L, 1, &from.len);
    const char *name = luaL_optstring(L, 2, from.ptr);
    return loaded(L, load_named(L, read_text, &from, name));
}

static int safe_load(lua_State *L)
{
    struct text_source from = {0};
    const char *name = luaL_optstring(L, 2, "=(load)");
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 3);
    return loaded(L, load_named(L, read_text, &from, name));
}

/* ---- calls ---- */

/* An error ends in the coroutine that catches it. */
static void note_caught(lua_State *L)
{
    script_vm_of(L)->running = L;
    script_stop_if_killed(L);
}

/* The error of a command becomes its text. */
static int safe_pcall(lua_State *L)
{
    int argc = lua_gettop(L);
    if (argc == 0) { /* redis-server calls the result */
        lua_pushboolean(L, 0);
        lua_pushliteral(L, "attempt to call a boolean value");
        return 2;
    }
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    int status = lua_pcall(L, argc - 1, LUA_MULTRET, 0);
    note_caught(L);
    if (status == 0)
        return lua_gettop(L);
    lua_remove(L, 1);
    if (lua_istable(L, -1)) {
        script_error_field(L, "err");
        if (lua_isstring(L, -1))
            lua_replace(L, -2);
    }
    lua_pushboolean(L, 0);
    lua_insert(L, 1);
    return lua_gettop(L);
}

/* Upvalue: the script's handler. Lua calls handlers inside the hook that raises the error of a
 * kill, where no hook runs: the script's own could not be stopped there. */
static int handle_error(lua_State *L)
{
    if (script_is_killed(L))
        return 1;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static int safe_xpcall(lua_State *L)
{
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    lua_pushcclosure(L, handle_error, 1);
    lua_insert(L, 1);
    int status = lua_pcall(L, 0, LUA_MULTRET, 1);
    note_caught(L);
    lua_pushboolean(L, status == 0);
    lua_replace(L, 1);
    return lua_gettop(L);
}

/* A coroutine catches errors as pcall() does. Upvalue: Lua's function. */
static int safe_resume(lua_State *L)
{
    lua_CFunction resume = lua_tocfunction(L, lua_upvalueindex(1));
    if (lua_isthread(L, 1))
        script_vm_of(L)->running = lua_tothread(L, 1);
    int n = resume(L);
    note_caught(L);
    return n;
}

/* Upvalues: the coroutine, where Lua's function expects it, and this function. */
static int resume_wrapped(lua_State *L)
{
    lua_CFunction resume = lua_tocfunction(L, lua_upvalueindex(2));
    script_vm_of(L)->running = lua_tothread(L, lua_upvalueindex(1));
    int n = resume(L);
    note_caught(L);
    return n;
}

/* Upvalue: Lua's function, whose result is a function with one upvalue. */
static int safe_wrap(lua_State *L)
{
    lua_CFunction wrap = lua_tocfunction(L, lua_upvalueindex(1));
    wrap(L);
    lua_getupvalue(L, -1, 1);
    lua_insert(L, -2);
    lua_pushcclosure(L, resume_wrapped, 2);
    return 1;
}

/* Lua's own subtracts the bounds as int, which can overflow. */
static int safe_unpack(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    int from = luaL_optint(L, 2, 1);
    int to = luaL_opt(L, luaL_checkint, 3, (int)lua_objlen(L, 1));
    if (from > to)
        return 0;
    int64_t n = (int64_t)to - from + 1;
    if (n >= INT32_MAX || !lua_checkstack(L, (int)n))
        return luaL_error(L, "too many results to unpack");
    for (int64_t i = from; i <= to; i++)
        lua_rawgeti(L, 1, (int)i);
    return (int)n;
}

/* ---- string ---- */

/* Lua's own counts to n for an empty text, too. Upvalue: Lua's function. */
static int safe_rep(lua_State *L)
{
    size_t len;
    luaL_checklstring(L, 1, &len);
    int n = luaL_checkint(L, 2);
    if (len > 0 && n > 0)
        return lua_tocfunction(L, lua_upvalueindex(1))(L);
    lua_pushliteral(L, "");
    return 1;
}

/* ---- the garbage collector ---- */

/* As Lua's own, and notes that the settings are to be restored. */
static int safe_collectgarbage(lua_State *L)
{
    static const char *const names[] = {"stop", "restart",  "collect",    "count",
                                        "step", "setpause", "setstepmul", NULL};
    static const int whats[] = {LUA_GCSTOP, LUA_GCRESTART,  LUA_GCCOLLECT,   LUA_GCCOUNT,
                                LUA_GCSTEP, LUA_GCSETPAUSE, LUA_GCSETSTEPMUL};
    int what = whats[luaL_checkoption(L, 1, "collect", names)];
    script_work(L, script_vm_of(L)->bytes / 64);
    int result = lua_gc(L, what, luaL_optint(L, 2, 0));
    script_vm_of(L)->gc_changed = true;
    if (what == LUA_GCCOUNT)
        lua_pushnumber(L, result + lua_gc(L, LUA_GCCOUNTB, 0) / 1024.0);
    else if (what == LUA_GCSTEP)
        lua_pushboolean(L, result);
    else
        lua_pushnumber(L, result);
    return 1;
}

void script_restore_gc(struct script_vm *vm)
{
    enum { LUAS_OWN = 200 };
    if (!vm->gc_changed)
        return;
    vm->gc_changed = false;
    lua_gc(vm->lua, LUA_GCSETPAUSE, LUAS_OWN);
    lua_gc(vm->lua, LUA_GCSETSTEPMUL, LUAS_OWN);
    lua_gc(vm->lua, LUA_GCRESTART, 0);
}

/* ---- table ---- */

static int table_len(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    return (int)lua_objlen(L, 1);
}

static int safe_insert(lua_State *L)
{
    int end = table_len(L) + 1, pos = end;
    if (lua_gettop(L) == 3) {
        pos = luaL_checkint(L, 2);
        if (pos > end)
            end = pos;
    } else if (lua_gettop(L) != 2) {
        return luaL_error(L, "wrong number of arguments to 'insert'");
    }
    if (script_is_locked(L, 1))
        return refuse(L);
    for (int i = end; i > pos; i--) {
        script_work(L, 1);
        lua_rawgeti(L, 1, i - 1);
        lua_rawseti(L, 1, i);
    }
    lua_rawseti(L, 1, pos);
    return 0;
}

static int safe_foreach(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    script_push_real(L, 1);
    lua_replace(L, 1);
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        lua_pushvalue(L, 2);
        lua_pushvalue(L, -3);
        lua_pushvalue(L, -3);
        lua_call(L, 2, 1);
        if (!lua_isnil(L, -1))
            return 1;
        lua_pop(L, 2);
    }
    return 0;
}

/* Upvalue: a comparison in C, which the interpreter would not interrupt; nil: that of Lua. */
static int counted_less(lua_State *L)
{
    size_t len = lua_type(L, 1) == LUA_TSTRING ? lua_objlen(L, 1) : 0;
    script_work(L, len / 8 + 1);
    if (lua_isnil(L, lua_upvalueindex(1))) {
        lua_pushboolean(L, lua_lessthan(L, 1, 2));
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

/* Whether Lua compares these few values quickly. */
static bool is_quick_to_sort(lua_State *L)
{
    enum { FEW = 1000, SHORT = 1000 };
    int n = (int)lua_objlen(L, 1);
    bool quick = n <= FEW;
    for (int i = 1; i <= n && quick; i++) {
        lua_rawgeti(L, 1, i);
        quick = lua_type(L, -1) != LUA_TSTRING || lua_objlen(L, -1) <= SHORT;
        lua_pop(L, 1);
    }
    return quick;
}

/* Upvalue: Lua's function. */
static int safe_sort(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    if (lua_iscfunction(L, 2) || (lua_isnil(L, 2) && !is_quick_to_sort(L))) {
        lua_pushcclosure(L, counted_less, 1);
        lua_settop(L, 2);
    }
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/* ---- errors ---- */

int script_error_handler(lua_State *L)
{
    lua_Debug at;
    bool known = lua_getstack(L, 1, &at) != 0 && lua_getinfo(L, "Sl", &at) != 0;
    if (known && strcmp(at.what, "C") == 0)
        known = lua_getstack(L, 2, &at) != 0 && lua_getinfo(L, "Sl", &at) != 0;
    lua_settop(L, 1);
    if (lua_type(L, 1) != LUA_TTABLE) {
        lua_getglobal(L, "tostring");
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
        lua_newtable(L);
        lua_pushliteral(L, "ERR ");
        lua_pushvalue(L, 2);
        lua_concat(L, 2);
        lua_setfield(L, -2, "err");
        lua_replace(L, 1);
        lua_settop(L, 1);
    }
    if (known) {
        lua_pushstring(L, at.source);
        lua_setfield(L, 1, "source");
        lua_pushinteger(L, at.currentline);
        lua_setfield(L, 1, "line");
    }
    return 1;
}

void script_push_error(lua_State *L, const char *text, size_t len)
{
    size_t code = 0;
    if (script_vm_of(L)->run != NULL)
        script_debug_error(script_vm_of(L)->run, text, len);
    if (len > 0 && text[0] == '-') {
        text++;
        len--;
        const char *blank = memchr(text, ' ', len);
        code = blank != NULL ? (size_t)(blank - text) : 0;
        code += blank != NULL;
    }
    while (len > code && (text[len - 1] == '\r' || text[len - 1] == '\n'))
        len--;
    size_t skip = code;
    while (skip < len && (text[skip] == '\r' || text[skip] == '\n'))
        skip++;
    lua_newtable(L);
    if (code > 0)
        lua_pushlstring(L, text, code);
    else
        lua_pushliteral(L, "ERR ");
    lua_pushlstring(L, text + skip, len - skip);
    lua_concat(L, 2);
    lua_setfield(L, -2, "err");
}

int script_raise(lua_State *L, const char *text)
{
    script_push_error(L, text, strlen(text));
    return lua_error(L);
}

/* ---- opening ---- */

static void call_opener(lua_State *L, lua_CFunction open, const char *name)
{
    lua_pushcfunction(L, open);
    lua_pushstring(L, name);
    lua_call(L, 1, 0);
}

static void forget(lua_State *L, const char *const *names)
{
    for (; *names != NULL; names++) {
        lua_pushnil(L);
        lua_setglobal(L, *names);
    }
}

/* A function of the table on top gets Lua's own as its upvalue. */
static void wrap_field(lua_State *L, const char *name, lua_CFunction fn)
{
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, fn, 1);
    lua_setfield(L, -2, name);
}

void script_open_lua(lua_State *L)
{
    static const char *const unsafe[] = {"dofile",  "loadfile", "print",   "newproxy", "getfenv",
                                         "setfenv", "module",   "require", NULL};
    static const luaL_Reg base[] = {
        {"next", safe_next},
        {"collectgarbage", safe_collectgarbage},
        {"rawget", safe_rawget},
        {"rawset", safe_rawset},
        {"setmetatable", safe_setmetatable},
        {"getmetatable", safe_getmetatable},
        {"loadstring", safe_loadstring},
        {"load", safe_load},
        {"pcall", safe_pcall},
        {"xpcall", safe_xpcall},
        {"unpack", safe_unpack},
        {NULL, NULL},
    };
    static const luaL_Reg table[] = {
        {"insert", safe_insert}, {"foreach", safe_foreach}, {NULL, NULL}};
    call_opener(L, luaopen_base, "");
    call_opener(L, luaopen_table, LUA_TABLIBNAME);
    call_opener(L, luaopen_string, LUA_STRLIBNAME);
    call_opener(L, luaopen_math, LUA_MATHLIBNAME);
    forget(L, unsafe);
    lua_getglobal(L, "next");
    lua_pushcfunction(L, safe_next);
    lua_pushcclosure(L, safe_pairs, 2);
    lua_setglobal(L, "pairs");
    lua_pushvalue(L, LUA_GLOBALSINDEX);
    luaL_register(L, NULL, base);
    lua_getfield(L, -1, LUA_TABLIBNAME);
    luaL_register(L, NULL, table);
    wrap_field(L, "sort", safe_sort);
    lua_pop(L, 1);
    lua_getfield(L, -1, LUA_STRLIBNAME);
    script_open_patterns(L);
    wrap_field(L, "rep", safe_rep);
    lua_pop(L, 1);
    lua_getfield(L, -1, LUA_COLIBNAME);
    wrap_field(L, "resume", safe_resume);
    wrap_field(L, "wrap", safe_wrap);
    lua_pop(L, 2);
}
