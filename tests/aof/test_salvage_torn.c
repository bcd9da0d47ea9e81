/* Random damage to logs in which the position of each command is known: what is kept is what was
 * written, and all that is intact is kept if its start can be known, up to commands between two
 * damages that are close. test_salvage_bar.c compares contents. Here the losses that are reported
 * must be those of the output, and the databases and transactions must be right.
 *
 * REDOUBT_DAMAGES: how many damages. REDOUBT_SEED repeats a run, and REDOUBT_ONLY one damage of it,
 * which is described, and whose bytes are written to REDOUBT_DAMAGED.
 */
#include "aof/salvage.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/aof/torn_log.h"

enum { DAMAGES = 600, LOSSES = 256 };

struct bar {
    uint64_t damages, broken, needed, kept;
    uint64_t lost;     /* intact commands whose start can be known */
    uint64_t invented; /* no command of a log begins there */
    uint64_t split;    /* parts of a transaction */
    uint64_t moved;    /* to another database, without a word */
    uint64_t untrue;   /* "nothing is lost", or an output that is not what is reported */
    uint64_t foreign;  /* whole to every reader, but made of several commands */
    uint64_t needed_by[TORN_KINDS], lost_by[TORN_KINDS], invented_by[TORN_KINDS];
    bool only; /* one damage, which is described */
};

struct run {
    const struct torn_log *log;
    struct aof_loss losses[LOSSES];
    size_t n_losses, doubts;
    struct rd_buf out;
    struct aof_salvage_result res;
    size_t at, added; /* in `out`; SELECTs that were passed */
};

static void on_loss(void *ctx, const struct aof_loss *loss)
{
    struct run *run = ctx;
    cr_assert_lt(run->n_losses, LOSSES);
    run->losses[run->n_losses++] = *loss;
}

static void on_doubt(void *ctx, const struct aof_doubt *doubt)
{
    struct run *run = ctx;
    (void)doubt;
    run->doubts++;
}

static void salvage(struct run *run)
{
    const struct aof_salvage_opts opts =
        AOF_SALVAGE_OPTS(.loss = on_loss, .doubt = on_doubt, .ctx = run);
    struct rd_src *src, *copy;
    struct rd_sink *sink;
    struct rd_err err = {0};
    run->res = AOF_SALVAGE_RESULT();
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&run->log->bytes), NULL, NULL));
    cr_assert(rd_src_open_memory(&copy, rd_buf_slice(&run->log->bytes), NULL, NULL));
    cr_assert(rd_sink_open_buf(&sink, &run->out, NULL, NULL));
    cr_assert(aof_salvage_file(src, copy, sink, "a", false, &opts, &run->res, &err), "%s",
              err.text);
    cr_assert(rd_sink_close(sink, NULL));
    rd_src_close(copy);
    rd_src_close(src);
}

/* Whether a loss covers [from, to) or a part of it. */
static bool is_lost(const struct run *run, size_t from, size_t to)
{
    for (size_t i = 0; i < run->n_losses; i++)
        if (run->losses[i].from < to && run->losses[i].to > from)
            return true;
    return false;
}

static size_t passes_select(const struct run *run)
{
    static const char head[] = "*2\r\n$6\r\nSELECT\r\n$";
    const char *p = (const char *)run->out.ptr + run->at;
    size_t left = run->out.len - run->at, n = sizeof head - 1;
    if (left < n + 6 || memcmp(p, head, n) != 0)
        return 0;
    while (p[n] != '\n')
        n++;
    while (p[n + 1] != '\n')
        n++;
    return n + 2;
}

static size_t db_of(const struct run *run, size_t len)
{
    const char *p = (const char *)run->out.ptr + run->at + len - 3;
    while (p[-1] >= '0' && p[-1] <= '9')
        p--;
    return strtoul(p, NULL, 10);
}

