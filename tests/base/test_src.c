#include "base/src_impl.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crc64.h"
#include "base/mem.h"
#include "tests/support/alloc_fault.h"
#include "tests/support/guard.h"

enum { SEED = 20240607, DATA_LEN = 20000 };

static uint8_t data[DATA_LEN];

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static void make_data(void)
{
    uint32_t state = 1;
    for (size_t i = 0; i < DATA_LEN; i++)
        data[i] = (uint8_t)next_random(&state);
}

/* A file with the first len bytes of data, removed by its descriptor's owner. */
static char temp_path[] = P_tmpdir "/redoubt-src-XXXXXX";

static const char *temp_file(size_t len)
{
    make_data();
    int fd = mkstemp(temp_path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, data, len), (ssize_t)len);
    close(fd);
    return temp_path;
}

/* Every kind of source over the first len bytes of data. */
enum kind { MEMORY, FILE_, MAP, TRICKLE, N_KINDS };

static struct rd_src *open_kind(enum kind kind, size_t len, size_t window, size_t piece)
{
    struct rd_src_opts opts = RD_SRC_OPTS(.window = window, .origin = "data");
    struct rd_src *src = NULL, *inner = NULL;
    struct rd_err err = {0};
    bool ok = false;
    switch (kind) {
    case MEMORY:
        ok = rd_src_open_memory(&src, rd_slice(data, len), &opts, &err);
        break;
    case FILE_:
        ok = rd_src_open_file(&src, temp_path, &opts, &err);
        break;
    case MAP:
        ok = rd_src_open_map(&src, temp_path, &opts, &err);
        break;
    case TRICKLE:
        ok = rd_src_open_memory(&inner, rd_slice(data, len), NULL, &err) &&
             rd_src_open_trickle(&src, inner, piece, &opts, &err);
        break;
    case N_KINDS:
        break;
    }
    cr_assert(ok, "%s", err.text);
    return src;
}

/* What the window shows must be data from the offset on. */
static void check_window(struct rd_src *src, struct rd_slice s, size_t len)
{
    uint64_t off = rd_src_offset(src);
    cr_assert_leq(off + s.len, len);
    cr_assert_eq(s.len, rd_src_avail(src));
    if (s.len > 0)
        cr_assert_eq(memcmp(s.ptr, data + off, s.len), 0, "at %zu", (size_t)off);
}

/* Reads to the end with random needs and consumes; the sum is looked at now and then. */
static void read_at_random(struct rd_src *src, size_t len, size_t max_need, uint32_t *seed)
{
    enum rd_src_status status = RD_SRC_OK;
    struct rd_slice s = {0};
    rd_src_sum_begin(src, 0);
    while (status == RD_SRC_OK || s.len > 0) {
        size_t n = next_random(seed) % (max_need + 1);
        status = rd_src_need(src, n, &s);
        cr_assert(status == RD_SRC_OK || status == RD_SRC_END);
        cr_assert_eq(s.len >= n, status == RD_SRC_OK);
        cr_assert_eq(status == RD_SRC_END, n > len - rd_src_offset(src));
        check_window(src, s, len);
        rd_src_consume(src, next_random(seed) % ((n < s.len ? n : s.len) + 1));
        if (next_random(seed) % 8 == 0)
            cr_assert_eq(rd_src_sum(src), rd_crc64(0, data, rd_src_offset(src)));
        if (status == RD_SRC_END)
            rd_src_consume(src, rd_src_avail(src) > 0 ? 1 : 0);
    }
    cr_assert_eq(rd_src_offset(src), len);
    cr_assert_eq(rd_src_sum(src), rd_crc64(0, data, len));
    cr_assert_eq(rd_src_need(src, 1, &s), RD_SRC_END);
}

