#include "chunks/pack_impl.h"

#include "base/crc64.h"
#include "base/mem.h"
#include "chunks/bytes_impl.h"

#include <stdio.h>

static const char magic[] = "RDPACK1\n", end_magic[] = "RDPCKEND";

bool chunks_pack_object(char ret[ARCHIVE_NAME_MAX], const char *target, const char *name,
                        struct rd_err *err)
{
    int len = snprintf(ret, ARCHIVE_NAME_MAX, "%s/chunks/%s.pack", target, name);
    return (len > 0 && len < ARCHIVE_NAME_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

/* ---- writing ---- */

static bool write_out(struct chunks_packer *p, const void *ptr, size_t len, struct rd_err *err)
{
    p->offset += len;
    if (rd_sink_write(p->sink, ptr, len))
        return true;
    rd_err_adopt(err, rd_sink_err(p->sink));
    return false;
}

static bool open_pack(struct chunks_packer *p, struct rd_err *err)
{
    char object[ARCHIVE_NAME_MAX];
    snprintf(p->name, sizeof p->name, "%.48s-%04u", p->prefix, ++p->number);
    p->offset = 0;
    p->n_blobs = 0;
    rd_buf_reset(&p->directory);
    rd_buf_reset(&p->parity);
    return archive_repo_check_lock(p->repo, err) &&
           chunks_pack_object(object, p->repo->target, p->name, err) &&
           archive_store_put(p->repo->store, object, &p->sink, err) &&
           write_out(p, magic, CHUNKS_PACK_MAGIC, err);
}

static bool add_parity(struct rd_buf *parity, struct rd_slice bytes, struct rd_err *err)
{
    if (parity->len < bytes.len) {
        size_t more = bytes.len - parity->len;
        if (!rd_buf_reserve(parity, more))
            return rd_err_nomem(err, more);
        memset(parity->ptr + parity->len, 0, more);
        parity->len = bytes.len;
    }
    for (size_t i = 0; i < bytes.len; i++)
        parity->ptr[i] ^= bytes.ptr[i];
    return true;
}

bool chunks_packer_add(struct chunks_packer *p, struct chunks_blob *blob, struct rd_slice stored,
                       struct rd_err *err)
{
    if (p->sink == NULL && !open_pack(p, err))
        return false;
    blob->offset = p->offset;
    blob->stored = (uint32_t)stored.len;
    struct rd_buf *d = &p->directory;
    bool ok = (rd_buf_add_byte(d, blob->kind) && rd_buf_add(d, blob->name, CHUNKS_NAME) &&
               chunks_put(d, blob->stored) && chunks_put(d, blob->raw)) ||
              rd_err_nomem(err, CHUNKS_NAME);
    p->n_blobs++;
    return ok && add_parity(&p->parity, stored, err) && write_out(p, stored.ptr, stored.len, err) &&
           (p->offset < CHUNKS_PACK_BYTES || chunks_packer_end(p, err));
}

/* The directory is sealed: it names what the pack has. */
static bool write_end(struct chunks_packer *p, struct rd_err *err)
{
    struct rd_buf plain = {0}, sealed = {0};
    uint64_t at = p->offset + p->parity.len;
    bool ok = (chunks_put(&plain, p->n_blobs) && chunks_put(&plain, p->parity.len) &&
               rd_buf_add(&plain, p->directory.ptr, p->directory.len) &&
               chunks_put_u64(&plain, rd_crc64(0, plain.ptr, plain.len))) ||
              rd_err_nomem(err, p->directory.len);
    ok = ok && chunks_seal(p->codec, p->name, rd_buf_slice(&plain), &sealed, err) &&
         write_out(p, p->parity.ptr, p->parity.len, err);
    size_t len = sealed.len;
    ok = ok && ((chunks_put_u64(&sealed, at) && chunks_put_u64(&sealed, len) &&
                 rd_buf_add(&sealed, end_magic, 8)) ||
                rd_err_nomem(err, CHUNKS_PACK_END));
    ok = ok && write_out(p, sealed.ptr, sealed.len, err);
    rd_buf_done(&plain);
    rd_buf_done(&sealed);
    return ok;
}

bool chunks_packer_end(struct chunks_packer *p, struct rd_err *err)
{
    if (p->sink == NULL)
        return true;
    bool ok = write_end(p, err) && archive_repo_check_lock(p->repo, err);
    struct rd_sink *sink = p->sink;
    p->sink = NULL;
    if (!ok) {
        rd_sink_abort(sink);
        return false;
    }
    p->bytes += p->offset;
    return rd_sink_close(sink, err) &&
           (p->ended == NULL || p->ended(p->ctx, p->name, p->offset, err));
}

void chunks_packer_done(struct chunks_packer *p)
{
    rd_sink_abort(p->sink);
    p->sink = NULL;
    rd_buf_done(&p->directory);
    rd_buf_done(&p->parity);
}

/* ---- reading ---- */

void chunks_directory_done(struct chunks_directory *d)
{
    rd_free(d->blobs);
    *d = (struct chunks_directory){0};
}

static bool damaged(struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the directory of the pack is damaged");
}

bool chunks_directory_parse(struct chunks_directory *d, struct rd_slice plain, uint64_t at,
                            struct rd_err *err)
{
    if (plain.len < 8)
        return damaged(err);
    plain.len -= 8;
    struct chunks_in in = chunks_in_of(plain),
                     sum = chunks_in_of(rd_slice(plain.ptr + plain.len, 8));
    if (chunks_get_u64(&sum) != rd_crc64(0, plain.ptr, plain.len))
        return damaged(err);
    size_t n = chunks_get_count(&in, CHUNKS_NAME);
    uint64_t offset = CHUNKS_PACK_MAGIC;
    d->parity_len = (uint32_t)chunks_get_max(&in, CHUNKS_STORED_MAX);
    d->blobs = rd_calloc(n + 1, sizeof *d->blobs);
    if (d->blobs == NULL)
        return rd_err_nomem(err, n);
    for (; d->n < n && !in.failed; d->n++) {
        struct chunks_blob *blob = &d->blobs[d->n];
        const uint8_t *kind = chunks_get_bytes(&in, 1);
        const uint8_t *name = chunks_get_bytes(&in, CHUNKS_NAME);
        if (name == NULL || *kind >= CHUNKS_KINDS)
            return damaged(err);
        blob->kind = *kind;
        memcpy(blob->name, name, CHUNKS_NAME);
        blob->stored = (uint32_t)chunks_get_max(&in, CHUNKS_STORED_MAX);
        blob->raw = (uint32_t)chunks_get_max(&in, CHUNKS_RAW_MAX);
        blob->offset = offset;
        offset += blob->stored;
    }
    d->parity = offset;
    return (!in.failed && in.at == in.end && offset + d->parity_len == at) || damaged(err);
}

bool chunks_directory_read(struct archive_store *store, struct chunks_codec *codec,
                           const char *name, uint64_t bytes, struct chunks_directory *ret,
                           struct rd_err *err)
{
    char object[ARCHIVE_NAME_MAX];
    struct rd_buf end = {0}, sealed = {0}, plain = {0};
    struct chunks_directory d = {0};
    if (bytes < CHUNKS_PACK_MAGIC + CHUNKS_PACK_END)
        return damaged(err);
    bool ok =
        chunks_pack_object(object, codec->target, name, err) &&
        archive_store_range(store, object, bytes - CHUNKS_PACK_END, CHUNKS_PACK_END, &end, err);
    struct chunks_in in = chunks_in_of(rd_buf_slice(&end));
    uint64_t at = chunks_get_u64(&in), len = chunks_get_u64(&in);
    ok = ok && ((memcmp(in.at, end_magic, 8) == 0 && at >= CHUNKS_PACK_MAGIC && len > 0 &&
                 len < CHUNKS_STORED_MAX && at < bytes && at + len + CHUNKS_PACK_END == bytes) ||
                damaged(err));
    ok = ok && archive_store_range(store, object, at, (size_t)len, &sealed, err);
    struct rd_err why = {0};
    codec->sealed = ok && rd_seal_is(rd_buf_slice(&sealed));
    if (ok && !chunks_unseal(codec, name, rd_buf_slice(&sealed), &plain, &why))
        ok = rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET,
                        "the directory of the pack is damaged: %s", why.text);
    ok = ok && chunks_directory_parse(&d, rd_buf_slice(&plain), at, err);
    rd_buf_done(&end);
    rd_buf_done(&sealed);
    rd_buf_done(&plain);
    if (ok)
        *ret = d;
    else
        chunks_directory_done(&d);
    return ok;
}

bool chunks_directory_recover(struct archive_store *store, const char *target, const char *name,
                              const struct chunks_directory *d, size_t i, struct rd_buf *ret,
                              struct rd_err *err)
{
    char object[ARCHIVE_NAME_MAX];
    struct rd_buf sum = {0}, bytes = {0};
    bool ok = chunks_pack_object(object, target, name, err) && d->parity_len > 0 &&
              archive_store_range(store, object, d->parity, d->parity_len, &sum, err);
    for (size_t j = 0; ok && j < d->n; j++) {
        if (j == i)
            continue;
        rd_buf_reset(&bytes);
        ok = archive_store_range(store, object, d->blobs[j].offset, d->blobs[j].stored, &bytes,
                                 err) &&
             add_parity(&sum, rd_buf_slice(&bytes), err);
    }
    ok = ok && d->blobs[i].stored <= sum.len &&
         (rd_buf_add(ret, sum.ptr, d->blobs[i].stored) || rd_err_nomem(err, sum.len));
    rd_buf_done(&sum);
    rd_buf_done(&bytes);
    return ok || rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the parity cannot be read");
}