/* The bytes [from, to) of the damaged file come next in the output, perhaps after a SELECT. */
static bool is_next(struct run *run, size_t from, size_t to, size_t *db)
{
    for (unsigned i = 0; i < 2; i++) {
        if (run->out.len - run->at >= to - from &&
            memcmp(run->out.ptr + run->at, run->log->bytes.ptr + from, to - from) == 0) {
            size_t len = passes_select(run);
            if (len == to - from)
                *db = db_of(run, len);
            run->at += to - from;
            return true;
        }
        size_t len = passes_select(run);
        if (len == 0 || run->added == run->res.selects_added)
            return false;
        *db = db_of(run, len);
        run->at += len;
        run->added++;
    }
    return false;
}

/* Where the entry that is kept at `at` ends: of those that begin there, the one that is intact. */
static const struct torn_entry *entry_at(const struct torn_log *log, size_t at)
{
    for (size_t i = 0; i < log->n; i++)
        if (log->entries[i].from == at)
            return &log->entries[i];
    return NULL;
}

static bool is_word(const struct torn_log *log, const struct torn_entry *e, const char *word)
{
    return e->to - e->from == strlen(word) &&
           strncasecmp((const char *)log->bytes.ptr + e->from, word, strlen(word)) == 0;
}

struct state {
    size_t db;
    bool in_multi, uncertain;
    const struct torn_entry *swallowed;
};

static void judge_entry(struct bar *bar, struct run *run, struct state *state,
                        const struct torn_entry *e, enum torn_damage kind)
{
    bar->kept += e->needed;
    bar->foreign += e->accepted && e->n_within > 0;
    if (e->accepted && e->n_within > 0)
        state->swallowed = e;
    if (is_word(run->log, e, "*1\r\n$5\r\nMULTI\r\n")) {
        bar->split += state->in_multi;
        state->in_multi = true;
    } else if (is_word(run->log, e, "*1\r\n$4\r\nEXEC\r\n")) {
        bar->split += !state->in_multi;
        state->in_multi = false;
    } else {
        /* Between two damages it is not known whether a MULTI was lost. */
        bar->split += e->torn_group && !state->in_multi && run->n_losses < 3;
    }
    for (size_t i = 0; i < run->n_losses; i++)
        state->uncertain |= run->losses[i].db_uncertain && run->losses[i].from <= e->from;
    if (!e->annotation && !e->accepted && run->log->broken && kind != TORN_TWO_WRITERS &&
        !state->uncertain && state->db != e->db)
        bar->moved++;
}

/* Goes over what no loss covers: it is the output, entry by entry. */
static void judge_kept(struct bar *bar, struct run *run, struct state *state, enum torn_damage kind)
{
    const struct torn_log *log = run->log;
    for (size_t at = 0; at < log->bytes.len;) {
        if (is_lost(run, at, at + 1)) {
            at++;
            continue;
        }
        const struct torn_entry *e = entry_at(log, at);
        if (e == NULL || is_lost(run, e->from, e->to)) {
            if (bar->only)
                printf("# nothing begins at %zu\n", at);
            bar->invented++;
            size_t from = at++;
            while (at < log->bytes.len && !is_lost(run, at, at + 1) && entry_at(log, at) == NULL)
                at++;
            run->at += at - from;
            continue;
        }
        if (!is_next(run, e->from, e->to, &state->db)) {
            bar->untrue++;
            return;
        }
        judge_entry(bar, run, state, e, kind);
        at = e->to;
    }
    bar->untrue += run->at != run->out.len;
    bar->split += state->in_multi;
}

static void describe(const struct run *run)
{
    for (size_t i = 0; i < run->n_losses; i++)
        printf("# loss [%" PRIu64 ", %" PRIu64 ") kind %d, at %" PRIu64 ": %s\n",
               run->losses[i].from, run->losses[i].to, (int)run->losses[i].kind, run->losses[i].at,
               run->losses[i].resync);
    for (size_t i = 0; i < run->log->n; i++) {
        const struct torn_entry *e = &run->log->entries[i];
        if (e->accepted || (e->needed && is_lost(run, e->from, e->to)))
            printf("# %s [%zu, %zu)\n", e->accepted ? "accepted" : "lost", e->from, e->to);
    }
}

