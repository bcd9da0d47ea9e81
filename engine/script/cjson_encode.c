/* cjson.encode() */
#include "base/num.h"
#include "engine/script/cjson.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct encoder {
    lua_State *lua;
    const struct cjson *cjson;
    struct rd_buf *out;
    lua_Number plain; /* integers below this are their digits */
};

static void add(struct encoder *to, const char *ptr, size_t len)
{
    script_out_add(to->lua, to->out, ptr, len);
}

static void add_byte(struct encoder *to, char byte)
{
    *script_out_room(to->lua, to->out, 1) = (uint8_t)byte;
    to->out->len++;
}

static int fail(struct encoder *to, int idx, const char *why)
{
    return luaL_error(to->lua, "Cannot serialise %s: %s",
                      lua_typename(to->lua, lua_type(to->lua, idx)), why);
}

/* ---- strings ---- */

/* Bytes that have an escape. */
static const bool special[UINT8_MAX + 1] = {
    [0] = true,  [1] = true,  [2] = true,   [3] = true,   [4] = true,    [5] = true,
    [6] = true,  [7] = true,  [8] = true,   [9] = true,   [10] = true,   [11] = true,
    [12] = true, [13] = true, [14] = true,  [15] = true,  [16] = true,   [17] = true,
    [18] = true, [19] = true, [20] = true,  [21] = true,  [22] = true,   [23] = true,
    [24] = true, [25] = true, [26] = true,  [27] = true,  [28] = true,   [29] = true,
    [30] = true, [31] = true, ['"'] = true, ['/'] = true, ['\\'] = true, [0x7f] = true,
};

static size_t escape(uint8_t *dst, uint8_t byte)
{
    static const char named[] = "\bb\tt\nn\ff\rr\"\"\\\\//";
    static const char digits[] = "0123456789abcdef";
    dst[0] = '\\';
    for (const char *p = named; *p != '\0'; p += 2)
        if ((uint8_t)*p == byte) {
            dst[1] = (uint8_t)p[1];
            return 2;
        }
    memcpy(dst + 1, "u00", 3);
    dst[4] = (uint8_t)digits[byte >> 4];
    dst[5] = (uint8_t)digits[byte & 15];
    return 6;
}

/* There is room for the text between quotes; each byte that has an escape needs more. */
static void put_text(struct encoder *to, int idx)
{
    enum { ESCAPE_MAX = 6 };
    size_t len;
    const uint8_t *p = (const uint8_t *)lua_tolstring(to->lua, idx, &len), *end = p + len;
    uint8_t *dst = script_out_room(to->lua, to->out, len + 2);
    *dst++ = '"';
    for (; p < end; p++) {
        if (!special[*p]) {
            *dst++ = *p;
            continue;
        }
        to->out->len = (size_t)(dst - to->out->ptr);
        dst = script_out_room(to->lua, to->out, (size_t)(end - p) + ESCAPE_MAX);
        dst += escape(dst, *p);
    }
    *dst++ = '"';
    to->out->len = (size_t)(dst - to->out->ptr);
}

/* ---- numbers ---- */

static void put_number(struct encoder *to, int idx)
{
    enum { NUMBER_LEN = 40 };
    lua_Number n = lua_tonumber(to->lua, idx);
    bool odd = isnan(n) || isinf(n);
    if (odd && to->cjson->encode_invalid == CJSON_REFUSE)
        fail(to, idx, "must not be NaN or Inf");
    if (odd && to->cjson->encode_invalid == CJSON_NULL) {
        add(to, "null", 4);
        return;
    }
    if (isnan(n)) {
        add(to, "nan", 3);
        return;
    }
    char *dst = (char *)script_out_room(to->lua, to->out, NUMBER_LEN);
    if (n > -to->plain && n < to->plain && n == (lua_Number)(int64_t)n && (n != 0 || !signbit(n)))
        to->out->len += rd_num_put_i64(dst, (int64_t)n);
    else
        to->out->len += (size_t)snprintf(dst, NUMBER_LEN, "%.*g", to->cjson->precision, n);
}

