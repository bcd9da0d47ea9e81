/* cjson.decode(): a reader without look-ahead, one token at a time.
 *
 * Lua strings end with a byte 0, so the reader stops there without a comparison of pointers. A byte
 * 0 inside the text ends it too.
 */
#include "engine/script/cjson.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum token {
    TOKEN_OBJECT,
    TOKEN_OBJECT_END,
    TOKEN_ARRAY,
    TOKEN_ARRAY_END,
    TOKEN_STRING, /* its value is on the stack */
    TOKEN_NUMBER,
    TOKEN_BOOLEAN,
    TOKEN_NULL,
    TOKEN_COLON,
    TOKEN_COMMA,
    TOKEN_END,
    TOKEN_ERROR
};

struct decoder {
    lua_State *lua;
    const struct cjson *cjson;
    struct rd_buf *out;
    const char *text, *p;
    int depth;
    /* the token */
    const char *at;
    const char *error;
    double number;
    bool boolean;
};

static enum token fail(struct decoder *in, const char *why)
{
    in->error = why;
    in->at = in->p;
    return TOKEN_ERROR;
}

static void refuse(struct decoder *in, enum token token, const char *expected)
{
    static const char *const names[] = {
        [TOKEN_OBJECT] = "T_OBJ_BEGIN", [TOKEN_OBJECT_END] = "T_OBJ_END",
        [TOKEN_ARRAY] = "T_ARR_BEGIN",  [TOKEN_ARRAY_END] = "T_ARR_END",
        [TOKEN_STRING] = "T_STRING",    [TOKEN_NUMBER] = "T_NUMBER",
        [TOKEN_BOOLEAN] = "T_BOOLEAN",  [TOKEN_NULL] = "T_NULL",
        [TOKEN_COLON] = "T_COLON",      [TOKEN_COMMA] = "T_COMMA",
        [TOKEN_END] = "T_END",
    };
    luaL_error(in->lua, "Expected %s but found %s at character %d", expected,
               token == TOKEN_ERROR ? in->error : names[token], (int)(in->at - in->text) + 1);
}

/* ---- strings ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hexadecimal digits; -1: not so many. */
static int take_unit(const char *p)
{
    int unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static void put_utf8(struct decoder *in, unsigned code)
{
    uint8_t bytes[4];
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; code >>= 6)
        bytes[i] = (uint8_t)(0x80 | (code & 0x3f));
    bytes[0] = (uint8_t)(heads[n] | code);
    script_out_add(in->lua, in->out, bytes, n);
}

/* At the backslash of \uXXXX, perhaps a surrogate pair. */
static bool take_unicode(struct decoder *in)
{
    int code = take_unit(in->p + 2);
    size_t len = 6;
    if (code < 0 || (code & 0xfc00) == 0xdc00)
        return false;
    if ((code & 0xfc00) == 0xd800) {
        int low = in->p[6] == '\\' && in->p[7] == 'u' ? take_unit(in->p + 8) : -1;
        if (low < 0 || (low & 0xfc00) != 0xdc00)
            return false;
        code = ((code & 0x3ff) << 10 | (low & 0x3ff)) + 0x10000;
        len = 12;
    }
    put_utf8(in, (unsigned)code);
    in->p += len;
    return true;
}

/* The end of the bytes that stand for themselves. */
static const char *skip_plain(const char *p)
{
    static const bool ends[UINT8_MAX + 1] = {['\0'] = true, ['"'] = true, ['\\'] = true};
    while (!ends[(uint8_t)*p])
        p++;
    return p;
}

/* The byte that stands for an escape; 0: it is not one. */
static char unescape(char c)
{
    static const char named[] = "\"\"\\\\//b\bt\tn\nf\fr\r";
    for (const char *p = named; *p != '\0'; p += 2)
        if (*p == c)
            return p[1];
    return '\0';
}

