/* Scripts of the administrator: some at a time, in order, and again if they fail. */
#include <stdio.h>

#include "base/mem.h"
#include "sentinel/sentinel_impl.h"
#include "sentinel/text_impl.h"

enum {
    JOBS_MAX = 256, /* waiting and running; the oldest that waits is dropped */
    RUNNING_MAX = 16,
    RETRIES_MAX = 10,
    ARGS_MAX = 8,
    EXIT_RETRY = 1,   /* the exit status that asks for another try; others are errors */
    NO_PROCESS = 99,  /* in the place of a signal */
    NOT_EXECUTED = 2, /* in the place of an exit status */
};

struct sentinel_job {
    uint64_t id;
    struct rd_slice argv[ARGS_MAX]; /* on the heap */
    size_t argc;
    bool running;
    int64_t pid, started_ms, due_ms;
    int retries;
};

static void free_words(struct sentinel_job *job)
{
    for (size_t i = 0; i < job->argc; i++)
        rd_free((void *)(uintptr_t)job->argv[i].ptr);
}

static void remove_at(struct sentinel *s, size_t i)
{
    s->n_running -= s->jobs[i].running;
    free_words(&s->jobs[i]);
    s->n_jobs--;
    memmove(&s->jobs[i], &s->jobs[i + 1], (s->n_jobs - i) * sizeof *s->jobs);
}

void sentinel_scripts_free(struct sentinel *s)
{
    while (s->n_jobs > 0)
        remove_at(s, s->n_jobs - 1);
    rd_free(s->jobs);
}

/* ---- new ones ---- */

static void make_room(struct sentinel *s)
{
    for (size_t i = 0; s->n_jobs >= JOBS_MAX && i < s->n_jobs; i++) {
        if (!s->jobs[i].running) {
            remove_at(s, i);
            return;
        }
    }
}

static void schedule(struct sentinel *s, size_t argc, const char *const *argv)
{
    struct sentinel_job job = {.argc = argc};
    make_room(s);
    if (s->jobs == NULL)
        s->jobs = sentinel_alloc(s, JOBS_MAX * sizeof *s->jobs);
    if (s->jobs == NULL || s->n_jobs == JOBS_MAX)
        return;
    bool ok = true;
    for (size_t i = 0; i < argc; i++) {
        job.argv[i] = rd_slice(sentinel_text_dup(rd_slice_str(argv[i])), strlen(argv[i]));
        ok &= job.argv[i].ptr != NULL;
    }
    if (!ok) {
        s->no_memory = true;
        free_words(&job);
        return;
    }
    job.id = ++s->next_job;
    s->jobs[s->n_jobs++] = job;
}

void sentinel_notify(struct sentinel_instance *master, const char *event, const char *text)
{
    const char *const argv[] = {master->notification_script, event, text};
    if (master->notification_script != NULL)
        schedule(master->s, 3, argv);
}

void sentinel_tell_clients(struct sentinel_instance *master, bool leader,
                           const struct sentinel_addr *from, const struct sentinel_addr *to)
{
    struct sentinel *s = master->s;
    char from_port[16], to_port[16];
    if (master->reconfig_script == NULL)
        return;
    snprintf(from_port, sizeof from_port, "%d", from->port);
    snprintf(to_port, sizeof to_port, "%d", to->port);
    const char *const argv[ARGS_MAX] = {
        master->reconfig_script,     master->name, leader ? "leader" : "observer", "start",
        sentinel_addr_host(s, from), from_port,    sentinel_addr_host(s, to),      to_port};
    schedule(s, ARGS_MAX, argv);
}

/* ---- running ---- */

static int64_t delay_ms(const struct sentinel *s, int retries)
{
    return s->times.script_retry_delay << (retries - 1);
}

static void start(struct sentinel *s, struct sentinel_job *job)
{
    job->running = true;
    job->pid = 0;
    job->started_ms = s->now_ms;
    job->retries++;
    s->n_running++;
    sentinel_act(
        s, &(struct sentinel_action){
               .kind = SENTINEL_RUN, .script = job->id, .argv = job->argv, .argc = job->argc});
}

