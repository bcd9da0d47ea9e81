#include "base/resp_frame.h"

static bool add_digit(struct rd_resp_number *number, uint8_t byte)
{
    unsigned digit = byte - (unsigned)'0';
    bool leading_zero = number->n_digits > 0 && number->value == 0;
    if (leading_zero || __builtin_mul_overflow(number->value, 10, &number->value) ||
        __builtin_add_overflow(number->value, (int64_t)digit, &number->value))
        return false;
    number->n_digits++;
    return true;
}

enum rd_resp_scan rd_resp_number_step(struct rd_resp_number *number, uint8_t byte)
{
    if (number->after_cr) {
        if (byte != '\n')
            return RD_RESP_BAD;
        if (number->negative)
            number->value = -number->value;
        return RD_RESP_WHOLE;
    }
    if (byte >= '0' && byte <= '9')
        return add_digit(number, byte) ? RD_RESP_SHORT : RD_RESP_BAD;
    if (byte == '-' && number->has_sign && !number->negative && number->n_digits == 0) {
        number->negative = true;
        return RD_RESP_SHORT;
    }
    number->after_cr = true;
    bool minus_zero = number->negative && number->value == 0;
    return byte == '\r' && number->n_digits > 0 && !minus_zero ? RD_RESP_SHORT : RD_RESP_BAD;
}

enum rd_resp_scan rd_resp_scan_number(struct rd_slice s, size_t pos, bool has_sign, int64_t *ret,
                                      size_t *ret_pos)
{
    struct rd_resp_number number = {.has_sign = has_sign};
    enum rd_resp_scan scan = RD_RESP_SHORT;
    for (; pos < s.len && scan == RD_RESP_SHORT; pos++)
        scan = rd_resp_number_step(&number, s.ptr[pos]);
    *ret_pos = scan == RD_RESP_BAD ? pos - 1 : pos;
    if (scan == RD_RESP_WHOLE)
        *ret = number.value;
    return scan;
}
