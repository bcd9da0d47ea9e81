#include "history/indexes.h"

#include "base/digest.h"
#include "base/sink.h"
#include "history/index_maker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STRIDE = HISTORY_INDEX_STRIDE,
    TAIL_MAX = 4 * 1024 * 1024, /* of data that grows: bytes that the index does not have yet */
    NAMES_FEW = 64,
    NAMES_PER_SPAN = 4 /* of the names that are looked up, before all is read instead */
};

/* ---- making ---- */

struct making {
    struct history_tape *tape;
    const struct history_part *part;
    struct history_index_maker *maker;
};

static bool add_command(void *ctx, const struct history_command *command, struct rd_err *err)
{
    const struct making *m = ctx;
    if (command->offset >= m->part->end)
        return false; /* the rest of a transaction: the index of the next segment has it */
    if (m->part->grows && history_index_maker_begins(m->maker, command->offset)) {
        uint8_t mark[HISTORY_DIGEST];
        history_tape_mark(m->tape, mark);
        history_index_maker_digest(m->maker, mark);
    }
    return history_index_maker_command(m->maker, command, err);
}

/* A span begins at a record. Hashes with shared field names cannot be read without what comes
 * before them. */
static bool add_records(struct history_index_maker *maker, struct history_records *records,
                        struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    uint64_t db = 0;
    while ((status = rdb_reader_next(records->reader, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_DB)
            db = ev.db;
        if (ev.kind == RDB_TEMPLATE || ev.kind == RDB_UPDATE)
            return rd_err_set(err, RD_ERR_UNSUPPORTED, ev.offset, "records depend on others");
        if (ev.kind != RDB_KEY)
            continue;
        if (!history_index_maker_record(maker, rdb_reader_record(records->reader), db, ev.key.name,
                                        err))
            return false;
        if (rdb_reader_skip_value(records->reader) == RDB_FAIL)
            break;
    }
    rd_err_adopt(err, rdb_reader_err(records->reader));
    return status == RDB_END;
}

static bool add_snapshot(struct history_index_maker *maker, struct history_tape *tape, size_t part,
                         struct rd_err *err)
{
    struct history_records records;
    if (!history_tape_snapshot(tape, part, NULL, &records, err))
        return false;
    bool ok = add_records(maker, &records, err);
    history_records_close(&records);
    return ok;
}

bool history_indexes_make(const struct history_indexes *indexes, struct history_tape *tape,
                          size_t part, struct rd_sink *sink, struct rd_err *err)
{
    const struct history_part *p = &tape->parts[part];
    struct history_index_about about = p->about;
    struct making m = {.tape = tape, .part = p};
    memcpy(about.salt, indexes->salt, sizeof about.salt);
    if (!p->fixed && !p->grows)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "it may change");
    if (!history_index_maker_new(&m.maker, &about, p->end, indexes->stride, sink, err))
        return false;
    bool ok = p->kind == HISTORY_SNAPSHOT
                  ? add_snapshot(m.maker, tape, part, err)
                  : history_tape_read(tape, part, NULL, add_command, &m, err) ||
                        err->code == RD_ERR_OK; /* it went far enough */
    ok = ok && history_index_maker_end(m.maker, err);
    history_index_maker_free(m.maker);
    return ok;
}

/* ---- keeping ---- */

/* Whether they are in the folder of the capture itself. */
static bool is_beside(const struct history_indexes *indexes, const struct history_tape *tape)
{
    return tape->is_capture && strcmp(indexes->folder, tape->path) == 0;
}

/* In the folder of the capture by the name of the part; in any other, files of several captures
 * and logs may have the same name. */
static bool name_of(const struct history_indexes *indexes, const struct history_tape *tape,
                    const struct history_part *part, char ret[NAME_MAX + 1])
{
    char hex[RD_DIGEST_HEX];
    int len = is_beside(indexes, tape)
                  ? snprintf(ret, NAME_MAX + 1, "%s" HISTORY_INDEX_ENDING, part->name)
                  : snprintf(ret, NAME_MAX + 1, "%s-%u" HISTORY_INDEX_ENDING,
                             rd_digest_hex(hex, rd_slice(part->about.digest, 16)), part->kind);
    return len > 0 && len <= NAME_MAX;
}

/* The writer of the capture may have deleted the file meanwhile, and its index before it was there.
 */
static void drop_orphan(const struct rd_fs *fs, const struct history_part *part)
{
    uint64_t size;
    if (fs->size(fs->ctx, part->name, &size) == -ENOENT)
        repl_capture_unlink_keys(fs, part->name);
}

/* "0123456789abcdef0123456789abcdef-1.keys", as name_of() makes it. */
static bool is_by_digest(const char *name)
{
    enum { DIGITS = 32 };
    return strspn(name, "0123456789abcdef") == DIGITS && name[DIGITS] == '-' &&
           name[DIGITS + 1] != '\0' && strcmp(name + DIGITS + 2, HISTORY_INDEX_ENDING) == 0;
}

/* Whether the data still exists cannot be seen here: what nobody has read for long before this one
 * was made is removed. */
void history_indexes_tidy(const char *folder, const char *made)
{
    const time_t long_ago = (time_t)HISTORY_INDEX_DAYS * 86400;
    DIR *dir = opendir(folder);
    struct dirent *entry;
    struct stat new, st;
    bool ok = dir != NULL && fstatat(dirfd(dir), made, &new, AT_SYMLINK_NOFOLLOW) == 0;
    while (ok && (entry = readdir(dir)) != NULL)
        if (is_by_digest(entry->d_name) &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode) &&
            new.st_mtime - st.st_atime > long_ago &&new.st_mtime - st.st_mtime > long_ago)
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir != NULL)
        closedir(dir);
}

