/* place.h - a target with repositories in memory, and sets in them.
 *
 *     struct place place;
 *     place_init(&place);
 *     place_take(&place, files, n_files, n_keys);
 *     struct bucket_object *object = place_find(&place, 0, "dump.rdb");
 *     ... damage its bytes, or place.faults.per_mille = 1000 ...
 *     place_done(&place);
 *
 * Functions assert that they succeed.
 */
#ifndef TESTS_BACKUP_PLACE_H
#define TESTS_BACKUP_PLACE_H

#include "backup/take.h"
#include "tests/sim/bucket.h"

enum { PLACE_BUCKETS = 2 };

struct place {
    struct backup_config config;
    struct bucket buckets[PLACE_BUCKETS];
    struct bucket_faults faults;
    struct backup_open open;
    char id[ARCHIVE_ID_MAX]; /* of the newest set */
};

struct place_file {
    const char *name;
    enum archive_role role;
    struct rd_slice bytes;
};

void place_init(struct place *place);
void place_done(struct place *place);

/* Closes the repositories, which gives up their locks, and opens them again. */
void place_reopen(struct place *place);

void place_take(struct place *place, const struct place_file *files, size_t n, uint64_t n_keys);

/* The object of the newest set whose name has this part; NULL: there is none. */
struct bucket_object *place_find(struct place *place, size_t i, const char *part);
/* Changes a byte in the middle of an object of the newest set. */
void place_flip(struct place *place, size_t i, const char *part);

/* ---- contents ---- */

/* A snapshot with n keys "k0", "k1", … of database 0. */
void place_put_snapshot(struct rd_buf *ret, unsigned n);
/* Appends a command. NULL ends the words. */
void place_put_command(struct rd_buf *ret, const char *word, ...);

#endif
