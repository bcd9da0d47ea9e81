#include "rebuild/data.h"

#include "base/resp.h"
#include "engine/command.h"
#include "engine/script.h"
#include "engine/snapshot.h"

#include <inttypes.h>
#include <stdio.h>

static bool refuse(const struct rebuild_step *step, const char *what, struct rd_err *err)
{
    char name[80];
    rd_err_quote(name, sizeof name, step->command->argv[0]);
    rd_err_set(err, RD_ERR_UNSUPPORTED, step->offset, "%s: %s", name, what);
    rd_err_origin(err, step->name);
    return false;
}

/* The command succeeded when it was written to the log, so the dataset differs from the original
 * one. */
static void note_refusal(struct rebuild_counts *counts, const struct rebuild_step *step,
                         const char *text)
{
    if (counts->refused++ == 0)
        snprintf(counts->first_refused, sizeof counts->first_refused,
                 "%.60s at byte %" PRIu64 ": %.100s", step->name, step->offset, text);
}

/* Commands about messages, connections, scripts, the files of a server or the slots of a cluster.
 * 2.6 and 2.8 log SAVE. Of those of a cluster, only RESET can remove keys. */
static bool has_no_data(const struct engine_command *command)
{
    return command->group == ENGINE_GROUP_PUBSUB || (command->flags & ENGINE_CMD_NO_DATA) != 0 ||
           (command->group == ENGINE_GROUP_CLUSTER && strcmp(command->name, "cluster|reset") != 0);
}

bool rebuild_data_apply(struct rebuild_data *data, const struct rebuild_step *step,
                        struct rd_err *err)
{
    const struct resp_command *cmd = step->command;
    const struct engine_command *command = engine_command_resolve(cmd->argv, cmd->argc);
    const struct engine_env env = {.now_us = step->now_us};
    if (command == NULL)
        return refuse(step, "unknown command", err);
    engine_reply_reset(&data->reply);
    data->script_ended = data->script_ran_foreign = false;
    data->step_us = step->now_us;
    enum engine_status status =
        engine_apply_command(data->engine, &data->session, command, cmd->argc, cmd->argv, &env,
                             &data->reply, &data->effects);
    if (status == ENGINE_ELSEWHERE && !has_no_data(command)) {
        data->advice = REBUILD_NEEDS_SERVER;
        return refuse(step, "only a server can run it", err);
    }
    data->counts.commands++;
    /* A script that fails has failed on the server too, and its earlier changes are in the data. */
    if (data->reply.error && (!data->script_ended || data->script_ran_foreign))
        note_refusal(&data->counts, step, data->reply.text);
    return true;
}

void rebuild_data_ahead(struct rebuild_data *data, struct rd_slice key)
{
    engine_db_ahead(engine_db(data->engine, data->session.db), &data->keys_ahead, key);
}

bool rebuild_data_load(struct rebuild_data *data, struct rdb_reader *snapshot, const char *name,
                       int64_t *ret_saved_s, struct rd_err *err)
{
    const struct engine_load_opts opts = {.keep_expired = true, .keep_scripts = true};
    const struct engine_env env = {.now_us = data->now_us};
    struct engine_loader *loader;
    if (!engine_loader_new_reader(&loader, data->engine, snapshot, &opts, &env, err))
        return false;
    bool ok = engine_loader_step(loader, UINT64_MAX, err) == RDB_END;
    if (ret_saved_s != NULL)
        *ret_saved_s = engine_loader_info(loader)->saved_s;
    engine_loader_free(loader);
    if (!ok)
        rd_err_origin(err, name);
    return ok;
}

static uint64_t count_keys(struct engine *e)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < engine_config(e)->databases; i++)
        n += engine_db_count(engine_db(e, i));
    return n;
}

bool rebuild_data_save(struct rebuild_data *data, struct rd_sink *out, struct rd_err *err)
{
    struct engine_save_opts opts = {
        .compress = true, .two_threads = true, .keep_expired = true, .now_ms = data->now_us / 1000};
    engine_save_fitting(data->engine, &opts.dialect, &opts.version);
    data->counts.keys = count_keys(data->engine);
    return engine_save(data->engine, out, &opts, err);
}

/* ---- begin and end ---- */

/* A command of a server in a script or a transaction. Messages have no effect on the data set. */
static void run_foreign(void *ctx, struct engine_session *s, const struct engine_command *command,
                        size_t argc, const struct rd_slice *argv, struct engine_reply *reply,
                        struct engine_effects *fx)
{
    struct rebuild_data *data = ctx;
    (void)s, (void)argc, (void)argv, (void)fx;
    if (command->group == ENGINE_GROUP_PUBSUB)
        engine_reply_int(reply, 0);
    else if (strcmp(command->name, "lastsave") == 0)
        engine_reply_int(reply, data->step_us / 1000000);
    else {
        engine_reply_errorf(reply, "ERR only a server can run '%s'", command->name);
        data->script_ran_foreign = true;
    }
}

static void note_script(void *ctx, const struct engine_running *running)
{
    struct rebuild_data *data = ctx;
    (void)running;
    data->script_ended = true;
}

void rebuild_data_begin(struct rebuild_data *data, int64_t now_us)
{
    struct engine_config config;
    *data = (struct rebuild_data){.now_us = now_us};
    engine_config_init(&config);
    config.databases = REBUILD_DATABASES;
    data->ahead = rd_prefault_begin();
    data->engine = engine_new(&(struct engine_opts){.seed = 1, .config = &config});
    engine_set_hooks(data->engine, &(struct engine_hooks){
                                       .foreign = run_foreign,
                                       .script_ended = note_script,
                                       .ctx = data,
                                   });
    engine_session_init(&data->session, data->engine, ENGINE_LOADING);
    data->reply = (struct engine_reply){.proto = 2, .off = true};
    data->effects.off = true;
}

void rebuild_data_end(struct rebuild_data *data)
{
    engine_session_done(&data->session);
    engine_effects_done(&data->effects);
    engine_reply_done(&data->reply);
    engine_delete(data->engine);
    rd_prefault_end(data->ahead);
}
