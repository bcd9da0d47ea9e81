#include "archive/catalogue.h"

#include "archive/pipe.h"
#include "base/buf.h"
#include "base/zstd.h"
#include "tests/archive/folder.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SETS = 40, FRESH = ARCHIVE_CATALOGUE_FROM / 4 };

/* ---- a store that lists versions, and counts the manifests that are read ---- */

static char path[64];
static struct archive_store *store;
static struct archive_store_ops ops;
static const struct archive_store_ops *folder_ops;
static struct archive_repo repo;
static struct rd_seal_key key;
static struct rd_seal_ring ring;
static size_t n_manifests, n_lists;
static const char *changed; /* the set whose manifest has another version */
static bool without_versions, apart;

struct relay {
    archive_each_fn *each;
    void *arg;
    int wanted; /* 1: manifests; 0: other objects; -1: all */
};

static bool is_manifest(const char *name)
{
    return strstr(name, "/" ARCHIVE_MANIFEST_NAME) != NULL;
}

static void relay(void *arg, const struct archive_listed *object)
{
    const struct relay *r = arg;
    struct archive_listed told = *object;
    if (!without_versions)
        told.version = changed != NULL && strstr(object->name, changed) != NULL ? "\"2\"" : "\"1\"";
    if (r->wanted < 0 || r->wanted == is_manifest(object->name))
        r->each(r->arg, &told);
}

static bool versioned_list(struct archive_store *s, const char *folder, archive_each_fn *each,
                           void *arg, struct rd_err *err)
{
    struct relay r = {each, arg, apart ? 0 : -1};
    n_lists++;
    if (!folder_ops->list(s, folder, relay, &r, err))
        return false;
    r.wanted = 1;
    return !apart || folder_ops->list(s, folder, relay, &r, err);
}

static bool counted_get(struct archive_store *s, const char *name, struct rd_src **ret,
                        struct rd_err *err)
{
    n_manifests += is_manifest(name);
    return folder_ops->get(s, name, ret, err);
}

static void begin(void)
{
    static const uint8_t bytes[RD_SEAL_KEY] = {1};
    store = folder_open(path);
    cr_assert(rd_seal_key_set(&key, bytes, NULL));
    ring = (struct rd_seal_ring){.keys = &key, .n_keys = 1};
    repo = (struct archive_repo){
        .store = store, .target = "t", .ring = &ring, .lock = folder_lock(store)};
    folder_ops = store->ops;
    ops = *store->ops;
    ops.list = versioned_list;
    ops.get = counted_get;
    store->ops = &ops;
}

static void end(void)
{
    store->ops = folder_ops;
    folder_unlock(repo.lock, store);
    folder_remove(store, path);
}

TestSuite(catalogue, .init = begin, .fini = end);

/* ---- sets ---- */

static void id_of(size_t i, char ret[ARCHIVE_ID_MAX])
{
    archive_make_id(ret, 1709164800000 + (int64_t)(i / 2) * 1000, (uint32_t)i);
}

static void put_set(size_t i)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_manifest m = {.target = "t", .offset = i};
    struct archive_file file = {.name = "dump.rdb", .object = "dump.rdb"};
    struct rd_sink *sink;
    struct rd_buf json = {0};
    struct rd_err err = {0};
    id_of(i, m.id);
    cr_assert(archive_object_name(name, "t", m.id, "dump.rdb", NULL));
    const struct archive_pipe pipe = {.key = &key, .name = name};
    cr_assert(archive_repo_put(&repo, m.id, "dump.rdb", &sink, &err), "%s", err.text);
    cr_assert(archive_pipe_open_sink(&sink, sink, &pipe, &file, &err), "%s", err.text);
    rd_sink_write(sink, "data", 4);
    cr_assert(rd_sink_close(sink, &err), "%s", err.text);
    rd_seal_key_id(&key, m.key_id);
    cr_assert(archive_manifest_add_file(&m, &file, NULL));
    cr_assert(archive_manifest_print(&m, &key, &json, NULL));
    cr_assert(archive_repo_commit(&repo, &m, rd_buf_slice(&json), &err), "%s", err.text);
    rd_buf_done(&json);
    archive_manifest_done(&m);
}

