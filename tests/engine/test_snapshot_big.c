/* Collections whose members wait in a queue for their table while a snapshot is loaded. */
#include "engine/snapshot.h"

#include "engine/db.h"
#include "engine/value/hash.h"
#include "engine/value/set.h"
#include "engine/value/zset.h"
#include "rdb/writer.h"

#include <criterion/criterion.h>
#include <stdio.h>

enum { MEMBERS = 3000, NEVER = MEMBERS + 1 };

static const struct engine_env env = {.now_us = 1700000000000000};

static void put(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rd_err err = {0};
    cr_assert(rdb_writer_put(w, ev, &err), "%s", err.text);
}

static void put_text(struct rdb_writer *w, enum rdb_role role, double score, unsigned number)
{
    char text[32];
    size_t len = (size_t)snprintf(text, sizeof text, "member:%u", number);
    struct rdb_event ev = {.kind = RDB_ELEM, .inner = RD_NO_OFFSET};
    ev.elem.role = role;
    ev.elem.score = score;
    ev.elem.expire_ms = RDB_NO_EXPIRE;
    ev.elem.str =
        (struct rdb_string){.ptr = (const uint8_t *)text, .len = len, .total = len, .first = true};
    put(w, &ev);
}

static void put_member(struct rdb_writer *w, enum rdb_type_id type, unsigned i, unsigned number)
{
    if (type == RDB_TYPE_HASH) {
        put_text(w, RDB_ROLE_FIELD, 0, number);
        put_text(w, RDB_ROLE_VALUE, 0, i);
    } else {
        put_text(w, RDB_ROLE_MEMBER, (double)(MEMBERS - i), number);
    }
}

/* Member `twice` has the name of the first one; NEVER: none has. */
static void put_key(struct rdb_writer *w, enum rdb_type_id type, unsigned twice)
{
    struct rdb_event ev = {.kind = RDB_KEY};
    ev.key.name = rd_slice_str("key");
    ev.key.type = rdb_type_get(type);
    ev.key.expire_ms = RDB_NO_EXPIRE;
    ev.key.idle_s = ev.key.freq = RDB_UNKNOWN;
    put(w, &ev);
    ev = (struct rdb_event){.kind = RDB_VALUE};
    ev.value.type = rdb_type_get(type);
    ev.value.count = MEMBERS;
    ev.value.nodes = RDB_UNKNOWN;
    ev.value.min_expire_ms = RDB_NO_EXPIRE;
    put(w, &ev);
    for (unsigned i = 0; i < MEMBERS; i++)
        put_member(w, type, i, i == twice ? 0 : i);
    put(w, &(struct rdb_event){.kind = RDB_VALUE_END});
}

static bool load_one(enum rdb_type_id type, unsigned twice, struct engine *e, struct rd_err *err)
{
    struct rd_buf bytes = {0};
    struct rd_sink *sink;
    struct rd_src *src;
    struct rdb_writer *w;
    struct rdb_writer_opts opts = RDB_WRITER_OPTS(.version = 10);
    cr_assert(rd_sink_open_buf(&sink, &bytes, NULL, NULL));
    cr_assert(rdb_writer_new(&w, sink, &opts, NULL));
    put_key(w, type, twice);
    cr_assert(rdb_writer_end(w, NULL));
    rdb_writer_free(w);
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&bytes), NULL, NULL));
    bool ok = engine_load(e, src, NULL, &env, NULL, err);
    rd_src_close(src);
    rd_buf_done(&bytes);
    return ok;
}

static const enum rdb_type_id types[] = {RDB_TYPE_SET, RDB_TYPE_HASH, RDB_TYPE_ZSET_2};

static bool has(const struct engine_value *v, struct rd_slice name)
{
    struct rd_slice value;
    char tmp[RD_NUM_I64_MAX];
    if (v->type == ENGINE_SET)
        return engine_set_has(v, name);
    if (v->type == ENGINE_HASH)
        return engine_hash_get(v, name, &value, tmp) && rd_slice_eq(value, name);
    return engine_zset_node(v, name) != NULL;
}

Test(snapshot_big, every_member_of_a_big_collection_is_there)
{
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
        struct rd_err err = {0};
        struct engine *e = engine_new(&(struct engine_opts){.seed = 1});
        cr_assert(load_one(types[k], NEVER, e, &err), "%s", err.text);
        struct engine_entry *entry = engine_db_find(engine_db(e, 0), rd_slice_str("key"));
        cr_assert_not_null(entry);
        cr_expect_eq(engine_value_count(&entry->value), MEMBERS);
        for (unsigned i = 0; i < MEMBERS; i++) {
            char name[32];
            snprintf(name, sizeof name, "member:%u", i);
            cr_assert(has(&entry->value, rd_slice_str(name)), "%s of type %zu", name, k);
        }
        engine_delete(e);
    }
}

Test(snapshot_big, a_duplicate_member_is_found_at_any_position)
{
    static const unsigned places[] = {1,           2,          15, 16, 17, 1000, MEMBERS - 17,
                                      MEMBERS - 2, MEMBERS - 1};
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            int64_t before = engine_mem_total(&engine_mem);
            struct rd_err err = {0};
            struct engine *e = engine_new(&(struct engine_opts){.seed = 1});
            cr_expect(!load_one(types[k], places[i], e, &err), "type %zu, %u", k, places[i]);
            cr_expect_eq(err.code, RD_ERR_CORRUPT, "type %zu, %u: %s", k, places[i], err.text);
            cr_expect_eq(engine_db_count(engine_db(e, 0)), 0);
            engine_delete(e);
            cr_expect_eq(engine_mem_total(&engine_mem), before, "type %zu, %u", k, places[i]);
        }
    }
}
