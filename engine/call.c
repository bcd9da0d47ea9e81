#include "engine/call.h"

#include "engine/human.h"
#include "engine/lru.h"
#include "engine/own_expires.h"
#include "engine/state_impl.h"
#include "engine/trash_impl.h"
#include "engine/watch.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>

/* ---- keys ---- */

bool engine_call_due(const struct engine_call *call, const struct engine_entry *entry)
{
    return entry->expire_ms != ENGINE_NO_EXPIRE && call->due_ms > entry->expire_ms &&
           call->session->role == ENGINE_CLIENT;
}

struct engine_env engine_call_env(const struct engine_call *call)
{
    const struct engine_hooks *hooks = &call->engine->hooks;
    int64_t now_us = hooks->clock != NULL ? hooks->clock(hooks->ctx) : call->now_us;
    return (struct engine_env){.now_us = now_us, .due_us = call->due_us};
}

static void delete_effect(struct engine_call *call, struct rd_slice key, bool lazy)
{
    struct rd_slice argv[] = {rd_slice_str(lazy ? "UNLINK" : "DEL"), key};
    if (call->want_effects)
        engine_effects_add(call->fx, call->db->id, 2, argv);
}

/* Reports it to client-side caches and the like. */
static void signal_changed(struct engine_call *call, struct rd_slice key, bool by_command)
{
    for (const struct engine_listener *l = call->engine->listeners; l != NULL; l = l->next)
        if (l->touched != NULL)
            l->touched(l->ctx, key, call->db->id, by_command);
}

void engine_call_expire_now(struct engine_call *call, struct engine_entry *entry)
{
    if (call->keeps_due)
        return;
    struct rd_slice key = engine_entry_key(entry);
    uint64_t dirty = call->dirty;
    call->engine->stats.expired++;
    delete_effect(call, key, call->config->lazyfree_lazy_expire);
    engine_notify(call, ENGINE_NOTIFY_EXPIRED, "expired", key);
    engine_watch_expired(call->db, key);
    signal_changed(call, key, false);
    engine_call_delete_as(call, entry, call->config->lazyfree_lazy_expire);
    call->dirty = dirty;
}

/* The key in its current state: an expired one is removed first. */
static struct engine_entry *find(struct engine_call *call, struct rd_slice key)
{
    struct engine_entry *entry = engine_db_find(call->db, key);
    if (entry != NULL && RD_UNLIKELY(engine_call_due(call, entry))) {
        engine_call_expire_now(call, entry);
        return NULL;
    }
    return entry;
}

struct engine_entry *engine_call_peek(struct engine_call *call, struct rd_slice key)
{
    return find(call, key);
}

struct engine_entry *engine_call_find_write(struct engine_call *call, struct rd_slice key)
{
    struct engine_entry *entry = find(call, key);
    if (entry != NULL)
        engine_lru_touch(call, &entry->value);
    return entry;
}

struct engine_entry *engine_call_look(struct engine_call *call, struct rd_slice key)
{
    struct engine_entry *entry = find(call, key);
    if (entry != NULL) {
        call->engine->stats.hits++;
    } else {
        call->engine->stats.misses++;
        engine_notify(call, ENGINE_NOTIFY_MISS, "keymiss", key);
    }
    return entry;
}

struct engine_entry *engine_call_find_read(struct engine_call *call, struct rd_slice key)
{
    struct engine_entry *entry = engine_call_look(call, key);
    if (entry != NULL)
        engine_lru_touch(call, &entry->value);
    return entry;
}

bool engine_call_type_ok(struct engine_call *call, const struct engine_entry *entry,
                         enum engine_type type)
{
    if (entry == NULL || entry->value.type == (unsigned)type)
        return true;
    engine_reply_wrong_type(call);
    return false;
}

bool engine_call_read(struct engine_call *call, struct rd_slice key, enum engine_type type,
                      struct engine_entry **ret)
{
    *ret = engine_call_find_read(call, key);
    return engine_call_type_ok(call, *ret, type);
}

bool engine_call_write(struct engine_call *call, struct rd_slice key, enum engine_type type,
                       struct engine_entry **ret)
{
    *ret = engine_call_find_write(call, key);
    return engine_call_type_ok(call, *ret, type);
}

