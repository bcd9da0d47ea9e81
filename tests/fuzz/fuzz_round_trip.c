/* fuzz_round_trip.c - a snapshot that is read, written and read again says the same.
 *
 * The first byte chooses the target's version, whether packed encodings are copied, and
 * compression; the rest is the snapshot. What the reader refuses, and what the target cannot hold,
 * ends the run. What was written must be readable to its end and be equal, event by event, but for
 * encodings.
 */
#include <stdlib.h>

#include "rdb/reader.h"
#include "rdb/writer.h"
#include "tests/fuzz/huge.h"
#include "tests/rdb/logical.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WRITTEN_MAX = 16 << 20 };

static const int versions[] = {6, 7, 8, 9, 10, 11, 12, 80};

/* Reads to the end; false where the reader refuses something. The checksum of mutated bytes is
 * wrong, that of written ones must hold. */
static bool describe(struct rd_slice file, int version, bool sum, struct rd_buf *ret)
{
    struct rdb_reader_opts opts = RDB_READER_OPTS(.no_sum = !sum);
    struct logical l = {.version = version, .text = ret};
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    enum rdb_status st;
    if (!rd_src_open_memory(&src, file, NULL, NULL) || !rdb_reader_new(&r, src, &opts, NULL))
        abort();
    while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT)
        logical_add(&l, &ev);
    rdb_reader_free(r);
    rd_src_close(src);
    return st == RDB_END;
}

/* The version of a reader, as far as it determines the contents of events. */
static int version_of(const struct rdb_reader *r)
{
    return rdb_reader_dialect(r) == RDB_VALKEY ? 11 : rdb_reader_version(r);
}

static bool copy(struct rdb_reader *r, struct rdb_writer *w)
{
    struct rdb_event ev;
    struct rd_err err = {0};
    enum rdb_status st;
    while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT && !is_huge(&ev))
        if (!rdb_writer_put(w, &ev, &err)) {
            /* Blobs are copied unread, and may hold damage that shows when they are taken apart. */
            if (err.code != RD_ERR_UNSUPPORTED && err.code != RD_ERR_CORRUPT)
                abort();
            return false;
        }
    if (st != RDB_END)
        return false;
    if (!rdb_writer_end(w, &err))
        abort();
    return true;
}

static bool convert(struct rd_slice file, uint8_t choice, struct rd_buf *ret, int *ret_version)
{
    struct rdb_reader_opts reader_opts =
        RDB_READER_OPTS(.detail = choice & 8 ? RDB_DETAIL_PACKED : RDB_DETAIL_ELEMENTS);
    struct rdb_writer_opts opts =
        RDB_WRITER_OPTS(.version = versions[choice & 7], .compress = choice & 16);
    struct rd_src *src;
    struct rd_sink *sink;
    struct rdb_reader *r;
    struct rdb_writer *w;
    opts.dialect = opts.version >= RDB_VERSION_VALKEY_MIN ? RDB_VALKEY : RDB_REDIS;
    if (!rd_src_open_memory(&src, file, NULL, NULL) ||
        !rdb_reader_new(&r, src, &reader_opts, NULL) || !rd_sink_open_buf(&sink, ret, NULL, NULL) ||
        !rdb_writer_new(&w, sink, &opts, NULL))
        abort();
    bool ok = copy(r, w);
    *ret_version = version_of(r) < opts.version ? version_of(r) : opts.version;
    rdb_writer_free(w);
    rdb_reader_free(r);
    rd_src_close(src);
    return rd_sink_close(sink, NULL) && ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A fixture begins with its magic: it is taken as it is, and its length chooses. */
    bool whole = size > 0 && (data[0] == 'R' || data[0] == 'V');
    if (size == 0)
        return 0;
    uint8_t choice = whole ? (uint8_t)(size * 7 + data[size - 1]) : data[0];
    struct rd_slice file = whole ? rd_slice(data, size) : rd_slice(data + 1, size - 1);
    struct rd_buf written = {0}, before = {0}, after = {0};
    int version;
    if (convert(file, choice, &written, &version) && written.len < WRITTEN_MAX) {
        if (!describe(file, version, false, &before))
            abort();
        if (!describe(rd_buf_slice(&written), version, true, &after))
            abort();
        if (!rd_slice_eq(rd_buf_slice(&before), rd_buf_slice(&after)))
            abort();
    }
    rd_buf_done(&written);
    rd_buf_done(&before);
    rd_buf_done(&after);
    return 0;
}