void sentinel_scripts_tick(struct sentinel *s)
{
    for (size_t i = 0; i < s->n_jobs; i++) {
        struct sentinel_job *job = &s->jobs[i];
        if (!job->running && s->n_running < RUNNING_MAX && s->now_ms >= job->due_ms) {
            start(s, job);
        } else if (job->running && job->pid != 0 &&
                   s->now_ms - job->started_ms > s->times.script_max_runtime) {
            sentinel_event_plain(s, SENTINEL_LEVEL_WARNING, "-script-timeout", NULL, "%.*s %lld",
                                 (int)job->argv[0].len, (const char *)job->argv[0].ptr,
                                 (long long)job->pid);
            job->started_ms = s->now_ms; /* once a period */
            sentinel_act(s, &(struct sentinel_action){.kind = SENTINEL_KILL, .script = job->id});
        }
    }
}

static void try_again(struct sentinel *s, size_t i)
{
    struct sentinel_job *job = &s->jobs[i];
    s->n_running--;
    job->running = false;
    job->pid = 0;
    job->started_ms = 0;
    job->due_ms = s->now_ms + delay_ms(s, job->retries);
}

static bool may_retry(const struct sentinel_job *job)
{
    return job->retries < RETRIES_MAX;
}

static size_t find_job(const struct sentinel *s, uint64_t script)
{
    size_t i = 0;
    while (i < s->n_jobs && s->jobs[i].id != script)
        i++;
    return i;
}

static void report(struct sentinel *s, const struct sentinel_job *job, int signal, int status)
{
    sentinel_event_plain(s, SENTINEL_LEVEL_WARNING, "-script-error", NULL, "%.*s %d %d",
                         (int)job->argv[0].len, (const char *)job->argv[0].ptr, signal, status);
}

void sentinel_script_started(struct sentinel *s, uint64_t script, int64_t pid)
{
    size_t i = find_job(s, script);
    if (i == s->n_jobs)
        return;
    if (pid != 0) {
        s->jobs[i].pid = pid;
        sentinel_event_plain(s, SENTINEL_LEVEL_DEBUG, "+script-child", NULL, "%lld",
                             (long long)pid);
        return;
    }
    report(s, &s->jobs[i], NO_PROCESS, 0);
    if (may_retry(&s->jobs[i]))
        try_again(s, i);
    else
        remove_at(s, i);
}

void sentinel_script_refused(struct sentinel *s, uint64_t script)
{
    size_t i = find_job(s, script);
    if (i == s->n_jobs)
        return;
    report(s, &s->jobs[i], 0, NOT_EXECUTED);
    remove_at(s, i);
}

void sentinel_script_ended(struct sentinel *s, int64_t pid, int status, int signal)
{
    size_t i = 0;
    sentinel_event_plain(s, SENTINEL_LEVEL_DEBUG, "-script-child", NULL, "%lld %d %d",
                         (long long)pid, signal, status);
    while (i < s->n_jobs && (!s->jobs[i].running || s->jobs[i].pid != pid))
        i++;
    if (i == s->n_jobs)
        return;
    if ((signal != 0 || status == EXIT_RETRY) && may_retry(&s->jobs[i])) {
        try_again(s, i);
        return;
    }
    if (signal != 0 || status != 0)
        report(s, &s->jobs[i], signal, status);
    remove_at(s, i);
}

size_t sentinel_script_count(const struct sentinel *s)
{
    return s->n_jobs;
}

void sentinel_script_at(const struct sentinel *s, size_t i, struct sentinel_script_state *ret)
{
    const struct sentinel_job *job = &s->jobs[i];
    *ret = (struct sentinel_script_state){
        .argv = job->argv,
        .argc = job->argc,
        .running = job->running,
        .pid = job->pid,
        .run_ms = job->running ? s->now_ms - job->started_ms : 0,
        .delay_ms = !job->running && job->due_ms > s->now_ms ? job->due_ms - s->now_ms : 0,
        .retries = job->retries};
}
