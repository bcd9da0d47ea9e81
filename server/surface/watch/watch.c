#include "server/surface/watch/watch_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/words.h"
#include "server/loop/log.h"
#include "server/session/client/client.h"
#include "server/session/pubsub.h"
#include "server/surface/config/config.h"

/* ---- what the Sentinel asks the system ---- */

static uint64_t random_number(void *ctx)
{
    (void)ctx;
    return sessions_seed();
}

static bool resolve(void *ctx, const char *name, char ret_ip[SENTINEL_IP_MAX + 1])
{
    return watch_names_find(ctx, name, ret_ip);
}

static bool runnable(void *ctx, const char *path)
{
    (void)ctx;
    return access(path, X_OK) == 0;
}

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- the configuration ---- */

static bool say(struct rd_buf *why, const char *what, const char *file, int error)
{
    rd_buf_printf(why, "Sentinel config file %s %s: %s. Exiting...", file, what, strerror(error));
    return false;
}

static bool check_file(const struct server *srv, struct rd_buf *why)
{
    const char *file = srv->loop.config_file;
    if (file == NULL) {
        rd_buf_printf(why, "Sentinel needs config file on disk to save state. Exiting...");
        return false;
    }
    return access(file, W_OK) == 0 || say(why, "is not writable", file, errno);
}

static bool wrong_line(const struct settings_sentinel_line *line, const char *reason,
                       struct rd_buf *why)
{
    rd_buf_printf(why,
                  "\n*** FATAL CONFIG FILE ERROR (Redis %s) ***\n"
                  "Reading the configuration file, at line %zu\n>>> '%s'\n%s\n",
                  SERVER_REDIS_VERSION, line->number, line->text, reason);
    return false;
}

static bool load_lines(struct watch *w, const struct settings *s, struct rd_buf *why)
{
    size_t n = s->n_sentinel_lines, bad = 0;
    const char *reason = NULL;
    struct rd_words *words = rd_calloc(n + 1, sizeof *words);
    struct sentinel_line *lines = rd_calloc(n + 1, sizeof *lines);
    if (words == NULL || lines == NULL)
        log_panic("out of memory");
    for (size_t i = 0; i < n; i++) {
        /* It was split before. The first word is `sentinel`. */
        if (rd_words_split(&words[i], rd_slice_str(s->sentinel_lines[i].text)))
            lines[i] = (struct sentinel_line){words[i].argv + 1, words[i].argc - 1};
    }
    w->names_now = true;
    bool ok = sentinel_config_load(w->sentinel, lines, n, wall_ms(), &bad, &reason);
    w->names_now = false;
    for (size_t i = 0; i < n; i++)
        rd_words_done(&words[i]);
    rd_free(words);
    rd_free(lines);
    return ok || wrong_line(&s->sentinel_lines[bad], reason, why);
}

static void
put_lines(const struct server *srv,
          void (*each)(void *ctx, const char *option, const char *line, bool is_default), void *ctx)
{
    sentinel_config_write(srv->watch->sentinel, each, ctx);
}

static void put_info(struct server *srv, struct rd_buf *out)
{
    sentinel_info_section(srv->watch->sentinel, out);
}

/* ---- actions ---- */

static void save(struct watch *w)
{
    struct rd_err err = {0};
    w->saved = config_rewrite(w->srv, false, &err);
    if (w->saved)
        log_notice("Sentinel new configuration saved on disk");
    else
        log_warning("WARNING: Sentinel was not able to save the new configuration on disk!!!: %s",
                    err.text);
    sentinel_saved(w->sentinel, w->saved);
}

static void put_log(enum sentinel_level level, const char *name, const char *text)
{
    const char *gap = name[0] != 0 && text[0] != 0 ? " " : "";
    if (level == SENTINEL_LEVEL_WARNING)
        log_warning("%s%s%s", name, gap, text);
    else if (level == SENTINEL_LEVEL_NOTICE)
        log_notice("%s%s%s", name, gap, text);
    else if (level == SENTINEL_LEVEL_VERBOSE)
        log_verbose("%s%s%s", name, gap, text);
    else
        log_debug("%s%s%s", name, gap, text);
}

