/* ACL. */
#include "server/session/acl/acl.h"

#include <stdio.h>
#include <sys/random.h>

#include "base/digest.h"
#include "server/session/acl/user_impl.h"
#include "server/surface/cmd/commands.h"
#include "server/session/dispatch/subcommand.h"

/* Bytes of a client for an error text: at most 128. */
static void error_about(struct dispatch_call *call, const char *before, struct rd_slice name,
                        const char *after)
{
    engine_reply_errorf(call->reply, "ERR %s '%.*s'%s", before,
                        (int)(name.len < 128 ? name.len : 128), (const char *)name.ptr, after);
}

/* The error that a function collected. */
static void reply_why(struct dispatch_call *call, struct rd_buf *why)
{
    engine_reply_errorf(call->reply, "ERR %.*s", (int)why->len, (const char *)why->ptr);
}

/* ---- categories ---- */

static void all_categories(struct dispatch_call *call)
{
    unsigned n = 0;
    while (engine_acl_name(n) != NULL)
        n++;
    engine_reply_array(call->reply, n);
    for (unsigned i = 0; i < n; i++)
        engine_reply_str(call->reply, engine_acl_name(i));
}

static enum engine_level level_of(const struct dispatch_call *call)
{
    return settings_level(&call->sessions->loop->settings);
}

static void sub_cat(struct dispatch_call *call)
{
    if (call->argc > 3) {
        subcommand_syntax(call);
        return;
    }
    if (call->argc == 2) {
        all_categories(call);
        return;
    }
    uint32_t bit = engine_acl_find(call->argv[2]);
    if (bit == 0) {
        error_about(call, "Unknown category", call->argv[2], "");
        return;
    }
    size_t mark = engine_reply_mark(call->reply);
    uint64_t n = 0;
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;) {
        if ((c->acl & bit) == 0 || !engine_command_at_level(c, level_of(call)))
            continue;
        engine_reply_str(call->reply, c->name);
        n++;
    }
    engine_reply_mark_array(call->reply, mark, n);
}

/* ---- passwords ---- */

static void sub_genpass(struct dispatch_call *call)
{
    enum { BITS_MAX = 4096 };
    uint8_t bytes[BITS_MAX / 8];
    char text[BITS_MAX / 4 + 1];
    int64_t bits = 256;
    if (call->argc > 3) {
        subcommand_syntax(call);
        return;
    }
    if (call->argc == 3 &&
        !dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &bits, NULL))
        return;
    if (bits <= 0 || bits > BITS_MAX) {
        engine_reply_error(call->reply, "ERR ACL GENPASS argument must be the number of bits for "
                                        "the output password, a positive number up to 4096");
        return;
    }
    size_t n = (size_t)(bits + 3) / 4;
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        engine_reply_error(call->reply, "ERR the system provides no random numbers");
        return;
    }
    rd_digest_hex(text, rd_slice(bytes, sizeof bytes));
    engine_reply_bulk(call->reply, rd_slice(text, n));
}

/* ---- users ---- */

static void sub_whoami(struct dispatch_call *call)
{
    engine_reply_str(call->reply, acl_user_name(call->c->user));
}

static void sub_users(struct dispatch_call *call)
{
    engine_reply_array(call->reply, acl_count(call->sessions));
    for (size_t i = 0; i < acl_count(call->sessions); i++)
        engine_reply_str(call->reply, acl_user_name(acl_at(call->sessions, i)));
}

static void sub_list(struct dispatch_call *call)
{
    struct rd_buf line = {0};
    engine_reply_array(call->reply, acl_count(call->sessions));
    for (size_t i = 0; i < acl_count(call->sessions); i++) {
        rd_buf_reset(&line);
        acl_put_line(acl_at(call->sessions, i), &line);
        engine_reply_bulk(call->reply, rd_buf_slice(&line));
    }
    rd_buf_done(&line);
}

static void reply_flags(struct engine_reply *r, const struct acl_user *user)
{
    engine_reply_set(r, 1 + (uint64_t)user->nopass + user->skip_sanitize + user->sanitize);
    engine_reply_str(r, user->on ? "on" : "off");
    if (user->nopass)
        engine_reply_str(r, "nopass");
    if (user->skip_sanitize)
        engine_reply_str(r, "skip-sanitize-payload");
    if (user->sanitize)
        engine_reply_str(r, "sanitize-payload");
}