Test(src, every_kind_and_window_gives_the_same_bytes_offsets_and_sum)
{
    static const size_t windows[] = {1, 64, 65, 100, 4096, DATA_LEN, 0};
    uint32_t seed = SEED;
    temp_file(DATA_LEN);
    cr_log_info("seed %u", seed);
    for (enum kind kind = 0; kind < N_KINDS; kind++)
        for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
            size_t window = windows[i] == 0 ? RD_SRC_WINDOW : windows[i] < 64 ? 64 : windows[i];
            struct rd_src *src = open_kind(kind, DATA_LEN, windows[i], 1000);
            cr_assert_eq(rd_src_size(src), DATA_LEN);
            read_at_random(src, DATA_LEN, window, &seed);
            rd_src_close(src);
        }
    unlink(temp_path);
}

Test(src, every_size_of_read_gives_the_same_bytes)
{
    uint32_t seed = SEED;
    make_data();
    for (size_t piece = 0; piece <= 130; piece++)
        for (size_t len = 0; len < 500; len += 83) {
            struct rd_src *src = open_kind(TRICKLE, len, 64, piece);
            read_at_random(src, len, 64, &seed);
            rd_src_close(src);
        }
}

Test(src, a_need_of_the_whole_window_at_every_offset_is_met)
{
    make_data();
    for (size_t piece = 1; piece < 70; piece += 3) {
        struct rd_src *src = open_kind(TRICKLE, 1000, 64, piece);
        struct rd_slice s;
        for (size_t off = 0; off + 64 <= 1000; off++) {
            cr_assert_eq(rd_src_need(src, 64, &s), RD_SRC_OK);
            cr_assert_eq(rd_src_offset(src), off);
            check_window(src, s, 1000);
            rd_src_consume(src, 1);
        }
        cr_assert_eq(rd_src_need(src, 64, &s), RD_SRC_END);
        cr_assert_eq(s.len, 63);
        check_window(src, s, 1000);
        rd_src_close(src);
    }
}

Test(src, more_than_the_window_is_a_limit_with_offset_and_origin)
{
    make_data();
    struct rd_src *src = open_kind(TRICKLE, 1000, 64, 10);
    struct rd_slice s;
    cr_assert_eq(rd_src_need(src, 10, &s), RD_SRC_OK);
    rd_src_consume(src, 7);
    cr_assert_eq(rd_src_need(src, 65, &s), RD_SRC_FAIL);
    cr_assert_eq(rd_src_err(src)->code, RD_ERR_LIMIT);
    cr_assert_eq(rd_src_err(src)->offset, 7);
    cr_assert_str_eq(rd_src_err(src)->origin, "data");
    cr_assert_eq(rd_src_need(src, 64, &s), RD_SRC_FAIL, "a failure lasts");
    cr_assert_eq(rd_src_need(src, SIZE_MAX, &s), RD_SRC_FAIL);
    rd_src_close(src);

    src = open_kind(MEMORY, 1000, 64, 0);
    cr_assert_eq(rd_src_need(src, 1000, &s), RD_SRC_OK);
    cr_assert_eq(rd_src_need(src, SIZE_MAX, &s), RD_SRC_END);
    cr_assert_eq(s.len, 1000);
    rd_src_close(src);
}

Test(src, memory_is_read_in_place_and_never_after_its_end)
{
    make_data();
    for (size_t len = 0; len < 300; len++) {
        uint8_t *bytes = guard_new(data, len);
        struct rd_src *src;
        struct rd_slice s;
        uint32_t seed = SEED + (uint32_t)len;
        cr_assert(rd_src_open_memory(&src, rd_slice(bytes, len), NULL, NULL));
        cr_assert_eq(rd_src_need(src, len, &s), RD_SRC_OK);
        cr_assert(len == 0 || s.ptr == bytes);
        read_at_random(src, len, 70, &seed);
        rd_src_close(src);
        guard_free(bytes);
    }
}

