/* fuzz_log.c - the reader of a file of commands takes any bytes, through any window, in any mode.
 *
 * The first byte chooses: bits 0 to 2 the mode, bits 3 and 4 the window, bits 5 to 7 the size of
 * the pieces. The rest is read from memory with all arguments and again in the chosen way, without
 * and with a look at commands before their turn; all must see the same entries and end in the same
 * way at the same byte. Then the whole reader has a
 * go at it, which knows snapshots and transactions.
 */
#include "aof/reader.h"
#include "base/crc64.h"
#include "base/src_impl.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAMES = 1, WHOLE = 2, LINES = 4, AHEAD = 8, WINDOW_SHIFT = 3, PIECE_SHIFT = 5 };

struct outcome {
    uint64_t entries; /* a sum over place, kind and bytes of everything that was read */
    uint64_t whole, line;
    enum aof_log_status status;
    enum rd_err_code code;
    uint64_t offset;
};

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_log: %s\n", what);
    abort();
}

static uint64_t sum_of(uint64_t sum, const void *ptr, size_t len)
{
    return len > 0 ? rd_crc64(sum, ptr, len) : sum;
}

static void check_command(const struct aof_log_entry *entry, bool names)
{
    const uint8_t *p = entry->bytes.ptr, *end = p + entry->bytes.len;
    size_t given = names ? 1 : entry->command.argc;
    check(entry->command.argc > 0, "a command without arguments");
    for (size_t i = 0; i < given; i++) {
        const struct rd_slice *arg = &entry->command.argv[i];
        check(arg->ptr > p && arg->len + 2 <= (size_t)(end - arg->ptr), "place of an argument");
        p = arg->ptr + arg->len;
    }
    check(names || p + 2 == end, "end of a command");
}

/* A command in pieces counts like one that is whole. */
static void add(struct outcome *ret, const struct aof_log_entry *entry, uint64_t *sum)
{
    if (entry->kind == AOF_LOG_LONG)
        *sum = 0;
    *sum = sum_of(entry->kind == AOF_LOG_PIECE      ? *sum
                  : entry->kind == AOF_LOG_LONG_END ? *sum
                                                    : 0,
                  entry->bytes.ptr, entry->bytes.len);
    if (entry->kind == AOF_LOG_LONG || entry->kind == AOF_LOG_PIECE)
        return;
    const uint64_t seen[] = {entry->offset, entry->len, entry->command.argc, *sum};
    ret->entries = sum_of(ret->entries, seen, sizeof seen);
}

static struct outcome read_log(struct rd_src *src, unsigned mode)
{
    struct outcome ret = {0};
    struct aof_log_opts opts =
        AOF_LOG_OPTS(.names = (mode & NAMES) != 0, .whole = (mode & WHOLE) != 0,
                     .lines = (mode & LINES) != 0, .ahead = (mode & AHEAD) != 0, .max_args = 5000,
                     .max_bulk = 1 << 20, .max_line = 1000);
    struct aof_log *log;
    struct aof_log_entry entry;
    uint64_t sum = 0;
    check(aof_log_new(&log, src, &opts, NULL), "out of memory");
    while ((ret.status = aof_log_next(log, &entry)) == AOF_LOG_ENTRY) {
        if (entry.kind == AOF_LOG_COMMAND)
            check_command(&entry, opts.names);
        add(&ret, &entry, &sum);
    }
    ret.whole = aof_log_whole(log);
    ret.line = aof_log_line(log);
    ret.code = aof_log_err(log)->code;
    ret.offset = aof_log_err(log)->offset;
    check((ret.status == AOF_LOG_FAIL) == (ret.code != RD_ERR_OK), "failure without an error");
    aof_log_free(log);
    rd_src_close(src);
    return ret;
}

static void read_reader(struct rd_slice bytes)
{
    const struct aof_reader_opts opts =
        AOF_READER_OPTS(.rdb = &RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES));
    struct rd_src *src = NULL;
    struct aof_reader *r = NULL;
    struct aof_event ev;
    enum aof_status status;
    check(rd_src_open_memory(&src, bytes, NULL, NULL) && aof_reader_new_file(&r, src, &opts, NULL),
          "out of memory");
    while ((status = aof_reader_next(r, &ev)) == AOF_EVENT)
        check(ev.offset <= bytes.len && !(ev.in_multi && ev.multi > ev.offset),
              "place of an event");
    check(status == AOF_END || status == AOF_FAIL, "wants more of a whole input");
    check(aof_reader_safe(r) <= bytes.len, "safe place");
    aof_reader_free(r);
    rd_src_close(src);
}

static struct rd_src *in_pieces(struct rd_slice bytes, uint8_t choice)
{
    static const size_t windows[] = {128, 200, 1000, 0};
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = windows[choice >> WINDOW_SHIFT & 3]);
    size_t piece = (size_t)(choice >> PIECE_SHIFT) * 13 + 1;
    struct rd_src *inner = NULL, *pieces = NULL;
    check(rd_src_open_memory(&inner, bytes, NULL, NULL) &&
              rd_src_open_trickle(&pieces, inner, piece, &opts, NULL),
          "out of memory");
    return pieces;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct rd_slice bytes = rd_slice(data + 1, size - 1);
    struct rd_src *whole = NULL;
    check(rd_src_open_memory(&whole, bytes, NULL, NULL), "out of memory");
    struct outcome a = read_log(whole, LINES);
    for (unsigned ahead = 0; ahead <= AHEAD; ahead += AHEAD) {
        struct outcome b = read_log(in_pieces(bytes, data[0]), (data[0] & 7u) | ahead);
        check(a.entries == b.entries && a.whole == b.whole, "other entries in pieces");
        check(a.status == b.status && a.code == b.code && a.offset == b.offset,
              "other end in pieces");
        check(b.line == 0 || a.line == b.line, "other line in pieces");
    }
    read_reader(bytes);
    return 0;
}
