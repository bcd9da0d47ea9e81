/* CONFIG GET, SET, REWRITE, RESETSTAT, HELP. */
#include "server/surface/config/config.h"
#include "server/surface/cmd/commands.h"

#include <stdio.h>

#include "base/mem.h"
#include "engine/glob.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication.h"
#include "server/settings/item.h"

/* ---- GET ---- */

static void reply_directive(struct dispatch_call *call, const char *name,
                            const struct settings_item *item)
{
    struct rd_buf value = {0};
    settings_item_get(&call->sessions->loop->settings, item, &value);
    engine_reply_str(call->reply, name);
    engine_reply_bulk(call->reply, rd_buf_slice(&value));
    rd_buf_done(&value);
}

static bool is_pattern(struct rd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (memchr("[*?", text.ptr[i], 3) != NULL)
            return true;
    }
    return false;
}

/* 0: the name itself, 1: the alias. NULL: no alias. */
static const char *name_of(const struct settings_item *item, unsigned which)
{
    return which == 0 ? item->name : item->alias;
}

/* The first of the patterns that matches this name. Patterns do not match hidden directives. */
static size_t asked_by(const struct dispatch_call *call, const struct settings_item *item,
                       const char *name)
{
    struct rd_slice text = rd_slice_str(name);
    for (size_t i = 2; i < call->argc; i++) {
        bool found;
        if (is_pattern(call->argv[i]))
            found = (item->flags & S_HIDDEN) == 0 && engine_glob_match(call->argv[i], text, true);
        else
            found = dispatch_arg_is(call->argv[i], name);
        if (found)
            return i;
    }
    return 0;
}

static void config_get(struct dispatch_call *call)
{
    uint64_t n = 0;
    size_t mark = engine_reply_mark(call->reply);
    for (size_t i = 0; i < settings_n_items; i++) {
        for (unsigned which = 0; which < 2; which++) {
            const char *name = name_of(&settings_items[i], which);
            size_t by = name != NULL ? asked_by(call, &settings_items[i], name) : 0;
            if (by == 0)
                continue;
            /* A directive requested by name is returned in the client's spelling. */
            char spelling[128];
            struct rd_slice asked = call->argv[by];
            snprintf(spelling, sizeof spelling, "%.*s", (int)asked.len, (const char *)asked.ptr);
            reply_directive(call, is_pattern(asked) ? name : spelling, &settings_items[i]);
            n++;
        }
    }
    engine_reply_mark_map(call->reply, mark, n);
}

/* ---- SET ---- */

static void set(struct dispatch_call *call)
{
    size_t n = (call->argc - 2) / 2;
    if (call->argc % 2 != 0) {
        dispatch_syntax(call);
        return;
    }
    struct rd_slice *pairs = rd_calloc(2 * n, sizeof *pairs);
    struct rd_buf why = {0};
    if (pairs == NULL) {
        engine_reply_error(call->reply, "ERR out of memory");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        pairs[i] = call->argv[2 + 2 * i];
        pairs[n + i] = call->argv[3 + 2 * i];
    }
    if (config_set(server_of(call->sessions), n, pairs, pairs + n, &why))
        engine_reply_ok(call->reply);
    else
        engine_reply_errorf(call->reply, "%.*s", (int)why.len, (const char *)why.ptr);
    rd_buf_done(&why);
    rd_free(pairs);
}

/* ---- the rest ---- */

static void rewrite(struct dispatch_call *call)
{
    struct rd_err err = {0};
    if (call->sessions->loop->config_file == NULL) {
        engine_reply_error(call->reply, "ERR The server is running without a config file");
    } else if (config_rewrite(server_of(call->sessions), false, &err)) {
        log_warning("CONFIG REWRITE executed with success.");
        engine_reply_ok(call->reply);
    } else {
        log_warning("CONFIG REWRITE failed: %s", err.text);
        engine_reply_errorf(call->reply, "ERR Rewriting config file: %s", err.text);
    }
}

static void config_resetstat(struct dispatch_call *call)
{
    stats_reset(&call->sessions->loop->stats);
    engine_stats_reset(call->sessions->engine);
    persist_reset_stats(call->sessions->durable);
    replication_reset_stats(call->sessions->durable);
    engine_reply_ok(call->reply);
}

void server_cmd_config(struct dispatch_call *call)
{
    static const char *const help[] = {
        "GET <pattern>",
        "    Return parameters matching the glob-like <pattern> and their values.",
        "SET <directive> <value>",
        "    Set the configuration <directive> to <value>.",
        "RESETSTAT",
        "    Reset statistics reported by the INFO command.",
        "REWRITE",
        "    Rewrite the configuration file.",
        NULL};
    static const struct {
        const char *name;
        dispatch_fn run;
    } subcommands[] = {
        {"GET", config_get}, {"SET", set}, {"REWRITE", rewrite}, {"RESETSTAT", config_resetstat}};
    for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++) {
        if (dispatch_arg_is(call->argv[1], subcommands[i].name)) {
            subcommands[i].run(call);
            return;
        }
    }
    if (dispatch_arg_is(call->argv[1], "HELP"))
        dispatch_help(call, help);
    else
        dispatch_unknown_subcommand(call);
}
