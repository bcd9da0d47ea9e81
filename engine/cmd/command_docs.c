/* COMMAND DOCS: descriptions from the table, and the arguments as a tree. */
#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/cmd/names.h"
#include "engine/command_args.h"
#include "engine/reply.h"

static void reply_field(struct engine_reply *r, const char *name, struct rd_slice value)
{
    engine_reply_str(r, name);
    engine_reply_bulk(r, value);
}

static void reply_text(struct engine_reply *r, const char *name, const char *value)
{
    reply_field(r, name, rd_slice_str(value));
}

/* ---- arguments ---- */

static void reply_arg_name(struct engine_reply *r, const struct engine_arg *arg)
{
    char name[64];
    size_t len = arg->name.len < sizeof name ? arg->name.len : sizeof name;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = arg->name.ptr[i];
        name[i] = (char)(arg->lower_name && c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    reply_field(r, "name", rd_slice(name, len));
}

static void reply_arg_flags(struct engine_reply *r, const struct engine_arg *arg)
{
    engine_reply_str(r, "flags");
    engine_reply_set(r, (uint64_t)arg->optional + arg->multiple + arg->multiple_token);
    if (arg->optional)
        engine_reply_simple(r, "optional");
    if (arg->multiple)
        engine_reply_simple(r, "multiple");
    if (arg->multiple_token)
        engine_reply_simple(r, "multiple_token");
}

static void reply_args(struct engine_reply *r, const struct engine_arg *args,
                       const struct engine_arg *arg, size_t n);

static void reply_arg(struct engine_reply *r, const struct engine_arg *args,
                      const struct engine_arg *arg)
{
    bool flags = arg->optional || arg->multiple;
    engine_reply_map(r, 2 + (uint64_t)(arg->key_spec >= 0) + arg->has_token + (arg->since.len > 0) +
                            (arg->deprecated_since.len > 0) + flags + (arg->n_args > 0));
    reply_arg_name(r, arg);
    reply_text(r, "type", engine_arg_type_name(arg->type));
    if (arg->key_spec >= 0) {
        engine_reply_str(r, "key_spec_index");
        engine_reply_int(r, arg->key_spec);
    }
    if (arg->has_token)
        reply_field(r, "token", arg->token);
    if (arg->since.len > 0)
        reply_field(r, "since", arg->since);
    if (arg->deprecated_since.len > 0)
        reply_field(r, "deprecated_since", arg->deprecated_since);
    if (flags)
        reply_arg_flags(r, arg);
    if (arg->n_args > 0)
        reply_args(r, args, arg + 1, arg->n_args);
}

/* The depth is limited to ENGINE_ARGS_DEPTH by the parser. */
static void reply_args(struct engine_reply *r, const struct engine_arg *args,
                       const struct engine_arg *arg, size_t n)
{
    engine_reply_str(r, "arguments");
    engine_reply_array(r, n);
    for (; arg != NULL; arg = engine_args_next(args, arg))
        reply_arg(r, args, arg);
}

/* ---- everything else ---- */

/* "6.0.0 description; 7.0.0 description" */
static void reply_history(struct engine_reply *r, const char *text)
{
    uint64_t n = 1;
    for (const char *c = text; (c = strchr(c, ';')) != NULL; c++)
        n++;
    engine_reply_str(r, "history");
    engine_reply_set(r, n);
    for (; n > 0; n--) {
        size_t version = strcspn(text, " ");
        size_t len = strcspn(text, ";");
        engine_reply_array(r, 2);
        engine_reply_bulk(r, rd_slice(text, version));
        engine_reply_bulk(r, rd_slice(text + version + 1, len - version - 1));
        text += len + (n > 1 ? 2 : 0);
    }
}

static void reply_doc_flags(struct engine_reply *r, const struct engine_command *cmd)
{
    engine_reply_str(r, "doc_flags");
    engine_reply_set(r, (uint64_t)(cmd->deprecated_since != NULL) + cmd->syscmd);
    if (cmd->deprecated_since != NULL)
        engine_reply_simple(r, "deprecated");
    if (cmd->syscmd)
        engine_reply_simple(r, "syscmd");
}

static uint64_t count_fields(const struct engine_command *cmd)
{
    bool flags = cmd->deprecated_since != NULL || cmd->syscmd;
    return 3 + (uint64_t)(cmd->complexity != NULL) + flags + (cmd->deprecated_since != NULL) +
           (cmd->replaced_by != NULL) + (cmd->history != NULL) + (cmd->args != NULL) +
           (cmd->n_subcommands > 0);
}

/* All fields except the subcommands, which come last. */
static void reply_own_docs(struct engine_reply *r, const struct engine_command *cmd)
{
    struct engine_arg args[ENGINE_ARGS_MAX];
    size_t n_args;
    engine_reply_bulk(r, rd_slice(cmd->name, cmd->name_len));
    engine_reply_map(r, count_fields(cmd));
    reply_text(r, "summary", cmd->summary);
    reply_text(r, "since", cmd->since);
    reply_text(r, "group", engine_group_name(cmd->group));
    if (cmd->complexity != NULL)
        reply_text(r, "complexity", cmd->complexity);
    if (cmd->deprecated_since != NULL || cmd->syscmd)
        reply_doc_flags(r, cmd);
    if (cmd->deprecated_since != NULL)
        reply_text(r, "deprecated_since", cmd->deprecated_since);
    if (cmd->replaced_by != NULL)
        reply_text(r, "replaced_by", cmd->replaced_by);
    if (cmd->history != NULL)
        reply_history(r, cmd->history);
    if (cmd->args == NULL)
        return;
    if (!engine_args_parse(cmd->args, args, &n_args))
        n_args = 0;
    reply_args(r, args, n_args == 0 ? NULL : args, n_args);
}

static void reply_docs(struct engine_call *call, const struct engine_command *cmd)
{
    struct engine_reply *r = call->reply;
    reply_own_docs(r, cmd);
    if (cmd->n_subcommands == 0)
        return;
    engine_reply_str(r, "subcommands");
    uint64_t n = 0;
    size_t mark = engine_reply_mark(r), i = 0;
    for (const struct engine_command *c; (c = engine_names_subcommand(call, cmd, &i)) != NULL; n++)
        reply_own_docs(r, c);
    engine_reply_mark_map(r, mark, n);
}

void engine_cmd_command_docs(struct engine_call *call)
{
    uint64_t n = 0;
    size_t mark = engine_reply_mark(call->reply);
    if (call->argc == 2)
        for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;) {
            if (c->container != NULL || !engine_names_listed(call, c))
                continue;
            reply_docs(call, c);
            n++;
        }
    for (size_t i = 2; i < call->argc; i++) {
        const struct engine_command *cmd = engine_names_find_path(call, call->argv[i]);
        if (cmd == NULL)
            continue;
        reply_docs(call, cmd);
        n++;
    }
    engine_reply_mark_map(call->reply, mark, n);
}
