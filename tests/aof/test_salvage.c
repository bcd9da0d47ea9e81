/* What is left of damaged logs: files of commands are damaged in many places, salvaged, and
 * compared command by command with what they were. The damage is pseudo-random and the same in
 * every run.
 */
#include "aof/salvage.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/src_impl.h"
#include "rdb/check.h"
#include "tests/support/alloc_fault.h"
#include "tests/support/chance.h"

/* ---- commands of a sound file ---- */

struct entry {
    size_t from, to;
    size_t group; /* of a transaction: index of its MULTI; else its own */
    bool note;    /* an annotation */
};

struct entries {
    struct entry *at;
    size_t n, cap;
    bool sound;
};

static size_t number_at(struct rd_slice file, size_t *at)
{
    size_t value = 0;
    for (; *at < file.len && file.ptr[*at] >= '0' && file.ptr[*at] <= '9'; ++*at)
        value = value * 10 + (size_t)(file.ptr[*at] - '0');
    *at += 2;
    return value;
}

static bool is_command(struct rd_slice bytes, const char *name)
{
    char whole[32];
    snprintf(whole, sizeof whole, "*1\r\n$%zu\r\n%s\r\n", strlen(name), name);
    return bytes.len == strlen(whole) &&
           strncasecmp((const char *)bytes.ptr, whole, bytes.len) == 0;
}

/* Its own reader, of which nothing is shared with what is tested. */
static struct entries entries_of(struct rd_slice file, size_t at)
{
    struct entries all = {0};
    size_t multi = SIZE_MAX;
    while (at < file.len) {
        size_t from = at;
        if (file.ptr[at] == '#') {
            const uint8_t *lf = memchr(file.ptr + at, '\n', file.len - at);
            if (lf == NULL)
                return all;
            at = (size_t)(lf - file.ptr) + 1;
        } else {
            if (file.ptr[at++] != '*')
                return all;
            size_t argc = number_at(file, &at);
            for (size_t i = 0; i < argc; i++) {
                if (at >= file.len || file.ptr[at++] != '$')
                    return all;
                at += number_at(file, &at) + 2;
            }
        }
        if (at > file.len)
            return all;
        if (all.n == all.cap) {
            all.cap = all.cap == 0 ? 256 : 2 * all.cap;
            all.at = realloc(all.at, all.cap * sizeof *all.at);
            cr_assert_not_null(all.at);
        }
        struct rd_slice bytes = rd_slice(file.ptr + from, at - from);
        if (is_command(bytes, "MULTI"))
            multi = all.n;
        all.at[all.n] =
            (struct entry){from, at, multi == SIZE_MAX ? all.n : multi, file.ptr[from] == '#'};
        all.n++;
        if (is_command(bytes, "EXEC"))
            multi = SIZE_MAX;
    }
    all.sound = multi == SIZE_MAX;
    return all;
}

static struct rd_slice bytes_of(struct rd_slice file, const struct entry *e)
{
    return rd_slice(file.ptr + e->from, e->to - e->from);
}

/* ---- files ---- */

static struct rd_slice read_fixture(const char *name)
{
    char path[500];
    struct rd_src *src;
    struct rd_slice s;
    struct rd_buf buf = {0};
    const char *folder = getenv("REDOUBT_FIXTURES");
    snprintf(path, sizeof path, "%s/%s", folder != NULL ? folder : "fixtures", name);
    cr_assert(rd_src_open_file(&src, path, NULL, NULL), "%s", path);
    while (rd_src_need(src, 1, &s) == RD_SRC_OK) {
        cr_assert(rd_buf_add(&buf, s.ptr, s.len));
        rd_src_consume(src, s.len);
    }
    rd_src_close(src);
    return rd_buf_slice(&buf);
}

static void slice_free(struct rd_slice s)
{
    struct rd_buf buf = {0};
    memcpy(&buf.ptr, &s.ptr, sizeof buf.ptr);
    rd_buf_done(&buf);
}

static void put(struct rd_buf *buf, size_t argc, const char *const *argv)
{
    rd_buf_printf(buf, "*%zu\r\n", argc);
    for (size_t i = 0; i < argc; i++)
        rd_buf_printf(buf, "$%zu\r\n%s\r\n", strlen(argv[i]), argv[i]);
}

