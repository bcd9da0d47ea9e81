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
W void server_cmd_client(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_subscribe(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_unsubscribe(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_psubscribe(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_punsubscribe(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_ssubscribe(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_sunsubscribe(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_publish(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_spublish(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_pubsub(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
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
W void server_cmd_debug(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_info(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_memory(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_slowlog(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_latency(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_monitor(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_lolwut(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_role(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_wait(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_replicaof(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_failover(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_sync(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_replconf(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_migrate(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_function(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_script(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_module(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR not yet");
}
W void server_cmd_cluster(struct dispatch_call *call)
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
W struct pubsub *pubsub_new(struct server *srv)
{
    (void)srv;
    return NULL;
}
W void pubsub_forget(struct client *c)
{
    (void)c;
}
W void pubsub_keyspace_event(void *ctx, enum engine_notify k, const char *e, struct rd_slice key,
                             unsigned db)
{
    (void)ctx;
    (void)k;
    (void)e;
    (void)key;
    (void)db;
}
W struct slowlog *slowlog_new(void)
{
    return NULL;
}
W void slowlog_ran(struct server *srv, struct client *c, size_t argc, const struct rd_slice *argv,
                   uint64_t us)
{
    (void)srv;
    (void)c;
    (void)argc;
    (void)argv;
    (void)us;
}
W struct latency *latency_new(void)
{
    return NULL;
}
W void latency_add(struct server *srv, const char *e, int64_t ms)
{
    (void)srv;
    (void)e;
    (void)ms;
}
W void monitor_command(struct server *srv, struct client *c, const struct engine_command *m,
                       size_t argc, const struct rd_slice *argv)
{
    (void)srv;
    (void)c;
    (void)m;
    (void)argc;
    (void)argv;
}
W void monitor_forget(struct client *c)
{
    (void)c;
}
W void client_describe(const struct client *c, struct rd_buf *out)
{
    rd_buf_printf(out, "id=%u", (unsigned)c->id);
}
W uint64_t info_used_memory(struct server *srv)
{
    return engine_memory(srv->engine, NULL);
}
W void stats_init(struct stats *s)
{
    s->by_command = rd_calloc(engine_command_count(), sizeof *s->by_command);
}
W void stats_ran(struct stats *s, const struct engine_command *c, uint64_t us, bool f, bool t)
{
    (void)f;
    (void)t;
    s->by_command[c->id].calls++;
    s->by_command[c->id].us += us;
}
W void stats_error(struct stats *s, const char *t)
{
    (void)t;
    s->total_errors++;
}
W void stats_sample(struct stats *s, enum stats_metric m, uint64_t n, int64_t u)
{
    (void)s;
    (void)m;
    (void)n;
    (void)u;
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
W void stats_reset(struct stats *stats)
{
    (void)stats;
}
W void info_text(struct server *srv, size_t n, const struct rd_slice *x, struct rd_buf *out)
{
    (void)srv;
    (void)n;
    (void)x;
    (void)out;
}
