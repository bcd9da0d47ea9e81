#include "tests/aof/torn_log.h"
#include "tests/support/chance.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sound logs ---- */

struct command {
    size_t from, to;
    size_t group; /* of a transaction: the index of its MULTI; else its own */
    size_t db;
    bool annotation;
};

struct sound {
    struct rd_buf bytes;
    struct command *at;
    size_t n, cap, db, multi;
    uint64_t random;
};

static size_t below(uint64_t *random, size_t n)
{
    return (size_t)(chance_next(random) % n);
}

static void *more(void *at, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return at;
    *cap = *cap == 0 ? 64 : 2 * *cap;
    at = realloc(at, *cap * size);
    cr_assert_not_null(at);
    return at;
}

static void note(struct sound *s, size_t from, bool annotation)
{
    s->at = more(s->at, s->n, &s->cap, sizeof *s->at);
    s->at[s->n] = (struct command){.from = from,
                                   .to = s->bytes.len,
                                   .group = s->multi != SIZE_MAX ? s->multi : s->n,
                                   .db = s->db,
                                   .annotation = annotation};
    s->n++;
}

static void put_args(struct rd_buf *buf, size_t n, const struct rd_slice *args)
{
    rd_buf_printf(buf, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++) {
        rd_buf_printf(buf, "$%zu\r\n", args[i].len);
        rd_buf_add(buf, args[i].ptr, args[i].len);
        rd_buf_add(buf, "\r\n", 2);
    }
}

static void put(struct sound *s, size_t n, const struct rd_slice *args)
{
    size_t from = s->bytes.len;
    put_args(&s->bytes, n, args);
    note(s, from, false);
}

#define PUT(s, ...)                                                                                \
    put(s, sizeof((struct rd_slice[]){__VA_ARGS__}) / sizeof(struct rd_slice),                     \
        (struct rd_slice[]){__VA_ARGS__})

/* Commands as text: whole, without the last line end, or broken off. */
static void put_text(struct rd_buf *value, uint64_t *random)
{
    size_t n = 1 + below(random, 6);
    for (size_t i = 0; i < n; i++)
        put_args(value, 3,
                 (struct rd_slice[]){rd_slice_str("SET"), rd_slice_str("inner"),
                                     rd_slice_str("never to be kept")});
    switch (below(random, 3)) {
    case 0:
        value->len -= 2;
        break;
    case 1:
        value->len -= below(random, 30);
        break;
    default:
        break;
    }
}

static void make_value(struct rd_buf *value, uint64_t *random)
{
    static const size_t sizes[] = {2, 9, 12, 40, 100, 400, 3000};
    size_t n = below(random, sizes[below(random, 7)]);
    rd_buf_reset(value);
    switch (below(random, 12)) {
    case 0:
        if (below(random, 2) == 0)
            rd_buf_printf(value, "text: ");
        put_text(value, random);
        return;
    case 1:
        for (size_t i = 0; i < n; i++)
            rd_buf_add_byte(value, (uint8_t)chance_next(random));
        return;
    case 2:
        for (size_t i = 0; i < n; i++)
            rd_buf_add_byte(value, (uint8_t) "*$#\r\n012"[below(random, 8)]);
        return;
    default:
        for (size_t i = 0; i < n; i++)
            rd_buf_add_byte(value, (uint8_t)('a' + below(random, 26)));
    }
}

static void put_command(struct sound *s, struct rd_buf values[3])
{
    char name[40];
    size_t key = below(&s->random, 1000);
    snprintf(name, sizeof name, "%s:%zu", below(&s->random, 3) == 0 ? "user" : "k", key);
    for (unsigned i = 0; i < 3; i++)
        make_value(&values[i], &s->random);
    struct rd_slice a = rd_buf_slice(&values[0]), b = rd_buf_slice(&values[1]);
    struct rd_slice k = rd_slice_str(name);
    switch (below(&s->random, 8)) {
    case 0:
        PUT(s, rd_slice_str("HSET"), k, rd_slice_str("f"), a, rd_slice_str("g"), b);
        break;
    case 1:
        PUT(s, rd_slice_str("RPUSH"), k, a, b, rd_buf_slice(&values[2]));
        break;
    case 2:
        PUT(s, rd_slice_str("DEL"), k);
        break;
    case 3:
        PUT(s, rd_slice_str("INCR"), k);
        break;
    case 4:
        PUT(s, rd_slice_str("PEXPIREAT"), k, rd_slice_str("1795860308115"));
        break;
    default:
        PUT(s, rd_slice_str("SET"), k, a);
    }
}

