#include "engine/command.h"
#include "engine/library.h"
#include "engine/mem.h"
#include "tools/compact_impl.h"

#include <inttypes.h>
#include <strings.h>

static bool refuse(const struct compact_step *step, const char *what, struct rd_err *err)
{
    char name[80];
    rd_err_quote(name, sizeof name, step->command->argv[0]);
    rd_err_set(err, RD_ERR_UNSUPPORTED, step->offset, "%s: %s", name, what);
    rd_err_origin(err, step->name);
    return false;
}

/* It succeeded when it was written to the log, so the data set is not what it was then. */
static void note_refusal(struct compact_run *run, const struct compact_step *step, const char *text)
{
    if (run->result->refused++ == 0)
        snprintf(run->result->first_refused, sizeof run->result->first_refused,
                 "%.60s at byte %" PRIu64 ": %.100s", step->name, step->offset, text);
}

static bool is_one_of(const struct engine_command *command, const char *const *names)
{
    while (*names != NULL && strcmp(command->name, *names) != 0)
        names++;
    return *names != NULL;
}

/* What speaks of the connection or only keeps a script for later, and changes no data. */
static bool is_idle(const struct engine_command *command)
{
    static const char *const names[] = {"replconf",
                                        "script|load",
                                        "script|flush",
                                        "script|exists",
                                        "script|debug",
                                        "script|kill",
                                        "script|help",
                                        "function|list",
                                        "function|dump",
                                        "function|stats",
                                        "function|kill",
                                        "function|help",
                                        NULL};
    return command->group == ENGINE_GROUP_PUBSUB || is_one_of(command, names);
}

/* ---- FUNCTION ---- */

static bool is_word(struct rd_slice arg, const char *word)
{
    return arg.len == strlen(word) && strncasecmp((const char *)arg.ptr, word, arg.len) == 0;
}

static bool function_load(struct engine *e, const struct resp_command *cmd, const char **ret_why)
{
    bool replace = cmd->argc == 4 && is_word(cmd->argv[2], "replace");
    *ret_why = "syntax error";
    return (cmd->argc == 3 || replace) &&
           engine_library_load(e, cmd->argv[cmd->argc - 1], replace, ret_why);
}

static bool function_restore(struct engine *e, const struct resp_command *cmd, const char **ret_why)
{
    enum engine_library_policy policy = ENGINE_LIBRARY_APPEND;
    *ret_why = "syntax error";
    if (cmd->argc > 4)
        return false;
    if (cmd->argc == 4) {
        if (is_word(cmd->argv[3], "flush"))
            policy = ENGINE_LIBRARY_FLUSH;
        else if (is_word(cmd->argv[3], "replace"))
            policy = ENGINE_LIBRARY_REPLACE;
        else if (!is_word(cmd->argv[3], "append"))
            return false;
    }
    return engine_library_restore(e, cmd->argv[2], policy, ret_why);
}

/* Libraries are kept as data. False: it is not one of these commands. */
static bool apply_function(struct compact_run *run, const struct compact_step *step,
                           const struct engine_command *command)
{
    const struct resp_command *cmd = step->command;
    const char *why = "";
    bool ok = true;
    if (strcmp(command->name, "function|load") == 0)
        ok = function_load(run->engine, cmd, &why);
    else if (strcmp(command->name, "function|restore") == 0)
        ok = function_restore(run->engine, cmd, &why);
    else if (strcmp(command->name, "function|delete") == 0)
        ok = cmd->argc == 3 && engine_library_delete(run->engine, cmd->argv[2], &why);
    else if (strcmp(command->name, "function|flush") == 0)
        engine_drop_functions(run->engine);
    else
        return false;
    if (!ok)
        note_refusal(run, step, why);
    return true;
}

bool compact_apply(struct compact_run *run, const struct compact_step *step, struct rd_err *err)
{
    const struct resp_command *cmd = step->command;
    const struct engine_command *command = engine_command_resolve(cmd->argv, cmd->argc);
    const struct engine_env env = {.now_us = step->now_us};
    if (command == NULL)
        return refuse(step, "unknown command", err);
    engine_reply_reset(&run->reply);
    enum engine_status status = engine_apply_command(run->engine, &run->session, command, cmd->argc,
                                                     cmd->argv, &env, &run->reply, &run->effects);
    if (status == ENGINE_ELSEWHERE && !is_idle(command) && !apply_function(run, step, command)) {
        cli_hint(run->cli, "--until-offset ends before it, --skip-command omits it");
        return refuse(step, "it runs a script or a function, whose effect is not in the log", err);
    }
    run->result->commands++;
    if (run->reply.error)
        note_refusal(run, step, run->reply.text);
    return true;
}

bool compact_load(struct compact_run *run, struct rdb_reader *snapshot, const char *name,
                  int64_t *ret_saved_s, struct rd_err *err)
{
    const struct engine_load_opts opts = {.keep_expired = true};
    const struct engine_env env = {.now_us = run->now_us};
    struct engine_loader *loader;
    if (!engine_loader_new_reader(&loader, run->engine, snapshot, &opts, &env, err))
        return false;
    bool ok = engine_loader_step(loader, UINT64_MAX, err) == RDB_END;
    if (ret_saved_s != NULL)
        *ret_saved_s = engine_loader_info(loader)->saved_s;
    engine_loader_free(loader);
    if (!ok)
        rd_err_origin(err, name);
    return ok;
}

bool compact_check_skips(const struct compact_run *run, struct rd_err *err)
{
    if (run->result->skipped >= run->opts->n_skip || run->stopped)
        return true;
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "not found in the log: %zu of the commands to skip",
                      run->opts->n_skip - (size_t)run->result->skipped);
}

static uint64_t count_keys(struct engine *e)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < engine_config(e)->databases; i++)
        n += engine_db_count(engine_db(e, i));
    return n;
}

bool compact_save(struct compact_run *run, struct rd_sink *out, struct rd_err *err)
{
    struct engine_save_opts opts = {
        .compress = true, .two_threads = true, .keep_expired = true, .now_ms = run->now_us / 1000};
    engine_save_fitting(run->engine, &opts.dialect, &opts.version);
    run->result->keys = count_keys(run->engine);
    return engine_save(run->engine, out, &opts, err);
}

/* ---- begin and end ---- */

/* Whose engine it is: the engine has no error for memory that is used up. */
static struct cli *owner;

static void exhausted(size_t size)
{
    cli_hint(owner, "the whole data set of a log is held in memory");
    cli_out_of_memory(owner, size);
}

void compact_begin(struct compact_run *run)
{
    owner = run->cli;
    engine_mem_on_exhausted(exhausted);
    struct engine_config config;
    engine_config_init(&config);
    config.databases = COMPACT_DATABASES;
    run->ahead = rd_prefault_begin();
    run->engine = engine_new(&(struct engine_opts){.seed = 1, .config = &config});
    engine_session_init(&run->session, run->engine, ENGINE_LOADING);
    run->reply = (struct engine_reply){.proto = 2, .off = true};
    run->effects.off = true;
    run->now_us = cli_now_ms() * 1000;
    aof_manifest_init(&run->manifest);
}

void compact_end(struct compact_run *run)
{
    aof_reader_free(run->reader);
    aof_manifest_done(&run->manifest);
    aof_job_done(&run->job);
    stream_in_close(&run->capture);
    engine_session_done(&run->session);
    engine_effects_done(&run->effects);
    engine_reply_done(&run->reply);
    engine_delete(run->engine);
    rd_prefault_end(run->ahead);
}
