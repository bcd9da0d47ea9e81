/* parent_impl.h - private to chunks/: the set whose chunks a new one uses.
 */
#ifndef CHUNKS_PARENT_IMPL_H
#define CHUNKS_PARENT_IMPL_H

#include "chunks/chunks.h"
#include "chunks/fetch_impl.h"
#include "chunks/state_impl.h"

/* What is in TARGET/chunks/. */
struct chunks_object {
    char name[ARCHIVE_NAME_MAX]; /* from the folder on: "ID-0001.pack" */
    uint64_t bytes;
};

struct chunks_inventory {
    struct chunks_object *objects; /* by name */
    size_t n;
};

bool chunks_inventory_read(struct archive_repo *repo, struct chunks_inventory *ret,
                           struct rd_err *err);
const struct chunks_object *chunks_inventory_find(const struct chunks_inventory *inv,
                                                  const char *pack, const char *suffix);
void chunks_inventory_done(struct chunks_inventory *inv);

/* Reads the recipe of a file of a set. */
bool chunks_recipe_read(struct archive_repo *repo, const struct archive_set *set,
                        const struct archive_file *file, const struct rd_seal_ring *ring,
                        struct chunks_recipe *ret, struct rd_err *err);

/* Writes the recipe of file->name as file->object of a set; file->stored is set. */
bool chunks_recipe_write(struct archive_repo *repo, const char *id, struct archive_file *file,
                         const struct rd_seal_key *key,
                         bool (*draw)(void *ret, size_t size, struct rd_err *err),
                         const struct chunks_recipe *r, struct rd_err *err);

/* Whether a new set with this key (NULL: none) may use the chunks of a set. */
bool chunks_parent_has_key(const struct archive_set *set, const struct rd_seal_key *key);

struct chunks_parent {
    struct archive_set *set; /* NULL: there is none */
    const struct archive_file *file;
    struct chunks_recipe recipe; /* packs that were rewritten are replaced by those that have their
                                    chunks now */
    bool any_lost;               /* a pack is missing, or has another size */
    bool is_cached;              /* the state of opts->state is that of the recipe */
};

/* Chooses a parent. That there is none is no failure. */
bool chunks_parent_find(struct chunks_parent *ret, const struct chunks_opts *opts,
                        struct rd_err *err);
void chunks_parent_done(struct chunks_parent *parent);

/* Makes the state of a set from its chunks. */
bool chunks_parent_state(const struct chunks_parent *parent, const struct chunks_opts *opts,
                         struct spool *ret, struct rd_err *err);

#endif
