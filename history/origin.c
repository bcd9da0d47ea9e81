#include "history/origin.h"

/* Lower case, separated by blanks, with one at both ends. */
static bool is_in(const char *words, const struct engine_command *command)
{
    size_t len = strlen(command->name);
    for (const char *at = words; (at = strstr(at, command->name)) != NULL; at += len)
        if (at[-1] == ' ' && at[len] == ' ')
            return true;
    return false;
}

/* Sent as they are, or not at all. */
static const char plain[] =
    " append incr incrby decr decrby setrange setbit setnx mset msetnx lpush rpush lpushx rpushx "
    "linsert lset ltrim lrem lpop rpop lmove rpoplpush sadd srem smove sinterstore sunionstore "
    "sdiffstore zadd zrem zincrby zremrangebyrank zremrangebyscore zremrangebylex zunionstore "
    "zinterstore zdiffstore zrangestore zpopmin zpopmax hset hdel hincrby hsetnx hmset rename "
    "renamenx copy move bitop pfadd pfmerge flushall flushdb swapdb sort georadius "
    "georadiusbymember geosearchstore del unlink persist xdel xack xsetid ";

/* What servers send instead. A time in the past removes the key. */
static const struct {
    const char *commands, *products;
} replaced[] = {
    {" set ", " set del unlink "},
    {" setex psetex getset incrbyfloat ", " set "},
    {" getdel delifeq delex ", " del unlink "},
    {" migrate ", " del unlink "},
    {" getex ", " pexpireat persist del unlink "},
    {" expire pexpire expireat pexpireat ", " pexpireat del unlink "},
    {" spop ", " srem del unlink "},
    {" blpop brpop lmpop blmpop ", " lpop rpop "},
    {" brpoplpush blmove ", " rpoplpush lmove "},
    {" bzpopmin bzpopmax zmpop bzmpop ", " zpopmin zpopmax "},
    {" geoadd ", " zadd "},
    {" hincrbyfloat ", " hset "},
    {" hgetdel ", " hdel "},
    {" xadd ", " xadd "},
};

const char *history_products(const struct rebuild_line *line)
{
    for (size_t i = 0; line->command != NULL && i < sizeof replaced / sizeof *replaced; i++)
        if (is_in(replaced[i].commands, line->command))
            return replaced[i].products;
    return " " HISTORY_ANYTHING " ";
}

struct history_product history_product_of(const struct rebuild_line *line)
{
    struct history_product ret = {.name = HISTORY_ANYTHING};
    if (line->command == NULL)
        return ret;
    ret.name = line->command->name;
    ret.by_self = is_in(" del unlink hdel ", line->command);
    ret.delayed = is_in(" lpop rpop lmove rpoplpush zpopmin zpopmax xclaim xgroup|setid "
                        "xgroup|createconsumer ",
                        line->command);
    return ret;
}

bool history_is_plain(const struct rebuild_line *line)
{
    return line->command != NULL &&
           (is_in(plain, line->command) || (is_in(" set ", line->command) && line->argc == 3));
}

bool history_is_once(const struct rebuild_line *line)
{
    return history_is_plain(line) ||
           (strcmp(history_products(line), " " HISTORY_ANYTHING " ") != 0 &&
            !is_in(" spop migrate ", line->command));
}

bool history_is_blocking(const struct rebuild_line *line)
{
    return line->command != NULL && (line->command->flags & ENGINE_CMD_BLOCKING) != 0;
}

bool history_makes_removal(const struct rebuild_line *line)
{
    return line->command != NULL && is_in(" getdel hgetdel migrate delifeq delex ", line->command);
}

bool history_is_script(const struct rebuild_line *line)
{
    return line->command != NULL &&
           is_in(" eval evalsha eval_ro evalsha_ro fcall fcall_ro ", line->command);
}
