/* The library `struct`: values in the layout of C structs.
 *
 *     > < !N        big endian, little endian, alignment to at most N (a power of 2)
 *     b B h H l L   signed and unsigned integers of 1, 2 and 8 bytes; T: as L
 *     iN IN         of N bytes, 4 by default
 *     f d           float, double
 *     cN            N bytes of a string; c0: the whole string, or the length read before
 *     s             a string and a byte 0
 *     x             a byte 0
 */
#include "engine/script/vm_impl.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <string.h>

enum { INT_SIZE_MAX = 32, ALIGN_DEFAULT = 8 };

struct layout {
    lua_State *lua;
    const char *fmt;
    bool big;
    int align;
};

static int take_count(struct layout *in, int otherwise)
{
    int n = 0;
    if (*in->fmt < '0' || *in->fmt > '9')
        return otherwise;
    for (; *in->fmt >= '0' && *in->fmt <= '9'; in->fmt++) {
        int digit = *in->fmt - '0';
        if (n > (INT_MAX - digit) / 10)
            luaL_error(in->lua, "integral size overflow");
        n = n * 10 + digit;
    }
    return n;
}

/* 0: the option has no size of its own. */
static size_t take_size(struct layout *in, char option)
{
    int n;
    switch (option) {
    case 'b':
    case 'B':
    case 'x':
        return 1;
    case 'h':
    case 'H':
        return sizeof(short);
    case 'l':
    case 'L':
    case 'T':
        return sizeof(uint64_t);
    case 'f':
        return sizeof(float);
    case 'd':
        return sizeof(double);
    case 'c':
        return (size_t)take_count(in, 1);
    case 'i':
    case 'I':
        n = take_count(in, sizeof(int));
        if (n > INT_SIZE_MAX)
            luaL_error(in->lua, "integral size %d is larger than limit of %d", n,
                       (int)INT_SIZE_MAX);
        return (size_t)n;
    default:
        return 0;
    }
}

static bool is_integer(char option)
{
    return option != '\0' && strchr("bBhHlLTiI", option) != NULL;
}

static size_t padding(const struct layout *in, size_t at, char option, size_t size)
{
    if (size == 0 || option == 'c')
        return 0;
    if (size > (size_t)in->align)
        size = (size_t)in->align;
    return (size - (at & (size - 1))) & (size - 1);
}

/* Byte order, alignment, blanks; an error for all others. */
static void control(struct layout *in, char option)
{
    if (option == '>' || option == '<') {
        in->big = option == '>';
    } else if (option == '!') {
        int n = take_count(in, ALIGN_DEFAULT);
        if (n <= 0 || (n & (n - 1)) != 0)
            luaL_error(in->lua, "alignment %d is not a power of 2", n);
        in->align = n;
    } else if (option != ' ') {
        luaL_argerror(in->lua, 1, lua_pushfstring(in->lua, "invalid format option '%c'", option));
    }
}

/* ---- pack ---- */

/* As a conversion of C on x86-64, also out of range. */
static uint64_t to_bits(lua_Number n)
{
    if (n >= 18446744073709551616.0)
        return 0;
    if (n >= 9223372036854775808.0)
        return (uint64_t)n;
    return n >= -9223372036854775808.0 ? (uint64_t)(int64_t)n : (uint64_t)INT64_MIN;
}

static void put_bytes(struct layout *in, struct rd_buf *out, const uint8_t *little, size_t size)
{
    uint8_t *dst = script_out_room(in->lua, out, size);
    for (size_t i = 0; i < size; i++)
        dst[i] = little[in->big ? size - 1 - i : i];
    out->len += size;
}

static void put_integer(struct layout *in, struct rd_buf *out, lua_Number n, size_t size)
{
    uint8_t bytes[INT_SIZE_MAX];
    uint64_t bits = to_bits(n);
    for (size_t i = 0; i < size; i++, bits >>= 8)
        bytes[i] = (uint8_t)bits;
    put_bytes(in, out, bytes, size);
}

/* Returns the bytes that count for the alignment of what follows. */
static size_t put_text(struct layout *in, struct rd_buf *out, int arg, char option, size_t size)
{
    size_t len;
    const char *text = luaL_checklstring(in->lua, arg, &len);
    if (size == 0)
        size = len;
    luaL_argcheck(in->lua, len >= size, arg + 1, "string too short");
    script_out_add(in->lua, out, text, size);
    if (option != 's')
        return size;
    script_out_add(in->lua, out, "", 1);
    return size + 1;
}

static const char *check_format(lua_State *L)
{
    const char *fmt = luaL_checkstring(L, 1);
    script_work(L, lua_objlen(L, 1));
    return fmt;
}

