/* resync.c - finds where commands can be read again.
 *
 * The first assumption is one wrong byte in the framing of the command that failed, or of the one
 * before it: with the right byte, that command would end where the next one begins. Each digit of
 * the lengths is replaced in turn, so that an argument is skipped as a whole and its bytes are
 * never taken for commands. If that fails, the bytes are searched one by one.
 *
 * A command of which only the first bytes were written (the disk was full, then it was not) is
 * followed by whole commands. Its lengths then reach into them. Commands inside an argument that
 * lead exactly to the position after it show this: those in a value would be followed by the line
 * end of the value.
 */
#include "aof/recover/resync.h"

#include "rdb/rdb.h"

enum {
    OPAQUE_MAX = 1 << 20, /* of an argument in which the file ends, and which is accepted */
    CHAIN = 8,            /* consecutive commands that are accepted as real */
    CHAIN_SEARCH = 3,     /* consecutive commands that are accepted in a byte-by-byte search */
    HEADER_MAX = 16,      /* "$536870912 CRLF" and some more */
    DIGITS_MAX = 10,
};

/* -- chains -- */

struct chain {
    unsigned n;    /* number of commands read, at most `max` */
    uint64_t end;  /* position at which it stopped */
    uint64_t last; /* start of the last one */
    bool to_end;   /* of the file */
    bool cut;      /* the file ends inside the next command */
    bool broken;   /* the next command is broken, but begins as one */
};

/* Reads commands from `at` on, at most `max`, or up to `upto`. */
static struct chain follow(struct aof_recover_in *in, uint64_t at, unsigned max, uint64_t upto)
{
    struct chain c = {.end = at, .last = at};
    struct frame f;
    while (c.n < max && c.end < upto) {
        enum frame_status status = aof_recover_frame(in, c.end, &f);
        if (status != FRAME_OK || (f.kind == FRAME_COMMAND && !aof_recover_is_name(&f))) {
            c.to_end = status == FRAME_END;
            c.cut = status == FRAME_CUT && (f.argc > 0 || f.kind == FRAME_ANNOTATION);
            c.broken = status == FRAME_BROKEN && f.argc > 0;
            break;
        }
        c.last = c.end;
        c.end = f.end;
        c.n += f.kind == FRAME_COMMAND;
    }
    c.to_end = c.to_end || c.end == in->size;
    return c;
}

/* Rates how well commands follow each other from `at`: 0 (not at all) to CHAIN. */
static unsigned strength(struct aof_recover_in *in, uint64_t at)
{
    if (at == in->size)
        return CHAIN;
    struct chain c = follow(in, at, CHAIN, UINT64_MAX);
    return c.to_end && c.n > 0 ? CHAIN : c.n;
}

/* A run of whole arguments from `at`; *ret is its end. False: none, or neither a command nor the
 * end of the file follows. */
static bool run_of_args(struct aof_recover_in *in, uint64_t at, uint64_t *ret)
{
    bool any = false;
    while (aof_recover_byte(in, at) == '$' && aof_recover_arg(in, &at))
        any = true;
    int next = aof_recover_byte(in, at);
    if (!any || (next != '*' && next != '#' && at != in->size))
        return false;
    *ret = at;
    return true;
}

/* -- one wrong byte -- */

struct guess {
    struct aof_recover_in *in; /* a view at any offset */
    struct aof_recover_way *way;
    unsigned best; /* rating of `way` */
    uint64_t bad;  /* where the command failed */
    uint64_t from;
    bool before;
};

/* Whether the commands from a lead to b. */
static bool leads_to(struct aof_recover_in *in, uint64_t a, uint64_t b)
{
    return follow(in, a, UINT32_MAX, b).end == b;
}

/* Whether the commands from `at` explain the bytes up to where the damaged command failed. If not,
 * they lie in an argument. */
static bool passes(struct aof_recover_in *in, uint64_t at, uint64_t bad)
{
    struct chain c = follow(in, at, UINT32_MAX, bad + 1);
    return c.end > bad || c.n >= CHAIN;
}

/* A candidate for the end of the damaged command. Keeps the best: the longest chain; of two long
 * ones the earlier, if it leads to the other (otherwise it is inside an argument). */
