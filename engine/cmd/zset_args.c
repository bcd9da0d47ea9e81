#include "engine/cmd/zset_args.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "base/num_locale.h"

/* ---- numbers ---- */

/* Parses the text like strtod(): the number, how many bytes were used, and whether it was out of
 * range. */
struct parsed {
    double value;
    size_t used;
    bool out_of_range;
};

static struct parsed parse(struct rd_slice text)
{
    char few[128], *end;
    char *copy = text.len < sizeof few ? few : engine_scratch_alloc(text.len + 1);
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    int saved = errno;
    errno = 0;
    struct parsed parsed = {.value = strtod_l(copy, &end, rd_num_locale())};
    parsed.used = (size_t)(end - copy);
    parsed.out_of_range =
        errno == ERANGE && (isinf(parsed.value) || fpclassify(parsed.value) == FP_ZERO);
    errno = saved;
    if (copy != few)
        engine_scratch_free(copy);
    return parsed;
}

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

bool engine_zset_arg_f64(struct engine_call *call, struct rd_slice arg, double *ret,
                         const char *error)
{
    if (rd_num_get_f64(arg, ret) && !isnan(*ret))
        return true;
    if (arg.len > 0 && !is_space(arg.ptr[0])) {
        struct parsed parsed = parse(arg);
        if (parsed.used == arg.len && !parsed.out_of_range && !isnan(parsed.value)) {
            *ret = parsed.value;
            return true;
        }
    }
    return engine_arg_f64(call, rd_slice(NULL, 0), ret, error);
}

/* ---- ranges ---- */

/* Parses like strtod(): leading blanks are skipped, bytes after a NUL are ignored, and an empty
 * text is 0. */
static bool get_bound(struct rd_slice arg, double *ret, bool *ret_open)
{
    *ret_open = arg.len > 0 && arg.ptr[0] == '(';
    if (*ret_open)
        arg = rd_slice(arg.ptr + 1, arg.len - 1);
    if (rd_num_get_f64(arg, ret))
        return !isnan(*ret);
    struct parsed parsed = parse(arg);
    *ret = parsed.value;
    return (parsed.used == arg.len || arg.ptr[parsed.used] == '\0') && !isnan(parsed.value);
}

static bool get_lex_bound(struct rd_slice arg, enum engine_zset_bound *ret_bound,
                          struct rd_slice *ret_text, bool *ret_open)
{
    uint8_t first = arg.len > 0 ? arg.ptr[0] : '\0';
    *ret_bound = ENGINE_ZSET_TEXT;
    *ret_open = first == '(';
    if (first == '-' || first == '+') {
        *ret_bound = first == '-' ? ENGINE_ZSET_LOWEST : ENGINE_ZSET_HIGHEST;
        return arg.len == 1 || arg.ptr[1] == '\0';
    }
    if (first != '(' && first != '[')
        return false;
    *ret_text = rd_slice(arg.ptr + 1, arg.len - 1);
    return true;
}

bool engine_zset_arg_range(struct engine_call *call, bool lex, struct rd_slice min,
                           struct rd_slice max, struct engine_zset_range *ret)
{
    *ret = (struct engine_zset_range){.lex = lex};
    if (lex) {
        if (get_lex_bound(min, &ret->min_bound, &ret->min_text, &ret->min_open) &&
            get_lex_bound(max, &ret->max_bound, &ret->max_text, &ret->max_open))
            return true;
        engine_reply_error(call->reply, "ERR min or max not valid string range item");
        return false;
    }
    if (get_bound(min, &ret->min, &ret->min_open) && get_bound(max, &ret->max, &ret->max_open))
        return true;
    engine_reply_error(call->reply, "ERR min or max is not a float");
    return false;
}

/* ---- results ---- */

void engine_zset_store_nothing(struct engine_call *call, struct rd_slice key)
{
    struct engine_entry *entry = engine_db_find(call->db, key);
    if (entry == NULL)
        return;
    engine_call_delete(call, entry);
    engine_changed(call, ENGINE_NOTIFY_GENERIC, "del", key, 1);
}

void engine_zset_store(struct engine_call *call, struct rd_slice key, struct engine_value *result,
                       const char *event, uint64_t n)
{
    if (engine_zset_count(result) == 0) {
        engine_value_free(result);
        engine_zset_store_nothing(call, key);
        return;
    }
    engine_call_set(call, key, result, false);
    engine_changed(call, ENGINE_NOTIFY_ZSET, event, key, n);
}

void engine_zset_taken(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                       const char *event, uint64_t n)
{
    bool is_empty = engine_zset_count(&entry->value) == 0;
    if (n == 0)
        return;
    if (is_empty)
        engine_call_delete(call, entry);
    engine_changed(call, ENGINE_NOTIFY_ZSET, event, key, n);
    if (is_empty)
        engine_notify(call, ENGINE_NOTIFY_GENERIC, "del", key);
}
