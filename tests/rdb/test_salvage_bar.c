/* Random damage to files of every server version and to files whose values look like records. What
 * salvage writes without a mark must be true: no key that was not there, no expiry lost, no
 * database changed. Nearly all keys that the damage did not touch must be saved.
 *
 * REDOUBT_DAMAGES: how many damages (20000 takes some minutes). REDOUBT_SEED repeats a run, and
 * REDOUBT_ONLY one damage of it, whose file is written to REDOUBT_DAMAGED. REDOUBT_FILES: a folder
 * of snapshots to damage in place of the fixtures.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/rdb/key_list.h"
#include "tests/rdb/made_file.h"
#include "tests/rdb/snapshots.h"
#include "tests/rdb/tricky.h"

enum { FILE_MAX = 150 * 1024, FILES_MAX = 1024, DAMAGES = 1500, TRICKY_EACH = 12 };

enum damage { FLIP, NOISE, ZEROS, CUT, DELETE, INSERT, REPEAT, EXCHANGE, DAMAGE_KINDS };

static const char *const damage_names[] = {
    "one bit",       "16 random bytes", "4 KiB of zeros",      "a cut",
    "bytes deleted", "bytes inserted",  "bytes written twice", "two blocks exchanged"};

struct file {
    char name[SNAPSHOT_PATH_MAX];
    struct rd_buf bytes;
    struct keys keys;
    uint64_t *fields; /* hashes of the names in its hashes */
    size_t n_fields;
    bool enterprise;
};

struct bar {
    struct file files[FILES_MAX];
    unsigned n_files;
    uint64_t random, seed, only, blamed;
    uint64_t damages, marked_files, untouched, saved, marked, unmarked, left_out;
    uint64_t invented, moved, immortal, values, refused, strict;
    uint64_t in_whole;    /* keys in files that are marked as a whole */
    uint64_t by_doubt[8]; /* marks, by the bit of the doubt */
    uint64_t needless;    /* marked, and as they were */
    uint64_t fields;      /* of hashes, saved as keys, with or without a mark */
};

/* Marks of one run: hashes of the names of doubtful keys in the output. */
struct marks {
    struct bar *bar;
    uint64_t *names;
    size_t n, cap;
};

static void on_doubt(void *ctx, const struct rdb_salvage_doubt *doubt)
{
    struct marks *marks = ctx;
    if (doubt->left_out)
        return;
    if (marks->n == marks->cap) {
        marks->cap = marks->cap == 0 ? 64 : 2 * marks->cap;
        marks->names = realloc(marks->names, marks->cap * sizeof *marks->names);
        cr_assert_not_null(marks->names);
    }
    marks->names[marks->n++] = key_list_name(doubt->key);
    for (unsigned bit = 0; bit < 8; bit++)
        marks->bar->by_doubt[bit] += doubt->doubts >> bit & 1;
}

static bool is_marked(const struct marks *marks, uint64_t name)
{
    for (size_t i = 0; i < marks->n; i++)
        if (marks->names[i] == name)
            return true;
    return false;
}

struct range {
    uint64_t from, to;
};

static const struct key *find(const struct keys *keys, uint64_t name, uint64_t db, bool any_db)
{
    for (size_t i = 0; i < keys->n; i++)
        if (keys->at[i].name == name && (any_db || keys->at[i].db == db))
            return &keys->at[i];
    return NULL;
}

/* The names of the fields of all hashes. */
static void read_fields(struct file *file)
{
    struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_ELEMENTS);
    struct rdb_reader *r;
    struct rdb_event ev;
    struct rd_src *src;
    size_t cap = 0;
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&file->bytes), NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, &opts, NULL));
    while (rdb_reader_next(r, &ev) == RDB_EVENT) {
        char tmp[RD_NUM_I64_MAX];
        if (ev.kind != RDB_ELEM || ev.elem.role != RDB_ROLE_FIELD || !ev.elem.str.first)
            continue;
        if (file->n_fields == cap) {
            cap = cap == 0 ? 64 : 2 * cap;
            file->fields = realloc(file->fields, cap * sizeof *file->fields);
            cr_assert_not_null(file->fields);
        }
        file->fields[file->n_fields++] = key_list_name(rdb_string_bytes(&ev.elem.str, tmp));
    }
    rdb_reader_free(r);
    rd_src_close(src);
}

