/* The log at the start: a directory, or the single file of versions before 7.0, which is moved to a
 * directory.
 *
 * An incomplete end is cut off before its transaction. Only the last file may have one: the
 * commands of the following files would run on incomplete data.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aof/reader.h"
#include "engine/db.h"
#include "server/session/client/client.h"
#include "server/session/dispatch/dispatch.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist_impl.h"

enum { WINDOW = 1024 * 1024 };

struct replay {
    struct durable *durable;
    struct aof_manifest manifest;
    struct aof_reader *reader;
    struct client *c; /* the session that runs the commands */
    struct engine_effects fx;
    struct engine_reply reply;
    struct engine_db_ahead keys_ahead;
    uint64_t before; /* bytes of the files before the current one */
    int64_t file_began_us;
    size_t last;                     /* index of the last file */
    const struct aof_file *unopened; /* the file that cannot be opened */
    bool failed;                     /* the reason was logged */
};

static bool is_old_style(const struct durable *durable, const char *name)
{
    return strcmp(name, durable->loop->settings.appendfilename) == 0;
}

/* ---- the manifest ---- */

struct fault {
    bool found;
    enum aof_manifest_problem problem;
    unsigned line;
};

static void on_problem(void *ctx, enum aof_manifest_problem problem, uint64_t offset, unsigned line,
                       const char *text)
{
    struct fault *fault = ctx;
    (void)offset;
    (void)text;
    if (!fault->found && aof_manifest_problem_fatal(problem))
        *fault = (struct fault){true, problem, line};
}

static void read_line(const char *path, unsigned line, char *dst, int size)
{
    FILE *file = fopen(path, "re");
    dst[0] = '\0';
    if (file == NULL)
        return;
    for (unsigned i = 0; i < line && fgets(dst, size, file) != NULL; i++)
        dst[strcspn(dst, "\r\n")] = '\0';
    fclose(file);
}

static void log_fault(const struct fault *fault, const char *path)
{
    char line[AOF_MANIFEST_LINE_MAX + 2];
    bool shows;
    const char *text = aof_manifest_problem_refusal(fault->problem, &shows);
    log_warning("\n*** FATAL AOF MANIFEST FILE ERROR ***\n");
    if (shows) {
        read_line(path, fault->line, line, sizeof line);
        log_warning("Reading the manifest file, at line %u\n", fault->line);
        log_warning(">>> '%s'\n", line);
    }
    log_warning("%s\n", text);
}

static const char *why(const struct rd_err *err)
{
    return err->sys != 0 ? strerror(err->sys) : err->text;
}

/* NOTHING: no manifest, or no file in it. */
static enum persist_loaded read_manifest(struct replay *replay)
{
    char path[PERSIST_PATH], name[PERSIST_PATH];
    struct rd_src *src;
    struct rd_err err = {0};
    struct fault fault = {0};
    snprintf(name, sizeof name, "%s.manifest", replay->durable->loop->settings.appendfilename);
    if (!persist_log_path(replay->durable, name, path, sizeof path))
        return PERSIST_FAILED;
    if (!rd_src_open_file(&src, path, &RD_SRC_OPTS(.regular = true), &err)) {
        if (err.sys == ENOENT)
            return PERSIST_NOTHING;
        log_warning("Fatal error: can't open the AOF manifest file %s for reading: %s", name,
                    why(&err));
        return PERSIST_FAILED;
    }
    bool ok = aof_manifest_read(&replay->manifest, src, on_problem, &fault, &err);
    rd_src_close(src);
    if (fault.found) {
        log_fault(&fault, path);
        return PERSIST_FAILED;
    }
    if (!ok) {
        log_warning("Can't read the AOF manifest file %s: %s", name, err.text);
        return PERSIST_FAILED;
    }
    return aof_manifest_count(&replay->manifest) == 0 ? PERSIST_NOTHING : PERSIST_LOADED;
}

static bool measure(struct replay *replay, uint64_t *ret)
{
    size_t n = 0;
    *ret = 0;
    for (size_t i = 0; i < aof_manifest_count(&replay->manifest); i++) {
        const struct aof_file *file = aof_manifest_file(&replay->manifest, i);
        char path[PERSIST_PATH];
        struct stat st;
        if (file->type == AOF_HISTORY)
            continue;
        if (!persist_log_path(replay->durable, file->name, path, sizeof path) ||
            stat(path, &st) != 0) {
            log_warning("Unable to obtain the AOF file %s length. stat: %s", file->name,
                        strerror(errno));
            return false;
        }
        *ret += (uint64_t)st.st_size;
        replay->last = n++;
        persist_state(replay->durable)->has_incr |= file->type == AOF_INCR;
    }
    return true;
}

