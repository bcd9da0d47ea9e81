#include "engine/cmd/bitmap_impl.h"

#include "engine/cmd/cmd.h"
#include "engine/cmd/string_impl.h"

/* ---- operations ---- */

enum op_kind { GET, SET, INCRBY };
enum overflow { WRAP, SAT, FAIL };

struct op {
    enum op_kind kind;
    enum overflow overflow;
    bool is_signed;
    unsigned width; /* bits */
    uint64_t offset;
    int64_t num;
};

struct plan {
    struct op *ops;
    size_t n;
    bool writes;
    uint64_t last_bit; /* the integer to be written */
};

static bool parse_overflow(struct engine_call *call, struct rd_slice arg, enum overflow *ret)
{
    static const char *const words[] = {"WRAP", "SAT", "FAIL"};
    for (enum overflow o = WRAP; o <= FAIL; o++) {
        if (engine_arg_is(arg, words[o])) {
            *ret = o;
            return true;
        }
    }
    engine_reply_error(call->reply, "ERR Invalid OVERFLOW type specified");
    return false;
}

/* i1 to i64, u1 to u63. Anything after a zero byte is ignored. */
static bool parse_type(struct engine_call *call, struct rd_slice arg, struct op *op)
{
    const uint8_t *zero = arg.len > 0 ? memchr(arg.ptr, '\0', arg.len) : NULL;
    int64_t width;
    if (zero != NULL)
        arg.len = (size_t)(zero - arg.ptr);
    op->is_signed = arg.len > 0 && arg.ptr[0] == 'i';
    if (arg.len < 2 || (!op->is_signed && arg.ptr[0] != 'u') ||
        !rd_num_get_i64(rd_slice(arg.ptr + 1, arg.len - 1), &width) || width < 1 ||
        width > (op->is_signed ? 64 : 63)) {
        engine_reply_error(call->reply, "ERR Invalid bitfield type. Use something like i16 u8. "
                                        "Note that u64 is not supported but i64 is.");
        return false;
    }
    op->width = (unsigned)width;
    return true;
}

/* argv[i] is the first word of an operation that takes n_args more arguments. */
static bool find_kind(struct engine_call *call, size_t i, enum op_kind *ret, size_t *ret_n_args)
{
    static const char *const words[] = {"GET", "SET", "INCRBY"};
    for (enum op_kind kind = GET; kind <= INCRBY; kind++) {
        *ret = kind;
        *ret_n_args = kind == GET ? 2 : 3;
        if (engine_arg_is(call->argv[i], words[kind]) && call->argc - i > *ret_n_args)
            return true;
    }
    engine_reply_syntax(call);
    return false;
}

static bool parse_op(struct engine_call *call, size_t i, struct plan *plan, struct op *op)
{
    if (!parse_type(call, call->argv[i + 1], op) ||
        !engine_bitmap_offset(call, call->argv[i + 2], op->width, &op->offset))
        return false;
    if (op->kind == GET)
        return true;
    plan->writes = true;
    if (op->offset + op->width - 1 > plan->last_bit)
        plan->last_bit = op->offset + op->width - 1;
    return engine_arg_i64(call, call->argv[i + 3], &op->num, NULL);
}

static bool parse_plan(struct engine_call *call, struct plan *plan)
{
    enum overflow overflow = WRAP;
    for (size_t i = 2; i < call->argc; i++) {
        size_t n_args = 1;
        if (engine_arg_is(call->argv[i], "OVERFLOW") && i + 1 < call->argc) {
            if (!parse_overflow(call, call->argv[i + 1], &overflow))
                return false;
        } else {
            struct op *op = &plan->ops[plan->n++];
            *op = (struct op){.overflow = overflow};
            if (!find_kind(call, i, &op->kind, &n_args) || !parse_op(call, i, plan, op))
                return false;
        }
        i += n_args;
    }
    return true;
}

/* ---- integers in a run of bits ---- */

/* Copies the nine bytes that contain the integer at this bit. Bytes after the end are zero. */
static __uint128_t get_window(struct rd_slice text, uint64_t offset)
{
    __uint128_t window = 0;
    for (uint64_t i = offset >> 3; i < (offset >> 3) + 9; i++)
        window = window << 8 | (i < text.len ? text.ptr[i] : 0);
    return window;
}

/* Bits of a window after the integer. */
static unsigned window_rest(const struct op *op)
{
    return 72 - (unsigned)(op->offset & 7) - op->width;
}

static uint64_t low_bits(unsigned width)
{
    return UINT64_MAX >> (64 - width);
}

static uint64_t get_bits(struct rd_slice text, const struct op *op)
{
    return (uint64_t)(get_window(text, op->offset) >> window_rest(op)) & low_bits(op->width);
}