Test(src, no_bytes_at_all_is_an_end)
{
    struct rd_src *src;
    struct rd_slice s;
    cr_assert(rd_src_open_memory(&src, rd_slice(NULL, 0), NULL, NULL));
    cr_assert_eq(rd_src_need(src, 0, &s), RD_SRC_OK);
    rd_src_consume(src, 0);
    cr_assert_eq(rd_src_need(src, 1, &s), RD_SRC_END);
    cr_assert_eq(rd_src_offset(src), 0);
    cr_assert_eq(rd_src_sum(src), 0);
    rd_src_close(src);
    rd_src_close(NULL);
    for (int map = 0; map < 2; map++) { /* a file of /proc has contents, but the size 0 */
        cr_assert((map ? rd_src_open_map : rd_src_open_file)(&src, "/proc/self/stat", NULL, NULL));
        cr_assert_eq(rd_src_size(src), RD_NO_OFFSET);
        cr_assert_eq(rd_src_need(src, 1, &s), RD_SRC_OK);
        rd_src_close(src);
    }
    for (int map = 0; map < 2; map++) {
        cr_assert((map ? rd_src_open_map : rd_src_open_file)(&src, "/dev/null", NULL, NULL));
        cr_assert_eq(rd_src_need(src, 1, &s), RD_SRC_END);
        cr_assert_eq(s.len, 0);
        cr_assert_eq(rd_src_size(src), RD_NO_OFFSET);
        rd_src_close(src);
    }
}

Test(src, an_empty_file_has_a_size)
{
    char path[] = "/tmp/redoubt-test-XXXXXX";
    struct rd_src *src, *again;
    struct rd_slice s;
    close(mkstemp(path));
    for (int map = 0; map < 2; map++) {
        cr_assert((map ? rd_src_open_map : rd_src_open_file)(&src, path, NULL, NULL));
        cr_expect_eq(rd_src_size(src), 0);
        cr_assert(rd_src_open_again(&again, src, NULL));
        cr_expect_eq(rd_src_size(again), 0);
        cr_expect_eq(rd_src_need(again, 1, &s), RD_SRC_END);
        rd_src_close(again);
        rd_src_close(src);
    }
    unlink(path);
}

Test(src, the_guard_page_is_inaccessible)
{
    for (size_t len = 0; len < 3; len++) {
        volatile uint8_t *bytes = guard_new("ab", len);
        pid_t child = fork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL);
            (void)bytes[len];
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        guard_free((uint8_t *)(uintptr_t)bytes);
    }
}

static void check_open_error(const char *path, int sys, const char *line)
{
    for (int map = 0; map < 2; map++) {
        struct rd_src *src = NULL;
        struct rd_err err = {0};
        char text[300];
        cr_assert_not((map ? rd_src_open_map : rd_src_open_file)(&src, path, NULL, &err));
        cr_assert_null(src);
        cr_assert_eq(err.code, RD_ERR_IO);
        cr_assert_eq(err.sys, sys);
        cr_assert_str_eq(rd_err_render(&err, text, sizeof text), line);
    }
}

Test(src, a_missing_file_and_a_folder_are_reported_on_open)
{
    check_open_error("/nowhere/a.rdb", ENOENT,
                     "/nowhere/a.rdb: cannot open: No such file or directory");
    check_open_error("/", EISDIR, "/: cannot open: Is a directory");
}

/* A vtable that returns some bytes and then a chosen status. */
struct scripted {
    size_t n_bytes;
    enum rd_src_status then;
    bool silent; /* fails without a reason */
    int *n_closed;
};

static enum rd_src_status scripted_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                        struct rd_err *err)
{
    struct scripted *script = impl;
    if (script->n_bytes > 0) {
        size_t n = script->n_bytes < cap ? script->n_bytes : cap;
        memset(buf, 'x', n);
        script->n_bytes -= n;
        *ret_len = n;
        return RD_SRC_OK;
    }
    if (script->then == RD_SRC_FAIL && !script->silent)
        rd_err_sys(err, EIO, "cannot read");
    return script->then;
}

static void scripted_close(void *impl)
{
    struct scripted *script = impl;
    ++*script->n_closed;
}

static const struct rd_src_ops scripted_ops = {scripted_read, NULL, scripted_close};

