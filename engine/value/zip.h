/* zip.h - private to engine/: ziplists and zipmaps, the predecessors of listpacks before Redis 7.
 *
 *     struct engine_zip zip;
 *     struct engine_lp_item item;
 *     engine_zip_begin(&zip, ev->packed.codec, ev->packed.blob);
 *     while (engine_zip_next(&zip, &item))
 *         ...
 *
 *     ziplist  bytes:u32 tail:u32 count:u16 { prevlen head data }* ff
 *     head     00llllll           01llllll llllllll     80 and 4 bytes, big-endian: strings
 *              f1 .. fd           the numbers 0 to 12
 *              fe c0 f0 d0 e0     integers of 8, 16, 24, 32 and 64 bits
 *     zipmap   count:u8 { len key  len free value unused[free] }* ff
 *     len      one byte below 254, or fe and 4 bytes
 *
 * Little-endian unless stated otherwise. The blob must have been validated, as the RDB reader does.
 */
#ifndef ENGINE_VALUE_ZIP_H
#define ENGINE_VALUE_ZIP_H

#include "engine/listpack.h"
#include "rdb/event.h"

struct engine_zip {
    const uint8_t *p; /* the next entry */
    bool is_map;
    bool value; /* of a zipmap: the next item is a value */
};

void engine_zip_begin(struct engine_zip *zip, enum rdb_codec codec, struct rd_slice blob);

/* False: the end. Text points into the blob. */
bool engine_zip_next(struct engine_zip *zip, struct engine_lp_item *ret);

#endif
