/* tail.c - the stream of a server, read from its append-only folder.
 *
 * The commands of the incremental files are a stream, and their time annotations are its times. A
 * rewrite makes a new base file, and with it a chapter begins: the base is its snapshot, and its
 * stream is that of the incremental files that the manifest lists with this base. So nothing is
 * assumed about what happened between two bases.
 *
 * Where annotations are missing, the times of commands are not known, which is recorded as an
 * interruption (repl/capture_writer.h): before the first annotation of a chapter, and where
 * commands are written for some seconds without one.
 *
 * The server may remove an incomplete transaction from the end of a file when it starts. So a
 * transaction is taken when its EXEC is there.
 */
#include "backup/archiver_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aof/log.h"
#include "aof/manifest.h"
#include "backup/log.h"
#include "backup/system.h"
#include "base/num.h"
#include "capture/clock.h"
#include "data/regular_file.h"
#include "rdb/reader.h"
#include "rebuild/knows.h"

enum {
    LOGS_READ = 64 * 1024,
    LOGS_LOOK_MS = 100,
    LOGS_UNTIMED_MS = 3000, /* a server writes an annotation in every second with a command */
    LOGS_MANIFEST_MAX = 16 * 1024 * 1024,
    LOGS_PLACE_MAX = 4096
};

struct logs {
    struct backup_archiver *a;
    char folder[BACKUP_PATH_MAX];
    char name[ARCHIVE_FILE_NAME_MAX]; /* of the manifest */
    char base[AOF_NAME_MAX + 1];      /* of the chapter; "": no chapter has begun */
    char file[AOF_NAME_MAX + 1];      /* that is read; "": none was there yet */
    uint64_t seq;
    int fd;
    struct rd_src *src;
    struct aof_log *log;
    uint64_t from;      /* of the file: where reading began */
    uint64_t whole;     /* of the file: after the last command that was taken */
    uint64_t skip;      /* bytes of commands that the spool has already */
    struct rd_buf held; /* a transaction without its EXEC */
    bool in_multi;
    int64_t time_us;
    bool annotated;        /* the last annotation has the time of what is read */
    bool resuming;         /* nothing was appended in this run */
    bool live;             /* the end of the file was read: the rest was written later */
    uint64_t annotated_ms; /* if live: when the last annotation was read, or the first end */
    uint64_t saved;        /* the offset of the stream in the place file */
    uint64_t synced_ms, retry_ms, wait_ms;
    bool failing;
    struct rebuild_unsupported unsupported;
};

static bool join(char ret[BACKUP_PATH_MAX], const char *folder, const char *name,
                 struct rd_err *err)
{
    int len = snprintf(ret, BACKUP_PATH_MAX, "%s/%s", folder, name);
    return (len > 0 && len < BACKUP_PATH_MAX) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path of the log is too long");
}

/* ---- the manifest ---- */

static bool read_manifest(const struct logs *l, struct aof_manifest *ret, struct rd_err *err)
{
    char path[BACKUP_PATH_MAX];
    struct rd_buf text = {0};
    struct rd_src *src;
    aof_manifest_init(ret);
    bool ok = join(path, l->folder, l->name, err) &&
              backup_read_file(path, LOGS_MANIFEST_MAX, &text, err) &&
              rd_src_open_memory(&src, rd_buf_slice(&text), NULL, err);
    if (ok) {
        ok = aof_manifest_read(ret, src, NULL, NULL, err);
        rd_src_close(src);
    }
    rd_buf_done(&text);
    if (!ok)
        rd_err_origin(err, path);
    return ok;
}

static const struct aof_file *base_of(const struct aof_manifest *m)
{
    for (size_t i = 0; i < aof_manifest_count(m); i++)
        if (aof_manifest_file(m, i)->type == AOF_BASE)
            return aof_manifest_file(m, i);
    return NULL;
}

