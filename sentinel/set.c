/* What can be set: by lines of the configuration file, and by SENTINEL MONITOR, SET and CONFIG. */
#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/words.h"
#include "sentinel/set_impl.h"
#include "sentinel/text_impl.h"

enum { TIME_MAX = 1 << 30, COUNT_MAX = 1 << 30 };

/* ---- values ---- */

static bool number(struct rd_slice text, int64_t min, int64_t max, int64_t *ret)
{
    int64_t v;
    if (!rd_num_get_i64(text, &v) || v < min || v > max)
        return false;
    *ret = v;
    return true;
}

bool sentinel_yes_no(struct rd_slice text, bool *ret)
{
    if (rd_word_is(text, "yes"))
        *ret = true;
    else if (rd_word_is(text, "no"))
        *ret = false;
    else
        return false;
    return true;
}

static bool set_count(struct rd_slice text, int64_t min, unsigned *ret)
{
    int64_t v;
    if (!number(text, min, COUNT_MAX, &v))
        return false;
    *ret = (unsigned)v;
    return true;
}

static bool set_script(struct sentinel *s, char **script, struct rd_slice value)
{
    char path[4096];
    if (value.len >= sizeof path || (value.len > 0 && memchr(value.ptr, 0, value.len) != NULL))
        return false;
    sentinel_text_copy(path, sizeof path, value);
    if (value.len > 0 && !s->opts.runnable(s->opts.ctx, path))
        return false;
    sentinel_replace(s, script, value);
    return true;
}

static bool set_rename(struct sentinel_instance *m, struct rd_slice from, struct rd_slice to)
{
    struct sentinel *s = m->s;
    size_t i = 0;
    while (i < m->n_renames && !rd_word_is(from, m->renames[i].from))
        i++;
    if (i < m->n_renames) {
        rd_free(m->renames[i].from);
        rd_free(m->renames[i].to);
        m->renames[i] = m->renames[--m->n_renames];
    }
    if (from.len == 0 || to.len == 0 || rd_slice_eq(from, to))
        return true;
    struct sentinel_rename *grown = rd_realloc(m->renames, (m->n_renames + 1) * sizeof *grown);
    char *a = sentinel_text_dup(from), *b = sentinel_text_dup(to);
    if (grown != NULL)
        m->renames = grown;
    if (grown == NULL || a == NULL || b == NULL) {
        s->no_memory = true;
        rd_free(a);
        rd_free(b);
        return true;
    }
    m->renames[m->n_renames++] = (struct sentinel_rename){a, b};
    return true;
}

/* ---- the options of a master ---- */

static const struct {
    const char *word;
    size_t n_values;
} options[] = {[SENTINEL_DOWN_AFTER] = {"down-after-milliseconds", 1},
               [SENTINEL_FAILOVER_TIMEOUT] = {"failover-timeout", 1},
               [SENTINEL_PARALLEL_SYNCS] = {"parallel-syncs", 1},
               [SENTINEL_NOTIFICATION_SCRIPT] = {"notification-script", 1},
               [SENTINEL_RECONFIG_SCRIPT] = {"client-reconfig-script", 1},
               [SENTINEL_AUTH_PASS] = {"auth-pass", 1},
               [SENTINEL_AUTH_USER] = {"auth-user", 1},
               [SENTINEL_SET_QUORUM] = {"quorum", 1},
               [SENTINEL_RENAME] = {"rename-command", 2},
               [SENTINEL_REBOOT_DOWN_AFTER] = {"master-reboot-down-after-period", 1}};

bool sentinel_option_find(struct rd_slice word, size_t n_values, enum sentinel_option *ret)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (options[i].n_values <= n_values && rd_word_is(word, options[i].word)) {
            *ret = (enum sentinel_option)i;
            return true;
        }
    }
    return false;
}

size_t sentinel_option_values(enum sentinel_option option)
{
    return options[option].n_values;
}

static bool set_time(struct rd_slice text, int64_t min, int64_t *ret)
{
    return number(text, min, TIME_MAX, ret);
}

/* A password is text: AUTH sends it as one. */
static bool set_text(struct sentinel *s, char **text, struct rd_slice value)
{
    if (value.len > 0 && memchr(value.ptr, 0, value.len) != NULL)
        return false;
    sentinel_replace(s, text, value);
    return true;
}

