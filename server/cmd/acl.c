/* ACL, for the single user. */
#include "server/core/acl.h"

#include <stdio.h>
#include <sys/random.h>

#include "base/digest.h"
#include "server/cmd/commands.h"

bool acl_default_has_password(const struct server *srv)
{
    return srv->settings.requirepass_len != 0;
}

/* Compares all bytes whatever the result, so that the time does not depend on it. */
static bool same(struct rd_slice want, struct rd_slice given)
{
    unsigned differs = want.len != given.len;
    for (size_t i = 0; i < given.len && want.len > 0; i++)
        differs |= (unsigned)(given.ptr[i] ^ want.ptr[i % want.len]);
    return differs == 0;
}

bool acl_authenticate(struct client *c, struct rd_slice user, struct rd_slice password)
{
    struct rd_slice want = settings_password(&c->srv->settings);
    if (!rd_slice_is(user, "default") || (want.len != 0 && !same(want, password)))
        return false;
    c->authenticated = true;
    return true;
}

void acl_reset(struct client *c)
{
    c->authenticated = !acl_default_has_password(c->srv);
}

/* ---- ACL ---- */

static void categories(struct dispatch_call *call)
{
    unsigned n = 0;
    while (engine_acl_name(n) != NULL)
        n++;
    engine_reply_array(call->reply, n);
    for (unsigned i = 0; i < n; i++)
        engine_reply_simple(call->reply, engine_acl_name(i));
}

static bool listed(const struct engine_command *cmd, uint32_t category)
{
    return (cmd->acl & category) && (cmd->flags & ENGINE_CMD_LATER_VERSION) == 0;
}

static void category(struct dispatch_call *call, struct rd_slice name)
{
    uint32_t bit = engine_acl_find(name);
    if (bit == 0) {
        engine_reply_errorf(call->reply, "ERR Unknown category '%.*s'",
                            (int)(name.len < 128 ? name.len : 128), (const char *)name.ptr);
        return;
    }
    size_t mark = engine_reply_mark(call->reply);
    uint64_t n = 0;
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;)
        if (listed(c, bit)) {
            engine_reply_str(call->reply, c->name);
            n++;
        }
    engine_reply_mark_array(call->reply, mark, n);
}

static void default_rule(const struct server *srv, char *dst, size_t size)
{
    if (!acl_default_has_password(srv)) {
        snprintf(dst, size, "user default on nopass ~* &* +@all");
        return;
    }
    uint8_t sum[RD_DIGEST_MAX];
    char hex[RD_DIGEST_HEX] = "";
    if (rd_digest_of(RD_DIGEST_SHA256, settings_password(&srv->settings), sum, NULL))
        rd_digest_hex(hex, rd_slice(sum, rd_digest_size(RD_DIGEST_SHA256)));
    snprintf(dst, size, "user default on #%s ~* &* +@all", hex);
}

static void genpass(struct dispatch_call *call)
{
    int64_t bits = 256;
    if (call->argc == 3 &&
        !dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &bits, NULL))
        return;
    if (bits <= 0 || bits > 4096) {
        engine_reply_error(call->reply, "ERR ACL GENPASS argument must be the number of bits for "
                                        "the output password, a positive number up to 4096");
        return;
    }
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[512];
    char text[1025];
    size_t n = (size_t)(bits + 3) / 4;
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        engine_reply_error(call->reply, "ERR the system provides no random numbers");
        return;
    }
    for (size_t i = 0; i < n; i++)
        text[i] = digits[i % 2 == 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15];
    engine_reply_bulk(call->reply, rd_slice(text, n));
}

static void getuser(struct dispatch_call *call)
{
    struct engine_reply *r = call->reply;
    char rule[160];
    if (!rd_slice_is(call->argv[2], "default")) {
        engine_reply_null(r);
        return;
    }
    bool has = acl_default_has_password(call->srv);
    default_rule(call->srv, rule, sizeof rule);
    engine_reply_map(r, 6);
    engine_reply_str(r, "flags");
    engine_reply_set(r, has ? 1 : 2);
    engine_reply_str(r, "on");
    if (!has)
        engine_reply_str(r, "nopass");
    engine_reply_str(r, "passwords");
    engine_reply_array(r, has);
    if (has)
        engine_reply_bulk(r, rd_slice(strchr(rule, '#') + 1, 64));
    engine_reply_str(r, "commands");
    engine_reply_str(r, "+@all");
    engine_reply_str(r, "keys");
    engine_reply_str(r, "~*");
    engine_reply_str(r, "channels");
    engine_reply_str(r, "&*");
    engine_reply_str(r, "selectors");
    engine_reply_array(r, 0);
}

static void list(struct dispatch_call *call)
{
    char rule[160];
    default_rule(call->srv, rule, sizeof rule);
    engine_reply_array(call->reply, 1);
    engine_reply_str(call->reply, rule);
}

static void users(struct dispatch_call *call)
{
    engine_reply_array(call->reply, 1);
    engine_reply_str(call->reply, "default");
}

/* No command is refused for missing rights, so the log is empty. */
static void show_log(struct dispatch_call *call)
{
    int64_t count;
    if (call->argc == 3 && dispatch_arg_is(call->argv[2], "reset"))
        engine_reply_ok(call->reply);
    else if (call->argc == 2 ||
             dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &count, NULL))
        engine_reply_array(call->reply, 0);
}

static const char *const help[] = {
    "CAT [<category>]",
    "    List all commands that belong to <category>, or all command categories",
    "    when no category is specified.",
    "GENPASS [<bits>]",
    "    Generate a secure 256-bit user password. The optional `bits` argument can",
    "    be used to specify a different size.",
    "GETUSER <username>",
    "    Get the user's details.",
    "LIST",
    "    Show users details in config file format.",
    "USERS",
    "    List all the registered usernames.",
    "WHOAMI",
    "    Return the current connection username.",
    NULL,
};

void server_cmd_acl(struct dispatch_call *call)
{
    const char *sub = call->command->name + call->command->own_name_at;
    if (strcmp(sub, "whoami") == 0)
        engine_reply_str(call->reply, call->c->user);
    else if (strcmp(sub, "users") == 0)
        users(call);
    else if (strcmp(sub, "list") == 0)
        list(call);
    else if (strcmp(sub, "getuser") == 0)
        getuser(call);
    else if (strcmp(sub, "genpass") == 0)
        genpass(call);
    else if (strcmp(sub, "cat") == 0 && call->argc == 3)
        category(call, call->argv[2]);
    else if (strcmp(sub, "cat") == 0)
        categories(call);
    else if (strcmp(sub, "help") == 0)
        dispatch_help(call, help);
    else if (strcmp(sub, "log") == 0)
        show_log(call);
    else
        engine_reply_errorf(call->reply, "ERR ACL %s is not supported yet", sub);
}
