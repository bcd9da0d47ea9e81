/* Directives that are accepted for compatibility and have no effect. */
#include "server/surface/config/config.h"
#include "server/settings/settings.h"

#include "server/loop/log.h"
#include "server/settings/item.h"

#define DEFRAG     "active defragmentation is not supported"
#define ONE_THREAD "a single thread handles all connections"

/* By name, with the reason. Directives that would lose data or weaken security if they were ignored
 * are not here: the server does not start with them (main.c). tests/server/test_unused.py compares
 * the rows with the sources. */
static const struct {
    const char *name, *why;
} unused[] = {
    {"active-defrag-cycle-max", DEFRAG},
    {"active-defrag-cycle-min", DEFRAG},
    {"active-defrag-ignore-bytes", DEFRAG},
    {"active-defrag-max-scan-fields", DEFRAG},
    {"active-defrag-threshold-lower", DEFRAG},
    {"active-defrag-threshold-upper", DEFRAG},
    {"ignore-warnings", "the server has no checks to ignore"},
    {"io-threads", ONE_THREAD},
    {"io-threads-do-reads", ONE_THREAD},
    {"list-compress-depth", "lists are not compressed in memory"},
    {"lua-enable-deprecated-api", "scripts have no deprecated functions"},
    {"maxmemory-eviction-tenacity", "eviction continues until enough memory is free"},
};

static const char *why_unused(const char *name)
{
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++) {
        if (strcmp(unused[i].name, name) == 0)
            return unused[i].why;
    }
    return NULL;
}

static bool has_default(const struct settings *s, const struct settings *fresh,
                        const struct settings_item *item)
{
    struct rd_buf have = {0}, want = {0};
    settings_item_get(s, item, &have);
    settings_item_get(fresh, item, &want);
    bool same = rd_slice_eq(rd_slice(have.ptr, have.len), rd_slice(want.ptr, want.len));
    rd_buf_done(&have);
    rd_buf_done(&want);
    return same;
}

void config_warn_unused(const struct settings *s, const struct settings_item *only)
{
    struct settings fresh;
    settings_init(&fresh);
    for (size_t i = 0; i < settings_n_items; i++) {
        const struct settings_item *item = &settings_items[i];
        const char *why = only == NULL || only == item ? why_unused(item->name) : NULL;
        if (why != NULL && !has_default(s, &fresh, item))
            log_warning("Warning: the directive '%s' has no effect: %s.", item->name, why);
    }
    settings_done(&fresh);
}
