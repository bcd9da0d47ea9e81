/* fuzz_psync.c - a replica takes whatever a master sends, in pieces of any size.
 *
 * The first byte chooses the options, the second the size of the pieces. The rest is what the
 * master sends; whole and in pieces it must come to the same events, and every event must hold what
 * its header promises.
 */
#include "base/crc64.h"
#include "repl/psync.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    PASSWORD = 1,
    RDB_ONLY = 2,
    FILTER = 4,
    NO_CAPA = 8,
    OLD_SYNC = 16,
    RESUME = 32,
    MULTI = 64
};

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_psync: %s\n", what);
    abort();
}

struct outcome {
    uint64_t events; /* a sum over all of them but the pieces of the snapshot */
    uint64_t snapshot, snapshot_len;
    enum repl_class class;
    enum rd_err_code code;
    uint64_t offset, place;
    bool ended;
};

static uint64_t sum_of(uint64_t sum, const void *ptr, size_t len)
{
    return len > 0 ? rd_crc64(sum, ptr, len) : sum;
}

static void check_command(const struct repl_event *ev)
{
    const struct repl_place *at = &ev->place;
    const uint8_t *p = ev->bytes.ptr, *end = p + ev->bytes.len;
    check(ev->command.argc > 0 && at->len == ev->bytes.len && at->offset == ev->offset, "a place");
    check(!at->in_multi || at->multi <= at->offset, "the begin of a transaction");
    check(end[-1] == '\n', "the end of a command");
    for (size_t i = 0; *p == '*' && i < ev->command.argc; i++)
        check(ev->command.argv[i].ptr > p && ev->command.argv[i].ptr < end, "an argument");
}

static void add(struct outcome *ret, const struct repl_event *ev)
{
    uint64_t seen[] = {(uint64_t)ev->kind, (uint64_t)ev->step, ev->offset, ev->payload.done,
                       ev->place.db};
    if (ev->kind == REPL_PAYLOAD) {
        check(ev->bytes.len > 0 && ev->offset == ret->snapshot_len, "place in the snapshot");
        ret->snapshot = sum_of(ret->snapshot, ev->bytes.ptr, ev->bytes.len);
        ret->snapshot_len += ev->bytes.len;
        return;
    }
    if (ev->kind == REPL_COMMAND)
        check_command(ev);
    if (ev->kind == REPL_PAYLOAD_END)
        check(ev->payload.done == ret->snapshot_len, "length of the snapshot");
    ret->events = sum_of(ret->events, seen, sizeof seen);
    ret->events = sum_of(ret->events, ev->bytes.ptr, ev->bytes.len);
    ret->events = sum_of(ret->events, ev->text.ptr, ev->text.len);
}

static void drain(struct repl_psync *p, struct outcome *ret)
{
    struct repl_event ev;
    while (!ret->ended && repl_psync_next(p, &ev) != REPL_MORE) {
        if (ev.kind == REPL_ERROR) {
            check(ev.err->code != RD_ERR_OK && ev.err->text[0] != 0, "an error that says nothing");
            ret->class = ev.error_class;
            ret->code = ev.err->code;
            ret->offset = ev.err->offset;
        }
        ret->ended = ev.kind == REPL_ERROR || ev.kind == REPL_END;
        add(ret, &ev);
        repl_psync_sent(p, repl_psync_output(p).len);
    }
}

static struct outcome talk(struct rd_slice bytes, unsigned choice, size_t piece)
{
    struct outcome ret = {0};
    struct repl_psync *p;
    struct repl_resume place;
    struct repl_psync_opts opts = REPL_PSYNC_OPTS(.window = 1, .max_command = 1 << 20);
    opts.password = (choice & PASSWORD) != 0 ? "pw" : NULL;
    opts.rdb_only = (choice & RDB_ONLY) != 0;
    opts.rdb_filter = (choice & FILTER) != 0 ? "functions" : NULL;
    opts.no_eof = opts.no_psync2 = (choice & NO_CAPA) != 0;
    opts.old_sync = (choice & OLD_SYNC) != 0;
    opts.resume.in_multi = (choice & MULTI) != 0;
    if ((choice & RESUME) != 0)
        memset(opts.resume.replid.hex, 'a', REPL_REPLID_LEN);
    check(repl_psync_new(&p, &opts, NULL), "out of memory");
    for (size_t at = 0; at < bytes.len && !ret.ended;) {
        size_t n = bytes.len - at < piece ? bytes.len - at : piece;
        size_t taken = repl_psync_feed(p, rd_slice(bytes.ptr + at, n));
        drain(p, &ret);
        check(taken > 0, "a feed that takes nothing of a replica without events");
        at += taken;
    }
    repl_psync_cut(p);
    drain(p, &ret);
    check(ret.ended, "no end after a cut");
    ret.place = repl_psync_safe_place(p, &place) ? place.offset : UINT64_MAX;
    repl_psync_free(p);
    return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct rd_slice bytes = rd_slice(data + 2, size - 2);
    struct outcome a = talk(bytes, data[0], SIZE_MAX);
    struct outcome b = talk(bytes, data[0], (size_t)data[1] + 1);
    check(a.events == b.events && a.place == b.place, "other events in pieces");
    check(a.snapshot == b.snapshot && a.snapshot_len == b.snapshot_len, "another snapshot");
    check(a.class == b.class && a.code == b.code && a.offset == b.offset, "other end in pieces");
    return 0;
}
