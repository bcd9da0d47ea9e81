/* Damaged values, with the texts that programs look for in a log. */
#include "server/durable/persist/persist.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/loop/log.h"

/* NULL: a value that is not packed, whose damage is reported as such. */
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
    case RDB_TYPE_LIST_QUICKLIST_2:
        return "Quicklist";
    default:
        return NULL;
    }
}

/* Of nodes. */
static const char *inner_words(enum rdb_type_id id)
{
    switch (id) {
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

static const char *other_words(const struct rd_err *err)
{
    switch (err->reason.id) {
    case RDB_REASON_CONSUMER_TWICE:
        return "Duplicate stream consumer detected";
    case RDB_REASON_PENDING_TWICE:
        return "Duplicated global PEL entry loading stream consumer group";
    default:
        return err->text;
    }
}

void persist_refused(const struct rdb_type *type, const struct rd_err *err)
{
    char text[256];
    bool inside = err->inner != RD_NO_OFFSET;
    const char *what = encoding_words(type->id);
    if (inside && (what == NULL || type->id == RDB_TYPE_LIST_QUICKLIST_2))
        what = inner_words(type->id);
    if (what != NULL && err->reason.id == RDB_REASON_MEMBER_TWICE)
        snprintf(text, sizeof text, "%s integrity check failed: %s with dup elements.", what, what);
    else if (what != NULL)
        snprintf(text, sizeof text, "%s integrity check failed.", what);
    else
        snprintf(text, sizeof text, "%s", other_words(err));
    log_verbose("Internal error in RDB reading offset %" PRIu64 ", function at RESTORE -> %s",
                err->offset == RD_NO_OFFSET ? 0 : err->offset, text);
}
