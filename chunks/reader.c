#include "archive/pipe.h"
#include "base/mem.h"
#include "base/read_ahead.h"
#include "base/thread.h"
#include "chunks/assemble_impl.h"
#include "chunks/bytes_impl.h"
#include "chunks/chunks.h"
#include "chunks/parent_impl.h"

struct reader {
    struct chunks_recipe recipe;
    struct chunks_assembler a;
    bool open;
    struct rd_slice bytes; /* of the item, or of the piece */
    struct chunks_long pieces;
    struct chunks_in ordinals;
    struct rd_buf list, piece;
};

static bool next_piece(struct reader *r, struct rd_err *err)
{
    const struct chunks_chunk *chunk;
    if (!chunks_long_piece(&r->ordinals, &r->recipe, &chunk, err))
        return false;
    rd_buf_reset(&r->piece);
    r->pieces.n--;
    if (!chunks_fetch_blob(&r->a.fetch, &chunk->blob, &r->piece, err))
        return false;
    r->bytes = rd_buf_slice(&r->piece);
    return true;
}

/* The list of the pieces is copied: other chunks may take the place of its chunk. */
static bool begin_long(struct reader *r, struct rd_slice item, struct rd_err *err)
{
    rd_buf_reset(&r->list);
    if (!rd_buf_add(&r->list, item.ptr, item.len))
        return rd_err_nomem(err, item.len);
    if (!chunks_long_parse(&r->pieces, rd_buf_slice(&r->list), err) ||
        !chunks_assemble_ahead(&r->a, rd_buf_slice(&r->list), err))
        return false;
    r->ordinals = chunks_in_of(rd_slice(r->pieces.at, r->pieces.len));
    return true;
}

static enum rd_src_status reader_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                      struct rd_err *err)
{
    struct reader *r = impl;
    size_t len = 0;
    *ret_len = 0;
    while (len < cap) {
        struct chunks_found item;
        bool end = false;
        if (r->bytes.len > 0) {
            size_t n = r->bytes.len < cap - len ? r->bytes.len : cap - len;
            memcpy(buf + len, r->bytes.ptr, n);
            r->bytes.ptr += n;
            r->bytes.len -= n;
            len += n;
            continue;
        }
        if (r->pieces.n > 0) {
            if (!next_piece(r, err))
                return RD_SRC_FAIL;
            continue;
        }
        if (!chunks_assemble_run(&r->a, &item, &end, err))
            return RD_SRC_FAIL;
        if (end)
            break;
        if ((item.flags & CHUNKS_LONG) == 0)
            r->bytes = item.bytes;
        else if (!begin_long(r, item.bytes, err))
            return RD_SRC_FAIL;
    }
    *ret_len = len;
    return len > 0 ? RD_SRC_OK : RD_SRC_END;
}

static void reader_close(void *impl)
{
    struct reader *r = impl;
    if (r->open)
        chunks_assemble_done(&r->a);
    chunks_recipe_done(&r->recipe);
    rd_buf_done(&r->list);
    rd_buf_done(&r->piece);
    rd_free(r);
}

bool chunks_open_src(struct rd_src **ret, struct archive_repo *repo, const struct archive_set *set,
                     const struct archive_file *file, const struct rd_seal_ring *ring,
                     struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = reader_read, .close = reader_close};
    const struct rd_src_opts opts =
        RD_SRC_OPTS(.origin = file->name, .total = file->plain.bytes, .sized = true);
    const struct chunks_codec codec = {
        .target = repo->target, .ring = ring, .sealed = file->sealed, .whole = true};
    const struct chunks_rooms rooms = chunks_rooms_usual();
    struct reader *r = rd_calloc(1, sizeof *r);
    struct rd_src *src;
    if (r == NULL)
        return rd_err_nomem(err, sizeof *r);
    bool ok = chunks_recipe_read(repo, set, file, ring, &r->recipe, err);
    r->open = ok;
    if (!ok || !chunks_assemble_open(&r->a, repo, &codec, &r->recipe, &rooms, err)) {
        reader_close(r);
        return false;
    }
    /* The thread uses the store, as the caller may. */
    bool apart = repo->store->ops->shared && rd_thread_can_help();
    if (!(apart ? rd_read_ahead_open(&src, &ops, r, &opts, err)
                : rd_src_new(&src, &ops, r, &opts, err)))
        return false;
    if (archive_sums_open_src(ret, src, &file->plain, err))
        return true;
    rd_src_close(src);
    return false;
}
