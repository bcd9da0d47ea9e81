/* azure_put.c - objects that are put, whole or in blocks. */
#include "archive/azure_put.h"

#include "archive/azure_request.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

/* BLOCKS_PER_PART: Azure allows five times as many blocks as S3 parts, so they grow later. */
enum { BLOCKS_MAX = 50000, BLOCKS_PER_PART = 5, BLOCK_ID = 33 };

struct put {
    struct archive_azure *s;
    char name[ARCHIVE_NAME_MAX];
    uint64_t upload; /* its number */
    struct rd_buf part;
    size_t n_blocks;
};

/* The names of blocks are base64, and all of one length; hexadecimal digits are both. Two writers
 * of one object do not replace the blocks of each other: no other upload has these names. */
static void block_id(const struct put *put, size_t n, char ret[BLOCK_ID])
{
    snprintf(ret, BLOCK_ID, "%016" PRIx64 "%08" PRIx32 "%08" PRIx32, put->s->upload,
             (uint32_t)put->upload, (uint32_t)n);
}

static bool send_block(struct put *put, struct rd_err *err)
{
    char url[ARCHIVE_AZURE_URL_MAX], id[BLOCK_ID], query[64];
    struct rd_buf answer = {0};
    struct archive_azure_request r = {.method = "PUT",
                                      .url = url,
                                      .body = rd_buf_slice(&put->part),
                                      .out = &answer,
                                      .max = ARCHIVE_AZURE_ANSWER_MAX};
    if (put->n_blocks == BLOCKS_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "an object has more than %d blocks",
                          BLOCKS_MAX);
    block_id(put, put->n_blocks, id);
    snprintf(query, sizeof query, "blockid=%s&comp=block", id);
    bool ok = archive_azure_url(put->s, put->name, query, url, sizeof url, err) &&
              archive_azure_perform(put->s, &r, err);
    if (ok && !(archive_azure_is(&r, 201) && archive_web_is_blank(archive_azure_body(&r))))
        ok = archive_azure_fail(put->s, &r, err);
    rd_buf_done(&answer);
    if (ok)
        put->n_blocks++;
    rd_buf_reset(&put->part);
    return ok;
}

static bool put_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct put *put = impl;
    while (len > 0) {
        size_t size = archive_remote_part_size(put->s->part_size, put->n_blocks / BLOCKS_PER_PART);
        if (put->part.len >= size && !send_block(put, err))
            return false;
        size = archive_remote_part_size(put->s->part_size, put->n_blocks / BLOCKS_PER_PART);
        if (!archive_remote_fill(&put->part, size, &ptr, &len, err))
            return false;
    }
    return true;
}

/* What the answer to the last request of an upload says about the object. Everything but the
 * acknowledgement of the service, and its own refusal of the only try, leaves it open. */
static bool judge(const struct put *put, const struct archive_azure_request *r, struct rd_err *err)
{
    if (archive_azure_is(r, 201) && r->head.etag[0] != '\0' &&
        archive_web_is_blank(archive_azure_body(r)))
        return true;
    if (archive_azure_refused(r, 409, "BlobAlreadyExists") ||
        archive_azure_refused(r, 412, "ConditionNotMet"))
        return archive_store_set_exists(err, put->name);
    archive_azure_fail(put->s, r, err);
    bool refusal = r->head.has_id && r->head.code[0] != '\0' && r->status >= 400 &&
                   r->status < 500 && !archive_web_passes(r->status, CURLE_OK);
    return refusal && !r->lost ? false : archive_store_set_unknown(err);
}

static bool add_blocks(const struct put *put, struct rd_buf *xml, struct rd_err *err)
{
    char id[BLOCK_ID];
    bool ok = rd_buf_printf(xml, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<BlockList>");
    for (size_t i = 0; ok && i < put->n_blocks; i++) {
        block_id(put, i, id);
        ok = rd_buf_printf(xml, "<Uncommitted>%s</Uncommitted>", id);
    }
    return (ok && rd_buf_printf(xml, "</BlockList>")) || rd_err_nomem(err, xml->len);
}

/* Makes the object, of these bytes or of the blocks that they name. */
static bool make(struct put *put, struct rd_slice body, bool whole, struct rd_err *err)
{
    char url[ARCHIVE_AZURE_URL_MAX];
    struct rd_buf answer = {0};
    struct archive_azure_request r = {.method = "PUT",
                                      .url = url,
                                      .body = body,
                                      .header = "If-None-Match: *",
                                      .blob = whole,
                                      .out = &answer,
                                      .max = ARCHIVE_AZURE_ANSWER_MAX};
    bool ok =
        archive_azure_url(put->s, put->name, whole ? NULL : "comp=blocklist", url, sizeof url, err);
    if (ok) {
        ok = archive_azure_perform(put->s, &r, err) || archive_store_set_unknown(err);
        ok = ok && judge(put, &r, err);
    }
    rd_buf_done(&answer);
    return ok;
}

static bool put_close(void *impl, bool commit, struct rd_err *err)
{
    struct put *put = impl;
    struct rd_buf xml = {0};
    bool ok = true;
    if (commit && put->n_blocks == 0)
        ok = make(put, rd_buf_slice(&put->part), true, err);
    else if (commit)
        ok = (put->part.len == 0 || send_block(put, err)) && add_blocks(put, &xml, err) &&
             make(put, rd_buf_slice(&xml), false, err);
    rd_buf_done(&xml);
    rd_buf_done(&put->part);
    rd_free(put);
    return ok;
}

bool archive_azure_put(struct archive_store *store, const char *name, struct rd_sink **ret,
                       struct rd_err *err)
{
    static const struct rd_sink_ops ops = {put_write, NULL, put_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = name);
    struct put *put = rd_calloc(1, sizeof *put);
    if (put == NULL)
        return rd_err_nomem(err, sizeof *put);
    put->s = archive_azure_of(store);
    put->upload = put->s->n_uploads++;
    snprintf(put->name, sizeof put->name, "%s", name);
    return rd_sink_new(ret, &ops, put, &opts, err);
}
