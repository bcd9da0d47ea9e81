/* Merges of three, against an obvious model: each element alone. What a merge does is run on an
 * engine, and so is what takes it back. */
#include <criterion/criterion.h>

#include "history/ask.h"
#include "history/merge.h"
#include "tests/history/streams.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAMES = 5, CONTENTS = 3, ABSENT = 0 };

/* A value of a type whose elements have names: content of each, from 1; or ABSENT. */
struct value {
    enum engine_type type;
    unsigned content[NAMES];
    bool there;
};

static void run(struct rebuild_data *data, const char *line)
{
    struct rd_slice argv[16];
    struct resp_command command = {.argv = argv};
    struct rd_err err = {0};
    while (*line != '\0') {
        size_t len = strcspn(line, " ");
        argv[command.argc++] = rd_slice(line, len);
        line += len + (line[len] == ' ');
    }
    const struct rebuild_step step = {.command = &command, .name = "test", .now_us = 1000000};
    cr_assert(rebuild_data_apply(data, &step, &err), "%s", err.text);
    cr_assert_eq(data->counts.refused, 0, "%s", data->counts.first_refused);
}

static void run_commands(struct rebuild_data *data, const struct history_commands *commands)
{
    struct rd_src *src;
    struct rd_resp_reader *reader;
    struct resp_command command;
    struct rd_err err = {0};
    uint64_t n = 0;
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&commands->bytes), NULL, &err));
    cr_assert(rd_resp_reader_new(&reader, src, NULL, &err));
    while (rd_resp_reader_next(reader, &command) == RESP_COMMAND) {
        const struct rebuild_step step = {.command = &command, .name = "test", .now_us = 1000000};
        cr_assert(rebuild_data_apply(data, &step, &err), "%s", err.text);
        n++;
    }
    cr_assert_eq(n, commands->n);
    cr_assert_eq(data->counts.refused, 0, "%s", data->counts.first_refused);
    rd_resp_reader_free(reader);
    rd_src_close(src);
}

static struct history_mirror *read_key(struct rebuild_data *data)
{
    struct rd_err err = {0};
    struct history_mirror *m = history_mirror_read(data, 0, rd_slice_str("k"), &err);
    cr_assert_not_null(m, "%s", err.text);
    return m;
}

static void store(struct rebuild_data *data, const struct value *v)
{
    char line[80];
    run(data, "DEL k");
    for (unsigned i = 0; v->there && i < NAMES; i++) {
        if (v->content[i] == ABSENT)
            continue;
        if (v->type == ENGINE_HASH)
            snprintf(line, sizeof line, "HSET k e%u %u", i, v->content[i]);
        else if (v->type == ENGINE_ZSET)
            snprintf(line, sizeof line, "ZADD k %u e%u", v->content[i], i);
        else
            snprintf(line, sizeof line, "SADD k e%u", i);
        run(data, line);
    }
}

static struct history_mirror *mirror_of(const struct value *v)
{
    struct rebuild_data data;
    rebuild_data_begin(&data, 1000000);
    store(&data, v);
    struct history_mirror *m = read_key(&data);
    rebuild_data_end(&data);
    return m;
}

static struct value random_value(enum engine_type type, uint64_t *state)
{
    struct value v = {.type = type};
    for (unsigned i = 0; i < NAMES; i++) {
        unsigned draw = (unsigned)(streams_draw(state) >> 8 & 0xffffff);
        v.content[i] = draw % 3 == 0 ? ABSENT : type == ENGINE_SET ? 1 : 1 + draw / 3 % CONTENTS;
        v.there |= v.content[i] != ABSENT;
    }
    return v;
}

/* Most elements stay as they were. */
static struct value changed_value(const struct value *from, uint64_t *state)
{
    struct value other = random_value(from->type, state), v = *from;
    v.there = false;
    for (unsigned i = 0; i < NAMES; i++) {
        if (streams_draw(state) % 3 == 0)
            v.content[i] = other.content[i];
        v.there |= v.content[i] != ABSENT;
    }
    return v;
}

