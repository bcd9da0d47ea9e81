#include "base/copy.h"
#include "engine/cmd/string_impl.h"

#include "engine/cmd/cmd.h"

/* ---- shared with other commands ---- */

static void reply_string(struct engine_call *call, const struct engine_value *v)
{
    if (v->encoding == ENGINE_INT)
        engine_reply_bulk_int(call->reply, v->u.num);
    else
        engine_reply_bulk(call->reply, rd_slice(v->u.bytes, v->len));
}

bool engine_string_give(struct engine_call *call, struct rd_slice key, struct engine_entry **ret)
{
    if (!engine_call_read(call, key, ENGINE_STRING, ret))
        return false;
    if (*ret != NULL)
        reply_string(call, &(*ret)->value);
    else
        engine_reply_null(call->reply);
    return true;
}

/* A command from a log or a master was allowed there. */
uint64_t engine_string_limit(const struct engine_call *call)
{
    uint64_t limit = call->config->proto_max_bulk_len, most = call->config->value_max;
    return call->session->role != ENGINE_CLIENT || limit > most ? most : limit;
}

bool engine_string_fits(struct engine_call *call, uint64_t len, uint64_t more)
{
    uint64_t limit = engine_string_limit(call);
    if (len <= limit && more <= limit - len)
        return true;
    engine_reply_error(call->reply, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    return false;
}

static struct engine_value *add_zeros(struct engine_call *call, struct rd_slice key, size_t len)
{
    struct engine_value v = {.type = ENGINE_STRING, .encoding = ENGINE_RAW, .len = (uint32_t)len};
    v.u.bytes = engine_calloc(1, len);
    return &engine_call_add(call, key, &v)->value;
}

struct engine_value *engine_string_stretch(struct engine_call *call, struct engine_entry *entry,
                                           struct rd_slice key, size_t len, bool *ret_grown)
{
    *ret_grown = true;
    if (entry == NULL)
        return add_zeros(call, key, len);
    struct engine_value *v = &entry->value;
    uint8_t *bytes = engine_string_room(v, len);
    *ret_grown = len > v->len;
    if (*ret_grown) {
        memset(bytes + v->len, 0, len - v->len);
        v->len = (uint32_t)len;
    }
    return v;
}

/* ---- reading ---- */

void engine_cmd_get(struct engine_call *call)
{
    struct engine_entry *entry;
    engine_string_give(call, call->argv[1], &entry);
}

void engine_cmd_mget(struct engine_call *call)
{
    engine_reply_array(call->reply, call->argc - 1);
    for (size_t i = 1; i < call->argc; i++) {
        const struct engine_entry *entry = engine_call_find_read(call, call->argv[i]);
        if (entry != NULL && entry->value.type == ENGINE_STRING)
            reply_string(call, &entry->value);
        else
            engine_reply_null(call->reply);
    }
}

void engine_cmd_strlen(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_call_read(call, call->argv[1], ENGINE_STRING, &entry))
        return;
    engine_reply_int(call->reply, entry != NULL ? (int64_t)engine_string_len(&entry->value) : 0);
}

static int64_t from_end(int64_t index, int64_t len)
{
    if (index < 0)
        index += len;
    return index < 0 ? 0 : index;
}

/* Both ends are inclusive; negative ones count from the end. */
static struct rd_slice part(struct rd_slice text, int64_t start, int64_t end)
{
    int64_t len = (int64_t)text.len;
    bool is_reversed = start < 0 && end < 0 && start > end;
    start = from_end(start, len);
    end = from_end(end, len);
    if (end >= len)
        end = len - 1;
    if (is_reversed || start > end)
        return rd_slice("", 0);
    return rd_slice(text.ptr + start, (size_t)(end - start) + 1);
}

void engine_cmd_getrange(struct engine_call *call)
{
    int64_t start, end;
    struct engine_entry *entry;
    char digits[RD_NUM_I64_MAX];
    if (!engine_arg_i64(call, call->argv[2], &start, NULL) ||
        !engine_arg_i64(call, call->argv[3], &end, NULL) ||
        !engine_call_read(call, call->argv[1], ENGINE_STRING, &entry))
        return;
    struct rd_slice text =
        entry != NULL ? engine_string_text(&entry->value, digits) : rd_slice("", 0);
    engine_reply_bulk(call->reply, part(text, start, end));
}

void engine_cmd_substr(struct engine_call *call)
{
    engine_cmd_getrange(call);
}

/* ---- changing a range ---- */

void engine_cmd_append(struct engine_call *call)
{
    struct rd_slice key = call->argv[1], more = call->argv[2];
    struct engine_entry *entry;
    if (!engine_call_write(call, key, ENGINE_STRING, &entry))
        return;
    size_t len = entry != NULL ? engine_string_len(&entry->value) : 0;
    if (entry == NULL) {
        engine_call_set_string(call, NULL, key, more);
    } else {
        if (!engine_string_fits(call, len, more.len))
            return;
        uint8_t *bytes = engine_string_room(&entry->value, len + more.len);
        rd_copy_short(bytes + len, more.ptr, more.len);
        entry->value.len = (uint32_t)(len + more.len);
    }
    engine_changed(call, ENGINE_NOTIFY_STRING, "append", key, 1);
    engine_reply_int(call->reply, (int64_t)(len + more.len));
}

void engine_cmd_setrange(struct engine_call *call)
{
    struct rd_slice key = call->argv[1], text = call->argv[3];
    struct engine_entry *entry;
    int64_t offset;
    bool grown;
    if (!engine_arg_i64(call, call->argv[2], &offset, NULL))
        return;
    if (offset < 0) {
        engine_reply_error(call->reply, "ERR offset is out of range");
        return;
    }
    if (!engine_call_write(call, key, ENGINE_STRING, &entry))
        return;
    if (text.len == 0) {
        engine_reply_int(call->reply, entry ? (int64_t)engine_string_len(&entry->value) : 0);
        return;
    }
    if (!engine_string_fits(call, (uint64_t)offset, text.len))
        return;
    size_t end = (size_t)offset + text.len;
    struct engine_value *v = engine_string_stretch(call, entry, key, end, &grown);
    memcpy(v->u.bytes + offset, text.ptr, text.len);
    engine_changed(call, ENGINE_NOTIFY_STRING, "setrange", key, 1);
    engine_reply_int(call->reply, v->len);
}

/* ---- GETDEL ---- */

void engine_cmd_getdel(struct engine_call *call)
{
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry;
    if (!engine_string_give(call, key, &entry) || entry == NULL)
        return;
    engine_call_delete(call, entry);
    if (engine_effects_wanted(call)) {
        bool lazy = call->config->lazyfree_lazy_user_del;
        engine_effect(call, 2, (struct rd_slice[]){rd_slice_str(lazy ? "UNLINK" : "DEL"), key});
    }
    engine_changed(call, ENGINE_NOTIFY_GENERIC, "del", key, 1);
}
