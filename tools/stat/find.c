#include "tools/stat/find.h"

#include "tools/stat/report.h"

#include <stdarg.h>
#include <stdlib.h>

enum { NAMED = 3, MIN_KEYS = 100, BIG_STRING = 1 << 20 };

struct list {
    const struct stat_read *read;
    struct stat_finding *rows;
    size_t n;
};

static void add(struct list *list, const char *code, uint64_t memory, const char *advice,
                const char *fmt, ...) RD_PRINTF(5, 6);

static void add(struct list *list, const char *code, uint64_t memory, const char *advice,
                const char *fmt, ...)
{
    va_list args;
    if (list->n == STAT_FINDINGS_MAX)
        return;
    struct stat_finding *row = &list->rows[list->n++];
    row->code = code;
    row->memory = memory;
    snprintf(row->advice, sizeof row->advice, "%s", advice);
    va_start(args, fmt);
    vsnprintf(row->text, sizeof row->text, fmt, args);
    va_end(args);
}

/* A name in quotation marks; the middle of a long one is left out. */
static struct rd_shown name_of(struct rd_slice bytes)
{
    struct rd_shown text;
    rd_err_quote(text.s, sizeof text.s, bytes);
    return text;
}

static bool at_least(uint64_t part, uint64_t whole, unsigned percent)
{
    return whole > 0 && (double)part * 100 >= (double)whole * percent;
}

/* ---- expiry ---- */

static const struct stat_prefix *most_lasting(const struct stat_prefixes *table)
{
    const struct stat_prefix *best = NULL;
    for (size_t i = 0; i < table->n; i++)
        if (best == NULL || table->rows[i].lasting > best->lasting)
            best = &table->rows[i];
    return best;
}

static void find_lasting(struct list *list)
{
    const struct stat_sum *sum = &list->read->sum;
    const struct stat_count *never = &sum->expiry[STAT_EXPIRY_NEVER];
    const struct stat_prefix *most = most_lasting(&sum->prefixes);
    char where[160] = "", db[40] = "";
    if (sum->all.expires == 0 || !at_least(never->memory, sum->all.memory, 50)) {
        if (sum->all.expires == 0 && sum->all.keys >= MIN_KEYS)
            add(list, "no-expiry", sum->all.memory,
                "If the data is a cache, set an expiry (EXPIRE, SET with EX). With "
                "maxmemory-policy volatile-* the server can evict nothing.",
                "No key expires.");
        return;
    }
    if (most != NULL && sum->n_dbs > 1)
        snprintf(db, sizeof db, " in database %llu", (unsigned long long)most->db);
    if (most != NULL && at_least(most->lasting, never->memory, 10))
        snprintf(where, sizeof where, ", %s of it under %s%s",
                 stat_percent(most->lasting, never->memory).s,
                 name_of(stat_prefix_name(&sum->prefixes, most)).s, db);
    add(list, "never-expires", never->memory,
        "Set an expiry (EXPIRE, SET with EX) where the data is a cache. With maxmemory-policy "
        "volatile-* the server cannot evict these keys.",
        "%s of the memory never expires: %s in %s key%s%s.",
        stat_percent(never->memory, sum->all.memory).s, rd_show_bytes(never->memory).s,
        rd_show_count(never->keys).s, rd_show_plural(never->keys), where);
}

static void find_expired(struct list *list)
{
    const struct stat_sum *sum = &list->read->sum;
    const struct stat_share *kept = &sum->counters.kept_expired;
    if (kept->keys < MIN_KEYS || !at_least(kept->keys, sum->all.keys, 5))
        return;
    add(list, "expired-kept", kept->memory,
        "The server removes expired keys too slowly: raise active-expire-effort (1 to 10).",
        "%s keys (%s) had expired when the file was written, and took %s.",
        rd_show_count(kept->keys).s, stat_percent(kept->keys, sum->all.keys).s,
        rd_show_bytes(kept->memory).s);
}

/* ---- big keys ---- */

static const char *unit_of(enum rdb_kind kind)
{
    return kind == RDB_KIND_HASH     ? "fields"
           : kind == RDB_KIND_STREAM ? "entries"
           : kind == RDB_KIND_SET    ? "members"
           : kind == RDB_KIND_ZSET   ? "members"
                                     : "elements";
}

