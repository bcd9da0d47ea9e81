/* script.h - Lua scripts and function libraries of a data set, as the server sees them.
 *
 *     struct engine_script_stats stats;
 *     engine_script_stats(e, &stats);                 // INFO memory
 *     if (engine_script_running(e) != NULL)           // -BUSY
 *         ...
 *
 * The commands (EVAL, FCALL, SCRIPT LOAD, FUNCTION LOAD …) are commands of the engine. A script
 * gets the time of its command and has no clock; random numbers in Lua are those of redis-server,
 * the same after each start. The interpreter itself is private: engine/script/.
 *
 * While a script runs, the engine calls script hooks (engine/engine.h) at regular intervals. A hook
 * may run FUNCTION STATS, SCRIPT KILL and FUNCTION KILL, and no other command of the engine.
 */
#ifndef ENGINE_SCRIPT_H
#define ENGINE_SCRIPT_H

#include "engine/engine.h"

enum engine_script_flag {
    ENGINE_SCRIPT_NO_WRITES = 1 << 0,
    ENGINE_SCRIPT_ALLOW_OOM = 1 << 1,
    ENGINE_SCRIPT_ALLOW_STALE = 1 << 2,
    ENGINE_SCRIPT_NO_CLUSTER = 1 << 3,
    ENGINE_SCRIPT_ALLOW_CROSS_SLOT_KEYS = 1 << 4,
    ENGINE_SCRIPT_NO_FLAGS = 1 << 5 /* without a first line: the rules of versions before 7.0 */
};

/* The script that is running. */
struct engine_running {
    const char *name;              /* SHA-1, or the name of the function */
    bool is_eval;                  /* EVAL and its variants; false: a function */
    bool wrote;                    /* it cannot be killed */
    bool killed;                   /* by SCRIPT KILL or FUNCTION KILL */
    struct engine_session *caller; /* NULL: none, a library is being loaded */
    size_t argc;                   /* the command */
    const struct rd_slice *argv;
};

/* NULL: none. Valid while the hook that asked runs. */
const struct engine_running *engine_script_running(const struct engine *e);

/* The flags of a command that runs a script, as its script declares them: write, deny-oom, stale
 * and may-replicate can differ from those of the command. Other commands: their own flags. */
uint64_t engine_script_command_flags(struct engine *e, const struct engine_command *command,
                                     size_t argc, const struct rd_slice *argv);

/* ---- the debugger ----
 *
 *     struct engine_debugger *d = engine_debugger_new(&io, script);
 *     session.debugger = d;
 *     engine_apply(...);                       // EVAL; the hooks talk to the user
 *     session.debugger = NULL;
 *     engine_debugger_end(d);                  // <endsession>; frees it
 *
 * The protocol is that of redis-cli --ldb: the user's commands are arrays, answers are arrays of
 * status lines. */
struct engine_debugger;

struct engine_debug_io {
    /* Waits for bytes; 0: the user is gone. */
    size_t (*read)(void *ctx, uint8_t *dst, size_t size);
    void (*write)(void *ctx, struct rd_slice bytes);
    /* Whether the script has run for too long since it last asked the user. */
    bool (*is_late)(void *ctx, bool restart);
    void *ctx;
};

struct engine_debugger *engine_debugger_new(const struct engine_debug_io *io,
                                            struct rd_slice script);
void engine_debugger_end(struct engine_debugger *d);

struct engine_script_stats {
    uint64_t n_scripts; /* cached by EVAL and SCRIPT LOAD */
    uint64_t scripts_bytes;
    uint64_t n_libraries;
    uint64_t n_functions;
    uint64_t functions_bytes;
    uint64_t eval_vm_bytes;
    uint64_t function_vm_bytes;
};

void engine_script_stats(struct engine *e, struct engine_script_stats *ret);

/* Bytes of the interpreters, which engine_memory() does not count. Cheap. */
uint64_t engine_script_memory(const struct engine *e);

/* As SCRIPT LOAD: a later EVALSHA finds the script. A text that does not compile is ignored. */
void engine_script_keep(struct engine *e, struct rd_slice body);

/* Whether code compiles; it is not run. False: fault is the compiler's message, in printable ASCII.
 * Servers refuse byte code. Needs no engine. */
bool engine_script_compiles(struct rd_slice code, char *fault, size_t size);

/* Compiles the libraries that were loaded with a snapshot. Otherwise the first command that needs
 * them does. False: a library cannot be loaded; err->text is the reason. */
bool engine_script_check_libraries(struct engine *e, struct rd_err *err);

#endif