static struct value model(const struct value *b, const struct value *a, const struct value *n,
                          enum history_prefer prefer, uint64_t *ret_conflicts)
{
    struct value v = *n;
    *ret_conflicts = 0;
    v.there = false;
    for (unsigned i = 0; i < NAMES; i++) {
        bool changed = b->content[i] != a->content[i];
        bool done = n->content[i] == b->content[i];
        bool ours = n->content[i] == a->content[i];
        bool conflict = changed && !done && !ours;
        *ret_conflicts += conflict && prefer == HISTORY_PREFER_NONE;
        if (changed && (ours || (conflict && prefer == HISTORY_PREFER_BEFORE)))
            v.content[i] = b->content[i];
        v.there |= v.content[i] != ABSENT;
    }
    return v;
}

static void check(const struct value *b, const struct value *a, const struct value *n,
                  enum history_prefer prefer, uint64_t seed)
{
    struct rebuild_data data;
    struct rd_err err = {0};
    struct history_mirror *before = mirror_of(b), *after = mirror_of(a), *now = mirror_of(n);
    struct history_merge merge = {.before = before, .after = after, .now = now, .prefer = prefer};
    uint64_t conflicts;
    struct value want = model(b, a, n, prefer, &conflicts);
    struct history_mirror *wanted = mirror_of(&want);
    cr_assert(history_merge(&merge, &err), "%s", err.text);
    cr_assert_eq(merge.conflicts, conflicts, "seed %u", (unsigned)seed);
    rebuild_data_begin(&data, 1000000);
    store(&data, n);
    run_commands(&data, &merge.redo);
    struct history_mirror *result = read_key(&data);
    cr_assert(history_mirror_equal(result, wanted), "seed %u", (unsigned)seed);
    run_commands(&data, &merge.back);
    struct history_mirror *again = read_key(&data);
    cr_assert(history_mirror_equal(again, now), "seed %u", (unsigned)seed);
    rebuild_data_end(&data);
    history_merge_done(&merge);
    struct history_mirror *all[] = {before, after, now, wanted, result, again};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        history_mirror_free(all[i]);
}

Test(merge, elements_with_names)
{
    static const enum engine_type types[] = {ENGINE_HASH, ENGINE_SET, ENGINE_ZSET};
    const char *count = getenv("HISTORY_MERGES");
    uint64_t n = count != NULL ? strtoull(count, NULL, 10) : 300;
    for (uint64_t seed = 1; seed <= n; seed++) {
        uint64_t state = seed * 2654435761U;
        struct value b = random_value(types[seed % 3], &state);
        struct value a = changed_value(&b, &state), now = changed_value(&a, &state);
        if (seed % 7 == 0)
            a = (struct value){.type = b.type};
        check(&b, &a, &now, (enum history_prefer)(seed / 3 % 3), seed);
    }
}

/* ---- lists, strings, streams, and the rest: cases ---- */

struct merge_case {
    const char *what;
    const char *before[6], *after[6], *now[6]; /* commands that make each value */
    const char *want[6];                       /* NULL: as it is now */
    uint64_t conflicts;
};

#define NOTHING                                                                                    \
    {                                                                                              \
        NULL                                                                                       \
    }

