/* math.random() and math.randomseed(): the 48-bit generator of redis-server, so that a script gets
 * the same numbers on every machine. */
#include "engine/script/run_impl.h"

#include <math.h>

static uint64_t *state(lua_State *L, const char *name)
{
    struct script_vm *vm = script_vm_of(L);
    if (vm->run == NULL)
        luaL_error(L, "%s can only be called inside a script invocation", name);
    return &script_state(vm->engine)->random;
}

static uint32_t next_number(uint64_t *x)
{
    *x = (*x * 0x5deece66du + 0xb) & 0xffffffffffffu;
    return (uint32_t)(*x >> 17);
}

static int lua_random(lua_State *L)
{
    uint64_t *x = state(L, "math.random");
    lua_Number r = (lua_Number)(next_number(x) % INT32_MAX) / (lua_Number)INT32_MAX;
    int low = 1, high;
    switch (lua_gettop(L)) {
    case 0:
        lua_pushnumber(L, r);
        return 1;
    case 1:
        high = luaL_checkint(L, 1);
        luaL_argcheck(L, 1 <= high, 1, "interval is empty");
        break;
    case 2:
        low = luaL_checkint(L, 1);
        high = luaL_checkint(L, 2);
        luaL_argcheck(L, low <= high, 2, "interval is empty");
        break;
    default:
        return luaL_error(L, "wrong number of arguments");
    }
    /* A width that exceeds 31 bits wraps, as on a server. */
    int32_t width = (int32_t)((uint32_t)high - (uint32_t)low + 1);
    lua_pushnumber(L, floor(r * width) + low);
    return 1;
}

static int lua_seed(lua_State *L)
{
    uint64_t *x = state(L, "math.randomseed");
    *x = ((uint64_t)(uint32_t)luaL_checkint(L, 1) << 16) + 0x330e;
    return 0;
}

void script_open_random(lua_State *L)
{
    lua_pushcfunction(L, lua_random);
    lua_setfield(L, -2, "random");
    lua_pushcfunction(L, lua_seed);
    lua_setfield(L, -2, "randomseed");
}
