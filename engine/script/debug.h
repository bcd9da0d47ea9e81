/* debug.h - private to engine/script/: the debugger of scripts, as the interpreter sees it.
 */
#ifndef ENGINE_SCRIPT_DEBUG_H
#define ENGINE_SCRIPT_DEBUG_H

#include "engine/script/run_impl.h"

enum { DEBUG_BREAKPOINTS = 64, DEBUG_LINE_MAX = 256 };

struct engine_debugger {
    struct engine_debug_io io;
    struct rd_buf source;  /* the script */
    struct rd_slice *line; /* its lines */
    int n_lines;
    int current;
    int breakpoint[DEBUG_BREAKPOINTS];
    int n_breakpoints;
    bool step;        /* stop at the next line */
    bool called;      /* redis.breakpoint() */
    bool logs;        /* report commands: the user steps */
    size_t max_len;   /* of values; 0: no limit */
    bool hinted;      /* at max_len */
    struct rd_buf in; /* what the user sent */
    struct rd_buf out;
    uint64_t n_out; /* lines in it */
};

/* Sets the hooks of a debugging session. False: this run is not debugged. */
bool script_debug_attach(struct script_run *run);

/* Report to the user, if there is one who steps. */
void script_debug_command(struct script_run *run, size_t argc, const struct rd_slice *argv);
void script_debug_reply(struct script_run *run, struct rd_slice reply);
void script_debug_error(struct script_run *run, const char *text, size_t len);

/* redis.breakpoint() and redis.debug() */
int script_debug_breakpoint(lua_State *L);
int script_debug_print(lua_State *L);

/* ---- debug_show.c: values and replies as text ---- */

void debug_put_value(lua_State *L, int idx, struct rd_buf *out);
void debug_put_reply(struct rd_slice reply, struct rd_buf *out);

/* ---- debug_lines.c: lines for the user ---- */

RD_PRINTF(2, 3)
void debug_say(struct engine_debugger *d, const char *fmt, ...);
/* The bytes as one line; cut at max_len if `value`. */
void debug_say_bytes(struct engine_debugger *d, struct rd_slice bytes, bool value);
void debug_send(struct engine_debugger *d);
void debug_show_line(struct engine_debugger *d, int number);
/* The lines around one; around 0: all. */
void debug_list(struct engine_debugger *d, int around, int context);
bool debug_is_breakpoint(const struct engine_debugger *d, int number);
void debug_help(struct engine_debugger *d);

/* ---- debug_commands.c ---- */

/* Runs the user's commands until one of them continues the script. False: the user is gone. Raises
 * an error for "abort". */
bool debug_ask(lua_State *L, struct engine_debugger *d);

#endif
