/* fuzz_capture.c - a segment of any bytes is read, verified and continued without harm.
 *
 * The input is the file of a capture's only segment; its checksums are made right where they can
 * be, so that what they cover is reached. What a writer takes over must be sound afterwards.
 */
#include "base/crc64.h"
#include "base/endian.h"
#include "repl/capture/format.h"
#include "repl/capture_reader.h"
#include "repl/capture_writer.h"
#include "tests/support/sim_fs.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_capture: %s\n", what);
    abort();
}

/* Blocks one after the other, as far as they go. */
static void rdb_recover_blocks(uint8_t *bytes, size_t size, uint64_t seed)
{
    for (size_t at = CAPTURE_HEADER; size - at >= CAPTURE_BLOCK;) {
        uint8_t *head = bytes + at;
        uint64_t body = (uint64_t)rd_get_le32(head + 8) + rd_get_le32(head + 12);
        if (body > size - at - CAPTURE_BLOCK)
            return;
        rd_put_le64(head + 56, rd_crc64(seed, head + CAPTURE_BLOCK, (size_t)body));
        rd_put_le64(head + 64, rd_crc64(seed, head, CAPTURE_BLOCK - 8));
        at += CAPTURE_BLOCK + (size_t)body;
    }
}

static void repair(uint8_t *bytes, size_t size)
{
    if (size < CAPTURE_HEADER)
        return;
    uint64_t seed = rd_crc64(0, bytes, CAPTURE_HEADER - 8);
    rd_put_le64(bytes + CAPTURE_HEADER - 8, seed);
    rdb_recover_blocks(bytes, size, seed);
    if (size < CAPTURE_HEADER + CAPTURE_TRAILER)
        return;
    uint8_t *trailer = bytes + size - CAPTURE_TRAILER;
    uint64_t n = rd_get_le32(trailer + 4), index = n * CAPTURE_ENTRY;
    if (index <= size - CAPTURE_HEADER - CAPTURE_TRAILER)
        rd_put_le64(trailer + 48, rd_crc64(seed, trailer - index, (size_t)index));
    rd_put_le64(trailer + 72, rd_crc64(seed, trailer, 72));
}

static void read_all(const struct rd_fs *fs, size_t max_whole, bool seek, int64_t time_us)
{
    struct repl_capture_reader_opts opts = {.max_whole = max_whole};
    struct repl_capture_reader *r;
    struct repl_capture_event ev;
    enum repl_capture_status st;
    check(repl_capture_reader_open(&r, fs, &opts, NULL), "out of memory");
    if (!seek || repl_capture_reader_seek_time(r, time_us, NULL)) {
        while ((st = repl_capture_reader_next(r, &ev)) == REPL_CAPTURE_EVENT)
            check(ev.kind != REPL_CAPTURE_COMMAND || ev.command.argc > 0, "an empty command");
        check(st == REPL_CAPTURE_END || repl_capture_reader_err(r)->code != RD_ERR_OK,
              "failure without an error");
    }
    repl_capture_reader_close(r);
}

static void name_file(const uint8_t *bytes, size_t size, char name[REPL_CAPTURE_NAME])
{
    uint64_t number = size >= CAPTURE_HEADER ? rd_get_le64(bytes + 16) : 1;
    uint64_t start = size >= CAPTURE_HEADER ? rd_get_le64(bytes + 24) : 0;
    repl_capture_name_put(name, number, start, ".seg");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[REPL_CAPTURE_NAME];
    struct repl_capture_verify_result before, after;
    struct repl_capture_writer *w;
    struct sim_fs *sim = sim_fs_new();
    struct rd_fs fs = sim_fs_calls(sim);
    uint8_t *bytes = malloc(size + 1);
    check(bytes != NULL, "out of memory");
    if (size > 0)
        memcpy(bytes, data, size);
    repair(bytes, size);
    name_file(bytes, size, name);
    sim_fs_put(sim, name, rd_slice(bytes, size));
    read_all(&fs, 0, false, 0);
    read_all(&fs, 1000, true, size > 40 ? (int64_t)rd_get_le64(bytes + 32) + 1 : 0);
    check(repl_capture_verify(&fs, NULL, &before, NULL), "it cannot be verified");
    if (repl_capture_writer_open(&w, &fs, NULL, NULL)) {
        repl_capture_writer_close(w, NULL);
        check(repl_capture_verify(&fs, NULL, &after, NULL), "it cannot be verified again");
        check(after.torn == 0 && after.findings <= before.findings, "damage that was added");
    }
    check(sim->n_open == 0, "a file is left open");
    sim_fs_free(sim);
    free(bytes);
    return 0;
}
