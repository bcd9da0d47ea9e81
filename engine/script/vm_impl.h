/* vm_impl.h - private to engine/script/: one Lua interpreter and its sandbox.
 *
 *     struct script_vm *vm = script_vm_new(engine, SCRIPT_VM_EVAL);
 *     ... lua_cpcall(vm->lua, ...) ...
 *     script_vm_free(vm);
 *
 * An engine has up to two: one for EVAL and one for functions. Every call into Lua that can fail
 * (allocation can) is made in a protected call.
 *
 * Lua 5.1 has no read-only tables. A table that scripts must not change is therefore replaced by an
 * empty table (a locked table) whose metatable reads from it and refuses writes. The functions of
 * Lua that bypass metatables are replaced: engine/script/sandbox.c.
 */
#ifndef ENGINE_SCRIPT_VM_IMPL_H
#define ENGINE_SCRIPT_VM_IMPL_H

#include <lua5.1/lauxlib.h>
#include <lua5.1/lua.h>
#include <lua5.1/lualib.h>

#include "base/buf.h"
#include "engine/script.h"
#include "engine/state_impl.h"

#include <string.h>

enum script_vm_kind { SCRIPT_VM_EVAL, SCRIPT_VM_FUNCTION };

enum { SCRIPT_LOCKED_MAX = 32 };

/* A script can be interrupted after so many steps of the interpreter, so many units of work of a
 * function in C, or so many bytes that were allocated: each takes less than a few milliseconds. */
enum { SCRIPT_HOOK_STEPS = 1000, SCRIPT_WORK_MAX = 100000, SCRIPT_BYTES_MAX = 16 << 20 };

struct script_run; /* engine/script/run_impl.h */

struct script_vm {
    lua_State *lua;
    struct engine *engine;
    enum script_vm_kind kind;
    size_t bytes;           /* heap of the interpreter */
    size_t live;            /* of it after the last complete collection of garbage */
    struct rd_buf out;      /* the result of a library function that is being built */
    struct script_run *run; /* the script that runs; NULL: none */
    lua_State *running;     /* its coroutine */
    lua_Hook tick;          /* what may interrupt it; NULL: nothing */
    size_t work, allocated; /* since the last tick */
    void *loading;          /* the library that is being loaded; NULL: none */
    bool gc_changed;        /* a script used collectgarbage() */
    unsigned n_runs;        /* since the last step of the garbage collector */
    /* References in the registry. */
    int globals;  /* the real table of globals */
    int api;      /* SCRIPT_VM_FUNCTION: the globals while a library is loaded */
    int runner;   /* script_run_protected() */
    int handler;  /* adds the position to an error */
    int env_meta; /* metatable of the locked globals */
    int text_meta;
    size_t n_locked;
    const void *locked[SCRIPT_LOCKED_MAX];
};

/* NULL: out of memory. */
struct script_vm *script_vm_new(struct engine *e, enum script_vm_kind kind);
void script_vm_free(struct script_vm *vm); /* NULL is allowed */

/* The VM of a state: for functions that Lua calls. */
struct script_vm *script_vm_of(lua_State *L);

/* Heap of the interpreter in whole KiB, as INFO shows it. */
size_t script_vm_bytes(const struct script_vm *vm);

/* ---- sandbox.c ---- */

/* Opens the libraries of Lua and replaces what bypasses metatables. */
void script_open_lua(lua_State *L);

/* Pushes the function of a text, or an error; returns the status of lua_load(). The text must not
 * be byte code. */
int script_compile(lua_State *L, struct rd_slice text, const char *name);

/* Replaces the table on top of the stack by a locked one. */
void script_lock(lua_State *L);

/* The table at idx (positive) is locked. */
bool script_is_locked(lua_State *L, int idx);

/* Pushes the table that a locked table reads from, or the value itself. */
void script_push_real(lua_State *L, int idx);

/* Undoes collectgarbage("stop") and the like: a script must not change how later ones run. */
void script_restore_gc(struct script_vm *vm);