/* Writes only the bytes that the integer touches, because the string may end after them. */
static void put_bits(struct engine_value *v, const struct op *op, uint64_t num)
{
    __uint128_t window = get_window(rd_slice(v->u.bytes, v->len), op->offset);
    __uint128_t mask = (__uint128_t)low_bits(op->width) << window_rest(op);
    window = (window & ~mask) | ((__uint128_t)num << window_rest(op) & mask);
    uint64_t last = (op->offset + op->width - 1) >> 3;
    for (uint64_t i = op->offset >> 3; i <= last; i++) {
        v->u.bytes[i] = (uint8_t)(window >> 64);
        window <<= 8;
    }
}

/* Interprets `width` bits as an integer. */
static int64_t as_int(const struct op *op, uint64_t bits)
{
    if (!op->is_signed || op->width == 64)
        return (int64_t)bits;
    uint64_t sign = (uint64_t)1 << (op->width - 1);
    return (int64_t)((bits ^ sign) - sign);
}

/* Applies the overflow rule to a sum. False: the sum is out of range and the rule is FAIL. */
static bool fit(const struct op *op, __int128_t sum, int64_t *ret)
{
    __int128_t one = 1;
    __int128_t min = op->is_signed ? -(one << (op->width - 1)) : 0;
    __int128_t max = (one << (op->is_signed ? op->width - 1 : op->width)) - 1;
    if (sum >= min && sum <= max) {
        *ret = (int64_t)sum;
        return true;
    }
    /* In servers, a SET value far below the range counts as above it, because a difference
     * overflows. */
    bool is_above = sum > max || (op->kind == SET && max - sum > INT64_MAX);
    if (op->overflow == SAT)
        *ret = (int64_t)(is_above ? max : min);
    else
        *ret = as_int(op, (uint64_t)sum & low_bits(op->width));
    return op->overflow != FAIL;
}

/* ---- execution ---- */

/* Whether the value changed. */
static bool run_write(struct engine_call *call, const struct op *op, struct engine_value *v,
                      bool grown)
{
    int64_t now, before = as_int(op, get_bits(rd_slice(v->u.bytes, v->len), op));
    /* The value of SET for an unsigned integer is a number of 64 bits. */
    __int128_t sum = op->kind == INCRBY ? (__int128_t)before + op->num
                     : op->is_signed    ? (__int128_t)op->num
                                        : (__int128_t)(uint64_t)op->num;
    if (!fit(op, sum, &now)) {
        engine_reply_null(call->reply);
        return false;
    }
    engine_reply_int(call->reply, op->kind == INCRBY ? now : before);
    put_bits(v, op, (uint64_t)now);
    return grown || now != before;
}

static void run_read(struct engine_call *call, const struct op *op, const struct engine_value *v)
{
    char digits[RD_NUM_I64_MAX];
    struct rd_slice text = v != NULL ? engine_string_text(v, digits) : rd_slice("", 0);
    engine_reply_int(call->reply, as_int(op, get_bits(text, op)));
}

static void run_plan(struct engine_call *call, const struct plan *plan)
{
    struct engine_entry *entry;
    bool grown = false;
    uint64_t n_changes = 0;
    if (!(plan->writes ? engine_call_write(call, call->argv[1], ENGINE_STRING, &entry)
                       : engine_call_read(call, call->argv[1], ENGINE_STRING, &entry)))
        return;
    struct engine_value *v = entry != NULL ? &entry->value : NULL;
    if (plan->writes)
        v = engine_string_stretch(call, entry, call->argv[1], (size_t)(plan->last_bit >> 3) + 1,
                                  &grown);
    engine_reply_array(call->reply, plan->n);
    for (size_t i = 0; i < plan->n; i++) {
        const struct op *op = &plan->ops[i];
        if (op->kind == GET)
            run_read(call, op, v);
        else
            n_changes += run_write(call, op, v, grown);
    }
    if (n_changes > 0)
        engine_changed(call, ENGINE_NOTIFY_STRING, "setbit", call->argv[1], n_changes);
    else if (grown)
        engine_touch(call, call->argv[1], 1);
}

static void run_bitfield(struct engine_call *call, bool read_only)
{
    struct plan plan = {.ops = engine_scratch_alloc(call->argc * sizeof *plan.ops)};
    if (parse_plan(call, &plan)) {
        if (read_only && plan.writes)
            engine_reply_error(call->reply, "ERR BITFIELD_RO only supports the GET subcommand");
        else
            run_plan(call, &plan);
    }
    engine_scratch_free(plan.ops);
}

void engine_cmd_bitfield(struct engine_call *call)
{
    run_bitfield(call, false);
}

void engine_cmd_bitfield_ro(struct engine_call *call)
{
    run_bitfield(call, true);
}
