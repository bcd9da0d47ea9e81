/* report.c - prints verdicts as text or JSON. */
#include "tools/doctor/doctor.h"

#include <stdio.h>

static const char *const states[] = {
#define X(name, word) word,
    DOCTOR_STATES(X)
#undef X
};
static const char *const severities[] = {
#define X(name, word) word,
    DOCTOR_SEVERITIES(X)
#undef X
};

enum { N_STATES = sizeof states / sizeof states[0] };

struct counts {
    uint64_t states[N_STATES];
    uint64_t severities[sizeof severities / sizeof severities[0]]; /* of findings */
};

static bool concerns(const struct doctor *d, size_t i)
{
    return (doctor_checks[i].of & doctor_subject(d)) != 0;
}

static const char *fix_of(const struct doctor *d, size_t i)
{
    return d->verdicts[i].fix[0] != '\0' ? d->verdicts[i].fix : doctor_checks[i].fix;
}

static void count(const struct doctor *d, struct counts *ret)
{
    *ret = (struct counts){0};
    for (size_t i = 0; i < doctor_n_checks; i++) {
        const struct doctor_verdict *v = &d->verdicts[i];
        if (!concerns(d, i))
            continue;
        ret->states[v->state]++;
        if (v->state == DOCTOR_FOUND)
            ret->severities[v->severity]++;
    }
}

/* ---- JSON ---- */

static void put_check(const struct doctor *d, size_t i)
{
    struct json_write *json = &d->cli->out;
    const struct doctor_check *check = &doctor_checks[i];
    const struct doctor_verdict *v = &d->verdicts[i];
    bool found = v->state == DOCTOR_FOUND;
    json_obj(json);
    json_put_str(json, "id", check->id);
    json_put_str(json, "group", doctor_group_word(check->group));
    json_put_str(json, "state", states[v->state]);
    json_put_str(json, "severity", found ? severities[v->severity] : NULL);
    json_put_str(json, "figure", v->figure);
    json_put_str(json, "why", found ? check->why : NULL);
    json_put_str(json, "fix", found ? fix_of(d, i) : NULL);
    json_end(json);
}

static void put_field(const struct doctor *d, const char *key, const char *field)
{
    struct rd_slice text;
    if (!client_info_find(rd_buf_slice(&d->info), field, &text))
        return;
    json_key(&d->cli->out, key);
    json_bytes(&d->cli->out, text);
}

/* Valkey reports the version of Redis that it is compatible with as well. */
static const char *version_field(const struct doctor *d)
{
    struct rd_slice text;
    bool valkey = client_info_find(rd_buf_slice(&d->info), "valkey_version", &text);
    return valkey ? "valkey_version" : "redis_version";
}

static const char *kind_of(const struct doctor *d)
{
    switch (doctor_subject(d)) {
    case DOCTOR_OF_FOLDER:
        return "folder";
    case DOCTOR_OF_SENTINEL:
        return "sentinel";
    case DOCTOR_OF_SENTINEL_FILE:
        return "sentinel-file";
    default:
        return "server";
    }
}

/* The path of what is no running server; else NULL. */
static const char *path_of(const struct doctor *d)
{
    return d->folder != NULL ? d->folder : d->file;
}

static void put_all(const struct doctor *d, const struct counts *n)
{
    struct json_write *json = &d->cli->out;
    json_put_str(json, "kind", kind_of(d));
    json_put_str(json, "name", path_of(d) != NULL ? path_of(d) : d->name);
    put_field(d, "version", version_field(d));
    put_field(d, "role", "role");
    json_key(json, "checks");
    json_array(json);
    for (size_t i = 0; i < doctor_n_checks; i++)
        if (concerns(d, i))
            put_check(d, i);
    json_end(json);
    json_put_uint(json, "errors", n->severities[DOCTOR_ERROR]);
    json_put_uint(json, "warnings", n->severities[DOCTOR_WARNING]);
    json_put_uint(json, "notes", n->severities[DOCTOR_NOTE]);
    json_put_uint(json, "not_examined", n->states[DOCTOR_UNKNOWN]);
}