static void tidy(const struct history_indexes *indexes, const struct history_tape *tape,
                 const struct rd_fs *fs, size_t part, const char *name)
{
    if (is_beside(indexes, tape))
        drop_orphan(fs, &tape->parts[part]);
    else if (indexes->made == 1)
        history_indexes_tidy(indexes->folder, name);
}

static bool store(struct history_indexes *indexes, struct history_tape *tape, size_t part,
                  const char *name, struct rd_err *err)
{
    char path[PATH_MAX];
    struct rd_sink *sink;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", indexes->folder, name) >= sizeof path)
        return rd_err_set(&indexes->failed, RD_ERR_USAGE, RD_NO_OFFSET, "the path is too long");
    if (!rd_sink_open_file(&sink, path, &RD_SINK_OPTS(.mode = 0600, .replace = true),
                           &indexes->failed))
        return false;
    if (indexes->making != NULL)
        indexes->making(indexes->ctx, &tape->parts[part]);
    if (!history_indexes_make(indexes, tape, part, sink, err)) {
        rd_sink_abort(sink);
        return false;
    }
    indexes->made++;
    return rd_sink_close(sink, &indexes->failed);
}

/* Of data that grows the end is checked later. */
static bool is_of(const struct history_part *part, const struct history_index_about *about)
{
    return part->fixed ? history_index_is_of(about, &part->about)
                       : about->kind == part->about.kind && about->size == part->about.size;
}

/* What came since the index was made is read as one span. */
static bool add_tail(struct history_tape *tape, size_t part, struct history_index_reader *r,
                     struct history_spans *ret, struct rd_err *err)
{
    if (!history_index_reader_tail(r, ret, err))
        return false;
    const uint8_t *mark = history_index_reader_about(r)->digest;
    return history_tape_after_mark(tape, part, mark) <= TAIL_MAX &&
           history_tape_has_mark(tape, part, mark);
}

static bool look_up(struct history_indexes *indexes, struct history_tape *tape, size_t part,
                    const struct rd_fs *fs, const char *name, const struct history_name_list *names,
                    struct history_spans *ret, struct rd_err *err)
{
    const struct history_part *p = &tape->parts[part];
    struct history_index_reader *r;
    if (!history_index_reader_open(&r, fs, name, err))
        return false;
    bool ok = is_of(p, history_index_reader_about(r));
    for (size_t i = 0; ok && i < names->n; i++)
        ok = history_index_reader_find(r, names->list[i], ret, err);
    ok = ok && history_index_reader_apart(r, ret, err) &&
         (p->fixed || add_tail(tape, part, r, ret, err));
    history_index_reader_close(r);
    indexes->used += ok;
    return ok;
}

/* Many names are in most spans, and what grows is short at first. */
static bool is_worth_it(const struct history_tape *tape, size_t part,
                        const struct history_name_list *names)
{
    static const uint8_t beginning[HISTORY_DIGEST];
    const struct history_part *p = &tape->parts[part];
    uint64_t size =
        p->fixed || !p->grows ? p->about.size : history_tape_after_mark(tape, part, beginning);
    return (p->fixed || (p->grows && size > TAIL_MAX)) &&
           names->n <= NAMES_FEW + size / STRIDE * NAMES_PER_SPAN;
}

/* In the folder of those that are given. */
static bool find_given(struct history_indexes *indexes, struct history_tape *tape, size_t part,
                       const struct history_name_list *names, struct history_spans *ret,
                       struct rd_err *err)
{
    char name[NAME_MAX + 1];
    uint64_t size;
    struct rd_fs fs;
    if (indexes->given == NULL || !is_worth_it(tape, part, names))
        return false;
    fs = *indexes->given;
    int len = snprintf(name, sizeof name, "%s" HISTORY_INDEX_ENDING, tape->parts[part].name);
    return len > 0 && len <= NAME_MAX && fs.size(fs.ctx, name, &size) == 0 &&
           look_up(indexes, tape, part, &fs, name, names, ret, err);
}

bool history_indexes_find(struct history_indexes *indexes, struct history_tape *tape, size_t part,
                          const struct history_name_list *names, struct history_spans *ret,
                          bool *ret_whole, struct rd_err *err)
{
    const struct history_part *p = &tape->parts[part];
    char name[NAME_MAX + 1];
    struct rd_fs fs;
    struct rd_err why = {0};
    struct history_spans found = {0};
    *ret_whole = true;
    if (find_given(indexes, tape, part, names, &found, &why)) {
        history_spans_done(ret);
        *ret = found;
        *ret_whole = false;
        return true;
    }
    history_spans_done(&found);
    rd_err_reset(&why);
    if (indexes->folder == NULL || !is_worth_it(tape, part, names) ||
        !name_of(indexes, tape, p, name) ||
        !rd_fs_open_folder(&fs, indexes->folder, false, &indexes->failed))
        return true;
    bool ok = look_up(indexes, tape, part, &fs, name, names, &found, &why);
    if (!ok && why.code != RD_ERR_MEMORY) {
        history_spans_done(&found);
        rd_err_reset(&why);
        ok = store(indexes, tape, part, name, &why) &&
             look_up(indexes, tape, part, &fs, name, names, &found, &why);
        tidy(indexes, tape, &fs, part, name);
    }
    rd_fs_close_posix(&fs);
    *ret_whole = !ok;
    if (ok) {
        history_spans_done(ret);
        *ret = found;
        return true;
    }
    history_spans_done(&found);
    if (why.code == RD_ERR_OK || why.code == RD_ERR_UNSUPPORTED)
        return true;
    rd_err_adopt(err, &why);
    return false;
}
