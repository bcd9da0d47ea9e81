/* Lists: reading them, and changing them other than by popping. */
#include "engine/cmd/list_impl.h"

#include "engine/cmd/cmd.h"

void engine_list_reply(struct engine_call *call, const struct engine_list_pos *pos)
{
    struct engine_lp_item item = engine_list_item(pos);
    if (item.is_num)
        engine_reply_bulk_int(call->reply, item.num);
    else
        engine_reply_bulk(call->reply, rd_slice(item.ptr, item.len));
}

void engine_list_reply_range(struct engine_call *call, struct engine_list *list, int64_t start,
                             uint64_t n, enum engine_list_end towards)
{
    struct engine_list_pos pos;
    if (call->reply->off)
        return;
    engine_reply_array(call->reply, n);
    bool any = engine_list_at(list, start, &pos);
    for (uint64_t i = 0; i < n && any; i++) {
        engine_list_reply(call, &pos);
        any = engine_list_step(&pos, towards);
    }
}

/* ---- pushing ---- */

static void push(struct engine_call *call, enum engine_list_end end, bool if_exists)
{
    struct engine_entry *entry;
    if (!engine_call_write(call, call->argv[1], ENGINE_LIST, &entry))
        return;
    if (entry == NULL && if_exists) {
        engine_reply_int(call->reply, 0);
        return;
    }
    if (entry == NULL) {
        struct engine_value value = engine_list_value(call->config);
        entry = engine_call_add(call, call->argv[1], &value);
    }
    struct engine_list *list = entry->value.u.list;
    for (size_t i = 2; i < call->argc; i++)
        engine_list_push(list, end, call->argv[i]);
    engine_reply_int(call->reply, (int64_t)engine_list_count(list));
    engine_changed(call, ENGINE_NOTIFY_LIST, end == ENGINE_LIST_HEAD ? "lpush" : "rpush",
                   call->argv[1], call->argc - 2);
}

void engine_cmd_lpush(struct engine_call *call)
{
    push(call, ENGINE_LIST_HEAD, false);
}

void engine_cmd_rpush(struct engine_call *call)
{
    push(call, ENGINE_LIST_TAIL, false);
}

void engine_cmd_lpushx(struct engine_call *call)
{
    push(call, ENGINE_LIST_HEAD, true);
}

void engine_cmd_rpushx(struct engine_call *call)
{
    push(call, ENGINE_LIST_TAIL, true);
}

/* ---- by value ---- */

/* The next element that equals the text, from pos on; *steps counts the elements passed. */
static bool seek(struct engine_list_pos *pos, enum engine_list_end towards, struct rd_slice text)
{
    while (!engine_lp_item_eq(engine_list_item(pos), text))
        if (!engine_list_step(pos, towards))
            return false;
    return true;
}

void engine_cmd_linsert(struct engine_call *call)
{
    struct engine_entry *entry;
    struct engine_list_pos pos;
    bool after = engine_arg_is(call->argv[2], "after");
    if (!after && !engine_arg_is(call->argv[2], "before")) {
        engine_reply_syntax(call);
        return;
    }
    if (!engine_call_write(call, call->argv[1], ENGINE_LIST, &entry))
        return;
    if (entry == NULL) {
        engine_reply_int(call->reply, 0);
        return;
    }
    struct engine_list *list = entry->value.u.list;
    if (!engine_list_begin(list, ENGINE_LIST_HEAD, &pos) ||
        !seek(&pos, ENGINE_LIST_TAIL, call->argv[3])) {
        engine_reply_int(call->reply, -1);
        return;
    }
    engine_list_insert(&pos, call->argv[4], after);
    engine_changed(call, ENGINE_NOTIFY_LIST, "linsert", call->argv[1], 1);
    engine_reply_int(call->reply, (int64_t)engine_list_count(list));
}

/* Up to `limit` elements that equal the text; 0: all. */
static uint64_t remove_equal(struct engine_list *list, enum engine_list_end towards, uint64_t limit,
                             struct rd_slice text)
{
    struct engine_list_pos pos;
    uint64_t n = 0;
    bool any = engine_list_begin(
        list, towards == ENGINE_LIST_TAIL ? ENGINE_LIST_HEAD : ENGINE_LIST_TAIL, &pos);
    while (any && (limit == 0 || n < limit) && seek(&pos, towards, text)) {
        any = engine_list_remove(&pos, towards);
        n++;
    }
    return n;
}

