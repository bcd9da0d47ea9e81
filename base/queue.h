/* queue.h - blocks of any size, taken in the order in which they were added.
 *
 *     struct rd_queue queue = {0};
 *     struct job *job = rd_queue_add(&queue, sizeof *job + name.len);
 *     if (job != NULL) {
 *         uint8_t *at = (uint8_t *)(job + 1);
 *         job->name = rd_queue_keep(&at, name);
 *     }
 *     while ((job = rd_queue_take(&queue)) != NULL)
 *         ... *job is valid until the next call of rd_queue_take() ...
 *     rd_queue_done(&queue);
 *
 * The actions of cluster/ and sentinel/ wait in such queues, each in one block with the texts that
 * it points to.
 *
 * Threads: one at a time for each queue. Ownership: the queue owns its blocks. Cost: one allocation
 * for each block; adding and taking take constant time.
 */
#ifndef BASE_QUEUE_H
#define BASE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct rd_queue_block;

struct rd_queue {
    struct rd_queue_block *first, *last;
    struct rd_queue_block *given; /* the last one that was taken */
};

/* Adds a zeroed block, aligned for every type. NULL: out of memory. */
void *rd_queue_add(struct rd_queue *queue, size_t size);

/* Takes the first block; the one before it is freed. NULL: there is none. */
void *rd_queue_take(struct rd_queue *queue);

/* Frees all blocks. */
void rd_queue_done(struct rd_queue *queue);

/* Copies bytes to *at, a place in a block with enough room, and moves *at behind the copy. Returns
 * the copy. */
struct rd_slice rd_queue_keep(uint8_t **at, struct rd_slice bytes);

/* The same for a text with its terminator, which takes rd_queue_text_size() bytes. NULL stays NULL
 * and takes none. */
const char *rd_queue_keep_text(uint8_t **at, const char *text);
size_t rd_queue_text_size(const char *text);

#endif
