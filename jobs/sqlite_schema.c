/* The tables of the database. docs/format/sqlite.md describes them.
 *
 * No table has an index: rows come in order, and the rows of a key are consecutive, so that the row
 * of the key has the ids of the first and the last of them. CROSS JOIN makes SQLite go from the key
 * to these rows. Without it, it would read all rows of a table to find those of one key. */
#include "jobs/rows_impl.h"

/* clang-format off */
#define TABLE(name, columns)                                                                       \
    "CREATE TABLE " name                                                                           \
    "(id INTEGER PRIMARY KEY, key INTEGER NOT NULL REFERENCES keys, " columns ")"
#define ID(name, ms, seq) name " TEXT AS (printf('%u-%u', " ms ", " seq ")) VIRTUAL"
#define NAMED(table, columns, type)                                                                \
    "CREATE VIEW " table "_named AS SELECT k.db, k.name, " columns " FROM keys AS k CROSS JOIN "   \
    table " AS v ON v.id BETWEEN k.first AND k.last WHERE k.type = '" type "'"

static const char *const schema[] = {
    "CREATE TABLE keys(id INTEGER PRIMARY KEY, db INTEGER NOT NULL, name NOT NULL, "
    "type TEXT NOT NULL, encoding TEXT NOT NULL, expire_ms INTEGER, elements INTEGER, "
    "bytes INTEGER, memory INTEGER, slot INTEGER, idle_s INTEGER, freq INTEGER, metadata BLOB, "
    "first INTEGER, last INTEGER)",
    TABLE("strings", "value NOT NULL"),
    TABLE("list_elements", "value NOT NULL"),
    TABLE("set_members", "member NOT NULL"),
    TABLE("zset_members", "member NOT NULL, score REAL"),
    TABLE("hash_fields", "field NOT NULL, value NOT NULL, expire_ms INTEGER, path"),
    TABLE("array_items", "position INTEGER NOT NULL, value NOT NULL"),
    TABLE("streams",
          "length INTEGER, last_ms INTEGER, last_seq INTEGER, first_ms INTEGER, "
          "first_seq INTEGER, max_deleted_ms INTEGER, max_deleted_seq INTEGER, "
          "entries_added INTEGER, idmp_duration INTEGER, idmp_max_size INTEGER, "
          "iids_added INTEGER, iids_duplicates INTEGER, " ID("last_id", "last_ms", "last_seq")),
    TABLE("stream_entries",
          "ms INTEGER, seq INTEGER, n_fields INTEGER, " ID("entry_id", "ms", "seq")),
    TABLE("stream_fields",
          "entry INTEGER NOT NULL REFERENCES stream_entries, field NOT NULL, value NOT NULL"),
    TABLE("stream_groups",
          "name NOT NULL, last_ms INTEGER, last_seq INTEGER, entries_read INTEGER, "
          "pending INTEGER, " ID("last_id", "last_ms", "last_seq")),
    TABLE("stream_consumers",
          "group_name NOT NULL, name NOT NULL, seen_ms INTEGER, active_ms INTEGER"),
    TABLE("stream_pending",
          "group_name NOT NULL, ms INTEGER, seq INTEGER, consumer, delivery_ms INTEGER, "
          "delivery_count INTEGER, nacked INTEGER, " ID("entry_id", "ms", "seq")),
    TABLE("stream_producers", "name NOT NULL, iid, ms INTEGER, seq INTEGER"),
    TABLE("modules",
          "module TEXT, version INTEGER, value BLOB, json TEXT, "
          "decoded INTEGER AS (json IS NOT NULL) VIRTUAL"),
    "CREATE TABLE records(id INTEGER PRIMARY KEY, after_key INTEGER, kind TEXT NOT NULL, name, "
    "value)",
    NAMED("strings", "v.value", "string"),
    NAMED("list_elements", "v.id - k.first AS position, v.value", "list"),
    NAMED("set_members", "v.member", "set"),
    NAMED("zset_members", "v.member, v.score", "zset"),
    NAMED("hash_fields", "v.field, v.value, v.expire_ms, v.path", "hash"),
    NAMED("array_items", "v.position, v.value", "array"),
    NAMED("stream_entries", "v.id, v.entry_id, v.ms, v.seq, v.n_fields", "stream"),
    NAMED("modules", "v.module, v.version, v.decoded, v.json, v.value", "module"),
};

/* "rows" has the records at hand (sqlite.c). */
#define INSERT(table, columns) "INSERT INTO " table " SELECT NULL, " columns " FROM rows"

static const char *const inserts[ROWS_TABLES] = {
    [ROWS_KEYS] =
        INSERT("keys", "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, first, last"),
    [ROWS_STRINGS] = INSERT("strings", "key, c0"),
    [ROWS_LIST_ELEMENTS] = INSERT("list_elements", "key, c0"),
    [ROWS_SET_MEMBERS] = INSERT("set_members", "key, c0"),
    [ROWS_ZSET_MEMBERS] = INSERT("zset_members", "key, c0, c1"),
    [ROWS_HASH_FIELDS] = INSERT("hash_fields", "key, c0, c1, c2, c3"),
    [ROWS_ARRAY_ITEMS] = INSERT("array_items", "key, c0, c1"),
    [ROWS_STREAMS] =
        INSERT("streams", "key, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11"),
    [ROWS_STREAM_ENTRIES] = INSERT("stream_entries", "key, c0, c1, c2"),
    [ROWS_STREAM_FIELDS] = INSERT("stream_fields", "key, first, c0, c1"),
    [ROWS_STREAM_GROUPS] = INSERT("stream_groups", "key, c0, c1, c2, c3, c4"),
    [ROWS_STREAM_CONSUMERS] = INSERT("stream_consumers", "key, c0, c1, c2, c3"),
    [ROWS_STREAM_PENDING] = INSERT("stream_pending", "key, c0, c1, c2, c3, c4, c5, c6"),
    [ROWS_STREAM_PRODUCERS] = INSERT("stream_producers", "key, c0, c1, c2, c3"),
    [ROWS_MODULES] = INSERT("modules", "key, c0, c1, c2, c3"),
    [ROWS_RECORDS] = INSERT("records", "key, c0, c1, c2"),
};
/* clang-format on */

const char *convert_sqlite_schema(size_t i)
{
    return i < sizeof schema / sizeof schema[0] ? schema[i] : NULL;
}

const char *convert_sqlite_insert(enum rows_table table)
{
    return inserts[table];
}