static void judge(struct bar *bar, const struct torn_log *log, enum torn_damage kind)
{
    struct run run = {.log = log};
    struct state state = {0};
    uint64_t kept = bar->kept, invented = bar->invented;
    size_t needed = 0;
    salvage(&run);
    if (bar->only)
        describe(&run);
    judge_kept(bar, &run, &state, kind);
    for (size_t i = 0; i < log->n; i++)
        needed += log->entries[i].needed;
    bar->broken += log->broken;
    bar->needed += needed;
    bar->lost += needed - (bar->kept - kept);
    bar->needed_by[kind] += needed;
    bar->invented_by[kind] += bar->invented - invented;
    bar->lost_by[kind] += needed - (bar->kept - kept);
    bar->untrue += run.n_losses == 0 && run.doubts == 0 && (log->broken || state.swallowed != NULL);
    rd_buf_done(&run.out);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void write_file(const char *path, const struct rd_buf *bytes)
{
    FILE *f = path != NULL ? fopen(path, "wb") : NULL;
    if (f == NULL)
        return;
    fwrite(bytes->ptr, 1, bytes->len, f);
    fclose(f);
}

static void one_damage(struct bar *bar, uint64_t seed, uint64_t i, bool only)
{
    enum torn_damage kind = (enum torn_damage)(i % TORN_KINDS);
    struct torn_log log = torn_log_make(seed * 1000003 + i, kind);
    const struct bar was = *bar;
    bar->only = only;
    if (only)
        write_file(getenv("REDOUBT_DAMAGED"), &log.bytes);
    judge(bar, &log, kind);
    bar->damages++;
    if (bar->lost > was.lost || bar->invented > was.invented || bar->split > was.split ||
        bar->moved > was.moved || bar->untrue > was.untrue)
        printf("# damage %" PRIu64 ", %s: %" PRIu64 " lost, %" PRIu64 " invented, %" PRIu64
               " split, %" PRIu64 " moved, %" PRIu64 " untrue\n",
               i, torn_damage_name(kind), bar->lost - was.lost, bar->invented - was.invented,
               bar->split - was.split, bar->moved - was.moved, bar->untrue - was.untrue);
    torn_log_done(&log);
}

Test(salvage_torn, intact_commands_are_kept_and_none_is_invented)
{
    struct bar bar = {0};
    uint64_t seed = number("REDOUBT_SEED", 1), only = number("REDOUBT_ONLY", UINT64_MAX);
    uint64_t n = number("REDOUBT_DAMAGES", DAMAGES);
    for (uint64_t i = 0; i < n; i++)
        if (only == UINT64_MAX || only == i)
            one_damage(&bar, seed, i, only == i);
    printf("# seed %" PRIu64 ": %" PRIu64 " damages, %" PRIu64
           " of them seen by a reader; of %" PRIu64 " intact commands %" PRIu64 " lost; %" PRIu64
           " invented, %" PRIu64 " split, %" PRIu64 " moved, %" PRIu64 " untrue; %" PRIu64
           " made of several\n",
           seed, bar.damages, bar.broken, bar.needed, bar.lost, bar.invented, bar.split, bar.moved,
           bar.untrue, bar.foreign);
    for (unsigned kind = 0; kind < TORN_KINDS; kind++) {
        printf("# %s: %" PRIu64 " of %" PRIu64 " lost, %" PRIu64 " invented\n",
               torn_damage_name((enum torn_damage)kind), bar.lost_by[kind], bar.needed_by[kind],
               bar.invented_by[kind]);
        /* Several damages may lie so close that what is between them is like a text of commands. */
        bool several = kind == TORN_SHORT_TWICE || kind == TORN_TWO_WRITERS;
        cr_expect_leq(bar.lost_by[kind] * (several ? 100 : 2000), bar.needed_by[kind], "%s",
                      torn_damage_name((enum torn_damage)kind));
        cr_expect_leq(bar.invented_by[kind], n / (several ? 500 : 5000), "%s",
                      torn_damage_name((enum torn_damage)kind));
    }
    cr_expect_leq(bar.split, n / 1000);
    cr_expect_leq(bar.moved, n / 200);
    cr_expect_eq(bar.untrue, 0);
}
