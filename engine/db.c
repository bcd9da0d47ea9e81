#include "engine/db.h"

#include "base/copy.h"
#include "engine/by_slot.h"

/* Calls of engine_db_ahead() after which a key's entry, and its value, are fetched. */
enum { ENTRY_AFTER = 3, VALUE_AFTER = 6 };

static struct rd_slice entry_name(const void *item)
{
    return engine_entry_key(item);
}

static const struct engine_table_type entries = {.name = entry_name};

void engine_db_init(struct engine_db *db, unsigned id, uint64_t seed)
{
    *db = (struct engine_db){.id = id};
    engine_table_init(&db->keys, &entries, seed);
    engine_table_init(&db->expires, &entries, seed);
    engine_table_init(&db->parts, &entries, seed);
}

void engine_db_keep_slots(struct engine_db *db, uint64_t seed)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_KEYS);
    db->by_slot = engine_by_slot_new(&entries, seed);
    engine_mem_leave(before);
}

static void free_entry(void *ctx, void *item)
{
    (void)ctx;
    struct engine_entry *entry = item;
    engine_value_free(&entry->value);
    engine_free(entry);
}

/* Removes the records about keys that no longer exist. */
static void forget_all(struct engine_db *db)
{
    memset(db->n_by_type, 0, sizeof db->n_by_type);
    db->avg_ttl_ms = 0;
    db->expire_cursor = 0;
    db->parts_cursor = 0;
}

uint64_t engine_db_clear(struct engine_db *db)
{
    uint64_t count = engine_db_count(db);
    if (db->by_slot != NULL)
        engine_by_slot_clear(db->by_slot);
    engine_table_done(&db->expires);
    engine_table_done(&db->parts);
    engine_table_drain(&db->keys, free_entry, NULL);
    forget_all(db);
    return count;
}

void engine_db_give(struct engine_db *db, struct engine_db *to, uint64_t seed)
{
    to->keys = db->keys;
    to->expires = db->expires;
    to->parts = db->parts;
    to->by_slot = db->by_slot;
    if (db->by_slot != NULL)
        engine_db_keep_slots(db, seed);
    engine_table_init(&db->keys, &entries, seed);
    engine_table_init(&db->expires, &entries, seed);
    engine_table_init(&db->parts, &entries, seed);
    forget_all(db);
}

void engine_db_swap(struct engine_db *a, struct engine_db *b)
{
    struct engine_db was_a = *a, was_b = *b;
    *a = was_b;
    *b = was_a;
    a->waiting = was_a.waiting;
    a->watched = was_a.watched;
    a->id = was_a.id;
    b->waiting = was_b.waiting;
    b->watched = was_b.watched;
    b->id = was_b.id;
}

void engine_db_done(struct engine_db *db)
{
    engine_db_clear(db);
    engine_table_done(&db->keys);
    engine_by_slot_free(db->by_slot);
}

struct engine_entry *engine_db_find(const struct engine_db *db, struct rd_slice key)
{
    return engine_table_find(&db->keys, key);
}

void engine_db_ahead(const struct engine_db *db, struct engine_db_ahead *ahead, struct rd_slice key)
{
    unsigned at = ahead->next++;
    uint64_t *hash = &ahead->hashes[at % ENGINE_DB_AHEAD];
    const struct engine_entry *entry =
        engine_table_likely(&db->keys, ahead->hashes[(at - VALUE_AFTER) % ENGINE_DB_AHEAD]);
    if (entry != NULL)
        engine_value_prefetch_whole(&entry->value);
    engine_table_prefetch_item(&db->keys, ahead->hashes[(at - ENTRY_AFTER) % ENGINE_DB_AHEAD]);
    *hash = engine_table_hash(&db->keys, key);
    engine_table_prefetch(&db->keys, *hash);
}

void engine_db_note_parts(struct engine_db *db, struct engine_entry *entry)
{
    struct engine_table_slot slot;
    if (engine_value_next_expire(&entry->value) == RDB_NO_EXPIRE)
        return;
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_KEYS);
    if (engine_table_find_or_slot(&db->parts, engine_entry_key(entry), &slot) == NULL)
        engine_table_add_at(&db->parts, &slot, entry);
    engine_mem_leave(before);
}

