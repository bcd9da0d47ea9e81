/* An append-only log as a tape: the files of its manifest, or one file, which may begin with a
 * snapshot. */
#include "aof/log.h"
#include "base/digest.h"
#include "base/endian.h"
#include "base/mem.h"
#include "history/tape_impl.h"
#include "rebuild/rebuild.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* ---- what a file of a log is ---- */

enum { EDGE = 64 * 1024 };

static bool add_bytes(struct rd_digest *digest, struct rd_src *src, uint64_t at, struct rd_err *err)
{
    struct rd_slice bytes;
    if (!rd_src_seek(src, at, err))
        return false;
    if (rd_src_need(src, EDGE, &bytes) == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(src));
        return false;
    }
    return rd_digest_update(digest, bytes.ptr, bytes.len < EDGE ? bytes.len : EDGE, err);
}

/* Servers do not change such a file; whoever does, changes its time. */
static bool tell_apart(struct rd_src *src, const char *path, struct history_index_about *ret,
                       struct rd_err *err)
{
    struct rd_digest *digest;
    struct stat st;
    uint8_t facts[24];
    if (stat(path, &st) != 0)
        return rd_err_sys(err, errno, "cannot stat it");
    ret->size = (uint64_t)st.st_size;
    rd_put_le64(facts, ret->size);
    rd_put_le64(facts + 8, (uint64_t)st.st_mtim.tv_sec);
    rd_put_le64(facts + 16, (uint64_t)st.st_mtim.tv_nsec);
    if (!rd_digest_new(&digest, RD_DIGEST_SHA256, err))
        return false;
    bool ok = rd_digest_update(digest, facts, sizeof facts, err) &&
              add_bytes(digest, src, 0, err) &&
              add_bytes(digest, src, ret->size > EDGE ? ret->size - EDGE : 0, err) &&
              rd_digest_end(digest, ret->digest, err);
    rd_digest_free(digest);
    return ok;
}

/* Where the snapshot at the beginning of a file ends. */
static bool measure_snapshot(struct rd_src *src, uint64_t *ret, struct rd_err *err)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES, .no_sum = true, .updates = true);
    struct rdb_reader *reader;
    struct rdb_event ev;
    enum rdb_status status;
    if (!rdb_reader_new(&reader, src, &opts, err))
        return false;
    while ((status = rdb_reader_next(reader, &ev)) == RDB_EVENT) {
    }
    if (status == RDB_FAIL)
        rd_err_adopt(err, rdb_reader_err(reader));
    *ret = rd_src_offset(src);
    rdb_reader_free(reader);
    return status == RDB_END;
}

/* The snapshot of a file, if it begins with one; *ret_end: where it ends, RD_NO_OFFSET: with the
 * file. */
static bool look_for_snapshot(struct rd_src *src, bool by_name, bool *ret, uint64_t *ret_end,
                              struct rd_err *err)
{
    enum { LOOK = 9 };
    struct rd_slice head;
    *ret_end = 0;
    if (rd_src_need(src, LOOK, &head) == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(src));
        return false;
    }
    *ret = aof_content_of(head) == AOF_SNAPSHOT;
    if (!*ret)
        return true;
    *ret_end = RD_NO_OFFSET;
    if (by_name && rebuild_ends_as_snapshot(src))
        return true;
    return (!rd_src_can_seek(src) || rd_src_seek(src, 0, err)) &&
           measure_snapshot(src, ret_end, err);
}

/* ---- parts ---- */

struct file {
    const char *name;
    const char *path;
    uint64_t number;
    bool fixed;   /* the server does not write it any more */
    bool by_name; /* servers write nothing but a snapshot into a file of this name */
};

static struct history_part *add_part(struct history_tape *tape, const struct file *file,
                                     enum history_data kind,
                                     const struct history_index_about *about, struct rd_err *err)
{
    struct history_part *part = history_tape_add(tape, err);
    if (part == NULL)
        return NULL;
    part->kind = kind;
    part->chapter = file->number;
    part->fixed = file->fixed;
    part->about = *about;
    part->about.kind = kind;
    snprintf(part->name, sizeof part->name, "%s", file->name);
    return part;
}

