/* bench_engine.c - what the data set library takes for a snapshot and for a log, and how long its
 * longest pause is.
 *
 *     bench_engine snapshot FILE [OUT]   loads it, saves it to OUT
 *     bench_engine log FILE              replays it
 *     bench_engine pause KEYS            fills a database, looks at every step
 *
 * Writes lines of a name and a number: seconds (…_s), microseconds (…_us), KiB (…_kib), counts.
 */
#include "aof/reader.h"
#include "base/mem.h"
#include "base/prefault.h"
#include "engine/command.h"
#include "engine/db.h"
#include "engine/session.h"
#include "engine/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { USAGE = 2, TROUBLE = 3 };

static double now(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int64_t unix_us(void)
{
    return (int64_t)(now(CLOCK_REALTIME) * 1e6);
}

/* Wall clock, and processor time of all threads: `name`_s and `name`_cpu_s. */
struct watch {
    double wall;
    double cpu;
};

static struct watch watch_begin(void)
{
    return (struct watch){now(CLOCK_MONOTONIC), now(CLOCK_PROCESS_CPUTIME_ID)};
}

static void watch_end(const struct watch *w, const char *name)
{
    printf("%s_s %.6f\n", name, now(CLOCK_MONOTONIC) - w->wall);
    printf("%s_cpu_s %.6f\n", name, now(CLOCK_PROCESS_CPUTIME_ID) - w->cpu);
}

static void print_memory(const char *name)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%*d %ld", &pages) != 1)
        pages = 0;
    if (f != NULL)
        fclose(f);
    printf("%s_kib %ld\n", name, pages * (sysconf(_SC_PAGESIZE) / 1024));
}

static int trouble(const struct rd_err *err)
{
    char text[4 * RD_ERR_TEXT_MAX];
    fprintf(stderr, "bench_engine: %s\n", rd_err_render(err, text, sizeof text));
    return TROUBLE;
}

static struct engine *new_engine(void)
{
    return engine_new(&(struct engine_opts){.seed = 1});
}

static uint64_t count_keys(struct engine *e)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < engine_config(e)->databases; i++)
        n += engine_db_count(engine_db(e, i));
    return n;
}

/* ---- snapshots ---- */

static bool load(struct engine *e, const char *path, struct rd_err *err)
{
    struct rd_src *src;
    const struct engine_env env = {.now_us = unix_us()};
    if (!rd_src_open_file(&src, path, NULL, err))
        return false;
    struct watch watch = watch_begin();
    struct rd_prefault *ahead = rd_prefault_begin();
    bool ok = engine_load(e, src, NULL, &env, NULL, err);
    rd_prefault_end(ahead);
    watch_end(&watch, "load");
    print_memory("load");
    printf("keys %" PRIu64 "\n", count_keys(e));
    rd_src_close(src);
    return ok;
}

static bool save(struct engine *e, const char *path, struct rd_err *err)
{
    struct rd_sink *sink;
    const struct rd_sink_opts how = RD_SINK_OPTS(.replace = true);
    const struct engine_save_opts opts = {
        .compress = true, .two_threads = true, .now_ms = unix_us() / 1000};
    struct watch watch = watch_begin();
    if (!rd_sink_open_file(&sink, path, &how, err))
        return false;
    if (!engine_save(e, sink, &opts, err)) {
        rd_sink_abort(sink);
        return false;
    }
    bool ok = rd_sink_close(sink, err);
    watch_end(&watch, "save");
    return ok;
}

static int run_snapshot(const char *from, const char *to)
{
    struct rd_err err = {0};
    struct engine *e = new_engine();
    bool ok = load(e, from, &err) && (to == NULL || save(e, to, &err));
    return ok ? 0 : trouble(&err);
}

/* ---- logs ---- */

struct replay {
    struct engine *engine;
    struct engine_session session;
    struct engine_reply reply;
    struct engine_effects effects;
    struct engine_db_ahead ahead;
    int64_t now_us;
    uint64_t n_refused;
};

static void apply(struct replay *replay, const struct resp_command *cmd)
{
    const struct engine_env env = {.now_us = replay->now_us};
    engine_reply_reset(&replay->reply);
    enum engine_status status = engine_apply(replay->engine, &replay->session, cmd->argc, cmd->argv,
                                             &env, &replay->reply, &replay->effects);
    replay->n_refused += status != ENGINE_OK || replay->reply.error;
}

