/* fuzz_dump.c - payloads of DUMP: opened, verified, read, and made again.
 *
 * The first byte chooses whether the checksum is put right, else hardly an input would get past it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc64.h"
#include "base/endian.h"
#include "rdb/dump.h"
#include "tests/fuzz/huge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PAYLOAD_MAX = 1 << 20 };

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* Reads the value with every element; true: to the end. */
static bool read_value(const struct rdb_dump *dump, struct rd_slice payload, enum rdb_detail detail,
                       enum rd_err_code *ret_code)
{
    struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = detail);
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    enum rdb_status st;
    uint64_t limit = 1000 + 300 * (uint64_t)payload.len;
    must(rd_src_open_memory(&src, rd_slice(payload.ptr, dump->value.len + 1), NULL, NULL));
    must(rdb_reader_new_value(&r, src, dump->dialect, dump->version, &opts, NULL));
    while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT && !is_huge(&ev))
        must(limit-- > 0);
    *ret_code = st == RDB_EVENT ? RD_ERR_UNSUPPORTED : rdb_reader_err(r)->code;
    rdb_reader_free(r);
    bool all = rd_src_avail(src) == 0;
    rd_src_close(src);
    return st == RDB_END && all;
}

static void open_and_read(struct rd_slice payload)
{
    struct rdb_dump dump;
    struct rd_buf again = {0};
    enum rd_err_code code;
    bool sound = rdb_dump_verify(payload, NULL);
    if (!rdb_dump_open(&dump, payload, false, NULL)) {
        must(!sound);
        return;
    }
    must(dump.value.ptr == payload.ptr + 1 && dump.value.len == payload.len - 11);
    must(read_value(&dump, payload, RDB_DETAIL_CHECK, &code) == sound);
    must(read_value(&dump, payload, RDB_DETAIL_ELEMENTS, &code) == sound ||
         code == RD_ERR_UNSUPPORTED);
    if (sound)
        must(read_value(&dump, payload, RDB_DETAIL_FRAMES, &code));
    if (rdb_dump_make(&again, dump.type, dump.value, dump.version, NULL))
        must(rd_slice_eq(rd_buf_slice(&again), payload));
    rd_buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rdb_dump dump;
    if (size < 1 || size > PAYLOAD_MAX)
        return 0;
    uint8_t *payload = malloc(size);
    must(payload != NULL);
    size_t len = size - 1;
    memcpy(payload, data + 1, len);
    if ((data[0] & 1) != 0 && len >= 8)
        rd_put_le64(payload + len - 8, rd_crc64(0, payload, len - 8));
    rdb_dump_open(&dump, rd_slice(payload, len), true, NULL);
    open_and_read(rd_slice(payload, len));
    free(payload);
    return 0;
}
