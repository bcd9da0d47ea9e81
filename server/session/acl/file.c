/* User lines of the configuration, and the ACL file. */
#include "server/session/acl/acl_impl.h"

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/words.h"
#include "engine/mem.h"
#include "server/loop/log.h"
#include "server/settings/text.h"

enum { FILE_MAX = 64 << 20 };

/* ---- user lines ---- */

/* Unknown commands are not an error yet: a module could add them. */
bool acl_check_line(const struct settings *s, const struct rd_slice *words, size_t n,
                    struct rd_buf *why)
{
    bool channels = s->acl_pubsub_default != 0;
    struct acl_list rules;
    size_t open = 0;
    if (!acl_join(words + 1, n - 1, &rules, &open)) {
        rd_buf_printf(why, "Error in user declaration '%.*s': Unmatched parenthesis",
                      (int)words[open + 1].len, (const char *)words[open + 1].ptr);
        return false;
    }
    struct acl_user *user = acl_user_new(words[0], channels, settings_level(s));
    enum acl_fault fault = ACL_FAULT_NONE;
    for (size_t i = 0; i < rules.n && fault == ACL_FAULT_NONE; i++) {
        struct rd_slice rule = rules.items[i].text;
        fault = acl_user_rule(user, rule, channels);
        if (fault == ACL_FAULT_UNKNOWN)
            fault = ACL_FAULT_NONE;
        if (fault != ACL_FAULT_NONE)
            rd_buf_printf(why, "Error in user declaration '%.*s': %s", (int)rule.len,
                          (const char *)rule.ptr, acl_fault_text(fault));
    }
    acl_user_free(user);
    acl_list_clear(&rules);
    return fault == ACL_FAULT_NONE;
}

static bool load_rules(struct acl_user *user, const struct acl_list *rules, bool channels)
{
    for (size_t i = 0; i < rules->n; i++) {
        struct rd_slice rule = rules->items[i].text;
        enum acl_fault fault = acl_user_rule(user, rule, channels);
        if (fault == ACL_FAULT_NONE)
            continue;
        log_warning("Error loading ACL rule '%.*s' for the user named '%s': %s", (int)rule.len,
                    (const char *)rule.ptr, acl_user_name(user), acl_fault_text(fault));
        return false;
    }
    return true;
}

static bool load_line(struct sessions *sessions, const char *line)
{
    struct rd_words words = {0};
    struct acl_list rules = {0};
    bool channels = sessions->loop->settings.acl_pubsub_default != 0;
    size_t open;
    /* The line was checked when it was read. */
    bool ok = rd_words_split(&words, rd_slice_str(line)) && words.argc > 1 &&
              acl_join(words.argv + 2, words.argc - 2, &rules, &open);
    if (ok && acl_text_has_blanks(words.argv[1])) {
        log_warning("Spaces not allowed in ACL usernames");
        ok = false;
    }
    if (ok) {
        struct acl_user *user = acl_find(sessions, words.argv[1]);
        if (user != NULL) {
            acl_user_rule(user, rd_slice_str("reset"), channels);
        } else {
            user = acl_user_new(words.argv[1], channels, settings_level(&sessions->loop->settings));
            acl_users_add(&sessions->acl->users, user);
        }
        ok = load_rules(user, &rules, channels);
        if (ok && !user->on)
            log_notice("The user '%s' is disabled (there is no 'on' modifier in the user "
                       "description). Make sure this is not a configuration error.",
                       acl_user_name(user));
    }
    acl_list_clear(&rules);
    rd_words_done(&words);
    return ok;
}