/* Parts may have expired before, even if none expires now. */
void engine_db_forget_parts(struct engine_db *db, const struct engine_entry *entry)
{
    if (RD_LIKELY(engine_table_count(&db->parts) == 0) ||
        engine_type_ops(entry->value.type)->next_expire == NULL)
        return;
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_KEYS);
    engine_table_remove(&db->parts, engine_entry_key(entry));
    engine_mem_leave(before);
}

static uint8_t *entry_tail(struct engine_entry *entry)
{
    return entry->key + entry->key_len;
}

static struct engine_entry *new_entry(struct rd_slice key, size_t room)
{
    struct engine_entry *entry = engine_alloc(sizeof *entry + key.len + room);
    entry->value = (struct engine_value){0};
    entry->expire_ms = ENGINE_NO_EXPIRE;
    entry->key_len = (uint32_t)key.len;
    rd_copy_short(entry->key, key.ptr, key.len);
    return entry;
}

static void link_entry(struct engine_db *db, struct engine_entry *entry)
{
    engine_table_add(&db->keys, entry);
    if (RD_UNLIKELY(db->by_slot != NULL))
        engine_by_slot_add(db->by_slot, entry);
    db->n_by_type[entry->value.type]++;
}

static struct engine_entry *add_embedded(struct engine_db *db, struct rd_slice key,
                                         struct rd_slice text)
{
    struct engine_entry *entry = new_entry(key, text.len);
    entry->value.type = ENGINE_STRING;
    entry->value.encoding = ENGINE_EMBSTR;
    entry->value.len = (uint32_t)text.len;
    entry->value.u.bytes = entry_tail(entry);
    rd_copy_short(entry_tail(entry), text.ptr, text.len);
    link_entry(db, entry);
    return entry;
}

/* An EMBSTR that is not stored yet is in a block of its own. */
static struct engine_entry *add_block(struct engine_db *db, struct rd_slice key,
                                      const struct engine_value *value)
{
    struct engine_entry *entry = add_embedded(db, key, rd_slice(value->u.bytes, value->len));
    engine_free(value->u.bytes);
    return entry;
}

struct engine_entry *engine_db_add(struct engine_db *db, struct rd_slice key,
                                   struct engine_value *value)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_KEYS);
    struct engine_entry *entry;
    if (value->encoding == ENGINE_EMBSTR) {
        entry = add_block(db, key, value);
    } else {
        entry = new_entry(key, 0);
        entry->value = *value;
        link_entry(db, entry);
        engine_db_note_parts(db, entry);
    }
    *value = (struct engine_value){0};
    engine_mem_leave(before);
    return entry;
}

/* Bytes of the block after the name. */
static size_t entry_room(const struct engine_entry *entry)
{
    size_t usable = engine_usable(entry);
    size_t used = sizeof *entry + entry->key_len;
    return usable > used ? usable - used : 0;
}

/* A larger block for the entry; updates both tables. */
static struct engine_entry *grow_entry(struct engine_db *db, struct engine_entry *entry,
                                       size_t room)
{
    const struct engine_entry *old = entry;
    bool expires = entry->expire_ms != ENGINE_NO_EXPIRE;
    struct engine_entry *moved = engine_realloc(entry, sizeof *entry + entry->key_len + room);
    if (moved != old) {
        engine_table_replace(&db->keys, old, moved);
        if (expires)
            engine_table_replace(&db->expires, old, moved);
        if (RD_UNLIKELY(db->by_slot != NULL))
            engine_by_slot_replace(db->by_slot, old, moved);
    }
    return moved;
}

static void put_value(struct engine_db *db, struct engine_entry *entry, struct engine_value value)
{
    db->n_by_type[entry->value.type]--;
    db->n_by_type[value.type]++;
    value.lru = entry->value.lru;
    engine_value_free(&entry->value);
    entry->value = value;
}

