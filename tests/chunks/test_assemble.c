/* The ways in which the items of a file are read: chunks that stay in memory, all of them mapped,
 * and sorted through a spool; in one thread, in several, and over several connections. */
#include "base/crc64.h"
#include "base/pump.h"
#include "chunks/assemble_impl.h"
#include "chunks/parent_impl.h"
#include "tests/archive/folder.h"
#include "tests/chunks/repo.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 30000, THREADS_NONE = 0, THREADS_SHARED, THREADS_APART, THREADS_KINDS };

static struct chunks_repo r;
static struct archive_store_ops ops;
static struct rd_buf file, back;
static struct archive_sets sets;
static size_t n_lost; /* items that the last call of assemble() left out */

static bool open_again(void *ctx, struct archive_store **ret, const atomic_bool *cancel,
                       struct rd_err *err)
{
    (void)ctx;
    (void)cancel;
    return archive_store_open_posix(ret, r.path, false, err);
}

static const struct archive_parallel parallel = {.open = open_again, .n = 5};
static const struct chunks_rooms roomy = {.cache = UINT64_MAX},
                                 mapped = {.cache = 1, .map = UINT64_MAX}, small = {.cache = 1};

static void begin(void)
{
    chunks_repo_begin(&r, true);
    file = back = (struct rd_buf){0};
    sets = (struct archive_sets){0};
}

static void end(void)
{
    rd_buf_done(&file);
    rd_buf_done(&back);
    archive_sets_done(&sets);
    chunks_repo_end(&r);
}

TestSuite(assemble, .init = begin, .fini = end);

static void set_threads(int kind)
{
    ops = *r.store->ops;
    ops.shared = kind == THREADS_SHARED;
    r.store->ops = &ops;
    r.repo.parallel = kind == THREADS_APART ? &parallel : NULL;
}

static void put(unsigned seed, unsigned changed, unsigned gone)
{
    struct rd_err err = {0};
    chunks_repo_snapshot(&file, N, seed, changed, gone);
    cr_assert(chunks_repo_put(&r, rd_buf_slice(&file), 65536, &err), "%s", err.text);
    archive_sets_done(&sets);
    sets = chunks_repo_list(&r);
}

/* The items of the newest set. */
static bool assemble(const struct chunks_rooms *rooms, bool runs, struct rd_err *err)
{
    const struct archive_set *set = &sets.sets[sets.n - 1];
    const struct chunks_codec codec = {
        .target = r.repo.target, .ring = &r.ring, .sealed = r.sealed, .whole = runs};
    struct chunks_recipe recipe;
    struct chunks_assembler a = {.next = 0};
    struct chunks_found item;
    bool last = false;
    n_lost = 0;
    rd_buf_reset(&back);
    bool ok = chunks_recipe_read(&r.repo, set, &set->m.files[0], &r.ring, &recipe, err);
    if (ok) {
        ok = chunks_assemble_open(&a, &r.repo, &codec, &recipe, rooms, err);
        if (ok && rooms->cache == 1)
            cr_assert_not_null(rooms->map > 0 ? (void *)a.flat : (void *)a.sorted);
        while (ok && !last) {
            ok = runs ? chunks_assemble_run(&a, &item, &last, err)
                      : chunks_assemble_next(&a, &item, &last, err);
            n_lost += ok && !last && item.lost;
            if (ok && !last && !item.lost)
                ok = rd_buf_add(&back, item.bytes.ptr, item.bytes.len) || rd_err_nomem(err, 1);
        }
        chunks_assemble_done(&a);
        chunks_recipe_done(&recipe);
    }
    return ok;
}

static void expect(const struct chunks_rooms *rooms)
{
    for (int kind = 0; kind < THREADS_KINDS; kind++)
        for (int runs = 0; runs < 2; runs++) {
            struct rd_err err = {0};
            set_threads(kind);
            cr_assert(assemble(rooms, runs != 0, &err), "%d: %s", kind, err.text);
            cr_assert_eq(back.len, file.len);
            cr_assert_eq(memcmp(back.ptr, file.ptr, file.len), 0);
        }
}

