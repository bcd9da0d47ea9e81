#include "engine/script/functions.h"

#include "base/words.h"
#include "engine/library.h"
#include "engine/mem.h"

#include <strings.h>

static char *copy_text(const char *ptr, size_t len)
{
    char *text = engine_alloc(len + 1);
    memcpy(text, ptr, len);
    text[len] = '\0';
    return text;
}

static bool is_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_'))
            return false;
    }
    return len > 0;
}

static const char bad_name[] = "Library names can only contain letters, numbers, or underscores(_) "
                               "and must be at least one character long";

/* ---- redis.register_function() ---- */

struct registration {
    const char *name, *about; /* on the stack of Lua */
    size_t name_len, about_len;
    int callback; /* index on the stack; 0: none */
    unsigned flags;
};

/* The table of flags on top of the stack. */
static bool read_flags(lua_State *L, unsigned *ret)
{
    for (int i = 1;; i++) {
        size_t len;
        lua_pushnumber(L, i);
        lua_gettable(L, -2);
        if (lua_isnil(L, -1))
            break;
        const char *text = lua_isstring(L, -1) ? lua_tolstring(L, -1, &len) : NULL;
        unsigned flag = text != NULL ? script_flag(rd_slice(text, len), true) : 0;
        lua_pop(L, 1);
        if (flag == 0)
            return false;
        *ret |= flag;
    }
    lua_pop(L, 1);
    return true;
}

/* The value on top of the stack, whose name is below it. NULL: understood. What is needed later
 * stays on the stack, below the name. */
static const char *read_named(lua_State *L, struct registration *r)
{
    if (!lua_isstring(L, -2))
        return "named argument key given to redis.register_function is not a string";
    lua_pushvalue(L, -2);
    const char *key = lua_tostring(L, -1);
    lua_pop(L, 1);
    if (strcasecmp(key, "function_name") == 0) {
        r->name = lua_isstring(L, -1) ? lua_tolstring(L, -1, &r->name_len) : NULL;
        if (r->name == NULL)
            return "function_name argument given to redis.register_function must be a string";
    } else if (strcasecmp(key, "description") == 0) {
        r->about = lua_isstring(L, -1) ? lua_tolstring(L, -1, &r->about_len) : NULL;
        if (r->about == NULL)
            return "description argument given to redis.register_function must be a string";
    } else if (strcasecmp(key, "callback") == 0) {
        if (!lua_isfunction(L, -1))
            return "callback argument given to redis.register_function must be a function";
        r->callback = lua_gettop(L) - 1;
    } else if (strcasecmp(key, "flags") == 0) {
        if (!lua_istable(L, -1))
            return "flags argument to redis.register_function must be a table representing "
                   "function flags";
        lua_pushvalue(L, -1);
        if (!read_flags(L, &r->flags))
            return "unknown flag given";
        lua_pop(L, 1);
    } else {
        return "unknown argument given to redis.register_function";
    }
    lua_insert(L, -2);
    return NULL;
}

static const char *read_table(lua_State *L, struct registration *r)
{
    if (!lua_istable(L, 1))
        return "calling redis.register_function with a single argument is only applicable to Lua "
               "table (representing named arguments).";
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        luaL_checkstack(L, 6, NULL);
        const char *why = read_named(L, r);
        if (why != NULL)
            return why;
    }
    if (r->name == NULL)
        return "redis.register_function must get a function name argument";
    return r->callback == 0 ? "redis.register_function must get a callback argument" : NULL;
}

static const char *read_registration(lua_State *L, struct registration *r)
{
    int argc = lua_gettop(L);
    if (argc == 1)
        return read_table(L, r);
    if (argc != 2)
        return "wrong number of arguments to redis.register_function";
    if (!lua_isstring(L, 1))
        return "first argument to redis.register_function must be a string";
    if (!lua_isfunction(L, 2))
        return "second argument to redis.register_function must be a function";
    r->name = lua_tolstring(L, 1, &r->name_len);
    r->callback = 2;
    return NULL;
}