#define PUT(buf, ...)                                                                              \
    put(buf, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__})

/* Transactions, annotations, databases, values that hold commands, and long ones. */
static struct rd_slice made_file(void)
{
    struct rd_buf buf = {0}, inner = {0};
    char key[32], *text;
    for (int i = 0; i < 12; i++)
        PUT(&inner, "SET", "inner", "never to be kept");
    rd_buf_add_byte(&inner, 0);
    text = (char *)inner.ptr;
    PUT(&buf, "SELECT", "0");
    for (int i = 0; i < 120; i++) {
        snprintf(key, sizeof key, "key:%d", i);
        if (i % 10 == 0)
            rd_buf_printf(&buf, "#TS:%d\r\n", 1700000000 + i);
        if (i % 7 == 3) {
            PUT(&buf, "MULTI");
            PUT(&buf, "INCR", key);
            PUT(&buf, "LPUSH", "list", key, "a\r\nb", "$1\r\nv\r\n");
            PUT(&buf, "EXEC");
        }
        if (i % 25 == 24)
            PUT(&buf, "SELECT", i % 2 == 0 ? "3" : "12");
        PUT(&buf, "SET", key, i % 9 == 0 ? text : "value");
        PUT(&buf, "HSET", key, "field", "", "f2", "\r\n", "f3", "*3\r\n$3\r\n");
        PUT(&buf, "DEL", key);
    }
    rd_buf_done(&inner);
    return rd_buf_slice(&buf);
}

/* ---- damage ---- */

enum damage { DAMAGE_FLIP, DAMAGE_BYTE, DAMAGE_RANDOM, DAMAGE_ZEROS, DAMAGE_CUT, DAMAGE_OUT };

static const char *const damage_names[] = {"one bit", "one byte",       "16 random bytes",
                                           "zeros",   "the end is cut", "100 bytes taken out"};

/* A damaged copy; [from, to) of the original is not what it was, [from, now_to) of the copy. */
struct damaged {
    struct rd_slice bytes;
    size_t from, to, now_to;
};

static struct damaged damage(struct rd_slice file, enum damage kind, size_t at, uint64_t *random)
{
    static const size_t sizes[] = {1, 1, 16, 512, SIZE_MAX, 100};
    size_t left = file.len - at, size = sizes[kind] < left ? sizes[kind] : left;
    bool gone = kind == DAMAGE_CUT || kind == DAMAGE_OUT;
    struct damaged d = {.from = at, .to = at + size, .now_to = gone ? at : at + size};
    size_t len = gone ? file.len - size : file.len;
    uint8_t *bytes = malloc(len + 1); /* exactly as long would be 0 when all is cut */
    cr_assert_not_null(bytes);
    memcpy(bytes, file.ptr, at);
    memcpy(bytes + d.now_to, file.ptr + d.to, file.len - d.to);
    for (size_t i = at; i < d.now_to; i++) {
        uint8_t was = file.ptr[i], byte = was;
        while (byte == was && kind != DAMAGE_ZEROS)
            byte = (uint8_t)(kind == DAMAGE_FLIP ? was ^ 1u << chance_next(random) % 8
                                                 : chance_next(random));
        bytes[i] = kind == DAMAGE_ZEROS ? 0 : byte;
    }
    d.bytes = rd_slice(bytes, len);
    return d;
}

static void damage_done(struct damaged *d)
{
    void *bytes;
    memcpy(&bytes, &d->bytes.ptr, sizeof bytes);
    free(bytes);
}

/* ---- salvage ---- */

static struct rd_src *open_bytes(struct rd_slice file, size_t window)
{
    struct rd_src *src, *slow;
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = window, .total = file.len);
    cr_assert(rd_src_open_memory(&src, file, NULL, NULL));
    if (window == 0)
        return src;
    cr_assert(rd_src_open_trickle(&slow, src, 61, &opts, NULL));
    return slow;
}

