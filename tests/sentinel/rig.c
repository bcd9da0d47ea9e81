#include <stdio.h>
#include <stdlib.h>

#include "base/words.h"
#include "tests/sentinel/rig.h"

enum { LINES_MAX = 64, TICK_MS = 100 };

/* ---- options ---- */

static uint64_t random_number(void *ctx)
{
    struct rig *rig = ctx;
    rig->random = rig->random * 6364136223846793005u + 1442695040888963407u;
    return rig->random >> 33;
}

static bool resolve(void *ctx, const char *name, char ret_ip[SENTINEL_IP_MAX + 1])
{
    const struct rig *rig = ctx;
    cr_assert_gt(strlen(name), 0);
    if (rig->resolved != NULL)
        snprintf(ret_ip, SENTINEL_IP_MAX + 1, "%s", rig->resolved);
    return rig->resolved != NULL;
}

static bool runnable(void *ctx, const char *path)
{
    const struct rig *rig = ctx;
    return rig->scripts_exist && path[0] == '/';
}

/* ---- life ---- */

void rig_prepare_faulty(struct rig *rig)
{
    const struct sentinel_opts opts = {.ctx = rig,
                                       .random = random_number,
                                       .resolve = resolve,
                                       .runnable = runnable,
                                       .port = SENTINEL_PORT};
    memset(rig, 0, sizeof *rig);
    rig->now_ms = 1000000;
    rig->s = sentinel_new(&opts);
}

void rig_prepare(struct rig *rig)
{
    rig_prepare_faulty(rig);
    cr_assert_not_null(rig->s);
}

const char *rig_load(struct rig *rig, const char *text)
{
    static struct rd_words words[LINES_MAX];
    struct sentinel_line lines[LINES_MAX];
    size_t n = 0, bad = 0;
    const char *why = NULL;
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1, n++) {
        cr_assert_lt(n, LINES_MAX);
        if (!rd_words_split(&words[n], rd_slice(text, (size_t)(end - text))))
            break;
        size_t skip = words[n].argc > 0 && rd_slice_is(words[n].argv[0], "sentinel");
        lines[n] = (struct sentinel_line){words[n].argv + skip, words[n].argc - skip};
    }
    bool ok = *text == 0 && sentinel_config_load(rig->s, lines, n, rig->now_ms, &bad, &why);
    for (size_t i = 0; i <= n && i < LINES_MAX; i++)
        rd_words_done(&words[i]);
    return ok || why != NULL ? why : "out of memory";
}

void rig_begin(struct rig *rig, const char *lines)
{
    rig_prepare(rig);
    cr_assert_null(rig_load(rig, "myid " RIG_ME "\n"));
    cr_assert_null(rig_load(rig, lines));
    sentinel_start(rig->s);
    rig_act(rig);
}

void rig_end(struct rig *rig)
{
    sentinel_free(rig->s);
    rd_buf_done(&rig->events);
    rd_buf_done(&rig->sent);
    rd_buf_done(&rig->other);
    rd_buf_done(&rig->file);
    memset(rig, 0, sizeof *rig);
}

struct sentinel_instance *rig_master(struct rig *rig)
{
    return sentinel_at(rig->s, 0);
}

struct rig_peer *rig_peer(struct rig *rig, int port)
{
    for (size_t i = 0; i < RIG_PEERS; i++) {
        struct rig_peer *peer = &rig->peers[i];
        if (peer->port == port || peer->port == 0) {
            peer->port = port;
            return peer;
        }
    }
    cr_assert_fail("too many peers");
    return NULL;
}

void rig_lose(struct rig *rig, int port)
{
    rig_peer(rig, port)->dead = rig_peer(rig, port)->silent = true;
}

void rig_kill(struct rig *rig, int port)
{
    rig_lose(rig, port);
    for (uint64_t conn = 1; conn < RIG_CONNS; conn++) {
        if (rig->conns[conn].port == port)
            sentinel_closed(rig->s, conn);
    }
}

/* ---- answers ---- */

static void reply(struct rig *rig, uint64_t conn, const char *text)
{
    struct sentinel_reply r = {.type = text[0], .text = rd_slice_str(text + 1)};
    sentinel_replied(rig->s, conn, &r);
}

static void reply_ask(struct rig *rig, uint64_t conn, const struct rig_peer *peer)
{
    const struct sentinel_reply items[] = {
        {.type = ':', .integer = peer->says_down},
        {.type = '$', .text = rd_slice_str(peer->leader != NULL ? peer->leader : "*")},
        {.type = ':', .integer = (int64_t)peer->leader_epoch}};
    struct sentinel_reply r = {.type = '*', .items = items, .n_items = 3};
    sentinel_replied(rig->s, conn, &r);
}

static void answer(struct rig *rig, uint64_t conn, struct rd_slice command)
{
    const struct rig_peer *peer = rig_peer(rig, rig->conns[conn].port);
    char info[4096];
    if (peer->silent || rig->no_answers)
        return;
    snprintf(info, sizeof info, "$%s", peer->info != NULL ? peer->info : "");
    if (rd_slice_is(command, "PING"))
        reply(rig, conn, peer->pong != NULL ? peer->pong : "+PONG");
    else if (rd_slice_is(command, "INFO"))
        reply(rig, conn, info);
    else if (rd_slice_is(command, "SENTINEL"))
        reply_ask(rig, conn, peer);
    else
        reply(rig, conn, rd_slice_is(command, "PUBLISH") ? ":1" : "+OK");
}

