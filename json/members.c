#include "json/members.h"

#include "base/digest.h"

enum { HEX_MAX = 2 * RD_DIGEST_MAX + 1, PIECE = 64 };

bool json_members_open(struct json_members *in, struct rd_slice text)
{
    *in = (struct json_members){.first = false};
    in->in.err = &in->err;
    return rd_src_open_memory(&in->in.src, text, NULL, &in->err);
}

void json_members_close(struct json_members *in)
{
    rd_src_close(in->in.src);
    in->in.src = NULL;
}

bool json_members_fail(struct json_members *in, const char *what)
{
    return json_members_ok(in) && json_fail(&in->in, what);
}

bool json_members_begin(struct json_members *in, char c)
{
    in->first = json_members_ok(in) && json_expect(&in->in, c);
    return in->first;
}

/* Whether another member or element follows; consumes the end of the object or array if not. A
 * comma is required before all but the first. */
static bool follows(struct json_members *in, char close)
{
    bool first = in->first;
    in->first = false;
    if (!json_members_ok(in) || json_take(&in->in, close))
        return false;
    return first || json_expect(&in->in, ',');
}

bool json_members_next(struct json_members *in, char *dst, size_t cap)
{
    return follows(in, '}') && json_members_string(in, dst, cap) && json_expect(&in->in, ':');
}

bool json_members_element(struct json_members *in)
{
    return follows(in, ']');
}

/* The source is memory: its window is all that is left. */
static bool take_word(struct json_members *in, const char *word)
{
    size_t len = strlen(word);
    struct rd_src *src = in->in.src;
    if (!json_members_ok(in) || json_peek(&in->in) != (uint8_t)word[0] || rd_src_avail(src) < len ||
        memcmp(src->cur, word, len) != 0)
        return false;
    rd_src_consume(src, len);
    return true;
}

static bool take_string(struct json_members *in, uint8_t *piece, char *dst, size_t cap)
{
    size_t len = 0, n;
    bool more = true;
    if (!json_members_ok(in) || !json_expect(&in->in, '"'))
        return false;
    while (more) {
        if (!json_piece(&in->in, JSON_UTF8, piece, PIECE, &n, &more))
            return false;
        if (memchr(piece, '\0', n) != NULL)
            return json_fail(&in->in, "a NUL in a string");
        if (n >= cap - len)
            return json_fail(&in->in, "a string is too long");
        memcpy(dst + len, piece, n);
        len += n;
    }
    dst[len] = '\0';
    return true;
}

/* Strings can be secret: no copy of one stays on the stack. */
bool json_members_string(struct json_members *in, char *dst, size_t cap)
{
    uint8_t piece[PIECE];
    if (take_word(in, "null")) {
        dst[0] = '\0';
        return true;
    }
    bool ok = take_string(in, piece, dst, cap);
    explicit_bzero(piece, sizeof piece);
    return ok;
}

bool json_members_u64(struct json_members *in, uint64_t *ret)
{
    return json_members_ok(in) && json_u64(&in->in, ret);
}

bool json_members_i64(struct json_members *in, int64_t *ret)
{
    return json_members_ok(in) && json_i64(&in->in, ret);
}

bool json_members_bool(struct json_members *in, bool *ret)
{
    bool yes = take_word(in, "true");
    if (!yes && !take_word(in, "false"))
        return json_members_fail(in, "true or false expected");
    *ret = yes;
    return true;
}

bool json_members_hex(struct json_members *in, uint8_t *dst, size_t size)
{
    char text[HEX_MAX];
    return json_members_string(in, text, sizeof text) &&
           (rd_digest_get_hex(rd_slice_str(text), dst, size) ||
            json_members_fail(in, "hexadecimal digits expected"));
}

bool json_members_skip(struct json_members *in)
{
    return json_members_ok(in) && json_skip(&in->in);
}

bool json_members_end(struct json_members *in)
{
    return json_members_ok(in) && ((json_peek(&in->in) == 0 && rd_src_avail(in->in.src) == 0) ||
                                   json_members_fail(in, "data after the end"));
}
