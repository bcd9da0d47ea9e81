/* resp.c - the reader of commands.
 *
 * Two parsers share the work. parse_whole() parses a command that is completely in memory, as
 * nearly all are; it cannot report errors. For other commands, check() verifies the input step by
 * step, over any number of calls, and reports the first wrong byte; it stores only its position.
 * When it reaches the end of the command, parse_whole() parses that command, too.
 */
#include "base/resp.h"

#include "base/mem.h"
#include "base/resp_frame.h"
#include "base/resp_input.h"

enum { ARGS_FIRST = 64, ARGS_KEEP = 64 * 1024 };

/* Where check() is. */
enum stage { AT_BEGIN, AT_COUNT, AT_LENGTH, AT_BYTES, AT_INLINE };

struct rd_resp_reader {
    struct resp_input in;
    struct rd_slice *argv;
    size_t cap;          /* of argv */
    struct rd_buf words; /* the unquoted words of an inline command */
    enum stage stage;
    size_t pos;     /* bytes of the command that were checked */
    uint64_t count; /* arguments that are not read yet */
    size_t argc;
    size_t bulk; /* AT_BYTES: length of the argument */
    struct rd_slice raw;
};

bool rd_resp_reader_new(struct rd_resp_reader **ret, struct rd_src *src,
                        const struct rd_resp_opts *opts, struct rd_err *err)
{
    struct rd_resp_reader *r = rd_calloc(1, sizeof *r);
    struct rd_slice *argv = rd_calloc(ARGS_FIRST, sizeof *argv);
    if (r == NULL || argv == NULL) {
        rd_free(r);
        rd_free(argv);
        return rd_err_nomem(err, sizeof *r);
    }
    if (!rd_resp_input_init(&r->in, src, opts, err)) {
        rd_free(argv);
        rd_free(r);
        return false;
    }
    r->argv = argv;
    r->cap = ARGS_FIRST;
    *ret = r;
    return true;
}

void rd_resp_reader_free(struct rd_resp_reader *r)
{
    if (r == NULL)
        return;
    rd_resp_input_done(&r->in);
    rd_buf_done(&r->words);
    rd_free(r->argv);
    rd_free(r);
}

uint64_t rd_resp_reader_offset(const struct rd_resp_reader *r)
{
    return r->stage == AT_BEGIN && !r->in.failed ? rd_src_offset(r->in.src) : r->in.start;
}

struct rd_slice rd_resp_reader_raw(const struct rd_resp_reader *r)
{
    return r->raw;
}

const struct rd_err *rd_resp_reader_err(const struct rd_resp_reader *r)
{
    return &r->in.err;
}

/* Fills argv from a multibulk command that begins at p. Returns its length, or 0 if it is
 * incomplete, invalid, over a limit, or has more arguments than argv can hold. */
static size_t parse_whole(struct rd_resp_reader *r, const uint8_t *p, const uint8_t *end)
{
    const struct rd_resp_limits limits = {r->in.opts.max_args, r->in.opts.max_bulk};
    uint64_t argc;
    size_t len = rd_resp_whole(p, end, 0, &limits, r->argv, UINT64_MAX, r->cap, &argc);
    if (len > 0)
        r->argc = argc;
    return len;
}

static enum resp_status expected(struct rd_resp_reader *r, char byte, uint8_t got)
{
    char quoted[16], text[48] = "expected '?', found ";
    text[10] = byte;
    rd_err_quote(quoted, sizeof quoted, rd_slice(&got, 1));
    strncat(text, quoted, sizeof text - strlen(text) - 1);
    return rd_resp_input_fail(&r->in, RD_ERR_CORRUPT, r->pos, text);
}

/* The byte at r->pos. */
static enum resp_status look(struct rd_resp_reader *r, uint8_t *ret)
{
    struct rd_slice s;
    enum rd_src_status status = rd_resp_input_view(&r->in, r->pos + 1, &s);
    if (status != RD_SRC_OK)
        return rd_resp_input_short(&r->in, status, s.len);
    *ret = s.ptr[r->pos];
    return RESP_COMMAND;
}

static enum resp_status check_begin(struct rd_resp_reader *r)
{
    struct rd_slice s;
    enum rd_src_status status = rd_resp_input_view(&r->in, 1, &s);
    if (status == RD_SRC_END)
        return RESP_END;
    if (status != RD_SRC_OK)
        return rd_resp_input_short(&r->in, status, 0);
    if (s.ptr[0] != '*' && !r->in.opts.client)
        return expected(r, '*', s.ptr[0]);
    r->stage = s.ptr[0] == '*' ? AT_COUNT : AT_INLINE;
    return RESP_COMMAND;
}

static enum resp_status check_count(struct rd_resp_reader *r)
{
    int64_t count = 0;
    size_t pos;
    enum resp_status status =
        rd_resp_input_number(&r->in, 1, "bad count of arguments", &count, &pos);
    if (status != RESP_COMMAND)
        return status;
    bool nothing = r->in.opts.client && (count == 0 || count == -1);
    if (count < 1 && !nothing)
        return rd_resp_input_fail(&r->in, RD_ERR_CORRUPT, 1, "bad count of arguments");
    if (count > 0 && (uint64_t)count > r->in.opts.max_args)
        return rd_resp_input_fail(&r->in, RD_ERR_LIMIT, 1, "too many arguments");
    r->count = count > 0 ? (uint64_t)count : 0;
    r->argc = (size_t)r->count;
    r->pos = pos;
    r->stage = AT_LENGTH;
    return RESP_COMMAND;
}