/* EMBSTR: the bytes after the name. The text may be in this entry. */
static struct engine_entry *embed(struct engine_db *db, struct engine_entry *entry,
                                  struct rd_slice text)
{
    uint8_t copy[ENGINE_EMBSTR_MAX];
    rd_copy_short(copy, text.ptr, text.len);
    if (entry_room(entry) < text.len)
        entry = grow_entry(db, entry, text.len);
    rd_copy_short(entry_tail(entry), copy, text.len);
    struct engine_value value = {
        .type = ENGINE_STRING, .encoding = ENGINE_EMBSTR, .len = (uint32_t)text.len};
    value.u.bytes = entry_tail(entry);
    put_value(db, entry, value);
    return entry;
}

/* The value of the entry; afterwards the entry holds a number, which needs no freeing. */
static struct engine_value take_value(struct engine_db *db, struct engine_entry *entry)
{
    struct engine_value old = entry->value;
    if (old.encoding == ENGINE_EMBSTR)
        return engine_value_dup(&old);
    db->n_by_type[old.type]--;
    db->n_by_type[ENGINE_STRING]++;
    entry->value.type = ENGINE_STRING;
    entry->value.encoding = ENGINE_INT;
    return old;
}

struct engine_entry *engine_db_replace(struct engine_db *db, struct engine_entry *entry,
                                       struct engine_value *value, struct engine_value *ret_old)
{
    engine_db_forget_parts(db, entry);
    if (ret_old != NULL)
        *ret_old = take_value(db, entry);
    if (value->encoding == ENGINE_EMBSTR) {
        entry = embed(db, entry, rd_slice(value->u.bytes, value->len));
        engine_free(value->u.bytes);
    } else {
        put_value(db, entry, *value);
        engine_db_note_parts(db, entry);
    }
    *value = (struct engine_value){0};
    return entry;
}

struct engine_entry *engine_db_set_string(struct engine_db *db, struct engine_entry *entry,
                                          struct rd_slice key, struct rd_slice text)
{
    int64_t num;
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_KEYS);
    bool is_int = rd_num_get_i64(text, &num);
    if (entry != NULL)
        engine_db_forget_parts(db, entry);
    if (!is_int && text.len <= ENGINE_EMBSTR_MAX) {
        entry = entry == NULL ? add_embedded(db, key, text) : embed(db, entry, text);
    } else {
        struct engine_value value =
            is_int
                ? (struct engine_value){.type = ENGINE_STRING, .encoding = ENGINE_INT, .u.num = num}
                : engine_string_raw(text);
        entry = entry == NULL ? engine_db_add(db, key, &value)
                              : engine_db_replace(db, entry, &value, NULL);
    }
    engine_mem_leave(before);
    return entry;
}

void engine_db_remove(struct engine_db *db, struct engine_entry *entry,
                      struct engine_value *ret_value)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_KEYS);
    if (entry->expire_ms != ENGINE_NO_EXPIRE)
        engine_table_remove(&db->expires, engine_entry_key(entry));
    engine_db_forget_parts(db, entry);
    engine_table_remove(&db->keys, engine_entry_key(entry));
    if (RD_UNLIKELY(db->by_slot != NULL))
        engine_by_slot_remove(db->by_slot, entry);
    db->n_by_type[entry->value.type]--;
    if (ret_value == NULL)
        engine_value_free(&entry->value);
    else if (entry->value.encoding == ENGINE_EMBSTR)
        *ret_value = engine_value_dup(&entry->value);
    else
        *ret_value = entry->value;
    engine_free(entry);
    engine_mem_leave(before);
}

void engine_db_expire(struct engine_db *db, struct engine_entry *entry, int64_t expire_ms)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_KEYS);
    if (entry->expire_ms == ENGINE_NO_EXPIRE && expire_ms != ENGINE_NO_EXPIRE)
        engine_table_add(&db->expires, entry);
    else if (entry->expire_ms != ENGINE_NO_EXPIRE && expire_ms == ENGINE_NO_EXPIRE)
        engine_table_remove(&db->expires, engine_entry_key(entry));
    entry->expire_ms = expire_ms;
    engine_mem_leave(before);
}
