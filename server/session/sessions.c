#include "server/session/sessions.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "server/loop/log.h"
#include "server/session/acl/acl.h"
#include "server/session/client/client.h"
#include "server/session/dispatch/dispatch.h"
#include "server/session/dispatch/ldb.h"
#include "server/session/dispatch/script.h"
#include "server/session/lazyfree.h"
#include "server/session/monitor.h"
#include "server/session/pubsub.h"
#include "server/session/slowlog.h"
#include "server/session/tracking/tracking.h"

uint64_t sessions_seed(void)
{
    uint64_t value = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    if (getrandom(&value, sizeof value, 0) != sizeof value)
        log_warning("the system provides no random numbers: using the time as the hash seed");
    return value;
}

static unsigned proto_of(void *ctx, const struct engine_session *s)
{
    (void)ctx;
    const struct client *c = s->ctx;
    return c->reply.proto;
}

/* The clocks of the server show the start of the command that a client sent. */
static int64_t wall_clock(void *ctx)
{
    struct timespec now;
    (void)ctx;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void refused(void *ctx, const struct rdb_type *type, const struct rd_err *err)
{
    const struct sessions *sessions = ctx;
    sessions->hooks.payload_refused(type, err);
}

static void make_engine(struct sessions *sessions)
{
    struct engine_config config;
    engine_config_init(&config);
    settings_to_engine(&sessions->loop->settings, &config);
    sessions->engine = engine_new(&(struct engine_opts){
        .seed = sessions_seed(), .table_seed = sessions->table_seed, .config = &config});
    struct engine_hooks hooks = {.trash = lazyfree_take, .clock = wall_clock, .refused = refused};
    dispatch_hooks(sessions, &hooks);
    dispatch_script_hooks(&hooks);
    engine_set_hooks(sessions->engine, &hooks);
    engine_block_set_proto(sessions->engine, proto_of, sessions);
}

void sessions_init(struct sessions *sessions, struct loop *loop)
{
    sessions->loop = loop;
    loop->sessions = sessions;
    sessions->state = SESSIONS_LOADING;
    sessions->table_seed = sessions_seed() | 1;
    sessions->dispatch = dispatch_table_new();
    sessions->debuggers = ldb_processes_new();
    make_engine(sessions);
    sessions->acl = acl_new(settings_level(&loop->settings));
    sessions->clients = clients_new(sessions);
    sessions->pubsub = pubsub_new(sessions);
    sessions->tracking = tracking_new(sessions);
    sessions->slowlog = slowlog_new();
    sessions->monitors = monitors_new();
    clients_accept(loop);
}

void sessions_free(struct sessions *sessions)
{
    pubsub_free(sessions);
    tracking_free(sessions);
    slowlog_free(sessions->slowlog);
    monitors_free(sessions->monitors);
    acl_free(sessions->acl);
    engine_effects_done(&sessions->fx);
    engine_delete(sessions->engine);
    ldb_processes_free(sessions->debuggers);
    dispatch_table_free(sessions->dispatch);
}

void sessions_turn_meanwhile(struct sessions *sessions)
{
    if (sessions->loop->in_loop)
        return;
    loop_events(sessions->loop, UV_RUN_NOWAIT);
    sessions->hooks.turn(sessions);
}