/* Before a key is added: a larger table must not be the reason that keys are evicted. */
static inline void spare_memory(struct engine_call *call)
{
    const struct engine *e = call->engine;
    if (call->config->maxmemory == 0 && !call->db->keys.held)
        return;
    size_t next = engine_table_next_bytes(&call->db->keys);
    if (next == 0 || e->tables_held)
        return;
    bool short_of = e->config.maxmemory > 0 &&
                    engine_memory(e, NULL) + e->other_memory + next > e->config.maxmemory;
    if (short_of || call->db->keys.held)
        engine_table_hold(&call->db->keys, short_of);
}

/* The consequences of adding a key. */
static void added(struct engine_call *call, struct engine_entry *entry)
{
    entry->value.lru = engine_lru_new(call->config, call->now_ms) & 0xffffff;
    engine_call_signal(call, engine_entry_key(entry));
    engine_notify(call, ENGINE_NOTIFY_NEW, "new", engine_entry_key(entry));
}

struct engine_entry *engine_call_add(struct engine_call *call, struct rd_slice key,
                                     struct engine_value *value)
{
    spare_memory(call);
    struct engine_entry *entry = engine_db_add(call->db, key, value);
    added(call, entry);
    return entry;
}

/* Sessions that read a stream as a group get an error: the stream is gone. */
static void signal_overwritten(struct engine_call *call, const struct engine_entry *entry)
{
    if (entry->value.type == ENGINE_STREAM)
        engine_call_signal(call, engine_entry_key(entry));
}

/* A replaced value can be slow to free. */
static inline struct engine_entry *forget_old(struct engine_call *call, struct engine_entry *entry)
{
    if (!call->config->lazyfree_lazy_server_del)
        return entry;
    return engine_trash_old(call->engine, call->db, entry, true);
}

struct engine_entry *engine_call_set(struct engine_call *call, struct rd_slice key,
                                     struct engine_value *value, bool keep_ttl)
{
    struct engine_entry *entry = find(call, key);
    if (entry == NULL)
        return engine_call_add(call, key, value);
    signal_overwritten(call, entry);
    entry = forget_old(call, entry);
    entry = engine_db_replace(call->db, entry, value, NULL);
    if (!keep_ttl && entry->expire_ms != ENGINE_NO_EXPIRE)
        engine_db_expire(call->db, entry, ENGINE_NO_EXPIRE);
    engine_lru_touch(call, &entry->value);
    return entry;
}

struct engine_entry *engine_call_set_string(struct engine_call *call, struct engine_entry *entry,
                                            struct rd_slice key, struct rd_slice text)
{
    bool is_new = entry == NULL;
    if (is_new) {
        spare_memory(call);
    } else {
        signal_overwritten(call, entry);
        entry = forget_old(call, entry);
    }
    entry = engine_db_set_string(call->db, entry, key, text);
    if (is_new)
        added(call, entry);
    return entry;
}

void engine_call_delete_as(struct engine_call *call, struct engine_entry *entry, bool lazy)
{
    signal_overwritten(call, entry);
    engine_trash_entry(call->engine, call->db, entry, lazy);
}

void engine_call_delete(struct engine_call *call, struct engine_entry *entry)
{
    engine_call_delete_as(call, entry, call->config->lazyfree_lazy_server_del);
}

bool engine_call_delete_key(struct engine_call *call, struct rd_slice key, bool lazy)
{
    struct engine_entry *entry = find(call, key);
    if (entry != NULL)
        engine_call_delete_as(call, entry, lazy);
    return entry != NULL;
}

void engine_call_expire(struct engine_call *call, struct engine_entry *entry, int64_t expire_ms)
{
    engine_db_expire(call->db, entry, expire_ms);
    if (RD_UNLIKELY(call->config->replica) && expire_ms != ENGINE_NO_EXPIRE &&
        call->session->role == ENGINE_CLIENT)
        engine_own_expires_add(call->engine, call->db, engine_entry_key(entry));
}

void engine_call_note_parts(struct engine_call *call, struct engine_entry *entry)
{
    engine_db_note_parts(call->db, entry);
}

void engine_call_signal(struct engine_call *call, struct rd_slice key)
{
    if (engine_table_count(&call->db->waiting) > 0)
        engine_block_signal(call->engine, call->db, key);
}

struct engine_db *engine_call_db(struct engine_call *call, int64_t id)
{
    return id >= 0 && id < (int64_t)call->engine->n_dbs ? call->engine->dbs[id] : NULL;
}

