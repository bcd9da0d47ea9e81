#include "json/document.h"

#include <string.h>

struct scan {
    const uint8_t *at, *end;
    uint64_t objects[JSON_DOCUMENT_DEPTH / 64]; /* bit d: level d is an object */
    unsigned depth;
};

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static void skip_space(struct scan *s)
{
    while (s->at < s->end && is_space(*s->at))
        s->at++;
}

static bool take_char(struct scan *s, uint8_t c)
{
    bool is = s->at < s->end && *s->at == c;
    s->at += is;
    return is;
}

static bool take_escape(struct scan *s)
{
    if (s->at == s->end)
        return false;
    uint8_t c = *s->at++;
    if (c != 'u')
        return c != '\0' && strchr("\"\\/bfnrt", c) != NULL;
    for (int i = 0; i < 4; i++, s->at++) {
        uint8_t lower = s->at < s->end ? *s->at | 0x20 : 0;
        if (!(lower >= 'a' && lower <= 'f') && !(s->at < s->end && is_digit(*s->at)))
            return false;
    }
    return true;
}

static bool take_string(struct scan *s)
{
    if (!take_char(s, '"'))
        return false;
    while (s->at < s->end) {
        uint8_t c = *s->at++;
        if (c == '"')
            return true;
        if (c < 0x20 || (c == '\\' && !take_escape(s)))
            return false;
    }
    return false;
}

static bool take_digits(struct scan *s)
{
    const uint8_t *from = s->at;
    while (s->at < s->end && is_digit(*s->at))
        s->at++;
    return s->at > from;
}

static bool take_number(struct scan *s)
{
    take_char(s, '-');
    if (!take_char(s, '0') && !take_digits(s))
        return false;
    if (take_char(s, '.') && !take_digits(s))
        return false;
    if (!take_char(s, 'e') && !take_char(s, 'E'))
        return true;
    if (!take_char(s, '+'))
        take_char(s, '-');
    return take_digits(s);
}

static bool take_word(struct scan *s, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
        return false;
    s->at += len;
    return true;
}

static bool take_scalar(struct scan *s)
{
    if (s->at < s->end && *s->at == '"')
        return take_string(s);
    return take_word(s, "null") || take_word(s, "true") || take_word(s, "false") || take_number(s);
}

static bool in_object(const struct scan *s)
{
    unsigned level = s->depth - 1;
    return (s->objects[level / 64] >> (level % 64) & 1) != 0;
}

static bool open(struct scan *s, bool object)
{
    if (s->depth == JSON_DOCUMENT_DEPTH)
        return false;
    uint64_t bit = UINT64_C(1) << (s->depth % 64);
    uint64_t *levels = &s->objects[s->depth / 64];
    *levels = object ? *levels | bit : *levels & ~bit;
    s->depth++;
    return true;
}

static bool take_name(struct scan *s)
{
    skip_space(s);
    if (!take_string(s))
        return false;
    skip_space(s);
    return take_char(s, ':');
}

/* After a value: closes what ends here. *ret_more: another value follows. */
static bool close_levels(struct scan *s, bool *ret_more)
{
    *ret_more = false;
    while (s->depth > 0) {
        skip_space(s);
        if (take_char(s, ',')) {
            *ret_more = true;
            return !in_object(s) || take_name(s);
        }
        if (!take_char(s, in_object(s) ? '}' : ']'))
            return false;
        s->depth--;
    }
    return true;
}

/* One value, or the beginning of one that is not empty: then another value follows. */
static bool take_value(struct scan *s, bool *ret_more)
{
    skip_space(s);
    bool object = s->at < s->end && *s->at == '{';
    if (!object && !(s->at < s->end && *s->at == '['))
        return take_scalar(s) && close_levels(s, ret_more);
    s->at++;
    if (!open(s, object))
        return false;
    skip_space(s);
    if (s->at < s->end && *s->at == (object ? '}' : ']'))
        return close_levels(s, ret_more);
    *ret_more = true;
    return !object || take_name(s);
}

bool json_document_valid(struct rd_slice text)
{
    struct scan s = {.at = text.ptr, .end = text.ptr + text.len};
    bool more = true;
    while (more)
        if (!take_value(&s, &more))
            return false;
    skip_space(&s);
    return s.at == s.end;
}

bool json_document_next(struct rd_slice *text, bool *in_string, struct json_document_piece *ret)
{
    const uint8_t *at = text->ptr, *end = text->ptr + text->len;
    while (!*in_string && at < end && is_space(*at))
        at++;
    const uint8_t *from = at;
    bool ascii = at < end && *at < 0x7f;
    while (at < end && (*at < 0x7f) == ascii && (*in_string || !is_space(*at))) {
        if (*in_string && *at == '\\') {
            at += end - at > 1 ? 2 : 1;
            continue;
        }
        if (*at++ == '"')
            *in_string = !*in_string;
    }
    *ret = (struct json_document_piece){rd_slice(from, (size_t)(at - from)), ascii};
    *text = rd_slice(at, (size_t)(end - at));
    return at > from;
}
