/* run_impl.h - private to engine/script/: the scripts of an engine, and the one that runs.
 */
#ifndef ENGINE_SCRIPT_RUN_IMPL_H
#define ENGINE_SCRIPT_RUN_IMPL_H

#include "engine/admit.h"
#include "engine/call.h"
#include "engine/script.h"
#include "engine/script/vm_impl.h"
#include "engine/table.h"

enum { SCRIPT_SHA_LEN = 40, SCRIPT_NUMBER_LEN = 40 };

/* redis.set_repl(): where the effects of a command go. */
enum { SCRIPT_REPL_AOF = 1, SCRIPT_REPL_REPLICA = 2, SCRIPT_REPL_ALL = 3 };

/* A compiled script of EVAL. */
struct script {
    struct script *older, *newer; /* those of EVAL, by their last use */
    bool kept;                    /* of SCRIPT LOAD: is not in that list and stays */
    int ref;                      /* in the registry of the VM */
    unsigned flags;
    size_t body_len;
    char sha[SCRIPT_SHA_LEN + 1];
};

/* ---- functions ---- */

struct script_function {
    struct script_function *next; /* of its library, in order of registration */
    struct script_library *library;
    int ref;
    unsigned flags;
    char *name;
    char *about; /* NULL: none */
};

struct script_library {
    struct script_library *next;
    char *name;
    size_t code_len;
    struct script_function *functions;
    size_t n_functions;
};

/* ---- what an engine has ---- */

struct engine_scripts {
    struct engine *engine;
    struct script_vm *eval, *functions; /* NULL: not needed so far */
    struct engine_table cache;          /* the scripts of `eval` by SHA-1 */
    struct script *last;                /* of `cache`: found by the last lookup; NULL: none */
    struct script *oldest, *newest;     /* of those that are not kept, which are limited */
    uint64_t n_evals, evals_bytes;      /* of them */
    uint64_t scripts_bytes;
    struct script_library *libraries; /* in order of loading */
    int names_ref; /* a table in the registry of `functions`: names in lower case */
    uint64_t n_libraries, n_functions;
    bool stale;      /* the libraries of the engine are not compiled */
    uint64_t random; /* state of math.random() */
    struct engine_session session;
    struct engine_reply reply; /* to a command of a script */
    struct rd_slice *argv;     /* its arguments, and the digits of numbers among them */
    char (*digits)[SCRIPT_NUMBER_LEN];
    size_t cap_argv;
    struct script_run *run;
};

/* Makes it at first use. */
struct engine_scripts *script_state(struct engine *e);

/* One run of a script or function. */
struct script_run {
    struct engine_running about;
    struct engine_call *call; /* EVAL or FCALL */
    struct engine_admit_script rules;
    struct script_vm *vm;
    struct engine_debugger *debugger; /* NULL: none */
    int ref;
    bool verbatim;   /* from a log or a master that has scripts, not their effects */
    bool random_ran; /* verbatim: a command whose reply depends on chance or the clock */
    unsigned proto;  /* redis.setresp() */
    unsigned repl;   /* redis.set_repl() */
    size_t n_keys;
    const struct rd_slice *keys;
    size_t n_args;
    const struct rd_slice *args;
};

/* Runs a function with keys and arguments, and replies. */
struct script_start {
    struct script_vm *vm;
    int ref;
    unsigned flags;
    const char *name;
    size_t n_keys;
    bool read_only; /* the command is one of *_RO */
};

void script_run(struct engine_call *call, const struct script_start *start);

/* To be called first by each command that runs a script. */
void script_announce(struct engine_call *call);

/* The numbers of keys and arguments of EVAL and FCALL. False: an error was replied. */
bool script_count_keys(struct engine_call *call, const char *not_number, size_t *ret_n);

/* ---- cache.c ---- */

/* The script of a SHA-1 in hexadecimal digits; NULL: not cached. */
struct script *script_find(struct engine_scripts *s, struct rd_slice sha);

/* The script of a text, compiled if it is new. `keep`: it stays until SCRIPT FLUSH; of the others
 * (EVAL), those that were not used for longest are removed when there are many. NULL: *ret_error is
 * a reply, to be freed with engine_scratch_free(). */
struct script *script_add(struct engine_scripts *s, struct rd_slice body, bool keep,
                          char **ret_error);

/* It runs now. */
void script_used(struct engine_scripts *s, struct script *script);

/* SCRIPT FLUSH */
void script_forget_all(struct engine_scripts *s);

/* The flags of a first line "#!lua flags=…". *ret_len: its length without the line end. False:
 * *ret_error is the reason, as above. */
bool script_read_flags(struct rd_slice body, unsigned *ret_flags, size_t *ret_len,
                       char **ret_error);

/* The flag of a name ("no-writes"), or 0. */
unsigned script_flag(struct rd_slice name, bool any_case);
/* Iterates over the names, in the order of replies. NULL: the end. */
const char *script_flag_name(unsigned i, unsigned *ret_flag);

/* ---- verbatim.c ---- */

/* Before a command of a script: the error of servers that log scripts, or NULL. */
const char *script_verbatim_refuses(const struct script_run *run,
                                    const struct engine_command *command);

/* After it, with its reply on top of the stack. */
void script_verbatim_ran(lua_State *L, struct script_run *run,
                         const struct engine_command *command);

/* ---- shebang.c ---- */

/* A formatted error, on the heap of engine_scratch_alloc(). */
char *script_text(const char *fmt, ...) RD_PRINTF(1, 2);

/* ---- api.c ---- */

/* The parts of `redis` that libraries have while they are loaded. */
void script_add_log_api(lua_State *L);

/* ---- convert.c ---- */

/* Pushes a reply in RESP2 or RESP3. */
void script_push_reply(lua_State *L, const uint8_t *ptr, size_t len);

/* Appends the value on top of the stack, and pops it. */
void script_add_value(lua_State *L, struct engine_reply *reply, unsigned script_proto);

#endif
