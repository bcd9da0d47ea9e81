/* Memory that can be allocated after fork(), in builds with AddressSanitizer.
 *
 * Criterion forks for each test, allocates memory in the child, and has threads of its own. The
 * allocator of AddressSanitizer in GCC 12 does not expect that: if another thread holds one of its
 * locks at that moment, the copy of the lock in the child is never released, and the child waits
 * forever. Here fork() waits until no thread is in the allocator, as it does in the C library.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#define UNLOCKED PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP

void *__interceptor_malloc(size_t size);
void *__interceptor_calloc(size_t n, size_t size);
void *__interceptor_realloc(void *ptr, size_t size);
void __interceptor_free(void *ptr);

/* Shared by the threads in the allocator; exclusive during fork(). */
static pthread_rwlock_t lock = UNLOCKED;

void *malloc(size_t size)
{
    pthread_rwlock_rdlock(&lock);
    void *ret = __interceptor_malloc(size);
    pthread_rwlock_unlock(&lock);
    return ret;
}

void *calloc(size_t n, size_t size)
{
    pthread_rwlock_rdlock(&lock);
    void *ret = __interceptor_calloc(n, size);
    pthread_rwlock_unlock(&lock);
    return ret;
}

void *realloc(void *ptr, size_t size)
{
    pthread_rwlock_rdlock(&lock);
    void *ret = __interceptor_realloc(ptr, size);
    pthread_rwlock_unlock(&lock);
    return ret;
}

void free(void *ptr)
{
    pthread_rwlock_rdlock(&lock);
    __interceptor_free(ptr);
    pthread_rwlock_unlock(&lock);
}

static void before_fork(void)
{
    pthread_rwlock_wrlock(&lock);
}

static void in_parent(void)
{
    pthread_rwlock_unlock(&lock);
}

/* The thread that locked it has another number here, and could not unlock it. */
static void in_child(void)
{
    lock = (pthread_rwlock_t)UNLOCKED;
}

__attribute__((constructor)) static void prepare(void)
{
    if (pthread_atfork(before_fork, in_parent, in_child) != 0)
        abort();
}
