/* FCALL, FUNCTION. */
#include "engine/cmd/cmd.h"
#include "engine/glob.h"
#include "engine/mem.h"
#include "engine/script/functions.h"
#include "engine/snapshot.h"

#include <stdlib.h>
#include <strings.h>

static void reply_text(struct engine_call *call, char *text)
{
    engine_reply_error(call->reply, text);
    engine_scratch_free(text);
}

/* The libraries are compiled; false: the error was replied. */
static bool ready(struct engine_call *call)
{
    char *error;
    if (script_functions_ready(script_state(call->engine), &error))
        return true;
    reply_text(call, error);
    return false;
}

/* ---- FCALL ---- */

void engine_cmd_fcall(struct engine_call *call)
{
    struct engine_scripts *s = script_state(call->engine);
    size_t n_keys;
    script_announce(call);
    if (s->run != NULL) {
        engine_reply_error(call->reply, "ERR This Redis command is not allowed from script");
        return;
    }
    if (!ready(call))
        return;
    const struct script_function *fn = script_function_find(s, call->argv[1]);
    if (fn == NULL) {
        engine_reply_error(call->reply, "ERR Function not found");
        return;
    }
    if (!script_count_keys(call, "Bad number of keys provided", &n_keys))
        return;
    struct script_start start = {
        .vm = s->functions,
        .ref = fn->ref,
        .flags = fn->flags,
        .name = fn->name,
        .n_keys = n_keys,
        .read_only = (call->command->flags & ENGINE_CMD_READONLY) != 0,
    };
    script_run(call, &start);
}

void engine_cmd_fcall_ro(struct engine_call *call)
{
    engine_cmd_fcall(call);
}

/* ---- FUNCTION LOAD, DELETE, FLUSH ---- */

static void note_change(struct engine_call *call)
{
    call->dirty++;
}

static void unlink_and_free(struct engine_scripts *s, struct script_library *lib)
{
    script_library_unlink(s, lib);
    script_library_free(s, lib);
}

void engine_cmd_function_load(struct engine_call *call)
{
    struct engine_scripts *s = script_state(call->engine);
    struct rd_slice code = call->argv[call->argc - 1];
    const char *why;
    char *error;
    bool replace = false, timed = call->session->role == ENGINE_CLIENT;
    for (size_t i = 2; i + 1 < call->argc; i++) {
        replace = engine_arg_is(call->argv[i], "replace");
        if (!replace) {
            engine_reply_errorf(call->reply, "ERR Unknown option given: %.*s",
                                (int)call->argv[i].len, (const char *)call->argv[i].ptr);
            return;
        }
    }
    if (!ready(call))
        return;
    if (!replace && !script_library_is_new(s, code, &error)) {
        reply_text(call, error);
        return;
    }
    struct script_library *lib = script_library_compile(s, code, timed, &error);
    if (lib == NULL || !script_library_link(s, lib, replace, &error)) {
        script_library_free(s, lib);
        reply_text(call, error);
        return;
    }
    if (!engine_library_load(call->engine, code, true, &why)) {
        unlink_and_free(s, lib);
        engine_reply_errorf(call->reply, "ERR %s", why);
        return;
    }
    s->stale = false;
    engine_reply_str(call->reply, lib->name);
    note_change(call);
}

void engine_cmd_function_delete(struct engine_call *call)
{
    struct engine_scripts *s = script_state(call->engine);
    const char *why;
    if (!ready(call))
        return;
    struct script_library *lib = script_library_find(s, call->argv[2]);
    if (lib == NULL || !engine_library_delete(call->engine, call->argv[2], &why)) {
        engine_reply_error(call->reply, "ERR Library not found");
        return;
    }
    s->stale = false;
    unlink_and_free(s, lib);
    engine_reply_ok(call->reply);
    note_change(call);
}

static void wrong_arity(struct engine_call *call)
{
    engine_reply_errorf(call->reply,
                        "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try "
                        "FUNCTION HELP.",
                        (int)call->argv[1].len, (const char *)call->argv[1].ptr);
}

