/* hash_impl.h - private to engine/value: the two forms of hashes.
 */
#ifndef ENGINE_VALUE_HASH_IMPL_H
#define ENGINE_VALUE_HASH_IMPL_H

#include "engine/value/hash.h"

/* The states in v->len of a hash. LOADING: it points to the state of hash_file.c; ZIPMAP: a zipmap
 * follows, of which nothing has arrived. */
enum engine_hash_form {
    ENGINE_HASH_PLAIN,
    ENGINE_HASH_TRIPLES,
    ENGINE_HASH_LOADING,
    ENGINE_HASH_ZIPMAP
};

/* ---- hash_table.c: HASHTABLE ---- */

void engine_hash_table_make(struct engine_value *v, uint64_t n);
void engine_hash_table_free(struct engine_hash *h);
void engine_hash_table_dup(struct engine_value *ret, struct engine_hash *h);
bool engine_hash_table_set(struct engine_hash *h, struct rd_slice field, struct rd_slice value,
                           enum engine_hash_mode mode);

/* Adds a field that does not exist; false: it exists. */
bool engine_hash_table_add(struct engine_hash *h, const struct engine_hash_pair *pair);

/* The same for many fields in a row; false can refer to an earlier one. Without a pair: adds those
 * that wait. */
bool engine_hash_table_queue(struct engine_hash *h, struct engine_table_queue *q,
                             const struct engine_hash_pair *pair);
bool engine_hash_table_delete(struct engine_hash *h, struct rd_slice field);
void engine_hash_table_expire(struct engine_hash *h, struct engine_field *f, int64_t expire_ms);
uint64_t engine_hash_table_expire_due(struct engine_hash *h, int64_t now_ms, engine_hash_due_fn fn,
                                      void *ctx);
void engine_hash_table_expire_some(struct engine_hash *h, int64_t now_ms, size_t n_buckets,
                                   engine_hash_due_fn fn, void *ctx, struct engine_hash_pass *ret);

/* ---- hash_pack.c: LISTPACK ---- */

/* Entries of the listpack for one field. */
static inline unsigned engine_hash_width(const struct engine_value *v)
{
    return v->len == ENGINE_HASH_TRIPLES ? 3 : 2;
}

/* The next entry, if it is known to exist. */
static inline uint8_t *engine_hash_after(uint8_t *p)
{
    return p + engine_lp_span(p);
}

/* The field after the one at p; NULL: p is the last. */
static inline uint8_t *engine_hash_pack_next(const struct engine_value *v, uint8_t *p)
{
    for (unsigned i = 0; i < engine_hash_width(v); i++)
        p = engine_hash_after(p);
    return *p == ENGINE_LP_END ? NULL : p;
}

/* The position of a field's name, or NULL. */
uint8_t *engine_hash_pack_find(const struct engine_value *v, struct rd_slice field);
void engine_hash_pack_pair(const struct engine_value *v, uint8_t *p, struct engine_hash_pair *ret);

/* Adds a field that does not exist at the end or, if it expires, in its place. Only triples have
 * fields that expire. */
void engine_hash_pack_add(struct engine_value *v, const struct engine_hash_pair *pair);
bool engine_hash_pack_set(struct engine_value *v, struct rd_slice field, struct rd_slice value,
                          enum engine_hash_mode mode);
void engine_hash_pack_delete(struct engine_value *v, uint8_t *p);

/* Changes the time of the field at p of triples, and its place. */
void engine_hash_pack_expire(struct engine_value *v, uint8_t *p, int64_t expire_ms);
void engine_hash_pack_to_triples(struct engine_value *v);
uint64_t engine_hash_pack_expire_due(struct engine_value *v, int64_t now_ms, engine_hash_due_fn fn,
                                     void *ctx);

/* Makes it a table. False: a duplicate field, which files can have; the first one counts. */
bool engine_hash_pack_to_table(struct engine_value *v);

/* ---- hash_file.c ---- */

bool engine_hash_file_load(struct engine_value *v, const struct rdb_event *ev,
                           const struct engine_config *config, struct rd_err *err);
bool engine_hash_file_save(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err);

/* Makes a hash of the remains of a failed load. */
void engine_hash_file_abort(struct engine_value *v);

#endif