static struct script_function *function_of(const struct script_library *lib, const char *name,
                                           size_t len)
{
    struct script_function *fn = lib->functions;
    while (fn != NULL && (strlen(fn->name) != len || memcmp(fn->name, name, len) != 0))
        fn = fn->next;
    return fn;
}

static void append(struct script_library *lib, struct script_function *fn)
{
    struct script_function **end = &lib->functions;
    while (*end != NULL)
        end = &(*end)->next;
    *end = fn;
    lib->n_functions++;
}

static int register_function(lua_State *L)
{
    struct registration r = {0};
    struct script_library *lib = script_vm_of(L)->loading;
    if (lib == NULL)
        return script_raise(L,
                            "redis.register_function can only be called on FUNCTION LOAD command");
    const char *why = read_registration(L, &r);
    if (why != NULL)
        return script_raise(L, why);
    if (!is_name(r.name, r.name_len))
        return script_raise(L, bad_name);
    if (function_of(lib, r.name, r.name_len) != NULL)
        return script_raise(L, "Function already exists in the library");
    lua_pushvalue(L, r.callback);
    int ref = luaL_ref(L, LUA_REGISTRYINDEX);
    struct script_function *fn = engine_calloc(1, sizeof *fn);
    fn->library = lib;
    fn->ref = ref;
    fn->flags = r.flags;
    fn->name = copy_text(r.name, r.name_len);
    fn->about = r.about != NULL ? copy_text(r.about, r.about_len) : NULL;
    append(lib, fn);
    return 0;
}

void script_open_load_api(lua_State *L)
{
    lua_newtable(L);
    lua_pushcfunction(L, register_function);
    lua_setfield(L, -2, "register_function");
    script_add_log_api(L);
    lua_newtable(L);
    lua_pushcfunction(L, script_no_global);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    script_lock(L);
}

/* ---- compiling ---- */

struct load_step {
    struct engine_scripts *s;
    struct rd_slice code;
    struct script_library *lib;
    bool timed;
    char *error;
};

static void on_steps(lua_State *L, lua_Debug *at)
{
    struct engine *e = script_vm_of(L)->engine;
    static const struct engine_running loading = {.name = "FUNCTION LOAD"};
    (void)at;
    if (lua_gethookcount(L) == 1)
        lua_sethook(L, on_steps, LUA_MASKCOUNT, SCRIPT_HOOK_STEPS);
    if (e->hooks.script_tick == NULL || !e->hooks.script_tick(e->hooks.ctx, &loading))
        return;
    lua_sethook(L, on_steps, LUA_MASKLINE, 0);
    script_raise(L, "FUNCTION LOAD timeout");
}

/* While a library is loaded, its globals are few. */
static void switch_globals(lua_State *L, int ref)
{
    lua_pushvalue(L, LUA_GLOBALSINDEX);
    lua_getmetatable(L, -1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 2);
}

static char *registering_failed(lua_State *L)
{
    const char *text = "";
    if (lua_istable(L, -1)) {
        script_error_field(L, "err");
        if (lua_isstring(L, -1))
            text = lua_tostring(L, -1);
        return script_text("ERR Error registering functions: %s", text);
    }
    if (lua_isstring(L, -1))
        text = lua_tostring(L, -1);
    return script_text("ERR Error registering functions: ERR %s", text);
}

static int load_step(lua_State *L)
{
    struct load_step *step = lua_touserdata(L, 1);
    struct script_vm *vm = step->s->functions;
    if (script_compile(L, step->code, "@user_function") != 0) {
        step->error = script_text("ERR Error compiling function: %s", lua_tostring(L, -1));
        return 0;
    }
    vm->loading = step->lib;
    switch_globals(L, vm->api);
    if (step->timed)
        script_watch(vm, on_steps);
    int status = lua_pcall(L, 0, 0, 0);
    script_watch(vm, NULL);
    if (status != 0)
        step->error = registering_failed(L);
    return 0;
}