Test(src, a_failing_read_is_reported_with_offset_and_origin)
{
    for (int silent = 0; silent < 2; silent++) {
        int n_closed = 0;
        struct scripted script = {100, RD_SRC_FAIL, silent, &n_closed};
        struct rd_src_opts opts = RD_SRC_OPTS(.window = 64, .origin = "peer");
        struct rd_src *src, *outer;
        struct rd_slice s;
        cr_assert(rd_src_new(&src, &scripted_ops, &script, &opts, NULL));
        cr_assert(rd_src_open_trickle(&outer, src, 9, NULL, NULL));
        cr_assert_eq(rd_src_need(outer, 60, &s), RD_SRC_OK);
        rd_src_consume(outer, 60);
        cr_assert_eq(rd_src_need(outer, 41, &s), RD_SRC_FAIL);
        const struct rd_err *err = rd_src_err(outer);
        cr_assert_eq(err->code, RD_ERR_IO);
        cr_assert_eq(err->sys, silent ? 0 : EIO);
        cr_assert_eq(err->offset, 100);
        cr_assert_str_eq(err->origin, "peer");
        rd_src_close(outer);
        cr_assert_eq(n_closed, 1);
    }
}

Test(src, a_failing_read_is_at_the_end_of_what_was_read)
{
    int n_closed = 0;
    struct scripted script = {100, RD_SRC_FAIL, false, &n_closed};
    struct rd_src *src;
    struct rd_slice s;
    cr_assert(rd_src_new(&src, &scripted_ops, &script, NULL, NULL));
    cr_assert_eq(rd_src_need(src, 60, &s), RD_SRC_OK);
    rd_src_consume(src, 60);
    cr_assert_eq(rd_src_need(src, 41, &s), RD_SRC_FAIL);
    cr_assert_eq(rd_src_err(src)->offset, 100);
    rd_src_close(src);
}

Test(src, more_and_end_of_an_inner_source_pass_through_a_trickle)
{
    for (enum rd_src_status then = RD_SRC_MORE; then <= RD_SRC_END; then++) {
        int n_closed = 0;
        struct scripted script = {10, then, false, &n_closed};
        struct rd_src *src, *outer;
        struct rd_slice s;
        cr_assert(rd_src_new(&src, &scripted_ops, &script, NULL, NULL));
        cr_assert(rd_src_open_trickle(&outer, src, 3, NULL, NULL));
        for (int i = 0; i < 3; i++) {
            cr_assert_eq(rd_src_need(outer, 11, &s), then);
            cr_assert_eq(s.len, 10);
        }
        script.n_bytes = 5;
        cr_assert_eq(rd_src_need(outer, 11, &s), then == RD_SRC_MORE ? RD_SRC_OK : RD_SRC_END);
        rd_src_close(outer);
    }
}

Test(src, a_pushed_source_says_more_until_enough_is_there)
{
    struct rd_src *src;
    struct rd_slice s;
    make_data();
    cr_assert(rd_src_open_push(&src, NULL, NULL));
    cr_assert_eq(rd_src_need(src, 1, &s), RD_SRC_MORE);
    cr_assert_eq(s.len, 0);
    for (size_t i = 0; i < 8; i++) {
        cr_assert(rd_src_push(src, rd_slice(data + i, 1)));
        cr_assert_eq(rd_src_need(src, 9, &s), RD_SRC_MORE);
        cr_assert_eq(s.len, i + 1);
        check_window(src, s, i + 1);
    }
    cr_assert(rd_src_push(src, rd_slice(data + 8, 2)));
    cr_assert(rd_src_push(src, rd_slice(NULL, 0)));
    cr_assert_eq(rd_src_need(src, 9, &s), RD_SRC_OK);
    cr_assert_eq(s.len, 10);
    rd_src_consume(src, 9);
    cr_assert_eq(rd_src_need(src, 2, &s), RD_SRC_MORE);
    rd_src_push_end(src);
    cr_assert_eq(rd_src_need(src, 2, &s), RD_SRC_END);
    cr_assert(s.len == 1 && s.ptr[0] == data[9]);
    cr_assert_not(rd_src_push(src, rd_slice(data, 1)), "after the end");
    cr_assert_eq(rd_src_push_room(src), 0);
    rd_src_close(src);
}

