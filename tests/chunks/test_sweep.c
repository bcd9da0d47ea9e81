#include "chunks/examine.h"
#include "chunks/sweep.h"
#include "tests/archive/folder.h"
#include "tests/chunks/repo.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct chunks_repo r;
static struct rd_buf file, back;
static int64_t now_ms = 1709200000000;

static void begin(void)
{
    chunks_repo_begin(&r, true);
    file = back = (struct rd_buf){0};
}

static void end(void)
{
    rd_buf_done(&file);
    rd_buf_done(&back);
    chunks_repo_end(&r);
}

TestSuite(sweep, .init = begin, .fini = end);

static bool draw(void *ret, size_t size, struct rd_err *err)
{
    static uint64_t state = 99;
    (void)err;
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)ret)[i] = (uint8_t)chunks_repo_draw(&state);
    return true;
}

static void put(unsigned n, unsigned seed, unsigned changed, unsigned gone)
{
    struct rd_err err = {0};
    chunks_repo_snapshot(&file, n, seed, changed, gone);
    cr_assert(chunks_repo_put(&r, rd_buf_slice(&file), 65536, &err), "%s", err.text);
}

static struct chunks_sweep sweep(int64_t grace_ms)
{
    struct archive_sets sets = chunks_repo_list(&r);
    struct chunks_usage usage;
    struct rd_err err = {0};
    struct chunks_sweep s = {.repo = &r.repo,
                             .usage = &usage,
                             .sets = &sets,
                             .key = &r.key,
                             .random = draw,
                             .now_ms = now_ms,
                             .grace_ms = grace_ms};
    cr_assert(chunks_usage_read(&usage, &r.repo, &sets, NULL, NULL, &err), "%s", err.text);
    cr_assert(chunks_sweep(&s, &err), "%s", err.text);
    chunks_usage_done(&usage);
    archive_sets_done(&sets);
    return s;
}

/* Removes a set, not its chunks. */
static void forget(size_t i)
{
    struct archive_sets sets = chunks_repo_list(&r);
    struct rd_err err = {0};
    cr_assert(archive_repo_remove(&r.repo, &sets.sets[i], &err), "%s", err.text);
    archive_sets_done(&sets);
}

static size_t n_packs(const char *suffix)
{
    char folder[100];
    size_t n = 0, len = strlen(suffix);
    snprintf(folder, sizeof folder, "%s/t/chunks", r.path);
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        n += strlen(e->d_name) > len && strcmp(e->d_name + strlen(e->d_name) - len, suffix) == 0;
    closedir(dir);
    return n;
}

static void expect_set(size_t i, unsigned n, unsigned seed, unsigned changed, unsigned gone)
{
    struct rd_err err = {0};
    chunks_repo_snapshot(&file, n, seed, changed, gone);
    rd_buf_reset(&back);
    cr_assert(chunks_repo_get(&r, i, &back, &err), "set %zu: %s", i, err.text);
    cr_assert_eq(back.len, file.len);
    cr_assert_eq(memcmp(back.ptr, file.ptr, file.len), 0, "set %zu", i);
}

enum { N = 5000 };

Test(sweep, a_pack_is_marked_and_removed_after_its_time)
{
    put(N, 0, 0, 0);
    put(N, 1, 1, 0);
    cr_expect_eq(sweep(1000).n_doomed, 0);
    forget(0);
    forget(0);
    cr_expect_eq(sweep(1000).n_doomed, 2);
    cr_expect_eq(n_packs(".doomed"), 2);
    now_ms += 999;
    struct chunks_sweep s = sweep(1000);
    cr_expect(s.n_removed == 0 && s.n_doomed == 0 && n_packs(".pack") == 2);
    now_ms += 1;
    s = sweep(1000);
    cr_expect(s.n_removed == 2 && s.bytes_removed > 0);
    cr_expect(n_packs(".pack") == 0 && n_packs(".doomed") == 0);
}

Test(sweep, a_pack_that_is_needed_again_loses_its_mark)
{
    char name[100];
    put(N, 0, 0, 0);
    snprintf(name, sizeof name, "t/chunks/20240229T000000Z-00000001.0-0001.doomed");
    folder_put(r.store, name, "1");
    sweep(0);
    cr_expect_eq(n_packs(".doomed"), 0);
    cr_expect_eq(n_packs(".pack"), 1);
    expect_set(0, N, 0, 0, 0);
}

/* Most of the first pack is waste when only the last set remains. */
Test(sweep, a_pack_that_is_mostly_waste_is_rewritten)
{
    char path[200];
    put(40000, 0, 0, 0);
    put(40000, 0, 1, 39000);
    forget(0);
    sweep(0);
    cr_expect_gt(n_packs(".moved"), 0);
    expect_set(0, 40000, 0, 1, 39000);
    sweep(0);
    sweep(0);
    snprintf(path, sizeof path, "%s/t/chunks/20240229T000000Z-00000001.0-0001.pack", r.path);
    cr_expect_neq(access(path, F_OK), 0);
    expect_set(0, 40000, 0, 1, 39000);
    size_t n = n_packs(".pack");
    sweep(0);
    cr_expect_eq(n_packs(".pack"), n);
    put(N, 1, 7, 3);
    expect_set(1, N, 1, 7, 3);
    forget(0);
    for (int i = 0; i < 3; i++)
        sweep(0);
    expect_set(0, N, 1, 7, 3);
}