static void reply_selector(struct engine_reply *r, const struct acl_selector *s)
{
    static const struct {
        const char *name;
        void (*put)(const struct acl_selector *s, struct rd_buf *out);
    } parts[] = {{"commands", acl_describe_commands},
                 {"keys", acl_describe_keys},
                 {"channels", acl_describe_channels}};
    struct rd_buf text = {0};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        rd_buf_reset(&text);
        parts[i].put(s, &text);
        engine_reply_str(r, parts[i].name);
        engine_reply_bulk(r, rd_buf_slice(&text));
    }
    rd_buf_done(&text);
}

static void sub_getuser(struct dispatch_call *call)
{
    struct engine_reply *r = call->reply;
    const struct acl_user *user = acl_find(call->sessions, call->argv[2]);
    if (user == NULL) {
        engine_reply_null(r);
        return;
    }
    engine_reply_map(r, 6);
    engine_reply_str(r, "flags");
    reply_flags(r, user);
    engine_reply_str(r, "passwords");
    engine_reply_array(r, user->passwords.n);
    for (size_t i = 0; i < user->passwords.n; i++)
        engine_reply_bulk(r, user->passwords.items[i].text);
    reply_selector(r, &user->selectors[0]);
    engine_reply_str(r, "selectors");
    engine_reply_array(r, user->n_selectors - 1);
    for (size_t i = 1; i < user->n_selectors; i++) {
        engine_reply_map(r, 3);
        reply_selector(r, &user->selectors[i]);
    }
}

static void sub_setuser(struct dispatch_call *call)
{
    struct rd_buf why = {0};
    if (acl_text_has_blanks(call->argv[2]))
        engine_reply_error(call->reply, "ERR Usernames can't contain spaces or null characters");
    else if (acl_set_user(call->sessions, call->argv[2], call->argv + 3, call->argc - 3, &why))
        engine_reply_ok(call->reply);
    else
        reply_why(call, &why);
    rd_buf_done(&why);
}

static void sub_deluser(struct dispatch_call *call)
{
    int64_t n = 0;
    for (size_t i = 2; i < call->argc; i++) {
        if (rd_slice_is(call->argv[i], "default")) {
            engine_reply_error(call->reply, "ERR The 'default' user cannot be removed");
            return;
        }
    }
    for (size_t i = 2; i < call->argc; i++)
        n += acl_delete_user(call->sessions, call->argv[i]);
    engine_reply_int(call->reply, n);
}

/* ---- the file ---- */

static bool has_file(struct dispatch_call *call)
{
    bool has = call->sessions->loop->settings.aclfile[0] != '\0';
    if (!has)
        engine_reply_error(
            call->reply,
            "ERR This Redis instance is not configured to use an ACL file. You may want to specify "
            "users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have "
            "a Redis configuration file set) in order to store users in the Redis configuration.");
    return has;
}

static void sub_load(struct dispatch_call *call)
{
    struct rd_buf why = {0};
    if (!has_file(call))
        return;
    if (acl_load_file(call->sessions, &why))
        engine_reply_ok(call->reply);
    else
        reply_why(call, &why);
    rd_buf_done(&why);
}

static void sub_save(struct dispatch_call *call)
{
    if (!has_file(call))
        return;
    if (acl_save_file(call->sessions))
        engine_reply_ok(call->reply);
    else
        engine_reply_error(call->reply, "ERR There was an error trying to save the ACLs. Please "
                                        "check the server logs for more information");
}

/* ---- ACL LOG and ACL DRYRUN ---- */

static void reply_entry(struct dispatch_call *call, const struct acl_log_entry *e)
{
    static const char *const reasons[] = {[ACL_DENIED_COMMAND] = "command",
                                          [ACL_DENIED_KEY] = "key",
                                          [ACL_DENIED_AUTH] = "auth",
                                          [ACL_DENIED_CHANNEL] = "channel"};
    static const char *const contexts[] = {[ACL_CONTEXT_TOPLEVEL] = "toplevel",
                                           [ACL_CONTEXT_MULTI] = "multi",
                                           [ACL_CONTEXT_SCRIPT] = "lua"};
    struct engine_reply *r = call->reply;
    engine_reply_map(r, 7);
    engine_reply_str(r, "count");
    engine_reply_int(r, (int64_t)e->count);
    engine_reply_str(r, "reason");
    engine_reply_str(r, reasons[e->verdict]);
    engine_reply_str(r, "context");
    engine_reply_str(r, contexts[e->context]);
    engine_reply_str(r, "object");
    engine_reply_bulk(r, e->object);
    engine_reply_str(r, "username");
    engine_reply_bulk(r, e->user);
    engine_reply_str(r, "age-seconds");
    engine_reply_double(r, (double)(loop_now_ms(call->sessions->loop) - e->at_ms) / 1000);
    engine_reply_str(r, "client-info");
    engine_reply_bulk(r, rd_buf_slice(&e->client));
}