/* As in sentences: "sorted set". */
static const char *word_of(enum rdb_kind kind)
{
    return kind == RDB_KIND_ZSET ? "sorted set" : rdb_kind_name(kind);
}

static const char *advice_for(enum rdb_kind kind)
{
    switch (kind) {
    case RDB_KIND_HASH:
        return "HGETALL and DEL of it block the server: use HSCAN and UNLINK, or divide it into "
               "several keys.";
    case RDB_KIND_SET:
        return "SMEMBERS and DEL of it block the server: use SSCAN and UNLINK, or divide it into "
               "several keys.";
    case RDB_KIND_ZSET:
        return "DEL of it blocks the server: use UNLINK; remove old members with "
               "ZREMRANGEBYRANK or ZREMRANGEBYSCORE.";
    case RDB_KIND_LIST:
        return "DEL of it blocks the server: use UNLINK; limit it with LTRIM. A list that only "
               "grows is a queue without a consumer.";
    case RDB_KIND_STREAM:
        return "Limit it with XADD MAXLEN ~ or XTRIM.";
    default:
        return "Every read and every replica transfers it as a whole: divide it, compress it, or "
               "store it elsewhere.";
    }
}

/* ", 64 % of the memory" if that is much. */
static struct rd_shown share_of(const struct list *list, uint64_t memory)
{
    struct rd_shown text = {""};
    uint64_t all = list->read->sum.all.memory;
    if (at_least(memory, all, 10))
        snprintf(text.s, sizeof text.s, ", %.20s of the memory", stat_percent(memory, all).s);
    return text;
}

static void find_collections(struct list *list)
{
    const struct stat_sum *sum = &list->read->sum;
    const struct stat_top *top = &sum->by_elements;
    size_t named = 0;
    for (size_t i = 0; i < top->n && named < NAMED; i++) {
        const struct stat_top_row *row = &top->rows[i];
        enum rdb_kind kind = row->key.type->kind;
        if (row->key.elements < STAT_BIG)
            break;
        named++;
        add(list, "big-collection", row->key.memory, advice_for(kind), "%s %s has %s %s (%s%s).",
            word_of(kind), name_of(stat_top_name(row)).s, rd_show_count(row->key.elements).s,
            unit_of(kind), rd_show_bytes(row->key.memory).s, share_of(list, row->key.memory).s);
    }
    if (sum->counters.big > named && named > 0)
        add(list, "big-collections", 0,
            "\"Most elements\" lists them; --top makes the list longer.",
            "%s more key%s at least %s elements.", rd_show_count(sum->counters.big - named).s,
            sum->counters.big - named == 1 ? " has" : "s have", rd_show_count(STAT_BIG).s);
}

static void find_values(struct list *list)
{
    const struct stat_sum *sum = &list->read->sum;
    const struct stat_top *top = &sum->by_memory;
    for (size_t i = 0; i < top->n && i < NAMED; i++) {
        const struct stat_top_row *row = &top->rows[i];
        enum rdb_kind kind = row->key.type->kind;
        bool string = kind == RDB_KIND_STRING && row->key.memory >= BIG_STRING;
        bool much = at_least(row->key.memory, sum->all.memory, 25) && sum->all.keys >= MIN_KEYS;
        if (row->key.elements >= STAT_BIG || (!string && !much))
            continue;
        add(list, "big-value", row->key.memory,
            string ? advice_for(kind)
                   : "A key is on one node of a cluster as a whole: divide it into several keys.",
            "%s %s takes %s%s.", word_of(kind), name_of(stat_top_name(row)).s,
            rd_show_bytes(row->key.memory).s, share_of(list, row->key.memory).s);
    }
}

/* ---- packing ---- */

static const char *plural_of(enum rdb_kind kind)
{
    return kind == RDB_KIND_HASH ? "hashes" : kind == RDB_KIND_SET ? "sets" : "sorted sets";
}

/* "hash-max-listpack-entries", or its name before 7.0. */
static struct rd_shown setting(const struct list *list, enum rdb_kind kind, const char *end)
{
    struct rd_shown text;
    snprintf(text.s, sizeof text.s, "%s-max-%s-%s", rdb_kind_name(kind),
             list->read->layout->ziplists ? "ziplist" : "listpack", end);
    return text;
}

