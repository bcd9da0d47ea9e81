#include "rdb/omission_impl.h"

const char *rdb_omitted_word(enum rdb_omitted what)
{
    static const char *const words[] = {
#define X(name, number, word, counter) [number] = word,
        RDB_OMITTED(X)
#undef X
    };
    return words[what];
}

void rdb_omitted_count(struct rdb_omitted_counts *counts, enum rdb_omitted what)
{
    switch (what) {
#define X(name, number, word, counter)                                                             \
    case RDB_OMITTED_##name:                                                                       \
        counts->counter++;                                                                         \
        break;
        RDB_OMITTED(X)
#undef X
    }
}
