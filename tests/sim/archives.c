#include "tests/sim/archives_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "archive/pipe.h"
#include "backup/prune.h"
#include "backup/restore.h"
#include "backup/system.h"
#include "backup/take.h"
#include "backup/verify.h"
#include "tests/sim/world.h"
#include "tests/support/sim_fs.h"

static const char replid[] = "1234567890123456789012345678901234567890";
static const char *const places[BUCKETS] = {"/nowhere/1", "/nowhere/2"};

static char failure[600];

/* The first one counts. */
bool archives_wrong(const char *fmt, ...)
{
    va_list args;
    if (failure[0] != '\0')
        return false;
    va_start(args, fmt);
    vsnprintf(failure, sizeof failure, fmt, args);
    va_end(args);
    return false;
}

uint64_t archives_draw(struct history *h, uint64_t n)
{
    return bucket_draw(&h->none, n);
}

static void write_commands(struct history *h, uint64_t n)
{
    for (; n > 0 && h->master.n < MASTER_COMMANDS; n--) {
        master_write(&h->master, (unsigned)archives_draw(h, MASTER_KEYS));
        world.now_us += (int64_t)archives_draw(h, 5000);
        h->sums->commands++;
    }
}

/* ---- processes ---- */

static struct archive_store *open_place(void *ctx, const char *where, struct rd_err *err)
{
    struct history *h = ctx;
    for (size_t i = 0; i < BUCKETS; i++)
        if (strcmp(where, places[i]) == 0)
            return bucket_open(&h->buckets[i], h->running);
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no such place");
    return NULL;
}

struct bucket_faults *archives_begin_life(struct history *h, struct bucket_faults *f)
{
    struct bucket_faults *before = h->running;
    f->life = ++h->lives;
    f->dead = false;
    h->running = f;
    return before;
}

void archives_end_life(struct history *h, struct bucket_faults *f, struct bucket_faults *before)
{
    for (size_t i = 0; i < BUCKETS; i++)
        bucket_bury(&h->buckets[i], f);
    h->sums->deaths += f->dead;
    f->dead = false;
    h->running = before;
}

/* ---- what there is, without faults ---- */

/* With a catalogue, however few sets there are. */
static bool open_repos(struct history *h, enum backup_mode mode, struct backup_open *ret,
                       struct rd_err *err)
{
    if (!backup_open(&h->config.targets[0], mode, ret, err))
        return false;
    for (size_t i = 0; i < BUCKETS; i++)
        ret->repos[i].catalogue_from = 1;
    return true;
}

bool archives_begin_view(struct view *v, struct history *h)
{
    struct rd_err err = {0};
    v->h = h;
    v->before = archives_begin_life(h, &h->none);
    return open_repos(h, BACKUP_READ, &v->open, &err) ||
           archives_wrong("cannot open: %s", err.text);
}

void archives_end_view(struct view *v)
{
    backup_close(&v->open);
    archives_end_life(v->h, &v->h->none, v->before);
}

static struct known *find_known(struct history *h, const char *id)
{
    for (size_t i = 0; i < h->n_known; i++)
        if (strcmp(h->known[i].id, id) == 0)
            return &h->known[i];
    return NULL;
}

static bool note_sets(struct view *v, size_t i)
{
    struct history *h = v->h;
    struct archive_sets sets;
    struct rd_err err = {0};
    bool good[SETS] = {false};
    if (!archive_repo_list(&v->open.repos[i], &sets, &err))
        return archives_wrong("cannot list: %s", err.text);
    for (size_t k = 0; k < sets.n; k++) {
        const struct archive_set *set = &sets.sets[k];
        h->sums->catalogued += set->catalogued;
        if (!archive_set_good(set))
            continue;
        struct known *known = find_known(h, set->id);
        /* A run that is interrupted here may still withdraw what it has just stored. */
        if (h->nested && (known == NULL || !known->stored[i]))
            continue;
        if (known == NULL && h->n_known < SETS) {
            known = &h->known[h->n_known++];
            *known = (struct known){.offset = set->m.offset};
            snprintf(known->id, sizeof known->id, "%s", set->id);
            h->sums->sets++;
        }
        if (known == NULL)
            continue;
        known->stored[i] = true;
        good[known - h->known] = true;
    }
    archive_sets_done(&sets);
    for (size_t k = 0; k < h->n_known; k++)
        if (h->known[k].stored[i] && !good[k])
            return archives_wrong("the set %s was stored in repository %zu and is lost",
                                  h->known[k].id, i);
    return true;
}

