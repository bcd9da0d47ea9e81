/* db.h - a database: keys, their values, and when they expire.
 *
 * An entry is one block: the value, the expiry, the key's name and, for short string values, the
 * bytes. Storing another value under a key can move the entry, so a pointer to it is valid until
 * the next change of that key.
 *
 * These functions change the data only. Commands handle expiry on access, counters, WATCH, blocked
 * clients, events and effects through engine/call.h.
 */
#ifndef ENGINE_DB_H
#define ENGINE_DB_H

#include "engine/table.h"
#include "engine/value.h"

#define ENGINE_NO_EXPIRE INT64_MIN

struct engine_entry {
    struct engine_value value;
    int64_t expire_ms; /* Unix time, or ENGINE_NO_EXPIRE */
    uint32_t key_len;
    uint8_t key[]; /* followed by the bytes of an EMBSTR */
};

struct engine_db {
    struct engine_table keys;       /* of struct engine_entry */
    struct engine_table expires;    /* the entries with an expiry */
    struct engine_table parts;      /* at least the entries of which parts expire */
    struct engine_table waiting;    /* keys that sessions wait for; engine/block.h */
    struct engine_table watched;    /* keys that sessions watch; engine/watch.h */
    struct engine_by_slot *by_slot; /* the entries of a node of a cluster; NULL: none are kept */
    unsigned id;
    int64_t avg_ttl_ms;     /* counts of keys that the expire cycle has seen */
    uint64_t expire_cursor; /* where the expire cycle resumes */
    uint64_t parts_cursor;
    uint64_t n_by_type[ENGINE_TYPES];
};

void engine_db_init(struct engine_db *db, unsigned id, uint64_t seed);

/* For an empty database: keeps the keys by slot from here on. */
void engine_db_keep_slots(struct engine_db *db, uint64_t seed);

/* Frees all keys and tables. The database must not be used after it. */
void engine_db_done(struct engine_db *db);

static inline struct rd_slice engine_entry_key(const struct engine_entry *entry)
{
    return rd_slice(entry->key, entry->key_len);
}

/* Prefetches the memory of the entry, for loops over many entries. */
static inline void engine_entry_prefetch(const struct engine_entry *entry)
{
    __builtin_prefetch(entry);
    __builtin_prefetch((const uint8_t *)entry + 64);
}

/* NULL: not found. Expired keys are found. Average constant time. */
struct engine_entry *engine_db_find(const struct engine_db *db, struct rd_slice key);

/* For callers that know commands before they run: each call prefetches the memory for looking up
 * this key, and the entries and values of keys that were given a few calls before; all is there
 * after ENGINE_DB_AHEAD calls. Changes nothing; unused keys are harmless. Zeroed at the start. */
enum { ENGINE_DB_AHEAD = 8 };

struct engine_db_ahead {
    uint64_t hashes[ENGINE_DB_AHEAD];
    unsigned next;
};

void engine_db_ahead(const struct engine_db *db, struct engine_db_ahead *ahead,
                     struct rd_slice key);

/* Adds a key that is known to be absent. The value is moved. Key names are shorter than 4 GiB. */
struct engine_entry *engine_db_add(struct engine_db *db, struct rd_slice key,
                                   struct engine_value *value);

/* Replaces the value of an existing key: the old one is freed, or moved to *ret_old if that is not
 * NULL. Keeps the expiry and the access time. Returns the entry, which may have moved. */
struct engine_entry *engine_db_replace(struct engine_db *db, struct engine_entry *entry,
                                       struct engine_value *value, struct engine_value *ret_old);

/* The same for a string given as text, in the encoding that SET uses: INT, EMBSTR up to 44 bytes,
 * RAW. entry may be NULL: adds the key. The fastest way to store a short string. */
struct engine_entry *engine_db_set_string(struct engine_db *db, struct engine_entry *entry,
                                          struct rd_slice key, struct rd_slice text);

/* Removes the key. Frees its value, or moves it to *ret_value if that is not NULL. */
void engine_db_remove(struct engine_db *db, struct engine_entry *entry,
                      struct engine_value *ret_value);

/* Removes all keys and returns their number. Takes time proportional to it. */
uint64_t engine_db_clear(struct engine_db *db);

/* Moves all keys to `to`, which must be empty. Constant time. */
void engine_db_give(struct engine_db *db, struct engine_db *to, uint64_t seed);

/* Exchanges the keys of two databases of the same seed. Sessions keep what they wait for and watch.
 */
void engine_db_swap(struct engine_db *a, struct engine_db *b);

/* ENGINE_NO_EXPIRE: none. */
void engine_db_expire(struct engine_db *db, struct engine_entry *entry, int64_t expire_ms);

/* To be called if parts of the value may have received an expiry, for the expire cycle. The
 * functions above do it for values that they store. */
void engine_db_note_parts(struct engine_db *db, struct engine_entry *entry);

/* No part of the value expires any more, as the expire cycle has seen, or the value will be
 * removed. */
void engine_db_forget_parts(struct engine_db *db, const struct engine_entry *entry);

static inline uint64_t engine_db_count(const struct engine_db *db)
{
    return engine_table_count(&db->keys);
}

#endif
