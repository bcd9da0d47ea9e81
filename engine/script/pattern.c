/* The functions of Lua that match patterns, which scripts can end.
 *
 * A pattern can take exponential time, and Lua's own functions run in one step of the interpreter:
 * no hook ends them. These count their work. They match and fail as those of Lua 5.1 do, also where
 * this is odd: a pattern ends at its first zero byte, and one without special characters before a
 * zero byte is plain text.
 */
#include "engine/script/vm_impl.h"

#include <ctype.h>

enum { DEPTH_MAX = 5000, OPEN = -1, POSITION = -2 };

struct capture {
    const char *from;
    ptrdiff_t len; /* or OPEN, POSITION */
};

struct match {
    lua_State *lua;
    const char *begin, *end; /* of the text */
    int depth, n;
    struct capture captures[LUA_MAXCAPTURES];
};

static const char *match(struct match *m, const char *s, const char *p);

/* The pattern at 2. One that could not be matched without an error about its depth is refused at
 * once: each of these characters is one level of recursion. */
static const char *check_pattern(lua_State *L, size_t *ret_len, bool plain)
{
    size_t depth = 0;
    const char *p = luaL_checklstring(L, 2, ret_len);
    for (size_t i = 0; i<*ret_len && * ret_len> DEPTH_MAX && !plain; i++)
        depth += memchr("*+-?()", p[i], 6) != NULL;
    if (depth > DEPTH_MAX)
        luaL_error(L, "pattern too complex");
    return p;
}

static unsigned char byte(const char *s)
{
    return (unsigned char)*s;
}

/* ---- single characters ---- */

/* The end of the item at p: a character, a class or a set. */
static const char *item_end(struct match *m, const char *p)
{
    char first = *p++;
    if (first == '%') {
        if (*p == '\0')
            luaL_error(m->lua, "malformed pattern (ends with '%%')");
        return p + 1;
    }
    if (first != '[')
        return p;
    p += *p == '^';
    /* A bracket that comes first is one of the set. */
    do {
        if (*p == '\0')
            luaL_error(m->lua, "malformed pattern (missing ']')");
        if (*p++ == '%' && *p != '\0')
            p++;
    } while (*p != ']');
    return p + 1;
}

static bool is_of_class(unsigned char c, unsigned char class)
{
    bool is;
    switch (tolower(class)) {
    case 'a':
        is = isalpha(c);
        break;
    case 'c':
        is = iscntrl(c);
        break;
    case 'd':
        is = isdigit(c);
        break;
    case 'l':
        is = islower(c);
        break;
    case 'p':
        is = ispunct(c);
        break;
    case 's':
        is = isspace(c);
        break;
    case 'u':
        is = isupper(c);
        break;
    case 'w':
        is = isalnum(c);
        break;
    case 'x':
        is = isxdigit(c);
        break;
    case 'z':
        is = c == 0;
        break;
    default:
        return class == c;
    }
    return islower(class) ? is : !is;
}

/* The set at p, whose closing bracket is at `last`. */
static bool is_in_set(unsigned char c, const char *p, const char *last)
{
    bool found = true;
    if (p[1] == '^') {
        found = false;
        p++;
    }
    while (++p < last) {
        if (*p == '%') {
            if (is_of_class(c, byte(++p)))
                return found;
        } else if (p[1] == '-' && p + 2 < last) {
            if (byte(p) <= c && c <= byte(p + 2))
                return found;
            p += 2;
        } else if (byte(p) == c) {
            return found;
        }
    }
    return !found;
}

static bool is_one(const struct match *m, const char *s, const char *p, const char *item)
{
    if (s >= m->end)
        return false;
    switch (*p) {
    case '.':
        return true;
    case '%':
        return is_of_class(byte(s), byte(p + 1));
    case '[':
        return is_in_set(byte(s), p, item - 1);
    default:
        return *p == *s;
    }
}

/* ---- repetitions ---- */

static const char *match_most(struct match *m, const char *s, const char *p, const char *item)
{
    const char *last = s;
    while (is_one(m, last, p, item))
        last++;
    script_work(m->lua, (size_t)(last - s));
    for (; last >= s; last--) {
        const char *end = match(m, last, item + 1);
        if (end != NULL)
            return end;
    }
    return NULL;
}

