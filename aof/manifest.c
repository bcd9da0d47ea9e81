#include "aof/manifest.h"

#include <stdio.h>
#include <strings.h>

#include "aof/manifest_names.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sink_impl.h"
#include "base/words.h"

enum { WORDS_MAX = AOF_MANIFEST_LINE_MAX / 2 };

struct word {
    struct rd_slice text; /* without quotes; a NUL follows it */
    size_t at;            /* start and end in the line */
    size_t end;
};

struct reading {
    struct aof_manifest *m;
    struct rd_src *src;
    aof_manifest_problem_fn problem;
    void *ctx;
    struct rd_err *err;
    bool failed;
    unsigned line;
    uint64_t begin; /* offset of the line */
    size_t len;
    bool cut;      /* no line end */
    bool too_long; /* only its beginning is in `bytes` */
    bool has_base, has_incr;
    uint64_t last_seq;                     /* of the previous incremental files */
    char bytes[AOF_MANIFEST_LINE_MAX + 1]; /* the line with its end */
    char plain[2 * AOF_MANIFEST_LINE_MAX]; /* the words without quotes */
    struct word words[WORDS_MAX];
    size_t n_words;
};

struct aof_manifest_state {
    struct aof_file *files;
    size_t n_files, cap;
};

void aof_manifest_init(struct aof_manifest *m)
{
    *m = (struct aof_manifest){0};
}

static void free_file(struct aof_file *file)
{
    rd_free(file->name);
    rd_free(file->extra);
}

void aof_manifest_done(struct aof_manifest *m)
{
    for (size_t i = 0; i < aof_manifest_count(m); i++)
        free_file(aof_manifest_file(m, i));
    if (m->state != NULL)
        rd_free(m->state->files);
    rd_free(m->state);
    aof_manifest_init(m);
}

size_t aof_manifest_count(const struct aof_manifest *m)
{
    return m->state != NULL ? m->state->n_files : 0;
}

struct aof_file *aof_manifest_file(const struct aof_manifest *m, size_t index)
{
    return &m->state->files[index];
}

const char *aof_manifest_problem_word(enum aof_manifest_problem problem)
{
    switch (problem) {
#define X(name, number, word, fatal)                                                               \
    case number:                                                                                   \
        return word;
        AOF_MANIFEST_PROBLEMS(X)
#undef X
    }
    return "unknown";
}

bool aof_manifest_problem_fatal(enum aof_manifest_problem problem)
{
    switch (problem) {
#define X(name, number, word, fatal)                                                               \
    case number:                                                                                   \
        return fatal;
        AOF_MANIFEST_PROBLEMS(X)
#undef X
    }
    return true;
}

const char *aof_manifest_problem_refusal(enum aof_manifest_problem problem, bool *ret_line)
{
    *ret_line = true;
    switch (problem) {
    case AOF_MANIFEST_EMPTY:
        *ret_line = false;
        return "Found an empty AOF manifest";
    case AOF_MANIFEST_LINE_LONG:
    case AOF_MANIFEST_LINE_CUT:
        *ret_line = false;
        return "The AOF manifest file contains too long line";
    case AOF_MANIFEST_BAD_NAME:
        return "File can't be a path, just a filename";
    case AOF_MANIFEST_TWO_BASES:
        return "Found duplicate base file information";
    case AOF_MANIFEST_SEQ_ORDER:
        return "Found a non-monotonic sequence number";
    case AOF_MANIFEST_BAD_TYPE:
        return "Unknown AOF file type";
    default:
        return "Invalid AOF manifest file format";
    }
}

/* ---- the list ---- */

static bool copy_text(char **ret, const char *text)
{
    *ret = NULL;
    if (text == NULL)
        return true;
    size_t size = strlen(text) + 1;
    *ret = rd_alloc(size);
    if (*ret == NULL)
        return false;
    memcpy(*ret, text, size);
    return true;
}