/* ---- tables ---- */

/* The length of the array on top of the stack; 0 or less: it is not an array. */
static int array_len(struct encoder *to)
{
    lua_State *L = to->lua;
    int max = 0, n = 0;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_Number key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
        if (!(key >= 1) || floor(key) != key) {
            lua_pop(L, 2);
            return -1;
        }
        if (key > max)
            max = key <= INT_MAX ? (int)key : INT_MIN;
        n++;
        lua_pop(L, 1);
    }
    const struct cjson *cjson = to->cjson;
    if (cjson->sparse_ratio > 0 && max > (int64_t)n * cjson->sparse_ratio &&
        max > cjson->sparse_safe) {
        if (!cjson->sparse_convert)
            fail(to, -1, "excessively sparse array");
        return -1;
    }
    return max;
}

static void put_value(struct encoder *to, int depth);

static void put_array(struct encoder *to, int depth, int n)
{
    add_byte(to, '[');
    for (int i = 1; i <= n; i++) {
        if (i > 1)
            add_byte(to, ',');
        lua_rawgeti(to->lua, -1, i);
        put_value(to, depth);
        lua_pop(to->lua, 1);
    }
    add_byte(to, ']');
}

static void put_key(struct encoder *to)
{
    int type = lua_type(to->lua, -2);
    if (type == LUA_TSTRING) {
        put_text(to, -2);
    } else if (type == LUA_TNUMBER) {
        add_byte(to, '"');
        put_number(to, -2);
        add_byte(to, '"');
    } else {
        fail(to, -2, "table key must be a number or string");
    }
    add_byte(to, ':');
}

static void put_object(struct encoder *to, int depth)
{
    bool first = true;
    add_byte(to, '{');
    lua_pushnil(to->lua);
    for (; lua_next(to->lua, -2); first = false) {
        if (!first)
            add_byte(to, ',');
        put_key(to);
        put_value(to, depth);
        lua_pop(to->lua, 1);
    }
    add_byte(to, '}');
}

static void put_table(struct encoder *to, int depth)
{
    lua_State *L = to->lua;
    if (depth > to->cjson->encode_depth || !lua_checkstack(L, 3))
        luaL_error(L, "Cannot serialise, excessive nesting (%d)", depth);
    script_work(L, 1 + lua_objlen(L, -1));
    bool locked = script_is_locked(L, lua_gettop(L));
    if (locked) {
        luaL_checkstack(L, 4, "too many nested tables");
        script_push_real(L, lua_gettop(L));
    }
    int n = array_len(to);
    if (n > 0)
        put_array(to, depth, n);
    else
        put_object(to, depth);
    if (locked)
        lua_pop(L, 1);
}

static void put_value(struct encoder *to, int depth)
{
    switch (lua_type(to->lua, -1)) {
    case LUA_TSTRING:
        put_text(to, -1);
        return;
    case LUA_TNUMBER:
        put_number(to, -1);
        return;
    case LUA_TBOOLEAN:
        if (lua_toboolean(to->lua, -1))
            add(to, "true", 4);
        else
            add(to, "false", 5);
        return;
    case LUA_TTABLE:
        put_table(to, depth + 1);
        return;
    case LUA_TNIL:
        add(to, "null", 4);
        return;
    case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(to->lua, -1) == NULL) {
            add(to, "null", 4);
            return;
        }
    }
    fail(to, -1, "type not supported");
}

int script_cjson_encode(lua_State *L)
{
    struct encoder to = {.lua = L, .cjson = script_cjson(L), .out = script_out(L), .plain = 1};
    luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
    for (int i = 0; i < to.cjson->precision; i++)
        to.plain *= 10;
    put_value(&to, 0);
    script_out_push(L, to.out);
    return 1;
}
