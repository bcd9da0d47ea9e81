/* What happens to logs on disks that fill up, crash, and have two writers: made of random commands,
 * damaged at random, and salvaged. The place of each command is known. Every whole command of the
 * damaged file should be in the result, and nothing else.
 *
 * REDOUBT_DAMAGES: how many damages. REDOUBT_SEED repeats a run, REDOUBT_VERBOSE names the damages
 * that cost something. REDOUBT_ONE=N makes only the N-th damage, and writes damaged.aof and
 * saved.aof.
 */
#include "aof/salvage.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "tests/support/chance.h"

enum { DAMAGES = 600, COMMANDS = 80, PIECES = 4 * COMMANDS };

/* ---- chance ---- */

static size_t random_below(uint64_t *state, size_t n)
{
    return (size_t)(chance_next(state) % n);
}

/* ---- commands ---- */

/* A command, or a transaction, which is kept whole or not at all. */
struct piece {
    size_t from, to;
    unsigned commands;
};

struct log {
    struct rd_buf bytes;
    struct piece pieces[PIECES];
    size_t n;
};

static struct rd_slice piece_of(const struct log *log, size_t i)
{
    return rd_slice(log->bytes.ptr + log->pieces[i].from, log->pieces[i].to - log->pieces[i].from);
}

static void put_argument(struct rd_buf *to, struct rd_slice bytes)
{
    rd_buf_printf(to, "$%zu\r\n", bytes.len);
    rd_buf_add(to, bytes.ptr, bytes.len);
    rd_buf_add(to, "\r\n", 2);
}

static void put_word(struct rd_buf *to, const char *word)
{
    put_argument(to, rd_slice_str(word));
}

/* Bytes, digits, text in lines, or commands between other bytes. */
static void put_value(struct rd_buf *to, uint64_t *random)
{
    struct rd_buf value = {0};
    size_t len =
        random_below(random, 12) == 0 ? random_below(random, 3000) : random_below(random, 40);
    switch (random_below(random, 8)) {
    case 0:
        for (size_t i = 0; i < len; i++)
            rd_buf_add_byte(&value, (uint8_t)chance_next(random));
        break;
    case 1:
        rd_buf_printf(&value, "log: *3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1\r\ny\r\n"
                              "*2\r\n$3\r\nDEL\r\n$1\r\nx\r\nand more");
        break;
    case 2:
        rd_buf_printf(&value, "line\r\n$3\r\n*2\r\n%zu\r\n", len);
        break;
    default:
        for (size_t i = 0; i < len; i++)
            rd_buf_add_byte(&value, (uint8_t)('a' + random_below(random, 26)));
    }
    put_argument(to, rd_buf_slice(&value));
    rd_buf_done(&value);
}

/* The names differ between the logs. */
static void put_key(struct rd_buf *to, char log, size_t n)
{
    char key[40];
    snprintf(key, sizeof key, "%c:%zu", log, n);
    put_word(to, key);
}

static void put_command(struct rd_buf *to, char log, size_t n, uint64_t *random)
{
    static const struct {
        const char *name;
        unsigned values;
    } kinds[] = {{"SET", 1}, {"RPUSH", 3}, {"HSET", 2}, {"SADD", 2}, {"DEL", 0}, {"APPEND", 1}};
    size_t kind = random_below(random, sizeof kinds / sizeof *kinds);
    rd_buf_printf(to, "*%u\r\n", kinds[kind].values + 2);
    put_word(to, kinds[kind].name);
    put_key(to, log, n);
    for (unsigned i = 0; i < kinds[kind].values; i++)
        put_value(to, random);
}

static void add_piece(struct log *log, size_t from, unsigned commands)
{
    cr_assert_lt(log->n, PIECES);
    log->pieces[log->n++] = (struct piece){from, log->bytes.len, commands};
}

static void make_log(struct log *log, char name, bool transactions, uint64_t *random)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        size_t from = log->bytes.len;
        bool multi = transactions && random_below(random, 12) == 0;
        if (!multi) {
            put_command(&log->bytes, name, i, random);
            add_piece(log, from, 1);
            continue;
        }
        rd_buf_printf(&log->bytes, "*1\r\n$5\r\nMULTI\r\n");
        put_command(&log->bytes, name, i, random);
        put_command(&log->bytes, name, i, random);
        rd_buf_printf(&log->bytes, "*1\r\n$4\r\nEXEC\r\n");
        add_piece(log, from, 4);
    }
}

