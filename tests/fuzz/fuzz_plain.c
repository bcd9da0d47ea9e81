/* fuzz_plain.c - a snapshot as commands: by events, and with keys and entries taken without them.
 * Strings of values are taken without events both ways, since how many go into a command depends on
 * the pieces in which they come. The pending ids of the last stream are given for every stream; for
 * each stream they must be the same from its framing and from events.
 *
 * The last byte, which is of the checksum, also chooses the window. Both ways must end with the
 * same result and, on success, with the same bytes.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/src_impl.h"
#include "rdb/commands.h"
#include "rdb/plain.h"
#include "tests/fuzz/huge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 20, TEXTS = 16, KEYS = 16, IDS = 65536 };

struct ids {
    struct rdb_stream_id ids[IDS];
    size_t n;
};

struct run {
    const struct rdb_pending_ids *reported;
    struct rd_src *src;
    struct rdb_reader *reader;
    struct rdb_commands *commands;
    uint64_t db;
    bool ok;
};

static void must(bool ok)
{
    if (!ok)
        abort();
}

static struct rd_src *open_src(struct rd_slice file, unsigned choice)
{
    static const size_t windows[] = {512, 1024, 4096, 65536};
    struct rd_src *src = NULL, *inner;
    must(rd_src_open_memory(&inner, file, NULL, NULL));
    if (choice % 5 == 0)
        return inner;
    struct rd_src_opts opts = RD_SRC_OPTS(.window = windows[choice % 5 - 1]);
    must(rd_src_open_trickle(&src, inner, choice & 0x80 ? 100 : INPUT_MAX, &opts, NULL));
    return src;
}

static void take_keys(struct run *run)
{
    struct rdb_plain keys[KEYS];
    size_t n;
    while (run->ok && (n = rdb_plain_take(run->reader, UINT64_MAX, keys, KEYS)) > 0)
        run->ok = rdb_commands_put_plain(run->commands, run->db, keys, n, NULL);
}

static void take_texts(struct run *run)
{
    struct rdb_text texts[TEXTS];
    size_t n;
    while (run->ok && (n = rdb_reader_texts(run->reader, texts, TEXTS)) > 0)
        run->ok = rdb_commands_put_texts(run->commands, texts, n, NULL);
}

static void take_entries(struct run *run)
{
    struct rdb_text texts[TEXTS];
    struct rdb_stream_id id;
    size_t n;
    while (run->ok && (n = rdb_plain_entry(run->reader, &id, texts, TEXTS)) > 0)
        run->ok = rdb_commands_put_entry(run->commands, id, texts, n, NULL);
}

static void begin_key(struct run *run)
{
    if (rdb_commands_wants_pending(run->commands))
        run->ok = rdb_commands_pending(run->commands, run->reported, NULL);
}

static void take_event(struct run *run, const struct rdb_event *ev, bool plain)
{
    bool elem = ev->kind == RDB_ELEM && !ev->elem.str.more;
    if (ev->kind == RDB_KEY)
        begin_key(run);
    else if (ev->kind == RDB_DB)
        run->db = ev->db;
    if (elem)
        take_texts(run);
    if (plain && elem)
        take_entries(run);
    else if (plain && ev->kind == RDB_VALUE_END)
        take_keys(run);
}

static int by_id(const void *a, const void *b)
{
    const struct rdb_stream_id *x = a, *y = b;
    return rdb_stream_id_cmp(*x, *y);
}

/* What a reader says is pending in a value; false: there is something wrong with it. */
static bool read_pending(struct rd_slice value, const struct rdb_type *type, struct ids *ret)
{
    const struct rdb_reader_opts detail = RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED);
    struct rd_src *src;
    struct rdb_reader *reader;
    struct rdb_event ev;
    enum rdb_status status;
    struct rd_buf bytes = {0};
    must(rd_buf_add_byte(&bytes, type->number) && rd_buf_add(&bytes, value.ptr, value.len));
    must(rd_src_open_memory(&src, rd_buf_slice(&bytes), NULL, NULL));
    must(rdb_reader_new_value(&reader, src, RDB_REDIS, RDB_VERSION_REDIS_MAX, &detail, NULL));
    ret->n = 0;
    while ((status = rdb_reader_next(reader, &ev)) == RDB_EVENT)
        if (ev.kind == RDB_PENDING && ret->n < IDS)
            ret->ids[ret->n++] = ev.pending.id;
    qsort(ret->ids, ret->n, sizeof *ret->ids, by_id);
    rdb_reader_free(reader);
    rd_src_close(src);
    rd_buf_done(&bytes);
    return status == RDB_END && ret->n < IDS;
}

