#include "tests/rdb/key_list.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/crc64.h"
#include "rdb/check.h"

uint64_t key_list_name(struct rd_slice name)
{
    size_t len = name.len < RDB_FINDING_KEY_MAX ? name.len : RDB_FINDING_KEY_MAX;
    return rd_crc64(len, name.ptr, len);
}

static void keys_add(struct keys *keys, const struct key *key)
{
    if (keys->n == keys->cap) {
        keys->cap = keys->cap == 0 ? 256 : 2 * keys->cap;
        keys->at = realloc(keys->at, keys->cap * sizeof *keys->at);
        cr_assert_not_null(keys->at);
    }
    keys->at[keys->n++] = *key;
}

/* The key whose RDB_KEY event is *ev; false where its value cannot be read. */
static bool read_key(struct rdb_reader *r, const struct rd_src *src, const struct rdb_event *ev,
                     struct key *ret)
{
    struct rd_buf value = {0};
    struct rd_sink *sink;
    uint8_t number = ev->key.type->number;
    *ret = (struct key){.db = ev->key.db,
                        .name = key_list_name(ev->key.name),
                        .expire_ms = ev->key.expire_ms,
                        .from = ev->key.record};
    cr_assert(rd_sink_open_buf(&sink, &value, NULL, NULL));
    bool ok = rdb_reader_copy_value(r, sink) == RDB_EVENT;
    cr_assert(rd_sink_close(sink, NULL));
    ret->value = rd_crc64(number + 1u, value.ptr, value.len);
    ret->to = rd_src_offset(src);
    rd_buf_done(&value);
    return ok;
}

struct keys keys_of(struct rd_slice file)
{
    struct keys keys = {0};
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    struct key key;
    enum rdb_status st;
    cr_assert(rd_src_open_memory(&src, file, NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, NULL, NULL));
    while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT) {
        if (ev.kind != RDB_KEY)
            continue;
        if (!read_key(r, src, &ev, &key))
            break;
        keys_add(&keys, &key);
    }
    keys.sound = st == RDB_END;
    rdb_reader_free(r);
    rd_src_close(src);
    return keys;
}
