#include "stat/prefix.h"

#include "base/mem.h"
#include "stat/hash.h"

#include <stdlib.h>

enum { SLOTS = 4 * STAT_PREFIX_CAP, NAMES_MAX = STAT_PREFIX_CAP * STAT_PREFIX_NAME_MAX };

bool stat_prefixes_init(struct stat_prefixes *table, struct rd_slice separator, unsigned depth,
                        bool details, struct rd_err *err)
{
    *table = (struct stat_prefixes){.separator = separator, .depth = depth};
    table->rows = rd_calloc(STAT_PREFIX_CAP, sizeof *table->rows);
    table->slots = rd_calloc(SLOTS, sizeof *table->slots);
    table->names = rd_alloc(NAMES_MAX);
    if (table->rows == NULL || table->slots == NULL || table->names == NULL) {
        stat_prefixes_done(table);
        return rd_err_nomem(err, NAMES_MAX);
    }
    if (!details || stat_details_init(&table->details, STAT_PREFIX_CAP, err))
        return true;
    stat_prefixes_done(table);
    return false;
}

void stat_prefixes_done(struct stat_prefixes *table)
{
    stat_details_done(&table->details);
    rd_free(table->rows);
    rd_free(table->slots);
    rd_free(table->names);
    *table = (struct stat_prefixes){0};
}

/* ---- the table ---- */

static uint32_t *find_slot(struct stat_prefixes *table, uint64_t hash, uint64_t db,
                           struct rd_slice name)
{
    size_t i = hash & (SLOTS - 1);
    for (; table->slots[i] != 0; i = (i + 1) & (SLOTS - 1)) {
        const struct stat_prefix *row = &table->rows[table->slots[i] - 1];
        if (row->hash == hash && row->db == db && rd_slice_eq(stat_prefix_name(table, row), name))
            break;
    }
    return &table->slots[i];
}

/* The memory of a prefix in both snapshots. */
static uint64_t known(const struct stat_prefix *row)
{
    return row->memory + row->was.memory;
}

static uint64_t most(const struct stat_prefix *row)
{
    return known(row) + row->missed;
}

/* The largest first; of equal rows the shorter prefix, which contains the longer ones. */
static int by_most(const void *va, const void *vb)
{
    const struct stat_prefix *a = va, *b = vb;
    if (most(a) != most(b))
        return most(a) < most(b) ? 1 : -1;
    if (a->level != b->level)
        return a->level > b->level ? 1 : -1;
    return (a->hash > b->hash) - (a->hash < b->hash);
}

static int by_name_at(const void *va, const void *vb)
{
    const struct stat_prefix *a = va, *b = vb;
    return (a->name_at > b->name_at) - (a->name_at < b->name_at);
}

/* Compacts the names of the rows and rebuilds the slots. */
static void rebuild(struct stat_prefixes *table)
{
    qsort(table->rows, table->n, sizeof *table->rows, by_name_at);
    memset(table->slots, 0, SLOTS * sizeof *table->slots);
    table->names_len = 0;
    for (size_t i = 0; i < table->n; i++) {
        struct stat_prefix *row = &table->rows[i];
        memmove(table->names + table->names_len, table->names + row->name_at, row->name_len);
        row->name_at = (uint32_t)table->names_len;
        table->names_len += row->name_len;
        *find_slot(table, row->hash, row->db, stat_prefix_name(table, row)) = (uint32_t)i + 1;
    }
}

static void drop_half(struct stat_prefixes *table)
{
    qsort(table->rows, table->n, sizeof *table->rows, by_most);
    size_t keep = table->n / 2;
    uint64_t dropped = most(&table->rows[keep]);
    table->floor = dropped > table->floor ? dropped : table->floor;
    for (size_t i = keep; i < table->n; i++)
        stat_details_give(&table->details, table->rows[i].detail);
    table->n = keep;
    rebuild(table);
}