/* From the first backslash on: the string is put together in the buffer. */
static enum token take_escaped(struct decoder *in, const char *from)
{
    in->out->len = 0;
    script_out_add(in->lua, in->out, from, (size_t)(in->p - from));
    while (*in->p != '"') {
        if (*in->p == '\0')
            return fail(in, "unexpected end of string");
        if (*in->p != '\\') {
            const char *end = skip_plain(in->p);
            script_out_add(in->lua, in->out, in->p, (size_t)(end - in->p));
            in->p = end;
            continue;
        }
        if (in->p[1] == 'u') {
            if (!take_unicode(in))
                return fail(in, "invalid unicode escape code");
            continue;
        }
        char c = unescape(in->p[1]);
        if (c == '\0')
            return fail(in, "invalid escape code");
        script_out_add(in->lua, in->out, &c, 1);
        in->p += 2;
    }
    in->p++;
    script_out_push(in->lua, in->out);
    return TOKEN_STRING;
}

static enum token take_string(struct decoder *in)
{
    const char *from = ++in->p;
    in->p = skip_plain(in->p);
    if (*in->p == '\\')
        return take_escaped(in, from);
    if (*in->p == '\0')
        return fail(in, "unexpected end of string");
    lua_pushlstring(in->lua, from, (size_t)(in->p - from));
    in->p++;
    return TOKEN_STRING;
}

/* ---- numbers ---- */

/* Digits that a double holds exactly, up to 15, without a fraction or an exponent. */
static bool take_short(struct decoder *in)
{
    enum { DIGITS = 15 };
    const char *p = in->p + (*in->p == '-');
    const char *from = p;
    int64_t n = 0;
    for (; *p >= '0' && *p <= '9' && p - from <= DIGITS; p++)
        n = n * 10 + (*p - '0');
    if (p == from || p - from > DIGITS || *p == '.' || (*p | 0x20) == 'e' || (*p | 0x20) == 'x' ||
        (n == 0 && *in->p == '-'))
        return false;
    in->number = (double)(*in->p == '-' ? -n : n);
    in->p = p;
    return true;
}

/* What strtod() reads and JSON does not allow: +1, 0x1, 01, inf, nan. */
static bool is_invalid(const char *p)
{
    if (*p == '+')
        return true;
    if (*p == '-')
        p++;
    if (*p == '0')
        return (p[1] | 0x20) == 'x' || (p[1] >= '0' && p[1] <= '9');
    return *p > '9' && (strncasecmp(p, "inf", 3) == 0 || strncasecmp(p, "nan", 3) == 0);
}

static enum token take_number(struct decoder *in)
{
    char *end;
    if (take_short(in))
        return TOKEN_NUMBER;
    in->number = strtod(in->p, &end);
    if (end == in->p)
        return fail(in, "invalid number");
    in->p = end;
    return TOKEN_NUMBER;
}

/* ---- tokens ---- */

static bool take_word(struct decoder *in, const char *word)
{
    size_t len = strlen(word);
    if (strncmp(in->p, word, len) != 0)
        return false;
    in->p += len;
    return true;
}

static enum token take_other(struct decoder *in)
{
    char c = *in->p;
    bool lax = in->cjson->decode_invalid == CJSON_ALLOW;
    if (c == '-' || (c >= '0' && c <= '9'))
        return lax || !is_invalid(in->p) ? take_number(in) : fail(in, "invalid number");
    if (take_word(in, "true") || take_word(in, "false")) {
        in->boolean = c == 't';
        return TOKEN_BOOLEAN;
    }
    if (take_word(in, "null"))
        return TOKEN_NULL;
    if (c != '\0' && strchr("+iInN", c) != NULL && lax && is_invalid(in->p))
        return take_number(in);
    return fail(in, "invalid token");
}