bool sentinel_option_set(struct sentinel_instance *m, enum sentinel_option option,
                         const struct rd_slice *values)
{
    struct sentinel *s = m->s;
    switch (option) {
    case SENTINEL_DOWN_AFTER:
        return set_time(values[0], 1, &m->down_after_ms);
    case SENTINEL_FAILOVER_TIMEOUT:
        return set_time(values[0], 1, &m->failover_timeout_ms);
    case SENTINEL_PARALLEL_SYNCS:
        return set_count(values[0], 0, &m->parallel_syncs);
    case SENTINEL_NOTIFICATION_SCRIPT:
        return set_script(s, &m->notification_script, values[0]);
    case SENTINEL_RECONFIG_SCRIPT:
        return set_script(s, &m->reconfig_script, values[0]);
    case SENTINEL_AUTH_PASS:
        return set_text(s, &m->auth_pass, values[0]);
    case SENTINEL_AUTH_USER:
        return set_text(s, &m->auth_user, values[0]);
    case SENTINEL_SET_QUORUM:
        return set_count(values[0], 1, &m->quorum);
    case SENTINEL_RENAME:
        return set_rename(m, values[0], values[1]);
    default:
        return set_time(values[0], 0, &m->reboot_down_after_ms);
    }
}

static void tell_set(struct sentinel_instance *m, enum sentinel_option option,
                     const struct rd_slice *words)
{
    struct rd_buf text = {0};
    bool ok = rd_buf_printf(&text, "%.*s", (int)words[0].len, (const char *)words[0].ptr);
    for (size_t i = 0; i < sentinel_option_values(option) && ok; i++) {
        struct rd_slice v = option == SENTINEL_AUTH_PASS ? rd_slice_str("******") : words[i + 1];
        ok = rd_buf_printf(&text, " %.*s", (int)v.len, (const char *)v.ptr);
    }
    m->s->no_memory |= !ok;
    sentinel_event(m->s, SENTINEL_LEVEL_WARNING, "+set", m, " %.*s", (int)text.len,
                   (const char *)text.ptr);
    rd_buf_done(&text);
}

/* The next connections log in with it. */
static void log_in_again(struct sentinel_instance *m)
{
    sentinel_link_cut_both(m->s, m->link);
    for (size_t i = 0; i < m->replicas.n; i++)
        sentinel_link_cut_both(m->s, m->replicas.at[i]->link);
}

static bool is_script(enum sentinel_option option)
{
    return option == SENTINEL_NOTIFICATION_SCRIPT || option == SENTINEL_RECONFIG_SCRIPT;
}

enum sentinel_result sentinel_set(struct sentinel *s, struct sentinel_instance *m,
                                  const struct rd_slice *words, size_t n, size_t *ret_at)
{
    enum sentinel_result result = SENTINEL_OK;
    bool changed = false;
    size_t i = 0;
    while (i < n && result == SENTINEL_OK) {
        enum sentinel_option option;
        *ret_at = i;
        if (!sentinel_option_find(words[i], n - i - 1, &option)) {
            result = SENTINEL_UNKNOWN;
        } else if (is_script(option) && s->deny_scripts) {
            result = SENTINEL_DENIED;
        } else if ((option == SENTINEL_PARALLEL_SYNCS && rd_slice_is(words[i + 1], "0")) ||
                   !sentinel_option_set(m, option, words + i + 1)) {
            result = SENTINEL_BAD_VALUE;
        } else {
            tell_set(m, option, words + i);
            if (option == SENTINEL_AUTH_PASS || option == SENTINEL_AUTH_USER)
                log_in_again(m);
            changed = true;
            i += sentinel_option_values(option) + 1;
        }
    }
    if (changed)
        sentinel_save(s);
    return result;
}

/* ---- masters ---- */

static bool is_name(struct rd_slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] <= ' ' || name.ptr[i] == 127 || strchr(",\"'\\", name.ptr[i]) != NULL)
            return false;
    }
    return name.len > 0 && name.len <= SENTINEL_NAME_MAX;
}

enum sentinel_result sentinel_add_master(struct sentinel *s, struct rd_slice name,
                                         struct rd_slice host, int64_t port, int64_t quorum,
                                         struct sentinel_instance **ret)
{
    struct sentinel_addr addr;
    if (quorum < 1 || quorum > COUNT_MAX)
        return SENTINEL_BAD_QUORUM;
    if (port < 1 || port > SENTINEL_PORT_MAX)
        return SENTINEL_BAD_PORT;
    if (!is_name(name))
        return SENTINEL_BAD_NAME;
    if (sentinel_find(s, name) != NULL)
        return SENTINEL_DUPLICATE;
    if (!sentinel_addr_read(s, host, (int)port, true, &addr))
        return SENTINEL_BAD_HOST;
    struct sentinel_instance *m = sentinel_make(s, SENTINEL_FLAG_MASTER, name, &addr, NULL);
    if (m != NULL && !sentinel_add_to(s, &s->masters, m)) {
        sentinel_drop(m);
        m = NULL;
    }
    if (m != NULL)
        m->quorum = (unsigned)quorum;
    *ret = m;
    return SENTINEL_OK;
}

