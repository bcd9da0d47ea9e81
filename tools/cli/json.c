/* json.c - the streaming JSON writer. */
#include "tools/cli/cli.h"

#include "rdb/rdb.h"
#include "json/text.h"

#include "base/num.h"

#include <math.h>

static void raw(struct cli_json *json, const char *text)
{
    rd_sink_write(json->out, text, strlen(text));
}

static uint64_t level_bit(const struct cli_json *json)
{
    return UINT64_C(1) << json->depth;
}

/* Writes the separator before the next element. */
static void separate(struct cli_json *json)
{
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if (json->depth > 0 && (json->started & level_bit(json)) != 0)
        rd_sink_byte(json->out, ',');
    json->started |= level_bit(json);
}

void cli_json_init(struct cli_json *json, struct rd_sink *out)
{
    *json = (struct cli_json){.out = out};
}

static void open_level(struct cli_json *json, bool object)
{
    separate(json);
    rd_sink_byte(json->out, object ? '{' : '[');
    json->depth++;
    json->started &= ~level_bit(json);
    json->objects &= ~level_bit(json);
    if (object)
        json->objects |= level_bit(json);
}

void cli_json_obj(struct cli_json *json)
{
    open_level(json, true);
}

void cli_json_array(struct cli_json *json)
{
    open_level(json, false);
}

void cli_json_end(struct cli_json *json)
{
    if (json->after_key)
        cli_json_null(json);
    rd_sink_byte(json->out, (json->objects & level_bit(json)) != 0 ? '}' : ']');
    json->depth--;
}

/* The same escapes as in JSON lines, and DEL, which a terminal may interpret. */
static void put_string(struct cli_json *json, struct rd_slice bytes)
{
    enum { PIECE = 256, DEL = 0x7f };
    struct json_text text = {.form = JSON_UTF8};
    uint8_t escaped[6 * (PIECE + 3) + 16]; /* json_text_room(PIECE) */
    rd_sink_byte(json->out, '"');
    while (bytes.len > 0) {
        size_t n = bytes.len < PIECE ? bytes.len : PIECE;
        const uint8_t *del = memchr(bytes.ptr, DEL, n);
        if (del == bytes.ptr) {
            raw(json, "\\u007f");
            n = 1;
        } else {
            n = del != NULL ? (size_t)(del - bytes.ptr) : n;
            bool more = del == NULL && n < bytes.len;
            uint8_t *end = json_text_put(&text, escaped, rd_slice(bytes.ptr, n), more);
            rd_sink_write(json->out, escaped, (size_t)(end - escaped));
        }
        bytes = rd_slice(bytes.ptr + n, bytes.len - n);
    }
    rd_sink_byte(json->out, '"');
}

void cli_json_bytes(struct cli_json *json, struct rd_slice bytes)
{
    separate(json);
    put_string(json, bytes);
}

void cli_json_str(struct cli_json *json, const char *text)
{
    if (text == NULL)
        cli_json_null(json);
    else
        cli_json_bytes(json, rd_slice_str(text));
}

void cli_json_key_bytes(struct cli_json *json, struct rd_slice key)
{
    separate(json);
    put_string(json, key);
    rd_sink_byte(json->out, ':');
    json->after_key = true;
}

void cli_json_key(struct cli_json *json, const char *key)
{
    cli_json_key_bytes(json, rd_slice_str(key));
}

void cli_json_int(struct cli_json *json, int64_t value)
{
    char text[RD_NUM_I64_MAX];
    separate(json);
    rd_sink_write(json->out, text, rd_num_put_i64(text, value));
}

void cli_json_uint(struct cli_json *json, uint64_t value)
{
    char text[RD_NUM_I64_MAX];
    separate(json);
    rd_sink_write(json->out, text, rd_num_put_u64(text, value));
}

void cli_json_double(struct cli_json *json, double value)
{
    char text[RD_NUM_F64_MAX];
    size_t len = rd_num_put_f64(text, value);
    if (!isfinite(value)) {
        cli_json_bytes(json, rd_slice(text, len));
        return;
    }
    separate(json);
    rd_sink_write(json->out, text, len);
}

void cli_json_bool(struct cli_json *json, bool value)
{
    separate(json);
    raw(json, value ? "true" : "false");
}

void cli_json_null(struct cli_json *json)
{
    separate(json);
    raw(json, "null");
}

void cli_json_put_str(struct cli_json *json, const char *key, const char *text)
{
    cli_json_key(json, key);
    cli_json_str(json, text);
}

void cli_json_put_int(struct cli_json *json, const char *key, int64_t value)
{
    cli_json_key(json, key);
    cli_json_int(json, value);
}

void cli_json_put_uint(struct cli_json *json, const char *key, uint64_t value)
{
    cli_json_key(json, key);
    cli_json_uint(json, value);
}

void cli_json_put_bool(struct cli_json *json, const char *key, bool value)
{
    cli_json_key(json, key);
    cli_json_bool(json, value);
}

void cli_json_put_offset(struct cli_json *json, const char *key, uint64_t offset)
{
    cli_json_key(json, key);
    if (offset == RD_NO_OFFSET)
        cli_json_null(json);
    else
        cli_json_uint(json, offset);
}

/* What an upgrade must support. */
static void put_reason(struct cli_json *json, const struct rd_err_reason *reason)
{
    if (reason->id == RDB_REASON_VERSION) {
        cli_json_put_uint(json, "rdb_version", reason->args[0]);
        cli_json_put_uint(json, "newest_rdb_version", reason->args[1]);
    } else if (reason->id == RDB_REASON_TYPE) {
        cli_json_put_uint(json, "value_type", reason->args[0]);
    }
}

void cli_json_err(struct cli_json *json, const struct rd_err *err)
{
    cli_json_obj(json);
    cli_json_put_str(json, "code", rd_err_word(err->code));
    if (err->offset != RD_NO_OFFSET)
        cli_json_put_uint(json, "offset", err->offset);
    if (err->inner != RD_NO_OFFSET)
        cli_json_put_uint(json, "inner", err->inner);
    if (err->origin[0] != '\0')
        cli_json_put_str(json, "origin", err->origin);
    if (err->sys != 0)
        cli_json_put_int(json, "errno", err->sys);
    put_reason(json, &err->reason);
    cli_json_put_str(json, "text", err->text);
    cli_json_key(json, "doing");
    cli_json_array(json);
    for (unsigned i = 0; i < err->n_doing; i++)
        cli_json_str(json, err->doing[i]);
    cli_json_end(json);
    cli_json_end(json);
}

bool cli_json_later_init(struct cli_json_later *ret, struct rd_err *err)
{
    *ret = (struct cli_json_later){.sink = NULL};
    if (!rd_sink_open_buf(&ret->sink, &ret->text, NULL, err))
        return false;
    cli_json_init(&ret->json, ret->sink);
    cli_json_array(&ret->json);
    return true;
}

bool cli_json_later_put(struct cli_json_later *later, struct cli_json *json, const char *key,
                        struct rd_err *err)
{
    cli_json_end(&later->json);
    bool ok = rd_sink_close(later->sink, err);
    if (ok) {
        cli_json_key(json, key);
        separate(json);
        rd_sink_write(json->out, later->text.ptr, later->text.len);
    }
    rd_buf_done(&later->text);
    return ok;
}
