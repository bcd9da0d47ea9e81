#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/human.h"

#include <math.h>

/* ---- INCR and its kin ---- */

static bool get_number(struct engine_call *call, const struct engine_entry *entry, int64_t *ret)
{
    if (entry == NULL) {
        *ret = 0;
        return true;
    }
    if (entry->value.encoding == ENGINE_INT) {
        *ret = entry->value.u.num;
        return true;
    }
    struct rd_slice text = rd_slice(entry->value.u.bytes, entry->value.len);
    if (engine_arg_i64(call, text, ret, NULL))
        return true;
    engine_reply_by_data(call->reply);
    return false;
}

static void put_number(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                       int64_t num)
{
    struct engine_value v = {.type = ENGINE_STRING, .encoding = ENGINE_INT, .u.num = num};
    if (entry == NULL)
        engine_call_add(call, key, &v);
    else if (entry->value.encoding == ENGINE_INT)
        entry->value.u.num = num;
    else
        engine_call_set(call, key, &v, true);
}

static void add(struct engine_call *call, int64_t more)
{
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry;
    int64_t num;
    if (!engine_call_write(call, key, ENGINE_STRING, &entry) || !get_number(call, entry, &num))
        return;
    if (__builtin_add_overflow(num, more, &num)) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply, "ERR increment or decrement would overflow");
        return;
    }
    put_number(call, entry, key, num);
    engine_changed(call, ENGINE_NOTIFY_STRING, "incrby", key, 1);
    engine_reply_int(call->reply, num);
}

void engine_cmd_incr(struct engine_call *call)
{
    add(call, 1);
}

void engine_cmd_decr(struct engine_call *call)
{
    add(call, -1);
}

void engine_cmd_incrby(struct engine_call *call)
{
    int64_t more;
    if (engine_arg_i64(call, call->argv[2], &more, NULL))
        add(call, more);
}

void engine_cmd_decrby(struct engine_call *call)
{
    int64_t less;
    if (!engine_arg_i64(call, call->argv[2], &less, NULL))
        return;
    if (less == INT64_MIN)
        engine_reply_error(call->reply, "ERR decrement would overflow");
    else
        add(call, -less);
}

/* ---- INCRBYFLOAT ---- */

static bool get_float(struct engine_call *call, struct rd_slice text, long double *ret)
{
    if (engine_human_get(text, ret))
        return true;
    engine_reply_error(call->reply, "ERR value is not a valid float");
    return false;
}

static bool get_stored_float(struct engine_call *call, const struct engine_entry *entry,
                             long double *ret)
{
    if (entry == NULL || entry->value.encoding == ENGINE_INT) {
        *ret = entry != NULL ? (long double)entry->value.u.num : 0;
        return true;
    }
    return get_float(call, rd_slice(entry->value.u.bytes, entry->value.len), ret);
}

/* A sum stays text even if it looks like an integer; OBJECT ENCODING shows this. Storing such text
 * would create an INT, so a placeholder of the same length is stored and then overwritten. */
static void put_text(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                     struct rd_slice text)
{
    entry = engine_call_set_string(call, entry, key, text);
    if (entry->value.encoding != ENGINE_INT)
        return;
    char line[RD_NUM_I64_MAX];
    memset(line, '-', sizeof line);
    entry = engine_call_set_string(call, entry, key, rd_slice(line, text.len));
    memcpy(entry->value.u.bytes, text.ptr, text.len);
}

static void effect_of_sum(struct engine_call *call, struct rd_slice text)
{
    struct rd_slice argv[] = {rd_slice_str("SET"), call->argv[1], text, rd_slice_str("KEEPTTL")};
    engine_effect(call, 4, argv);
}

void engine_cmd_incrbyfloat(struct engine_call *call)
{
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry;
    long double sum, more;
    if (!engine_call_write(call, key, ENGINE_STRING, &entry) ||
        !get_stored_float(call, entry, &sum) || !get_float(call, call->argv[2], &more))
        return;
    sum += more;
    if (isnan(sum) || isinf(sum)) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply, "ERR increment would produce NaN or Infinity");
        return;
    }
    char digits[ENGINE_HUMAN_MAX];
    struct rd_slice text = rd_slice(digits, engine_human_put(digits, sum));
    put_text(call, entry, key, text);
    if (engine_effects_wanted(call))
        effect_of_sum(call, text);
    engine_changed(call, ENGINE_NOTIFY_STRING, "incrbyfloat", key, 1);
    engine_reply_bulk(call->reply, text);
}
