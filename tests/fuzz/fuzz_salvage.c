/* fuzz_salvage.c - whatever the bytes are, what is salvaged out of them is a sound snapshot.
 *
 * The last byte chooses whether cut collections are kept in part.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "rdb/salvage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The search for the way back costs some dozens of attempts a byte. */
enum { SNAPSHOT_MAX = 1 << 16 };

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void check_out(struct rd_slice out, uint64_t keys)
{
    struct rdb_check_opts opts = RDB_CHECK_OPTS(.single_thread = true);
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct rd_src *src;
    must(rd_src_open_memory(&src, out, NULL, NULL));
    must(rdb_check(src, &opts, &res, NULL));
    must(!res.damaged && res.errors == 0 && res.trailing == 0 && res.keys == keys);
    must(res.sum == RDB_SUM_OK || res.sum == RDB_SUM_NONE || res.stored == 0);
    rd_src_close(src);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > SNAPSHOT_MAX)
        return 0;
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.partial = data[size - 1] & 1);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf out = {0};
    struct rd_src *src, *copy;
    struct rd_sink *sink;
    struct rd_slice file = rd_slice(data, size);
    must(rd_src_open_memory(&src, file, NULL, NULL));
    must(rd_src_open_memory(&copy, file, NULL, NULL));
    must(rd_sink_open_buf(&sink, &out, NULL, NULL));
    must(rdb_salvage(src, copy, sink, &opts, &res, NULL));
    must(rd_sink_close(sink, NULL));
    must(res.bytes_lost <= size);
    check_out(rd_buf_slice(&out), res.keys);
    rd_buf_done(&out);
    rd_src_close(src);
    rd_src_close(copy);
    return 0;
}
