#include "repl/capture/walk.h"

#include <inttypes.h>

enum state { AT_START, IN_COUNT, AT_DOLLAR, IN_LEN, IN_BYTES };

void repl_capture_walk_init(struct capture_walk *w, uint64_t offset, uint64_t db, bool in_multi)
{
    *w = (struct capture_walk){.state = AT_START};
    repl_stream_init(&w->stream, offset, db, in_multi);
}

/* ---- commands that are there as a whole ---- */

/* No limits here: servers have accepted the command. */
static const struct rd_resp_limits limits = {UINT64_MAX, UINT64_MAX};

/* The length of the command that begins here; 0: it is incomplete or unusual. */
static size_t whole(const uint8_t *ptr, size_t len, struct rd_slice argv[2], uint64_t *ret_argc)
{
    return rd_resp_whole(ptr, ptr + len, 0, &limits, argv, 2, UINT64_MAX, ret_argc);
}

bool repl_capture_walk_args(struct rd_slice bytes, struct rd_buf *argv, size_t *ret_argc)
{
    const uint8_t *end = bytes.ptr + bytes.len;
    uint64_t argc;
    const uint8_t *at = rd_resp_header(bytes.ptr, end, '*', &argc);
    if (at == NULL)
        return false;
    rd_buf_reset(argv);
    for (uint64_t i = 0; i < argc; i++) {
        struct rd_slice arg = {0};
        at = rd_resp_argument(at, end, 0, limits.max_bulk, &arg);
        if (at == NULL || !rd_buf_add(argv, &arg, sizeof arg))
            return false;
    }
    *ret_argc = (size_t)argc;
    return true;
}

/* ---- the end of a command ---- */

static enum capture_walk_status wrong(const struct capture_walk *w, uint64_t at, uint8_t byte,
                                      const char *expected, struct rd_err *err)
{
    char text[16];
    rd_err_set(err, RD_ERR_PROTOCOL, w->stream.offset + at, "expected %s, found %s", expected,
               rd_err_quote(text, sizeof text, rd_slice(&byte, 1)));
    return CAPTURE_WALK_FAIL;
}

/* repl_stream_take() failed: the second call gets the error. Clearing an error for every command
 * would cost more than the command. */
static enum capture_walk_status refused(struct capture_walk *w, uint64_t argc,
                                        const struct rd_slice *argv, struct rd_err *err)
{
    struct rd_err why = {0};
    repl_stream_take(&w->stream, (size_t)argc, argv, 0, &w->place, &why);
    rd_err_set(err, RD_ERR_PROTOCOL, w->stream.offset, "%s", why.text);
    return CAPTURE_WALK_FAIL;
}

static enum capture_walk_status end_command(struct capture_walk *w, uint64_t argc,
                                            const struct rd_slice *argv, uint64_t len,
                                            struct rd_err *err)
{
    if (!repl_stream_take(&w->stream, (size_t)argc, argv, len, &w->place, NULL))
        return refused(w, argc, argv, err);
    w->taken = 0;
    w->state = AT_START;
    return CAPTURE_WALK_WHOLE;
}

/* ---- commands in pieces ---- */

static void begin_number(struct capture_walk *w, enum state state)
{
    w->state = (uint8_t)state;
    w->digits = (struct rd_resp_number){0};
}

static void begin_bytes(struct capture_walk *w)
{
    w->state = IN_BYTES;
    w->left = (uint64_t)w->digits.value + 2;
    if (w->arg < 2)
        w->n_kept[w->arg] = 0;
}

/* Reads one byte of the framing. Returns NULL, or the text of the expected bytes. */
static const char *frame_byte(struct capture_walk *w, uint8_t byte)
{
    enum rd_resp_scan scan;
    switch ((enum state)w->state) {
    case AT_START:
        w->arg = 0;
        begin_number(w, IN_COUNT);
        return byte == '*' ? NULL : "'*'";
    case AT_DOLLAR:
        begin_number(w, IN_LEN);
        return byte == '$' ? NULL : "'$'";
    case IN_COUNT:
        scan = rd_resp_number_step(&w->digits, byte);
        if (scan == RD_RESP_BAD || (scan == RD_RESP_WHOLE && w->digits.value == 0))
            return "a number of arguments";
        if (scan == RD_RESP_WHOLE) {
            w->args = (uint64_t)w->digits.value;
            w->state = AT_DOLLAR;
        }
        return NULL;
    default:
        scan = rd_resp_number_step(&w->digits, byte);
        if (scan == RD_RESP_BAD)
            return "the length of an argument";
        if (scan == RD_RESP_WHOLE)
            begin_bytes(w);
        return NULL;
    }
}

static void keep_bytes(struct capture_walk *w, const uint8_t *ptr, size_t len)
{
    if (w->arg >= 2 || w->digits.value > CAPTURE_WALK_ARG)
        return;
    memcpy(w->kept[w->arg] + w->n_kept[w->arg], ptr, len);
    w->n_kept[w->arg] = (uint8_t)(w->n_kept[w->arg] + len);
}

/* Bytes of an argument, or one of its line end. Returns how many; 0: the line end is wrong. */
static size_t arg_bytes(struct capture_walk *w, const uint8_t *ptr, size_t len)
{
    size_t n = 1;
    if (w->left > 2) {
        n = w->left - 2 < len ? (size_t)(w->left - 2) : len;
        keep_bytes(w, ptr, n);
    } else if (*ptr != (w->left == 2 ? '\r' : '\n')) {
        return 0;
    }
    w->left -= n;
    if (w->left == 0) {
        w->arg++;
        w->state = AT_DOLLAR;
    }
    return n;
}

static enum capture_walk_status end_kept(struct capture_walk *w, struct rd_err *err)
{
    struct rd_slice argv[2] = {rd_slice(w->kept[0], w->n_kept[0]),
                               rd_slice(w->kept[1], w->n_kept[1])};
    /* A name that is too long to keep becomes empty; neither is SELECT, MULTI or EXEC. */
    return end_command(w, w->args, argv, w->taken, err);
}

static enum capture_walk_status by_bytes(struct capture_walk *w, const uint8_t *ptr, size_t len,
                                         size_t *ret_taken, struct rd_err *err)
{
    size_t at = 0;
    while (at < len) {
        size_t n = 1;
        const char *expected = NULL;
        if (w->state != IN_BYTES)
            expected = frame_byte(w, ptr[at]);
        else if ((n = arg_bytes(w, ptr + at, len - at)) == 0)
            expected = "CR LF after an argument";
        *ret_taken = at;
        if (expected != NULL)
            return wrong(w, w->taken, ptr[at], expected, err);
        at += n;
        w->taken += n;
        *ret_taken = at;
        if (w->state == AT_DOLLAR && w->arg == w->args)
            return end_kept(w, err);
    }
    return CAPTURE_WALK_MORE;
}

enum capture_walk_status repl_capture_walk_step(struct capture_walk *w, const uint8_t *ptr,
                                                size_t len, size_t *ret_taken, struct rd_err *err)
{
    if (RD_LIKELY(w->state == AT_START)) {
        struct rd_slice argv[2] = {{0}};
        uint64_t argc;
        size_t n = whole(ptr, len, argv, &argc);
        *ret_taken = n;
        if (RD_LIKELY(n > 0))
            return end_command(w, argc, argv, n, err);
        if (*ptr == '\r' || *ptr == '\n') {
            repl_stream_pass(&w->stream, 1);
            *ret_taken = 1;
            return CAPTURE_WALK_BLANK;
        }
    }
    return by_bytes(w, ptr, len, ret_taken, err);
}
