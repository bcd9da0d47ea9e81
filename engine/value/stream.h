/* stream.h - streams: entries with increasing IDs, and the groups that read them.
 *
 *     struct engine_value v = engine_stream_value();
 *     struct rd_slice pairs[] = {rd_slice_str("field"), rd_slice_str("value")};
 *     engine_stream_append(v.u.stream, config, id, 1, pairs);
 *     struct engine_stream_iter it;
 *     engine_stream_iter_begin(&it, v.u.stream, start, end, false);
 *     while (engine_stream_iter_next(&it))
 *         for (uint64_t i = 0; i < it.n_fields; i++) {
 *             struct engine_lp_item field, value;
 *             engine_stream_iter_field(&it, &field, &value);
 *             use(it.id, field, value);
 *         }
 *
 * Entries are in nodes: listpacks stored under the ID of their first entry, with the content of
 * those in servers and RDB files, so that DUMP gives the same bytes and trimming by nodes removes
 * the same entries:
 *
 *     live  deleted  fields  name*  0              the names are those of the first entry
 *     flags  ms  seq  value*  size                 an entry with these fields (flag 2)
 *     flags  ms  seq  fields  { name value }*  size    any other
 *
 * IDs are relative to that of the node, and size is the number of elements of the previous entry.
 * Deleting sets flag 1; a node without live entries is removed. An entry goes into the last node
 * unless that is full (stream-node-max-bytes, stream-node-max-entries, including deleted entries).
 *
 * Adding takes constant time, trimming constant time per node, an entry by its ID O(log n) and a
 * walk in its node. Nodes and pending entries are in engine/value/stream_map.h.
 */
#ifndef ENGINE_VALUE_STREAM_H
#define ENGINE_VALUE_STREAM_H

#include "engine/listpack.h"
#include "engine/value.h"
#include "engine/value/stream_map.h"

enum {
    ENGINE_STREAM_DELETED = 1,
    ENGINE_STREAM_SAME_FIELDS = 2,
    ENGINE_STREAM_ENTRY_MAX = 1 << 30, /* bytes of the text of one entry */
    ENGINE_STREAM_ID_MAX = 41          /* bytes of an ID as text */
};

#define ENGINE_STREAM_UNREAD (-1) /* entries_read: unknown */

#define ENGINE_STREAM_ID_ZERO ((struct rdb_stream_id){0, 0})
#define ENGINE_STREAM_ID_LAST ((struct rdb_stream_id){UINT64_MAX, UINT64_MAX})

/* Named objects, ordered by name. Each begins with a struct rd_slice, its name. */
struct engine_stream_names {
    void **items;
    size_t n;
    size_t cap;
};

struct engine_stream_consumer {
    struct rd_slice name; /* its bytes follow the struct */
    int64_t seen_ms;
    int64_t active_ms; /* from a file of type 21 or later, until it is seen again; RDB_NO_EXPIRE */
    struct engine_stream_map pending; /* IDs only: the entries are in the group's map */
};

/* A pending entry: delivered and not acknowledged. */
struct engine_stream_pending {
    int64_t delivery_ms;
    uint64_t delivery_count;
    struct engine_stream_consumer *consumer; /* NULL only while a file is loaded */
};

struct engine_stream_group {
    struct rd_slice name; /* its bytes follow the struct */
    struct rdb_stream_id last_id;
    int64_t entries_read;             /* or ENGINE_STREAM_UNREAD */
    struct engine_stream_map pending; /* of struct engine_stream_pending */
    struct engine_stream_names consumers;
};

struct engine_stream_loading; /* private to stream_file.c */
struct engine_stream_idmp;    /* engine/value/stream_idmp.h */

struct engine_stream {
    struct engine_stream_map nodes; /* of uint8_t *, listpacks */
    uint64_t length;
    uint64_t entries_added;
    struct rdb_stream_id last_id;
    struct rdb_stream_id first_id; /* of the first live entry; zeros if there is none */
    struct rdb_stream_id max_deleted_id;
    struct engine_stream_names groups;
    struct engine_stream_idmp *idmp; /* NULL: its producers are not remembered, or never were */
    struct engine_stream_loading *loading;
};

