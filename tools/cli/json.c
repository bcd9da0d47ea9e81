/* json.c - the streaming JSON writer. */
#include "tools/cli/cli.h"

#include "rdb/rdb.h"
#include "tools/json/text.h"

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

/* Length of the UTF-8 sequence of a code point at the start of bytes, or 0: not one that UTF-8
 * allows (too long, a surrogate, beyond U+10FFFF, cut off). */
static size_t utf8_len(const uint8_t *p, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (n < 2)
        return n;
    if (n > left || p[0] > 0xf4)
        return 0;
    uint32_t point = p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (p[i] & 0x3fu);
    }
    bool surrogate = point >= 0xd800 && point <= 0xdfff;
    return point < least[n] || point > 0x10ffff || surrogate ? 0 : n;
}

static void escape(struct cli_json *json, unsigned unit)
{
    char text[8];
    snprintf(text, sizeof text, "\\u%04x", unit & 0xffffu);
    raw(json, text);
}

/* ASCII that must be escaped for JSON or a terminal. */
static void put_special(struct cli_json *json, uint8_t c)
{
    static const char from[] = "\"\\\n\r\t\b\f";
    static const char to[] = "\"\\nrtbf";
    const char *at = c != 0 ? strchr(from, c) : NULL;
    if (at == NULL) {
        escape(json, c);
        return;
    }
    rd_sink_byte(json->out, '\\');
    rd_sink_byte(json->out, (uint8_t)to[at - from]);
}

static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Writes one character that is not plain ASCII; returns how many bytes it took. */
static size_t put_other(struct cli_json *json, const uint8_t *p, size_t left)
{
    size_t n = utf8_len(p, left);
    uint32_t point = p[0] & (0x7fU >> n);
    for (size_t i = 1; i < n; i++)
        point = point << 6 | (p[i] & 0x3fU);
    if (n == 0)
        escape(json, 0xdc00u + p[0]);
    else if (n == 1)
        put_special(json, p[0]);
    else if (json_text_is_control(point) && point >= 0x10000) {
        escape(json, 0xd800 + ((point - 0x10000) >> 10));
        escape(json, 0xdc00 + ((point - 0x10000) & 0x3ff));
    } else if (json_text_is_control(point))
        escape(json, point);
    else
        rd_sink_write(json->out, p, n);
    return n == 0 ? 1 : n;
}

static void put_string(struct cli_json *json, struct rd_slice bytes)
{
    rd_sink_byte(json->out, '"');
    size_t i = 0;
    while (i < bytes.len) {
        size_t run = i;
        while (run < bytes.len && is_plain(bytes.ptr[run]))
            run++;
        if (run > i)
            rd_sink_write(json->out, bytes.ptr + i, run - i);
        i = run;
        if (i < bytes.len)
            i += put_other(json, bytes.ptr + i, bytes.len - i);
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
