/* place.c - the first record that may be damaged.
 *
 * A damaged length moves the end of a record. From there on, the contents of the following records
 * are read as records, and several may parse before one fails. The position of the failure is
 * therefore not evidence. A record whose header is unlikely to occur by chance is: the record
 * before it ended correctly.
 */
#include "rdb/recover/recover_impl.h"

enum {
    PROVED = 6, /* such a header occurs by chance once in several thousand positions */
    PROOF_NAME_MAX = 6,
    PROOF_NAME_NEW = 3, /* elements of collections look like names, too */
    PROOF_EXPIRY = 3,
    PROOF_FIELD = 3, /* its opcode is rarer than the types of keys */
    PROOF_TYPE = 1,  /* most false keys are strings, because their type is a zero byte */
    PROOF_DB = 4,    /* a size follows, which the next record confirms or not */
    PROOF_DB_ALONE = 2,
    SIZES_SINCE = 7, /* first version with sizes of databases */
    PROOF_HINT = 2,
    PROOF_OTHER = 2,
    DATABASES_MANY = 1024,
    SHAPE_LEN = 4
};

unsigned rdb_recover_shape(const struct record *rec)
{
    uint32_t h = rec->type != NULL ? (uint32_t)rec->type->kind + 1 : 0;
    for (size_t i = 0; i < SHAPE_LEN && i < rec->key_len; i++)
        h = (h ^ rec->key[i]) * UINT32_C(0x01000193) + 1;
    return (h ^ h >> 15) % SHAPES;
}

/* Whether names of keys of that kind begin like this in the file. If they begin in too many
 * different ways, this is not evidence. */
static bool shape_is_known(const struct scan *s, const struct record *rec)
{
    unsigned shape = rdb_recover_shape(rec);
    return s->n_shapes < SHAPES / 4 && (s->shapes[shape / 64] >> shape % 64 & 1) != 0;
}

bool rdb_recover_is_alien(const struct scan *s, const struct record *rec)
{
    if (rec->kind != RECORD_KEY || rec->type->id != RDB_TYPE_STRING || rec->expires)
        return false;
    unsigned shape = rdb_recover_shape(rec);
    return (s->settled[shape / 64] >> shape % 64 & 1) == 0;
}

void rdb_recover_shape_add(struct scan *s, const struct record *rec)
{
    unsigned shape = rdb_recover_shape(rec);
    uint64_t bit = (uint64_t)1 << shape % 64;
    if ((s->shapes[shape / 64] & bit) == 0) {
        s->n_shapes++;
        s->shape_at[shape] = rec->start;
    }
    s->shapes[shape / 64] |= bit;
}

static uint8_t proof_of_name(const struct scan *s, const struct record *rec)
{
    const struct name_stats *h = &s->name_stats;
    if (rec->key_len == 0)
        return 0;
    if (h->n > 0 && !rdb_recover_names_printable(h))
        return rec->key_len >= h->shortest;
    if (!rdb_recover_is_printable(rec))
        return 0;
    uint64_t most = shape_is_known(s, rec) ? PROOF_NAME_MAX : PROOF_NAME_NEW;
    return (uint8_t)(rec->key_len < most ? rec->key_len : most);
}

static uint8_t proof_of_key(const struct scan *s, const struct record *rec)
{
    uint8_t proof = proof_of_name(s, rec);
    if (proof == 0 || !rec->plausible_expiry || rec->refused != NULL)
        return 0;
    if (rec->expires)
        proof = (uint8_t)(proof + PROOF_EXPIRY);
    return (uint8_t)(proof + (rec->type->id != RDB_TYPE_STRING ? PROOF_TYPE : 0));
}

uint8_t rdb_recover_proof(const struct scan *s, const struct record *rec)
{
    if (rec->refused != NULL)
        return 0;
    switch (rec->kind) {
    case RECORD_KEY:
        return proof_of_key(s, rec);
    case RECORD_DB:
        return rec->db >= DATABASES_MANY ? 0 : s->version < SIZES_SINCE ? PROOF_DB_ALONE : PROOF_DB;
    case RECORD_HINT:
        return PROOF_HINT;
    case RECORD_OTHER: {
        uint8_t name = rec->has_name ? proof_of_name(s, rec) : 0;
        return !rec->has_name ? PROOF_OTHER : name > 0 ? (uint8_t)(name + PROOF_FIELD) : 0;
    }
    case RECORD_END:
        break;
    }
    return 0;
}

bool rdb_recover_has_head(const struct scan *s, const struct record *rec)
{
    struct record head = *rec;
    head.refused = NULL;
    return head.has_key && rdb_recover_proof(s, &head) > 0;
}

bool rdb_recover_is_proved(const struct scan *s, const struct record *rec)
{
    return rec->has_key && rdb_recover_proof(s, rec) >= PROVED;
}

bool rdb_recover_is_anchor(const struct scan *s, const struct record *rec)
{
    return rdb_recover_is_proved(s, rec) && shape_is_known(s, rec) &&
           s->shape_at[rdb_recover_shape(rec)] < s->trusted_to;
}

bool rdb_recover_is_shape_before(const struct scan *s, const struct record *rec, uint64_t offset)
{
    return shape_is_known(s, rec) && s->shape_at[rdb_recover_shape(rec)] < offset;
}

uint64_t rdb_recover_shape_at(const struct scan *s, const struct record *rec)
{
    unsigned shape = rdb_recover_shape(rec);
    if (rec->kind != RECORD_KEY || rec->type->id != RDB_TYPE_STRING || rec->expires)
        return RD_NO_OFFSET;
    return (s->shapes[shape / 64] >> shape % 64 & 1) != 0 ? s->shape_at[shape] : rec->start;
}

/* A packed value contains its length a second time, and ends there. */
bool rdb_recover_is_packed(const struct record *rec)
{
    if (rec->kind != RECORD_KEY || rec->refused != NULL)
        return false;
    switch (rec->type->id) {
    case RDB_TYPE_HASH_ZIPMAP:
    case RDB_TYPE_LIST_ZIPLIST:
    case RDB_TYPE_SET_INTSET:
    case RDB_TYPE_ZSET_ZIPLIST:
    case RDB_TYPE_HASH_ZIPLIST:
    case RDB_TYPE_HASH_LISTPACK:
    case RDB_TYPE_ZSET_LISTPACK:
    case RDB_TYPE_SET_LISTPACK:
        return true;
    default:
        return false;
    }
}

uint64_t rdb_recover_place(const struct scan *s, const struct record *rec)
{
    bool unknown = rec->kind == RECORD_OTHER && !rec->has_name;
    uint64_t at = rec->start;
    unsigned proved = unknown ? 0 : rdb_recover_proof(s, rec);
    uint64_t i = 1;
    for (; proved < PROVED && i <= RING && i <= s->n_ring; i++) {
        if (s->ring[(s->n_ring - i) % RING].packed)
            return at;
        uint8_t proof = s->ring[(s->n_ring - i) % RING].proof;
        proved = proof == 0 ? 0 : proved + proof;
        at = s->ring[(s->n_ring - i) % RING].start;
    }
    /* A record that ends there but does not look like the rest of the file may be damaged itself.
     */
    for (; i <= RING && i <= s->n_ring && s->ring[(s->n_ring - i) % RING].proof == 0; i++) {
        if (s->ring[(s->n_ring - i) % RING].packed)
            break;
        at = s->ring[(s->n_ring - i) % RING].start;
    }
    return proved < PROVED && s->n_ring > RING ? s->db_at : at;
}
