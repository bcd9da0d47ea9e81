/* Strings, keys and entries that are taken without events make what their events make: of every
 * fixture, with windows and pieces of several sizes. */
#include "base/buf.h"
#include "base/src_impl.h"
#include "rdb/commands.h"
#include "rdb/plain.h"
#include "data/ndjson.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdlib.h>

enum { TEXTS_MAX = 64, N_HOW = 4 };

enum target { LINES, COMMANDS };

struct made {
    struct rd_buf bytes;
    bool ok;
    enum rd_err_code code;
    uint64_t offset;
    size_t n_texts, n_keys, n_entries;
};

struct job {
    struct rd_sink *out;
    struct ndjson *lines;
    struct rdb_commands *commands;
    uint64_t db; /* of the last key */
};

static bool put(struct job *job, const struct rdb_event *ev, struct rd_err *err)
{
    return job->lines != NULL ? ndjson_put(job->lines, ev, err)
                              : rdb_commands_put(job->commands, ev, err);
}

static bool put_texts(struct job *job, const struct rdb_text *texts, size_t n, struct rd_err *err)
{
    return job->lines != NULL ? ndjson_put_texts(job->lines, texts, n, err)
                              : rdb_commands_put_texts(job->commands, texts, n, err);
}

static bool put_plain(struct job *job, const struct rdb_plain *keys, size_t n, struct rd_err *err)
{
    return job->lines != NULL ? ndjson_put_plain(job->lines, job->db, keys, n, err)
                              : rdb_commands_put_plain(job->commands, job->db, keys, n, err);
}

static bool put_entry(struct job *job, struct rdb_stream_id id, const struct rdb_text *texts,
                      size_t n, struct rd_err *err)
{
    return job->lines != NULL ? ndjson_put_entry(job->lines, id, texts, n, err)
                              : rdb_commands_put_entry(job->commands, id, texts, n, err);
}

/* What follows an event and needs none. */
static bool put_more(struct rdb_reader *reader, struct job *job, const struct rdb_event *ev,
                     size_t max, struct made *made, struct rd_err *err)
{
    struct rdb_text texts[TEXTS_MAX];
    struct rdb_plain keys[TEXTS_MAX];
    struct rdb_stream_id id;
    size_t n;
    if (ev->kind == RDB_KEY)
        job->db = ev->key.db;
    while (ev->kind == RDB_VALUE_END && (n = rdb_plain_take(reader, UINT64_MAX, keys, max)) > 0) {
        cr_assert_leq(n, max);
        made->n_keys += n;
        if (!put_plain(job, keys, n, err))
            return false;
    }
    if (ev->kind != RDB_ELEM || ev->elem.str.more)
        return true;
    while ((n = rdb_reader_texts(reader, texts, max)) > 0) {
        cr_assert_leq(n, max);
        made->n_texts += n;
        if (!put_texts(job, texts, n, err))
            return false;
    }
    while ((n = rdb_plain_entry(reader, &id, texts, max)) > 0) {
        cr_assert_leq(n, max);
        made->n_entries++;
        if (!put_entry(job, id, texts, n, err))
            return false;
    }
    return true;
}

/* max 0: events alone. */
static bool pump(struct rdb_reader *reader, struct job *job, size_t max, struct made *made,
                 struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status st;
    while ((st = rdb_reader_next(reader, &ev)) == RDB_EVENT)
        if (!put(job, &ev, err) || (max > 0 && !put_more(reader, job, &ev, max, made, err)))
            return false;
    rd_err_adopt(err, rdb_reader_err(reader));
    return st == RDB_END;
}

static struct made convert(const char *path, enum target target, unsigned how, size_t max)
{
    static const struct {
        size_t window, piece;
    } settings[N_HOW] = {{0, 0}, {512, 0}, {4096, 7}, {0, 1000}};
    const struct rd_src_opts src_opts = RD_SRC_OPTS(.window = settings[how].window);
    const struct rdb_commands_opts commands =
        RDB_COMMANDS_OPTS(.lossy = true, .max_elems = how + 1, .max_bytes = how == 2 ? 200 : 0);
    struct rdb_reader *reader = NULL;
    struct made made = {0};
    struct rd_err err = {0};
    struct job job = {0};
    struct rd_src *src;
    cr_assert(rd_src_open_file(&src, path, &src_opts, &err));
    cr_assert(settings[how].piece == 0 ||
              rd_src_open_trickle(&src, src, settings[how].piece, &src_opts, &err));
    cr_assert(rd_sink_open_buf(&job.out, &made.bytes, NULL, &err));
    cr_assert(rdb_reader_new(&reader, src, NULL, &err));
    cr_assert(target == LINES ? ndjson_new(&job.lines, job.out, NULL, &err)
                              : rdb_commands_new(&job.commands, job.out, &commands, &err));
    made.ok = pump(reader, &job, max, &made, &err);
    if (made.ok && job.commands != NULL)
        made.ok = rdb_commands_end(job.commands, &err);
    made.code = err.code;
    made.offset = err.offset;
    cr_assert(rd_sink_flush(job.out));
    ndjson_free(job.lines);
    rdb_commands_free(job.commands);
    rdb_reader_free(reader);
    rd_src_close(src);
    struct rd_buf bytes = made.bytes;
    made.bytes = (struct rd_buf){0};
    cr_assert(rd_buf_add(&made.bytes, bytes.ptr, bytes.len));
    rd_buf_done(&bytes);
    rd_sink_abort(job.out);
    return made;
}

static size_t n_files, n_texts, n_keys, n_entries;

static void compare(const char *path, enum target target, unsigned how, size_t max)
{
    struct made events = convert(path, target, how, 0), texts = convert(path, target, how, max);
    cr_expect_eq(events.ok, texts.ok, "%s", path);
    cr_expect_eq(events.code, texts.code, "%s", path);
    cr_expect_eq(events.offset, texts.offset, "%s", path);
    cr_expect(rd_slice_eq(rd_buf_slice(&events.bytes), rd_buf_slice(&texts.bytes)),
              "%s, target %d, setting %u, %zu at a time", path, target, how, max);
    n_texts += texts.n_texts;
    n_keys += texts.n_keys;
    n_entries += texts.n_entries;
    rd_buf_done(&events.bytes);
    rd_buf_done(&texts.bytes);
}

static int visit(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    size_t len = strlen(path);
    (void)ftw;
    if (kind != FTW_F || len < 4 || strcmp(path + len - 4, ".rdb") != 0 || st->st_size > 1 << 20)
        return 0;
    n_files++;
    for (unsigned how = 0; how < N_HOW; how++) {
        compare(path, LINES, how, how == 0 ? TEXTS_MAX : 2 + how);
        compare(path, COMMANDS, how, how == 0 ? TEXTS_MAX : 2 + how);
    }
    return 0;
}

Test(texts, make_what_events_make)
{
    const char *fixtures = getenv("REDOUBT_FIXTURES");
    cr_assert_not_null(fixtures);
    cr_assert_eq(nftw(fixtures, visit, 16, FTW_PHYS), 0);
    cr_expect_gt(n_files, 20);
    cr_expect_gt(n_texts, 1000);
    cr_expect_gt(n_keys, 1000);
    cr_expect_gt(n_entries, 1000);
}
