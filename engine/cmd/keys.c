/* Commands on keys of any type. */
#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/cmd/scan.h"
#include "engine/glob.h"
#include "engine/lru.h"
#include "engine/state_impl.h"
#include "engine/value/kept.h"
#include "engine/value/module.h"

/* ---- queries ---- */

void engine_cmd_exists(struct engine_call *call)
{
    int64_t n = 0;
    for (size_t i = 1; i < call->argc; i++)
        n += engine_call_look(call, call->argv[i]) != NULL;
    engine_reply_int(call->reply, n);
}

void engine_cmd_touch(struct engine_call *call)
{
    int64_t n = 0;
    for (size_t i = 1; i < call->argc; i++)
        n += engine_call_find_read(call, call->argv[i]) != NULL;
    engine_reply_int(call->reply, n);
}

/* The type of a module has the name that the module gave it. */
static const char *type_name(const struct engine_value *v, char module[RDB_MODULE_NAME_LEN + 1])
{
    if (v->type == ENGINE_KEPT)
        return rdb_kind_name(v->u.kept->type->kind);
    if (v->type != ENGINE_MODULE)
        return engine_type_name(v->type);
    rdb_module_name(engine_module_id(v), module);
    return module;
}

void engine_cmd_type(struct engine_call *call)
{
    const struct engine_entry *entry = engine_call_look(call, call->argv[1]);
    char module[RDB_MODULE_NAME_LEN + 1];
    engine_reply_simple(call->reply, entry != NULL ? type_name(&entry->value, module) : "none");
}

void engine_cmd_keys(struct engine_call *call)
{
    struct rd_slice pattern = call->argv[1];
    bool all = rd_slice_is(pattern, "*");
    size_t mark = engine_reply_mark(call->reply);
    uint64_t n = 0;
    struct engine_table_iter it;
    engine_table_iter_begin(&it, &call->db->keys);
    for (struct engine_entry *entry; (entry = engine_table_iter_next(&it)) != NULL;) {
        struct rd_slice key = engine_entry_key(entry);
        if ((!all && !engine_glob_match(pattern, key, false)) || engine_call_due(call, entry))
            continue;
        engine_reply_bulk(call->reply, key);
        n++;
        if (call->reply->over)
            break;
    }
    engine_table_iter_end(&it);
    engine_reply_mark_array(call->reply, mark, n);
}

/* Expired keys are removed and another key is chosen. The number of attempts is limited: in an
 * engine in which nothing expires, all keys may be expired. */
void engine_cmd_randomkey(struct engine_call *call)
{
    enum { TRIES = 100 };
    const struct engine_entry *entry = NULL;
    call->fx->apart = !call->session->in_exec;
    for (int i = 0; i < TRIES; i++) {
        entry = engine_table_random(&call->db->keys, engine_random(call));
        if (entry == NULL || engine_call_peek(call, engine_entry_key(entry)) != NULL)
            break;
        entry = NULL;
    }
    if (entry == NULL)
        engine_reply_null(call->reply);
    else
        engine_reply_bulk(call->reply, engine_entry_key(entry));
}

/* The key is expired and may be removed. */
static bool scan_wants(struct engine_call *call, const struct engine_scan_opts *opts,
                       struct engine_entry *entry)
{
    if (!engine_scan_matches(opts, engine_entry_key(entry)))
        return false;
    if (!opts->has_type)
        return engine_call_peek(call, engine_entry_key(entry)) != NULL;
    char module[RDB_MODULE_NAME_LEN + 1];
    entry = engine_call_look(call, engine_entry_key(entry));
    return entry != NULL && engine_arg_is(opts->type, type_name(&entry->value, module));
}

void engine_cmd_scan(struct engine_call *call)
{
    struct engine_scan_opts opts;
    if (!engine_scan_cursor(call, call->argv[1], &opts) || !engine_scan_parse(call, 2, &opts))
        return;
    call->fx->apart = !call->session->in_exec;
    struct engine_scan_items items = {0};
    engine_scan_table(&opts, &call->db->keys, &items);
    engine_scan_reply_cursor(call, items.cursor);
    size_t mark = engine_reply_mark(call->reply);
    uint64_t n = 0;
    for (size_t i = 0; i < items.n; i++) {
        if (!scan_wants(call, &opts, items.list[i]))
            continue;
        engine_reply_bulk(call->reply, engine_entry_key(items.list[i]));
        n++;
    }
    engine_reply_mark_array(call->reply, mark, n);
    engine_scan_items_done(&items);
}

/* ---- removing ---- */

static void delete_keys(struct engine_call *call, bool lazy)
{
    int64_t n = 0;
    for (size_t i = 1; i < call->argc; i++) {
        if (!engine_call_delete_key(call, call->argv[i], lazy))
            continue;
        engine_changed(call, ENGINE_NOTIFY_GENERIC, "del", call->argv[i], 1);
        n++;
    }
    engine_reply_int(call->reply, n);
}

void engine_cmd_del(struct engine_call *call)
{
    delete_keys(call, call->config->lazyfree_lazy_user_del);
}

void engine_cmd_unlink(struct engine_call *call)
{
    delete_keys(call, true);
}

/* ---- moving and copying ---- */

/* Stores the value under another key, possibly in another database (call->db), with its expiry and
 * last access time. */
static void put_under(struct engine_call *call, struct rd_slice key, struct engine_value *value,
                      int64_t expire_ms)
{
    uint32_t lru = value->lru;
    struct engine_entry *entry = engine_call_add(call, key, value);
    entry->value.lru = lru & 0xffffff;
    if (expire_ms != ENGINE_NO_EXPIRE)
        engine_call_expire(call, entry, expire_ms);
}

