#include "base/num.h"
#include "base/resp.h"

static bool put_crlf(struct rd_sink *sink)
{
    return rd_sink_write(sink, "\r\n", 2);
}

bool rd_resp_put_header(struct rd_sink *sink, enum resp_type type, uint64_t n)
{
    char line[RD_NUM_I64_MAX + 3];
    line[0] = (char)type;
    size_t len = 1 + rd_num_put_u64(line + 1, n);
    line[len++] = '\r';
    line[len++] = '\n';
    return rd_sink_write(sink, line, len);
}

static bool put_sized(struct rd_sink *sink, enum resp_type type, struct rd_slice text)
{
    rd_resp_put_header(sink, type, text.len);
    rd_sink_write(sink, text.ptr, text.len);
    return put_crlf(sink);
}

bool rd_resp_put_bulk(struct rd_sink *sink, struct rd_slice text)
{
    return put_sized(sink, RESP_BULK, text);
}

bool rd_resp_put_command(struct rd_sink *sink, const struct rd_slice *argv, size_t argc)
{
    bool ok = rd_resp_put_header(sink, RESP_ARRAY, argc);
    for (size_t i = 0; i < argc && ok; i++)
        ok = rd_resp_put_bulk(sink, argv[i]);
    return ok;
}

static bool put_line(struct rd_sink *sink, enum resp_type type, struct rd_slice text)
{
    rd_sink_byte(sink, (uint8_t)type);
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        rd_sink_byte(sink, c == '\r' || c == '\n' ? ' ' : c);
    }
    return put_crlf(sink);
}

bool rd_resp_put_simple(struct rd_sink *sink, struct rd_slice text)
{
    return put_line(sink, RESP_SIMPLE, text);
}

bool rd_resp_put_error(struct rd_sink *sink, struct rd_slice text)
{
    return put_line(sink, RESP_ERROR, text);
}

bool rd_resp_put_integer(struct rd_sink *sink, int64_t value)
{
    char digits[RD_NUM_I64_MAX];
    return put_line(sink, RESP_INTEGER, rd_slice(digits, rd_num_put_i64(digits, value)));
}

bool rd_resp_put_array(struct rd_sink *sink, uint64_t n)
{
    return rd_resp_put_header(sink, RESP_ARRAY, n);
}

bool rd_resp_put_map(struct rd_sink *sink, unsigned proto, uint64_t n_pairs)
{
    return proto >= 3 ? rd_resp_put_header(sink, RESP_MAP, n_pairs)
                      : rd_resp_put_header(sink, RESP_ARRAY, 2 * n_pairs);
}

bool rd_resp_put_set(struct rd_sink *sink, unsigned proto, uint64_t n)
{
    return rd_resp_put_header(sink, proto >= 3 ? RESP_SET : RESP_ARRAY, n);
}

bool rd_resp_put_push(struct rd_sink *sink, unsigned proto, uint64_t n)
{
    return rd_resp_put_header(sink, proto >= 3 ? RESP_PUSH : RESP_ARRAY, n);
}

bool rd_resp_put_null(struct rd_sink *sink, unsigned proto)
{
    return proto >= 3 ? rd_sink_write(sink, "_\r\n", 3) : rd_sink_write(sink, "$-1\r\n", 5);
}

bool rd_resp_put_null_array(struct rd_sink *sink, unsigned proto)
{
    return proto >= 3 ? rd_sink_write(sink, "_\r\n", 3) : rd_sink_write(sink, "*-1\r\n", 5);
}

bool rd_resp_put_bool(struct rd_sink *sink, unsigned proto, bool value)
{
    if (proto < 3)
        return rd_resp_put_integer(sink, value);
    return rd_sink_write(sink, value ? "#t\r\n" : "#f\r\n", 4);
}

bool rd_resp_put_double(struct rd_sink *sink, unsigned proto, double value)
{
    char digits[RD_NUM_F64_MAX];
    struct rd_slice text = rd_slice(digits, rd_num_put_f64(digits, value));
    return proto >= 3 ? put_line(sink, RESP_DOUBLE, text) : rd_resp_put_bulk(sink, text);
}

bool rd_resp_put_big(struct rd_sink *sink, unsigned proto, struct rd_slice digits)
{
    return proto >= 3 ? put_line(sink, RESP_BIG, digits) : rd_resp_put_bulk(sink, digits);
}

bool rd_resp_put_verbatim(struct rd_sink *sink, unsigned proto, const char *format,
                          struct rd_slice text)
{
    if (proto < 3)
        return rd_resp_put_bulk(sink, text);
    rd_resp_put_header(sink, RESP_VERBATIM, text.len + 4);
    rd_sink_write(sink, format, 3);
    rd_sink_byte(sink, ':');
    rd_sink_write(sink, text.ptr, text.len);
    return put_crlf(sink);
}
