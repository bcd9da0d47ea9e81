/* Writes a snapshot, or the base of a log, to a file.
 *
 * For commands, the data set is first saved as a snapshot: the engine's output is pushed to a
 * reader piece by piece, and its events become commands. Only a window is kept in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "rdb/commands.h"
#include "rdb/version.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist_impl.h"

enum {
    BUFFER = 256 * 1024,
    SYNC_EVERY = 4 * 1024 * 1024,
    FEED_WINDOW = 256 * 1024,
    N_AUX = 5,
    N_AUX_MAX = N_AUX + REPLICATION_AUX
};

/* ---- a file whose bytes go to the disk while it is written ---- */

struct steady {
    int fd;
    bool steady;
    uint64_t written, synced;
};

static bool write_all(int fd, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    while (len > 0) {
        ssize_t n = write(fd, ptr, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return rd_err_sys(err, n == 0 ? EIO : errno, "cannot write");
        ptr += n;
        len -= (size_t)n;
    }
    return true;
}

/* Written regularly; otherwise the system would keep it and write it all at the end. */
static void push_out(struct steady *file)
{
    sync_file_range(file->fd, (off_t)file->synced, (off_t)(file->written - file->synced),
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE);
    file->synced = file->written;
}

static bool steady_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct steady *file = impl;
    if (!write_all(file->fd, ptr, len, err))
        return false;
    file->written += len;
    if (file->steady && file->written - file->synced >= SYNC_EVERY)
        push_out(file);
    return true;
}

static bool steady_close(void *impl, bool commit, struct rd_err *err)
{
    struct steady *file = impl;
    bool ok = !commit || fsync(file->fd) == 0 || rd_err_sys(err, errno, "cannot sync");
    ok = (close(file->fd) == 0 || errno == EINTR || rd_err_sys(err, errno, "cannot close")) && ok;
    rd_free(file);
    return ok;
}

bool persist_file_open(struct rd_sink **ret, const struct persist_file *how, struct rd_err *err)
{
    static const struct rd_sink_ops ops = {.write = steady_write, .close = steady_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = BUFFER, .origin = how->path);
    struct steady *file = rd_calloc(1, sizeof *file);
    if (file == NULL)
        return rd_err_nomem(err, sizeof *file);
    file->fd = open(how->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    file->steady = how->incremental_fsync;
    if (file->fd >= 0)
        return rd_sink_new(ret, &ops, file, &opts, err);
    rd_err_sys(err, errno, "cannot create");
    rd_free(file);
    return false;
}

/* ---- as commands ---- */

struct feed {
    struct rd_src *src;
    struct rdb_reader *reader; /* NULL: no data so far */
    struct rdb_commands *commands;
};

static bool pump(struct feed *feed, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_ELEMENTS, .no_sum = true);
    if (feed->reader == NULL && !rdb_reader_new(&feed->reader, feed->src, &opts, err))
        return false;
    while ((status = rdb_reader_next(feed->reader, &ev)) == RDB_EVENT)
        if (!rdb_commands_put(feed->commands, &ev, err))
            return false;
    if (status == RDB_FAIL)
        rd_err_adopt(err, rdb_reader_err(feed->reader));
    return status != RDB_FAIL;
}

static bool feed_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct feed *feed = impl;
    while (len > 0) {
        size_t room = rd_src_push_room(feed->src), n = len < room ? len : room;
        if (n == 0 || !rd_src_push(feed->src, rd_slice(ptr, n)))
            return rd_err_nomem(err, n);
        if (!pump(feed, err))
            return false;
        ptr += n;
        len -= n;
    }
    return true;
}

static bool feed_close(void *impl, bool commit, struct rd_err *err)
{
    struct feed *feed = impl;
    (void)commit;
    (void)err;
    rdb_reader_free(feed->reader);
    feed->reader = NULL;
    return true;
}

/* Pending entries whose entry was deleted are omitted, as in redis-server: commands can create them
 * only if they are announced before (rdb_commands_pending()). Anything else that is lost is a
 * failure.
 */
static bool lost_nothing(const struct rdb_omitted_counts *loss, struct rd_err *err)
{
    if (loss->keys + loss->field_expires + loss->functions + loss->module_aux + loss->other == 0)
        return true;
    return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                      "module values, or hash fields with an expiry");
}

