#include "rebuild/data.h"

#include "base/resp.h"
#include "engine/admit.h"
#include "engine/command.h"
#include "engine/mem.h"
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

/* ---- commands that cannot run ---- */

static void note_unsupported(struct rebuild_counts *counts, const struct rebuild_step *step,
                             const char *why)
{
    char name[48];
    if (counts->unsupported++ > 0)
        return;
    rd_err_quote(name, sizeof name, step->command->argv[0]);
    snprintf(counts->first_unsupported, sizeof counts->first_unsupported,
             "%.60s at byte %" PRIu64 ": %s: %.50s", step->name, step->offset, name, why);
}

/* line->command NULL: it is in no table. */
static bool cannot_run(struct rebuild_data *data, const struct rebuild_step *step,
                       const struct rebuild_line *line, const char *why, struct rd_err *err)
{
    bool named =
        line->command != NULL && rebuild_unknown_add(&data->unknown, data->session.db, line);
    if (!named && !data->keep_unknown) {
        data->advice = REBUILD_NEEDS_SERVER;
        return refuse(step, why, err);
    }
    data->counts.lost |= !named;
    note_unsupported(&data->counts, step, why);
    return true;
}

static bool changes_keys(const struct rebuild_line *line)
{
    return line->command->group != ENGINE_GROUP_SCRIPTING || rebuild_unknown_names_keys(line);
}

/* An error of a script has occurred on the server too, and its earlier changes are in the data. */
static bool take_error(struct rebuild_data *data, const struct rebuild_step *step,
                       const struct rebuild_line *line, struct rd_err *err)
{
    if (data->script_ended && !data->script_ran_foreign)
        return true;
    if (data->script_ended)
        rebuild_unknown_add(&data->unknown, data->session.db, line);
    if (data->script_ended || data->reply.by_data || !changes_keys(line)) {
        note_refusal(&data->counts, step, data->reply.text);
        return true;
    }
    const char *text = data->reply.text;
    return cannot_run(data, step, line, strncmp(text, "ERR ", 4) == 0 ? text + 4 : text, err);
}

/* ---- one command ---- */

static bool run(struct rebuild_data *data, const struct rebuild_step *step,
                const struct rebuild_line *line, struct rd_err *err)
{
    const struct engine_env env = {.now_us = step->now_us};
    unsigned db = data->session.db;
    if (line->command == NULL)
        return cannot_run(data, step, line, "unknown command", err);
    if (RD_UNLIKELY(data->unknown.n > 0))
        rebuild_unknown_before(&data->unknown, data->engine, db, line);
    engine_reply_reset(&data->reply);
    data->script_ended = data->script_ran_foreign = data->script_tainted = false;
    data->step_us = step->now_us;
    const struct engine_request request = {.session = &data->session,
                                           .command = line->command,
                                           .argc = line->argc,
                                           .argv = line->argv,
                                           .reply = &data->reply,
                                           .fx = &data->effects};
    enum engine_status status = engine_apply_command(data->engine, &request, &env);
    if (status == ENGINE_ELSEWHERE)
        return engine_command_has_no_data(line->command) ||
               cannot_run(data, step, line, "the engine cannot run it", err);
    bool by_form = data->reply.error && !data->reply.by_data && !data->script_ended;
    bool is_unknown = RD_UNLIKELY(data->unknown.n > 0) && !by_form &&
                      rebuild_unknown_after(&data->unknown, db, line);
    return !data->reply.error || is_unknown || take_error(data, step, line, err);
}

/* ---- transactions ---- */

struct rebuild_queued {
    uint64_t offset;
    size_t argc;
    struct rd_slice *argv; /* one block, with the bytes after it */
};

