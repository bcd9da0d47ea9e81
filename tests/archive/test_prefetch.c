#include "archive/prefetch.h"

#include "base/buf.h"
#include "base/mem.h"
#include "tests/archive/folder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { OBJECTS = 200 };

static char path[64];
static struct archive_store *store;
static atomic_uint opened;
static unsigned usable;          /* how many connections can be opened */
static uint64_t longer[OBJECTS]; /* a listing that shows another size */

static void text_of(size_t i, char *dst, size_t size)
{
    int len = snprintf(dst, size, "object %zu", i);
    for (size_t n = (i * 37) % 90; n > 0; n--)
        dst[len++] = 'x';
    dst[len] = '\0';
}

static void begin(void)
{
    char name[40], text[200];
    store = folder_open(path);
    for (size_t i = 0; i < OBJECTS; i++) {
        text_of(i, text, sizeof text);
        snprintf(name, sizeof name, "t/%zu", i);
        folder_put(store, name, text);
    }
    opened = 0;
    usable = 100;
}

static void end(void)
{
    folder_remove(store, path);
}

TestSuite(prefetch, .init = begin, .fini = end);

static bool open_again(void *ctx, struct archive_store **ret, const atomic_bool *cancel,
                       struct rd_err *err)
{
    (void)ctx;
    (void)cancel;
    if (opened++ >= usable)
        return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "no more connections");
    return archive_store_open_posix(ret, path, false, err);
}

static bool object(void *ctx, size_t i, char ret_name[ARCHIVE_NAME_MAX], uint64_t *ret_size)
{
    char text[200];
    (void)ctx;
    text_of(i, text, sizeof text);
    *ret_size = strlen(text) + longer[i];
    snprintf(ret_name, ARCHIVE_NAME_MAX, "t/%zu", i);
    return true;
}

static struct archive_store *open_ahead(unsigned n_threads, size_t room)
{
    const struct archive_parallel parallel = {.open = open_again, .n = n_threads + 1};
    const struct archive_prefetch_opts opts = {
        .parallel = &parallel, .object = object, .n = OBJECTS, .room = room};
    struct archive_store *ahead;
    struct rd_err err = {0};
    cr_assert(archive_prefetch_open(&ahead, store, &opts, &err), "%s", err.text);
    return ahead;
}

static void expect_object(struct archive_store *ahead, size_t i)
{
    char name[40], text[200];
    text_of(i, text, sizeof text);
    snprintf(name, sizeof name, "t/%zu", i);
    char *got = folder_get(ahead, name);
    cr_expect_str_eq(got, text);
    free(got);
}

Test(prefetch, objects_are_those_of_the_store_whatever_the_number_of_threads_and_the_room)
{
    static const size_t rooms[] = {0, 1, 100, 250, 1000};
    for (unsigned n_threads = 0; n_threads <= 8; n_threads += 2) {
        for (size_t k = 0; k < sizeof rooms / sizeof rooms[0]; k++) {
            struct archive_store *ahead = open_ahead(n_threads, rooms[k]);
            for (size_t i = 0; i < OBJECTS; i++)
                expect_object(ahead, i);
            archive_store_close(ahead);
        }
    }
}

Test(prefetch, objects_can_be_skipped_repeated_and_left)
{
    for (unsigned seed = 0; seed < 60; seed++) {
        struct archive_store *ahead = open_ahead(1 + seed % 5, seed % 3 == 0 ? 300 : 0);
        srand(seed);
        for (size_t i = (size_t)rand() % 9; i < OBJECTS; i += 1 + (size_t)rand() % 9) {
            expect_object(ahead, i);
            if (rand() % 8 == 0)
                expect_object(ahead, (size_t)rand() % (i + 1));
            if (rand() % 200 == 0)
                break;
        }
        archive_store_close(ahead);
    }
}

Test(prefetch, threads_that_cannot_connect_are_not_needed)
{
    for (usable = 0; usable < 3; usable++) {
        opened = 0;
        struct archive_store *ahead = open_ahead(3, 0);
        for (size_t i = 0; i < OBJECTS; i++)
            expect_object(ahead, i);
        archive_store_close(ahead);
    }
}

Test(prefetch, an_object_with_another_size_and_a_missing_one_are_read_from_the_store)
{
    struct rd_src *src;
    struct rd_slice s;
    struct rd_err err = {0};
    longer[3] = 7;
    cr_assert(store->ops->remove(store, "t/5", NULL));
    struct archive_store *ahead = open_ahead(4, 0);
    for (size_t i = 0; i < 5; i++)
        expect_object(ahead, i);
    bool ok = ahead->ops->get(ahead, "t/5", &src, &err);
    if (ok) {
        cr_assert_eq(rd_src_need(src, 1, &s), RD_SRC_FAIL);
        rd_err_adopt(&err, rd_src_err(src));
        rd_src_close(src);
    }
    cr_expect_eq(err.code, RD_ERR_IO);
    cr_expect_eq(err.sys, ENOENT);
    for (size_t i = 6; i < OBJECTS; i++)
        expect_object(ahead, i);
    archive_store_close(ahead);
}

Test(prefetch, a_name_that_is_not_on_the_list_is_read_from_the_store)
{
    struct archive_object found;
    folder_put(store, "t/other", "unlisted");
    struct archive_store *ahead = open_ahead(2, 0);
    char *got = folder_get(ahead, "t/other");
    cr_expect_str_eq(got, "unlisted");
    free(got);
    expect_object(ahead, 0);
    cr_assert(ahead->ops->stat(ahead, "t/other", &found, NULL));
    cr_expect_eq(found.size, 8);
    cr_expect_str_eq(ahead->origin, store->origin);
    archive_store_close(ahead);
}
