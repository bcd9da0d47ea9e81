/* duplicate.c - compares the bytes of two members whose hashes are equal.
 *
 * Members of a packed string that is whole in memory are compared in place. For all others the
 * value is read again from a second source. If the input cannot be read twice, the hashes decide,
 * and the note says so.
 */
#include "rdb/again.h"
#include "rdb/read/reader_impl.h"

/* The number of values with hashes that are equal by chance, after which duplicates are no longer
 * searched. With a random key, not even one occurs. */
enum { CHANCES_MAX = 16 };

static struct rd_slice text_of(const struct rdb_pack_entry *e, char tmp[RD_NUM_I64_MAX])
{
    return e->is_int ? rd_slice(tmp, rd_num_put_i64(tmp, e->num))
                     : rd_slice(e->str, (size_t)e->len);
}

static bool is_duplicate_in_pack(const struct rdb_reader *r, struct rd_slice name, unsigned parts)
{
    const struct rdb_read_walk *w = &r->walk;
    const uint8_t *end = r->feed.end;
    const uint8_t *p = end - r->feed.total;
    struct rdb_pack pack;
    struct rdb_pack_entry e;
    char tmp[RD_NUM_I64_MAX];
    rdb_pack_init(&pack, w->pack.codec, r->feed.total);
    if (rdb_pack_begin(&pack, p, (size_t)r->feed.total) != RDB_PACK_ENTRY)
        return true;
    p += pack.pos;
    while (pack.n < w->pack.n) {
        bool member = pack.n % parts == 0;
        if (!rdb_pack_step(&pack, &p, end, &e))
            return true;
        if (member && rd_slice_eq(text_of(&e, tmp), name))
            return true;
    }
    return false;
}

/* Whether the event is a name of the searched kind. A string in pieces cannot be compared. */
static bool name_in(const struct rdb_event *ev, enum rdb_event_kind kind, char *tmp,
                    struct rd_slice *ret)
{
    if (ev->kind != kind)
        return false;
    if (kind == RDB_PACKED) {
        rd_put_be64((uint8_t *)tmp, ev->packed.node.ms);
        rd_put_be64((uint8_t *)tmp + 8, ev->packed.node.seq);
        *ret = rd_slice(tmp, 16);
    } else if (kind == RDB_GROUP)
        *ret = ev->group.name;
    else if (kind == RDB_CONSUMER)
        *ret = ev->consumer.name;
    else
        *ret = rdb_string_bytes(&ev->elem.str, tmp);
    return kind != RDB_ELEM ||
           ((ev->elem.role == RDB_ROLE_MEMBER || ev->elem.role == RDB_ROLE_FIELD) &&
            !ev->elem.str.more && (ev->elem.str.is_int || ev->elem.str.first));
}

static bool is_before(const struct rdb_event *ev, uint64_t off, uint64_t inner)
{
    return ev->offset < off || (ev->offset == off && inner != RD_NO_OFFSET && ev->inner < inner);
}

/* Reads the value's elements up to the one at off. */
static enum rdb_duplicate search(struct rdb_reader *again, enum rdb_event_kind kind,
                                 struct rd_slice name, uint64_t off, uint64_t inner)
{
    struct rdb_event ev;
    struct rd_slice other;
    char tmp[RD_NUM_I64_MAX];
    bool found = false;
    enum rdb_status st;
    while ((st = rdb_reader_next(again, &ev)) == RDB_EVENT && is_before(&ev, off, inner)) {
        if (ev.kind == RDB_GROUP && kind == RDB_CONSUMER)
            found = false;
        found |= name_in(&ev, kind, tmp, &other) && rd_slice_eq(other, name);
    }
    /* Nodes longer than a piece arrive as entries. */
    if (st != RDB_EVENT || (kind == RDB_PACKED && !found))
        return RDB_DUPLICATE_UNKNOWN;
    return found ? RDB_DUPLICATE_SAME : RDB_DUPLICATE_OTHER;
}

static enum rdb_duplicate read_again(struct rdb_reader *r, enum rdb_event_kind kind,
                                     struct rd_slice name, uint64_t off, uint64_t inner)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = kind == RDB_PACKED ? RDB_DETAIL_PACKED : RDB_DETAIL_ELEMENTS,
                        .no_sum = true);
    const struct rd_src *from = r->opts.again != NULL ? r->opts.again : r->src;
    struct rd_err err = {0};
    struct rd_src *src = NULL;
    struct rdb_reader *again = NULL;
    enum rdb_duplicate result = RDB_DUPLICATE_UNKNOWN;
    if (rdb_again(from, &src, &err) && rd_src_seek(src, r->value_off, &err) &&
        rdb_reader_new_records(&again, src, r->dialect, r->version, &opts, &err)) {
        again->type = again->form = r->type;
        again->detail = opts.detail;
        again->step = rdb_value_begin;
        result = search(again, kind, name, off, inner);
        if (result == RDB_DUPLICATE_UNKNOWN)
            rd_err_adopt(&err, rdb_reader_err(again));
    }
    /* The next call returns it. */
    if (err.code == RD_ERR_MEMORY || err.code == RD_ERR_IO)
        rd_err_adopt(&r->err, &err);
    rdb_reader_free(again);
    rd_src_close(src);
    return result;
}

/* Records the result of a comparison. True: it is to be reported. */
static bool judge(struct rdb_reader *r, enum rdb_duplicate result, const char **ret_text)
{
    struct unique *u = &r->unique;
    if (result == RDB_DUPLICATE_OTHER) {
        u->full |= ++u->chances >= CHANCES_MAX;
        return false;
    }
    if (result == RDB_DUPLICATE_SAME)
        u->proved = true;
    else
        *ret_text = rdb_duplicate_unproved;
    return true;
}

const char rdb_duplicate_unproved[] =
    "name with the keyed hash of an earlier one; the input cannot be read twice to compare them";

bool rdb_duplicate_packed(struct rdb_reader *r, const struct rdb_pack_entry *e, unsigned parts,
                          const char **ret_text)
{
    const struct rdb_read_walk *w = &r->walk;
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice name = text_of(e, tmp);
    if (r->unique.proved)
        return true;
    if (w->whole)
        return judge(
            r, is_duplicate_in_pack(r, name, parts) ? RDB_DUPLICATE_SAME : RDB_DUPLICATE_OTHER,
            ret_text);
    return judge(r, read_again(r, RDB_ELEM, name, r->feed.off, w->pack.pos), ret_text);
}

bool rdb_duplicate_named(struct rdb_reader *r, enum rdb_event_kind kind, struct rd_slice name,
                         uint64_t off, const char **ret_text)
{
    if (r->unique.proved)
        return true;
    return judge(r, read_again(r, kind, name, off, RD_NO_OFFSET), ret_text);
}
