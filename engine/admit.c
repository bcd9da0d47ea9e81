#include "engine/admit.h"

#include "engine/state_impl.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- refusals ---- */

static enum engine_admit_answer refuse(struct engine_refusal *ret, enum engine_refused why,
                                       const char *text)
{
    ret->why = why;
    ret->text = text;
    return ENGINE_ADMIT_REFUSE;
}

RD_PRINTF(3, 4)
static enum engine_admit_answer refuse_with(struct engine_refusal *ret, enum engine_refused why,
                                            const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(ret->line, sizeof ret->line, fmt, args);
    va_end(args);
    return refuse(ret, why, ret->line);
}

void engine_refuse(const struct engine_request *request, const struct engine_refusal *refusal)
{
    struct engine_session *s = request->session;
    const struct engine_command *command = request->command;
    struct engine_reply *reply = request->reply;
    const char *text = refusal->text;
    if (command == NULL || (command->flags & ENGINE_CMD_RUNS_QUEUE) == 0) {
        s->dirty_exec |= s->in_multi;
        engine_reply_error(reply, text);
        return;
    }
    engine_session_discard(s);
    if (refusal->why == ENGINE_REFUSED_ROUTE) { /* clients follow it */
        engine_reply_error(reply, text);
        return;
    }
    engine_reply_errorf(reply, "EXECABORT Transaction discarded because of: %s",
                        strncmp(text, "ERR ", 4) == 0 ? text + 4 : text);
}

/* ---- unknown commands ---- */

enum { SHOWN_MAX = 128 }; /* bytes of a name, and of all arguments */

static int shown(struct rd_slice arg, size_t max)
{
    return (int)(arg.len < max ? arg.len : max);
}

static enum engine_admit_answer unknown_subcommand(const struct rd_slice *argv,
                                                   struct engine_refusal *ret)
{
    char upper[ENGINE_NAME_SHOWN];
    engine_reply_shown_name(argv[0], upper);
    return refuse_with(ret, ENGINE_REFUSED_UNKNOWN, "ERR unknown subcommand '%.*s'. Try %s HELP.",
                       shown(argv[1], SHOWN_MAX), (const char *)argv[1].ptr, upper);
}

static enum engine_admit_answer unknown_command(size_t argc, const struct rd_slice *argv,
                                                struct engine_refusal *ret)
{
    char args[2 * SHOWN_MAX];
    size_t len = 0;
    args[0] = '\0';
    for (size_t i = 1; i < argc && len < SHOWN_MAX; i++)
        len += (size_t)snprintf(args + len, sizeof args - len, "'%.*s' ",
                                shown(argv[i], SHOWN_MAX - len), (const char *)argv[i].ptr);
    return refuse_with(ret, ENGINE_REFUSED_UNKNOWN,
                       "ERR unknown command '%.*s', with args beginning with: %s",
                       shown(argv[0], SHOWN_MAX), (const char *)argv[0].ptr, args);
}

static bool is_known(const struct engine_admit *admit, const struct engine_session *s,
                     const struct engine_command *command)
{
    return command != NULL &&
           (admit->later_versions || engine_command_at_level(command, s->engine->config.level));
}

static enum engine_admit_answer unknown(const struct engine_admit *admit,
                                        const struct engine_request *request,
                                        struct engine_refusal *ret)
{
    const struct rd_slice *argv = request->argv;
    if (admit->who == ENGINE_ADMIT_SCRIPT)
        return refuse(ret, ENGINE_REFUSED_UNKNOWN, "ERR Unknown Redis command called from script");
    const struct engine_command *container = admit->hooks != NULL && admit->hooks->find != NULL
                                                 ? admit->hooks->find(admit->ctx, argv[0])
                                                 : engine_command_find(argv[0]);
    return request->argc > 1 && is_known(admit, request->session, container)
               ? unknown_subcommand(argv, ret)
               : unknown_command(request->argc, argv, ret);
}

/* ---- arguments that no value can hold ---- */

static bool is_longer(const struct engine_request *request, uint64_t max)
{
    for (size_t i = 1; i < request->argc; i++)
        if (request->argv[i].len > max)
            return true;
    return false;
}

