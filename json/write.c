#include "json/write.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "json/text.h"

static void raw(struct json_write *json, const char *text)
{
    rd_sink_write(json->out, text, strlen(text));
}

static uint64_t level_bit(const struct json_write *json)
{
    return UINT64_C(1) << json->depth;
}

/* Writes the separator before the next element. */
static void separate(struct json_write *json)
{
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if (json->depth > 0 && (json->started & level_bit(json)) != 0)
        rd_sink_byte(json->out, ',');
    json->started |= level_bit(json);
}

void json_init(struct json_write *json, struct rd_sink *out)
{
    *json = (struct json_write){.out = out};
}

static void open_level(struct json_write *json, bool object)
{
    separate(json);
    rd_sink_byte(json->out, object ? '{' : '[');
    json->depth++;
    json->started &= ~level_bit(json);
    json->objects &= ~level_bit(json);
    if (object)
        json->objects |= level_bit(json);
}

void json_obj(struct json_write *json)
{
    open_level(json, true);
}

void json_array(struct json_write *json)
{
    open_level(json, false);
}

void json_end(struct json_write *json)
{
    if (json->after_key)
        json_null(json);
    rd_sink_byte(json->out, (json->objects & level_bit(json)) != 0 ? '}' : ']');
    json->depth--;
}

enum { PIECE = 256, DEL = 0x7f, ESCAPED = 6 * (PIECE + 3) + 16 /* json_text_room(PIECE) */ };

/* Takes a piece off *bytes and escapes it: as in JSON lines, and DEL, which a terminal may
 * interpret. */
static struct rd_slice escape(struct json_text *text, struct rd_slice *bytes, uint8_t *dst)
{
    size_t n = bytes->len < PIECE ? bytes->len : PIECE;
    const uint8_t *del = memchr(bytes->ptr, DEL, n);
    if (del == bytes->ptr) {
        *bytes = rd_slice(bytes->ptr + 1, bytes->len - 1);
        return rd_slice_str("\\u007f");
    }
    n = del != NULL ? (size_t)(del - bytes->ptr) : n;
    bool more = del == NULL && n < bytes->len;
    const uint8_t *end = json_text_put(text, dst, rd_slice(bytes->ptr, n), more);
    *bytes = rd_slice(bytes->ptr + n, bytes->len - n);
    return rd_slice(dst, (size_t)(end - dst));
}

static void put_string(struct json_write *json, struct rd_slice bytes)
{
    struct json_text text = {.form = JSON_UTF8};
    uint8_t escaped[ESCAPED];
    rd_sink_byte(json->out, '"');
    while (bytes.len > 0) {
        struct rd_slice piece = escape(&text, &bytes, escaped);
        rd_sink_write(json->out, piece.ptr, piece.len);
    }
    rd_sink_byte(json->out, '"');
}

bool json_quote(struct rd_buf *out, const char *text)
{
    struct json_text form = {.form = JSON_UTF8};
    struct rd_slice bytes = rd_slice_str(text);
    uint8_t escaped[ESCAPED];
    bool ok = rd_buf_add_byte(out, '"');
    while (ok && bytes.len > 0) {
        struct rd_slice piece = escape(&form, &bytes, escaped);
        ok = rd_buf_add(out, piece.ptr, piece.len);
    }
    return ok && rd_buf_add_byte(out, '"');
}

void json_bytes(struct json_write *json, struct rd_slice bytes)
{
    separate(json);
    put_string(json, bytes);
}

void json_str(struct json_write *json, const char *text)
{
    if (text == NULL)
        json_null(json);
    else
        json_bytes(json, rd_slice_str(text));
}

void json_key_bytes(struct json_write *json, struct rd_slice key)
{
    separate(json);
    put_string(json, key);
    rd_sink_byte(json->out, ':');
    json->after_key = true;
}

void json_key(struct json_write *json, const char *key)
{
    json_key_bytes(json, rd_slice_str(key));
}

void json_int(struct json_write *json, int64_t value)
{
    char text[RD_NUM_I64_MAX];
    separate(json);
    rd_sink_write(json->out, text, rd_num_put_i64(text, value));
}

void json_uint(struct json_write *json, uint64_t value)
{
    char text[RD_NUM_I64_MAX];
    separate(json);
    rd_sink_write(json->out, text, rd_num_put_u64(text, value));
}

void json_double(struct json_write *json, double value)
{
    char text[RD_NUM_F64_MAX];
    size_t len = rd_num_put_f64(text, value);
    if (!isfinite(value)) {
        json_bytes(json, rd_slice(text, len));
        return;
    }
    separate(json);
    rd_sink_write(json->out, text, len);
}

void json_bool(struct json_write *json, bool value)
{
    separate(json);
    raw(json, value ? "true" : "false");
}

void json_null(struct json_write *json)
{
    separate(json);
    raw(json, "null");
}

void json_put_str(struct json_write *json, const char *key, const char *text)
{
    json_key(json, key);
    json_str(json, text);
}

void json_put_int(struct json_write *json, const char *key, int64_t value)
{
    json_key(json, key);
    json_int(json, value);
}

void json_put_uint(struct json_write *json, const char *key, uint64_t value)
{
    json_key(json, key);
    json_uint(json, value);
}

void json_put_bool(struct json_write *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}

void json_put_offset(struct json_write *json, const char *key, uint64_t offset)
{
    json_key(json, key);
    if (offset == RD_NO_OFFSET)
        json_null(json);
    else
        json_uint(json, offset);
}

bool json_later_init(struct json_later *ret, struct rd_err *err)
{
    *ret = (struct json_later){.sink = NULL};
    if (!rd_sink_open_buf(&ret->sink, &ret->text, NULL, err))
        return false;
    json_init(&ret->json, ret->sink);
    json_array(&ret->json);
    return true;
}

bool json_later_put(struct json_later *later, struct json_write *json, const char *key,
                    struct rd_err *err)
{
    json_end(&later->json);
    bool ok = rd_sink_close(later->sink, err);
    if (ok) {
        json_key(json, key);
        separate(json);
        rd_sink_write(json->out, later->text.ptr, later->text.len);
    }
    rd_buf_done(&later->text);
    return ok;
}
