/* ask.h - asks a replayed data set, with the commands that read.
 *
 *     struct history_answer answer;
 *     struct rd_slice text;
 *     if (!history_ask(&answer, data, db, 4, argv_of_LRANGE, &err))
 *         ...
 *     while (history_answer_next(&answer, &text))
 *         ...
 *     history_answer_done(&answer);
 *
 * The strings and numbers of the reply come one after the other, whatever arrays they are in; a
 * null has a NULL pointer. Time: that of the command. Memory: the reply.
 */
#ifndef HISTORY_ASK_H
#define HISTORY_ASK_H

#include "engine/reply.h"
#include "rebuild/data.h"

struct history_answer {
    struct engine_reply reply;
    size_t at;
};

/* False: the command failed, which is a fault of the caller, or RD_ERR_MEMORY. */
bool history_ask(struct history_answer *ret, struct rebuild_data *data, unsigned db, size_t argc,
                 const struct rd_slice *argv, struct rd_err *err);
/* The same for a command of a few words and a key: "LRANGE", "0 -1". */
bool history_ask_key(struct history_answer *ret, struct rebuild_data *data, unsigned db,
                     const char *command, struct rd_slice key, const char *rest,
                     struct rd_err *err);
bool history_answer_next(struct history_answer *answer, struct rd_slice *ret);
/* The next `n` at once, borrowed from the answer; free the list with history_answer_list_done().
 * NULL: RD_ERR_MEMORY. Those that are missing are null. */
struct rd_slice *history_answer_list(struct history_answer *answer, size_t n, struct rd_err *err);
void history_answer_list_done(struct rd_slice *list);
void history_answer_done(struct history_answer *answer);

/* The type of a key; false: it does not exist. */
bool history_type_of(const struct rebuild_data *data, unsigned db, struct rd_slice key,
                     enum engine_type *ret);

#endif
