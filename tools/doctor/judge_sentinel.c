/* judge_sentinel.c - what Sentinels know of their masters and of each other, and their files. */
#include "tools/doctor/sentinel.h"

#include <errno.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

enum {
    FEW = 3,
    INFO_MS = 30000,     /* how old the last INFO of a replica may be while the master is up, */
    INFO_DOWN_MS = 5000, /* and while it is down */
    PING_MS = 5000,
    LINK_DOWN_FACTOR = 10
};

static const char *show(const char *text)
{
    return text[0] != 0 ? text : "?";
}

#define SHOW(text) rd_show_plain(rd_slice_str(show(text))).s

/* Adds to what was found. */
static void also(struct doctor_verdict *v, const char *fmt, ...) RD_PRINTF(2, 3);
static void also(struct doctor_verdict *v, const char *fmt, ...)
{
    va_list args;
    size_t len = v->state == DOCTOR_FOUND ? strlen(v->figure) : 0;
    if (len > 0)
        len += (size_t)snprintf(v->figure + len, sizeof v->figure - len, "; ");
    v->state = DOCTOR_FOUND;
    if (len >= sizeof v->figure)
        return;
    va_start(args, fmt);
    vsnprintf(v->figure + len, sizeof v->figure - len, fmt, args);
    va_end(args);
}

/* False, with a verdict: nothing is known of masters. */
static bool has_masters(const struct doctor *d, struct doctor_verdict *v)
{
    if (d->sentinel->bad_line[0] != 0)
        doctor_unknown(v, "the file is wrong: %s", SHOW(d->sentinel->bad_line));
    else if (d->sentinel->own.n == 0)
        doctor_none(v, "no master is watched");
    else
        return true;
    return false;
}

static void pass_masters(const struct doctor *d, struct doctor_verdict *v)
{
    if (v->state != DOCTOR_FOUND && v->state != DOCTOR_UNKNOWN)
        doctor_passed(v, "%zu master%s", d->sentinel->own.n, rd_show_plural(d->sentinel->own.n));
}

/* ---- the Sentinel itself ---- */

void doctor_judge_sentinel_config(const struct doctor *d, struct doctor_verdict *v)
{
    if (d->sentinel->bad_line[0] != 0)
        doctor_found(v, "%s", SHOW(d->sentinel->bad_line));
    else
        doctor_passed(v, "%zu master%s", d->sentinel->own.n, rd_show_plural(d->sentinel->own.n));
}

void doctor_judge_tilt(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t tilt;
    if (!doctor_info_u64(d, v, "sentinel_tilt", &tilt))
        return;
    if (tilt != 0)
        doctor_found(v, "sentinel_tilt:1 for %s",
                     rd_show_duration(doctor_info_or_0(d, "sentinel_tilt_since_seconds") * 1000).s);
    else
        doctor_passed(v, "sentinel_tilt:0");
}

/* The file is replaced: this needs its folder. */
void doctor_judge_rewrite(const struct doctor *d, struct doctor_verdict *v)
{
    struct doctor_user user;
    char why[DOCTOR_TEXT_MAX], folder[PATH_MAX];
    const char *file = d->sentinel->file;
    int error;
    if (file[0] == 0) {
        doctor_unknown(v, "INFO of this Sentinel does not contain its file");
        return;
    }
    if (!doctor_find_user(d, &user, why, sizeof why)) {
        doctor_unknown(v, "%s: %s", SHOW(file), why);
        return;
    }
    snprintf(folder, sizeof folder, "%s", file);
    dirname(folder);
    if (!doctor_user_may(&user, file, 2, &error))
        doctor_found(v, "user %u cannot write the file %s: %s", user.uid, SHOW(file),
                     strerror(error));
    else if (!doctor_user_may(&user, folder, 3, &error))
        doctor_found(v, "user %u cannot replace files in the folder %s: %s", user.uid, SHOW(folder),
                     strerror(error));
    else
        doctor_passed(v, "user %u can replace %s", user.uid, SHOW(file));
}

