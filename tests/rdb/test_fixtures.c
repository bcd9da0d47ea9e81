/* What the reader says of every snapshot among the fixtures is what fixtures/MANIFEST.tsv expects.
 */
#include "rdb/reader.h"
#include "tests/support/hex.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE_MAX_LEN = 1024, PATH_MAX_LEN = 512 };

struct row {
    char path[PATH_MAX_LEN];
    char kind[32];
    char expected[LINE_MAX_LEN];
};

static const char *fixtures(void)
{
    const char *folder = getenv("REDOUBT_FIXTURES");
    return folder != NULL ? folder : "fixtures";
}

static void append(char *text, const char *word)
{
    size_t len = strlen(text);
    if (strstr(text, word) == NULL)
        snprintf(text + len, LINE_MAX_LEN - len, " %s", word);
}

static void set_verdict(char *verdict, const struct rd_err *err)
{
    int len = snprintf(verdict, LINE_MAX_LEN, "%s@", rd_err_word(err->code));
    if (err->offset == RD_NO_OFFSET)
        len += snprintf(verdict + len, LINE_MAX_LEN - (size_t)len, "-");
    else
        len += snprintf(verdict + len, LINE_MAX_LEN - (size_t)len, "%llu",
                        (unsigned long long)err->offset);
    if (err->inner != RD_NO_OFFSET)
        snprintf(verdict + len, LINE_MAX_LEN - (size_t)len, "+%llu",
                 (unsigned long long)err->inner);
}

/* Reads everything with the strictest option. */
static void judge(struct rd_src *src, char verdict[LINE_MAX_LEN])
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .notes = true);
    char notes[LINE_MAX_LEN] = "";
    struct rdb_reader *reader;
    struct rdb_event ev;
    enum rdb_status st;
    struct rd_err err = {0};
    cr_assert(rdb_reader_new(&reader, src, &opts, &err));
    while ((st = rdb_reader_next(reader, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_NOTE)
            append(notes, rdb_note_word(ev.note.id));
        if (ev.kind == RDB_TRAILER && ev.trailer.summed && ev.trailer.stored != 0 &&
            ev.trailer.stored != ev.trailer.computed)
            rd_err_set(&err, RD_ERR_CHECKSUM, ev.offset, "checksum");
    }
    struct rd_slice rest;
    if (st == RDB_END && rd_src_need(src, 1, &rest) == RD_SRC_OK)
        append(notes, "trailing-bytes");
    rd_err_adopt(&err, rdb_reader_err(reader));
    if (err.code == RD_ERR_OK)
        snprintf(verdict, LINE_MAX_LEN, "ok");
    else
        set_verdict(verdict, &err);
    size_t len = strlen(verdict);
    snprintf(verdict + len, LINE_MAX_LEN - len, "%s", notes);
    rdb_reader_free(reader);
}

static void judge_file(const struct row *row, char verdict[LINE_MAX_LEN])
{
    char path[2 * PATH_MAX_LEN];
    struct rd_buf bytes = {0};
    struct rd_src *src;
    unsigned line;
    snprintf(path, sizeof path, "%s/%s", fixtures(), row->path);
    if (strcmp(row->kind, "rdb-hex") == 0) {
        cr_assert(hex_load(path, &bytes, &line), "%s: line %u", path, line);
        cr_assert(rd_src_open_memory(&src, rd_buf_slice(&bytes), NULL, NULL));
    } else {
        cr_assert(rd_src_open_file(&src, path, NULL, NULL), "%s", path);
    }
    judge(src, verdict);
    rd_src_close(src);
    rd_buf_done(&bytes);
}

static FILE *open_manifest(void)
{
    char path[PATH_MAX_LEN];
    snprintf(path, sizeof path, "%s/MANIFEST.tsv", fixtures());
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    return file;
}

/* The next line that is a snapshot. */
static bool next_row(FILE *file, struct row *row)
{
    char line[LINE_MAX_LEN];
    while (fgets(line, sizeof line, file) != NULL) {
        int n = sscanf(line, "%511[^\t]\t%*[^\t]\t%31[^\t]\t%1023[^\t]\t", row->path, row->kind,
                       row->expected);
        cr_assert_eq(n, 3, "%s", line);
        if (strcmp(row->kind, "rdb") == 0 || strcmp(row->kind, "rdb-hex") == 0)
            return true;
    }
    return false;
}

Test(fixtures, each_snapshot_is_what_the_manifest_says)
{
    FILE *file = open_manifest();
    struct row row;
    char verdict[LINE_MAX_LEN];
    unsigned n = 0, wrong = 0;
    while (next_row(file, &row)) {
        judge_file(&row, verdict);
        if (strcmp(verdict, row.expected) != 0) {
            fprintf(stderr, "%s\t%s\t(expected: %s)\n", row.path, verdict, row.expected);
            wrong++;
        }
        n++;
    }
    fclose(file);
    cr_assert_gt(n, 150);
    cr_assert_eq(wrong, 0, "%u of %u snapshots", wrong, n);
}
