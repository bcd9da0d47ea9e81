/* CLIENT PAUSE, and the pauses of a shutdown and a failover: the strictest and longest counts. */
#include "server/session/client/client.h"

static void combine(struct sessions *sessions)
{
    struct clients *all = sessions->clients;
    all->pause_until_ms = 0;
    all->pause_writes_only = true;
    for (unsigned i = 0; i < CLIENT_PAUSES; i++) {
        const struct client_pause *pause = &all->pauses[i];
        if (pause->until_ms == 0)
            continue;
        if (pause->until_ms > all->pause_until_ms)
            all->pause_until_ms = pause->until_ms;
        all->pause_writes_only &= pause->writes_only;
    }
    engine_config(sessions->engine)->standstill = all->pause_until_ms != 0;
}

/* A pause in progress can be made longer and stricter, never shorter or weaker. */
void clients_pause(struct sessions *sessions, enum client_pauser who, int64_t until_ms,
                   bool writes_only)
{
    struct client_pause *pause = &sessions->clients->pauses[who];
    pause->writes_only = writes_only && (pause->until_ms == 0 || pause->writes_only);
    if (until_ms > pause->until_ms)
        pause->until_ms = until_ms;
    combine(sessions);
}

static void run_postponed(struct sessions *sessions)
{
    for (struct client *c = sessions->clients->first; c != NULL; c = c->next)
        if (c->waits == CLIENT_WAITS_PAUSE)
            client_unblock(c);
}

void clients_unpause(struct sessions *sessions, enum client_pauser who)
{
    sessions->clients->pauses[who] = (struct client_pause){.until_ms = 0};
    combine(sessions);
    run_postponed(sessions); /* those that are still paused wait again */
}

void clients_end_pauses(struct sessions *sessions)
{
    struct clients *all = sessions->clients;
    int64_t now_ms = loop_mono_ms(sessions->loop);
    for (unsigned i = 0; i < CLIENT_PAUSES; i++)
        if (all->pauses[i].until_ms != 0 && now_ms >= all->pauses[i].until_ms)
            clients_unpause(sessions, (enum client_pauser)i);
}