/* ---- actions ---- */

static void on_connect(struct rig *rig, const struct sentinel_action *a)
{
    const struct rig_peer *peer = rig_peer(rig, a->port);
    cr_assert_lt(a->conn, RIG_CONNS);
    rig->conns[a->conn] = (struct rig_conn){a->port, a->pubsub};
    rd_buf_printf(&rig->other, "connect %s %d%s%s\n", a->host, a->port, a->pubsub ? " pubsub" : "",
                  a->for_sentinel ? " sentinel" : "");
    if (peer->dead)
        sentinel_closed(rig->s, a->conn);
    else if (!peer->silent)
        sentinel_connected(rig->s, a->conn, "10.0.1.1");
}

static void on_send(struct rig *rig, const struct sentinel_action *a)
{
    rd_buf_printf(&rig->sent, "%d", rig->conns[a->conn].port);
    for (size_t i = 0; i < a->argc; i++)
        rd_buf_printf(&rig->sent, " %.*s", (int)a->argv[i].len, (const char *)a->argv[i].ptr);
    rd_buf_add_byte(&rig->sent, '\n');
    answer(rig, a->conn, a->argv[0]);
}

static void add_line(void *ctx, const char *option, const char *line, bool is_default)
{
    cr_assert_eq(strncmp(option, line, strlen(option)), 0);
    if (!is_default)
        rd_buf_printf(ctx, "%s\n", line);
}

static void on_save(struct rig *rig)
{
    rd_buf_printf(&rig->other, "save\n");
    if (!rig->save_fails) {
        rd_buf_reset(&rig->file);
        sentinel_config_write(rig->s, add_line, &rig->file);
    }
    sentinel_saved(rig->s, !rig->save_fails);
}

static void on_run(struct rig *rig, const struct sentinel_action *a)
{
    rd_buf_printf(&rig->other, "run %d", (int)a->script);
    for (size_t i = 0; i < a->argc; i++)
        rd_buf_printf(&rig->other, " %.*s", (int)a->argv[i].len, (const char *)a->argv[i].ptr);
    rd_buf_add_byte(&rig->other, '\n');
    sentinel_script_started(rig->s, a->script, rig->scripts_exist ? 1000 + (int64_t)a->script : 0);
}

void rig_act(struct rig *rig)
{
    struct sentinel_action a;
    while (sentinel_next(rig->s, &a)) {
        if (a.kind == SENTINEL_CONNECT)
            on_connect(rig, &a);
        else if (a.kind == SENTINEL_SEND)
            on_send(rig, &a);
        else if (a.kind == SENTINEL_SAVE)
            on_save(rig);
        else if (a.kind == SENTINEL_RUN)
            on_run(rig, &a);
        else if (a.kind == SENTINEL_EVENT)
            rd_buf_printf(&rig->events, "%s %s\n", a.name, a.text);
        else if (a.kind == SENTINEL_LOG)
            rd_buf_printf(&rig->other, "log %s\n", a.text);
        else if (a.kind == SENTINEL_CLOSE)
            rd_buf_printf(&rig->other, "close %d\n", rig->conns[a.conn].port);
        else if (a.kind == SENTINEL_KILL)
            rd_buf_printf(&rig->other, "kill %d\n", (int)a.script);
        else
            rd_buf_printf(&rig->other, "crash\n");
    }
}

void rig_tick(struct rig *rig)
{
    uint64_t wait_ms = sentinel_tick(rig->s, rig->now_ms);
    cr_assert(wait_ms >= 50 && wait_ms <= 100);
    rig_act(rig);
}

void rig_pass(struct rig *rig, int64_t ms)
{
    for (int64_t end = rig->now_ms + ms; rig->now_ms < end;) {
        rig->now_ms += TICK_MS;
        rig_tick(rig);
    }
}

void rig_hello(struct rig *rig, int port, const char *text)
{
    for (size_t i = RIG_CONNS - 1; i > 0; i--) {
        if (rig->conns[i].port == port && rig->conns[i].pubsub) {
            sentinel_message(rig->s, i, rd_slice_str(text));
            break;
        }
    }
    rig_act(rig);
}

/* ---- what was done ---- */

/* Several texts of one test live until its end. */
static const char *take(struct rd_buf *buf)
{
    static char texts[8][65536];
    static unsigned next;
    char *text = texts[next++ % 8];
    cr_assert_lt(buf->len, sizeof texts[0]);
    if (buf->len > 0)
        memcpy(text, buf->ptr, buf->len);
    text[buf->len] = 0;
    return text;
}

static const char *take_all(struct rd_buf *buf)
{
    const char *text = take(buf);
    rd_buf_reset(buf);
    return text;
}

const char *rig_events(struct rig *rig)
{
    return take_all(&rig->events);
}

const char *rig_sent(struct rig *rig)
{
    return take_all(&rig->sent);
}

const char *rig_other(struct rig *rig)
{
    return take_all(&rig->other);
}

const char *rig_file(struct rig *rig)
{
    return take(&rig->file);
}

bool rig_has(const char *text, const char *line)
{
    size_t len = strlen(line);
    for (const char *at = text; (at = strstr(at, line)) != NULL; at++) {
        if ((at == text || at[-1] == '\n') && at[len] == '\n')
            return true;
    }
    return false;
}
