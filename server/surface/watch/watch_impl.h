/* watch_impl.h - the state of a server that is a Sentinel. Private to server/surface/watch/. */
#ifndef SERVER_SURFACE_WATCH_WATCH_IMPL_H
#define SERVER_SURFACE_WATCH_WATCH_IMPL_H

#include "server/session/dispatch/dispatch.h"
#include "server/surface/watch/watch.h"

struct watch_name;
struct watch_peer;
struct watch_script;

struct watch {
    struct server *srv;
    struct sentinel *sentinel;
    uv_timer_t timer;
    bool tick_due;  /* noted by the timer */
    bool acting;    /* in watch_act() */
    bool saved;     /* the last save succeeded */
    bool names_now; /* a name is looked up at once, and the server waits for it */
    struct watch_name *names;
    struct watch_peer *peers;
    struct watch_script *scripts;
};

static inline struct watch *watch_of(const struct dispatch_call *call)
{
    return server_of(call->sessions)->watch;
}

/* Passes the time to the Sentinel; before other functions of it. */
void watch_clock(struct watch *w);

/* Does what the Sentinel asks for. */
void watch_act(struct watch *w);

/* ---- peers.c ---- */

void watch_peers_connect(struct watch *w, const struct sentinel_action *action);
void watch_peers_close(struct watch *w, uint64_t conn);
void watch_peers_send(struct watch *w, const struct sentinel_action *action);
void watch_peers_drop_all(struct watch *w);

/* ---- names.c ---- */

/* The last known address of a host. False: there is none, or not yet. */
bool watch_names_find(struct watch *w, const char *name, char ret_ip[SENTINEL_IP_MAX + 1]);
void watch_names_drop_all(struct watch *w);

/* ---- scripts.c ---- */

void watch_scripts_run(struct watch *w, const struct sentinel_action *action);
void watch_scripts_kill(struct watch *w, uint64_t script);
/* Reports the scripts that have ended: in every tick. */
void watch_scripts_collect(struct watch *w);
void watch_scripts_drop_all(struct watch *w);

/* ---- commands.c, set.c ---- */

void watch_cmd_sentinel(struct dispatch_call *call);
/* NULL: replied that there is none. */
struct sentinel_instance *watch_master(struct dispatch_call *call, struct rd_slice name);

void watch_sub_monitor(struct dispatch_call *call);
void watch_sub_remove(struct dispatch_call *call);
void watch_sub_reset(struct dispatch_call *call);
void watch_sub_failover(struct dispatch_call *call);
void watch_sub_flushconfig(struct dispatch_call *call);
void watch_sub_set(struct dispatch_call *call);
void watch_sub_config(struct dispatch_call *call);
void watch_sub_debug(struct dispatch_call *call);
void watch_sub_simulate(struct dispatch_call *call);

/* ---- table.c ---- */

void watch_remove_commands(void);
void watch_register(struct server *srv);
void watch_cmd_publish(struct dispatch_call *call);
void watch_cmd_role(struct dispatch_call *call);

#endif
