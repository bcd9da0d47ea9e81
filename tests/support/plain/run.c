/* Runs the tests that were compiled with plain/criterion/criterion.h, and prints TAP.
 *
 *     test_threads              all, each in a process of its own
 *     test_threads SUITE/NAME   one, in this process
 */
#include <criterion/criterion.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_S = 300 };

extern char **environ;

static struct plain_test *tests;
static bool failed;

void plain_add(struct plain_test *test)
{
    test->next = tests;
    tests = test;
}

void plain_fail(const char *file, int line, const char *what, bool fatal)
{
    fprintf(stderr, "# %s:%d: %s\n", file, line, what);
    failed = true;
    if (fatal)
        _exit(1);
}

static void path_of(const struct plain_test *test, char dst[256])
{
    snprintf(dst, 256, "%s/%s", test->suite, test->name);
}

static int run_here(const char *path)
{
    char own[256];
    for (const struct plain_test *test = tests; test != NULL; test = test->next) {
        path_of(test, own);
        if (strcmp(own, path) != 0)
            continue;
        alarm(test->options.timeout > TIMEOUT_S ? (unsigned)test->options.timeout : TIMEOUT_S);
        test->run();
        return failed;
    }
    fprintf(stderr, "no test %s\n", path);
    return 2;
}

/* True: it passed, and no sanitizer reported anything. */
static bool run_apart(char *program, char *path)
{
    char *argv[] = {program, path, NULL};
    pid_t pid;
    int status;
    return posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) == 0 &&
           waitpid(pid, &status, 0) == pid && status == 0;
}

int main(int argc, char **argv)
{
    char path[256];
    unsigned n = 0, n_failed = 0;
    if (argc > 1)
        return run_here(argv[1]);
    printf("TAP version 13\n");
    for (const struct plain_test *test = tests; test != NULL; test = test->next) {
        path_of(test, path);
        bool ok = run_apart(argv[0], path);
        n_failed += !ok;
        printf("%s %u - %s\n", ok ? "ok" : "not ok", ++n, path);
        fflush(stdout);
    }
    printf("1..%u\n", n);
    return n_failed > 0 || n == 0;
}
