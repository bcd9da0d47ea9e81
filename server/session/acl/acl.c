#include "server/session/acl/acl.h"

#include "engine/mem.h"
#include "server/session/acl/acl_impl.h"
#include "server/loop/log.h"

/* ---- the table, by name ---- */

/* The index of a name, or where it belongs. */
static size_t place_of(const struct acl_users *users, struct rd_slice name, bool *ret_found)
{
    size_t low = 0, high = users->n;
    *ret_found = false;
    while (low < high && !*ret_found) {
        size_t mid = low + (high - low) / 2;
        int order = rd_slice_cmp(users->list[mid]->name, name);
        *ret_found = order == 0;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return high;
}

struct acl_user *acl_users_find(const struct acl_users *users, struct rd_slice name)
{
    bool found;
    size_t at = place_of(users, name, &found);
    return found ? users->list[at] : NULL;
}

void acl_users_add(struct acl_users *users, struct acl_user *user)
{
    bool found;
    size_t at = place_of(users, user->name, &found);
    if (users->n == users->cap) {
        users->cap = users->cap * 2 + 8;
        users->list = engine_scratch_realloc(users->list, users->cap * sizeof(struct acl_user *));
    }
    memmove(users->list + at + 1, users->list + at, (users->n - at) * sizeof(struct acl_user *));
    users->list[at] = user;
    users->n++;
}

struct acl_user *acl_users_remove(struct acl_users *users, struct rd_slice name)
{
    bool found;
    size_t at = place_of(users, name, &found);
    if (!found)
        return NULL;
    struct acl_user *user = users->list[at];
    users->n--;
    memmove(users->list + at, users->list + at + 1, (users->n - at) * sizeof(struct acl_user *));
    return user;
}

void acl_users_free(struct acl_users *users)
{
    for (size_t i = 0; i < users->n; i++)
        acl_user_free(users->list[i]);
    engine_scratch_free(users->list);
    *users = (struct acl_users){0};
}

void acl_make_default(struct acl_user *user)
{
    static const char *const rules[] = {"+@all", "~*", "&*", "on", "nopass"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        acl_user_rule(user, rd_slice_str(rules[i]), false);
}

struct acl *acl_new(enum engine_level level)
{
    struct acl *acl = engine_scratch_alloc(sizeof *acl);
    *acl = (struct acl){.fallback = acl_user_new(rd_slice_str("default"), false, level)};
    acl_make_default(acl->fallback);
    acl_users_add(&acl->users, acl->fallback);
    return acl;
}

void acl_free(struct acl *acl)
{
    if (acl == NULL)
        return;
    acl_users_free(&acl->users);
    acl_log_done(&acl->log);
    engine_scratch_free(acl);
}

struct acl_user *acl_find(const struct sessions *sessions, struct rd_slice name)
{
    return acl_users_find(&sessions->acl->users, name);
}

size_t acl_count(const struct sessions *sessions)
{
    return sessions->acl->users.n;
}

struct acl_user *acl_at(const struct sessions *sessions, size_t index)
{
    return sessions->acl->users.list[index];
}

const char *acl_user_name(const struct acl_user *user)
{
    return user == NULL ? "(superuser)" : (const char *)user->name.ptr;
}

void acl_put_line(const struct acl_user *user, struct rd_buf *out)
{
    rd_buf_printf(out, "user %s ", acl_user_name(user));
    acl_user_describe(user, out);
}

/* ---- changes ---- */

/* Bytes of a client for an error text, truncated. */
static void put_word(struct rd_buf *out, struct rd_slice word)
{
    rd_buf_add(out, word.ptr, strnlen((const char *)word.ptr, word.len));
}

bool acl_join(const struct rd_slice *words, size_t n, struct acl_list *ret, size_t *ret_open)
{
    struct rd_buf joined = {0};
    bool open = false;
    *ret = (struct acl_list){0};
    for (size_t i = 0; i < n; i++) {
        struct rd_slice word = words[i];
        bool closes = word.len > 0 && word.ptr[word.len - 1] == ')';
        if (word.len > 0 && word.ptr[0] == '(' && !closes) {
            rd_buf_reset(&joined);
            put_word(&joined, word);
            open = true;
            *ret_open = i;
        } else if (open) {
            rd_buf_add_byte(&joined, ' ');
            put_word(&joined, word);
            open = !closes;
            if (closes)
                acl_list_add(ret, rd_buf_slice(&joined), 0);
        } else {
            acl_list_add(ret, word, 0);
        }
    }
    rd_buf_done(&joined);
    if (open)
        acl_list_clear(ret);
    return !open;
}

static bool apply_rules(struct acl_user *user, const struct acl_list *rules, bool channels,
                        struct rd_buf *why)
{
    for (size_t i = 0; i < rules->n; i++) {
        enum acl_fault fault = acl_user_rule(user, rules->items[i].text, channels);
        if (fault == ACL_FAULT_NONE)
            continue;
        rd_buf_printf(why, "Error in ACL SETUSER modifier '");
        put_word(why, rules->items[i].text);
        rd_buf_printf(why, "': %s", acl_fault_text(fault));
        return false;
    }
    return true;
}

bool acl_set_user(struct sessions *sessions, struct rd_slice name, const struct rd_slice *rules,
                  size_t n, struct rd_buf *why)
{
    struct acl_user *user = acl_find(sessions, name);
    bool channels = sessions->loop->settings.acl_pubsub_default != 0;
    struct acl_list joined;
    size_t open = 0;
    if (!acl_join(rules, n, &joined, &open)) {
        rd_buf_printf(why, "Unmatched parenthesis in acl selector starting at '");
        put_word(why, rules[open]);
        rd_buf_printf(why, "'.");
        return false;
    }
    struct acl_user *changed =
        acl_user_new(name, channels, settings_level(&sessions->loop->settings));
    if (user != NULL)
        acl_user_copy(changed, user);
    bool ok = apply_rules(changed, &joined, channels, why);
    acl_list_clear(&joined);
    if (ok && user == NULL) {
        acl_users_add(&sessions->acl->users, changed);
        return true;
    }
    if (ok) {
        acl_drop_subscribers(sessions, changed, user);
        acl_user_copy(user, changed);
    }
    acl_user_free(changed);
    return ok;
}

bool acl_delete_user(struct sessions *sessions, struct rd_slice name)
{
    struct acl_user *user = acl_users_remove(&sessions->acl->users, name);
    if (user == NULL)
        return false;
    acl_drop_clients(sessions, user);
    acl_user_free(user);
    return true;
}

void acl_set_default_password(struct sessions *sessions, struct rd_slice password)
{
    struct acl_user *user = sessions->acl->fallback;
    struct rd_buf rule = {0};
    acl_user_rule(user, rd_slice_str("resetpass"), false);
    if (password.len == 0)
        rd_buf_printf(&rule, "nopass");
    else
        rd_buf_add_byte(&rule, '>');
    rd_buf_add(&rule, password.ptr, password.len);
    acl_user_rule(user, rd_buf_slice(&rule), false);
    rd_buf_done(&rule);
}

/* ---- login ---- */

void acl_client_begin(struct client *c)
{
    if (c->conn == NULL) {
        c->authenticated = true;
        return;
    }
    c->user = c->sessions->acl->fallback;
    c->authenticated = c->user->nopass && c->user->on;
}

bool acl_login_needed(const struct client *c)
{
    const struct acl_user *user = c->sessions->acl->fallback;
    return !c->authenticated && !(user->nopass && user->on);
}

bool acl_is_open(const struct sessions *sessions)
{
    return sessions->acl->fallback->nopass;
}

bool acl_login(struct client *c, struct rd_slice name, struct rd_slice password,
               struct rd_slice word)
{
    struct acl_user *user = acl_find(c->sessions, name);
    if (user != NULL && user->on && (user->nopass || acl_user_has_password(user, password))) {
        c->user = user;
        c->authenticated = true;
        return true;
    }
    bool multi = c->session.in_multi || c->session.in_exec;
    acl_log_add(c, ACL_DENIED_AUTH, multi ? ACL_CONTEXT_MULTI : ACL_CONTEXT_TOPLEVEL, word, name);
    return false;
}

/* ---- verdicts ---- */

enum { KEYS_USUAL = 16 };

bool acl_is_limited(const struct acl_user *user)
{
    return user != NULL && !user->unlimited;
}

/* The keys of a line go to `usual` if they fit. */
static struct acl_line make_line(const struct engine_command *command, size_t argc,
                                 const struct rd_slice *argv, struct engine_key *usual)
{
    struct acl_line line = {.command = command, .argc = argc, .argv = argv, .keys = usual};
    if (argc > KEYS_USUAL)
        line.keys = engine_scratch_alloc(argc * sizeof *line.keys);
    return line;
}

static void line_done(struct acl_line *line, const struct engine_key *usual)
{
    if (line->keys != usual)
        engine_scratch_free(line->keys);
}

enum acl_verdict acl_check(const struct acl_user *user, const struct engine_command *command,
                           size_t argc, const struct rd_slice *argv, size_t *ret_at)
{
    struct engine_key usual[KEYS_USUAL];
    enum acl_verdict worst = ACL_DENIED_COMMAND, verdict = ACL_OK;
    size_t worst_at = 0;
    if (!acl_is_limited(user))
        return ACL_OK;
    struct acl_line line = make_line(command, argc, argv, usual);
    for (size_t i = 0; i < user->n_selectors; i++) {
        size_t at = 0;
        verdict = acl_selector_check(&user->selectors[i], &line, &at);
        if (verdict == ACL_OK)
            break;
        if (verdict > worst || (verdict == worst && at > worst_at)) {
            worst = verdict;
            worst_at = at;
        }
    }
    line_done(&line, usual);
    *ret_at = worst_at;
    return verdict == ACL_OK ? ACL_OK : worst;
}

static bool reads_all(const struct acl_selector *s)
{
    const struct acl_item *star = acl_list_find(&s->keys, rd_slice_str("*"));
    return s->all_keys || (star != NULL && (star->bits & ACL_READS) != 0);
}

bool acl_reads_all_keys(const struct acl_user *user, const struct engine_command *command,
                        size_t argc, const struct rd_slice *argv)
{
    struct engine_key usual[KEYS_USUAL];
    bool found = !acl_is_limited(user);
    if (found)
        return true;
    struct acl_line line = make_line(command, argc, argv, usual);
    for (size_t i = 0; i < user->n_selectors && !found; i++) {
        size_t at;
        found = reads_all(&user->selectors[i]) &&
                acl_selector_check(&user->selectors[i], &line, &at) == ACL_OK;
    }
    line_done(&line, usual);
    return found;
}

enum engine_permit acl_permit(enum acl_verdict verdict)
{
    switch (verdict) {
    case ACL_OK:
        return ENGINE_PERMIT_OK;
    case ACL_DENIED_KEY:
        return ENGINE_PERMIT_NO_KEY;
    case ACL_DENIED_CHANNEL:
        return ENGINE_PERMIT_NO_CHANNEL;
    default:
        return ENGINE_PERMIT_NO_COMMAND;
    }
}

const char *acl_refusal_in_exec(enum acl_verdict verdict)
{
    if (verdict == ACL_DENIED_COMMAND)
        return "no permission to execute the command or subcommand";
    if (verdict == ACL_DENIED_KEY)
        return "no permission to touch the specified keys";
    return "no permission to access one of the channels used as arguments";
}