static void judge_script(const struct doctor_user *user, const struct doctor_instance *master,
                         const char *path, struct doctor_verdict *v)
{
    int error;
    if (doctor_user_may(user, path, 1, &error))
        return;
    if (error == ENOTSUP && v->state != DOCTOR_FOUND)
        doctor_unknown(v, "%s of %s: it depends on the folder in which the Sentinel starts",
                       SHOW(path), SHOW(master->name));
    else if (error != ENOTSUP)
        also(v, "user %u cannot run %s of %s: %s", user->uid, SHOW(path), SHOW(master->name),
             strerror(error));
}

static size_t count_scripts(const struct doctor_view *view)
{
    size_t n = 0;
    for (size_t i = 0; i < view->n; i++) {
        for (size_t k = 0; k < DOCTOR_SCRIPTS; k++)
            n += view->masters[i].self.scripts[k][0] != 0;
    }
    return n;
}

void doctor_judge_scripts(const struct doctor *d, struct doctor_verdict *v)
{
    const struct doctor_view *own = &d->sentinel->own;
    size_t n = count_scripts(own);
    struct doctor_user user;
    char why[DOCTOR_TEXT_MAX];
    if (!has_masters(d, v))
        return;
    if (n == 0) {
        doctor_none(v, "there are no scripts");
        return;
    }
    if (!doctor_find_user(d, &user, why, sizeof why)) {
        doctor_unknown(v, "%zu script%s: %s", n, rd_show_plural(n), why);
        return;
    }
    for (size_t i = 0; i < own->n; i++) {
        for (size_t k = 0; k < DOCTOR_SCRIPTS; k++) {
            if (own->masters[i].self.scripts[k][0] != 0)
                judge_script(&user, &own->masters[i].self, own->masters[i].self.scripts[k], v);
        }
    }
    if (v->state == DOCTOR_PASSED)
        doctor_passed(v, "user %u can run %zu script%s", user.uid, n, rd_show_plural(n));
}

/* ---- the other Sentinels ---- */

/* A file has none before the Sentinel has run. */
static bool knows_others(const struct doctor *d, const struct doctor_master *m,
                         struct doctor_verdict *v)
{
    if (d->file == NULL || m->sentinels.n > 0)
        return true;
    if (v->state != DOCTOR_FOUND)
        doctor_unknown(v, "the file names no other Sentinel of %s", SHOW(m->self.name));
    return false;
}

static size_t count_up(const struct doctor_master *m)
{
    size_t n = 1;
    for (size_t i = 0; i < m->sentinels.n; i++)
        n += !doctor_has_flag(&m->sentinels.at[i], "s_down") &&
             !doctor_has_flag(&m->sentinels.at[i], "o_down");
    return n;
}

void doctor_judge_quorum(const struct doctor *d, struct doctor_verdict *v)
{
    if (!has_masters(d, v))
        return;
    for (size_t i = 0; i < d->sentinel->own.n; i++) {
        const struct doctor_master *m = &d->sentinel->own.masters[i];
        size_t all = m->sentinels.n + 1, up = count_up(m), majority = all / 2 + 1;
        if (knows_others(d, m, v) && (up < m->self.quorum || up < majority))
            also(v, "%s: %zu of %zu Sentinels can be reached, quorum %llu, majority %zu",
                 SHOW(m->self.name), up, all, (unsigned long long)m->self.quorum, majority);
    }
    pass_masters(d, v);
}

void doctor_judge_few_sentinels(const struct doctor *d, struct doctor_verdict *v)
{
    if (!has_masters(d, v))
        return;
    for (size_t i = 0; i < d->sentinel->own.n; i++) {
        const struct doctor_master *m = &d->sentinel->own.masters[i];
        if (knows_others(d, m, v) && m->sentinels.n + 1 < FEW)
            also(v, "%s: %zu Sentinel%s", SHOW(m->self.name), m->sentinels.n + 1,
                 rd_show_plural(m->sentinels.n + 1));
    }
    pass_masters(d, v);
}

