/* Processes of notification and reconfiguration scripts. */
#include <signal.h>
#include <string.h>

#include "base/mem.h"
#include "server/loop/log.h"
#include "server/settings/text.h"
#include "server/surface/watch/watch_impl.h"

enum { ARGS_MAX = 16 };

struct watch_script {
    struct watch_script *next;
    uv_process_t process;
    uint64_t id;
    int64_t pid;
    bool ended;
    int64_t status;
    int signal;
};

static void on_exit_of(uv_process_t *process, int64_t status, int signal)
{
    struct watch_script *script = process->data;
    script->ended = true;
    script->status = status;
    script->signal = signal;
}

static void on_closed(uv_handle_t *handle)
{
    rd_free(handle->data);
}

static int spawn(struct watch *w, struct watch_script *script, char **args)
{
    uv_stdio_container_t stdio[3] = {{.flags = UV_IGNORE},
                                     {.flags = UV_INHERIT_FD, .data.fd = 1},
                                     {.flags = UV_INHERIT_FD, .data.fd = 2}};
    const uv_process_options_t opts = {
        .exit_cb = on_exit_of, .file = args[0], .args = args, .stdio_count = 3, .stdio = stdio};
    return uv_spawn(w->srv->loop.uv, &script->process, &opts);
}

/* Whether the system lacks what a process needs, which may change. */
static bool is_short(int error)
{
    return error == UV_EAGAIN || error == UV_ENOMEM || error == UV_EMFILE || error == UV_ENFILE;
}

void watch_scripts_run(struct watch *w, const struct sentinel_action *action)
{
    char *args[ARGS_MAX + 1] = {NULL};
    struct watch_script *script = rd_calloc(1, sizeof *script);
    if (script == NULL)
        log_panic("out of memory");
    for (size_t i = 0; i < action->argc && i < ARGS_MAX; i++)
        args[i] = settings_text_copy((const char *)action->argv[i].ptr, action->argv[i].len);
    script->id = action->script;
    script->process.data = script;
    int error = spawn(w, script, args);
    for (size_t i = 0; i < ARGS_MAX; i++)
        rd_free(args[i]);
    script->pid = error == 0 ? script->process.pid : 0;
    if (error == 0 || is_short(error))
        sentinel_script_started(w->sentinel, action->script, script->pid);
    else
        sentinel_script_refused(w->sentinel, action->script);
    if (error == 0) {
        script->next = w->scripts;
        w->scripts = script;
    } else {
        uv_close((uv_handle_t *)&script->process, on_closed);
    }
}

void watch_scripts_kill(struct watch *w, uint64_t id)
{
    for (struct watch_script *s = w->scripts; s != NULL; s = s->next) {
        if (s->id == id && !s->ended)
            uv_process_kill(&s->process, SIGKILL);
    }
}

void watch_scripts_turn(struct watch *w)
{
    for (struct watch_script **at = &w->scripts; *at != NULL;) {
        struct watch_script *s = *at;
        if (!s->ended) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        watch_clock(w);
        sentinel_script_ended(w->sentinel, s->pid, (int)s->status, s->signal);
        watch_act(w);
        uv_close((uv_handle_t *)&s->process, on_closed);
    }
}

void watch_scripts_drop_all(struct watch *w)
{
    while (w->scripts != NULL) {
        struct watch_script *s = w->scripts;
        w->scripts = s->next;
        uv_close((uv_handle_t *)&s->process, on_closed);
    }
}
