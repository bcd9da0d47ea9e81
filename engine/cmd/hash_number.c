/* HINCRBY and HINCRBYFLOAT. Their effect is HSET. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/hash_impl.h"
#include "engine/human.h"

#include <math.h>

/* Stores a value under the key, and creates the key if it does not exist. */
static void store(struct engine_call *call, struct engine_entry *entry, struct rd_slice value,
                  const char *event)
{
    struct engine_value made;
    if (entry == NULL)
        made = engine_hash_new();
    struct engine_value *hash = entry != NULL ? &entry->value : &made;
    engine_hash_set(hash, call->argv[2], value, ENGINE_HASH_KEEP_EXPIRE, call->config);
    if (entry == NULL)
        engine_call_add(call, call->argv[1], &made);
    engine_changed(call, ENGINE_NOTIFY_HASH, event, call->argv[1], 1);
}

/* The text of the field; false: the field does not exist. */
static bool find_text(struct engine_call *call, const struct engine_entry *entry,
                      struct rd_slice *ret, char tmp[RD_NUM_I64_MAX])
{
    return entry != NULL && engine_hash_get(&entry->value, call->argv[2], ret, tmp);
}

void engine_cmd_hincrby(struct engine_call *call)
{
    char digits[RD_NUM_I64_MAX];
    struct engine_entry *entry;
    struct rd_slice text;
    int64_t sum = 0, by;
    if (!engine_arg_i64(call, call->argv[3], &by, NULL))
        return;
    if (!engine_hash_write(call, call->argv[1], engine_hash_one(&call->argv[2]), &entry))
        return;
    if (find_text(call, entry, &text, digits) && !rd_num_get_i64(text, &sum)) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply, "ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(sum, by, &sum)) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply, "ERR increment or decrement would overflow");
        return;
    }
    store(call, entry, rd_slice(digits, rd_num_put_i64(digits, sum)), "hincrby");
    engine_reply_int(call->reply, sum);
}

static bool get_increment(struct engine_call *call, long double *ret)
{
    if (!engine_human_get(call->argv[3], ret)) {
        engine_reply_error(call->reply, "ERR value is not a valid float");
        return false;
    }
    if (isinf(*ret)) {
        engine_reply_error(call->reply, "ERR value is NaN or Infinity");
        return false;
    }
    return true;
}

/* HSET removes the expiry of a field, so a second effect restores it. */
static void float_effect(struct engine_call *call, const struct engine_entry *entry,
                         struct rd_slice value)
{
    struct rd_slice key = call->argv[1], field = call->argv[2];
    struct rd_slice set[] = {rd_slice_str("HSET"), key, field, value};
    char time[RD_NUM_I64_MAX];
    int64_t expire_ms;
    engine_effect(call, 4, set);
    if (entry == NULL || !engine_hash_get_expire(&entry->value, field, &expire_ms) ||
        expire_ms == ENGINE_HASH_NO_EXPIRE)
        return;
    struct rd_slice expire[] = {rd_slice_str("HPEXPIREAT"),
                                key,
                                rd_slice(time, rd_num_put_i64(time, expire_ms)),
                                rd_slice_str("FIELDS"),
                                rd_slice_str("1"),
                                field};
    engine_effect(call, 6, expire);
}

void engine_cmd_hincrbyfloat(struct engine_call *call)
{
    char digits[ENGINE_HUMAN_MAX];
    struct engine_entry *entry;
    struct rd_slice text;
    long double sum = 0, by;
    if (!get_increment(call, &by))
        return;
    if (!engine_hash_write(call, call->argv[1], engine_hash_one(&call->argv[2]), &entry))
        return;
    if (find_text(call, entry, &text, digits) && !engine_human_get(text, &sum)) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply, "ERR hash value is not a float");
        return;
    }
    sum += by;
    if (isnan(sum) || isinf(sum)) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply, "ERR increment would produce NaN or Infinity");
        return;
    }
    struct rd_slice value = rd_slice(digits, engine_human_put(digits, sum));
    store(call, entry, value, "hincrbyfloat");
    engine_reply_bulk(call->reply, value);
    float_effect(call, entry, value);
}
