#include "history/ask.h"

#include "base/mem.h"
#include "base/num.h"
#include "engine/effects.h"

bool history_ask(struct history_answer *ret, struct rebuild_data *data, unsigned db, size_t argc,
                 const struct rd_slice *argv, struct rd_err *err)
{
    struct engine_effects fx = {.off = true};
    const struct engine_env env = {.now_us = data->now_us};
    unsigned was = data->session.db;
    *ret = (struct history_answer){.reply = {.proto = 2}};
    data->session.db = db;
    engine_apply(data->engine, &data->session, argc, argv, &env, &ret->reply, &fx);
    data->session.db = was;
    engine_effects_done(&fx);
    if (!ret->reply.error)
        return true;
    rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "%.100s", ret->reply.text);
    history_answer_done(ret);
    return false;
}

bool history_ask_key(struct history_answer *ret, struct rebuild_data *data, unsigned db,
                     const char *command, struct rd_slice key, const char *rest, struct rd_err *err)
{
    enum { WORDS = 8 };
    struct rd_slice argv[WORDS] = {rd_slice_str(command), key};
    size_t argc = 2;
    while (*rest != '\0' && argc < WORDS) {
        size_t len = strcspn(rest, " ");
        argv[argc++] = rd_slice(rest, len);
        rest += len + (rest[len] == ' ');
    }
    return history_ask(ret, data, db, argc, argv, err);
}

static struct rd_slice line_at(const struct history_answer *answer, size_t at)
{
    const uint8_t *p = answer->reply.buf.ptr + at;
    const uint8_t *end = memchr(p, '\r', answer->reply.buf.len - at);
    return rd_slice(p, end == NULL ? 0 : (size_t)(end - p));
}

bool history_answer_next(struct history_answer *answer, struct rd_slice *ret)
{
    enum { CRLF = 2 };
    while (answer->at < answer->reply.buf.len) {
        struct rd_slice line = line_at(answer, answer->at);
        struct rd_slice text = rd_slice(line.ptr + 1, line.len - 1);
        int64_t len;
        answer->at += line.len + CRLF;
        if (line.ptr[0] == '*' && !rd_slice_is(text, "-1"))
            continue;
        *ret = text;
        if (line.ptr[0] != '$' && line.ptr[0] != '*')
            return true;
        *ret = rd_slice(NULL, 0);
        if (!rd_num_get_i64(text, &len) || len < 0)
            return true;
        *ret = rd_slice(answer->reply.buf.ptr + answer->at, (size_t)len);
        answer->at += (size_t)len + CRLF;
        return true;
    }
    return false;
}

struct rd_slice *history_answer_list(struct history_answer *answer, size_t n, struct rd_err *err)
{
    struct rd_slice *list = rd_calloc(n + 1, sizeof *list);
    if (list == NULL)
        rd_err_nomem(err, (n + 1) * sizeof *list);
    for (size_t i = 0; list != NULL && i < n && history_answer_next(answer, &list[i]); i++) {
    }
    return list;
}

void history_answer_list_done(struct rd_slice *list)
{
    rd_free(list);
}

void history_answer_done(struct history_answer *answer)
{
    engine_reply_done(&answer->reply);
}

bool history_type_of(const struct rebuild_data *data, unsigned db, struct rd_slice key,
                     enum engine_type *ret)
{
    const struct engine_entry *entry = engine_db_find(engine_db(data->engine, db), key);
    if (entry != NULL)
        *ret = (enum engine_type)entry->value.type;
    return entry != NULL;
}