/* An empty stream as a value to be stored under a key. */
struct engine_value engine_stream_value(void);

void engine_stream_free(struct engine_stream *stream);
struct engine_stream *engine_stream_dup(const struct engine_stream *stream);

/* ---- ids ---- */

static inline bool engine_stream_id_is_zero(struct rdb_stream_id id)
{
    return id.ms == 0 && id.seq == 0;
}

/* "ms-seq"; returns its length. */
size_t engine_stream_id_text(char dst[ENGINE_STREAM_ID_MAX], struct rdb_stream_id id);

/* The next or previous ID. False: there is none, and it becomes the first, or last. */
bool engine_stream_id_up(struct rdb_stream_id *id);
bool engine_stream_id_down(struct rdb_stream_id *id);

/* ---- entries ---- */

/* Adds an entry whose ID is greater than last_id, with at most ENGINE_STREAM_ENTRY_MAX bytes of
 * text. pairs: field and value in turn. */
void engine_stream_append(struct engine_stream *stream, const struct engine_config *config,
                          struct rdb_stream_id id, size_t n_fields, const struct rd_slice *pairs);

/* Removes an entry; the caller updates first_id and max_deleted_id. False: not found. */
bool engine_stream_delete(struct engine_stream *stream, struct rdb_stream_id id);

/* What becomes of the pending entries of groups when their entry is removed; from Redis 8.2 on. */
enum engine_stream_refs {
    ENGINE_STREAM_KEEP_REFS,
    ENGINE_STREAM_DROP_REFS,
    ENGINE_STREAM_ACKED /* an entry that a group has not read and acknowledged is not removed */
};

/* Prepares the removal of an entry. False: it must not be removed. */
bool engine_stream_may_remove(struct engine_stream *stream, struct rdb_stream_id id,
                              enum engine_stream_refs refs);

struct engine_stream_trim {
    enum engine_stream_refs refs; /* unless it is to keep them, nodes are trimmed entry by entry */
    bool by_id;                   /* else by length */
    bool approx;                  /* whole nodes only */
    uint64_t limit;               /* maximum number of entries; 0: no limit */
    uint64_t max_len;             /* entries to keep */
    struct rdb_stream_id min_id;  /* older entries are removed */
};

/* Removes entries from the front and updates first_id; returns their number. */
uint64_t engine_stream_trim(struct engine_stream *stream, const struct engine_stream_trim *trim);

/* The first or last entry; `tombstones` includes deleted ones that are still in their nodes.
 * Without entries, the greatest ID, or zeros. */
struct rdb_stream_id engine_stream_edge(const struct engine_stream *stream, bool first,
                                        bool tombstones);

bool engine_stream_has(const struct engine_stream *stream, struct rdb_stream_id id);

/* The number of radix tree nodes that servers would have for `nodes`, which XINFO shows. */
uint64_t engine_stream_radix_nodes(const struct engine_stream *stream);

/* ---- entries in turn ---- */

struct engine_stream_iter {
    struct rdb_stream_id id; /* of the entry */
    uint64_t n_fields;
    uint64_t flags;

    /* Private. */
    const struct engine_stream *stream;
    struct rdb_stream_id start, end;
    struct engine_stream_map_pos pos; /* of the node */
    bool reverse, tombstones;
    bool ready;    /* the node at pos was not opened yet */
    bool any;      /* a node exists at pos */
    uint8_t *lp;   /* NULL: between nodes */
    uint8_t *head; /* flags of the entry */
    uint8_t *p;    /* the next element to read */
    uint8_t *names, *name;
    struct rdb_stream_id node_id;
    uint64_t n_names;
    uint64_t left; /* fields not read yet */
};

/* Iterates over entries from start to end, both included, or from end to start. The stream must not
 * change. */