static enum token next(struct decoder *in)
{
    while (*in->p == ' ' || *in->p == '\t' || *in->p == '\n' || *in->p == '\r')
        in->p++;
    in->at = in->p;
    switch (*in->p) {
    case '{':
        in->p++;
        return TOKEN_OBJECT;
    case '}':
        in->p++;
        return TOKEN_OBJECT_END;
    case '[':
        in->p++;
        return TOKEN_ARRAY;
    case ']':
        in->p++;
        return TOKEN_ARRAY_END;
    case ':':
        in->p++;
        return TOKEN_COLON;
    case ',':
        in->p++;
        return TOKEN_COMMA;
    case '"':
        return take_string(in);
    case '\0':
        return TOKEN_END;
    default:
        return take_other(in);
    }
}

/* ---- values ---- */

static void descend(struct decoder *in)
{
    if (++in->depth <= in->cjson->decode_depth && lua_checkstack(in->lua, 4))
        return;
    luaL_error(in->lua, "Found too many nested data structures (%d) at character %d", in->depth,
               (int)(in->p - in->text));
}

static void push_value(struct decoder *in, enum token token);

static void push_object(struct decoder *in)
{
    descend(in);
    lua_newtable(in->lua);
    enum token token = next(in);
    while (token != TOKEN_OBJECT_END) {
        if (token != TOKEN_STRING)
            refuse(in, token, "object key string");
        token = next(in);
        if (token != TOKEN_COLON)
            refuse(in, token, "colon");
        push_value(in, next(in));
        lua_rawset(in->lua, -3);
        token = next(in);
        if (token == TOKEN_OBJECT_END)
            break;
        if (token != TOKEN_COMMA)
            refuse(in, token, "comma or object end");
        token = next(in);
        if (token == TOKEN_OBJECT_END)
            refuse(in, token, "object key string");
    }
    in->depth--;
}

/* After a value of an array: whether there is another one, whose first token is *ret. */
static bool has_next(struct decoder *in, enum token *ret)
{
    enum token token = next(in);
    if (token == TOKEN_ARRAY_END)
        return false;
    if (token != TOKEN_COMMA)
        refuse(in, token, "comma or array end");
    *ret = next(in);
    return true;
}

/* The first values wait on the stack until their number is known, but not while the values inside
 * of one of them are read: the stack is for the depth of the text. */
static void push_array(struct decoder *in)
{
    enum { WAITING_MAX = 64 };
    lua_State *L = in->lua;
    descend(in);
    lua_pushnil(L);
    enum token token = next(in);
    bool more = token != TOKEN_ARRAY_END;
    int n = 0;
    if (more && token != TOKEN_OBJECT && token != TOKEN_ARRAY && lua_checkstack(L, WAITING_MAX + 1))
        for (; more && token != TOKEN_OBJECT && token != TOKEN_ARRAY && n < WAITING_MAX; n++) {
            push_value(in, token);
            more = has_next(in, &token);
        }
    script_make_array(L, n);
    while (more) {
        push_value(in, token);
        lua_rawseti(L, -2, ++n);
        more = has_next(in, &token);
    }
    in->depth--;
}

static void push_value(struct decoder *in, enum token token)
{
    switch (token) {
    case TOKEN_STRING:
        break;
    case TOKEN_NUMBER:
        lua_pushnumber(in->lua, in->number);
        break;
    case TOKEN_BOOLEAN:
        lua_pushboolean(in->lua, in->boolean);
        break;
    case TOKEN_NULL:
        lua_pushlightuserdata(in->lua, NULL);
        break;
    case TOKEN_OBJECT:
        push_object(in);
        break;
    case TOKEN_ARRAY:
        push_array(in);
        break;
    default:
        refuse(in, token, "value");
    }
}

int script_cjson_decode(lua_State *L)
{
    size_t len;
    luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
    const char *text = luaL_checklstring(L, 1, &len);
    if (len >= 2 && (text[0] == '\0' || text[1] == '\0'))
        return luaL_error(L, "JSON parser does not support UTF-16 or UTF-32");
    struct decoder in = {
        .lua = L, .cjson = script_cjson(L), .out = script_out(L), .text = text, .p = text};
    push_value(&in, next(&in));
    enum token token = next(&in);
    if (token != TOKEN_END)
        refuse(&in, token, "the end");
    return 1;
}