static bool is_field(const struct file *file, uint64_t name)
{
    for (size_t i = 0; i < file->n_fields; i++)
        if (file->fields[i] == name)
            return find(&file->keys, name, 0, true) == NULL;
    return false;
}

static void add_file(struct bar *bar, const char *name, struct rd_slice bytes)
{
    struct file *file = &bar->files[bar->n_files];
    cr_assert_lt(bar->n_files, FILES_MAX);
    snprintf(file->name, sizeof file->name, "%s", name);
    made_add(&file->bytes, bytes.ptr, bytes.len);
    file->keys = keys_of(bytes);
    read_fields(file);
    bar->n_files += file->keys.n > 0 && file->keys.sound;
    if (file->keys.n == 0 || !file->keys.sound) {
        rd_buf_done(&file->bytes);
        free(file->keys.at);
        free(file->fields);
        *file = (struct file){0};
    }
}

static void add_fixture(void *ctx, const struct snapshot *s)
{
    struct bar *bar = ctx;
    unsigned before = bar->n_files;
    add_file(bar, s->path, s->bytes);
    if (bar->n_files > before)
        bar->files[before].enterprise = strstr(s->path, "enterprise") != NULL;
}

static void add_folder(struct bar *bar, const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    cr_assert_not_null(dir, "%s", folder);
    while ((entry = readdir(dir)) != NULL) {
        char path[SNAPSHOT_PATH_MAX];
        struct rd_src *src;
        struct rd_buf bytes = {0};
        struct rd_slice piece;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.')
            continue;
        cr_assert(rd_src_open_file(&src, path, NULL, NULL), "%s", path);
        while (rd_src_need(src, 1, &piece) == RD_SRC_OK) {
            made_add(&bytes, piece.ptr, piece.len);
            rd_src_consume(src, piece.len);
        }
        rd_src_close(src);
        add_file(bar, entry->d_name, rd_buf_slice(&bytes));
        rd_buf_done(&bytes);
    }
    closedir(dir);
}

static void add_tricky(struct bar *bar, unsigned kind)
{
    for (unsigned i = 0; i < TRICKY_EACH; i++) {
        char name[SNAPSHOT_PATH_MAX];
        struct rd_buf bytes = {0};
        tricky_make(kind, 1000 * kind + i, &bytes);
        snprintf(name, sizeof name, "%s %u", tricky_name(kind), i);
        unsigned before = bar->n_files;
        add_file(bar, name, rd_buf_slice(&bytes));
        cr_assert_eq(bar->n_files, before + 1, "%s cannot be read", name);
        rd_buf_done(&bytes);
    }
}

static void add_files(struct bar *bar)
{
    const char *folder = getenv("REDOUBT_FILES");
    if (folder != NULL) {
        add_folder(bar, folder);
        return;
    }
    snapshots_each_sound(FILE_MAX, add_fixture, bar);
    for (unsigned kind = 0; kind < TRICKY_KINDS; kind++)
        add_tricky(bar, kind);
}

/* A block of n bytes and the next one in each other's place. */
static struct rd_buf exchange(const struct rd_buf *file, size_t block, size_t n, uint64_t *from,
                              uint64_t *to)
{
    struct rd_buf bytes = {0};
    size_t at = block * n;
    made_add(&bytes, file->ptr, file->len);
    *from = *to = at;
    if (at + 2 * n > file->len)
        return bytes;
    memcpy(bytes.ptr + at, file->ptr + at + n, n);
    memcpy(bytes.ptr + at + n, file->ptr + at, n);
    *to = at + 2 * n;
    return bytes;
}