static bool write_buf(struct backup_restore *r, struct rd_err *err)
{
    struct rd_sink *sink;
    rd_buf_reset(r->ctx);
    if (!rd_sink_open_buf(&sink, r->ctx, NULL, err))
        return false;
    if (backup_restore_snapshot(r, &r->set->m.files[0], sink, err))
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

static bool restore(struct view *v, size_t i, const struct backup_want *want, struct rd_buf *ret,
                    struct rd_err *err)
{
    struct backup_open one = {.target = v->open.target, .n = 1};
    struct backup_restore r = {
        .want = *want, .now_ms = backup_now_ms(), .write = write_buf, .ctx = ret};
    one.stores[0] = v->open.stores[i];
    one.repos[0] = v->open.repos[i];
    one.keys = v->open.keys;
    one.keys.ring.keys = one.keys.keys;
    v->h->sums->restores++;
    return backup_restore_from(&r, &one, err);
}

static bool check_set(struct view *v, size_t i, const struct known *known)
{
    const struct backup_want want = {.goal = BACKUP_GOAL_SET, .id = known->id, .ms = INT64_MIN};
    uint8_t state[MASTER_STATE];
    struct rd_buf got = {0};
    struct rd_err err = {0};
    size_t len = master_put_state(&v->h->master, known->offset, state);
    bool ok =
        restore(v, i, &want, &got, &err) ||
        archives_wrong("the set %s of repository %zu is not restored: %s", known->id, i, err.text);
    ok = ok && (rd_slice_eq(rd_buf_slice(&got), rd_slice(state, len)) ||
                archives_wrong("the set %s of repository %zu: other bytes", known->id, i));
    rd_buf_done(&got);
    return ok;
}

static bool check_moment(struct view *v, size_t i, const struct known *base, uint64_t offset)
{
    const struct backup_want want = {
        .goal = BACKUP_GOAL_OFFSET, .offset = offset, .replid = replid, .ms = INT64_MIN};
    struct rd_buf got = {0};
    struct rd_err err = {0};
    v->h->sums->moments++;
    bool ok =
        restore(v, i, &want, &got, &err) ||
        archives_wrong(
            "offset %llu of repository %zu, after the set %s at %llu, is not restored: %s",
            (unsigned long long)offset, i, base->id, (unsigned long long)base->offset, err.text);
    ok = ok && (master_has_state(&v->h->master, rd_buf_slice(&got), offset) ||
                archives_wrong("offset %llu of repository %zu: other data",
                               (unsigned long long)offset, i));
    rd_buf_done(&got);
    return ok;
}

static const struct chain *chain_of(const struct history *h, uint64_t offset)
{
    const struct chain *found = NULL;
    for (size_t i = 0; i < h->n_chains && h->chains[i].from <= offset; i++)
        found = &h->chains[i];
    return found;
}

/* Whether a segment after the set was released before the set was stored. */
static bool is_late(const struct history *h, size_t i, const struct known *base)
{
    for (size_t k = 0; k < SEGMENTS; k++) {
        const struct released *r = &h->released[i][k];
        if (r->n_known > 0 && r->end > base->offset &&
            (r->limited || base >= &h->known[r->n_known - 1]))
            return true;
    }
    return false;
}

static bool check_moments(struct view *v, size_t i, unsigned n)
{
    struct history *h = v->h;
    for (unsigned tries = 0; tries < n && h->n_known > 0; tries++) {
        const struct known *base = &h->known[archives_draw(h, h->n_known)];
        const struct chain *chain = chain_of(h, base->offset);
        if (!base->stored[i] || chain == NULL || chain->shipped < base->offset ||
            is_late(h, i, base))
            continue;
        uint64_t far =
            archives_draw(h, 3) == 0 ? 0 : archives_draw(h, chain->shipped - base->offset + 1);
        if (!check_moment(v, i, base, chain->shipped - far))
            return false;
    }
    return true;
}

static size_t place_of(const struct view *v, const struct archive_repo *repo)
{
    return (size_t)(repo - v->open.repos);
}

/* What a prune has begun to remove may be damaged. */
static void on_set(void *ctx, const struct backup_verified *verified)
{
    const struct view *v = ctx;
    const struct known *known = find_known(v->h, verified->set->id);
    if (verified->verdict != BACKUP_GOOD && known != NULL &&
        known->stored[place_of(v, verified->repo)])
        archives_wrong("verify: the set %s: %s", verified->set->id, verified->err.text);
}

/* "RUN/NUMBER-REPLID/NUMBER-…": the last one is that of the segment. */
static uint64_t number_of(const char *segment)
{
    unsigned long long number = 0;
    const char *last = strrchr(segment, '/');
    return last != NULL && sscanf(last, "/%llu-", &number) == 1 ? number : 0;
}

static void on_segment(void *ctx, const struct backup_verify_stream *stream, const char *segment,
                       const struct rd_err *err)
{
    const struct view *v = ctx;
    uint64_t number = number_of(segment);
    bool hole = number > 0 && number < SEGMENTS &&
                v->h->released[place_of(v, stream->repo)][number - 1].n_known > 0;
    if (!hole)
        archives_wrong("verify: the segment %s: %s", segment, err->text);
}

static bool check_verify(struct view *v, size_t i)
{
    struct rd_err err = {0};
    struct backup_verify verify = {
        .level = BACKUP_LEVEL_PARSE, .verified = on_set, .segment_damaged = on_segment, .ctx = v};
    v->h->sums->verified++;
    return (backup_verify(&verify, &v->open, i, &err) || archives_wrong("verify: %s", err.text)) &&
           failure[0] == '\0';
}

/* all: every set and many moments; else a few. */
static bool look(struct history *h, bool all)
{
    struct view v;
    bool ok = archives_begin_view(&v, h);
    for (size_t i = 0; ok && i < BUCKETS; i++) {
        ok = note_sets(&v, i);
        for (size_t k = 0; ok && k < h->n_known; k++)
            if (h->known[k].stored[i] && (all || archives_draw(h, 8) == 0))
                ok = check_set(&v, i, &h->known[k]);
        ok = ok && check_moments(&v, i, all ? 6 : 2);
        if (ok && (all || archives_draw(h, 8) == 0))
            ok = check_verify(&v, i);
    }
    archives_end_view(&v);
    return ok;
}

/* ---- other processes ---- */

/* Sets that the rules do not keep may disappear from now on, whatever becomes of the run. */
static bool release(struct history *h, const struct archive_retention *rules)
{
    bool limited = rules->stream_ms > 0 || rules->stream_bytes > 0;
    struct view v;
    bool ok = archives_begin_view(&v, h);
    for (size_t i = 0; ok && i < BUCKETS; i++) {
        struct backup_prune plan;
        struct rd_err err = {0};
        ok = note_sets(&v, i) &&
             (backup_prune_plan(&v.open.repos[i], rules, backup_now_ms(), &plan, &err) ||
              archives_wrong("cannot plan: %s", err.text));
        for (size_t k = 0; ok && k < plan.sets.n; k++) {
            struct known *known = find_known(h, plan.sets.sets[k].id);
            if (known != NULL && plan.why[k] == 0)
                known->stored[i] = false;
        }
        for (size_t k = 0; ok && k < plan.stream.n; k++) {
            const struct archive_segment *s = &plan.stream.segments[k];
            for (uint64_t n = s->number; !plan.needed[k] && n <= archive_segment_last(s); n++)
                if (n < SEGMENTS)
                    h->released[i][n] =
                        (struct released){h->n_known + 1, limited, s->start, s->end};
        }
        if (ok)
            backup_prune_done(&plan);
    }
    archives_end_view(&v);
    return ok;
}

static void prune_one(struct backup_open *open, size_t i, const struct archive_retention *rules)
{
    struct backup_prune plan;
    struct rd_err err = {0};
    size_t n;
    if (!backup_lock(NULL, open, i, "sim", &err) ||
        !backup_prune_plan(&open->repos[i], rules, backup_now_ms(), &plan, &err))
        return;
    backup_prune_run(&open->repos[i], &plan, &n, &err);
    backup_prune_done(&plan);
}

static void prune(struct history *h)
{
    struct archive_retention rules = {.n = {0}};
    struct backup_open open;
    struct rd_err err = {0};
    rules.n[ARCHIVE_RULE_COUNT] = 1 + archives_draw(h, 3);
    if (archives_draw(h, 4) == 0)
        rules.stream_ms = 1 + archives_draw(h, 100000);
    if (archives_draw(h, 8) == 0)
        rules.stream_bytes = 1 + archives_draw(h, 20000);
    if (!release(h, &rules))
        return;
    struct bucket_faults *before = archives_begin_life(h, &h->other);
    if (open_repos(h, BACKUP_WRITE, &open, &err)) {
        for (size_t i = 0; i < BUCKETS; i++)
            prune_one(&open, i, &rules);
        backup_close(&open);
    }
    archives_end_life(h, &h->other, before);
    h->sums->prunes++;
}

static bool read_master(void *ctx, struct backup_set *set, struct rd_err *err)
{
    struct history *h = ctx;
    uint8_t state[MASTER_STATE];
    size_t len = master_put_state(&h->master, h->master.offset, state);
    snprintf(set->m.replid, sizeof set->m.replid, "%s", replid);
    set->m.offset = h->master.offset;
    if (!backup_set_file_begin(set, "dump.rdb", ARCHIVE_ROLE_RDB, err))
        return false;
    bool good = rd_sink_write(set->sink, state, len);
    for (const uint8_t *at = state + 11; *at == 0; at += 10)
        set->m.keys++;
    return backup_set_file_end(set, good, err);
}

static void back_up(struct history *h)
{
    const struct backup_job job = {.tool = "sim", .read = read_master, .ctx = h};
    struct backup_open open;
    struct backup_set set = {.open = &open};
    struct rd_err err = {0};
    struct bucket_faults *before = archives_begin_life(h, &h->other);
    if (open_repos(h, BACKUP_WRITE, &open, &err)) {
        backup_take(NULL, &job, &set, &err);
        backup_set_done(&set);
        backup_close(&open);
    }
    archives_end_life(h, &h->other, before);
}

static void run_other(struct history *h)
{
    unsigned rates[] = {0, 10, 80};
    h->other.per_mille = rates[archives_draw(h, 3)];
    h->other.deaths_per_mille = archives_draw(h, 3) == 0 ? 20 : 0;
    switch (archives_draw(h, 4)) {
    case 0:
        prune(h);
        break;
    case 1:
        back_up(h);
        break;
    case 2:
        prune(h);
        archives_merge(h);
        break;
    default:
        archives_merge(h);
    }
}

/* Between two calls of the archiver. */
static void between(void *ctx)
{
    struct history *h = ctx;
    if (h->nested || h->running != &h->archiver || archives_draw(h, 400) != 0)
        return;
    h->nested = true;
    h->sums->between++;
    run_other(h);
    h->nested = false;
}

/* ---- the disk of the archiver ---- */

/* Whether a repository has the bytes of a segment of the disk. */
static bool is_proved(struct view *v, size_t i, uint64_t number,
                      const struct archives_segment *plain)
{
    struct archive_stream stream;
    struct rd_err err = {0};
    bool found = false;
    if (!archive_stream_list(&v->open.repos[i], &stream, &err))
        return false;
    for (size_t k = 0; !found && k < stream.n + stream.n_covered; k++) {
        const struct archive_segment *s =
            k < stream.n ? &stream.segments[k] : &stream.covered[k - stream.n];
        if (s->number <= number && number <= archive_segment_last(s))
            found = archives_has(v, i, s, plain);
    }
    archive_stream_done(&stream);
    return found;
}

static bool prove_segment(struct history *h, const char *name)
{
    struct archives_segment plain;
    struct rd_slice bytes;
    struct view v;
    unsigned long long number, start;
    if (sscanf(name, "%llu-%llu", &number, &start) != 2 || !sim_fs_get(h->files, name, &bytes))
        return true;
    bool ok = archives_sum(bytes, number, start, &plain) && archives_begin_view(&v, h);
    for (size_t i = 0; ok && i < BUCKETS; i++)
        ok = (number < SEGMENTS && h->released[i][number].n_known > 0) ||
             is_proved(&v, i, number, &plain) ||
             archives_wrong("the segment %s is removed, and repository %zu does not have it", name,
                            i);
    archives_end_view(&v);
    return ok;
}

/* What ship.c removes; the writer also removes what it cannot continue. */
static void before_unlink(void *ctx, const char *name)
{
    struct history *h = ctx;
    size_t len = strlen(name);
    if (!h->shipping || len < 4 || strcmp(name + len - 4, ".seg") != 0)
        return;
    prove_segment(h, name);
    h->sums->removed++;
}

static void before_rename(void *ctx, const char *from, const char *to)
{
    (void)ctx;
    if (strstr(to, ".damaged") != NULL)
        archives_wrong("the archiver takes the segment %s for damaged", from);
}

/* The process has ended, or the machine. */
static void restart(struct history *h)
{
    if (archives_draw(h, 3) != 0) {
        sim_fs_after_kill(h->files);
        return;
    }
    struct sim_fs *left =
        sim_fs_after_crash(h->files, SIM_SEEDED, (uint32_t)archives_draw(h, UINT64_C(1) << 32));
    sim_fs_free(h->files);
    h->files = left;
    h->disk.calls = sim_fs_calls(left);
    h->sums->power_failures++;
}

/* ---- the archiver ---- */

/* Continues, or sends everything anew. */
static bool connect(struct history *h, struct rd_err *err)
{
    struct repl_capture_point point;
    struct repl_replid id;
    uint8_t state[MASTER_STATE];
    if (repl_capture_writer_point(h->writer, &point) && point.offset >= h->backlog &&
        point.offset <= h->master.offset) {
        h->sent = point.offset;
        return repl_capture_writer_continue(h->writer, NULL, world.now_us, err);
    }
    repl_replid_get(rd_slice_str(replid), &id);
    size_t len = master_put_state(&h->master, h->master.offset, state),
           half = archives_draw(h, len);
    backup_archiver_uncover(&h->a);
    h->sums->full_syncs++;
    h->sent = h->master.offset;
    if (!repl_capture_writer_begin(h->writer, &id, h->master.offset, world.now_us, err) ||
        !repl_capture_writer_snapshot(h->writer, rd_slice(state, half), err) ||
        !repl_capture_writer_snapshot(h->writer, rd_slice(state + half, len - half), err))
        return false;
    if (h->n_chains < CHAINS)
        h->chains[h->n_chains++] = (struct chain){.from = h->master.offset};
    return repl_capture_writer_snapshot_end(h->writer, world.now_us, err);
}

static bool receive(struct history *h, struct rd_err *err)
{
    char text[MASTER_COMMAND];
    size_t i = 0;
    while (i < h->master.n && h->master.commands[i].end <= h->sent)
        i++;
    for (; i < h->master.n; i++) {
        size_t len = master_put_command(&h->master.commands[i], text);
        if (!repl_capture_writer_append(h->writer, rd_slice(text, len), world.now_us, err))
            return false;
        h->sent = h->master.commands[i].end;
        if (archives_draw(h, 30) == 0)
            break;
    }
    return repl_capture_writer_flush(h->writer, err) &&
           (i < h->master.n || repl_capture_writer_in_time(h->writer, world.now_us, err));
}

static void note_shipped(struct history *h)
{
    uint64_t offset = h->a.shipped.offset;
    for (size_t i = 0; i < h->n_chains; i++) {
        struct chain *chain = &h->chains[i];
        bool last = i + 1 == h->n_chains || offset < h->chains[i + 1].from;
        if (offset >= chain->from && last && offset > chain->shipped)
            chain->shipped = offset;
    }
}

static void ship(struct history *h)
{
    h->shipping = true;
    backup_ship_turn(h->ship);
    h->shipping = false;
    note_shipped(h);
}

static bool archiver_step(struct history *h)
{
    struct rd_err err = {0};
    bool ok = true;
    h->sums->turns++;
    switch (archives_draw(h, 9)) {
    case 8:
        archives_merge_once(h);
        break;
    case 0:
        write_commands(h, archives_draw(h, 40));
        break;
    case 1:
        h->connected = false;
        break;
    case 2:
        world.now_us += (int64_t)archives_draw(h, 70000000);
        break;
    case 3:
        ok = repl_capture_writer_sync(h->writer, &err);
        break;
    case 4:
        backup_base_turn(h->base);
        break;
    default:
        if (!h->connected)
            ok = h->connected = connect(h, &err);
        write_commands(h, archives_draw(h, 10));
        ok = ok && receive(h, &err) && repl_capture_writer_roll(h->writer, &err);
        h->sums->segments += ok;
        if (ok && archives_draw(h, 2) == 0)
            ship(h);
    }
    return ok && !h->archiver.dead && h->a.fatal.code == RD_ERR_OK;
}

static bool begin_archiver(struct history *h, struct rd_err *err)
{
    struct repl_capture_list list;
    h->a.fs = disk_calls(&h->disk);
    h->a.of_log = true; /* no sets besides those of full synchronizations */
    snprintf(h->a.run, sizeof h->a.run, "20270101T000000Z-00000001");
    snprintf(h->a.spool, sizeof h->a.spool, "/spool");
    snprintf(h->a.source, sizeof h->a.source, "sim");
    const struct repl_capture_writer_opts opts = {
        .segment_size = 4096, .block_size = 256, .recorded = true, .lock = &h->lock};
    if (!repl_capture_lock(&h->lock, &h->a.fs, err) || !repl_capture_list(&list, &h->a.fs, err))
        return false;
    h->a.resumes = list.n > 0;
    repl_capture_list_done(&list);
    h->ship = backup_ship_new(&h->a);
    h->base = backup_base_new(&h->a);
    return h->a.fatal.code == RD_ERR_OK &&
           repl_capture_writer_open(&h->writer, &h->a.fs, &opts, err);
}

static void drain(struct history *h)
{
    struct rd_err err = {0};
    if (!repl_capture_writer_roll(h->writer, &err))
        return;
    atomic_store(&h->a.draining, true);
    for (unsigned i = 0; i < 4 && h->a.fatal.code == RD_ERR_OK; i++) {
        ship(h);
        backup_base_turn(h->base);
    }
}

/* Without faults, each segment gets its index. */
static void check_indexes(const struct history *h)
{
    for (size_t i = 0; i < h->a.n_events; i++)
        if (strcmp(h->a.events[i].name, "index") == 0)
            archives_wrong("no index: %s", h->a.events[i].text);
}

static void end_archiver(struct history *h)
{
    if (h->writer != NULL)
        repl_capture_writer_close(h->writer, NULL);
    backup_ship_free(h->ship);
    backup_base_free(h->base);
    backup_archiver_done(&h->a);
    h->writer = NULL;
    h->ship = NULL;
    h->base = NULL;
    h->connected = false;
}

static bool live(struct history *h, unsigned per_mille, unsigned deaths, unsigned steps)
{
    struct rd_err err = {0};
    h->archiver.per_mille = per_mille;
    h->archiver.deaths_per_mille = deaths;
    struct bucket_faults *before = archives_begin_life(h, &h->archiver);
    h->sums->lives++;
    h->writer = NULL;
    backup_archiver_init(&h->a, &h->config.targets[0]);
    bool ok = begin_archiver(h, &err);
    bool clean = per_mille == 0 && deaths == 0;
    if (!ok && clean)
        archives_wrong("a run without faults does not begin: %s %s", err.text, h->a.fatal.text);
    for (unsigned i = 0; ok && i < steps && failure[0] == '\0'; i++) {
        ok = archiver_step(h);
        if (!ok && clean)
            archives_wrong("a run without faults ends: %s", h->a.fatal.text);
    }
    if (ok)
        drain(h);
    if (clean)
        check_indexes(h);
    end_archiver(h);
    archives_end_life(h, &h->archiver, before);
    restart(h);
    return failure[0] == '\0';
}

/* ---- a history ---- */

static bool run(struct history *h)
{
    static const unsigned rates[] = {0, 5, 30, 150};
    for (unsigned i = 0; i < LIVES; i++) {
        if (!live(h, rates[archives_draw(h, 4)], archives_draw(h, 2) == 0 ? 4 : 0, STEPS) ||
            !look(h, false))
            return false;
        if (archives_draw(h, 3) == 0)
            run_other(h);
        if (archives_draw(h, 4) == 0) /* the master drops what it kept */
            h->backlog = h->master.offset + 1;
        write_commands(h, archives_draw(h, 20));
    }
    for (size_t i = 0; i < BUCKETS; i++)
        bucket_settle(&h->buckets[i], "");
    return failure[0] == '\0' && live(h, 0, 0, STEPS) && look(h, true);
}

static bool configure(struct history *h, bool sealed)
{
    const char *grace = archives_draw(h, 2) == 0 ? "0s" : "20s";
    struct rd_err err = {0};
    return backup_config_set(&h->config, BACKUP_KEY_REPOSITORY, places[0], &err) &&
           backup_config_set(&h->config, BACKUP_KEY_REPOSITORY, places[1], &err) &&
           backup_config_set(&h->config, BACKUP_KEY_LOCK_WAIT, "0s", &err) &&
           backup_config_set(&h->config, BACKUP_KEY_MERGE_GRACE, grace, &err) &&
           (!sealed || backup_config_set(&h->config, BACKUP_KEY_KEY_FILE, "/key", &err)) &&
           backup_config_load(&h->config, NULL, NULL, 0, &err);
}

static void add_sums(struct history *h)
{
    const struct bucket_faults *all[] = {&h->archiver, &h->other};
    h->sums->histories++;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        h->sums->faults += all[i]->n_failed;
        h->sums->late += all[i]->n_late;
        h->sums->delayed += all[i]->n_delayed;
    }
}