static void add_to_queue(struct rebuild_queue *queue, const struct rebuild_step *step)
{
    const struct resp_command *cmd = step->command;
    if (queue->n == queue->cap) {
        queue->cap = queue->cap > 0 ? queue->cap * 2 : 16;
        queue->list = engine_scratch_realloc(queue->list, queue->cap * sizeof *queue->list);
    }
    struct rebuild_queued *queued = &queue->list[queue->n++];
    *queued = (struct rebuild_queued){.offset = step->offset,
                                      .argc = cmd->argc,
                                      .argv = engine_scratch_alloc(rebuild_line_copy_size(cmd))};
    rebuild_line_copy(cmd, queued->argv);
}

static void close_queue(struct rebuild_queue *queue)
{
    for (size_t i = 0; i < queue->n; i++)
        engine_scratch_free(queue->list[i].argv);
    queue->n = 0;
    queue->open = false;
}

static bool run_queue(struct rebuild_data *data, const struct rebuild_step *exec,
                      struct rd_err *err)
{
    struct rebuild_queue *queue = &data->queue;
    bool ok = true;
    for (size_t i = 0; ok && i < queue->n; i++) {
        const struct rebuild_queued *queued = &queue->list[i];
        const struct resp_command command = {.argc = queued->argc, .argv = queued->argv};
        const struct rebuild_line line = {engine_command_resolve(queued->argv, queued->argc),
                                          queued->argc, queued->argv};
        const struct rebuild_step step = {.command = &command,
                                          .name = exec->name,
                                          .offset = queued->offset,
                                          .now_us = exec->now_us};
        ok = run(data, &step, &line, err);
    }
    close_queue(queue);
    return ok;
}

static bool is_group(const struct engine_command *command, enum engine_group group)
{
    return command != NULL && command->group == group;
}

/* MULTI, EXEC or DISCARD where it can be; *ret: whether it succeeded. */
static bool take_transaction(struct rebuild_data *data, const struct engine_command *command,
                             const struct rebuild_step *step, bool *ret, struct rd_err *err)
{
    struct rebuild_queue *queue = &data->queue;
    *ret = true;
    if (strcmp(command->name, "multi") == 0 && !queue->open)
        queue->open = true;
    else if (strcmp(command->name, "exec") == 0 && queue->open)
        *ret = run_queue(data, step, err);
    else if (strcmp(command->name, "discard") == 0 && queue->open)
        close_queue(queue);
    else
        return false;
    return true;
}

bool rebuild_data_apply(struct rebuild_data *data, const struct rebuild_step *step,
                        struct rd_err *err)
{
    const struct resp_command *cmd = step->command;
    const struct rebuild_line line = {engine_command_resolve(cmd->argv, cmd->argc), cmd->argc,
                                      cmd->argv};
    bool ok;
    data->counts.commands++;
    if (RD_UNLIKELY(is_group(line.command, ENGINE_GROUP_TRANSACTIONS)) &&
        take_transaction(data, line.command, step, &ok, err))
        return ok;
    if (RD_LIKELY(!data->queue.open))
        return run(data, step, &line, err);
    add_to_queue(&data->queue, step);
    return true;
}

void rebuild_data_ahead(struct rebuild_data *data, struct rd_slice key)
{
    engine_db_ahead(engine_db(data->engine, data->session.db), &data->keys_ahead, key);
}

/* A command among the keys of the snapshot of a replication stream. */
static bool run_update(void *ctx, unsigned db, struct rd_slice bytes, struct rd_err *err)
{
    struct rebuild_data *data = ctx;
    struct rd_src *src;
    struct rd_resp_reader *reader;
    struct resp_command command;
    unsigned was = data->session.db;
    if (!rd_src_open_memory(&src, bytes, NULL, err))
        return false;
    bool ok = rd_resp_reader_new(&reader, src, NULL, err);
    if (ok) {
        const struct rebuild_step step = {
            .command = &command, .name = "snapshot", .now_us = data->now_us};
        ok = rd_resp_reader_next(reader, &command) == RESP_COMMAND;
        if (!ok)
            rd_err_adopt(err, rd_resp_reader_err(reader));
        data->session.db = db;
        ok = ok && rebuild_data_apply(data, &step, err);
        data->session.db = was;
        rd_resp_reader_free(reader);
    }
    rd_src_close(src);
    return ok;
}