/* The first incremental file after a number. */
static const struct aof_file *file_after(const struct aof_manifest *m, uint64_t seq)
{
    const struct aof_file *found = NULL;
    for (size_t i = 0; i < aof_manifest_count(m); i++) {
        const struct aof_file *file = aof_manifest_file(m, i);
        if (file->type == AOF_INCR && file->seq > seq && (found == NULL || file->seq < found->seq))
            found = file;
    }
    return found;
}

/* ---- resuming ---- */

static bool save_place(struct logs *l, struct rd_err *err)
{
    const struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true, .mode = 0600);
    char path[BACKUP_PATH_MAX], text[LOGS_PLACE_MAX];
    struct rd_sink *out;
    uint64_t offset = repl_capture_writer_synced(l->a->writer);
    int len =
        snprintf(text, sizeof text, "%s\n%s\n%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %d\n",
                 l->base, l->file, l->seq, l->whole, offset, l->time_us, l->annotated);
    if (!backup_archiver_path(path, l->a, "log.place", err) ||
        !rd_sink_open_file(&out, path, &opts, err))
        return false;
    rd_sink_write(out, text, (size_t)len);
    l->saved = offset;
    return rd_sink_close(out, err);
}

/* False: no position was stored, or it belongs to another log. */
static bool load_place(struct logs *l)
{
    char path[BACKUP_PATH_MAX];
    struct rd_buf text = {0};
    struct rd_err err = {0};
    if (!backup_archiver_path(path, l->a, "log.place", &err) ||
        !backup_read_file(path, LOGS_PLACE_MAX, &text, &err) || !rd_buf_add_byte(&text, '\0')) {
        rd_buf_done(&text);
        return false;
    }
    int annotated = 0;
    bool ok = sscanf((const char *)text.ptr,
                     "%255[^\n]\n%255[^\n]\n%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64 " %d",
                     l->base, l->file, &l->seq, &l->whole, &l->saved, &l->time_us, &annotated) >= 6;
    l->annotated = annotated != 0;
    rd_buf_done(&text);
    return ok;
}

/* ---- one file ---- */

static void close_file(struct logs *l)
{
    aof_log_free(l->log);
    rd_src_close(l->src);
    if (l->fd >= 0)
        close(l->fd);
    l->log = NULL;
    l->src = NULL;
    l->fd = -1;
    l->in_multi = false;
    rd_buf_reset(&l->held);
}

static bool open_file(struct logs *l, uint64_t at, struct rd_err *err)
{
    const struct aof_log_opts opts = AOF_LOG_OPTS(.whole = true);
    char path[BACKUP_PATH_MAX];
    close_file(l);
    if (!join(path, l->folder, l->file, err))
        return false;
    l->fd = regular_file_open(path, err);
    if (l->fd < 0)
        return false;
    if (lseek(l->fd, (off_t)at, SEEK_SET) < 0) {
        rd_err_sys(err, errno, "cannot read the file");
        rd_err_origin(err, path);
        return false;
    }
    l->from = l->whole = at;
    return rd_src_open_push(&l->src, NULL, err) && aof_log_new(&l->log, l->src, &opts, err);
}

static bool append(struct logs *l, struct rd_slice bytes, struct rd_err *err)
{
    uint64_t n = l->skip < bytes.len ? l->skip : bytes.len;
    l->skip -= n;
    if (n == bytes.len)
        return true;
    return repl_capture_writer_append(l->a->writer, rd_slice(bytes.ptr + n, bytes.len - n),
                                      l->time_us, err);
}

static bool is_word(const struct resp_command *cmd, const char *word)
{
    return cmd->argv[0].len == strlen(word) &&
           strncasecmp((const char *)cmd->argv[0].ptr, word, cmd->argv[0].len) == 0;
}