const char *sim_archives_run(uint64_t seed, struct sim_archives *sums)
{
    static struct history h;
    failure[0] = '\0';
    h = (struct history){.archiver = {.seed = 3 * seed + 1, .delays = 8},
                         .other = {.seed = 5 * seed + 2, .delays = 8},
                         .none = {.seed = 7 * seed + 3},
                         .master.offset = START,
                         .sums = sums};
    h.archiver.between = between;
    h.archiver.ctx = &h;
    h.running = &h.none;
    world = (struct world){
        .now_us = INT64_C(1800000000000000), .seed = seed, .open = open_place, .ctx = &h};
    world.key = "1717171717171717171717171717171717171717171717171717171717171717\n";
    h.files = sim_fs_new();
    h.disk = (struct disk){.calls = sim_fs_calls(h.files),
                           .process = &h.archiver,
                           .before_unlink = before_unlink,
                           .before_rename = before_rename,
                           .ctx = &h};
    for (size_t i = 0; i < BUCKETS; i++)
        h.buckets[i].now_ms = backup_now_ms;
    if (configure(&h, seed % 2 == 1))
        run(&h);
    else
        archives_wrong("no configuration");
    add_sums(&h);
    sim_fs_free(h.files);
    for (size_t i = 0; i < BUCKETS; i++)
        bucket_done(&h.buckets[i]);
    backup_config_done(&h.config);
    return failure[0] == '\0' ? NULL : failure;
}
