/* Patterns match as those of Lua do: its own functions answer the same calls. */
#include <lua5.1/lauxlib.h>
#include <lua5.1/lualib.h>

#include <criterion/criterion.h>
#include <stdio.h>

#include "engine/engine.h"
#include "engine/script/vm_impl.h"

enum { CASES = 150000, PIECES_MAX = 8, TEXT_MAX = 14, RESULT_MAX = 4096 };

static uint64_t state = 1;

static unsigned draw(unsigned n)
{
    state = state * 6364136223846793005 + 1442695040888963407;
    return (unsigned)(state >> 33) % n;
}

struct bytes {
    char ptr[256];
    size_t len;
};

static void add(struct bytes *to, const char *ptr, size_t len)
{
    memcpy(to->ptr + to->len, ptr, len);
    to->len += len;
    to->ptr[to->len] = '\0';
}

static struct bytes make_pattern(void)
{
    static const char *const pieces[] = {
        "a",      "b",     "0",       " ",    ".",    "%a",   "%A",    "%d",   "%s",   "%w",
        "%z",     "%.",    "%%",      "*",    "+",    "-",    "?",     "*",    "-",    "(",
        ")",      "()",    "(a)",     "(.-)", "^",    "$",    "%1",    "%2",   "%0",   "%b()",
        "%bab",   "%f[a]", "%f[^%a]", "%f",   "[ab]", "[^a]", "[a-z]", "[]a]", "[^]]", "[%a-]",
        "[a-%d]", "[",     "]",       "%",    "%b",   "[%",   "[^",    "%f[",  "x",    "%x",
        "%u",     "%l",    "%p",      "%c",   "%g",
    };
    struct bytes p = {.len = 0};
    unsigned n = draw(PIECES_MAX + 1);
    for (unsigned i = 0; i < n; i++) {
        const char *piece = pieces[draw(sizeof pieces / sizeof *pieces)];
        add(&p, piece, strlen(piece));
    }
    if (draw(20) == 0)
        add(&p, "\0a*", 3);
    return p;
}

static struct bytes make_text(void)
{
    static const char letters[] = "aaabbx01 ()%.\0A_";
    struct bytes s = {.len = 0};
    unsigned n = draw(TEXT_MAX + 1);
    for (unsigned i = 0; i < n; i++)
        add(&s, &letters[draw(sizeof letters - 1)], 1);
    return s;
}

static struct bytes make_replacement(void)
{
    static const char *const pieces[] = {"x", "%0", "%1", "%2", "%9", "%%", "%", "%a", "-"};
    struct bytes r = {.len = 0};
    unsigned n = draw(4);
    for (unsigned i = 0; i < n; i++) {
        const char *piece = pieces[draw(sizeof pieces / sizeof *pieces)];
        add(&r, piece, strlen(piece));
    }
    return r;
}

struct call {
    const char *name;
    struct bytes text, pattern, replacement;
    int kind; /* of the replacement */
    bool has_number, plain;
    int number;
};

static struct call make_call(void)
{
    static const char *const names[] = {"find", "match", "gmatch", "gsub", "gfind"};
    struct call c = {.name = names[draw(5)],
                     .text = make_text(),
                     .pattern = make_pattern(),
                     .replacement = make_replacement(),
                     .kind = (int)draw(4),
                     .has_number = draw(3) == 0,
                     .plain = draw(8) == 0,
                     .number = (int)draw(40) - 20};
    return c;
}

static const char helper[] =
    "local tables = {{a = 'A', b = false, ab = 7, [1] = 'one'}, {x = {}}}\n"
    "local functions = {function(...) return ... end, function(...) return select('#', ...) end,\n"
    "  function() end, function(a) return {a} end}\n"
    "return function(name, text, pattern, kind, replacement, number, plain)\n"
    "  local out = {}\n"
    "  local function show(...)\n"
    "    for i = 1, select('#', ...) do\n"
    "      local v = select(i, ...)\n"
    "      out[#out + 1] = type(v) .. ':' .. tostring(v)\n"
    "    end\n"
    "  end\n"
    "  local function call()\n"
    "    if name == 'gsub' then\n"
    "      local by = kind == 1 and tables[#text % 2 + 1] or kind == 2 and functions[#text % 4 + "
    "1]\n"
    "                 or replacement\n"
    "      show(string.gsub(text, pattern, by, number))\n"
    "    elseif name == 'gmatch' or name == 'gfind' then\n"
    "      local n = 0\n"
    "      for a, b in string[name](text, pattern) do\n"
    "        show(a, b) n = n + 1 if n > 40 then break end\n"
    "      end\n"
    "    else show(string[name](text, pattern, number, plain)) end\n"
    "  end\n"
    "  local ok, why = pcall(call)\n"
    "  if not ok then show(why) end\n"
    "  return table.concat(out, '|')\n"
    "end\n";

static int have_helper(lua_State *L)
{
    cr_assert_eq(luaL_loadbuffer(L, helper, sizeof helper - 1, "=h"), 0, "%s", lua_tostring(L, -1));
    cr_assert_eq(lua_pcall(L, 0, 1, 0), 0, "%s", lua_tostring(L, -1));
    return luaL_ref(L, LUA_REGISTRYINDEX);
}

static size_t ask(lua_State *L, int ref, const struct call *c, char *ret)
{
    size_t len;
    lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
    lua_pushstring(L, c->name);
    lua_pushlstring(L, c->text.ptr, c->text.len);
    lua_pushlstring(L, c->pattern.ptr, c->pattern.len);
    lua_pushinteger(L, c->kind);
    lua_pushlstring(L, c->replacement.ptr, c->replacement.len);
    if (c->has_number)
        lua_pushinteger(L, c->number);
    else
        lua_pushnil(L);
    lua_pushboolean(L, c->plain);
    cr_assert_eq(lua_pcall(L, 7, 1, 0), 0, "%s", lua_tostring(L, -1));
    const char *got = lua_tolstring(L, -1, &len);
    len = len < RESULT_MAX ? len : RESULT_MAX;
    memcpy(ret, got, len);
    lua_pop(L, 1);
    return len;
}

Test(script, random_calls_have_the_results_of_lua, .timeout = 300)
{
    static char ours[RESULT_MAX], theirs[RESULT_MAX];
    struct engine *engine = engine_new(&(struct engine_opts){.seed = 1});
    struct script_vm *vm = script_vm_new(engine, SCRIPT_VM_EVAL);
    lua_State *lua = luaL_newstate();
    luaL_openlibs(lua);
    int own = have_helper(vm->lua), plain = have_helper(lua);
    unsigned matched = 0, failed = 0;
    for (unsigned i = 0; i < CASES; i++) {
        struct call c = make_call();
        size_t n = ask(vm->lua, own, &c, ours), m = ask(lua, plain, &c, theirs);
        cr_assert(n == m && memcmp(ours, theirs, n) == 0,
                  "case %u: %s '%s' '%s' '%s' %d: %.*s, not %.*s", i, c.name, c.text.ptr,
                  c.pattern.ptr, c.replacement.ptr, c.number, (int)n, ours, (int)m, theirs);
        matched += n > 3 && memcmp(ours, "nil", 3) != 0;
        failed += memmem(ours, n, "pattern", 7) != NULL || memmem(ours, n, "capture", 7) != NULL;
    }
    cr_assert(matched > CASES / 4 && failed > CASES / 20, "%u %u", matched, failed);
    lua_close(lua);
    script_vm_free(vm);
    engine_delete(engine);
}
