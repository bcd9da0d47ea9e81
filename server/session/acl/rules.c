/* A user, and one rule at a time. */
#include "server/session/acl/user_impl.h"

#include <ctype.h>
#include <strings.h>

#include "base/digest.h"
#include "base/words.h"
#include "engine/mem.h"

const char *acl_fault_text(enum acl_fault fault)
{
    static const char *const texts[] = {
        [ACL_FAULT_NONE] = "",
        [ACL_FAULT_SYNTAX] = "Syntax error",
        [ACL_FAULT_UNKNOWN] = "Unknown command or category name in ACL",
        [ACL_FAULT_KEYS] =
            "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does "
            "not have any effect. Try 'resetkeys' to start with an empty list of patterns",
        [ACL_FAULT_CHANNELS] =
            "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and "
            "does not have any effect. Try 'resetchannels' to start with an empty list of channels",
        [ACL_FAULT_PASSWORD] = "The password you are trying to remove from the user does not exist",
        [ACL_FAULT_DIGEST] = "The password hash must be exactly 64 characters and contain only "
                             "lowercase hexadecimal characters",
        [ACL_FAULT_FIRST_ARG] = "Allowing first-arg of a subcommand is not supported",
    };
    return texts[fault];
}

bool acl_text_has_blanks(struct rd_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == 0 || text.ptr[i] == ' ' || (text.ptr[i] >= '\t' && text.ptr[i] <= '\r'))
            return true;
    return false;
}

static bool is(struct rd_slice rule, const char *word)
{
    return rule.len == strlen(word) && strncasecmp((const char *)rule.ptr, word, rule.len) == 0;
}

static struct rd_slice after(struct rd_slice rule, size_t n)
{
    return rd_slice(rule.ptr + n, rule.len - n);
}

/* ---- life ---- */

static void selector_done(struct acl_selector *s)
{
    acl_list_clear(&s->keys);
    acl_list_clear(&s->channels);
    acl_list_clear(&s->first_args);
}

static void selector_copy(struct acl_selector *dst, const struct acl_selector *src)
{
    *dst = *src;
    acl_list_copy(&dst->keys, &src->keys);
    acl_list_copy(&dst->channels, &src->channels);
    acl_list_copy(&dst->first_args, &src->first_args);
}

/* Takes ownership of the lists of the selector. */
static void add_selector(struct acl_user *user, const struct acl_selector *s)
{
    size_t size = (user->n_selectors + 1) * sizeof *s;
    user->selectors = engine_scratch_realloc(user->selectors, size);
    user->selectors[user->n_selectors++] = *s;
}

static void keep_selectors(struct acl_user *user, size_t n)
{
    while (user->n_selectors > n)
        selector_done(&user->selectors[--user->n_selectors]);
}

static void note_limits(struct acl_user *user)
{
    user->unlimited = false;
    for (size_t i = 0; i < user->n_selectors; i++) {
        const struct acl_selector *s = &user->selectors[i];
        user->unlimited |= s->all_keys && s->all_channels && s->all_commands;
    }
}

struct acl_user *acl_user_new(struct rd_slice name, bool channels, enum engine_level level)
{
    struct acl_user *user = engine_scratch_alloc(sizeof *user);
    *user = (struct acl_user){.name = acl_text_copy(name)};
    add_selector(user, &(struct acl_selector){.level = level, .all_channels = channels});
    return user;
}

static void contents_done(struct acl_user *user)
{
    keep_selectors(user, 0);
    engine_scratch_free(user->selectors);
    user->selectors = NULL;
    acl_list_clear(&user->passwords);
}

void acl_user_free(struct acl_user *user)
{
    if (user == NULL)
        return;
    contents_done(user);
    acl_text_free(user->name);
    engine_scratch_free(user);
}

void acl_user_copy(struct acl_user *dst, const struct acl_user *src)
{
    struct rd_slice name = dst->name;
    contents_done(dst);
    *dst = *src;
    dst->name = name;
    dst->selectors = NULL;
    dst->n_selectors = 0;
    acl_list_copy(&dst->passwords, &src->passwords);
    for (size_t i = 0; i < src->n_selectors; i++) {
        struct acl_selector copy;
        selector_copy(&copy, &src->selectors[i]);
        add_selector(dst, &copy);
    }
}

/* ---- the rules of a selector ---- */

