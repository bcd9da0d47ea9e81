/* The library `cmsgpack`: MessagePack, https://github.com/msgpack/msgpack/blob/master/spec.md.
 *
 * A table with the keys 1 to N is an array, any other is a map. Numbers without a fraction are
 * integers; others are 32-bit floats where these are exact. Below 16 levels, tables become nil, and
 * so does what MessagePack cannot hold.
 */
#include "base/endian.h"
#include "engine/script/vm_impl.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { LEVELS = 16, LONG_HEAD = 9 };

/* ---- pack ---- */

struct packer {
    lua_State *lua;
    struct rd_buf *out;
};

static void put_byte(struct packer *to, uint8_t byte)
{
    *script_out_room(to->lua, to->out, 1) = byte;
    to->out->len++;
}

/* Writes a type byte and a big-endian number of `size` bytes; returns the bytes written. */
static size_t set_head(uint8_t *dst, uint8_t type, uint64_t n, unsigned size)
{
    dst[0] = type;
    for (unsigned i = size; i > 0; i--, n >>= 8)
        dst[i] = (uint8_t)n;
    return 1 + size;
}

static void put_head(struct packer *to, uint8_t type, uint64_t n, unsigned size)
{
    to->out->len += set_head(script_out_room(to->lua, to->out, LONG_HEAD), type, n, size);
}

static void put_text(struct packer *to, const char *ptr, size_t len)
{
    uint8_t *dst = script_out_room(to->lua, to->out, LONG_HEAD + len);
    size_t head;
    if (len < 32)
        head = set_head(dst, (uint8_t)(0xa0 | len), 0, 0);
    else if (len <= UINT8_MAX)
        head = set_head(dst, 0xd9, len, 1);
    else if (len <= UINT16_MAX)
        head = set_head(dst, 0xda, len, 2);
    else
        head = set_head(dst, 0xdb, len, 4);
    memcpy(dst + head, ptr, len);
    to->out->len += head + len;
}

static void put_integer(struct packer *to, int64_t n)
{
    if (n >= 0) {
        if (n <= INT8_MAX)
            put_byte(to, (uint8_t)n);
        else if (n <= UINT8_MAX)
            put_head(to, 0xcc, (uint64_t)n, 1);
        else if (n <= UINT16_MAX)
            put_head(to, 0xcd, (uint64_t)n, 2);
        else if (n <= UINT32_MAX)
            put_head(to, 0xce, (uint64_t)n, 4);
        else
            put_head(to, 0xcf, (uint64_t)n, 8);
    } else if (n >= -32) {
        put_byte(to, (uint8_t)n);
    } else if (n >= INT8_MIN) {
        put_head(to, 0xd0, (uint64_t)n, 1);
    } else if (n >= INT16_MIN) {
        put_head(to, 0xd1, (uint64_t)n, 2);
    } else if (n >= INT32_MIN) {
        put_head(to, 0xd2, (uint64_t)n, 4);
    } else {
        put_head(to, 0xd3, (uint64_t)n, 8);
    }
}

static void put_number(struct packer *to, lua_Number n)
{
    bool fits = n >= -9223372036854775808.0 && n < 9223372036854775808.0;
    if (fits && (lua_Number)(int64_t)n == n) {
        put_integer(to, (int64_t)n);
        return;
    }
    float half = (float)n;
    if ((double)half == n) {
        uint32_t bits;
        memcpy(&bits, &half, sizeof bits);
        put_head(to, 0xca, bits, 4);
    } else {
        uint64_t bits;
        memcpy(&bits, &n, sizeof bits);
        put_head(to, 0xcb, bits, 8);
    }
}

/* *ret_n: the number of entries. Whether the keys are 1 to n. */
static bool count_entries(lua_State *L, size_t *ret_n)
{
    int max = 0;
    size_t n = 0;
    bool is_array = true;
    lua_pushnil(L);
    for (; lua_next(L, -2); n++) {
        lua_pop(L, 1);
        if (!is_array || lua_type(L, -1) != LUA_TNUMBER) {
            is_array = false;
            continue;
        }
        lua_Number key = lua_tonumber(L, -1);
        is_array = key > 0 && key <= INT_MAX && key == (int)key;
        if (is_array && key > max)
            max = (int)key;
    }
    *ret_n = n;
    return is_array && (size_t)max == n;
}

