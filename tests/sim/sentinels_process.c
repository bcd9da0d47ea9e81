/* The Sentinels of a run: their files, clocks and ends. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/words.h"
#include "sentinel/sentinel_impl.h"
#include "tests/sim/sentinels_process.h"

enum { FRESH_MS = 2000, LINK_DOWN_FEW_S = 2, LINES_MAX = 64 };

static struct sim_process *process_of(struct sim_run *r, int host)
{
    return &r->hosts[host].process;
}

static int64_t clock_of(struct sim_run *r, int host)
{
    return r->now_ms + process_of(r, host)->clock_ms;
}

/* ---- the file ---- */

static void add_line(void *ctx, const char *option, const char *line, bool is_default)
{
    (void)option;
    if (!is_default)
        rd_buf_printf(ctx, "%s\n", line);
}

static char *file_text(const struct sentinel *s)
{
    struct rd_buf text = {0};
    sentinel_config_write(s, add_line, &text);
    rd_buf_add_byte(&text, 0);
    return (char *)text.ptr;
}

static void end_process(struct sim_run *r, int host)
{
    struct sim_process *p = process_of(r, host);
    sentinel_free(p->sentinel);
    p->sentinel = NULL;
    r->hosts[host].alive = false;
    sim_cut(r, host, SIZE_MAX);
}

/* The file is replaced and synced, or the process ends before or after, or it cannot be written. */
static bool save(struct sim_run *r, int host)
{
    struct sim_process *p = process_of(r, host);
    bool ends = r->crash != 0 && sim_chance(r, r->crash) == 0;
    bool fails = !ends && r->save_fails != 0 && sim_chance(r, r->save_fails) == 0;
    if (!fails && (!ends || sim_chance(r, 2) == 0)) {
        rd_free(p->file);
        p->file = file_text(p->sentinel);
    }
    if (ends) {
        r->sums->crashes++;
        end_process(r, host);
        if (sim_chance(r, 2) == 0)
            sim_at(r, r->now_ms + 1 + (int64_t)sim_chance(r, 200), SIM_START, host, SIZE_MAX, NULL);
        return false;
    }
    r->sums->saves_failed += fails;
    sentinel_saved(p->sentinel, !fails);
    return true;
}

/* ---- what must hold ---- */

static void fail(struct sim_run *r, const char *why)
{
    if (r->failure == NULL)
        r->failure = why;
}

static void on_elected(struct sim_run *r, int host)
{
    uint64_t epoch = sentinel_at(process_of(r, host)->sentinel, 0)->failover_epoch;
    r->sums->elections++;
    for (size_t i = 0; i < r->n_elected; i++) {
        if (r->elected[i].epoch == epoch && r->elected[i].host != host)
            fail(r, "two leaders in one epoch");
    }
    if (r->n_elected < sizeof r->elected / sizeof *r->elected)
        r->elected[r->n_elected++] = (struct sim_elected){epoch, host};
}

static bool surely_able(const struct sim_run *r, const struct sim_known *k)
{
    return k->up && k->pong_ms != 0 && r->now_ms - k->pong_ms < FRESH_MS &&
           r->now_ms - k->pong_ms < r->down_after_ms && r->now_ms - k->info_ms < FRESH_MS &&
           k->priority > 0 && k->link_down_s <= LINK_DOWN_FEW_S;
}

static void on_selected(struct sim_run *r, int host, const char *text)
{
    char ip[64] = "";
    sscanf(text, "slave %*s %63s", ip);
    int chosen = sim_host_of(r, ip);
    const struct sim_known *known = process_of(r, host)->known, *c = &known[chosen];
    r->sums->choices++;
    if (c->priority == 0)
        fail(r, "a replica with priority 0 was chosen");
    for (int i = 0; i < r->n_servers; i++) {
        const struct sim_known *k = &known[i];
        char other[64], of[SENTINEL_IP_MAX + 1];
        sim_ip_of(r, i, of);
        snprintf(other, sizeof other, "slave %s:6379", of);
        bool is_master = strstr(text, "@") != NULL && strstr(strstr(text, "@"), of) != NULL;
        if (i == chosen || is_master || !surely_able(r, k))
            continue;
        if (k->priority < c->priority || (k->priority == c->priority && k->offset > c->offset))
            fail(r, "a better replica could be reached");
    }
}

/* It must not vote again in this epoch when it comes back. */
static void on_vote(struct sim_run *r, int host)
{
    int64_t at_ms = r->now_ms + (int64_t)sim_chance(r, 300);
    r->sums->votes++;
    if (r->crash == 0 || sim_chance(r, 6) != 0)
        return;
    sim_at(r, at_ms, SIM_END, host, SIZE_MAX, NULL);
    sim_at(r, at_ms + 1 + (int64_t)sim_chance(r, 300), SIM_START, host, SIZE_MAX, NULL);
}

