/* DEBUG of keys and tables: how they are stored, digests, and keys for tests. */
#include "base/num.h"
#include "engine/debug.h"
#include "engine/digest.h"
#include "engine/lru.h"
#include "server/surface/cmd/debug.h"
#include "server/loop/log.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

enum { HEX_SUM = 2 * ENGINE_DIGEST + 1 };

static struct engine_db *db_of(const struct dispatch_call *call)
{
    return engine_db(call->sessions->engine, call->c->session.db);
}

/* NULL: the key does not exist, and the error was replied. */
static const struct engine_entry *find(struct dispatch_call *call)
{
    const struct engine_entry *entry = engine_db_find(db_of(call), call->argv[2]);
    if (entry == NULL)
        engine_reply_error(call->reply, "ERR no such key");
    return entry;
}

/* ---- digests ---- */

static void reply_sum(struct dispatch_call *call, const uint8_t sum[ENGINE_DIGEST])
{
    char hex[HEX_SUM];
    for (unsigned i = 0; i < ENGINE_DIGEST; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    engine_reply_simple(call->reply, hex);
}

static void sub_digest(struct dispatch_call *call)
{
    uint8_t sum[ENGINE_DIGEST];
    engine_digest(call->sessions->engine, sum);
    reply_sum(call, sum);
}

static void sub_digest_value(struct dispatch_call *call)
{
    uint8_t sum[ENGINE_DIGEST];
    engine_reply_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++) {
        engine_digest_key(db_of(call), call->argv[i], sum);
        reply_sum(call, sum);
    }
}

/* ---- values ---- */

static void put_list(const struct engine_value *v, char *dst, size_t size)
{
    struct engine_debug_list list;
    dst[0] = '\0';
    if (engine_debug_list(v, &list))
        snprintf(dst, size,
                 " ql_nodes:%zu ql_avg_node:%.2f ql_listpack_max:%d ql_compressed:0 "
                 "ql_uncompressed_size:%llu",
                 list.nodes, (double)list.count / (double)list.nodes, list.fill,
                 (unsigned long long)list.bytes);
}

static void sub_object(struct dispatch_call *call)
{
    const struct engine_entry *entry = find(call);
    if (entry == NULL)
        return;
    char list[160], text[400];
    int64_t now_ms = loop_now_ms(call->sessions->loop);
    put_list(&entry->value, list, sizeof list);
    snprintf(text, sizeof text,
             "Value at:%p refcount:1 encoding:%s serializedlength:%llu lru:%u "
             "lru_seconds_idle:%lld%s",
             (const void *)entry, engine_encoding_name(&entry->value),
             (unsigned long long)engine_debug_saved(&entry->value), entry->value.lru,
             (long long)(engine_lru_idle_ms(&entry->value, now_ms) / 1000), list);
    engine_reply_simple(call->reply, text);
}

static void sub_sdslen(struct dispatch_call *call)
{
    const struct engine_entry *entry = find(call);
    if (entry == NULL)
        return;
    const struct engine_value *v = &entry->value;
    if (v->type != ENGINE_STRING || v->encoding == ENGINE_INT) {
        engine_reply_error(call->reply, "ERR Not an sds encoded string.");
        return;
    }
    char text[200];
    uint64_t room = engine_debug_memory(entry, 0);
    snprintf(text, sizeof text,
             "key_sds_len:%u, key_sds_avail:0, key_zmalloc: %llu, val_sds_len:%zu, "
             "val_sds_avail:0, val_zmalloc: %llu",
             entry->key_len, (unsigned long long)engine_usable(entry), engine_string_len(v),
             (unsigned long long)room);
    engine_reply_simple(call->reply, text);
}

static void sub_listpack(struct dispatch_call *call)
{
    const struct engine_entry *entry = find(call);
    if (entry == NULL)
        return;
    if (entry->value.encoding != ENGINE_LISTPACK) {
        engine_reply_error(call->reply, "ERR Not a listpack encoded object.");
        return;
    }
    log_notice("DEBUG LISTPACK: %llu elements in %llu bytes",
               (unsigned long long)engine_value_count(&entry->value),
               (unsigned long long)engine_debug_memory(entry, 0));
    engine_reply_simple(call->reply, "Listpack structure printed on stdout");
}

static void sub_quicklist(struct dispatch_call *call)
{
    struct engine_debug_list list;
    const struct engine_entry *entry = find(call);
    if (entry == NULL)
        return;
    if (!engine_debug_list(&entry->value, &list)) {
        engine_reply_error(call->reply, "ERR Not a quicklist encoded object.");
        return;
    }
    log_notice("DEBUG QUICKLIST: %llu elements in %zu nodes, %llu bytes",
               (unsigned long long)list.count, list.nodes, (unsigned long long)list.bytes);
    engine_reply_simple(call->reply, "Quicklist structure printed on stdout");
}