Test(src, a_push_takes_all_or_nothing_and_never_grows_beyond_the_window)
{
    struct rd_src_opts opts = RD_SRC_OPTS(.window = 10000);
    struct rd_src *src;
    struct rd_slice s;
    uint32_t seed = SEED;
    size_t pushed = 0, n_refused = 0;
    make_data();
    cr_log_info("seed %u", seed);
    alloc_fault_begin(0);
    cr_assert(rd_src_open_push(&src, &opts, NULL));
    rd_src_sum_begin(src, 0);
    while (rd_src_offset(src) < DATA_LEN) {
        size_t n = next_random(&seed) % 3000;
        if (n > DATA_LEN - pushed)
            n = DATA_LEN - pushed;
        bool fits = n <= rd_src_push_room(src);
        cr_assert_eq(rd_src_push_room(src), 10000 - (pushed - rd_src_offset(src)));
        cr_assert_eq(rd_src_push(src, rd_slice(data + pushed, n)), fits);
        pushed += fits ? n : 0;
        n_refused += !fits;
        size_t need = next_random(&seed) % 4000;
        cr_assert_eq(rd_src_need(src, need, &s),
                     need <= pushed - rd_src_offset(src) ? RD_SRC_OK : RD_SRC_MORE);
        check_window(src, s, pushed);
        rd_src_consume(src, next_random(&seed) % (s.len / 16 + 2) * (s.len > 1));
        if (pushed == DATA_LEN)
            rd_src_consume(src, rd_src_avail(src) > 0);
        cr_assert_eq(rd_src_sum(src), rd_crc64(0, data, rd_src_offset(src)));
    }
    cr_assert_gt(n_refused, 0);
    cr_assert_leq(alloc_fault_state().largest, 10000);
    cr_assert_eq(rd_src_need(src, 10001, &s), RD_SRC_FAIL);
    cr_assert_eq(rd_src_err(src)->code, RD_ERR_LIMIT);
    cr_assert_not(rd_src_push(src, rd_slice(data, 1)), "after a failure");
    rd_src_close(src);
    cr_assert_eq(alloc_fault_end().live, 0);
}

Test(src, bytes_stay_for_as_many_refills_as_are_asked_for)
{
    enum { WINDOW = 64, N = 10 };
    struct rd_src_opts opts = RD_SRC_OPTS(.window = WINDOW);
    struct rd_src *src;
    struct rd_slice had[N];
    make_data();
    cr_assert(rd_src_open_memory(&src, rd_slice(data, WINDOW * N), NULL, NULL));
    cr_assert(rd_src_keep(src, RD_SRC_KEPT_MAX), "memory stays anyway");
    for (unsigned kept = 1; kept <= 3; kept++) {
        cr_assert(rd_src_seek(src, 0, NULL));
        cr_assert(rd_src_open_trickle(&src, src, WINDOW, &opts, NULL));
        cr_assert(rd_src_keep(src, kept) && rd_src_keep(src, 1));
        for (size_t i = 0; i < N; i++) {
            cr_assert_eq(rd_src_need(src, WINDOW, &had[i]), RD_SRC_OK);
            rd_src_consume(src, WINDOW);
            for (size_t k = i >= kept ? i - kept : 0; k <= i; k++)
                cr_assert_arr_eq(had[k].ptr, data + k * WINDOW, WINDOW, "%zu of %u after %zu", k,
                                 kept, i);
        }
        rd_src_close(src);
        cr_assert(rd_src_open_memory(&src, rd_slice(data, WINDOW * N), NULL, NULL));
    }
    rd_src_close(src);
    cr_assert(rd_src_open_push(&src, NULL, NULL));
    cr_assert_not(rd_src_keep(src, 1), "what is pushed does not stay");
    rd_src_close(src);
}

Test(src, only_a_pushed_source_takes_a_push)
{
    make_data();
    struct rd_src *src = open_kind(MEMORY, 10, 0, 0);
    cr_assert_eq(rd_src_push_room(src), 0);
    cr_assert_not(rd_src_push(src, rd_slice(data, 1)));
    rd_src_close(src);
}

