#include "base/queue.h"

#include <stdalign.h>
#include <string.h>

#include "base/mem.h"

struct rd_queue_block {
    struct rd_queue_block *next;
    alignas(max_align_t) uint8_t bytes[];
};

void *rd_queue_add(struct rd_queue *queue, size_t size)
{
    struct rd_queue_block *block = rd_calloc(1, sizeof *block + size);
    if (block == NULL)
        return NULL;
    if (queue->last != NULL)
        queue->last->next = block;
    else
        queue->first = block;
    queue->last = block;
    return block->bytes;
}

void *rd_queue_take(struct rd_queue *queue)
{
    struct rd_queue_block *block = queue->first;
    rd_free(queue->given);
    queue->given = block;
    if (block == NULL)
        return NULL;
    queue->first = block->next;
    if (queue->first == NULL)
        queue->last = NULL;
    return block->bytes;
}

void rd_queue_done(struct rd_queue *queue)
{
    while (rd_queue_take(queue) != NULL)
        continue;
}

struct rd_slice rd_queue_keep(uint8_t **at, struct rd_slice bytes)
{
    uint8_t *kept = *at;
    if (bytes.len > 0)
        memcpy(kept, bytes.ptr, bytes.len);
    *at += bytes.len;
    return rd_slice(kept, bytes.len);
}

const char *rd_queue_keep_text(uint8_t **at, const char *text)
{
    if (text == NULL)
        return NULL;
    return (const char *)rd_queue_keep(at, rd_slice(text, rd_queue_text_size(text))).ptr;
}

size_t rd_queue_text_size(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}