static enum aof_status read_log(struct replay *replay, struct aof_reader *reader)
{
    struct aof_event ev;
    enum aof_status status;
    while ((status = aof_reader_next(reader, &ev)) == AOF_EVENT) {
        if (ev.kind != AOF_COMMAND)
            continue;
        if (ev.entry.ahead.argc > 1)
            engine_db_ahead(engine_db(replay->engine, replay->session.db), &replay->ahead,
                            ev.entry.ahead.argv[1]);
        apply(replay, &ev.entry.command);
    }
    return status;
}

static bool replay_file(struct replay *replay, const char *path, struct rd_err *err)
{
    const struct aof_reader_opts opts =
        AOF_READER_OPTS(.log = &AOF_LOG_OPTS(.whole = true, .ahead = true));
    struct aof_reader *reader;
    struct rd_src *src;
    if (!rd_src_open_file(&src, path, NULL, err))
        return false;
    bool ok = aof_reader_new_file(&reader, src, &opts, err);
    if (ok) {
        ok = read_log(replay, reader) == AOF_END;
        if (!ok)
            rd_err_adopt(err, aof_reader_err(reader));
        aof_reader_free(reader);
    }
    rd_src_close(src);
    return ok;
}

static int run_log(const char *path)
{
    struct rd_err err = {0};
    struct replay replay = {
        .engine = new_engine(), .reply = {.proto = 2, .off = true}, .effects = {.off = true}};
    replay.now_us = unix_us();
    engine_session_init(&replay.session, replay.engine, ENGINE_LOADING);
    struct watch watch = watch_begin();
    struct rd_prefault *ahead = rd_prefault_begin();
    bool ok = replay_file(&replay, path, &err);
    rd_prefault_end(ahead);
    watch_end(&watch, "replay");
    print_memory("replay");
    printf("keys %" PRIu64 "\nrefused %" PRIu64 "\n", count_keys(replay.engine), replay.n_refused);
    engine_session_done(&replay.session);
    engine_reply_done(&replay.reply);
    engine_effects_done(&replay.effects);
    engine_delete(replay.engine);
    return ok ? 0 : trouble(&err);
}

/* ---- pauses ----
 *
 * A step is measured by the time of this thread's processor, so that what else the machine does is
 * not in it; what the system does for this thread (pages, interrupts) is. So is, on a machine that
 * shares its processors with others, what these take from it without its knowing: how long that is,
 * and how often, is seen in steps that compute and ask for no memory, between the others. */

struct pauses {
    double longest;
    double sum;
    uint64_t n;
    uint64_t n_long; /* above the bar of a millisecond */
    double began;
};

static void step_begin(struct pauses *p)
{
    p->began = now(CLOCK_THREAD_CPUTIME_ID);
}

static void step_end(struct pauses *p)
{
    double took = now(CLOCK_THREAD_CPUTIME_ID) - p->began;
    p->longest = took > p->longest ? took : p->longest;
    p->sum += took;
    p->n_long += took > 0.001;
    p->n++;
}

