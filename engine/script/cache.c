/* The compiled scripts of EVAL and SCRIPT LOAD, by SHA-1. */
#include "engine/script/run.h"

#include "base/digest.h"
#include "engine/mem.h"

/* A script in the figures of INFO: its record, its name and its place in a table. */
enum { SCRIPT_OVERHEAD = 152 };

/* ---- one call below lua_cpcall() ---- */

struct step {
    struct engine_scripts *s;
    struct rd_slice bytes;
    const char *sha;
    struct script *script;
    int status; /* of the compiler; then `text` is the reason */
    char *text;
};

static void push_table(lua_State *L, const struct engine_scripts *s)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, s->cache_ref);
}

static int find_step(lua_State *L)
{
    struct step *step = lua_touserdata(L, 1);
    push_table(L, step->s);
    lua_pushlstring(L, step->sha, SCRIPT_SHA_LEN);
    lua_rawget(L, -2);
    step->script = lua_touserdata(L, -1);
    return 0;
}

static int compile_step(lua_State *L)
{
    struct step *step = lua_touserdata(L, 1);
    /* Byte code is not verified by Lua; a text does not begin with this byte. */
    bool code = step->bytes.len > 0 && step->bytes.ptr[0] == LUA_SIGNATURE[0];
    step->status =
        code ? LUA_ERRSYNTAX
             : luaL_loadbuffer(L, (const char *)step->bytes.ptr, step->bytes.len, "@user_script");
    if (step->status != 0) {
        step->text = script_text("ERR Error compiling script (new function): %s",
                                 code ? "user_script:1: unexpected symbol near 'char(27)'"
                                      : lua_tostring(L, -1));
        return 0;
    }
    step->script->ref = luaL_ref(L, LUA_REGISTRYINDEX);
    push_table(L, step->s);
    lua_pushlstring(L, step->script->sha, SCRIPT_SHA_LEN);
    lua_pushlightuserdata(L, step->script);
    lua_rawset(L, -3);
    return 0;
}

static int table_step(lua_State *L)
{
    struct step *step = lua_touserdata(L, 1);
    lua_newtable(L);
    step->s->cache_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

/* ---- the cache ---- */

static bool prepare(struct engine_scripts *s)
{
    if (s->eval != NULL)
        return true;
    struct step step = {.s = s};
    s->eval = script_vm_new(s->engine, SCRIPT_VM_EVAL);
    if (s->eval != NULL && lua_cpcall(s->eval->lua, table_step, &step) == 0)
        return true;
    script_vm_free(s->eval);
    s->eval = NULL;
    return false;
}

struct script *script_find(struct engine_scripts *s, struct rd_slice sha)
{
    char lower[SCRIPT_SHA_LEN];
    struct step step = {.s = s, .sha = lower};
    if (sha.len != SCRIPT_SHA_LEN || s->eval == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof lower; i++)
        lower[i] = (char)(sha.ptr[i] >= 'A' && sha.ptr[i] <= 'Z' ? sha.ptr[i] + 32 : sha.ptr[i]);
    if (lua_cpcall(s->eval->lua, find_step, &step) != 0)
        lua_settop(s->eval->lua, 0);
    return step.script;
}

static bool hash(struct rd_slice body, char hex[SCRIPT_SHA_LEN + 1], char **ret_error)
{
    uint8_t sum[RD_DIGEST_MAX];
    char text[RD_DIGEST_HEX];
    if (!rd_digest_of(RD_DIGEST_SHA1, body, sum, NULL)) {
        *ret_error = script_text("ERR SHA-1 is not available");
        return false;
    }
    rd_digest_hex(text, rd_slice(sum, rd_digest_size(RD_DIGEST_SHA1)));
    memcpy(hex, text, SCRIPT_SHA_LEN + 1);
    return true;
}

static struct script *compile(struct engine_scripts *s, struct rd_slice body,
                              const struct script *head, size_t skip, char **ret_error)
{
    struct script *script = engine_alloc(sizeof *script);
    *script = *head;
    struct step step = {
        .s = s, .bytes = rd_slice(body.ptr + skip, body.len - skip), .script = script};
    int status = lua_cpcall(s->eval->lua, compile_step, &step);
    if (status != 0) {
        step.text = script_text("ERR Error compiling script (new function): %s",
                                lua_tostring(s->eval->lua, -1));
        lua_settop(s->eval->lua, 0);
    }
    if (status != 0 || step.status != 0) {
        engine_free(script);
        *ret_error = step.text;
        return NULL;
    }
    script->next = s->cache;
    s->cache = script;
    s->n_scripts++;
    s->scripts_bytes += body.len + SCRIPT_OVERHEAD;
    return script;
}

struct script *script_add(struct engine_scripts *s, struct rd_slice body, char **ret_error)
{
    struct script head = {.body_len = body.len};
    size_t skip;
    if (!hash(body, head.sha, ret_error))
        return NULL;
    struct script *script = script_find(s, rd_slice(head.sha, SCRIPT_SHA_LEN));
    if (script != NULL)
        return script;
    if (!script_read_flags(body, &head.flags, &skip, ret_error))
        return NULL;
    if (!prepare(s)) {
        *ret_error = script_text("ERR not enough memory for the interpreter");
        return NULL;
    }
    return compile(s, body, &head, skip, ret_error);
}

void script_forget_all(struct engine_scripts *s)
{
    while (s->cache != NULL) {
        struct script *script = s->cache;
        s->cache = script->next;
        engine_free(script);
    }
    script_vm_free(s->eval);
    s->eval = NULL;
    s->n_scripts = s->scripts_bytes = 0;
}
