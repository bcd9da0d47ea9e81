/* fuzz_ndjson.c - the reader of JSON lines takes any bytes; what it accepts is a sound snapshot.
 *
 * The first byte chooses: bits 0 and 1 the form of strings, bit 2 a small window, bits 3 to 5 the
 * version. The rest are lines. Every value that the reader stages must be one that the reader of
 * snapshots finds sound, and the events with these values, copied, make a snapshot that is read to
 * its end. That snapshot's lines are read again and must give the same lines.
 */
#include "base/src_impl.h"
#include "rdb/reader.h"
#include "rdb/writer.h"
#include "data/ndjson.h"
#include "data/ndjson_read.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FORM_MASK = 3, SMALL_WINDOW = 4, VERSION_SHIFT = 3, WINDOW = 512, TRICKLE = 7 };

static void check(bool ok, const char *what, const struct rd_err *err)
{
    char text[RD_ERR_TEXT_MAX];
    if (ok)
        return;
    fprintf(stderr, "fuzz_ndjson: %s: %s\n", what, rd_err_render(err, text, sizeof text));
    abort();
}

static struct rd_src *open_src(struct rd_slice bytes, bool small)
{
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = WINDOW);
    struct rd_err err = {0};
    struct rd_src *src;
    check(rd_src_open_memory(&src, bytes, NULL, &err), "memory", &err);
    if (small)
        check(rd_src_open_trickle(&src, src, TRICKLE, &opts, &err), "memory", &err);
    return src;
}

/* Reads the whole value again: it was made here, so nothing in it can be wrong. */
static void check_value(const struct stage *value, const struct rdb_type *type)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .no_sum = true);
    bool valkey = type->family == RDB_FAMILY_VALKEY;
    struct rdb_reader *reader;
    struct rd_err err = {0};
    struct rdb_event ev;
    struct rd_src *src;
    enum rdb_status st;
    check(stage_source(value, type->number, &src, &err), "stage", &err);
    check(rdb_reader_new_value(&reader, src, valkey ? RDB_VALKEY : RDB_REDIS,
                               valkey ? RDB_VERSION_VALKEY_MAX : RDB_VERSION_REDIS_MAX, &opts,
                               &err),
          "reader", &err);
    while ((st = rdb_reader_next(reader, &ev)) == RDB_EVENT)
        ;
    check(st == RDB_END, "a value that was made is not sound", rdb_reader_err(reader));
    rdb_reader_free(reader);
    rd_src_close(src);
}

static bool put(struct rdb_writer *w, struct ndjson_reader *lines, const struct rdb_event *ev,
                struct rd_err *err)
{
    struct rd_sink *to;
    if (!rdb_writer_put(w, ev, err))
        return false;
    if (ev->kind != RDB_KEY)
        return true;
    check_value(ndjson_reader_value(lines), ev->key.type);
    return rdb_writer_can_copy(w, ev->key.type) && rdb_writer_copy_begin(w, &to, err) &&
           stage_move(ndjson_reader_value(lines), to, err) && rdb_writer_copy_end(w, err);
}

/* Lines to a snapshot; false: they are refused, by the reader or, for what a version does not
 * have, by the writer. */
static bool to_snapshot(struct rd_slice bytes, uint8_t how, struct rd_buf *ret)
{
    static const struct {
        enum rdb_dialect dialect;
        int version;
    } targets[] = {{RDB_REDIS, 0}, {RDB_REDIS, 12}, {RDB_REDIS, 11},  {RDB_REDIS, 9},
                   {RDB_REDIS, 6}, {RDB_REDIS, 10}, {RDB_VALKEY, 80}, {RDB_VALKEY, 0}};
    unsigned target = how >> VERSION_SHIFT & 7;
    const struct ndjson_read_opts opts = {.strings = (enum json_form)((how & FORM_MASK) % 3),
                                          .dialect = targets[target].dialect,
                                          .version = targets[target].version};
    const struct rdb_writer_opts wopts =
        RDB_WRITER_OPTS(.dialect = opts.dialect, .version = opts.version, .lossy = true);
    struct rd_src *src = open_src(bytes, (how & SMALL_WINDOW) != 0);
    struct ndjson_reader *lines;
    struct rdb_writer *w;
    struct rd_sink *sink;
    struct rdb_event ev;
    struct rd_err err = {0};
    check(rd_sink_open_buf(&sink, ret, NULL, &err), "memory", &err);
    check(ndjson_reader_new(&lines, src, &opts, &err), "memory", &err);
    check(rdb_writer_new(&w, sink, &wopts, &err), "writer", &err);
    enum ndjson_status st = NDJSON_EVENT;
    bool ok = true;
    while (ok && (st = ndjson_reader_next(lines, &ev)) == NDJSON_EVENT)
        ok = put(w, lines, &ev, &err);
    ok = ok && st == NDJSON_END && rdb_writer_end(w, &err);
    if (st == NDJSON_FAIL)
        check(ndjson_reader_err(lines)->code != RD_ERR_OK, "failed without an error", &err);
    rdb_writer_free(w);
    ndjson_reader_free(lines);
    rd_src_close(src);
    if (ok)
        check(rd_sink_close(sink, &err), "memory", &err);
    else
        rd_sink_abort(sink);
    return ok;
}

static void to_lines(struct rd_slice bytes, enum json_form form, struct rd_buf *ret)
{
    const struct ndjson_opts opts = {.strings = form, .meta = true};
    struct rd_src *src = open_src(bytes, false);
    struct rdb_reader *reader;
    struct ndjson *lines;
    struct rd_sink *sink;
    struct rd_err err = {0};
    struct rdb_event ev;
    enum rdb_status st;
    check(rd_sink_open_buf(&sink, ret, NULL, &err), "memory", &err);
    check(rdb_reader_new(&reader, src, NULL, &err), "reader", &err);
    check(ndjson_new(&lines, sink, &opts, &err), "memory", &err);
    while ((st = rdb_reader_next(reader, &ev)) == RDB_EVENT)
        check(ndjson_put(lines, &ev, &err), "lines", &err);
    check(st == RDB_END, "a snapshot that was made is not sound", rdb_reader_err(reader));
    ndjson_free(lines);
    rdb_reader_free(reader);
    rd_src_close(src);
    check(rd_sink_close(sink, &err), "memory", &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rd_buf snapshot = {0}, lines = {0}, again = {0}, second = {0};
    struct rd_err err = {0};
    if (size < 1)
        return 0;
    uint8_t how = data[0];
    enum json_form form = (enum json_form)((how & FORM_MASK) % 3);
    if (to_snapshot(rd_slice(data + 1, size - 1), how, &snapshot)) {
        to_lines(rd_buf_slice(&snapshot), form, &lines);
        if (to_snapshot(rd_buf_slice(&lines), how, &again)) {
            to_lines(rd_buf_slice(&again), form, &second);
            check(rd_slice_eq(rd_buf_slice(&lines), rd_buf_slice(&second)),
                  "lines that were read again are others", &err);
        }
    }
    rd_buf_done(&snapshot);
    rd_buf_done(&lines);
    rd_buf_done(&again);
    rd_buf_done(&second);
    return 0;
}