static bool save_fed(struct durable *durable, struct feed *feed,
                     const struct engine_save_opts *opts, struct rd_err *err)
{
    static const struct rd_sink_ops ops = {.write = feed_write, .close = feed_close};
    struct rd_sink *snapshot;
    if (!rd_sink_new(&snapshot, &ops, feed, &RD_SINK_OPTS(.buffer = FEED_WINDOW / 4), err))
        return false;
    bool ok =
        engine_save(durable->sessions->engine, snapshot, opts, err) && rd_sink_flush(snapshot);
    if (ok) {
        rd_src_push_end(feed->src);
        ok = pump(feed, err);
    } else {
        rd_err_adopt(err, rd_sink_err(snapshot));
    }
    rd_sink_abort(snapshot);
    return ok && rdb_commands_end(feed->commands, err) &&
           lost_nothing(rdb_commands_loss(feed->commands), err);
}

/* The time of the state that the commands make. */
static bool put_time(const struct durable *durable, struct rd_sink *sink)
{
    char line[RD_NUM_I64_MAX + 8];
    int len = snprintf(line, sizeof line, "#TS:%" PRId64 "\r\n", persist_now_s(durable));
    return rd_sink_write(sink, line, (size_t)len);
}

static bool save_commands(struct durable *durable, struct rd_sink *sink,
                          const struct engine_save_opts *opts, struct rd_err *err)
{
    struct feed feed = {0};
    struct engine_save_opts plain = *opts;
    const struct rdb_commands_opts how = RDB_COMMANDS_OPTS(.lossy = true);
    uint64_t n_functions;
    engine_kept_functions(durable->sessions->engine, &n_functions);
    if (n_functions > 0) /* this server cannot run FUNCTION LOAD from a log */
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "function libraries");
    plain.compress = false;
    plain.no_checksum = true;
    plain.n_aux = 0;
    if (durable->loop->settings.aof_timestamp_enabled && !put_time(durable, sink))
        return false;
    bool ok = rd_src_open_push(&feed.src, &RD_SRC_OPTS(.window = FEED_WINDOW), err) &&
              rdb_commands_new(&feed.commands, sink, &how, err) &&
              save_fed(durable, &feed, &plain, err);
    rdb_commands_free(feed.commands);
    rd_src_close(feed.src);
    return ok;
}

/* ---- as a snapshot ---- */

struct digits {
    char text[RD_NUM_I64_MAX];
};

static struct engine_aux number(const char *name, struct digits *digits, uint64_t value)
{
    return (struct engine_aux){rd_slice_str(name),
                               rd_slice(digits->text, rd_num_put_u64(digits->text, value))};
}

struct progress {
    struct child *child;
    int64_t delay_us;
};

static void on_key(void *ctx, uint64_t n_keys)
{
    const struct progress *progress = ctx;
    if (progress->delay_us != 0)
        persist_delay(progress->delay_us);
    if (progress->child != NULL)
        child_progress(progress->child, n_keys);
}

/* Redis and Valkey store the expiry of hash fields in different ways; neither loads the other's. */
static int version_of(const struct durable *durable, enum rdb_dialect *ret_dialect)
{
    const struct engine *engine = durable->sessions->engine;
    int version = engine_save_version(engine);
    *ret_dialect = RDB_REDIS;
    if (version != RDB_VERSION_OF_7_4 || engine_dialect(engine) == RDB_REDIS)
        return version;
    *ret_dialect = RDB_VALKEY;
    return RDB_VERSION_OF_VALKEY_9;
}

