/* make_capture - a capture from files, for tests of what reads captures.
 *
 *     make_capture DIR ID OFFSET SNAPSHOT US STEP RESP [SEGMENT [RUN [recorded|late]]]
 *
 * The history is named by a digit ID and begins at OFFSET with the file SNAPSHOT; "-": the capture
 * that is there continues, under this name, or it begins without one. The commands of the file RESP
 * arrive one after the other, the first at US, each STEP microseconds after the one before.
 * SEGMENT: bytes of a segment. RUN: a digit for the id of the program, which the captures of
 * servers have, and those of logs have not. recorded: interruptions are recorded, and there were
 * none; late: one lasts from the beginning to the end; without it, they are not, as in older
 * versions.
 */
#include "repl/capture_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/resp.h"

static struct rd_err err;

static void check(bool ok)
{
    char line[1024];
    if (ok)
        return;
    rd_err_render(&err, line, sizeof line);
    fprintf(stderr, "make_capture: %s\n", line);
    exit(1);
}

static void put_snapshot(struct repl_capture_writer *w, const char *path, int64_t now_us)
{
    struct rd_src *src;
    struct rd_slice s;
    check(rd_src_open_file(&src, path, NULL, &err));
    while (rd_src_need(src, 1, &s) == RD_SRC_OK) {
        check(repl_capture_writer_snapshot(w, s, &err));
        rd_src_consume(src, s.len);
    }
    rd_src_close(src);
    check(repl_capture_writer_snapshot_end(w, now_us, &err));
}

static void begin(struct repl_capture_writer *w, const struct repl_replid *id, uint64_t offset,
                  const char *snapshot, int64_t now_us)
{
    struct repl_capture_point point;
    if (strcmp(snapshot, "-") != 0) {
        check(repl_capture_writer_begin(w, id, offset, now_us, &err));
        put_snapshot(w, snapshot, now_us);
    } else if (repl_capture_writer_point(w, &point)) {
        check(repl_capture_writer_continue(w, id, now_us, &err));
    } else {
        point = (struct repl_capture_point){.replid = *id, .offset = offset};
        check(repl_capture_writer_bare(w, &point, now_us, &err));
    }
}

static void put_stream(struct repl_capture_writer *w, const char *path, int64_t now_us,
                       int64_t step_us)
{
    const struct rd_resp_opts opts = RD_RESP_OPTS(.client = true);
    struct rd_resp_reader *reader;
    struct resp_command cmd;
    struct rd_src *src;
    enum resp_status status;
    check(rd_src_open_file(&src, path, NULL, &err));
    check(rd_resp_reader_new(&reader, src, &opts, &err));
    for (; (status = rd_resp_reader_next(reader, &cmd)) == RESP_COMMAND; now_us += step_us)
        check(repl_capture_writer_append(w, rd_resp_reader_raw(reader), now_us, &err) &&
              repl_capture_writer_flush(w, &err));
    if (status == RESP_FAIL)
        err = *rd_resp_reader_err(reader);
    check(status == RESP_END);
    rd_resp_reader_free(reader);
    rd_src_close(src);
}

int main(int argc, char **argv)
{
    struct repl_capture_writer_opts opts = {0};
    struct repl_capture_writer *w;
    struct repl_replid id = {0};
    struct rd_fs fs;
    if (argc < 8) {
        fprintf(stderr, "usage: make_capture DIR ID OFFSET SNAPSHOT US STEP RESP [SEGMENT [RUN "
                        "[recorded|late]]]\n");
        return 2;
    }
    opts.segment_size = argc > 8 ? strtoull(argv[8], NULL, 10) : 0;
    if (argc > 9)
        memset(opts.run.hex, argv[9][0], REPL_REPLID_LEN);
    opts.recorded = argc > 10;
    memset(id.hex, argv[2][0], REPL_REPLID_LEN);
    check(rd_fs_open_folder(&fs, argv[1], true, &err));
    check(repl_capture_writer_open(&w, &fs, &opts, &err));
    begin(w, &id, strtoull(argv[3], NULL, 10), argv[4], strtoll(argv[5], NULL, 10));
    check((argc > 10 && strcmp(argv[10], "late") == 0) ||
          repl_capture_writer_in_time(w, strtoll(argv[5], NULL, 10), &err));
    put_stream(w, argv[7], strtoll(argv[5], NULL, 10), strtoll(argv[6], NULL, 10));
    check(repl_capture_writer_close(w, &err));
    rd_fs_close_posix(&fs);
    return 0;
}
