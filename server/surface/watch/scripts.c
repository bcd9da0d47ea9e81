/* Processes of notification and reconfiguration scripts.
 *
 * They are started as execve() does it: a file without a first line that names its interpreter is
 * no program, and a name without a slash is a file of the working directory. uv_spawn() would give
 * the first to a shell and search the second in PATH, so the functions of the system are used.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/loop/log.h"
#include "server/settings/text.h"
#include "server/surface/watch/watch_impl.h"

enum { ARGS_MAX = 16 };

struct watch_script {
    struct watch_script *next;
    uint64_t id;
    pid_t pid;
};

/* 0, or an errno. Descriptors of the server are closed in the script: all have O_CLOEXEC. */
static int spawn(char **args, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    if (posix_spawnattr_init(&attr) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    int error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (error == 0)
        error = posix_spawn(ret, args[0], &files, &attr, args, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

/* Whether the system lacks what a process needs, which may change. */
static bool is_short(int error)
{
    return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
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
    int error = spawn(args, &script->pid);
    for (size_t i = 0; i < ARGS_MAX; i++)
        rd_free(args[i]);
    if (error == 0 || is_short(error))
        sentinel_script_started(w->sentinel, action->script, error == 0 ? script->pid : 0);
    else
        sentinel_script_refused(w->sentinel, action->script);
    if (error == 0) {
        script->next = w->scripts;
        w->scripts = script;
    } else {
        rd_free(script);
    }
}

void watch_scripts_kill(struct watch *w, uint64_t id)
{
    for (struct watch_script *s = w->scripts; s != NULL; s = s->next) {
        if (s->id == id)
            kill(s->pid, SIGKILL);
    }
}

void watch_scripts_collect(struct watch *w)
{
    for (struct watch_script **at = &w->scripts; *at != NULL;) {
        struct watch_script *s = *at;
        int status = 0;
        pid_t ended = waitpid(s->pid, &status, WNOHANG);
        if (ended == 0 || (ended < 0 && errno == EINTR)) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        watch_clock(w);
        sentinel_script_ended(w->sentinel, s->pid, WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                              WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        watch_act(w);
        rd_free(s);
    }
}

void watch_scripts_drop_all(struct watch *w)
{
    while (w->scripts != NULL) {
        struct watch_script *s = w->scripts;
        w->scripts = s->next;
        rd_free(s);
    }
}