static struct aof_salvage_result salvage(struct rd_slice file, size_t window,
                                         const struct aof_salvage_opts *opts, struct rd_buf *out)
{
    struct aof_salvage_opts none = AOF_SALVAGE_OPTS();
    struct aof_salvage_result res = AOF_SALVAGE_RESULT();
    struct rd_src *src = open_bytes(file, window), *copy = open_bytes(file, window);
    struct rd_sink *sink;
    struct rd_err err = {0};
    cr_assert(rd_sink_open_buf(&sink, out, NULL, NULL));
    cr_assert(
        aof_salvage_file(src, copy, sink, "a", false, opts != NULL ? opts : &none, &res, &err),
        "%s", err.text);
    cr_assert(rd_sink_close(sink, NULL));
    rd_src_close(src);
    rd_src_close(copy);
    return res;
}

/* ---- the comparison ---- */

struct tally {
    uint64_t runs, untouched, kept;
    uint64_t split, invented, unsound; /* must stay 0 */
};

static bool overlaps(const struct entry *e, const struct damaged *d)
{
    return e->from < d->to && e->to > d->from;
}

/* Does some place in the damaged copy that was damaged read like that? */
static bool is_touched(const struct damaged *d, struct rd_slice bytes)
{
    size_t from = d->from > bytes.len ? d->from - bytes.len : 0;
    for (size_t at = from; at <= d->now_to && at + bytes.len <= d->bytes.len; at++)
        if (memcmp(d->bytes.ptr + at, bytes.ptr, bytes.len) == 0)
            return true;
    return false;
}

static bool is_select(struct rd_slice bytes)
{
    return bytes.len > 14 && strncasecmp((const char *)bytes.ptr, "*2\r\n$6\r\nSELECT", 14) == 0;
}

/* Every command of the original, by whether the damage touched it or its transaction. */
static bool *touched_of(const struct entries *before, const struct damaged *d)
{
    bool *touched = calloc(before->n + 1, sizeof *touched);
    cr_assert_not_null(touched);
    for (size_t i = 0; i < before->n; i++)
        if (overlaps(&before->at[i], d))
            touched[before->at[i].group] = true;
    for (size_t i = 0; i < before->n; i++)
        touched[i] = touched[i] || touched[before->at[i].group] || overlaps(&before->at[i], d);
    return touched;
}

/* A transaction of the output is one of the original, or the damage lies in it. */
static void check_group(struct tally *t, struct rd_slice out, const struct entries *after, size_t i,
                        struct rd_slice file, const struct damaged *d)
{
    size_t last = i;
    while (last + 1 < after->n && after->at[last + 1].group == i)
        last++;
    struct rd_slice whole =
        rd_slice(out.ptr + after->at[i].from, after->at[last].to - after->at[i].from);
    if (last > i && memmem(file.ptr, file.len, whole.ptr, whole.len) == NULL &&
        !is_touched(d, whole))
        t->split++;
}

static void compare(struct tally *t, struct rd_slice file, const struct entries *before,
                    const struct damaged *d, struct rd_slice out, uint64_t added)
{
    struct entries after = entries_of(out, 0);
    bool *touched = touched_of(before, d);
    size_t next = 0;
    t->unsound += !after.sound;
    for (size_t i = 0; i < after.n; i++) {
        struct rd_slice bytes = bytes_of(out, &after.at[i]);
        size_t j = next;
        while (j < before->n && !rd_slice_eq(bytes, bytes_of(file, &before->at[j])))
            j++;
        check_group(t, out, &after, i, file, d);
        if (j < before->n) {
            t->kept += !touched[j];
            next = j + 1;
        } else if (is_select(bytes) && added > 0) {
            added--;
        } else if (!is_touched(d, bytes)) {
            t->invented++;
        }
    }
    for (size_t i = 0; i < before->n; i++)
        t->untouched += !touched[i];
    t->runs++;
    free(touched);
    free(after.at);
}