static void on_event(struct watch *w, const struct sentinel_action *action)
{
    put_log(action->level, action->name, action->text);
    if (action->level == SENTINEL_LEVEL_DEBUG)
        return;
    pubsub_publish(&w->srv->sessions, PUBSUB_CHANNEL, rd_slice_str(action->name),
                   rd_slice_str(action->text));
}

static void act(struct watch *w, const struct sentinel_action *action)
{
    switch (action->kind) {
    case SENTINEL_CONNECT:
        watch_peers_connect(w, action);
        break;
    case SENTINEL_CLOSE:
        watch_peers_close(w, action->conn);
        break;
    case SENTINEL_SEND:
        watch_peers_send(w, action);
        break;
    case SENTINEL_SAVE:
        save(w);
        break;
    case SENTINEL_EVENT:
        on_event(w, action);
        break;
    case SENTINEL_LOG:
        put_log(action->level, "", action->text);
        break;
    case SENTINEL_RUN:
        watch_scripts_run(w, action);
        break;
    case SENTINEL_KILL:
        watch_scripts_kill(w, action->script);
        break;
    case SENTINEL_CRASH:
        exit(99);
    }
}

void watch_act(struct watch *w)
{
    struct sentinel_action action;
    if (w->acting) /* the caller below continues */
        return;
    w->acting = true;
    while (sentinel_next(w->sentinel, &action))
        act(w, &action);
    w->acting = false;
    if (sentinel_no_memory(w->sentinel))
        log_panic("out of memory");
}

/* ---- time ---- */

void watch_clock(struct watch *w)
{
    sentinel_clock(w->sentinel, wall_ms());
}

static void on_timer(uv_timer_t *timer)
{
    struct watch *w = timer->data;
    w->tick_due = true;
}

static void tick(struct watch *w)
{
    w->tick_due = false;
    watch_scripts_collect(w);
    uint64_t wait_ms = sentinel_tick(w->sentinel, wall_ms());
    watch_act(w);
    uv_timer_start(&w->timer, on_timer, wait_ms, 0);
}

static void turn(struct server *srv)
{
    struct watch *w = srv->watch;
    if (w->tick_due)
        tick(w);
}

static bool start(struct server *srv)
{
    struct watch *w = srv->watch;
    uv_timer_init(srv->loop.uv, &w->timer);
    w->timer.data = w;
    watch_clock(w);
    sentinel_start(w->sentinel);
    watch_act(w);
    if (!w->saved) {
        log_warning("Sentinel config file %s cannot be saved. Exiting...", srv->loop.config_file);
        return false;
    }
    w->tick_due = true;
    return true;
}

static void on_closed(uv_handle_t *handle)
{
    rd_free(handle->data);
}

static void end(struct server *srv)
{
    struct watch *w = srv->watch;
    if (w == NULL)
        return;
    watch_remove_commands();
    watch_peers_drop_all(w);
    watch_names_drop_all(w);
    watch_scripts_drop_all(w);
    sentinel_free(w->sentinel);
    srv->watch = NULL;
    if (w->timer.data != NULL)
        uv_close((uv_handle_t *)&w->timer, on_closed);
    else
        rd_free(w);
}

static const struct server_sentinel is_sentinel = {.begin = watch_register,
                                                   .start = start,
                                                   .turn = turn,
                                                   .end = end,
                                                   .info = put_info,
                                                   .lines = put_lines};

bool watch_new(struct server *srv, struct rd_buf *why)
{
    const struct settings *s = &srv->loop.settings;
    int64_t port = s->tls_replication && s->tls_port > 0 ? s->tls_port : s->port;
    struct watch *w = rd_calloc(1, sizeof *w);
    if (w == NULL)
        log_panic("out of memory");
    w->srv = srv;
    w->sentinel = sentinel_new(&(struct sentinel_opts){.ctx = w,
                                                       .random = random_number,
                                                       .resolve = resolve,
                                                       .runnable = runnable,
                                                       .port = (int)port,
                                                       .password = s->requirepass});
    if (w->sentinel == NULL)
        log_panic("out of memory");
    srv->watch = w;
    srv->sentinel = &is_sentinel;
    return load_lines(w, s, why) && check_file(srv, why);
}
