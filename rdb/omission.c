#include "rdb/omission_impl.h"

const char *rdb_omitted_word(enum rdb_omitted what)
{
    static const char *const words[] = {
#define X(name, number, word) [number] = word,
        RDB_OMITTED(X)
#undef X
    };
    return words[what];
}

void rdb_omitted_count(struct rdb_omitted_counts *counts, enum rdb_omitted what)
{
    switch (what) {
    case RDB_OMITTED_KEY:
        counts->keys++;
        break;
    case RDB_OMITTED_FIELD_EXPIRY:
        counts->field_expires++;
        break;
    case RDB_OMITTED_FUNCTION:
        counts->functions++;
        break;
    case RDB_OMITTED_MODULE_AUX:
        counts->module_aux++;
        break;
    case RDB_OMITTED_PENDING:
        counts->pending++;
        break;
    case RDB_OMITTED_ELEMENT:
    case RDB_OMITTED_PRODUCER:
    case RDB_OMITTED_KEY_METADATA:
    case RDB_OMITTED_SLOT_IMPORT:
        counts->other++;
        break;
    }
}
