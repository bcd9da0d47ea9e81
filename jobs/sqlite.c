/* Writes rows to a database of SQLite.
 *
 * A statement is run for many rows at once: INSERT … SELECT from a virtual table, whose rows are
 * the records at hand. That is twice as fast as a statement for each row. The virtual table has no
 * copy of the bytes: the statements run before the records are gone. */
#include "base/mem.h"
#include "jobs/rows_impl.h"
#include "jobs/sqlite_impl.h"

enum { BATCH = 2048, AROUND = 3 /* columns before the cells */ };

/* A record, and what only this side knows: ids. */
struct row {
    const uint8_t *record;
    int64_t key;
    int64_t first, last;
};

struct batch {
    sqlite3_stmt *insert;
    struct row *rows;
    size_t n;
    int64_t count;  /* rows of the table so far */
    int64_t marked; /* … when the last key ended */
};

struct database {
    struct sqlite_file file;
    sqlite3 *db;
    struct batch batches[ROWS_TABLES];
    const struct batch *current; /* of the statement that runs */
    struct rd_buf rest;          /* a record that is not complete yet */
    struct rd_buf longs;         /* the bytes of long cells */
    int64_t keys;
    uint64_t *ret_size;
};

/* ---- the virtual table ---- */

struct table {
    sqlite3_vtab base;
    struct database *database;
};

struct cursor {
    sqlite3_vtab_cursor base;
    size_t at;
};

static const struct database *database_of(const sqlite3_vtab_cursor *cursor)
{
    return ((const struct table *)(const void *)cursor->pVtab)->database;
}

static int table_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **ret, char **ret_text)
{
    struct table *table = sqlite3_malloc(sizeof *table);
    (void)argc;
    (void)argv;
    (void)ret_text;
    if (table == NULL)
        return SQLITE_NOMEM;
    *table = (struct table){.database = aux};
    *ret = &table->base;
    return sqlite3_declare_vtab(db, "CREATE TABLE rows(key, first, last, c0, c1, c2, c3, c4, c5, "
                                    "c6, c7, c8, c9, c10, c11, c12, c13, c14)");
}

static int table_disconnect(sqlite3_vtab *base)
{
    sqlite3_free(base);
    return SQLITE_OK;
}

static int table_best(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    info->estimatedCost = BATCH;
    return SQLITE_OK;
}

static int table_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
    struct cursor *cursor = sqlite3_malloc(sizeof *cursor);
    (void)base;
    if (cursor == NULL)
        return SQLITE_NOMEM;
    *cursor = (struct cursor){0};
    *ret = &cursor->base;
    return SQLITE_OK;
}

static int table_close(sqlite3_vtab_cursor *base)
{
    sqlite3_free(base);
    return SQLITE_OK;
}

static int table_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                        sqlite3_value **argv)
{
    (void)number;
    (void)text;
    (void)argc;
    (void)argv;
    ((struct cursor *)(void *)base)->at = 0;
    return SQLITE_OK;
}

static int table_next(sqlite3_vtab_cursor *base)
{
    ((struct cursor *)(void *)base)->at++;
    return SQLITE_OK;
}

static int table_eof(sqlite3_vtab_cursor *base)
{
    return ((struct cursor *)(void *)base)->at >= database_of(base)->current->n;
}

static struct rows_cell get_cell(const uint8_t *record, unsigned i)
{
    struct rows_cell cell;
    memcpy(&cell, record + sizeof(struct rows_head) + i * sizeof cell, sizeof cell);
    return cell;
}

/* The bytes of the long cells before it precede those of a long cell. */
static void put_long(sqlite3_context *to, const struct database *database, const uint8_t *record,
                     unsigned i)
{
    struct rows_cell cell = get_cell(record, i);
    size_t at = 0, len = (size_t)cell.num;
    for (unsigned before = 0; before < i; before++)
        if (get_cell(record, before).kind >= ROWS_LONG)
            at += (size_t)get_cell(record, before).num;
    struct rd_slice bytes = len > 0 ? rd_slice(database->longs.ptr + at, len) : rd_slice("", 0);
    if (cell.kind == ROWS_LONG && rows_is_text(bytes))
        sqlite3_result_text64(to, (const char *)bytes.ptr, bytes.len, SQLITE_STATIC, SQLITE_UTF8);
    else
        sqlite3_result_blob64(to, bytes.ptr, bytes.len, SQLITE_STATIC);
}

