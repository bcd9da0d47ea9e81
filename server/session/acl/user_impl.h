/* user_impl.h - a user and its rules, as values: no client, no file, no table of users. Private to
 * server/session/acl/ and its tests; other code uses acl.h.
 *
 *     struct acl_user *user = acl_user_new(rd_slice_str("alice"), false,
 *                                          ENGINE_LEVEL_7_0);
 *     enum acl_fault fault = acl_user_rule(user, rd_slice_str("+@read"), false);
 *     if (fault != ACL_FAULT_NONE)
 *         ... acl_fault_text(fault) ...
 *     acl_user_describe(user, &text);          // "off resetchannels -@all +@read"
 *     acl_user_free(user);
 *
 * A user has passwords and selectors. A command is allowed if one selector allows the command, all
 * of its keys and all of its channels. selectors[0] is the root: it holds the rules that are not in
 * parentheses.
 *
 *     rules.c       applies one rule
 *     selector.c    the commands of a selector
 *     describe.c    a user as rules
 *     check.c       whether a selector allows a command line
 */
#ifndef SERVER_SESSION_ACL_USER_IMPL_H
#define SERVER_SESSION_ACL_USER_IMPL_H

#include "base/buf.h"
#include "engine/command.h"
#include "server/session/acl/acl.h"
#include "server/session/acl/list.h"

enum {
    ACL_WORDS = 16,
    ACL_FUTURE = ACL_WORDS * 64 - 1, /* bit of a selector that began with +@all */
    ACL_DIGEST = 64                  /* digits of a password's SHA-256 */
};

_Static_assert((int)ENGINE_COMMAND_IDS < (int)ACL_FUTURE, "each command has a bit");

/* The bits of a key pattern. */
enum { ACL_READS = 1, ACL_WRITES = 2, ACL_ANY_USE = 3 };

struct acl_selector {
    enum engine_level level; /* whose commands the rules can name */
    bool all_keys, all_channels;
    bool all_commands;            /* every bit is set and was never cleared */
    uint64_t commands[ACL_WORDS]; /* by engine_command.id */
    struct acl_list keys;         /* patterns, with the uses that they allow */
    struct acl_list channels;     /* patterns */
    struct acl_list first_args;   /* of a command (bits: its id) that is otherwise refused */
};

struct acl_user {
    struct rd_slice name; /* followed by a NUL */
    bool on;
    bool nopass;
    bool sanitize, skip_sanitize;
    bool unlimited;            /* one selector allows everything */
    struct acl_list passwords; /* SHA-256 digests in hexadecimal digits */
    struct acl_selector *selectors;
    size_t n_selectors;
};

enum acl_fault {
    ACL_FAULT_NONE,
    ACL_FAULT_SYNTAX,
    ACL_FAULT_UNKNOWN,  /* command or category */
    ACL_FAULT_KEYS,     /* a pattern after ~* */
    ACL_FAULT_CHANNELS, /* a pattern after &* */
    ACL_FAULT_PASSWORD, /* to be removed, but absent */
    ACL_FAULT_DIGEST,
    ACL_FAULT_FIRST_ARG
};

const char *acl_fault_text(enum acl_fault fault);

/* A user that is off and may do nothing; `channels`: but use all channels (acl-pubsub-default). Its
 * rules can name the commands of a server of this level. */
struct acl_user *acl_user_new(struct rd_slice name, bool channels, enum engine_level level);
void acl_user_free(struct acl_user *user);

/* dst gets all of src except its name. */
void acl_user_copy(struct acl_user *dst, const struct acl_user *src);

/* One word, or a selector with its parentheses. A rule with an error changes nothing. `channels` as
 * for acl_user_new(). */
enum acl_fault acl_user_rule(struct acl_user *user, struct rd_slice rule, bool channels);

/* Spaces and NUL bytes are not allowed in names and patterns. */
bool acl_text_has_blanks(struct rd_slice text);

/* Whether the password is one of the user's. The time does not depend on its bytes. */
bool acl_user_has_password(const struct acl_user *user, struct rd_slice password);

/* Everything but the name, as in ACL LIST. */
void acl_user_describe(const struct acl_user *user, struct rd_buf *out);

/* Parts of a description, as in ACL GETUSER. */
void acl_describe_commands(const struct acl_selector *s, struct rd_buf *out);
void acl_describe_keys(const struct acl_selector *s, struct rd_buf *out);
void acl_describe_channels(const struct acl_selector *s, struct rd_buf *out);

/* ---- the commands of a selector: selector.c ---- */

/* By the name in the table, regardless of rename-command, so that rules stay valid. NULL: unknown
 * at this level. */
const struct engine_command *acl_command(struct rd_slice path, enum engine_level level);

static inline bool acl_selector_has(const struct acl_selector *s, unsigned id)
{
    return (s->commands[id / 64] >> id % 64 & 1) != 0;
}

/* A container comes with its subcommands. */
void acl_selector_command(struct acl_selector *s, const struct engine_command *command, bool on);
void acl_selector_category(struct acl_selector *s, uint32_t category, bool on);
void acl_selector_everything(struct acl_selector *s, bool on); /* +@all, -@all */

enum { ACL_CATEGORIES = 21 };

/* The commands of each category, by the number of its bit. */
struct acl_categories {
    uint64_t commands[ACL_CATEGORIES][ACL_WORDS];
};

void acl_categories(enum engine_level level, struct acl_categories *ret);

/* ---- check.c ---- */

struct acl_line {
    const struct engine_command *command;
    size_t argc;
    const struct rd_slice *argv;
    struct engine_key *keys; /* found on first use */
    size_t n_keys;
    bool has_keys;
};

/* *ret_at: the argument that is refused. */
enum acl_verdict acl_selector_check(const struct acl_selector *s, struct acl_line *line,
                                    size_t *ret_at);
bool acl_channel_allowed(const struct acl_list *channels, struct rd_slice name, bool is_pattern);

#endif
