#include "base/worker.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/prefault.h"
#include "tests/base/system.h"
#include "tests/support/alloc_fault.h"

static struct rd_worker *new_worker(unsigned helpers)
{
    system_processors = 2;
    struct rd_worker *worker = rd_worker_new(helpers);
    cr_assert_not_null(worker);
    return worker;
}

/* How often each worker ran, and the last thread in which it did. */
struct visits {
    unsigned n[RD_TEAM_MAX];
    pthread_t thread[RD_TEAM_MAX];
};

static void visit(void *arg, unsigned worker)
{
    struct visits *visits = arg;
    visits->n[worker]++;
    visits->thread[worker] = pthread_self();
}

Test(worker, every_worker_does_its_part_each_time_in_a_thread_of_its_own)
{
    static const unsigned helpers[] = {1, 2, 7};
    for (size_t k = 0; k < sizeof helpers / sizeof helpers[0]; k++) {
        struct rd_worker *worker = new_worker(helpers[k]);
        struct visits visits = {0};
        cr_assert_eq(rd_worker_helpers(worker), helpers[k]);
        for (unsigned round = 1; round <= 1000; round++) {
            rd_worker_start(worker, visit, &visits);
            rd_worker_join(worker);
            for (unsigned i = 0; i <= helpers[k]; i++) {
                cr_assert_eq(visits.n[i], round, "worker %u", i);
                cr_assert_eq(pthread_equal(visits.thread[i], pthread_self()) != 0, i == 0);
            }
        }
        for (unsigned i = 1; i < helpers[k]; i++)
            cr_expect_not(pthread_equal(visits.thread[i], visits.thread[i + 1]));
        rd_worker_free(worker);
    }
}

Test(worker, there_is_a_limit_of_helpers)
{
    struct rd_worker *worker = new_worker(1000);
    cr_expect_eq(rd_worker_helpers(worker), RD_TEAM_MAX - 1);
    rd_worker_free(worker);
    cr_expect_eq(rd_worker_helpers(NULL), 0);
}

/* Work whose first run on the helper does not end before it is let go. */
struct queue {
    atomic_uint ready;
    atomic_uint runs; /* of the helper */
    atomic_bool go;
    unsigned seen;
};

static void take_part(void *arg, unsigned worker)
{
    struct queue *queue = arg;
    if (worker == 0)
        return;
    queue->seen = atomic_load(&queue->ready);
    atomic_fetch_add(&queue->runs, 1);
    while (!atomic_load(&queue->go))
        sched_yield();
}

Test(worker, what_comes_while_the_helper_is_at_work_is_seen)
{
    struct rd_worker *worker = new_worker(1);
    for (unsigned round = 0; round < 200; round++) {
        struct queue queue = {.ready = 1};
        rd_worker_start(worker, take_part, &queue);
        while (atomic_load(&queue.runs) == 0)
            sched_yield();
        /* The helper has looked, and is still at it. */
        for (unsigned i = 0; i < round % 3; i++) {
            atomic_fetch_add(&queue.ready, 1);
            rd_worker_start(worker, take_part, &queue);
        }
        atomic_store(&queue.go, true);
        rd_worker_join(worker);
        cr_assert_eq(queue.seen, 1 + round % 3, "round %u: %u", round, queue.seen);
        cr_assert_eq(queue.runs, round % 3 == 0 ? 1 : 2, "round %u", round);
    }
    rd_worker_free(worker);
}

Test(worker, no_worker_can_be_freed)
{
    rd_worker_free(NULL);
}

Test(worker, without_memory_there_is_no_worker)
{
    alloc_fault_begin(1);
    struct rd_worker *worker = rd_worker_new(1);
    struct alloc_fault_result result = alloc_fault_end();
    cr_expect_null(worker);
    cr_expect_eq(result.live, 0);
}

Test(worker, one_processor_gets_no_worker)
{
    system_processors = 1;
    cr_expect_null(rd_worker_new(1));
    system_processors = 2;
    struct rd_worker *worker = rd_worker_new(1);
    cr_expect_not_null(worker);
    rd_worker_free(worker);
}

/* Threads whose stacks find no room in the address space. */
Test(worker, a_helper_that_cannot_be_started_is_done_without)
{
    pthread_attr_t attr;
    system_processors = 2;
    cr_assert_eq(pthread_attr_init(&attr), 0);
    cr_assert_eq(pthread_attr_setstacksize(&attr, (size_t)1 << 52), 0);
    cr_assert_eq(pthread_setattr_default_np(&attr), 0);
    cr_expect_null(rd_worker_new(1));
    cr_expect_null(rd_prefault_begin());
    pthread_attr_destroy(&attr);
}