/* Before a command is appended: whether the time of the last annotation is its time. */
static bool check_time(struct logs *l, const struct aof_log_entry *e, struct rd_err *err)
{
    bool late = l->live && capture_now_ms() - l->annotated_ms > LOGS_UNTIMED_MS;
    if (l->skip > 0 || is_word(&e->command, "select"))
        return true;
    l->annotated = l->annotated && !late;
    if (!l->annotated)
        return repl_capture_writer_interrupted(l->a->writer, l->time_us, l->time_us, err);
    /* What the last run noted is continued by what the log has after that. */
    bool ok = !l->resuming || repl_capture_writer_in_time(l->a->writer, l->time_us, err);
    l->resuming = false;
    return ok;
}

static bool take_time(struct logs *l, int64_t time_us, struct rd_err *err)
{
    int64_t before_us = l->time_us;
    l->time_us = time_us;
    l->annotated = true;
    l->annotated_ms = capture_now_ms();
    if (l->skip > 0)
        return true;
    l->resuming = false;
    return (time_us >= before_us ||
            repl_capture_writer_clock(l->a->writer, before_us, time_us, err)) &&
           repl_capture_writer_in_time(l->a->writer, time_us, err);
}

static bool take_command(struct logs *l, const struct aof_log_entry *e, struct rd_err *err)
{
    if (rebuild_unsupported_note(&l->unsupported, e->command.argc, e->command.argv))
        rd_watch_warn(l->a->watch, "%s", l->unsupported.text);
    if (!check_time(l, e, err))
        return false;
    bool begins = !l->in_multi && is_word(&e->command, "multi");
    bool ends = l->in_multi && (is_word(&e->command, "exec") || is_word(&e->command, "discard"));
    if (!begins && !l->in_multi)
        return append(l, e->bytes, err);
    if (!rd_buf_add(&l->held, e->bytes.ptr, e->bytes.len))
        return rd_err_nomem(err, e->bytes.len);
    l->in_multi = !ends;
    if (!ends)
        return true;
    bool ok = append(l, rd_buf_slice(&l->held), err);
    rd_buf_reset(&l->held);
    return ok;
}

static bool take_entries(struct logs *l, struct rd_err *err)
{
    struct aof_log_entry e;
    enum aof_log_status status;
    int64_t seconds;
    while ((status = aof_log_next(l->log, &e)) == AOF_LOG_ENTRY) {
        if (e.kind == AOF_LOG_COMMAND && !take_command(l, &e, err))
            return false;
        if (e.kind == AOF_LOG_ANNOTATION && aof_annotation_time(e.bytes, &seconds) &&
            seconds < INT64_MAX / 1000000 && !take_time(l, seconds * 1000000, err))
            return false;
        if (!l->in_multi)
            l->whole = l->from + aof_log_whole(l->log);
    }
    if (status != AOF_LOG_FAIL)
        return true;
    rd_err_adopt(err, aof_log_err(l->log));
    if (err != NULL && err->offset != RD_NO_OFFSET)
        err->offset += l->from;
    rd_err_origin(err, l->file);
    return false;
}

/* Reads the bytes that exist now. *ret_more: the file may have more. */
static bool read_some(struct logs *l, bool *ret_more, struct rd_err *err)
{
    uint8_t bytes[LOGS_READ];
    size_t room = rd_src_push_room(l->src);
    ssize_t n;
    *ret_more = false;
    while ((n = read(l->fd, bytes, room < sizeof bytes ? room : sizeof bytes)) < 0 &&
           errno == EINTR)
        ;
    if (n < 0) {
        rd_err_sys(err, errno, "cannot read");
        rd_err_origin(err, l->file);
        return false;
    }
    if (n == 0)
        return true;
    *ret_more = true;
    if (!rd_src_push(l->src, rd_slice(bytes, (size_t)n)))
        return rd_err_nomem(err, (size_t)n);
    return take_entries(l, err);
}

static bool read_all(struct logs *l, struct rd_err *err)
{
    bool more = l->fd >= 0;
    while (more && !backup_archiver_stopped(l->a))
        if (!read_some(l, &more, err))
            return false;
    if (l->fd >= 0 && !more && !l->live) {
        l->live = true;
        l->annotated_ms = capture_now_ms();
    }
    return true;
}

