#include "engine/call.h"
#include "engine/cmd/cmd.h"

#include "base/mem.h"

/* The longest common subsequence of a and b, with a table of the lengths L(i, j) for the first i
 * and j bytes. Only two rows are kept; one bit per cell, whether L(i - 1, j) was the larger of the
 * two candidates, is enough to trace the path back. */
struct lcs {
    struct rd_slice a;
    struct rd_slice b;
    uint32_t *row;    /* L(i, 0 … b.len), then the previous row */
    uint64_t *ups;    /* NULL: the path is not requested */
    size_t row_words; /* of ups, for one row */
    uint32_t len;     /* L(a.len, b.len) */
};

struct options {
    bool len;
    bool idx;
    bool with_match_len;
    int64_t min_match_len;
};

static bool parse_options(struct engine_call *call, struct options *ret)
{
    *ret = (struct options){0};
    for (size_t i = 3; i < call->argc; i++) {
        if (engine_arg_is(call->argv[i], "IDX")) {
            ret->idx = true;
        } else if (engine_arg_is(call->argv[i], "LEN")) {
            ret->len = true;
        } else if (engine_arg_is(call->argv[i], "WITHMATCHLEN")) {
            ret->with_match_len = true;
        } else if (engine_arg_is(call->argv[i], "MINMATCHLEN") && i + 1 < call->argc) {
            if (!engine_arg_i64(call, call->argv[++i], &ret->min_match_len, NULL))
                return false;
        } else {
            engine_reply_syntax(call);
            return false;
        }
    }
    if (!ret->idx || !ret->len)
        return true;
    engine_reply_error(call->reply,
                       "ERR If you want both the length and indexes, please just use IDX.");
    return false;
}

/* A server keeps the whole table in memory, four bytes per cell, and limits its size. */
static bool table_allowed(struct engine_call *call, struct rd_slice a, struct rd_slice b)
{
    if (a.len >= UINT32_MAX - 1 || b.len >= UINT32_MAX - 1) {
        engine_reply_error(call->reply, "ERR String too long for LCS");
        return false;
    }
    uint64_t fields;
    if (__builtin_mul_overflow((uint64_t)a.len + 1, (uint64_t)b.len + 1, &fields) ||
        fields > UINT64_MAX / 4 || fields * 4 > call->config->proto_max_bulk_len) {
        engine_reply_error(call->reply, "ERR Insufficient memory, transient memory for LCS exceeds "
                                        "proto-max-bulk-len");
        return false;
    }
    return true;
}

static void lcs_done(struct lcs *lcs)
{
    rd_free(lcs->row);
    rd_free(lcs->ups);
}

static bool lcs_init(struct engine_call *call, struct lcs *lcs, bool with_way)
{
    lcs->row_words = (lcs->b.len + 63) / 64;
    lcs->row = rd_calloc(2 * (lcs->b.len + 1), sizeof *lcs->row);
    if (with_way)
        lcs->ups = rd_calloc(lcs->a.len * lcs->row_words + 1, sizeof *lcs->ups);
    if (lcs->row != NULL && (lcs->ups != NULL || !with_way))
        return true;
    lcs_done(lcs);
    engine_reply_error(call->reply,
                       "ERR Insufficient memory, failed allocating transient memory for LCS");
    return false;
}

static void fill_row(const struct lcs *lcs, uint8_t byte, const uint32_t *before, uint32_t *row,
                     uint64_t *ups)
{
    const uint8_t *b = lcs->b.ptr;
    row[0] = 0;
    for (size_t j = 0; j < lcs->b.len; j++) {
        bool is_up = before[j + 1] > row[j];
        uint32_t larger = is_up ? before[j + 1] : row[j];
        row[j + 1] = b[j] == byte ? before[j] + 1 : larger;
        if (ups != NULL)
            ups[j / 64] |= (uint64_t)is_up << (j % 64);
    }
}

static void lcs_fill(struct lcs *lcs)
{
    uint32_t *row = lcs->row, *before = lcs->row + lcs->b.len + 1;
    for (size_t i = 0; i < lcs->a.len; i++) {
        uint32_t *swap = before;
        before = row;
        row = swap;
        uint64_t *ups = lcs->ups != NULL ? lcs->ups + i * lcs->row_words : NULL;
        fill_row(lcs, lcs->a.ptr[i], before, row, ups);
    }
    lcs->len = row[lcs->b.len];
}