/* ---- damage ---- */

enum kind { SHORT_WRITES, SHORT_AND_CUT, CUT, ZEROS, ZEROS_OVER, TWICE, MISSING, WRITERS, KINDS };

/* In 10,000: how many whole commands may be lost, and how many others may be kept. A torn command
 * whose lengths fit by chance takes a command with it, and a command with other bytes in a value is
 * like any other. Commands between the two parts of a long value may be lost, since they may belong
 * to it. */
static const struct {
    const char *name;
    unsigned lost, other;
    bool said; /* every other command is reported as a loss or a doubt */
} kinds_of_damage[KINDS] = {
    [SHORT_WRITES] = {"short writes", 10, 8, true},
    [SHORT_AND_CUT] = {"short writes and a cut", 30, 15, true},
    [CUT] = {"a cut", 0, 5, true},
    [ZEROS] = {"zeros inserted", 5, 5, true},
    [ZEROS_OVER] = {"zeros written over", 5, 100, false},
    [TWICE] = {"a block twice", 10, 8, false},
    [MISSING] = {"a block missing", 15, 8, false},
    [WRITERS] = {"two writers", 80, 15, true},
};

/* The damaged file, and which pieces are whole in it. */
struct damaged {
    struct rd_buf bytes;
    bool whole[2][PIECES]; /* of each log */
};

static void add_range(struct damaged *d, const struct log *log, size_t from, size_t to)
{
    rd_buf_add(&d->bytes, log->bytes.ptr + from, to - from);
}

/* Pieces of [from, to), which was copied, that are whole. */
static void note_range(struct damaged *d, unsigned which, const struct log *log, size_t from,
                       size_t to)
{
    for (size_t i = 0; i < log->n; i++)
        if (log->pieces[i].from >= from && log->pieces[i].to <= to)
            d->whole[which][i] = true;
}

/* The first bytes of a command between two pieces, once or several times. */
static void short_writes(struct damaged *d, const struct log *log, size_t end, uint64_t *random)
{
    size_t n = 1 + random_below(random, 3);
    for (size_t i = 0; i < log->n && log->pieces[i].from < end; i++) {
        if (n > 0 && random_below(random, log->n / 4) == 0) {
            struct rd_buf torn = {0};
            put_command(&torn, 't', i, random);
            rd_buf_add(&d->bytes, torn.ptr, 1 + random_below(random, torn.len - 1));
            rd_buf_done(&torn);
            n--;
        }
        size_t to = log->pieces[i].to < end ? log->pieces[i].to : end;
        add_range(d, log, log->pieces[i].from, to);
        d->whole[0][i] = to == log->pieces[i].to;
    }
}

static void insert_zeros(struct damaged *d, const struct log *log, uint64_t *random)
{
    size_t at = log->pieces[random_below(random, log->n)].from;
    add_range(d, log, 0, at);
    for (size_t n = 1 + random_below(random, 600); n > 0; n--)
        rd_buf_add_byte(&d->bytes, 0);
    add_range(d, log, at, log->bytes.len);
    note_range(d, 0, log, 0, log->bytes.len);
}

/* The bytes [from, to) are zeros, twice there, or missing. */
static void change_block(struct damaged *d, const struct log *log, enum kind kind, uint64_t *random)
{
    size_t from = random_below(random, log->bytes.len), to = from + 1 + random_below(random, 1500);
    if (to > log->bytes.len)
        to = log->bytes.len;
    add_range(d, log, 0, kind == TWICE ? to : from);
    for (size_t i = from; i < to && kind == ZEROS_OVER; i++)
        rd_buf_add_byte(&d->bytes, 0);
    add_range(d, log, kind == TWICE ? from : to, log->bytes.len);
    note_range(d, 0, log, 0, kind == TWICE ? to : from);
    note_range(d, 0, log, kind == TWICE ? from : to, log->bytes.len);
}

