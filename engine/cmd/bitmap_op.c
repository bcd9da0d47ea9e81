#include "engine/call.h"
#include "engine/cmd/cmd.h"

/* BITOP: a shorter string is padded with zeros. Redis 8.2 has added the operations after NOT, with
 * x for the first source and y for the others:
 *
 *     DIFF   the bits of x that no y has           ANDOR   those that some y has
 *     DIFF1  the bits of some y that x lacks       ONE     the bits that exactly one source has
 */

enum op { AND, OR, XOR, NOT, DIFF, DIFF1, ANDOR, ONE, OPS };

struct source {
    struct rd_slice text;
    char digits[RD_NUM_I64_MAX];
};

static bool find_op(struct engine_call *call, enum op *ret)
{
    static const char *const words[OPS] = {"AND",  "OR",    "XOR",   "NOT",
                                           "DIFF", "DIFF1", "ANDOR", "ONE"};
    enum op end = engine_call_later_options(call) ? OPS : DIFF;
    for (enum op op = AND; op < end; op++) {
        if (engine_arg_is(call->argv[1], words[op])) {
            *ret = op;
            return true;
        }
    }
    engine_reply_syntax(call);
    return false;
}

/* ---- the operation, on one cache-sized block at a time ---- */

enum { BLOCK = 16 * 1024 };

static void merge(uint8_t *restrict dst, const uint8_t *restrict src, size_t len, enum op op)
{
    if (op == AND)
        for (size_t i = 0; i < len; i++)
            dst[i] &= src[i];
    else if (op == OR)
        for (size_t i = 0; i < len; i++)
            dst[i] |= src[i];
    else
        for (size_t i = 0; i < len; i++)
            dst[i] ^= src[i];
}

/* The bytes of a source at off, at most len. */
static struct rd_slice block_of(const struct source *source, size_t off, size_t len)
{
    struct rd_slice text = source->text;
    if (text.len <= off)
        return rd_slice("", 0);
    return rd_slice(text.ptr + off, text.len - off < len ? text.len - off : len);
}

/* DIFF, DIFF1 and ANDOR: dst is the bits of the y. */
static void compare_block(uint8_t *dst, size_t len, struct rd_slice x, enum op op)
{
    for (size_t i = 0; i < len; i++) {
        unsigned bits = i < x.len ? x.ptr[i] : 0, others = dst[i];
        dst[i] = (uint8_t)(op == DIFF    ? bits & ~others
                           : op == DIFF1 ? ~bits & others
                                         : bits & others);
    }
}

static void fill_compared(uint8_t *dst, size_t off, size_t len, const struct source *sources,
                          size_t n, enum op op)
{
    memset(dst, 0, len);
    for (size_t i = 1; i < n; i++) {
        struct rd_slice block = block_of(&sources[i], off, len);
        merge(dst, block.ptr, block.len, OR);
    }
    compare_block(dst, len, block_of(&sources[0], off, len), op);
}

static void fill_with_one(uint8_t *dst, size_t off, size_t len, const struct source *sources,
                          size_t n)
{
    uint8_t several[BLOCK] = {0}; /* the bits that more than one source has */
    memset(dst, 0, len);
    for (size_t k = 0; k < n; k++) {
        struct rd_slice block = block_of(&sources[k], off, len);
        for (size_t i = 0; i < block.len; i++) {
            several[i] |= dst[i] & block.ptr[i];
            dst[i] |= block.ptr[i];
        }
    }
    for (size_t i = 0; i < len; i++)
        dst[i] &= (uint8_t)~several[i];
}

static void fill_block(uint8_t *dst, size_t off, size_t len, const struct source *sources, size_t n,
                       enum op op)
{
    struct rd_slice block = block_of(&sources[0], off, len);
    memcpy(dst, block.ptr, block.len);
    memset(dst + block.len, 0, len - block.len);
    for (size_t i = 1; i < n; i++) {
        block = block_of(&sources[i], off, len);
        merge(dst, block.ptr, block.len, op);
        if (op == AND)
            memset(dst + block.len, 0, len - block.len);
    }
    for (size_t i = 0; op == NOT && i < len; i++)
        dst[i] = (uint8_t)~dst[i];
}

static struct engine_value combine(const struct source *sources, size_t n, size_t len, enum op op)
{
    struct engine_value v = {.type = ENGINE_STRING, .encoding = ENGINE_RAW, .len = (uint32_t)len};
    v.u.bytes = engine_alloc(len);
    for (size_t off = 0; off < len; off += BLOCK) {
        size_t part = len - off < BLOCK ? len - off : BLOCK;
        if (op == ONE)
            fill_with_one(v.u.bytes + off, off, part, sources, n);
        else if (op >= DIFF)
            fill_compared(v.u.bytes + off, off, part, sources, n, op);
        else
            fill_block(v.u.bytes + off, off, part, sources, n, op);
    }
    return v;
}

/* ---- the command ---- */

static bool find_sources(struct engine_call *call, struct source *sources, size_t n,
                         size_t *ret_longest)
{
    *ret_longest = 0;
    for (size_t i = 0; i < n; i++) {
        struct engine_entry *entry;
        if (!engine_call_read(call, call->argv[i + 3], ENGINE_STRING, &entry))
            return false;
        sources[i].text =
            entry != NULL ? engine_string_text(&entry->value, sources[i].digits) : rd_slice("", 0);
        if (sources[i].text.len > *ret_longest)
            *ret_longest = sources[i].text.len;
    }
    return true;
}

/* Servers count an expired destination as existing here. */
static void delete_target(struct engine_call *call, struct rd_slice key)
{
    struct engine_entry *entry = engine_db_find(call->db, key);
    if (entry == NULL)
        return;
    engine_call_delete(call, entry);
    engine_changed(call, ENGINE_NOTIFY_GENERIC, "del", key, 1);
}

static void run_op(struct engine_call *call, struct source *sources, enum op op)
{
    struct rd_slice target = call->argv[2];
    size_t n = call->argc - 3, len;
    if (!find_sources(call, sources, n, &len))
        return;
    if (len > 0) {
        struct engine_value v = combine(sources, n, len, op);
        engine_call_set(call, target, &v, false);
        engine_changed(call, ENGINE_NOTIFY_STRING, "set", target, 1);
    } else {
        delete_target(call, target);
    }
    engine_reply_int(call->reply, (int64_t)len);
}

void engine_cmd_bitop(struct engine_call *call)
{
    enum op op;
    if (!find_op(call, &op))
        return;
    if (op == NOT && call->argc != 4) {
        engine_reply_error(call->reply, "ERR BITOP NOT must be called with a single source key.");
        return;
    }
    if (op >= DIFF && op <= ANDOR && call->argc < 5) {
        engine_reply_errorf(call->reply,
                            "ERR BITOP %s must be called with at least two source keys.",
                            op == DIFF    ? "DIFF"
                            : op == DIFF1 ? "DIFF1"
                                          : "ANDOR");
        return;
    }
    struct source *sources = engine_scratch_alloc((call->argc - 3) * sizeof *sources);
    run_op(call, sources, op);
    engine_scratch_free(sources);
}