static bool has_long_key(const struct engine_request *request, uint64_t max)
{
    size_t n = 0, argc = request->argc;
    struct engine_key *keys = engine_scratch_alloc(argc * sizeof *keys);
    bool found = false;
    if (engine_command_keys(request->command, request->argv, argc, keys, argc, &n) ==
        ENGINE_KEYS_OK)
        for (size_t i = 0; i < n && i < argc; i++)
            found |= request->argv[keys[i].index].len > max;
    engine_scratch_free(keys);
    return found;
}

static bool is_too_long(const struct engine_config *config, const struct engine_request *request)
{
    const unsigned group = request->command->group;
    if (!is_longer(request, config->name_max))
        return false;
    if (is_longer(request, config->value_max) || group == ENGINE_GROUP_STREAM)
        return true;
    if (group == ENGINE_GROUP_HASH && is_longer(request, config->field_max))
        return true;
    return has_long_key(request, config->name_max);
}

/* No check is needed if the protocol limit excludes longer arguments. */
static inline bool too_long(const struct engine_request *request)
{
    const struct engine_session *s = request->session;
    const struct engine_config *config = &s->engine->config;
    bool held_back = s->role == ENGINE_CLIENT && config->proto_max_bulk_len <= config->name_max;
    return !RD_LIKELY(held_back) && is_too_long(config, request);
}

/* ---- what the command does ---- */

/* A command with this flag, or EXEC with one in its queue. */
static bool does(const struct engine_request *request, uint64_t flags)
{
    uint64_t all = request->command->flags;
    if ((all & ENGINE_CMD_RUNS_QUEUE) != 0)
        all |= request->session->queued_any;
    return (all & flags) != 0;
}

/* A command without this flag, or EXEC with one in its queue. */
static bool lacks(const struct engine_request *request, uint64_t flag)
{
    const struct engine_session *s = request->session;
    const struct engine_command *command = request->command;
    bool has = (command->flags & flag) != 0;
    if (has && (command->flags & ENGINE_CMD_RUNS_QUEUE) != 0 && s->n_queued > 0)
        has = (s->queued_all & flag) != 0;
    return !has;
}

/* ---- scripts ---- */

static enum engine_admit_answer refuse_permit_in_script(enum engine_permit lacking,
                                                        struct engine_refusal *ret)
{
    const char *text = "ERR The user executing the script can't run this command or subcommand";
    if (lacking == ENGINE_PERMIT_NO_KEY)
        text = "ERR The user executing the script can't access at least one of the keys mentioned "
               "in the command arguments";
    else if (lacking == ENGINE_PERMIT_NO_CHANNEL)
        text = "ERR The user executing the script can't publish to the channel mentioned in the "
               "command";
    return refuse(ret, ENGINE_REFUSED_NOPERM, text);
}

static const char no_memory[] = "OOM command not allowed when used memory > 'maxmemory'.";
static const char no_replicas[] = "NOREPLICAS Not enough good replicas to write.";
const char engine_refused_stale[] =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
static const char read_only[] = "READONLY You can't write against a read only replica.";

/* State that stops the first write of a script; a later one must not be stopped halfway. */
static enum engine_admit_answer admit_write_in_script(const struct engine_admit *admit,
                                                      struct engine_refusal *ret)
{
    if (admit->script->wrote)
        return ENGINE_ADMIT_RUN;
    if (!admit->script->obeyed && (admit->state & ENGINE_ADMIT_READONLY_REPLICA) != 0)
        return refuse(ret, ENGINE_REFUSED_READONLY, read_only);
    if (!admit->script->obeyed && (admit->state & ENGINE_ADMIT_DISK_ERROR) != 0)
        return refuse(ret, ENGINE_REFUSED_DISK, admit->disk_error);
    if ((admit->state & ENGINE_ADMIT_LACKS_REPLICAS) != 0)
        return refuse(ret, ENGINE_REFUSED_NO_REPLICAS, no_replicas);
    return ENGINE_ADMIT_RUN;
}

/* Nearly all commands without keys need no question. */
static enum engine_admit_answer route(const struct engine_admit *admit,
                                      const struct engine_request *request,
                                      struct engine_refusal *ret)
{
    const struct engine_command *command = request->command;
    if ((admit->state & ENGINE_ADMIT_CLUSTER) == 0 ||
        (command->n_key_specs == 0 &&
         (command->flags & (ENGINE_CMD_MOVABLE_KEYS | ENGINE_CMD_RUNS_QUEUE)) == 0) ||
        admit->hooks->route(admit->ctx, admit->script, request, ret))
        return ENGINE_ADMIT_RUN;
    ret->why = ENGINE_REFUSED_ROUTE;
    return ENGINE_ADMIT_REFUSE;
}

