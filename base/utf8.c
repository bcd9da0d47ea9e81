#include "base/utf8.h"

bool rd_utf8_is_control(uint32_t point)
{
    return (point >= 0x80 && point < 0xa0) || point == 0xad || point == 0x61c || point == 0x180e ||
           (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2060 && point <= 0x206f) || point == 0xfeff ||
           (point >= 0xfff9 && point <= 0xfffb) || (point >= 0xe0000 && point <= 0xe007f);
}

size_t rd_utf8_shown(const uint8_t *p, size_t avail)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (avail == 0)
        return 0;
    if (p[0] < 0x80)
        return p[0] >= ' ' && p[0] != 0x7f;
    size_t len = p[0] >= 0xf8 ? 0 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc0 ? 2 : 0;
    if (len == 0 || len > avail)
        return 0;
    uint32_t point = p[0] & (0x7fU >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (p[i] & 0x3fU);
    }
    bool valid = point >= least[len] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
    return valid && !rd_utf8_is_control(point) ? len : 0;
}