/* Traces the path from the ends until one of the strings begins. Calls `run` with the position and
 * length of each matching run; returns the number of runs. */
typedef bool (*run_fn)(void *ctx, size_t i, size_t j, size_t len);

static uint64_t lcs_walk(const struct lcs *lcs, run_fn run, void *ctx)
{
    size_t i = lcs->a.len, j = lcs->b.len, len = 0;
    uint64_t n = 0;
    while (i > 0 && j > 0) {
        bool is_match = lcs->a.ptr[i - 1] == lcs->b.ptr[j - 1];
        if (!is_match && len > 0) {
            n += run(ctx, i, j, len);
            len = 0;
        }
        const uint64_t *ups = lcs->ups + (i - 1) * lcs->row_words;
        bool is_up = (ups[(j - 1) / 64] >> ((j - 1) % 64) & 1) != 0;
        i -= is_match || is_up;
        j -= is_match || !is_up;
        len += is_match;
    }
    return len > 0 ? n + run(ctx, i, j, len) : n;
}

struct text {
    const struct lcs *lcs;
    uint8_t *end; /* a run grows from its end to its start */
};

static bool take_text(void *ctx, size_t i, size_t j, size_t len)
{
    struct text *text = ctx;
    (void)j;
    text->end -= len;
    memcpy(text->end, text->lcs->a.ptr + i, len);
    return true;
}

static void reply_text(struct engine_call *call, const struct lcs *lcs)
{
    uint8_t *bytes = engine_scratch_alloc((size_t)lcs->len + 1);
    struct text text = {.lcs = lcs, .end = bytes + lcs->len};
    lcs_walk(lcs, take_text, &text);
    engine_reply_bulk(call->reply, rd_slice(bytes, lcs->len));
    engine_scratch_free(bytes);
}

struct ranges {
    struct engine_call *call;
    const struct options *options;
};

static void reply_range(struct engine_reply *reply, size_t start, size_t len)
{
    engine_reply_array(reply, 2);
    engine_reply_int(reply, (int64_t)start);
    engine_reply_int(reply, (int64_t)(start + len) - 1);
}

static bool take_range(void *ctx, size_t i, size_t j, size_t len)
{
    const struct ranges *ranges = ctx;
    struct engine_reply *reply = ranges->call->reply;
    if ((int64_t)len < ranges->options->min_match_len)
        return false;
    engine_reply_array(reply, ranges->options->with_match_len ? 3 : 2);
    reply_range(reply, i, len);
    reply_range(reply, j, len);
    if (ranges->options->with_match_len)
        engine_reply_int(reply, (int64_t)len);
    return true;
}

static void reply_ranges(struct engine_call *call, const struct lcs *lcs,
                         const struct options *options)
{
    struct ranges ranges = {.call = call, .options = options};
    engine_reply_map(call->reply, 2);
    engine_reply_str(call->reply, "matches");
    size_t mark = engine_reply_mark(call->reply);
    engine_reply_mark_array(call->reply, mark, lcs_walk(lcs, take_range, &ranges));
    engine_reply_str(call->reply, "len");
    engine_reply_int(call->reply, lcs->len);
}

static void run_lcs(struct engine_call *call, struct rd_slice a, struct rd_slice b)
{
    struct options options;
    struct lcs lcs = {.a = a, .b = b};
    if (!parse_options(call, &options) || !table_allowed(call, a, b) ||
        !lcs_init(call, &lcs, !options.len))
        return;
    lcs_fill(&lcs);
    if (options.len)
        engine_reply_int(call->reply, lcs.len);
    else if (options.idx)
        reply_ranges(call, &lcs, &options);
    else
        reply_text(call, &lcs);
    lcs_done(&lcs);
}

static struct rd_slice text_of(const struct engine_entry *entry, char tmp[RD_NUM_I64_MAX])
{
    return entry != NULL ? engine_string_text(&entry->value, tmp) : rd_slice("", 0);
}

void engine_cmd_lcs(struct engine_call *call)
{
    char digits[2][RD_NUM_I64_MAX];
    const struct engine_entry *a = engine_call_find_read(call, call->argv[1]);
    const struct engine_entry *b = engine_call_find_read(call, call->argv[2]);
    if ((a != NULL && a->value.type != ENGINE_STRING) ||
        (b != NULL && b->value.type != ENGINE_STRING))
        engine_reply_error(call->reply, "ERR The specified keys must contain string values");
    else
        run_lcs(call, text_of(a, digits[0]), text_of(b, digits[1]));
}