/* ---- commands ---- */

static bool refuse_command(const struct replay *replay, const struct aof_event *ev)
{
    char name[160];
    (void)replay;
    rd_err_quote(name, sizeof name, ev->entry.command.argv[0]);
    size_t len = strlen(name);
    log_warning("Unknown command '%.*s' reading the append only file %s",
                (int)(len > 2 ? len - 2 : 0), name + 1, ev->name);
    return false;
}

static void log_error_reply(const struct engine_reply *reply, const struct engine_command *command)
{
    const char *text = reply->text;
    log_warning("== CRITICAL == This server is sending an error to its AOF-loading-client: '%s' "
                "after processing the command '%s'",
                strncmp(text, "ERR ", 4) == 0 ? text + 4 : text, command->name);
}

/* Scripts, functions and modules cannot run here: without their changes the dataset would differ
 * from the logged one. The exceptions clear data that is always empty here. */
static bool can_run(const struct engine_command *command)
{
    return command->owner != ENGINE_OWNER_LATER || command->group == ENGINE_GROUP_PUBSUB;
}

static bool refuse_to_run(const struct engine_command *command, const struct aof_event *ev)
{
    log_warning("Can't run the command '%s' of the append only file %s: modules and clusters are "
                "not supported yet",
                command->name, ev->name);
    return false;
}

/* Commands of the server itself: PUBLISH. */
static void run_elsewhere(struct replay *replay, const struct engine_command *command,
                          const struct resp_command *cmd)
{
    dispatch_fn handler = dispatch_handler(replay->durable->sessions, command);
    if (handler == NULL)
        return;
    struct dispatch_call call = {.sessions = replay->durable->sessions,
                                 .c = replay->c,
                                 .command = command,
                                 .argc = cmd->argc,
                                 .argv = cmd->argv,
                                 .reply = &replay->reply,
                                 .fx = &replay->fx,
                                 .in_exec = true};
    handler(&call);
}

/* Logs have the names of the table. Logs of other servers have the names of rename-command.
 */
static const struct engine_command *find_command(const struct sessions *sessions,
                                                 const struct resp_command *cmd)
{
    const struct engine_command *command = engine_command_resolve(cmd->argv, cmd->argc);
    return command != NULL ? command : dispatch_find(sessions, cmd->argv, cmd->argc);
}

static bool run_command(struct replay *replay, const struct aof_event *ev)
{
    const struct resp_command *cmd = &ev->entry.command;
    struct durable *durable = replay->durable;
    const struct engine_command *command = find_command(replay->durable->sessions, cmd);
    const struct engine_env env = session_env(durable->sessions);
    if (RD_UNLIKELY(command == NULL))
        return refuse_command(replay, ev);
    if (RD_UNLIKELY(!can_run(command)))
        return refuse_to_run(command, ev);
    if (ev->entry.ahead.argc > 1)
        engine_db_ahead(engine_db(durable->sessions->engine, replay->c->session.db),
                        &replay->keys_ahead, ev->entry.ahead.argv[1]);
    const struct engine_request request = {.session = &replay->c->session,
                                           .command = command,
                                           .argc = cmd->argc,
                                           .argv = cmd->argv,
                                           .reply = &replay->reply,
                                           .fx = &replay->fx};
    enum engine_status status = engine_apply_command(durable->sessions->engine, &request, &env);
    if (RD_UNLIKELY(status == ENGINE_ELSEWHERE))
        run_elsewhere(replay, command, cmd);
    if (RD_UNLIKELY(replay->reply.error)) {
        log_error_reply(&replay->reply, command);
        engine_reply_reset(&replay->reply);
    }
    persist_loading_at(durable, replay->before + ev->offset);
    return true;
}

/* ---- the snapshot before the commands ---- */