static const char *match_least(struct match *m, const char *s, const char *p, const char *item)
{
    for (;; s++) {
        const char *end = match(m, s, item + 1);
        if (end != NULL)
            return end;
        if (!is_one(m, s, p, item))
            return NULL;
    }
}

/* ---- captures ---- */

static const char *open_capture(struct match *m, const char *s, const char *p, ptrdiff_t len)
{
    if (m->n >= LUA_MAXCAPTURES)
        luaL_error(m->lua, "too many captures");
    m->captures[m->n++] = (struct capture){.from = s, .len = len};
    const char *end = match(m, s, p);
    if (end == NULL)
        m->n--;
    return end;
}

static const char *close_capture(struct match *m, const char *s, const char *p)
{
    int i = m->n - 1;
    while (i >= 0 && m->captures[i].len != OPEN)
        i--;
    if (i < 0)
        luaL_error(m->lua, "invalid pattern capture");
    m->captures[i].len = s - m->captures[i].from;
    const char *end = match(m, s, p);
    if (end == NULL)
        m->captures[i].len = OPEN;
    return end;
}

/* The same text as that of an earlier capture. */
static const char *match_again(struct match *m, const char *s, char digit)
{
    int i = digit - '1';
    if (i < 0 || i >= m->n || m->captures[i].len == OPEN)
        luaL_error(m->lua, "invalid capture index");
    ptrdiff_t len = m->captures[i].len;
    if (len < 0 || m->end - s < len)
        return NULL;
    script_work(m->lua, (size_t)len);
    return memcmp(m->captures[i].from, s, (size_t)len) == 0 ? s + len : NULL;
}

/* ---- what is more than one character ---- */

static const char *match_balanced(struct match *m, const char *s, const char *p)
{
    if (p[0] == '\0' || p[1] == '\0')
        luaL_error(m->lua, "unbalanced pattern");
    const char *from = s;
    size_t depth = 1;
    if (s >= m->end || *s != p[0])
        return NULL;
    while (++s < m->end) {
        if (*s == p[1] && --depth == 0)
            break;
        depth += *s == p[0] && *s != p[1];
    }
    script_work(m->lua, (size_t)(s - from));
    return s < m->end ? s + 1 : NULL;
}

/* Between a character that is not in the set and one that is; the ends of the text count as zero
 * bytes. Returns the end of the item, or NULL. */
static const char *match_frontier(struct match *m, const char *s, const char *p)
{
    if (*p != '[')
        luaL_error(m->lua, "missing '[' after '%%f' in pattern");
    const char *item = item_end(m, p);
    unsigned char before = s == m->begin ? 0 : byte(s - 1);
    return !is_in_set(before, p, item - 1) && is_in_set(byte(s), p, item - 1) ? item : NULL;
}

/* ---- the pattern ---- */

/* One item at p without alternatives: moves both. False: no match. Nothing moves before an item
 * that match() must look at. */
static bool match_simple(struct match *m, const char **s, const char **p)
{
    if ((*p)[0] == '%' && (*p)[1] == 'b') {
        *s = match_balanced(m, *s, *p + 2);
        *p += 4;
        return *s != NULL;
    }
    if ((*p)[0] == '%' && (*p)[1] == 'f') {
        *p = match_frontier(m, *s, *p + 2);
        return *p != NULL;
    }
    if ((*p)[0] == '%' && isdigit(byte(*p + 1))) {
        *s = match_again(m, *s, (*p)[1]);
        *p += 2;
        return *s != NULL;
    }
    const char *item = item_end(m, *p);
    if (*item != '\0' && strchr("?*+-", *item) != NULL)
        return true;
    bool is = is_one(m, *s, *p, item);
    ++*s;
    *p = item;
    return is;
}

/* An item that may repeat. */
static const char *match_repeated(struct match *m, const char *s, const char *p)
{
    const char *item = item_end(m, p), *end;
    bool first = is_one(m, s, p, item);
    switch (*item) {
    case '?':
        end = first ? match(m, s + 1, item + 1) : NULL;
        return end != NULL ? end : match(m, s, item + 1);
    case '*':
        return match_most(m, s, p, item);
    case '+':
        return first ? match_most(m, s + 1, p, item) : NULL;
    default:
        return match_least(m, s, p, item);
    }
}

