#include "rdb/enc/pack_read.h"
#include "rdb/write/write.h"

/* A walk over a blob whose entries become elements of the value being written. */
struct walk {
    struct rdb_pack pack;
    const uint8_t *p;
    const uint8_t *end;
    struct rdb_pack_entry entry;
    char digits[2][RD_NUM_I64_MAX];
};

/* A blob can be a sound encoding although a score in it is not a number. */
static bool damaged(struct rdb_writer *w, const struct walk *walk)
{
    return rd_err_set_inner(&w->err, RD_ERR_CORRUPT, w->offset, walk->pack.pos,
                            "a packed encoding does not make up elements");
}

static bool begin(struct rdb_writer *w, struct walk *walk, const struct rdb_event *ev)
{
    struct rd_slice blob = ev->packed.blob;
    rdb_pack_init(&walk->pack, ev->packed.codec, blob.len);
    if (rdb_pack_begin(&walk->pack, blob.ptr, blob.len) != RDB_PACK_ENTRY)
        return damaged(w, walk);
    walk->p = blob.ptr + walk->pack.pos;
    walk->end = blob.ptr + blob.len;
    return true;
}

static bool step(struct walk *walk)
{
    return rdb_pack_step(&walk->pack, &walk->p, walk->end, &walk->entry);
}

/* The text of the entry; the digits of an integer are in one of two buffers. */
static struct rd_slice text_of(struct walk *walk, unsigned which)
{
    const struct rdb_pack_entry *e = &walk->entry;
    if (e->is_int)
        return rd_slice(walk->digits[which], rd_num_put_i64(walk->digits[which], e->num));
    return rd_slice(e->str, (size_t)e->len);
}

static bool unpack_hash_part(struct rdb_writer *w, struct walk *walk, struct rdb_unit *unit)
{
    enum rdb_type_id id = w->source->id;
    if (!step(walk))
        return false;
    unit->value = text_of(walk, 1);
    if (id != RDB_TYPE_HASH_LISTPACK_EX && id != RDB_TYPE_HASH_LISTPACK_EX_PRE_GA)
        return true;
    if (!step(walk) || !walk->entry.is_int)
        return false;
    unit->expire_ms = walk->entry.num == 0 ? RDB_NO_EXPIRE : walk->entry.num;
    return true;
}

static bool unpack_score(struct walk *walk, struct rdb_unit *unit)
{
    if (!step(walk))
        return false;
    if (walk->entry.is_int) {
        unit->score = (double)walk->entry.num;
        return true;
    }
    return rd_num_get_f64(text_of(walk, 1), &unit->score);
}

/* The part of the element after its first text. */
static bool unpack_rest(struct rdb_writer *w, struct walk *walk, struct rdb_unit *unit)
{
    if (w->source->kind == RDB_KIND_HASH)
        return unpack_hash_part(w, walk, unit);
    return w->source->kind != RDB_KIND_ZSET || unpack_score(walk, unit);
}

bool rdb_write_unpack(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct walk walk;
    bool quicklist = w->source->kind == RDB_KIND_LIST && rdb_write_has(w, 7);
    if (!begin(w, &walk, ev))
        return false;
    while (step(&walk)) {
        struct rdb_unit unit = {.text = text_of(&walk, 0), .expire_ms = RDB_NO_EXPIRE};
        if (!unpack_rest(w, &walk, &unit))
            return damaged(w, &walk);
        if (quicklist ? !rdb_list_add(w, unit.text) : !rdb_collection_add(w, &unit))
            return false;
    }
    return true;
}
