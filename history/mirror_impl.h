/* mirror_impl.h - private to mirror*.c: one value that follows the engine, by type. */
#ifndef HISTORY_MIRROR_IMPL_H
#define HISTORY_MIRROR_IMPL_H

#include "history/ask.h"
#include "history/mirror.h"

/* A mirror that belongs to no set; history_mirror_free(). */
struct history_mirror *history_mirror_make(unsigned db, struct rd_slice name, struct rd_err *err);
/* It has no value any more. */
void history_mirror_empty(struct history_mirror *m);
/* The mirror of a key, a new one if there is none. NULL: RD_ERR_MEMORY. */
struct history_mirror *history_mirrors_get(struct history_mirrors *mirrors, unsigned db,
                                           struct rd_slice name, struct rd_err *err);
/* Makes the table of mirrors anew, with so many slots. */
bool history_mirrors_fill_slots(struct history_mirrors *mirrors, size_t n_slots);
bool history_mirrors_add_writer(struct history_mirrors *mirrors, const struct history_visit *visit,
                                uint32_t *ret, struct rd_err *err);

/* A mirror follows a command, or (line NULL) is compared with the engine. */
struct follow {
    struct history_mirrors *mirrors;
    struct history_mirror *m;
    struct rebuild_data *data;
    const struct rebuild_line *line; /* NULL, also of commands that do not name the key */
    size_t key;                      /* its argument */
    uint32_t writer;
    bool replaced; /* the command says what the key is, whatever it was */
    bool whole;    /* so everything that is there was written by it, or the key was absent */
    struct rd_err *err;
};

/* Brings a mirror up to the engine. */
bool history_follow(struct follow *f);
/* Removes all elements, one edit each. */
bool history_follow_clear(const struct follow *f);

bool history_follow_is(const struct follow *f, const char *command);
/* False: err is set, or the caller of the replay wants no more. */
bool history_follow_edit(const struct follow *f, const struct history_edit *edit);
/* A command about the key, such as "LLEN". */
bool history_follow_ask(const struct follow *f, struct history_answer *ret, const char *command,
                        const char *rest);
/* The only number of an answer. */
bool history_follow_number(const struct follow *f, const char *command, uint64_t *ret);

/* By type: brings the mirror up to the engine, with an edit for each difference. */
bool history_follow_string(const struct follow *f);
bool history_follow_map(const struct follow *f);
bool history_follow_list(const struct follow *f);
bool history_follow_stream(const struct follow *f);
bool history_follow_opaque(const struct follow *f);

/* An element of f->m->map, or (groups) of another map of the mirror: as it is now. */
bool history_follow_put(const struct follow *f, struct history_map *map, enum history_part_of of,
                        struct rd_slice name, struct rd_slice content, bool is_written);
bool history_follow_take(const struct follow *f, struct history_map *map, enum history_part_of of,
                         struct rd_slice name);

/* Elements of f->m->seq. */
bool history_follow_insert(const struct follow *f, size_t at, struct rd_slice name,
                           struct rd_slice content);
bool history_follow_cut(const struct follow *f, size_t at, size_t n);

#endif
