/* The commands of the debugger's user. */
#include "engine/script/debug.h"

#include "base/num.h"
#include "engine/mem.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { ARGS_MAX = 1024, ARG_BYTES = 1024, INPUT_MAX = 1 << 20, READ_SIZE = 1024 };

/* A command; its bytes are those of d->in. */
struct words {
    struct rd_slice list[ARGS_MAX];
    int n;
};

enum parsed { PARSED, PARSE_MORE, PARSE_FAIL };

/* ---- reading ---- */

/* "*N" or "$N" and the line end. */
static enum parsed take_head(struct rd_slice *in, char type, int64_t max, int64_t *ret)
{
    if (in->len == 0)
        return PARSE_MORE;
    if (in->ptr[0] != type)
        return PARSE_FAIL;
    const uint8_t *end = memmem(in->ptr, in->len, "\r\n", 2);
    if (end == NULL)
        return PARSE_MORE;
    struct rd_slice number = rd_slice(in->ptr + 1, (size_t)(end - in->ptr) - 1);
    if (!rd_num_get_i64(number, ret) || *ret <= 0 || *ret > max)
        return PARSE_FAIL;
    *in = rd_slice(end + 2, in->len - (size_t)(end + 2 - in->ptr));
    return PARSED;
}

static enum parsed parse(struct rd_slice in, struct words *ret)
{
    int64_t n, len;
    enum parsed status = take_head(&in, '*', ARGS_MAX, &n);
    for (ret->n = 0; status == PARSED && ret->n < n; ret->n++) {
        status = take_head(&in, '$', ARG_BYTES, &len);
        if (status != PARSED)
            break;
        if (in.len < (size_t)len + 2)
            return PARSE_MORE;
        if (in.ptr[len] != '\r' || in.ptr[len + 1] != '\n')
            return PARSE_FAIL;
        ret->list[ret->n] = rd_slice(in.ptr, (size_t)len);
        in = rd_slice(in.ptr + len + 2, in.len - (size_t)len - 2);
    }
    return status;
}

/* False: the user is gone. */
static bool read_command(lua_State *L, struct engine_debugger *d, struct words *ret)
{
    uint8_t bytes[READ_SIZE];
    rd_buf_reset(&d->in);
    for (;;) {
        size_t n = d->io.read(d->io.ctx, bytes, sizeof bytes);
        if (n == 0)
            return false;
        rd_buf_add(&d->in, bytes, n);
        enum parsed status = parse(rd_buf_slice(&d->in), ret);
        if (status == PARSED)
            return true;
        if (status == PARSE_FAIL)
            script_raise(L, "protocol error");
        if (d->in.len > INPUT_MAX)
            script_raise(L, "max client buffer reached");
    }
}

static bool is(const struct words *words, const char *name)
{
    struct rd_slice word = words->list[0];
    size_t len = strlen(name);
    return (word.len == 1 || word.len == len) &&
           strncasecmp((const char *)word.ptr, name, word.len) == 0;
}

/* As atoi(). */
static int number(struct rd_slice word)
{
    char text[32];
    size_t len = word.len < sizeof text - 1 ? word.len : sizeof text - 1;
    memcpy(text, word.ptr, len);
    text[len] = '\0';
    long value = strtol(text, NULL, 10);
    return value > INT_MAX ? INT_MAX : value < INT_MIN ? INT_MIN : (int)value;
}

/* ---- values ---- */

/* The value on top of the stack, which stays. */
static void say_value(lua_State *L, struct engine_debugger *d, const char *prefix)
{
    struct rd_buf text = {0};
    rd_buf_add(&text, prefix, strlen(prefix));
    debug_put_value(L, -1, &text);
    debug_say_bytes(d, rd_buf_slice(&text), true);
    rd_buf_done(&text);
}

static bool print_local(lua_State *L, struct engine_debugger *d, struct rd_slice wanted)
{
    lua_Debug at;
    const char *name;
    for (int level = 0; lua_getstack(L, level, &at) != 0; level++)
        for (int i = 1; (name = lua_getlocal(L, &at, i)) != NULL; i++) {
            bool found = rd_slice_eq(rd_slice_str(name), wanted);
            if (found)
                say_value(L, d, "<value> ");
            lua_pop(L, 1);
            if (found)
                return true;
        }
    return false;
}

