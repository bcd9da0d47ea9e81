/* COMMAND and its subcommands except DOCS: the command table as replies. */
#include <stdio.h>

#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/cmd/names.h"
#include "engine/glob.h"
#include "engine/mem.h"
#include "engine/reply.h"

typedef const char *(*word_fn)(unsigned bit);

/* The command of the line that GETKEYS is asked about. */
static const struct engine_command *asked_about(const struct engine_call *call)
{
    const struct rd_slice *argv = call->argv + 2;
    size_t argc = call->argc - 2;
    const struct engine_command *cmd = engine_names_find(call, argv[0]);
    if (cmd == NULL || cmd->n_subcommands == 0 || argc == 1)
        return cmd;
    return engine_names_find_sub(call, cmd, argv[1]);
}

/* ---- facts ---- */

static void reply_prefixed(struct engine_reply *r, const char *prefix, const char *word)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s", prefix, word);
    engine_reply_simple(r, text);
}

/* The names of the bits that are set, if they have a name. */
static void reply_words(struct engine_reply *r, uint64_t bits, word_fn word_of, const char *prefix)
{
    uint64_t n = 0;
    for (unsigned bit = 0; bit < 64; bit++)
        n += (bits >> bit & 1) != 0 && word_of(bit) != NULL;
    engine_reply_set(r, n);
    for (unsigned bit = 0; bit < 64; bit++)
        if ((bits >> bit & 1) != 0 && word_of(bit) != NULL)
            reply_prefixed(r, prefix, word_of(bit));
}

static void reply_tips(struct engine_reply *r, const char *tips)
{
    uint64_t n = tips != NULL;
    for (const char *c = tips; c != NULL && *c != '\0'; c++)
        n += *c == ' ';
    engine_reply_set(r, n);
    for (; n > 0; n--) {
        size_t len = strcspn(tips, " ");
        engine_reply_bulk(r, rd_slice(tips, len));
        tips += len + (n > 1);
    }
}

static void reply_pair(struct engine_reply *r, const char *name, int64_t value)
{
    engine_reply_str(r, name);
    engine_reply_int(r, value);
}

/* "type" and the name, then "spec" with n pairs. */
static void reply_spec_head(struct engine_reply *r, const char *type, uint64_t n)
{
    engine_reply_map(r, 2);
    engine_reply_str(r, "type");
    engine_reply_str(r, type);
    engine_reply_str(r, "spec");
    engine_reply_map(r, n);
}

static void reply_begin(struct engine_reply *r, const struct engine_key_spec *spec)
{
    engine_reply_str(r, "begin_search");
    if (spec->begin == ENGINE_BEGIN_INDEX) {
        reply_spec_head(r, "index", 1);
        reply_pair(r, "index", spec->pos);
    } else if (spec->begin == ENGINE_BEGIN_KEYWORD) {
        reply_spec_head(r, "keyword", 2);
        engine_reply_str(r, "keyword");
        engine_reply_str(r, spec->keyword);
        reply_pair(r, "startfrom", spec->pos);
    } else {
        reply_spec_head(r, "unknown", 0);
    }
}

static void reply_find(struct engine_reply *r, const struct engine_key_spec *spec)
{
    engine_reply_str(r, "find_keys");
    if (spec->find == ENGINE_FIND_RANGE) {
        reply_spec_head(r, "range", 3);
        reply_pair(r, "lastkey", spec->last);
        reply_pair(r, "keystep", spec->step);
        reply_pair(r, "limit", spec->limit);
    } else if (spec->find == ENGINE_FIND_KEYNUM) {
        reply_spec_head(r, "keynum", 3);
        reply_pair(r, "keynumidx", spec->key_num);
        reply_pair(r, "firstkey", spec->first);
        reply_pair(r, "keystep", spec->step);
    } else {
        reply_spec_head(r, "unknown", 0);
    }
}

static void reply_key_specs(struct engine_reply *r, const struct engine_command *cmd)
{
    engine_reply_set(r, cmd->n_key_specs);
    for (size_t i = 0; i < cmd->n_key_specs; i++) {
        const struct engine_key_spec *spec = &cmd->key_specs[i];
        engine_reply_map(r, spec->note == NULL ? 3 : 4);
        if (spec->note != NULL) {
            engine_reply_str(r, "notes");
            engine_reply_str(r, spec->note);
        }
        engine_reply_str(r, "flags");
        reply_words(r, spec->flags, engine_key_flag_name, "");
        reply_begin(r, spec);
        reply_find(r, spec);
    }
}

/* All subcommands except nested ones. */
static void reply_facts(struct engine_reply *r, const struct engine_command *cmd)
{
    engine_reply_array(r, 10);
    engine_reply_str(r, cmd->name);
    engine_reply_int(r, cmd->arity);
    reply_words(r, cmd->flags, engine_cmd_flag_name, "");
    engine_reply_int(r, cmd->first_key);
    engine_reply_int(r, cmd->last_key);
    engine_reply_int(r, cmd->key_step);
    reply_words(r, cmd->acl, engine_acl_name, "@");
    reply_tips(r, cmd->tips);
    reply_key_specs(r, cmd);
}

static void reply_command(struct engine_call *call, const struct engine_command *cmd)
{
    struct engine_reply *r = call->reply;
    if (cmd == NULL) {
        engine_reply_null(r);
        return;
    }
    reply_facts(r, cmd);
    if (cmd->n_subcommands == 0) {
        engine_reply_set(r, 0);
        return;
    }
    uint64_t n = 0;
    size_t mark = engine_reply_mark(r), i = 0;
    for (const struct engine_command *c; (c = engine_names_subcommand(call, cmd, &i)) != NULL;
         n++) {
        reply_facts(r, c);
        engine_reply_set(r, 0); /* a third level does not exist */
    }
    engine_reply_mark_array(r, mark, n);
}