void engine_cmd_function_flush(struct engine_call *call)
{
    if (call->argc > 3) {
        wrong_arity(call);
        return;
    }
    if (call->argc == 3 && !engine_arg_is(call->argv[2], "sync") &&
        !engine_arg_is(call->argv[2], "async")) {
        engine_reply_error(call->reply, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
        return;
    }
    engine_drop_functions(call->engine);
    script_functions_drop(script_state(call->engine));
    engine_reply_ok(call->reply);
    note_change(call);
}

/* ---- FUNCTION DUMP, RESTORE ---- */

void engine_cmd_function_dump(struct engine_call *call)
{
    struct rd_buf payload = {0};
    engine_library_dump(call->engine, &payload);
    engine_reply_bulk(call->reply, rd_buf_slice(&payload));
    rd_buf_done(&payload);
}

/* The libraries of a payload, compiled and not linked. */
struct restored {
    struct engine_scripts *s;
    struct script_library *first;
    char *error;
};

static bool compile_one(void *ctx, const struct engine_library *kept)
{
    struct restored *r = ctx;
    struct script_library **end = &r->first;
    for (; *end != NULL; end = &(*end)->next)
        if (rd_slice_eq(rd_slice_str((*end)->name), kept->name)) {
            r->error = script_text("ERR Library '%s' already exists", (*end)->name);
            return false;
        }
    *end = script_library_compile(r->s, kept->code, false, &r->error);
    return *end != NULL;
}

static void free_restored(struct restored *r)
{
    while (r->first != NULL) {
        struct script_library *lib = r->first;
        r->first = lib->next;
        script_library_free(r->s, lib);
    }
}

static bool in_list(const struct script_library *list, const char *name)
{
    while (list != NULL && strcmp(list->name, name) != 0)
        list = list->next;
    return list != NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether no two functions of the payload have the same name; otherwise sets the error. */
static bool names_differ(struct restored *r)
{
    size_t n = 0, i = 0;
    for (const struct script_library *lib = r->first; lib != NULL; lib = lib->next)
        for (const struct script_function *fn = lib->functions; fn != NULL; fn = fn->next)
            n++;
    const char **names = engine_scratch_alloc((n + 1) * sizeof *names);
    for (const struct script_library *lib = r->first; lib != NULL; lib = lib->next)
        for (const struct script_function *fn = lib->functions; fn != NULL; fn = fn->next)
            names[i++] = fn->name;
    qsort(names, n, sizeof *names, by_name);
    for (i = 1; i < n && r->error == NULL; i++)
        if (strcasecmp(names[i - 1], names[i]) == 0)
            r->error = script_text("ERR Function %s already exists", names[i]);
    engine_scratch_free(names);
    return r->error == NULL;
}

/* Whether the names of libraries and functions are free; otherwise sets the error. */
static bool names_are_free(struct restored *r, enum engine_library_policy policy)
{
    if (policy == ENGINE_LIBRARY_FLUSH)
        return true;
    for (const struct script_library *lib = r->first; lib != NULL; lib = lib->next)
        if (policy == ENGINE_LIBRARY_APPEND &&
            script_library_find(r->s, rd_slice_str(lib->name)) != NULL) {
            r->error = script_text("ERR Library %s already exists", lib->name);
            return false;
        }
    for (const struct script_library *lib = r->first; lib != NULL; lib = lib->next)
        for (const struct script_function *fn = lib->functions; fn != NULL; fn = fn->next) {
            const struct script_function *other =
                script_function_find(r->s, rd_slice_str(fn->name));
            if (other != NULL && !in_list(r->first, other->library->name)) {
                r->error = script_text("ERR Function %s already exists", fn->name);
                return false;
            }
        }
    return true;
}

static bool read_policy(struct engine_call *call, enum engine_library_policy *ret)
{
    *ret = ENGINE_LIBRARY_APPEND;
    if (call->argc == 3)
        return true;
    if (engine_arg_is(call->argv[3], "replace"))
        *ret = ENGINE_LIBRARY_REPLACE;
    else if (engine_arg_is(call->argv[3], "flush"))
        *ret = ENGINE_LIBRARY_FLUSH;
    else if (!engine_arg_is(call->argv[3], "append")) {
        engine_reply_error(call->reply, "ERR Wrong restore policy given, value should be either "
                                        "FLUSH, APPEND or REPLACE.");
        return false;
    }
    return true;
}

/* The libraries of the payload join the others, which keep their variables. */
static void link_restored(struct restored *r, enum engine_library_policy policy)
{
    struct engine_scripts *s = r->s;
    s->stale = false;
    while (policy == ENGINE_LIBRARY_FLUSH && s->libraries != NULL)
        unlink_and_free(s, s->libraries);
    for (const struct script_library *lib = r->first; lib != NULL; lib = lib->next) {
        struct script_library *old = script_library_find(s, rd_slice_str(lib->name));
        if (old != NULL)
            unlink_and_free(s, old);
    }
    while (r->first != NULL) {
        struct script_library *lib = r->first;
        r->first = lib->next;
        lib->next = NULL;
        if (!script_library_link(s, lib, false, &r->error)) {
            script_library_free(s, lib);
            s->stale = true;
            return;
        }
    }
}

void engine_cmd_function_restore(struct engine_call *call)
{
    struct engine_scripts *s = script_state(call->engine);
    struct restored r = {.s = s};
    enum engine_library_policy policy;
    const char *why = NULL;
    if (call->argc > 4) {
        wrong_arity(call);
        return;
    }
    if (!read_policy(call, &policy) || !ready(call))
        return;
    bool ok = engine_library_read(call->argv[2], &r, compile_one, &why);
    if (r.error == NULL && !ok)
        r.error = script_text("ERR %s", why);
    if (r.error == NULL && names_differ(&r) && names_are_free(&r, policy)) {
        if (engine_library_restore(call->engine, call->argv[2], policy, &why))
            link_restored(&r, policy);
        else
            r.error = script_text("ERR %s", why);
    }
    free_restored(&r);
    if (r.error != NULL) {
        reply_text(call, r.error);
        return;
    }
    engine_reply_ok(call->reply);
    note_change(call);
}

/* ---- FUNCTION LIST, STATS ---- */

static void reply_flags(struct engine_reply *reply, unsigned flags)
{
    unsigned flag;
    const char *name;
    uint64_t n = 0;
    for (unsigned i = 0; script_flag_name(i, &flag) != NULL; i++)
        n += (flags & flag) != 0;
    engine_reply_set(reply, n);
    for (unsigned i = 0; (name = script_flag_name(i, &flag)) != NULL; i++)
        if (flags & flag)
            engine_reply_simple(reply, name);
}

static void reply_function(struct engine_reply *reply, const struct script_function *fn)
{
    engine_reply_map(reply, 3);
    engine_reply_str(reply, "name");
    engine_reply_str(reply, fn->name);
    engine_reply_str(reply, "description");
    if (fn->about != NULL)
        engine_reply_str(reply, fn->about);
    else
        engine_reply_null(reply);
    engine_reply_str(reply, "flags");
    reply_flags(reply, fn->flags);
}

struct listing {
    struct engine_call *call;
    const struct rd_slice *pattern; /* NULL: all */
    bool with_code;
    uint64_t n;
};

static bool list_one(void *ctx, const struct engine_library *kept)
{
    struct listing *list = ctx;
    struct engine_reply *reply = list->call->reply;
    const struct script_library *lib =
        script_library_find(script_state(list->call->engine), kept->name);
    if (lib == NULL ||
        (list->pattern != NULL && !engine_glob_match(*list->pattern, kept->name, true)))
        return true;
    list->n++;
    engine_reply_map(reply, list->with_code ? 4 : 3);
    engine_reply_str(reply, "library_name");
    engine_reply_bulk(reply, kept->name);
    engine_reply_str(reply, "engine");
    engine_reply_str(reply, "LUA");
    engine_reply_str(reply, "functions");
    engine_reply_array(reply, lib->n_functions);
    for (const struct script_function *fn = lib->functions; fn != NULL; fn = fn->next)
        reply_function(reply, fn);
    if (list->with_code) {
        engine_reply_str(reply, "library_code");
        engine_reply_bulk(reply, kept->code);
    }
    return true;
}

void engine_cmd_function_list(struct engine_call *call)
{
    struct listing list = {.call = call};
    struct rd_err err = {0};
    for (size_t i = 2; i < call->argc; i++) {
        struct rd_slice arg = call->argv[i];
        if (!list.with_code && engine_arg_is(arg, "withcode")) {
            list.with_code = true;
        } else if (list.pattern == NULL && engine_arg_is(arg, "libraryname")) {
            if (++i == call->argc) {
                engine_reply_error(call->reply, "ERR library name argument was not given");
                return;
            }
            list.pattern = &call->argv[i];
        } else {
            engine_reply_errorf(call->reply, "ERR Unknown argument %.*s", (int)arg.len,
                                (const char *)arg.ptr);
            return;
        }
    }
    if (!ready(call))
        return;
    size_t mark = engine_reply_mark(call->reply);
    engine_library_each(call->engine, &list, list_one, &err);
    engine_reply_mark_array(call->reply, mark, list.n);
}

static void reply_running(struct engine_call *call, const struct script_run *run)
{
    if (run == NULL) {
        engine_reply_null(call->reply);
        return;
    }
    engine_reply_map(call->reply, 3);
    engine_reply_str(call->reply, "name");
    engine_reply_str(call->reply, run->about.name);
    engine_reply_str(call->reply, "command");
    engine_reply_array(call->reply, run->about.argc);
    for (size_t i = 0; i < run->about.argc; i++)
        engine_reply_bulk(call->reply, run->about.argv[i]);
    engine_reply_str(call->reply, "duration_ms");
    engine_reply_int(call->reply, call->now_ms - run->call->now_ms);
}

void engine_cmd_function_stats(struct engine_call *call)
{
    struct engine_scripts *s = script_state(call->engine);
    const struct script_run *run = s->run;
    if (run != NULL && run->about.is_eval) {
        engine_reply_error(call->reply, "BUSY Redis is busy running a script. You can only call "
                                        "SCRIPT KILL or SHUTDOWN NOSAVE.");
        return;
    }
    if (run == NULL && !ready(call))
        return;
    engine_reply_map(call->reply, 2);
    engine_reply_str(call->reply, "running_script");
    reply_running(call, run);
    engine_reply_str(call->reply, "engines");
    engine_reply_map(call->reply, 1);
    engine_reply_str(call->reply, "LUA");
    engine_reply_map(call->reply, 2);
    engine_reply_str(call->reply, "libraries_count");
    engine_reply_int(call->reply, (int64_t)s->n_libraries);
    engine_reply_str(call->reply, "functions_count");
    engine_reply_int(call->reply, (int64_t)s->n_functions);
}