static unsigned count_size(size_t n)
{
    return n <= 15 ? 0 : n <= UINT16_MAX ? 2 : 4;
}

/* `type` has the 16-bit count, type + 1 the 32-bit one. */
static size_t set_count(uint8_t *dst, uint8_t fix, uint8_t type, size_t n)
{
    switch (count_size(n)) {
    case 0:
        return set_head(dst, (uint8_t)(fix | n), 0, 0);
    case 2:
        return set_head(dst, type, n, 2);
    default:
        return set_head(dst, (uint8_t)(type + 1), n, 4);
    }
}

static void put_value(struct packer *to, int level);

static void put_array(struct packer *to, int level, size_t n)
{
    uint8_t *dst = script_out_room(to->lua, to->out, LONG_HEAD);
    to->out->len += set_count(dst, 0x90, 0xdc, n);
    for (size_t i = 1; i <= n; i++) {
        lua_rawgeti(to->lua, -1, (int)i);
        put_value(to, level + 1);
    }
}

/* The first key and its value are on the stack, and are popped. The number of entries is written
 * after them: it is known then, and for most maps it has its own place already. */
static void put_map(struct packer *to, int level)
{
    lua_State *L = to->lua;
    size_t at = to->out->len, n = 0;
    put_byte(to, 0x80);
    do {
        lua_pushvalue(L, -2);
        put_value(to, level + 1);
        put_value(to, level + 1);
        n++;
    } while (lua_next(L, -2));
    unsigned size = count_size(n);
    if (size > 0) {
        script_out_room(L, to->out, size);
        memmove(to->out->ptr + at + 1 + size, to->out->ptr + at + 1, to->out->len - at - 1);
        to->out->len += size;
    }
    set_count(to->out->ptr + at, 0x80, 0xde, n);
}

static void put_table(struct packer *to, int level)
{
    lua_State *L = to->lua;
    size_t n;
    luaL_checkstack(L, 4, "in function mp_encode_lua_table_as_map");
    script_work(L, 1 + lua_objlen(L, -1));
    if (script_is_locked(L, lua_gettop(L))) {
        script_push_real(L, lua_gettop(L));
        lua_replace(L, -2);
    }
    lua_pushnil(L);
    if (!lua_next(L, -2)) {
        put_byte(to, 0x90);
        return;
    }
    if (lua_type(L, -2) == LUA_TNUMBER) {
        lua_pop(L, 2);
        if (count_entries(L, &n)) {
            put_array(to, level, n);
            return;
        }
        lua_pushnil(L);
        lua_next(L, -2);
    }
    put_map(to, level);
}

/* Pops it. */
static void put_value(struct packer *to, int level)
{
    lua_State *L = to->lua;
    size_t len;
    const char *text;
    int type = lua_type(L, -1);
    if (type == LUA_TTABLE && level == LEVELS)
        type = LUA_TNIL;
    switch (type) {
    case LUA_TSTRING:
        text = lua_tolstring(L, -1, &len);
        put_text(to, text, len);
        break;
    case LUA_TBOOLEAN:
        put_byte(to, lua_toboolean(L, -1) ? 0xc3 : 0xc2);
        break;
    case LUA_TNUMBER:
        put_number(to, lua_tonumber(L, -1));
        break;
    case LUA_TTABLE:
        put_table(to, level);
        break;
    default:
        put_byte(to, 0xc0);
    }
    lua_pop(L, 1);
}

static int lua_pack(lua_State *L)
{
    int argc = lua_gettop(L);
    struct packer to = {.lua = L, .out = script_out(L)};
    if (argc == 0)
        return luaL_argerror(L, 0, "MessagePack pack needs input.");
    if (!lua_checkstack(L, argc))
        return luaL_argerror(L, 0, "Too many arguments for MessagePack pack.");
    for (int i = 1; i <= argc; i++) {
        lua_pushvalue(L, i);
        put_value(&to, 0);
    }
    script_out_push(L, to.out);
    return 1;
}

