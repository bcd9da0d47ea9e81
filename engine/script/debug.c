/* The debugger of scripts: where it stops. */
#include "engine/script/debug.h"

#include "engine/mem.h"

/* ---- sessions ---- */

static void split(struct engine_debugger *d)
{
    const uint8_t *p = d->source.ptr, *end = p + d->source.len;
    size_t n = 1;
    for (const uint8_t *q = p; q < end; q++)
        n += *q == '\n';
    d->line = engine_scratch_alloc(n * sizeof *d->line);
    while (d->source.len > 0 && (size_t)d->n_lines < n) {
        const uint8_t *lf = memchr(p, '\n', (size_t)(end - p));
        const uint8_t *stop = lf != NULL ? lf : end;
        d->line[d->n_lines++] = rd_slice(p, (size_t)(stop - p));
        p = stop + 1;
        if (lf == NULL)
            break;
    }
}

struct engine_debugger *engine_debugger_new(const struct engine_debug_io *io,
                                            struct rd_slice script)
{
    struct engine_debugger *d = engine_scratch_alloc(sizeof *d);
    *d = (struct engine_debugger){.io = *io, .step = true, .logs = true, .max_len = DEBUG_LINE_MAX};
    while (script.len > 0 &&
           (script.ptr[script.len - 1] == '\n' || script.ptr[script.len - 1] == '\r'))
        script.len--;
    rd_buf_add(&d->source, script.ptr, script.len);
    split(d);
    return d;
}

void engine_debugger_end(struct engine_debugger *d)
{
    debug_say(d, "<endsession>");
    debug_send(d);
    rd_buf_done(&d->source);
    rd_buf_done(&d->in);
    rd_buf_done(&d->out);
    engine_scratch_free(d->line);
    engine_scratch_free(d);
}

/* ---- stopping ---- */

static void stop(lua_State *L, struct engine_debugger *d, const char *reason, bool late)
{
    d->step = d->called = d->logs = false;
    debug_say(d, "* Stopped at %d, stop reason = %s", d->current, reason);
    debug_show_line(d, d->current);
    debug_send(d);
    bool here = debug_ask(L, d);
    d->io.is_late(d->io.ctx, true);
    if (here)
        return;
    d->step = false;
    d->n_breakpoints = 0;
    if (late)
        script_raise(L, "timeout during Lua debugging with client closing connection");
}

static void on_line(lua_State *L, lua_Debug *at)
{
    const struct script_run *run = script_vm_of(L)->run;
    struct engine_debugger *d = run != NULL ? run->debugger : NULL;
    if (d == NULL)
        return;
    int event = at->event;
    lua_getinfo(L, "Sl", at);
    d->current = at->currentline;
    bool at_breakpoint = debug_is_breakpoint(d, d->current) || d->called;
    if (strstr(at->short_src, "user_script") == NULL)
        return;
    bool late = false;
    if (event == LUA_HOOKCOUNT && !d->step && !at_breakpoint) {
        late = d->io.is_late(d->io.ctx, false);
        if (!late)
            return;
    }
    if (at_breakpoint)
        stop(L, d, d->called ? "redis.breakpoint() called" : "break point", false);
    else if (late)
        stop(L, d, "timeout reached, infinite loop?", true);
    else if (d->step)
        stop(L, d, "step over", false);
}

bool script_debug_attach(struct script_run *run)
{
    run->debugger = run->about.is_eval ? run->call->session->debugger : NULL;
    if (run->debugger == NULL)
        return false;
    lua_sethook(run->vm->lua, on_line, LUA_MASKLINE | LUA_MASKCOUNT, SCRIPT_HOOK_STEPS);
    return true;
}

/* ---- reports ---- */

static struct engine_debugger *stepping(const struct script_run *run)
{
    struct engine_debugger *d = run->debugger;
    return d != NULL && (d->step || d->logs) ? d : NULL;
}

void script_debug_command(struct script_run *run, size_t argc, const struct rd_slice *argv)
{
    enum { SHOWN = 10 };
    struct engine_debugger *d = stepping(run);
    struct rd_buf text = {0};
    if (RD_LIKELY(d == NULL))
        return;
    rd_buf_printf(&text, "<redis>");
    for (size_t i = 0; i < argc && i < SHOWN; i++) {
        rd_buf_add_byte(&text, ' ');
        rd_buf_add(&text, argv[i].ptr, argv[i].len);
    }
    if (argc > SHOWN)
        rd_buf_printf(&text, " ... (%zu more)", argc - SHOWN - 1);
    debug_say_bytes(d, rd_buf_slice(&text), false);
    rd_buf_done(&text);
}

void script_debug_reply(struct script_run *run, struct rd_slice reply)
{
    struct engine_debugger *d = stepping(run);
    struct rd_buf text = {0};
    if (RD_LIKELY(d == NULL))
        return;
    rd_buf_printf(&text, "<reply> ");
    debug_put_reply(reply, &text);
    debug_say_bytes(d, rd_buf_slice(&text), true);
    rd_buf_done(&text);
}

void script_debug_error(struct script_run *run, const char *text, size_t len)
{
    struct engine_debugger *d = stepping(run);
    struct rd_buf line = {0};
    if (RD_LIKELY(d == NULL))
        return;
    rd_buf_printf(&line, "<error> ");
    rd_buf_add(&line, text, len);
    debug_say_bytes(d, rd_buf_slice(&line), false);
    rd_buf_done(&line);
}

/* ---- functions of scripts ---- */

static struct engine_debugger *debugger_of(lua_State *L)
{
    const struct script_run *run = script_vm_of(L)->run;
    return run != NULL ? run->debugger : NULL;
}

int script_debug_breakpoint(lua_State *L)
{
    struct engine_debugger *d = debugger_of(L);
    if (d != NULL)
        d->called = true;
    lua_pushboolean(L, d != NULL);
    return 1;
}

int script_debug_print(lua_State *L)
{
    struct engine_debugger *d = debugger_of(L);
    struct rd_buf text = {0};
    int argc = lua_gettop(L);
    if (d == NULL)
        return 0;
    rd_buf_printf(&text, "<debug> line %d: ", d->current);
    for (int i = 1; i <= argc; i++) {
        if (i > 1)
            rd_buf_printf(&text, ", ");
        debug_put_value(L, i, &text);
    }
    debug_say_bytes(d, rd_buf_slice(&text), false);
    rd_buf_done(&text);
    return 0;
}