static void put_cell(sqlite3_context *to, const struct database *database, const uint8_t *record,
                     unsigned i)
{
    struct rows_cell cell = get_cell(record, i);
    switch ((enum rows_kind)cell.kind) {
    case ROWS_INT:
        sqlite3_result_int64(to, cell.num);
        break;
    case ROWS_REAL:
        sqlite3_result_double(to, cell.real);
        break;
    case ROWS_TEXT:
        sqlite3_result_text(to, (const char *)record + cell.num, (int)cell.len, SQLITE_STATIC);
        break;
    case ROWS_BLOB:
        sqlite3_result_blob(to, record + cell.num, (int)cell.len, SQLITE_STATIC);
        break;
    case ROWS_LONG:
    case ROWS_LONG_BLOB:
        put_long(to, database, record, i);
        break;
    case ROWS_NULL:
        break;
    }
}

static void put_id(sqlite3_context *to, int64_t id)
{
    if (id > 0)
        sqlite3_result_int64(to, id);
}

static int table_column(sqlite3_vtab_cursor *base, sqlite3_context *to, int i)
{
    const struct database *database = database_of(base);
    const struct row *row = &database->current->rows[((struct cursor *)(void *)base)->at];
    if (i >= AROUND)
        put_cell(to, database, row->record, (unsigned)(i - AROUND));
    else
        put_id(to, i == 0 ? row->key : i == 1 ? row->first : row->last);
    return SQLITE_OK;
}

static int table_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)((struct cursor *)(void *)base)->at;
    return SQLITE_OK;
}

/* Without xCreate the table exists by its name. */
static const sqlite3_module module = {
    .xConnect = table_connect,
    .xBestIndex = table_best,
    .xDisconnect = table_disconnect,
    .xDestroy = table_disconnect,
    .xOpen = table_open,
    .xClose = table_close,
    .xFilter = table_filter,
    .xNext = table_next,
    .xEof = table_eof,
    .xColumn = table_column,
    .xRowid = table_rowid,
};

/* ---- statements ---- */

/* What the file reported is the cause; SQLite has only a number for it. */
static bool refuse(struct database *database, struct rd_err *err)
{
    int rc = sqlite3_errcode(database->db);
    if (database->file.err.code != RD_ERR_OK)
        rd_err_adopt(err, &database->file.err);
    return rd_err_set(err,
                      rc == SQLITE_NOMEM    ? RD_ERR_MEMORY
                      : rc == SQLITE_TOOBIG ? RD_ERR_UNSUPPORTED
                                            : RD_ERR_IO,
                      RD_NO_OFFSET, "SQLite: %s", sqlite3_errmsg(database->db));
}

static bool run(struct database *database, const char *sql, struct rd_err *err)
{
    return sqlite3_exec(database->db, sql, NULL, NULL, NULL) == SQLITE_OK || refuse(database, err);
}

static bool insert(struct database *database, struct batch *batch, struct rd_err *err)
{
    if (batch->n == 0)
        return true;
    database->current = batch;
    bool ok = sqlite3_step(batch->insert) == SQLITE_DONE || refuse(database, err);
    sqlite3_reset(batch->insert);
    batch->n = 0;
    return ok;
}

static bool insert_all(struct database *database, struct rd_err *err)
{
    for (size_t i = 0; i < ROWS_TABLES; i++)
        if (!insert(database, &database->batches[i], err))
            return false;
    return true;
}

static bool prepare(struct database *database, enum rows_table table, struct rd_err *err)
{
    struct batch *batch = &database->batches[table];
    if (sqlite3_prepare_v3(database->db, convert_sqlite_insert(table), -1,
                           SQLITE_PREPARE_PERSISTENT, &batch->insert, NULL) != SQLITE_OK)
        return refuse(database, err);
    batch->rows = rd_calloc(BATCH, sizeof *batch->rows);
    return batch->rows != NULL || rd_err_nomem(err, BATCH * sizeof *batch->rows);
}

/* ---- records ---- */

/* The last cell of a key is the table of its value. */
static void end_key(struct database *database, const uint8_t *record, const struct rows_head *head,
                    struct row *row)
{
    const struct batch *value = &database->batches[get_cell(record, head->n_cells - 1u).num];
    database->keys++;
    row->first = value->count > value->marked ? value->marked + 1 : 0;
    row->last = row->first > 0 ? value->count : 0;
    for (size_t i = 0; i < ROWS_TABLES; i++)
        database->batches[i].marked = database->batches[i].count;
}

static bool has_long(const uint8_t *record, const struct rows_head *head)
{
    for (unsigned i = 0; i < head->n_cells; i++)
        if (get_cell(record, i).kind >= ROWS_LONG)
            return true;
    return false;
}

static bool add_row(struct database *database, const uint8_t *record, const struct rows_head *head,
                    struct rd_err *err)
{
    struct batch *batch = &database->batches[head->table];
    struct row row = {.record = record, .key = database->keys + 1};
    if (head->table == ROWS_KEYS)
        end_key(database, record, head, &row);
    else if (head->table == ROWS_STREAM_FIELDS)
        row.first = database->batches[ROWS_STREAM_ENTRIES].count;
    else if (head->table == ROWS_RECORDS)
        row.key = database->keys;
    if (batch->insert == NULL && !prepare(database, (enum rows_table)head->table, err))
        return false;
    batch->rows[batch->n++] = row;
    batch->count++;
    if (database->longs.len > 0 && has_long(record, head)) {
        bool ok = insert(database, batch, err);
        rd_buf_reset(&database->longs);
        return ok;
    }
    return batch->n < BATCH || insert(database, batch, err);
}

