#include "archive/repo.h"

#include "archive/pipe.h"
#include "base/buf.h"
#include "tests/archive/folder.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];
static struct archive_store *store;
static struct archive_repo repo;
static struct rd_seal_key key;
static struct rd_seal_ring ring;

static void begin(void)
{
    static const uint8_t bytes[RD_SEAL_KEY] = {1};
    store = folder_open(path);
    cr_assert(rd_seal_key_set(&key, bytes, NULL));
    ring = (struct rd_seal_ring){.keys = &key, .n_keys = 1};
    repo = (struct archive_repo){
        .store = store, .target = "t", .ring = &ring, .lock = folder_lock(store)};
}

static void end(void)
{
    folder_unlock(repo.lock, store);
    folder_remove(store, path);
}

TestSuite(repo, .init = begin, .fini = end);

static const char one[] = "20240229T000000Z-00000001", two[] = "20240301T235959Z-00000002";

static void put_file(const char *id, const char *text, struct archive_file *file)
{
    struct rd_sink *sink;
    char name[ARCHIVE_NAME_MAX];
    struct rd_err err = {0};
    cr_assert(archive_object_name(name, "t", id, "dump.rdb", NULL));
    const struct archive_pipe pipe = {.key = &key, .name = name};
    *file = (struct archive_file){.name = "dump.rdb", .object = "dump.rdb"};
    cr_assert(archive_repo_put(&repo, id, "dump.rdb", &sink, &err), "%s", err.text);
    cr_assert(archive_pipe_open_sink(&sink, sink, &pipe, file, &err), "%s", err.text);
    rd_sink_write(sink, text, strlen(text));
    cr_assert(rd_sink_close(sink, &err), "%s", err.text);
}

static void put_set(const char *id, const char *text)
{
    struct archive_manifest m = {.target = "t"};
    struct archive_file file;
    struct rd_buf json = {0};
    struct rd_err err = {0};
    put_file(id, text, &file);
    strcpy(m.id, id);
    rd_seal_key_id(&key, m.key_id);
    cr_assert(archive_manifest_add_file(&m, &file, NULL));
    cr_assert(archive_manifest_print(&m, &key, &json, NULL));
    cr_assert(archive_repo_commit(&repo, &m, rd_buf_slice(&json), &err), "%s", err.text);
    rd_buf_done(&json);
    archive_manifest_done(&m);
}

static struct archive_sets list(void)
{
    struct archive_sets sets;
    struct rd_err err = {0};
    cr_assert(archive_repo_list(&repo, &sets, &err), "%s", err.text);
    return sets;
}

Test(repo, ids_are_in_the_order_of_time)
{
    char id[ARCHIVE_ID_MAX];
    int64_t ms;
    archive_make_id(id, 1709164800123, 1);
    cr_expect_str_eq(id, one);
    cr_assert(archive_id_time(two, &ms));
    cr_expect_eq(ms, 1709337599000);
    cr_expect_not(archive_id_time("lock", &ms));
    cr_expect_not(archive_id_time("20240229T000000Z", &ms));
}

Test(repo, sets_are_listed_from_old_to_new_and_read_back)
{
    struct rd_src *src;
    struct rd_slice s;
    struct rd_err err = {0};
    put_set(two, "the second");
    put_set(one, "the first");
    struct archive_sets sets = list();
    cr_assert_eq(sets.n, 2);
    cr_expect_str_eq(sets.sets[0].id, one);
    cr_expect(archive_set_good(&sets.sets[0]) && archive_set_good(&sets.sets[1]));
    cr_expect_eq(sets.sets[0].n_objects, 2);
    cr_expect_eq(sets.sets[1].time_ms, 1709337599000);
    cr_assert(archive_set_open(&repo, &sets.sets[1], &sets.sets[1].m.files[0], &ring, &src, &err),
              "%s", err.text);
    cr_expect_eq(rd_src_need(src, 10, &s), RD_SRC_OK);
    cr_expect(rd_slice_is(s, "the second"));
    rd_src_close(src);
    cr_assert(archive_set_open_stored(&repo, &sets.sets[1], &sets.sets[1].m.files[0], &src, &err));
    cr_expect_eq(rd_src_need(src, 8, &s), RD_SRC_OK);
    cr_expect(rd_seal_is(s));
    rd_src_close(src);
    archive_sets_done(&sets);
}