void doctor_judge_sentinel_down(const struct doctor *d, struct doctor_verdict *v)
{
    if (!has_masters(d, v))
        return;
    for (size_t i = 0; i < d->sentinel->own.n; i++) {
        const struct doctor_master *m = &d->sentinel->own.masters[i];
        for (size_t k = 0; k < m->sentinels.n; k++) {
            const struct doctor_instance *s = &m->sentinels.at[k];
            if (doctor_has_flag(s, "s_down"))
                also(v, "%s: %s:%llu for %s", SHOW(m->self.name), SHOW(s->host),
                     (unsigned long long)s->port, rd_show_duration(s->s_down_ms).s);
        }
    }
    pass_masters(d, v);
}

/* ---- what other Sentinels report ---- */

/* Whether a Sentinel is one of those that watch the master, according to the one that was asked. */
static bool watches(const struct doctor_master *m, const struct doctor_view *other)
{
    for (size_t i = 0; i < m->sentinels.n; i++) {
        if (m->sentinels.at[i].port == other->target.port &&
            strcmp(m->sentinels.at[i].host, other->target.host) == 0)
            return true;
    }
    return false;
}

typedef void compare(struct doctor_verdict *v, const struct doctor_instance *own,
                     const struct doctor_instance *other, const char *name);

/* Calls f for each master and each other Sentinel of it; `other` is NULL if that one does not watch
 * the master. */
static void compare_all(const struct doctor *d, struct doctor_verdict *v, compare *f)
{
    const struct doctor_sentinel *s = d->sentinel;
    const struct doctor_view *silent = NULL;
    if (!has_masters(d, v))
        return;
    for (size_t i = 0; i < s->n_others; i++) {
        const struct doctor_view *view = &s->others[i];
        silent = view->why.code != RD_ERR_OK ? view : silent;
        for (size_t k = 0; k < s->own.n && view->why.code == RD_ERR_OK; k++) {
            const struct doctor_master *own = &s->own.masters[k];
            const struct doctor_master *other = doctor_view_find(view, own->self.name);
            if (watches(own, view))
                f(v, &own->self, other != NULL ? &other->self : NULL, view->target.name);
        }
    }
    if (v->state == DOCTOR_FOUND)
        return;
    if (silent != NULL)
        doctor_unknown(v, "the Sentinel %s: %s", SHOW(silent->target.name), silent->why.text);
    else if (s->n_others == 0)
        doctor_none(v, "no other Sentinel is known and up");
    else
        doctor_passed(v, "%zu other Sentinel%s", s->n_others, rd_show_plural(s->n_others));
}

static void compare_masters(struct doctor_verdict *v, const struct doctor_instance *own,
                            const struct doctor_instance *other, const char *name)
{
    if (other == NULL)
        also(v, "%s does not watch %s", SHOW(name), SHOW(own->name));
    else if (doctor_masters_differ(own, other))
        also(v, "%s: %s:%llu here, %s:%llu at %s", SHOW(own->name), SHOW(own->host),
             (unsigned long long)own->port, SHOW(other->host), (unsigned long long)other->port,
             SHOW(name));
}

void doctor_judge_masters_differ(const struct doctor *d, struct doctor_verdict *v)
{
    compare_all(d, v, compare_masters);
}

static void compare_quorums(struct doctor_verdict *v, const struct doctor_instance *own,
                            const struct doctor_instance *other, const char *name)
{
    if (other != NULL && own->quorum != other->quorum)
        also(v, "%s: quorum %llu here, %llu at %s", SHOW(own->name),
             (unsigned long long)own->quorum, (unsigned long long)other->quorum, SHOW(name));
}

void doctor_judge_quorums_differ(const struct doctor *d, struct doctor_verdict *v)
{
    compare_all(d, v, compare_quorums);
}

static void compare_epochs(struct doctor_verdict *v, const struct doctor_instance *own,
                           const struct doctor_instance *other, const char *name)
{
    if (other != NULL && own->config_epoch != other->config_epoch)
        also(v, "%s: config-epoch %llu here, %llu at %s", SHOW(own->name),
             (unsigned long long)own->config_epoch, (unsigned long long)other->config_epoch,
             SHOW(name));
}

void doctor_judge_epochs_differ(const struct doctor *d, struct doctor_verdict *v)
{
    compare_all(d, v, compare_epochs);
}