static enum engine_admit_answer admit_in_script(const struct engine_admit *admit,
                                                const struct engine_request *request,
                                                struct engine_refusal *ret)
{
    const struct engine_admit_script *script = admit->script;
    const struct engine_command *command = request->command;
    if ((command->flags & ENGINE_CMD_NOSCRIPT) != 0 && !script->all_commands)
        return refuse(ret, ENGINE_REFUSED_IN_SCRIPT,
                      "ERR This Redis command is not allowed from script");
    if ((admit->state & ENGINE_ADMIT_STALE) != 0 && (command->flags & ENGINE_CMD_STALE) == 0)
        return refuse(ret, ENGINE_REFUSED_STALE,
                      "ERR Can not execute the command on a stale replica");
    if ((admit->state & ENGINE_ADMIT_RESTRICTED) != 0) {
        enum engine_permit lacking = admit->hooks->permit(admit->ctx, request);
        if (lacking != ENGINE_PERMIT_OK)
            return refuse_permit_in_script(lacking, ret);
    }
    if (script->read_only && (command->flags & (ENGINE_CMD_WRITE | ENGINE_CMD_MAY_REPLICATE)) != 0)
        return refuse(ret, ENGINE_REFUSED_READONLY_SCRIPT,
                      "ERR Write commands are not allowed from read-only scripts.");
    if ((command->flags & ENGINE_CMD_WRITE) != 0 &&
        admit_write_in_script(admit, ret) == ENGINE_ADMIT_REFUSE)
        return ENGINE_ADMIT_REFUSE;
    if (too_long(request))
        return refuse(ret, ENGINE_REFUSED_TOO_LONG,
                      "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    if (script->out_of_memory && !script->allow_oom && !script->obeyed && !script->wrote &&
        (command->flags & ENGINE_CMD_DENYOOM) != 0)
        return refuse(ret, ENGINE_REFUSED_OOM, no_memory);
    return route(admit, request, ret);
}

/* ---- clients ---- */

static enum engine_admit_answer refuse_protected(const struct engine_command *command,
                                                 struct engine_refusal *ret)
{
    const struct engine_command *named = command->container != NULL ? command->container : command;
    char upper[32] = "";
    for (size_t i = 0; i < named->name_len && i < sizeof upper - 1; i++)
        upper[i] = (char)(named->name[i] & ~0x20);
    return refuse_with(ret, ENGINE_REFUSED_PROTECTED,
                       "ERR %s command not allowed. If the enable-%s-command option is set to "
                       "\"local\", you can run it from a local connection, otherwise you need to "
                       "set this option in the configuration file, and then restart the server.",
                       upper, named->name);
}

static enum engine_admit_answer refuse_permit(const struct engine_command *command,
                                              enum engine_permit lacking,
                                              struct engine_refusal *ret)
{
    if (lacking == ENGINE_PERMIT_NO_COMMAND)
        return refuse_with(ret, ENGINE_REFUSED_NOPERM,
                           "NOPERM this user has no permissions to run the '%s' command",
                           command->name);
    return refuse_with(ret, ENGINE_REFUSED_NOPERM,
                       "NOPERM this user has no permissions to access one of the %s used as "
                       "arguments",
                       lacking == ENGINE_PERMIT_NO_KEY ? "keys" : "channels");
}