static void print(lua_State *L, struct engine_debugger *d, struct rd_slice wanted)
{
    if (print_local(L, d, wanted))
        return;
    bool keys = rd_slice_eq(wanted, rd_slice_str("KEYS"));
    if (!keys && !rd_slice_eq(wanted, rd_slice_str("ARGV"))) {
        debug_say(d, "No such variable.");
        return;
    }
    lua_getglobal(L, keys ? "KEYS" : "ARGV");
    say_value(L, d, "<value> ");
    lua_pop(L, 1);
}

static void print_all(lua_State *L, struct engine_debugger *d)
{
    lua_Debug at;
    const char *name;
    int n = 0;
    bool ok = lua_getstack(L, 0, &at) != 0;
    for (int i = 1; ok && (name = lua_getlocal(L, &at, i)) != NULL; i++) {
        char prefix[128];
        if (strstr(name, "(*temporary)") == NULL) {
            snprintf(prefix, sizeof prefix, "<value> %.100s = ", name);
            say_value(L, d, prefix);
            n++;
        }
        lua_pop(L, 1);
    }
    if (n == 0)
        debug_say(d, "No local variables in the current context.");
}

/* ---- breakpoints ---- */

static void remove_breakpoint(struct engine_debugger *d, int line)
{
    for (int i = 0; i < d->n_breakpoints; i++)
        if (d->breakpoint[i] == line) {
            d->n_breakpoints--;
            memmove(d->breakpoint + i, d->breakpoint + i + 1,
                    (size_t)(d->n_breakpoints - i) * sizeof *d->breakpoint);
            debug_say(d, "Breakpoint removed.");
            return;
        }
    debug_say(d, "No breakpoint in the specified line.");
}

static void add_breakpoint(struct engine_debugger *d, int line)
{
    if (d->n_breakpoints == DEBUG_BREAKPOINTS) {
        debug_say(d, "Too many breakpoints set.");
    } else if (line > d->n_lines || debug_is_breakpoint(d, line)) {
        debug_say(d, "Wrong line number.");
    } else {
        d->breakpoint[d->n_breakpoints++] = line;
        debug_list(d, line, 1);
    }
}

static void show_breakpoints(struct engine_debugger *d)
{
    if (d->n_breakpoints == 0) {
        debug_say(d, "No breakpoints set. Use 'b <line>' to add one.");
        return;
    }
    debug_say(d, "%d breakpoints set:", d->n_breakpoints);
    for (int i = 0; i < d->n_breakpoints; i++)
        debug_show_line(d, d->breakpoint[i]);
}

static void change_breakpoints(struct engine_debugger *d, const struct words *words)
{
    for (int i = 1; i < words->n; i++) {
        struct rd_slice word = words->list[i];
        int64_t line;
        if (!rd_num_get_i64(word, &line)) {
            debug_say(d, "Invalid argument:'%.*s'", (int)word.len, (const char *)word.ptr);
        } else if (line == 0) {
            d->n_breakpoints = 0;
            debug_say(d, "All breakpoints removed.");
        } else if (line > INT_MAX || line < -INT_MAX) {
            debug_say(d, "Wrong line number.");
        } else if (line > 0) {
            add_breakpoint(d, (int)line);
        } else {
            remove_breakpoint(d, (int)-line);
        }
    }
}

/* ---- code ---- */

static bool load(lua_State *L, const struct rd_buf *code)
{
    /* Byte code is not verified by Lua. */
    if (code->len > 0 && code->ptr[0] == LUA_SIGNATURE[0]) {
        lua_pushliteral(L, "ldb_eval:1: unexpected symbol near 'char(27)'");
        return false;
    }
    return script_compile(L, rd_buf_slice(code), "@ldb_eval") == 0;
}

/* The error on top of the stack, which it pops. */
static void say_failure(lua_State *L, struct engine_debugger *d)
{
    if (lua_istable(L, -1)) {
        lua_getfield(L, -1, "err");
        lua_remove(L, -2);
    }
    debug_say(d, "<error> %s", lua_isstring(L, -1) ? lua_tostring(L, -1) : "?");
    lua_pop(L, 1);
}

