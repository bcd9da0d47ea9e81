/* rows_impl.h - private to jobs/: keys as rows of tables, on the way to SQLite.
 *
 *     jobs/rows.c         events to rows
 *     jobs/rows_stream.c  the groups and producers of streams
 *     jobs/sqlite.c       rows to a database
 *     jobs/sqlite_schema.c  the tables
 *     jobs/sqlite_file.c  the file of the database
 *
 * The threads that read a snapshot write rows to a sink, in the order of the file; the thread that
 * writes the database reads them from it. A record is a head, its cells, and their bytes:
 *
 *     struct rows_head   struct rows_cell[n_cells]   bytes, padded to a multiple of 8
 *
 * A long string precedes its row, in records of ROWS_PIECE, and its cell has the length only. The
 * row of a key follows the rows of its value, because its sums are known at the end.
 */
#ifndef JOBS_ROWS_IMPL_H
#define JOBS_ROWS_IMPL_H

#include "base/buf.h"
#include "base/sink.h"
#include "rdb/plain.h"
#include "stat/memory.h"

enum rows_table {
    ROWS_KEYS,
    ROWS_STRINGS,
    ROWS_LIST_ELEMENTS,
    ROWS_SET_MEMBERS,
    ROWS_ZSET_MEMBERS,
    ROWS_HASH_FIELDS,
    ROWS_ARRAY_ITEMS,
    ROWS_STREAMS,
    ROWS_STREAM_ENTRIES,
    ROWS_STREAM_FIELDS,
    ROWS_STREAM_GROUPS,
    ROWS_STREAM_CONSUMERS,
    ROWS_STREAM_PENDING,
    ROWS_STREAM_PRODUCERS,
    ROWS_MODULES,
    ROWS_RECORDS,
    ROWS_PIECE /* no table: bytes of the next long cell */
};

enum { ROWS_TABLES = ROWS_PIECE, ROWS_CELLS_MAX = 15 };

enum rows_kind {
    ROWS_NULL,
    ROWS_INT,
    ROWS_REAL,
    ROWS_TEXT,
    ROWS_BLOB,
    ROWS_LONG,     /* text or bytes; num: the length; preceded by its pieces */
    ROWS_LONG_BLOB /* the same, always bytes */
};

struct rows_head {
    uint8_t table;
    uint8_t n_cells;
    uint16_t pad;  /* of a PIECE: bytes after the string */
    uint32_t size; /* of the record; at most a string of 4 GiB is in one */
};

struct rows_cell {
    uint32_t kind;
    uint32_t len; /* of TEXT and BLOB */
    union {
        int64_t num; /* TEXT and BLOB: where they begin in the record */
        double real;
    };
};

/* SQLite compares TEXT and BLOB as different: what users write in a query is TEXT. Bytes are TEXT
 * if they are valid UTF-8 without zero bytes, at which functions of SQLite end. */
bool rows_is_text(struct rd_slice bytes);

/* A row that is being made: rows_put() writes it. */
struct rows_row {
    enum rows_table table;
    unsigned n;
    struct rows_cell cells[ROWS_CELLS_MAX];
    struct rd_slice bytes[ROWS_CELLS_MAX];
};

/* A string of the row under way: whole in a buffer, or long and written already. */
struct rows_text {
    struct rd_buf held;
    uint64_t length; /* of a long one */
    bool is_long;
    bool is_set;
};

struct rows_stream;

struct rows {
    struct rd_sink *sink;
    const struct stat_layout *layout;
    bool in_value;     /* between KEY and VALUE_END */
    bool in_pack;      /* the last element is in a packed string */
    struct rd_buf raw; /* a record under way */

    /* The key. */
    struct rd_buf name;
    struct rd_buf meta;
    const struct rdb_type *type;
    uint64_t db, idle_s, freq;
    int64_t expire_ms;
    uint64_t n_path;
    struct stat_value value;

    struct rows_text field; /* whose value follows */
    struct rows_text path;  /* of the fields that follow */
    uint64_t length;        /* of the pieces so far */
    struct rows_stream *stream;

    /* A record beside the keys. */
    const char *record; /* its kind */
    struct rd_buf record_name;
    uint64_t ranges_left;
};

bool rows_new(struct rows **ret, struct rd_sink *sink, const struct stat_layout *layout,
              struct rd_err *err);
void rows_free(struct rows *rows);

void rows_int(struct rows_row *row, int64_t num);
/* RDB_UNKNOWN is NULL. */
void rows_count(struct rows_row *row, uint64_t num);
void rows_null(struct rows_row *row);
void rows_real(struct rows_row *row, double real);
/* The bytes are borrowed until rows_put(); no bytes may be NULL. */
void rows_text(struct rows_row *row, struct rd_slice text);
void rows_word(struct rows_row *row, const char *word);
void rows_id(struct rows_row *row, struct rdb_stream_id id);
/* Replaces the content of a buffer. */
bool rows_copy(struct rd_buf *to, struct rd_slice from, struct rd_err *err);
bool rows_put(struct rows *rows, const struct rows_row *row, struct rd_err *err);

/* The events of rdb/reader.h with RDB_DETAIL_ELEMENTS and long_packed, in order. A value of a
 * module is not decoded: after its KEY, call rows_module() instead. */
bool rows_event(struct rows *rows, const struct rdb_event *ev, struct rd_err *err);
bool rows_texts(struct rows *rows, const struct rdb_text *texts, size_t n, struct rd_err *err);
bool rows_plain(struct rows *rows, uint64_t db, const struct rdb_plain *keys, size_t n,
                struct rd_err *err);
bool rows_entry(struct rows *rows, struct rdb_stream_id id, const struct rdb_text *texts, size_t n,
                struct rd_err *err);

/* Ends the key with the value of a module: its serialized form from src, `size` bytes, and what is
 * known of it as JSON (empty: nothing). */
bool rows_module(struct rows *rows, uint64_t id, struct rd_src *src, uint64_t size,
                 struct rd_slice json, struct rd_err *err);

/* rows_stream.c: what follows the entries of a stream. */
bool rows_stream_new(struct rows_stream **ret, struct rd_err *err);
void rows_stream_free(struct rows_stream *stream);
bool rows_stream_event(struct rows *rows, const struct rdb_event *ev, struct rd_err *err);
bool rows_stream_end(struct rows *rows, struct rd_err *err);

/* sqlite.c: a sink that makes a database of rows. It is written to `out`, which it owns from then
 * on. When the sink was closed without a failure, *ret_size is the size of the database. */
bool convert_sqlite_open(struct rd_sink **ret, struct rd_sink *out, uint64_t *ret_size,
                         struct rd_err *err);

/* sqlite_schema.c: the statements that make the tables and views, NULL after the last one; and the
 * one that fills a table from the rows at hand. */
const char *convert_sqlite_schema(size_t i);
const char *convert_sqlite_insert(enum rows_table table);

/* The most bytes that a row of SQLite can have, with room for its other columns. */
enum { ROWS_STRING_MAX = 1000000000 - (64 << 20) };

#endif
