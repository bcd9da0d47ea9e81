/* resync.c - finds where commands can be read again.
 *
 * The first assumption is one wrong byte in the framing of the command that failed, or of the one
 * before it: with the right byte, that command would end where the next one begins. Each digit of
 * the lengths is replaced in turn, so that an argument is skipped as a whole and its bytes are
 * never taken for commands.
 *
 * The second one is a command that was not written to its end: its lengths then reach into the
 * commands after it. They are found inside it if they lead beyond the place where the framing
 * broke, or if the command is whole without them. If both fail, the bytes are searched one by one.
 *
 * A value may be a text of commands. A run of commands is taken for text if it ends where an
 * argument ends, or if it is short and its commands are unlike those of the log, whose forms are
 * collected.
 */
#include "aof/recover/resync.h"

#include "aof/commands.h"
#include "rdb/rdb.h"

enum {
    OPAQUE_MAX = 1 << 20, /* of an argument in which the file ends, and which is accepted */
    CHAIN = 8,            /* consecutive commands that are accepted as real */
    CHAIN_TEXT = 16,      /* that are rather not the text of a value */
    CHAIN_SEARCH = 3,     /* consecutive commands that are accepted in a byte-by-byte search */
    HEADER_MAX = 16,      /* "$536870912 CRLF" and some more */
    DIGITS_MAX = 10,
    FORMS_LEAST = 8,     /* commands after which the forms of a log are known */
    AHEAD_MAX = 1 << 20, /* bytes after the first damage from which forms are learned */
    CHAIN_LONG = 4096,   /* commands after which the rest is not followed any more */
};

/* -- chains -- */

struct chain {
    unsigned n;    /* number of commands read, at most `max` */
    uint64_t end;  /* position at which it stopped */
    uint64_t last; /* start of the last one */
    bool to_end;   /* of the file */
    bool cut;      /* the file ends inside the next command */
    bool familiar; /* see trust() */
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

/* An annotation of the time, which is not taken for other text. */
static bool is_time(struct aof_recover_in *probe, uint64_t at)
{
    struct frame f;
    return aof_recover_frame(probe, at, &f) == FRAME_OK && f.time_s != AOF_NO_TIME;
}

/* A run of whole arguments from `at`; *ret is its end. False: none, or neither a command nor the
 * end of the file follows. */
static bool run_of_args(struct aof_recover_in *in, uint64_t at, uint64_t *ret, uint64_t *ret_n)
{
    uint64_t n = 0;
    while (aof_recover_byte(in, at) == '$' && aof_recover_arg(in, &at))
        n++;
    int next = aof_recover_byte(in, at);
    *ret_n = n;
    if (n == 0 || (next != '*' && next != '#' && at != in->size))
        return false;
    *ret = at;
    return true;
}

/* -- one wrong byte -- */

struct guess {
    struct aof_recover_in *in; /* a view at any offset */
    const struct aof_recover_forms *forms;
    struct aof_recover_way *way;
    unsigned best; /* rating of `way` */
    uint64_t from;
    bool before;
};

/* Whether the commands from a lead to b. */
static bool leads_to(struct aof_recover_in *in, uint64_t a, uint64_t b)
{
    return follow(in, a, UINT32_MAX, b).end == b;
}

/* A candidate for the end of the damaged command. Keeps the best: the longest chain; of two long
 * ones the earlier, if it leads to the other (otherwise it is inside an argument). */
static void guess(struct guess *g, uint64_t to, const char *how)
{
    int next = aof_recover_byte(g->in, to);
    if (next != '*' && (next != '#' || !is_time(g->in, to)) && to != g->in->size)
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
    uint64_t end, n;
    size_t len = aof_recover_look(g->in, start, HEADER_MAX, &p);
    if (len > HEADER_MAX)
        len = HEADER_MAX;
    size_t i = 1;
    while (i < len && p[i] != '$')
        i++;
    if (i < len && run_of_args(g->in, start + i, &end, &n))
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
    if (f->args[f->done % FRAME_ARGS] == f->bad && (byte == '*' || byte == '#'))
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
        .in = g->in, .forms = g->forms, .way = &way, .from = prev->start, .before = true};
    guess_arguments(&other, prev);
    if (other.best == 0 || way.to >= f->start ||
        (g->best > 0 && !leads_to(g->in, way.to, g->way->to)))
        return;
    g->best = other.best;
    *g->way = way;
}