static int restore_step(lua_State *L)
{
    switch_globals(L, ((struct script_vm *)lua_touserdata(L, 1))->globals);
    return 0;
}

/* Runs the code, which registers the functions. */
static bool run_code(struct engine_scripts *s, struct script_library *lib, struct rd_slice code,
                     bool timed, char **ret_error)
{
    struct script_vm *vm = s->functions;
    struct load_step step = {.s = s, .code = code, .lib = lib, .timed = timed};
    if (lua_cpcall(vm->lua, load_step, &step) != 0) {
        if (step.error == NULL)
            step.error = script_text("ERR Error compiling function: %s", lua_tostring(vm->lua, -1));
        lua_settop(vm->lua, 0);
    }
    script_watch(vm, NULL);
    vm->loading = NULL;
    /* Only memory could be short, for a moment; the next library would have the same problem. */
    if (lua_cpcall(vm->lua, restore_step, vm) != 0)
        lua_settop(vm->lua, 0);
    if (step.error == NULL && lib->n_functions == 0)
        step.error = script_text("ERR No functions registered");
    *ret_error = step.error;
    return step.error == NULL;
}

/* ---- the first line ---- */

struct header {
    char *name;
    size_t len; /* of the line, without its end */
};

static char *read_words(const struct rd_words *words, struct rd_slice *ret_engine,
                        struct rd_slice *ret_name)
{
    static const char key[] = "name=";
    size_t n = sizeof key - 1;
    bool named = false;
    if (words->argc == 0)
        return script_text("ERR Invalid library metadata");
    *ret_engine = rd_slice(words->argv[0].ptr + 2, words->argv[0].len - 2);
    for (size_t i = 1; i < words->argc; i++) {
        struct rd_slice word = words->argv[i];
        if (word.len < n || strncasecmp((const char *)word.ptr, key, n) != 0)
            return script_text("ERR Invalid metadata value given: %s", (const char *)word.ptr);
        if (named)
            return script_text("ERR Invalid metadata value, name argument was given multiple "
                               "times");
        named = true;
        *ret_name = rd_slice(word.ptr + n, word.len - n);
    }
    if (!named)
        return script_text("ERR Library name was not given");
    if (!is_name((const char *)ret_name->ptr, ret_name->len))
        return script_text("ERR %s", bad_name);
    if (ret_engine->len != 3 || strncasecmp((const char *)ret_engine->ptr, "lua", 3) != 0)
        return script_text("ERR Engine '%.*s' not found", (int)ret_engine->len,
                           (const char *)ret_engine->ptr);
    return NULL;
}

static bool read_header(struct rd_slice code, struct header *ret, char **ret_error)
{
    struct rd_words words = {0};
    struct rd_slice engine = {0}, name = {0};
    const uint8_t *end = NULL;
    if (code.len < 2 || code.ptr[0] != '#' || code.ptr[1] != '!') {
        *ret_error = script_text("ERR Missing library metadata");
        return false;
    }
    end = engine_library_line_end(code);
    if (end == NULL || !rd_words_split(&words, rd_slice(code.ptr, (size_t)(end - code.ptr)))) {
        *ret_error = script_text("ERR Invalid library metadata");
        rd_words_done(&words);
        return false;
    }
    ret->len = (size_t)(end - code.ptr);
    *ret_error = read_words(&words, &engine, &name);
    if (*ret_error == NULL)
        ret->name = copy_text((const char *)name.ptr, name.len);
    rd_words_done(&words);
    return *ret_error == NULL;
}

/* ---- libraries ---- */

