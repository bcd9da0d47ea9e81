/* Replies to Lua values, and back. */
#include "engine/script/run_impl.h"

#include "base/num.h"

#include <math.h>
#include <stdlib.h>

/* ---- replies to Lua ---- */

struct cursor {
    lua_State *lua;
    const char *p, *end;
};

static void push_value(struct cursor *in);

/* The rest of a line, without its end. */
static struct rd_slice take_line(struct cursor *in)
{
    const char *from = in->p;
    const char *end = memchr(from, '\r', (size_t)(in->end - from));
    if (end == NULL)
        luaL_error(in->lua, "incomplete reply");
    in->p = end + 2;
    return rd_slice(from, (size_t)(end - from));
}

static int64_t take_number(struct cursor *in)
{
    int64_t value = 0;
    struct rd_slice line = take_line(in);
    if (!rd_num_get_i64(line, &value))
        luaL_error(in->lua, "number in a reply");
    return value;
}

static struct rd_slice take_bulk(struct cursor *in, int64_t len)
{
    if (len > in->end - in->p)
        luaL_error(in->lua, "incomplete reply");
    struct rd_slice bytes = rd_slice(in->p, (size_t)len);
    in->p += len + 2;
    return bytes;
}

static void push_bytes(lua_State *L, struct rd_slice bytes)
{
    lua_pushlstring(L, (const char *)bytes.ptr, bytes.len);
}

static void push_field(lua_State *L, const char *name, struct rd_slice bytes)
{
    lua_createtable(L, 0, 1);
    push_bytes(L, bytes);
    lua_setfield(L, -2, name);
}

static void push_array(struct cursor *in, int64_t n)
{
    lua_State *L = in->lua;
    lua_createtable(L, n < INT32_MAX ? (int)n : 0, 0);
    for (int64_t i = 1; i <= n; i++) {
        push_value(in);
        lua_rawseti(L, -2, (int)i);
    }
}

static void push_map(struct cursor *in, int64_t n)
{
    lua_State *L = in->lua;
    lua_createtable(L, 0, 1);
    lua_newtable(L);
    for (int64_t i = 0; i < n; i++) {
        push_value(in);
        push_value(in);
        lua_settable(L, -3);
    }
    lua_setfield(L, -2, "map");
}

static void push_set(struct cursor *in, int64_t n)
{
    lua_State *L = in->lua;
    lua_createtable(L, 0, 1);
    lua_newtable(L);
    for (int64_t i = 0; i < n; i++) {
        push_value(in);
        lua_pushboolean(L, 1);
        lua_settable(L, -3);
    }
    lua_setfield(L, -2, "set");
}

static void push_double(struct cursor *in)
{
    char text[64];
    struct rd_slice line = take_line(in);
    size_t len = line.len < sizeof text - 1 ? line.len : sizeof text - 1;
    memcpy(text, line.ptr, len);
    text[len] = '\0';
    lua_createtable(in->lua, 0, 1);
    lua_pushnumber(in->lua, strtod(text, NULL));
    lua_setfield(in->lua, -2, "double");
}

static void push_verbatim(struct cursor *in)
{
    lua_State *L = in->lua;
    struct rd_slice bytes = take_bulk(in, take_number(in));
    if (bytes.len < 4)
        luaL_error(L, "incomplete reply");
    lua_createtable(L, 0, 1);
    lua_createtable(L, 0, 2);
    push_bytes(L, rd_slice(bytes.ptr + 4, bytes.len - 4));
    lua_setfield(L, -2, "string");
    push_bytes(L, rd_slice(bytes.ptr, 3));
    lua_setfield(L, -2, "format");
    lua_setfield(L, -2, "verbatim_string");
}

/* The error was counted when its command ran. */
static void push_failure(struct cursor *in)
{
    struct rd_slice line = take_line(in);
    script_push_error(in->lua, (const char *)line.ptr - 1, line.len + 1);
    lua_pushboolean(in->lua, 1);
    lua_setfield(in->lua, -2, "ignore_error_stats_update");
}

static void push_bulk(struct cursor *in)
{
    int64_t len = take_number(in);
    if (len < 0)
        lua_pushboolean(in->lua, 0);
    else
        push_bytes(in->lua, take_bulk(in, len));
}

static void push_list(struct cursor *in)
{
    int64_t n = take_number(in);
    if (n < 0)
        lua_pushboolean(in->lua, 0);
    else
        push_array(in, n);
}

/* Scripts do not see attributes. */
static void skip_attribute(struct cursor *in)
{
    for (int64_t n = take_number(in) * 2; n > 0; n--) {
        push_value(in);
        lua_pop(in->lua, 1);
    }
    push_value(in);
}

static void push_value(struct cursor *in)
{
    lua_State *L = in->lua;
    if (in->p >= in->end)
        luaL_error(L, "incomplete reply");
    luaL_checkstack(L, 6, "reply of a command");
    switch (*in->p++) {
    case '+':
        push_field(L, "ok", take_line(in));
        break;
    case '-':
        push_failure(in);
        break;
    case ':':
        lua_pushnumber(L, (lua_Number)take_number(in));
        break;
    case '$':
        push_bulk(in);
        break;
    case '*':
    case '>':
        push_list(in);
        break;
    case '%':
        push_map(in, take_number(in));
        break;
    case '~':
        push_set(in, take_number(in));
        break;
    case '_':
        take_line(in);
        lua_pushnil(L);
        break;
    case '#':
        lua_pushboolean(L, take_line(in).ptr[0] == 't');
        break;
    case ',':
        push_double(in);
        break;
    case '|':
        skip_attribute(in);
        break;
    case '(':
        push_field(L, "big_number", take_line(in));
        break;
    case '=':
        push_verbatim(in);
        break;
    default:
        luaL_error(L, "unknown type in a reply");
    }
}