static struct stat_prefix *new_row(struct stat_prefixes *table, uint64_t hash, uint64_t db,
                                   struct rd_slice name, unsigned level)
{
    if (table->n == STAT_PREFIX_CAP)
        drop_half(table);
    struct stat_prefix *row = &table->rows[table->n++];
    *row = (struct stat_prefix){.hash = hash,
                                .db = db,
                                .name_at = (uint32_t)table->names_len,
                                .name_len = (uint16_t)name.len,
                                .level = (uint16_t)level,
                                .missed = table->floor,
                                .detail = stat_details_take(&table->details)};
    memcpy(table->names + table->names_len, name.ptr, name.len);
    table->names_len += name.len;
    *find_slot(table, hash, db, name) = (uint32_t)table->n;
    return row;
}

static struct stat_prefix *row_of(struct stat_prefixes *table, uint64_t hash, uint64_t db,
                                  struct rd_slice name, unsigned level)
{
    uint32_t at = *find_slot(table, hash, db, name);
    return at != 0 ? &table->rows[at - 1] : new_row(table, hash, db, name, level);
}

/* ---- keys ---- */

/* Returns the end of the next separator at or after `from`, or 0. */
static size_t next_end(struct rd_slice separator, struct rd_slice name, size_t from)
{
    if (separator.len == 1) {
        const uint8_t *at = memchr(name.ptr + from, separator.ptr[0], name.len - from);
        return at == NULL ? 0 : (size_t)(at - name.ptr) + 1;
    }
    const uint8_t *at = memmem(name.ptr + from, name.len - from, separator.ptr, separator.len);
    return at == NULL ? 0 : (size_t)(at - name.ptr) + separator.len;
}

static void count(struct stat_prefix *row, const struct stat_key *key)
{
    row->keys++;
    row->expires += key->expire_ms != RDB_NO_EXPIRE;
    row->elements += key->elements;
    row->memory += key->memory;
    row->lasting += key->expire_ms == RDB_NO_EXPIRE ? key->memory : 0;
    row->of_kind[key->type->kind] += key->memory;
}

void stat_prefixes_add(struct stat_prefixes *table, struct stat_noted *noted)
{
    const struct stat_key *key = noted->key;
    struct rd_slice name = key->name;
    uint64_t hash = stat_hash_mix(0, key->db);
    size_t from = 0;
    if (table->separator.len == 0 || name.len == 0)
        return;
    for (unsigned level = 1; level <= table->depth && from < name.len; level++) {
        size_t end = next_end(table->separator, name, from);
        if (end == 0 || end > STAT_PREFIX_NAME_MAX)
            return;
        hash = stat_hash_more(hash, name.ptr + from, end - from);
        struct stat_prefix *row = row_of(table, hash, key->db, rd_slice(name.ptr, end), level);
        count(row, key);
        stat_detail_add(&table->details, row->detail, noted);
        from = end;
    }
}

void stat_prefixes_continue(struct stat_prefixes *table)
{
    for (size_t i = 0; i < table->n; i++) {
        struct stat_prefix *row = &table->rows[i];
        row->was = (struct stat_share){row->keys, row->memory};
        row->keys = row->expires = row->elements = row->memory = row->lasting = 0;
        memset(row->of_kind, 0, sizeof row->of_kind);
        stat_detail_clear(&table->details, row->detail);
    }
}

static int by_memory(const void *va, const void *vb)
{
    const struct stat_prefix *a = va, *b = vb;
    if (known(a) != known(b))
        return known(a) < known(b) ? 1 : -1;
    if (a->db != b->db)
        return a->db > b->db ? 1 : -1;
    if (a->level != b->level)
        return a->level > b->level ? 1 : -1;
    return (a->hash > b->hash) - (a->hash < b->hash);
}

void stat_prefixes_sort(struct stat_prefixes *table)
{
    uint64_t noise = table->floor;
    qsort(table->rows, table->n, sizeof *table->rows, by_memory);
    while (noise > 0 && table->n > 0 && known(&table->rows[table->n - 1]) <= noise) {
        uint64_t dropped = most(&table->rows[--table->n]);
        table->floor = dropped > table->floor ? dropped : table->floor;
    }
}
