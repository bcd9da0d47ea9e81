#include "backup/stream_sum.h"

#include <string.h>

#include "base/endian.h"

bool backup_stream_sum_begin(struct backup_stream_summer *ret, struct rd_err *err)
{
    *ret = (struct backup_stream_summer){.digest = NULL};
    return rd_digest_new(&ret->digest, RD_DIGEST_SHA256, err);
}

bool backup_stream_sum_add(struct backup_stream_summer *s, const struct repl_capture_event *ev,
                           struct rd_err *err)
{
    uint8_t head[16];
    s->bytes += ev->bytes.len;
    if (ev->kind != REPL_CAPTURE_COMMAND)
        return true; /* blanks, which may be read in other pieces */
    rd_put_le64(head, ev->offset);
    rd_put_le64(head + 8, (uint64_t)ev->time_us);
    return rd_digest_update(s->digest, head, sizeof head, err) &&
           rd_digest_update(s->digest, ev->bytes.ptr, ev->bytes.len, err);
}

bool backup_stream_sum_end(struct backup_stream_summer *s, struct backup_stream_sum *ret,
                           struct rd_err *err)
{
    ret->bytes = s->bytes;
    return rd_digest_end(s->digest, ret->sha256, err);
}

void backup_stream_sum_drop(struct backup_stream_summer *s)
{
    rd_digest_free(s->digest);
    s->digest = NULL;
}

bool backup_stream_sum_segment(struct segment_in *in, uint64_t start, uint64_t end,
                               struct backup_stream_sum *ret, struct rd_err *err)
{
    struct backup_stream_summer s;
    struct repl_capture_event ev;
    bool ok = backup_stream_sum_begin(&s, err);
    while (ok && segment_in_next(in, &ev, err))
        if (ev.offset >= start && ev.offset < end)
            ok = backup_stream_sum_add(&s, &ev, err);
    ok = ok && !in->failed && backup_stream_sum_end(&s, ret, err);
    backup_stream_sum_drop(&s);
    return ok;
}

bool backup_stream_sum_same(const struct backup_stream_sum *a, const struct backup_stream_sum *b)
{
    return a->bytes == b->bytes && memcmp(a->sha256, b->sha256, sizeof a->sha256) == 0;
}

/* Whether the store gives its bytes, which then are not a segment with this name. */
static enum archive_store_proof judge_failure(struct archive_repo *repo,
                                              const struct archive_segment *segment,
                                              const struct rd_seal_ring *ring,
                                              const struct rd_err *why, struct rd_err *err)
{
    const struct archive_store_sum none = {.bytes = 0};
    enum archive_store_proof proof = archive_segment_prove(repo, segment, ring, &none, err);
    if (proof == ARCHIVE_STORE_OTHER)
        proof = why->code == RD_ERR_CORRUPT || why->code == RD_ERR_CHECKSUM ? ARCHIVE_STORE_OPAQUE
                                                                            : ARCHIVE_STORE_FAILED;
    if (err == NULL || err->code == RD_ERR_OK)
        rd_err_adopt(err, why);
    return proof;
}

enum archive_store_proof backup_stream_sum_stored(struct archive_repo *repo,
                                                  const struct archive_segment *segment,
                                                  const struct rd_seal_ring *ring, uint64_t start,
                                                  uint64_t end, struct backup_stream_sum *ret,
                                                  struct rd_err *err)
{
    struct archive_object object;
    struct segment_in in;
    struct rd_src *src;
    struct rd_err why = {0};
    char name[ARCHIVE_NAME_MAX];
    if (!archive_segment_name(name, repo, segment, err) ||
        !repo->store->ops->stat(repo->store, name, &object, err))
        return ARCHIVE_STORE_FAILED;
    if (!object.there)
        return ARCHIVE_STORE_ABSENT;
    bool ok = archive_segment_open(repo, segment, ring, &src, &why) &&
              segment_in_open(&in, src, segment->number, segment->start, &why);
    if (ok) {
        ok = segment_in_verify(&in, &why) && archive_segment_matches(segment, &in.header, &why) &&
             backup_stream_sum_segment(&in, start, end, ret, &why);
        segment_in_close(&in);
    }
    return ok ? ARCHIVE_STORE_SAME : judge_failure(repo, segment, ring, &why, err);
}