static void compare_limits(struct doctor_verdict *v, const struct doctor_instance *own,
                           const struct doctor_instance *other, const char *name)
{
    if (other == NULL)
        return;
    if (own->down_after_ms != other->down_after_ms)
        also(v, "%s: down-after-milliseconds %llu here, %llu at %s", SHOW(own->name),
             (unsigned long long)own->down_after_ms, (unsigned long long)other->down_after_ms,
             SHOW(name));
    if (own->failover_timeout_ms != other->failover_timeout_ms)
        also(v, "%s: failover-timeout %llu here, %llu at %s", SHOW(own->name),
             (unsigned long long)own->failover_timeout_ms,
             (unsigned long long)other->failover_timeout_ms, SHOW(name));
    if (own->parallel_syncs != other->parallel_syncs)
        also(v, "%s: parallel-syncs %llu here, %llu at %s", SHOW(own->name),
             (unsigned long long)own->parallel_syncs, (unsigned long long)other->parallel_syncs,
             SHOW(name));
}

void doctor_judge_limits_differ(const struct doctor *d, struct doctor_verdict *v)
{
    compare_all(d, v, compare_limits);
}

/* ---- masters and replicas ---- */

void doctor_judge_master_down(const struct doctor *d, struct doctor_verdict *v)
{
    if (!has_masters(d, v))
        return;
    for (size_t i = 0; i < d->sentinel->own.n; i++) {
        const struct doctor_instance *m = &d->sentinel->own.masters[i].self;
        if (doctor_has_flag(m, "s_down"))
            also(v, "%s: %s:%llu for %s", SHOW(m->name), SHOW(m->host), (unsigned long long)m->port,
                 rd_show_duration(m->s_down_ms).s);
    }
    pass_masters(d, v);
}

/* Why a failover now would not choose a replica; false: it could. */
static bool cannot_promote(const struct doctor_instance *m, const struct doctor_instance *r,
                           char *why, size_t size)
{
    bool down = doctor_has_flag(m, "s_down");
    uint64_t link_max_ms = m->down_after_ms * LINK_DOWN_FACTOR + (down ? m->s_down_ms : 0);
    if (r->priority == 0)
        snprintf(why, size, "replica-priority 0");
    else if (doctor_has_flag(r, "s_down"))
        snprintf(why, size, "down for %s", rd_show_duration(r->s_down_ms).s);
    else if (doctor_has_flag(r, "disconnected"))
        snprintf(why, size, "no connection");
    else if (r->ping_ms > PING_MS)
        snprintf(why, size, "no answer to PING for %s", rd_show_duration(r->ping_ms).s);
    else if (r->info_ms > (uint64_t)(down ? INFO_DOWN_MS : INFO_MS))
        snprintf(why, size, "no INFO for %s", rd_show_duration(r->info_ms).s);
    else if (r->link_down_ms > link_max_ms)
        snprintf(why, size, "no link to its master for %s, more than %s",
                 rd_show_duration(r->link_down_ms).s, rd_show_duration(link_max_ms).s);
    else
        return false;
    return true;
}

/* How many replicas cannot be promoted, and the reasons, each with the name of its replica. */
static size_t count_unable(const struct doctor_master *m, char *text, size_t size, bool *ret_faults)
{
    char why[DOCTOR_TEXT_MAX];
    size_t n = 0, len = 0;
    text[0] = 0;
    *ret_faults = false;
    for (size_t i = 0; i < m->replicas.n; i++) {
        const struct doctor_instance *r = &m->replicas.at[i];
        if (!cannot_promote(&m->self, r, why, sizeof why))
            continue;
        *ret_faults |= r->priority != 0;
        n++;
        if (len < size)
            len += (size_t)snprintf(text + len, size - len, "%s%s:%llu (%s)", n > 1 ? ", " : "",
                                    SHOW(r->host), (unsigned long long)r->port, why);
    }
    return n;
}