/* The damaged bytes; [*from, *to) of the original is not what it was. */
static struct rd_buf damage(struct bar *bar, const struct rd_buf *file, enum damage kind,
                            uint64_t *from, uint64_t *to)
{
    struct rd_buf bytes = {0};
    uint64_t *random = &bar->random;
    size_t at = (size_t)(chance_next(random) % file->len);
    size_t n = kind == FLIP    ? 1
               : kind == NOISE ? 16
               : kind == ZEROS ? 4096
                               : 1 + (size_t)(chance_next(random) % 40);
    if (kind == REPEAT && chance_next(random) % 2 == 0)
        n = 512;
    if (kind == EXCHANGE)
        n = (size_t)16 << chance_next(random) % 6;
    size_t end = at + n < file->len && kind != CUT ? at + n : file->len;
    bool inserts = kind == INSERT || kind == REPEAT;
    *from = at;
    *to = inserts ? at : end;
    if (kind == EXCHANGE)
        return exchange(file, at / n, n, from, to);
    made_add(&bytes, file->ptr, at);
    for (size_t i = at; i < end && (kind == FLIP || kind == NOISE || kind == ZEROS); i++) {
        uint8_t byte = 0;
        if (kind == FLIP)
            byte = (uint8_t)(file->ptr[i] ^ 1u << chance_next(random) % 8);
        else if (kind == NOISE)
            byte = (uint8_t)chance_next(random);
        made_add(&bytes, &byte, 1);
    }
    for (size_t i = 0; i < n && inserts; i++) {
        uint8_t byte = (uint8_t)chance_next(random);
        if (kind == REPEAT && at + i < file->len)
            byte = file->ptr[at + i];
        made_add(&bytes, &byte, 1);
    }
    if (inserts)
        made_add(&bytes, file->ptr + at, file->len - at);
    else if (kind != CUT)
        made_add(&bytes, file->ptr + end, file->len - end);
    return bytes;
}

/* Reports the first of each damage. */
static void blame(struct bar *bar, const char *what, const char *which, const struct key *key)
{
    if (bar->blamed != bar->damages)
        printf("# %s: %s, key at %" PRIu64 " of the output, db %" PRIu64 "\n", what, which,
               key->from, key->db);
    bar->blamed = bar->damages;
}

static void judge_key(struct bar *bar, const struct keys *before, const struct key *key,
                      const char *what)
{
    const struct key *was = find(before, key->name, key->db, false);
    bar->unmarked++;
    if (was == NULL) {
        bool moved = find(before, key->name, key->db, true) != NULL;
        bar->moved += moved;
        bar->invented += !moved;
        blame(bar, what, moved ? "moved" : "invented", key);
    } else if (was->expire_ms != key->expire_ms) {
        bar->immortal++;
        blame(bar, what, "another expiry", key);
    } else {
        bar->values += was->value != key->value;
        if (was->value != key->value)
            blame(bar, what, "another value", key);
    }
}

static void check_loads(struct bar *bar, struct rd_slice out, const char *what)
{
    struct rdb_check_opts opts = RDB_CHECK_OPTS(.single_thread = true);
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct rd_src *src;
    cr_assert(rd_src_open_memory(&src, out, NULL, NULL));
    cr_assert(rdb_check(src, &opts, &res, NULL));
    rd_src_close(src);
    if (res.damaged || res.errors > 0 || res.sum == RDB_SUM_BAD) {
        bar->refused++;
        printf("# %s: the output is refused: %s\n", what, res.err.text);
    }
}

/* With `strict` the output holds the keys without a mark, and no other. */
static void check_strict(struct bar *bar, const struct file *file, struct rd_slice bytes,
                         const struct keys *after, const struct marks *marks, const char *what)
{
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.strict = true, .enterprise = file->enterprise);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf out = {0};
    cr_assert(made_salvage(bytes, &opts, &out, &res, NULL), "%s", what);
    struct keys strict = keys_of(rd_buf_slice(&out));
    size_t n = 0;
    for (size_t i = 0; i < after->n; i++)
        n += !is_marked(marks, after->at[i].name);
    for (size_t i = 0; i < strict.n; i++)
        if (is_marked(marks, strict.at[i].name) &&
            find(after, strict.at[i].name, strict.at[i].db, false) == NULL)
            bar->strict++;
    bar->strict += strict.n < n;
    check_loads(bar, rd_buf_slice(&out), what);
    free(strict.at);
    rd_buf_done(&out);
}

static void write_file(const char *path, const struct rd_buf *bytes)
{
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f);
    fwrite(bytes->ptr, 1, bytes->len, f);
    fclose(f);
}

/* Whether the key has bytes of [from, to), or is where bytes were inserted. */
static bool is_touched(const struct key *key, const struct range *range)
{
    return (key->from < range->to && key->to > range->from) ||
           (range->from == range->to && key->from < range->from && key->to > range->from);
}

