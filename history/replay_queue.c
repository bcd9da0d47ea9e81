#include "history/replay_impl.h"

#include "base/mem.h"
#include "history/touch.h"

void history_replay_queue_empty(struct replay *r)
{
    for (size_t i = 0; i < r->n_queue; i++)
        rd_free(r->queue[i].argv);
    r->n_queue = 0;
}

static bool copy_line(const struct resp_command *from, struct queued *ret)
{
    ret->argv = rd_alloc(rebuild_line_copy_size(from));
    if (ret->argv == NULL)
        return false;
    rebuild_line_copy(from, ret->argv);
    ret->line = *from;
    ret->line.argv = ret->argv;
    return true;
}

static bool is_wanted(const struct replay *r, const struct resp_command *cmd)
{
    const struct rebuild_line line = {engine_command_resolve(cmd->argv, cmd->argc), cmd->argc,
                                      cmd->argv};
    struct rebuild_line_keys keys;
    enum history_touch touch = history_touch_of(&line, NULL, NULL);
    if (touch != HISTORY_TOUCHES_KEYS)
        return touch == HISTORY_TOUCHES_ANY;
    rebuild_line_find_keys(&line, &keys);
    bool wanted = history_replay_is_written(r, &line, &keys);
    rebuild_line_keys_done(&keys);
    return wanted;
}

/* A command before it may pull in a key that this one writes: while names are added, all commands
 * of the transaction are looked at when it ends. */
bool history_replay_queue_add(struct replay *r, const struct history_command *command)
{
    if (!is_wanted(r, command->line))
        return true;
    if (r->n_queue == r->cap_queue) {
        size_t cap = r->cap_queue == 0 ? 16 : r->cap_queue * 2;
        struct queued *queue = rd_realloc(r->queue, cap * sizeof *queue);
        if (queue == NULL)
            return rd_err_nomem(r->err, cap * sizeof *queue);
        r->queue = queue;
        r->cap_queue = cap;
    }
    struct queued *queued = &r->queue[r->n_queue];
    queued->command = *command;
    if (!copy_line(command->line, queued))
        return rd_err_nomem(r->err, command->len);
    r->n_queue++;
    return true;
}

bool history_replay_queue_run(struct replay *r)
{
    bool ok = true;
    for (size_t i = 0; ok && i < r->n_queue; i++) {
        r->queue[i].command.line = &r->queue[i].line;
        ok = history_replay_take(r, &r->queue[i].command);
    }
    history_replay_queue_empty(r);
    return ok;
}
