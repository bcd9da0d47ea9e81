/* The replica that becomes the master. */
#include <strings.h>

#include "sentinel/sentinel_impl.h"

enum { PINGS_LATE = 5 };

/* How old the reply to INFO may be: it is asked for every second once the master is down. */
static int64_t info_valid_ms(const struct sentinel_instance *m)
{
    const struct sentinel_times *t = &m->s->times;
    return sentinel_is(m, SENTINEL_FLAG_S_DOWN) ? t->ping_period * 5 : t->info_period * 3;
}

/* A replica without a link to its master for much longer than the master is down lacks data. */
static int64_t link_down_max_ms(const struct sentinel_instance *m)
{
    int64_t max_ms = m->down_after_ms * 10;
    if (sentinel_is(m, SENTINEL_FLAG_S_DOWN))
        max_ms += m->s->now_ms - m->s_down_since_ms;
    return max_ms;
}

static bool is_able(const struct sentinel_instance *ri)
{
    const struct sentinel_instance *m = ri->master;
    int64_t now_ms = m->s->now_ms;
    return !sentinel_is_silent(ri) && sentinel_link_up(ri) &&
           now_ms - ri->link->available_ms <= m->s->times.ping_period * PINGS_LATE &&
           ri->priority != 0 && ri->info_ms != 0 && now_ms - ri->info_ms <= info_valid_ms(m) &&
           ri->link_down_ms <= link_down_max_ms(m);
}

/* One that did not report its run id comes last. */
static bool id_before(const char *a, const char *b)
{
    if (a[0] == 0 || b[0] == 0)
        return a[0] != 0;
    return strcasecmp(a, b) < 0;
}

static bool is_better(const struct sentinel_instance *a, const struct sentinel_instance *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->offset != b->offset)
        return a->offset > b->offset;
    return id_before(a->run_id, b->run_id);
}

struct sentinel_instance *sentinel_choose(struct sentinel_instance *master)
{
    struct sentinel_instance *best = NULL;
    for (size_t i = 0; i < master->replicas.n; i++) {
        struct sentinel_instance *ri = master->replicas.at[i];
        if (is_able(ri) && (best == NULL || is_better(ri, best)))
            best = ri;
    }
    return best;
}