Test(src, the_sum_begins_and_stops_where_the_caller_says)
{
    struct rd_slice s;
    temp_file(DATA_LEN);
    for (enum kind kind = 0; kind < N_KINDS; kind++) {
        struct rd_src *src = open_kind(kind, DATA_LEN, 64, 50);
        for (size_t i = 0; i < 300; i++) {
            cr_assert_eq(rd_src_need(src, 10, &s), RD_SRC_OK);
            if (i == 10)
                rd_src_sum_begin(src, 77);
            if (i == 250)
                rd_src_sum_stop(src);
            rd_src_consume(src, 10);
        }
        cr_assert_eq(rd_src_sum(src), rd_crc64(77, data + 100, 2400), "kind %d", (int)kind);
        rd_src_sum_begin(src, 5);
        cr_assert_eq(rd_src_sum(src), 5);
        rd_src_close(src);
    }
    unlink(temp_path);
}

static void seek_and_look(struct rd_src *src, uint64_t off, size_t len)
{
    struct rd_slice s;
    struct rd_err err = {0};
    size_t left = len - (size_t)off;
    cr_assert(rd_src_seek(src, off, &err), "%s", err.text);
    cr_assert_eq(rd_src_offset(src), off);
    cr_assert_eq(rd_src_need(src, 40, &s), left < 40 ? RD_SRC_END : RD_SRC_OK);
    cr_assert_eq(s.len < 40, left < 40);
    check_window(src, s, len);
    rd_src_consume(src, s.len < 33 ? s.len : 33);
}

Test(src, files_memory_and_maps_can_seek_anywhere)
{
    uint32_t seed = SEED;
    temp_file(5000);
    cr_log_info("seed %u", seed);
    for (enum kind kind = 0; kind < N_KINDS; kind++) {
        struct rd_src *src = open_kind(kind, 5000, 64, 30);
        cr_assert(rd_src_can_seek(src));
        for (int i = 0; i < 2000; i++) {
            uint64_t off = rd_src_offset(src);
            bool near = next_random(&seed) % 2 && off > 60 && off < 4900;
            seek_and_look(
                src, near ? off - 60 + next_random(&seed) % 120 : next_random(&seed) % 5001, 5000);
        }
        seek_and_look(src, 0, 5000);
        seek_and_look(src, 5000, 5000);
        seek_and_look(src, 4999, 5000);
        rd_src_sum_begin(src, 3);
        seek_and_look(src, 100, 5000);
        cr_assert_eq(rd_src_sum(src), 3, "seeking stops the sum");
        rd_src_close(src);
    }
    unlink(temp_path);
}

Test(src, seeking_clears_an_end_and_a_failure)
{
    struct rd_slice s;
    temp_file(1000);
    struct rd_src *src = open_kind(FILE_, 1000, 64, 0);
    cr_assert_eq(rd_src_need(src, 65, &s), RD_SRC_FAIL);
    seek_and_look(src, 500, 1000);
    cr_assert_eq(rd_src_err(src)->code, RD_ERR_OK);
    seek_and_look(src, 990, 1000);
    seek_and_look(src, 10, 1000);

    /* A file may be sought in after its end; memory may not. */
    cr_assert(rd_src_seek(src, 2000, NULL));
    cr_assert_eq(rd_src_need(src, 1, &s), RD_SRC_END);
    cr_assert_eq(rd_src_offset(src), 2000);
    struct rd_err err = {0};
    cr_assert_not(rd_src_seek(src, UINT64_MAX - 1, &err));
    cr_assert_eq(err.code, RD_ERR_IO);
    cr_assert_str_eq(err.origin, "data");
    rd_src_close(src);

    src = open_kind(MEMORY, 1000, 0, 0);
    rd_err_reset(&err);
    cr_assert_not(rd_src_seek(src, 1001, &err));
    cr_assert_eq(err.code, RD_ERR_USAGE);
    cr_assert_eq(rd_src_offset(src), 0);
    rd_src_close(src);
    unlink(temp_path);
}

/* A pipe that holds the first len bytes of data. */
static int open_pipe(size_t len, int *ret_write_end)
{
    int fds[2];
    make_data();
    cr_assert_eq(pipe(fds), 0);
    cr_assert_eq(write(fds[1], data, len), (ssize_t)len);
    if (ret_write_end != NULL)
        *ret_write_end = fds[1];
    else
        close(fds[1]);
    return fds[0];
}