static bool add_parts(struct history_tape *tape, struct file *file, struct rd_src **src,
                      struct rd_err *err)
{
    struct history_index_about about = {0};
    struct history_part *part;
    struct rd_src *plain = *src;
    bool has_snapshot;
    uint64_t end;
    if (!rd_src_decompress(src, err))
        return false;
    file->fixed &= *src == plain; /* what is compressed cannot be read from the middle */
    if (!look_for_snapshot(*src, file->by_name, &has_snapshot, &end, err) ||
        (file->fixed && !tell_apart(*src, file->path, &about, err)))
        return false;
    if (has_snapshot) {
        part = add_part(tape, file, HISTORY_SNAPSHOT, &about, err);
        if (part == NULL)
            return false;
        part->end = end == RD_NO_OFFSET ? rd_src_size(*src) : end;
    }
    if (end == RD_NO_OFFSET)
        return true;
    part = add_part(tape, file, HISTORY_LOG, &about, err);
    if (part == NULL)
        return false;
    part->start = end;
    part->end = file->fixed ? about.size : RD_NO_OFFSET;
    return true;
}

static bool add_file(struct history_tape *tape, struct file *file, struct rd_err *err)
{
    struct rd_src *src;
    if (!rd_src_open_file(&src, file->path, &RD_SRC_OPTS(.regular = tape->folder != NULL), err))
        return false;
    bool ok = add_parts(tape, file, &src, err);
    rd_src_close(src);
    if (!ok)
        rd_err_origin(err, file->path);
    return ok;
}

static bool add_listed(struct history_tape *tape, const struct aof_manifest *manifest,
                       enum aof_type type, struct rd_err *err)
{
    const struct aof_file *last = aof_manifest_last_incr(manifest);
    for (size_t i = 0; i < aof_manifest_count(manifest); i++) {
        const struct aof_file *listed = aof_manifest_file(manifest, i);
        char path[PATH_MAX];
        if (listed->type != type)
            continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", tape->folder, listed->name) >= sizeof path)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path is too long");
        struct file file = {.name = listed->name,
                            .path = path,
                            .number = tape->n == 0 ? 1 : tape->parts[tape->n - 1].chapter + 1,
                            .fixed = listed != last,
                            .by_name = aof_file_holds_snapshot(listed)};
        if (!add_file(tape, &file, err))
            return false;
    }
    return true;
}

static bool read_manifest(struct history_tape *tape, const char *path, struct rd_err *err)
{
    struct aof_manifest manifest;
    struct rd_src *src;
    if (!rd_src_open_file(&src, path, &RD_SRC_OPTS(.regular = true), err))
        return false;
    aof_manifest_init(&manifest);
    bool ok = aof_manifest_read(&manifest, src, NULL, NULL, err);
    if (!ok)
        rd_err_origin(err, path);
    ok = ok && add_listed(tape, &manifest, AOF_BASE, err) &&
         add_listed(tape, &manifest, AOF_INCR, err);
    rd_src_close(src);
    aof_manifest_done(&manifest);
    return ok;
}

/* ---- where the log is ---- */

#define MANIFEST ".manifest"

static bool is_manifest(const char *name)
{
    size_t len = strlen(name), ending = sizeof MANIFEST - 1;
    return len > ending && strcmp(name + len - ending, MANIFEST) == 0;
}

/* The only manifest of a folder. */
static bool find_manifest(const char *folder, char *ret, size_t size, struct rd_err *err)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    unsigned n = 0;
    if (dir == NULL)
        return rd_err_sys(err, errno, "cannot open the folder");
    while ((entry = readdir(dir)) != NULL)
        if (is_manifest(entry->d_name)) {
            n++;
            snprintf(ret, size, "%s/%s", folder, entry->d_name);
        }
    closedir(dir);
    if (n == 1)
        return true;
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      n == 0 ? "the folder has neither a manifest nor segments of a capture"
                             : "the folder has several manifests: name one of them");
}

bool history_tape_open_log(struct history_tape *tape, struct rd_err *err)
{
    char manifest[PATH_MAX];
    const char *slash = strrchr(tape->path, '/');
    struct stat st;
    if (stat(tape->path, &st) != 0) {
        rd_err_sys(err, errno, "cannot open it");
        rd_err_origin(err, tape->path);
        return false;
    }
    if (!S_ISDIR(st.st_mode) && !is_manifest(tape->path)) {
        struct file file = {
            .name = slash != NULL ? slash + 1 : tape->path, .path = tape->path, .number = 1};
        return add_file(tape, &file, err);
    }
    bool is_folder = S_ISDIR(st.st_mode);
    size_t len = is_folder ? strlen(tape->path) : slash != NULL ? (size_t)(slash - tape->path) : 0;
    tape->folder = rd_alloc(len + sizeof ".");
    if (tape->folder == NULL)
        return rd_err_nomem(err, len + sizeof ".");
    memcpy(tape->folder, len > 0 ? tape->path : ".", len > 0 ? len : 1);
    tape->folder[len > 0 ? len : 1] = '\0';
    if (!is_folder)
        return read_manifest(tape, tape->path, err);
    if (find_manifest(tape->folder, manifest, sizeof manifest, err))
        return read_manifest(tape, manifest, err);
    rd_err_origin(err, tape->path);
    return false;
}

