/* hash.h - hash values: LISTPACK while fields are few and short, else HASHTABLE.
 *
 *     struct engine_value v = engine_hash_new();
 *     engine_hash_set(&v, field, value, ENGINE_HASH_REPLACE, config);
 *     char tmp[RD_NUM_I64_MAX];
 *     struct rd_slice text;
 *     if (engine_hash_get(&v, field, &text, tmp))
 *         ...
 *     struct engine_hash_iter it;
 *     struct engine_hash_pair pair;
 *     engine_hash_iter_begin(&it, &v);
 *     while (engine_hash_iter_next(&it, &pair))
 *         ... pair.field, pair.value, pair.expire_ms ...
 *     engine_hash_iter_end(&it);
 *
 * Fields can expire, as in Redis 7.4 and later. A packed hash that has ever had such a field is a
 * listpack of (field, value, Unix time in ms or 0), ordered by time, fields without expiry last;
 * others are listpacks of (field, value). This code has no clock: expired fields exist until
 * engine_hash_expire_due() removes them.
 *
 * A hash becomes a table when it gets more fields than hash-max-listpack-entries or a text longer
 * than hash-max-listpack-value, and stays one. Field names are shorter than 2 GiB, values shorter
 * than 4 GiB.
 */
#ifndef ENGINE_VALUE_HASH_H
#define ENGINE_VALUE_HASH_H

#include "engine/listpack.h"
#include "engine/table.h"
#include "engine/value.h"

/* The latest expiry of a field: files have 46 bits for it. */
#define ENGINE_HASH_EXPIRE_MAX ((INT64_C(1) << 46) - 1)
#define ENGINE_HASH_NO_EXPIRE  RDB_NO_EXPIRE

/* An item of the table: the name, the value and, with an expiry, 8 more bytes. */
struct engine_field {
    uint32_t name_len : 31;
    uint32_t expires : 1;
    uint32_t value_len;
    uint8_t bytes[];
};

struct engine_hash {
    struct engine_table fields;
    uint64_t n_expiring;
    int64_t next_ms; /* no field expires before; valid if n_expiring > 0 */

    /* A pass over the fields that resumes with each call. */
    uint64_t pass_cursor;
    int64_t pass_next_ms; /* like next_ms, for the fields already visited */
};

struct engine_hash_pair {
    struct rd_slice field;
    struct rd_slice value;
    int64_t expire_ms; /* or ENGINE_HASH_NO_EXPIRE */
    char tmp[2][RD_NUM_I64_MAX];
};

void engine_field_pair(const struct engine_field *f, struct engine_hash_pair *ret);

/* An empty LISTPACK. */
struct engine_value engine_hash_new(void);

/* False: the field does not exist. *ret points into the hash, or its digits into tmp. */
bool engine_hash_get(const struct engine_value *v, struct rd_slice field, struct rd_slice *ret,
                     char tmp[RD_NUM_I64_MAX]);
bool engine_hash_has(const struct engine_value *v, struct rd_slice field);

/* The effect of a new value on the expiry of a field. */
enum engine_hash_mode { ENGINE_HASH_REPLACE, ENGINE_HASH_KEEP_EXPIRE };

/* Makes it a table if one of these texts, or all together, are too long for a listpack. Commands
 * call it with all their arguments first. */
void engine_hash_prepare(struct engine_value *v, size_t n, const struct rd_slice *texts,
                         const struct engine_config *config);

/* True: the field is new. The texts must not be in the hash. */
bool engine_hash_set(struct engine_value *v, struct rd_slice field, struct rd_slice value,
                     enum engine_hash_mode mode, const struct engine_config *config);

/* False: the field did not exist. The text must not be in the hash. */
bool engine_hash_delete(struct engine_value *v, struct rd_slice field);

uint64_t engine_hash_count(const struct engine_value *v);

/* A pair chosen by 64 random bits, from a hash that is not empty. *ret holds the digits. */
void engine_hash_random(const struct engine_value *v, uint64_t random,
                        struct engine_hash_pair *ret);

/* Iterates over all pairs, in listpack order or none. The hash must not change meanwhile. */
struct engine_hash_iter {
    const struct engine_value *v;
    uint8_t *next;
    struct engine_table_iter table;
};

void engine_hash_iter_begin(struct engine_hash_iter *it, const struct engine_value *v);

/* False: the end. *ret is valid until the hash changes, its digits as long as *ret. */
bool engine_hash_iter_next(struct engine_hash_iter *it, struct engine_hash_pair *ret);

/* Required after iterating, even if pairs remain. */
void engine_hash_iter_end(struct engine_hash_iter *it);

/* ---- expiry ---- */

/* False: the field does not exist. *ret: ENGINE_HASH_NO_EXPIRE: it does not expire. */
bool engine_hash_get_expire(const struct engine_value *v, struct rd_slice field, int64_t *ret);

/* Sets the expiry of an existing field, 1 to ENGINE_HASH_EXPIRE_MAX, or removes it. */
void engine_hash_expire(struct engine_value *v, struct rd_slice field, int64_t expire_ms);

/* The next expiry of a field, or an earlier time; ENGINE_HASH_NO_EXPIRE: none. Constant time. */
int64_t engine_hash_next_expire(const struct engine_value *v);

/* The packed form with times, named "listpackex". */
bool engine_hash_is_triples(const struct engine_value *v);

/* Removes all fields with a time before now_ms; each is passed to fn first. Visits all fields of a
 * table, so check engine_hash_next_expire() before. Returns the number of fields. */
typedef void (*engine_hash_due_fn)(void *ctx, struct rd_slice field);
uint64_t engine_hash_expire_due(struct engine_value *v, int64_t now_ms, engine_hash_due_fn fn,
                                void *ctx);

/* The same in steps: visits n_buckets of a table, from the end of the last call on. Returns the
 * number of removed fields, also in *ret. */
struct engine_hash_pass {
    uint64_t n_seen;
    uint64_t n_taken;
    bool whole; /* all fields were visited */
};

uint64_t engine_hash_expire_some(struct engine_value *v, int64_t now_ms, size_t n_buckets,
                                 engine_hash_due_fn fn, void *ctx, struct engine_hash_pass *ret);

#endif