static struct engine_value take_value(struct engine_call *call, struct engine_entry *entry)
{
    struct engine_value value;
    if (entry->value.type == ENGINE_STREAM)
        engine_call_signal(call, engine_entry_key(entry));
    engine_db_remove(call->db, entry, &value);
    return value;
}

/* False: the new name exists. */
static bool rename_entry(struct engine_call *call, struct engine_entry *entry, bool replace)
{
    struct rd_slice from = call->argv[1];
    struct rd_slice to = call->argv[2];
    struct engine_entry *there = engine_call_find_write(call, to);
    if (there != NULL && !replace)
        return false;
    if (there != NULL)
        engine_call_delete(call, there);
    int64_t expire_ms = entry->expire_ms;
    struct engine_value value = take_value(call, entry);
    put_under(call, to, &value, expire_ms);
    engine_touch(call, from, 0);
    engine_touch(call, to, 1);
    engine_notify(call, ENGINE_NOTIFY_GENERIC, "rename_from", from);
    engine_notify(call, ENGINE_NOTIFY_GENERIC, "rename_to", to);
    return true;
}

static struct engine_entry *entry_to_rename(struct engine_call *call)
{
    struct engine_entry *entry = engine_call_find_write(call, call->argv[1]);
    if (entry == NULL)
        engine_reply_no_key(call);
    return entry;
}

void engine_cmd_rename(struct engine_call *call)
{
    struct engine_entry *entry = entry_to_rename(call);
    if (entry == NULL)
        return;
    if (!rd_slice_eq(call->argv[1], call->argv[2]))
        rename_entry(call, entry, true);
    engine_reply_ok(call->reply);
}

void engine_cmd_renamenx(struct engine_call *call)
{
    struct engine_entry *entry = entry_to_rename(call);
    if (entry == NULL)
        return;
    bool same = rd_slice_eq(call->argv[1], call->argv[2]);
    engine_reply_int(call->reply, !same && rename_entry(call, entry, false));
}

/* The number of a database, within the range of an int. NULL: the error was replied. */
static struct engine_db *arg_db(struct engine_call *call, struct rd_slice arg)
{
    int64_t id;
    if (!engine_arg_int(call, arg, &id))
        return NULL;
    struct engine_db *db = engine_call_db(call, id);
    if (db == NULL)
        engine_reply_error(call->reply, "ERR DB index is out of range");
    return db;
}

static void reply_same(struct engine_call *call)
{
    engine_reply_error(call->reply, "ERR source and destination objects are the same");
}

void engine_cmd_move(struct engine_call *call)
{
    struct rd_slice key = call->argv[1];
    struct engine_db *from = call->db;
    if (call->config->cluster) {
        engine_reply_error(call->reply, "ERR MOVE is not allowed in cluster mode");
        return;
    }
    struct engine_db *to = arg_db(call, call->argv[2]);
    if (to == NULL)
        return;
    if (from == to) {
        reply_same(call);
        return;
    }
    struct engine_entry *entry = engine_call_find_write(call, key);
    call->db = to;
    if (entry == NULL || engine_call_find_write(call, key) != NULL) {
        engine_reply_int(call->reply, 0);
        return;
    }
    int64_t expire_ms = entry->expire_ms;
    call->db = from;
    struct engine_value value = take_value(call, entry);
    call->db = to;
    put_under(call, key, &value, expire_ms);
    call->db = from;
    engine_touch(call, key, 0);
    engine_notify(call, ENGINE_NOTIFY_GENERIC, "move_from", key);
    call->db = to;
    engine_changed(call, ENGINE_NOTIFY_GENERIC, "move_to", key, 1);
    call->db = from;
    engine_reply_int(call->reply, 1);
}

struct copy_opts {
    struct engine_db *to;
    bool replace;
};

static bool copy_options(struct engine_call *call, struct copy_opts *ret)
{
    *ret = (struct copy_opts){.to = call->db};
    for (size_t i = 3; i < call->argc; i++) {
        if (engine_arg_is(call->argv[i], "replace")) {
            ret->replace = true;
        } else if (engine_arg_is(call->argv[i], "db") && i + 1 < call->argc) {
            if ((ret->to = arg_db(call, call->argv[++i])) == NULL)
                return false;
        } else {
            engine_reply_syntax(call);
            return false;
        }
    }
    return true;
}

void engine_cmd_copy(struct engine_call *call)
{
    struct rd_slice to_key = call->argv[2];
    struct engine_db *from = call->db;
    struct copy_opts opts;
    if (!copy_options(call, &opts))
        return;
    if (call->config->cluster && opts.to->id != 0) {
        engine_reply_error(call->reply,
                           "ERR Copying to another database is not allowed in cluster mode");
        return;
    }
    if (from == opts.to && rd_slice_eq(call->argv[1], to_key)) {
        reply_same(call);
        return;
    }
    const struct engine_entry *entry = engine_call_find_read(call, call->argv[1]);
    if (entry == NULL) {
        engine_reply_int(call->reply, 0);
        return;
    }
    int64_t expire_ms = entry->expire_ms;
    call->db = opts.to;
    struct engine_entry *there = engine_call_find_write(call, to_key);
    if (there == NULL || opts.replace) {
        struct engine_value copy = engine_value_dup(&entry->value);
        copy.lru = engine_lru_new(call->config, call->now_ms) & 0xffffff;
        if (there != NULL)
            engine_call_delete(call, there);
        put_under(call, to_key, &copy, expire_ms);
        engine_changed(call, ENGINE_NOTIFY_GENERIC, "copy_to", to_key, 1);
    }
    call->db = from;
    engine_reply_int(call->reply, there == NULL || opts.replace);
}