/* Both append what they have, which may end inside a command. */
static void two_writers(struct damaged *d, const struct log logs[2], uint64_t *random)
{
    size_t at[2] = {0, 0};
    while (at[0] < logs[0].bytes.len || at[1] < logs[1].bytes.len) {
        unsigned which = (unsigned)random_below(random, 2);
        const struct log *log = &logs[which];
        size_t end = log->bytes.len;
        for (size_t i = 0; i < log->n && end == log->bytes.len; i++)
            if (log->pieces[i].to > at[which] && random_below(random, 5) == 0)
                end = log->pieces[i].to;
        if (end > at[which] + 1 && random_below(random, 6) == 0)
            end -= 1 + random_below(random, end - at[which] - 1);
        add_range(d, log, at[which], end);
        note_range(d, which, log, at[which], end);
        at[which] = end;
    }
}

static void damage(struct damaged *d, const struct log logs[2], enum kind kind, uint64_t *random)
{
    size_t cut = random_below(random, logs->bytes.len);
    switch (kind) {
    case SHORT_WRITES:
        short_writes(d, logs, logs->bytes.len, random);
        break;
    case SHORT_AND_CUT:
        short_writes(d, logs, cut, random);
        break;
    case CUT:
        add_range(d, logs, 0, cut);
        note_range(d, 0, logs, 0, cut);
        break;
    case ZEROS:
        insert_zeros(d, logs, random);
        break;
    case WRITERS:
        two_writers(d, logs, random);
        break;
    default:
        change_block(d, logs, kind, random);
    }
}

/* ---- the comparison ---- */

struct tally {
    uint64_t damages, expected, kept, invented, quiet;
};

static struct aof_salvage_result salvage(struct rd_slice file, struct rd_buf *out)
{
    struct aof_salvage_opts opts = AOF_SALVAGE_OPTS();
    struct aof_salvage_result res = AOF_SALVAGE_RESULT();
    struct rd_src *src, *copy;
    struct rd_sink *sink;
    struct rd_err err = {0};
    cr_assert(rd_src_open_memory(&src, file, NULL, NULL));
    cr_assert(rd_src_open_memory(&copy, file, NULL, NULL));
    cr_assert(rd_sink_open_buf(&sink, out, NULL, NULL));
    cr_assert(aof_salvage_file(src, copy, sink, "a", false, &opts, &res, &err), "%s", err.text);
    cr_assert(rd_sink_close(sink, NULL));
    rd_src_close(src);
    rd_src_close(copy);
    return res;
}

/* The end of the command at `at`, or of a line that begins with '#', as a value may. */
static size_t command_end(struct rd_slice file, size_t at)
{
    char *next;
    if (file.ptr[at] == '#')
        return (size_t)((const uint8_t *)memchr(file.ptr + at, '\n', file.len - at) - file.ptr) + 1;
    unsigned long argc = strtoul((const char *)file.ptr + at + 1, &next, 10);
    at = (size_t)((const uint8_t *)next - file.ptr) + 2;
    for (; argc > 0; argc--) {
        cr_assert(at < file.len && file.ptr[at] == '$');
        unsigned long len = strtoul((const char *)file.ptr + at + 1, &next, 10);
        at = (size_t)((const uint8_t *)next - file.ptr) + 2 + len + 2;
    }
    cr_assert(at <= file.len);
    return at;
}

/* The end of the command or transaction at `at`. */
static size_t piece_end(struct rd_slice file, size_t at)
{
    static const char multi[] = "*1\r\n$5\r\nMULTI\r\n", exec[] = "*1\r\n$4\r\nEXEC\r\n";
    bool whole = file.len - at < sizeof multi - 1 || memcmp(file.ptr + at, multi, sizeof multi - 1);
    size_t end = command_end(file, at);
    while (!whole && end < file.len) {
        at = end;
        end = command_end(file, at);
        whole = end - at == sizeof exec - 1 && memcmp(file.ptr + at, exec, end - at) == 0;
    }
    return end;
}

/* The pieces that equal `bytes` are no longer missing. False: there is none. */
static bool find_piece(struct rd_slice bytes, const struct log logs[2], struct damaged *d,
                       struct tally *t)
{
    bool known = false;
    for (unsigned which = 0; which < 2; which++)
        for (size_t i = 0; i < logs[which].n; i++) {
            if (!rd_slice_eq(bytes, piece_of(&logs[which], i)))
                continue;
            known = true;
            t->kept += d->whole[which][i];
            d->whole[which][i] = false;
        }
    return known;
}

static void write_out(const char *path, struct rd_slice bytes)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file != NULL && fwrite(bytes.ptr, 1, bytes.len, file) == bytes.len);
    fclose(file);
}

