/* The replay of one key holds what a replay of everything holds, after every command. */
#include <criterion/criterion.h>

#include "engine/digest.h"
#include "history/indexes.h"
#include "history/replay.h"
#include "tests/history/streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_COMMANDS = 6000 };

/* What all keys are after the command at an offset. */
struct row {
    uint64_t offset;
    uint8_t sums[STREAMS_DBS][STREAMS_KEYS][ENGINE_DIGEST];
};

struct model {
    struct row *rows;
    size_t n;
    struct rebuild_data data;
    char path[80], folder[100];
};

static void sum_key(const struct rebuild_data *data, unsigned db, struct rd_slice key,
                    uint8_t ret[ENGINE_DIGEST])
{
    if (!engine_digest_key(engine_db(data->engine, db), key, ret))
        memset(ret, 0, ENGINE_DIGEST);
}

static bool take(void *ctx, const struct history_command *command, struct rd_err *err)
{
    struct model *m = ctx;
    const struct rebuild_step step = {
        .command = command->line, .name = "log", .offset = command->offset, .now_us = 1000000};
    m->data.session.db = (unsigned)command->db;
    if (command->kind == REPL_SELECT)
        return true;
    if (command->kind == REPL_WRITE)
        cr_assert(rebuild_data_apply(&m->data, &step, err), "%s", err->text);
    cr_assert_lt(m->n, MAX_COMMANDS);
    struct row *row = &m->rows[m->n++];
    row->offset = command->offset;
    for (unsigned db = 0; db < STREAMS_DBS; db++)
        for (unsigned key = 0; key < STREAMS_KEYS; key++)
            sum_key(&m->data, db, streams_key(key), row->sums[db][key]);
    return true;
}

static void put_file(const char *path, const struct rd_buf *bytes)
{
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert(bytes->len == 0 || fwrite(bytes->ptr, 1, bytes->len, file) == bytes->len);
    fclose(file);
}

/* A log of two files, of which the first is complete and gets an index. */
static void put_log(struct model *m, uint64_t seed)
{
    struct rd_buf log = {0}, second = {0};
    char path[120];
    const char text[] = "file l.1.incr.aof seq 1 type i\nfile l.2.incr.aof seq 2 type i\n";
    snprintf(m->path, sizeof m->path, "/tmp/redoubt-history-XXXXXX");
    cr_assert_not_null(mkdtemp(m->path));
    snprintf(m->folder, sizeof m->folder, "%s/keys", m->path);
    cr_assert_eq(mkdir(m->folder, 0700), 0);
    streams_make(seed, 500, &log);
    cr_assert(rd_buf_add(&second, log.ptr, 0));
    snprintf(path, sizeof path, "%s/l.1.incr.aof", m->path);
    put_file(path, &log);
    snprintf(path, sizeof path, "%s/l.2.incr.aof", m->path);
    put_file(path, &second);
    struct rd_buf manifest = {.ptr = (uint8_t *)(uintptr_t)text, .len = sizeof text - 1};
    snprintf(path, sizeof path, "%s/l.manifest", m->path);
    put_file(path, &manifest);
    rd_buf_done(&log);
    rd_buf_done(&second);
}

static void remove_all(const struct model *m)
{
    char command[200];
    snprintf(command, sizeof command, "rm -r %s", m->path);
    cr_assert_eq(system(command), 0);
}

struct watch {
    const struct model *m;
    unsigned db, key;
    size_t next; /* row that was not compared yet */
    uint8_t sum[ENGINE_DIGEST];
    const char *what;
    uint64_t seed;
};

static void compare_upto(struct watch *w, uint64_t offset)
{
    for (; w->next < w->m->n && w->m->rows[w->next].offset < offset; w->next++)
        cr_assert_arr_eq(w->m->rows[w->next].sums[w->db][w->key], w->sum, ENGINE_DIGEST,
                         "seed %u, key %u of db %u, at offset %u", (unsigned)w->seed, w->key, w->db,
                         (unsigned)w->m->rows[w->next].offset);
}

static bool visit(void *ctx, const struct history_visit *v, struct rd_err *err)
{
    struct watch *w = ctx;
    (void)err;
    if (v->moment == HISTORY_BEFORE)
        compare_upto(w, v->place.offset);
    if (v->moment == HISTORY_AFTER)
        sum_key(v->data, w->db, streams_key(w->key), w->sum);
    return true;
}

static void restart(void *ctx)
{
    struct watch *w = ctx;
    w->next = 0;
    memset(w->sum, 0, sizeof w->sum);
}

static uint64_t check_key(const struct model *m, struct history_tape *tape, const char *folder,
                          struct watch *w)
{
    struct history_names names = {0};
    struct history_indexes indexes = {.folder = folder, .salt = {1, 2, 3}, .stride = 200};
    struct rd_err err = {0};
    (void)m;
    cr_assert(history_names_add(&names, streams_key(w->key), NULL, &err));
    const struct history_replay_opts opts = {.tape = tape,
                                             .indexes = &indexes,
                                             .names = &names,
                                             .now_us = 1000000,
                                             .visit = visit,
                                             .restart = restart,
                                             .ctx = w};
    cr_assert(history_replay(&opts, &err), "%s: %s", err.origin, err.text);
    compare_upto(w, UINT64_MAX);
    history_names_done(&names);
    return indexes.used;
}

static void check_stream(uint64_t seed)
{
    struct model m = {.rows = calloc(MAX_COMMANDS, sizeof(struct row))};
    struct history_tape tape;
    struct rd_err err = {0};
    put_log(&m, seed);
    cr_assert(history_tape_open(&tape, m.path, &err), "%s: %s", err.origin, err.text);
    rebuild_data_begin(&m.data, 1000000);
    for (size_t i = 0; i < tape.n; i++)
        cr_assert(history_tape_read(&tape, i, NULL, take, &m, &err), "%s", err.text);
    rebuild_data_end(&m.data);
    for (unsigned db = 0; db < STREAMS_DBS; db++)
        for (unsigned key = 0; key < STREAMS_KEYS; key++) {
            struct watch w = {.m = &m, .db = db, .key = key, .seed = seed};
            uint64_t used = check_key(&m, &tape, key % 4 == 0 ? NULL : m.folder, &w);
            cr_assert_eq(used > 0, key % 4 != 0);
        }
    history_tape_close(&tape);
    remove_all(&m);
    free(m.rows);
}

Test(replay, equals_a_full_rebuild)
{
    const char *from = getenv("HISTORY_SEED"), *count = getenv("HISTORY_STREAMS");
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;
    uint64_t n = count != NULL ? strtoull(count, NULL, 10) : 12;
    for (uint64_t seed = first; seed < first + n; seed++)
        check_stream(seed);
}
