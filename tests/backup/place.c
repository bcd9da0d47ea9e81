#include "tests/backup/place.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct rd_err err;

/* ---- repositories ---- */

static void open_all(struct place *place)
{
    struct backup_open *open = &place->open;
    place->faults.life++;
    *open = (struct backup_open){.target = &place->config.targets[0], .n = PLACE_BUCKETS};
    for (size_t i = 0; i < PLACE_BUCKETS; i++) {
        open->stores[i] = bucket_open(&place->buckets[i], &place->faults);
        cr_assert_not_null(open->stores[i]);
        open->repos[i] = (struct archive_repo){
            .store = open->stores[i], .target = open->target->name, .ring = &open->keys.ring};
    }
}

void place_init(struct place *place)
{
    static const char *const where[PLACE_BUCKETS] = {"/nowhere/1", "/nowhere/2"};
    *place = (struct place){.faults.seed = 1};
    for (size_t i = 0; i < PLACE_BUCKETS; i++)
        cr_assert(backup_config_set(&place->config, BACKUP_KEY_REPOSITORY, where[i], &err));
    cr_assert(backup_config_set(&place->config, BACKUP_KEY_LOCK_WAIT, "0s", &err));
    cr_assert(backup_config_load(&place->config, NULL, NULL, 0, &err), "%s", err.text);
    open_all(place);
}

static void close_all(struct place *place)
{
    backup_close(&place->open);
    for (size_t i = 0; i < PLACE_BUCKETS; i++)
        bucket_bury(&place->buckets[i], &place->faults);
}

void place_reopen(struct place *place)
{
    close_all(place);
    open_all(place);
}

void place_done(struct place *place)
{
    close_all(place);
    for (size_t i = 0; i < PLACE_BUCKETS; i++)
        bucket_done(&place->buckets[i]);
    backup_config_done(&place->config);
}

/* ---- sets ---- */

struct files {
    struct place *place;
    const struct place_file *files;
    size_t n;
    uint64_t n_keys;
};

static bool read_files(void *ctx, struct backup_set *set, struct rd_err *ret)
{
    const struct files *files = ctx;
    snprintf(files->place->id, sizeof files->place->id, "%s", set->m.id);
    set->m.keys = files->n_keys;
    for (size_t i = 0; i < files->n; i++) {
        const struct place_file *file = &files->files[i];
        if (!backup_set_file_begin(set, file->name, file->role, ret))
            return false;
        bool good = rd_sink_write(set->sink, file->bytes.ptr, file->bytes.len);
        if (!backup_set_file_end(set, good, ret))
            return false;
    }
    return true;
}

void place_take(struct place *place, const struct place_file *files, size_t n, uint64_t n_keys)
{
    struct files all = {.place = place, .files = files, .n = n, .n_keys = n_keys};
    const struct backup_job job = {.tool = "test", .read = read_files, .ctx = &all};
    struct backup_set set = {.open = &place->open};
    place_reopen(place);
    cr_assert(backup_take(NULL, &job, &set, &err), "%s", err.text);
    backup_set_done(&set);
    place_reopen(place);
}

struct bucket_object *place_find(struct place *place, size_t i, const char *part)
{
    struct bucket *bucket = &place->buckets[i];
    for (size_t k = 0; k < bucket->n; k++)
        if (strstr(bucket->objects[k].name, place->id) != NULL &&
            strstr(bucket->objects[k].name, part) != NULL)
            return &bucket->objects[k];
    return NULL;
}

void place_flip(struct place *place, size_t i, const char *part)
{
    struct bucket_object *object = place_find(place, i, part);
    cr_assert_not_null(object, "%s", part);
    object->bytes.ptr[object->bytes.len / 2] ^= 0x55;
}

/* ---- contents ---- */

void place_put_snapshot(struct rd_buf *ret, unsigned n)
{
    static const uint8_t end[] = {0xff, 0, 0, 0, 0, 0, 0, 0, 0};
    char record[40];
    cr_assert(rd_buf_add(ret, "REDIS0009\xfe", 10) && rd_buf_add(ret, "\0", 1));
    for (unsigned i = 0; i < n; i++) {
        char key[12];
        int len = snprintf(key, sizeof key, "k%u", i);
        int size = snprintf(record, sizeof record, "%c%c%s\x05value", 0, len, key);
        cr_assert(rd_buf_add(ret, record, (size_t)size));
    }
    cr_assert(rd_buf_add(ret, end, sizeof end));
}

void place_put_command(struct rd_buf *ret, const char *word, ...)
{
    char text[200];
    size_t n = 0;
    va_list args;
    va_start(args, word);
    for (const char *w = word; w != NULL; w = va_arg(args, const char *))
        n++;
    va_end(args);
    int len = snprintf(text, sizeof text, "*%zu\r\n", n);
    cr_assert(rd_buf_add(ret, text, (size_t)len));
    va_start(args, word);
    for (const char *w = word; w != NULL; w = va_arg(args, const char *)) {
        len = snprintf(text, sizeof text, "$%zu\r\n%s\r\n", strlen(w), w);
        cr_assert(rd_buf_add(ret, text, (size_t)len));
    }
    va_end(args);
}