static void sub_log(struct dispatch_call *call)
{
    size_t n;
    int64_t count = 10;
    if (call->argc > 3) {
        subcommand_syntax(call);
        return;
    }
    if (call->argc == 3 && dispatch_arg_is(call->argv[2], "reset")) {
        acl_log_reset(call->sessions);
        engine_reply_ok(call->reply);
        return;
    }
    if (call->argc == 3 &&
        !dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &count, NULL))
        return;
    const struct acl_log_entry *e = acl_log_first(call->sessions, &n);
    if (count < 0)
        n = 0;
    else if ((uint64_t)count < n)
        n = (size_t)count;
    engine_reply_array(call->reply, n);
    for (; n > 0; n--, e = e->next)
        reply_entry(call, e);
}

static void sub_dryrun(struct dispatch_call *call)
{
    const struct acl_user *user = acl_find(call->sessions, call->argv[2]);
    size_t argc = call->argc - 3, at = 0;
    const struct rd_slice *argv = call->argv + 3;
    const struct engine_command *command = dispatch_find(call->sessions, argv, argc);
    if (user == NULL) {
        error_about(call, "User", call->argv[2], " not found");
        return;
    }
    if (command == NULL || !engine_command_at_level(command, level_of(call))) {
        error_about(call, "Command", argv[0], " not found");
        return;
    }
    if (!engine_command_arity_ok(command, argc)) {
        error_about(call, "wrong number of arguments for",
                    rd_slice(command->name, command->name_len), " command");
        return;
    }
    enum acl_verdict verdict = acl_check(user, command, argc, argv, &at);
    if (verdict == ACL_OK) {
        engine_reply_ok(call->reply);
        return;
    }
    struct rd_buf text = {0};
    rd_buf_printf(&text, "This user has no permissions to %s '",
                  verdict == ACL_DENIED_COMMAND ? "run the" : "access the");
    if (verdict == ACL_DENIED_COMMAND)
        rd_buf_add(&text, command->name, command->name_len);
    else
        rd_buf_add(&text, argv[at].ptr, argv[at].len);
    rd_buf_printf(&text, "' %s",
                  verdict == ACL_DENIED_COMMAND ? "command"
                  : verdict == ACL_DENIED_KEY   ? "key"
                                                : "channel");
    engine_reply_bulk(call->reply, rd_buf_slice(&text));
    rd_buf_done(&text);
}

static void sub_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "CAT [<category>]",
        "    List the categories, or the commands of one.",
        "DELUSER <username> [<username> ...]",
        "    Delete users and close their connections.",
        "DRYRUN <username> <command> [<arg> ...]",
        "    Report whether the user may run a command line, without running it.",
        "GETUSER <username>",
        "    Describe a user.",
        "GENPASS [<bits>]",
        "    Generate a password of 256 random bits, or of <bits>.",
        "LIST",
        "    List the users as lines of the configuration.",
        "LOAD",
        "    Read the users from the ACL file.",
        "LOG [<count> | RESET]",
        "    List the latest refusals, or forget them.",
        "SAVE",
        "    Write the users to the ACL file.",
        "SETUSER <username> <attribute> [<attribute> ...]",
        "    Create or change a user.",
        "USERS",
        "    List the names of the users.",
        "WHOAMI",
        "    Return the name of the user of this connection.",
        NULL,
    };
    dispatch_help(call, lines);
}

static const struct subcommand subcommands[] = {
    {"cat", sub_cat},         {"deluser", sub_deluser}, {"dryrun", sub_dryrun},
    {"getuser", sub_getuser}, {"genpass", sub_genpass}, {"list", sub_list},
    {"load", sub_load},       {"log", sub_log},         {"save", sub_save},
    {"setuser", sub_setuser}, {"users", sub_users},     {"whoami", sub_whoami},
    {"help", sub_help},
};

void server_cmd_acl(struct dispatch_call *call)
{
    SUBCOMMAND_RUN(call, subcommands);
}
