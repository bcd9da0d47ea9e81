/* What a snapshot contains beside the values, and what is left out of one. */
#include "engine/snapshot.h"

#include "tests/engine/ask.h"

#include "rdb/writer.h"

static void put(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rd_err err = {0};
    cr_assert(rdb_writer_put(w, ev, &err), "%s", err.text);
}

static void put_consumer(struct rdb_writer *w, const char *name, int64_t seen, int64_t active)
{
    struct rdb_event ev = {.kind = RDB_CONSUMER, .inner = RD_NO_OFFSET};
    ev.consumer.name = rd_slice_str(name);
    ev.consumer.seen_ms = seen;
    ev.consumer.active_ms = active;
    put(w, &ev);
}

/* A stream without entries, with a group of two consumers. */
static void put_stream(struct rdb_writer *w)
{
    const struct rdb_type *type = rdb_type_get(RDB_TYPE_STREAM_LISTPACKS_3);
    struct rdb_event ev = {.kind = RDB_KEY, .inner = RD_NO_OFFSET};
    ev.key.name = rd_slice_str("key");
    ev.key.type = type;
    ev.key.expire_ms = RDB_NO_EXPIRE;
    ev.key.idle_s = ev.key.freq = RDB_UNKNOWN;
    put(w, &ev);
    ev = (struct rdb_event){.kind = RDB_VALUE, .inner = RD_NO_OFFSET};
    ev.value.type = type;
    put(w, &ev);
    ev = (struct rdb_event){.kind = RDB_STREAM, .inner = RD_NO_OFFSET};
    ev.stream.has_offsets = true;
    ev.stream.n_groups = 1;
    put(w, &ev);
    ev = (struct rdb_event){.kind = RDB_GROUP, .inner = RD_NO_OFFSET};
    ev.group.name = rd_slice_str("group");
    put(w, &ev);
    put_consumer(w, "busy", 1000, 900);
    put_consumer(w, "idle", 2000, -1);
    put(w, &(struct rdb_event){.kind = RDB_VALUE_END});
}

static void load(struct engine *e, void (*fn)(struct rdb_writer *w))
{
    struct rd_buf bytes = {0};
    struct rd_sink *sink;
    struct rd_src *src;
    struct rdb_writer *w;
    struct rd_err err = {0};
    const struct rdb_writer_opts opts = RDB_WRITER_OPTS(.version = 12);
    const struct engine_env env = {.now_us = 5000000};
    cr_assert(rd_sink_open_buf(&sink, &bytes, NULL, NULL));
    cr_assert(rdb_writer_new(&w, sink, &opts, NULL));
    fn(w);
    cr_assert(rdb_writer_end(w, NULL));
    rdb_writer_free(w);
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&bytes), NULL, NULL));
    cr_assert(engine_load(e, src, NULL, &env, NULL, &err), "%s", err.text);
    rd_src_close(src);
    rd_buf_done(&bytes);
}

static void save(struct engine *e, const struct engine_save_opts *opts, struct rd_buf *ret)
{
    struct rd_sink *sink;
    struct rd_err err = {0};
    cr_assert(rd_sink_open_buf(&sink, ret, NULL, NULL));
    cr_assert(engine_save(e, sink, opts, &err), "%s", err.text);
    cr_assert(rd_sink_close(sink, NULL));
}

static void expect_consumers(struct engine *e, int64_t busy, int64_t idle)
{
    struct rd_buf bytes = {0};
    struct rd_src *src;
    struct rdb_reader *reader;
    struct rdb_event ev;
    unsigned n = 0;
    save(e, &(struct engine_save_opts){.version = 12, .now_ms = 5000}, &bytes);
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&bytes), NULL, NULL));
    cr_assert(rdb_reader_new(&reader, src, NULL, NULL));
    while (rdb_reader_next(reader, &ev) == RDB_EVENT) {
        if (ev.kind != RDB_CONSUMER)
            continue;
        bool is_busy = rd_slice_eq(ev.consumer.name, rd_slice_str("busy"));
        cr_expect_eq(ev.consumer.active_ms, is_busy ? busy : idle);
        n++;
    }
    cr_expect_eq(n, 2);
    rdb_reader_free(reader);
    rd_src_close(src);
    rd_buf_done(&bytes);
}

Test(snapshot_kept, when_a_consumer_was_active_goes_from_file_to_file)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    load(ask.engine, put_stream);
    expect_consumers(ask.engine, 900, -1);
    cr_assert_str_eq(ask_line(&ask, "COPY key other"), ":1\r\n");
    cr_assert_str_eq(ask_line(&ask, "DEL key"), ":1\r\n");
    expect_consumers(ask.engine, 900, -1);
    ask_done(&ask);
}

/* The fields that a save with this version has, sorted by their first letters. */
static unsigned count_fields(struct ask *ask, const struct engine_save_opts *opts)
{
    struct rd_buf bytes = {0};
    struct rd_src *src;
    struct rd_err err = {0};
    struct engine *e = engine_new(&(struct engine_opts){.seed = 1});
    unsigned n = 0;
    save(ask->engine, opts, &bytes);
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&bytes), NULL, NULL));
    cr_assert(engine_load(e, src, NULL, &ask->env, NULL, &err), "%s", err.text);
    const struct engine_entry *entry = engine_db_find(engine_db(e, 0), rd_slice_str("key"));
    if (entry != NULL)
        n = (unsigned)engine_value_count(&entry->value);
    rd_src_close(src);
    rd_buf_done(&bytes);
    engine_delete(e);
    return n;
}

Test(snapshot_kept, fields_that_are_due_do_not_come_back_from_an_older_version)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    ask_line(&ask, "HSET key a 1 b 2 c 3");
    ask_line(&ask, "HPEXPIRE key 100 FIELDS 1 a");
    struct engine_save_opts opts = {.version = 10, .lossy = true};
    opts.now_ms = ask.env.now_us / 1000 + 50;
    cr_expect_eq(count_fields(&ask, &opts), 3);
    opts.now_ms += 100;
    cr_expect_eq(count_fields(&ask, &opts), 2);
    opts.version = 12;
    cr_expect_eq(count_fields(&ask, &opts), 2);
    opts.keep_expired = true;
    cr_expect_eq(count_fields(&ask, &opts), 3);
    opts.version = 10;
    cr_expect_eq(count_fields(&ask, &opts), 2, "there it would never expire");
    opts.version = 12;
    cr_expect_str_eq(ask_line(&ask, "HLEN key"), ":3\r\n", "saving changes nothing");
    ask_line(&ask, "HPEXPIRE key 100 FIELDS 2 b c");
    opts.keep_expired = false;
    cr_expect_eq(count_fields(&ask, &opts), 0, "no hash without fields");
    ask_done(&ask);
}
