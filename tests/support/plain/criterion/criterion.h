/* criterion.h - the part of Criterion that the tests of threads use, without Criterion.
 *
 * Criterion maps shared memory at addresses that ThreadSanitizer reserves. tests/threads compiles
 * the files of these tests once more with this header in place of <criterion/criterion.h>; run.c
 * runs each test in a process of its own, as Criterion does.
 */
#ifndef TESTS_SUPPORT_PLAIN_CRITERION_H
#define TESTS_SUPPORT_PLAIN_CRITERION_H

/* As in Criterion: the macros may be used without a message. */
#pragma GCC system_header

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct plain_options {
    double timeout; /* seconds; 0: the default */
};

struct plain_test {
    const char *suite, *name;
    void (*run)(void);
    struct plain_options options;
    struct plain_test *next;
};

void plain_add(struct plain_test *test);

/* Reports a failed expectation. `fatal` ends the test. */
void plain_fail(const char *file, int line, const char *what, bool fatal);

#define Test(suite_name, test_name, ...)                                                           \
    static void suite_name##_##test_name(void);                                                    \
    __attribute__((constructor)) static void add_##suite_name##_##test_name(void)                  \
    {                                                                                              \
        static struct plain_test test = {.suite = #suite_name,                                     \
                                         .name = #test_name,                                       \
                                         .run = suite_name##_##test_name,                          \
                                         .options = {__VA_ARGS__}};                                \
        plain_add(&test);                                                                          \
    }                                                                                              \
    static void suite_name##_##test_name(void)

#define PLAIN_CHECK(good, text, fatal)                                                             \
    do {                                                                                           \
        if (!(good))                                                                               \
            plain_fail(__FILE__, __LINE__, text, fatal);                                           \
    } while (0)

/* Messages of the tests are not printed: the place of the failure is. */
#define cr_assert(good, ...)        PLAIN_CHECK(good, #good, true)
#define cr_assert_not(bad, ...)     PLAIN_CHECK(!(bad), "not " #bad, true)
#define cr_assert_eq(a, b, ...)     PLAIN_CHECK((a) == (b), #a " == " #b, true)
#define cr_assert_neq(a, b, ...)    PLAIN_CHECK((a) != (b), #a " != " #b, true)
#define cr_assert_lt(a, b, ...)     PLAIN_CHECK((a) < (b), #a " < " #b, true)
#define cr_assert_leq(a, b, ...)    PLAIN_CHECK((a) <= (b), #a " <= " #b, true)
#define cr_assert_gt(a, b, ...)     PLAIN_CHECK((a) > (b), #a " > " #b, true)
#define cr_assert_not_null(a, ...)  PLAIN_CHECK((a) != NULL, #a " != NULL", true)
#define cr_expect(good, ...)        PLAIN_CHECK(good, #good, false)
#define cr_expect_not(bad, ...)     PLAIN_CHECK(!(bad), "not " #bad, false)
#define cr_expect_eq(a, b, ...)     PLAIN_CHECK((a) == (b), #a " == " #b, false)
#define cr_expect_gt(a, b, ...)     PLAIN_CHECK((a) > (b), #a " > " #b, false)
#define cr_expect_null(a, ...)      PLAIN_CHECK((a) == NULL, #a " == NULL", false)
#define cr_expect_not_null(a, ...)  PLAIN_CHECK((a) != NULL, #a " != NULL", false)
#define cr_expect_str_eq(a, b, ...) PLAIN_CHECK(strcmp(a, b) == 0, #a " is " #b, false)

#endif
