#include "backup/ahead.h"

static bool object(void *ctx, size_t i, char ret_name[ARCHIVE_NAME_MAX], uint64_t *ret_size)
{
    const struct backup_ahead *ahead = ctx;
    const struct archive_segment *segment = &ahead->stream->segments[ahead->first + i];
    *ret_size = segment->bytes;
    return archive_segment_name(ret_name, &ahead->repo, segment, NULL);
}

bool backup_ahead_begin(struct backup_ahead *ret, const struct archive_repo *repo,
                        const struct archive_stream *stream, size_t first, size_t n,
                        struct rd_err *err)
{
    *ret = (struct backup_ahead){.repo = *repo, .stream = stream, .first = first};
    if (repo->parallel == NULL || n < 2)
        return true;
    const struct archive_prefetch_opts opts = {
        .parallel = repo->parallel, .object = object, .ctx = ret, .n = n};
    if (!archive_prefetch_open(&ret->store, repo->store, &opts, err))
        return false;
    ret->repo.store = ret->store;
    return true;
}

void backup_ahead_end(struct backup_ahead *ahead)
{
    archive_store_close(ahead->store);
    ahead->store = NULL;
}
