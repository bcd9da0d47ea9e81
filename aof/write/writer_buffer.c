/* Adds commands to the buffer.
 *
 * Everything that belongs to a command (annotation, SELECT) is added with it or not at all.
 */
#include <strings.h>

#include "aof/write/writer_impl.h"
#include "base/num.h"
#include "base/resp.h"

enum { HEADER_MAX = 1 + RD_NUM_I64_MAX + 2, ANNOTATION_MAX = 1000 };

static bool add_header(struct rd_buf *buf, char type, uint64_t n)
{
    char text[HEADER_MAX];
    text[0] = type;
    size_t len = 1 + rd_num_put_u64(text + 1, n);
    text[len++] = '\r';
    text[len++] = '\n';
    return rd_buf_add(buf, text, len);
}

static bool add_command(struct rd_buf *buf, const struct rd_slice *argv, size_t argc)
{
    bool ok = add_header(buf, '*', argc);
    for (size_t i = 0; ok && i < argc; i++)
        ok = add_header(buf, '$', argv[i].len) && rd_buf_add(buf, argv[i].ptr, argv[i].len) &&
             rd_buf_add(buf, "\r\n", 2);
    return ok;
}

static bool add_select(struct aof_writer *w, uint64_t db)
{
    char number[RD_NUM_I64_MAX];
    struct rd_slice argv[] = {rd_slice_str("SELECT"), rd_slice(number, rd_num_put_u64(number, db))};
    w->said.db = db;
    return add_command(&w->buf, argv, 2);
}

static bool add_time(struct aof_writer *w, int64_t now_ms)
{
    int64_t now_s = now_ms / 1000 - (now_ms % 1000 < 0);
    if (!w->timestamps || w->in_multi || now_s <= w->said.time_s)
        return true;
    w->said.time_s = now_s;
    char text[RD_NUM_I64_MAX];
    size_t len = rd_num_put_i64(text, now_s);
    return rd_buf_add(&w->buf, "#TS:", 4) && rd_buf_add(&w->buf, text, len) &&
           rd_buf_add(&w->buf, "\r\n", 2);
}

static bool add_all(struct aof_writer *w, uint64_t db, const struct rd_slice *argv, size_t argc,
                    int64_t now_ms)
{
    return add_time(w, now_ms) && (db == w->said.db || add_select(w, db)) &&
           add_command(&w->buf, argv, argc);
}

static bool add_or_take_back(struct aof_writer *w, uint64_t db, const struct rd_slice *argv,
                             size_t argc, int64_t now_ms, struct rd_err *err)
{
    size_t len = w->buf.len;
    struct aof_said said = w->said;
    if (add_all(w, db, argv, argc, now_ms))
        return true;
    w->buf.len = len;
    w->said = said;
    return rd_err_set(err, RD_ERR_MEMORY, RD_NO_OFFSET, "no memory to buffer a command of the log");
}

static bool is_word(struct rd_slice arg, const char *word)
{
    return arg.len == strlen(word) && strncasecmp((const char *)arg.ptr, word, arg.len) == 0;
}

/* A log that is not valid yet accepts commands only during a rewrite. */
static bool has_file(const struct aof_writer *w, struct rd_err *err)
{
    return RD_LIKELY(w->fd >= 0) || rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                                               "the log accepts no commands before a rewrite");
}

static bool acceptable(uint64_t db, const struct rd_slice *argv, size_t argc, struct rd_err *err)
{
    if (argc == 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a command without arguments");
    if (db > INT32_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "database %llu does not exist",
                          (unsigned long long)db);
    if (is_word(argv[0], "SELECT") || is_word(argv[0], "MULTI") || is_word(argv[0], "EXEC") ||
        is_word(argv[0], "DISCARD"))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "SELECT and transactions are written by the log itself");
    if (argc > INT32_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "a command of %zu arguments", argc);
    for (size_t i = 0; i < argc; i++)
        if (argv[i].len > RESP_MAX_BULK)
            return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "an argument of %zu bytes",
                              argv[i].len);
    return true;
}

bool aof_writer_append(struct aof_writer *w, uint64_t db, const struct rd_slice *argv, size_t argc,
                       int64_t now_ms, struct rd_err *err)
{
    return !aof_flush_dead(w, err) && has_file(w, err) && acceptable(db, argv, argc, err) &&
           add_or_take_back(w, db, argv, argc, now_ms, err);
}

bool aof_writer_multi_begin(struct aof_writer *w, uint64_t db, int64_t now_ms, struct rd_err *err)
{
    if (aof_flush_dead(w, err) || !has_file(w, err))
        return false;
    if (w->in_multi)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a transaction inside of another");
    size_t at = w->buf.len;
    struct aof_said said = w->said;
    struct rd_slice multi = rd_slice_str("MULTI");
    if (!add_or_take_back(w, db, &multi, 1, now_ms, err))
        return false;
    w->in_multi = true;
    w->multi_at = at;
    w->multi_empty = w->buf.len;
    w->multi_said = said;
    return true;
}

bool aof_writer_multi_end(struct aof_writer *w, struct rd_err *err)
{
    if (aof_flush_dead(w, err))
        return false;
    if (!w->in_multi)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no open transaction to end");
    if (w->buf.len == w->multi_empty) {
        aof_writer_multi_drop(w);
        return true;
    }
    struct rd_slice exec = rd_slice_str("EXEC");
    if (!add_or_take_back(w, w->said.db, &exec, 1, 0, err))
        return false;
    w->in_multi = false;
    return true;
}

void aof_writer_multi_drop(struct aof_writer *w)
{
    if (!w->in_multi)
        return;
    w->buf.len = w->multi_at;
    w->said = w->multi_said;
    w->in_multi = false;
}

bool aof_writer_annotate(struct aof_writer *w, struct rd_slice line, struct rd_err *err)
{
    if (aof_flush_dead(w, err) || !has_file(w, err))
        return false;
    if (w->in_multi)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "an annotation inside a transaction");
    if (line.len == 0 || line.len > ANNOTATION_MAX || line.ptr[0] != '#' ||
        memchr(line.ptr, '\r', line.len) != NULL || memchr(line.ptr, '\n', line.len) != NULL ||
        memchr(line.ptr, '\0', line.len) != NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "not a line that annotates a log");
    size_t len = w->buf.len;
    if (rd_buf_add(&w->buf, line.ptr, line.len) && rd_buf_add(&w->buf, "\r\n", 2))
        return true;
    w->buf.len = len;
    return rd_err_set(err, RD_ERR_MEMORY, RD_NO_OFFSET, "no memory to buffer an annotation");
}
