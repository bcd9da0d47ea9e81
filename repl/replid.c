#include "repl/replid.h"

static bool is_hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool repl_replid_get(struct rd_slice text, struct repl_replid *ret)
{
    if (text.len != REPL_REPLID_LEN)
        return false;
    for (size_t i = 0; i < REPL_REPLID_LEN; i++)
        if (!is_hex(text.ptr[i]))
            return false;
    memcpy(ret->hex, text.ptr, REPL_REPLID_LEN);
    ret->hex[REPL_REPLID_LEN] = 0;
    return true;
}

/* Lower-case letters have this bit, upper-case letters do not, and all decimal digits have it. */
static int fold(char c)
{
    return c | 0x20;
}

bool repl_replid_eq(const struct repl_replid *a, const struct repl_replid *b)
{
    for (size_t i = 0; i < REPL_REPLID_LEN; i++)
        if (a->hex[i] == 0 || b->hex[i] == 0 || fold(a->hex[i]) != fold(b->hex[i]))
            return !repl_replid_is_set(a) && !repl_replid_is_set(b);
    return true;
}