/* Salvages the damaged bytes of a file, of which n ranges are not what they were. */
static void judge_ranges(struct bar *bar, const struct file *file, const struct rd_buf *bytes,
                         const struct range *ranges, size_t n, const char *what)
{
    struct marks marks = {.bar = bar};
    struct rdb_salvage_opts opts =
        RDB_SALVAGE_OPTS(.doubt = on_doubt, .ctx = &marks, .enterprise = file->enterprise);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf out = {0};
    struct rd_err err = {0};
    if (bytes->len > 0) {
        cr_assert(made_salvage(rd_buf_slice(bytes), &opts, &out, &res, &err), "%s: %s", what,
                  err.text);
        struct keys after = keys_of(rd_buf_slice(&out));
        /* Where no record is lost, the whole file is marked. */
        bool whole = !res.proved && res.ranges == 0;
        bar->marked_files += whole;
        bar->left_out += res.keys_left_out;
        for (size_t i = 0; i < after.n; i++) {
            bool field = is_field(file, after.at[i].name);
            bar->fields += field;
            if (field)
                blame(bar, what, "a field", &after.at[i]);
            if (whole || is_marked(&marks, after.at[i].name)) {
                const struct key *was = find(&file->keys, after.at[i].name, after.at[i].db, false);
                bar->marked++;
                bar->in_whole += whole;
                bar->needless += was != NULL && was->value == after.at[i].value &&
                                 was->expire_ms == after.at[i].expire_ms;
            } else {
                judge_key(bar, &file->keys, &after.at[i], what);
            }
        }
        uint64_t lost = 0;
        for (size_t i = 0; i < file->keys.n; i++) {
            const struct key *key = &file->keys.at[i];
            bool touched = false;
            for (size_t k = 0; k < n; k++)
                touched = touched || is_touched(key, &ranges[k]);
            if (touched)
                continue;
            bar->untouched++;
            lost += find(&after, key->name, key->db, true) == NULL;
            bar->saved += find(&after, key->name, key->db, true) != NULL;
        }
        if (lost > 5)
            printf("# lost %" PRIu64 " of %zu: %s\n", lost, file->keys.n, what);
        check_loads(bar, rd_buf_slice(&out), what);
        if (bar->damages % 8 == 0)
            check_strict(bar, file, rd_buf_slice(bytes), &after, &marks, what);
        free(after.at);
    }
    free(marks.names);
    rd_buf_done(&out);
}

static void judge(struct bar *bar, const struct file *file, const struct rd_buf *bytes,
                  uint64_t from, uint64_t to, const char *what)
{
    const struct range range = {from, to};
    judge_ranges(bar, file, bytes, &range, 1, what);
}

