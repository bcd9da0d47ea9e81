#include "server/session/tracking/tracking.h"

#include "engine/mem.h"
#include "engine/script.h"
#include "server/session/dispatch/dispatch.h"
#include "server/session/tracking/tracking_impl.h"

/* ---- the state of a client ---- */

static struct tracker *tracker_of(struct client *c)
{
    if (c->tracker == NULL) {
        c->tracker = engine_scratch_alloc(sizeof *c->tracker);
        *c->tracker = (struct tracker){.client = c, .id = c->id, .n_refs = 1};
    }
    return c->tracker;
}

void tracker_release(struct tracker *t)
{
    if (--t->n_refs > 0)
        return;
    engine_scratch_free(t->prefixes);
    engine_scratch_free(t);
}

void tracking_begin(struct client *c, unsigned options, uint64_t redirect,
                    const struct rd_slice *prefixes, size_t n)
{
    struct tracking *tracking = c->sessions->tracking;
    struct tracker *t = tracker_of(c);
    tracking->n_clients += !tracker_is_on(t);
    t->flags = (t->flags & TRACKING_CACHING) | TRACKING_ON | options;
    t->redirect = redirect;
    if ((options & TRACKING_BCAST) == 0)
        return;
    if (n == 0)
        tracking_prefix_join(tracking, t, rd_slice("", 0));
    for (size_t i = 0; i < n; i++)
        tracking_prefix_join(tracking, t, prefixes[i]);
}

void tracking_end(struct client *c)
{
    struct tracker *t = c->tracker;
    if (!tracker_is_on(t))
        return;
    tracking_prefixes_leave(c->sessions->tracking, t);
    c->sessions->tracking->n_clients--;
    t->flags = 0;
}

void tracking_forget(struct client *c)
{
    if (c->tracker == NULL)
        return;
    tracking_end(c);
    c->tracker->client = NULL;
    tracker_release(c->tracker);
    c->tracker = NULL;
}

unsigned tracking_flags(const struct client *c)
{
    return c->tracker != NULL ? c->tracker->flags : 0;
}

uint64_t tracking_redirect(const struct client *c)
{
    return c->tracker != NULL ? c->tracker->redirect : 0;
}

size_t tracking_prefix_count(const struct client *c)
{
    return c->tracker != NULL ? c->tracker->n_prefixes : 0;
}

struct rd_slice tracking_prefix(const struct client *c, size_t index)
{
    return tracking_prefix_name(c->tracker->prefixes[index]);
}

void tracking_set_caching(struct client *c)
{
    c->tracker->flags |= TRACKING_CACHING;
}

void tracking_next_command(struct client *c, const struct engine_command *command)
{
    if (c->tracker == NULL || c->session.in_multi)
        return;
    if (command != NULL && command->container != NULL)
        command = command->container;
    if (command == NULL || strcmp(command->name, "client") != 0)
        c->tracker->flags &= ~(unsigned)TRACKING_CACHING;
}

size_t tracking_memory(const struct client *c)
{
    const struct tracker *t = c->tracker;
    return t == NULL ? 0 : sizeof *t + t->cap_prefixes * sizeof *t->prefixes;
}

/* ---- what happened ---- */

enum { KEYS_USUAL = 16 };

static bool wants_keys(const struct tracker *t)
{
    bool caching = (t->flags & TRACKING_CACHING) != 0;
    if (!tracker_is_on(t) || (t->flags & TRACKING_BCAST) != 0)
        return false;
    if ((t->flags & TRACKING_OPTIN) != 0)
        return caching;
    return (t->flags & TRACKING_OPTOUT) == 0 || !caching;
}

static void remember(struct client *c, const struct engine_command *command, size_t argc,
                     const struct rd_slice *argv)
{
    struct engine_key usual[KEYS_USUAL], *keys = usual;
    size_t n;
    if (argc > KEYS_USUAL)
        keys = engine_scratch_alloc(argc * sizeof *keys);
    engine_command_keys(command, argv, argc, keys, argc, &n);
    for (size_t i = 0; i < n && i < argc; i++)
        tracking_keys_add(c->sessions->tracking, argv[keys[i].index], c->tracker);
    if (keys != usual)
        engine_scratch_free(keys);
}

/* A script counts when it calls a command that reads. */
void tracking_read(struct client *c, const struct engine_command *command, size_t argc,
                   const struct rd_slice *argv)
{
    if (c->tracker == NULL || !wants_keys(c->tracker) ||
        (command->flags & ENGINE_CMD_READONLY) == 0 || command->group == ENGINE_GROUP_SCRIPTING)
        return;
    const struct engine_running *running = engine_script_running(c->sessions->engine);
    if (running == NULL || running->caller == NULL || running->caller->ctx != c)
        remember(c, command, argc, argv);
    else
        remember(c, dispatch_find(c->sessions, running->argv, running->argc), running->argc,
                 running->argv);
}

/* ---- changes of keys ---- */

/* The engine counts the memory that is allocated and freed while it runs. These tables are not part
 * of the data set, so both functions below restore the counts. */
static void on_touched(void *ctx, struct rd_slice key, unsigned db, bool by_command)
{
    struct sessions *sessions = ctx;
    struct tracking *tracking = sessions->tracking;
    (void)db; /* a key is the same in all databases */
    if (RD_LIKELY(tracking->n_prefixes == 0 && engine_table_count(&tracking->keys) == 0))
        return;
    struct engine_mem before = engine_mem;
    tracking_prefixes_touched(tracking, key, by_command ? sessions->current : NULL);
    tracking_keys_invalidate(tracking, key);
    engine_mem = before;
}

static void on_flushed(void *ctx)
{
    struct sessions *sessions = ctx;
    struct tracking *tracking = sessions->tracking;
    struct client *c = tracking->n_clients > 0 ? sessions->clients->first : NULL;
    for (; c != NULL; c = c->next) {
        if (!tracker_is_on(c->tracker))
            continue;
        if (tracking_waits_for_reply(tracking, c->tracker))
            tracking_send_later(tracking, c->tracker, NULL);
        else
            tracking_send_null(c->tracker);
    }
    struct engine_mem before = engine_mem;
    tracking_keys_clear(tracking);
    engine_mem = before;
}

/* ---- begin and end ---- */

struct tracking *tracking_new(struct sessions *sessions)
{
    struct tracking *tracking = engine_scratch_alloc(sizeof *tracking);
    *tracking = (struct tracking){.sessions = sessions, .chance = sessions->table_seed};
    tracking->listener =
        (struct engine_listener){.touched = on_touched, .flushed = on_flushed, .ctx = sessions};
    engine_listen(sessions->engine, &tracking->listener);
    return tracking;
}

/* All clients were freed before. */
void tracking_free(struct sessions *sessions)
{
    struct tracking *tracking = sessions->tracking;
    engine_unlisten(sessions->engine, &tracking->listener);
    tracking_keys_clear(tracking);
    engine_scratch_free(tracking->prefixes);
    rd_buf_done(&tracking->pending);
    rd_buf_done(&tracking->served_changes);
    engine_scratch_free(tracking);
}

/* ---- figures ---- */

void tracking_figures(const struct sessions *sessions, struct tracking_figures *ret)
{
    const struct tracking *tracking = sessions->tracking;
    *ret = (struct tracking_figures){.clients = tracking->n_clients,
                                     .keys = engine_table_count(&tracking->keys),
                                     .items = tracking->n_items,
                                     .prefixes = tracking->n_prefixes};
}