Test(repo, objects_without_a_manifest_are_not_a_set)
{
    struct archive_file file;
    put_file(one, "left over", &file);
    struct archive_sets sets = list();
    cr_assert_eq(sets.n, 1);
    cr_expect(sets.sets[0].incomplete);
    cr_expect_not(archive_set_good(&sets.sets[0]));
    cr_expect_null(archive_sets_find(&sets, NULL, INT64_MAX));
    cr_expect_null(archive_sets_find(&sets, one, INT64_MAX));
    cr_assert(archive_repo_remove(&repo, &sets.sets[0], NULL));
    archive_sets_done(&sets);
    sets = list();
    cr_expect_eq(sets.n, 0);
    archive_sets_done(&sets);
}

Test(repo, sets_are_found_by_id_and_by_its_beginning)
{
    put_set(one, "1");
    put_set(two, "2");
    struct archive_sets sets = list();
    cr_expect_eq(archive_sets_find(&sets, "latest", INT64_MAX), &sets.sets[1]);
    cr_expect_eq(archive_sets_find(&sets, NULL, INT64_MAX), &sets.sets[1]);
    cr_expect_eq(archive_sets_find(&sets, one, INT64_MAX), &sets.sets[0]);
    /* The second one is in the future; if all are, the newest one of them. */
    cr_expect_eq(archive_sets_find(&sets, NULL, sets.sets[1].time_ms - 1), &sets.sets[0]);
    cr_expect_eq(archive_sets_find(&sets, NULL, 0), &sets.sets[1]);
    cr_expect_eq(archive_sets_find(&sets, "202402", INT64_MAX), &sets.sets[0]);
    cr_expect_null(archive_sets_find(&sets, "2024", INT64_MAX));
    cr_expect_null(archive_sets_find(&sets, "2025", INT64_MAX));
    sets.sets[1].marked[ARCHIVE_MARK_DAMAGED] = true;
    cr_expect_eq(archive_sets_find(&sets, "latest", INT64_MAX), &sets.sets[0]);
    archive_sets_done(&sets);
}

Test(repo, marks_are_set_and_taken_away)
{
    put_set(one, "1");
    for (int round = 0; round < 2; round++) {
        cr_assert(archive_repo_mark(&repo, one, ARCHIVE_MARK_PINNED, true, NULL));
        cr_assert(archive_repo_mark(&repo, one, ARCHIVE_MARK_DAMAGED, round == 0, NULL));
        struct archive_sets sets = list();
        cr_assert_eq(sets.n, 1);
        cr_expect(sets.sets[0].marked[ARCHIVE_MARK_PINNED]);
        cr_expect_eq(sets.sets[0].marked[ARCHIVE_MARK_DAMAGED], round == 0);
        cr_expect_eq(archive_set_good(&sets.sets[0]), round == 1);
        archive_sets_done(&sets);
    }
    struct archive_sets sets = list();
    cr_assert(archive_repo_remove(&repo, &sets.sets[0], NULL));
    archive_sets_done(&sets);
    cr_expect_not(folder_has(path, "t/marks"));
    sets = list();
    cr_expect_eq(sets.n, 0);
    archive_sets_done(&sets);
}

static void overwrite(const char *id, const char *object, const char *text)
{
    char name[200];
    snprintf(name, sizeof name, "t/sets/%s/%s", id, object);
    folder_write(path, name, text, strlen(text));
}