/* ---- unpack ---- */

struct unpacker {
    lua_State *lua;
    const uint8_t *p;
    size_t left;
};

static void need(struct unpacker *in, size_t n)
{
    if (in->left < n)
        luaL_error(in->lua, "Missing bytes in input.");
}

static void skip(struct unpacker *in, size_t n)
{
    in->p += n;
    in->left -= n;
}

/* A big-endian number after the type byte. */
static uint64_t take_number(struct unpacker *in, unsigned size)
{
    uint64_t n = 0;
    need(in, 1 + size);
    for (unsigned i = 1; i <= size; i++)
        n = n << 8 | in->p[i];
    skip(in, 1 + size);
    return n;
}

static void push_text(struct unpacker *in, uint64_t len)
{
    need(in, len);
    lua_pushlstring(in->lua, (const char *)in->p, len);
    skip(in, len);
}

static void push_value(struct unpacker *in);

/* The table as it grows value by value: nil leaves it as it is. From index `from` on. */
static void append(struct unpacker *in, uint64_t from, uint64_t n)
{
    for (uint64_t i = from; i <= n; i++) {
        push_value(in);
        /* Without a value there is no key either: the rest of the input is shorter than INT_MAX. */
        lua_rawseti(in->lua, -2, (int)i);
    }
}

/* The table below nil, which is popped, becomes one that has grown to i - 1 values. */
static void append_nil(lua_State *L, int i)
{
    lua_createtable(L, script_array_size(i - 1), 0);
    for (int k = 1; k < i; k++) {
        lua_rawgeti(L, -3, k);
        lua_rawseti(L, -2, k);
    }
    lua_replace(L, -3);
    lua_rawseti(L, -2, i);
}

/* A table of the right size is made at once, unless a value is nil. */
static void push_array(struct unpacker *in, uint64_t n)
{
    enum { KNOWN_MAX = 256 }; /* a claim of the input, which can be wrong */
    lua_State *L = in->lua;
    luaL_checkstack(L, 3, "in function mp_decode_to_lua_array");
    uint64_t known = n < KNOWN_MAX ? n : KNOWN_MAX;
    lua_createtable(L, script_array_size((int)known), 0);
    for (uint64_t i = 1; i <= known; i++) {
        push_value(in);
        if (lua_isnil(L, -1)) {
            append_nil(L, (int)i);
            append(in, i + 1, n);
            return;
        }
        lua_rawseti(L, -2, (int)i);
    }
    append(in, known + 1, n);
}

static void push_map(struct unpacker *in, uint64_t n)
{
    lua_State *L = in->lua;
    lua_newtable(L);
    luaL_checkstack(L, 2, "in function mp_decode_to_lua_hash");
    for (uint64_t i = 0; i < n; i++) {
        push_value(in);
        push_value(in);
        lua_rawset(L, -3);
    }
}