static bool load_base(struct replay *replay, const struct aof_event *ev)
{
    struct durable *durable = replay->durable;
    struct engine_load_opts opts;
    struct engine_env env = session_env(durable->sessions);
    struct engine_loader *loader;
    struct rd_err err = {0};
    char path[PERSIST_PATH];
    bool old = is_old_style(durable, ev->name);
    log_notice(old ? "Reading RDB preamble from AOF file..."
                   : "Reading RDB base file on AOF loading...");
    if (persist_log_path(durable, ev->name, path, sizeof path))
        persist_report_aux(durable, path);
    persist_load_opts(durable, &opts);
    opts.keep_expired = true; /* the log after it may use such a key */
    if (!engine_loader_new_reader(&loader, durable->sessions->engine, ev->snapshot, &opts, &env,
                                  &err)) {
        persist_report_rdb_error(&err);
        return false;
    }
    bool ok = persist_load_steps(durable, loader, replay->before, &err);
    persist_info(durable)->loaded_keys = engine_loader_info(loader)->keys;
    persist_info(durable)->loaded_expired = engine_loader_info(loader)->expired;
    if (ok)
        persist_report_loaded(engine_loader_info(loader));
    else if (persist_report_rdb_error(&err) == PERSIST_REFUSED)
        log_warning("Error reading the RDB preamble of the AOF file %s, AOF loading aborted",
                    ev->name);
    engine_loader_free(loader);
    if (ok && old)
        log_notice("Reading the remaining AOF tail...");
    return ok;
}

/* ---- reading ---- */

static void end_file(struct replay *replay, const struct aof_file *file, uint64_t bytes)
{
    struct durable *durable = replay->durable;
    loop_clock(durable->loop);
    if (bytes > 0)
        log_notice("DB loaded from %s file %s: %.3f seconds",
                   file->type == AOF_BASE ? "base" : "incr", file->name,
                   (double)(durable->loop->mono_us - replay->file_began_us) / 1e6);
    replay->before += bytes;
}

static bool take_event(struct replay *replay, const struct aof_event *ev)
{
    switch (ev->kind) {
    case AOF_COMMAND:
        return ev->inner || run_command(replay, ev);
    case AOF_RDB:
        return load_base(replay, ev);
    case AOF_FILE_BEGIN:
        loop_clock(replay->durable->loop);
        replay->file_began_us = replay->durable->loop->mono_us;
        return true;
    case AOF_FILE_END:
        end_file(replay, ev->file, ev->whole);
        return true;
    default:
        return true;
    }
}

/* The file ends inside a command. True: it may be cut, and the commands before are kept. */
static bool accept_torn(struct replay *replay, const struct aof_file *file, size_t index)
{
    struct persist_state *state = persist_state(replay->durable);
    uint64_t safe = aof_reader_safe(replay->reader);
    if (!replay->durable->loop->settings.aof_load_truncated) {
        log_warning(
            "Unexpected end of file reading the append only file %s. You can: 1) Make a "
            "backup of your AOF file, then use ./redis-check-aof --fix <filename.manifest>. "
            "2) Alternatively you can set the 'aof-load-truncated' configuration option to "
            "yes and restart the server.",
            file->name);
        return false;
    }
    if (replay->c->session.in_multi)
        log_warning("Revert incomplete MULTI/EXEC transaction in AOF file %s", file->name);
    log_warning("!!! Warning: short read while loading the AOF file %s!!!", file->name);
    if (index != replay->last) {
        log_warning("Fatal error: the truncated file is not the last file");
        return false;
    }
    log_warning("!!! Truncating the AOF %s at offset %" PRIu64 " !!!", file->name, safe);
    log_warning("AOF %s loaded anyway because aof-load-truncated is enabled", file->name);
    engine_session_discard(&replay->c->session);
    state->cut = true;
    state->cut_to = safe;
    end_file(replay, file, safe > 0 ? safe : 1);
    return true;
}

static bool fail(struct replay *replay, const struct aof_file *file, size_t index)
{
    const struct rd_err *err = aof_reader_err(replay->reader);
    const char *name = file != NULL ? file->name : replay->durable->loop->settings.appendfilename;
    if (replay->unopened != NULL)
        name = replay->unopened->name; /* the reader is still at the file before it */
    else if (file == NULL && err->origin[0] != '\0')
        name = err->origin; /* the first file, before its first event */
    if (err->code == RD_ERR_TRUNCATED && file != NULL)
        return accept_torn(replay, file, index);
    if (err->code == RD_ERR_IO)
        log_warning("Unrecoverable error reading the append only file %s: %s", name, why(err));
    else
        log_warning("Bad file format reading the append only file %s: make a backup of your AOF "
                    "file, then use ./redis-check-aof --fix <filename.manifest>",
                    name);
    return false;
}

