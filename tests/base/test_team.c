#include "base/team.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/prefault.h"
#include "tests/base/system.h"
#include "tests/support/alloc_fault.h"

/* How often each worker came. */
struct visits {
    unsigned n[RD_TEAM_WORKERS];
};

static void visit(void *arg, unsigned worker)
{
    struct visits *visits = arg;
    cr_assert_lt(worker, RD_TEAM_WORKERS);
    visits->n[worker]++;
}

Test(team, every_worker_does_its_part_each_time)
{
    struct rd_team *team = rd_team_new();
    struct visits visits = {0};
    if (team == NULL)
        cr_skip_test("one processor");
    for (int round = 0; round < 1000; round++) {
        rd_team_start(team, visit, &visits);
        rd_team_join(team);
    }
    for (unsigned i = 0; i < RD_TEAM_WORKERS; i++)
        cr_expect_eq(visits.n[i], 1000, "%u", i);
    rd_team_free(team);
}

/* Adds up to `ready` what it has not seen yet. */
struct queue {
    atomic_uint ready;
    unsigned seen;
};

static void take(void *arg, unsigned worker)
{
    struct queue *queue = arg;
    if (worker == 1)
        queue->seen = atomic_load(&queue->ready);
}

Test(team, what_comes_while_the_helper_is_at_work_is_seen)
{
    struct rd_team *team = rd_team_new();
    if (team == NULL)
        cr_skip_test("one processor");
    for (int round = 0; round < 200; round++) {
        struct queue queue = {0};
        for (int i = 0; i < 100; i++) {
            atomic_fetch_add(&queue.ready, 1);
            rd_team_start(team, take, &queue);
        }
        rd_team_join(team);
        cr_assert_eq(queue.seen, 100, "round %d: %u", round, queue.seen);
    }
    rd_team_free(team);
}

Test(team, no_team_can_be_freed)
{
    rd_team_free(NULL);
}

Test(team, without_memory_there_is_no_team)
{
    alloc_fault_begin(1);
    struct rd_team *team = rd_team_new();
    struct alloc_fault_result result = alloc_fault_end();
    cr_expect_null(team);
    cr_expect_eq(result.live, 0);
}

Test(team, one_processor_is_no_team)
{
    system_processors = 1;
    cr_expect_null(rd_team_new());
    system_processors = 2;
    struct rd_team *team = rd_team_new();
    cr_expect_not_null(team);
    rd_team_free(team);
}

/* Threads whose stacks find no room in the address space. */
Test(team, a_helper_that_cannot_be_started_is_done_without)
{
    pthread_attr_t attr;
    system_processors = 2;
    cr_assert_eq(pthread_attr_init(&attr), 0);
    cr_assert_eq(pthread_attr_setstacksize(&attr, (size_t)1 << 52), 0);
    cr_assert_eq(pthread_setattr_default_np(&attr), 0);
    cr_expect_null(rd_team_new());
    cr_expect_null(rd_prefault_begin());
    pthread_attr_destroy(&attr);
}