static void eval(lua_State *L, struct engine_debugger *d, const struct words *words)
{
    struct rd_buf code = {0};
    rd_buf_add(&code, "return ", 7);
    for (int i = 1; i < words->n; i++) {
        if (i > 1)
            rd_buf_add_byte(&code, ' ');
        rd_buf_add(&code, words->list[i].ptr, words->list[i].len);
    }
    bool ok = load(L, &code);
    if (!ok) {
        const struct rd_buf statement = {.ptr = code.ptr + 7, .len = code.len - 7};
        lua_pop(L, 1);
        ok = load(L, &statement);
    }
    rd_buf_done(&code);
    if (!ok || lua_pcall(L, 0, 1, 0) != 0) {
        say_failure(L, d);
        return;
    }
    say_value(L, d, "<retval> ");
    lua_pop(L, 1);
}

static void run_command(lua_State *L, struct engine_debugger *d, const struct words *words)
{
    if (!lua_checkstack(L, words->n + 2)) {
        debug_say(d, "max lua stack reached");
        return;
    }
    lua_getglobal(L, "redis");
    lua_getfield(L, -1, "call");
    for (int i = 1; i < words->n; i++)
        lua_pushlstring(L, (const char *)words->list[i].ptr, words->list[i].len);
    d->logs = true;
    lua_pcall(L, words->n - 1, 1, 0);
    d->logs = false;
    lua_pop(L, 2);
}

static void trace(lua_State *L, struct engine_debugger *d)
{
    lua_Debug at;
    for (int level = 0; lua_getstack(L, level, &at) != 0; level++) {
        lua_getinfo(L, "Snl", &at);
        if (strstr(at.short_src, "user_script") == NULL)
            continue;
        debug_say(d, "%s %s:", level == 0 ? "In" : "From", at.name != NULL ? at.name : "top level");
        debug_show_line(d, at.currentline);
    }
}

static void max_len(struct engine_debugger *d, const struct words *words)
{
    enum { LEAST = 60 };
    if (words->n == 2) {
        int len = number(words->list[1]);
        d->hinted = true;
        d->max_len = len == 0 ? 0 : len <= LEAST ? LEAST : (size_t)len;
    }
    if (d->max_len > 0)
        debug_say(d, "<value> replies are truncated at %d bytes.", (int)d->max_len);
    else
        debug_say(d, "<value> replies are unlimited.");
}

static void list(struct engine_debugger *d, const struct words *words)
{
    int around = d->current, context = 5;
    if (words->n > 1 && number(words->list[1]) > 0)
        around = number(words->list[1]);
    if (words->n > 2)
        context = number(words->list[2]);
    debug_list(d, around, context);
}

/* ---- all ---- */

/* What answers and stops again. */
static void answer(lua_State *L, struct engine_debugger *d, const struct words *words)
{
    if (is(words, "help"))
        debug_help(d);
    else if (is(words, "trace"))
        trace(L, d);
    else if (is(words, "maxlen"))
        max_len(d, words);
    else if (is(words, "break") && words->n == 1)
        show_breakpoints(d);
    else if (is(words, "break"))
        change_breakpoints(d, words);
    else if (is(words, "eval"))
        eval(L, d, words);
    else if (is(words, "redis") && words->n > 1)
        run_command(L, d, words);
    else if (is(words, "print") && words->n == 2)
        print(L, d, words->list[1]);
    else if (is(words, "print"))
        print_all(L, d);
    else if (is(words, "list"))
        list(d, words);
    else if (is(words, "whole"))
        debug_list(d, 1, 1000000);
    else
        debug_say(d, "<error> Unknown Redis Lua debugger command or wrong number of arguments.");
    debug_send(d);
}

bool debug_ask(lua_State *L, struct engine_debugger *d)
{
    struct words *words = lua_newuserdata(L, sizeof *words); /* freed also after an error */
    bool here = true;
    for (;;) {
        here = read_command(L, d, words);
        if (!here)
            break;
        if (is(words, "step") || is(words, "next")) {
            d->step = d->logs = true;
            break;
        }
        if (is(words, "continue"))
            break;
        if (is(words, "abort"))
            script_raise(L, "script aborted for user request");
        answer(L, d, words);
    }
    lua_pop(L, 1);
    return here;
}