static void put_select(struct sound *s, size_t db)
{
    char digits[20];
    snprintf(digits, sizeof digits, "%zu", db);
    s->db = db;
    PUT(s, rd_slice_str("SELECT"), rd_slice_str(digits));
}

static void put_transaction(struct sound *s, struct rd_buf values[3])
{
    size_t n = 1 + below(&s->random, 4);
    s->multi = s->n;
    PUT(s, rd_slice_str("MULTI"));
    while (n-- > 0)
        put_command(s, values);
    PUT(s, rd_slice_str("EXEC"));
    s->multi = SIZE_MAX;
}

static struct sound make_sound(uint64_t seed, size_t n)
{
    struct sound s = {.random = seed, .multi = SIZE_MAX};
    struct rd_buf values[3] = {0};
    bool plain = below(&s.random, 3) == 0;
    put_select(&s, 0);
    while (s.n < n) {
        size_t from = s.bytes.len, what = plain ? 99 : below(&s.random, 40);
        if (what == 0)
            put_select(&s, below(&s.random, 12));
        else if (what < 4)
            put_transaction(&s, values);
        else if (what < 7) {
            rd_buf_printf(&s.bytes, "#TS:%zu\r\n", 1700000000 + s.n);
            note(&s, from, true);
        } else
            put_command(&s, values);
    }
    for (unsigned i = 0; i < 3; i++)
        rd_buf_done(&values[i]);
    return s;
}

static void sound_done(struct sound *s)
{
    rd_buf_done(&s->bytes);
    free(s->at);
}

/* ---- pieces ---- */

struct piece {
    const struct sound *of; /* NULL: other bytes */
    size_t from, to;        /* in it */
    size_t at;              /* in the damaged file */
};

enum { PIECES = 64 };

struct maker {
    struct torn_log log;
    struct piece pieces[PIECES];
    size_t n_pieces, cap;
    uint64_t random;
};

static void add(struct maker *m, const struct sound *of, size_t from, size_t to)
{
    struct piece *last = m->n_pieces > 0 ? &m->pieces[m->n_pieces - 1] : NULL;
    if (from == to)
        return;
    rd_buf_add(&m->log.bytes, of->bytes.ptr + from, to - from);
    if (last != NULL && last->of == of && last->to == from) {
        last->to = to;
        return;
    }
    cr_assert_lt(m->n_pieces, PIECES);
    m->pieces[m->n_pieces++] = (struct piece){of, from, to, m->log.bytes.len - (to - from)};
}

static void add_zeros(struct maker *m, size_t n)
{
    cr_assert_lt(m->n_pieces, PIECES);
    m->pieces[m->n_pieces++] = (struct piece){NULL, 0, n, m->log.bytes.len};
    while (n-- > 0)
        rd_buf_add_byte(&m->log.bytes, 0);
}

/* ---- damages ---- */

/* Where the transaction ends in its log. */
static size_t group_end(const struct sound *s, size_t group)
{
    size_t i = group;
    while (i + 1 < s->n && s->at[i + 1].group == group)
        i++;
    return s->at[i].to;
}

static size_t block(struct maker *m)
{
    static const size_t sizes[] = {20, 100, 512, 4096};
    return 1 + below(&m->random, sizes[below(&m->random, 4)]);
}

/* Up to command i, and the first bytes of it. Returns i. */
static size_t short_write(struct maker *m, const struct sound *s, size_t from, size_t first,
                          size_t last)
{
    size_t i = first + below(&m->random, last - first);
    const struct command *c = &s->at[i];
    add(m, s, from, c->from + 1 + below(&m->random, c->to - c->from - 1));
    return i;
}