/* Names of functions, in lower case, to light userdata. */
static int table_step(lua_State *L)
{
    struct engine_scripts *s = lua_touserdata(L, 1);
    lua_newtable(L);
    s->names_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

static bool prepare(struct engine_scripts *s, char **ret_error)
{
    if (s->functions != NULL)
        return true;
    s->functions = script_vm_new(s->engine, SCRIPT_VM_FUNCTION);
    if (s->functions != NULL && lua_cpcall(s->functions->lua, table_step, s) == 0)
        return true;
    script_vm_free(s->functions);
    s->functions = NULL;
    *ret_error = script_text("ERR not enough memory for the interpreter");
    return false;
}

static void free_function(struct engine_scripts *s, struct script_function *fn)
{
    if (s->functions != NULL)
        luaL_unref(s->functions->lua, LUA_REGISTRYINDEX, fn->ref);
    engine_free(fn->name);
    engine_free(fn->about);
    engine_free(fn);
}

void script_library_free(struct engine_scripts *s, struct script_library *lib)
{
    if (lib == NULL)
        return;
    while (lib->functions != NULL) {
        struct script_function *fn = lib->functions;
        lib->functions = fn->next;
        free_function(s, fn);
    }
    engine_free(lib->name);
    engine_free(lib);
}

static char *exists_already(const char *name)
{
    return script_text("ERR Library '%s' already exists", name);
}

bool script_library_is_new(struct engine_scripts *s, struct rd_slice code, char **ret_error)
{
    struct header header = {0};
    if (!read_header(code, &header, ret_error))
        return false;
    bool is_new = script_library_find(s, rd_slice_str(header.name)) == NULL;
    if (!is_new)
        *ret_error = exists_already(header.name);
    engine_free(header.name);
    return is_new;
}

struct script_library *script_library_compile(struct engine_scripts *s, struct rd_slice code,
                                              bool timed, char **ret_error)
{
    struct header header = {0};
    if (!read_header(code, &header, ret_error))
        return NULL;
    struct script_library *lib = engine_calloc(1, sizeof *lib);
    lib->name = header.name;
    lib->code_len = code.len;
    if (prepare(s, ret_error) &&
        run_code(s, lib, rd_slice(code.ptr + header.len, code.len - header.len), timed, ret_error))
        return lib;
    script_library_free(s, lib);
    return NULL;
}

struct script_library *script_library_find(struct engine_scripts *s, struct rd_slice name)
{
    struct script_library *lib = s->libraries;
    while (lib != NULL && !rd_slice_eq(rd_slice_str(lib->name), name))
        lib = lib->next;
    return lib;
}

/* ---- names of functions ---- */

struct name_step {
    struct engine_scripts *s;
    struct rd_slice name;
    struct script_function *fn; /* to be set, or found */
};

static void push_lower(lua_State *L, struct rd_slice name)
{
    luaL_Buffer lower;
    luaL_buffinit(L, &lower);
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        luaL_addchar(&lower, (char)(c >= 'A' && c <= 'Z' ? c + 32 : c));
    }
    luaL_pushresult(&lower);
}

static int find_step(lua_State *L)
{
    struct name_step *step = lua_touserdata(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, step->s->names_ref);
    push_lower(L, step->name);
    lua_rawget(L, 2);
    step->fn = lua_touserdata(L, -1);
    return 0;
}

static int name_step(lua_State *L)
{
    struct name_step *step = lua_touserdata(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, step->s->names_ref);
    push_lower(L, step->name);
    if (step->fn != NULL)
        lua_pushlightuserdata(L, step->fn);
    else
        lua_pushnil(L);
    lua_rawset(L, 2);
    return 0;
}

struct script_function *script_function_find(struct engine_scripts *s, struct rd_slice name)
{
    struct name_step step = {.s = s, .name = name};
    if (s->functions == NULL)
        return NULL;
    if (lua_cpcall(s->functions->lua, find_step, &step) != 0)
        lua_settop(s->functions->lua, 0);
    return step.fn;
}

static bool set_name(struct engine_scripts *s, const char *name, struct script_function *fn)
{
    struct name_step step = {.s = s, .name = rd_slice_str(name), .fn = fn};
    if (lua_cpcall(s->functions->lua, name_step, &step) == 0)
        return true;
    lua_settop(s->functions->lua, 0);
    return false;
}