static void guess(struct guess *g, uint64_t to, const char *how)
{
    int next = aof_recover_byte(g->in, to);
    if (next != '*' && next != '#' && to != g->in->size)
        return;
    if (to <= g->bad && !passes(g->in, to, g->bad))
        return;
    unsigned n = strength(g->in, to);
    struct aof_recover_way *w = g->way;
    bool better = n > g->best;
    if (n > 0 && n == g->best && to != w->to)
        better = to < w->to ? leads_to(g->in, to, w->to) : !leads_to(g->in, w->to, to);
    if (!better)
        return;
    g->best = n;
    *w = (struct aof_recover_way){
        .from = g->from, .to = to, .how = how, .exact = true, .before = g->before};
}

/* Checks whether argument i and the following ones are whole; then tries a guess. */
static void guess_rest(struct guess *g, const struct frame *f, uint64_t i, uint64_t at,
                       const char *how)
{
    while (i < f->argc && aof_recover_arg(g->in, &at))
        i++;
    if (i == f->argc)
        guess(g, at, how);
}

/* The header of an argument in which one byte may be wrong. */
struct header {
    char digits[DIGITS_MAX + 1];
    size_t n;
    uint64_t data; /* offset of the argument's bytes */
    bool sound;    /* all of it except the digits */
};

static bool read_header(struct aof_recover_in *in, uint64_t at, struct header *ret)
{
    const uint8_t *p;
    size_t len = aof_recover_look(in, at, HEADER_MAX, &p);
    if (len > HEADER_MAX)
        len = HEADER_MAX;
    size_t end = 0;
    for (size_t i = 1; i + 1 < len && end == 0; i++)
        if (p[i] == '\r' && p[i + 1] == '\n')
            end = i;
    for (size_t i = 2; i + 1 < len && end == 0; i++)
        if (p[i] == '\r' || p[i + 1] == '\n')
            end = i;
    if (end < 2 || end - 1 > DIGITS_MAX)
        return false;
    *ret = (struct header){.n = end - 1, .data = at + end + 2};
    ret->sound = p[0] == '$' && p[end] == '\r' && p[end + 1] == '\n';
    memcpy(ret->digits, p + 1, ret->n);
    return true;
}

static bool value_of(const char *digits, size_t n, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(digits[i] - '0');
    }
    *ret = value;
    return n == 1 || digits[0] != '0';
}

/* Argument i has `len` bytes. With `loose`, one byte of the CRLF after it may be wrong. */
static void guess_length(struct guess *g, const struct frame *f, uint64_t i, uint64_t data,
                         uint64_t len, bool loose)
{
    const uint8_t *p;
    if (data > g->in->size || len > g->in->size - data ||
        aof_recover_look(g->in, data + len, 2, &p) < 2)
        return;
    int right = (p[0] == '\r') + (p[1] == '\n');
    if (right == 2 || (loose && right == 1))
        guess_rest(g, f, i + 1, data + len + 2, "the end of the broken command");
}

/* Argument i begins at `at`, and one byte of its header or of the CRLF after it is wrong. */
static void guess_argument(struct guess *g, const struct frame *f, uint64_t i, uint64_t at)
{
    struct header h;
    uint64_t len;
    if (!read_header(g->in, at, &h))
        return;
    if (value_of(h.digits, h.n, &len))
        guess_length(g, f, i, h.data, len, h.sound);
    for (size_t d = 0; h.sound && d < h.n; d++) {
        char was = h.digits[d];
        for (char c = '0'; c <= '9'; c++) {
            h.digits[d] = c;
            if (c != was && value_of(h.digits, h.n, &len))
                guess_length(g, f, i, h.data, len, false);
        }
        h.digits[d] = was;
    }
}

/* The last arguments that were read, starting with the broken one. */
static void guess_arguments(struct guess *g, const struct frame *f)
{
    uint64_t i = f->done < f->argc ? f->done : f->done - 1;
    for (unsigned n = 0; n < FRAME_ARGS && g->best < CHAIN; n++, i--) {
        guess_argument(g, f, i, f->args[i % FRAME_ARGS]);
        if (i == 0)
            break;
    }
}

/* The first line of the command is damaged and its arguments follow, or it is an annotation. */
static void guess_first_line(struct guess *g, uint64_t start)
{
    const uint8_t *p;
    uint64_t end;
    size_t len = aof_recover_look(g->in, start, HEADER_MAX, &p);
    if (len > HEADER_MAX)
        len = HEADER_MAX;
    size_t i = 1;
    while (i < len && p[i] != '$')
        i++;
    if (i < len && run_of_args(g->in, start + i, &end))
        guess(g, end, "the end of the broken command");
}