static bool read_all(struct replay *replay)
{
    struct aof_event ev;
    const struct aof_file *file = NULL;
    size_t index = 0;
    enum aof_status status;
    while ((status = aof_reader_next(replay->reader, &ev)) == AOF_EVENT) {
        file = ev.file;
        index = ev.index;
        if (!take_event(replay, &ev))
            return false;
    }
    return status == AOF_END || fail(replay, file, index);
}

static bool open_file(void *ctx, const struct aof_file *file, struct rd_src **ret,
                      struct rd_err *err)
{
    struct replay *replay = ctx;
    char path[PERSIST_PATH];
    replay->unopened = file;
    if (!persist_log_path(replay->durable, file->name, path, sizeof path))
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the path is too long");
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = WINDOW, .regular = true);
    if (!rd_src_open_file(ret, path, &opts, err))
        return false;
    replay->unopened = NULL;
    return true;
}

static bool replay_all(struct replay *replay)
{
    const struct aof_reader_opts opts =
        AOF_READER_OPTS(.open = open_file, .ctx = replay,
                        /* Any length that proto-max-bulk-len allowed when it was written. BITFIELD
                         * makes strings that exceed ENGINE_VALUE_MAX by a few bytes. */
                        .log = &AOF_LOG_OPTS(.whole = true, .ahead = true, .max_bulk = UINT32_MAX,
                                             .max_memory = SIZE_MAX),
                        .rdb = &RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED,
                                                .no_sum =
                                                    !replay->durable->loop->settings.rdbchecksum ||
                                                    replay->durable->skip_checksum));
    struct rd_err err = {0};
    if (!aof_reader_new(&replay->reader, &replay->manifest, &opts, &err)) {
        log_warning("Can't read the append only file: %s", err.text);
        return false;
    }
    bool ok = read_all(replay);
    aof_reader_free(replay->reader);
    return ok;
}

static enum persist_loaded load_files(struct replay *replay)
{
    uint64_t bytes;
    enum persist_loaded found = read_manifest(replay);
    if (found != PERSIST_LOADED)
        return found;
    if (!measure(replay, &bytes))
        return PERSIST_FAILED;
    persist_loading_begin(replay->durable, bytes);
    bool ok = replay_all(replay);
    persist_loading_end(replay->durable);
    return ok ? PERSIST_LOADED : PERSIST_FAILED;
}

/* ---- preparations ---- */

static bool take_old_log(struct durable *durable)
{
    const char *name = durable->loop->settings.appendfilename;
    struct rd_err err = {0};
    bool there = access(name, F_OK) == 0;
    if (!aof_writer_upgrade(&persist_state(durable)->fs, name, &err)) {
        log_warning("Error trying to move the old AOF file %s into dir %s: %s", name,
                    durable->loop->settings.appenddirname, err.text);
        return false;
    }
    if (there && access(name, F_OK) != 0)
        log_notice("Successfully migrated an old-style AOF file (%s) into the AOF directory (%s).",
                   name, durable->loop->settings.appenddirname);
    return true;
}

enum persist_loaded persist_load_log(struct durable *durable)
{
    struct rd_err err = {0};
    struct replay replay = {
        .durable = durable, .fx = {.off = true}, .reply = {.proto = 2, .off = true}};
    persist_state(durable)->cut = persist_state(durable)->has_incr = false;
    if (!persist_open_fs(durable, &err)) {
        log_warning("Can't open or create append-only dir %s: %s",
                    durable->loop->settings.appenddirname, why(&err));
        return PERSIST_FAILED;
    }
    if (!take_old_log(durable))
        return PERSIST_FAILED;
    aof_manifest_init(&replay.manifest);
    replay.c = client_new(durable->sessions, NULL);
    replay.c->session.role = ENGINE_LOADING;
    enum persist_loaded loaded = load_files(&replay);
    client_free(replay.c);
    engine_effects_done(&replay.fx);
    engine_reply_done(&replay.reply);
    aof_manifest_done(&replay.manifest);
    return loaded;
}
