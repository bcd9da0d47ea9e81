/* Recordings of MONITOR: what was written is read, and nothing else, whatever happens to a file. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "base/buf.h"
#include "base/mem.h"
#include "repl/monitor_reader.h"
#include "repl/monitor_writer.h"
#include "tests/support/sim_fs.h"

static struct rd_err err;

static void add_line(struct repl_monitor_writer *w, int64_t at, const char *text)
{
    cr_assert(repl_monitor_writer_line(w, rd_slice_str(text), at, &err));
}

/* Three blocks in the file of segment 3, and one in that of segment 4. */
static void write_some(const struct rd_fs *fs)
{
    struct repl_monitor_writer *w;
    cr_assert(repl_monitor_writer_new(&w, fs, &err));
    cr_assert(repl_monitor_writer_begin(w, 1000, REPL_MONITOR_WAITING, &err));
    cr_assert(repl_monitor_writer_waits(w, rd_slice_str("a:1"), 1001, &err));
    add_line(w, 1002, "one");
    repl_monitor_writer_complete(w, 1500);
    cr_assert(repl_monitor_writer_flush(w, 3, 900, &err));
    add_line(w, 1001, "two");
    add_line(w, 9000000000, "three");
    cr_assert(repl_monitor_writer_flush(w, 3, 900, &err));
    add_line(w, 9000000001, "four");
    cr_assert(repl_monitor_writer_flush(w, 4, 1200, &err));
    cr_assert_gt(repl_monitor_writer_size(w), 200);
    cr_assert(repl_monitor_writer_close(w, &err));
}

/* What a file holds, as text; *ret_ok: it was read to its end. */
static void read_file(const struct rd_fs *fs, const char *name, struct rd_buf *ret, bool *ret_ok)
{
    struct repl_monitor_reader *r;
    struct repl_monitor_record record;
    struct rd_err why = {0};
    enum repl_monitor_status status = REPL_MONITOR_FAIL;
    rd_buf_reset(ret);
    if (repl_monitor_reader_open(&r, fs, name, &why)) {
        while ((status = repl_monitor_reader_next(r, &record, &why)) == REPL_MONITOR_RECORD)
            if (record.kind == REPL_MONITOR_AT_BLOCK)
                rd_buf_printf(ret, "[%u %lld] ", record.flags,
                              record.until_us == REPL_CAPTURE_NO_TIME ? -1LL
                                                                      : (long long)record.until_us);
            else
                rd_buf_printf(ret, "%s%.*s@%lld ", record.kind == REPL_MONITOR_AT_WAITS ? "w:" : "",
                              (int)record.text.len, (const char *)record.text.ptr,
                              (long long)record.time_us);
        repl_monitor_reader_close(r);
    }
    cr_assert_eq(status == REPL_MONITOR_FAIL, why.code != RD_ERR_OK);
    *ret_ok = status == REPL_MONITOR_OVER;
    cr_assert(rd_buf_add_byte(ret, 0));
}

static const char *const names[] = {"00000003-900.monitor", "00000004-1200.monitor"};
static const char *const contents[] = {"[3 1500] w:a:1@1001 one@1002 [0 -1] two@1001 [0 -1] "
                                       "three@9000000000 ",
                                       "[0 -1] four@9000000001 "};

Test(monitor, what_was_written_is_read)
{
    struct sim_fs *sim = sim_fs_new();
    const struct rd_fs fs = sim_fs_calls(sim);
    struct rd_buf text = {0};
    char(*list)[REPL_CAPTURE_NAME];
    size_t n;
    bool ok;
    write_some(&fs);
    cr_assert(repl_monitor_list(&list, &n, &fs, &err));
    cr_assert_eq(n, 2);
    for (size_t i = 0; i < n; i++) {
        cr_assert_str_eq(list[i], names[i]);
        read_file(&fs, list[i], &text, &ok);
        cr_assert(ok);
        cr_assert_str_eq((const char *)text.ptr, contents[i]);
    }
    rd_free(list);
    rd_buf_done(&text);
    sim_fs_free(sim);
}

static void put_file(const struct rd_fs *fs, const char *name, const uint8_t *bytes, size_t len)
{
    int fd = fs->open(fs->ctx, name, RD_FS_CREATE);
    cr_assert_geq(fd, 0);
    if (len > 0)
        cr_assert_eq(fs->write(fs->ctx, fd, bytes, len), (ssize_t)len);
    fs->close(fs->ctx, fd);
}

