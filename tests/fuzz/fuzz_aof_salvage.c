/* fuzz_aof_salvage.c - whatever the bytes are, what is salvaged out of them is a whole log: salvage
 * finds nothing to leave out of it, and aof/reader.h reads it to its end.
 */
#include <stdlib.h>

#include "aof/reader.h"
#include "aof/salvage.h"
#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LOG_MAX = 1 << 16 };

static void must(bool ok)
{
    if (!ok)
        abort();
}

static struct aof_salvage_result salvage(struct rd_slice file, struct rd_buf *out)
{
    const struct aof_salvage_opts opts = AOF_SALVAGE_OPTS();
    struct aof_salvage_result res = AOF_SALVAGE_RESULT();
    struct rd_src *src, *copy;
    struct rd_sink *sink;
    must(rd_src_open_memory(&src, file, NULL, NULL));
    must(rd_src_open_memory(&copy, file, NULL, NULL));
    must(rd_sink_open_buf(&sink, out, NULL, NULL));
    must(aof_salvage_file(src, copy, sink, "fuzz", false, &opts, &res, NULL));
    must(rd_sink_close(sink, NULL));
    rd_src_close(src);
    rd_src_close(copy);
    return res;
}

static void read_all(struct rd_slice file)
{
    struct rd_src *src;
    struct aof_reader *r;
    struct aof_event ev;
    enum aof_status st;
    must(rd_src_open_memory(&src, file, NULL, NULL));
    must(aof_reader_new_file(&r, src, NULL, NULL));
    while ((st = aof_reader_next(r, &ev)) == AOF_EVENT)
        ;
    must(st == AOF_END);
    aof_reader_free(r);
    rd_src_close(src);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > LOG_MAX)
        return 0;
    struct rd_buf out = {0}, again = {0};
    struct aof_salvage_result res = salvage(rd_slice(data, size), &out);
    must(res.bytes_lost <= size);
    read_all(rd_buf_slice(&out));
    res = salvage(rd_buf_slice(&out), &again);
    must(res.losses == 0 && rd_slice_eq(rd_buf_slice(&out), rd_buf_slice(&again)));
    rd_buf_done(&out);
    rd_buf_done(&again);
    return 0;
}