/* The commands to list if the arguments name none. */
static uint64_t count_listed(const struct engine_call *call)
{
    uint64_t n = 0;
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;)
        n += engine_names_listed(call, c) && c->container == NULL;
    return n;
}

void engine_cmd_command(struct engine_call *call)
{
    engine_reply_array(call->reply, count_listed(call));
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;)
        if (engine_names_listed(call, c) && c->container == NULL)
            reply_command(call, c);
}

void engine_cmd_command_count(struct engine_call *call)
{
    engine_reply_int(call->reply, (int64_t)count_listed(call));
}

void engine_cmd_command_info(struct engine_call *call)
{
    if (call->argc == 2) {
        engine_cmd_command(call);
        return;
    }
    engine_reply_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++)
        reply_command(call, engine_names_find_path(call, call->argv[i]));
}

/* ---- LIST ---- */

struct filter {
    enum { FILTER_NONE, FILTER_MODULE, FILTER_CATEGORY, FILTER_PATTERN } kind;
    struct rd_slice arg;
    uint32_t category;
};

static bool parse_filter(struct engine_call *call, struct filter *ret)
{
    *ret = (struct filter){.kind = FILTER_NONE};
    if (call->argc == 2)
        return true;
    if (call->argc != 5 || !engine_arg_is(call->argv[2], "filterby"))
        return false;
    ret->arg = call->argv[4];
    if (engine_arg_is(call->argv[3], "module"))
        ret->kind = FILTER_MODULE;
    else if (engine_arg_is(call->argv[3], "aclcat"))
        ret->kind = FILTER_CATEGORY;
    else if (engine_arg_is(call->argv[3], "pattern"))
        ret->kind = FILTER_PATTERN;
    ret->category = engine_acl_find(ret->arg);
    return ret->kind != FILTER_NONE;
}

static bool passes(const struct filter *filter, const struct engine_command *cmd)
{
    switch (filter->kind) {
    case FILTER_NONE:
        return true;
    case FILTER_MODULE:
        return false; /* modules are not supported */
    case FILTER_CATEGORY:
        return (cmd->acl & filter->category) != 0;
    case FILTER_PATTERN:
        return engine_glob_match(filter->arg, rd_slice(cmd->name, cmd->name_len), true);
    }
    return false;
}

void engine_cmd_command_list(struct engine_call *call)
{
    struct filter filter;
    if (!parse_filter(call, &filter)) {
        engine_reply_syntax(call);
        return;
    }
    uint64_t n = 0;
    size_t mark = engine_reply_mark(call->reply);
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;)
        if (engine_names_listed(call, c) && passes(&filter, c)) {
            engine_reply_bulk(call->reply, rd_slice(c->name, c->name_len));
            n++;
        }
    engine_reply_mark_array(call->reply, mark, n);
}

/* ---- GETKEYS ---- */

static const char *keys_error(enum engine_keys_status status)
{
    switch (status) {
    case ENGINE_KEYS_OK:
        break;
    case ENGINE_KEYS_NONE:
        return "ERR The command has no key arguments";
    case ENGINE_KEYS_ARITY:
        return "ERR Invalid number of arguments specified for command";
    case ENGINE_KEYS_INVALID:
        return "ERR Invalid arguments specified for command";
    }
    return NULL;
}

static void reply_keys(struct engine_call *call, bool with_flags)
{
    const struct rd_slice *argv = call->argv + 2;
    size_t argc = call->argc - 2;
    size_t n;
    const struct engine_command *cmd = asked_about(call);
    if (cmd == NULL) {
        engine_reply_error(call->reply, "ERR Invalid command specified");
        return;
    }
    /* Every argument is at most one key, except the destination of a store, which adds one. */
    struct engine_key *keys = engine_scratch_alloc(argc * sizeof *keys);
    enum engine_keys_status status = engine_command_keys(cmd, argv, argc, keys, argc, &n);
    if (status != ENGINE_KEYS_OK)
        engine_reply_error(call->reply, keys_error(status));
    else
        engine_reply_array(call->reply, n);
    for (size_t i = 0; i < n && i < argc; i++) {
        if (with_flags)
            engine_reply_array(call->reply, 2);
        engine_reply_bulk(call->reply, argv[keys[i].index]);
        if (with_flags)
            reply_words(call->reply, keys[i].flags, engine_key_flag_name, "");
    }
    engine_scratch_free(keys);
}

void engine_cmd_command_getkeys(struct engine_call *call)
{
    reply_keys(call, false);
}

void engine_cmd_command_getkeysandflags(struct engine_call *call)
{
    reply_keys(call, true);
}

void engine_cmd_command_help(struct engine_call *call)
{
    static const char *const lines[] = {
        "(no subcommand)",
        "    Describe every command.",
        "COUNT",
        "    Count the commands.",
        "DOCS [<command-name> ...]",
        "    Return the documentation of these commands, or of all.",
        "GETKEYS <command> [<arg> ...]",
        "    List the keys in a command line.",
        "GETKEYSANDFLAGS <command> [<arg> ...]",
        "    List the keys in a command line and how the command uses them.",
        "INFO [<command-name> ...]",
        "    Describe these commands, or all.",
        "LIST [FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]",
        "    List the names of the commands, or of those that match the filter.",
        NULL,
    };
    engine_reply_help(call, lines);
}