static void find_few(struct list *list, enum rdb_kind kind)
{
    const struct stat_loose *few = &list->read->sum.counters.few[kind];
    char advice[320];
    if (few->keys < MIN_KEYS)
        return;
    if (kind == RDB_KIND_SET && !list->read->layout->set_listpack)
        snprintf(advice, sizeof advice,
                 "Redis 7.2 and Valkey 8 pack such sets, which then take about %s instead of %s.",
                 rd_show_bytes(few->packed).s, rd_show_bytes(few->memory).s);
    else
        snprintf(advice, sizeof advice,
                 "The default limits would pack them. If %s or %s is lower, raise it; keys that "
                 "were larger once are packed after a restart.",
                 setting(list, kind, "entries").s, setting(list, kind, "value").s);
    add(list, "unpacked", few->memory, advice, "%s %s of at most %s %s are stored as hash tables.",
        rd_show_count(few->keys).s, plural_of(kind), rd_show_count(few->elements).s, unit_of(kind));
}

static void find_long(struct list *list, enum rdb_kind kind)
{
    const struct stat_loose *loose = &list->read->sum.counters.few_long[kind];
    uint64_t limit = STAT_PACKED_ELEMENT;
    char advice[320];
    if (loose->keys < MIN_KEYS || loose->packed >= loose->memory)
        return;
    if (kind == RDB_KIND_SET && !list->read->layout->set_listpack)
        return;
    while (limit < loose->longest)
        limit *= 2;
    snprintf(advice, sizeof advice, "%s %llu packs them and saves about %s.",
             setting(list, kind, "value").s, (unsigned long long)limit,
             rd_show_bytes(loose->memory - loose->packed).s);
    add(list, "long-elements", loose->memory, advice,
        "%s %s of at most %s %s are stored as hash tables, because an element is longer than %d "
        "bytes.",
        rd_show_count(loose->keys).s, plural_of(kind), rd_show_count(loose->elements).s,
        unit_of(kind), STAT_PACKED_ELEMENT);
}

/* ---- overhead ---- */

static void find_overhead(struct list *list)
{
    const struct stat_sum *sum = &list->read->sum;
    const struct stat_counters *counters = &sum->counters;
    const struct stat_share *small = &counters->small_strings;
    if (small->keys >= 100 * (uint64_t)MIN_KEYS && at_least(small->memory, sum->all.memory, 20))
        add(list, "small-strings", small->memory,
            "As fields of hashes of about 100 fields, which are packed, they take a fraction of "
            "that. Single fields can expire from Redis 7.4 on.",
            "%s strings of at most %d bytes take %s, of which %s are their values.",
            rd_show_count(small->keys).s, STAT_SMALL_STRING, rd_show_bytes(small->memory).s,
            rd_show_bytes(counters->small_bytes).s);
    if (sum->all.keys >= MIN_KEYS && at_least(counters->name_bytes, sum->all.memory, 25))
        add(list, "long-names", counters->name_bytes,
            "Shorten the parts that are the same in every name.",
            "The names of keys take %s of the memory: %llu bytes on average.",
            stat_percent(counters->name_bytes, sum->all.memory).s,
            (unsigned long long)(counters->name_bytes / sum->all.keys));
}

static void find_modules(struct list *list)
{
    struct stat_count count = stat_sum_kind(&list->read->sum, RDB_KIND_MODULE);
    if (count.keys > 0)
        add(list, "modules", count.memory, "Ask the server: MEMORY USAGE key.",
            "%s value%s of modules count%s with the size in the file.", rd_show_count(count.keys).s,
            rd_show_plural(count.keys), count.keys == 1 ? "s" : "");
}

static int by_memory(const void *va, const void *vb)
{
    const struct stat_finding *a = va, *b = vb;
    return (a->memory < b->memory) - (a->memory > b->memory);
}

size_t stat_find(const struct stat_read *read, struct stat_finding found[STAT_FINDINGS_MAX])
{
    struct list list = {read, found, 0};
    static const enum rdb_kind packed[] = {RDB_KIND_HASH, RDB_KIND_SET, RDB_KIND_ZSET};
    find_lasting(&list);
    find_collections(&list);
    find_values(&list);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        find_few(&list, packed[i]);
        find_long(&list, packed[i]);
    }
    find_expired(&list);
    find_overhead(&list);
    find_modules(&list);
    qsort(found, list.n, sizeof *found, by_memory);
    return list.n;
}