static void delete_empty(struct engine_call *call, struct engine_entry *entry, struct rd_slice key)
{
    if (engine_list_count(entry->value.u.list) > 0)
        return;
    engine_call_delete(call, entry);
    engine_notify(call, ENGINE_NOTIFY_GENERIC, "del", key);
}

void engine_cmd_lrem(struct engine_call *call)
{
    int64_t count;
    struct engine_entry *entry;
    if (!engine_arg_i64(call, call->argv[2], &count, NULL) ||
        !engine_call_write(call, call->argv[1], ENGINE_LIST, &entry))
        return;
    if (entry == NULL) {
        engine_reply_int(call->reply, 0);
        return;
    }
    uint64_t limit = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
    uint64_t n = remove_equal(entry->value.u.list, count < 0 ? ENGINE_LIST_HEAD : ENGINE_LIST_TAIL,
                              limit, call->argv[3]);
    if (n > 0)
        engine_changed(call, ENGINE_NOTIFY_LIST, "lrem", call->argv[1], n);
    delete_empty(call, entry, call->argv[1]);
    engine_reply_int(call->reply, (int64_t)n);
}

struct lpos {
    int64_t rank;
    int64_t count; /* -1: not given */
    int64_t max_len;
};

static bool lpos_options(struct engine_call *call, struct lpos *ret)
{
    for (size_t i = 3; i < call->argc; i += 2) {
        struct rd_slice name = call->argv[i];
        if (i + 1 == call->argc) {
            engine_reply_syntax(call);
            return false;
        }
        struct rd_slice arg = call->argv[i + 1];
        if (engine_arg_is(name, "rank")) {
            if (!engine_arg_i64(call, arg, &ret->rank, NULL))
                return false;
            if (ret->rank == 0) {
                engine_reply_error(call->reply,
                                   "ERR RANK can't be zero: use 1 to start from the first match, "
                                   "2 from the second ... or use negative to start from the end of "
                                   "the list");
                return false;
            }
        } else if (engine_arg_is(name, "count")) {
            if (!engine_arg_positive(call, arg, &ret->count, "COUNT can't be negative"))
                return false;
        } else if (engine_arg_is(name, "maxlen")) {
            if (!engine_arg_positive(call, arg, &ret->max_len, "MAXLEN can't be negative"))
                return false;
        } else {
            engine_reply_syntax(call);
            return false;
        }
    }
    return true;
}

/* Replies with the indexes that match and returns their number; without COUNT at most one. */
static uint64_t lpos_find(struct engine_call *call, struct engine_list *list,
                          const struct lpos *opts)
{
    struct engine_list_pos pos;
    bool back = opts->rank < 0;
    uint64_t skip = back ? 0 - (uint64_t)opts->rank - 1 : (uint64_t)opts->rank - 1;
    uint64_t limit = opts->count < 0 ? 1 : opts->count == 0 ? UINT64_MAX : (uint64_t)opts->count;
    uint64_t n_looked_at = opts->max_len == 0 ? UINT64_MAX : (uint64_t)opts->max_len;
    uint64_t n = 0;
    /* -2^63 has no positive counterpart: servers then skip nothing and apply no limit. */
    if (opts->rank == INT64_MIN) {
        skip = 0;
        limit = opts->count < 0 ? 1 : UINT64_MAX;
    }
    bool any = engine_list_begin(list, back ? ENGINE_LIST_TAIL : ENGINE_LIST_HEAD, &pos);
    for (uint64_t i = 0; any && i < n_looked_at && n < limit; i++) {
        if (engine_lp_item_eq(engine_list_item(&pos), call->argv[2]) && skip-- == 0) {
            uint64_t index = back ? engine_list_count(list) - i - 1 : i;
            engine_reply_int(call->reply, (int64_t)index);
            skip = 0;
            n++;
        }
        any = engine_list_step(&pos, back ? ENGINE_LIST_HEAD : ENGINE_LIST_TAIL);
    }
    return n;
}