Test(assemble, every_way_gives_the_same_bytes)
{
    put(0, 0, 0);
    expect(&roomy);
    put(0, 1, 3);
    put(0, 2, 50);
    expect(&roomy);
    put(7, 3, 60);
    expect(&roomy);
    expect(&mapped);
    expect(&small);
    put(7, 4, 60);
    put(7, 5, 70);
    put(8, 5, 0);
    put(8, 6, 1);
    expect(&roomy);
    expect(&mapped);
    expect(&small);
}

static void flip(const char *pack, long at)
{
    char path[200];
    snprintf(path, sizeof path, "%s/t/chunks/%s", r.path, pack);
    FILE *f = fopen(path, "r+b");
    cr_assert_not_null(f);
    fseek(f, at, SEEK_SET);
    int byte = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(byte ^ 0x10, f);
    fclose(f);
}

static size_t count_names(const struct rd_buf *buf)
{
    size_t n = 0;
    for (size_t i = 0; i + 4 <= buf->len; i++)
        n += buf->ptr[i] == 'k' && memcmp(buf->ptr + i, "key:", 4) == 0;
    return n;
}

/* The threads leave a damaged chunk to the caller, who computes it from the rest of its pack. A
 * second one is an error that names the chunk. */
Test(assemble, damage_is_found_and_repaired_in_every_way)
{
    static const struct chunks_rooms *ways[] = {&roomy, &mapped, &small};
    put(0, 0, 0);
    put(9, 0, 0);
    for (int damaged = 1; damaged <= 2; damaged++) {
        flip("20240229T000000Z-00000001.0-0001.pack", damaged == 1 ? 300000 : 1400000);
        for (size_t i = 0; i < 3; i++)
            for (int kind = 0; kind < THREADS_KINDS; kind++) {
                struct rd_err err = {0};
                set_threads(kind);
                bool ok = assemble(ways[i], true, &err);
                cr_expect_eq(ok, damaged == 1, "%zu, %d: %s", i, kind, err.text);
                if (damaged == 1)
                    cr_expect_eq(memcmp(back.ptr, file.ptr, file.len), 0);
                else
                    cr_expect_not_null(strstr(err.text, "is damaged"), "%s", err.text);
                struct chunks_rooms skips = *ways[i];
                skips.skips = true;
                rd_err_reset(&err);
                cr_assert(assemble(&skips, true, &err), "%s", err.text);
                cr_expect_eq(n_lost == 0, damaged == 1);
                cr_expect_eq(count_names(&back) + n_lost, N);
            }
    }
}

static bool has_checksum(const struct rd_buf *buf)
{
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++)
        sum |= (uint64_t)buf->ptr[buf->len - 8 + (size_t)i] << (8 * i);
    return sum == rd_crc64(0, buf->ptr, buf->len - 8);
}

static bool read_rest(size_t i, struct chunks_lost *lost, struct rd_err *err)
{
    const struct archive_set *set = &sets.sets[i];
    struct rd_src *src;
    *lost = (struct chunks_lost){0};
    rd_buf_reset(&back);
    if (!chunks_open_rest(&src, &r.repo, set, &set->m.files[0], &r.ring, lost, err))
        return false;
    bool ok = rd_pump_to_buf(src, SIZE_MAX / 2, &back, err);
    rd_src_close(src);
    return ok;
}

static void expect_rest(size_t set, bool whole)
{
    for (int kind = 0; kind < THREADS_KINDS; kind++) {
        struct chunks_lost lost;
        struct rd_err err = {0};
        set_threads(kind);
        cr_assert(read_rest(set, &lost, &err), "%s", err.text);
        size_t n = count_names(&back);
        cr_expect_eq(lost.n_records == 0, whole, "%zu: %zu", set, (size_t)lost.n_records);
        cr_expect(n + lost.n_records >= N && n + lost.n_records <= N + 2, "%zu and %zu", n,
                  (size_t)lost.n_records);
        cr_expect(has_checksum(&back));
        cr_expect_eq(memcmp(back.ptr, "REDIS0011", 9), 0);
    }
}

