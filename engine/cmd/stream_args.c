/* Streams: code shared by their commands. */
#include "base/copy.h"
#include "engine/cmd/stream_impl.h"
#include "engine/state_impl.h"
#include "engine/value/stream_idmp.h"

#include <errno.h>
#include <stdlib.h>

/* ---- arguments ---- */

static const char invalid_id[] = "ERR Invalid stream ID specified as stream command argument";

/* Like strtoull(): allows leading blanks and a sign, and negative numbers wrap, except in canonical
 * form. */
static bool read_u64(const char *text, uint64_t *ret)
{
    int64_t num;
    char *end;
    if (rd_num_get_i64(rd_slice_str(text), &num)) {
        *ret = (uint64_t)num;
        return num >= 0;
    }
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return errno == 0 && *text != '\0' && *end == '\0';
}

/* Up to 19 digits; NULL: none, or more. */
static const uint8_t *read_digits(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
    enum { DIGITS_MAX = 19 };
    const uint8_t *begin = p;
    uint64_t num = 0;
    for (; p < end && *p >= '0' && *p <= '9' && p - begin < DIGITS_MAX; p++)
        num = 10 * num + (uint64_t)(*p - '0');
    *ret = num;
    return p > begin && (p == end || *p < '0' || *p > '9') ? p : NULL;
}

/* Fast path: almost all IDs are two numbers of digits only. */
static bool read_plain(struct rd_slice arg, struct rdb_stream_id *ret)
{
    const uint8_t *end = arg.ptr + arg.len;
    const uint8_t *p = read_digits(arg.ptr, end, &ret->ms);
    if (p == NULL || p == end || *p != '-')
        return false;
    return read_digits(p + 1, end, &ret->seq) == end;
}

bool engine_stream_parse_id(struct rd_slice arg, uint64_t missing_seq, bool strict,
                            struct rdb_stream_id *ret, bool *ret_has_seq)
{
    char text[128];
    if (ret_has_seq != NULL)
        *ret_has_seq = true;
    if (arg.len > 0 && read_plain(arg, ret))
        return true;
    if (arg.len >= sizeof text)
        return false;
    rd_copy_short((uint8_t *)text, arg.ptr, arg.len);
    text[arg.len] = '\0';
    if (strcmp(text, "-") == 0 || strcmp(text, "+") == 0) {
        *ret = text[0] == '-' ? ENGINE_STREAM_ID_ZERO : ENGINE_STREAM_ID_LAST;
        return !strict;
    }
    char *dash = strchr(text, '-');
    if (dash != NULL)
        *dash = '\0';
    ret->seq = missing_seq;
    if (!read_u64(text, &ret->ms))
        return false;
    if (dash != NULL && ret_has_seq != NULL && strcmp(dash + 1, "*") == 0) {
        ret->seq = 0;
        *ret_has_seq = false;
        return true;
    }
    return dash == NULL || read_u64(dash + 1, &ret->seq);
}

bool engine_stream_arg_id(struct engine_call *call, struct rd_slice arg, struct rdb_stream_id *ret)
{
    if (engine_stream_parse_id(arg, 0, true, ret, NULL))
        return true;
    engine_reply_error(call->reply, invalid_id);
    return false;
}

static bool arg_bound(struct engine_call *call, struct rd_slice arg, uint64_t missing_seq,
                      struct rdb_stream_id *ret, bool *ret_open)
{
    *ret_open = arg.len > 1 && arg.ptr[0] == '(';
    if (*ret_open)
        arg = rd_slice(arg.ptr + 1, arg.len - 1);
    if (engine_stream_parse_id(arg, missing_seq, *ret_open, ret, NULL))
        return true;
    engine_reply_error(call->reply, invalid_id);
    return false;
}

bool engine_stream_arg_start(struct engine_call *call, struct rd_slice arg,
                             struct rdb_stream_id *ret)
{
    bool open;
    if (!arg_bound(call, arg, 0, ret, &open))
        return false;
    if (!open || engine_stream_id_up(ret))
        return true;
    engine_reply_error(call->reply, "ERR invalid start ID for the interval");
    return false;
}

bool engine_stream_arg_end(struct engine_call *call, struct rd_slice arg, struct rdb_stream_id *ret)
{
    bool open;
    if (!arg_bound(call, arg, UINT64_MAX, ret, &open))
        return false;
    if (!open || engine_stream_id_down(ret))
        return true;
    engine_reply_error(call->reply, "ERR invalid end ID for the interval");
    return false;
}

struct rdb_stream_id *engine_stream_arg_ids(struct engine_call *call, size_t from)
{
    struct rdb_stream_id *ids = engine_scratch_alloc((call->argc - from) * sizeof *ids);
    for (size_t i = from; i < call->argc; i++) {
        if (!engine_stream_arg_id(call, call->argv[i], &ids[i - from])) {
            engine_scratch_free(ids);
            return NULL;
        }
    }
    return ids;
}