/* ---- text ---- */

static void print_found(const struct doctor *d, size_t i)
{
    static const enum cli_color colors[] = {CLI_DIM, CLI_YELLOW, CLI_RED};
    const struct doctor_verdict *v = &d->verdicts[i];
    struct cli *cli = d->cli;
    printf("%s%s%s %s: %s\n", cli_color(cli, stdout, colors[v->severity]), severities[v->severity],
           cli_color(cli, stdout, CLI_PLAIN), doctor_checks[i].id, v->figure);
    if (cli->quiet)
        return;
    printf("    %s\n    fix: %s\n", doctor_checks[i].why, fix_of(d, i));
}

static void print_state(const struct doctor *d, enum doctor_state state)
{
    for (size_t i = 0; i < doctor_n_checks; i++)
        if (concerns(d, i) && d->verdicts[i].state == state)
            printf("%s %s: %s\n", states[state], doctor_checks[i].id, d->verdicts[i].figure);
}

static void print_head(const struct doctor *d)
{
    struct rd_slice version = rd_slice_str("?"), role = version;
    if (path_of(d) != NULL) {
        printf("%s\n", rd_show_plain(rd_slice_str(path_of(d))).s);
        return;
    }
    if (d->sentinel != NULL)
        role = rd_slice_str("Sentinel");
    client_info_find(rd_buf_slice(&d->info), version_field(d), &version);
    client_info_find(rd_buf_slice(&d->info), "role", &role);
    printf("%s: version %s, %s\n", rd_show_plain(rd_slice_str(d->name)).s, rd_show_plain(version).s,
           rd_slice_is(role, "slave") ? "replica" : rd_show_plain(role).s);
}

static void print_all(const struct doctor *d, const struct counts *n)
{
    if (!d->cli->quiet)
        print_head(d);
    for (int severity = DOCTOR_ERROR; severity >= DOCTOR_NOTE; severity--)
        for (size_t i = 0; i < doctor_n_checks; i++)
            if (concerns(d, i) && d->verdicts[i].state == DOCTOR_FOUND &&
                (int)d->verdicts[i].severity == severity)
                print_found(d, i);
    print_state(d, DOCTOR_UNKNOWN);
    if (d->cli->verbose > 0)
        for (int state = DOCTOR_PASSED; state < N_STATES; state++)
            if (state != DOCTOR_FOUND && state != DOCTOR_UNKNOWN)
                print_state(d, (enum doctor_state)state);
    if (d->cli->quiet)
        return;
    printf("%llu passed, %llu error%s, %llu warning%s, %llu note%s, %llu not examined, "
           "%llu skipped\n",
           (unsigned long long)n->states[DOCTOR_PASSED],
           (unsigned long long)n->severities[DOCTOR_ERROR],
           rd_show_plural(n->severities[DOCTOR_ERROR]),
           (unsigned long long)n->severities[DOCTOR_WARNING],
           rd_show_plural(n->severities[DOCTOR_WARNING]),
           (unsigned long long)n->severities[DOCTOR_NOTE],
           rd_show_plural(n->severities[DOCTOR_NOTE]),
           (unsigned long long)n->states[DOCTOR_UNKNOWN],
           (unsigned long long)n->states[DOCTOR_SKIPPED]);
}

int doctor_report(const struct doctor *d)
{
    struct counts n;
    count(d, &n);
    if (d->cli->json)
        put_all(d, &n);
    else
        print_all(d, &n);
    if (n.severities[DOCTOR_ERROR] + n.severities[DOCTOR_WARNING] > 0)
        return CLI_FINDINGS;
    return n.states[DOCTOR_UNKNOWN] > 0 ? CLI_PARTIAL : CLI_OK;
}