static void two_writers(struct maker *m, const struct sound *s, const struct sound *other)
{
    size_t a = below(&m->random, s->bytes.len), b = below(&m->random, other->bytes.len);
    add(m, s, 0, a);
    for (unsigned turn = 0; turn < 4; turn++) {
        size_t more_a = a + below(&m->random, 600), more_b = b + below(&m->random, 600);
        more_a = more_a < s->bytes.len ? more_a : s->bytes.len;
        more_b = more_b < other->bytes.len ? more_b : other->bytes.len;
        if (turn % 2 == 0) { /* whole commands of the other */
            size_t i = 0;
            while (other->at[i].to <= b && i + 1 < other->n)
                i++;
            b = other->at[i].from;
        }
        add(m, other, b, more_b > b ? more_b : b);
        add(m, s, a, more_a);
        b = more_b > b ? more_b : b;
        a = more_a;
    }
    add(m, s, a, s->bytes.len);
}

static void damage(struct maker *m, enum torn_damage kind, const struct sound *s,
                   const struct sound *other)
{
    size_t at = below(&m->random, s->bytes.len), n = block(m), i;
    size_t end = n < s->bytes.len - at ? at + n : s->bytes.len;
    switch (kind) {
    case TORN_SHORT:
        i = short_write(m, s, 0, 0, s->n);
        add(m, s, s->at[i].from, s->bytes.len);
        break;
    case TORN_SHORT_LOST:
        i = short_write(m, s, 0, 0, s->n);
        if (below(&m->random, 2) == 0) /* and its transaction ends there */
            add(m, s, group_end(s, s->at[i].group), s->bytes.len);
        else
            add(m, s, s->at[i].to, s->bytes.len);
        break;
    case TORN_SHORT_TWICE:
        i = short_write(m, s, 0, 0, s->n / 2);
        at = s->at[i].to;
        i = short_write(m, s, at, i + 2, s->n);
        add(m, s, s->at[i].from, s->bytes.len);
        break;
    case TORN_CUT:
        add(m, s, 0, at);
        break;
    case TORN_ZEROS:
        add(m, s, 0, at);
        add_zeros(m, end - at);
        add(m, s, end, s->bytes.len);
        break;
    case TORN_ZEROS_INSERTED:
        if (below(&m->random, 2) == 0)
            at = s->at[below(&m->random, s->n)].from;
        add(m, s, 0, at);
        add_zeros(m, n);
        add(m, s, at, s->bytes.len);
        break;
    case TORN_DOUBLED:
        add(m, s, 0, end);
        add(m, s, at, s->bytes.len);
        break;
    case TORN_MISSING:
        add(m, s, 0, at);
        add(m, s, end, s->bytes.len);
        break;
    case TORN_TWO_WRITERS:
        two_writers(m, s, other);
        break;
    case TORN_FLIP:
    case TORN_KINDS:
        add(m, s, 0, at);
        rd_buf_add_byte(&m->log.bytes, (uint8_t)(s->bytes.ptr[at] ^ 1u << below(&m->random, 8)));
        m->pieces[m->n_pieces++] = (struct piece){NULL, 0, 1, at};
        add(m, s, at + 1, s->bytes.len);
    }
}

/* ---- what is intact ---- */

static struct torn_entry *add_entry(struct maker *m, size_t from, size_t to)
{
    m->log.entries = more(m->log.entries, m->log.n, &m->cap, sizeof *m->log.entries);
    m->log.entries[m->log.n] = (struct torn_entry){.from = from, .to = to};
    return &m->log.entries[m->log.n++];
}

/* Bytes [from, to) of a log that belong to a transaction whose other part is elsewhere, as a range
 * of the damaged file. */
struct range {
    size_t from, to;
    const struct sound *of;
    size_t group;
};

struct ranges {
    struct range *at;
    size_t n, cap;
};

static void note_range(struct ranges *r, const struct sound *of, size_t group, size_t from,
                       size_t to)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->at[i].of == of && r->at[i].group == group) {
            r->at[i].to = to;
            return;
        }
    r->at = more(r->at, r->n, &r->cap, sizeof *r->at);
    r->at[r->n++] = (struct range){from, to, of, group};
}

