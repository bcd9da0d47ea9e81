#include "engine/glob.h"

static uint8_t lower(uint8_t c, bool nocase)
{
    return nocase && c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

/* Ends of ranges are compared as signed bytes, as in builds of redis-server. */
static bool in_range(uint8_t c, uint8_t from, uint8_t to)
{
    int8_t a = (int8_t)from;
    int8_t b = (int8_t)to;
    int8_t x = (int8_t)c;
    return a <= b ? a <= x && x <= b : b <= x && x <= a;
}

/* A class begins at p[at]. Returns whether c is in it; *ret_next is after it. */
static bool match_class(struct rd_slice p, size_t at, uint8_t c, bool nocase, size_t *ret_next)
{
    bool match = false;
    size_t i = at + 1;
    bool negate = i < p.len && p.ptr[i] == '^';
    i += negate;
    while (i < p.len && p.ptr[i] != ']') {
        if (p.ptr[i] == '\\' && i + 1 < p.len) {
            match |= p.ptr[i + 1] == c; /* escaped characters keep their case */
            i += 2;
        } else if (i + 2 < p.len && p.ptr[i + 1] == '-') {
            match |=
                in_range(lower(c, nocase), lower(p.ptr[i], nocase), lower(p.ptr[i + 2], nocase));
            i += 3;
        } else {
            match |= lower(p.ptr[i], nocase) == lower(c, nocase);
            i++;
        }
    }
    *ret_next = i < p.len ? i + 1 : i;
    return match != negate;
}

/* Matches the element at p[at], which is not a star, against one byte. */
static bool match_one(struct rd_slice p, size_t at, uint8_t c, bool nocase, size_t *ret_next)
{
    if (p.ptr[at] == '[')
        return match_class(p, at, c, nocase, ret_next);
    if (p.ptr[at] == '\\' && at + 1 < p.len)
        at++;
    else if (p.ptr[at] == '?')
        c = p.ptr[at];
    *ret_next = at + 1;
    return lower(p.ptr[at], nocase) == lower(c, nocase);
}

/* Only the last star is retried: everything before it matched as early as possible, and the star
 * absorbs the rest. */
bool engine_glob_match(struct rd_slice pattern, struct rd_slice text, bool nocase)
{
    size_t p = 0;
    size_t t = 0;
    size_t star = SIZE_MAX;
    size_t star_text = 0;
    if (text.len == 0)
        return pattern.len == 0;
    while (t < text.len) {
        size_t next;
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = ++p;
            star_text = t;
            if (p == pattern.len)
                return true;
        } else if (p < pattern.len && match_one(pattern, p, text.ptr[t], nocase, &next)) {
            p = next;
            t++;
        } else if (star != SIZE_MAX) {
            p = star;
            t = ++star_text;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}