static void on_event(struct sim_run *r, int host, const struct sentinel_action *a)
{
    if (strcmp(a->name, "+elected-leader") == 0)
        on_elected(r, host);
    else if (strcmp(a->name, "+selected-slave") == 0)
        on_selected(r, host, a->text);
    else if (strcmp(a->name, "+promoted-slave") == 0)
        r->switches++, r->sums->failovers++;
    else if (strcmp(a->name, "+vote-for-leader") == 0)
        on_vote(r, host);
    else if (strcmp(a->name, "+tilt") == 0)
        r->sums->tilts++;
}

/* ---- actions ---- */

/* False: the process has ended. */
static bool act(struct sim_run *r, int host, const struct sentinel_action *a)
{
    switch (a->kind) {
    case SENTINEL_CONNECT:
        sim_conn_open(r, host, a);
        return true;
    case SENTINEL_CLOSE:
        sim_conn_close(r, host, a->conn);
        return true;
    case SENTINEL_SEND:
        sim_conn_send(r, host, a);
        return true;
    case SENTINEL_SAVE:
        return save(r, host);
    case SENTINEL_EVENT:
        on_event(r, host, a);
        if (r->trace != NULL)
            r->trace(r, host, a);
        return true;
    default:
        return true;
    }
}

bool sim_process_act(struct sim_run *r, int host)
{
    struct sentinel_action action;
    while (sentinel_next(process_of(r, host)->sentinel, &action)) {
        if (!act(r, host, &action))
            return false;
    }
    return true;
}

/* ---- events ---- */

static bool is_stalled(struct sim_run *r, int host)
{
    return r->now_ms < process_of(r, host)->stalled_until_ms;
}

void sim_process_tick(struct sim_run *r, int host)
{
    struct sim_process *p = process_of(r, host);
    if (p->sentinel == NULL)
        return;
    if (is_stalled(r, host)) {
        sim_at(r, p->stalled_until_ms, SIM_TICK, host, SIZE_MAX, NULL);
        return;
    }
    uint64_t wait_ms = sentinel_tick(p->sentinel, clock_of(r, host));
    if (sim_process_act(r, host))
        sim_at(r, r->now_ms + (int64_t)wait_ms, SIM_TICK, host, SIZE_MAX, NULL);
}

static void answer(struct sim_run *r, size_t conn, int host, char *const *words)
{
    struct sim_process *p = process_of(r, host);
    char text[128];
    sentinel_ask(p->sentinel, rd_slice_str(words[2]), atoi(words[3]), strtoull(words[4], NULL, 10),
                 rd_slice_str(words[5]));
    if (!sim_process_act(r, host))
        return;
    struct sentinel_answer a = sentinel_answer(p->sentinel);
    snprintf(text, sizeof text, "*%d %s %llu", a.down, a.leader, (unsigned long long)a.epoch);
    sim_back(r, conn, text);
}

void sim_process_command(struct sim_run *r, size_t conn, const char *text)
{
    char copy[SIM_TEXT_MAX], *words[6] = {NULL}, *rest = copy;
    int host = r->conns[conn].to;
    struct sim_process *p = process_of(r, host);
    if (p->sentinel == NULL || is_stalled(r, host))
        return;
    snprintf(copy, sizeof copy, "%s", text);
    for (size_t n = 0; n < 6 && rest != NULL; n++)
        words[n] = strsep(&rest, "\n");
    sentinel_clock(p->sentinel, clock_of(r, host));
    if (strcmp(words[0], "SENTINEL") == 0) {
        answer(r, conn, host, words);
    } else if (strcmp(words[0], "PUBLISH") == 0) {
        sentinel_hello(p->sentinel, rd_slice_str(words[2]));
        if (sim_process_act(r, host))
            sim_back(r, conn, ":1");
    } else {
        sim_back(r, conn, strcmp(words[0], "PING") == 0 ? "+PONG" : "+OK");
    }
}

/* "*1 ID 3" */
static void reply_array(struct sentinel *s, uint64_t number, const char *text)
{
    char leader[64] = "";
    long long down = 0, epoch = 0;
    int n = sscanf(text, "*%lld %63s %lld", &down, leader, &epoch);
    const struct sentinel_reply items[] = {{.type = ':', .integer = down},
                                           {.type = '$', .text = rd_slice_str(leader)},
                                           {.type = ':', .integer = epoch}};
    struct sentinel_reply reply = {.type = '*', .items = items, .n_items = n == 3 ? 3 : 0};
    sentinel_replied(s, number, &reply);
}