static void guess_annotation(struct guess *g, uint64_t start)
{
    const uint8_t *p;
    size_t len = aof_recover_look(g->in, start, 64, &p);
    for (size_t i = 0; i < len && i < 64; i++)
        if (p[i] == '\n') {
            guess(g, start + i + 1, "the next line");
            return;
        }
}

/* The command failed at its count or at one of its arguments. */
static void guess_command(struct guess *g, const struct frame *f)
{
    if (f->argc == 0) {
        guess_first_line(g, f->start);
        return;
    }
    int byte = aof_recover_byte(g->in, f->bad);
    if (f->done > 0 && f->args[f->done % FRAME_ARGS] == f->bad && (byte == '*' || byte == '#'))
        guess(g, f->bad, "the next command");
    if (g->best < CHAIN)
        guess_arguments(g, f);
}

/* Whether the previous command swallowed the header of the failed one: with another length it ends
 * earlier, and the commands from there lead to the position that was found. */
static void guess_swallowed(struct guess *g, const struct frame *f, const struct frame *prev)
{
    if (prev == NULL || prev->kind != FRAME_COMMAND)
        return;
    struct aof_recover_way way = {.to = f->start};
    struct guess other = {
        .in = g->in, .way = &way, .bad = g->bad, .from = prev->start, .before = true};
    guess_arguments(&other, prev);
    if (other.best == 0 || way.to >= f->start ||
        (g->best > 0 && !leads_to(g->in, way.to, g->way->to)))
        return;
    g->best = other.best;
    *g->way = way;
}

/* The file continues with an argument in place of a command: the previous command has more
 * arguments than its count, or swallowed the header of the next one. */
static void guess_before(struct guess *g, const struct frame *f, const struct frame *prev)
{
    uint64_t end;
    g->from = prev->start;
    g->before = true;
    if (run_of_args(g->in, f->start, &end))
        guess(g, end, "the next command");
    guess_swallowed(g, f, prev);
}

/* The last argument of the previous command is longer than its length. */
static void guess_longer(struct guess *g, const struct frame *prev)
{
    if (prev == NULL || prev->kind != FRAME_COMMAND)
        return;
    g->from = prev->start;
    g->before = true;
    guess_argument(g, prev, prev->argc - 1, prev->args[(prev->argc - 1) % FRAME_ARGS]);
}

/* A line end in place of a command. */
static void guess_line_end(struct guess *g, const struct frame *f, const struct frame *prev)
{
    guess_longer(g, prev);
    g->from = f->start;
    g->before = false;
    if (g->best == 0)
        guess(g, f->start + 2, "the next command");
    if (g->best == 0)
        guess_first_line(g, f->start);
}

/* Other bytes in place of a command. */
static void guess_other(struct guess *g, const struct frame *f, const struct frame *prev)
{
    guess_annotation(g, f->start);
    if (g->best < CHAIN_SEARCH)
        guess_first_line(g, f->start);
    if (g->best < CHAIN_SEARCH)
        guess_longer(g, prev);
    guess_swallowed(g, f, prev);
}

/* Returns the rating of *ret; 0: no single byte explains the damage. */
static unsigned one_byte(struct aof_recover_in *probe, const struct frame *f,
                         const struct frame *prev, struct aof_recover_way *ret)
{
    struct guess g = {.in = probe, .way = ret, .bad = f->bad, .from = f->start};
    int first = aof_recover_byte(probe, f->start);
    if (first == '*') {
        guess_command(&g, f);
    } else if (first == '#') {
        guess_annotation(&g, f->start);
    } else if (first == '$') {
        if (prev != NULL)
            guess_before(&g, f, prev);
        g.from = f->start;
        g.before = false;
        if (g.best < CHAIN_SEARCH)
            guess_first_line(&g, f->start);
    } else if (first == '\r' && aof_recover_byte(probe, f->start + 1) == '\n') {
        guess_line_end(&g, f, prev);
    } else {
        guess_other(&g, f, prev);
    }
    return g.best;
}

/* -- byte by byte -- */

