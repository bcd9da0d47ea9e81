/* templates.h - private to the reader: the field names that hashes of Redis 8.10 share.
 *
 * A template is an ascending list of names with an id. In the file, templates precede the keys that
 * refer to them.
 *
 *     struct rdb_templates *templates = rdb_templates_new();
 *     struct rdb_names names;
 *     rdb_templates_begin(templates, id, offset);
 *     rdb_templates_add_name(templates, name, max);   // for each name
 *     rdb_templates_end(templates);
 *     if (rdb_templates_find(templates, id, &names))
 *         ... rdb_names_get(&names, 0) ...
 *
 * The readers of several threads can share templates: rdb_templates_share() counts the owners, and
 * the owner that wants to add one first makes a copy for itself.
 */
#ifndef RDB_READ_TEMPLATES_H
#define RDB_READ_TEMPLATES_H

#include "base/buf.h"
#include "base/err.h"

enum { TEMPLATE_IDS = 1 << 21 /* ids are below; servers number templates from 0 on */ };

struct rdb_templates;

/* The names of one template. */
struct rdb_names {
    const struct rdb_templates *of;
    size_t first;
    size_t n;
};

struct rdb_templates *rdb_templates_new(void);
struct rdb_templates *rdb_templates_share(struct rdb_templates *templates);
void rdb_templates_free(struct rdb_templates *templates);

/* Replaces *templates by a copy if others own it as well. */
bool rdb_templates_own(struct rdb_templates **templates);

/* Forgets everything, for the names of a single value. */
void rdb_templates_reset(struct rdb_templates *templates);

/* A template that is not ended does not count. False: memory is exhausted. */
bool rdb_templates_begin(struct rdb_templates *templates, uint64_t id, uint64_t offset);
enum rd_err_code rdb_templates_add_name(struct rdb_templates *templates, struct rd_slice name,
                                        size_t max);
/* More bytes of the last name. */
enum rd_err_code rdb_templates_extend_name(struct rdb_templates *templates, struct rd_slice bytes,
                                           size_t max);
void rdb_templates_end(struct rdb_templates *templates);

/* The names added since rdb_templates_begin(). */
struct rdb_names rdb_templates_open(const struct rdb_templates *templates);

/* The number of templates, and the offset of the one with this id. */
size_t rdb_templates_count(const struct rdb_templates *templates);
bool rdb_templates_find(const struct rdb_templates *templates, uint64_t id, struct rdb_names *ret);
uint64_t rdb_templates_offset(const struct rdb_templates *templates, uint64_t id);
/* The same for the i-th one. */
uint64_t rdb_templates_place(const struct rdb_templates *templates, size_t i);

/* Forgets the templates after the first n. */
void rdb_templates_cut(struct rdb_templates *templates, size_t n);

struct rd_slice rdb_names_get(const struct rdb_names *names, size_t i);

/* Whether the names ascend by length, and by bytes for equal lengths. */
bool rdb_names_ascend(const struct rdb_names *names);

#endif
