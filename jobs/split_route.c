/* Decides which part a key belongs to. */
#include "jobs/split_impl.h"

#include "base/mem.h"

#include <stdio.h>

bool split_next_item(const char **at, struct rd_slice *ret)
{
    if (*at == NULL)
        return false;
    const char *comma = strchr(*at, ',');
    *ret = rd_slice(*at, comma != NULL ? (size_t)(comma - *at) : strlen(*at));
    *at = comma != NULL ? comma + 1 : NULL;
    return true;
}

/* ---- ranges of slots ---- */

static bool bad_ranges(struct rd_err *err, const char *text, const char *why)
{
    char quoted[80];
    rd_err_quote(quoted, sizeof quoted, rd_slice_str(text));
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s %s", quoted, why);
}

/* The ends of ranges are at i/n of all slots, rounded. */
static unsigned boundary(uint64_t i, uint64_t n)
{
    return (unsigned)((2 * i * RD_HASH_SLOTS + n) / (2 * n));
}

static bool equal_ranges(struct split_rule *rule, uint64_t n, const char *text, struct rd_err *err)
{
    if (n < 1 || n > SPLIT_PARTS_MAX)
        return bad_ranges(err, text, "is not a number from 1 to 250");
    for (uint64_t i = 0; i < n; i++)
        rule->ranges[i] = (struct split_range){boundary(i, n), boundary(i + 1, n) - 1};
    rule->n_ranges = (size_t)n;
    return true;
}

/* "A" or "A-B". */
static bool parse_range(struct rd_slice text, struct split_range *ret)
{
    const uint8_t *dash = text.len > 0 ? memchr(text.ptr, '-', text.len) : NULL;
    size_t len = dash == NULL ? text.len : (size_t)(dash - text.ptr);
    uint64_t first, last;
    if (!rd_num_get_u64(rd_slice(text.ptr, len), &first))
        return false;
    last = first;
    if (dash != NULL && !rd_num_get_u64(rd_slice(dash + 1, text.len - len - 1), &last))
        return false;
    *ret = (struct split_range){(unsigned)first, (unsigned)last};
    return first <= last && last < RD_HASH_SLOTS;
}

static bool overlaps(const struct split_rule *rule, const struct split_range *range)
{
    for (size_t i = 0; i < rule->n_ranges; i++)
        if (range->first <= rule->ranges[i].last && rule->ranges[i].first <= range->last)
            return true;
    return false;
}

bool split_ranges(struct split_rule *rule, const char *text, struct rd_err *err)
{
    uint64_t n;
    rule->n_ranges = 0;
    if (rd_num_get_u64(rd_slice_str(text), &n))
        return equal_ranges(rule, n, text, err);
    const char *at = text;
    struct split_range range;
    for (struct rd_slice item; split_next_item(&at, &item);) {
        if (!parse_range(item, &range))
            return bad_ranges(err, text, "is neither a number nor ranges such as 0-5460,5461-9999");
        if (overlaps(rule, &range))
            return bad_ranges(err, text, "has overlapping ranges");
        if (rule->n_ranges == SPLIT_PARTS_MAX)
            return bad_ranges(err, text, "has more than 250 ranges");
        rule->ranges[rule->n_ranges++] = range;
    }
    return true;
}

/* ---- prefixes ---- */

bool split_prefix(const struct split_rule *rule, struct rd_slice name, struct rd_slice *ret)
{
    struct rd_slice separator = rule->separator;
    size_t end = 0, at = 0;
    uint64_t found = 0;
    while (found < rule->depth && name.len - at >= separator.len) {
        const uint8_t *p = memmem(name.ptr + at, name.len - at, separator.ptr, separator.len);
        if (p == NULL)
            break;
        end = (size_t)(p - name.ptr);
        at = end + separator.len;
        found++;
    }
    if (found > 0)
        *ret = rd_slice(name.ptr, end);
    return found > 0;
}

static bool is_plain(uint8_t c, size_t at)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || (c == '.' && at > 0);
}

/* FNV-1a: only distinguishes names that are cut at the same place. */
static uint64_t hash(struct rd_slice bytes)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < bytes.len; i++)
        h = (h ^ bytes.ptr[i]) * 0x100000001b3;
    return h;
}

