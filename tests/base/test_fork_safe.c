/* Children of a program with threads can allocate memory, as each test of Criterion does. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 200, WORKERS = 2, BLOCK = 1 << 20, CHILD_SECONDS = 60 };

static atomic_bool done;
static _Thread_local void *volatile block; /* the allocation is not optimized away */

static void allocate_once(void)
{
    void *ptr = malloc(BLOCK);
    block = ptr;
    free(ptr);
}

static void *allocate(void *arg)
{
    (void)arg;
    while (!atomic_load(&done))
        allocate_once();
    return NULL;
}

Test(fork_safe, a_child_allocates_while_other_threads_did)
{
    pthread_t workers[WORKERS];
    int status = 0;
    for (int i = 0; i < WORKERS; i++)
        cr_assert_eq(pthread_create(&workers[i], NULL, allocate, NULL), 0);
    for (int i = 0; i < FORKS && status == 0; i++) {
        pid_t pid = fork();
        cr_assert_geq(pid, 0);
        if (pid == 0) {
            alarm(CHILD_SECONDS);
            allocate_once();
            _exit(0);
        }
        cr_assert_eq(waitpid(pid, &status, 0), pid);
    }
    atomic_store(&done, true);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    cr_expect_eq(status, 0, "a child ended with status %#x", (unsigned)status);
}