/* Memory, disk and replicas. Queueing a command in a transaction takes memory. */
static enum engine_admit_answer admit_resources(const struct engine_admit *admit,
                                                const struct engine_request *request,
                                                struct engine_refusal *ret)
{
    const struct engine_command *command = request->command;
    uint32_t state = admit->state;
    if ((state & ENGINE_ADMIT_MEMORY_LIMITED) != 0 && !admit->hooks->make_room(admit->ctx) &&
        (does(request, ENGINE_CMD_DENYOOM) ||
         (request->session->in_multi && (command->flags & ENGINE_CMD_ENDS_MULTI) == 0)))
        return refuse(ret, ENGINE_REFUSED_OOM, no_memory);
    if ((state & ENGINE_ADMIT_DISK_ERROR) != 0 &&
        (does(request, ENGINE_CMD_WRITE) || (command->flags & ENGINE_CMD_REPORTS_DISK) != 0))
        return refuse(ret, ENGINE_REFUSED_DISK, admit->disk_error);
    if ((state & (ENGINE_ADMIT_LACKS_REPLICAS | ENGINE_ADMIT_READONLY_REPLICA)) == 0 ||
        !does(request, ENGINE_CMD_WRITE))
        return ENGINE_ADMIT_RUN;
    if ((state & ENGINE_ADMIT_LACKS_REPLICAS) != 0)
        return refuse(ret, ENGINE_REFUSED_NO_REPLICAS, no_replicas);
    return refuse(ret, ENGINE_REFUSED_READONLY, read_only);
}

/* What the server can do now. */
static enum engine_admit_answer admit_mode(const struct engine_admit *admit,
                                           const struct engine_request *request,
                                           struct engine_refusal *ret)
{
    const struct engine_command *command = request->command;
    uint32_t state = admit->state;
    if ((state & ENGINE_ADMIT_SUBSCRIBED) != 0 && (command->flags & ENGINE_CMD_IN_PUBSUB) == 0)
        return refuse_with(ret, ENGINE_REFUSED_SUBSCRIBED,
                           "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING "
                           "/ QUIT / RESET are allowed in this context",
                           command->name);
    if ((state & ENGINE_ADMIT_STALE) != 0 && lacks(request, ENGINE_CMD_STALE))
        return refuse(ret, ENGINE_REFUSED_STALE, engine_refused_stale);
    if (((state & ENGINE_ADMIT_LOADING) != 0 && lacks(request, ENGINE_CMD_LOADING)) ||
        ((state & ENGINE_ADMIT_ASYNC_LOADING) != 0 && does(request, ENGINE_CMD_NO_ASYNC_LOADING)))
        return refuse(ret, ENGINE_REFUSED_LOADING,
                      "LOADING Redis is loading the dataset in memory");
    if ((state & (ENGINE_ADMIT_BUSY_SCRIPT | ENGINE_ADMIT_BUSY_FUNCTION)) != 0 &&
        (command->flags & ENGINE_CMD_ALLOW_BUSY) == 0)
        return refuse_with(ret, ENGINE_REFUSED_BUSY,
                           "BUSY Redis is busy running a script. You can only call %s KILL or "
                           "SHUTDOWN NOSAVE.",
                           (state & ENGINE_ADMIT_BUSY_SCRIPT) != 0 ? "SCRIPT" : "FUNCTION");
    return ENGINE_ADMIT_RUN;
}

/* A replica does not use the keyspace, and is never paused. */
static enum engine_admit_answer admit_time(const struct engine_admit *admit,
                                           const struct engine_request *request,
                                           struct engine_refusal *ret)
{
    const uint64_t writes = ENGINE_CMD_WRITE | ENGINE_CMD_MAY_REPLICATE;
    if (admit->who == ENGINE_ADMIT_REPLICA)
        return does(request, writes | ENGINE_CMD_READONLY)
                   ? refuse(ret, ENGINE_REFUSED_REPLICA,
                            "ERR Replica can't interact with the keyspace")
                   : ENGINE_ADMIT_RUN;
    if ((admit->state & ENGINE_ADMIT_PAUSED) != 0 ||
        ((admit->state & ENGINE_ADMIT_PAUSED_WRITES) != 0 && does(request, writes)))
        return ENGINE_ADMIT_WAIT;
    return ENGINE_ADMIT_RUN;
}