static enum resp_status check_length(struct rd_resp_reader *r)
{
    uint8_t byte = 0;
    enum resp_status status = look(r, &byte);
    if (status != RESP_COMMAND)
        return status;
    if (byte != '$')
        return expected(r, '$', byte);
    int64_t len = 0;
    size_t pos;
    status = rd_resp_input_number(&r->in, r->pos + 1, "bad length of an argument", &len, &pos);
    if (status != RESP_COMMAND)
        return status;
    if (len < 0)
        return rd_resp_input_fail(&r->in, RD_ERR_CORRUPT, r->pos + 1, "bad length of an argument");
    if ((uint64_t)len > r->in.opts.max_bulk)
        return rd_resp_input_fail(&r->in, RD_ERR_LIMIT, r->pos + 1, "argument is too long");
    r->bulk = (size_t)len;
    r->pos = pos;
    r->stage = AT_BYTES;
    return RESP_COMMAND;
}

static enum resp_status check_bytes(struct rd_resp_reader *r)
{
    struct rd_slice s;
    size_t end = r->pos + r->bulk;
    enum rd_src_status status = rd_resp_input_view(&r->in, end + 2, &s);
    if (s.len > end && status != RD_SRC_FAIL && s.ptr[end] != '\r')
        return rd_resp_input_fail(&r->in, RD_ERR_CORRUPT, end, "no CRLF after an argument");
    if (status != RD_SRC_OK)
        return rd_resp_input_short(&r->in, status, s.len);
    if (s.ptr[end + 1] != '\n')
        return rd_resp_input_fail(&r->in, RD_ERR_CORRUPT, end + 1, "no CRLF after an argument");
    r->pos = end + 2;
    r->count--;
    r->stage = AT_LENGTH;
    return RESP_COMMAND;
}

/* Makes room for argc slices; as many arguments follow in the input. */
static bool reserve_args(struct rd_resp_reader *r, size_t argc)
{
    if (argc <= r->cap)
        return true;
    size_t in_buffer = r->in.moved ? r->in.buf.len : 0;
    if (argc > (r->in.opts.max_memory - in_buffer) / sizeof *r->argv) {
        rd_resp_input_fail(&r->in, RD_ERR_LIMIT, 0, "more arguments than the memory allows");
        return false;
    }
    struct rd_slice *argv = rd_realloc(r->argv, argc * sizeof *argv);
    if (argv == NULL) {
        rd_resp_input_fail(&r->in, RD_ERR_MEMORY, 0, "out of memory");
        return false;
    }
    r->argv = argv;
    r->cap = argc;
    return true;
}

/* `begin` is the first byte of the command. */
static enum resp_status hand_out(struct rd_resp_reader *r, const uint8_t *begin, size_t len,
                                 struct resp_command *ret)
{
    rd_resp_input_end(&r->in, len);
    r->raw = rd_slice(begin, len);
    *ret = (struct resp_command){r->argc, r->argv, r->in.start, len};
    r->stage = AT_BEGIN;
    return RESP_COMMAND;
}

/* The command is checked up to its end at r->pos. */
static enum resp_status finish_multibulk(struct rd_resp_reader *r, struct resp_command *ret)
{
    struct rd_slice s;
    if (!reserve_args(r, r->argc) || rd_resp_input_view(&r->in, r->pos, &s) != RD_SRC_OK)
        return RESP_FAIL;
    if (parse_whole(r, s.ptr, s.ptr + r->pos) != r->pos)
        return rd_resp_input_fail(&r->in, RD_ERR_CORRUPT, 0, "bad command");
    return hand_out(r, s.ptr, r->pos, ret);
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0;
}

/* The byte that \x, \n … at p[0 … left) means inside double quotes; *used is how many bytes of the
 * input it takes, the backslash counted. */
static uint8_t unescape(const uint8_t *p, size_t left, size_t *used)
{
    static const char letters[] = "nrtba", means[] = "\n\r\t\b\a";
    static const char digits[] = "0123456789abcdef";
    if (left >= 4 && p[1] == 'x') {
        const char *high = memchr(digits, p[2] | 0x20, 16);
        const char *low = memchr(digits, p[3] | 0x20, 16);
        /* A digit has the bit 0x20 already; setting it must not turn a control byte into a digit.
         */
        if (high != NULL && low != NULL && p[2] >= '0' && p[3] >= '0') {
            *used = 4;
            return (uint8_t)((high - digits) << 4 | (low - digits));
        }
    }
    *used = 2;
    const char *letter = memchr(letters, p[1], sizeof letters - 1);
    return letter != NULL ? (uint8_t)means[letter - letters] : p[1];
}

/* Copies the word at *pos of the line to dst, without its quotes; *pos moves after it. False where
 * quotes are not closed, or not followed by a blank. */