static const char *match_rest(struct match *m, const char *s, const char *p)
{
    for (;;) {
        const char *before = p;
        script_work(m->lua, 1);
        switch (*p) {
        case '\0':
            return s;
        case '(':
            return p[1] == ')' ? open_capture(m, s, p + 2, POSITION)
                               : open_capture(m, s, p + 1, OPEN);
        case ')':
            return close_capture(m, s, p + 1);
        case '$':
            if (p[1] == '\0')
                return s == m->end ? s : NULL;
        }
        if (!match_simple(m, &s, &p))
            return NULL;
        if (p == before)
            return match_repeated(m, s, p);
    }
}

/* The end of what the pattern p matches at s, or NULL. */
static const char *match(struct match *m, const char *s, const char *p)
{
    if (m->depth >= DEPTH_MAX)
        luaL_error(m->lua, "pattern too complex");
    m->depth++;
    const char *end = match_rest(m, s, p);
    m->depth--;
    return end;
}

static const char *match_at(struct match *m, const char *s, const char *p)
{
    m->n = m->depth = 0;
    return match(m, s, p);
}

/* ---- results ---- */

/* The capture i; without captures, the first one is the whole match. */
static void push_capture(struct match *m, int i, const char *from, const char *to)
{
    if (i >= m->n) {
        if (i != 0)
            luaL_error(m->lua, "invalid capture index");
        lua_pushlstring(m->lua, from, (size_t)(to - from));
        return;
    }
    const struct capture *c = &m->captures[i];
    if (c->len == OPEN)
        luaL_error(m->lua, "unfinished capture");
    if (c->len == POSITION)
        lua_pushinteger(m->lua, c->from - m->begin + 1);
    else
        lua_pushlstring(m->lua, c->from, (size_t)c->len);
}

/* from: NULL if the whole match does not count. */
static int push_captures(struct match *m, const char *from, const char *to)
{
    int n = m->n == 0 && from != NULL ? 1 : m->n;
    luaL_checkstack(m->lua, n, "too many captures");
    for (int i = 0; i < n; i++)
        push_capture(m, i, from, to);
    return n;
}

/* ---- find and match ---- */

/* The first place of a plain text, or NULL. */
static const char *find_text(struct match *m, const char *s, const char *p, size_t len)
{
    if (len == 0)
        return s;
    while ((size_t)(m->end - s) >= len) {
        const char *at = memchr(s, *p, (size_t)(m->end - s) - len + 1);
        if (at == NULL)
            return NULL;
        script_work(m->lua, (size_t)(at - s) / 64 + len / 64 + 1);
        if (memcmp(at, p, len) == 0)
            return at;
        s = at + 1;
    }
    return NULL;
}

static int push_place(const struct match *m, const char *from, const char *to)
{
    lua_pushinteger(m->lua, from - m->begin + 1);
    lua_pushinteger(m->lua, to - m->begin);
    return 2;
}

static int search(lua_State *L, bool find)
{
    size_t len, p_len;
    struct match m = {.lua = L};
    m.begin = luaL_checklstring(L, 1, &len);
    m.end = m.begin + len;
    const char *p = check_pattern(L, &p_len, find && lua_toboolean(L, 4));
    ptrdiff_t init = luaL_optinteger(L, 3, 1);
    if (init < 0)
        init += (ptrdiff_t)len + 1;
    init -= init > 0;
    if (init < 0)
        init = 0;
    const char *s = (size_t)init > len ? m.end : m.begin + init;
    if (find && (lua_toboolean(L, 4) || strpbrk(p, "^$*+?.([%-") == NULL)) {
        s = find_text(&m, s, p, p_len);
        if (s != NULL)
            return push_place(&m, s, s + p_len);
        lua_pushnil(L);
        return 1;
    }
    bool anchored = *p == '^';
    p += anchored;
    do {
        const char *end = match_at(&m, s, p);
        if (end != NULL && find)
            return push_place(&m, s, end) + push_captures(&m, NULL, NULL);
        if (end != NULL)
            return push_captures(&m, s, end);
    } while (s++ < m.end && !anchored);
    lua_pushnil(L);
    return 1;
}