bool engine_stream_arg_refs(struct rd_slice arg, enum engine_stream_refs *ret)
{
    static const struct {
        const char *word;
        enum engine_stream_refs refs;
    } words[] = {{"keepref", ENGINE_STREAM_KEEP_REFS},
                 {"delref", ENGINE_STREAM_DROP_REFS},
                 {"acked", ENGINE_STREAM_ACKED}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (engine_arg_is(arg, words[i].word)) {
            *ret = words[i].refs;
            return true;
        }
    return false;
}

int engine_stream_shown(struct rd_slice arg)
{
    enum { SHOWN_MAX = 1024 };
    return (int)strnlen((const char *)arg.ptr, arg.len < SHOWN_MAX ? arg.len : SHOWN_MAX);
}

void engine_stream_reply_no_group(struct engine_call *call, struct rd_slice key,
                                  struct rd_slice group)
{
    engine_reply_by_data(call->reply);
    engine_reply_errorf(call->reply, "NOGROUP No such key '%.*s' or consumer group '%.*s'",
                        engine_stream_shown(key), (const char *)key.ptr, engine_stream_shown(group),
                        (const char *)group.ptr);
}

/* ---- replies ---- */

void engine_stream_reply_id(struct engine_call *call, struct rdb_stream_id id)
{
    char text[ENGINE_STREAM_ID_MAX];
    if (!call->reply->off)
        engine_reply_bulk(call->reply, rd_slice(text, engine_stream_id_text(text, id)));
}

static void reply_item(struct engine_call *call, struct engine_lp_item item)
{
    char tmp[RD_NUM_I64_MAX];
    engine_reply_bulk(call->reply, engine_lp_item_text(item, tmp));
}

void engine_stream_reply_entry(struct engine_call *call, struct engine_stream_iter *it)
{
    if (call->reply->off)
        return;
    engine_reply_array(call->reply, 2);
    engine_stream_reply_id(call, it->id);
    engine_reply_array(call->reply, 2 * it->n_fields);
    for (uint64_t i = 0; i < it->n_fields; i++) {
        struct engine_lp_item field, value;
        engine_stream_iter_field(it, &field, &value);
        reply_item(call, field);
        reply_item(call, value);
    }
}

void engine_stream_reply_range(struct engine_call *call, const struct engine_stream *stream,
                               struct rdb_stream_id start, struct rdb_stream_id end, uint64_t count,
                               bool reverse)
{
    struct engine_stream_iter it;
    uint64_t n = 0;
    size_t mark = engine_reply_mark(call->reply);
    if (call->reply->off)
        return;
    engine_stream_iter_begin(&it, stream, start, end, reverse);
    while ((count == 0 || n < count) && engine_stream_iter_next(&it)) {
        engine_stream_reply_entry(call, &it);
        n++;
    }
    engine_reply_mark_array(call->reply, mark, n);
}

bool engine_stream_reply_one(struct engine_call *call, const struct engine_stream *stream,
                             struct rdb_stream_id id)
{
    struct engine_stream_iter it;
    engine_stream_iter_begin(&it, stream, id, id, false);
    if (!engine_stream_iter_next(&it))
        return false;
    engine_stream_reply_entry(call, &it);
    return true;
}

struct engine_stream_idmp *engine_stream_idmp_of(struct engine_call *call,
                                                 struct engine_stream *stream)
{
    call->engine->had_producers = true;
    return engine_stream_idmp(stream);
}

/* ---- groups ---- */

struct engine_stream_consumer *engine_stream_consumer_seen(struct engine_call *call,
                                                           struct engine_stream_group *group,
                                                           struct rd_slice key,
                                                           struct rd_slice name, bool *ret_is_new)
{
    struct engine_stream_consumer *consumer = engine_stream_consumer_add(group, name, call->now_ms);
    *ret_is_new = consumer != NULL;
    if (consumer == NULL) {
        consumer = engine_stream_consumer_find(group, name);
        consumer->seen_ms = call->now_ms;
        consumer->active_ms = RDB_NO_EXPIRE;
        return consumer;
    }
    call->dirty++;
    engine_notify(call, ENGINE_NOTIFY_STREAM, "xgroup-createconsumer", key);
    return consumer;
}

void engine_stream_claim_effect(struct engine_call *call, struct rd_slice key,
                                const struct engine_stream_group *group, struct rd_slice id,
                                const struct engine_stream_pending *pending)
{
    char time[RD_NUM_I64_MAX], count[RD_NUM_I64_MAX], last[ENGINE_STREAM_ID_MAX];
    if (!engine_effects_wanted(call))
        return;
    struct rd_slice argv[] = {
        rd_slice_str("XCLAIM"),
        key,
        group->name,
        pending->consumer->name,
        rd_slice_str("0"),
        id,
        rd_slice_str("TIME"),
        rd_slice(time, rd_num_put_i64(time, pending->delivery_ms)),
        rd_slice_str("RETRYCOUNT"),
        rd_slice(count, rd_num_put_i64(count, (int64_t)pending->delivery_count)),
        rd_slice_str("FORCE"),
        rd_slice_str("JUSTID"),
        rd_slice_str("LASTID"),
        rd_slice(last, engine_stream_id_text(last, group->last_id)),
    };
    engine_effect(call, sizeof argv / sizeof argv[0], argv);
}

void engine_stream_group_effect(struct engine_call *call, struct rd_slice key,
                                const struct engine_stream_group *group)
{
    char last[ENGINE_STREAM_ID_MAX], read[RD_NUM_I64_MAX];
    if (!engine_effects_wanted(call))
        return;
    struct rd_slice argv[] = {
        rd_slice_str("XGROUP"),
        rd_slice_str("SETID"),
        key,
        group->name,
        rd_slice(last, engine_stream_id_text(last, group->last_id)),
        rd_slice_str("ENTRIESREAD"),
        rd_slice(read, rd_num_put_i64(read, group->entries_read)),
    };
    engine_effect(call, sizeof argv / sizeof argv[0], argv);
}

void engine_stream_consumer_effect(struct engine_call *call, struct rd_slice key,
                                   const struct engine_stream_group *group, struct rd_slice name)
{
    struct rd_slice argv[] = {rd_slice_str("XGROUP"), rd_slice_str("CREATECONSUMER"), key,
                              group->name, name};
    engine_effect(call, 5, argv);
}