static void note(struct sim_run *r, int from, int to, const char *text)
{
    struct sim_known *k = &process_of(r, from)->known[to];
    const char *at;
    unsigned long long offset;
    if (text[0] == '^' || text[0] == '0')
        k->up = text[0] == '^';
    if (strcmp(text, "+PONG") == 0)
        k->pong_ms = r->now_ms;
    if (text[0] != '$')
        return;
    k->info_ms = r->now_ms;
    k->priority = -1;
    k->link_down_s = 0;
    if ((at = strstr(text, "slave_priority:")) != NULL)
        k->priority = atoi(at + strlen("slave_priority:"));
    if ((at = strstr(text, "slave_repl_offset:")) != NULL &&
        sscanf(at, "slave_repl_offset:%llu", &offset) == 1)
        k->offset = offset;
    if ((at = strstr(text, "master_link_down_since_seconds:")) != NULL)
        k->link_down_s = atoi(at + strlen("master_link_down_since_seconds:"));
}

void sim_process_back(struct sim_run *r, size_t conn, const char *text)
{
    const struct sim_conn c = r->conns[conn];
    char ip[SENTINEL_IP_MAX + 1];
    struct sentinel *s = process_of(r, c.from)->sentinel;
    if (s == NULL)
        return;
    sentinel_clock(s, clock_of(r, c.from));
    if (c.to < r->n_servers && !c.pubsub)
        note(r, c.from, c.to, text);
    sim_ip_of(r, c.from, ip);
    if (text[0] == '^') {
        sentinel_connected(s, c.number, ip);
    } else if (text[0] == '0') {
        sentinel_closed(s, c.number);
    } else if (text[0] == '!') {
        sentinel_message(s, c.number, rd_slice_str(text + 1));
    } else if (text[0] == '*' && text[1] != 0) {
        reply_array(s, c.number, text);
    } else {
        struct sentinel_reply reply = {.type = text[0], .text = rd_slice_str(text + 1)};
        sentinel_replied(s, c.number, &reply);
    }
    sim_process_act(r, c.from);
}

/* ---- life ---- */

static uint64_t random_number(void *ctx)
{
    return sim_chance(ctx, UINT64_MAX);
}

static bool no_name(void *ctx, const char *name, char ret_ip[SENTINEL_IP_MAX + 1])
{
    (void)ctx;
    (void)name;
    (void)ret_ip;
    return false;
}

static bool runnable(void *ctx, const char *path)
{
    (void)ctx;
    (void)path;
    return true;
}

static void set_time(struct sentinel *s, const char *word, int64_t ms)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)ms);
    sentinel_set_time(s, rd_slice_str(word), rd_slice_str(text));
}

static bool load(struct sim_run *r, int host, struct sentinel *s)
{
    static struct rd_words words[LINES_MAX];
    struct sentinel_line lines[LINES_MAX];
    size_t n = 0, bad;
    const char *why, *at = process_of(r, host)->file;
    for (const char *end; (end = strchr(at, '\n')) != NULL && n < LINES_MAX; at = end + 1, n++) {
        rd_words_split(&words[n], rd_slice(at, (size_t)(end - at)));
        lines[n] = (struct sentinel_line){words[n].argv + 1, words[n].argc - 1};
    }
    bool ok = *at == 0 && sentinel_config_load(s, lines, n, clock_of(r, host), &bad, &why);
    for (size_t i = 0; i < n; i++)
        rd_words_done(&words[i]);
    return ok;
}

void sim_process_start(struct sim_run *r, int host)
{
    struct sim_process *p = process_of(r, host);
    struct sentinel_opts opts = {.ctx = r,
                                 .random = random_number,
                                 .resolve = no_name,
                                 .runnable = runnable,
                                 .port = SENTINEL_PORT};
    p->sentinel = sentinel_new(&opts);
    p->starts++;
    memset(p->known, 0, sizeof p->known);
    r->hosts[host].alive = true;
    if (!load(r, host, p->sentinel)) {
        fail(r, "a Sentinel cannot read what it has written");
        return;
    }
    set_time(p->sentinel, "tilt-period", r->tilt_ms);
    set_time(p->sentinel, "info-period", r->info_ms);
    sentinel_start(p->sentinel);
    if (sim_process_act(r, host))
        sim_at(r, r->now_ms + 1 + (int64_t)sim_chance(r, 100), SIM_TICK, host, SIZE_MAX, NULL);
}

void sim_process_restart(struct sim_run *r, int host)
{
    if (process_of(r, host)->sentinel == NULL)
        sim_process_start(r, host);
}

void sim_process_kill(struct sim_run *r, int host)
{
    if (process_of(r, host)->sentinel != NULL)
        end_process(r, host);
}