/* ---- what changed ---- */

void engine_notify(struct engine_call *call, enum engine_notify class, const char *event,
                   struct rd_slice key)
{
    if ((call->config->notify_keyspace_events & (unsigned)class) == 0)
        return;
    for (const struct engine_listener *l = call->engine->listeners; l != NULL; l = l->next)
        if (l->notify != NULL)
            l->notify(l->ctx, class, event, key, call->db->id);
}

void engine_touch(struct engine_call *call, struct rd_slice key, uint64_t n)
{
    call->dirty += n;
    if (engine_table_count(&call->db->watched) > 0)
        engine_watch_touch(call->db, key);
    signal_changed(call, key, call->command != NULL);
}

void engine_changed(struct engine_call *call, enum engine_notify class, const char *event,
                    struct rd_slice key, uint64_t n)
{
    engine_touch(call, key, n);
    engine_notify(call, class, event, key);
}

/* ---- effects ---- */

/* The name in the table; for a subcommand, that of its container. */
static struct rd_slice table_name(const struct engine_command *command)
{
    size_t len = command->own_name_at > 0 ? command->own_name_at - 1U : command->name_len;
    return rd_slice(command->name, len);
}

bool engine_call_has_own_name(const struct engine_call *call)
{
    struct rd_slice name = table_name(call->command);
    return call->argv[0].len == name.len &&
           strncasecmp((const char *)call->argv[0].ptr, (const char *)name.ptr, name.len) == 0;
}

void engine_call_add_renamed(struct engine_call *call, unsigned db, size_t argc,
                             const struct rd_slice *argv)
{
    struct rd_slice *renamed = engine_scratch_alloc(argc * sizeof *renamed);
    memcpy(renamed, argv, argc * sizeof *renamed);
    renamed[0] = table_name(call->command);
    engine_effects_add(call->fx, db, argc, renamed);
    engine_scratch_free(renamed);
}

void engine_effect(struct engine_call *call, size_t argc, const struct rd_slice *argv)
{
    call->own_effect = false;
    engine_effect_also(call, argc, argv);
}

void engine_effect_also(struct engine_call *call, size_t argc, const struct rd_slice *argv)
{
    if (!call->want_effects)
        return;
    bool is_own = call->argv != NULL && argv[0].ptr == call->argv[0].ptr;
    if (is_own && !engine_call_has_own_name(call))
        engine_call_add_renamed(call, call->db->id, argc, argv);
    else
        engine_effects_add(call->fx, call->db->id, argc, argv);
}

void engine_effect_none(struct engine_call *call)
{
    call->own_effect = false;
}

/* ---- arguments ---- */

static bool refuse(struct engine_call *call, const char *error, const char *usual)
{
    if (error == NULL)
        engine_reply_error(call->reply, usual);
    else
        engine_reply_errorf(call->reply, "ERR %s", error);
    return false;
}

static const char not_an_integer[] = "ERR value is not an integer or out of range";

bool engine_arg_i64(struct engine_call *call, struct rd_slice arg, int64_t *ret, const char *error)
{
    return rd_num_get_i64(arg, ret) || refuse(call, error, not_an_integer);
}

bool engine_arg_range(struct engine_call *call, struct rd_slice arg, int64_t min, int64_t max,
                      int64_t *ret, const char *error)
{
    int64_t value;
    if (!engine_arg_i64(call, arg, &value, error))
        return false;
    if (value < min || value > max)
        return refuse(call, error, "ERR value is out of range");
    *ret = value;
    return true;
}

bool engine_arg_int(struct engine_call *call, struct rd_slice arg, int64_t *ret)
{
    int64_t value;
    if (!engine_arg_i64(call, arg, &value, NULL))
        return false;
    if (value < INT_MIN || value > INT_MAX) {
        engine_reply_errorf(call->reply, "ERR value is out of range, value must between %d and %d",
                            INT_MIN, INT_MAX);
        return false;
    }
    *ret = value;
    return true;
}

bool engine_arg_positive(struct engine_call *call, struct rd_slice arg, int64_t *ret,
                         const char *error)
{
    int64_t value;
    if (!rd_num_get_i64(arg, &value) || value < 0)
        return refuse(call, error, "ERR value is out of range, must be positive");
    *ret = value;
    return true;
}