static const struct merge_case cases[] = {
    {"nothing since", {"RPUSH k a b c"}, {"RPUSH k a c"}, {"RPUSH k a c"}, {"RPUSH k a b c"}, 0},
    {"pushed since", {"RPUSH k a b c"}, {"RPUSH k a c"}, {"RPUSH k a c d"}, {"RPUSH k a b c d"}, 0},
    {"popped since", {"RPUSH k a b"}, {"RPUSH k a b c"}, {"RPUSH k b c"}, {"RPUSH k b"}, 0},
    {"at the other end", {"RPUSH k b"}, {"RPUSH k a b"}, {"RPUSH k a b c"}, {"RPUSH k b c"}, 0},
    {"the same place", {"RPUSH k a"}, {"RPUSH k a b"}, {"RPUSH k a b c"}, {"RPUSH k a c"}, 0},
    {"removed and added at one place", {"RPUSH k a b"}, {"RPUSH k a"}, {"RPUSH k a c"}, NOTHING, 1},
    {"overlapping", {"RPUSH k a b c"}, {"RPUSH k a x c"}, {"RPUSH k a y c"}, NOTHING, 1},
    {"list removed", {"RPUSH k a b"}, NOTHING, NOTHING, {"RPUSH k a b"}, 0},
    {"list removed and made again", {"RPUSH k a b"}, NOTHING, {"RPUSH k c"}, NOTHING, 1},
    {"list made", NOTHING, {"RPUSH k a b"}, {"RPUSH k a b"}, {"DEL k"}, 0},
    {"list made and longer", NOTHING, {"RPUSH k a"}, {"RPUSH k a b"}, {"RPUSH k b"}, 0},
    {"string", {"SET k a"}, {"SET k b"}, {"SET k b"}, {"SET k a"}, 0},
    {"string changed since", {"SET k a"}, {"SET k b"}, {"SET k c"}, NOTHING, 1},
    {"string back already", {"SET k a"}, {"SET k b"}, {"SET k a"}, NOTHING, 0},
    {"bytes", {"SET k abcd"}, {"SET k aXcd"}, {"SET k aXcY"}, {"SET k abcY"}, 0},
    {"bytes, longer since", {"SET k abc"}, {"SET k aXc"}, {"SET k aXcde"}, {"SET k abcde"}, 0},
    {"the same byte", {"SET k abc"}, {"SET k aXc"}, {"SET k aYc"}, NOTHING, 1},
    {"made", NOTHING, {"SET k a"}, {"SET k a"}, {"DEL k"}, 0},
    {"made and gone", NOTHING, {"SET k a"}, NOTHING, NOTHING, 0},
    {"changed and gone", {"SET k a"}, {"SET k b"}, NOTHING, NOTHING, 1},
    {"removed", {"SET k a"}, NOTHING, NOTHING, {"SET k a"}, 0},
    {"another type", {"SET k a"}, {"HSET k f v"}, {"HSET k f v"}, {"SET k a"}, 0},
    {"another type, changed since", {"SET k a"}, {"HSET k f v"}, {"HSET k f w"}, NOTHING, 1},
    {"another type since", {"SET k a"}, {"SET k b"}, {"HSET k f w"}, NOTHING, 1},
    {"time to live",
     {"SET k a"},
     {"SET k a", "PEXPIREAT k 5000000"},
     {"SET k b", "PEXPIREAT k 5000000"},
     {"SET k b"},
     0},
    {"time to live taken away",
     {"SET k a", "PEXPIREAT k 5000000"},
     {"SET k a"},
     {"SET k a"},
     {"SET k a", "PEXPIREAT k 5000000"},
     0},
    {"time to live changed since",
     {"SET k a"},
     {"SET k a", "PEXPIREAT k 5000000"},
     {"SET k a", "PEXPIREAT k 6000000"},
     NOTHING,
     1},
    {"value and time to live",
     {"HSET k a 1", "PEXPIREAT k 5000000"},
     {"HSET k a 2"},
     {"HSET k a 2 b 3"},
     {"HSET k a 1 b 3", "PEXPIREAT k 5000000"},
     0},
    {"time to live of others stays",
     {"SET k a"},
     {"SET k b"},
     {"SET k b", "PEXPIREAT k 6000000"},
     {"SET k a", "PEXPIREAT k 6000000"},
     0},
    {"removed with its time to live",
     {"HSET k a 1", "PEXPIREAT k 5000000"},
     NOTHING,
     NOTHING,
     {"HSET k a 1", "PEXPIREAT k 5000000"},
     0},
    {"removed, made again without",
     {"HSET k a 1", "PEXPIREAT k 5000000"},
     NOTHING,
     {"HSET k b 1"},
     {"HSET k a 1 b 1"},
     0},
    {"expiry of a field",
     {"HSET k a 1 b 2"},
     {"HSET k a 1 b 2", "HPEXPIREAT k 5000000 FIELDS 1 a"},
     {"HSET k a 1 b 3", "HPEXPIREAT k 5000000 FIELDS 1 a"},
     {"HSET k a 1 b 3"},
     0},
    {"expiry of a field ended",
     {"HSET k a 1 b 2", "HPEXPIREAT k 5000000 FIELDS 1 a"},
     {"HSET k a 9 b 2"},
     {"HSET k a 9 b 3"},
     {"HSET k a 1 b 3", "HPEXPIREAT k 5000000 FIELDS 1 a"},
     0},
    {"expiry of a field since",
     {"HSET k a 1"},
     {"HSET k a 2"},
     {"HSET k a 2", "HPEXPIREAT k 5000000 FIELDS 1 a"},
     {"HSET k a 1", "HPEXPIREAT k 5000000 FIELDS 1 a"},
     0},
    {"a hash with a field that expires",
     {"HSET k a 1", "HPEXPIREAT k 5000000 FIELDS 1 a"},
     NOTHING,
     NOTHING,
     {"HSET k a 1", "HPEXPIREAT k 5000000 FIELDS 1 a"},
     0},
    {"entry added",
     {"XADD k 1-1 f v"},
     {"XADD k 1-1 f v", "XADD k 2-1 f v"},
     {"XADD k 1-1 f v", "XADD k 2-1 f v", "XADD k 3-1 f v"},
     {"XADD k 1-1 f v", "XADD k 3-1 f v"},
     0},
    {"entry removed",
     {"XADD k 1-1 f v", "XADD k 2-1 f v"},
     {"XADD k 2-1 f v"},
     {"XADD k 2-1 f v"},
     {"XADD k 1-1 f v", "XADD k 2-1 f v"},
     0},
    {"entry removed, others since",
     {"XADD k 1-1 f v", "XADD k 2-1 f v"},
     {"XADD k 2-1 f v"},
     {"XADD k 2-1 f v", "XADD k 3-1 f v"},
     NOTHING,
     1},
    {"stream with a time to live",
     {"XADD k 1-1 f v", "PEXPIREAT k 5000000"},
     {"XADD k 2-1 f v"},
     {"XADD k 2-1 f v"},
     {"XADD k 1-1 f v", "PEXPIREAT k 5000000"},
     0},
    {"stream removed, with its group",
     {"XADD k 1-1 f v", "XGROUP CREATE k g 0"},
     NOTHING,
     NOTHING,
     {"XADD k 1-1 f v", "XGROUP CREATE k g 0"},
     0},
};