/* ---- a chapter ---- */

/* When the base was written, by the server's clock. */
static bool base_time(const char *path, int64_t *ret_us, struct rd_err *err)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES, .no_sum = true);
    struct rdb_reader *reader;
    struct rdb_event ev;
    struct rd_src *src;
    char digits[RD_NUM_I64_MAX];
    int64_t seconds = 0;
    if (!rd_src_open_unwrapped(&src, path, NULL, err))
        return false;
    bool ok = rdb_reader_new(&reader, src, &opts, err);
    while (ok && seconds == 0 && rdb_reader_next(reader, &ev) == RDB_EVENT &&
           (ev.kind == RDB_HEADER || ev.kind == RDB_AUX))
        if (ev.kind == RDB_AUX && rd_slice_is(ev.aux.name, "ctime") &&
            !rd_num_get_i64(rdb_string_bytes(&ev.aux.value, digits), &seconds))
            seconds = 0;
    if (ok)
        rdb_reader_free(reader);
    rd_src_close(src);
    *ret_us = seconds * 1000000;
    return ok &&
           (seconds > 0 || rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                                      "the base of the log is not a snapshot with a time: set "
                                      "aof-use-rdb-preamble yes"));
}

static bool copy_base(struct logs *l, const char *path, struct rd_err *err)
{
    struct repl_capture_writer *w = l->a->writer;
    struct repl_replid id = {.hex = ""};
    uint8_t bytes[REPL_REPLID_LEN / 2];
    struct rd_src *src;
    struct rd_slice s;
    enum rd_src_status status;
    if (!backup_random(bytes, sizeof bytes, err))
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(id.hex + 2 * i, 3, "%02x", bytes[i]);
    if (!repl_capture_writer_begin(w, &id, 0, l->time_us, err) ||
        !rd_src_open_unwrapped(&src, path, NULL, err))
        return false;
    bool ok = true;
    while (ok && (status = rd_src_need(src, 1, &s)) == RD_SRC_OK) {
        ok = repl_capture_writer_snapshot(w, s, err);
        rd_src_consume(src, s.len);
    }
    if (ok && status == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(src));
        ok = false;
    }
    rd_src_close(src);
    return ok && repl_capture_writer_snapshot_end(w, l->time_us, err) &&
           repl_capture_writer_in_time(w, l->time_us, err);
}

/* The base, and the first file after it. */
static bool begin_chapter(struct logs *l, const struct aof_manifest *m, const char *why,
                          struct rd_err *err)
{
    const struct aof_file *base = base_of(m), *first = file_after(m, 0);
    char path[BACKUP_PATH_MAX];
    close_file(l);
    if (base == NULL)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "the log has no base");
    if (!join(path, l->folder, base->name, err))
        return false;
    if (!base_time(path, &l->time_us, err) || !copy_base(l, path, err)) {
        rd_err_origin(err, path);
        return false;
    }
    l->skip = 0;
    l->annotated = l->live = false;
    snprintf(l->base, sizeof l->base, "%s", base->name);
    snprintf(l->file, sizeof l->file, "%s", first != NULL ? first->name : "-");
    l->seq = first != NULL ? first->seq : 0;
    l->whole = 0;
    backup_archiver_say(l->a, "snapshot", false, "%s: snapshot received: %s", why, base->name);
    return (first == NULL || open_file(l, 0, err)) && save_place(l, err);
}

