/* doctor.c - `redoubt doctor`: checks whether a server, or its folder, is set up so that data
 * survives. */
#include "archive/retain.h"
#include "tools/doctor/sentinel.h"
#include "tools/tools.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

enum { OUTAGE_MS = 60000, SAMPLE_MS = 1000, SAMPLE_MAX_MS = 3600000, MAX_AGE_MS = 25 * 3600000 };

struct run {
    struct doctor doctor;
    struct peer_opts peer;
    const char *target, *rpo, *outage, *sample, *max_age;
};

/* ---- options ---- */

static bool skip_word(struct doctor *d, struct rd_slice word)
{
    bool known = false;
    for (size_t i = 0; i < doctor_n_checks; i++)
        if (rd_slice_is(word, doctor_checks[i].id) ||
            rd_slice_is(word, doctor_group_word(doctor_checks[i].group)))
            known = d->skip[i] = true;
    return known;
}

/* --skip WORD,WORD */
static bool on_skip(void *ctx, const char *value, struct rd_err *err)
{
    while (value != NULL && *value != '\0') {
        size_t len = strcspn(value, ",");
        if (!skip_word(ctx, rd_slice(value, len)))
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no check or group has the name %s",
                              rd_show_quote(rd_slice(value, len)).s);
        value += len + (value[len] == ',');
    }
    return true;
}

static bool get_duration(const char *text, const char *name, uint64_t min_ms, uint64_t *ret,
                         struct rd_err *err)
{
    if (text == NULL)
        return true;
    return (archive_get_duration(rd_slice_str(text), ret) && *ret >= min_ms) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s must be a time such as 90s or 25h",
                      name);
}

static bool get_durations(struct run *run, struct rd_err *err)
{
    struct doctor *d = &run->doctor;
    d->rpo_given = run->rpo != NULL;
    return get_duration(run->rpo, "--rpo", 0, &d->rpo_ms, err) &&
           get_duration(run->outage, "--outage", 1, &d->outage_ms, err) &&
           get_duration(run->sample, "--sample", 1, &d->sample_ms, err) &&
           get_duration(run->max_age, "--max-age", 1, &d->max_age_ms, err) &&
           (d->sample_ms <= SAMPLE_MAX_MS ||
            rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "--sample is at most 1h"));
}

static bool load_target(struct run *run, struct rd_err *err)
{
    struct vault *vault = &run->doctor.vault;
    char name[ARCHIVE_TEXT_MAX];
    char *names[] = {name};
    if (run->target == NULL && vault->config.path == NULL &&
        vault->config.flags.values[BACKUP_KEY_REPOSITORY] == NULL)
        return true;
    run->doctor.with_backup = true;
    if (run->target == NULL)
        return vault_load(vault, NULL, 0, err);
    if (snprintf(name, sizeof name, "%s", run->target) >= (int)sizeof name)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the name of the target is too long");
    return vault_load(vault, names, 1, err);
}

/* ---- what is examined ---- */

static const char *given_or_setting(const char *given, const struct backup_target *target,
                                    enum backup_key key)
{
    return given != NULL ? given : backup_get(target, key);
}

/* The source of the target, with its login, where the command line names no server. */
static const char *source_of_target(struct run *run)
{
    const struct vault *vault = &run->doctor.vault;
    struct peer_opts *peer = &run->peer;
    const struct backup_target *target =
        vault->config.n_targets == 1 ? &vault->config.targets[0] : NULL;
    const char *source = target != NULL ? backup_get(target, BACKUP_KEY_SOURCE) : NULL;
    if (source == NULL || peer_opts_names_one(peer))
        return NULL;
    peer->user = given_or_setting(peer->user, target, BACKUP_KEY_USER);
    peer->pass_file = given_or_setting(peer->pass_file, target, BACKUP_KEY_PASS_FILE);
    peer->connect.cacert = given_or_setting(peer->connect.cacert, target, BACKUP_KEY_CACERT);
    peer->connect.cert = given_or_setting(peer->connect.cert, target, BACKUP_KEY_CERT);
    peer->connect.key = given_or_setting(peer->connect.key, target, BACKUP_KEY_TLS_KEY);
    return source;
}