/* From the framing and from events it is the same, but that the first has none twice. */
static void compare_pending(struct rd_slice value, const struct rdb_type *type, unsigned choice,
                            struct rdb_pending_ids *ret)
{
    static struct ids want;
    struct rd_src *src = open_src(value, choice);
    must(rdb_pending_ids_find(ret, src, type, NULL));
    rd_src_close(src);
    if (!read_pending(value, type, &want))
        return;
    size_t n = 0;
    for (size_t i = 0; i < want.n; i++)
        if (i == 0 || rdb_stream_id_cmp(want.ids[i - 1], want.ids[i]) != 0)
            must(n < ret->n && rdb_stream_id_cmp(ret->ids[n++], want.ids[i]) == 0);
    must(n == ret->n);
}

/* Of all streams, those of the last remain. */
static void look_through(struct rd_slice file, unsigned choice, struct rdb_pending_ids *ret)
{
    const struct rdb_reader_opts detail =
        RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES, .no_sum = true);
    struct rd_src *src = open_src(file, choice);
    struct rdb_reader *reader;
    struct rdb_event ev;
    must(rdb_reader_new(&reader, src, &detail, NULL));
    while (rdb_reader_next(reader, &ev) == RDB_EVENT) {
        if (ev.kind != RDB_KEY || ev.key.type->kind != RDB_KIND_STREAM)
            continue;
        const struct rdb_type *type = ev.key.type;
        struct rd_buf value = {0};
        struct rd_sink *sink;
        must(rd_sink_open_buf(&sink, &value, NULL, NULL));
        bool whole = rdb_reader_copy_value(reader, sink) == RDB_EVENT;
        must(rd_sink_close(sink, NULL));
        compare_pending(rd_buf_slice(&value), type, choice, ret);
        rd_buf_done(&value);
        if (!whole)
            break;
    }
    rdb_reader_free(reader);
    rd_src_close(src);
}

/* Whether it came to a good end. */
static bool to_commands(struct rd_slice file, unsigned choice,
                        const struct rdb_pending_ids *reported, bool plain, struct rd_buf *ret)
{
    const struct rdb_reader_opts detail =
        RDB_READER_OPTS(.detail = RDB_DETAIL_ELEMENTS, .no_sum = true);
    const struct rdb_commands_opts how = RDB_COMMANDS_OPTS(.lossy = true);
    struct run run = {.reported = reported, .src = open_src(file, choice), .ok = true};
    struct rd_sink *sink;
    struct rdb_event ev;
    enum rdb_status status = RDB_EVENT;
    must(rd_sink_open_buf(&sink, ret, NULL, NULL));
    must(rdb_reader_new(&run.reader, run.src, &detail, NULL));
    must(rdb_commands_new(&run.commands, sink, &how, NULL));
    while (run.ok && (status = rdb_reader_next(run.reader, &ev)) == RDB_EVENT && !is_huge(&ev)) {
        run.ok = rdb_commands_put(run.commands, &ev, NULL);
        if (run.ok)
            take_event(&run, &ev, plain);
    }
    bool good = run.ok && status == RDB_END && rdb_commands_end(run.commands, NULL);
    rdb_commands_free(run.commands);
    rdb_reader_free(run.reader);
    rd_src_close(run.src);
    must(rd_sink_close(sink, NULL));
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rd_buf by_events = {0}, by_plain = {0};
    if (size == 0 || size > INPUT_MAX)
        return 0;
    struct rd_slice file = rd_slice(data, size);
    struct rdb_pending_ids reported = {0};
    look_through(file, data[size - 1], &reported);
    bool good = to_commands(file, data[size - 1], &reported, false, &by_events);
    must(to_commands(file, data[size - 1], &reported, true, &by_plain) == good);
    must(!good || rd_slice_eq(rd_buf_slice(&by_events), rd_buf_slice(&by_plain)));
    rd_buf_done(&by_events);
    rd_buf_done(&by_plain);
    rdb_pending_ids_done(&reported);
    return 0;
}
