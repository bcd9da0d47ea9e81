/* fields.c - the end of a damaged hash with field expiries.
 *
 * A field without expiry is stored like a string key without attributes. After damage in the hash,
 * the fields that follow can therefore be read as keys. The hash announces how many fields it has:
 * as many as are left of them are its own. Beyond that, a field with an expiry, a record that is no
 * string, and the names of the fields and keys before the damage show where the hash ends.
 */
#include "rdb/enc/len.h"
#include "rdb/recover/recover_impl.h"

enum {
    FAMILIAR_LEAST = 4,    /* fields, of which the names are compared with others */
    ROW = 4,               /* fields that must follow each other after damage */
    ROW_UNPRINTABLE = 16,  /* the same, if names do not help */
    LONGER = 4,            /* a name is at most so many times as long as all before it */
    NAME_FREE = 64,        /* bytes that any name may have */
    SEARCH_MAX = 4 << 20,  /* bytes after damage in which the next field must begin */
    LAST = 64,             /* names that are remembered */
    DAMAGES_MAX = 64,      /* places in one hash */
    EXPIRY_MOST_BITS = 46, /* of the distance from the least expiry */
    TYPES_MAX = 32
};

struct field {
    struct record as_key; /* the name, and the start and the end */
    bool expires;
};

struct hash {
    struct scan *s;
    const struct record *broken;
    uint64_t n;      /* fields, as announced */
    uint64_t read;   /* fields that were read */
    uint64_t lost;   /* damaged places: each holds a field at least */
    uint64_t region; /* bytes of them */
    uint64_t at;     /* the next field */
    struct name_stats names;
    uint64_t longest, largest; /* name, and field */
    uint64_t shapes[SHAPES / 64];
    unsigned n_shapes;
    uint64_t last_keys;    /* the last fields have names like those of keys */
    uint64_t last_keys_at; /* the first of them */
    bool by_name;          /* it ends at a name like those of keys */
    uint64_t last[LAST];   /* hashes of the last names */
    uint64_t twice;        /* names that were among them */
    uint64_t until;        /* the last field that its expiry proves, beyond the number */
    bool apart;            /* fields were read after the last damage */
};

/* -- bytes -- */

/* Moves to `at`, and returns the bytes there: at least `least` if the file has them. */
static enum rdb_recover_status bytes_at(struct scan *s, uint64_t at, size_t least,
                                        struct rd_slice *ret)
{
    *ret = (struct rd_slice){0};
    if (at >= s->size)
        return RDB_RECOVER_BROKEN;
    if (!rdb_recover_scan_at(s, at, 0, UINT64_MAX))
        return RDB_RECOVER_FAIL;
    if (rd_src_need(s->src, least, ret) != RD_SRC_FAIL)
        return RDB_RECOVER_OK;
    const struct rd_err *err = rd_src_err(s->src);
    if (err->code != RD_ERR_IO && err->code != RD_ERR_MEMORY)
        return RDB_RECOVER_BROKEN;
    rd_err_adopt(&s->err, err);
    return RDB_RECOVER_FAIL;
}

static enum rdb_recover_status length_at(struct scan *s, uint64_t *at, uint64_t *ret)
{
    struct rd_slice w;
    size_t size;
    enum rdb_recover_status st = bytes_at(s, *at, RDB_LEN_MAX, &w);
    if (st != RDB_RECOVER_OK)
        return st;
    if (rdb_len_parse(w.ptr, w.len, ret, &size) != RDB_PARSE_OK)
        return RDB_RECOVER_BROKEN;
    *at += size;
    return RDB_RECOVER_OK;
}

/* Passes over a string. `name`: receives its first bytes if it is stored plainly; or NULL. */
static enum rdb_recover_status string_at(struct scan *s, uint64_t *at, struct record *name)
{
    struct rd_slice w;
    struct rdb_str_head head;
    enum rdb_recover_status st = bytes_at(s, *at, RDB_HEAD_MAX + RDB_FINDING_KEY_MAX, &w);
    if (st != RDB_RECOVER_OK)
        return st;
    if (rdb_str_head_parse(w.ptr, w.len, &head) != RDB_PARSE_OK)
        return RDB_RECOVER_BROKEN;
    uint64_t stored = head.kind == RDB_STR_INT ? 0 : head.stored;
    if (stored > s->size || *at + head.size + stored > s->size)
        return RDB_RECOVER_BROKEN;
    *at += head.size + stored;
    if (name == NULL)
        return RDB_RECOVER_OK;
    bool plain = head.kind == RDB_STR_RAW;
    size_t kept = stored < sizeof name->key ? (size_t)stored : sizeof name->key;
    name->key_len = plain ? stored : 1;
    name->key[0] = '0'; /* a number is printable; the name of a compressed string is not compared */
    if (plain && w.len - head.size < kept)
        return RDB_RECOVER_BROKEN;
    if (plain && kept > 0)
        memcpy(name->key, w.ptr + head.size, kept);
    return RDB_RECOVER_OK;
}