static void compare(const struct log logs[2], struct damaged *d, struct tally *t, bool show)
{
    struct rd_buf out = {0};
    struct aof_salvage_result res = salvage(rd_buf_slice(&d->bytes), &out);
    rd_buf_add_byte(&out, 0); /* for strtoul() */
    struct rd_slice file = rd_slice(out.ptr, out.len - 1);
    uint64_t invented = 0;
    for (unsigned which = 0; which < 2; which++)
        for (size_t i = 0; i < logs[which].n; i++)
            t->expected += d->whole[which][i];
    for (size_t at = 0, end; at < file.len; at = end) {
        end = piece_end(file, at);
        struct rd_slice bytes = rd_slice(file.ptr + at, end - at);
        if (!find_piece(bytes, logs, d, t)) {
            invented++;
            if (show)
                fprintf(stderr, "invented: %.*s\n", (int)bytes.len, (const char *)bytes.ptr);
        }
    }
    for (size_t i = 0; show && i < 2 * PIECES; i++)
        if (d->whole[i / PIECES][i % PIECES])
            fprintf(stderr, "lost: %.*s\n", (int)piece_of(&logs[i / PIECES], i % PIECES).len,
                    (const char *)piece_of(&logs[i / PIECES], i % PIECES).ptr);
    t->invented += invented;
    t->quiet += invented > 0 && res.losses + res.swallowed == 0;
    if (show) {
        write_out("damaged.aof", rd_buf_slice(&d->bytes));
        write_out("saved.aof", file);
    }
    rd_buf_done(&out);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void one_damage(uint64_t n, struct tally tallies[KINDS], bool show)
{
    uint64_t random = number("REDOUBT_SEED", 20261127) * 1000003 + n;
    struct log *logs = calloc(2, sizeof *logs);
    struct damaged *d = calloc(1, sizeof *d);
    enum kind kind = (enum kind)(n % KINDS);
    struct tally *t = &tallies[kind], was = *t;
    cr_assert(logs != NULL && d != NULL);
    make_log(&logs[0], 'a', kind != SHORT_WRITES && kind != WRITERS, &random);
    make_log(&logs[1], 'b', false, &random);
    damage(d, logs, kind, &random);
    compare(logs, d, t, show);
    t->damages++;
    if (getenv("REDOUBT_VERBOSE") != NULL &&
        (t->expected - was.expected != t->kept - was.kept || t->invented != was.invented))
        fprintf(stderr, "# %s, damage %llu: %llu lost, %llu invented\n", kinds_of_damage[kind].name,
                (unsigned long long)n,
                (unsigned long long)(t->expected - was.expected - t->kept + was.kept),
                (unsigned long long)(t->invented - was.invented));
    rd_buf_done(&d->bytes);
    rd_buf_done(&logs[0].bytes);
    rd_buf_done(&logs[1].bytes);
    free(logs);
    free(d);
}

static void judge(const struct tally *t, enum kind kind)
{
    const char *name = kinds_of_damage[kind].name;
    uint64_t lost = t->expected - t->kept;
    fprintf(stderr,
            "# %s: %llu damages, %llu of %llu whole commands kept, %llu others, %llu times "
            "without a word\n",
            name, (unsigned long long)t->damages, (unsigned long long)t->kept,
            (unsigned long long)t->expected, (unsigned long long)t->invented,
            (unsigned long long)t->quiet);
    cr_expect_gt(t->expected, 0, "%s", name);
    cr_expect_leq(lost * 10000, t->expected * kinds_of_damage[kind].lost, "%s", name);
    cr_expect_leq(t->invented * 10000, t->expected * kinds_of_damage[kind].other, "%s", name);
    cr_expect(t->quiet == 0 || !kinds_of_damage[kind].said, "%s", name);
}

Test(salvage_bar, what_happens_to_logs_costs_no_whole_command)
{
    struct tally tallies[KINDS] = {0};
    uint64_t one = number("REDOUBT_ONE", UINT64_MAX);
    if (one != UINT64_MAX) {
        one_damage(one, tallies, true);
        return;
    }
    for (uint64_t n = 0; n < number("REDOUBT_DAMAGES", DAMAGES); n++)
        one_damage(n, tallies, false);
    for (size_t kind = 0; kind < KINDS; kind++)
        judge(&tallies[kind], (enum kind)kind);
}