static bool split_word(struct rd_slice line, size_t *pos, uint8_t *dst, size_t *ret_len)
{
    size_t i = *pos, len = 0;
    uint8_t quote = 0;
    for (; i < line.len; i++) {
        uint8_t c = line.ptr[i];
        if (quote == 0) {
            if (is_blank(c))
                break;
            if (c == '"' || c == '\'')
                quote = c;
            else
                dst[len++] = c;
        } else if (c == quote) {
            if (i + 1 < line.len && !is_blank(line.ptr[i + 1]))
                return false;
            quote = 0;
        } else if (quote == '"' && c == '\\' && i + 1 < line.len) {
            size_t used;
            dst[len++] = unescape(line.ptr + i, line.len - i, &used);
            i += used - 1;
        } else if (quote == '\'' && c == '\\' && i + 1 < line.len && line.ptr[i + 1] == '\'') {
            dst[len++] = '\'';
            i++;
        } else {
            dst[len++] = c;
        }
    }
    *pos = i;
    *ret_len = len;
    return quote == 0;
}

/* Words of a line of at most max_inline bytes. */
static enum resp_status split_line(struct rd_resp_reader *r, struct rd_slice line)
{
    size_t used = 0;
    r->argc = 0;
    rd_buf_reset(&r->words);
    if (!rd_buf_reserve(&r->words, line.len + 1))
        return rd_resp_input_fail(&r->in, RD_ERR_MEMORY, 0, "out of memory");
    for (size_t pos = 0;;) {
        size_t begin, len;
        while (pos < line.len && is_blank(line.ptr[pos]))
            pos++;
        if (pos == line.len)
            return RESP_COMMAND;
        begin = pos;
        if (!split_word(line, &pos, r->words.ptr + used, &len))
            return rd_resp_input_fail(&r->in, RD_ERR_CORRUPT, begin, "unbalanced quotes");
        if (r->argc == r->in.opts.max_args)
            return rd_resp_input_fail(&r->in, RD_ERR_LIMIT, begin, "too many arguments");
        if (r->argc == r->cap && !reserve_args(r, r->cap * 2))
            return RESP_FAIL;
        r->argv[r->argc++] = rd_slice(r->words.ptr + used, len);
        used += len;
    }
}

/* *ret_skip: the line was empty, and is consumed. */
static enum resp_status take_inline(struct rd_resp_reader *r, struct resp_command *ret,
                                    bool *ret_skip)
{
    size_t lf;
    struct rd_slice s;
    enum resp_status status = rd_resp_input_line(&r->in, 0, "inline command is too long", &lf);
    if (status != RESP_COMMAND)
        return status;
    if (rd_resp_input_view(&r->in, lf + 1, &s) != RD_SRC_OK)
        return RESP_FAIL;
    status = split_line(r, rd_slice(s.ptr, lf));
    if (status != RESP_COMMAND)
        return status;
    *ret_skip = r->argc == 0;
    return hand_out(r, s.ptr, lf + 1, ret);
}

/* Continues with a command that parse_whole() could not parse. */
static enum resp_status check(struct rd_resp_reader *r, struct resp_command *ret, bool *ret_skip)
{
    enum resp_status status = RESP_COMMAND;
    while (status == RESP_COMMAND)
        switch (r->stage) {
        case AT_BEGIN:
            status = check_begin(r);
            break;
        case AT_COUNT:
            status = check_count(r);
            break;
        case AT_LENGTH:
            if (r->count == 0) {
                *ret_skip = r->argc == 0;
                return *ret_skip ? hand_out(r, NULL, r->pos, ret) : finish_multibulk(r, ret);
            }
            status = check_length(r);
            break;
        case AT_BYTES:
            status = check_bytes(r);
            break;
        case AT_INLINE:
            return take_inline(r, ret, ret_skip);
        }
    return status;
}

static void begin(struct rd_resp_reader *r)
{
    rd_resp_input_begin(&r->in);
    r->pos = 0;
    if (r->cap > ARGS_KEEP) {
        struct rd_slice *argv = rd_realloc(r->argv, ARGS_FIRST * sizeof *argv);
        if (argv != NULL) {
            r->argv = argv;
            r->cap = ARGS_FIRST;
        }
    }
}

enum resp_status rd_resp_reader_next(struct rd_resp_reader *r, struct resp_command *ret)
{
    if (r->in.failed)
        return RESP_FAIL;
    for (;;) {
        if (r->stage == AT_BEGIN) {
            struct rd_src *src = r->in.src;
            size_t len = parse_whole(r, src->cur, src->end);
            if (RD_LIKELY(len > 0)) {
                *ret = (struct resp_command){r->argc, r->argv, rd_src_offset(src), len};
                r->raw = rd_slice(src->cur, len);
                rd_src_consume(src, len);
                return RESP_COMMAND;
            }
            begin(r);
        }
        bool skip = false;
        struct resp_command cmd;
        enum resp_status status = check(r, &cmd, &skip);
        if (skip)
            continue;
        if (status == RESP_COMMAND)
            *ret = cmd;
        return status;
    }
}
