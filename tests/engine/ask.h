/* ask.h - an engine with one session, and what it says to lines of words; for the tests of
 * commands.
 *
 *     struct ask ask;
 *     ask_init(&ask, ENGINE_CLIENT);
 *     cr_assert_str_eq(ask_line(&ask, "SET key 1"), "+OK\r\n");
 *     cr_assert_str_eq(ask_effects(&ask), "SET key 1");
 *     ask_done(&ask);
 */
#ifndef TESTS_ENGINE_ASK_H
#define TESTS_ENGINE_ASK_H

#include <criterion/criterion.h>

#include "engine/db.h"
#include "engine/engine.h"
#include "engine/session.h"

#include <stdio.h>

struct ask {
    struct engine *engine;
    struct engine_session session;
    struct engine_env env;
    struct engine_reply reply;
    struct engine_effects fx;
    char words[1024]; /* of the last line: its effects borrow them */
    struct rd_slice argv[64];
    char text[4096];
};

static inline void ask_init(struct ask *ask, enum engine_role role)
{
    *ask = (struct ask){.reply = {.proto = 2}, .env = {.now_us = INT64_C(1700000000000000)}};
    ask->engine = engine_new(&(struct engine_opts){.seed = 1});
    engine_session_init(&ask->session, ask->engine, role);
}

static inline void ask_done(struct ask *ask)
{
    engine_reply_done(&ask->reply);
    engine_effects_done(&ask->fx);
    engine_session_done(&ask->session);
    engine_delete(ask->engine);
}

/* The reply as text; it lives until the next call. */
static inline const char *ask_argv(struct ask *ask, size_t argc, const struct rd_slice *argv)
{
    engine_reply_reset(&ask->reply);
    enum engine_status status =
        engine_apply(ask->engine, &ask->session, argc, argv, &ask->env, &ask->reply, &ask->fx);
    cr_assert_eq(status, ENGINE_OK);
    struct rd_slice bytes = rd_buf_slice(&ask->reply.buf);
    size_t len = bytes.len < sizeof ask->text ? bytes.len : sizeof ask->text - 1;
    memcpy(ask->text, bytes.ptr, len);
    ask->text[len] = '\0';
    return ask->text;
}

static inline const char *ask_line(struct ask *ask, const char *line)
{
    size_t argc = 0;
    snprintf(ask->words, sizeof ask->words, "%s", line);
    for (char *word = strtok(ask->words, " "); word != NULL; word = strtok(NULL, " "))
        ask->argv[argc++] = rd_slice_str(word);
    return ask_argv(ask, argc, ask->argv);
}

/* The effects of the last command: words parted by blanks, commands by a semicolon. What does not
 * fit is left out. */
static inline const char *ask_effects(struct ask *ask)
{
    size_t len = 0;
    ask->text[0] = '\0';
    for (size_t i = 0; i < ask->fx.n; i++) {
        const struct engine_effect *effect = &ask->fx.list[i];
        for (size_t k = 0; k < effect->argc && len < sizeof ask->text; k++)
            len += (size_t)snprintf(ask->text + len, sizeof ask->text - len, "%s%.*s",
                                    k > 0   ? " "
                                    : i > 0 ? "; "
                                            : "",
                                    (int)effect->argv[k].len, (const char *)effect->argv[k].ptr);
    }
    return ask->text;
}

static inline const char *ask_encoding(struct ask *ask, const char *key)
{
    const struct engine_entry *entry =
        engine_db_find(engine_db(ask->engine, ask->session.db), rd_slice_str(key));
    return entry != NULL ? engine_encoding_name(&entry->value) : "none";
}

#endif