enum sentinel_result sentinel_monitor(struct sentinel *s, struct rd_slice name,
                                      struct rd_slice host, int64_t port, int64_t quorum)
{
    struct sentinel_instance *m;
    enum sentinel_result result = sentinel_add_master(s, name, host, port, quorum, &m);
    if (result != SENTINEL_OK || m == NULL)
        return result;
    /* What was voted for the same name before REMOVE is not known any more. */
    m->leader_epoch = s->epoch;
    sentinel_save(s);
    sentinel_event(s, SENTINEL_LEVEL_WARNING, "+monitor", m, " quorum %u", m->quorum);
    return SENTINEL_OK;
}

void sentinel_remove(struct sentinel *s, struct sentinel_instance *master)
{
    sentinel_event(s, SENTINEL_LEVEL_WARNING, "-monitor", master, "%s", "");
    sentinel_take_from(&s->masters, master);
    sentinel_drop(master);
    sentinel_save(s);
}

void sentinel_reset(struct sentinel *s, struct sentinel_instance *master)
{
    sentinel_reset_master(master, false);
    sentinel_event(s, SENTINEL_LEVEL_WARNING, "+reset-master", master, "%s", "");
}

/* ---- SENTINEL CONFIG ---- */

/* The host that other Sentinels are told; an empty value announces the own address again. */
static bool set_announced(struct sentinel *s, struct rd_slice value)
{
    struct sentinel_addr addr;
    if (value.len > 0 && !sentinel_addr_read(s, value, 1, false, &addr))
        return false;
    sentinel_replace(s, &s->announce_ip, value);
    return true;
}

enum sentinel_result sentinel_global_set(struct sentinel *s, struct rd_slice option,
                                         struct rd_slice value)
{
    int64_t port = 0;
    bool ok;
    if (rd_word_is(option, "announce-ip"))
        ok = set_announced(s, value);
    else if (rd_word_is(option, "announce-port"))
        ok = number(value, 0, SENTINEL_PORT_MAX, &port) && (s->announce_port = (int)port, true);
    else if (rd_word_is(option, "sentinel-user"))
        ok = set_text(s, &s->user, value);
    else if (rd_word_is(option, "sentinel-pass"))
        ok = set_text(s, &s->password, value);
    else if (rd_word_is(option, "resolve-hostnames"))
        ok = sentinel_yes_no(value, &s->resolves);
    else if (rd_word_is(option, "announce-hostnames"))
        ok = sentinel_yes_no(value, &s->announces_names);
    else
        return SENTINEL_UNKNOWN;
    return ok ? SENTINEL_OK : SENTINEL_BAD_VALUE;
}

static void cut_sentinels(struct sentinel *s)
{
    for (size_t i = 0; i < s->masters.n; i++) {
        const struct sentinel_list *list = &s->masters.at[i]->sentinels;
        for (size_t k = 0; k < list->n; k++)
            sentinel_link_cut_both(s, list->at[k]->link);
    }
}

enum sentinel_result sentinel_config_set(struct sentinel *s, struct rd_slice option,
                                         struct rd_slice value)
{
    enum sentinel_result result = sentinel_global_set(s, option, value);
    if (result != SENTINEL_OK)
        return result;
    sentinel_save(s);
    if (rd_word_is(option, "sentinel-user") || rd_word_is(option, "sentinel-pass"))
        cut_sentinels(s);
    return SENTINEL_OK;
}

void sentinel_config_get(const struct sentinel *s,
                         void (*each)(void *ctx, const char *option, const char *value), void *ctx)
{
    char port[16];
    snprintf(port, sizeof port, "%d", s->announce_port);
    each(ctx, "resolve-hostnames", s->resolves ? "yes" : "no");
    each(ctx, "announce-hostnames", s->announces_names ? "yes" : "no");
    each(ctx, "announce-ip", s->announce_ip != NULL ? s->announce_ip : "");
    each(ctx, "announce-port", port);
    each(ctx, "sentinel-user", s->user != NULL ? s->user : "");
    each(ctx, "sentinel-pass", s->password != NULL ? s->password : "");
}
