/* facts.c - looks up the server's answers, and fills in verdicts. */
#include "tools/doctor/doctor.h"

#include "base/num.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- verdicts ---- */

#define SET_VERDICT(name, the_state)                                                               \
    void name(struct doctor_verdict *v, const char *fmt, ...)                                      \
    {                                                                                              \
        va_list args;                                                                              \
        v->state = the_state;                                                                      \
        va_start(args, fmt);                                                                       \
        vsnprintf(v->figure, sizeof v->figure, fmt, args);                                         \
        va_end(args);                                                                              \
    }

SET_VERDICT(doctor_found, DOCTOR_FOUND)
SET_VERDICT(doctor_passed, DOCTOR_PASSED)
SET_VERDICT(doctor_unknown, DOCTOR_UNKNOWN)
SET_VERDICT(doctor_none, DOCTOR_NONE)
SET_VERDICT(doctor_skipped, DOCTOR_SKIPPED)

void doctor_fix(struct doctor_verdict *v, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(v->fix, sizeof v->fix, fmt, args);
    va_end(args);
}

/* ---- INFO ---- */

bool doctor_info(const struct doctor *d, struct doctor_verdict *v, const char *name,
                 struct rd_slice *ret)
{
    if (client_info_find(rd_buf_slice(&d->info), name, ret))
        return true;
    doctor_unknown(v, "INFO of this server has no field %s", name);
    return false;
}

bool doctor_info_u64(const struct doctor *d, struct doctor_verdict *v, const char *name,
                     uint64_t *ret)
{
    if (client_info_u64(rd_buf_slice(&d->info), name, ret))
        return true;
    doctor_unknown(v, "the field %s of INFO is not a number", name);
    return false;
}

uint64_t doctor_info_or_0(const struct doctor *d, const char *name)
{
    uint64_t value;
    return client_info_u64(rd_buf_slice(&d->info), name, &value) ? value : 0;
}

unsigned doctor_version(const struct doctor *d)
{
    return client_info_version(rd_buf_slice(&d->info), "redis_version");
}

bool doctor_is_master(const struct doctor *d)
{
    struct rd_slice role;
    return client_info_find(rd_buf_slice(&d->info), "role", &role) && rd_slice_is(role, "master");
}

uint64_t doctor_replicas(const struct doctor *d)
{
    return doctor_info_or_0(d, "connected_slaves");
}

bool doctor_traffic(const struct doctor *d, struct doctor_verdict *v, uint64_t *ret)
{
    uint64_t before, after;
    if (!doctor_info_u64(d, v, "master_repl_offset", &before))
        return false;
    if (!client_info_u64(rd_buf_slice(&d->later), "master_repl_offset", &after) ||
        d->between_ms == 0 || after < before) {
        doctor_unknown(v, "the traffic could not be measured");
        return false;
    }
    uint64_t bytes = after - before;
    *ret = bytes < UINT64_MAX / 1000 ? bytes * 1000 / d->between_ms : bytes;
    return true;
}

/* ---- CONFIG ---- */

/* Names that changed with Redis 5, before and after. */
static const char *const renamed[][2] = {
    {"min-slaves-to-write", "min-replicas-to-write"},
    {"min-slaves-max-lag", "min-replicas-max-lag"},
    {"repl-ping-slave-period", "repl-ping-replica-period"},
    {"slave-read-only", "replica-read-only"},
};

static const struct client_peer_item *find_setting(const struct doctor *d, const char *name)
{
    if (!d->has_config || d->config.n == 0)
        return NULL;
    const struct client_peer_item *item = client_peer_item_find(d->config.items, name);
    for (size_t i = 0; item == NULL && i < sizeof renamed / sizeof renamed[0]; i++)
        if (strcmp(renamed[i][1], name) == 0)
            item = client_peer_item_find(d->config.items, renamed[i][0]);
    return item;
}

bool doctor_config(const struct doctor *d, struct doctor_verdict *v, const char *name,
                   struct rd_slice *ret)
{
    const struct client_peer_item *item = find_setting(d, name);
    if (item != NULL) {
        *ret = item->text;
        return true;
    }
    if (d->has_config)
        doctor_none(v, "the server has no setting %s", name);
    else
        doctor_unknown(v, "%s cannot be read: %s", name, d->no_config);
    return false;
}

bool doctor_config_u64(const struct doctor *d, struct doctor_verdict *v, const char *name,
                       uint64_t *ret)
{
    struct rd_slice text;
    if (!doctor_config(d, v, name, &text))
        return false;
    if (rd_num_get_size(text, ret))
        return true;
    doctor_unknown(v, "%s is not a number", name);
    return false;
}

bool doctor_config_is(const struct doctor *d, const char *name, const char *value)
{
    const struct client_peer_item *item = find_setting(d, name);
    return item != NULL && rd_slice_is(item->text, value);
}

/* Takes the next number of a list that blanks separate. */
static bool next_number(struct rd_slice *text, uint64_t *ret)
{
    while (text->len > 0 && text->ptr[0] == ' ')
        *text = rd_slice(text->ptr + 1, text->len - 1);
    size_t len = 0;
    while (len < text->len && text->ptr[len] != ' ')
        len++;
    bool ok = rd_num_get_u64(rd_slice(text->ptr, len), ret);
    *text = rd_slice(text->ptr + len, text->len - len);
    return ok;
}

size_t doctor_save_points(struct rd_slice text, uint64_t *ret_seconds)
{
    uint64_t seconds, changes;
    size_t n = 0;
    *ret_seconds = 0;
    while (next_number(&text, &seconds) && next_number(&text, &changes)) {
        if (changes <= 1 && (*ret_seconds == 0 || seconds < *ret_seconds))
            *ret_seconds = seconds;
        n++;
    }
    return n;
}
