#include "server/settings/settings.h"

#include <stdlib.h>

#include "base/mem.h"
#include "server/settings/item.h"
#include "server/settings/text.h"

/* Defaults are parsed like lines of the file, so values have a single source. */
static void set_default(struct settings *s, const struct settings_item *item)
{
    struct settings_reading reading = {0};
    char **words = NULL;
    size_t n = 0;
    if (item->kind == SETTINGS_KIND_STR || (item->flags & S_MULTI) == 0)
        settings_text_append(&words, &n, item->value);
    else
        settings_text_split_blanks(item->value, &words, &n);
    if (!settings_item_set(s, item, n, words, &reading))
        abort();
    settings_text_free(words, n);
}

void settings_init(struct settings *s)
{
    *s = (struct settings){0};
    for (size_t i = 0; i < settings_n_items; i++) {
        if (settings_items[i].special != &settings_dir)
            set_default(s, &settings_items[i]);
    }
    s->dir = settings_text_copy(".", 1);
}

void settings_done(struct settings *s)
{
    names_done(&s->names);
    for (size_t i = 0; i < settings_n_items; i++) {
        if (settings_items[i].kind == SETTINGS_KIND_STR)
            rd_free(*(char **)((char *)s + settings_items[i].offset));
    }
    for (size_t i = 0; i < s->n_renames; i++) {
        rd_free(s->renames[i].from);
        rd_free(s->renames[i].to);
    }
    rd_free(s->renames);
    rd_free(s->save);
    settings_text_free(s->bind, s->n_bind);
    settings_text_free(s->users, s->n_users);
    settings_text_free(s->modules, s->n_modules);
    for (size_t i = 0; i < s->n_sentinel_lines; i++)
        rd_free(s->sentinel_lines[i].text);
    rd_free(s->sentinel_lines);
    rd_free(s->dir);
    rd_free(s->proc_title_template);
    rd_free(s->replicaof_host);
    *s = (struct settings){0};
}

void settings_follow(struct settings *s, const char *host, int port)
{
    char *old = s->replicaof_host; /* host may be in it */
    s->replicaof_host = host != NULL ? settings_text_copy(host, strlen(host)) : NULL;
    s->replicaof_port = port;
    rd_free(old);
}

uint64_t settings_maxmemory_clients(const struct settings *s)
{
    uint64_t share = 0 - s->maxmemory_clients;
    if (s->maxmemory_clients <= INT64_MAX)
        return s->maxmemory_clients;
    return (uint64_t)((double)s->maxmemory * (double)share / 100.0);
}

bool settings_get(const struct settings *s, const char *name, struct rd_buf *ret)
{
    const struct settings_item *item = settings_item_find(name);
    if (item == NULL)
        return false;
    settings_item_get(s, item, ret);
    return true;
}

bool settings_secret(struct rd_slice name)
{
    char text[64] = "";
    if (name.len >= sizeof text)
        return false;
    memcpy(text, name.ptr, name.len);
    const struct settings_item *item = settings_item_find(text);
    return item != NULL && (item->flags & S_SECRET) != 0;
}

void settings_to_engine(const struct settings *s, struct engine_config *config)
{
    config->databases = (unsigned)s->databases;
    config->hash_max_listpack_entries = s->hash_max_listpack_entries;
    config->hash_max_listpack_value = s->hash_max_listpack_value;
    config->set_max_intset_entries = s->set_max_intset_entries;
    config->zset_max_listpack_entries = s->zset_max_listpack_entries;
    config->zset_max_listpack_value = s->zset_max_listpack_value;
    config->list_max_listpack_size = (int)s->list_max_listpack_size;
    config->list_compress_depth = (int)s->list_compress_depth;
    config->stream_node_max_bytes = s->stream_node_max_bytes;
    config->stream_node_max_entries = (uint64_t)s->stream_node_max_entries;
    config->hll_sparse_max_bytes = s->hll_sparse_max_bytes;
    config->proto_max_bulk_len = s->proto_max_bulk_len;
    config->maxmemory = s->maxmemory;
    config->maxmemory_policy = (enum engine_policy)s->maxmemory_policy;
    config->maxmemory_samples = (int)s->maxmemory_samples;
    config->maxmemory_eviction_tenacity = (int)s->maxmemory_eviction_tenacity;
    config->lfu_log_factor = (int)s->lfu_log_factor;
    config->lfu_decay_time = (int)s->lfu_decay_time;
    config->active_expire_effort = (int)s->active_expire_effort;
    config->hz = (int)s->hz;
    config->sanitize_dump = s->sanitize_dump_payload != SETTINGS_SANITIZE_NO;
    config->lazyfree_lazy_eviction = s->lazyfree_lazy_eviction;
    config->lazyfree_lazy_expire = s->lazyfree_lazy_expire;
    config->lazyfree_lazy_server_del = s->lazyfree_lazy_server_del;
    config->lazyfree_lazy_user_del = s->lazyfree_lazy_user_del;
    config->lazyfree_lazy_user_flush = s->lazyfree_lazy_user_flush;
    config->notify_keyspace_events = s->notify_keyspace_events;
    config->level = settings_level(s);
    config->cluster = s->cluster_enabled;
}