struct search {
    struct aof_recover_in *in, *probe;
    uint64_t at;
    uint64_t end;     /* position at which it stopped */
    bool args;        /* also stop at arguments */
    uint64_t bad;     /* where the command failed: bytes in its arguments that do not lead beyond it
                         are part of them */
    uint64_t failing; /* an argument whose run is known to lead nowhere */
};

/* Advances s->at to the next byte that may begin a command (or an argument). */
static bool next_place(struct search *s)
{
    const uint8_t *p;
    while (s->at < s->end) {
        size_t len = aof_recover_look(s->in, s->at, 1, &p);
        if (len == 0)
            return false;
        for (size_t i = 0; i < len && s->at < s->end; i++, s->at++)
            if (p[i] == '*' || (s->args && p[i] == '$'))
                return true;
    }
    return false;
}

static bool believed(const struct chain *c)
{
    return c->n >= CHAIN_SEARCH || (c->n > 0 && (c->to_end || c->cut || c->broken));
}

/* Advances after the last position from which a failed chain could have continued differently. */
static uint64_t after(const struct chain *c, uint64_t at)
{
    return c->n > 1 && c->last > at ? c->last : at + 1;
}

/* Whether the header of an argument ends at `at`. */
static bool is_data_of_arg(struct aof_recover_in *in, uint64_t at)
{
    if (at < 3 || aof_recover_byte(in, at - 1) != '\n' || aof_recover_byte(in, at - 2) != '\r')
        return false;
    int byte;
    for (at -= 3; (byte = aof_recover_byte(in, at)) >= '0' && byte <= '9' && at > 0; at--)
        ;
    return byte == '$';
}

uint64_t aof_recover_inside(struct aof_recover_in *in, struct aof_recover_in *probe, uint64_t from,
                            uint64_t to)
{
    struct search s = {.in = in, .probe = probe, .at = from, .end = to};
    while (next_place(&s)) {
        struct chain c = follow(s.probe, s.at, UINT32_MAX, to);
        unsigned least = is_data_of_arg(s.probe, s.at) ? 2 : 1;
        if (c.n >= least && c.end == to)
            return s.at;
        s.at = c.end < to ? after(&c, s.at) : s.at + 1;
    }
    return to;
}

/* A whole argument at s->at is opaque, unless commands inside it lead to the commands after it. */
static bool behind_args(struct search *s, struct aof_recover_way *ret)
{
    uint64_t next = s->at, end;
    if (s->at == s->failing) {
        aof_recover_arg(s->probe, &next);
        s->failing = next;
        return false;
    }
    if (!run_of_args(s->probe, s->at, &end) || strength(s->probe, end) == 0) {
        if (aof_recover_arg(s->probe, &next))
            s->failing = next;
        return false;
    }
    ret->to = aof_recover_inside(s->in, s->probe, s->at + 1, end);
    ret->how =
        ret->to == end ? "the command after whole arguments" : "commands that lead on to the next";
    return true;
}

static void every_byte(struct search *s, struct aof_recover_way *ret)
{
    ret->to = s->in->size;
    ret->how = "no command after it";
    while (next_place(s)) {
        if (aof_recover_byte(s->probe, s->at) == '$') {
            if (behind_args(s, ret))
                return;
            s->at++;
            continue;
        }
        struct chain c = follow(s->probe, s->at, s->at < s->bad ? UINT32_MAX : CHAIN,
                                s->at < s->bad ? s->bad + 1 : UINT64_MAX);
        if (s->at < s->bad && c.end <= s->bad) {
            s->at = after(&c, s->at);
            continue;
        }
        if (s->at < s->bad)
            c = follow(s->probe, s->at, CHAIN, UINT64_MAX);
        if (believed(&c)) {
            ret->to = s->at;
            ret->how = c.n >= CHAIN_SEARCH ? "several commands in a row"
                                           : "commands up to the end of the file";
            return;
        }
        s->at++;
    }
}

/* -- torn commands -- */

static const char torn_how[] = "the command after a torn one";

/* `to` is in `f`, or in the command before it, of which the bytes before `to` are the beginning. */
static void set_torn(const struct frame *f, const struct frame *prev, uint64_t to,
                     struct aof_recover_way *ret)
{
    bool before = to < f->start;
    *ret = (struct aof_recover_way){.from = before ? prev->start : f->start,
                                    .to = to,
                                    .how = torn_how,
                                    .exact = true,
                                    .before = before,
                                    .torn = true};
}

