#include "engine/value/zip.h"

enum { ZIPLIST_HEAD = 10, ZIPMAP_HEAD = 1, END = 0xff, LONG = 0xfe };

void engine_zip_begin(struct engine_zip *zip, enum rdb_codec codec, struct rd_slice blob)
{
    bool is_map = codec == RDB_ZIPMAP;
    *zip = (struct engine_zip){.p = blob.ptr + (is_map ? ZIPMAP_HEAD : ZIPLIST_HEAD),
                               .is_map = is_map};
}

static bool map_next(struct engine_zip *zip, struct engine_lp_item *ret)
{
    const uint8_t *p = zip->p;
    size_t len = *p++, unused = 0;
    if (len == LONG) {
        len = rd_get_le32(p);
        p += 4;
    }
    if (zip->value)
        unused = *p++;
    *ret = (struct engine_lp_item){.ptr = p, .len = len};
    zip->p = p + len + unused;
    zip->value = !zip->value;
    return true;
}

/* Reads an integer at p; returns its number of bytes. */
static size_t get_int(unsigned head, const uint8_t *p, int64_t *ret)
{
    switch (head) {
    case 0xfe:
        *ret = (int8_t)p[0];
        return 1;
    case 0xc0:
        *ret = (int16_t)rd_get_le16(p);
        return 2;
    case 0xf0:
        *ret = (int32_t)((uint32_t)p[0] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 24) >> 8;
        return 3;
    case 0xd0:
        *ret = (int32_t)rd_get_le32(p);
        return 4;
    case 0xe0:
        *ret = (int64_t)rd_get_le64(p);
        return 8;
    default:
        *ret = (int64_t)head - 0xf1;
        return 0;
    }
}

static bool list_next(struct engine_zip *zip, struct engine_lp_item *ret)
{
    const uint8_t *p = zip->p;
    p += p[0] == LONG ? 5 : 1;
    unsigned head = *p++;
    *ret = (struct engine_lp_item){0};
    if (head >= 0xc0) {
        ret->is_num = true;
        zip->p = p + get_int(head, p, &ret->num);
        return true;
    }
    if (head < 0x40) {
        ret->len = head;
    } else if (head < 0x80) {
        ret->len = (head & 63) << 8 | *p++;
    } else {
        ret->len = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
        p += 4;
    }
    ret->ptr = p;
    zip->p = p + ret->len;
    return true;
}

bool engine_zip_next(struct engine_zip *zip, struct engine_lp_item *ret)
{
    if (*zip->p == END)
        return false;
    return zip->is_map ? map_next(zip, ret) : list_next(zip, ret);
}
