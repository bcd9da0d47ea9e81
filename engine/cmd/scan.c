#include "engine/cmd/scan.h"

#include "engine/glob.h"
#include "engine/mem.h"

/* Digits with an optional sign; bytes after a NUL are ignored. Servers use strtoul(), which reads
 * no digits as 0 and negative numbers modulo 2^64. */
static bool get_cursor(struct rd_slice text, uint64_t *ret)
{
    const uint8_t *zero = text.len > 0 ? memchr(text.ptr, 0, text.len) : NULL;
    size_t len = zero != NULL ? (size_t)(zero - text.ptr) : text.len;
    bool sign = len > 0 && (text.ptr[0] == '-' || text.ptr[0] == '+');
    uint64_t v = 0;
    for (size_t i = sign; i < len; i++) {
        unsigned digit = (unsigned)text.ptr[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    *ret = sign && text.ptr[0] == '-' ? 0 - v : v;
    return len != sign || len == 0;
}

bool engine_scan_cursor(struct engine_call *call, struct rd_slice arg, struct engine_scan_opts *ret)
{
    *ret = (struct engine_scan_opts){.count = 10};
    if (get_cursor(arg, &ret->cursor))
        return true;
    engine_reply_error(call->reply, "ERR invalid cursor");
    return false;
}

static bool parse_count(struct engine_call *call, struct rd_slice arg,
                        struct engine_scan_opts *opts)
{
    if (!engine_arg_i64(call, arg, &opts->count, NULL))
        return false;
    if (opts->count >= 1)
        return true;
    engine_reply_syntax(call);
    return false;
}

bool engine_scan_parse(struct engine_call *call, size_t first, struct engine_scan_opts *opts)
{
    for (size_t i = first; i < call->argc; i += 2) {
        bool more = i + 1 < call->argc;
        if (more && engine_arg_is(call->argv[i], "count")) {
            if (!parse_count(call, call->argv[i + 1], opts))
                return false;
        } else if (more && engine_arg_is(call->argv[i], "match")) {
            opts->pattern = call->argv[i + 1];
            opts->has_pattern = !rd_slice_is(opts->pattern, "*");
        } else if (more && first == 2 && engine_arg_is(call->argv[i], "type")) {
            opts->type = call->argv[i + 1];
            opts->has_type = true;
        } else {
            engine_reply_syntax(call);
            return false;
        }
    }
    return true;
}

bool engine_scan_matches(const struct engine_scan_opts *opts, struct rd_slice name)
{
    return !opts->has_pattern || engine_glob_match(opts->pattern, name, false);
}

static void collect(void *ctx, void *item)
{
    struct engine_scan_items *items = ctx;
    if (items->n == items->cap) {
        items->cap = items->cap == 0 ? 16 : items->cap * 2;
        items->list = engine_scratch_realloc(items->list, items->cap * sizeof *items->list);
    }
    items->list[items->n++] = item;
}

void engine_scan_table(const struct engine_scan_opts *opts, struct engine_table *t,
                       struct engine_scan_items *ret)
{
    uint64_t count = (uint64_t)opts->count, cursor = opts->cursor;
    uint64_t patience = count > UINT64_MAX / 10 ? UINT64_MAX : count * 10;
    do
        cursor = engine_table_scan(t, cursor, collect, ret);
    while (cursor != 0 && patience-- > 0 && ret->n < count);
    ret->cursor = cursor;
}

void engine_scan_items_done(struct engine_scan_items *items)
{
    engine_scratch_free(items->list);
    *items = (struct engine_scan_items){0};
}

void engine_scan_reply_cursor(struct engine_call *call, uint64_t cursor)
{
    char digits[RD_NUM_I64_MAX];
    engine_reply_array(call->reply, 2);
    engine_reply_bulk(call->reply, rd_slice(digits, rd_num_put_u64(digits, cursor)));
}

void engine_scan_reply_empty(struct engine_call *call)
{
    engine_scan_reply_cursor(call, 0);
    engine_reply_array(call->reply, 0);
}
