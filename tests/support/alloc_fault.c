#include "tests/support/alloc_fault.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

/* Stands before each allocation; its size keeps what follows aligned for every type. */
union head {
    size_t size;
    max_align_t align;
};

static struct alloc_fault_result state;
static size_t fail_at;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of state */

static bool must_fail(size_t size)
{
    pthread_mutex_lock(&lock);
    state.n_allocs++;
    if (size > state.largest)
        state.largest = size;
    bool fails = state.n_allocs == fail_at;
    state.failed |= fails;
    pthread_mutex_unlock(&lock);
    return fails || size > PTRDIFF_MAX - sizeof(union head);
}

static void count_in(size_t size)
{
    pthread_mutex_lock(&lock);
    state.live++;
    state.live_bytes += size;
    if (state.live_bytes > state.peak_bytes)
        state.peak_bytes = state.live_bytes;
    pthread_mutex_unlock(&lock);
}

static void count_out(size_t size)
{
    pthread_mutex_lock(&lock);
    state.live--;
    state.live_bytes -= size;
    pthread_mutex_unlock(&lock);
}

static void *hook_alloc(void *ctx, size_t size)
{
    (void)ctx;
    union head *head = must_fail(size) ? NULL : malloc(sizeof *head + size);
    if (head == NULL)
        return NULL;
    head->size = size;
    count_in(size);
    return head + 1;
}

static void *hook_realloc(void *ctx, void *ptr, size_t size)
{
    if (ptr == NULL)
        return hook_alloc(ctx, size);
    union head *head = (union head *)ptr - 1;
    size_t old_size = head->size;
    head = must_fail(size) ? NULL : realloc(head, sizeof *head + size);
    if (head == NULL)
        return NULL;
    head->size = size;
    count_out(old_size);
    count_in(size);
    return head + 1;
}

static void hook_free(void *ctx, void *ptr)
{
    (void)ctx;
    union head *head = (union head *)ptr - 1;
    count_out(head->size);
    free(head);
}

void alloc_fault_begin(size_t n)
{
    static const struct rd_mem_hooks hooks = {
        .alloc = hook_alloc, .realloc = hook_realloc, .free = hook_free};
    state = (struct alloc_fault_result){0};
    fail_at = n;
    rd_mem_set_hooks(&hooks);
}

struct alloc_fault_result alloc_fault_state(void)
{
    pthread_mutex_lock(&lock);
    struct alloc_fault_result now = state;
    pthread_mutex_unlock(&lock);
    return now;
}

struct alloc_fault_result alloc_fault_end(void)
{
    rd_mem_set_hooks(NULL);
    return state;
}