/* The checks that some state makes necessary. */
static enum engine_admit_answer admit_client(const struct engine_admit *admit,
                                             const struct engine_request *request,
                                             struct engine_refusal *ret)
{
    if ((admit->state & ENGINE_ADMIT_RESTRICTED) != 0) {
        enum engine_permit lacking = admit->hooks->permit(admit->ctx, request);
        if (lacking != ENGINE_PERMIT_OK)
            return refuse_permit(request->command, lacking, ret);
    }
    enum engine_admit_answer answer = route(admit, request, ret);
    if (answer != ENGINE_ADMIT_RUN)
        return answer;
    if ((admit->state & ENGINE_ADMIT_CLIENTS_LIMITED) != 0 && !admit->hooks->still_open(admit->ctx))
        return ENGINE_ADMIT_GONE;
    if (too_long(request))
        return refuse(ret, ENGINE_REFUSED_TOO_LONG,
                      "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    answer = admit_resources(admit, request, ret);
    if (answer == ENGINE_ADMIT_RUN)
        answer = admit_mode(admit, request, ret);
    if (answer == ENGINE_ADMIT_RUN)
        answer = admit_time(admit, request, ret);
    return answer;
}

/* ---- all ---- */

static bool is_protected(const struct engine_admit *admit, const struct engine_command *command)
{
    return (command->flags & ENGINE_CMD_PROTECTED) != 0 && admit->hooks != NULL &&
           admit->hooks->protected != NULL && !admit->hooks->protected(admit->ctx, command);
}

/* The checks that need no state; ENGINE_ADMIT_RUN: none of them refuses. */
static inline enum engine_admit_answer admit_any(const struct engine_admit *admit,
                                                 const struct engine_request *request,
                                                 struct engine_refusal *ret)
{
    const struct engine_session *s = request->session;
    const struct engine_command *command = request->command;
    if (RD_UNLIKELY(!is_known(admit, s, command)))
        return unknown(admit, request, ret);
    bool in_script = admit->who == ENGINE_ADMIT_SCRIPT;
    if (RD_UNLIKELY(!engine_command_arity_ok(command, request->argc)))
        return in_script
                   ? refuse(ret, ENGINE_REFUSED_ARITY,
                            "ERR Wrong number of args calling Redis command from script")
                   : refuse_with(ret, ENGINE_REFUSED_ARITY,
                                 "ERR wrong number of arguments for '%s' command", command->name);
    if (RD_UNLIKELY(in_script))
        return ENGINE_ADMIT_RUN;
    if (RD_UNLIKELY(is_protected(admit, command)))
        return refuse_protected(command, ret);
    if (RD_UNLIKELY((admit->state & ENGINE_ADMIT_UNAUTHENTICATED) != 0) &&
        (command->flags & ENGINE_CMD_NO_AUTH) == 0)
        return refuse(ret, ENGINE_REFUSED_NOAUTH, "NOAUTH Authentication required.");
    if (RD_UNLIKELY(s->in_multi) && (command->flags & ENGINE_CMD_NO_MULTI) != 0)
        return refuse(ret, ENGINE_REFUSED_IN_MULTI, "ERR Command not allowed inside a transaction");
    return ENGINE_ADMIT_RUN;
}

/* Nearly every command: nothing limits the client, and the command has no rule of its own. */
static inline bool is_plain(const struct engine_admit *admit, const struct engine_request *request)
{
    const struct engine_command *command = request->command;
    return command != NULL && admit->who == ENGINE_ADMIT_CLIENT && admit->state == 0 &&
           !request->session->in_multi &&
           (command->flags & (ENGINE_CMD_LATER_VERSION | ENGINE_CMD_PROTECTED)) == 0 &&
           engine_command_arity_ok(command, request->argc) && !too_long(request);
}

enum engine_admit_answer engine_admit(const struct engine_admit *admit,
                                      const struct engine_request *request,
                                      struct engine_refusal *ret)
{
    if (RD_LIKELY(is_plain(admit, request)))
        return ENGINE_ADMIT_RUN;
    enum engine_admit_answer answer = admit_any(admit, request, ret);
    if (RD_UNLIKELY(answer != ENGINE_ADMIT_RUN))
        return answer;
    if (RD_UNLIKELY(admit->who == ENGINE_ADMIT_SCRIPT))
        return admit_in_script(admit, request, ret);
    if (RD_UNLIKELY(admit->state != 0 || admit->who == ENGINE_ADMIT_REPLICA)) {
        answer = admit_client(admit, request, ret);
        if (answer != ENGINE_ADMIT_RUN)
            return answer;
    } else if (RD_UNLIKELY(too_long(request))) {
        return refuse(ret, ENGINE_REFUSED_TOO_LONG,
                      "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    }
    return request->session->in_multi && (request->command->flags & ENGINE_CMD_AT_ONCE) == 0
               ? ENGINE_ADMIT_QUEUE
               : ENGINE_ADMIT_RUN;
}
