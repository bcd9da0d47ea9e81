#include "engine/human.h"

#include "base/num.h"
#include "base/num_locale.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static size_t put_infinite(char *dst, bool negative)
{
    memcpy(dst, negative ? "-inf" : "inf", negative ? 4 : 3);
    return negative ? 4 : 3;
}

size_t engine_human_put(char *dst, long double v)
{
    if (isinf(v))
        return put_infinite(dst, v < 0);
    locale_t before = uselocale(rd_num_locale());
    int n = snprintf(dst, ENGINE_HUMAN_MAX, "%.17Lf", v);
    uselocale(before);
    size_t len = (size_t)n;
    while (dst[len - 1] == '0')
        len--;
    if (dst[len - 1] == '.')
        len--;
    if (len == 2 && dst[0] == '-' && dst[1] == '0') {
        dst[0] = '0';
        len = 1;
    }
    return len;
}

bool engine_human_get(struct rd_slice text, long double *ret)
{
    char copy[ENGINE_HUMAN_MAX], *end;
    if (text.len == 0 || text.len >= sizeof copy)
        return false;
    if (text.ptr[0] == ' ' || (text.ptr[0] >= '\t' && text.ptr[0] <= '\r'))
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    int saved = errno;
    errno = 0;
    long double v = strtold_l(copy, &end, rd_num_locale());
    bool out_of_range = errno == ERANGE && (isinf(v) || fpclassify(v) == FP_ZERO);
    errno = saved;
    if (end != copy + text.len || out_of_range || isnan(v))
        return false;
    *ret = v;
    return true;
}
