/* CONFIG SET: several values, all or none. */
#include <stdio.h>
#include <strings.h>

#include "base/mem.h"
#include "server/surface/config/config.h"
#include "server/session/client/client.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist.h"
#include "server/surface/config/apply.h"
#include "server/settings/text.h"

struct change {
    const struct settings_item *item;
    char *name;  /* as requested */
    char *value; /* the new value */
    char *old;
    size_t value_len, old_len;
    bool set;
    bool same; /* the new value is the old one: nothing to apply */
};

struct changes {
    struct server *srv;
    struct change *list;
    size_t n;
    size_t failed; /* index of the argument to blame */
    struct settings_reading reading;
};

static bool blame(struct changes *all, size_t index, const char *why)
{
    all->failed = index;
    if (why != NULL)
        snprintf(all->reading.why, sizeof all->reading.why, "%s", why);
    return false;
}

static bool is_local(const struct client *c)
{
    return c == NULL || c->conn == NULL || c->conn->is_unix || strncmp(c->peer, "127.", 4) == 0 ||
           strncmp(c->peer, "[::1]:", 6) == 0;
}

static bool may_be_set(struct changes *all, size_t index)
{
    const struct settings_item *item = all->list[index].item;
    int protection = all->srv->loop.settings.enable_protected_configs;
    bool open = protection == SETTINGS_ALLOW_YES ||
                (protection == SETTINGS_ALLOW_LOCAL && is_local(all->srv->sessions.current));
    if ((item->flags & S_FIXED) != 0)
        return blame(all, index, "can't set immutable config");
    if ((item->flags & S_PROTECTED) != 0 && !open)
        return blame(all, index, "can't set protected config");
    for (size_t i = 0; i < index; i++) {
        bool same_name = (strcasecmp(all->list[i].name, item->name) == 0) ==
                         (strcasecmp(all->list[index].name, item->name) == 0);
        if (all->list[i].item == item && same_name)
            return blame(all, index, "duplicate parameter");
    }
    return true;
}

static bool set_text(struct changes *all, const struct settings_item *item, const char *text,
                     size_t len)
{
    char **words = NULL;
    size_t n = 0;
    if (settings_item_is_password(item)) {
        settings_item_set_password(&all->srv->loop.settings, item, rd_slice(text, len));
        return true;
    }
    if ((item->flags & S_MULTI) != 0)
        settings_text_split_blanks(text, &words, &n);
    else
        settings_text_append(&words, &n, text);
    bool ok = settings_item_set(&all->srv->loop.settings, item, n, words, &all->reading);
    settings_text_free(words, n);
    return ok;
}

static bool set_one(struct changes *all, size_t index)
{
    struct change *change = &all->list[index];
    struct rd_buf old = {0};
    settings_item_get(&all->srv->loop.settings, change->item, &old);
    change->old = settings_text_copy((const char *)old.ptr, old.len);
    change->old_len = old.len;
    rd_buf_done(&old);
    if (!set_text(all, change->item, change->value, change->value_len))
        return blame(all, index, NULL);
    change->set = true;
    struct rd_buf now = {0};
    settings_item_get(&all->srv->loop.settings, change->item, &now);
    /* A file that a TLS setting names can have changed. */
    change->same = rd_slice_eq(rd_buf_slice(&now), rd_slice(change->old, change->old_len)) &&
                   strncmp(change->item->name, "tls-", 4) != 0;
    rd_buf_done(&now);
    return true;
}

/* Calls each function once, in the order of the arguments, up to but not including `end`. */
static bool apply(struct changes *all, size_t end, size_t *ret_failed)
{
    for (size_t i = 0; i < end; i++) {
        config_apply_fn fn = config_apply_for(all->list[i].item);
        bool seen = fn == NULL || all->list[i].same;
        for (size_t k = 0; k < i && !seen; k++)
            seen = !all->list[k].same && config_apply_for(all->list[k].item) == fn;
        if (!seen && !fn(all->srv, &all->reading)) {
            *ret_failed = i;
            return false;
        }
    }
    return true;
}

static void restore_old_values(struct changes *all)
{
    struct settings_reading why = all->reading;
    for (size_t i = 0; i < all->n; i++) {
        struct change *change = &all->list[i];
        if (change->set && !set_text(all, change->item, change->old, change->old_len))
            log_warning("Failed restoring failed CONFIG SET command. Error setting %s to '%s': %s",
                        change->item->name,
                        (change->item->flags & S_SECRET) != 0 ? "(secret)" : change->old,
                        all->reading.why);
    }
    all->reading = why;
}

static bool set_all(struct changes *all)
{
    for (size_t i = 0; i < all->n; i++) {
        if (!set_one(all, i)) {
            restore_old_values(all);
            return false;
        }
    }
    size_t failed;
    if (apply(all, all->n, &failed))
        return true;
    log_warning("Failed applying new configuration. Possibly related to new %s setting. Restoring "
                "previous settings.",
                all->list[failed].item->name);
    restore_old_values(all);
    struct settings_reading why = all->reading;
    size_t again;
    if (!apply(all, failed + 1, &again))
        log_warning("Failed applying restored failed CONFIG SET command: %s", all->reading.why);
    all->reading = why;
    return blame(all, failed, NULL);
}

static bool is_loading(const struct server *srv)
{
    return srv->sessions.state == SESSIONS_LOADING || srv->sessions.async_loading;
}

static bool look_up(struct changes *all, const struct rd_slice *names,
                    const struct rd_slice *values, struct rd_buf *why)
{
    for (size_t i = 0; i < all->n; i++) {
        struct change *change = &all->list[i];
        change->name = settings_text_copy((const char *)names[i].ptr, names[i].len);
        change->value = settings_text_copy((const char *)values[i].ptr, values[i].len);
        change->value_len = values[i].len;
        change->item = settings_item_find(change->name);
        if (change->item == NULL) {
            rd_buf_printf(why, "ERR Unknown option or number of arguments for CONFIG SET - '%s'",
                          change->name);
            return false;
        }
        if ((change->item->flags & S_NOT_LOADING) != 0 && is_loading(all->srv)) {
            rd_buf_printf(why, "LOADING Redis is loading the dataset in memory");
            return false;
        }
        if (!may_be_set(all, i))
            return false;
        if (!settings_item_is_password(change->item) &&
            memchr(values[i].ptr, 0, values[i].len) != NULL)
            return blame(all, i, "a value cannot contain a NUL byte");
    }
    return true;
}

bool config_set(struct server *srv, size_t n, const struct rd_slice *names,
                const struct rd_slice *values, struct rd_buf *why)
{
    struct changes all = {.srv = srv, .n = n};
    all.list = settings_text_room(n, sizeof *all.list);
    bool ok = look_up(&all, names, values, why) && set_all(&all);
    if (ok) {
        config_apply_all(srv);
        for (size_t i = 0; i < n; i++)
            config_warn_unused(&srv->loop.settings, all.list[i].item);
    } else if (why->len == 0) {
        rd_buf_printf(why, "ERR CONFIG SET failed (possibly related to argument '%s') - %s",
                      all.list[all.failed].name, all.reading.why);
    }
    for (size_t i = 0; i < n; i++) {
        rd_free(all.list[i].name);
        rd_free(all.list[i].value);
        rd_free(all.list[i].old);
    }
    rd_free(all.list);
    return ok;
}