bool acl_load_at_start(struct sessions *sessions)
{
    const struct settings *s = &sessions->loop->settings;
    struct rd_buf why = {0};
    acl_set_default_password(sessions, settings_password(s));
    if (s->aclfile[0] != '\0' && s->n_users > 0) {
        log_warning("Configuring Redis with users defined in redis.conf and at the same setting an "
                    "ACL file path is invalid. This setup is very likely to lead to configuration "
                    "errors and security holes, please define either an ACL file or declare users "
                    "directly in your redis.conf, but not both.");
        return false;
    }
    for (size_t i = 0; i < s->n_users; i++) {
        if (!load_line(sessions, s->users[i])) {
            log_warning("Critical error while loading ACLs. Exiting.");
            return false;
        }
    }
    if (s->aclfile[0] == '\0' || acl_load_file(sessions, &why))
        return true;
    log_warning("Aborting Redis startup because of ACL errors: %.*s", (int)why.len,
                (const char *)why.ptr);
    rd_buf_done(&why);
    return false;
}

/* ---- ACL LOAD ---- */

struct loading {
    struct acl_users users;
    const char *name; /* of the file */
    size_t number;    /* of the line */
    bool channels;
    enum engine_level level;
    struct rd_buf *why; /* all errors */
};

static bool read_file(const char *name, struct rd_buf *ret, struct rd_buf *why)
{
    char piece[4096];
    size_t n;
    FILE *file = fopen(name, "re");
    bool ok = file != NULL;
    while (ok && (n = fread(piece, 1, sizeof piece, file)) > 0) {
        ok = ret->len + n <= FILE_MAX;
        errno = ok ? errno : EFBIG;
        rd_buf_add(ret, piece, ok ? n : 0);
    }
    ok = ok && ferror(file) == 0;
    if (!ok)
        rd_buf_printf(why, "Error loading ACLs, opening file '%s': %s", name, strerror(errno));
    if (file != NULL)
        fclose(file);
    return ok;
}

/* Splits at each single space: an ACL file has no quotation marks. The words are borrowed. */
static struct rd_slice *split(struct rd_slice line, size_t *ret_n)
{
    size_t n = 1;
    for (size_t i = 0; i < line.len; i++)
        n += line.ptr[i] == ' ';
    struct rd_slice *words = engine_scratch_alloc(n * sizeof *words);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *blank = i + 1 < n ? memchr(line.ptr, ' ', line.len) : NULL;
        size_t len = blank != NULL ? (size_t)(blank - line.ptr) : line.len;
        words[i] = rd_slice(line.ptr, len);
        if (blank != NULL)
            line = rd_slice(blank + 1, line.len - len - 1);
    }
    *ret_n = n;
    return words;
}

static struct rd_slice trim(struct rd_slice text, const char *set)
{
    while (text.len > 0 && memchr(set, text.ptr[0], strlen(set)) != NULL)
        text = rd_slice(text.ptr + 1, text.len - 1);
    while (text.len > 0 && memchr(set, text.ptr[text.len - 1], strlen(set)) != NULL)
        text.len--;
    return text;
}

/* Of errors other than unknown commands only the first one is reported, because others can result
 * from it. */
static void apply_rules(struct loading *l, struct acl_user *user, const struct acl_list *rules)
{
    bool reported = false;
    for (size_t i = 0; i < rules->n; i++) {
        struct rd_slice rule = trim(rules->items[i].text, "\t\r\n");
        enum acl_fault fault = acl_user_rule(user, rule, l->channels);
        if (fault == ACL_FAULT_UNKNOWN) {
            rd_buf_printf(l->why, "%s:%zu: Error in applying operation '%.*s': %s. ", l->name,
                          l->number, (int)rule.len, (const char *)rule.ptr, acl_fault_text(fault));
        } else if (fault != ACL_FAULT_NONE && !reported) {
            rd_buf_printf(l->why, "%s:%zu: %s. ", l->name, l->number, acl_fault_text(fault));
            reported = true;
        }
    }
}