static enum acl_fault rule_key(struct acl_selector *s, struct rd_slice rule)
{
    unsigned uses = rule.ptr[0] == '~' ? (unsigned)ACL_ANY_USE : 0;
    size_t at = 1;
    if (s->all_keys)
        return ACL_FAULT_KEYS;
    for (bool open = uses == 0; open && at < rule.len; at++) {
        int letter = toupper(rule.ptr[at]);
        unsigned use = letter == 'R' ? ACL_READS : letter == 'W' ? ACL_WRITES : 0;
        open = letter != '~';
        if (open && (use == 0 || (uses & use) != 0))
            return ACL_FAULT_SYNTAX;
        uses |= use;
    }
    struct rd_slice pattern = after(rule, at);
    if (uses == 0 || acl_text_has_blanks(pattern))
        return ACL_FAULT_SYNTAX;
    struct acl_item *known = acl_list_find(&s->keys, pattern);
    if (known != NULL)
        known->bits |= uses;
    else
        acl_list_add(&s->keys, pattern, uses);
    return ACL_FAULT_NONE;
}

static enum acl_fault rule_channel(struct acl_selector *s, struct rd_slice rule)
{
    struct rd_slice pattern = after(rule, 1);
    if (s->all_channels)
        return ACL_FAULT_CHANNELS;
    if (acl_text_has_blanks(pattern))
        return ACL_FAULT_SYNTAX;
    if (acl_list_find(&s->channels, pattern) == NULL)
        acl_list_add(&s->channels, pattern, 0);
    return ACL_FAULT_NONE;
}

static bool has_first_arg(const struct acl_selector *s, unsigned id, struct rd_slice arg)
{
    for (size_t i = 0; i < s->first_args.n; i++) {
        const struct acl_item *item = &s->first_args.items[i];
        if (item->bits == id && item->text.len == arg.len &&
            strncasecmp((const char *)item->text.ptr, (const char *)arg.ptr, arg.len) == 0)
            return true;
    }
    return false;
}

/* "command|word": a subcommand, or a first argument of a command without subcommands. */
static enum acl_fault allow_part(struct acl_selector *s, struct rd_slice path, size_t bar)
{
    const struct engine_command *command = acl_command(rd_slice(path.ptr, bar), s->level);
    struct rd_slice word = after(path, bar + 1);
    if (command == NULL)
        return ACL_FAULT_UNKNOWN;
    if (command->container != NULL)
        return ACL_FAULT_FIRST_ARG;
    if (word.len == 0)
        return ACL_FAULT_SYNTAX;
    if (command->n_subcommands == 0) {
        if (!has_first_arg(s, command->id, word))
            acl_list_add(&s->first_args, word, command->id);
        return ACL_FAULT_NONE;
    }
    command = acl_command(path, s->level);
    if (command == NULL)
        return ACL_FAULT_UNKNOWN;
    acl_selector_command(s, command, true);
    return ACL_FAULT_NONE;
}

static enum acl_fault rule_command(struct acl_selector *s, struct rd_slice rule)
{
    bool on = rule.ptr[0] == '+';
    struct rd_slice path = after(rule, 1);
    const uint8_t *bar = on && path.len > 0 ? memrchr(path.ptr, '|', path.len) : NULL;
    if (path.len > 0 && path.ptr[0] == '@') {
        uint32_t category = engine_acl_find(after(path, 1));
        if (category == 0)
            return ACL_FAULT_UNKNOWN;
        acl_selector_category(s, category, on);
        return ACL_FAULT_NONE;
    }
    if (bar != NULL)
        return allow_part(s, path, (size_t)(bar - path.ptr));
    const struct engine_command *command = acl_command(path, s->level);
    if (command == NULL)
        return ACL_FAULT_UNKNOWN;
    acl_selector_command(s, command, on);
    return ACL_FAULT_NONE;
}

static bool rule_keyword(struct acl_selector *s, struct rd_slice rule)
{
    bool all_keys = is(rule, "allkeys") || is(rule, "~*");
    bool all_channels = is(rule, "allchannels") || is(rule, "&*");
    bool all_commands = is(rule, "allcommands") || is(rule, "+@all");
    if (all_keys || is(rule, "resetkeys")) {
        s->all_keys = all_keys;
        acl_list_clear(&s->keys);
    } else if (all_channels || is(rule, "resetchannels")) {
        s->all_channels = all_channels;
        acl_list_clear(&s->channels);
    } else if (all_commands || is(rule, "nocommands") || is(rule, "-@all")) {
        acl_selector_everything(s, all_commands);
    } else {
        return false;
    }
    return true;
}

static enum acl_fault rule_of_selector(struct acl_selector *s, struct rd_slice rule)
{
    if (rule_keyword(s, rule))
        return ACL_FAULT_NONE;
    switch (rule.len > 0 ? rule.ptr[0] : 0) {
    case '~':
    case '%':
        return rule_key(s, rule);
    case '&':
        return rule_channel(s, rule);
    case '+':
    case '-':
        return rule_command(s, rule);
    default:
        return ACL_FAULT_SYNTAX;
    }
}

