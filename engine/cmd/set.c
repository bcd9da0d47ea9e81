#include "engine/value/set.h"

#include "engine/cmd/cmd.h"
#include "engine/cmd/scan.h"

void engine_cmd_sadd(struct engine_call *call)
{
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry;
    struct engine_value made;
    uint64_t added = 0;
    if (!engine_call_write(call, key, ENGINE_SET, &entry))
        return;
    if (entry == NULL)
        made = engine_set_new(call->argv[2]);
    struct engine_value *set = entry != NULL ? &entry->value : &made;
    for (size_t i = 2; i < call->argc; i++)
        added += engine_set_add(set, call->argv[i], call->config);
    if (entry == NULL)
        engine_call_add(call, key, &made);
    if (added > 0)
        engine_changed(call, ENGINE_NOTIFY_SET, "sadd", key, added);
    engine_reply_int(call->reply, (int64_t)added);
}

void engine_cmd_srem(struct engine_call *call)
{
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry;
    uint64_t removed = 0;
    bool is_empty = false;
    if (!engine_call_write(call, key, ENGINE_SET, &entry))
        return;
    if (entry != NULL)
        engine_value_hold(&entry->value, true);
    for (size_t i = 2; entry != NULL && !is_empty && i < call->argc; i++) {
        removed += engine_set_remove(&entry->value, call->argv[i]);
        is_empty = engine_set_count(&entry->value) == 0;
    }
    if (entry != NULL)
        engine_value_hold(&entry->value, false);
    if (is_empty)
        engine_call_delete(call, entry);
    if (removed > 0)
        engine_changed(call, ENGINE_NOTIFY_SET, "srem", key, removed);
    if (is_empty)
        engine_notify(call, ENGINE_NOTIFY_GENERIC, "del", key);
    engine_reply_int(call->reply, (int64_t)removed);
}

static void move_in(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                    struct rd_slice member)
{
    if (entry == NULL) {
        struct engine_value made = engine_set_new(member);
        entry = engine_call_add(call, key, &made);
    }
    engine_touch(call, call->argv[1], 1);
    if (engine_set_add(&entry->value, member, call->config))
        engine_changed(call, ENGINE_NOTIFY_SET, "sadd", key, 1);
}

void engine_cmd_smove(struct engine_call *call)
{
    struct rd_slice member = call->argv[3];
    struct engine_entry *from = engine_call_find_write(call, call->argv[1]);
    struct engine_entry *to = engine_call_find_write(call, call->argv[2]);
    bool moved = false;
    if (from != NULL) {
        if (!engine_call_type_ok(call, from, ENGINE_SET) ||
            !engine_call_type_ok(call, to, ENGINE_SET))
            return;
        moved = from == to ? engine_set_has(&from->value, member)
                           : engine_set_remove(&from->value, member);
    }
    if (moved && from != to) {
        engine_notify(call, ENGINE_NOTIFY_SET, "srem", call->argv[1]);
        if (engine_set_count(&from->value) == 0) {
            engine_call_delete(call, from);
            engine_notify(call, ENGINE_NOTIFY_GENERIC, "del", call->argv[1]);
        }
        move_in(call, to, call->argv[2], member);
    }
    engine_reply_int(call->reply, moved);
}

void engine_cmd_sismember(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_call_read(call, call->argv[1], ENGINE_SET, &entry))
        return;
    engine_reply_int(call->reply, entry != NULL && engine_set_has(&entry->value, call->argv[2]));
}

void engine_cmd_smismember(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_call_read(call, call->argv[1], ENGINE_SET, &entry))
        return;
    engine_reply_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++) {
        bool has = entry != NULL && engine_set_has(&entry->value, call->argv[i]);
        engine_reply_int(call->reply, has);
    }
}

void engine_cmd_scard(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_call_read(call, call->argv[1], ENGINE_SET, &entry))
        return;
    engine_reply_int(call->reply, entry != NULL ? (int64_t)engine_set_count(&entry->value) : 0);
}

void engine_cmd_smembers(struct engine_call *call)
{
    struct engine_entry *entry;
    struct engine_set_iter it;
    struct rd_slice member;
    if (!engine_call_read(call, call->argv[1], ENGINE_SET, &entry))
        return;
    engine_reply_set(call->reply, entry != NULL ? engine_set_count(&entry->value) : 0);
    if (entry == NULL)
        return;
    engine_set_iter_begin(&it, &entry->value);
    while (engine_set_iter_next(&it, &member))
        engine_reply_bulk(call->reply, member);
    engine_set_iter_end(&it);
}

static uint64_t reply_match(struct engine_call *call, const struct engine_scan_opts *opts,
                            struct rd_slice member)
{
    if (!engine_scan_matches(opts, member))
        return 0;
    engine_reply_bulk(call->reply, member);
    return 1;
}

static void scan_table(struct engine_call *call, const struct engine_scan_opts *opts,
                       struct engine_set *set)
{
    struct engine_scan_items items = {0};
    uint64_t n = 0;
    engine_scan_table(opts, &set->members, &items);
    engine_scan_reply_cursor(call, items.cursor);
    size_t mark = engine_reply_mark(call->reply);
    for (size_t i = 0; i < items.n; i++)
        n += reply_match(call, opts, engine_member_text(items.list[i]));
    engine_reply_mark_array(call->reply, mark, n);
    engine_scan_items_done(&items);
}

static void scan_whole(struct engine_call *call, const struct engine_scan_opts *opts,
                       const struct engine_value *v)
{
    struct engine_set_iter it;
    struct rd_slice member;
    uint64_t n = 0;
    engine_scan_reply_cursor(call, 0);
    size_t mark = engine_reply_mark(call->reply);
    engine_set_iter_begin(&it, v);
    while (engine_set_iter_next(&it, &member))
        n += reply_match(call, opts, member);
    engine_set_iter_end(&it);
    engine_reply_mark_array(call->reply, mark, n);
}

void engine_cmd_sscan(struct engine_call *call)
{
    struct engine_scan_opts opts;
    struct engine_entry *entry;
    if (!engine_scan_cursor(call, call->argv[2], &opts))
        return;
    if (!engine_call_read(call, call->argv[1], ENGINE_SET, &entry))
        return;
    if (entry == NULL)
        engine_scan_reply_empty(call);
    else if (!engine_scan_parse(call, 3, &opts))
        return;
    else if (entry->value.encoding == ENGINE_HASHTABLE)
        scan_table(call, &opts, entry->value.u.set);
    else
        scan_whole(call, &opts, &entry->value);
}
