/* The lines that the debugger sends. */
#include "engine/script/debug.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void end_line(struct engine_debugger *d, size_t from)
{
    for (size_t i = from; i < d->out.len; i++)
        if (d->out.ptr[i] == '\r' || d->out.ptr[i] == '\n')
            d->out.ptr[i] = ' ';
    rd_buf_add(&d->out, "\r\n", 2);
    d->n_out++;
}

void debug_say_bytes(struct engine_debugger *d, struct rd_slice bytes, bool value)
{
    bool cut = value && d->max_len > 0 && bytes.len > d->max_len;
    rd_buf_add_byte(&d->out, '+');
    size_t from = d->out.len;
    rd_buf_add(&d->out, bytes.ptr, cut ? d->max_len : bytes.len);
    if (cut)
        rd_buf_add(&d->out, " ...", 4);
    end_line(d, from);
    if (cut && !d->hinted) {
        d->hinted = true;
        debug_say(d, "<hint> The above reply was trimmed. Use 'maxlen 0' to disable trimming.");
    }
}

void debug_say(struct engine_debugger *d, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    debug_say_bytes(d, rd_slice_str(text), false);
}

void debug_send(struct engine_debugger *d)
{
    char head[32];
    int len = snprintf(head, sizeof head, "*%llu\r\n", (unsigned long long)d->n_out);
    d->io.write(d->io.ctx, rd_slice(head, (size_t)len));
    if (d->out.len > 0)
        d->io.write(d->io.ctx, rd_buf_slice(&d->out));
    rd_buf_reset(&d->out);
    d->n_out = 0;
}

bool debug_is_breakpoint(const struct engine_debugger *d, int number)
{
    for (int i = 0; i < d->n_breakpoints; i++)
        if (d->breakpoint[i] == number)
            return true;
    return false;
}

void debug_show_line(struct engine_debugger *d, int number)
{
    static const char *const marks[2][2] = {{"   ", "  #"}, {"-> ", "->#"}};
    struct rd_buf text = {0};
    struct rd_slice line = rd_slice_str("<out of range source code line>");
    if (number >= 1 && number <= d->n_lines)
        line = d->line[number - 1];
    rd_buf_printf(&text, "%s%-3d ", marks[number == d->current][debug_is_breakpoint(d, number)],
                  number);
    rd_buf_add(&text, line.ptr, line.len);
    debug_say_bytes(d, rd_buf_slice(&text), false);
    rd_buf_done(&text);
}

void debug_list(struct engine_debugger *d, int around, int context)
{
    for (int i = 1; i <= d->n_lines; i++)
        if (around == 0 || abs(around - i) <= context)
            debug_show_line(d, i);
}

void debug_help(struct engine_debugger *d)
{
    static const char *const lines[] = {
        "Redis Lua debugger help:",
        "[h]elp               Show this help.",
        "[s]tep               Run the current line and stop again.",
        "[n]ext               The same as step.",
        "[c]ontinue           Run to the next breakpoint.",
        "[l]ist               List the source around the current line.",
        "[l]ist [line]        List the source around [line]; 0 is the current line.",
        "[l]ist [line] [ctx]  The same with [ctx] lines before and after [line].",
        "[w]hole              List the whole source.",
        "[p]rint              Show all local variables.",
        "[p]rint <var>        Show a variable, also KEYS and ARGV.",
        "[b]reak              Show all breakpoints.",
        "[b]reak <line>       Add a breakpoint.",
        "[b]reak -<line>      Remove a breakpoint.",
        "[b]reak 0            Remove all breakpoints.",
        "[t]race              Show a backtrace.",
        "[e]val <code>        Run Lua code (in another call frame).",
        "[r]edis <cmd>        Run a command.",
        "[m]axlen [len]       Cut replies and values after [len] bytes; 0: never.",
        "[a]bort              Stop the script. In sync mode its changes remain.",
        "",
        "Functions for scripts:",
        "redis.debug()        Show values in the debugger.",
        "redis.breakpoint()   Stop at the next line as at a breakpoint.",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        debug_say(d, "%s", lines[i]);
}
