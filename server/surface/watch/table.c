/* The commands that a Sentinel answers otherwise than a server. */
#include "server/surface/watch/watch_impl.h"

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
    static const struct dispatch_row rows[] = {
        {"sentinel", watch_cmd_sentinel}, {"publish", watch_cmd_publish}, {"role", watch_cmd_role}};
    dispatch_register(&srv->sessions, rows, sizeof rows / sizeof *rows);
}
