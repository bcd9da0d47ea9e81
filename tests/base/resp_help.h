/* resp_help.h - what the tests of base/resp*.c share.
 */
#ifndef TESTS_BASE_RESP_HELP_H
#define TESTS_BASE_RESP_HELP_H

#include "base/buf.h"
#include "base/resp.h"

#include <criterion/criterion.h>

#define S(text) rd_slice("" text, sizeof(text) - 1)

static inline struct rd_src *memory(struct rd_slice bytes)
{
    struct rd_src *src;
    cr_assert(rd_src_open_memory(&src, bytes, NULL, NULL));
    return src;
}

static inline struct rd_src *push(size_t window)
{
    struct rd_src *src;
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = window);
    cr_assert(rd_src_open_push(&src, &opts, NULL));
    return src;
}

static inline struct rd_resp_reader *reader_of(struct rd_src *src, const struct rd_resp_opts *opts)
{
    struct rd_resp_reader *r;
    cr_assert(rd_resp_reader_new(&r, src, opts, NULL));
    return r;
}

static inline void expect_same(const struct rd_buf *a, const struct rd_buf *b, const char *what,
                               size_t n)
{
    cr_assert_eq(a->len, b->len, "%s %zu", what, n);
    cr_assert_arr_eq(a->ptr, b->ptr, a->len, "%s %zu", what, n);
}

/* Commands from tiny to several times the smallest window. */
static inline struct rd_buf mixed_stream(void)
{
    struct rd_buf buf = {0};
    for (size_t i = 0; i < 60; i++) {
        size_t argc = 1 + i % 5;
        rd_buf_printf(&buf, "*%zu\r\n", argc);
        for (size_t a = 0; a < argc; a++) {
            size_t len = a * a * i % 301;
            rd_buf_printf(&buf, "$%zu\r\n", len);
            for (size_t k = 0; k < len; k++)
                rd_buf_add_byte(&buf, (uint8_t)(i + k));
            rd_buf_printf(&buf, "\r\n");
        }
    }
    return buf;
}

#endif