static bool grow(struct aof_manifest *m)
{
    if (m->state == NULL)
        m->state = rd_calloc(1, sizeof *m->state);
    struct aof_manifest_state *state = m->state;
    if (state == NULL || state->n_files < state->cap)
        return state != NULL;
    size_t cap = state->cap > 0 ? state->cap * 2 : 8;
    struct aof_file *files = rd_realloc(state->files, cap * sizeof *files);
    if (files == NULL)
        return false;
    state->files = files;
    state->cap = cap;
    return true;
}

struct aof_file *aof_manifest_add(struct aof_manifest *m, const struct aof_file *file)
{
    struct aof_file copy = *file;
    if (!copy_text(&copy.name, file->name))
        return NULL;
    if (!copy_text(&copy.extra, file->extra) || !grow(m)) {
        free_file(&copy);
        return NULL;
    }
    struct aof_file *added = &m->state->files[m->state->n_files++];
    *added = copy;
    return added;
}

void aof_manifest_remove(struct aof_manifest *m, size_t index)
{
    struct aof_manifest_state *state = m->state;
    free_file(&state->files[index]);
    state->n_files--;
    memmove(state->files + index, state->files + index + 1,
            (state->n_files - index) * sizeof *state->files);
}

const struct aof_file *aof_manifest_base(const struct aof_manifest *m)
{
    for (size_t i = 0; i < aof_manifest_count(m); i++)
        if (aof_manifest_file(m, i)->type == AOF_BASE)
            return aof_manifest_file(m, i);
    return NULL;
}

const struct aof_file *aof_manifest_last_incr(const struct aof_manifest *m)
{
    for (size_t i = aof_manifest_count(m); i > 0; i--)
        if (aof_manifest_file(m, i - 1)->type == AOF_INCR)
            return aof_manifest_file(m, i - 1);
    return NULL;
}

/* ---- reading ---- */

/* Reports a problem at a position of the line; false: reading ends because of it. */
static bool report_problem(struct reading *r, enum aof_manifest_problem problem, size_t at,
                           const char *text)
{
    if (r->problem != NULL) {
        r->problem(r->ctx, problem, r->begin + at, r->line, text);
        return true;
    }
    if (!aof_manifest_problem_fatal(problem))
        return true;
    if (r->line > 0)
        rd_err_set(r->err, RD_ERR_CORRUPT, r->begin + at, "line %u: %s", r->line, text);
    else
        rd_err_set(r->err, RD_ERR_CORRUPT, r->begin + at, "%s", text);
    rd_err_origin(r->err, rd_src_origin(r->src));
    r->failed = true;
    return false;
}

static bool fail(struct reading *r, enum rd_err_code code, const char *text)
{
    rd_err_set(r->err, code, r->begin, "%s", text);
    rd_err_origin(r->err, rd_src_origin(r->src));
    r->failed = true;
    return false;
}

/* Reads bytes up to the next LF, included, into r->bytes; if the line is too long, only its
 * beginning. False at the end of the file, or if it cannot be read. */
