/* hash.h - the values of hashes: LISTPACK while fields are few and short, else HASHTABLE.
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
 * Fields may expire, as they do from Redis 7.4 on. A packed hash that once had such a field is a
 * listpack of (field, value, Unix time in ms or 0), in the order of times, those without at the
 * end; others are listpacks of (field, value). Nothing here looks at a clock: fields that are due
 * are there until engine_hash_expire_due() takes them out.
 *
 * A hash becomes a table when it gets more fields than hash-max-listpack-entries or a text longer
 * than hash-max-listpack-value, and stays one. Names of fields are shorter than 2 GiB, values than
 * 4 GiB.
 */
#ifndef ENGINE_VALUE_HASH_H
#define ENGINE_VALUE_HASH_H

#include "engine/listpack.h"
#include "engine/table.h"
#include "engine/value.h"

/* The latest time at which a field can expire: files have 46 bits for it. */
#define ENGINE_HASH_EXPIRE_MAX ((INT64_C(1) << 46) - 1)
#define ENGINE_HASH_NO_EXPIRE  RDB_NO_EXPIRE

/* An item of the table: the name, the value and, where it has one, 8 bytes of expiry. */
struct engine_field {
    uint32_t name_len : 31;
    uint32_t expires : 1;
    uint32_t value_len;
    uint8_t bytes[];
};

struct engine_hash {
    struct engine_table fields;
    uint64_t n_expiring;
    int64_t next_ms; /* nothing expires before; only where n_expiring > 0 */

    /* A pass over the fields that continues from call to call. */
    uint64_t pass_cursor;
    int64_t pass_next_ms; /* as next_ms, of what it has gone past */
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

/* False: there is no such field. *ret lies in the hash, or its digits in tmp. */
bool engine_hash_get(const struct engine_value *v, struct rd_slice field, struct rd_slice *ret,
                     char tmp[RD_NUM_I64_MAX]);
bool engine_hash_has(const struct engine_value *v, struct rd_slice field);

/* What happens to the expiry of a field that gets another value. */
enum engine_hash_mode { ENGINE_HASH_REPLACE, ENGINE_HASH_KEEP_EXPIRE };

/* Makes it a table where one of these texts is too long for a listpack, or all of them together:
 * commands do so with all their arguments first. */
void engine_hash_prepare(struct engine_value *v, size_t n, const struct rd_slice *texts,
                         const struct engine_config *config);

/* True: the field is new. The texts must not be the hash's own. */
bool engine_hash_set(struct engine_value *v, struct rd_slice field, struct rd_slice value,
                     enum engine_hash_mode mode, const struct engine_config *config);

/* False: there was no such field. The text must not be the hash's own. */
bool engine_hash_delete(struct engine_value *v, struct rd_slice field);

uint64_t engine_hash_count(const struct engine_value *v);

/* A pair chosen by 64 random bits, of a hash that is not empty. The digits lie in *ret. */
void engine_hash_random(const struct engine_value *v, uint64_t random,
                        struct engine_hash_pair *ret);

/* All pairs: the order is that of the listpack, or none. The hash must not change meanwhile. */
struct engine_hash_iter {
    const struct engine_value *v;
    uint8_t *next;
    struct engine_table_iter table;
};

void engine_hash_iter_begin(struct engine_hash_iter *it, const struct engine_value *v);

/* False: there are no more. *ret lives until the hash changes, its digits as long as *ret. */
bool engine_hash_iter_next(struct engine_hash_iter *it, struct engine_hash_pair *ret);

/* Must follow, also when not all pairs were looked at. */
void engine_hash_iter_end(struct engine_hash_iter *it);

/* ---- expiry ---- */

/* False: there is no such field. *ret: ENGINE_HASH_NO_EXPIRE: it does not expire. */
bool engine_hash_get_expire(const struct engine_value *v, struct rd_slice field, int64_t *ret);

/* Sets the expiry of a field that is there, 1 to ENGINE_HASH_EXPIRE_MAX, or takes it off. */
void engine_hash_expire(struct engine_value *v, struct rd_slice field, int64_t expire_ms);

/* When the next field expires, or earlier; ENGINE_HASH_NO_EXPIRE: none does. Constant time. */
int64_t engine_hash_next_expire(const struct engine_value *v);

/* The packed form with times: "listpackex" is its name. */
bool engine_hash_is_triples(const struct engine_value *v);

/* Takes out all fields whose time is before now_ms; each is handed to fn first. Looks at all fields
 * of a table, so ask engine_hash_next_expire() before. Returns how many. */
typedef void (*engine_hash_due_fn)(void *ctx, struct rd_slice field);
uint64_t engine_hash_expire_due(struct engine_value *v, int64_t now_ms, engine_hash_due_fn fn,
                                void *ctx);

/* The same for those who have little time: of a table n_buckets are looked at, from where the last
 * call ended. Returns how many fields were taken out, as *ret says too. */
struct engine_hash_pass {
    uint64_t n_seen;
    uint64_t n_taken;
    bool whole; /* nothing is left to look at */
};

uint64_t engine_hash_expire_some(struct engine_value *v, int64_t now_ms, size_t n_buckets,
                                 engine_hash_due_fn fn, void *ctx, struct engine_hash_pass *ret);

#endif