/* -- fields -- */

static enum rdb_recover_status field_at(struct scan *s, uint64_t at, struct field *ret)
{
    uint64_t expiry = 0;
    ret->as_key = (struct record){
        .kind = RECORD_KEY, .start = at, .type = rdb_type_get(RDB_TYPE_STRING), .has_key = true};
    enum rdb_recover_status st = length_at(s, &at, &expiry);
    if (st == RDB_RECOVER_OK)
        st = string_at(s, &at, &ret->as_key);
    if (st == RDB_RECOVER_OK)
        st = string_at(s, &at, NULL);
    ret->as_key.end = at;
    ret->expires = expiry != 0;
    bool plausible = st != RDB_RECOVER_OK || expiry >> EXPIRY_MOST_BITS == 0;
    return plausible ? st : RDB_RECOVER_BROKEN;
}

/* Whether the name is like those of the fields before. */
static bool is_familiar(const struct hash *h, const struct field *field)
{
    const struct record *name = &field->as_key;
    if (name->key_len > h->longest * LONGER + NAME_FREE)
        return false;
    if (h->names.n < FAMILIAR_LEAST || !rdb_recover_names_printable(&h->names))
        return true;
    return rdb_recover_is_printable(name) && (name->key_len > 0 || h->names.shortest == 0);
}

static bool has_shape(const struct hash *h, const struct record *name)
{
    unsigned shape = rdb_recover_shape(name);
    return h->n_shapes < SHAPES / 4 && (h->shapes[shape / 64] >> shape % 64 & 1) != 0;
}

/* Whether it may be a key: it has no expiry, and its name is like those of the keys before the hash
 * and unlike those of its fields. */
static bool is_like_key(const struct hash *h, const struct field *field)
{
    return !field->expires && !has_shape(h, &field->as_key) &&
           rdb_recover_is_shape_before(h->s, &field->as_key, h->broken->start);
}

/* A block that was written twice has fields a second time. */
static void note_twice(struct hash *h, const struct record *name)
{
    size_t kept = name->key_len < sizeof name->key ? (size_t)name->key_len : sizeof name->key;
    uint64_t hash = rdb_keyset_hash(&h->s->key, name->key_len, rd_slice(name->key, kept));
    for (uint64_t i = 0; i < LAST && i < h->read; i++) {
        if (h->last[i] == hash) {
            h->twice++;
            break;
        }
    }
    h->last[h->read % LAST] = hash;
}

static void take_field(struct hash *h, const struct field *field)
{
    note_twice(h, &field->as_key);
    const struct record *name = &field->as_key;
    unsigned shape = rdb_recover_shape(name);
    uint64_t bit = (uint64_t)1 << shape % 64;
    bool like_key = h->read >= FAMILIAR_LEAST && is_like_key(h, field);
    h->last_keys = like_key ? h->last_keys + 1 : 0;
    h->last_keys_at = h->last_keys == 1 ? name->start : h->last_keys_at;
    h->n_shapes += !like_key && (h->shapes[shape / 64] & bit) == 0;
    h->shapes[shape / 64] |= like_key ? 0 : bit;
    rdb_recover_name_stats_add(&h->names, name);
    if (name->key_len > h->longest)
        h->longest = name->key_len;
    if (name->end - name->start > h->largest)
        h->largest = name->end - name->start;
    h->read++;
    h->apart = true;
    h->at = name->end;
}

/* The number of fields, and where the first one begins. BROKEN: the head has parts that are not
 * read here. */
static enum rdb_recover_status read_head(struct hash *h)
{
    enum { LEAST_EXPIRY = 8, HEAD_MAX = 32, MS = 1 + 8, SECONDS = 1 + 4, FREQ = 1 + 1 };
    struct scan *s = h->s;
    struct rd_slice w;
    enum rdb_recover_status st;
    h->at = h->broken->start;
    for (;;) {
        uint64_t idle;
        st = bytes_at(s, h->at, HEAD_MAX, &w);
        if (st != RDB_RECOVER_OK)
            return st;
        if (w.ptr[0] == RDB_OP_EXPIRETIME_MS)
            h->at += MS;
        else if (w.ptr[0] == RDB_OP_EXPIRETIME)
            h->at += SECONDS;
        else if (w.ptr[0] == RDB_OP_FREQ)
            h->at += FREQ;
        else if (w.ptr[0] != RDB_OP_IDLE)
            break;
        else if (h->at++, (st = length_at(s, &h->at, &idle)) != RDB_RECOVER_OK)
            return st;
    }
    if (rdb_type_find(s->dialect, s->version, w.ptr[0]) != h->broken->type)
        return RDB_RECOVER_BROKEN;
    h->at++;
    st = string_at(s, &h->at, NULL);
    if (st != RDB_RECOVER_OK)
        return st;
    if (h->broken->type->id == RDB_TYPE_HASH_METADATA)
        h->at += LEAST_EXPIRY;
    return length_at(s, &h->at, &h->n);
}

