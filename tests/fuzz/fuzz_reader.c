/* fuzz_reader.c - the reader over any bytes, in any detail, through any window.
 *
 * The first byte chooses detail, notes and batches, the second the window and what is done with
 * values; the rest is the snapshot. Nothing may crash or continue for ever, and the verdict must be
 * that of a reader that has all of the bytes in memory. (Which of two faults in one string is seen
 * first may differ, and a small window has limits of its own.)
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/src_impl.h"
#include "rdb/reader.h"
#include "tests/fuzz/huge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE_MAX_READ = 1 << 20 };

enum action { READ, SKIP, COPY, ALTERNATE };

struct verdict {
    bool huge; /* not read to its end */
    enum rd_err_code code;
    uint64_t offset;
};

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* Memory, small windows, and small reads. */
static struct rd_src *open_src(struct rd_slice file, unsigned choice)
{
    static const size_t windows[] = {512, 513, 600, 1024, 2048, 4096, 65536};
    static const size_t reads[] = {1, 3, 100, 1 << 20};
    struct rd_src *src = NULL, *inner;
    must(rd_src_open_memory(&inner, file, NULL, NULL));
    if (choice % 8 == 0)
        return inner;
    struct rd_src_opts opts = RD_SRC_OPTS(.window = windows[choice % 8 - 1]);
    must(rd_src_open_trickle(&src, inner, reads[choice / 8 % 4], &opts, NULL));
    return src;
}

/* A copy is what is in the file, unless the value refers to another record. */
static enum rdb_status pass_value(struct rdb_reader *r, struct rd_src *src, struct rd_slice file,
                                  bool copy, bool alone)
{
    struct rd_buf out = {0};
    struct rd_sink *sink;
    uint64_t from = rd_src_offset(src);
    if (!copy)
        return rdb_reader_skip_value(r);
    must(rd_sink_open_buf(&sink, &out, NULL, NULL));
    enum rdb_status st = rdb_reader_copy_value(r, sink);
    must(rd_sink_close(sink, NULL));
    if (st == RDB_EVENT && alone)
        must(rd_slice_eq(rd_buf_slice(&out),
                         rd_slice(file.ptr + from, (size_t)(rd_src_offset(src) - from))));
    rd_buf_done(&out);
    return st;
}

static struct verdict run(struct rd_slice file, const struct rdb_reader_opts *opts, unsigned source,
                          enum action action)
{
    struct rd_src *src = open_src(file, source);
    struct rdb_reader *r;
    struct rdb_event ev;
    enum rdb_status st;
    unsigned n_keys = 0;
    /* An element of an LZF string may take less than a byte of the file. */
    uint64_t limit = 1000 + 300 * (uint64_t)file.len;
    must(rdb_reader_new(&r, src, opts, NULL));
    while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT) {
        must(limit-- > 0);
        if (is_huge(&ev))
            break;
        if (ev.kind != RDB_KEY || action == READ)
            continue;
        n_keys++;
        if (action == ALTERNATE && n_keys % 3 == 0)
            continue;
        bool copy = action == COPY || (action == ALTERNATE && n_keys % 3 == 1);
        st = pass_value(r, src, file, copy, ev.raw.len > 0);
        if (st != RDB_EVENT)
            break;
    }
    must(st == RDB_END || st == RDB_FAIL || (st == RDB_EVENT && is_huge(&ev)));
    const struct rd_err *err = rdb_reader_err(r);
    must((err->code == RD_ERR_OK) == (st != RDB_FAIL));
    struct verdict v = {st == RDB_EVENT, err->code, err->offset};
    rdb_reader_free(r);
    rd_src_close(src);
    return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A fixture begins with its magic: it is taken as it is, and its length chooses. */
    bool whole = size > 1 && (data[0] == 'R' || data[0] == 'V');
    if (size < 2 || size > SIZE_MAX_READ)
        return 0;
    unsigned first = whole ? (unsigned)size : data[0], second = whole ? data[size - 1] : data[1];
    struct rd_slice file = whole ? rd_slice(data, size) : rd_slice(data + 2, size - 2);
    struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = (enum rdb_detail)(first % 4), .notes = first & 4,
                        .no_sum = first & 8, .max_name = first & 32 ? 100 : 0);
    enum action action = (enum action)(second >> 5 & 3);
    /* Batches run ahead of values, so that these are neither skipped nor copied. */
    opts.batch = (first & 16) && action == READ;
    opts.updates = true;
    struct verdict there = run(file, &opts, second % 32, action);
    opts.batch = false;
    struct verdict here = run(file, &opts, 0, action);
    if (there.huge || here.huge)
        return 0;
    if (there.code != RD_ERR_LIMIT)
        must((there.code == RD_ERR_OK) == (here.code == RD_ERR_OK));
    if (there.code == here.code && there.code != RD_ERR_LIMIT)
        must(there.offset == here.offset);
    return 0;
}
