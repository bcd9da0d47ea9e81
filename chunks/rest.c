/* What is left of a snapshot of which some chunks cannot be read: the records of all other keys.
 *
 * What is between keys is kept as it is where it can be read. After a gap, the database of the next
 * key is selected again, and the end and the checksum are new. */
#include "base/crc64.h"
#include "base/mem.h"
#include "chunks/assemble_impl.h"
#include "chunks/bytes_impl.h"
#include "chunks/chunks.h"
#include "chunks/parent_impl.h"
#include "chunks/snapshot_impl.h"

struct rest {
    struct chunks_recipe recipe;
    struct chunks_assembler a;
    struct chunks_lost *lost; /* borrowed */
    bool open, begun, ended;
    bool has_end; /* that of the file was given */
    bool gap;     /* the selected database is not known */
    struct rd_buf out, list;
    size_t given; /* bytes of `out` */
    uint64_t crc;
    struct chunks_in pieces; /* of a long item: their ordinals */
    size_t n_pieces;
};

static bool put(struct rest *r, const void *bytes, size_t len, struct rd_err *err)
{
    r->crc = rd_crc64(r->crc, bytes, len);
    return rd_buf_add(&r->out, bytes, len) || rd_err_nomem(err, len);
}

static bool add_piece(struct rest *r, struct rd_buf *to, struct rd_err *err)
{
    const struct chunks_chunk *chunk;
    r->n_pieces--;
    return chunks_long_piece(&r->pieces, &r->recipe, &chunk, err) &&
           chunks_fetch_blob(&r->a.fetch, &chunk->blob, to, err);
}

/* Begins to read the pieces of the item in r->list. */
static bool begin_pieces(struct rest *r, struct rd_err *err)
{
    struct chunks_long l;
    if (!chunks_long_parse(&l, rd_buf_slice(&r->list), err))
        return false;
    r->pieces = chunks_in_of(rd_slice(l.at, l.len));
    r->n_pieces = l.n;
    return true;
}

/* All pieces are read before the first one is given. *ret_whole: none is lost. */
static bool try_pieces(struct rest *r, bool *ret_whole, struct rd_err *err)
{
    struct rd_buf plain = {0};
    struct rd_err why = {0};
    bool ok = begin_pieces(r, &why);
    while (ok && r->n_pieces > 0) {
        rd_buf_reset(&plain);
        ok = add_piece(r, &plain, &why);
    }
    rd_buf_done(&plain);
    *ret_whole = ok;
    if (ok || chunks_fetch_is_lost(&why))
        return ok ? begin_pieces(r, err) : true;
    rd_err_adopt(err, &why);
    return false;
}

static bool put_piece(struct rest *r, struct rd_err *err)
{
    size_t before = r->out.len;
    if (!add_piece(r, &r->out, err))
        return false;
    r->crc = rd_crc64(r->crc, r->out.ptr + before, r->out.len - before);
    return true;
}

static bool lose(struct rest *r)
{
    r->lost->n_records++;
    r->gap = true;
    return true;
}

static bool put_key(struct rest *r, const struct chunks_found *item, struct rd_err *err)
{
    bool is_long = (item->flags & CHUNKS_LONG) != 0, whole = true;
    uint8_t db[CHUNKS_SELECT_MAX];
    if (is_long) {
        rd_buf_reset(&r->list);
        if (!rd_buf_add(&r->list, item->bytes.ptr, item->bytes.len))
            return rd_err_nomem(err, item->bytes.len);
        if (!try_pieces(r, &whole, err))
            return false;
        if (!whole)
            return lose(r);
    }
    if (r->gap && !put(r, db, chunks_select_print(db, item->db), err))
        return false;
    r->gap = false;
    return is_long || put(r, item->bytes.ptr, item->bytes.len, err);
}

