#include "archive/json.h"

#include "base/digest.h"
#include "base/num.h"

enum { DEPTH_MAX = 16, HEX_MAX = 2 * RD_DIGEST_MAX + 1 };

bool archive_json_fail(struct archive_json *in, const char *what)
{
    if (!in->failed)
        rd_err_set(in->err, RD_ERR_CORRUPT, (uint64_t)(in->at - in->begin), "%s", what);
    in->failed = true;
    return false;
}

/* Returns the next byte that is not a blank, or 0. */
static uint8_t peek(struct archive_json *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n' || *in->at == '\t'))
        in->at++;
    return in->at < in->end ? *in->at : 0;
}

static bool take_char(struct archive_json *in, char c)
{
    if (in->failed || peek(in) != (uint8_t)c)
        return false;
    in->at++;
    return true;
}

static bool expect(struct archive_json *in, char c)
{
    char what[] = "expected ' '";
    what[10] = c;
    return take_char(in, c) || archive_json_fail(in, what);
}

bool archive_json_begin(struct archive_json *in, char c)
{
    if (!expect(in, c))
        return false;
    return ++in->depth <= DEPTH_MAX || archive_json_fail(in, "nested too deeply");
}

/* Whether another member or element follows; consumes the end of the object or array if not. A
 * comma is required before all but the first. */
static bool follows(struct archive_json *in, char close)
{
    if (in->failed)
        return false;
    bool first = in->at[-1] == '{' || in->at[-1] == '[';
    if (take_char(in, close)) {
        in->depth--;
        return false;
    }
    if (first)
        return peek(in) != 0 || archive_json_fail(in, "ends inside an object or array");
    return expect(in, ',');
}

bool archive_json_name(struct archive_json *in, char *dst, size_t cap)
{
    return follows(in, '}') && archive_json_string(in, dst, cap) && expect(in, ':');
}

bool archive_json_element(struct archive_json *in)
{
    return follows(in, ']');
}

static bool take_word(struct archive_json *in, const char *word)
{
    size_t len = strlen(word);
    if (in->failed || peek(in) != (uint8_t)word[0] || (size_t)(in->end - in->at) < len ||
        memcmp(in->at, word, len) != 0)
        return false;
    in->at += len;
    return true;
}

/* One character of a string after a backslash. */
static bool escape(struct archive_json *in, char *ret)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (in->at == in->end)
        return archive_json_fail(in, "ends inside a string");
    uint8_t c = *in->at++;
    const char *found = c != 0 ? strchr(from, c) : NULL;
    if (found != NULL) {
        *ret = to[found - from];
        return true;
    }
    uint8_t code[2];
    if (c != 'u' || in->end - in->at < 4 || !rd_digest_get_hex(rd_slice(in->at, 4), code, 2))
        return archive_json_fail(in, "invalid escape sequence");
    in->at += 4;
    *ret = code[0] == 0 && code[1] != 0 && code[1] < 0x80 ? (char)code[1] : '?';
    return true;
}

bool archive_json_string(struct archive_json *in, char *dst, size_t cap)
{
    size_t len = 0;
    dst[0] = '\0';
    if (take_word(in, "null"))
        return true;
    if (!expect(in, '"'))
        return false;
    while (in->at < in->end && *in->at != '"') {
        char c = (char)*in->at++;
        if ((uint8_t)c < ' ')
            return archive_json_fail(in, "a control character in a string");
        if (c == '\\' && !escape(in, &c))
            return false;
        if (len + 1 >= cap)
            return archive_json_fail(in, "a string is too long");
        dst[len++] = c;
    }
    dst[len] = '\0';
    return in->at < in->end ? take_char(in, '"') : archive_json_fail(in, "ends inside a string");
}

/* The characters of a number; empty if there are none. */
static struct rd_slice number(struct archive_json *in)
{
    if (in->failed)
        return rd_slice(NULL, 0);
    peek(in);
    const uint8_t *begin = in->at;
    while (in->at < in->end && *in->at != 0 && strchr("0123456789+-.eE", *in->at) != NULL)
        in->at++;
    return rd_slice(begin, (size_t)(in->at - begin));
}

bool archive_json_u64(struct archive_json *in, uint64_t *ret)
{
    return rd_num_get_u64(number(in), ret) || archive_json_fail(in, "expected a number");
}

bool archive_json_i64(struct archive_json *in, int64_t *ret)
{
    return rd_num_get_i64(number(in), ret) || archive_json_fail(in, "expected a number");
}

bool archive_json_bool(struct archive_json *in, bool *ret)
{
    bool yes = take_word(in, "true");
    if (!yes && !take_word(in, "false"))
        return archive_json_fail(in, "expected true or false");
    *ret = yes;
    return true;
}

bool archive_json_hex(struct archive_json *in, uint8_t *dst, size_t size)
{
    char text[HEX_MAX];
    return archive_json_string(in, text, sizeof text) &&
           (rd_digest_get_hex(rd_slice_str(text), dst, size) ||
            archive_json_fail(in, "expected hexadecimal digits"));
}

/* Skips a string of any length without storing it. */
static bool skip_string(struct archive_json *in)
{
    for (in->at++; in->at < in->end && *in->at != '"'; in->at++)
        if (*in->at == '\\' && in->at + 1 < in->end)
            in->at++;
    return in->at < in->end ? take_char(in, '"') : archive_json_fail(in, "ends inside a string");
}

static bool skip_flat(struct archive_json *in)
{
    return take_word(in, "null") || take_word(in, "true") || take_word(in, "false") ||
           number(in).len > 0 || archive_json_fail(in, "expected a value");
}

bool archive_json_skip(struct archive_json *in)
{
    unsigned depth = 0;
    do {
        switch (in->failed ? 0 : peek(in)) {
        case '{':
        case '[':
            in->at++;
            if (++depth > DEPTH_MAX)
                return archive_json_fail(in, "nested too deeply");
            break;
        case '}':
        case ']':
            if (depth == 0)
                return archive_json_fail(in, "expected a value");
            in->at++;
            depth--;
            break;
        case ',':
        case ':':
            if (depth == 0)
                return archive_json_fail(in, "expected a value");
            in->at++;
            break;
        case '"':
            skip_string(in);
            break;
        default:
            skip_flat(in);
        }
    } while (!in->failed && depth > 0);
    return !in->failed;
}

bool archive_json_end(struct archive_json *in)
{
    return !in->failed && (peek(in) == 0 || archive_json_fail(in, "data after the end"));
}

bool archive_json_put(struct rd_buf *out, const char *text)
{
    bool ok = rd_buf_add_byte(out, '"');
    for (; ok && *text != '\0'; text++) {
        uint8_t c = (uint8_t)*text;
        if (c < ' ' || c == 0x7f)
            ok = rd_buf_printf(out, "\\u%04x", c);
        else
            ok = (c != '"' && c != '\\') || rd_buf_add_byte(out, '\\');
        if (ok && c >= ' ' && c != 0x7f)
            ok = rd_buf_add_byte(out, c);
    }
    return ok && rd_buf_add_byte(out, '"');
}
