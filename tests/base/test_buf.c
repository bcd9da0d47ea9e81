#include "base/buf.h"

#include <criterion/criterion.h>

#include "tests/support/alloc_fault.h"

Test(buf, grows_and_keeps_every_byte)
{
    struct rd_buf buf = {0};
    for (unsigned i = 0; i < 10000; i++)
        cr_assert(rd_buf_add_byte(&buf, (uint8_t)(i * 7)));
    cr_assert(rd_buf_add(&buf, "tail", 4));
    cr_assert(rd_buf_add(&buf, NULL, 0));
    cr_assert_eq(buf.len, 10004);
    for (unsigned i = 0; i < 10000; i++)
        cr_assert_eq(buf.ptr[i], (uint8_t)(i * 7));
    cr_assert(rd_slice_is(rd_slice(rd_buf_slice(&buf).ptr + 10000, 4), "tail"));
    size_t cap = buf.cap;
    rd_buf_reset(&buf);
    cr_assert(buf.len == 0 && buf.cap == cap);
    rd_buf_done(&buf);
    cr_assert(buf.ptr == NULL && buf.len == 0 && buf.cap == 0);
}

Test(buf, grows_in_few_steps)
{
    struct rd_buf buf = {0};
    alloc_fault_begin(0);
    for (unsigned i = 0; i < 1000000; i++)
        rd_buf_add_byte(&buf, 1);
    rd_buf_done(&buf);
    struct alloc_fault_result r = alloc_fault_end();
    cr_assert_leq(r.n_allocs, 20);
    cr_assert_eq(r.live, 0);
}

Test(buf, reserves_room_for_what_follows)
{
    struct rd_buf buf = {0};
    cr_assert(rd_buf_reserve(&buf, 5000));
    uint8_t *ptr = buf.ptr;
    cr_assert_geq(buf.cap, 5000);
    cr_assert_eq(buf.len, 0);
    for (unsigned i = 0; i < 5000; i++)
        rd_buf_add_byte(&buf, 1);
    cr_assert_eq(buf.ptr, ptr);
    rd_buf_done(&buf);
}

Test(buf, refuses_a_size_that_overflows)
{
    struct rd_buf buf = {0};
    rd_buf_add(&buf, "abc", 3);
    cr_assert_not(rd_buf_reserve(&buf, SIZE_MAX));
    cr_assert_not(rd_buf_reserve(&buf, SIZE_MAX - 3));
    cr_assert(rd_slice_is(rd_buf_slice(&buf), "abc"));
    rd_buf_done(&buf);
}

Test(buf, prints_text_of_any_length)
{
    for (int width = 0; width < 300; width++) {
        struct rd_buf buf = {0};
        cr_assert(rd_buf_add(&buf, ">", 1));
        cr_assert(rd_buf_printf(&buf, "%*d", width, 7));
        cr_assert(rd_buf_printf(&buf, "%s", ""));
        cr_assert(rd_buf_printf(&buf, "|%s", "end"));
        cr_assert_eq(buf.len, (width > 1 ? (size_t)width : 1) + 5);
        cr_assert_eq(memcmp(buf.ptr + buf.len - 5, "7|end", 5), 0);
        cr_assert_eq(buf.ptr[0], '>');
        rd_buf_done(&buf);
    }
}

Test(buf, without_memory_the_old_contents_remain)
{
    for (size_t n = 1;; n++) {
        struct rd_buf buf = {0};
        size_t n_added = 0;
        bool ok = true;
        alloc_fault_begin(n);
        for (int i = 0; i < 100 && ok; i++) {
            ok = i % 2 ? rd_buf_printf(&buf, "%s", "0123456789")
                       : rd_buf_add(&buf, "0123456789", 10);
            n_added += ok;
        }
        cr_assert_eq(buf.len, n_added * 10);
        for (size_t i = 0; i < buf.len; i++)
            cr_assert_eq(buf.ptr[i], '0' + i % 10);
        rd_buf_done(&buf);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0);
        cr_assert_eq(ok, !r.failed);
        if (!r.failed) {
            cr_assert_gt(n, 4);
            break;
        }
    }
}