static void one_run(struct tally *t, struct rd_slice file, const struct entries *before,
                    enum damage kind, size_t at, uint64_t *random)
{
    struct damaged d = damage(file, kind, at, random);
    struct rd_buf out = {0};
    struct tally was = *t;
    struct aof_salvage_result res = salvage(d.bytes, t->runs % 16 == 5 ? 64 : 0, NULL, &out);
    compare(t, file, before, &d, rd_buf_slice(&out), res.selects_added);
    uint64_t lost = t->untouched - was.untouched - (t->kept - was.kept);
    if (getenv("SALVAGE_VERBOSE") != NULL && (lost > 0 || t->invented > was.invented ||
                                              t->split > was.split || t->unsound > was.unsound))
        fprintf(stderr, "%s at %zu: %llu lost, %llu invented, %llu split\n", damage_names[kind], at,
                (unsigned long long)lost, (unsigned long long)(t->invented - was.invented),
                (unsigned long long)(t->split - was.split));
    rd_buf_done(&out);
    damage_done(&d);
}

static void judge(const struct tally *t, const char *what)
{
    fprintf(stderr, "# %s: %llu runs, %llu of %llu kept\n", what, (unsigned long long)t->runs,
            (unsigned long long)t->kept, (unsigned long long)t->untouched);
    cr_expect_gt(t->runs, 0, "%s", what);
    cr_expect_eq(t->invented, 0, "%s: %llu commands that were not there", what,
                 (unsigned long long)t->invented);
    cr_expect_eq(t->split, 0, "%s: %llu split transactions", what, (unsigned long long)t->split);
    cr_expect_eq(t->unsound, 0, "%s: %llu times a log that is not whole", what,
                 (unsigned long long)t->unsound);
    cr_expect_geq(t->kept * 100, t->untouched * 99, "%s: only %llu of %llu kept", what,
                  (unsigned long long)t->kept, (unsigned long long)t->untouched);
}

static const char *const file_names[] = {
    "damaged/aof-whole.aof",
    "redis-2.4.18/aof-plain.aof.d/appendonly.aof",
    "redis-7.0.15/aof-multi.aof.d/appendonlydir/appendonly.aof.2.incr.aof",
    "redis-7.0.15/aof-timestamps.aof.d/appendonlydir/appendonly.aof.2.incr.aof",
    "redis-unstable/aof-nopreamble.aof.d/appendonlydir/appendonly.aof.2.base.aof",
    "", /* made_file() */
};

enum { N_FILES = sizeof file_names / sizeof *file_names };

static struct rd_slice file_of(size_t i)
{
    return *file_names[i] == 0 ? made_file() : read_fixture(file_names[i]);
}

static void sweep(enum damage kind, size_t runs)
{
    struct tally t = {0};
    for (size_t i = 0; i < N_FILES; i++) {
        struct rd_slice file = file_of(i);
        struct entries before = entries_of(file, 0);
        uint64_t random = 1000 * (uint64_t)kind + i;
        cr_assert(before.sound, "%s", file_names[i]);
        for (size_t n = 0; n < runs; n++)
            one_run(&t, file, &before, kind, (size_t)(chance_next(&random) % file.len), &random);
        free(before.at);
        slice_free(file);
    }
    judge(&t, damage_names[kind]);
}

Test(salvage, keeps_what_one_flipped_bit_did_not_touch)
{
    sweep(DAMAGE_FLIP, 1000);
}

Test(salvage, keeps_what_one_wrong_byte_did_not_touch)
{
    sweep(DAMAGE_BYTE, 500);
}

Test(salvage, keeps_what_random_bytes_did_not_touch)
{
    sweep(DAMAGE_RANDOM, 300);
}

Test(salvage, keeps_what_zeroed_pages_did_not_touch)
{
    sweep(DAMAGE_ZEROS, 300);
}

Test(salvage, keeps_the_commands_around_missing_bytes)
{
    sweep(DAMAGE_OUT, 300);
}

Test(salvage, keeps_every_whole_command_wherever_the_end_is_cut)
{
    struct tally t = {0};
    uint64_t random = 0;
    for (size_t i = 0; i < N_FILES; i++) {
        struct rd_slice file = file_of(i);
        struct entries before = entries_of(file, 0);
        for (size_t at = file.len > 4096 ? file.len - 4096 : 0; at < file.len; at++)
            one_run(&t, file, &before, DAMAGE_CUT, at, &random);
        free(before.at);
        slice_free(file);
    }
    judge(&t, damage_names[DAMAGE_CUT]);
    cr_assert_eq(t.kept, t.untouched);
}

