#include "engine/trash.h"

#include "engine/trash_impl.h"

enum { WORTH_IT = 64 }; /* blocks */

struct engine_trash {
    struct engine_value value; /* a number if there is none */
    struct engine_db db;       /* its tables of keys: empty if there are none */
    uint64_t count;
    struct engine_mem freed; /* bytes changed by freeing it */
};

uint64_t engine_trash_count(const struct engine_trash *trash)
{
    return trash->count;
}

void engine_trash_free(struct engine_trash *trash)
{
    struct engine_mem before = engine_mem;
    engine_mem.kind = ENGINE_MEM_KEYS;
    engine_value_free(&trash->value);
    engine_db_done(&trash->db);
    for (int i = 0; i < ENGINE_MEM_KINDS; i++)
        trash->freed.bytes[i] = engine_mem.bytes[i] - before.bytes[i];
    engine_mem.kind = before.kind;
}

void engine_trash_done(struct engine *e, struct engine_trash *trash)
{
    for (int i = 0; i < ENGINE_MEM_KINDS; i++)
        e->mem.bytes[i] += trash->freed.bytes[i];
    engine_scratch_free(trash);
}

/* ---- what goes there ---- */

static struct engine_trash *new_trash(struct engine *e, uint64_t count)
{
    struct engine_trash *trash = engine_scratch_alloc(sizeof *trash);
    *trash = (struct engine_trash){.count = count};
    trash->value.type = ENGINE_STRING;
    trash->value.encoding = ENGINE_INT;
    engine_db_init(&trash->db, 0, e->seed);
    return trash;
}

static void hand_over(struct engine *e, struct engine_trash *trash)
{
    e->n_trashed++;
    e->hooks.trash(e->hooks.ctx, trash);
}

static bool worth_it(const struct engine *e, const struct engine_entry *entry, bool lazy)
{
    return lazy && e->hooks.trash != NULL && engine_value_effort(&entry->value) > WORTH_IT;
}

void engine_trash_entry(struct engine *e, struct engine_db *db, struct engine_entry *entry,
                        bool lazy)
{
    if (!worth_it(e, entry, lazy)) {
        engine_db_remove(db, entry, NULL);
        return;
    }
    struct engine_trash *trash = new_trash(e, 1);
    engine_db_remove(db, entry, &trash->value);
    hand_over(e, trash);
}

struct engine_entry *engine_trash_old(struct engine *e, struct engine_db *db,
                                      struct engine_entry *entry, bool lazy)
{
    if (!worth_it(e, entry, lazy))
        return entry;
    struct engine_trash *trash = new_trash(e, 1);
    struct engine_value number = {.type = ENGINE_STRING, .encoding = ENGINE_INT};
    entry = engine_db_replace(db, entry, &number, &trash->value);
    hand_over(e, trash);
    return entry;
}

uint64_t engine_trash_db(struct engine *e, struct engine_db *db, bool lazy)
{
    uint64_t count = engine_db_count(db);
    if (!lazy || e->hooks.trash == NULL || count == 0)
        return engine_db_clear(db);
    struct engine_trash *trash = new_trash(e, count);
    engine_db_give(db, &trash->db, e->seed);
    hand_over(e, trash);
    return count;
}