static void entries_of_piece(struct maker *m, const struct piece *p, struct ranges *torn)
{
    for (size_t i = 0; p->of != NULL && i < p->of->n; i++) {
        const struct command *c = &p->of->at[i];
        if (c->to <= p->from || c->from >= p->to)
            continue;
        bool whole = c->from >= p->from && c->to <= p->to;
        size_t from = p->at + (c->from > p->from ? c->from - p->from : 0);
        size_t to = p->at + (c->to < p->to ? c->to : p->to) - p->from;
        bool group = p->of->at[c->group].from >= p->from && group_end(p->of, c->group) <= p->to;
        if (!group && (p->of->at[c->group].to - p->of->at[c->group].from != c->to - c->from ||
                       group_end(p->of, c->group) != c->to))
            note_range(torn, p->of, c->group, from, to);
        if (!whole)
            continue;
        struct torn_entry *e = add_entry(m, from, to);
        e->db = c->db;
        e->annotation = c->annotation;
        e->needed = group;
        e->torn_group = !group;
        e->multi = i == c->group && group_end(p->of, c->group) != c->to;
        e->group_at = group ? p->at + p->of->at[c->group].from - p->from : from;
    }
}

/* A time alone between other bytes is not needed. */
static void not_needed_alone(struct torn_log *log)
{
    for (size_t i = 0; i < log->n; i++)
        if (log->entries[i].annotation &&
            (i + 1 == log->n || log->entries[i + 1].from != log->entries[i].to))
            log->entries[i].needed = false;
}

/* Commands between the parts of a torn transaction: nothing says that they are not its own. */
static void not_needed_within(struct maker *m, const struct ranges *torn)
{
    for (size_t i = 0; i < torn->n; i++)
        for (size_t k = 0; k < m->log.n; k++)
            if (m->log.entries[k].from < torn->at[i].to && m->log.entries[k].to > torn->at[i].from)
                m->log.entries[k].needed = false;
}

/* ---- the plainest of readers ---- */

static bool number(const struct rd_buf *b, size_t *at, size_t *ret)
{
    size_t digits = 0, value = 0;
    for (; *at < b->len && b->ptr[*at] >= '0' && b->ptr[*at] <= '9' && digits < 10; ++*at, digits++)
        value = value * 10 + (size_t)(b->ptr[*at] - '0');
    bool zero = digits > 1 && b->ptr[*at - digits] == '0';
    if (digits == 0 || zero || *at + 2 > b->len || b->ptr[*at] != '\r' || b->ptr[*at + 1] != '\n')
        return false;
    *at += 2;
    *ret = value;
    return true;
}

/* The end of the command or annotation at `at`; 0: there is none. */
static size_t read_one(const struct rd_buf *b, size_t at)
{
    size_t argc, len;
    if (at < b->len && b->ptr[at] == '#') {
        const uint8_t *lf = memchr(b->ptr + at, '\n', b->len - at);
        return lf != NULL ? (size_t)(lf - b->ptr) + 1 : 0;
    }
    if (at >= b->len || b->ptr[at++] != '*' || !number(b, &at, &argc) || argc == 0)
        return 0;
    for (size_t i = 0; i < argc; i++) {
        if (at >= b->len || b->ptr[at++] != '$' || !number(b, &at, &len) || len > b->len ||
            at + len + 2 > b->len || b->ptr[at + len] != '\r' || b->ptr[at + len + 1] != '\n')
            return 0;
        at += len + 2;
    }
    return at;
}