void script_push_reply(lua_State *L, const uint8_t *ptr, size_t len)
{
    struct cursor in = {L, (const char *)ptr, (const char *)ptr + len};
    push_value(&in);
}

/* ---- Lua to replies ---- */

/* As the conversion of C on x86-64 for values out of range. */
static int64_t to_integer(lua_Number n)
{
    return n >= -9223372036854775808.0 && n < 9223372036854775808.0 ? (int64_t)n : INT64_MIN;
}

/* Pushes the raw field; whether it has the type. If not, it is popped. */
static bool has_field(lua_State *L, const char *name, int type)
{
    script_raw_field(L, name);
    if (lua_type(L, -1) == type)
        return true;
    lua_pop(L, 1);
    return false;
}

static struct rd_slice text_at(lua_State *L, int idx)
{
    size_t len;
    const char *ptr = lua_tolstring(L, idx, &len);
    return rd_slice(ptr, len);
}

/* Up to the first byte 0, as servers do. */
static struct rd_slice c_text_at(lua_State *L, int idx)
{
    return rd_slice_str(lua_tostring(L, idx));
}

static bool is_counted(lua_State *L)
{
    script_raw_field(L, "ignore_error_stats_update");
    bool counted = lua_isboolean(L, -1) && lua_toboolean(L, -1);
    lua_pop(L, 1);
    return counted;
}

static bool add_special(lua_State *L, struct engine_reply *reply)
{
    if (has_field(L, "err", LUA_TSTRING)) {
        struct rd_slice text = c_text_at(L, -1);
        lua_pop(L, 1);
        reply->counted |= is_counted(L);
        engine_reply_error_bytes(reply, text);
    } else if (has_field(L, "ok", LUA_TSTRING)) {
        engine_reply_simple_bytes(reply, c_text_at(L, -1));
        lua_pop(L, 1);
    } else if (has_field(L, "double", LUA_TNUMBER)) {
        engine_reply_double(reply, lua_tonumber(L, -1));
        lua_pop(L, 1);
    } else if (has_field(L, "big_number", LUA_TSTRING)) {
        engine_reply_big_number(reply, text_at(L, -1));
        lua_pop(L, 1);
    } else {
        return false;
    }
    return true;
}

static bool add_verbatim(lua_State *L, struct engine_reply *reply)
{
    if (!has_field(L, "verbatim_string", LUA_TTABLE))
        return false;
    if (!has_field(L, "format", LUA_TSTRING)) {
        lua_pop(L, 1);
        return false;
    }
    char format[4] = "   ";
    const char *given = lua_tostring(L, -1);
    for (int i = 0; i < 3 && given[i] != '\0'; i++)
        format[i] = given[i];
    lua_pop(L, 1);
    if (!has_field(L, "string", LUA_TSTRING)) {
        lua_pop(L, 1);
        return false;
    }
    engine_reply_verbatim(reply, text_at(L, -1), format);
    lua_pop(L, 2);
    return true;
}

static bool add_map(lua_State *L, struct engine_reply *reply, unsigned proto)
{
    if (!has_field(L, "map", LUA_TTABLE))
        return false;
    size_t mark = engine_reply_mark(reply);
    uint64_t n = 0;
    lua_pushnil(L);
    for (; lua_next(L, -2); n++) {
        lua_pushvalue(L, -2);
        script_add_value(L, reply, proto);
        script_add_value(L, reply, proto);
    }
    engine_reply_mark_map(reply, mark, n);
    lua_pop(L, 1);
    return true;
}

static bool add_set(lua_State *L, struct engine_reply *reply, unsigned proto)
{
    if (!has_field(L, "set", LUA_TTABLE))
        return false;
    size_t mark = engine_reply_mark(reply);
    uint64_t n = 0;
    lua_pushnil(L);
    for (; lua_next(L, -2); n++) {
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        script_add_value(L, reply, proto);
    }
    engine_reply_mark_set(reply, mark, n);
    lua_pop(L, 1);
    return true;
}

/* Up to the first nil. */
static void add_array(lua_State *L, struct engine_reply *reply, unsigned proto)
{
    int n = 0;
    for (bool more = true; more; n += more) {
        lua_rawgeti(L, -1, n + 1);
        more = !lua_isnil(L, -1);
        lua_pop(L, 1);
    }
    engine_reply_array(reply, (uint64_t)n);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, -1, i);
        script_add_value(L, reply, proto);
    }
}

void script_add_value(lua_State *L, struct engine_reply *reply, unsigned proto)
{
    if (!lua_checkstack(L, 4)) {
        engine_reply_error(reply, "ERR reached lua stack limit");
        lua_pop(L, 1);
        return;
    }
    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        engine_reply_bulk(reply, text_at(L, -1));
        break;
    case LUA_TNUMBER:
        engine_reply_int(reply, to_integer(lua_tonumber(L, -1)));
        break;
    case LUA_TBOOLEAN:
        if (proto == 3)
            engine_reply_bool(reply, lua_toboolean(L, -1));
        else if (lua_toboolean(L, -1))
            engine_reply_int(reply, 1);
        else
            engine_reply_null(reply);
        break;
    case LUA_TTABLE:
        if (!add_special(L, reply) && !add_verbatim(L, reply) && !add_map(L, reply, proto) &&
            !add_set(L, reply, proto))
            add_array(L, reply, proto);
        break;
    default:
        engine_reply_null(reply);
    }
    lua_pop(L, 1);
}