void doctor_judge_no_candidate(const struct doctor *d, struct doctor_verdict *v)
{
    char text[DOCTOR_TEXT_MAX];
    bool faults;
    if (!has_masters(d, v))
        return;
    for (size_t i = 0; i < d->sentinel->own.n; i++) {
        const struct doctor_master *m = &d->sentinel->own.masters[i];
        if (m->replicas.n == 0)
            also(v, "%s has no replica", SHOW(m->self.name));
        else if (count_unable(m, text, sizeof text, &faults) == m->replicas.n)
            also(v, "%s: %s", SHOW(m->self.name), text);
    }
    pass_masters(d, v);
}

/* A priority of 0 is a decision: a note. */
void doctor_judge_unable(const struct doctor *d, struct doctor_verdict *v)
{
    char text[DOCTOR_TEXT_MAX];
    bool faults, any = false;
    if (!has_masters(d, v))
        return;
    for (size_t i = 0; i < d->sentinel->own.n; i++) {
        const struct doctor_master *m = &d->sentinel->own.masters[i];
        if (count_unable(m, text, sizeof text, &faults) > 0)
            also(v, "%s: %s", SHOW(m->self.name), text);
        any |= faults;
    }
    if (v->state == DOCTOR_FOUND && !any)
        v->severity = DOCTOR_NOTE;
    pass_masters(d, v);
}

/* ---- hosts ---- */

/* How many masters have the host of the one at a place; 0: an earlier one has it, too. */
static size_t masters_on_host(const struct doctor_view *own, size_t at)
{
    size_t n = 0;
    for (size_t i = 0; i < own->n; i++) {
        bool same = strcasecmp(own->masters[i].self.host, own->masters[at].self.host) == 0;
        if (same && i < at)
            return 0;
        n += same;
    }
    return n;
}

void doctor_judge_masters_host(const struct doctor *d, struct doctor_verdict *v)
{
    const struct doctor_view *own = &d->sentinel->own;
    if (!has_masters(d, v))
        return;
    for (size_t i = 0; i < own->n; i++) {
        size_t n = masters_on_host(own, i);
        if (n > 1)
            also(v, "%zu of %zu masters are on %s", n, own->n, SHOW(own->masters[i].self.host));
    }
    pass_masters(d, v);
}

void doctor_judge_replicas_host(const struct doctor *d, struct doctor_verdict *v)
{
    if (!has_masters(d, v))
        return;
    for (size_t i = 0; i < d->sentinel->own.n; i++) {
        const struct doctor_master *m = &d->sentinel->own.masters[i];
        size_t n = 0;
        for (size_t k = 0; k < m->replicas.n; k++)
            n += strcasecmp(m->replicas.at[k].host, m->self.host) == 0;
        if (n > 0 && n == m->replicas.n)
            also(v, "%s: the master and all replicas (%zu) are on %s", SHOW(m->self.name), n,
                 SHOW(m->self.host));
    }
    pass_masters(d, v);
}

static size_t sentinels_on(const struct doctor_sentinel *s, const struct doctor_master *m,
                           const char *host)
{
    size_t n = strcasecmp(s->host, host) == 0;
    for (size_t i = 0; i < m->sentinels.n; i++)
        n += strcasecmp(m->sentinels.at[i].host, host) == 0;
    return n;
}

void doctor_judge_sentinels_host(const struct doctor *d, struct doctor_verdict *v)
{
    const struct doctor_sentinel *s = d->sentinel;
    if (!has_masters(d, v))
        return;
    for (size_t i = 0; i < s->own.n; i++) {
        const struct doctor_master *m = &s->own.masters[i];
        size_t all = m->sentinels.n + 1, most = 0, at = 0;
        for (size_t k = 0; k < m->sentinels.n; k++) {
            size_t n = sentinels_on(s, m, m->sentinels.at[k].host);
            at = n > most ? k : at;
            most = n > most ? n : most;
        }
        /* Without them the others are no majority. */
        if (all >= FEW && all - most < all / 2 + 1 && most > 1)
            also(v, "%s: %zu of %zu Sentinels are on %s", SHOW(m->self.name), most, all,
                 SHOW(m->sentinels.at[at].host));
        else if (s->host[0] == 0 && all >= FEW && v->state != DOCTOR_FOUND)
            doctor_unknown(v, "the address of this Sentinel is not known");
    }
    pass_masters(d, v);
}