static bool save(struct durable *durable, const struct persist_file *how, struct rd_sink *sink,
                 struct rd_err *err)
{
    struct digits bits, created, memory, base;
    char text[REPLICATION_AUX][REPLICATION_AUX_TEXT];
    struct engine_aux aux[N_AUX_MAX] = {
        {rd_slice_str("redis-ver"), rd_slice_str(SERVER_REDIS_VERSION)},
        number("redis-bits", &bits, sizeof(void *) * 8),
        number("ctime", &created, (uint64_t)persist_now_s(durable)),
        number("used-mem", &memory, durable->used_memory(durable->sessions)),
        number("aof-base", &base, how->base),
    };
    enum rdb_dialect dialect;
    int version = version_of(durable, &dialect);
    if (version > RDB_VERSION_OF_7_0 && !how->commands)
        log_notice("Some data is newer than Redis 7.0: writing the snapshot as RDB version %d, "
                   "which needs %s or later to load",
                   version,
                   dialect == RDB_VALKEY           ? "Valkey 9.0"
                   : version >= RDB_VERSION_OF_8_6 ? "Redis 8.6"
                                                   : "Redis 7.4");
    struct progress progress = {.child = how->child,
                                .delay_us = durable->loop->settings.rdb_key_save_delay};
    const struct engine_save_opts opts = {
        .dialect = dialect,
        .version = version,
        .compress = durable->loop->settings.rdbcompression,
        .no_checksum = !durable->loop->settings.rdbchecksum,
        .keep_expired = true, /* the loader decides; a log after it may use such keys */
        .with_access = true,
        .two_threads = how->child == NULL && progress.delay_us == 0, /* clients wait for SAVE */
        .now_ms = loop_now_ms(durable->loop),
        .each = how->child != NULL || progress.delay_us != 0 ? on_key : NULL,
        .ctx = &progress,
        .no_keys = how->filter != REPL_FILTER_ALL,
        .no_functions = how->filter == REPL_FILTER_NOTHING,
        .aux = aux,
        .n_aux = N_AUX + (how->base ? 0 : replication_aux(durable, aux + N_AUX, text)),
    };
    return how->commands ? save_commands(durable, sink, &opts, err)
                         : engine_save(durable->sessions->engine, sink, &opts, err);
}

/* A base can be a snapshot whatever its name is. */
static bool write_as_snapshot(struct durable *durable, const struct persist_file *how,
                              struct rd_err *err)
{
    struct persist_file snapshot = *how;
    struct rd_sink *sink;
    log_warning("Part of the data set cannot be written as commands (%s): writing the base of the "
                "log as a snapshot, as with aof-use-rdb-preamble yes",
                err->text);
    rd_err_reset(err);
    snapshot.commands = false;
    return persist_file_open(&sink, &snapshot, err) &&
           persist_file_write(durable, &snapshot, sink, err);
}

bool persist_file_write(struct durable *durable, const struct persist_file *how,
                        struct rd_sink *sink, struct rd_err *err)
{
    if (!save(durable, how, sink, err)) {
        rd_err_adopt(err, rd_sink_err(sink));
        rd_sink_abort(sink);
        if (how->commands && err->code == RD_ERR_UNSUPPORTED)
            return write_as_snapshot(durable, how, err);
        unlink(how->path);
        return false;
    }
    if (rd_sink_close(sink, err))
        return true;
    unlink(how->path);
    return false;
}

/* ---- to replicas ---- */

static bool pipe_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    return write_all(*(const int *)impl, ptr, len, err);
}

static bool pipe_close(void *impl, bool commit, struct rd_err *err)
{
    (void)impl;
    (void)commit;
    (void)err;
    return true;
}

/* The server has read everything, or has ended. */
static void wait_for_reader(int fd)
{
    char end;
    ssize_t n;
    shutdown(fd, SHUT_WR);
    do
        n = read(fd, &end, 1);
    while (n < 0 && errno == EINTR);
}

bool persist_file_stream(struct durable *durable, struct child *child, int fd,
                         const struct repl_payload *payload, enum repl_filter filter)
{
    static const struct rd_sink_ops ops = {.write = pipe_write, .close = pipe_close};
    const struct persist_file how = {.path = "pipe", .child = child, .filter = filter};
    uint8_t header[REPL_PAYLOAD_HEADER_MAX];
    struct rd_sink *sink;
    struct rd_err err = {0};
    size_t len = repl_payload_put(payload, header);
    bool ok = rd_sink_new(&sink, &ops, &fd, &RD_SINK_OPTS(.buffer = BUFFER), &err);
    if (ok) {
        ok = rd_sink_write(sink, header, len) && save(durable, &how, sink, &err) &&
             rd_sink_write(sink, payload->mark, REPL_MARK_LEN) && rd_sink_flush(sink);
        rd_err_adopt(&err, rd_sink_err(sink));
        rd_sink_abort(sink);
    }
    if (ok)
        wait_for_reader(fd);
    else
        log_warning("Write error sending the snapshot to replicas: %s", err.text);
    return ok;
}

/* The directory of the file. */
bool persist_sync_folder(const char *path)
{
    char folder[PERSIST_PATH];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - path) : 1,
             slash != NULL ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool ok = fsync(fd) == 0 || errno == EINVAL;
    close(fd);
    return ok;
}

void persist_delay(int64_t us)
{
    if (us > 0)
        usleep((useconds_t)us);
    else if (us < 0 && random() % -us == 0)
        usleep(1);
}
