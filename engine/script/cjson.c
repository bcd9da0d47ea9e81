/* The library `cjson`: its table and its settings. */
#include "engine/script/cjson.h"

#include <limits.h>
#include <stdio.h>

struct cjson *script_cjson(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* ---- settings: each function changes them where an argument is given, and returns them ---- */

static struct cjson *begin(lua_State *L, int n_args)
{
    luaL_argcheck(L, lua_gettop(L) <= n_args, n_args + 1, "found too many arguments");
    lua_settop(L, n_args);
    return script_cjson(L);
}

static int number_setting(lua_State *L, int arg, int *setting, int min, int max)
{
    char error[64];
    if (!lua_isnil(L, arg)) {
        lua_Integer value = luaL_checkinteger(L, arg);
        snprintf(error, sizeof error, "expected integer between %d and %d", min, max);
        luaL_argcheck(L, min <= value && value <= max, 1, error);
        *setting = (int)value;
    }
    lua_pushinteger(L, *setting);
    return 1;
}

static int word_setting(lua_State *L, int arg, int *setting, const char *const *words)
{
    if (lua_isboolean(L, arg))
        *setting = lua_toboolean(L, arg);
    else if (!lua_isnil(L, arg))
        *setting = luaL_checkoption(L, arg, NULL, words);
    if (*setting <= CJSON_ALLOW)
        lua_pushboolean(L, *setting);
    else
        lua_pushstring(L, words[*setting]);
    return 1;
}

static const char *const off_on[] = {"off", "on", NULL};

static int set_sparse(lua_State *L)
{
    struct cjson *cjson = begin(L, 3);
    word_setting(L, 1, &cjson->sparse_convert, off_on);
    number_setting(L, 2, &cjson->sparse_ratio, 0, INT_MAX);
    number_setting(L, 3, &cjson->sparse_safe, 0, INT_MAX);
    return 3;
}

static int set_encode_depth(lua_State *L)
{
    return number_setting(L, 1, &begin(L, 1)->encode_depth, 1, INT_MAX);
}

static int set_decode_depth(lua_State *L)
{
    return number_setting(L, 1, &begin(L, 1)->decode_depth, 1, INT_MAX);
}

static int set_precision(lua_State *L)
{
    return number_setting(L, 1, &begin(L, 1)->precision, 1, 14);
}

static int set_keep_buffer(lua_State *L)
{
    return word_setting(L, 1, &begin(L, 1)->keep_buffer, off_on);
}

static int set_encode_invalid(lua_State *L)
{
    static const char *const words[] = {"off", "on", "null", NULL};
    return word_setting(L, 1, &begin(L, 1)->encode_invalid, words);
}

static int set_decode_invalid(lua_State *L)
{
    return word_setting(L, 1, &begin(L, 1)->decode_invalid, off_on);
}

/* ---- the table ---- */

static int new_table(lua_State *L)
{
    static const luaL_Reg all[] = {
        {"encode", script_cjson_encode},
        {"decode", script_cjson_decode},
        {"encode_sparse_array", set_sparse},
        {"encode_max_depth", set_encode_depth},
        {"decode_max_depth", set_decode_depth},
        {"encode_number_precision", set_precision},
        {"encode_keep_buffer", set_keep_buffer},
        {"encode_invalid_numbers", set_encode_invalid},
        {"decode_invalid_numbers", set_decode_invalid},
        {"new", new_table},
    };
    lua_newtable(L);
    struct cjson *cjson = lua_newuserdata(L, sizeof *cjson);
    *cjson = (struct cjson){
        .sparse_ratio = 2,
        .sparse_safe = 10,
        .encode_depth = 1000,
        .decode_depth = 1000,
        .encode_invalid = CJSON_REFUSE,
        .decode_invalid = CJSON_ALLOW,
        .keep_buffer = 1,
        .precision = 14,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        lua_pushvalue(L, -1);
        lua_pushcclosure(L, all[i].func, 1);
        lua_setfield(L, -3, all[i].name);
    }
    lua_pop(L, 1);
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    lua_pushliteral(L, "cjson");
    lua_setfield(L, -2, "_NAME");
    lua_pushliteral(L, "2.1.0");
    lua_setfield(L, -2, "_VERSION");
    return 1;
}

void script_open_cjson(lua_State *L)
{
    new_table(L);
}