static void one_damage(struct bar *bar)
{
    const struct file *file = &bar->files[chance_next(&bar->random) % bar->n_files];
    enum damage kind = (enum damage)(bar->damages % DAMAGE_KINDS);
    char what[SNAPSHOT_PATH_MAX + 128];
    uint64_t from, to;
    struct rd_buf bytes = damage(bar, &file->bytes, kind, &from, &to);
    snprintf(what, sizeof what,
             "seed %" PRIu64 ", damage %" PRIu64 ", %s, %s at [%" PRIu64 ", %" PRIu64 ")",
             bar->seed, bar->damages, file->name, damage_names[kind], from, to);
    bool skipped = bar->only != UINT64_MAX && bar->only != bar->damages;
    if (!skipped && bar->only != UINT64_MAX && getenv("REDOUBT_DAMAGED") != NULL)
        write_file(getenv("REDOUBT_DAMAGED"), &bytes);
    bar->damages++;
    if (!skipped)
        judge(bar, file, &bytes, from, to, what);
    rd_buf_done(&bytes);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void expect_true(const struct bar *bar)
{
    cr_expect_eq(bar->invented, 0);
    cr_expect_eq(bar->moved, 0);
    cr_expect_eq(bar->immortal, 0);
    cr_expect_eq(bar->refused, 0);
    cr_expect_eq(bar->strict, 0);
    /* Nothing shows damage to the bytes of a string where the file has no checksum, or where the
     * checksum is damaged, too. */
    cr_expect_leq(bar->values, 1 + bar->damages / 2000);
}

static void free_bar(struct bar *bar)
{
    for (unsigned i = 0; i < bar->n_files; i++) {
        rd_buf_done(&bar->files[i].bytes);
        free(bar->files[i].keys.at);
        free(bar->files[i].fields);
    }
    free(bar);
}

enum { SECTOR = 512, SECTORS_LOST = 2, SECTOR_DAMAGES = 300 };

static void lose_sectors(struct bar *bar)
{
    const struct file *file = &bar->files[chance_next(&bar->random) % bar->n_files];
    struct range ranges[SECTORS_LOST];
    struct rd_buf bytes = {0};
    char what[SNAPSHOT_PATH_MAX + 128];
    made_add(&bytes, file->bytes.ptr, file->bytes.len);
    for (size_t k = 0; k < SECTORS_LOST; k++) {
        uint64_t sectors = (bytes.len + SECTOR - 1) / SECTOR;
        uint64_t from = chance_next(&bar->random) % sectors * SECTOR;
        uint64_t to = from + SECTOR < bytes.len ? from + SECTOR : bytes.len;
        ranges[k] = (struct range){from, to};
        memset(bytes.ptr + from, 0, (size_t)(to - from));
    }
    snprintf(what, sizeof what, "seed %" PRIu64 ", loss %" PRIu64 ", %s, %" PRIu64 " and %" PRIu64,
             bar->seed, bar->damages, file->name, ranges[0].from, ranges[1].from);
    bool skipped = bar->only != UINT64_MAX && bar->only != bar->damages;
    if (!skipped && bar->only != UINT64_MAX && getenv("REDOUBT_DAMAGED") != NULL)
        write_file(getenv("REDOUBT_DAMAGED"), &bytes);
    bar->damages++;
    if (!skipped)
        judge_ranges(bar, file, &bytes, ranges, SECTORS_LOST, what);
    rd_buf_done(&bytes);
}

static void report(const struct bar *bar)
{
    printf("# seed %" PRIu64 ": %" PRIu64 " damages of %u files; of %" PRIu64
           " untouched keys %" PRIu64 " saved; %" PRIu64 " keys unmarked, %" PRIu64
           " marked, %" PRIu64 " left out; %" PRIu64 " files marked as a whole\n",
           bar->seed, bar->damages, bar->n_files, bar->untouched, bar->saved, bar->unmarked,
           bar->marked, bar->left_out, bar->marked_files);
    printf("# unmarked: %" PRIu64 " invented, %" PRIu64 " moved, %" PRIu64
           " with another expiry, %" PRIu64 " with another value; %" PRIu64 " refused, %" PRIu64
           " strict; %" PRIu64 " fields as keys\n",
           bar->invented, bar->moved, bar->immortal, bar->values, bar->refused, bar->strict,
           bar->fields);
    printf("# marked: %" PRIu64 " as they were; %" PRIu64 " in files marked as a whole; ",
           bar->needless, bar->in_whole);
    for (unsigned bit = 0; bit < RDB_DOUBTS; bit++)
        printf("%" PRIu64 " %s%s", bar->by_doubt[bit], rdb_doubt_word((enum rdb_doubt)(1u << bit)),
               bit + 1 == RDB_DOUBTS ? "\n" : ", ");
    fflush(stdout);
}

Test(salvage_bar, what_is_not_marked_is_true)
{
    struct bar *bar = calloc(1, sizeof *bar);
    cr_assert_not_null(bar);
    add_files(bar);
    bar->seed = bar->random = number("REDOUBT_SEED", 20240501);
    bar->only = number("REDOUBT_ONLY", UINT64_MAX);
    for (uint64_t n = number("REDOUBT_DAMAGES", DAMAGES); bar->damages < n;)
        one_damage(bar);
    report(bar);
    expect_true(bar);
    cr_expect_geq(bar->saved * 100, bar->untouched * 99);
    /* Fields of a hash whose head is lost are marked. */
    cr_expect_leq(bar->fields, bar->damages / 10);
    free_bar(bar);
}

/* Damages that once made keys without a mark. */
static const struct {
    unsigned kind, number;
    uint64_t from, to;
    size_t n_put; /* bytes that take the place of [from, to) */
    const char *put;
} known[] = {
    /* The value that broke holds records: what is read in it does not prove itself. */
    {1, 0, 373, 389, 16, "\xed\x2b\x62\xba\xef\xf2\x35\xa7\x35\xb9\xee\x85\xde\x22\x92\xd5"},
    /* The head of a hash is lost, and its fields read as strings before the break. */
    {0, 2, 8337, 8375, 0, ""},
    /* A record takes in the head of a value, and the records in it follow. */
    {1, 0, 928, 938, 0, ""},
    /* The head of a string is lost that is a snapshot, which is read to its end mark. */
    {4, 9, 1418, 1452, 0, ""},
    {4, 0, 1707, 1736, 0, ""},
    {2, 3, 6131, 6171, 0, ""},
    {7, 9, 134770, 134780, 0, ""},
    /* A string takes in a selector: the records that follow are too few for the database. */
    {5, 3, 1563, 1563, 9, "\x89\x69\x26\x97\x41\x99\x69\x77\x11"},
    /* The way back leads into a record that takes in others, or the next selector. */
    {0, 6, 21305, 21305, 3, "\x8d\x04\xcd"},
    {0, 9, 1418, 1418, 9, "\x4b\xd8\xa9\x6f\xf1\x04\xef\x1a\xf6"},
    {7, 11, 27199, 27199, 25,
     "\x29\x4e\x4b\x04\x7f\x74\x72\x71\x85\xdb\x61\xe7\xeb\x68\xd0\x12\xcd\xf4\xc8\xe0\xeb\xb9"
     "\x92\xc2\x15"},
    /* A string takes in the head of the value after it: more keys than the database announces. */
    {1, 2, 85, 114, 0, ""},
    /* The file is cut 8 bytes after a packed value, whose end is then an end mark. */
    {1, 11, 2535, 6111, 0, ""},
    /* The first key takes in the head of a hash: its fields prove each other. */
    {0, 0, 71, 71, 7, "\x62\x40\xa9\x12\xbe\x5d\xed"},
};

Test(salvage_bar, damages_that_made_keys_stay_marked)
{
    struct bar *bar = calloc(1, sizeof *bar);
    cr_assert_not_null(bar);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char what[SNAPSHOT_PATH_MAX + 128];
        struct rd_buf bytes = {0}, whole = {0};
        tricky_make(known[i].kind, 1000 * known[i].kind + known[i].number, &whole);
        add_file(bar, tricky_name(known[i].kind), rd_buf_slice(&whole));
        made_add(&bytes, whole.ptr, (size_t)known[i].from);
        made_add(&bytes, known[i].put, known[i].n_put);
        made_add(&bytes, whole.ptr + known[i].to, whole.len - (size_t)known[i].to);
        snprintf(what, sizeof what, "case %zu, %s %u", i, tricky_name(known[i].kind),
                 known[i].number);
        judge(bar, &bar->files[i], &bytes, known[i].from, known[i].to, what);
        rd_buf_done(&bytes);
        rd_buf_done(&whole);
    }
    cr_expect_eq(bar->n_files, sizeof known / sizeof *known);
    cr_expect_gt(bar->unmarked, 0);
    expect_true(bar);
    free_bar(bar);
}

/* Small snapshots, where a run between two losses has no anchor. Zeros in a string are not seen. */
Test(salvage_bar, keys_between_two_lost_sectors_are_saved)
{
    struct bar *bar = calloc(1, sizeof *bar);
    cr_assert_not_null(bar);
    if (getenv("REDOUBT_FILES") != NULL) {
        add_files(bar);
    } else {
        add_tricky(bar, 6);
        add_tricky(bar, 8);
    }
    bar->seed = bar->random = number("REDOUBT_SEED", 20240501);
    bar->only = number("REDOUBT_ONLY", UINT64_MAX);
    for (uint64_t n = number("REDOUBT_DAMAGES", SECTOR_DAMAGES); bar->damages < n;)
        lose_sectors(bar);
    report(bar);
    expect_true(bar);
    cr_expect_geq(bar->saved * 100, bar->untouched * 90);
    cr_expect_eq(bar->fields, 0);
    free_bar(bar);
}
