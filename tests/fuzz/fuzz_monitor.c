/* fuzz_monitor.c - recordings of MONITOR and lines, of any bytes, are read without harm.
 *
 * The checksums of the recording are made right where they can be. A line that is one is written as
 * a server does, and must be the same line again.
 */
#include "base/crc64.h"
#include "base/endian.h"
#include "history/monitor_line.h"
#include "repl/capture/monitor_format.h"
#include "repl/monitor_reader.h"
#include "tests/support/sim_fs.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_monitor: %s\n", what);
    abort();
}

/* The name of the file is in its header. */
static void repair(uint8_t *bytes, size_t size)
{
    if (size < MONITOR_HEADER)
        return;
    rd_put_le64(bytes + 16, 1);
    rd_put_le64(bytes + 24, 2);
    uint64_t seed = rd_crc64(0, bytes, MONITOR_HEADER - 8);
    rd_put_le64(bytes + MONITOR_HEADER - 8, seed);
    for (size_t at = MONITOR_HEADER; size - at >= MONITOR_BLOCK;) {
        uint8_t *head = bytes + at;
        uint64_t body = rd_get_le32(head + 8);
        if (body > size - at - MONITOR_BLOCK)
            return;
        rd_put_le64(head + 32, rd_crc64(seed, head + MONITOR_BLOCK, (size_t)body));
        rd_put_le64(head + 48, rd_crc64(seed, head, 48));
        at += MONITOR_BLOCK + (size_t)body;
    }
}

static void put_word(struct rd_buf *text, struct rd_slice word)
{
    check(rd_buf_printf(text, " \""), "memory");
    for (size_t i = 0; i < word.len; i++)
        check(rd_buf_printf(text, "\\x%02x", word.ptr[i]), "memory");
    check(rd_buf_printf(text, "\""), "memory");
}

static void read_line(struct rd_slice bytes)
{
    struct history_monitor_line line = {0}, again = {0};
    struct rd_buf text = {0};
    if (history_monitor_line_parse(&line, bytes) == HISTORY_LINE_COMMAND) {
        check(rd_buf_printf(&text, "%lld.%06lld [%llu ", (long long)(line.time_us / 1000000),
                            (long long)(line.time_us % 1000000), (unsigned long long)line.db) &&
                  rd_buf_add(&text, line.client.ptr, line.client.len) && rd_buf_printf(&text, "]"),
              "memory");
        for (size_t i = 0; i < line.argc; i++)
            put_word(&text, line.argv[i]);
        check(history_monitor_line_parse(&again, rd_buf_slice(&text)) == HISTORY_LINE_COMMAND &&
                  again.time_us == line.time_us && again.db == line.db &&
                  rd_slice_eq(again.client, line.client) && again.argc == line.argc,
              "a line is another one when it is written again");
        for (size_t i = 0; i < line.argc; i++)
            check(rd_slice_eq(again.argv[i], line.argv[i]), "a word is another one");
    }
    rd_buf_done(&text);
    history_monitor_line_done(&line);
    history_monitor_line_done(&again);
}

static void read_file(struct sim_fs *sim, struct rd_slice bytes)
{
    static const char name[] = "00000001-2.monitor";
    const struct rd_fs fs = sim_fs_calls(sim);
    struct repl_monitor_reader *r;
    struct repl_monitor_record record;
    struct rd_err err = {0};
    size_t given = 0;
    enum repl_monitor_status status = REPL_MONITOR_FAIL;
    sim_fs_put(sim, name, bytes);
    if (repl_monitor_reader_open(&r, &fs, name, &err)) {
        while ((status = repl_monitor_reader_next(r, &record, &err)) == REPL_MONITOR_RECORD) {
            given += record.text.len;
            if (record.kind == REPL_MONITOR_AT_LINE)
                read_line(record.text);
        }
        repl_monitor_reader_close(r);
    }
    check(given <= bytes.len, "more than the file has");
    check((status == REPL_MONITOR_FAIL) == (err.code != RD_ERR_OK), "an error without a reason");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    check(copy != NULL, "memory");
    memcpy(copy, data, size);
    for (int i = 0; i < 2; i++) {
        struct sim_fs *sim = sim_fs_new();
        read_file(sim, rd_slice(copy, size));
        sim_fs_free(sim);
        repair(copy, size);
    }
    read_line(rd_slice(data, size));
    free(copy);
    return 0;
}