bool engine_arg_f64(struct engine_call *call, struct rd_slice arg, double *ret, const char *error)
{
    double value;
    if (!rd_num_get_f64(arg, &value) || isnan(value))
        return refuse(call, error, "ERR value is not a valid float");
    *ret = value;
    return true;
}

static bool timeout_ms(struct engine_call *call, struct rd_slice arg, int64_t *ret)
{
    int64_t value;
    if (!engine_arg_i64(call, arg, &value, "timeout is not an integer or out of range"))
        return false;
    *ret = value;
    return true;
}

/* A number outside the range of int64 has the sign of the least one. */
static bool timeout_s(struct engine_call *call, struct rd_slice arg, int64_t *ret)
{
    long double value;
    if (!engine_human_get(arg, &value))
        return refuse(call, "timeout is not a float or out of range", NULL);
    value = ceill(value * 1000);
    *ret = value >= 0x1p63L || value < -0x1p63L ? INT64_MIN : (int64_t)value;
    return true;
}

bool engine_arg_timeout(struct engine_call *call, struct rd_slice arg, bool in_ms,
                        int64_t *ret_deadline_us)
{
    int64_t wait;
    if (!(in_ms ? timeout_ms(call, arg, &wait) : timeout_s(call, arg, &wait)))
        return false;
    if (wait < 0)
        return refuse(call, "timeout is negative", NULL);
    bool never = wait == 0 || wait > INT64_MAX / 1000 - call->now_ms;
    *ret_deadline_us = never ? INT64_MAX : (call->now_ms + wait) * 1000;
    return true;
}

bool engine_arg_is(struct rd_slice arg, const char *word)
{
    size_t len = strlen(word);
    return arg.len == len && strncasecmp((const char *)arg.ptr, word, len) == 0;
}

/* ---- answers ---- */

void engine_reply_wrong_type(struct engine_call *call)
{
    engine_reply_by_data(call->reply);
    engine_reply_error(call->reply,
                       "WRONGTYPE Operation against a key holding the wrong kind of value");
}

void engine_reply_syntax(struct engine_call *call)
{
    engine_reply_error(call->reply, "ERR syntax error");
}

void engine_reply_no_key(struct engine_call *call)
{
    engine_reply_by_data(call->reply);
    engine_reply_error(call->reply, "ERR no such key");
}

void engine_reply_wrong_arity(struct engine_call *call)
{
    engine_reply_errorf(call->reply, "ERR wrong number of arguments for '%s' command",
                        call->command->name);
}

void engine_reply_unknown_subcommand(struct engine_call *call)
{
    enum { SUB_MAX = 128 };
    char name[ENGINE_NAME_SHOWN];
    engine_reply_shown_name(call->argv[0], name);
    struct rd_slice sub = call->argv[1];
    size_t shown = strnlen((const char *)sub.ptr, sub.len < SUB_MAX ? sub.len : SUB_MAX);
    engine_reply_errorf(call->reply,
                        "ERR unknown subcommand or wrong number of arguments for '%.*s'. "
                        "Try %s HELP.",
                        (int)shown, (const char *)sub.ptr, name);
}

void engine_reply_help(struct engine_call *call, const char *const *lines)
{
    char name[ENGINE_NAME_SHOWN];
    char first[ENGINE_NAME_SHOWN + 64];
    size_t n = 0;
    engine_reply_shown_name(call->argv[0], name);
    snprintf(first, sizeof first,
             "%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", name);
    while (lines[n] != NULL)
        n++;
    engine_reply_array(call->reply, n + 3);
    engine_reply_simple(call->reply, first);
    for (size_t i = 0; i < n; i++)
        engine_reply_simple(call->reply, lines[i]);
    engine_reply_simple(call->reply, "HELP");
    engine_reply_simple(call->reply, "    Print this help.");
}

/* ---- chance: xoshiro256**, whose state is the engine's ---- */

static uint64_t rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

uint64_t engine_random(struct engine_call *call)
{
    uint64_t *s = call->engine->random;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t engine_random_below(struct engine_call *call, uint64_t n)
{
    uint64_t reject = -n % n; /* the remainder of the range, rejected to keep the result uniform */
    for (;;) {
        __uint128_t product = (__uint128_t)engine_random(call) * n;
        if ((uint64_t)product >= reject)
            return (uint64_t)(product >> 64);
    }
}