/* As in redis-server, quotation marks that do not match make an empty selector. */
static enum acl_fault rule_parentheses(struct acl_user *user, struct rd_slice rule, bool channels)
{
    struct acl_selector s = {.level = user->selectors[0].level, .all_channels = channels};
    struct rd_words words = {0};
    enum acl_fault fault = ACL_FAULT_NONE;
    bool sound = rd_words_split(&words, rd_slice(rule.ptr + 1, rule.len - 2));
    for (size_t i = 0; sound && i < words.argc && fault == ACL_FAULT_NONE; i++)
        fault = rule_of_selector(&s, words.argv[i]);
    rd_words_done(&words);
    if (fault == ACL_FAULT_NONE)
        add_selector(user, &s);
    else
        selector_done(&s);
    return fault;
}

/* ---- passwords ---- */

static bool digest_of(struct rd_slice password, char ret[RD_DIGEST_HEX])
{
    uint8_t sum[RD_DIGEST_MAX];
    if (!rd_digest_of(RD_DIGEST_SHA256, password, sum, NULL))
        return false;
    rd_digest_hex(ret, rd_slice(sum, rd_digest_size(RD_DIGEST_SHA256)));
    return true;
}

static bool is_digest(struct rd_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!isdigit(text.ptr[i]) && (text.ptr[i] < 'a' || text.ptr[i] > 'f'))
            return false;
    return text.len == ACL_DIGEST;
}

/* `>password` and `#digest` add a password; `<password` and `!digest` remove it. */
static enum acl_fault rule_password(struct acl_user *user, struct rd_slice rule)
{
    char hex[RD_DIGEST_HEX];
    struct rd_slice digest = after(rule, 1);
    bool adds = rule.ptr[0] == '>' || rule.ptr[0] == '#';
    if (rule.ptr[0] == '>' || rule.ptr[0] == '<') {
        if (!digest_of(digest, hex))
            return ACL_FAULT_DIGEST;
        digest = rd_slice(hex, ACL_DIGEST);
    } else if (!is_digest(digest)) {
        return ACL_FAULT_DIGEST;
    }
    const struct acl_item *known = acl_list_find(&user->passwords, digest);
    if (adds) {
        if (known == NULL)
            acl_list_add(&user->passwords, digest, 0);
        user->nopass = false;
        return ACL_FAULT_NONE;
    }
    if (known == NULL)
        return ACL_FAULT_PASSWORD;
    acl_list_remove(&user->passwords, (size_t)(known - user->passwords.items));
    return ACL_FAULT_NONE;
}

bool acl_user_has_password(const struct acl_user *user, struct rd_slice password)
{
    char hex[RD_DIGEST_HEX];
    bool found = false;
    if (!digest_of(password, hex))
        return false;
    for (size_t i = 0; i < user->passwords.n; i++) {
        const uint8_t *want = user->passwords.items[i].text.ptr;
        unsigned differs = 0;
        for (size_t k = 0; k < ACL_DIGEST; k++)
            differs |= (unsigned)(want[k] ^ (uint8_t)hex[k]);
        found |= differs == 0;
    }
    return found;
}

/* ---- the rules of a user ---- */

static void reset(struct acl_user *user, bool channels)
{
    enum engine_level level = user->selectors[0].level;
    contents_done(user);
    user->nopass = user->on = user->skip_sanitize = false;
    user->sanitize = true;
    add_selector(user, &(struct acl_selector){.level = level, .all_channels = channels});
}

static bool rule_switch(struct acl_user *user, struct rd_slice rule, bool channels)
{
    if (is(rule, "on") || is(rule, "off")) {
        user->on = is(rule, "on");
    } else if (is(rule, "skip-sanitize-payload") || is(rule, "sanitize-payload")) {
        user->sanitize = is(rule, "sanitize-payload");
        user->skip_sanitize = !user->sanitize;
    } else if (is(rule, "nopass") || is(rule, "resetpass")) {
        user->nopass = is(rule, "nopass");
        acl_list_clear(&user->passwords);
    } else if (is(rule, "clearselectors")) {
        keep_selectors(user, 1);
    } else if (is(rule, "reset")) {
        reset(user, channels);
    } else {
        return false;
    }
    return true;
}

static enum acl_fault apply(struct acl_user *user, struct rd_slice rule, bool channels)
{
    if (rule.len == 0 || rule_switch(user, rule, channels))
        return ACL_FAULT_NONE;
    if (memchr("><#!", rule.ptr[0], 4) != NULL)
        return rule_password(user, rule);
    if (rule.ptr[0] == '(' && rule.ptr[rule.len - 1] == ')')
        return rule_parentheses(user, rule, channels);
    return rule_of_selector(&user->selectors[0], rule);
}

enum acl_fault acl_user_rule(struct acl_user *user, struct rd_slice rule, bool channels)
{
    enum acl_fault fault = apply(user, rule, channels);
    note_limits(user);
    return fault;
}
