/* Which Sentinel makes the failover: one leader in each epoch.
 *
 * Every Sentinel gives one vote in an epoch, to the first that asks, and saves it before it
 * answers. The leader has the votes of the majority of all Sentinels that are known, and of the
 * quorum.
 */
#include <stdio.h>
#include <strings.h>

#include "base/num.h"
#include "sentinel/sentinel_impl.h"
#include "sentinel/text_impl.h"

/* ---- asking ---- */

static void forget_old(struct sentinel_instance *ri)
{
    if (ri->s->now_ms - ri->asked_ms <= ri->s->times.ask_period * 5)
        return;
    ri->flags &= ~(unsigned)SENTINEL_FLAG_MASTER_DOWN;
    ri->leader[0] = 0;
}

static void ask(struct sentinel_instance *m, struct sentinel_instance *ri, bool force)
{
    const struct sentinel *s = m->s;
    char port[16], epoch[24];
    const struct sentinel_addr *addr = &m->addr;
    forget_old(ri);
    if (!sentinel_is(m, SENTINEL_FLAG_S_DOWN) || !sentinel_link_up(ri) ||
        (!force && s->now_ms - ri->asked_ms < s->times.ask_period))
        return;
    snprintf(port, sizeof port, "%d", addr->port);
    snprintf(epoch, sizeof epoch, "%llu", (unsigned long long)s->epoch);
    const char *const words[] = {"SENTINEL",
                                 "is-master-down-by-addr",
                                 sentinel_addr_host(s, addr),
                                 port,
                                 epoch,
                                 m->step > SENTINEL_STEP_NONE ? s->id : "*"};
    sentinel_send(ri, SENTINEL_SENT_ASK, sizeof words / sizeof *words, words);
}

void sentinel_ask_others(struct sentinel_instance *master, bool force)
{
    for (size_t i = 0; i < master->sentinels.n; i++)
        ask(master, master->sentinels.at[i], force);
}

void sentinel_on_answer(struct sentinel_instance *ri, const struct sentinel_reply *reply)
{
    struct sentinel *s = ri->s;
    if (reply->type != '*' || reply->n_items != 3 || reply->items[0].type != ':' ||
        reply->items[1].type != '$' || reply->items[2].type != ':' || reply->items[2].integer < 0)
        return;
    const struct sentinel_reply *leader = &reply->items[1];
    uint64_t epoch = (uint64_t)reply->items[2].integer;
    ri->asked_ms = s->now_ms;
    if (reply->items[0].integer == 1)
        ri->flags |= SENTINEL_FLAG_MASTER_DOWN;
    else
        ri->flags &= ~(unsigned)SENTINEL_FLAG_MASTER_DOWN;
    if (!sentinel_text_is_id(leader->text))
        return;
    sentinel_text_copy(ri->leader, sizeof ri->leader, leader->text);
    if (ri->leader_epoch != epoch)
        sentinel_log(s, SENTINEL_LEVEL_WARNING, "%s voted for %s %llu", ri->name, ri->leader,
                     (unsigned long long)epoch);
    ri->leader_epoch = epoch;
}

/* ---- voting ---- */

void sentinel_vote(struct sentinel_instance *m, uint64_t epoch, struct rd_slice id)
{
    struct sentinel *s = m->s;
    sentinel_note_epoch(m, epoch);
    if (m->leader_epoch >= epoch || s->epoch > epoch)
        return;
    sentinel_text_copy(m->leader, sizeof m->leader, id);
    m->leader_epoch = epoch;
    s->unsaved = true;
    sentinel_save(s);
    sentinel_event_plain(s, SENTINEL_LEVEL_WARNING, "+vote-for-leader", m, "%s %llu", m->leader,
                         (unsigned long long)m->leader_epoch);
    /* The other has its turn before this Sentinel tries it. */
    if (strcasecmp(m->leader, s->id) != 0)
        m->failover_ms = s->now_ms + (int64_t)sentinel_random(s, SENTINEL_DESYNC_MS);
}

static struct sentinel_instance *at_address(struct sentinel *s, struct rd_slice ip, int port)
{
    struct sentinel_addr addr;
    if (!sentinel_addr_read(s, ip, port, true, &addr))
        return NULL;
    for (size_t i = 0; i < s->masters.n; i++) {
        if (sentinel_addr_same(s, &s->masters.at[i]->addr, &addr))
            return s->masters.at[i];
    }
    return NULL;
}

void sentinel_ask(struct sentinel *s, struct rd_slice ip, int port, uint64_t epoch,
                  struct rd_slice id)
{
    struct sentinel_instance *m = at_address(s, ip, port);
    s->asked_down = m != NULL && !s->tilt && sentinel_is(m, SENTINEL_FLAG_S_DOWN);
    s->asked_vote = m != NULL && sentinel_text_is_id(id);
    sentinel_text_copy(s->asked_master, sizeof s->asked_master,
                       rd_slice_str(m != NULL ? m->name : ""));
    if (s->asked_vote)
        sentinel_vote(m, epoch, id);
}

struct sentinel_answer sentinel_answer(const struct sentinel *s)
{
    struct sentinel_answer answer = {.down = s->asked_down, .leader = "*"};
    for (size_t i = 0; i < s->masters.n && s->asked_vote && !s->unsaved; i++) {
        const struct sentinel_instance *m = s->masters.at[i];
        if (strcmp(m->name, s->asked_master) == 0 && m->leader[0] != 0) {
            answer.leader = m->leader;
            answer.epoch = m->leader_epoch;
        }
    }
    return answer;
}

/* ---- counting ---- */

static unsigned votes_for(const struct sentinel_instance *m, const char *id, uint64_t epoch)
{
    unsigned n = 0;
    for (size_t i = 0; i < m->sentinels.n; i++) {
        const struct sentinel_instance *ri = m->sentinels.at[i];
        n += ri->leader[0] != 0 && ri->leader_epoch == epoch && strcmp(ri->leader, id) == 0;
    }
    return n;
}

/* The Sentinel with the most votes of others; NULL: nobody has one. */
static const char *favourite(const struct sentinel_instance *m, uint64_t epoch)
{
    const char *best = NULL;
    unsigned most = 0;
    for (size_t i = 0; i < m->sentinels.n; i++) {
        const struct sentinel_instance *ri = m->sentinels.at[i];
        unsigned n =
            ri->leader_epoch == epoch && ri->leader[0] != 0 ? votes_for(m, ri->leader, epoch) : 0;
        if (n > most) {
            most = n;
            best = ri->leader;
        }
    }
    return best;
}

bool sentinel_is_leader(struct sentinel_instance *m, uint64_t epoch)
{
    struct sentinel *s = m->s;
    const char *best = favourite(m, epoch);
    sentinel_vote(m, epoch, rd_slice_str(best != NULL ? best : s->id));
    unsigned votes = votes_for(m, s->id, epoch), voters = (unsigned)m->sentinels.n + 1;
    bool own = m->leader_epoch == epoch && strcmp(m->leader, s->id) == 0;
    votes += own && !s->unsaved;
    return votes > voters / 2 && votes >= m->quorum;
}