/* Continues in the next file of the same base. There the selected database is 0 again. */
static bool next_file(struct logs *l, const struct aof_file *file, struct rd_err *err)
{
    static const char select[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n";
    if (l->fd >= 0 && !append(l, rd_slice_str(select), err))
        return false;
    snprintf(l->file, sizeof l->file, "%s", file->name);
    l->seq = file->seq;
    return open_file(l, 0, err) && repl_capture_writer_sync(l->a->writer, err) &&
           save_place(l, err);
}

/* The position at which the last run stopped, if the log still has it. */
static bool resume(struct logs *l, const struct aof_manifest *m, bool *ret_resumed,
                   struct rd_err *err)
{
    const struct aof_file *base = base_of(m);
    struct repl_capture_point point;
    char path[BACKUP_PATH_MAX];
    struct stat st;
    *ret_resumed = false;
    if (base == NULL || !repl_capture_writer_point(l->a->writer, &point) || !load_place(l) ||
        strcmp(base->name, l->base) != 0 || point.offset < l->saved)
        return true;
    if (l->seq == 0) { /* there was no file yet */
        *ret_resumed = point.offset == l->saved;
        return true;
    }
    if (!join(path, l->folder, l->file, err))
        return false;
    if (stat(path, &st) != 0 || (uint64_t)st.st_size < l->whole)
        return true;
    l->skip = point.offset - l->saved;
    *ret_resumed = l->resuming = true;
    return open_file(l, l->whole, err);
}

/* ---- in every turn ---- */

static bool was_cut(const struct logs *l)
{
    struct stat st;
    return l->fd >= 0 && fstat(l->fd, &st) == 0 && (uint64_t)st.st_size < l->whole;
}

static bool follow(struct logs *l, const struct aof_manifest *m, struct rd_err *err)
{
    const struct aof_file *base = base_of(m), *next;
    if (l->base[0] == '\0' || base == NULL)
        return begin_chapter(l, m, l->a->source, err);
    /* The manifest was read before this: a file that it no longer lists last is complete. */
    if (!read_all(l, err))
        return false;
    if (was_cut(l)) {
        l->a->gaps++;
        backup_archiver_uncover(l->a);
        backup_archiver_say(l->a, "gap", true,
                            "%s was truncated: the stream has a gap, and a new base is taken",
                            l->file);
        return begin_chapter(l, m, l->a->source, err);
    }
    if (strcmp(base->name, l->base) != 0) {
        const struct aof_file *first = file_after(m, 0);
        if (first != NULL && first->seq > l->seq + 1) {
            l->a->gaps++;
            backup_archiver_uncover(l->a);
            backup_archiver_say(
                l->a, "gap", true,
                "files of the log were removed: the stream has a gap, and a new base is "
                "taken");
        }
        return begin_chapter(l, m, "the server has rewritten its log", err);
    }
    next = file_after(m, l->seq);
    return next == NULL || next_file(l, next, err);
}

static bool step(struct logs *l, struct rd_err *err)
{
    struct aof_manifest m;
    bool ok = read_manifest(l, &m, err) && follow(l, &m, err);
    aof_manifest_done(&m);
    return ok;
}

static bool save(struct logs *l, uint64_t now_ms, struct rd_err *err)
{
    struct repl_capture_writer *w = l->a->writer;
    struct repl_capture_point point;
    if (!repl_capture_writer_point(w, &point))
        return true;
    if (!repl_capture_writer_flush(w, err))
        return false;
    if (now_ms - l->synced_ms < CAPTURE_SYNC_MS ||
        (repl_capture_writer_written(w) == repl_capture_writer_synced(w) &&
         l->saved == repl_capture_writer_synced(w)))
        return true;
    l->synced_ms = now_ms;
    return repl_capture_writer_sync(w, err) && save_place(l, err);
}

/* A file that cannot be read may become readable again. */
static bool may_pass(const struct rd_err *err)
{
    return err->code == RD_ERR_IO &&
           (err->sys == ENOENT || err->sys == ESTALE || err->sys == EIO || err->sys == ENOTCONN);
}

static bool turn(struct logs *l, uint64_t now_ms, struct rd_err *err)
{
    struct rd_err why = {0};
    char line[600];
    if (now_ms < l->retry_ms)
        return true;
    bool ok = step(l, &why);
    l->a->up = ok;
    if (ok) {
        l->failing = false;
        l->wait_ms = l->retry_ms = 0;
        l->a->heard_ms = now_ms;
        return save(l, now_ms, err);
    }
    if (!may_pass(&why)) {
        rd_err_adopt(err, &why);
        return false;
    }
    l->retry_ms = now_ms + backup_archiver_backoff(&l->wait_ms, BACKUP_ARCHIVER_RETRY_MS,
                                                   BACKUP_ARCHIVER_RETRY_MAX_MS);
    if (!l->failing)
        backup_archiver_say(l->a, "lost", true, "%s; trying again",
                            rd_err_render(&why, line, sizeof line));
    l->failing = true;
    return true;
}

static bool loop(struct logs *l, struct rd_err *err)
{
    while (!backup_archiver_stopped(l->a)) {
        uint64_t now_ms = capture_now_ms(), wait_ms = LOGS_LOOK_MS;
        if (!turn(l, now_ms, err) || !backup_archiver_tick(l->a, now_ms, &wait_ms, err))
            return false;
        const struct timespec limit = {.tv_sec = (time_t)(wait_ms / 1000),
                                       .tv_nsec = (long)(wait_ms % 1000) * 1000000};
        ppoll(NULL, 0, &limit, l->a->waiting);
    }
    return true;
}

/* The folder of the log: the source itself, or the one in the folder of a server. */
static bool find_log(struct logs *l, struct rd_err *err)
{
    bool none;
    if (backup_log_find(l->folder, l->name, &none, err))
        return true;
    if (!none)
        return false;
    if (!join(l->folder, backup_get(l->a->target, BACKUP_KEY_SOURCE), "appendonlydir", err))
        return false;
    if (backup_log_find(l->folder, l->name, &none, err))
        return true;
    if (!none)
        return false;
    rd_err_sys(err, ENOENT, "there is no log");
    rd_err_origin(err, backup_get(l->a->target, BACKUP_KEY_SOURCE));
    return false;
}

static bool begin(struct logs *l, struct rd_err *err)
{
    const struct capture *c = &l->a->capture;
    const struct repl_capture_writer_opts opts = {.segment_size = c->segment_size,
                                                  .max_size = c->max_size,
                                                  .recorded = true,
                                                  .lock = &l->a->lock};
    struct aof_manifest m;
    bool resumed = false;
    if (!find_log(l, err))
        return false;
    if (!repl_capture_writer_open(&l->a->writer, &l->a->fs, &opts, err)) {
        l->a->writer = NULL;
        rd_err_origin(err, l->a->spool);
        return false;
    }
    bool ok = read_manifest(l, &m, err) && resume(l, &m, &resumed, err);
    aof_manifest_done(&m);
    if (ok && resumed)
        backup_archiver_say(l->a, "continue", false, "resuming at offset %" PRIu64 " of %s",
                            l->whole, l->file);
    if (ok && !resumed) {
        if (l->a->had_stream) {
            l->a->gaps++;
            backup_archiver_uncover(l->a);
            backup_archiver_say(
                l->a, "gap", true,
                "the log was rewritten since the last run: the stream has a gap, and "
                "a new base is taken");
        }
        l->base[0] = '\0';
    }
    return ok;
}

bool backup_tail_run(struct backup_archiver *a, struct rd_err *err)
{
    struct logs l = {.a = a, .fd = -1};
    snprintf(l.folder, sizeof l.folder, "%s", backup_get(a->target, BACKUP_KEY_SOURCE));
    bool ok = begin(&l, err) && loop(&l, err);
    if (a->writer != NULL && repl_capture_writer_sync(a->writer, ok ? err : NULL) &&
        l.base[0] != '\0')
        ok = save_place(&l, ok ? err : NULL) && ok;
    a->up = false;
    close_file(&l);
    rd_buf_done(&l.held);
    backup_archiver_close_writer(a);
    return ok && (err == NULL || err->code == RD_ERR_OK);
}