static void read_user(struct loading *l, struct rd_slice name, const struct rd_slice *rules,
                      size_t n)
{
    struct acl_list joined;
    size_t open;
    if (acl_text_has_blanks(name)) {
        rd_buf_printf(l->why, "'%s:%zu: username '%.*s' contains invalid characters. ", l->name,
                      l->number, (int)name.len, (const char *)name.ptr);
        return;
    }
    if (acl_users_find(&l->users, name) != NULL) {
        rd_buf_printf(l->why, "WARNING: Duplicate user '%.*s' found on line %zu. ", (int)name.len,
                      (const char *)name.ptr, l->number);
        return;
    }
    struct acl_user *user = acl_user_new(name, l->channels, l->level);
    acl_users_add(&l->users, user);
    if (acl_join(rules, n, &joined, &open))
        apply_rules(l, user, &joined);
    else
        rd_buf_printf(l->why, "%s:%zu: Unmatched parenthesis in selector definition.", l->name,
                      l->number);
    acl_list_clear(&joined);
}

static void read_line(struct loading *l, struct rd_slice line)
{
    size_t n;
    if (line.len == 0)
        return;
    struct rd_slice *words = split(line, &n);
    if (!rd_slice_is(words[0], "user") || n < 2)
        rd_buf_printf(l->why, "%s:%zu should start with user keyword followed by the username. ",
                      l->name, l->number);
    else
        read_user(l, words[1], words + 2, n - 2);
    engine_scratch_free(words);
}

static void read_lines(struct loading *l, struct rd_slice text)
{
    while (text.len > 0) {
        const uint8_t *end = memchr(text.ptr, '\n', text.len);
        size_t len = end != NULL ? (size_t)(end - text.ptr) : text.len;
        l->number++;
        read_line(l, trim(rd_slice(text.ptr, len), " \t\r\n"));
        len += end != NULL;
        text = rd_slice(text.ptr + len, text.len - len);
    }
}

/* Users get new structures, so their clients are disconnected. `default` keeps its structure and
 * its clients. */
static void take_users(struct sessions *sessions, struct acl_users *fresh)
{
    struct acl_users *users = &sessions->acl->users;
    struct acl_user *fallback = sessions->acl->fallback;
    struct acl_user *changed = acl_users_remove(fresh, fallback->name);
    if (changed == NULL) {
        changed = acl_user_new(fallback->name, false, fallback->selectors[0].level);
        acl_make_default(changed);
    }
    acl_user_copy(fallback, changed);
    acl_user_free(changed);
    acl_users_remove(users, fallback->name);
    for (size_t i = 0; i < users->n; i++)
        acl_drop_clients(sessions, users->list[i]);
    acl_users_free(users);
    acl_users_add(fresh, fallback);
    *users = *fresh;
}

bool acl_load_file(struct sessions *sessions, struct rd_buf *why)
{
    struct rd_buf text = {0};
    struct loading l = {.name = sessions->loop->settings.aclfile,
                        .channels = sessions->loop->settings.acl_pubsub_default != 0,
                        .level = settings_level(&sessions->loop->settings),
                        .why = why};
    if (!read_file(l.name, &text, why)) {
        rd_buf_done(&text);
        return false;
    }
    read_lines(&l, rd_buf_slice(&text));
    rd_buf_done(&text);
    if (why->len == 0) {
        take_users(sessions, &l.users);
        return true;
    }
    acl_users_free(&l.users);
    rd_buf_printf(why, "WARNING: ACL errors detected, no change to the previously active ACL rules "
                       "was performed");
    return false;
}

/* ---- ACL SAVE ---- */

bool acl_save_file(struct sessions *sessions)
{
    struct rd_buf text = {0};
    struct rd_err err = {0};
    for (size_t i = 0; i < acl_count(sessions); i++) {
        acl_put_line(acl_at(sessions, i), &text);
        rd_buf_add_byte(&text, '\n');
    }
    bool ok =
        settings_text_replace_file(sessions->loop->settings.aclfile, rd_buf_slice(&text), &err);
    if (!ok)
        log_warning("Writing ACL file for ACL SAVE: %s", err.text);
    rd_buf_done(&text);
    return ok;
}