Test(src, a_pipe_is_read_but_not_sought_in)
{
    uint32_t seed = SEED;
    struct rd_src *src;
    struct rd_err err = {0};
    struct rd_slice s;
    cr_assert(rd_src_open_fd(&src, open_pipe(5000, NULL), true, &RD_SRC_OPTS(.window = 64), NULL));
    cr_assert_eq(rd_src_size(src), RD_NO_OFFSET);
    cr_assert_not(rd_src_can_seek(src));
    cr_assert_eq(rd_src_need(src, 5, &s), RD_SRC_OK);
    cr_assert_not(rd_src_seek(src, 1, &err));
    cr_assert_eq(err.code, RD_ERR_USAGE);
    read_at_random(src, 5000, 64, &seed);
    rd_src_close(src);
}

Test(src, a_non_blocking_descriptor_says_more)
{
    int write_end;
    int fd = open_pipe(10, &write_end);
    struct rd_src *src;
    struct rd_slice s;
    cr_assert_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    cr_assert(rd_src_open_fd(&src, fd, false, NULL, NULL));
    cr_assert_eq(rd_src_need(src, 11, &s), RD_SRC_MORE);
    cr_assert_eq(s.len, 10);
    cr_assert_eq(write(write_end, data + 10, 5), 5);
    cr_assert_eq(rd_src_need(src, 11, &s), RD_SRC_OK);
    check_window(src, s, 15);
    close(write_end);
    cr_assert_eq(rd_src_need(src, 16, &s), RD_SRC_END);
    cr_assert_eq(s.len, 15);
    rd_src_close(src);
    cr_assert_eq(fcntl(fd, F_GETFD), 0, "a descriptor that is not owned stays open");
    close(fd);
}

Test(src, offsets_count_from_the_position_of_a_descriptor)
{
    int fd = open(temp_file(1000), O_RDONLY);
    struct rd_src *src;
    struct rd_slice s;
    cr_assert_eq(lseek(fd, 300, SEEK_SET), 300);
    cr_assert(rd_src_open_fd(&src, fd, true, &RD_SRC_OPTS(.window = 64), NULL));
    cr_assert_eq(rd_src_size(src), 700);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(rd_src_need(src, 64, &s), RD_SRC_OK);
        cr_assert_eq(memcmp(s.ptr, data + 300 + 400 * i, 64), 0);
        cr_assert(rd_src_seek(src, 400, NULL));
    }
    rd_src_close(src);
    cr_assert_eq(fcntl(fd, F_GETFD), -1, "an owned descriptor is closed");
    unlink(temp_path);
}

Test(src, a_failing_descriptor_is_an_io_error)
{
    struct rd_src *src;
    struct rd_slice s;
    int fd = open(temp_file(1), O_WRONLY);
    cr_assert(rd_src_open_fd(&src, fd, true, &RD_SRC_OPTS(.origin = "f"), NULL));
    cr_assert_eq(rd_src_need(src, 1, &s), RD_SRC_FAIL);
    cr_assert_eq(rd_src_err(src)->code, RD_ERR_IO);
    cr_assert_eq(rd_src_err(src)->sys, EBADF);
    cr_assert_eq(rd_src_err(src)->offset, 0);
    cr_assert_str_eq(rd_src_err(src)->origin, "f");
    rd_src_close(src);
    unlink(temp_path);
}

static void ignore_signal(int sig)
{
    (void)sig;
}

Test(src, a_read_that_a_signal_interrupts_goes_on)
{
    int write_end;
    int fd = open_pipe(0, &write_end);
    struct sigaction action = {.sa_handler = ignore_signal};
    sigaction(SIGUSR1, &action, NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        for (int i = 0; i < 5; i++) {
            usleep(5000);
            kill(parent, SIGUSR1);
        }
        usleep(5000);
        _exit(write(write_end, data, 10) == 10 ? 0 : 1);
    }
    struct rd_src *src;
    struct rd_slice s;
    cr_assert(rd_src_open_fd(&src, fd, true, NULL, NULL));
    cr_assert_eq(rd_src_need(src, 10, &s), RD_SRC_OK);
    check_window(src, s, 10);
    rd_src_close(src);
    close(write_end);
    waitpid(child, NULL, 0);
}