bool rebuild_data_load(struct rebuild_data *data, struct rdb_reader *snapshot, const char *name,
                       int64_t *ret_saved_s, struct rd_err *err)
{
    const struct engine_load_opts opts = {
        .keep_expired = true, .keep_scripts = true, .on_update = run_update, .ctx = data};
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
    data->counts.unknown = data->unknown.n;
    rebuild_unknown_list(&data->unknown, data->counts.unknown_names,
                         sizeof data->counts.unknown_names);
    if (!data->keep_unknown)
        rebuild_unknown_remove(&data->unknown, data->engine);
    engine_save_fitting(data->engine, &opts.dialect, &opts.version);
    data->counts.keys = count_keys(data->engine);
    return engine_save(data->engine, out, &opts, err);
}

/* ---- begin and end ---- */

/* A command of a server in a script or a transaction. Messages have no effect on the data set. */
static void run_foreign(void *ctx, const struct engine_request *request)
{
    struct rebuild_data *data = ctx;
    const struct engine_command *command = request->command;
    struct engine_reply *reply = request->reply;
    if (command->group == ENGINE_GROUP_PUBSUB)
        engine_reply_int(reply, 0);
    else if (strcmp(command->name, "lastsave") == 0)
        engine_reply_int(reply, data->step_us / 1000000);
    else {
        engine_reply_errorf(reply, "ERR only a server can run '%s'", command->name);
        data->script_ran_foreign = true;
    }
}

/* A command that is in no table. */
static void note_script_refusal(void *ctx, const struct engine_command *command, const char *error)
{
    struct rebuild_data *data = ctx;
    (void)error;
    data->script_ran_foreign |= command == NULL;
}

/* Sees each command of a script with its arguments; refuses none. */
static enum engine_permit permit_in_script(void *ctx, const struct engine_request *request)
{
    struct rebuild_data *data = ctx;
    const struct rebuild_line line = {request->command, request->argc, request->argv};
    if (data->on_script_line != NULL)
        data->on_script_line(data->ctx, data->script_db, &line);
    if (data->unknown.n > 0)
        rebuild_unknown_in_script(&data->unknown, data->script_db, &line, &data->script_tainted);
    return ENGINE_PERMIT_OK;
}

static void admit_in_script(void *ctx, const struct engine_session *s, struct engine_admit *admit)
{
    static const struct engine_admit_hooks hooks = {.permit = permit_in_script};
    struct rebuild_data *data = ctx;
    if (data->unknown.n == 0 && data->on_script_line == NULL)
        return;
    data->script_db = s->db;
    admit->state |= ENGINE_ADMIT_RESTRICTED;
    admit->hooks = &hooks;
    admit->ctx = data;
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
    config.keep_newer = true;
    data->ahead = rd_prefault_begin();
    data->engine = engine_new(&(struct engine_opts){.seed = 1, .config = &config});
    engine_set_hooks(data->engine, &(struct engine_hooks){
                                       .foreign = run_foreign,
                                       .script_ended = note_script,
                                       .script_admit = admit_in_script,
                                       .script_refused = note_script_refusal,
                                       .ctx = data,
                                   });
    engine_session_init(&data->session, data->engine, ENGINE_LOADING);
    data->reply = (struct engine_reply){.proto = 2, .off = true};
    data->effects.off = true;
}

void rebuild_data_end(struct rebuild_data *data)
{
    close_queue(&data->queue);
    engine_scratch_free(data->queue.list);
    rebuild_unknown_done(&data->unknown);
    engine_session_done(&data->session);
    engine_effects_done(&data->effects);
    engine_reply_done(&data->reply);
    engine_delete(data->engine);
    rd_prefault_end(data->ahead);
}