void split_file_name(struct rd_slice prefix, char dst[SPLIT_NAME_MAX + 1])
{
    enum { TAIL = 18 };
    size_t len = 0;
    for (size_t i = 0; i < prefix.len; i++) {
        if (len + 3 > SPLIT_NAME_MAX - TAIL) {
            snprintf(dst + len, TAIL, "~%016llx", (unsigned long long)hash(prefix));
            return;
        }
        uint8_t c = prefix.ptr[i];
        if (is_plain(c, i))
            dst[len++] = (char)c;
        else
            len += (size_t)snprintf(dst + len, 4, "%%%02X", c);
    }
    dst[len] = '\0';
}

/* ---- parts ---- */

static struct split_part *new_part(enum split_of of, uint64_t first, uint64_t last)
{
    struct split_part *part = rd_calloc(1, sizeof *part);
    if (part != NULL) {
        part->file.of = of;
        part->file.first = first;
        part->file.last = last;
    }
    return part;
}

static bool open_part(struct split *split, struct split_part *part, struct split_part **ret,
                      struct rd_err *err)
{
    *ret = part;
    return part != NULL ? split_part_open(split, part, err) : rd_err_nomem(err, sizeof *part);
}

static bool to_rest(struct split *split, struct split_part **ret, struct rd_err *err)
{
    if (split->rest == NULL) {
        struct split_part *part = new_part(SPLIT_OF_REST, 0, 0);
        if (part != NULL)
            snprintf(part->file.name, sizeof part->file.name, "other.rdb");
        if (!open_part(split, part, &split->rest, err))
            return false;
    }
    *ret = split->rest;
    return true;
}

static struct split_part *find(struct split *split, enum split_of of, uint64_t first)
{
    for (size_t i = 0; i < split->n_parts; i++)
        if (split->parts[i]->file.of == of && split->parts[i]->file.first == first)
            return split->parts[i];
    return NULL;
}

static bool too_many(const struct split *split, const char *what, struct rd_err *err)
{
    return split->n_parts < SPLIT_PARTS_MAX ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "more than %d parts: %s", SPLIT_PARTS_MAX,
                      what);
}

static bool by_db(struct split *split, uint64_t db, struct split_part **ret, struct rd_err *err)
{
    *ret = find(split, SPLIT_OF_DB, db);
    if (*ret != NULL)
        return true;
    if (!too_many(split, "use --db to select databases", err))
        return false;
    struct split_part *part = new_part(SPLIT_OF_DB, db, 0);
    if (part != NULL)
        snprintf(part->file.name, sizeof part->file.name, "db-%llu.rdb", (unsigned long long)db);
    return open_part(split, part, ret, err);
}

static bool by_slot(struct split *split, struct rd_slice name, struct split_part **ret,
                    struct rd_err *err)
{
    unsigned slot = rd_hash_slot(name);
    for (size_t i = 0; i < split->rule->n_ranges; i++) {
        if (slot < split->rule->ranges[i].first || slot > split->rule->ranges[i].last)
            continue;
        *ret = split->parts[i];
        return true;
    }
    return to_rest(split, ret, err);
}

static bool new_prefix(struct split *split, struct rd_slice prefix, struct split_part **ret,
                       struct rd_err *err)
{
    char name[SPLIT_NAME_MAX + 1];
    struct split_part *part = new_part(SPLIT_OF_PREFIX, hash(prefix), 0);
    if (part == NULL)
        return rd_err_nomem(err, sizeof *part);
    split_file_name(prefix, name);
    snprintf(part->file.name, sizeof part->file.name, "prefix-%s.rdb", name);
    if (!rd_buf_add(&part->file.prefix, prefix.ptr, prefix.len)) {
        rd_free(part);
        return rd_err_nomem(err, prefix.len);
    }
    return open_part(split, part, ret, err);
}

