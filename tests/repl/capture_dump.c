/* capture_dump.c - a capture as what replays it: for tests that do not trust the tools.
 *
 *     capture_dump DIR          what there is: a line for each snapshot and run of the stream
 *     capture_dump DIR stream   the bytes of the stream after the last snapshot
 *     capture_dump DIR base     the name of that snapshot
 */
#include "repl/capture_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int fail(const struct rd_err *err)
{
    char line[512];
    fprintf(stderr, "%s\n", rd_err_render(err, line, sizeof line));
    return 1;
}

static int print_list(const struct repl_capture_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct repl_capture_segment *s = &list->segments[i];
        printf("%s chapter %" PRIu64 " start %" PRIu64 " db %" PRIu64 " %s %s %s\n", s->name,
               s->chapter, s->start, s->db, s->closed ? "closed" : "open",
               s->has_snapshot ? "snapshot" : "-", s->replid.hex);
    }
    return 0;
}

static int dump_stream(struct repl_capture_reader *r, const struct repl_capture_segment *from)
{
    struct repl_capture_event ev;
    struct rd_err err = {0};
    uint64_t at = from->start;
    if (!repl_capture_reader_seek(r, from->chapter, from->start, &err))
        return fail(&err);
    for (;;) {
        switch (repl_capture_reader_next(r, &ev)) {
        case REPL_CAPTURE_EVENT:
            if (ev.kind == REPL_CAPTURE_CHAPTER)
                break;
            if (ev.offset != at) {
                fprintf(stderr, "offset %" PRIu64 " instead of %" PRIu64 "\n", ev.offset, at);
                return 1;
            }
            at += ev.bytes.len;
            fwrite(ev.bytes.ptr, 1, ev.bytes.len, stdout);
            break;
        case REPL_CAPTURE_FAIL:
            return fail(repl_capture_reader_err(r));
        default:
            fprintf(stderr, "%" PRIu64 "\n", at);
            return 0;
        }
    }
}

static int run(const struct rd_fs *fs, const char *what)
{
    struct repl_capture_list list;
    struct repl_capture_reader *r;
    struct rd_err err = {0};
    char name[REPL_CAPTURE_NAME];
    size_t base;
    if (!repl_capture_list(&list, fs, &err))
        return fail(&err);
    int status = 1;
    if (what[0] == '\0') {
        status = print_list(&list);
    } else if (list.n == 0 || !repl_capture_base(&list, list.n - 1, &base)) {
        fprintf(stderr, "no snapshot\n");
    } else if (strcmp(what, "base") == 0) {
        repl_capture_snapshot_name(&list.segments[base], name);
        status = puts(name) < 0;
    } else if (repl_capture_reader_open(&r, fs, NULL, &err)) {
        status = dump_stream(r, &list.segments[base]);
        repl_capture_reader_close(r);
    } else {
        status = fail(&err);
    }
    repl_capture_list_done(&list);
    return status;
}

int main(int argc, char **argv)
{
    struct rd_err err = {0};
    struct rd_fs fs;
    if (argc < 2)
        return 2;
    if (!rd_fs_open_folder(&fs, argv[1], false, &err))
        return fail(&err);
    int status = run(&fs, argc > 2 ? argv[2] : "");
    rd_fs_close_posix(&fs);
    return status;
}