void engine_stream_iter_begin(struct engine_stream_iter *it, const struct engine_stream *stream,
                              struct rdb_stream_id start, struct rdb_stream_id end, bool reverse);

/* False: the end; do not call it again. */
bool engine_stream_iter_next(struct engine_stream_iter *it);

/* False: an entry has an ID that is not greater than the one before. Snapshots of damaged data can
 * contain such streams. Deleted entries are not compared. O(n). */
bool engine_stream_in_order(const struct engine_stream *stream);

/* The next field of the entry, n_fields times at most. */
void engine_stream_iter_field(struct engine_stream_iter *it, struct engine_lp_item *ret_field,
                              struct engine_lp_item *ret_value);

/* ---- groups ---- */

/* Adds a zeroed object of this size, which begins with its name; NULL: the name exists. O(log n),
 * and moves the pointers to later ones. */
void *engine_stream_name_add(struct engine_stream_names *names, size_t size, struct rd_slice name);

/* NULL: not found. O(log n). */
void *engine_stream_name_find(const struct engine_stream_names *names, struct rd_slice name);

/* NULL: it exists already. O(log n), and moves the pointers to later ones. */
struct engine_stream_group *engine_stream_group_add(struct engine_stream *stream,
                                                    struct rd_slice name,
                                                    struct rdb_stream_id last_id,
                                                    int64_t entries_read);
struct engine_stream_consumer *engine_stream_consumer_add(struct engine_stream_group *group,
                                                          struct rd_slice name, int64_t seen_ms);

void engine_stream_group_remove(struct engine_stream *stream, struct engine_stream_group *group);

/* Including its pending entries. */
void engine_stream_consumer_remove(struct engine_stream_group *group,
                                   struct engine_stream_consumer *consumer);

static inline struct engine_stream_group *
engine_stream_group_find(const struct engine_stream *stream, struct rd_slice name)
{
    return engine_stream_name_find(&stream->groups, name);
}

static inline struct engine_stream_consumer *
engine_stream_consumer_find(const struct engine_stream_group *group, struct rd_slice name)
{
    return engine_stream_name_find(&group->consumers, name);
}

static inline struct engine_stream_group *engine_stream_group_at(const struct engine_stream *stream,
                                                                 size_t i)
{
    return stream->groups.items[i];
}

static inline struct engine_stream_consumer *
engine_stream_consumer_at(const struct engine_stream_group *group, size_t i)
{
    return group->consumers.items[i];
}

/* NULL: the entry is not pending. Invalid after the next change of pending entries. */
static inline struct engine_stream_pending *
engine_stream_pending_find(const struct engine_stream_group *group, struct rdb_stream_id id)
{
    return engine_stream_map_find(&group->pending, id);
}

/* Makes the entry pending for this consumer only. A new one has zeros in delivery_ms and
 * delivery_count. O(log n). */
struct engine_stream_pending *engine_stream_pending_give(struct engine_stream_group *group,
                                                         struct rdb_stream_id id,
                                                         struct engine_stream_consumer *consumer);

/* False: it was not pending. O(log n). */
bool engine_stream_pending_drop(struct engine_stream_group *group, struct rdb_stream_id id);

/* The number of entries ever added up to this ID, if it is known; else ENGINE_STREAM_UNREAD. */
int64_t engine_stream_entries_to(const struct engine_stream *stream, struct rdb_stream_id id);

/* Whether an entry from `from` on, not older than the first one, was deleted. */
bool engine_stream_gaps_from(const struct engine_stream *stream, struct rdb_stream_id from);

/* The number of entries that the group has not read; false: unknown. */
bool engine_stream_lag(const struct engine_stream *stream, const struct engine_stream_group *group,
                       int64_t *ret);

/* ---- files ---- */

bool engine_stream_load(struct engine_value *v, const struct rdb_event *ev,
                        const struct engine_config *config, struct rd_err *err);
bool engine_stream_save(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err);
void engine_stream_loading_free(struct engine_stream_loading *loading);

#endif
