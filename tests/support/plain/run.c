/* Runs the tests that were compiled with plain/criterion/criterion.h, and prints TAP.
 *
 *     test_threads                        all, each in a process of its own
 *     test_threads --filter SUITE/NAME    those that match, with * for any text
 *
 * Without --filter, CRITERION_TEST_PATTERN is the filter, also of the form !(SUITE/NAME). Other
 * arguments are those of Criterion and change nothing.
 */
#include <criterion/criterion.h>

#include <fnmatch.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

static struct plain_test *tests, *suites;
static bool failed;

void plain_add(struct plain_test *test)
{
    test->next = tests;
    tests = test;
}

void plain_add_suite(struct plain_test *suite)
{
    suite->next = suites;
    suites = suite;
}

void plain_check(bool fatal, const char *file, int line, const char *text, bool ok,
                 const char *message, ...)
{
    if (ok)
        return;
    va_list args;
    va_start(args, message);
    printf("# %s:%d: %s: ", file, line, text);
    vprintf(message, args);
    printf("\n");
    va_end(args);
    failed = true;
    if (!fatal)
        return;
    fflush(stdout);
    _exit(1);
}

static const struct plain_test *suite_of(const struct plain_test *test)
{
    for (const struct plain_test *suite = suites; suite != NULL; suite = suite->next)
        if (strcmp(suite->suite, test->suite) == 0)
            return suite;
    return NULL;
}

static void run(const struct plain_test *test)
{
    const struct plain_test *suite = suite_of(test);
    void (*init)(void) = test->init != NULL || suite == NULL ? test->init : suite->init;
    void (*fini)(void) = test->fini != NULL || suite == NULL ? test->fini : suite->fini;
    if (init != NULL)
        init();
    test->run();
    if (fini != NULL)
        fini();
}

/* In a process of its own, whose output comes before the line of the result. */
static bool passes(const struct plain_test *test)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        run(test);
        exit(failed ? 1 : 0); /* sanitizers report at the end */
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    if (WIFSIGNALED(status))
        printf("# ended by signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    const char *filter = getenv("CRITERION_TEST_PATTERN");
    unsigned count = 0;
    bool all = true;
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--filter") == 0)
            filter = argv[i + 1];
    if (filter == NULL)
        filter = "*";
    for (const struct plain_test *test = tests; test != NULL; test = test->next) {
        char name[512];
        snprintf(name, sizeof name, "%s/%s", test->suite, test->name);
        if (fnmatch(filter, name, FNM_EXTMATCH) != 0)
            continue;
        bool ok = passes(test);
        all = all && ok;
        printf("%s %u - %s::%s\n", ok ? "ok" : "not ok", ++count, test->suite, test->name);
    }
    printf("1..%u\n", count);
    return all && count > 0 ? 0 : 1;
}