static bool open_path(struct doctor *d, const char *path, struct rd_err *err)
{
    DIR *dir = opendir(path);
    if (dir == NULL && errno == ENOTDIR)
        return doctor_read_sentinel(d, path, err);
    if (dir == NULL) {
        rd_err_sys(err, errno, "cannot open the folder");
        rd_err_origin(err, path);
        return false;
    }
    closedir(dir);
    d->folder = path;
    return true;
}

static bool collect(struct run *run, const char *what, struct rd_err *err)
{
    struct doctor *d = &run->doctor;
    struct client_target target = {0};
    if (what != NULL && !client_target_is_url(what))
        return open_path(d, what, err);
    bool ok = peer_target_find(&target, &run->peer, what, err);
    if (ok && !doctor_ask(d, &target, err)) {
        peer_hint(d->cli, err);
        ok = false;
    }
    client_target_done(&target);
    return ok;
}

static void judge(struct doctor *d)
{
    for (size_t i = 0; i < doctor_n_checks; i++) {
        const struct doctor_check *check = &doctor_checks[i];
        struct doctor_verdict *v = &d->verdicts[i];
        v->severity = check->severity;
        if ((check->of & doctor_subject(d)) == 0)
            continue;
        if (d->skip[i])
            doctor_skipped(v, "--skip");
        else
            check->judge(d, v);
    }
}

static int examine(struct run *run)
{
    struct doctor *d = &run->doctor;
    struct cli *cli = d->cli;
    struct rd_err err = {0};
    if (cli->n_args > 0 && peer_opts_names_one(&run->peer))
        return cli_usage_error(cli, "-h, -p, -s and -u name the server; do not give another one");
    if (!get_durations(run, &err) || !load_target(run, &err))
        return cli_fail(cli, &err);
    const char *what = cli->n_args > 0 ? cli_url(cli, 0) : source_of_target(run);
    if (what == NULL && !peer_opts_has_one(&run->peer))
        return cli_usage_error(cli, "missing argument: URL, DIR or FILE");
    if (!collect(run, what, &err))
        return cli_fail(cli, &err);
    judge(d);
    return doctor_report(d);
}

int tool_doctor(struct cli *cli, int argc, char **argv)
{
    struct run run = {.doctor = {.cli = cli,
                                 .outage_ms = OUTAGE_MS,
                                 .sample_ms = SAMPLE_MS,
                                 .max_age_ms = MAX_AGE_MS,
                                 .proc = "/proc",
                                 .sys = "/sys"}};
    const struct cli_opt own[] = {
        {.name = "rpo",
         .kind = CLI_STRING,
         .arg = "TIME",
         .string = &run.rpo,
         .help = "the changes that a crash may cost: 60s"},
        {.name = "target",
         .kind = CLI_STRING,
         .arg = "NAME",
         .string = &run.target,
         .help = "check the age of the backups of this target"},
        {.name = "max-age",
         .kind = CLI_STRING,
         .arg = "TIME",
         .string = &run.max_age,
         .help = "of the newest good backup; default 25h"},
        {.name = "outage",
         .kind = CLI_STRING,
         .arg = "TIME",
         .string = &run.outage,
         .help = "that the backlog must last; default 60s"},
        {.name = "sample",
         .kind = CLI_STRING,
         .arg = "TIME",
         .string = &run.sample,
         .help = "how long to measure traffic; default 1s"},
        {.name = "skip",
         .kind = CLI_EACH,
         .arg = "LIST",
         .each = on_skip,
         .ctx = &run.doctor,
         .help = "checks and groups to leave out, by commas"},
        PEER_OPTIONS(&run.peer),
    };
    struct cli_opt opts[VAULT_OPTS + sizeof own / sizeof own[0]] = {0};
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] URL|DIR|FILE|--target NAME",
        .about = "Checks a server or a Sentinel, running or by its files, for what can cost data.\n"
                 "Exit status 1: something is wrong; 8: something was not examined.",
        .opts = opts,
        .max_args = 1,
        .example = "redoubt doctor --rpo 60s redis://localhost",
    };
    int status;
    vault_init(&run.doctor.vault, cli);
    peer_opts_init(&run.peer);
    memcpy(opts, own, sizeof own);
    vault_options(&run.doctor.vault, opts + sizeof own / sizeof own[0],
                  BACKUP_FOR_REPOSITORY | BACKUP_FOR_READING);
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = examine(&run);
    doctor_done(&run.doctor);
    vault_done(&run.doctor.vault);
    peer_opts_done(&run.peer);
    return status;
}