void engine_cmd_lpos(struct engine_call *call)
{
    struct lpos opts = {.rank = 1, .count = -1};
    struct engine_entry *entry;
    if (!lpos_options(call, &opts) || !engine_call_read(call, call->argv[1], ENGINE_LIST, &entry))
        return;
    size_t mark = engine_reply_mark(call->reply);
    uint64_t n = entry == NULL ? 0 : lpos_find(call, entry->value.u.list, &opts);
    if (opts.count >= 0)
        engine_reply_mark_array(call->reply, mark, n);
    else if (n == 0)
        engine_reply_null(call->reply);
}

/* ---- by index ---- */

void engine_cmd_llen(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_call_read(call, call->argv[1], ENGINE_LIST, &entry))
        return;
    engine_reply_int(call->reply,
                     entry == NULL ? 0 : (int64_t)engine_list_count(entry->value.u.list));
}

void engine_cmd_lindex(struct engine_call *call)
{
    struct engine_entry *entry;
    struct engine_list_pos pos;
    int64_t index;
    if (!engine_call_read(call, call->argv[1], ENGINE_LIST, &entry))
        return;
    if (entry == NULL) {
        engine_reply_null(call->reply);
        return;
    }
    if (!engine_arg_i64(call, call->argv[2], &index, NULL))
        return;
    if (engine_list_at(entry->value.u.list, index, &pos))
        engine_list_reply(call, &pos);
    else
        engine_reply_null(call->reply);
}

void engine_cmd_lset(struct engine_call *call)
{
    struct engine_entry *entry;
    struct engine_list_pos pos;
    int64_t index;
    if (!engine_call_write(call, call->argv[1], ENGINE_LIST, &entry))
        return;
    if (entry == NULL) {
        engine_reply_no_key(call);
        return;
    }
    if (!engine_arg_i64(call, call->argv[2], &index, NULL))
        return;
    if (!engine_list_at(entry->value.u.list, index, &pos)) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply, "ERR index out of range");
        return;
    }
    engine_list_replace(&pos, call->argv[3]);
    engine_reply_ok(call->reply);
    engine_changed(call, ENGINE_NOTIFY_LIST, "lset", call->argv[1], 1);
}

/* The part of `count` elements between start and stop: *ret_n elements from *ret_start on, possibly
 * none. */
static void clip(int64_t start, int64_t stop, uint64_t count, uint64_t *ret_start, uint64_t *ret_n)
{
    int64_t len = (int64_t)count;
    start = start < 0 ? start + len : start;
    stop = stop < 0 ? stop + len : stop;
    start = start < 0 ? 0 : start;
    stop = stop >= len ? len - 1 : stop;
    *ret_start = (uint64_t)start;
    *ret_n = start > stop ? 0 : (uint64_t)(stop - start) + 1;
}

static bool arg_range(struct engine_call *call, int64_t *ret_start, int64_t *ret_stop)
{
    return engine_arg_i64(call, call->argv[2], ret_start, NULL) &&
           engine_arg_i64(call, call->argv[3], ret_stop, NULL);
}

void engine_cmd_lrange(struct engine_call *call)
{
    struct engine_entry *entry;
    int64_t start, stop;
    uint64_t from = 0, n = 0;
    if (!arg_range(call, &start, &stop) ||
        !engine_call_read(call, call->argv[1], ENGINE_LIST, &entry))
        return;
    if (entry != NULL)
        clip(start, stop, engine_list_count(entry->value.u.list), &from, &n);
    if (n == 0)
        engine_reply_array(call->reply, 0);
    else
        engine_list_reply_range(call, entry->value.u.list, (int64_t)from, n, ENGINE_LIST_TAIL);
}

void engine_cmd_ltrim(struct engine_call *call)
{
    struct engine_entry *entry;
    int64_t start, stop;
    uint64_t from, n;
    if (!arg_range(call, &start, &stop) ||
        !engine_call_write(call, call->argv[1], ENGINE_LIST, &entry))
        return;
    engine_reply_ok(call->reply);
    if (entry == NULL)
        return;
    struct engine_list *list = entry->value.u.list;
    uint64_t before = engine_list_count(list);
    clip(start, stop, before, &from, &n);
    if (n == 0) {
        engine_list_remove_range(list, 0, before);
    } else {
        engine_list_remove_range(list, 0, from);
        engine_list_remove_range(list, n, before - from - n);
    }
    engine_changed(call, ENGINE_NOTIFY_LIST, "ltrim", call->argv[1],
                   before - engine_list_count(list));
    delete_empty(call, entry, call->argv[1]);
}
