/* The library `bit`: operations on the lowest 32 bits of numbers, with results from -2^31 to
 * 2^31 - 1. */
#include "engine/script/vm_impl.h"

enum { SHIFT_MASK = 31, HEX_DIGITS = 8 };

/* Adding this number moves the integer part of a double to the lowest bits of its mantissa. */
static const double to_low_bits = 6755399441055744.0; /* 2^52 + 2^51 */

static uint32_t bits_at(lua_State *L, int idx)
{
    uint64_t all;
    double sum = lua_tonumber(L, idx) + to_low_bits;
    memcpy(&all, &sum, sizeof all);
    if ((uint32_t)all == 0 && !lua_isnumber(L, idx))
        luaL_typerror(L, idx, "number");
    return (uint32_t)all;
}

static int push(lua_State *L, uint32_t bits)
{
    lua_pushnumber(L, (int32_t)bits);
    return 1;
}

/* ---- one number ---- */

static int bit_tobit(lua_State *L)
{
    return push(L, bits_at(L, 1));
}

static int bit_bnot(lua_State *L)
{
    return push(L, ~bits_at(L, 1));
}

static int bit_bswap(lua_State *L)
{
    return push(L, __builtin_bswap32(bits_at(L, 1)));
}

/* The second argument is the number of digits, negative for capital letters. */
static int bit_tohex(lua_State *L)
{
    uint32_t bits = bits_at(L, 1);
    int64_t n = lua_isnone(L, 2) ? HEX_DIGITS : (int32_t)bits_at(L, 2);
    const char *digits = n < 0 ? "0123456789ABCDEF" : "0123456789abcdef";
    char text[HEX_DIGITS];
    size_t len = (size_t)(n < 0 ? -n : n);
    if (len > HEX_DIGITS)
        len = HEX_DIGITS;
    for (size_t i = len; i-- > 0; bits >>= 4)
        text[i] = digits[bits & 15];
    lua_pushlstring(L, text, len);
    return 1;
}

/* ---- many numbers ---- */

static int bit_band(lua_State *L)
{
    uint32_t bits = bits_at(L, 1);
    for (int i = lua_gettop(L); i > 1; i--)
        bits &= bits_at(L, i);
    return push(L, bits);
}

static int bit_bor(lua_State *L)
{
    uint32_t bits = bits_at(L, 1);
    for (int i = lua_gettop(L); i > 1; i--)
        bits |= bits_at(L, i);
    return push(L, bits);
}

static int bit_bxor(lua_State *L)
{
    uint32_t bits = bits_at(L, 1);
    for (int i = lua_gettop(L); i > 1; i--)
        bits ^= bits_at(L, i);
    return push(L, bits);
}

/* ---- a number and a distance ---- */

static int bit_lshift(lua_State *L)
{
    uint32_t bits = bits_at(L, 1);
    return push(L, bits << (bits_at(L, 2) & SHIFT_MASK));
}

static int bit_rshift(lua_State *L)
{
    uint32_t bits = bits_at(L, 1);
    return push(L, bits >> (bits_at(L, 2) & SHIFT_MASK));
}

static int bit_arshift(lua_State *L)
{
    int32_t bits = (int32_t)bits_at(L, 1);
    return push(L, (uint32_t)(bits >> (bits_at(L, 2) & SHIFT_MASK)));
}

static uint32_t rotate(uint32_t bits, uint32_t left)
{
    return bits << (left & SHIFT_MASK) | bits >> (-left & SHIFT_MASK);
}

static int bit_rol(lua_State *L)
{
    uint32_t bits = bits_at(L, 1);
    return push(L, rotate(bits, bits_at(L, 2)));
}

static int bit_ror(lua_State *L)
{
    uint32_t bits = bits_at(L, 1);
    return push(L, rotate(bits, -bits_at(L, 2)));
}

/* ---- the table ---- */

void script_open_bit(lua_State *L)
{
    static const luaL_Reg all[] = {{"tobit", bit_tobit},
                                   {"bnot", bit_bnot},
                                   {"band", bit_band},
                                   {"bor", bit_bor},
                                   {"bxor", bit_bxor},
                                   {"lshift", bit_lshift},
                                   {"rshift", bit_rshift},
                                   {"arshift", bit_arshift},
                                   {"rol", bit_rol},
                                   {"ror", bit_ror},
                                   {"bswap", bit_bswap},
                                   {"tohex", bit_tohex},
                                   {NULL, NULL}};
    lua_createtable(L, 0, (int)(sizeof all / sizeof *all) - 1);
    luaL_register(L, NULL, all);
}
