/* The compiled scripts of EVAL and SCRIPT LOAD, by SHA-1. */
#include "engine/script/run_impl.h"

#include "base/digest.h"
#include "engine/mem.h"

/* Of EVAL. A program that puts values into the text of its scripts makes a new one each time. */
enum { EVALS_MAX = 500, EVALS_BYTES_MAX = 32 << 20 };

/* A script in the figures of INFO: its record, its name and its place in a table. */
enum { SCRIPT_OVERHEAD = 152 };

/* ---- one call below lua_cpcall() ---- */

struct step {
    struct rd_slice bytes;
    int ref;
    int status; /* of the compiler; then `text` is the reason */
    char *text;
};

static int compile_step(lua_State *L)
{
    struct step *step = lua_touserdata(L, 1);
    /* Byte code is not verified by Lua; a text does not begin with this byte. */
    bool code = step->bytes.len > 0 && step->bytes.ptr[0] == LUA_SIGNATURE[0];
    step->status = code ? LUA_ERRSYNTAX : script_compile(L, step->bytes, "@user_script");
    if (step->status != 0) {
        step->text = script_text("ERR Error compiling script (new function): %s",
                                 code ? "user_script:1: unexpected symbol near 'char(27)'"
                                      : lua_tostring(L, -1));
        return 0;
    }
    step->ref = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

/* ---- the cache ---- */

static struct rd_slice sha_of(const void *item)
{
    return rd_slice(((const struct script *)item)->sha, SCRIPT_SHA_LEN);
}

static const struct engine_table_type scripts = {.name = sha_of};

static bool prepare(struct engine_scripts *s)
{
    if (s->eval != NULL)
        return true;
    s->eval = script_vm_new(s->engine, SCRIPT_VM_EVAL);
    if (s->eval == NULL)
        return false;
    engine_table_init(&s->cache, &scripts, engine_table_seed());
    return true;
}

struct script *script_find(struct engine_scripts *s, struct rd_slice sha)
{
    char lower[SCRIPT_SHA_LEN];
    if (sha.len != SCRIPT_SHA_LEN || s->eval == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof lower; i++)
        lower[i] = (char)(sha.ptr[i] >= 'A' && sha.ptr[i] <= 'Z' ? sha.ptr[i] + 32 : sha.ptr[i]);
    /* Each EVALSHA asks twice. */
    if (s->last == NULL || memcmp(s->last->sha, lower, sizeof lower) != 0)
        s->last = engine_table_find(&s->cache, rd_slice(lower, sizeof lower));
    return s->last;
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

/* ---- the scripts of EVAL, by their last use ---- */

static uint64_t bytes_of(const struct script *script)
{
    return script->body_len + SCRIPT_OVERHEAD;
}

static void list_remove(struct engine_scripts *s, struct script *script)
{
    *(script->older != NULL ? &script->older->newer : &s->oldest) = script->newer;
    *(script->newer != NULL ? &script->newer->older : &s->newest) = script->older;
    script->older = script->newer = NULL;
    s->n_evals--;
    s->evals_bytes -= bytes_of(script);
}

static void list_add(struct engine_scripts *s, struct script *script)
{
    script->older = s->newest;
    *(s->newest != NULL ? &s->newest->newer : &s->oldest) = script;
    s->newest = script;
    s->n_evals++;
    s->evals_bytes += bytes_of(script);
}

void script_used(struct engine_scripts *s, struct script *script)
{
    if (script->kept || s->newest == script)
        return;
    list_remove(s, script);
    list_add(s, script);
}

static void keep_script(struct engine_scripts *s, struct script *script)
{
    if (script->kept)
        return;
    list_remove(s, script);
    script->kept = true;
}

static int drop_step(lua_State *L)
{
    const struct script *script = lua_touserdata(L, 1);
    luaL_unref(L, LUA_REGISTRYINDEX, script->ref);
    return 0;
}

static void remove_script(struct engine_scripts *s, struct script *script)
{
    list_remove(s, script);
    s->last = NULL;
    engine_table_remove(&s->cache, sha_of(script));
    s->scripts_bytes -= bytes_of(script);
    /* Memory can be short: then the function stays. */
    if (lua_cpcall(s->eval->lua, drop_step, script) != 0)
        lua_settop(s->eval->lua, 0);
    engine_free(script);
}

static void limit_evals(struct engine_scripts *s)
{
    while (s->oldest != s->newest && (s->n_evals > EVALS_MAX || s->evals_bytes > EVALS_BYTES_MAX))
        remove_script(s, s->oldest);
}

/* ---- adding ---- */

static struct script *compile(struct engine_scripts *s, struct rd_slice body,
                              const struct script *head, size_t skip, char **ret_error)
{
    struct step step = {.bytes = rd_slice(body.ptr + skip, body.len - skip)};
    int status = lua_cpcall(s->eval->lua, compile_step, &step);
    if (status != 0) {
        step.text = script_text("ERR Error compiling script (new function): %s",
                                lua_tostring(s->eval->lua, -1));
        lua_settop(s->eval->lua, 0);
    }
    if (status != 0 || step.status != 0) {
        *ret_error = step.text;
        return NULL;
    }
    struct script *script = engine_alloc(sizeof *script);
    *script = *head;
    script->ref = step.ref;
    engine_table_add(&s->cache, script);
    s->scripts_bytes += bytes_of(script);
    if (!script->kept)
        list_add(s, script);
    limit_evals(s);
    return script;
}

struct script *script_add(struct engine_scripts *s, struct rd_slice body, bool keep,
                          char **ret_error)
{
    struct script head = {.body_len = body.len, .kept = keep};
    size_t skip;
    if (!hash(body, head.sha, ret_error))
        return NULL;
    struct script *script = script_find(s, rd_slice(head.sha, SCRIPT_SHA_LEN));
    if (script != NULL && keep)
        keep_script(s, script);
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

static void free_script(void *ctx, void *script)
{
    (void)ctx;
    engine_free(script);
}

void script_forget_all(struct engine_scripts *s)
{
    if (s->eval == NULL)
        return;
    s->last = NULL;
    engine_table_drain(&s->cache, free_script, NULL);
    engine_table_done(&s->cache);
    script_vm_free(s->eval);
    s->eval = NULL;
    s->oldest = s->newest = NULL;
    s->n_evals = s->evals_bytes = s->scripts_bytes = 0;
}