/* Steps of some hundred multiplications, for as long as what was measured before took. */
static void compute(struct pauses *floor, const struct pauses *before)
{
    enum { TURNS = 300 };
    double end = floor->sum + before->sum;
    while (floor->sum < end) {
        volatile uint64_t x = 1;
        step_begin(floor);
        for (int i = 0; i < TURNS; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
        step_end(floor);
    }
}

static void pauses_print(const struct pauses *p, const char *name)
{
    printf("%s_longest_us %.1f\n%s_mean_us %.3f\n", name, p->longest * 1e6, name,
           p->n > 0 ? p->sum * 1e6 / (double)p->n : 0);
    printf("%s_steps %" PRIu64 "\n%s_long_steps %" PRIu64 "\n", name, p->n, name, p->n_long);
    printf("%s_sum_s %.3f\n", name, p->sum);
}

struct world {
    struct engine *engine;
    struct engine_session session;
    struct engine_reply reply;
    struct engine_effects effects;
    struct engine_env env;
};

enum { KEY_MAX = 32, VALUE_MAX = 32 };

static void ask(struct world *w, struct pauses *p, size_t argc, const struct rd_slice *argv)
{
    engine_reply_reset(&w->reply);
    step_begin(p);
    engine_apply(w->engine, &w->session, argc, argv, &w->env, &w->reply, &w->effects);
    step_end(p);
}

static struct rd_slice key_name(char *room, uint64_t i)
{
    return rd_slice(room, (size_t)snprintf(room, KEY_MAX, "key:%" PRIu64, i));
}

/* One key in four expires within the next minute. */
static void fill(struct world *w, uint64_t n, struct pauses *p)
{
    char key[KEY_MAX], value[VALUE_MAX], at[VALUE_MAX];
    for (uint64_t i = 0; i < n; i++) {
        int len = snprintf(value, sizeof value, "value of %" PRIu64, i);
        int64_t when = w->env.now_us / 1000 + 1000 + (int64_t)(i * 7919 % 60000);
        int at_len = snprintf(at, sizeof at, "%" PRId64, when);
        struct rd_slice argv[] = {rd_slice_str("SET"), key_name(key, i),
                                  rd_slice(value, (size_t)len), rd_slice_str("PXAT"),
                                  rd_slice(at, (size_t)at_len)};
        ask(w, p, i % 4 == 0 ? 5 : 3, argv);
    }
}

/* Time continues by a tenth of a second, and the cycle has a millisecond's work to do. */
static void expire(struct world *w, struct pauses *p)
{
    enum { STEPS = 700, STEP_US = 100000, BUDGET_US = 500 };
    int64_t began = w->env.now_us;
    for (int i = 0; i < STEPS; i++) {
        w->env.now_us += STEP_US;
        uint64_t n = 1;
        while (n > 0) {
            step_begin(p);
            n = engine_expire_cycle(w->engine, &w->env, false, BUDGET_US, &w->effects);
            step_end(p);
        }
    }
    w->env.now_us = began;
}

static void resize(struct world *w, struct pauses *p)
{
    enum { STEPS = 20000, BUCKETS = 100 };
    for (int i = 0; i < STEPS; i++) {
        step_begin(p);
        engine_resize_step(w->engine, BUCKETS);
        step_end(p);
    }
}

static void remove_all(struct world *w, uint64_t n, struct pauses *p)
{
    char key[KEY_MAX];
    for (uint64_t i = 0; i < n; i++) {
        struct rd_slice argv[] = {rd_slice_str("DEL"), key_name(key, i)};
        ask(w, p, 2, argv);
    }
}

static int run_pause(uint64_t n)
{
    struct world w = {.engine = new_engine(), .reply = {.proto = 2, .off = true}};
    struct pauses setting = {0}, expiring = {0}, resizing = {0}, removing = {0}, floor = {0};
    rd_mem_even();
    w.effects.off = true;
    w.env.now_us = unix_us();
    engine_session_init(&w.session, w.engine, ENGINE_CLIENT);
    fill(&w, n, &setting);
    compute(&floor, &setting);
    print_memory("keys");
    resize(&w, &resizing);
    expire(&w, &expiring);
    compute(&floor, &expiring);
    remove_all(&w, n, &removing);
    compute(&floor, &removing);
    pauses_print(&setting, "set");
    pauses_print(&resizing, "resize");
    pauses_print(&expiring, "expire");
    pauses_print(&removing, "del");
    pauses_print(&floor, "floor");
    printf("keys %" PRIu64 "\n", count_keys(w.engine));
    engine_session_done(&w.session);
    engine_reply_done(&w.reply);
    engine_effects_done(&w.effects);
    engine_delete(w.engine);
    return 0;
}

int main(int argc, char **argv)
{
    if ((argc == 3 || argc == 4) && strcmp(argv[1], "snapshot") == 0)
        return run_snapshot(argv[2], argv[3]);
    if (argc == 3 && strcmp(argv[1], "log") == 0)
        return run_log(argv[2]);
    if (argc == 3 && strcmp(argv[1], "pause") == 0)
        return run_pause(strtoull(argv[2], NULL, 10));
    fprintf(stderr, "usage: bench_engine snapshot FILE [OUT] | log FILE | pause KEYS\n");
    return USAGE;
}