/* Elements of 1 GiB have a node of their own; tests can lower the size. */
static void sub_packed_threshold(struct dispatch_call *call)
{
    uint64_t size;
    if (!rd_num_get_size(call->argv[2], &size) || size > UINT32_MAX) {
        engine_reply_error(call->reply, "ERR argument must be a memory value bigger than 1 and "
                                        "smaller than 4gb");
        return;
    }
    engine_debug_list_plain_min((size_t)size);
    engine_reply_ok(call->reply);
}

/* ---- tables ---- */

static void put_lengths(struct rd_buf *out, const struct engine_debug_array *s)
{
    rd_buf_printf(out, " Chain length distribution:\n");
    for (unsigned i = 0; i < ENGINE_DEBUG_LENGTHS; i++)
        if (s->of_length[i] > 0)
            rd_buf_printf(out, "   %s%u: %" PRIu64 " (%.2f%%)\n",
                          i == ENGINE_DEBUG_LENGTHS - 1 ? ">= " : "", i, s->of_length[i],
                          100.0 * (double)s->of_length[i] / (double)s->buckets);
}

/* The size is the number of items that the array can hold before it grows; the chains are those of
 * buckets, which have several items each. */
static void put_array(struct rd_buf *out, unsigned which, const struct engine_debug_array *s)
{
    rd_buf_printf(out, "Hash table %u stats (%s):\n", which,
                  which == 0 ? "main hash table" : "rehashing target");
    if (s->count == 0) {
        rd_buf_printf(out, "No stats available for empty dictionaries\n");
        return;
    }
    rd_buf_printf(out,
                  " table size: %" PRIu64 "\n number of elements: %" PRIu64
                  "\n different slots: %" PRIu64 "\n max chain length: %" PRIu64 "\n",
                  s->room, s->count, s->used, s->longest);
    rd_buf_printf(out, " avg chain length (counted): %.2f\n avg chain length (computed): %.2f\n",
                  (double)s->count / (double)s->used, (double)s->count / (double)s->buckets);
    put_lengths(out, s);
}

static void put_table(struct rd_buf *out, const char *title, const struct engine_table *t)
{
    struct engine_debug_array s;
    rd_buf_printf(out, "%s", title);
    for (unsigned which = 0; which < 2; which++)
        if (engine_debug_array(t, which, &s) || which == 0)
            put_array(out, which, &s);
}

static void reply_text(struct dispatch_call *call, struct rd_buf *text)
{
    engine_reply_verbatim(call->reply, rd_buf_slice(text), "txt");
    rd_buf_done(text);
}

static void sub_htstats(struct dispatch_call *call)
{
    int64_t id;
    if (!dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &id, NULL))
        return;
    const struct engine_db *db =
        id >= 0 && id <= UINT_MAX ? engine_db(call->sessions->engine, (unsigned)id) : NULL;
    if (db == NULL) {
        engine_reply_error(call->reply, "ERR Out of range database");
        return;
    }
    struct rd_buf text = {0};
    put_table(&text, "[Dictionary HT]\n", &db->keys);
    put_table(&text, "[Expires HT]\n", &db->expires);
    reply_text(call, &text);
}

static void sub_htstats_key(struct dispatch_call *call)
{
    const struct engine_entry *entry = find(call);
    if (entry == NULL)
        return;
    const struct engine_table *table = engine_value_table(&entry->value);
    if (table == NULL) {
        engine_reply_error(call->reply, "ERR The value stored at the specified key is not "
                                        "represented using an hash table");
        return;
    }
    struct rd_buf text = {0};
    put_table(&text, "", table);
    reply_text(call, &text);
}

static void sub_populate(struct dispatch_call *call)
{
    static const char error[] = "ERR value is out of range, must be positive";
    int64_t n, size = 0;
    struct rd_slice prefix = call->argc > 3 ? call->argv[3] : rd_slice_str("key");
    if (!dispatch_arg_i64(call, call->argv[2], 0, LONG_MAX, &n, error) ||
        (call->argc > 4 && !dispatch_arg_i64(call, call->argv[4], 0, INT_MAX, &size, error)))
        return;
    engine_debug_populate(call->sessions->engine, call->c->session.db, prefix, (uint64_t)n,
                          (size_t)size);
    engine_reply_ok(call->reply);
}

const struct cmd_debug_sub cmd_debug_keys_subs[] = {
    {"digest", 2, 2, sub_digest},
    {"digest-value", 2, 0, sub_digest_value},
    {"object", 3, 3, sub_object},
    {"sdslen", 3, 3, sub_sdslen},
    {"listpack", 3, 3, sub_listpack},
    {"htstats", 3, 4, sub_htstats},
    {"htstats-key", 3, 3, sub_htstats_key},
    {"quicklist", 3, 4, sub_quicklist},
    {"quicklist-packed-threshold", 3, 3, sub_packed_threshold},
    {"populate", 3, 5, sub_populate},
    {NULL, 0, 0, NULL},
};
