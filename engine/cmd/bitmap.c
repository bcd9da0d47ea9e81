#include "engine/cmd/bitmap_impl.h"

#include "engine/cmd/cmd.h"
#include "engine/cmd/string_impl.h"

bool engine_bitmap_offset(struct engine_call *call, struct rd_slice arg, unsigned width,
                          uint64_t *ret)
{
    bool in_widths = width > 0 && arg.len > 0 && arg.ptr[0] == '#';
    int64_t offset;
    bool is_number = rd_num_get_i64(in_widths ? rd_slice(arg.ptr + 1, arg.len - 1) : arg, &offset);
    /* Servers let the product overflow and accept the result if it is in range. */
    if (is_number && in_widths)
        offset = (int64_t)((uint64_t)offset * width);
    if (!is_number || offset < 0 || (uint64_t)offset >> 3 >= engine_string_limit(call)) {
        engine_reply_error(call->reply, "ERR bit offset is not an integer or out of range");
        return false;
    }
    *ret = (uint64_t)offset;
    return true;
}

/* ---- one bit ---- */

static unsigned bit_at(const uint8_t *bytes, uint64_t offset)
{
    return bytes[offset >> 3] >> (7 - (offset & 7)) & 1;
}

static bool get_bit_arg(struct engine_call *call, struct rd_slice arg, unsigned *ret)
{
    int64_t value;
    static const char error[] = "bit is not an integer or out of range";
    if (!engine_arg_range(call, arg, 0, 1, &value, error))
        return false;
    *ret = (unsigned)value;
    return true;
}

void engine_cmd_setbit(struct engine_call *call)
{
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry;
    uint64_t offset;
    unsigned bit;
    bool grown;
    if (!engine_bitmap_offset(call, call->argv[2], 0, &offset) ||
        !get_bit_arg(call, call->argv[3], &bit) ||
        !engine_call_write(call, key, ENGINE_STRING, &entry))
        return;
    struct engine_value *v =
        engine_string_stretch(call, entry, key, (size_t)(offset >> 3) + 1, &grown);
    unsigned before = bit_at(v->u.bytes, offset);
    if (grown || before != bit) {
        v->u.bytes[offset >> 3] ^= (uint8_t)((before ^ bit) << (7 - (offset & 7)));
        engine_changed(call, ENGINE_NOTIFY_STRING, "setbit", key, 1);
    }
    engine_reply_int(call->reply, before);
}

void engine_cmd_getbit(struct engine_call *call)
{
    struct engine_entry *entry;
    uint64_t offset;
    char digits[RD_NUM_I64_MAX];
    if (!engine_bitmap_offset(call, call->argv[2], 0, &offset) ||
        !engine_call_read(call, call->argv[1], ENGINE_STRING, &entry))
        return;
    struct rd_slice text =
        entry != NULL ? engine_string_text(&entry->value, digits) : rd_slice("", 0);
    engine_reply_int(call->reply, offset >> 3 < text.len ? bit_at(text.ptr, offset) : 0);
}

/* ---- ranges ---- */

/* The range from `first` to `last` in bits, both inclusive. */
struct range {
    int64_t first;
    int64_t last;
    bool is_empty;
};

/* BYTE or BIT; BYTE is the default. */
static bool get_unit(struct engine_call *call, size_t index, bool *ret_bits)
{
    *ret_bits = false;
    if (call->argc <= index)
        return true;
    *ret_bits = engine_arg_is(call->argv[index], "BIT");
    if (*ret_bits || engine_arg_is(call->argv[index], "BYTE"))
        return true;
    engine_reply_syntax(call);
    return false;
}

static int64_t from_end(int64_t index, int64_t len)
{
    if (index < 0)
        index += len;
    return index < 0 ? 0 : index;
}

static struct range make_range(int64_t start, int64_t end, size_t len, bool in_bits)
{
    int64_t n = (int64_t)len * (in_bits ? 8 : 1);
    start = from_end(start, n);
    end = from_end(end, n);
    if (end >= n)
        end = n - 1;
    if (start > end)
        return (struct range){.is_empty = true};
    return in_bits ? (struct range){.first = start, .last = end}
                   : (struct range){.first = start * 8, .last = end * 8 + 7};
}

/* The byte at an index, with the bits outside the range cleared. */
static uint8_t masked(unsigned byte, int64_t index, struct range range)
{
    if (index == range.first >> 3)
        byte &= 0xffU >> (range.first & 7);
    if (index == range.last >> 3)
        byte &= 0xff00U >> ((range.last & 7) + 1);
    return (uint8_t)byte;
}

