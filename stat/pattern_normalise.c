/* pattern_normalise.c - replaces what looks like an id in a part of a name. */
#include "stat/pattern.h"

struct census {
    size_t digits, hex_letters, others; /* others: neither letters, digits nor dashes */
    size_t turns;                       /* between digits and letters */
};

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint8_t c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static struct census take_census(struct rd_slice part)
{
    struct census n = {0};
    for (size_t i = 0; i < part.len; i++) {
        uint8_t c = part.ptr[i];
        bool digit = is_digit(c), letter = is_letter(c);
        n.digits += digit;
        n.hex_letters += letter && (c | 0x20) <= 'f';
        n.others += !digit && !letter && c != '-' && c != '_';
        n.turns += i > 0 &&
                   ((digit && is_letter(part.ptr[i - 1])) || (letter && is_digit(part.ptr[i - 1])));
    }
    return n;
}

static bool is_uuid(struct rd_slice part, const struct census *n)
{
    static const uint8_t dashes[] = {8, 13, 18, 23};
    if (part.len != 36 || n->digits + n->hex_letters != 32)
        return false;
    for (size_t i = 0; i < sizeof dashes; i++)
        if (part.ptr[dashes[i]] != '-')
            return false;
    return true;
}

/* The name of an id that is the whole part, or NULL. */
static const char *whole_id(struct rd_slice part)
{
    enum { HEX_MIN = 8, ID_MIN = 16, ID_DIGITS = 2, ID_TURNS = 3 };
    if (part.len < HEX_MIN)
        return NULL;
    struct census n = take_census(part);
    if (is_uuid(part, &n))
        return "{uuid}";
    if (n.digits + n.hex_letters == part.len)
        return "{hex}";
    if (part.len >= ID_MIN && n.others == 0 && n.digits >= ID_DIGITS && n.turns >= ID_TURNS)
        return "{id}";
    return NULL;
}

static bool put(struct stat_pattern_part *ret, const void *bytes, size_t len)
{
    if (ret->len + len > STAT_PATTERN_PART_MAX)
        return false;
    if (len > 0)
        memcpy(ret->bytes + ret->len, bytes, len);
    ret->len = (uint8_t)(ret->len + len);
    return true;
}

bool stat_pattern_normalise(struct rd_slice part, struct stat_pattern_part *ret)
{
    size_t digits = 0, controls = 0;
    ret->len = 0;
    for (size_t i = 0; i < part.len; i++) {
        digits += is_digit(part.ptr[i]);
        controls += part.ptr[i] < 0x20 || part.ptr[i] == 0x7f;
    }
    if (controls > 0)
        return put(ret, "{bytes}", 7);
    if (digits == 0)
        return put(ret, part.ptr, part.len);
    if (digits == part.len)
        return put(ret, "{n}", 3);
    const char *id = whole_id(part);
    if (id != NULL)
        return put(ret, id, strlen(id));
    for (size_t i = 0; i < part.len;) {
        size_t from = i;
        while (i < part.len && is_digit(part.ptr[i]))
            i++;
        if (i > from && !put(ret, "{n}", 3))
            return false;
        for (from = i; i < part.len && !is_digit(part.ptr[i]);)
            i++;
        if (!put(ret, part.ptr + from, i - from))
            return false;
    }
    return true;
}
