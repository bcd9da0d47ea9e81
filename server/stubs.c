/* Stands in for parts that are being written; each goes when its part comes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <unistd.h>
#include "server/background.h"
#include "server/commands.h"
#include "server/info.h"
#include "server/latency.h"
#include "server/log.h"
#include "server/monitor.h"
#include "server/persist.h"
#include "server/pubsub.h"
#include "server/slowlog.h"
#include "base/mem.h"
#define W __attribute__((weak))
W void server_cmd_save(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_bgsave(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_bgrewriteaof(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_lastsave(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_shutdown(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}

W struct persist *persist_new(struct server *srv)
{
    (void)srv;
    return rd_calloc(1, sizeof(struct persist));
}
W bool persist_load(struct server *srv)
{
    (void)srv;
    return true;
}
W void persist_append(struct server *srv, const struct engine_effects *fx)
{
    (void)srv;
    (void)fx;
}
W bool persist_wants_effects(const struct server *srv)
{
    (void)srv;
    return false;
}
W void persist_before_sleep(struct server *srv)
{
    (void)srv;
}
W void persist_cron(struct server *srv)
{
    (void)srv;
}
W void persist_child_ended(struct server *srv, int pid, int status)
{
    (void)srv;
    (void)pid;
    (void)status;
}
W const char *persist_refusal(const struct server *srv)
{
    (void)srv;
    return NULL;
}
W bool persist_shutdown(struct server *srv, bool a, bool b, bool c)
{
    (void)srv;
    (void)a;
    (void)b;
    (void)c;
    return true;
}
W uint64_t persist_memory(const struct server *srv)
{
    (void)srv;
    return 0;
}
W bool persist_set_appendonly(struct server *srv, bool on)
{
    (void)srv;
    (void)on;
    return true;
}
W void persist_settings_changed(struct server *srv)
{
    (void)srv;
}
W uint64_t persist_aof_size(const struct server *srv)
{
    (void)srv;
    return 0;
}
W uint64_t persist_aof_base_size(const struct server *srv)
{
    (void)srv;
    return 0;
}
W uint64_t persist_aof_buffered(const struct server *srv)
{
    (void)srv;
    return 0;
}
W const char *persist_debug_reload(struct server *srv, bool a, bool b, bool c)
{
    (void)srv;
    (void)a;
    (void)b;
    (void)c;
    return "ERR not yet";
}
W const char *persist_debug_loadaof(struct server *srv)
{
    (void)srv;
    return "ERR not yet";
}