static bool by_prefix(struct split *split, struct rd_slice name, struct split_part **ret,
                      struct rd_err *err)
{
    struct rd_slice prefix;
    if (!split_prefix(split->rule, name, &prefix))
        return to_rest(split, ret, err);
    uint64_t h = hash(prefix);
    for (size_t i = 0; i < split->n_parts; i++) {
        struct split_part *part = split->parts[i];
        if (part->file.of == SPLIT_OF_PREFIX && part->file.first == h &&
            rd_slice_eq(rd_buf_slice(&part->file.prefix), prefix)) {
            *ret = part;
            return true;
        }
    }
    if (split->n_parts - (split->rest != NULL) < split->rule->max_parts)
        return new_prefix(split, prefix, ret, err);
    split->crowded = true;
    return to_rest(split, ret, err);
}

static bool by_size(struct split *split, struct split_part **ret, struct rd_err *err)
{
    struct split_part *now = split->n_parts > 0 ? split->parts[split->n_parts - 1] : NULL;
    if (now != NULL && rd_sink_offset(now->sink) < split->rule->size) {
        *ret = now;
        return true;
    }
    if (!too_many(split, "use a larger --size", err))
        return false;
    struct split_part *part = new_part(SPLIT_OF_NUMBER, split->n_parts + 1, 0);
    if (part != NULL)
        snprintf(part->file.name, sizeof part->file.name, "part-%04zu.rdb", split->n_parts + 1);
    return open_part(split, part, ret, err);
}

bool split_route(struct split *split, struct rd_slice name, uint64_t db, struct split_part **ret,
                 struct rd_err *err)
{
    switch ((enum split_by)split->rule->by) {
    case SPLIT_DB:
        return by_db(split, db, ret, err);
    case SPLIT_SLOTS:
        return by_slot(split, name, ret, err);
    case SPLIT_PREFIX:
        return by_prefix(split, name, ret, err);
    case SPLIT_CRC32:
    case SPLIT_RING:
        *ret = split->parts[split_shard(split->rule, name)];
        return true;
    case SPLIT_SIZE:
    case SPLIT_NOTHING:
        break;
    }
    return by_size(split, ret, err);
}

static bool open_shards(struct split *split, struct rd_err *err)
{
    for (uint64_t i = 0; i < split->rule->n_shards; i++) {
        struct split_part *part = new_part(SPLIT_OF_SHARD, i, 0);
        if (part != NULL)
            snprintf(part->file.name, sizeof part->file.name, "crc32-%llu.rdb",
                     (unsigned long long)i);
        if (!open_part(split, part, &part, err))
            return false;
    }
    return true;
}

static bool open_node(struct split *split, struct rd_slice node, struct rd_err *err)
{
    char name[SPLIT_NAME_MAX + 1];
    struct split_part *part = new_part(SPLIT_OF_NODE, 0, 0);
    if (part == NULL || !rd_buf_add(&part->file.prefix, node.ptr, node.len)) {
        rd_free(part);
        return rd_err_nomem(err, node.len);
    }
    split_file_name(node, name);
    snprintf(part->file.name, sizeof part->file.name, "node-%s.rdb", name);
    return open_part(split, part, &part, err);
}

static bool open_nodes(struct split *split, struct rd_err *err)
{
    const char *at = split->rule->names;
    for (struct rd_slice node; split_next_item(&at, &node);)
        if (!open_node(split, node, err))
            return false;
    return true;
}

bool split_open_all(struct split *split, struct rd_err *err)
{
    if (split->rule->by == SPLIT_CRC32)
        return open_shards(split, err);
    if (split->rule->by == SPLIT_RING)
        return open_nodes(split, err);
    if (split->rule->by != SPLIT_SLOTS)
        return true;
    for (size_t i = 0; i < split->rule->n_ranges; i++) {
        const struct split_range *range = &split->rule->ranges[i];
        struct split_part *part = new_part(SPLIT_OF_SLOTS, range->first, range->last);
        if (part != NULL)
            snprintf(part->file.name, sizeof part->file.name, "slots-%u-%u.rdb", range->first,
                     range->last);
        if (!open_part(split, part, &part, err))
            return false;
    }
    return true;
}

bool split_open_one(struct split *split, struct rd_err *err)
{
    struct split_part *part;
    if (split->n_parts > 0)
        return true;
    if (split->rule->by == SPLIT_DB)
        return by_db(split, 0, &part, err);
    return split->rule->by == SPLIT_SIZE ? by_size(split, &part, err) : to_rest(split, &part, err);
}
