/* fuzz_manifest.c - the reader of manifests takes any bytes, and what it took is written so that it
 * reads back.
 *
 * The file is read twice, strictly and with every problem reported; both must agree on whether
 * servers refuse it.
 */
#include "aof/manifest.h"
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t size;
    bool fatal;
};

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_manifest: %s\n", what);
    abort();
}

static void note(void *ctx, enum aof_manifest_problem problem, uint64_t offset, unsigned line,
                 const char *text)
{
    struct seen *seen = ctx;
    (void)line;
    check(offset <= seen->size && text[0] != '\0', "place of a problem");
    seen->fatal |= aof_manifest_problem_fatal(problem);
}

static bool read_bytes(struct rd_slice bytes, struct aof_manifest *m, struct seen *seen)
{
    struct rd_src *src;
    struct rd_err err = {0};
    aof_manifest_init(m);
    check(rd_src_open_memory(&src, bytes, NULL, NULL), "out of memory");
    bool ok = aof_manifest_read(m, src, seen != NULL ? note : NULL, seen, &err);
    check(ok == (err.code == RD_ERR_OK), "failure without an error");
    check(ok || err.offset <= bytes.len, "place of an error");
    rd_src_close(src);
    return ok;
}

static void check_files(const struct aof_manifest *m)
{
    for (size_t i = 0; i < aof_manifest_count(m); i++) {
        const struct aof_file *file = aof_manifest_file(m, i);
        check(file->name[0] != '\0' && strchr(file->name, '/') == NULL && file->seq > 0, "a file");
    }
}

static void write_back(const struct aof_manifest *m)
{
    struct rd_buf text = {0};
    struct rd_sink *sink;
    struct aof_manifest again;
    check(rd_sink_open_buf(&sink, &text, NULL, NULL) && aof_manifest_write(m, sink) &&
              rd_sink_close(sink, NULL),
          "out of memory");
    /* Quotes may make a line longer than servers read. */
    if (read_bytes(rd_buf_slice(&text), &again, NULL))
        check(aof_manifest_count(&again) == aof_manifest_count(m), "other files when read back");
    else
        check(text.len > AOF_MANIFEST_LINE_MAX || aof_manifest_count(m) == 0,
              "cannot be read back");
    aof_manifest_done(&again);
    rd_buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen seen = {.size = size};
    struct aof_manifest strict, all;
    bool ok = read_bytes(rd_slice(data, size), &strict, NULL);
    check(read_bytes(rd_slice(data, size), &all, &seen),
          "problems stop a reader that reports them");
    check(ok == !seen.fatal, "servers would and would not take it");
    check_files(&all);
    if (ok) {
        check(aof_manifest_count(&strict) == aof_manifest_count(&all), "other files");
        write_back(&strict);
    }
    aof_manifest_done(&strict);
    aof_manifest_done(&all);
    return 0;
}