Test(repo, damage_is_listed_as_damage)
{
    put_set(one, "1");
    put_set(two, "2");
    overwrite(one, "manifest.json", "{}");
    overwrite(two, "dump.rdb", "short");
    struct archive_sets sets = list();
    cr_assert_eq(sets.n, 2);
    cr_expect_eq(sets.sets[0].err->code, RD_ERR_TRUNCATED);
    cr_expect_eq(sets.sets[1].missing, 1);
    cr_expect_null(archive_sets_find(&sets, NULL, INT64_MAX));
    archive_sets_done(&sets);
}

Test(repo, a_manifest_of_another_set_is_found)
{
    char from[200], to[200];
    put_set(one, "1");
    snprintf(from, sizeof from, "%s/t/sets/%s", path, one);
    snprintf(to, sizeof to, "%s/t/sets/%s", path, two);
    cr_assert_eq(rename(from, to), 0);
    struct archive_sets sets = list();
    cr_assert_eq(sets.n, 1);
    cr_expect_eq(sets.sets[0].err->code, RD_ERR_CORRUPT);
    archive_sets_done(&sets);
}

Test(repo, the_object_of_another_set_does_not_open)
{
    char from[200], to[200];
    struct rd_src *src;
    struct rd_err err = {0};
    put_set(one, "1");
    put_set(two, "2");
    snprintf(from, sizeof from, "%s/t/sets/%s/dump.rdb", path, one);
    snprintf(to, sizeof to, "%s/t/sets/%s/dump.rdb", path, two);
    cr_assert_eq(rename(from, to), 0);
    struct archive_sets sets = list();
    cr_expect_not(
        archive_set_open(&repo, &sets.sets[1], &sets.sets[1].m.files[0], &ring, &src, &err));
    cr_expect_eq(err.code, RD_ERR_CHECKSUM, "%s", err.text);
    archive_sets_done(&sets);
}

Test(repo, a_name_that_is_too_long_is_refused)
{
    struct rd_sink *sink;
    char id[ARCHIVE_NAME_MAX + 1];
    struct rd_err err = {0};
    memset(id, 'a', sizeof id);
    id[ARCHIVE_NAME_MAX] = '\0';
    cr_expect_not(archive_repo_put(&repo, id, "a", &sink, &err));
    cr_expect_eq(err.code, RD_ERR_LIMIT);
}

Test(repo, every_failing_allocation_is_survived)
{
    put_set(one, "1");
    put_set(two, "2");
    for (size_t n = 1;; n++) {
        struct archive_sets sets;
        struct rd_err err = {0};
        alloc_fault_begin(n);
        bool ok = archive_repo_list(&repo, &sets, &err);
        if (ok)
            archive_sets_done(&sets);
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        cr_assert_eq(ok, !result.failed, "allocation %zu: %s", n, err.text);
        if (ok)
            break;
        cr_assert_eq(err.code, RD_ERR_MEMORY, "allocation %zu: %s", n, err.text);
    }
}

/* ---- removed meanwhile ---- */

static const struct archive_store_ops *ops;

/* Lists everything, and then `two` is removed. */
static bool list_and_remove(struct archive_store *from, const char *prefix, archive_each_fn *each,
                            void *arg, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    snprintf(name, sizeof name, "t/sets/%s/" ARCHIVE_MANIFEST_NAME, two);
    return ops->list(from, prefix, each, arg, err) && ops->remove(from, name, err);
}

Test(repo, a_set_that_is_removed_while_it_is_listed_is_left_out)
{
    struct archive_store_ops removing;
    struct archive_sets sets;
    put_set(one, "first");
    put_set(two, "second");
    ops = store->ops;
    removing = *ops;
    removing.list = list_and_remove;
    store->ops = &removing;
    bool ok = archive_repo_list(&repo, &sets, NULL);
    store->ops = ops;
    cr_assert(ok);
    cr_assert_eq(sets.n, 1);
    cr_expect_eq(sets.n_gone, 1);
    cr_expect_str_eq(sets.sets[0].id, one);
    cr_expect_not(archive_set_gone(&repo, &sets.sets[0]));
    const struct archive_set gone = {.id = "20240301T235959Z-00000002"};
    cr_expect(archive_set_gone(&repo, &gone));
    archive_sets_done(&sets);
}
