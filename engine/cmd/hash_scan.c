/* HSCAN and HRANDFIELD. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/hash_impl.h"
#include "engine/cmd/sample.h"
#include "engine/cmd/scan.h"

/* ---- HSCAN ---- */

static uint64_t reply_match(struct engine_call *call, const struct engine_scan_opts *opts,
                            const struct engine_hash_pair *pair)
{
    if (!engine_scan_matches(opts, pair->field))
        return 0;
    engine_reply_bulk(call->reply, pair->field);
    engine_reply_bulk(call->reply, pair->value);
    return 2;
}

static void scan_table(struct engine_call *call, const struct engine_scan_opts *opts,
                       struct engine_hash *hash)
{
    struct engine_scan_items items = {0};
    uint64_t n = 0;
    engine_scan_table(opts, &hash->fields, &items);
    engine_scan_reply_cursor(call, items.cursor);
    size_t mark = engine_reply_mark(call->reply);
    for (size_t i = 0; i < items.n; i++) {
        struct engine_hash_pair pair;
        engine_field_pair(items.list[i], &pair);
        n += reply_match(call, opts, &pair);
    }
    engine_reply_mark_array(call->reply, mark, n);
    engine_scan_items_done(&items);
}

static void scan_whole(struct engine_call *call, const struct engine_scan_opts *opts,
                       const struct engine_value *v)
{
    struct engine_hash_iter it;
    struct engine_hash_pair pair;
    uint64_t n = 0;
    engine_scan_reply_cursor(call, 0);
    size_t mark = engine_reply_mark(call->reply);
    engine_hash_iter_begin(&it, v);
    while (engine_hash_iter_next(&it, &pair))
        n += reply_match(call, opts, &pair);
    engine_hash_iter_end(&it);
    engine_reply_mark_array(call->reply, mark, n);
}

void engine_cmd_hscan(struct engine_call *call)
{
    struct engine_scan_opts opts;
    struct engine_entry *entry;
    if (!engine_scan_cursor(call, call->argv[2], &opts))
        return;
    if (!engine_hash_read(call, call->argv[1], ENGINE_HASH_ALL, &entry))
        return;
    if (entry == NULL)
        engine_scan_reply_empty(call);
    else if (!engine_scan_parse(call, 3, &opts))
        return;
    else if (entry->value.encoding == ENGINE_HASHTABLE)
        scan_table(call, &opts, entry->value.u.hash);
    else
        scan_whole(call, &opts, &entry->value);
}

/* ---- HRANDFIELD ---- */

static void give_pair(struct engine_call *call, const struct engine_hash_pair *pair, bool values)
{
    if (values && call->reply->proto > 2)
        engine_reply_array(call->reply, 2);
    engine_reply_bulk(call->reply, pair->field);
    if (values)
        engine_reply_bulk(call->reply, pair->value);
}

/* RESP3 uses an array of pairs, RESP2 one flat array. */
static void reply_header(struct engine_call *call, uint64_t n, bool values)
{
    engine_reply_array(call->reply, values && call->reply->proto == 2 ? 2 * n : n);
}

static void give_repeating(struct engine_call *call, const struct engine_value *v, uint64_t n,
                           bool values)
{
    struct engine_hash_pair pair;
    if (!engine_sample_fits(call, n))
        return;
    reply_header(call, n, values);
    for (uint64_t i = 0; i < n && !call->reply->off; i++) {
        engine_hash_random(v, engine_random(call), &pair);
        give_pair(call, &pair, values);
    }
}

static void give_from_table(struct engine_call *call, struct engine_hash *hash, uint64_t n,
                            bool values)
{
    struct engine_hash_pair pair;
    void **items = engine_sample_items(call, &hash->fields, n);
    for (uint64_t i = 0; i < n; i++) {
        engine_field_pair(items[i], &pair);
        give_pair(call, &pair, values);
    }
    engine_scratch_free(items);
}

static void give_different(struct engine_call *call, const struct engine_value *v, uint64_t n,
                           bool values)
{
    struct engine_sample pick = {.need = n, .left = engine_hash_count(v)};
    struct engine_hash_iter it;
    struct engine_hash_pair pair;
    reply_header(call, n, values);
    if (v->encoding == ENGINE_HASHTABLE) {
        give_from_table(call, v->u.hash, n, values);
        return;
    }
    engine_hash_iter_begin(&it, v);
    while (pick.need > 0 && engine_hash_iter_next(&it, &pair))
        if (engine_sample_takes(call, &pick))
            give_pair(call, &pair, values);
    engine_hash_iter_end(&it);
}

static bool parse_random(struct engine_call *call, int64_t *ret_count, bool *ret_values)
{
    *ret_values = call->argc == 4;
    if (!engine_sample_count(call, call->argv[2], ret_count))
        return false;
    if (call->argc > 4 || (*ret_values && !engine_arg_is(call->argv[3], "withvalues"))) {
        engine_reply_syntax(call);
        return false;
    }
    if (!*ret_values || (*ret_count >= -(INT64_MAX / 2) && *ret_count <= INT64_MAX / 2))
        return true;
    engine_reply_error(call->reply, "ERR value is out of range");
    return false;
}

static void random_count(struct engine_call *call)
{
    struct engine_entry *entry;
    int64_t count;
    bool values;
    if (!parse_random(call, &count, &values))
        return;
    if (!engine_hash_read(call, call->argv[1], ENGINE_HASH_ALL, &entry))
        return;
    if (entry == NULL || count == 0) {
        engine_reply_array(call->reply, 0);
        return;
    }
    uint64_t size = engine_hash_count(&entry->value), n = (uint64_t)count;
    if (count < 0)
        give_repeating(call, &entry->value, 0 - n, values);
    else
        give_different(call, &entry->value, n < size ? n : size, values);
}

void engine_cmd_hrandfield(struct engine_call *call)
{
    struct engine_entry *entry;
    struct engine_hash_pair pair;
    if (call->argc > 2) {
        random_count(call);
        return;
    }
    if (!engine_hash_read(call, call->argv[1], ENGINE_HASH_ALL, &entry))
        return;
    if (entry == NULL) {
        engine_reply_null(call->reply);
        return;
    }
    engine_hash_random(&entry->value, engine_random(call), &pair);
    engine_reply_bulk(call->reply, pair.field);
}