static int lua_pack(lua_State *L)
{
    struct layout in = {.lua = L, .fmt = check_format(L), .align = 1};
    struct rd_buf *out = script_out(L);
    size_t total = 0;
    int arg = 2;
    lua_pushnil(L); /* redis-server says "got nil" of a missing argument */
    while (*in.fmt != '\0') {
        static const uint8_t zeros[INT_SIZE_MAX];
        char option = *in.fmt++;
        size_t size = take_size(&in, option);
        size_t gap = padding(&in, total, option, size);
        script_out_add(L, out, zeros, gap);
        total += gap;
        if (is_integer(option)) {
            put_integer(&in, out, luaL_checknumber(L, arg++), size);
        } else if (option == 'x') {
            script_out_add(L, out, zeros, 1);
        } else if (option == 'f') {
            float value = (float)luaL_checknumber(L, arg++);
            put_bytes(&in, out, (const uint8_t *)&value, sizeof value);
        } else if (option == 'd') {
            double value = luaL_checknumber(L, arg++);
            put_bytes(&in, out, (const uint8_t *)&value, sizeof value);
        } else if (option == 'c' || option == 's') {
            size = put_text(&in, out, arg++, option, size);
        } else {
            control(&in, option);
        }
        total += size;
    }
    script_out_push(L, out);
    return 1;
}

/* ---- unpack ---- */

static void get_bytes(const struct layout *in, const uint8_t *p, uint8_t *ret_little, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ret_little[i] = p[in->big ? size - 1 - i : i];
}

static lua_Number get_integer(const struct layout *in, const uint8_t *p, char option, size_t size)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < size && size > 0; i++) {
        uint8_t byte = p[in->big ? i : size - 1 - i];
        bits = bits << 8 | byte;
    }
    if (option >= 'A' && option <= 'Z')
        return (lua_Number)bits;
    uint64_t high = size == 0 ? 0 : ~(uint64_t)0 << ((size * 8 - 1) & 63);
    if (bits & high)
        bits |= high;
    return (lua_Number)(int64_t)bits;
}

static void check_room(lua_State *L, size_t len, size_t at, size_t size)
{
    luaL_argcheck(L, size <= len && at <= len - size, 2, "data string too short");
}

struct unpacked {
    const uint8_t *data;
    size_t len;
    size_t at;
    int n; /* values pushed */
};

/* The length that was read before it. */
static size_t take_length(struct layout *in, struct unpacked *from)
{
    lua_State *L = in->lua;
    if (from->n == 0 || !lua_isnumber(L, -1))
        luaL_error(L, "format 'c0' needs a previous size");
    lua_Number n = lua_tonumber(L, -1);
    lua_pop(L, 1);
    from->n--;
    size_t size = n > -1 && n < 9007199254740992.0 ? (size_t)(n > 0 ? n : 0) : SIZE_MAX;
    check_room(L, from->len, from->at, size);
    return size;
}

/* Pushes one value; returns its bytes. */
static size_t unpack_value(struct layout *in, struct unpacked *from, char option, size_t size)
{
    lua_State *L = in->lua;
    const uint8_t *p = from->data + from->at;
    if (is_integer(option)) {
        lua_pushnumber(L, get_integer(in, p, option, size));
    } else if (option == 'f') {
        float value;
        get_bytes(in, p, (uint8_t *)&value, sizeof value);
        lua_pushnumber(L, value);
    } else if (option == 'd') {
        double value;
        get_bytes(in, p, (uint8_t *)&value, sizeof value);
        lua_pushnumber(L, value);
    } else if (option == 'c') {
        if (size == 0)
            size = take_length(in, from);
        lua_pushlstring(L, (const char *)p, size);
    } else if (option == 's') {
        const uint8_t *end = memchr(p, '\0', from->len - from->at);
        if (end == NULL)
            luaL_error(L, "unfinished string in data");
        size = (size_t)(end - p) + 1;
        lua_pushlstring(L, (const char *)p, size - 1);
    } else {
        if (option != 'x')
            control(in, option);
        return size;
    }
    from->n++;
    return size;
}

static int lua_unpack(lua_State *L)
{
    struct layout in = {.lua = L, .fmt = check_format(L), .align = 1};
    struct unpacked from = {0};
    from.data = (const uint8_t *)luaL_checklstring(L, 2, &from.len);
    lua_Integer begin = luaL_optinteger(L, 3, 1);
    luaL_argcheck(L, begin != 0, 3, "offset must be 1 or greater");
    from.at = (size_t)begin - 1;
    while (*in.fmt != '\0') {
        char option = *in.fmt++;
        size_t size = take_size(&in, option);
        from.at += padding(&in, from.at, option, size);
        check_room(L, from.len, from.at, size);
        luaL_checkstack(L, 2, "too many results");
        from.at += unpack_value(&in, &from, option, size);
    }
    lua_pushinteger(L, (lua_Integer)from.at + 1);
    return from.n + 1;
}

static int lua_size(lua_State *L)
{
    struct layout in = {.lua = L, .fmt = check_format(L), .align = 1};
    size_t at = 0;
    while (*in.fmt != '\0') {
        char option = *in.fmt++;
        size_t size = take_size(&in, option);
        at += padding(&in, at, option, size);
        if (option == 's')
            return luaL_argerror(L, 1, "option 's' has no fixed size");
        if (option == 'c' && size == 0)
            return luaL_argerror(L, 1, "option 'c0' has no fixed size");
        if (!isalnum((unsigned char)option))
            control(&in, option);
        at += size;
    }
    lua_pushinteger(L, (lua_Integer)at);
    return 1;
}

void script_open_struct(lua_State *L)
{
    static const luaL_Reg all[] = {
        {"pack", lua_pack}, {"unpack", lua_unpack}, {"size", lua_size}, {NULL, NULL}};
    lua_newtable(L);
    luaL_register(L, NULL, all);
}
