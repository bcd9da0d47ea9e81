/* Damaged values, in the words that programs look for in a log. */
#include "server/persist.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/log.h"

static const char *encoding_words(enum rdb_type_id id)
{
    switch (id) {
    case RDB_TYPE_HASH_LISTPACK:
        return "Hash listpack";
    case RDB_TYPE_HASH_ZIPLIST:
        return "Hash ziplist";
    case RDB_TYPE_HASH_ZIPMAP:
        return "Zipmap";
    case RDB_TYPE_ZSET_LISTPACK:
        return "Zset listpack";
    case RDB_TYPE_ZSET_ZIPLIST:
        return "Zset ziplist";
    case RDB_TYPE_SET_INTSET:
        return "Intset";
    case RDB_TYPE_LIST_ZIPLIST:
        return "List ziplist";
    case RDB_TYPE_LIST_QUICKLIST:
        return "Ziplist";
    case RDB_TYPE_STREAM_LISTPACKS:
    case RDB_TYPE_STREAM_LISTPACKS_2:
    case RDB_TYPE_STREAM_LISTPACKS_3:
        return "Stream listpack";
    default:
        return "Listpack";
    }
}

void persist_refused(void *ctx, const struct rdb_type *type, const struct rd_err *err)
{
    char text[256];
    (void)ctx;
    if (err->inner == RD_NO_OFFSET && type->id == RDB_TYPE_LIST_QUICKLIST_2)
        snprintf(text, sizeof text, "Quicklist integrity check failed.");
    else if (err->inner == RD_NO_OFFSET)
        snprintf(text, sizeof text, "%s", err->text);
    else
        snprintf(text, sizeof text, "%s integrity check failed.", encoding_words(type->id));
    log_verbose("Internal error in RDB reading offset %" PRIu64 ", function at RESTORE -> %s",
                err->offset == RD_NO_OFFSET ? 0 : err->offset, text);
}