static int by_place(const void *a, const void *b)
{
    const struct torn_entry *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static bool starts_at(const struct torn_log *log, size_t at)
{
    for (size_t i = 0; i < log->n; i++)
        if (log->entries[i].from == at)
            return true;
    return at == log->bytes.len;
}

/* In what is left of a broken command [from, to): commands that lead on to the next intact one are
 * whole to everyone, though they may be the text of a value. */
static void accept_text(struct maker *m, size_t from, size_t to)
{
    for (size_t at = from + 1; at < to; at++) {
        size_t end = at;
        while (end != 0 && end < to)
            end = read_one(&m->log.bytes, end);
        if (end != to || starts_at(&m->log, at))
            continue;
        for (size_t p = at; p < to && !starts_at(&m->log, p); p = end) {
            end = read_one(&m->log.bytes, p);
            add_entry(m, p, end)->accepted = true;
        }
    }
}

/* And with it the others of its transaction. Returns whether there are others. */
static bool not_needed(struct torn_log *log, struct torn_entry *entry)
{
    size_t others = 0;
    for (size_t i = 0; i < log->n; i++) {
        if (log->entries[i].group_at != entry->group_at)
            continue;
        log->entries[i].needed = false;
        others++;
    }
    return others > 1 || entry->torn_group;
}

/* Between `at` and the next intact command, another torn command may begin that takes that one in
 * and ends where a later one begins. Returns where the reader continues. */
static size_t pass_torn(struct maker *m, size_t at, size_t next, size_t n)
{
    for (size_t p = at + 1; p < next; p++) {
        size_t end = m->log.bytes.ptr[p] == '*' ? read_one(&m->log.bytes, p) : 0;
        if (end <= next || !starts_at(&m->log, end))
            continue;
        size_t within = 0;
        for (size_t i = 0; i < n; i++)
            if (m->log.entries[i].from >= next && m->log.entries[i].from < end) {
                not_needed(&m->log, &m->log.entries[i]);
                within += !m->log.entries[i].annotation;
            }
        struct torn_entry *e = add_entry(m, p, end);
        e->accepted = true;
        e->n_within = within;
        return end;
    }
    return next;
}

/* A reader that begins at the first byte continues as long as it can. What it reads is whole to it,
 * and what lies inside is not known to it. After a break it continues at the next intact command
 * after the start of the one that broke. */
static void read_plainly(struct maker *m)
{
    struct torn_log *log = &m->log;
    size_t n = log->n, at = 0, i = 0, accepted = 0;
    while (at < log->bytes.len) {
        size_t end = read_one(&log->bytes, at);
        while (i < n && log->entries[i].from < at)
            i++;
        bool intact = i < n && log->entries[i].from == at;
        if (intact) {
            at = accepted = log->entries[i].to;
            continue;
        }
        size_t k = i, within = 0;
        bool goes_on = end != 0 && (starts_at(log, end) || read_one(&log->bytes, end) != 0);
        bool open = false;
        for (; goes_on && k < n && log->entries[k].from < end; k++) {
            within += !log->entries[k].annotation;
            open |= not_needed(log, &log->entries[k]);
        }
        /* An EXEC that was taken in leaves its transaction open up to the next one. */
        for (size_t later = k; open && later < n && !log->entries[later].multi; later++)
            log->entries[later].needed = false;
        if (end != 0) {
            struct torn_entry *e = add_entry(m, at, end);
            e->accepted = true;
            e->n_within = within;
        }
        if (goes_on || (end != 0 && k < n && log->entries[k].from >= end)) {
            at = end;
            continue;
        }
        size_t next = k < n ? log->entries[k].from : log->bytes.len;
        log->broken = true;
        accept_text(m, accepted, next);
        at = pass_torn(m, at, next, n);
    }
}

struct torn_log torn_log_make(uint64_t seed, enum torn_damage kind)
{
    struct maker m = {.random = seed};
    struct ranges torn = {0};
    struct sound s = make_sound(seed ^ 0x5bd1e995, 20 + below(&m.random, 60));
    struct sound other = make_sound(seed ^ 0x1b873593, 20);
    damage(&m, kind, &s, &other);
    for (size_t i = 0; i < m.n_pieces; i++)
        entries_of_piece(&m, &m.pieces[i], &torn);
    not_needed_within(&m, &torn);
    not_needed_alone(&m.log);
    read_plainly(&m);
    if (m.log.n > 0)
        qsort(m.log.entries, m.log.n, sizeof *m.log.entries, by_place);
    free(torn.at);
    sound_done(&s);
    sound_done(&other);
    return m.log;
}

void torn_log_done(struct torn_log *log)
{
    rd_buf_done(&log->bytes);
    free(log->entries);
}

const char *torn_damage_name(enum torn_damage kind)
{
    static const char *const names[] = {
#define X(name, text) text,
        TORN_DAMAGES(X)
#undef X
    };
    return names[kind];
}