/* -- the end -- */

static uint64_t fields_left(const struct hash *h)
{
    return h->read + h->lost < h->n ? h->n - h->read - h->lost : 0;
}

/* Whether a record begins at the next field, and others follow it. While fields are left, a string
 * is one of them. `may_be_field`: and so may be what begins like no record. */
static enum rdb_recover_status is_record(struct hash *h, bool may_be_field, bool *ret)
{
    struct rd_slice w;
    *ret = false;
    enum rdb_recover_status st = bytes_at(h->s, h->at, 1, &w);
    if (st != RDB_RECOVER_OK)
        return st == RDB_RECOVER_FAIL ? st : RDB_RECOVER_OK;
    bool type = w.ptr[0] < TYPES_MAX || w.ptr[0] >= RDB_OP_HASH_TEMPLATE;
    if ((w.ptr[0] == 0 && fields_left(h) > 0) || (may_be_field && !type))
        return RDB_RECOVER_OK;
    struct field field;
    uint64_t next;
    st = rdb_recover_leads_on(h->s, h->at, h->broken->db, true, ret, &next);
    if (st != RDB_RECOVER_OK || !*ret || fields_left(h) == 0)
        return st;
    /* Fields after it may be what it leads to. */
    st = field_at(h->s, next, &field);
    *ret = st != RDB_RECOVER_OK || !has_shape(h, &field.as_key);
    return st == RDB_RECOVER_FAIL ? st : RDB_RECOVER_OK;
}

/* Whether enough fields follow each other from `at`, or all that are left and then records. */
static enum rdb_recover_status is_row(const struct hash *h, uint64_t at, bool *ret)
{
    bool names = rdb_recover_names_printable(&h->names) && h->names.n >= FAMILIAR_LEAST;
    unsigned least = names ? ROW : ROW_UNPRINTABLE;
    uint64_t left = fields_left(h);
    *ret = false;
    for (unsigned n = 0; n < least && n < left; n++) {
        struct field field;
        enum rdb_recover_status st = field_at(h->s, at, &field);
        if (st != RDB_RECOVER_OK)
            return st == RDB_RECOVER_FAIL ? st : RDB_RECOVER_OK;
        if (!is_familiar(h, &field))
            return RDB_RECOVER_OK;
        at = field.as_key.end;
    }
    if (left < least)
        return rdb_recover_leads_on(h->s, at, h->broken->db, true, ret, NULL);
    *ret = true;
    return RDB_RECOVER_OK;
}

/* Finds the next field, or the next record, after the damage at h->at. BROKEN: there is none. */
static enum rdb_recover_status pass_damage(struct hash *h)
{
    uint64_t from = h->at;
    uint64_t to = h->s->size - from < SEARCH_MAX ? h->s->size : from + SEARCH_MAX;
    h->lost++;
    h->apart = false;
    for (h->at++; h->at < to; h->at++) {
        bool found = false;
        enum rdb_recover_status st = RDB_RECOVER_OK;
        if (fields_left(h) > 0)
            st = is_row(h, h->at, &found);
        if (st == RDB_RECOVER_OK && !found)
            st = is_record(h, true, &found);
        if (st != RDB_RECOVER_OK)
            return st;
        if (found) {
            h->region += h->at - from;
            return RDB_RECOVER_OK;
        }
    }
    return RDB_RECOVER_BROKEN;
}

/* Whether the hash may end at this field. Damaged places may have held no field, and bytes that
 * were written twice count as fields, so that a few more than announced may follow. */
static bool may_end(const struct hash *h, const struct field *field)
{
    if (is_like_key(h, field))
        return h->lost > 0 || fields_left(h) == 0;
    return fields_left(h) == 0 && !has_shape(h, &field->as_key);
}

/* Whether a field that is much longer than those before is followed by another one, or by a record:
 * a damaged length leads anywhere. */
static enum rdb_recover_status leads_on(const struct hash *h, const struct field *field, bool *ret)
{
    enum { LONGER_LEAST = 256 };
    struct field next;
    uint64_t size = field->as_key.end - field->as_key.start;
    *ret = true;
    if (size <= LONGER * h->largest + LONGER_LEAST)
        return RDB_RECOVER_OK;
    enum rdb_recover_status st = field_at(h->s, field->as_key.end, &next);
    if (st == RDB_RECOVER_FAIL || (st == RDB_RECOVER_OK && is_familiar(h, &next)))
        return st;
    return rdb_recover_leads_on(h->s, field->as_key.end, h->broken->db, true, ret, NULL);
}