/* Where commands begin that lead exactly to ret->to: a length that fits by chance skips them. */
static void torn_before(struct aof_recover_in *in, struct aof_recover_in *probe,
                        const struct frame *f, const struct frame *prev,
                        struct aof_recover_way *ret)
{
    uint64_t from = prev != NULL ? prev->start : f->start;
    uint64_t to = ret->to < f->bad ? ret->to : aof_recover_inside(in, probe, from + 1, ret->to);
    if (to != ret->to)
        set_torn(f, prev, to, ret);
}

/* Where commands begin that lead beyond the position of the failure. */
static bool torn_across(struct aof_recover_in *in, struct aof_recover_in *probe,
                        const struct frame *f, const struct frame *prev,
                        struct aof_recover_way *ret)
{
    struct search s = {
        .in = in, .probe = probe, .at = (prev != NULL ? prev->start : f->start) + 1, .end = f->bad};
    while (next_place(&s)) {
        struct chain c = follow(probe, s.at, UINT32_MAX, f->bad + 1);
        if (s.at == f->start || c.end <= f->bad) {
            s.at = s.at == f->start ? s.at + 1 : after(&c, s.at);
            continue;
        }
        c = follow(probe, s.at, CHAIN, UINT64_MAX);
        if (c.n >= CHAIN_SEARCH || (c.n > 1 && believed(&c))) {
            set_torn(f, prev, s.at, ret);
            return true;
        }
        s.at++;
    }
    return false;
}

/* The file ends inside an argument, but its last commands are whole. */
static bool torn_to_end(struct aof_recover_in *in, struct aof_recover_in *probe,
                        const struct frame *f, struct aof_recover_way *ret)
{
    uint64_t to = f->bulk == 0 ? in->size : aof_recover_inside(in, probe, f->start + 1, in->size);
    if (to != in->size)
        set_torn(f, NULL, to, ret);
    return to != in->size;
}

static void search_all(struct aof_recover_in *in, struct aof_recover_in *probe,
                       const struct frame *f, const struct frame *prev, struct aof_recover_way *ret)
{
    bool before = prev != NULL && aof_recover_byte(probe, f->start) == '$';
    *ret = (struct aof_recover_way){.from = before ? prev->start : f->start, .before = before};
    if (f->bulk > 0 && f->bulk <= OPAQUE_MAX) {
        ret->to = in->size;
        ret->how = "the file ends inside an argument";
        return;
    }
    struct search s = {.in = in,
                       .probe = probe,
                       .at = ret->from + 1,
                       .end = in->size,
                       .args = true,
                       .bad = f->bad};
    every_byte(&s, ret);
    ret->torn = ret->exact = !before && f->argc > 0 && ret->to <= f->bad;
}

bool aof_recover_resync(struct aof_recover_in *in, struct aof_recover_in *probe,
                        const struct frame *f, const struct frame *prev,
                        struct aof_recover_way *ret)
{
    const struct frame *command = prev != NULL && prev->kind == FRAME_COMMAND ? prev : NULL;
    *ret = (struct aof_recover_way){.from = f->start};
    unsigned rating = one_byte(probe, f, prev, ret);
    if (rating < CHAIN_SEARCH && torn_across(in, probe, f, command, ret))
        ;
    else if (rating >= CHAIN_SEARCH || (rating > 0 && f->argc > 0))
        torn_before(in, probe, f, command, ret);
    else if (rating == 0 && !torn_to_end(in, probe, f, ret))
        search_all(in, probe, f, prev, ret);
    return !in->failed && !probe->failed;
}

bool aof_recover_find_tail(struct aof_recover_in *in, struct aof_recover_in *probe, uint64_t from,
                           uint64_t *ret)
{
    struct search s = {.in = in, .probe = probe, .at = from, .end = in->size};
    *ret = in->size;
    while (next_place(&s)) {
        if (s.at >= from + RDB_TRAILER_LEN + 1 &&
            aof_recover_byte(probe, s.at - RDB_TRAILER_LEN - 1) == RDB_OP_EOF) {
            struct chain c = follow(probe, s.at, CHAIN_SEARCH, UINT64_MAX);
            if (believed(&c)) {
                *ret = s.at;
                break;
            }
        }
        s.at++;
    }
    return !in->failed && !probe->failed;
}
