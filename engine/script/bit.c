/* The library `bit`: Debian's lua-bitop. It allocates nothing and cannot fail. */
#include "engine/script/vm.h"

#include <lua5.1/lua-bitop.h> /* after lua.h */

void script_open_bit(lua_State *L)
{
    lua_pushcfunction(L, luaopen_bit);
    lua_pushliteral(L, "bit");
    lua_call(L, 1, 1);
}