static void put_sets(size_t from, size_t n)
{
    for (size_t i = from; i < from + n; i++)
        put_set(i);
}

/* Lists, and returns how many manifests that read. */
static size_t list(struct archive_sets *ret)
{
    struct rd_err err = {0};
    n_manifests = n_lists = 0;
    cr_assert(archive_repo_list(&repo, ret, &err), "%s", err.text);
    return n_manifests;
}

/* All sets are there and good, each with its own manifest. */
static void expect_good(const struct archive_sets *sets, size_t n)
{
    char id[ARCHIVE_ID_MAX];
    cr_assert_eq(sets->n, n);
    for (size_t i = 0; i < n; i++) {
        id_of(i, id);
        cr_expect_str_eq(sets->sets[i].id, id);
        cr_expect_eq(sets->sets[i].m.offset, i);
        cr_expect(archive_set_good(&sets->sets[i]));
        cr_expect_eq(sets->sets[i].m.signature, ARCHIVE_SIGNATURE_VALID);
        cr_expect_eq(sets->sets[i].n_objects, 2);
    }
}

static size_t list_good(size_t n)
{
    struct archive_sets sets;
    size_t read = list(&sets);
    expect_good(&sets, n);
    archive_sets_done(&sets);
    return read;
}

/* Lists and updates. */
static size_t update(void)
{
    struct archive_sets sets;
    struct rd_err err = {0};
    size_t read = list(&sets);
    cr_assert(archive_catalogue_update(&repo, &sets, &err), "%s", err.text);
    archive_sets_done(&sets);
    return read;
}

static bool has(unsigned number)
{
    char name[64];
    snprintf(name, sizeof name, "t/catalogue/%08u.zst", number);
    return folder_has(path, name);
}

/* A catalogue with this text. */
static void forge(unsigned number, struct rd_slice text)
{
    char name[64];
    struct rd_sink *sink;
    struct rd_err err = {0};
    snprintf(name, sizeof name, "t/catalogue/%08u.zst", number);
    cr_assert(archive_store_put(store, name, &sink, &err), "%s", err.text);
    cr_assert(rd_zstd_open_sink(&sink, sink, 0, &err));
    rd_sink_write(sink, text.ptr, text.len);
    cr_assert(rd_sink_close(sink, &err), "%s", err.text);
}

/* ---- tests ---- */

Test(catalogue, manifests_are_read_once)
{
    put_sets(0, SETS);
    cr_expect_eq(update(), SETS);
    cr_expect(has(1));
    cr_expect_eq(list_good(SETS), 0);
    cr_expect_eq(n_lists, 3);
}

Test(catalogue, it_is_written_again_when_enough_is_new)
{
    put_sets(0, SETS);
    update();
    put_sets(SETS, FRESH - 1);
    cr_expect_eq(update(), FRESH - 1);
    cr_expect_not(has(2));
    put_set(SETS + FRESH - 1);
    cr_expect_eq(update(), FRESH);
    cr_expect(has(1) && has(2), "a listing that has begun may read the one before");
    cr_expect_eq(list_good(SETS + FRESH), 0);
    put_sets(SETS + FRESH, FRESH);
    update();
    cr_expect(!has(1) && has(2) && has(3));
    cr_expect_eq(list_good(SETS + 2 * FRESH), 0);
}

Test(catalogue, few_sets_and_stores_without_versions_have_none)
{
    put_sets(0, ARCHIVE_CATALOGUE_FROM - 1);
    update();
    cr_expect_eq(n_lists, 2);
    put_set(ARCHIVE_CATALOGUE_FROM - 1);
    without_versions = true;
    cr_expect_eq(update(), ARCHIVE_CATALOGUE_FROM);
    cr_expect_eq(n_lists, 2);
    without_versions = false;
    cr_expect_not(has(1));
    update();
    cr_expect(has(1));
}

Test(catalogue, only_who_has_the_lock_writes_it)
{
    struct archive_lock *lock = repo.lock;
    put_sets(0, SETS);
    repo.lock = NULL;
    update();
    cr_expect_not(has(1));
    repo.lock = lock;
}

