/* touch.h - which keys a command of a history can change.
 *
 *     enum history_touch touch = history_touch_of(&line, each, ctx);
 *
 * Threads: nothing is shared. Cost: linear in the arguments.
 */
#ifndef HISTORY_TOUCH_H
#define HISTORY_TOUCH_H

#include "base/resp.h"
#include "rebuild/line.h"

enum history_touch {
    HISTORY_TOUCHES_NOTHING,
    HISTORY_TOUCHES_KEYS, /* those that it names */
    HISTORY_TOUCHES_ANY   /* FLUSHALL, SWAPDB; a script; a command that is in no table */
};

/* Whether the command stores data in one of these keys is not said: it may have failed. `each` is
 * called for each name, perhaps more than once; it may be NULL. False from it ends the calls. */
enum history_touch history_touch_of(const struct rebuild_line *line,
                                    bool (*each)(void *ctx, struct rd_slice name), void *ctx);

/* The same for one command after the other: those with the name of the one before cost less. Begin
 * with zeros. */
struct history_touch_memo {
    uint8_t name[16];
    size_t len; /* 0: none */
    const struct engine_command *command;
    enum history_touch touch;
};
enum history_touch history_touch_next(struct history_touch_memo *memo,
                                      const struct resp_command *cmd,
                                      bool (*each)(void *ctx, struct rd_slice name), void *ctx);

#endif
