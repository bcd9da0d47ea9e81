/* criterion.h - the part of Criterion that the tests use, where Criterion cannot run.
 *
 * Criterion maps shared memory at fixed addresses. ThreadSanitizer reserves these and qemu does not
 * give them. tests/threads, and builds for another processor, compile the tests with this header
 * instead; run.c runs each test in a process of its own, as Criterion does.
 */
#ifndef TESTS_SUPPORT_PLAIN_CRITERION_H
#define TESTS_SUPPORT_PLAIN_CRITERION_H

/* As in Criterion: the macros may be used without a message. */
#pragma GCC system_header

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plain_test {
    void (*init)(void);
    void (*fini)(void);
    double timeout; /* not used: emulated processors and sanitizers are slow */
    const char *suite, *name;
    void (*run)(void);
    struct plain_test *next;
};

void plain_add(struct plain_test *test);
void plain_add_suite(struct plain_test *suite);

/* Unless `ok`, prints the place, the condition and the message; ends the test if `fatal`. */
void plain_check(bool fatal, const char *file, int line, const char *text, bool ok,
                 const char *message, ...);

#define Test(...) PLAIN_TEST(__VA_ARGS__, .next = NULL)
#define PLAIN_TEST(SUITE, NAME, ...)                                                               \
    static void SUITE##_##NAME##_run(void);                                                        \
    __attribute__((constructor)) static void SUITE##_##NAME##_add(void)                            \
    {                                                                                              \
        static struct plain_test test = {                                                          \
            .suite = #SUITE, .name = #NAME, .run = SUITE##_##NAME##_run, __VA_ARGS__};             \
        plain_add(&test);                                                                          \
    }                                                                                              \
    static void SUITE##_##NAME##_run(void)

#define TestSuite(...) PLAIN_SUITE(__VA_ARGS__, .next = NULL)
#define PLAIN_SUITE(SUITE, ...)                                                                    \
    __attribute__((constructor)) static void SUITE##_suite_add(void)                               \
    {                                                                                              \
        static struct plain_test suite = {.suite = #SUITE, __VA_ARGS__};                           \
        plain_add_suite(&suite);                                                                   \
    }                                                                                              \
    struct plain_test

#define PLAIN_CHECK(FATAL, TEXT, ...)  plain_check(FATAL, __FILE__, __LINE__, TEXT, __VA_ARGS__)
#define PLAIN_TRUE(FATAL, A, ...)      PLAIN_CHECK(FATAL, #A, (A), __VA_ARGS__)
#define PLAIN_NOT(FATAL, A, ...)       PLAIN_CHECK(FATAL, "not " #A, !(A), __VA_ARGS__)
#define PLAIN_OP(FATAL, OP, A, B, ...) PLAIN_CHECK(FATAL, #A " " #OP " " #B, (A)OP(B), __VA_ARGS__)
#define PLAIN_STR(FATAL, OP, A, B, ...)                                                            \
    PLAIN_CHECK(FATAL, #A " " #OP " " #B, strcmp((A), (B)) OP 0, __VA_ARGS__)
#define PLAIN_ARR(FATAL, OP, A, B, LEN, ...)                                                       \
    PLAIN_CHECK(FATAL, #A " " #OP " " #B, memcmp((A), (B), (LEN)) OP 0, __VA_ARGS__)
#define PLAIN_NEAR(FATAL, A, B, BY, ...)                                                           \
    PLAIN_CHECK(FATAL, #A " near " #B, (A) - (B) <= (BY) && (B) - (A) <= (BY), __VA_ARGS__)

#define cr_assert(...)          PLAIN_TRUE(true, __VA_ARGS__, "")
#define cr_assert_not(...)      PLAIN_NOT(true, __VA_ARGS__, "")
#define cr_assert_null(...)     PLAIN_NOT(true, __VA_ARGS__, "")
#define cr_assert_not_null(...) PLAIN_TRUE(true, __VA_ARGS__, "")
#define cr_assert_eq(...)       PLAIN_OP(true, ==, __VA_ARGS__, "")
#define cr_assert_neq(...)      PLAIN_OP(true, !=, __VA_ARGS__, "")
#define cr_assert_lt(...)       PLAIN_OP(true, <, __VA_ARGS__, "")
#define cr_assert_leq(...)      PLAIN_OP(true, <=, __VA_ARGS__, "")
#define cr_assert_gt(...)       PLAIN_OP(true, >, __VA_ARGS__, "")
#define cr_assert_geq(...)      PLAIN_OP(true, >=, __VA_ARGS__, "")
#define cr_assert_str_eq(...)   PLAIN_STR(true, ==, __VA_ARGS__, "")
#define cr_assert_str_neq(...)  PLAIN_STR(true, !=, __VA_ARGS__, "")
#define cr_assert_arr_eq(...)   PLAIN_ARR(true, ==, __VA_ARGS__, "")
#define cr_assert_arr_neq(...)  PLAIN_ARR(true, !=, __VA_ARGS__, "")
#define cr_assert_float_eq(...) PLAIN_NEAR(true, __VA_ARGS__, "")
#define cr_assert_fail(...)     PLAIN_CHECK(true, "failed", false, __VA_ARGS__, "")

#define cr_expect(...)          PLAIN_TRUE(false, __VA_ARGS__, "")
#define cr_expect_not(...)      PLAIN_NOT(false, __VA_ARGS__, "")
#define cr_expect_null(...)     PLAIN_NOT(false, __VA_ARGS__, "")
#define cr_expect_not_null(...) PLAIN_TRUE(false, __VA_ARGS__, "")
#define cr_expect_eq(...)       PLAIN_OP(false, ==, __VA_ARGS__, "")
#define cr_expect_neq(...)      PLAIN_OP(false, !=, __VA_ARGS__, "")
#define cr_expect_lt(...)       PLAIN_OP(false, <, __VA_ARGS__, "")
#define cr_expect_leq(...)      PLAIN_OP(false, <=, __VA_ARGS__, "")
#define cr_expect_gt(...)       PLAIN_OP(false, >, __VA_ARGS__, "")
#define cr_expect_geq(...)      PLAIN_OP(false, >=, __VA_ARGS__, "")
#define cr_expect_str_eq(...)   PLAIN_STR(false, ==, __VA_ARGS__, "")
#define cr_expect_str_neq(...)  PLAIN_STR(false, !=, __VA_ARGS__, "")
#define cr_expect_arr_eq(...)   PLAIN_ARR(false, ==, __VA_ARGS__, "")
#define cr_expect_float_eq(...) PLAIN_NEAR(false, __VA_ARGS__, "")
#define cr_expect_fail(...)     PLAIN_CHECK(false, "failed", false, __VA_ARGS__, "")

#define cr_log_info(...)  ((void)0)
#define cr_log_warn(...)  ((void)0)
#define cr_log_error(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))

#endif