/* ---- commands ---- */

struct reading {
    const struct history_part *p;
    size_t part;
    uint64_t end;
    struct repl_stream stream;
    int64_t time_us;
    bool inherited; /* in the transaction in which the span begins, with this MULTI: */
    uint64_t multi;
};

static bool give(struct reading *r, const struct aof_log_entry *entry, history_command_fn each,
                 void *ctx, struct rd_err *err)
{
    struct repl_place place;
    if (!repl_stream_take(&r->stream, entry->command.argc, entry->command.argv, entry->len, &place,
                          err))
        return false;
    const struct history_command command = {.part = r->part,
                                            .offset = entry->offset,
                                            .len = entry->len,
                                            .time_us = r->time_us,
                                            .db = place.db,
                                            .kind = place.kind,
                                            .in_multi = place.in_multi,
                                            .multi = r->inherited ? r->multi : place.multi,
                                            .line = &entry->command};
    r->inherited &= r->stream.in_multi;
    return each(ctx, &command, err);
}

/* A log that is being written may end inside a command. */
static bool is_torn_end(const struct reading *r, const struct rd_err *err)
{
    return !r->p->fixed && err->code == RD_ERR_TRUNCATED;
}

static bool read_entries(struct reading *r, struct aof_log *log, history_command_fn each, void *ctx,
                         struct rd_err *err)
{
    struct aof_log_entry entry;
    enum aof_log_status status;
    while ((status = aof_log_next(log, &entry)) == AOF_LOG_ENTRY) {
        int64_t time_s;
        if (entry.offset >= r->end && !r->stream.in_multi)
            return true;
        if (entry.kind == AOF_LOG_ANNOTATION) {
            if (aof_annotation_time(entry.bytes, &time_s) && time_s < INT64_MAX / 1000000)
                r->time_us = time_s * 1000000;
            repl_stream_pass(&r->stream, entry.len);
        } else if (!give(r, &entry, each, ctx, err))
            return false;
    }
    if (status == AOF_LOG_FAIL && !is_torn_end(r, aof_log_err(log))) {
        rd_err_adopt(err, aof_log_err(log));
        return false;
    }
    return true;
}

static bool skip_to(struct rd_src *src, uint64_t offset, struct rd_err *err)
{
    struct rd_slice bytes;
    if (rd_src_can_seek(src))
        return rd_src_seek(src, offset, err);
    while (rd_src_offset(src) < offset) {
        if (rd_src_need(src, 1, &bytes) != RD_SRC_OK) {
            rd_err_adopt(err, rd_src_err(src));
            return rd_err_set(err, RD_ERR_TRUNCATED, rd_src_offset(src), "the file became shorter");
        }
        uint64_t left = offset - rd_src_offset(src);
        rd_src_consume(src, bytes.len < left ? bytes.len : (size_t)left);
    }
    return true;
}

bool history_tape_read_log(struct history_tape *tape, size_t part, const struct history_span *span,
                           history_command_fn each, void *ctx, struct rd_err *err)
{
    const struct history_part *p = &tape->parts[part];
    uint64_t start = span != NULL ? span->offset : p->start;
    struct reading r = {.p = p,
                        .part = part,
                        .end = span != NULL ? span->end : p->end,
                        .time_us = span != NULL ? span->time_us : INT64_MIN,
                        .inherited = span != NULL && (span->flags & HISTORY_SPAN_IN_MULTI) != 0,
                        .multi = span != NULL ? span->multi : RD_NO_OFFSET};
    struct rd_src *src;
    struct aof_log *log;
    repl_stream_init(&r.stream, start, span != NULL ? span->db : 0,
                     span != NULL && (span->flags & HISTORY_SPAN_IN_MULTI) != 0);
    if (!history_tape_open_file(tape, p, &src, err))
        return false;
    bool ok = skip_to(src, start, err) && aof_log_new(&log, src, &AOF_LOG_OPTS(.whole = true), err);
    if (ok) {
        ok = read_entries(&r, log, each, ctx, err);
        aof_log_free(log);
    }
    if (!ok)
        rd_err_origin(err, p->name);
    rd_src_close(src);
    return ok;
}