/* A list that leaves out a set: what it needs is not known. */
Test(sweep, nothing_is_removed_if_a_set_is_not_listed)
{
    struct archive_sets none = {.n = 0};
    struct chunks_usage usage;
    struct rd_err err = {0};
    put(N, 0, 0, 0);
    struct chunks_sweep s = {.repo = &r.repo,
                             .usage = &usage,
                             .sets = &none,
                             .key = &r.key,
                             .random = draw,
                             .now_ms = now_ms};
    cr_assert(chunks_usage_read(&usage, &r.repo, &none, NULL, NULL, &err));
    cr_expect_not(chunks_sweep(&s, &err));
    cr_expect_eq(err.code, RD_ERR_PROTOCOL);
    chunks_usage_done(&usage);
    cr_expect(n_packs(".pack") == 1 && n_packs(".doomed") == 0);
}

Test(sweep, a_recipe_that_cannot_be_read_keeps_everything)
{
    struct chunks_usage usage;
    struct rd_err err = {0};
    put(N, 0, 0, 0);
    put(N, 0, 1, 0);
    struct archive_sets sets = chunks_repo_list(&r);
    folder_write(r.path, "t/sets/20240229T000001Z-00000001/dump.rdb.chunks", "gone", 4);
    cr_expect_not(chunks_usage_read(&usage, &r.repo, &sets, NULL, NULL, &err));
    archive_sets_done(&sets);
}

/* Any order of backups, removals and sweeps leaves the sets that are listed whole. */
Test(sweep, histories_lose_nothing)
{
    struct {
        unsigned seed, changed, gone;
    } model[40];
    size_t n = 0;
    uint64_t state = 11;
    for (unsigned step = 0; step < 150; step++) {
        now_ms += 500;
        switch (chunks_repo_draw(&state) % 4) {
        case 0:
        case 1:
            if (n < 12) {
                model[n].seed = (unsigned)(chunks_repo_draw(&state) % 3);
                model[n].changed = (unsigned)(chunks_repo_draw(&state) % 300);
                model[n].gone = (unsigned)(chunks_repo_draw(&state) % 4 * 400);
                put(2000, model[n].seed, model[n].changed, model[n].gone);
                if (chunks_repo_draw(&state) % 5 == 0)
                    unlink(r.state);
                n++;
            }
            break;
        case 2:
            if (n > 0) {
                size_t i = chunks_repo_draw(&state) % n;
                forget(i);
                memmove(&model[i], &model[i + 1], (n - 1 - i) * sizeof *model);
                n--;
            }
            break;
        default:
            sweep(1000);
        }
        for (size_t i = 0; i < n; i++)
            if (chunks_repo_draw(&state) % 4 == 0)
                expect_set(i, 2000, model[i].seed, model[i].changed, model[i].gone);
    }
}

/* ---- damage ---- */

struct damage {
    size_t n, n_named, n_recoverable;
    uint64_t n_keys;
};

static void on_damage(void *ctx, const struct chunks_damage *d)
{
    struct damage *all = ctx;
    all->n++;
    all->n_named += d->n_names > 0;
    all->n_recoverable += d->recoverable;
    all->n_keys += d->n_keys;
}

static struct damage examine(size_t *ret_hurt)
{
    struct archive_sets sets = chunks_repo_list(&r);
    struct damage all = {.n = 0};
    struct chunks_examine x = {.repo = &r.repo, .sets = &sets, .found = on_damage, .ctx = &all};
    struct rd_err err = {0};
    cr_assert(chunks_examine(&x, &err), "%s", err.text);
    *ret_hurt = 0;
    for (size_t i = 0; i < sets.n; i++)
        *ret_hurt += x.hurt[i];
    cr_expect_eq(x.n_damaged > 0, all.n > 0);
    chunks_examine_done(&x);
    archive_sets_done(&sets);
    return all;
}

static long flip(const char *pack, long at)
{
    char path[200];
    snprintf(path, sizeof path, "%s/t/chunks/%s", r.path, pack);
    FILE *f = fopen(path, "r+b");
    cr_assert_not_null(f, "%s", path);
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    if (at < size) {
        fseek(f, at, SEEK_SET);
        int byte = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(byte ^ 0x10, f);
    }
    fclose(f);
    return size;
}

static void flip_all(const char *pack, long step)
{
    size_t n_hurt;
    for (long at = 0, size = 1; at < size; at += step) {
        size = flip(pack, at);
        struct damage d = examine(&n_hurt);
        cr_assert_gt(d.n, 0, "%s, byte %ld", pack, at);
        cr_assert_eq(d.n_keys > 0, d.n_named > 0, "%s, byte %ld", pack, at);
        if (n_hurt > 0)
            cr_assert_eq(d.n_recoverable, d.n, "%s, byte %ld", pack, at);
        /* The rest of the pack gives the bytes. */
        if (at % (7 * step) == 0)
            expect_set(1, 600, 1, 1, 0);
        flip(pack, at);
    }
}

Test(sweep, every_flipped_byte_is_found)
{
    size_t n_hurt;
    put(600, 0, 0, 0);
    put(600, 1, 1, 0);
    cr_assert_eq(examine(&n_hurt).n, 0);
    flip_all("20240229T000000Z-00000001.0-0001.pack", 61);
    flip_all("20240229T000001Z-00000001.0-0001.pack", 17);
    end();
    chunks_repo_begin(&r, false);
    put(600, 0, 0, 0);
    put(600, 1, 1, 0);
    flip_all("20240229T000000Z-00000001.0-0001.pack", 67);
    flip_all("20240229T000001Z-00000001.0-0001.pack", 19);
}

Test(sweep, a_missing_pack_is_found)
{
    char path[200];
    size_t n_hurt;
    put(600, 0, 0, 0);
    put(600, 1, 1, 0);
    snprintf(path, sizeof path, "%s/t/chunks/20240229T000000Z-00000001.0-0001.pack", r.path);
    cr_assert_eq(unlink(path), 0);
    cr_expect_gt(examine(&n_hurt).n, 0);
    cr_expect_eq(n_hurt, 2);
}
