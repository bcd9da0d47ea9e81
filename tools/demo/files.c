/* files.c - the damaged files of `redoubt demo`. */
#include "tools/demo/demo.h"

#include "base/pump.h"
#include "base/resp.h"
#include "base/sink.h"
#include "base/src.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_USERS = 500, N_VIEWS = 300, TORN = 9, ARGS_MAX = 8, LINE_MAX_SIZE = 200 };

#define COMMANDS "commands.aof"
#define SNAPSHOT "original.rdb"
#define FOLDER   "appendonlydir"

/* ---- commands ---- */

/* Writes a command, whose arguments are separated by '|'. */
RD_PRINTF(2, 3) static bool put(struct rd_sink *sink, const char *fmt, ...)
{
    char line[LINE_MAX_SIZE], *rest = line, *word;
    struct rd_slice argv[ARGS_MAX];
    size_t argc = 0;
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    while (argc < ARGS_MAX && (word = strsep(&rest, "|")) != NULL)
        argv[argc++] = rd_slice_str(word);
    return rd_resp_put_command(sink, argv, argc);
}

static bool put_shop(struct rd_sink *sink)
{
    bool ok = true;
    for (unsigned n = 0; ok && n < N_USERS; n++) {
        ok = put(sink, "HSET|user:%u|name|user number %u|plan|%s", n, n,
                 n % 5 != 0 ? "free" : "paid") &&
             put(sink, "HSET|user:%u|mail|%u@example.org", n, n * 7919 % 1000) &&
             put(sink, "SET|session:%05u|token-%05u-of-user-%u|PXAT|4102444800000",
                 n * 104729 % 99991, n * 7907 % 65521, n);
    }
    for (unsigned n = 0; ok && n < N_VIEWS; n++)
        ok = put(sink, "RPUSH|queue:mail|job %u: send the newsletter", n);
    return ok;
}

/* The commands after the snapshot. What follows FLUSHALL is a server that continues. */
static bool put_log(struct rd_sink *sink, uint64_t *ret_flush)
{
    bool ok = put(sink, "SELECT|0");
    for (unsigned n = 0; ok && n < N_VIEWS; n++)
        ok = put(sink, "SET|page:%u|%u views", n, n * 17 % 1000);
    *ret_flush = rd_sink_offset(sink);
    return ok && put(sink, "FLUSHALL") && put(sink, "SET|page:1|1 view") &&
           put(sink, "HSET|user:1000|name|a new user") && put(sink, "SET|page:2|1 view");
}

/* ---- files ---- */

static bool write_file(const char *name, struct rd_slice bytes, struct rd_err *err)
{
    struct rd_sink *sink;
    if (!rd_sink_open_file(&sink, name, NULL, err))
        return false;
    rd_sink_write(sink, bytes.ptr, bytes.len);
    return rd_sink_close(sink, err);
}

static bool read_file(const char *name, struct rd_buf *ret, struct rd_err *err)
{
    struct rd_src *src;
    if (!rd_src_open_file(&src, name, NULL, err))
        return false;
    bool ok = rd_pump_to_buf(src, SIZE_MAX, ret, err);
    rd_src_close(src);
    return ok;
}

static bool make_snapshot(struct rd_err *err)
{
    static const char convert[] =
        "convert --quiet --from aof --to rdb --rdb-version 10 " COMMANDS " -o " SNAPSHOT;
    struct rd_sink *sink;
    int status = 0;
    if (!rd_sink_open_file(&sink, COMMANDS, NULL, err))
        return false;
    put_shop(sink);
    bool ok = rd_sink_close(sink, err) && demo_run(convert, NULL, &status, err);
    unlink(COMMANDS);
    return ok && (status == 0 || rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET,
                                            "the example cannot be made: exit status %d", status));
}

static bool make_log(struct rd_slice snapshot, uint64_t *ret_flush, struct rd_err *err)
{
    static const char manifest[] = "file appendonly.aof.1.base.rdb seq 1 type b\n"
                                   "file " DEMO_INCR " seq 1 type i\n";
    struct rd_buf incr = {0};
    struct rd_sink *sink;
    if (mkdir(FOLDER, 0700) != 0)
        return rd_err_sys(err, errno, "cannot create the folder " FOLDER);
    if (!rd_sink_open_buf(&sink, &incr, NULL, err))
        return false;
    put_log(sink, ret_flush);
    bool ok = rd_sink_close(sink, err) &&
              write_file(FOLDER "/appendonly.aof.1.base.rdb", snapshot, err) &&
              write_file(FOLDER "/" DEMO_INCR, rd_slice(incr.ptr, incr.len - TORN), err) &&
              write_file(FOLDER "/appendonly.aof.manifest", rd_slice_str(manifest), err);
    rd_buf_done(&incr);
    return ok;
}

bool demo_make_files(uint64_t *ret_flush, struct rd_err *err)
{
    static const char garbage[] = "garbage from a bad disk";
    struct rd_buf bytes = {0};
    bool ok = make_snapshot(err) && read_file(SNAPSHOT, &bytes, err) &&
              make_log(rd_buf_slice(&bytes), ret_flush, err);
    if (ok) {
        memcpy(bytes.ptr + bytes.len / 2, garbage, sizeof garbage - 1);
        ok = write_file("dump.rdb", rd_buf_slice(&bytes), err);
    }
    rd_buf_done(&bytes);
    return ok;
}
