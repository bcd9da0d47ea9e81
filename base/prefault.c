#include "base/prefault.h"

#include "base/mem.h"
#include "base/os.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    PIECE = 256 << 10,        /* touched at a time: faults of the other thread wait for no more */
    NAP_NS = 500 * 1000,      /* time in which at most a quarter of a step is used */
    NAP_MOST_NS = 4 * NAP_NS, /* while the heap does not grow */
    DEFAULT_PAD = 128 << 10
};

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE                                                                        \
    23 /* since Linux 5.14; older kernels refuse it, and the pages are faulted in later */
#endif

struct rd_prefault {
    pthread_t thread;
    atomic_bool quit;
    uintptr_t page;
};

static uintptr_t heap_end(const struct rd_prefault *ahead)
{
    return (uintptr_t)sbrk(0) & ~(ahead->page - 1);
}

/* Pages that are in use already stay as they are, and what the heap gave back meanwhile is refused.
 */
static void touch(const struct rd_prefault *ahead, uintptr_t from, uintptr_t to)
{
    for (; from < to && !atomic_load_explicit(&ahead->quit, memory_order_relaxed); from += PIECE)
        madvise((void *)from, to - from < PIECE ? to - from : PIECE, MADV_POPULATE_WRITE);
}

static void *helper(void *ptr)
{
    struct rd_prefault *ahead = ptr;
    struct timespec nap = {.tv_nsec = NAP_NS};
    uintptr_t done = heap_end(ahead);
    while (!atomic_load(&ahead->quit)) {
        uintptr_t end = heap_end(ahead);
        if (end != done)
            nap.tv_nsec = NAP_NS;
        else if (nap.tv_nsec < NAP_MOST_NS)
            nap.tv_nsec *= 2;
        touch(ahead, done, end);
        done = end;
        nanosleep(&nap, NULL);
    }
    return NULL;
}

struct rd_prefault *rd_prefault_begin(void)
{
    if (!rd_thread_can_help() || rd_mem_has_hooks())
        return NULL;
    struct rd_prefault *ahead = rd_calloc(1, sizeof *ahead);
    if (ahead == NULL)
        return NULL;
    ahead->page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (!rd_thread_start(&ahead->thread, helper, ahead)) {
        rd_free(ahead);
        return NULL;
    }
    if (!rd_heap_set_growth(RD_PREFAULT_STEP)) {
        rd_prefault_end(ahead);
        return NULL;
    }
    return ahead;
}

void rd_prefault_end(struct rd_prefault *ahead)
{
    if (ahead == NULL)
        return;
    rd_heap_set_growth(DEFAULT_PAD);
    atomic_store(&ahead->quit, true);
    pthread_join(ahead->thread, NULL);
    rd_free(ahead);
    rd_mem_trim();
}