/* Error: nonexistent global variable. */
int script_no_global(lua_State *L);

/* ---- libraries: each pushes its table ---- */

void script_open_bit(lua_State *L);      /* bit.c */
void script_open_patterns(lua_State *L); /* pattern.c: sets fields of the table on top */
void script_open_cjson(lua_State *L);    /* cjson.c */
void script_open_cmsgpack(lua_State *L); /* cmsgpack.c */
void script_open_struct(lua_State *L);   /* struct.c */
void script_open_random(lua_State *L);   /* random.c: sets fields of the table on top */
void script_open_redis(lua_State *L, enum script_vm_kind kind); /* api.c */
void script_open_load_api(lua_State *L); /* functions.c: `redis` while a library is loaded */

/* The buffer of the VM, empty. What a function adds to it stays there when it raises an error. */
struct rd_buf *script_out(lua_State *L);
/* Makes room for len bytes after the last one. Raises an error if memory is short, or the result is
 * too long for a string. */
void script_out_grow(lua_State *L, struct rd_buf *out, size_t len);

/* The same, and returns the room. */
static inline uint8_t *script_out_room(lua_State *L, struct rd_buf *out, size_t len)
{
    if (len > out->cap - out->len)
        script_out_grow(L, out, len);
    return out->ptr + out->len;
}

static inline void script_out_add(lua_State *L, struct rd_buf *out, const void *ptr, size_t len)
{
    if (len == 0)
        return;
    memcpy(script_out_room(L, out, len), ptr, len);
    out->len += len;
}

/* Pushes the bytes as a string. */
void script_out_push(lua_State *L, struct rd_buf *out);

/* ---- arrays ----
 *
 *     int n = ...;                       // values on the stack, above one value that is replaced
 *     script_make_array(L, n);           // the array in place of them all
 *
 * An array that grows value by value is allocated again at 1, 2, 4, 8 … values. Its size, which the
 * length operator depends on, is the same if it is known from the start. */

/* The size of the array part of a table to which n values were appended. */
static inline int script_array_size(int n)
{
    int size = n > 0 ? 1 : 0;
    while (size < n)
        size *= 2;
    return size;
}

/* The values are not nil. */
void script_make_array(lua_State *L, int n);

/* ---- interruption ----
 *
 * The interpreter calls the hook `tick` after SCRIPT_HOOK_STEPS of its steps. Between two steps, a
 * function in C can take any time. Each whose time does not only depend on the memory that it takes
 * calls script_work(); memory is counted where it is allocated. */

/* The script, or the library that is loaded, calls it from now on. NULL: nothing interrupts it. */
void script_watch(struct script_vm *vm, lua_Hook tick);

/* Calls it now. It may raise an error. */
void script_tick(lua_State *L);

/* A function has done `steps` of its work. */
static inline void script_work(lua_State *L, size_t steps)
{
    struct script_vm *vm = script_vm_of(L);
    vm->work += steps;
    if (vm->work >= SCRIPT_WORK_MAX)
        script_tick(L);
}

/* Raises a table {err = "ERR text"}. */
int script_raise(lua_State *L, const char *text);
/* Pushes it. A text that begins with '-' has its own code. */
void script_push_error(lua_State *L, const char *text, size_t len);

/* The script that runs was killed. Whatever catches errors calls the second function afterwards,
 * which continues the error. */
bool script_is_killed(lua_State *L);
void script_stop_if_killed(lua_State *L);

/* Pushes the field of the table on top of the stack, without calling a metamethod: these run code
 * of the script, which cannot be interrupted while its result is read. */
void script_raw_field(lua_State *L, const char *name);

/* The same for an error, which can be a table that takes its fields from another (__index). */
void script_error_field(lua_State *L, const char *name);

/* Runs the script of the VM: script_run.c. Its argument is a light userdata, the run. */
int script_run_protected(lua_State *L);

/* Adds source and line to the error on the stack. */
int script_error_handler(lua_State *L);

#endif