/* The first damaged chunk can be computed, two cannot. The last one has the header. */
Test(assemble, all_keys_but_those_of_damaged_chunks_can_be_read)
{
    static const long places[] = {300000, 1400000, 20};
    put(0, 0, 0);
    put(9, 0, 0);
    for (int damaged = 0; damaged <= 3; damaged++) {
        expect_rest(0, damaged < 2);
        expect_rest(1, damaged < 2);
        cr_expect(damaged >= 2 ||
                  (back.len == file.len && memcmp(back.ptr, file.ptr, file.len) == 0));
        if (damaged < 3)
            flip("20240229T000000Z-00000001.0-0001.pack", places[damaged]);
    }
}

Test(assemble, a_missing_pack_is_an_error_in_every_way)
{
    char path[200];
    put(0, 0, 0);
    put(9, 0, 0);
    snprintf(path, sizeof path, "%s/t/chunks/20240229T000000Z-00000001.0-0001.pack", r.path);
    cr_assert_eq(unlink(path), 0);
    for (int kind = 0; kind < THREADS_KINDS; kind++) {
        struct rd_err err = {0};
        set_threads(kind);
        cr_expect_not(assemble(&mapped, true, &err));
        cr_expect_not_null(strstr(err.text, "is missing"), "%s", err.text);
    }
}

Test(assemble, no_failing_allocation_gives_wrong_bytes)
{
    static const struct chunks_rooms *ways[] = {&roomy, &mapped, &small};
    put(0, 0, 0);
    put(9, 1, 0);
    rd_buf_reset(&back);
    cr_assert(rd_buf_reserve(&back, file.len)); /* not followed */
    for (size_t i = 0; i < 3; i++)
        for (int kind = 0; kind < 2; kind++) {
            bool failed = true;
            set_threads(kind);
            for (size_t n = 1; failed; n += 1 + n / 4) {
                struct rd_err err = {0};
                alloc_fault_begin(n);
                bool ok = assemble(ways[i], true, &err);
                struct alloc_fault_result result = alloc_fault_end();
                failed = result.failed;
                cr_expect_eq(result.live, 0, "%zu, %d, %zu: %zu", i, kind, n, result.live);
                cr_assert(ok || failed);
                cr_assert(!ok ||
                          (back.len == file.len && memcmp(back.ptr, file.ptr, file.len) == 0));
            }
        }
}

/* ---- long values ---- */

static void add_long(const char *name, size_t len, uint64_t seed)
{
    const uint8_t head[] = {0, (uint8_t)strlen(name)};
    const uint8_t size[] = {0x80, (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8),
                            (uint8_t)len};
    rd_buf_add(&file, head, 2);
    rd_buf_add(&file, name, strlen(name));
    rd_buf_add(&file, size, 5);
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = chunks_repo_draw(&seed);
        rd_buf_add(&file, &word, 8);
    }
}

Test(assemble, pieces_of_long_values_are_read_ahead)
{
    static const char *names[] = {"one", "two", "three", "four", "five", "six"};
    struct rd_err err = {0};
    for (int order = 0; order < 3; order++) {
        rd_buf_reset(&file);
        rd_buf_add(&file, "REDIS0011\xfe\x00", 11);
        for (int i = 0; i < 6; i++) {
            int k = order == 1 ? 5 - i : i;
            add_long(names[k], (size_t)(3 + k) << 19, (uint64_t)k + 1);
            rd_buf_add(&file, "\x00\x02zz\x01!", 6);
            file.ptr[file.len - 3] = (uint8_t)('a' + k);
        }
        rd_buf_add(&file, "\xff\0\0\0\0\0\0\0\0", 9);
        cr_assert(chunks_repo_put(&r, rd_buf_slice(&file), 100000, &err), "%s", err.text);
        for (int kind = 0; kind < THREADS_KINDS; kind++) {
            set_threads(kind);
            rd_buf_reset(&back);
            cr_assert(chunks_repo_get(&r, r.n_sets - 1, &back, &err), "%s", err.text);
            cr_assert(back.len == file.len && memcmp(back.ptr, file.ptr, file.len) == 0);
        }
    }
}
