/* fuzz_key_index.c - indexes of keys, and what a repository has of a segment, of any bytes, are
 * read without harm.
 *
 * The checksums of the sections are made right where they can be. What is found must be in order,
 * and in the data that the index says it is about.
 */
#include "backup/key_index.h"
#include "base/crc64.h"
#include "base/endian.h"
#include "history/index_reader.h"
#include "tests/support/sim_fs.h"

#include <stdio.h>
#include <stdlib.h>

enum { HEADER = 160, SPAN = 32, CHUNK = 1024, SUM = 8, SUM_AT = 152 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_key_index: %s\n", what);
    abort();
}

static uint64_t body_of(const uint8_t *header)
{
    return (uint64_t)rd_get_le32(header + 96) * SPAN + (uint64_t)rd_get_le32(header + 100) * 4 +
           (uint64_t)rd_get_le32(header + 104) * 4 + rd_get_le32(header + 108);
}

static void repair(uint8_t *bytes, size_t size)
{
    for (size_t at = 0; size - at >= HEADER;) {
        uint8_t *header = bytes + at, *body = header + HEADER;
        uint64_t len = body_of(header), n = (len + CHUNK - 1) / CHUNK;
        if (len > size || len + n * SUM > size - at - HEADER)
            return;
        rd_put_le64(header + 120, at);
        uint64_t seed = rd_crc64(0, header, SUM_AT);
        rd_put_le64(header + SUM_AT, seed);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t left = len - i * CHUNK;
            rd_put_le64(body + len + i * SUM,
                        rd_crc64(seed ^ i, body + i * CHUNK, left < CHUNK ? left : CHUNK));
        }
        at += HEADER + len + n * SUM;
    }
}

static void check_spans(const struct history_spans *spans)
{
    for (size_t i = 1; i < spans->n; i++)
        check(spans->list[i - 1].offset < spans->list[i].offset, "spans are not in order");
}

static void read_index(struct rd_slice bytes)
{
    struct sim_fs *sim = sim_fs_new();
    const struct rd_fs fs = sim_fs_calls(sim);
    struct history_index_reader *r;
    struct rd_err err = {0};
    sim_fs_put(sim, "x.keys", bytes);
    if (history_index_reader_open(&r, &fs, "x.keys", &err)) {
        struct history_spans spans = {0};
        bool ok = true;
        for (unsigned i = 0; ok && i < 8; i++)
            ok = history_index_reader_find(r, rd_slice(&"k0k1k2k3"[i], 2), &spans, &err);
        ok = ok && history_index_reader_apart(r, &spans, &err);
        check_spans(&spans);
        ok = ok && history_index_reader_tail(r, &spans, &err);
        ok = ok && history_index_reader_verify(r, &err);
        check(ok == (err.code == RD_ERR_OK), "an error without a reason");
        history_spans_done(&spans);
        history_index_reader_close(r);
    }
    sim_fs_free(sim);
}

static void find_parts(struct rd_slice bytes)
{
    struct spool spool = {0};
    struct backup_key_index_parts parts;
    struct rd_err err = {0};
    check(spool_append(&spool, "before", 6, NULL) &&
              spool_append(&spool, bytes.ptr, bytes.len, NULL),
          "the spool");
    if (backup_key_index_find(&spool, 6, &parts, &err)) {
        check(parts.keys_at == 6 && parts.keys_len > 0 &&
                  parts.head_at == parts.keys_at + parts.keys_len &&
                  parts.end_at == parts.head_at + REPL_CAPTURE_HEAD &&
                  parts.end_at + parts.end_len < spool.size,
              "the parts are not one after the other");
        read_index(rd_slice(bytes.ptr, (size_t)parts.keys_len));
    }
    spool_done(&spool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    check(copy != NULL, "memory");
    memcpy(copy, data, size);
    for (int i = 0; i < 2; i++) {
        read_index(rd_slice(copy, size));
        find_parts(rd_slice(copy, size));
        repair(copy, size);
    }
    free(copy);
    return 0;
}
