/* script_compile.c - compiles code without running it. */
#include "engine/script.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <string.h>

/* What the compiler quotes of the code may have any bytes. */
static void put_fault(const char *text, char *dst, size_t size)
{
    snprintf(dst, size, "%s", text);
    for (char *c = dst; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

bool engine_script_compiles(struct rd_slice code, char *fault, size_t size)
{
    const char *ptr = code.len > 0 ? (const char *)code.ptr : "";
    if (*ptr == LUA_SIGNATURE[0]) {
        put_fault("byte code", fault, size);
        return false;
    }
    lua_State *lua = luaL_newstate();
    int status = lua == NULL ? LUA_ERRMEM : luaL_loadbuffer(lua, ptr, code.len, "@code");
    if (status == LUA_ERRSYNTAX)
        put_fault(lua_tostring(lua, -1), fault, size);
    if (lua != NULL)
        lua_close(lua);
    return status != LUA_ERRSYNTAX;
}
