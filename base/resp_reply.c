/* resp_reply.c - the reader of replies.
 *
 * A node is parsed again from its type byte until it is complete; only the search for the end of a
 * line continues where it stopped. `owed` has the number of nodes that each open aggregate still
 * needs; level 0 needs the reply itself. An attribute opens a level but is not counted as a node of
 * the level around it: only the value that it describes is.
 */
#include "base/mem.h"
#include "base/num.h"
#include "base/resp_input.h"

#include <strings.h>

struct rd_resp_reply {
    struct resp_input in;
    unsigned max_depth;
    unsigned depth;
    bool inside; /* a node of the reply was returned, and it was not the last */
    uint64_t owed[RESP_DEPTH_MAX + 1];
};

bool rd_resp_reply_new(struct rd_resp_reply **ret, struct rd_src *src, unsigned max_depth,
                       const struct rd_resp_opts *opts, struct rd_err *err)
{
    if (max_depth > RESP_DEPTH_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "replies are at most %d deep",
                          RESP_DEPTH_MAX);
    struct rd_resp_reply *r = rd_calloc(1, sizeof *r);
    if (r == NULL)
        return rd_err_nomem(err, sizeof *r);
    if (!rd_resp_input_init(&r->in, src, opts, err)) {
        rd_free(r);
        return false;
    }
    r->max_depth = max_depth != 0 ? max_depth : RESP_DEPTH;
    r->owed[0] = 1;
    *ret = r;
    return true;
}

void rd_resp_reply_free(struct rd_resp_reply *r)
{
    if (r == NULL)
        return;
    rd_resp_input_done(&r->in);
    rd_free(r);
}

const struct rd_err *rd_resp_reply_err(const struct rd_resp_reply *r)
{
    return &r->in.err;
}

static enum resp_status bad(struct rd_resp_reply *r, size_t pos, const char *text)
{
    return rd_resp_input_fail(&r->in, RD_ERR_CORRUPT, pos, text);
}

/* The text between the type byte and CRLF. */
static enum resp_status read_line(struct rd_resp_reply *r, struct rd_slice *ret, size_t *ret_len)
{
    size_t lf;
    struct rd_slice s;
    enum resp_status status = rd_resp_input_line(&r->in, 1, "line is too long", &lf);
    if (status != RESP_NODE)
        return status;
    if (rd_resp_input_view(&r->in, lf + 1, &s) != RD_SRC_OK)
        return RESP_FAIL;
    if (lf < 2 || s.ptr[lf - 1] != '\r')
        return bad(r, lf, "line end without CR");
    const uint8_t *cr = memchr(s.ptr + 1, '\r', lf - 1);
    if (cr != s.ptr + lf - 1)
        return bad(r, (size_t)(cr - s.ptr) + 1, "CR inside a line");
    *ret = rd_slice(s.ptr + 1, lf - 2);
    *ret_len = lf + 1;
    return RESP_NODE;
}

/* A length, that many bytes, and CRLF; or -1, which is null in RESP2. */
static enum resp_status read_bulk(struct rd_resp_reply *r, struct resp_node *node, size_t *ret_len)
{
    int64_t len = 0;
    size_t pos;
    struct rd_slice s;
    enum resp_status status = rd_resp_input_number(&r->in, 1, "bad length of a string", &len, &pos);
    if (status != RESP_NODE)
        return status;
    node->null = len == -1 && node->type == RESP_BULK;
    *ret_len = pos;
    if (node->null)
        return RESP_NODE;
    if (len < 0)
        return bad(r, 1, "bad length of a string");
    if ((uint64_t)len > r->in.opts.max_bulk)
        return rd_resp_input_fail(&r->in, RD_ERR_LIMIT, 1, "string is too long");
    size_t end = pos + (size_t)len;
    enum rd_src_status there = rd_resp_input_view(&r->in, end + 2, &s);
    if (s.len > end && s.ptr[end] != '\r')
        return bad(r, end, "no CRLF after a string");
    if (there != RD_SRC_OK)
        return rd_resp_input_short(&r->in, there, s.len);
    if (s.ptr[end + 1] != '\n')
        return bad(r, end + 1, "no CRLF after a string");
    node->text = rd_slice(s.ptr + pos, (size_t)len);
    *ret_len = end + 2;
    return RESP_NODE;
}

static enum resp_status read_verbatim(struct rd_resp_reply *r, struct resp_node *node,
                                      size_t *ret_len)
{
    enum resp_status status = read_bulk(r, node, ret_len);
    if (status != RESP_NODE)
        return status;
    if (node->text.len < 4 || node->text.ptr[3] != ':')
        return bad(r, 1, "verbatim string without its format");
    memcpy(node->format, node->text.ptr, 3);
    node->text = rd_slice(node->text.ptr + 4, node->text.len - 4);
    return RESP_NODE;
}

static enum resp_status read_count(struct rd_resp_reply *r, struct resp_node *node, size_t *ret_len)
{
    int64_t n = 0;
    bool pairs = node->type == RESP_MAP || node->type == RESP_ATTRIBUTE;
    enum resp_status status = rd_resp_input_number(&r->in, 1, "bad count of elements", &n, ret_len);
    if (status != RESP_NODE)
        return status;
    node->null = n == -1 && node->type == RESP_ARRAY;
    if (node->null)
        return RESP_NODE;
    if (n < 0 || (pairs && n > INT64_MAX / 2))
        return bad(r, 1, "bad count of elements");
    node->n_children = (uint64_t)n * (pairs ? 2 : 1);
    return RESP_NODE;
}

