#include "engine/session.h"

#include "base/copy.h"
#include "engine/block.h"
#include "engine/script.h"
#include "engine/state_impl.h"
#include "engine/watch.h"

void engine_session_init(struct engine_session *s, struct engine *e, enum engine_role role)
{
    *s = (struct engine_session){.engine = e, .role = role};
}

void engine_session_done(struct engine_session *s)
{
    if (s->waiter != NULL)
        engine_block_cancel(s, ENGINE_GONE, NULL);
    engine_session_discard(s);
    engine_scratch_free(s->queue);
    s->queue = NULL;
    s->cap_queued = 0;
}

static struct rd_slice *copy_argv(size_t argc, const struct rd_slice *argv)
{
    size_t len = 0;
    for (size_t i = 0; i < argc; i++)
        len += argv[i].len;
    struct rd_slice *copy = engine_scratch_alloc(argc * sizeof *copy + len);
    uint8_t *bytes = (uint8_t *)(copy + argc);
    for (size_t i = 0; i < argc; i++) {
        copy[i] = rd_slice(bytes, argv[i].len);
        rd_copy_short(bytes, argv[i].ptr, argv[i].len);
        bytes += argv[i].len;
    }
    return copy;
}

void engine_session_queue(struct engine_session *s, const struct engine_command *command,
                          size_t argc, const struct rd_slice *argv)
{
    if (s->n_queued == s->cap_queued) {
        s->cap_queued = s->cap_queued > 0 ? s->cap_queued * 2 : 8;
        s->queue = engine_scratch_realloc(s->queue, s->cap_queued * sizeof *s->queue);
    }
    s->queue[s->n_queued++] =
        (struct engine_queued){.command = command, .argc = argc, .argv = copy_argv(argc, argv)};
    for (size_t i = 0; i < argc; i++)
        s->queued_len += argv[i].len;
    uint64_t flags = engine_script_command_flags(s->engine, command, argc, argv);
    s->queued_any |= flags;
    s->queued_all = s->n_queued == 1 ? flags : s->queued_all & flags;
}

void engine_session_discard(struct engine_session *s)
{
    for (size_t i = 0; i < s->n_queued; i++)
        engine_scratch_free(s->queue[i].argv);
    s->n_queued = 0;
    s->queued_len = 0;
    s->queued_any = s->queued_all = 0;
    s->in_multi = false;
    s->dirty_exec = false;
    struct engine_scope scope = engine_enter(s->engine);
    engine_watch_drop(s);
    engine_leave(s->engine, scope);
}
