/* The commands that only a Sentinel has, and those that it answers otherwise than a server. */
#include "server/surface/watch/watch_impl.h"

#include "engine/command_row.h"
#include "server/loop/log.h"

static const struct engine_command rows[] = {
    {ENGINE_ROW(NULL, "sentinel", SENTINEL, SERVER, -2, ADMIN | LATER_VERSION, 0, "2.8.4",
                "Groups the commands of a Sentinel", "by subcommand", LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|ckquorum", SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.4",
                "Reports whether enough Sentinels can be reached for a failover",
                "O(N), N Sentinels", ARGS("master-name") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|config", SENTINEL, SERVER, -3, ADMIN | LATER_VERSION, 0, "6.2.0",
                "Returns or sets a parameter of the Sentinel", "O(1)",
                ARGS("parameter...") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|debug", SENTINEL, SERVER, -2, ADMIN | LATER_VERSION, 0, "7.0.0",
                "Returns or changes the periods of the Sentinel", "O(N), N periods",
                ARGS("[parameter...]") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|failover", SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.4",
                "Fails over a master without asking other Sentinels", "O(N), N replicas",
                ARGS("master-name") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|flushconfig", SENTINEL, SERVER, 2, ADMIN | LATER_VERSION, 0,
                "2.8.4", "Writes the configuration file", "O(N), N masters, replicas and Sentinels",
                LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|get-master-addr-by-name", SENTINEL, SERVER, 3,
                ADMIN | LATER_VERSION, 0, "2.8.4", "Returns the address of a master",
                "O(N), N masters", ARGS("master-name") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|help", SENTINEL, SERVER, 2, LOADING | STALE | LATER_VERSION, 0,
                "2.8.4", "Lists the subcommands of SENTINEL", "O(1)", LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|info-cache", SENTINEL, SERVER, -3, ADMIN | LATER_VERSION, 0,
                "3.2.0", "Returns the last INFO of masters and their replicas",
                "O(N), N masters and replicas", ARGS("master-name...") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|is-master-down-by-addr", SENTINEL, SERVER, 6, ADMIN | LATER_VERSION,
                0, "2.8.4", "Reports whether a master cannot be reached, and votes for a leader",
                "O(N), N masters",
                ARGS("ip port:integer current-epoch:integer runid") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|master", SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.4",
                "Returns the state of a master", "O(N), N masters",
                ARGS("master-name") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|masters", SENTINEL, SERVER, 2, ADMIN | LATER_VERSION, 0, "2.8.4",
                "Returns the state of all masters", "O(N), N masters", LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|monitor", SENTINEL, SERVER, 6, ADMIN | LATER_VERSION, 0, "2.8.4",
                "Begins to monitor a master", "O(N), N masters",
                ARGS("name ip port:integer quorum:integer") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|myid", SENTINEL, SERVER, 2, ADMIN | LATER_VERSION, 0, "6.2.0",
                "Returns the ID of the Sentinel", "O(1)", LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|pending-scripts", SENTINEL, SERVER, 2, ADMIN | LATER_VERSION, 0,
                "2.8.4", "Returns the scripts that run or wait", "O(N), N scripts",
                LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|remove", SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.4",
                "Stops monitoring a master", "O(N), N masters",
                ARGS("master-name") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|replicas", SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "5.0.0",
                "Returns the state of the replicas of a master", "O(N), N replicas",
                ARGS("master-name") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|reset", SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.4",
                "Forgets what is known of masters by a pattern", "O(N), N masters",
                ARGS("pattern") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|sentinels", SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.4",
                "Returns the state of the other Sentinels of a master", "O(N), N Sentinels",
                ARGS("master-name") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|set", SENTINEL, SERVER, -5, ADMIN | LATER_VERSION, 0, "2.8.4",
                "Sets options of a master", "O(N), N options",
                ARGS("master-name option-value(option value)...") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|simulate-failure", SENTINEL, SERVER, -3, ADMIN | LATER_VERSION, 0,
                "3.2.0", "Ends the process at a step of a failover", "O(1)",
                ARGS("mode...") LEVELS(SENTINEL))},
    {ENGINE_ROW(NULL, "sentinel|slaves", SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.0",
                "Returns the state of the replicas of a master", "O(N), N replicas",
                DEPRECATED("5.0.0", "SENTINEL REPLICAS") ARGS("master-name") LEVELS(SENTINEL))},
};

void watch_add_commands(void)
{
    struct rd_err err = {0};
    if (engine_command_add(rows, sizeof rows / sizeof *rows, &err) == NULL)
        log_panic(err.text);
}

void watch_remove_commands(void)
{
    engine_command_remove(engine_command_find(rd_slice_str(rows[0].name)));
}

/* Only hello messages of other Sentinels. */
void watch_cmd_publish(struct dispatch_call *call)
{
    struct watch *w = watch_of(call);
    if (!rd_slice_is(call->argv[1], "__sentinel__:hello")) {
        engine_reply_error(call->reply,
                           "ERR Only HELLO messages are accepted by Sentinel instances.");
        return;
    }
    watch_clock(w);
    sentinel_hello(w->sentinel, call->argv[2]);
    watch_act(w);
    engine_reply_int(call->reply, 1);
}

void watch_cmd_role(struct dispatch_call *call)
{
    const struct sentinel *s = watch_of(call)->sentinel;
    engine_reply_array(call->reply, 2);
    engine_reply_str(call->reply, "sentinel");
    engine_reply_array(call->reply, sentinel_count(s));
    for (size_t i = 0; i < sentinel_count(s); i++)
        engine_reply_str(call->reply, sentinel_name(sentinel_at(s, i)));
}

void watch_register(struct server *srv)
{
    static const struct dispatch_row handlers[] = {
        {"sentinel", watch_cmd_sentinel}, {"publish", watch_cmd_publish}, {"role", watch_cmd_role}};
    dispatch_register(&srv->sessions, handlers, sizeof handlers / sizeof *handlers);
}