/* ---- BITCOUNT ---- */

static uint64_t count_range(const uint8_t *bytes, struct range range)
{
    if (range.is_empty)
        return 0;
    int64_t first = range.first >> 3, last = range.last >> 3;
    uint64_t n = (uint64_t)__builtin_popcount(masked(bytes[first], first, range));
    if (last > first)
        n += (uint64_t)__builtin_popcount(masked(bytes[last], last, range));
    if (last > first + 1)
        n += engine_bitmap_count(bytes + first + 1, (size_t)(last - first) - 1);
    return n;
}

static bool count_range_args(struct engine_call *call, size_t len, struct range *ret)
{
    int64_t start = 0, end = -1;
    bool in_bits = false;
    if (call->argc != 2 && call->argc != 4 && call->argc != 5) {
        engine_reply_syntax(call);
        return false;
    }
    if (call->argc > 2 && (!engine_arg_i64(call, call->argv[2], &start, NULL) ||
                           !engine_arg_i64(call, call->argv[3], &end, NULL)))
        return false;
    /* Like servers, parses the unit only if the range can be non-empty. */
    bool is_reversed = start < 0 && end < 0 && start > end;
    if (!is_reversed && !get_unit(call, 4, &in_bits))
        return false;
    *ret = is_reversed ? (struct range){.is_empty = true} : make_range(start, end, len, in_bits);
    return true;
}

void engine_cmd_bitcount(struct engine_call *call)
{
    struct engine_entry *entry;
    struct range range;
    char digits[RD_NUM_I64_MAX];
    if (!engine_call_read(call, call->argv[1], ENGINE_STRING, &entry))
        return;
    if (entry == NULL) {
        engine_reply_int(call->reply, 0);
        return;
    }
    struct rd_slice text = engine_string_text(&entry->value, digits);
    if (count_range_args(call, text.len, &range))
        engine_reply_int(call->reply, (int64_t)count_range(text.ptr, range));
}

/* ---- BITPOS ---- */

/* The first bit of the range that equals `bit`, or -1. Searches for zeros as ones of the
 * complement. */
static int64_t find_bit(const uint8_t *bytes, struct range range, unsigned bit)
{
    int64_t last = range.last >> 3;
    uint8_t other = bit == 1 ? 0 : 0xff;
    for (int64_t i = range.first >> 3; i <= last; i++) {
        uint8_t byte = masked(bytes[i] ^ other, i, range);
        if (byte != 0)
            return i * 8 + __builtin_clz((unsigned)byte << 24);
        if (i + 1 < last)
            i += (int64_t)engine_bitmap_skip(bytes + i + 1, (size_t)(last - i - 1), other);
    }
    return -1;
}

static bool position_range_args(struct engine_call *call, size_t len, struct range *ret)
{
    int64_t start = 0, end = -1;
    bool in_bits;
    if (call->argc > 6) {
        engine_reply_syntax(call);
        return false;
    }
    if (call->argc > 3 && !engine_arg_i64(call, call->argv[3], &start, NULL))
        return false;
    if (!get_unit(call, 5, &in_bits))
        return false;
    if (call->argc > 4 && !engine_arg_i64(call, call->argv[4], &end, NULL))
        return false;
    *ret = make_range(start, end, len, in_bits);
    return true;
}

/* Without a given end, the string is treated as if infinitely many zeros followed it. */
static int64_t position(struct rd_slice text, struct range range, unsigned bit, bool end_given)
{
    if (range.is_empty)
        return -1;
    int64_t found = find_bit(text.ptr, range, bit);
    return found < 0 && bit == 0 && !end_given ? (int64_t)text.len * 8 : found;
}

void engine_cmd_bitpos(struct engine_call *call)
{
    int64_t bit;
    struct engine_entry *entry;
    struct range range;
    char digits[RD_NUM_I64_MAX];
    if (!engine_arg_i64(call, call->argv[2], &bit, NULL))
        return;
    if (bit != 0 && bit != 1) {
        engine_reply_error(call->reply, "ERR The bit argument must be 1 or 0.");
        return;
    }
    if (!engine_call_read(call, call->argv[1], ENGINE_STRING, &entry))
        return;
    if (entry == NULL) {
        engine_reply_int(call->reply, bit == 1 ? -1 : 0);
        return;
    }
    struct rd_slice text = engine_string_text(&entry->value, digits);
    if (position_range_args(call, text.len, &range))
        engine_reply_int(call->reply, position(text, range, (unsigned)bit, call->argc > 4));
}
