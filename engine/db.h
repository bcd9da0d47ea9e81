/* db.h - a database: keys, their values, and when they expire.
 *
 * An entry is one block: the value, the expiry, the key's name and, where the value is a short
 * string, its bytes. Storing another value under a key may move the entry, so a pointer to one
 * lives until the next change of that key.
 *
 * These functions change the data and nothing else; expiry on access, counters, WATCH, waiting
 * clients, events and effects belong to commands, which go through engine/call.h.
 */
#ifndef ENGINE_DB_H
#define ENGINE_DB_H

#include "engine/table.h"
#include "engine/value.h"

#define ENGINE_NO_EXPIRE INT64_MIN

struct engine_entry {
    struct engine_value value;
    int64_t expire_ms; /* unix time, or ENGINE_NO_EXPIRE */
    uint32_t key_len;
    uint8_t key[]; /* then the bytes of an EMBSTR */
};

struct engine_db {
    struct engine_table keys;    /* of struct engine_entry */
    struct engine_table expires; /* the same entries, those that have an expiry */
    struct engine_table parts;   /* the same entries: at least those of which parts expire */
    struct engine_table waiting; /* keys for which sessions wait; engine/block.h */
    struct engine_table watched; /* keys that sessions watch; engine/watch.h */
    unsigned id;
    int64_t avg_ttl_ms;     /* of keys that the expire cycle has seen */
    uint64_t expire_cursor; /* where the expire cycle continues */
    uint64_t parts_cursor;
    uint64_t n_by_type[ENGINE_TYPES];
};

void engine_db_init(struct engine_db *db, unsigned id, uint64_t seed);

/* Frees all keys and tables. */
void engine_db_done(struct engine_db *db);

static inline struct rd_slice engine_entry_key(const struct engine_entry *entry)
{
    return rd_slice(entry->key, entry->key_len);
}

/* Asks for the entry's memory, where many are to be looked at one after the other. */
static inline void engine_entry_prefetch(const struct engine_entry *entry)
{
    __builtin_prefetch(entry);
    __builtin_prefetch((const uint8_t *)entry + 64);
}

/* NULL: there is none. Expired keys are found. Average constant time. */
struct engine_entry *engine_db_find(const struct engine_db *db, struct rd_slice key);

/* For whoever knows some commands before they run: each call asks for the memory where this key is
 * looked for, and for that of the key which was given ENGINE_DB_AHEAD calls before. Changes
 * nothing; keys that are never asked for do no harm. Zeroed at the beginning. */
enum { ENGINE_DB_AHEAD = 4 };

struct engine_db_ahead {
    uint64_t hashes[ENGINE_DB_AHEAD];
    unsigned next;
};

void engine_db_ahead(const struct engine_db *db, struct engine_db_ahead *ahead,
                     struct rd_slice key);

/* A key that is known to be absent. The value is moved. Keys are shorter than 4 GiB. */
struct engine_entry *engine_db_add(struct engine_db *db, struct rd_slice key,
                                   struct engine_value *value);

/* Another value for a key that is there: the old one is freed, or moved to *ret_old when that is
 * not NULL. The expiry stays. Returns the entry, which may have moved. The access time is kept. */
struct engine_entry *engine_db_replace(struct engine_db *db, struct engine_entry *entry,
                                       struct engine_value *value, struct engine_value *ret_old);

/* The same for a string given as text, in the encoding that SET gives it: INT, EMBSTR up to 44
 * bytes, RAW. entry may be NULL: the key is added. The fastest way to store a short string. */
struct engine_entry *engine_db_set_string(struct engine_db *db, struct engine_entry *entry,
                                          struct rd_slice key, struct rd_slice text);

/* Takes the key out. Its value is freed, or moved to *ret_value when that is not NULL. */
void engine_db_remove(struct engine_db *db, struct engine_entry *entry,
                      struct engine_value *ret_value);

/* Removes all keys; how many there were. Takes time proportional to them. */
uint64_t engine_db_clear(struct engine_db *db);

/* Gives all keys to `to`, which has none. Constant time. */
void engine_db_give(struct engine_db *db, struct engine_db *to, uint64_t seed);

/* ENGINE_NO_EXPIRE: none. */
void engine_db_expire(struct engine_db *db, struct engine_entry *entry, int64_t expire_ms);

/* To be called when parts of the value may have got an expiry, for the expire cycle to know; values
 * that are stored are looked at by the functions above. */
void engine_db_note_parts(struct engine_db *db, struct engine_entry *entry);

/* No part of it expires any more, as the expire cycle has seen, or the value is about to go. */
void engine_db_forget_parts(struct engine_db *db, const struct engine_entry *entry);

static inline uint64_t engine_db_count(const struct engine_db *db)
{
    return engine_table_count(&db->keys);
}

#endif