static size_t get_file(const struct rd_fs *fs, const char *name, uint8_t *ret, size_t cap)
{
    int fd = fs->open(fs->ctx, name, RD_FS_READ);
    ssize_t len = fs->read_at(fs->ctx, fd, ret, cap, 0);
    cr_assert_gt(len, 0);
    fs->close(fs->ctx, fd);
    return (size_t)len;
}

static bool is_prefix(const struct rd_buf *text, const char *whole)
{
    return strncmp((const char *)text->ptr, whole, text->len - 1) == 0;
}

Test(monitor, every_prefix_is_a_torn_file)
{
    struct sim_fs *sim = sim_fs_new();
    const struct rd_fs fs = sim_fs_calls(sim);
    struct rd_buf text = {0};
    uint8_t bytes[2000];
    bool ok;
    write_some(&fs);
    size_t len = get_file(&fs, names[0], bytes, sizeof bytes);
    for (size_t n = 0; n < len; n++) {
        put_file(&fs, names[0], bytes, n);
        read_file(&fs, names[0], &text, &ok);
        cr_assert(ok, "of %zu bytes", n);
        cr_assert(is_prefix(&text, contents[0]));
    }
    rd_buf_done(&text);
    sim_fs_free(sim);
}

Test(monitor, every_flipped_bit_is_found)
{
    struct sim_fs *sim = sim_fs_new();
    const struct rd_fs fs = sim_fs_calls(sim);
    struct rd_buf text = {0};
    uint8_t bytes[2000];
    bool ok;
    write_some(&fs);
    size_t len = get_file(&fs, names[0], bytes, sizeof bytes);
    for (size_t bit = 0; bit < len * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        put_file(&fs, names[0], bytes, len);
        read_file(&fs, names[0], &text, &ok);
        cr_assert(is_prefix(&text, contents[0]));
        cr_assert(!ok || bit / 8 >= len - 56, "bit %zu of %zu bytes", bit, len);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    rd_buf_done(&text);
    sim_fs_free(sim);
}

Test(monitor, a_file_under_another_name_is_refused)
{
    struct sim_fs *sim = sim_fs_new();
    const struct rd_fs fs = sim_fs_calls(sim);
    struct rd_buf text = {0};
    bool ok;
    write_some(&fs);
    cr_assert_eq(fs.rename(fs.ctx, names[0], names[1]), 0);
    read_file(&fs, names[1], &text, &ok);
    cr_assert(!ok);
    rd_buf_done(&text);
    sim_fs_free(sim);
}

Test(monitor, a_line_that_is_too_long_ends_a_piece)
{
    struct sim_fs *sim = sim_fs_new();
    const struct rd_fs fs = sim_fs_calls(sim);
    struct repl_monitor_writer *w;
    struct rd_buf text = {0};
    bool ok;
    uint8_t *line = rd_calloc(1, REPL_MONITOR_LINE_MAX + 1);
    cr_assert(repl_monitor_writer_new(&w, &fs, &err));
    cr_assert(repl_monitor_writer_begin(w, 1000, REPL_MONITOR_UNKNOWN, &err));
    cr_assert(repl_monitor_writer_line(w, rd_slice(line, REPL_MONITOR_LINE_MAX + 1), 1001, &err));
    add_line(w, 1002, "x");
    cr_assert(repl_monitor_writer_flush(w, 1, 1, &err));
    cr_assert(repl_monitor_writer_close(w, &err));
    read_file(&fs, "00000001-1.monitor", &text, &ok);
    cr_assert_str_eq((const char *)text.ptr, "[5 -1] [1 -1] x@1002 ");
    rd_free(line);
    rd_buf_done(&text);
    sim_fs_free(sim);
}

Test(monitor, a_disk_that_fails_is_an_error)
{
    for (unsigned n = 1; n <= 4; n++) {
        struct sim_fs *sim = sim_fs_new();
        const struct rd_fs fs = sim_fs_calls(sim);
        struct repl_monitor_writer *w;
        cr_assert(repl_monitor_writer_new(&w, &fs, &err));
        cr_assert(repl_monitor_writer_begin(w, 1000, REPL_MONITOR_UNKNOWN, &err));
        sim->faults[0] = (struct sim_fault){.call = n == 1   ? SIM_OPEN
                                                    : n == 2 ? SIM_SYNC_FOLDER
                                                             : SIM_WRITE,
                                            .n = n == 4 ? 2 : 1,
                                            .times = 1,
                                            .sys = 28};
        cr_assert(!repl_monitor_writer_flush(w, 1, 1, &err));
        cr_assert_eq(err.code, RD_ERR_IO);
        repl_monitor_writer_close(w, NULL);
        rd_err_reset(&err);
        sim_fs_free(sim);
    }
}
