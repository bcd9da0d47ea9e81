#include "tests/archive/folder.h"

#include "base/buf.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct archive_store *folder_open(char path[64])
{
    struct archive_store *store;
    struct rd_err err = {0};
    strcpy(path, "/tmp/redoubt-archive-XXXXXX");
    cr_assert_not_null(mkdtemp(path));
    cr_assert(archive_store_open_posix(&store, path, false, &err), "%s", err.text);
    return store;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void folder_remove(struct archive_store *store, const char *path)
{
    archive_store_close(store);
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static uint64_t no_time(void)
{
    return 0;
}

static int64_t no_date(void)
{
    return 0;
}

struct archive_lock *folder_lock(struct archive_store *store)
{
    struct archive_lock *lock = calloc(1, sizeof *lock);
    const struct archive_lock_opts opts = {
        .self = {.id = "0123456789abcdef", .owner = "test"}, .now_ms = no_time, .wall_ms = no_date};
    struct rd_err err = {0};
    cr_assert(lock != NULL && archive_lock_init(lock, "t", ARCHIVE_LOCK_SETS, &opts, &err) &&
                  archive_lock_try(lock, store, &err),
              "%s", err.text);
    return lock;
}

void folder_unlock(struct archive_lock *lock, struct archive_store *store)
{
    archive_lock_drop(lock, store);
    archive_lock_done(lock);
    free(lock);
}

void folder_put(struct archive_store *store, const char *name, const char *text)
{
    struct rd_err err = {0};
    cr_assert(archive_store_write(store, name, rd_slice_str(text), &err), "%s", err.text);
}

char *folder_get(struct archive_store *store, const char *name)
{
    struct rd_buf buf = {0};
    struct rd_err err = {0};
    cr_assert(archive_store_read(store, name, 1 << 20, &buf, &err), "%s", err.text);
    cr_assert(rd_buf_add_byte(&buf, '\0'));
    char *text = strdup((const char *)buf.ptr);
    rd_buf_done(&buf);
    return text;
}

bool folder_has(const char *path, const char *name)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", path, name);
    return access(full, F_OK) == 0;
}

void folder_write(const char *path, const char *name, const void *bytes, size_t len)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", path, name);
    FILE *file = fopen(full, "wb");
    cr_assert_not_null(file, "%s", full);
    cr_assert_eq(fwrite(bytes, 1, len, file), len);
    cr_assert_eq(fclose(file), 0);
}
