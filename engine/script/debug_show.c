/* Values of Lua and replies of commands as the debugger shows them. */
#include "engine/script/debug.h"

#include "base/num.h"
#include "base/words.h"

enum { DEPTH_MAX = 10 };

static void put(struct rd_buf *out, const char *text)
{
    rd_buf_add(out, text, strlen(text));
}

/* ---- values ---- */

static void put_value(lua_State *L, struct rd_buf *out, int depth);

static bool is_array(lua_State *L)
{
    int expected = 1;
    bool ok = true;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        ok = ok && lua_type(L, -2) == LUA_TNUMBER && lua_tonumber(L, -2) == expected++;
        lua_pop(L, 1);
    }
    return ok;
}

/* The table on top of the stack. */
static void put_table(lua_State *L, struct rd_buf *out, int depth)
{
    bool array = is_array(L), first = true;
    rd_buf_add_byte(out, '{');
    lua_pushnil(L);
    for (; lua_next(L, -2); first = false) {
        if (!first)
            put(out, "; ");
        if (!array) {
            rd_buf_add_byte(out, '[');
            lua_pushvalue(L, -2);
            put_value(L, out, depth);
            put(out, "]=");
        }
        put_value(L, out, depth); /* pops it: the key is on top for lua_next() */
    }
    rd_buf_add_byte(out, '}');
}

static void put_other(lua_State *L, struct rd_buf *out)
{
    int type = lua_type(L, -1);
    const char *name = type == LUA_TFUNCTION   ? "function"
                       : type == LUA_TUSERDATA ? "userdata"
                       : type == LUA_TTHREAD   ? "thread"
                                               : "light-userdata";
    rd_buf_printf(out, "\"%s@%p\"", name, lua_topointer(L, -1));
}

/* Pops the value. */
static void put_value(lua_State *L, struct rd_buf *out, int depth)
{
    size_t len;
    const char *text;
    if (depth == DEPTH_MAX || !lua_checkstack(L, 4)) {
        put(out, "<max recursion level reached! Nested table?>");
        lua_pop(L, 1);
        return;
    }
    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        text = lua_tolstring(L, -1, &len);
        rd_words_quote(out, rd_slice(text, len));
        break;
    case LUA_TBOOLEAN:
        put(out, lua_toboolean(L, -1) ? "true" : "false");
        break;
    case LUA_TNUMBER:
        rd_buf_printf(out, "%g", lua_tonumber(L, -1));
        break;
    case LUA_TNIL:
        put(out, "nil");
        break;
    case LUA_TTABLE:
        put_table(L, out, depth + 1);
        break;
    default:
        put_other(L, out);
    }
    lua_pop(L, 1);
}

void debug_put_value(lua_State *L, int idx, struct rd_buf *out)
{
    lua_pushvalue(L, idx);
    put_value(L, out, 0);
}

/* ---- replies ---- */

struct cursor {
    const uint8_t *p, *end;
};

static struct rd_slice take_line(struct cursor *in)
{
    const uint8_t *from = in->p;
    const uint8_t *end = memchr(from, '\r', (size_t)(in->end - from));
    if (end == NULL)
        end = in->end;
    in->p = end + 2 < in->end ? end + 2 : in->end;
    return rd_slice(from, (size_t)(end - from));
}

static void put_reply(struct cursor *in, struct rd_buf *out);

static void put_items(struct cursor *in, struct rd_buf *out, int64_t n, const char *open,
                      const char *close, bool pairs)
{
    put(out, open);
    for (int64_t i = 0; i < n && in->p < in->end; i++) {
        if (i > 0)
            put(out, ",");
        put_reply(in, out);
        if (!pairs)
            continue;
        put(out, " => ");
        put_reply(in, out);
    }
    put(out, close);
}

static void put_bulk(struct cursor *in, struct rd_buf *out, int64_t len)
{
    size_t left = (size_t)(in->end - in->p);
    if (len < 0) {
        put(out, "NULL");
        return;
    }
    size_t n = (uint64_t)len < left ? (size_t)len : left;
    rd_words_quote(out, rd_slice(in->p, n));
    in->p += n + 2 < left ? n + 2 : left;
}

static void put_reply(struct cursor *in, struct rd_buf *out)
{
    if (in->p >= in->end)
        return;
    struct rd_slice line = take_line(in);
    struct rd_slice rest = rd_slice(line.ptr + 1, line.len - 1);
    int64_t n = 0;
    rd_num_get_i64(rest, &n);
    switch (line.ptr[0]) {
    case ':':
        rd_buf_add(out, rest.ptr, rest.len);
        break;
    case '$':
        put_bulk(in, out, n);
        break;
    case '*':
        if (n < 0)
            put(out, "NULL");
        else
            put_items(in, out, n, "[", "]", false);
        break;
    case '~':
        put_items(in, out, n, "~(", ")", false);
        break;
    case '%':
        put_items(in, out, n, "{", "}", true);
        break;
    case '_':
        put(out, "(null)");
        break;
    case ',':
        put(out, "(double) ");
        rd_buf_add(out, rest.ptr, rest.len);
        break;
    case '+':
    case '-':
        rd_words_quote(out, line);
        break;
    default: /* texts with a format, which servers do not show either */
        in->p = in->end;
    }
}

void debug_put_reply(struct rd_slice reply, struct rd_buf *out)
{
    struct cursor in = {reply.ptr, reply.ptr + reply.len};
    put_reply(&in, out);
}
