#include "server/durable/durable.h"

#include <stdio.h>

#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication.h"
#include "server/session/client/client.h"

static void propagate(struct durable *durable, const struct engine_effects *fx)
{
    persist_append(durable, fx);
    replication_append(durable, fx);
}

bool durable_wants_effects(const struct durable *durable)
{
    return persist_wants_effects(durable) || replication_wants_effects(durable);
}

static int64_t acked(const struct client *c)
{
    return repl_master_acked(c->sessions->durable->replication->master, c->write_offset);
}

static void acks_ended(struct client *c)
{
    c->sessions->durable->replication->n_waiting--;
}

static void set_hooks(struct sessions *sessions)
{
    struct session_hooks *hooks = &sessions->hooks;
    hooks->propagate = propagate;
    hooks->refusal = persist_refusal;
    hooks->limits = replication_limits;
    hooks->diverged = replication_log_latest;
    hooks->make_durable = persist_before_sleep;
    hooks->payload_refused = persist_refused;
    hooks->stream_pending = replica_backlog;
    hooks->stream_unsent = replica_pending;
    hooks->stream_send = replica_send;
    hooks->replica_heard = replica_heard;
    hooks->replica_gone = replication_forget;
    hooks->acked = acked;
    hooks->acks_ended = acks_ended;
}

void durable_init(struct durable *durable, struct sessions *sessions)
{
    durable->sessions = sessions;
    durable->loop = sessions->loop;
    sessions->durable = durable;
    set_hooks(sessions);
    durable->persist = persist_new(durable);
    replication_init(durable);
    sessions->stream_offset = &durable->replication->master->offset;
}

void durable_free(struct durable *durable)
{
    replication_free(durable);
    persist_free(durable->persist);
}
