/* Writes a log as reported, for tests that let a server load it.
 *
 * usage: write_log DIR FOLDER [upgrade] [timestamps] [cut=BYTES] < SCRIPT
 *
 * The script is a stream of commands in RESP. Those that begin with '@' are for the writer:
 * @db N, @now MS, @multi, @exec, @flush, @sync, @begin, @commit FILE rdb|aof, @abort.
 */
#include <stdio.h>
#include <stdlib.h>

#include "aof/writer.h"
#include "base/num.h"
#include "base/resp.h"

struct script {
    struct aof_writer *w;
    uint64_t db;
    int64_t now_ms;
};

static bool direct(struct script *s, const struct resp_command *cmd, struct rd_err *err)
{
    struct rd_slice word = cmd->argv[0];
    if (rd_slice_is(word, "@db"))
        return rd_num_get_u64(cmd->argv[1], &s->db);
    if (rd_slice_is(word, "@now"))
        return rd_num_get_i64(cmd->argv[1], &s->now_ms);
    if (rd_slice_is(word, "@multi"))
        return aof_writer_multi_begin(s->w, s->db, s->now_ms, err);
    if (rd_slice_is(word, "@exec"))
        return aof_writer_multi_end(s->w, err);
    if (rd_slice_is(word, "@flush"))
        return aof_writer_flush(s->w, err);
    if (rd_slice_is(word, "@sync"))
        return aof_writer_sync(s->w, err);
    if (rd_slice_is(word, "@begin"))
        return aof_writer_rewrite_begin(s->w, err);
    if (rd_slice_is(word, "@abort")) {
        aof_writer_rewrite_abort(s->w, NULL);
        return true;
    }
    char temp[256];
    snprintf(temp, sizeof temp, "%.*s", (int)cmd->argv[1].len, (const char *)cmd->argv[1].ptr);
    return aof_writer_rewrite_commit(s->w, temp, rd_slice_is(cmd->argv[2], "rdb"), err);
}

static bool play(struct script *s, struct rd_resp_reader *reader, struct rd_err *err)
{
    for (;;) {
        struct resp_command cmd;
        switch (rd_resp_reader_next(reader, &cmd)) {
        case RESP_COMMAND:
            if (cmd.argv[0].ptr[0] == '@'
                    ? !direct(s, &cmd, err)
                    : !aof_writer_append(s->w, s->db, cmd.argv, cmd.argc, s->now_ms, err))
                return false;
            break;
        case RESP_END:
            return true;
        default:
            rd_err_adopt(err, rd_resp_reader_err(reader));
            return false;
        }
    }
}

static bool write_log(const struct rd_fs *fs, const struct aof_writer_opts *opts,
                      struct rd_err *err)
{
    struct rd_src *src = NULL;
    struct rd_resp_reader *reader = NULL;
    struct script s = {.now_ms = 1700000000000};
    if (!aof_writer_open(&s.w, fs, opts, err))
        return false;
    bool ok = rd_src_open_file(&src, "-", NULL, err) &&
              rd_resp_reader_new(&reader, src, NULL, err) && play(&s, reader, err);
    rd_resp_reader_free(reader);
    rd_src_close(src);
    return aof_writer_close(s.w, err) && ok;
}

int main(int argc, char **argv)
{
    struct aof_writer_opts opts = {.fsync = AOF_FSYNC_EVERYSEC};
    struct rd_fs fs;
    struct rd_err err = {0};
    bool upgrade = false;
    for (int i = 3; i < argc; i++) {
        upgrade |= strcmp(argv[i], "upgrade") == 0;
        opts.timestamps |= strcmp(argv[i], "timestamps") == 0;
        opts.cut |= strncmp(argv[i], "cut=", 4) == 0;
        if (opts.cut && opts.cut_to == 0)
            opts.cut_to = strtoull(argv[i] + 4, NULL, 10);
    }
    if (argc < 3)
        return 2;
    bool ok = rd_fs_open_posix(&fs, argv[1], argv[2], &err);
    if (ok) {
        ok = (!upgrade || aof_writer_upgrade(&fs, NULL, &err)) && write_log(&fs, &opts, &err);
        rd_fs_close_posix(&fs);
    }
    char line[512];
    if (!ok)
        fprintf(stderr, "%s\n", rd_err_render(&err, line, sizeof line));
    return ok ? 0 : 1;
}