static void run_all(struct rebuild_data *data, const char *const *lines)
{
    for (; *lines != NULL; lines++)
        run(data, *lines);
}

static struct history_mirror *mirror_of_lines(const char *const *lines, struct rd_buf *dump)
{
    struct rebuild_data data;
    struct history_answer answer;
    struct rd_slice text;
    struct rd_err err = {0};
    rebuild_data_begin(&data, 1000000);
    run_all(&data, lines);
    struct history_mirror *m = read_key(&data);
    cr_assert(history_ask_key(&answer, &data, 0, "DUMP", rd_slice_str("k"), "", &err));
    if (history_answer_next(&answer, &text) && text.ptr != NULL)
        cr_assert(rd_buf_add(dump, text.ptr, text.len));
    history_answer_done(&answer);
    rebuild_data_end(&data);
    return m;
}

static void check_case(const struct merge_case *c)
{
    struct rd_buf dump_before = {0}, dump_now = {0}, unused = {0};
    struct rebuild_data data;
    struct rd_err err = {0};
    struct history_mirror *before = mirror_of_lines(c->before, &dump_before);
    struct history_mirror *after = mirror_of_lines(c->after, &unused);
    struct history_mirror *now = mirror_of_lines(c->now, &dump_now);
    struct history_merge merge = {.before = before,
                                  .after = after,
                                  .now = now,
                                  .dump_before = rd_buf_slice(&dump_before),
                                  .dump_now = rd_buf_slice(&dump_now)};
    cr_assert(history_merge(&merge, &err), "%s: %s", c->what, err.text);
    cr_assert_eq(merge.conflicts, c->conflicts, "%s", c->what);
    struct history_mirror *wanted = mirror_of_lines(c->want[0] != NULL ? c->want : c->now, &unused);
    rebuild_data_begin(&data, 1000000);
    run_all(&data, c->now);
    run_commands(&data, &merge.redo);
    struct history_mirror *result = read_key(&data);
    cr_assert(history_mirror_equal(result, wanted), "%s", c->what);
    cr_assert_eq(result->expire_ms, wanted->expire_ms, "%s", c->what);
    run_commands(&data, &merge.back);
    struct history_mirror *again = read_key(&data);
    cr_assert(history_mirror_equal(again, now), "%s, back", c->what);
    cr_assert_eq(again->expire_ms, now->expire_ms, "%s, back", c->what);
    rebuild_data_end(&data);
    history_merge_done(&merge);
    struct history_mirror *all[] = {before, after, now, wanted, result, again};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        history_mirror_free(all[i]);
    rd_buf_done(&dump_before);
    rd_buf_done(&dump_now);
    rd_buf_done(&unused);
}

Test(merge, other_values)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
}