static void push_float(struct unpacker *in)
{
    uint32_t bits = (uint32_t)take_number(in, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    lua_pushnumber(in->lua, value);
}

static void push_double(struct unpacker *in)
{
    uint64_t bits = take_number(in, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    lua_pushnumber(in->lua, value);
}

static void push_integer(struct unpacker *in, int64_t value)
{
    lua_pushnumber(in->lua, (lua_Number)value);
}

/* Types of one byte that holds a length or a value. */
static void push_fixed(struct unpacker *in)
{
    uint8_t type = in->p[0];
    if (type < 0x80 || type >= 0xe0)
        lua_pushnumber(in->lua, (int8_t)type);
    else if (type >= 0xc0)
        luaL_error(in->lua, "Bad data format in input.");
    skip(in, 1);
    if (type >= 0x80 && type < 0x90)
        push_map(in, type & 0x0f);
    else if (type >= 0x90 && type < 0xa0)
        push_array(in, type & 0x0f);
    else if (type >= 0xa0 && type < 0xc0)
        push_text(in, type & 0x1f);
}

static void push_value(struct unpacker *in)
{
    lua_State *L = in->lua;
    need(in, 1);
    luaL_checkstack(L, 1,
                    "too many return values at once; use unpack_one or unpack_limit instead.");
    switch (in->p[0]) {
    case 0xc0:
        skip(in, 1);
        lua_pushnil(L);
        break;
    case 0xc2:
    case 0xc3:
        lua_pushboolean(L, in->p[0] == 0xc3);
        skip(in, 1);
        break;
    case 0xca:
        push_float(in);
        break;
    case 0xcb:
        push_double(in);
        break;
    case 0xcc:
        push_integer(in, (int64_t)take_number(in, 1));
        break;
    case 0xcd:
        push_integer(in, (int64_t)take_number(in, 2));
        break;
    case 0xce:
        push_integer(in, (int64_t)take_number(in, 4));
        break;
    case 0xcf:
    case 0xd3:
        push_integer(in, (int64_t)take_number(in, 8));
        break;
    case 0xd0:
        push_integer(in, (int8_t)take_number(in, 1));
        break;
    case 0xd1:
        push_integer(in, (int16_t)take_number(in, 2));
        break;
    case 0xd2:
        push_integer(in, (int32_t)take_number(in, 4));
        break;
    case 0xd9:
        push_text(in, take_number(in, 1));
        break;
    case 0xda:
        push_text(in, take_number(in, 2));
        break;
    case 0xdb:
        push_text(in, take_number(in, 4));
        break;
    case 0xdc:
        push_array(in, take_number(in, 2));
        break;
    case 0xdd:
        push_array(in, take_number(in, 4));
        break;
    case 0xde:
        push_map(in, take_number(in, 2));
        break;
    case 0xdf:
        push_map(in, take_number(in, 4));
        break;
    default:
        push_fixed(in);
    }
}

/* The text is the only value on the stack. */
static int unpack(lua_State *L, lua_Integer limit, lua_Integer offset)
{
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    bool all = limit == 0 && offset == 0;
    if (offset < 0 || limit < 0)
        return luaL_error(L, "Invalid request to unpack with offset of %d and limit of %d.",
                          (int)offset, (int)len);
    if ((size_t)offset > len)
        return luaL_error(L, "Start offset %d greater than input length %d.", (int)offset,
                          (int)len);
    struct unpacker in = {L, (const uint8_t *)text + offset, len - (size_t)offset};
    if (all)
        limit = INT_MAX;
    int n = 0;
    for (; in.left > 0 && n < limit; n++)
        push_value(&in);
    if (all)
        return n;
    luaL_checkstack(L, 1, "in function mp_unpack_full");
    lua_pushinteger(L, in.left == 0 ? -1 : (lua_Integer)(len - in.left));
    lua_insert(L, 2);
    return n + 1;
}

static int lua_unpack(lua_State *L)
{
    return unpack(L, 0, 0);
}

static int lua_unpack_one(lua_State *L)
{
    lua_Integer offset = luaL_optinteger(L, 2, 0);
    lua_settop(L, 1);
    return unpack(L, 1, offset);
}

static int lua_unpack_limit(lua_State *L)
{
    lua_Integer limit = luaL_checkinteger(L, 2);
    lua_Integer offset = luaL_optinteger(L, 3, 0);
    lua_settop(L, 1);
    return unpack(L, limit, offset);
}

/* ---- the table ---- */

void script_open_cmsgpack(lua_State *L)
{
    static const luaL_Reg all[] = {{"pack", lua_pack},
                                   {"unpack", lua_unpack},
                                   {"unpack_one", lua_unpack_one},
                                   {"unpack_limit", lua_unpack_limit},
                                   {NULL, NULL}};
    static const char *const about[][2] = {
        {"_NAME", "cmsgpack"},
        {"_VERSION", "lua-cmsgpack 0.4.0"},
        {"_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"},
        {"_DESCRIPTION", "MessagePack C implementation for Lua"},
    };
    lua_newtable(L);
    luaL_register(L, NULL, all);
    for (size_t i = 0; i < sizeof about / sizeof *about; i++) {
        lua_pushstring(L, about[i][1]);
        lua_setfield(L, -2, about[i][0]);
    }
}
