/* Scripts that a server logged instead of their effects: servers before 5.0, and later ones before
 * 7.0 with `lua-replicate-commands no`.
 *
 * Such a script had to do the same on every server. It got the members of sets and the names of
 * keys in order, the same random numbers in each run, and could not write after a command whose
 * reply depends on chance or on the clock. What it did after that error is part of the data.
 */
#include "engine/script/run_impl.h"

static bool is_one_of(const struct engine_command *command, const char *const *names)
{
    while (*names != NULL && strcmp(command->name, *names) != 0)
        names++;
    return *names != NULL;
}

/* The commands that all these servers called random, and those of streams. */
static bool is_random(const struct engine_command *command)
{
    static const char *const names[] = {"spop",     "srandmember", "sscan",      "zscan",
                                        "hscan",    "randomkey",   "scan",       "lastsave",
                                        "pubsub",   "time",        "xadd",       "xtrim",
                                        "xpending", "xclaim",      "xautoclaim", NULL};
    if (command->container != NULL)
        command = command->container;
    return is_one_of(command, names);
}

static bool is_sorted(const struct engine_command *command)
{
    static const char *const names[] = {"sinter", "sunion", "sdiff", "smembers",
                                        "hkeys",  "hvals",  "keys",  NULL};
    return is_one_of(command, names);
}

const char *script_verbatim_refuses(const struct script_run *run,
                                    const struct engine_command *command)
{
    if (!run->verbatim || !run->random_ran || (command->flags & ENGINE_CMD_WRITE) == 0)
        return NULL;
    return "ERR Write commands not allowed after non deterministic commands. Call "
           "redis.replicate_commands() at the start of your script in order to switch to single "
           "commands replication mode.";
}

/* The array on top of the stack. */
static void sort_array(lua_State *L)
{
    lua_getglobal(L, "table");
    lua_getfield(L, -1, "sort");
    lua_pushvalue(L, -3);
    lua_call(L, 1, 0);
    lua_pop(L, 1);
}

void script_verbatim_ran(lua_State *L, struct script_run *run, const struct engine_command *command)
{
    if (!run->verbatim)
        return;
    run->random_ran |= is_random(command);
    if (lua_istable(L, -1) && is_sorted(command))
        sort_array(L);
}