static void forget_names(struct engine_scripts *s, const struct script_library *lib)
{
    for (const struct script_function *fn = lib->functions; fn != NULL; fn = fn->next)
        if (script_function_find(s, rd_slice_str(fn->name)) == fn)
            set_name(s, fn->name, NULL);
}

void script_library_unlink(struct engine_scripts *s, struct script_library *lib)
{
    struct script_library **at = &s->libraries;
    while (*at != lib)
        at = &(*at)->next;
    *at = lib->next;
    lib->next = NULL;
    forget_names(s, lib);
    s->n_libraries--;
    s->n_functions -= lib->n_functions;
}

static void add_to_list(struct engine_scripts *s, struct script_library *lib)
{
    struct script_library **end = &s->libraries;
    while (*end != NULL)
        end = &(*end)->next;
    *end = lib;
    s->n_libraries++;
    s->n_functions += lib->n_functions;
}

/* The function of another library with the name of one of these. */
static const struct script_function *conflict(struct engine_scripts *s,
                                              const struct script_library *lib,
                                              const struct script_library *old)
{
    for (const struct script_function *fn = lib->functions; fn != NULL; fn = fn->next) {
        const struct script_function *other = script_function_find(s, rd_slice_str(fn->name));
        if (other != NULL && other->library != old)
            return fn;
    }
    return NULL;
}

bool script_library_link(struct engine_scripts *s, struct script_library *lib, bool replace,
                         char **ret_error)
{
    struct script_library *old = script_library_find(s, rd_slice_str(lib->name));
    if (old != NULL && !replace) {
        *ret_error = exists_already(lib->name);
        return false;
    }
    const struct script_function *taken = conflict(s, lib, old);
    if (taken != NULL) {
        *ret_error = script_text("ERR Function %s already exists", taken->name);
        return false;
    }
    if (old != NULL) {
        script_library_unlink(s, old);
        script_library_free(s, old);
    }
    add_to_list(s, lib);
    for (struct script_function *fn = lib->functions; fn != NULL; fn = fn->next)
        set_name(s, fn->name, fn);
    return true;
}

void script_functions_drop(struct engine_scripts *s)
{
    script_vm_free(s->functions);
    s->functions = NULL;
    while (s->libraries != NULL) {
        struct script_library *lib = s->libraries;
        s->libraries = lib->next;
        script_library_free(s, lib);
    }
    s->n_libraries = s->n_functions = 0;
}

/* ---- the libraries of the data set ---- */

struct ready {
    struct engine_scripts *s;
    char *error;
};

static bool compile_kept(void *ctx, const struct engine_library *kept)
{
    struct ready *ready = ctx;
    struct script_library *lib = script_library_compile(ready->s, kept->code, false, &ready->error);
    if (lib != NULL && !script_library_link(ready->s, lib, false, &ready->error)) {
        script_library_free(ready->s, lib);
        lib = NULL;
    }
    return lib != NULL;
}

bool script_functions_ready(struct engine_scripts *s, char **ret_error)
{
    struct rd_err err = {0};
    struct ready ready = {.s = s};
    if (!s->stale)
        return true;
    script_functions_drop(s);
    if (!engine_library_each(s->engine, &ready, compile_kept, &err))
        ready.error = script_text("ERR the libraries of the data set cannot be read: %s", err.text);
    s->stale = ready.error != NULL;
    *ret_error = ready.error;
    return ready.error == NULL;
}

size_t script_functions_bytes(const struct engine_scripts *s)
{
    size_t n = 0;
    for (const struct script_library *lib = s->libraries; lib != NULL; lib = lib->next) {
        n += sizeof *lib + strlen(lib->name) + lib->code_len;
        for (const struct script_function *fn = lib->functions; fn != NULL; fn = fn->next)
            n += sizeof *fn + strlen(fn->name) + (fn->about != NULL ? strlen(fn->about) : 0);
    }
    return n;
}