/* An integer of any size: digits after an optional sign. */
static bool is_big(struct rd_slice text)
{
    size_t i = text.len > 0 && (text.ptr[0] == '-' || text.ptr[0] == '+') ? 1 : 0;
    if (i == text.len)
        return false;
    while (i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9')
        i++;
    return i == text.len;
}

static bool get_integer(struct rd_slice text, int64_t *ret)
{
    if (text.len > 1 && text.ptr[0] == '+' && text.ptr[1] != '-')
        text = rd_slice(text.ptr + 1, text.len - 1);
    return rd_num_get_i64(text, ret);
}

/* Types whose value is one line. */
static enum resp_status read_scalar(struct rd_resp_reply *r, struct resp_node *node,
                                    size_t *ret_len)
{
    enum resp_status status = read_line(r, &node->text, ret_len);
    if (status != RESP_NODE)
        return status;
    if (node->type == RESP_INTEGER && !get_integer(node->text, &node->integer))
        return bad(r, 1, "bad integer");
    if (node->type == RESP_DOUBLE && !rd_num_get_f64(node->text, &node->number))
        return bad(r, 1, "bad double");
    if (node->type == RESP_BIG && !is_big(node->text))
        return bad(r, 1, "bad big number");
    if (node->type == RESP_NULL && node->text.len != 0)
        return bad(r, 1, "null with a value");
    if (node->type == RESP_BOOL) {
        node->integer = rd_slice_is(node->text, "t");
        if (!node->integer && !rd_slice_is(node->text, "f"))
            return bad(r, 1, "bad boolean");
    }
    node->null = node->type == RESP_NULL;
    return RESP_NODE;
}

/* "$?" and the like, which announce streamed types. The second byte must be available. */
static enum resp_status refuse_streamed(struct rd_resp_reply *r)
{
    struct rd_slice s;
    enum rd_src_status status = rd_resp_input_view(&r->in, 2, &s);
    if (status != RD_SRC_OK)
        return rd_resp_input_short(&r->in, status, s.len);
    if (s.ptr[1] == '?')
        return rd_resp_input_fail(&r->in, RD_ERR_UNSUPPORTED, 1, "value of unknown length");
    return RESP_NODE;
}

static enum resp_status read_sized(struct rd_resp_reply *r, struct resp_node *node, size_t *ret_len)
{
    enum resp_status status = refuse_streamed(r);
    if (status != RESP_NODE)
        return status;
    if (node->type == RESP_VERBATIM)
        return read_verbatim(r, node, ret_len);
    if (node->type == RESP_BULK || node->type == RESP_BULK_ERROR)
        return read_bulk(r, node, ret_len);
    return read_count(r, node, ret_len);
}

static enum resp_status read_node(struct rd_resp_reply *r, uint8_t type, struct resp_node *node,
                                  size_t *ret_len)
{
    *node = (struct resp_node){.type = (enum resp_type)type};
    switch (type) {
    case RESP_SIMPLE:
    case RESP_ERROR:
    case RESP_INTEGER:
    case RESP_NULL:
    case RESP_BOOL:
    case RESP_DOUBLE:
    case RESP_BIG:
        return read_scalar(r, node, ret_len);
    case RESP_BULK:
    case RESP_BULK_ERROR:
    case RESP_VERBATIM:
    case RESP_ARRAY:
    case RESP_MAP:
    case RESP_SET:
    case RESP_PUSH:
    case RESP_ATTRIBUTE:
        return read_sized(r, node, ret_len);
    default:
        return bad(r, 0, "unknown type of reply");
    }
}

/* Counts the node, and closes the aggregates that it completes. */
static enum resp_status account(struct rd_resp_reply *r, struct resp_node *node)
{
    node->depth = r->depth;
    if (node->n_children > 0 && r->depth == r->max_depth)
        return rd_resp_input_fail(&r->in, RD_ERR_LIMIT, 0, "reply is nested too deeply");
    if (node->type != RESP_ATTRIBUTE)
        r->owed[r->depth]--;
    if (node->n_children > 0)
        r->owed[++r->depth] = node->n_children;
    while (r->depth > 0 && r->owed[r->depth] == 0)
        r->depth--;
    node->last = r->owed[0] == 0 && r->depth == 0;
    r->inside = !node->last;
    if (node->last)
        r->owed[0] = 1;
    return RESP_NODE;
}

enum resp_status rd_resp_reply_next(struct rd_resp_reply *r, struct resp_node *ret)
{
    struct rd_slice s;
    struct resp_node node;
    size_t len = 0;
    if (r->in.failed)
        return RESP_FAIL;
    if (!r->in.resumed)
        rd_resp_input_begin(&r->in);
    r->in.resumed = true;
    enum rd_src_status there = rd_resp_input_view(&r->in, 1, &s);
    if (there == RD_SRC_END && !r->inside)
        return RESP_END;
    if (there != RD_SRC_OK)
        return rd_resp_input_short(&r->in, there, s.len);
    enum resp_status status = read_node(r, s.ptr[0], &node, &len);
    if (status != RESP_NODE)
        return status;
    status = account(r, &node);
    if (status != RESP_NODE)
        return status;
    rd_resp_input_end(&r->in, len);
    r->in.resumed = false;
    node.offset = r->in.start;
    *ret = node;
    return RESP_NODE;
}

unsigned rd_resp_error_reason(struct rd_slice text)
{
    static const struct {
        const char *words;
        unsigned reason;
    } reasons[] = {
#define X(name, number, words) {words, number},
        RESP_REASONS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        size_t len = strlen(reasons[i].words);
        if (text.len >= len && strncasecmp((const char *)text.ptr, reasons[i].words, len) == 0)
            return reasons[i].reason;
    }
    return 0;
}
