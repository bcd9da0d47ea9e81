/* show_keys.c - which arguments of a command are keys.
 */
#include "base/num.h"
#include "tools/show_impl.h"

#include <strings.h>

enum rule { RANGE, COUNTED, STREAMS, STORE, NONE };

/* RANGE: arguments first, first + step … last (negative: from the end). COUNTED: the argument
 * `first` says how many keys follow it; `last`, when it is not 0, is a key, too. STREAMS: the first
 * half of what follows the word STREAMS. STORE: the first argument, and what follows STORE. */
struct shape {
    const char *names; /* between blanks */
    enum rule rule;
    int first, last, step;
};

static const struct shape shapes[] = {
    {" mset msetnx ", RANGE, 1, -1, 2},
    {" del unlink exists touch watch mget pfcount pfmerge sinterstore sunionstore sdiffstore sinter"
     " sunion sdiff ",
     RANGE, 1, -1, 1},
    {" rename renamenx copy smove rpoplpush brpoplpush lmove blmove geosearchstore zrangestore lcs"
     " ",
     RANGE, 1, 2, 1},
    {" blpop brpop bzpopmin bzpopmax ", RANGE, 1, -2, 1},
    {" bitop ", RANGE, 2, -1, 1},
    {" object xgroup xinfo memory debug ", RANGE, 2, 2, 1},
    {" migrate ", RANGE, 3, 3, 1},
    {" eval evalsha eval_ro evalsha_ro fcall fcall_ro ", COUNTED, 2, 0, 0},
    {" zunionstore zinterstore zdiffstore ", COUNTED, 2, 1, 0},
    {" lmpop zmpop sintercard zunion zinter zdiff zintercard msetex ", COUNTED, 1, 0, 0},
    {" blmpop bzmpop ", COUNTED, 2, 0, 0},
    {" xread xreadgroup ", STREAMS, 0, 0, 0},
    {" sort georadius georadiusbymember ", STORE, 0, 0, 0},
    {" ping select multi exec discard flushall flushdb swapdb script function publish spublish"
     " config auth hello replconf module acl info save bgsave bgrewriteaof client cluster wait"
     " unwatch ",
     NONE, 0, 0, 0},
};

static const struct shape plain = {"", RANGE, 1, 1, 1};

bool show_name_is(struct rd_slice name, const char *word)
{
    return name.len == strlen(word) && strncasecmp((const char *)name.ptr, word, name.len) == 0;
}

static const struct shape *shape_of(struct rd_slice name)
{
    char word[40];
    if (name.len == 0 || name.len > sizeof word - 3)
        return &plain;
    word[0] = word[name.len + 1] = ' ';
    word[name.len + 2] = '\0';
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        word[i + 1] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
        if (c <= ' ')
            return &plain;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strstr(shapes[i].names, word) != NULL)
            return &shapes[i];
    return &plain;
}

/* The argument behind a word; 0: there is none. */
static size_t behind_word(const struct resp_command *cmd, const char *word)
{
    for (size_t i = 1; i + 1 < cmd->argc; i++)
        if (show_name_is(cmd->argv[i], word))
            return i + 1;
    return 0;
}

static bool counted(const struct resp_command *cmd, const struct shape *shape,
                    bool (*fn)(void *ctx, struct rd_slice key), void *ctx)
{
    size_t at = (size_t)shape->first;
    uint64_t n;
    if (shape->last != 0 && (size_t)shape->last < cmd->argc && fn(ctx, cmd->argv[shape->last]))
        return true;
    if (at >= cmd->argc || !rd_num_get_u64(cmd->argv[at], &n))
        return false;
    for (size_t i = at + 1; i < cmd->argc && i - at <= n; i++)
        if (fn(ctx, cmd->argv[i]))
            return true;
    return false;
}

static bool range(const struct resp_command *cmd, size_t first, size_t end, size_t step,
                  bool (*fn)(void *ctx, struct rd_slice key), void *ctx)
{
    for (size_t i = first; i < end && i < cmd->argc; i += step)
        if (fn(ctx, cmd->argv[i]))
            return true;
    return false;
}

bool show_keys(const struct resp_command *cmd, bool (*fn)(void *ctx, struct rd_slice key),
               void *ctx)
{
    const struct shape *shape = shape_of(cmd->argv[0]);
    size_t at;
    switch (shape->rule) {
    case RANGE:
        if (shape->last < 0 && cmd->argc < (size_t)-shape->last)
            return false;
        at = shape->last >= 0 ? (size_t)shape->last + 1 : cmd->argc - (size_t)(-shape->last - 1);
        return range(cmd, (size_t)shape->first, at, (size_t)shape->step, fn, ctx);
    case COUNTED:
        return counted(cmd, shape, fn, ctx);
    case STREAMS:
        at = behind_word(cmd, "streams");
        return at > 0 && range(cmd, at, at + (cmd->argc - at) / 2, 1, fn, ctx);
    case STORE:
        if (range(cmd, 1, 2, 1, fn, ctx))
            return true;
        at = behind_word(cmd, "store");
        if (at == 0)
            at = behind_word(cmd, "storedist");
        return at > 0 && fn(ctx, cmd->argv[at]);
    case NONE:
        break;
    }
    return false;
}