Test(catalogue, what_the_store_changed_is_read_again)
{
    char id[ARCHIVE_ID_MAX], name[ARCHIVE_NAME_MAX];
    struct archive_sets sets;
    put_sets(0, SETS);
    update();
    id_of(3, id);
    changed = id;
    cr_expect_eq(list_good(SETS), 1);
    changed = NULL;
    id_of(5, id);
    snprintf(name, sizeof name, "t/sets/%s/" ARCHIVE_MANIFEST_NAME, id);
    folder_write(path, name, "{}", 2);
    cr_expect_eq(list(&sets), 1);
    cr_expect_not_null(sets.sets[5].err);
    archive_sets_done(&sets);
}

Test(catalogue, a_set_that_was_removed_does_not_come_back)
{
    struct archive_sets sets;
    put_sets(0, SETS + 1);
    update();
    list(&sets);
    cr_assert(archive_repo_remove(&repo, &sets.sets[SETS], NULL));
    archive_sets_done(&sets);
    cr_expect_eq(list_good(SETS), 0);
}

Test(catalogue, it_is_written_again_when_most_of_it_is_of_sets_that_are_gone)
{
    struct archive_sets sets;
    put_sets(0, 3 * SETS + 70);
    update();
    list(&sets);
    for (size_t i = SETS; i < sets.n; i++)
        cr_assert(archive_repo_remove(&repo, &sets.sets[i], NULL));
    archive_sets_done(&sets);
    cr_expect_eq(update(), 0);
    cr_expect(has(2));
    cr_expect_eq(list_good(SETS), 0);
    cr_expect_eq(update(), 0);
    cr_expect_not(has(3));
}

Test(catalogue, who_wants_the_manifests_themselves_reads_them)
{
    put_sets(0, SETS);
    update();
    repo.exact = true;
    cr_expect_eq(list_good(SETS), SETS);
}

Test(catalogue, what_an_upload_has_left_is_removed)
{
    put_sets(0, SETS);
    update();
    folder_put(store, "t/catalogue/00000002.zst.new", "redou");
    folder_put(store, "t/catalogue/other", "not ours");
    cr_expect_eq(update(), 0);
    cr_expect(has(1) && !folder_has(path, "t/catalogue/00000002.zst.new"));
    cr_expect(folder_has(path, "t/catalogue/other"));
}

Test(catalogue, objects_of_a_set_need_not_be_listed_together)
{
    put_sets(0, SETS);
    apart = true;
    cr_expect_eq(list_good(SETS), SETS);
    update();
    cr_expect_eq(list_good(SETS), 0);
}

Test(catalogue, damage_costs_only_time)
{
    put_sets(0, SETS);
    update();
    struct rd_buf whole = {0};
    cr_assert(archive_store_read(store, "t/catalogue/00000001.zst", 1 << 20, &whole, NULL));
    for (size_t at = 0; at < whole.len; at += 53) {
        whole.ptr[at] ^= 0x10;
        folder_write(path, "t/catalogue/00000001.zst", whole.ptr, whole.len);
        list_good(SETS);
        whole.ptr[at] ^= 0x10;
        folder_write(path, "t/catalogue/00000001.zst", whole.ptr, at);
        list_good(SETS);
    }
    rd_buf_done(&whole);
}

Test(catalogue, what_is_no_catalogue_costs_only_time)
{
    static const char *const texts[] = {
        "",
        "redoubt-catalogue 1\n",
        "redoubt-catalogue 1\nend\n",
        "redoubt-catalogue 2\nend\n",
        "redoubt-catalogue 10\nend\n",
        "redoubt-catalogue 1\n\nend\n",
        "redoubt-catalogue 1\n20240229T000000Z-00000000\nend\n",
        "redoubt-catalogue 1\n20240229T000000Z-00000000 4\nend\n",
        "redoubt-catalogue 1\n20240229T000000Z-00000000 x \"1\"\nend\n",
        "redoubt-catalogue 1\n20240229T000000Z-00000000 -1 \"1\"\nend\n",
        "redoubt-catalogue 1\n20240229T000000Z-00000000 99999999999999999999 \"1\"\nend\n",
        "redoubt-catalogue 1\n20240229T000000Z-00000000 16777217 \"1\"\nend\n",
        "redoubt-catalogue 1\n20240229T000000Z-00000000 16777216 \"1\"\nend\n",
        "redoubt-catalogue 1\n20240229T000000Z-00000000 0 \"1\"\nend\n",
        "redoubt-catalogue 1\n20240229T000000Z-00000000-and-so-on-and-so-on-and-so-on 0 \"1\"\n",
    };
    put_sets(0, SETS);
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        forge(i + 1, rd_slice_str(texts[i]));
        cr_expect_eq(list_good(SETS), SETS, "%s", texts[i]);
    }
}