static int pattern_find(lua_State *L)
{
    return search(L, true);
}

static int pattern_match(lua_State *L)
{
    return search(L, false);
}

/* ---- gmatch ---- */

/* Upvalues: text, pattern, where the next match may begin. */
static int next_match(lua_State *L)
{
    size_t len;
    struct match m = {.lua = L};
    m.begin = lua_tolstring(L, lua_upvalueindex(1), &len);
    m.end = m.begin + len;
    const char *p = lua_tostring(L, lua_upvalueindex(2));
    const char *s = m.begin + lua_tointeger(L, lua_upvalueindex(3));
    for (; s <= m.end; s++) {
        const char *end = match_at(&m, s, p);
        if (end == NULL)
            continue;
        lua_pushinteger(L, end - m.begin + (end == s));
        lua_replace(L, lua_upvalueindex(3));
        return push_captures(&m, s, end);
    }
    return 0;
}

static int pattern_gmatch(lua_State *L)
{
    size_t len;
    luaL_checkstring(L, 1);
    check_pattern(L, &len, false);
    lua_settop(L, 2);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, next_match, 3);
    return 1;
}

/* ---- gsub ---- */

/* A text with %0 to %9 for captures; % before another character is that character. */
static void add_template(struct match *m, luaL_Buffer *out, const char *from, const char *to)
{
    size_t len;
    const char *text = lua_tolstring(m->lua, 3, &len);
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '%') {
            luaL_addchar(out, text[i]);
            continue;
        }
        i++;
        if (!isdigit(byte(text + i))) {
            luaL_addchar(out, text[i]);
        } else if (text[i] == '0') {
            luaL_addlstring(out, from, (size_t)(to - from));
        } else {
            push_capture(m, text[i] - '1', from, to);
            luaL_addvalue(out);
        }
    }
    script_work(m->lua, len);
}

static void add_replacement(struct match *m, luaL_Buffer *out, const char *from, const char *to)
{
    lua_State *L = m->lua;
    switch (lua_type(L, 3)) {
    case LUA_TFUNCTION:
        lua_pushvalue(L, 3);
        lua_call(L, push_captures(m, from, to), 1);
        break;
    case LUA_TTABLE:
        push_capture(m, 0, from, to);
        lua_gettable(L, 3);
        break;
    default:
        add_template(m, out, from, to);
        return;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        lua_pushlstring(L, from, (size_t)(to - from));
    } else if (!lua_isstring(L, -1)) {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    }
    luaL_addvalue(out);
}

static int pattern_gsub(lua_State *L)
{
    size_t len, p_len;
    struct match m = {.lua = L};
    const char *s = m.begin = luaL_checklstring(L, 1, &len);
    const char *p = check_pattern(L, &p_len, false);
    m.end = s + len;
    int type = lua_type(L, 3), max = luaL_optint(L, 4, (int)len + 1), n = 0;
    luaL_argcheck(L,
                  type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION ||
                      type == LUA_TTABLE,
                  3, "string/function/table expected");
    bool anchored = *p == '^';
    p += anchored;
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    while (n < max) {
        const char *end = match_at(&m, s, p);
        if (end != NULL) {
            n++;
            add_replacement(&m, &out, s, end);
        }
        if (end != NULL && end > s)
            s = end;
        else if (s < m.end)
            luaL_addchar(&out, *s++);
        else
            break;
        if (anchored)
            break;
    }
    luaL_addlstring(&out, s, (size_t)(m.end - s));
    luaL_pushresult(&out);
    lua_pushinteger(L, n);
    return 2;
}

void script_open_patterns(lua_State *L)
{
    static const luaL_Reg all[] = {{"find", pattern_find},
                                   {"match", pattern_match},
                                   {"gmatch", pattern_gmatch},
                                   {"gsub", pattern_gsub},
                                   {NULL, NULL}};
    luaL_register(L, NULL, all);
    lua_getfield(L, -1, "gmatch");
    lua_setfield(L, -2, "gfind"); /* its old name */
}