Test(salvage, a_sound_file_comes_out_as_it_was)
{
    for (size_t i = 0; i < N_FILES; i++) {
        struct rd_slice file = file_of(i);
        struct rd_buf out = {0};
        struct aof_salvage_result res = salvage(file, 0, NULL, &out);
        cr_expect(rd_slice_eq(file, rd_buf_slice(&out)), "%s", file_names[i]);
        cr_expect_eq(res.losses, 0);
        cr_expect_eq(res.bytes_lost, 0);
        rd_buf_done(&out);
        slice_free(file);
    }
}

/* ---- reports ---- */

struct reported {
    struct aof_loss at[16];
    size_t n;
    size_t doubts;
};

static void on_loss(void *ctx, const struct aof_loss *loss)
{
    struct reported *reported = ctx;
    if (reported->n < 16)
        reported->at[reported->n++] = *loss;
}

static void on_doubt(void *ctx, const struct aof_doubt *d)
{
    struct reported *reported = ctx;
    (void)d;
    reported->doubts++;
}

#define GET       "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
#define GOOD      GET GET GET GET
#define SELECT(n) "*2\r\n$6\r\nSELECT\r\n$1\r\n" #n "\r\n"
#define MULTI     "*1\r\n$5\r\nMULTI\r\n"
#define EXEC      "*1\r\n$4\r\nEXEC\r\n"
#define BAD       "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9\r\nv\r\n" /* the length should be 1 */
#define SET(k, v) "*3\r\n$3\r\nSET\r\n$1\r\n" k "\r\n$1\r\n" v "\r\n"
#define GARBAGE   "\1\2\3 garbage \4\5"

static void expect(const char *in, const char *expected, struct reported *reported)
{
    struct rd_buf out = {0};
    struct aof_salvage_opts opts =
        AOF_SALVAGE_OPTS(.loss = on_loss, .doubt = on_doubt, .ctx = reported);
    *reported = (struct reported){0};
    salvage(rd_slice_str(in), 0, &opts, &out);
    cr_expect(rd_slice_is(rd_buf_slice(&out), expected), "%s\ngives\n%.*s", in, (int)out.len,
              (const char *)out.ptr);
    rd_buf_done(&out);
}

Test(salvage, a_wrong_length_costs_one_command)
{
    struct reported reported;
    expect(GOOD BAD GOOD, GOOD GOOD, &reported);
    cr_assert_eq(reported.n, 1);
    cr_expect_eq(reported.at[0].kind, AOF_LOSS_RANGE);
    cr_expect_eq(reported.at[0].from, strlen(GOOD));
    cr_expect_eq(reported.at[0].to, strlen(GOOD BAD));
    cr_expect(reported.at[0].counted);
    cr_expect_eq(reported.at[0].commands, 1);
    cr_expect_not(reported.at[0].db_uncertain);
}

Test(salvage, a_torn_command_costs_only_itself)
{
    struct reported reported;
    /* Its length ends at a line end of the next command, which it takes for arguments. */
    expect(SET("a", "1") "*3\r\n$3\r\nSET\r\n$4\r\nke" SET("b", "2") SET("c", "3"),
           SET("a", "1") SET("b", "2") SET("c", "3"), &reported);
    /* Its length reaches beyond the end of the file. */
    expect("*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$9999\r\nvalue" SET("b", "2") SET("c", "3"),
           SET("b", "2") SET("c", "3"), &reported);
}

Test(salvage, commands_in_a_value_are_no_commands)
{
    struct reported reported;
    static const char log[] =
        "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$54\r\n" SET("b", "2") SET("c", "3") "\r\n";
    expect(log, log, &reported);
    cr_expect_eq(reported.n + reported.doubts, 0);
}

Test(salvage, a_value_that_may_be_the_rest_of_a_torn_command_is_a_doubt)
{
    struct reported reported;
    static const char log[] =
        "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$57\r\nbegin" SET("b", "2") SET("c", "3");
    expect(log, log, &reported);
    cr_expect_eq(reported.n, 0);
    cr_expect_eq(reported.doubts, 1);
}