Test(src, a_dash_is_standard_input)
{
    for (int map = 0; map < 2; map++) {
        struct rd_src *src;
        struct rd_slice s;
        int fd = open_pipe(100, NULL);
        cr_assert_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
        close(fd);
        cr_assert((map ? rd_src_open_map : rd_src_open_file)(&src, "-", NULL, NULL));
        cr_assert_str_eq(rd_src_origin(src), "standard input");
        cr_assert_eq(rd_src_need(src, 101, &s), RD_SRC_END);
        cr_assert_eq(s.len, 100);
        check_window(src, s, 100);
        rd_src_close(src);
        cr_assert_neq(fcntl(STDIN_FILENO, F_GETFD), -1, "it stays open");
    }
}

/* Opens one kind of source and reads a little; false when an allocation failed. */
static bool try_kind(int kind, struct rd_err *err)
{
    struct rd_src_opts opts = RD_SRC_OPTS(.window = 100, .origin = "try");
    struct rd_src *src, *inner;
    struct rd_slice s;
    bool ok = false;
    switch (kind) {
    case 0:
        ok = rd_src_open_memory(&src, rd_slice(data, 1000), &opts, err);
        break;
    case 1:
        ok = rd_src_open_file(&src, temp_path, &opts, err);
        break;
    case 2:
        ok = rd_src_open_map(&src, temp_path, &opts, err);
        break;
    case 3:
        opts.window = 10000;
        ok = rd_src_open_push(&src, &opts, err);
        break;
    case 4:
        ok = rd_src_open_memory(&inner, rd_slice(data, 1000), &opts, err) &&
             rd_src_open_trickle(&src, inner, 7, NULL, err);
        break;
    default:
        break;
    }
    if (!ok)
        return false;
    if (kind == 3 && !rd_src_push(src, rd_slice(data, 9000))) {
        cr_assert_eq(rd_src_need(src, 1, &s), RD_SRC_FAIL);
        *err = *rd_src_err(src);
        ok = false;
    } else {
        cr_assert_eq(rd_src_need(src, 90, &s), RD_SRC_OK);
    }
    rd_src_close(src);
    return ok;
}

static int count_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

Test(src, when_memory_is_short_nothing_is_left_after)
{
    static const size_t n_allocs[] = {1, 3, 2, 4, 4};
    temp_file(1000);
    int n_open = count_descriptors();
    for (int kind = 0; kind < 5; kind++) {
        size_t n = 1;
        for (;; n++) {
            struct rd_err err = {0};
            alloc_fault_begin(n);
            bool ok = try_kind(kind, &err);
            struct alloc_fault_result r = alloc_fault_end();
            cr_assert_eq(r.live, 0, "kind %d, n %zu", kind, n);
            cr_assert_eq(ok, !r.failed, "kind %d, n %zu", kind, n);
            cr_assert_eq(count_descriptors(), n_open, "kind %d, n %zu", kind, n);
            if (ok)
                break;
            cr_assert_eq(err.code, RD_ERR_MEMORY);
            cr_assert_str_eq(err.origin, "try");
        }
        cr_assert_gt(n, n_allocs[kind], "kind %d", kind);
    }
    unlink(temp_path);
}

Test(src, a_failing_constructor_closes_what_it_was_given)
{
    for (size_t n = 1; n <= 2; n++) {
        int n_closed = 0;
        struct scripted script = {1, RD_SRC_END, false, &n_closed};
        struct rd_src *src = NULL;
        struct rd_err err = {0};
        alloc_fault_begin(n);
        cr_assert_not(rd_src_new(&src, &scripted_ops, &script, NULL, &err));
        cr_assert_eq(alloc_fault_end().live, 0);
        cr_assert_eq(n_closed, 1);
        cr_assert_null(src);
        cr_assert_eq(err.code, RD_ERR_MEMORY);
    }
}