static bool add_piece(struct database *database, const uint8_t *record,
                      const struct rows_head *head, struct rd_err *err)
{
    size_t len = head->size - sizeof *head - head->pad;
    return rd_buf_add(&database->longs, record + sizeof *head, len) || rd_err_nomem(err, len);
}

/* Takes all complete records; *ret: how many bytes they have. */
static bool take(struct database *database, const uint8_t *from, size_t len, size_t *ret,
                 struct rd_err *err)
{
    struct rows_head head;
    size_t at = 0;
    bool ok = true;
    while (ok && len - at >= sizeof head) {
        memcpy(&head, from + at, sizeof head);
        if (head.size > len - at)
            break;
        ok = head.table == ROWS_PIECE ? add_piece(database, from + at, &head, err)
                                      : add_row(database, from + at, &head, err);
        at += head.size;
    }
    *ret = at;
    return ok && insert_all(database, err);
}

/* The bytes that complete the record in `rest`, or as many as there are. */
static bool complete(struct database *database, const uint8_t **p, size_t *len, struct rd_err *err)
{
    struct rd_buf *rest = &database->rest;
    struct rows_head head;
    while (rest->len > 0 && *len > 0) {
        size_t want = sizeof head, used;
        if (rest->len >= sizeof head) {
            memcpy(&head, rest->ptr, sizeof head);
            want = head.size;
        }
        size_t n = want - rest->len < *len ? want - rest->len : *len;
        if (!rd_buf_add(rest, *p, n))
            return rd_err_nomem(err, n);
        *p += n;
        *len -= n;
        if (!take(database, rest->ptr, rest->len, &used, err))
            return false;
        if (used > 0)
            rd_buf_reset(rest);
    }
    return true;
}

static bool sink_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct database *database = impl;
    size_t used;
    if (!complete(database, &ptr, &len, err) || !take(database, ptr, len, &used, err))
        return false;
    return used == len || rd_buf_add(&database->rest, ptr + used, len - used) ||
           rd_err_nomem(err, len - used);
}

/* ---- begin and end ---- */

static bool begin(struct database *database, struct rd_err *err)
{
    /* Another program sees the file only when it is complete, so it needs no journal. */
    static const char pragmas[] =
        "PRAGMA page_size = 8192; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -8000; PRAGMA temp_store = MEMORY;"
        "PRAGMA application_id = 0x52444254; PRAGMA user_version = 1; BEGIN";
    if (!sqlite_file_begin(&database->file, &database->db, err))
        return false;
    if (sqlite3_create_module(database->db, "rows", &module, database) != SQLITE_OK)
        return refuse(database, err);
    bool ok = run(database, pragmas, err);
    for (size_t i = 0; ok && convert_sqlite_schema(i) != NULL; i++)
        ok = run(database, convert_sqlite_schema(i), err);
    return ok;
}

static void close_database(struct database *database)
{
    for (size_t i = 0; i < ROWS_TABLES; i++) {
        sqlite3_finalize(database->batches[i].insert);
        database->batches[i].insert = NULL;
    }
    sqlite3_close(database->db);
    database->db = NULL;
}

static void free_all(struct database *database)
{
    close_database(database);
    for (size_t i = 0; i < ROWS_TABLES; i++)
        rd_free(database->batches[i].rows);
    sqlite_file_end(&database->file);
    rd_buf_done(&database->rest);
    rd_buf_done(&database->longs);
    rd_free(database);
}

static bool sink_close(void *impl, bool commit, struct rd_err *err)
{
    struct database *database = impl;
    bool ok = commit && run(database, "COMMIT", err);
    close_database(database);
    if (ok) {
        *database->ret_size = database->file.size;
        ok = sqlite_file_commit(&database->file, err);
    }
    free_all(database);
    return ok;
}

bool convert_sqlite_open(struct rd_sink **ret, struct rd_sink *out, uint64_t *ret_size,
                         struct rd_err *err)
{
    static const struct rd_sink_ops ops = {.write = sink_write, .close = sink_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = rd_sink_origin(out));
    struct database *database = rd_calloc(1, sizeof *database);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* before its first use */
    if (database == NULL) {
        rd_sink_abort(out);
        return rd_err_nomem(err, sizeof *database);
    }
    database->file.out = out;
    database->ret_size = ret_size;
    if (begin(database, err))
        return rd_sink_new(ret, &ops, database, &opts, err);
    free_all(database);
    return false;
}