Test(salvage, a_select_after_the_damage_leaves_no_doubt_about_the_database)
{
    struct reported reported;
    expect(GOOD GARBAGE SELECT(3) GOOD, GOOD SELECT(3) GOOD, &reported);
    cr_assert_eq(reported.n, 1);
    cr_expect_not(reported.at[0].db_uncertain);
    expect(GOOD "\n" GOOD, GOOD GOOD, &reported);
    cr_assert_eq(reported.n, 1);
    cr_expect_eq(reported.at[0].commands, 0);
    cr_expect(reported.at[0].counted);
}

Test(salvage, a_transaction_with_damage_is_lost_whole)
{
    struct reported reported;
    expect(GOOD MULTI GET BAD GET EXEC GOOD, GOOD GOOD, &reported);
    cr_assert_eq(reported.n, 2); /* up to the damage, and from there to EXEC */
    cr_expect_eq(reported.at[0].kind, AOF_LOSS_TRANSACTION);
    cr_expect_eq(reported.at[0].from, strlen(GOOD));
    cr_expect_eq(reported.at[1].kind, AOF_LOSS_TRANSACTION);
    cr_expect_eq(reported.at[1].to, strlen(GOOD MULTI GET BAD GET EXEC));
}

Test(salvage, a_transaction_whose_first_or_last_command_was_renamed_is_lost_whole)
{
    struct reported reported;
    expect(GOOD "*1\r\n$5\r\nMULTJ\r\n" GET EXEC GOOD, GOOD GOOD, &reported);
    expect(GOOD MULTI GET "*1\r\n$4\r\nEXEB\r\n" GET MULTI GET EXEC GOOD,
           GOOD GET MULTI GET EXEC GOOD, &reported);
    expect(GOOD MULTI GET "*1\r\n$4\r\nEXEB\r\n" GOOD, GOOD GOOD, &reported);
    expect(GOOD MULTI GET, GOOD, &reported);
    cr_expect_eq(reported.at[0].kind, AOF_LOSS_TRANSACTION);
}

Test(salvage, a_script_in_a_transaction_has_its_own_multi_and_exec)
{
    struct reported reported;
#define OF_3_2 MULTI GET MULTI GET EXEC GET MULTI GET EXEC EXEC
    expect(GOOD OF_3_2 BAD GOOD, GOOD OF_3_2 GOOD, &reported);
    cr_expect_eq(reported.n, 1);
    /* Their number is not even: an EXEC was lost. */
    expect(GOOD MULTI GET MULTI GET EXEC GOOD, GOOD MULTI GET EXEC GOOD, &reported);
    cr_assert_eq(reported.n, 1);
    cr_expect_eq(reported.at[0].from, strlen(GOOD));
    cr_expect_eq(reported.at[0].to, strlen(GOOD MULTI GET));
    cr_expect_eq(reported.at[0].commands, 2);
    expect(MULTI GET MULTI GET MULTI GET EXEC GOOD, MULTI GET EXEC GOOD, &reported);
    expect(MULTI GET MULTI GET EXEC GOOD BAD GOOD, MULTI GET EXEC GOOD GOOD, &reported);
    expect(MULTI GET MULTI GET BAD EXEC GOOD, GOOD, &reported);
}

Test(salvage, a_lost_select_is_written_where_its_number_can_be_read)
{
    struct reported reported;
    expect(GOOD "*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\1" GOOD, GOOD SELECT(7) GOOD, &reported);
    expect(SELECT(3) GOOD "*2\r\1"
                          "$6\r\nSELECT\r\n$1\r\n7\r\n" GOOD,
           SELECT(3) GOOD SELECT(7) GOOD, &reported);
    cr_assert_eq(reported.n, 1);
    cr_expect_eq(reported.at[0].db, 3);
    cr_expect_eq(reported.at[0].db_after, 7);
    cr_expect_not(reported.at[0].db_uncertain);
}

Test(salvage, where_a_select_may_be_lost_the_database_is_uncertain)
{
    struct reported reported;
    expect(GOOD GARBAGE GOOD, GOOD GOOD, &reported);
    cr_assert_eq(reported.n, 1);
    cr_expect(reported.at[0].db_uncertain);
}