/* The end of the snapshot, which is the last item, is kept only if nothing was left out. */
static bool put_between(struct rest *r, const struct chunks_found *item, bool is_last,
                        struct rd_err *err)
{
    size_t end = chunks_head_version(r->recipe.head) < RDB_VERSION_CHECKSUM ? 1 : 9;
    size_t len = item->bytes.len;
    if ((item->flags & CHUNKS_LONG) != 0 ||
        (is_last && (len < end || item->bytes.ptr[len - end] != RDB_OP_EOF)))
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "records cannot be left out of this file: it is not understood");
    r->has_end = is_last && r->lost->n_records == 0;
    return put(r, item->bytes.ptr, is_last && !r->has_end ? len - end : len, err);
}

static bool put_end(struct rest *r, struct rd_err *err)
{
    const uint8_t end = RDB_OP_EOF;
    r->ended = true;
    if (r->has_end)
        return true;
    return put(r, &end, 1, err) && (chunks_head_version(r->recipe.head) < RDB_VERSION_CHECKSUM ||
                                    chunks_put_u64(&r->out, r->crc) || rd_err_nomem(err, 8));
}

static bool put_next(struct rest *r, struct rd_err *err)
{
    struct chunks_found item;
    bool end = false;
    if (r->n_pieces > 0)
        return put_piece(r, err);
    if (!chunks_assemble_next(&r->a, &item, &end, err))
        return false;
    if (end)
        return put_end(r, err);
    bool first = !r->begun;
    r->begun = true;
    if (first && (item.lost || (item.flags & CHUNKS_IS_KEY) != 0) &&
        !put(r, r->recipe.head, sizeof r->recipe.head, err))
        return false;
    if (item.lost)
        return lose(r);
    return (item.flags & CHUNKS_IS_KEY) != 0
               ? put_key(r, &item, err)
               : put_between(r, &item, r->a.next == r->a.places.n, err);
}

static enum rd_src_status rest_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    struct rest *r = impl;
    *ret_len = 0;
    if (r->given == r->out.len) {
        rd_buf_reset(&r->out);
        r->given = 0;
        while (!r->ended && r->out.len < cap)
            if (!put_next(r, err))
                return RD_SRC_FAIL;
    }
    size_t left = r->out.len - r->given, n = cap < left ? cap : left;
    if (n == 0)
        return RD_SRC_END;
    memcpy(buf, r->out.ptr + r->given, n);
    r->given += n;
    *ret_len = n;
    return RD_SRC_OK;
}

static void rest_close(void *impl)
{
    struct rest *r = impl;
    if (r->open)
        chunks_assemble_done(&r->a);
    chunks_recipe_done(&r->recipe);
    rd_buf_done(&r->out);
    rd_buf_done(&r->list);
    rd_free(r);
}

bool chunks_open_rest(struct rd_src **ret, struct archive_repo *repo, const struct archive_set *set,
                      const struct archive_file *file, const struct rd_seal_ring *ring,
                      struct chunks_lost *lost, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = rest_read, .close = rest_close};
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = file->name);
    const struct chunks_codec codec = {
        .target = repo->target, .ring = ring, .sealed = file->sealed};
    struct chunks_rooms rooms = chunks_rooms_usual();
    struct rest *r = rd_calloc(1, sizeof *r);
    if (r == NULL)
        return rd_err_nomem(err, sizeof *r);
    rooms.skips = true;
    r->lost = lost;
    bool ok = archive_set_is_proved(set, ring, err) &&
              chunks_recipe_read(repo, set, file, ring, &r->recipe, err);
    if (ok && (r->recipe.flags & CHUNKS_BOUND) != 0)
        ok = rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                        "records cannot be left out of this file: they may need others");
    r->open = ok;
    if (!ok || !chunks_assemble_open(&r->a, repo, &codec, &r->recipe, &rooms, err)) {
        rest_close(r);
        return false;
    }
    return rd_src_new(ret, &ops, r, &opts, err);
}