static bool next_line(struct reading *r)
{
    bool ended = false;
    r->begin = rd_src_offset(r->src);
    r->len = 0;
    r->too_long = false;
    while (!ended) {
        struct rd_slice s;
        enum rd_src_status status = rd_src_need(r->src, 1, &s);
        if (status == RD_SRC_MORE)
            return fail(r, RD_ERR_USAGE, "a manifest cannot be read from a push source");
        if (status == RD_SRC_FAIL) {
            if (r->err != NULL)
                rd_err_adopt(r->err, rd_src_err(r->src));
            r->failed = true;
            return false;
        }
        if (status == RD_SRC_END)
            break;
        const uint8_t *lf = memchr(s.ptr, '\n', s.len);
        size_t len = lf != NULL ? (size_t)(lf - s.ptr) + 1 : s.len;
        size_t room = AOF_MANIFEST_LINE_MAX - r->len, taken = len < room ? len : room;
        memcpy(r->bytes + r->len, s.ptr, taken);
        r->len += taken;
        r->too_long |= taken < len;
        ended = lf != NULL;
        rd_src_consume(r->src, len);
    }
    r->cut = !ended;
    return r->len > 0;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

/* Decodes an escape inside double quotes; *used is its number of bytes. */
static char unescape(const char *p, size_t left, size_t *used)
{
    static const char letters[] = "nrtba", means[] = "\n\r\t\b\a";
    if (left >= 4 && p[1] == 'x' && hex_digit(p[2]) >= 0 && hex_digit(p[3]) >= 0) {
        *used = 4;
        return (char)(hex_digit(p[2]) << 4 | hex_digit(p[3]));
    }
    *used = 2;
    const char *letter = memchr(letters, p[1], sizeof letters - 1);
    return letter != NULL ? means[letter - letters] : p[1];
}

/* Copies the word at *pos of the line to dst without its quotes and moves *pos after it. False:
 * quotes are not closed, or not followed by a blank. */
static bool split_word(const struct reading *r, size_t *pos, char *dst, size_t *ret_len)
{
    const char *p = r->bytes;
    size_t i = *pos, len = 0;
    char quote = '\0';
    for (; i < r->len; i++) {
        bool more = i + 1 < r->len;
        size_t used = 1;
        if (quote == '\0') {
            if (is_blank(p[i]))
                break;
            if (p[i] == '"' || p[i] == '\'')
                quote = p[i];
            else
                dst[len++] = p[i];
        } else if (p[i] == quote) {
            if (more && !is_blank(p[i + 1]))
                return false;
            quote = '\0';
        } else if (quote == '"' && p[i] == '\\' && more) {
            dst[len++] = unescape(p + i, r->len - i, &used);
            i += used - 1;
        } else if (quote == '\'' && p[i] == '\\' && more && p[i + 1] == '\'') {
            dst[len++] = p[++i];
        } else {
            dst[len++] = p[i];
        }
    }
    *pos = i;
    *ret_len = len;
    return quote == '\0';
}

/* False: wrong quotes; *ret_at is their position. */
static bool split_line(struct reading *r, size_t *ret_at)
{
    size_t pos = 0;
    char *plain = r->plain;
    r->n_words = 0;
    for (;;) {
        while (pos < r->len && is_blank(r->bytes[pos]))
            pos++;
        if (pos == r->len)
            return true;
        struct word *word = &r->words[r->n_words++];
        size_t len;
        *ret_at = word->at = pos;
        if (!split_word(r, &pos, plain, &len))
            return false;
        plain[len] = '\0';
        word->text = rd_slice(plain, len);
        word->end = pos;
        plain += len + 1;
    }
}

/* The number at the beginning of a word, as by atoll(); false if it is negative or missing. */
static bool leading_number(const struct word *word, uint64_t *ret)
{
    const uint8_t *p = word->text.ptr;
    uint64_t value = 0;
    size_t i = 0;
    for (; i < word->text.len && p[i] >= '0' && p[i] <= '9'; i++) {
        if (value > (INT64_MAX - 9) / 10)
            return false;
        value = value * 10 + (uint64_t)(p[i] - '0');
    }
    *ret = value;
    return i > 0;
}

static bool name_fits(struct rd_slice name)
{
    return name.len > 0 && name.len <= AOF_NAME_MAX && memchr(name.ptr, '/', name.len) == NULL &&
           memchr(name.ptr, '\\', name.len) == NULL && memchr(name.ptr, '\0', name.len) == NULL;
}

static bool key_is(const struct word *key, const char *name)
{
    return key->text.len == strlen(name) && strcasecmp((const char *)key->text.ptr, name) == 0;
}

static bool read_offset(struct reading *r, const struct word *value, int64_t *ret)
{
    if (rd_num_get_i64(value->text, ret) && *ret >= 0)
        return true;
    *ret = -1;
    return report_problem(r, AOF_MANIFEST_BAD_OFFSET, value->at, "an offset that is not a number");
}

static bool keep_extra(struct reading *r, const struct word *key, const struct word *value,
                       struct rd_buf *extra)
{
    if ((extra->len == 0 || rd_buf_add_byte(extra, ' ')) &&
        rd_buf_add(extra, r->bytes + key->at, value->end - key->at))
        return true;
    return fail(r, RD_ERR_MEMORY, "out of memory");
}

/* The values of a line; NULL: missing. */
struct line_values {
    const struct word *name, *seq, *type;
};

static bool read_pairs(struct reading *r, struct aof_file *file, struct line_values *at,
                       struct rd_buf *extra)
{
    for (size_t i = 0; i < r->n_words; i += 2) {
        const struct word *key = &r->words[i], *value = key + 1;
        bool ok = true;
        if (key_is(key, "file"))
            at->name = value;
        else if (key_is(key, "seq"))
            at->seq = value;
        else if (key_is(key, "type"))
            at->type = value;
        else if (key_is(key, "startoffset"))
            ok = read_offset(r, value, &file->start_offset);
        else if (key_is(key, "endoffset"))
            ok = read_offset(r, value, &file->end_offset);
        else
            ok = keep_extra(r, key, value, extra);
        if (!ok)
            return false;
    }
    return true;
}

/* Reads the required values. False: the line cannot be used. */
static bool take_values(struct reading *r, const struct line_values *at, struct aof_file *file)
{
    size_t end = r->words[r->n_words - 1].end;
    if (at->name == NULL)
        return report_problem(r, AOF_MANIFEST_NO_NAME, end, "no file is named") && false;
    if (!name_fits(at->name->text))
        return report_problem(r, AOF_MANIFEST_BAD_NAME, at->name->at, "not the name of a file") &&
               false;
    if (at->seq == NULL || !leading_number(at->seq, &file->seq) || file->seq == 0)
        return report_problem(r, AOF_MANIFEST_BAD_SEQ, at->seq != NULL ? at->seq->at : end,
                              at->seq != NULL ? "seq is not a number above 0" : "no seq") &&
               false;
    if (at->type == NULL)
        return report_problem(r, AOF_MANIFEST_NO_TYPE, end, "no type") && false;
    char type = at->type->text.len > 0 ? (char)at->type->text.ptr[0] : '\0';
    if (type != AOF_BASE && type != AOF_HISTORY && type != AOF_INCR)
        return report_problem(r, AOF_MANIFEST_BAD_TYPE, at->type->at, "type is not b, h or i") &&
               false;
    file->type = (enum aof_type)type;
    return true;
}

/* Compares the file with the previous ones. False: it is left out. */
static bool fits_in(struct reading *r, const struct line_values *at, const struct aof_file *file)
{
    if (file->type == AOF_BASE && r->has_base)
        return report_problem(r, AOF_MANIFEST_TWO_BASES, 0, "a second base file") && false;
    r->has_base = r->has_base || file->type == AOF_BASE;
    if (file->type != AOF_INCR)
        return true;
    if (r->has_incr && file->seq <= r->last_seq) {
        const struct aof_file *last = aof_manifest_last_incr(r->m);
        bool again = last != NULL && strcmp(last->name, file->name) == 0;
        return report_problem(r, AOF_MANIFEST_SEQ_ORDER, at->seq->at,
                              "incremental files are not in rising order") &&
               !again;
    }
    if (r->has_incr && file->seq > r->last_seq + 1 &&
        !report_problem(r, AOF_MANIFEST_SEQ_MISSING, at->seq->at,
                        "the sequence skips a number before this one"))
        return false;
    r->has_incr = true;
    r->last_seq = file->seq;
    return true;
}

static bool add_line(struct reading *r, struct rd_buf *extra)
{
    struct aof_file file = {
        .start_offset = -1, .end_offset = -1, .offset = r->begin, .line = r->line};
    struct line_values at = {0};
    if (!read_pairs(r, &file, &at, extra))
        return false;
    if (!take_values(r, &at, &file))
        return !r->failed;
    char name[AOF_NAME_MAX + 1];
    memcpy(name, at.name->text.ptr, at.name->text.len + 1);
    file.name = name;
    if (!fits_in(r, &at, &file))
        return !r->failed;
    if (aof_manifest_count(r->m) >= AOF_FILES_MAX)
        return fail(r, RD_ERR_LIMIT, "too many files");
    if (extra->len > 0) {
        if (!rd_buf_add_byte(extra, 0))
            return fail(r, RD_ERR_MEMORY, "out of memory");
        file.extra = (char *)extra->ptr;
    }
    return aof_manifest_add(r->m, &file) != NULL || fail(r, RD_ERR_MEMORY, "out of memory");
}

/* False if reading must stop. An unusable line has been reported. */
static bool read_line(struct reading *r)
{
    size_t at = 0;
    if (r->too_long)
        return report_problem(r, AOF_MANIFEST_LINE_LONG, AOF_MANIFEST_LINE_MAX,
                              "a line longer than 1024 bytes");
    if (r->bytes[0] == '#')
        return true;
    const char *nul = memchr(r->bytes, '\0', r->len);
    if (nul != NULL)
        return report_problem(r, AOF_MANIFEST_LINE_NUL, (size_t)(nul - r->bytes), "a NUL byte");
    if (r->cut && !report_problem(r, AOF_MANIFEST_LINE_CUT, r->len, "the last line has no end"))
        return false;
    if (!split_line(r, &at))
        return report_problem(r, AOF_MANIFEST_LINE_PAIRS, at, "quotes that are not closed");
    if (r->n_words == 0)
        return report_problem(r, AOF_MANIFEST_LINE_BLANK, 0, "a blank line");
    if (r->n_words % 2 != 0)
        return report_problem(r, AOF_MANIFEST_LINE_PAIRS, r->words[r->n_words - 1].at,
                              "a key without a value");
    struct rd_buf extra = {0};
    bool ok = add_line(r, &extra);
    rd_buf_done(&extra);
    return ok;
}

/* Reports files that are listed twice. */
static bool find_same_names(struct reading *r)
{
    struct aof_manifest_names names;
    if (!aof_manifest_names_init(&names, r->m, NULL))
        return fail(r, RD_ERR_MEMORY, "out of memory");
    for (size_t i = 1; i < names.n; i++) {
        const struct aof_file *file = names.sorted[i];
        if (strcmp(names.sorted[i - 1]->name, file->name) != 0)
            continue;
        r->begin = file->offset;
        r->line = file->line;
        report_problem(r, AOF_MANIFEST_SAME_NAME, 0, "a file that an earlier line names");
    }
    aof_manifest_names_done(&names);
    return true;
}

static bool read_lines(struct reading *r)
{
    while (next_line(r)) {
        r->line++;
        if (!read_line(r))
            return false;
    }
    if (r->failed)
        return false;
    unsigned lines = r->line;
    r->line = 0;
    if (lines == 0)
        return report_problem(r, AOF_MANIFEST_EMPTY, 0, "an empty manifest");
    if (aof_manifest_count(r->m) == 0)
        return report_problem(r, AOF_MANIFEST_NO_FILES, 0, "no file is named");
    return find_same_names(r);
}

bool aof_manifest_read(struct aof_manifest *m, struct rd_src *src, aof_manifest_problem_fn problem,
                       void *ctx, struct rd_err *err)
{
    struct reading *r = rd_calloc(1, sizeof *r);
    if (r == NULL)
        return rd_err_nomem(err, sizeof *r);
    r->m = m;
    r->src = src;
    r->problem = problem;
    r->ctx = ctx;
    r->err = err;
    bool ok = read_lines(r);
    if (!ok)
        aof_manifest_done(m);
    rd_free(r);
    return ok;
}

/* ---- writing ---- */

static bool needs_quotes(const char *name)
{
    if (*name == '\0')
        return true;
    for (; *name != '\0'; name++)
        if (*name <= ' ' || *name > '~' || *name == '"' || *name == '\\' || *name == '\'')
            return true;
    return false;
}

static bool add_file(struct rd_buf *line, const struct aof_file *file)
{
    bool ok = rd_buf_printf(line, "file ");
    ok = ok && (needs_quotes(file->name) ? rd_words_quote(line, rd_slice_str(file->name))
                                         : rd_buf_printf(line, "%s", file->name));
    ok = ok && rd_buf_printf(line, " seq %ju type %c", (uintmax_t)file->seq, (char)file->type);
    if (file->start_offset >= 0)
        ok = ok && rd_buf_printf(line, " startoffset %jd", (intmax_t)file->start_offset);
    if (file->end_offset >= 0)
        ok = ok && rd_buf_printf(line, " endoffset %jd", (intmax_t)file->end_offset);
    if (file->extra != NULL)
        ok = ok && rd_buf_printf(line, " %s", file->extra);
    return ok && rd_buf_add_byte(line, '\n');
}

bool aof_manifest_write(const struct aof_manifest *m, struct rd_sink *sink)
{
    static const enum aof_type order[] = {AOF_BASE, AOF_HISTORY, AOF_INCR};
    struct rd_buf text = {0};
    bool ok = true;
    for (size_t k = 0; k < sizeof order / sizeof *order; k++)
        for (size_t i = 0; i < aof_manifest_count(m) && ok; i++)
            if (aof_manifest_file(m, i)->type == order[k])
                ok = add_file(&text, aof_manifest_file(m, i));
    if (!ok)
        rd_err_nomem(&sink->state->err, text.len);
    ok = ok && rd_sink_write(sink, text.ptr, text.len);
    rd_buf_done(&text);
    return ok;
}

/* ---- names ---- */

bool aof_file_name(char *dst, size_t size, const char *prefix, uint64_t seq, enum aof_type type,
                   bool snapshot)
{
    if (type == AOF_HISTORY || (type == AOF_INCR && snapshot))
        return false;
    int len = snprintf(dst, size, "%s.%ju.%s.%s", prefix, (uintmax_t)seq,
                       type == AOF_BASE ? "base" : "incr", snapshot ? "rdb" : "aof");
    return len >= 0 && (size_t)len < size;
}

bool aof_file_name_parse(const char *name, const char *prefix, uint64_t *ret_seq,
                         enum aof_type *ret_type, bool *ret_snapshot)
{
    static const struct {
        const char *text;
        enum aof_type type;
        bool snapshot;
    } ends[] = {{".base.rdb", AOF_BASE, true},
                {".base.aof", AOF_BASE, false},
                {".incr.aof", AOF_INCR, false}};
    size_t len = strlen(prefix);
    if (strncmp(name, prefix, len) != 0 || name[len] != '.')
        return false;
    name += len + 1;
    len = strspn(name, "0123456789");
    uint64_t seq;
    if (!rd_num_get_u64(rd_slice(name, len), &seq) || seq == 0)
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strcmp(name + len, ends[i].text) == 0) {
            *ret_seq = seq;
            *ret_type = ends[i].type;
            *ret_snapshot = ends[i].snapshot;
            return true;
        }
    return false;
}

bool aof_file_holds_snapshot(const struct aof_file *file)
{
    static const char end[] = ".rdb";
    size_t len = strlen(file->name), n = sizeof end - 1;
    return file->type == AOF_BASE && len >= n && strcmp(file->name + len - n, end) == 0;
}