static bool want_none(void *ctx, const char *id, const char *version, uint64_t size)
{
    (void)id, (void)version, (void)size;
    ++*(size_t *)ctx;
    return false;
}

/* A small object that is large when it is read. */
Test(catalogue, a_bomb_is_left)
{
    struct rd_buf text = {0};
    char *zeros = calloc(1, ARCHIVE_MANIFEST_MAX);
    size_t n_seen = 0;
    put_sets(0, SETS);
    cr_assert(rd_buf_printf(&text, "redoubt-catalogue 1\n"));
    for (unsigned i = 0; i < 3; i++)
        cr_assert(rd_buf_printf(&text, "x %u y\n", (unsigned)ARCHIVE_MANIFEST_MAX) &&
                  rd_buf_add(&text, zeros, ARCHIVE_MANIFEST_MAX));
    forge(1, rd_buf_slice(&text));
    rd_buf_done(&text);
    free(zeros);
    cr_expect_eq(list_good(SETS), SETS);
    const struct archive_catalogue_reader reader = {
        .wanted = want_none, .ctx = &n_seen, .max = ARCHIVE_MANIFEST_MAX + 1000};
    struct rd_err err = {0};
    cr_expect_not(archive_catalogue_read(&repo, 1, &reader, &err));
    cr_expect_eq(err.code, RD_ERR_LIMIT);
    cr_expect_eq(n_seen, 2);
}

/* The manifest of another set, and a manifest that was changed. */
Test(catalogue, a_copy_is_verified_as_the_manifest_is)
{
    char id[ARCHIVE_ID_MAX], other[ARCHIVE_ID_MAX], name[ARCHIVE_NAME_MAX];
    put_sets(0, SETS);
    for (unsigned change = 0; change < 2; change++) {
        struct rd_buf text = {0}, manifest = {0};
        id_of(8, id);
        id_of(9, other);
        snprintf(name, sizeof name, "t/sets/%s/" ARCHIVE_MANIFEST_NAME, change == 0 ? other : id);
        cr_assert(archive_store_read(store, name, 1 << 20, &manifest, NULL));
        if (change == 1)
            *(char *)memmem(manifest.ptr, manifest.len, "\"offset\"", 8) = '\'';
        cr_assert(rd_buf_printf(&text, "redoubt-catalogue 1\n%s %zu \"1\"\n", id, manifest.len));
        cr_assert(rd_buf_add(&text, manifest.ptr, manifest.len));
        cr_assert(rd_buf_add(&text, "end\n", 4));
        forge(change + 1, rd_buf_slice(&text));
        cr_expect_eq(list_good(SETS), SETS);
        rd_buf_done(&text);
        rd_buf_done(&manifest);
    }
}

Test(catalogue, without_memory_nothing_is_wrong)
{
    size_t n = SETS + FRESH;
    put_sets(0, SETS);
    update();
    put_sets(SETS, FRESH);
    for (size_t at = 1;; at += 7) {
        struct archive_sets sets;
        struct rd_err err = {0};
        alloc_fault_begin(at);
        bool ok = archive_repo_list(&repo, &sets, &err);
        if (ok) {
            expect_good(&sets, n);
            archive_catalogue_update(&repo, &sets, NULL);
            archive_sets_done(&sets);
        }
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0, "%zu", at);
        cr_assert(ok || err.code == RD_ERR_MEMORY, "%zu: %s", at, err.text);
        if (!r.failed)
            break;
    }
    cr_expect_eq(list_good(n), 0);
}