Test(salvage, a_select_that_belongs_to_a_lost_transaction_still_counts)
{
    struct reported reported;
    expect(GOOD MULTI SELECT(4) BAD EXEC GOOD, GOOD SELECT(4) GOOD, &reported);
    expect(GOOD MULTI SELECT(4) "*1\r\n$4\r\nEXEB\r\n" GOOD, GOOD SELECT(4) GOOD, &reported);
}

Test(salvage, losses_are_reported_with_the_times_around_them)
{
    struct reported reported;
    expect("#TS:100\r\n" GOOD BAD GOOD "#TS:200\r\n" GOOD,
           "#TS:100\r\n" GOOD GOOD "#TS:200\r\n" GOOD, &reported);
    cr_assert_eq(reported.n, 1);
    cr_expect_eq(reported.at[0].before, 100);
    cr_expect_eq(reported.at[0].after, 200);
}

Test(salvage, an_unknown_command_is_kept_and_reported)
{
    struct reported reported;
    expect(GOOD "*1\r\n$7\r\nNOSUCHX\r\n" GOOD, GOOD "*1\r\n$7\r\nNOSUCHX\r\n" GOOD, &reported);
    cr_expect_eq(reported.n, 0);
    cr_expect_eq(reported.doubts, 1);
}

Test(salvage, a_command_with_too_few_arguments_is_left_out_and_so_is_its_transaction)
{
    static const char bad[] = "*2\r\n$3\r\nSET\r\n$1\r\nk\r\n";
    struct reported reported;
    struct rd_buf log = {0};
    rd_buf_printf(&log, SELECT(3) GOOD "%s" GOOD, bad);
    rd_buf_add_byte(&log, 0);
    expect((const char *)log.ptr, SELECT(3) GOOD GOOD, &reported);
    cr_expect_eq(reported.n, 1);
    rd_buf_reset(&log);
    rd_buf_printf(&log, GOOD MULTI GET "%s" GET EXEC GOOD, bad);
    rd_buf_add_byte(&log, 0);
    expect((const char *)log.ptr, GOOD GOOD, &reported);
    cr_expect_eq(reported.at[0].kind, AOF_LOSS_TRANSACTION);
    rd_buf_done(&log);
}

Test(salvage, nothing_but_damage_gives_nothing)
{
    struct reported reported;
    expect("", "", &reported);
    cr_expect_eq(reported.n, 0);
    expect(GARBAGE, "", &reported);
    cr_assert_eq(reported.n, 1);
    cr_expect_eq(reported.at[0].to, strlen(GARBAGE));
}

/* ---- snapshots ---- */

static void check_rdb(struct rd_slice out, uint64_t *ret_keys, uint64_t *ret_trailing)
{
    struct rdb_check_opts opts = RDB_CHECK_OPTS(.single_thread = true);
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct rd_src *src;
    cr_assert(rd_src_open_memory(&src, out, NULL, NULL));
    cr_assert(rdb_check(src, &opts, &res, NULL));
    cr_assert(!res.damaged && res.errors == 0);
    *ret_keys = res.keys;
    *ret_trailing = res.trailing;
    rd_src_close(src);
}

Test(salvage, a_damaged_snapshot_in_front_is_salvaged_and_the_commands_after_it_are_kept)
{
    struct rd_slice file = read_fixture("redis-6.2.16/aof-preamble.aof.d/appendonly.aof");
    uint64_t keys, commands, random = 7;
    check_rdb(file, &keys, &commands);
    for (int i = 0; i < 60; i++) {
        size_t at = (size_t)(chance_next(&random) % (file.len - commands));
        struct damaged d = damage(file, DAMAGE_FLIP, at, &random);
        struct rd_buf out = {0};
        uint64_t now_keys = 0, now_commands = 0;
        salvage(d.bytes, 0, NULL, &out);
        check_rdb(rd_buf_slice(&out), &now_keys, &now_commands);
        cr_expect_geq(now_keys + 2, keys, "a bit at %zu: %llu keys", at,
                      (unsigned long long)now_keys);
        cr_expect_eq(now_commands, commands, "a bit at %zu", at);
        rd_buf_done(&out);
        damage_done(&d);
    }
    slice_free(file);
}

