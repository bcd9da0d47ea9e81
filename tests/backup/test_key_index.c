#include "backup/key_index.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pump.h"
#include "history/index_reader.h"
#include "repl/capture_writer.h"
#include "tests/backup/place.h"

/* A capture in a folder, with one closed segment that begins in a transaction. */
struct made {
    char folder[64], path[128];
    uint64_t number, start;
};

static void append(struct repl_capture_writer *w, const char *word, const char *key)
{
    struct rd_buf bytes = {0};
    place_put_command(&bytes, word, key, key != NULL ? "v" : NULL, NULL);
    cr_assert(repl_capture_writer_append(w, rd_buf_slice(&bytes), 1700000000000000, NULL));
    rd_buf_done(&bytes);
}

static void make(struct made *m)
{
    const struct repl_replid id = {.hex = "0123456789012345678901234567890123456789"};
    struct repl_capture_writer_opts opts = {.recorded = true};
    struct repl_capture_writer *w;
    struct repl_capture_list list;
    struct rd_buf snapshot = {0};
    struct rd_fs fs;
    *m = (struct made){.folder = "/tmp/redoubt-test-XXXXXX"};
    cr_assert_not_null(mkdtemp(m->folder));
    cr_assert(rd_fs_open_folder(&fs, m->folder, false, NULL));
    cr_assert(repl_capture_writer_open(&w, &fs, &opts, NULL));
    place_put_snapshot(&snapshot, 1);
    cr_assert(repl_capture_writer_begin(w, &id, 100, 1700000000000000, NULL) &&
              repl_capture_writer_snapshot(w, rd_buf_slice(&snapshot), NULL) &&
              repl_capture_writer_snapshot_end(w, 1700000000000000, NULL));
    append(w, "SET", "before");
    append(w, "MULTI", NULL);
    append(w, "SET", "in");
    cr_assert(repl_capture_writer_roll(w, NULL));
    append(w, "SET", "later");
    append(w, "EXEC", NULL);
    append(w, "FLUSHALL", NULL);
    cr_assert(repl_capture_writer_roll(w, NULL) && repl_capture_writer_close(w, NULL));
    cr_assert(repl_capture_list(&list, &fs, NULL));
    cr_assert_geq(list.n, 2);
    m->number = list.segments[1].number;
    m->start = list.segments[1].start;
    snprintf(m->path, sizeof m->path, "%s/%s", m->folder, list.segments[1].name);
    repl_capture_list_done(&list);
    rd_fs_close_posix(&fs);
    rd_buf_done(&snapshot);
}

static void done(const struct made *m)
{
    char command[160];
    snprintf(command, sizeof command, "rm -r %s", m->folder);
    cr_assert_eq(system(command), 0);
}

/* The bytes of the index, and the segment. */
static void index_of(const struct made *m, struct rd_buf *ret, struct segment_in *in)
{
    static const uint8_t salt[RD_SIPHASH_KEY] = {1, 2, 3};
    struct backup_key_index index;
    struct rd_sink *sink;
    cr_assert(segment_in_open_file(in, m->path, m->number, m->start, NULL));
    cr_assert(backup_key_index_make(&index, in, salt, NULL));
    cr_assert(rd_sink_open_buf(&sink, ret, NULL, NULL));
    cr_assert(backup_key_index_copy(&index, sink, NULL) && rd_sink_close(sink, NULL));
    backup_key_index_done(&index);
}

static bool find(struct rd_slice bytes, struct backup_key_index_parts *ret, struct rd_err *err)
{
    struct spool spool = {0};
    bool ok = spool_append(&spool, "xyz", 3, NULL) &&
              spool_append(&spool, bytes.ptr, bytes.len, NULL) &&
              backup_key_index_find(&spool, 3, ret, err);
    spool_done(&spool);
    return ok;
}

Test(key_index, has_the_keys_of_a_segment_and_both_its_ends)
{
    struct made m;
    struct rd_buf bytes = {0};
    struct segment_in in;
    struct backup_key_index_parts parts;
    struct history_index_reader *r;
    struct history_spans spans = {0};
    struct rd_fs fs;
    uint8_t end[4096];
    make(&m);
    index_of(&m, &bytes, &in);
    cr_assert(find(rd_buf_slice(&bytes), &parts, NULL));
    cr_expect_eq(parts.keys_at, 3);
    cr_expect_eq(parts.end_len, in.size - in.header.end_at);
    cr_assert_leq(parts.end_len, sizeof end);
    cr_assert_eq(pread(in.fd, end, parts.end_len, (off_t)in.header.end_at), parts.end_len);
    cr_expect_arr_eq(bytes.ptr + parts.end_at - 3, end, parts.end_len);
    cr_assert_eq(pread(in.fd, end, REPL_CAPTURE_HEAD, 0), REPL_CAPTURE_HEAD);
    cr_expect_arr_eq(bytes.ptr + parts.head_at - 3, end, REPL_CAPTURE_HEAD);

    cr_assert(rd_fs_open_folder(&fs, m.folder, false, NULL));
    char path[160];
    struct rd_src *src;
    snprintf(path, sizeof path, "%s/keys", m.folder);
    cr_assert(rd_src_open_memory(&src, rd_slice(bytes.ptr, parts.keys_len), NULL, NULL));
    cr_assert(rd_pump_to_file(src, path, NULL, NULL));
    cr_assert(history_index_reader_open(&r, &fs, "keys", NULL));
    const struct history_index_about *about = history_index_reader_about(r);
    cr_expect_eq(about->kind, HISTORY_SEGMENT);
    cr_expect_eq(about->size, in.size);
    cr_expect_arr_eq(about->digest, in.header.sha256, HISTORY_DIGEST);
    cr_assert(history_index_reader_find(r, rd_slice_str("later"), &spans, NULL));
    cr_assert_eq(spans.n, 1);
    cr_expect_eq(spans.list[0].offset, m.start);
    cr_expect_eq(spans.list[0].flags, HISTORY_SPAN_IN_MULTI);
    cr_expect_eq(spans.list[0].multi, RD_NO_OFFSET, "it is in the segment before");
    history_spans_done(&spans);
    cr_assert(history_index_reader_apart(r, &spans, NULL));
    cr_expect_eq(spans.n, 1, "FLUSHALL");
    history_spans_done(&spans);
    history_index_reader_close(r);
    rd_fs_close_posix(&fs);
    segment_in_close(&in);
    rd_buf_done(&bytes);
    done(&m);
}

Test(key_index, that_is_cut_or_longer_has_no_parts)
{
    struct made m;
    struct rd_buf bytes = {0};
    struct segment_in in;
    struct backup_key_index_parts parts;
    make(&m);
    index_of(&m, &bytes, &in);
    for (size_t n = 0; n < bytes.len; n++) {
        struct rd_err err = {0};
        cr_expect_not(find(rd_slice(bytes.ptr, n), &parts, &err), "%zu", n);
        cr_expect_eq(err.code, RD_ERR_CORRUPT);
    }
    cr_assert(rd_buf_add_byte(&bytes, 0));
    cr_expect_not(find(rd_buf_slice(&bytes), &parts, NULL));
    cr_assert(find(rd_slice(bytes.ptr, bytes.len - 1), &parts, NULL));
    segment_in_close(&in);
    rd_buf_done(&bytes);
    done(&m);
}
