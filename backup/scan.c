/* scan.c - reads a server that refuses replicas key by key, with SCAN and DUMP.
 *
 * The keys are of different moments, and the manifest says so. SCAN may return a key twice; servers
 * refuse a snapshot with two records of a key, so the later ones are dropped.
 */
#include "backup/scan.h"

#include <stdio.h>

#include "backup/snapshot.h"
#include "backup/system.h"
#include "base/mem.h"
#include "capture/keys.h"
#include "client/info.h"
#include "rdb/reader.h"
#include "rdb/writer.h"

struct scan {
    struct rd_buf repeated; /* offsets of records, uint64_t each */
    bool no_memory;
};

/* ---- keys that came twice ---- */

static void on_finding(void *ctx, const struct rdb_finding *finding)
{
    struct scan *scan = ctx;
    if (finding->id == RDB_FINDING_DUPLICATE_KEY &&
        !rd_buf_add(&scan->repeated, &finding->offset, sizeof finding->offset))
        scan->no_memory = true;
}

/* Other findings are those of the check on the way into the set. */
static bool find_repeated(struct scan *scan, struct rd_src *src, struct rd_err *err)
{
    struct spool keys = {0};
    struct rdb_spool for_keys = spool_for_keys(&keys);
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct rdb_check_opts opts =
        RDB_CHECK_OPTS(.finding = on_finding, .ctx = scan, .spool = &for_keys);
    bool ok = backup_random(opts.seed, sizeof opts.seed, err) && rdb_check(src, &opts, &res, err);
    spool_done(&keys);
    return ok && (!scan->no_memory || rd_err_nomem(err, scan->repeated.len));
}

static bool is_repeated(const struct scan *scan, uint64_t offset)
{
    const uint64_t *offsets = (const uint64_t *)(const void *)scan->repeated.ptr;
    for (size_t i = 0; i < scan->repeated.len / sizeof *offsets; i++)
        if (offsets[i] == offset)
            return true;
    return false;
}

struct copier {
    const struct scan *scan;
    struct rdb_reader *reader;
    struct rdb_writer *writer;
    struct rd_sink *out;
};

static bool begin_writer(struct copier *c, const struct rdb_event *ev, struct rd_err *err)
{
    const struct rdb_writer_opts opts =
        RDB_WRITER_OPTS(.dialect = ev->header.dialect, .version = ev->header.version,
                        .verbatim = true);
    return rdb_writer_new(&c->writer, c->out, &opts, err);
}

static bool copy_key(struct copier *c, const struct rdb_event *ev, struct rd_err *err)
{
    struct rd_sink *to;
    enum rdb_status status;
    if (is_repeated(c->scan, ev->offset)) {
        status = rdb_reader_skip_value(c->reader);
    } else {
        if (!rdb_writer_put(c->writer, ev, err) || !rdb_writer_copy_begin(c->writer, &to, err))
            return false;
        status = rdb_reader_copy_value(c->reader, to);
        if (status == RDB_EVENT && !rdb_writer_copy_end(c->writer, err))
            return false;
    }
    if (status != RDB_EVENT)
        rd_err_adopt(err, rdb_reader_err(c->reader));
    return status == RDB_EVENT;
}

static bool copy_events(struct copier *c, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    while ((status = rdb_reader_next(c->reader, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_HEADER && !begin_writer(c, &ev, err))
            return false;
        if (ev.kind == RDB_DB_SIZE)
            continue;
        if (!(ev.kind == RDB_KEY ? copy_key(c, &ev, err) : rdb_writer_put(c->writer, &ev, err)))
            return false;
    }
    if (status != RDB_END)
        rd_err_adopt(err, rdb_reader_err(c->reader));
    return status == RDB_END && rdb_writer_end(c->writer, err);
}

static bool copy_once(const struct scan *scan, struct rd_src *src, struct spool *out,
                      struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES);
    struct copier c = {.scan = scan};
    if (!spool_sink(out, &c.out, err))
        return false;
    bool ok = rdb_reader_new(&c.reader, src, &opts, err) && copy_events(&c, err);
    rdb_writer_free(c.writer);
    rdb_reader_free(c.reader);
    if (ok)
        return rd_sink_close(c.out, err);
    rd_sink_abort(c.out);
    return false;
}

static bool take_source(struct backup_set *set, struct rd_src *src, struct rd_err *err)
{
    struct scan scan = {.no_memory = false};
    struct spool once = {0};
    struct rd_src *again;
    bool ok = find_repeated(&scan, src, err) && rd_src_seek(src, 0, err);
    if (ok && scan.repeated.len == 0) {
        ok = backup_snapshot_take(set, src, "dump.rdb", err);
    } else if (ok && copy_once(&scan, src, &once, err) &&
               spool_source(&once, rd_src_origin(src), &again, err)) {
        ok = backup_snapshot_take(set, again, "dump.rdb", err);
        rd_src_close(again);
    } else {
        ok = false;
    }
    spool_done(&once);
    rd_buf_done(&scan.repeated);
    return ok;
}

/* ---- the server ---- */

static void read_version(struct backup_set *set, const struct client_target *target)
{
    struct client_peer *peer;
    struct client_peer_reply reply = {0};
    struct rd_slice text;
    if (!client_peer_open(&peer, target, NULL))
        return;
    if (client_peer_ask(peer, "INFO server", &reply, NULL)) {
        bool valkey = client_info_find(reply.items[0].text, "valkey_version", &text);
        if (valkey || client_info_find(reply.items[0].text, "redis_version", &text))
            snprintf(set->m.server, sizeof set->m.server, "%s %.*s", valkey ? "valkey" : "redis",
                     (int)(text.len < 32 ? text.len : 32), (const char *)text.ptr);
    }
    client_peer_reply_done(&reply);
    client_peer_close(peer);
}

/* A key that cannot be read would otherwise be missing silently. */
static bool check_result(const struct rd_watch *watch, const struct client_live_result *res,
                         struct rd_err *err)
{
    if (res->unknown > 0)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "%llu key%s of an unknown type; the first is %s",
                          (unsigned long long)res->unknown, res->unknown == 1 ? " is" : "s are",
                          res->first_unknown);
    if (res->functions_refused)
        rd_watch_warn(watch,
                      "the server does not allow reading its functions: they are not in the set");
    if (res->rough)
        rd_watch_note(watch, "the server reports times to live only: expiries may be off by %d ms",
                      CLIENT_LIVE_ROUGH_MS);
    return true;
}

bool backup_scan_read(const struct rd_watch *watch, struct backup_set *set,
                      const struct client_target *server, struct rd_err *err)
{
    struct spool spool = {0};
    struct client_live_result res = {0};
    const struct client_live_opts opts = {.target = server, .functions = true};
    struct rd_src *src;
    bool ok = capture_keys_read(watch, &opts, &spool, &res, err) &&
              check_result(watch, &res, err) && spool_source(&spool, server->name, &src, err);
    if (ok) {
        ok = take_source(set, src, err);
        rd_src_close(src);
    }
    set->m.scan = true;
    set->m.data_ms = 0;
    set->m.replid[0] = '\0';
    set->m.offset = 0;
    if (ok && set->m.server[0] == '\0')
        read_version(set, server);
    spool_done(&spool);
    return ok;
}