/* Where the hash may end, h->until becomes the start of a field that follows others and has an
 * expiry, if there is one: no record begins with such a byte. */
static enum rdb_recover_status look_ahead(struct hash *h)
{
    uint64_t at = h->at;
    for (unsigned n = 0; n < LAST; n++) {
        struct field field;
        struct rd_slice w;
        enum rdb_recover_status st = field_at(h->s, at, &field);
        bool sound = st == RDB_RECOVER_OK && is_familiar(h, &field);
        if (sound)
            st = bytes_at(h->s, at, 1, &w);
        if (!sound || st != RDB_RECOVER_OK)
            return st == RDB_RECOVER_FAIL ? st : RDB_RECOVER_OK;
        if (w.ptr[0] != 0 && w.ptr[0] < TYPES_MAX)
            return RDB_RECOVER_OK;
        if (field.expires)
            h->until = at;
        at = field.as_key.end;
    }
    return RDB_RECOVER_OK;
}

/* Whether the hash ends at this field, or what is read as one. */
static enum rdb_recover_status ends_at(struct hash *h, const struct field *field, bool sound,
                                       bool *ret)
{
    enum rdb_recover_status st = RDB_RECOVER_OK;
    bool over = h->read >= h->n + h->lost + h->twice;
    *ret = h->at > h->until && (over || (sound ? may_end(h, field) : fields_left(h) == 0));
    if (*ret && sound)
        st = look_ahead(h);
    *ret &= h->at > h->until;
    h->by_name = *ret && sound && is_like_key(h, field);
    return st;
}

/* Reads fields up to the end of the hash. OK: it ends at h->at. */
static enum rdb_recover_status walk(struct hash *h)
{
    for (bool ends = false;;) {
        struct field field;
        enum rdb_recover_status st = field_at(h->s, h->at, &field);
        if (st == RDB_RECOVER_FAIL)
            return st;
        bool sound = st == RDB_RECOVER_OK && is_familiar(h, &field);
        if (sound && (st = leads_on(h, &field, &sound)) == RDB_RECOVER_FAIL)
            return st;
        st = is_record(h, sound, &ends);
        if (st != RDB_RECOVER_OK || (ends && !(sound && fields_left(h) == 0)))
            return st;
        st = ends_at(h, &field, sound, &ends);
        if (st != RDB_RECOVER_OK || ends)
            return st;
        if (sound)
            take_field(h, &field);
        else if (h->lost == DAMAGES_MAX)
            return RDB_RECOVER_BROKEN;
        else if ((st = pass_damage(h)) != RDB_RECOVER_OK)
            return st;
    }
}

/* Whether the fields that were not read can have been in the damaged places, or in a field that
 * took them in. */
static bool is_complete(const struct hash *h)
{
    uint64_t least = h->names.least > 0 ? h->names.least : 1;
    uint64_t hidden = h->lost > 0 ? h->region / least + 1 : 0;
    return h->read >= h->n || h->n - h->read <= hidden + h->largest / least;
}

bool rdb_recover_has_fields(const struct record *rec)
{
    return rec->has_key && (rec->type->id == RDB_TYPE_HASH_METADATA ||
                            rec->type->id == RDB_TYPE_HASH_METADATA_PRE_GA);
}

enum rdb_recover_status rdb_recover_fields(struct scan *s, const struct record *broken,
                                           struct resync *ret)
{
    struct hash h = {.s = s, .broken = broken};
    bool leads = false;
    ret->found = false;
    if (!rdb_recover_has_fields(broken))
        return RDB_RECOVER_OK;
    enum rdb_recover_status st = read_head(&h);
    if (st == RDB_RECOVER_OK)
        st = walk(&h);
    /* The number may be damaged, so that the last ones are keys. */
    bool fewer = st == RDB_RECOVER_OK && h.lost == 0 && !is_complete(&h) && h.last_keys > 0;
    h.at = fewer ? h.last_keys_at : h.at;
    h.read -= fewer ? h.last_keys : 0;
    h.by_name |= fewer;
    if (st == RDB_RECOVER_OK)
        st = rdb_recover_leads_on(s, h.at, broken->db, false, &leads, NULL);
    if (st == RDB_RECOVER_FAIL || !leads)
        return st == RDB_RECOVER_FAIL ? st : RDB_RECOVER_OK;
    *ret = (struct resync){.found = true,
                           .at = h.at,
                           .db = broken->db,
                           .value_end = RD_NO_OFFSET,
                           .how = "the end that its number of fields announces",
                           .apart = h.apart,
                           .fields = h.by_name ? fields_left(&h) : 0};
    return RDB_RECOVER_OK;
}