/* ---- folders ---- */

struct folder {
    struct rd_buf out[2];
    size_t n;
    struct reported reported;
};

static bool open_in(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err)
{
    (void)ctx;
    if (strcmp(file->name, "gone") == 0)
        return rd_err_sys(err, ENOENT, "open");
    return rd_src_open_memory(
        ret, rd_slice_str(strcmp(file->name, "bad") == 0 ? GOOD BAD GOOD : SELECT(1) GOOD), NULL,
        err);
}

static bool create_out(void *ctx, const struct aof_file *file, struct rd_sink **ret,
                       struct rd_err *err)
{
    struct folder *folder = ctx;
    (void)file;
    return rd_sink_open_buf(ret, &folder->out[folder->n++], NULL, err);
}

static void folder_loss(void *ctx, const struct aof_loss *loss)
{
    on_loss(&((struct folder *)ctx)->reported, loss);
}

static struct aof_manifest three_files(void)
{
    static char names[3][8] = {"bad", "gone", "good"};
    struct aof_manifest m;
    aof_manifest_init(&m);
    for (uint64_t i = 0; i < 3; i++) {
        const struct aof_file file = {
            .name = names[i], .seq = i + 1, .type = AOF_INCR, .start_offset = -1, .end_offset = -1};
        cr_assert_not_null(aof_manifest_add(&m, &file));
    }
    return m;
}

Test(salvage, a_missing_file_is_reported_and_the_others_are_kept)
{
    struct aof_manifest in = three_files(), out;
    struct folder folder = {0};
    struct aof_salvage_result res = AOF_SALVAGE_RESULT();
    const struct aof_salvage_opts opts = AOF_SALVAGE_OPTS(.open = open_in, .create = create_out,
                                                          .loss = folder_loss, .ctx = &folder);
    aof_manifest_init(&out);
    cr_assert(aof_salvage(&in, &opts, &out, &res, NULL));
    cr_expect_eq(res.files, 2);
    cr_expect_eq(res.files_missing, 1);
    cr_expect_eq(folder.reported.n, 2);
    cr_expect_eq(folder.reported.at[1].kind, AOF_LOSS_FILE);
    cr_assert_eq(aof_manifest_count(&out), 2);
    cr_expect_str_eq(aof_manifest_file(&out, 0)->name, "bad");
    cr_expect_str_eq(aof_manifest_file(&out, 1)->name, "good");
    cr_expect_eq(aof_manifest_file(&out, 1)->seq, 3);
    cr_expect(rd_slice_is(rd_buf_slice(&folder.out[0]), GOOD GOOD));
    cr_expect(rd_slice_is(rd_buf_slice(&folder.out[1]), SELECT(1) GOOD));
    rd_buf_done(&folder.out[0]);
    rd_buf_done(&folder.out[1]);
    aof_manifest_done(&in);
    aof_manifest_done(&out);
}

Test(salvage, short_memory_is_an_error_and_leaks_nothing)
{
    for (size_t n = 1;; n++) {
        struct folder folder = {0};
        struct aof_salvage_result res = AOF_SALVAGE_RESULT();
        struct aof_manifest in, out;
        struct rd_err err = {0};
        const struct aof_salvage_opts opts =
            AOF_SALVAGE_OPTS(.open = open_in, .create = create_out, .ctx = &folder);
        in = three_files();
        alloc_fault_begin(n);
        aof_manifest_init(&out);
        bool ok = aof_salvage(&in, &opts, &out, &res, &err);
        aof_manifest_done(&out);
        rd_buf_done(&folder.out[0]);
        rd_buf_done(&folder.out[1]);
        struct alloc_fault_result r = alloc_fault_end();
        aof_manifest_done(&in);
        cr_assert_eq(r.live, 0, "allocation %zu", n);
        if (!r.failed)
            break;
        cr_assert_not(ok, "allocation %zu", n);
        cr_assert_eq(err.code, RD_ERR_MEMORY);
    }
}