/* Commands of its form usually have as many arguments as it has, and not `more`: what follows is
 * the rest of another command. */
static bool has_its_count(const struct aof_recover_forms *forms, const struct frame *f,
                          uint64_t more)
{
    return aof_recover_forms_has_argc(forms, f, f->argc) &&
           !aof_recover_forms_has_argc(forms, f, f->argc + more);
}

/* The file continues with an argument in place of a command: the previous command has more
 * arguments than its count, or swallowed the header of the next one. */
static void guess_before(struct guess *g, const struct frame *f, const struct frame *prev)
{
    uint64_t end, n;
    if (run_of_args(g->in, f->start, &end, &n) && !has_its_count(g->forms, prev, n)) {
        g->from = prev->start;
        g->before = true;
        guess(g, end, "the next command");
    }
    g->from = prev->start;
    g->before = true;
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

/* Returns the strength of what it found; 0: nothing. */
static unsigned one_byte(struct aof_recover_in *probe, const struct aof_recover_forms *forms,
                         const struct frame *f, const struct frame *prev,
                         struct aof_recover_way *ret)
{
    struct guess g = {.in = probe, .forms = forms, .way = ret, .from = f->start};
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

/* Advances s->at to the next byte that may begin a command or an annotation (or an argument). */
static bool next_place(struct search *s)
{
    const uint8_t *p;
    while (s->at < s->end) {
        size_t len = aof_recover_look(s->in, s->at, 1, &p);
        if (len == 0)
            return false;
        for (size_t i = 0; i < len && s->at < s->end; i++, s->at++)
            if (p[i] == '*' || (s->args && p[i] == '$') ||
                (p[i] == '#' && is_time(s->probe, s->at)))
                return true;
    }
    return false;
}

static bool believed(const struct chain *c)
{
    return c->n >= CHAIN_SEARCH || c->to_end || (c->n > 0 && c->cut);
}

/* Advances after the last position from which a failed chain could have continued differently. */
static uint64_t after(const struct chain *c, uint64_t at)
{
    return c->n > 1 && c->last > at ? c->last : at + 1;
}

/* -- torn commands -- */

/* A command that was not written to its end takes in the commands after it, as far as its lengths
 * reach. They are found inside it: commands that lead beyond the place where the framing broke.
 * What does not lead there may be the text of a value. */
struct torn {
    struct aof_recover_in *in, *probe;
    const struct aof_recover_forms *forms;
    const struct frame *f;
    const struct aof_recover_way *one; /* if one wrong byte is the cause; `to` 0: it is not */
    unsigned one_n;                    /* its strength */
    uint64_t rest, rest_end;           /* see struct aof_recover_way */
};

/* Commands in an argument end where the argument ends, or the next one begins. After many commands,
 * an argument is rather that of a torn command. */
static bool ends_in_argument(struct aof_recover_in *probe, const struct chain *c)
{
    int byte = aof_recover_byte(probe, c->end);
    return !c->to_end && c->n < CHAIN_LONG &&
           ((byte == '$' && c->n < CHAIN_TEXT) ||
            (byte == '\r' && aof_recover_byte(probe, c->end + 1) == '\n'));
}

/* Whether new commands usually have the form of earlier ones: then the others are strange. */
static bool has_forms(const struct aof_recover_forms *forms)
{
    return forms->n >= FORMS_LEAST && forms->n_new * 4 <= forms->n * 3;
}

/* Whether at least half of the commands from `at` to `end` are like those of the log. */
static bool is_familiar(const struct torn *t, uint64_t at, uint64_t end)
{
    unsigned n = 0, strange = 0;
    struct frame f;
    while (at < end && aof_recover_frame(t->probe, at, &f) == FRAME_OK) {
        bool command = f.kind == FRAME_COMMAND;
        n += command;
        strange += command && f.argc > 1 && !aof_recover_forms_has(t->forms, &f);
        at = f.end;
    }
    return n > 0 && strange * 2 <= n;
}

static bool is_known_command(struct aof_recover_in *probe, uint64_t at)
{
    struct frame f;
    unsigned min_args = 0;
    return aof_recover_frame(probe, at, &f) == FRAME_OK &&
           (f.kind == FRAME_ANNOTATION ||
            (aof_command_look_up(rd_slice(f.name, f.name_len), &min_args) && f.argc >= min_args));
}

/* Adds the forms of the commands from `at`, without the first ones, which may be the text of a
 * value. Returns the end of the commands. */
static uint64_t add_forms(struct aof_recover_in *probe, uint64_t at,
                          struct aof_recover_forms *forms)
{
    struct frame f;
    for (unsigned n = 0; n < CHAIN_LONG && aof_recover_frame(probe, at, &f) == FRAME_OK; n++) {
        if (n >= CHAIN && f.kind == FRAME_COMMAND)
            aof_recover_forms_add(forms, &f);
        at = f.end;
    }
    return at;
}

/* Learns from long runs of commands after the damage, once for a file. */
static void look_ahead(struct aof_recover_in *in, struct aof_recover_in *probe, uint64_t from,
                       struct aof_recover_forms *forms)
{
    struct search s = {.in = in,
                       .probe = probe,
                       .at = from,
                       .end = in->size - from > AHEAD_MAX ? from + AHEAD_MAX : in->size};
    while (!forms->ahead && next_place(&s)) {
        struct chain c = follow(probe, s.at, CHAIN_LONG, UINT64_MAX);
        if (c.n > CHAIN && !ends_in_argument(probe, &c))
            s.at = add_forms(probe, s.at, forms);
        else
            s.at = c.n > CHAIN ? c.end : after(&c, s.at);
    }
    forms->ahead = true;
}

/* What the commands from a place on are. */
enum trust {
    TRUST_NONE,
    TRUST_TEXT,   /* of a value: they end where an argument ends, or are unlike those of the log */
    TRUST_LITTLE, /* too few to say */
    TRUST_ALL
};

/* *ret: the commands. */
static enum trust trust(const struct torn *t, uint64_t at, struct chain *ret)
{
    struct chain c = follow(t->probe, at, CHAIN_LONG, UINT64_MAX);
    c.familiar = has_forms(t->forms) && is_familiar(t, at, c.end) && is_known_command(t->probe, at);
    *ret = c;
    if (c.end == at)
        return TRUST_NONE;
    if (c.to_end || c.n == CHAIN_LONG || c.familiar)
        return TRUST_ALL;
    if (ends_in_argument(t->probe, &c) || (has_forms(t->forms) && c.n < CHAIN_TEXT))
        return TRUST_TEXT;
    return c.n >= CHAIN_SEARCH || (c.n > 0 && c.cut) ? TRUST_ALL : TRUST_LITTLE;
}

/* Whether the broken command is whole without [from, to), which another writer wrote into it: what
 * follows is its rest, and not commands that its length happens to reach over. */
static bool is_written_into(struct torn *t, uint64_t from, uint64_t to)
{
    struct aof_recover_in without;
    struct frame f;
    aof_recover_in_without(&without, t->probe, from, to);
    if (aof_recover_frame(&without, t->f->start, &f) != FRAME_OK || f.end <= from ||
        strength(t->probe, f.end + to - from) == 0 ||
        aof_recover_inside(t->in, t->probe, to, f.end + to - from) < f.end + to - from)
        return false;
    t->rest = to;
    t->rest_end = f.end + to - from;
    return true;
}

/* The commands from `at` continue after the break. */
static bool is_beyond(const struct torn *t, uint64_t at, const struct chain *c, enum trust trusted)
{
    int next = aof_recover_byte(t->probe, c->end);
    if (t->one->to > at && leads_to(t->probe, at, t->one->to))
        return true;
    if (at > t->f->bad)
        return c->familiar && c->n >= CHAIN_SEARCH;
    if (trusted == TRUST_TEXT)
        return false;
    if (t->one->to != 0)
        return strength(t->probe, at) >= t->one_n;
    return trusted == TRUST_ALL || ((next == '*' || next == '#') && is_known_command(t->probe, at));
}

/* Whether the command at `at` is unlike those of the log: it may be text that took in the first of
 * the commands after it. *ret_end: where it ends. */
static bool is_strange(const struct torn *t, uint64_t at, uint64_t *ret_end)
{
    struct frame f;
    if (!has_forms(t->forms) || aof_recover_frame(t->probe, at, &f) != FRAME_OK)
        return false;
    *ret_end = f.end;
    return f.kind == FRAME_COMMAND && f.argc > 1 && !aof_recover_forms_has(t->forms, &f);
}

/* Whether the broken command begins as one, so that the one before it ends where it should. */
static bool looks_whole(const struct torn *t)
{
    int first = aof_recover_byte(t->probe, t->f->start);
    return first == '#' || (first == '*' && t->f->argc > 0);
}

/* Many commands from `at` that are like those of the log end at another broken one. One wrong digit
 * of a length would reach over them by chance, and the end of a value is not like that. */
static bool breaks_again(const struct torn *t, uint64_t at, const struct chain *c)
{
    if (!c->familiar || c->n < CHAIN_TEXT)
        return false;
    struct chain all = follow(t->probe, at, UINT32_MAX, t->one->to);
    return all.end < t->one->to && aof_recover_byte(t->probe, all.end) == '*';
}

static bool goes_on(struct torn *t, uint64_t at, uint64_t *ret_skip)
{
    struct chain c;
    enum trust trusted = trust(t, at, &c);
    *ret_skip = after(&c, at);
    if (trusted == TRUST_NONE)
        return false;
    bool is_value = t->f->bulk > 0 && has_forms(t->forms) && !c.familiar;
    if (at < t->f->start && !c.familiar && looks_whole(t))
        return false;
    if (c.end > t->f->bad || (c.to_end && !is_value))
        return is_beyond(t, at, &c, trusted);
    if (at <= t->f->start || at > t->f->bad ||
        !(c.familiar || (trusted == TRUST_ALL && c.n >= CHAIN_TEXT)))
        return false;
    return t->one->to == 0 || (t->one->to > at && leads_to(t->probe, at, t->one->to)) ||
           breaks_again(t, at, &c) || is_written_into(t, at, c.end);
}

static bool find_torn(struct torn *t, uint64_t from, uint64_t *ret)
{
    uint64_t end = t->f->bad + 1 > t->one->to ? t->f->bad + 1 : t->one->to;
    struct search s = {.in = t->in, .probe = t->probe, .at = from + 1, .end = end};
    bool found = false;
    while (next_place(&s)) {
        uint64_t skip;
        if (goes_on(t, s.at, &skip)) {
            uint64_t command = 0;
            bool strange = is_strange(t, s.at, &command);
            if (!found || !strange)
                *ret = s.at;
            if (!strange)
                return true;
            s.end = found ? s.end : command;
            skip = s.at + 1;
            found = true;
        }
        s.at = skip;
    }
    return found;
}

uint64_t aof_recover_inside(struct aof_recover_in *in, struct aof_recover_in *probe, uint64_t from,
                            uint64_t to)
{
    struct search s = {.in = in, .probe = probe, .at = from + 1, .end = to};
    while (next_place(&s)) {
        struct chain c = follow(probe, s.at, UINT32_MAX, to);
        if (c.n > 0 && c.end == to)
            return s.at;
        s.at = c.end < to ? after(&c, s.at) : s.at + 1;
    }
    return to;
}

/* Whether [from, to) has the framing of more than one command with `argc` arguments (0: not known):
 * then one wrong byte is a chance, and it is not known what is lost. */
static bool hides_framing(struct aof_recover_in *in, uint64_t from, uint64_t to, uint64_t argc)
{
    uint64_t n_args = 0;
    uint8_t last[3] = {0};
    const uint8_t *p;
    while (from < to) {
        size_t len = aof_recover_look(in, from, 1, &p);
        if (len == 0)
            break;
        for (size_t i = 0; i < len && from < to; i++, from++) {
            bool begins = last[0] == '\r' && last[1] == '\n' && p[i] >= '0' && p[i] <= '9';
            n_args += begins && last[2] == '$';
            if ((begins && last[2] == '*') || (argc > 0 && n_args > argc))
                return true;
            last[0] = last[1], last[1] = last[2], last[2] = p[i];
        }
    }
    return false;
}

/* -- all of it -- */

/* The first command in the arguments [s->at, end) that leads to their end and is like those of the
 * log; else the end. */
static uint64_t taken_in(struct search *s, const struct torn *t, uint64_t end)
{
    struct search in_args = {.in = s->in, .probe = s->probe, .at = s->at + 1, .end = end};
    while (has_forms(t->forms) && next_place(&in_args)) {
        struct chain c = follow(s->probe, in_args.at, UINT32_MAX, end);
        uint64_t command;
        if (c.n > 0 && c.end == end && !is_strange(t, in_args.at, &command))
            return in_args.at;
        in_args.at++;
    }
    return end;
}

/* A whole argument at s->at is opaque. */
static bool behind_args(struct search *s, const struct torn *t, struct aof_recover_way *ret)
{
    uint64_t next = s->at, end, n;
    struct chain c;
    if (s->at == s->failing) {
        aof_recover_arg(s->probe, &next);
        s->failing = next;
        return false;
    }
    if (!run_of_args(s->probe, s->at, &end, &n) || strength(s->probe, end) == 0 ||
        (end < s->in->size && trust(t, end, &c) == TRUST_TEXT)) {
        if (aof_recover_arg(s->probe, &next))
            s->failing = next;
        return false;
    }
    ret->to = taken_in(s, t, end);
    ret->how =
        ret->to == end ? "the command after whole arguments" : "commands that lead on to the next";
    return true;
}

static void every_byte(struct search *s, const struct torn *t, struct aof_recover_way *ret)
{
    uint64_t opaque = 0; /* the end of a command: what is inside must lead beyond it */
    ret->to = s->in->size;
    ret->how = "no command after it";
    while (next_place(s)) {
        if (aof_recover_byte(s->probe, s->at) == '$') {
            if (behind_args(s, t, ret))
                return;
            s->at++;
            continue;
        }
        struct chain c;
        enum trust trusted = trust(t, s->at, &c);
        if (trusted == TRUST_ALL && (s->at >= s->bad || c.end > s->bad) &&
            (s->at >= opaque || c.end > opaque)) {
            ret->to = s->at;
            ret->how =
                c.to_end ? "commands up to the end of the file" : "several commands in a row";
            return;
        }
        if (trusted == TRUST_LITTLE && is_known_command(t->probe, s->at) && c.end > opaque)
            opaque = c.end;
        s->at = after(&c, s->at);
    }
}

/* Nothing explains the damage: the next place where commands follow each other. */
static void search_on(struct aof_recover_in *in, struct torn *t, const struct frame *prev,
                      struct aof_recover_way *ret)
{
    const struct frame *f = t->f;
    bool before = prev != NULL && aof_recover_byte(t->probe, f->start) == '$';
    *ret = (struct aof_recover_way){.from = before ? prev->start : f->start, .before = before};
    if (f->bulk > 0 && f->bulk <= OPAQUE_MAX) {
        ret->to = in->size;
        ret->how = "the file ends inside an argument";
        return;
    }
    struct search s = {.in = in,
                       .probe = t->probe,
                       .at = ret->from + 1,
                       .end = in->size,
                       .args = true,
                       .bad = f->bad};
    every_byte(&s, t, ret);
}

bool aof_recover_resync(struct aof_recover_in *in, struct aof_recover_in *probe,
                        struct aof_recover_forms *forms, const struct frame *f,
                        const struct frame *prev, struct aof_recover_way *ret)
{
    uint64_t to;
    struct chain c;
    struct aof_recover_way one = {.from = f->start};
    unsigned n = one_byte(probe, forms, f, prev, &one);
    look_ahead(in, probe, f->bad, forms);
    struct torn t = {.in = in, .probe = probe, .forms = forms, .f = f, .one = &one, .one_n = n};
    if (n == 0 || (one.to < in->size && trust(&t, one.to, &c) == TRUST_TEXT))
        t.one_n = 0, one.to = 0;
    if (find_torn(&t, prev != NULL ? prev->start : f->start, &to) &&
        (one.to == 0 || to < one.to || !leads_to(probe, one.to, to))) {
        bool before = to < f->start;
        *ret = (struct aof_recover_way){.from = before ? prev->start : f->start,
                                        .to = to,
                                        .how = "commands inside what a torn command took in",
                                        .before = before,
                                        .rest = t.rest,
                                        .rest_end = t.rest_end};
    } else if (one.to != 0) {
        const struct frame *lost = one.before ? prev : f;
        *ret = one;
        ret->exact = !hides_framing(in, lost->start, one.to, lost->argc);
    } else {
        search_on(in, &t, prev, ret);
    }
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
