#include <criterion/criterion.h>

#include "base/endian.h"
#include "data/sort.h"

static uint64_t scramble(uint64_t i)
{
    i = (i ^ i >> 31) * 0x9e3779b97f4a7c15;
    return i ^ i >> 29;
}

static void add(struct sort *sort, const void *key, size_t key_len, const void *value,
                size_t value_len)
{
    struct rd_err err = {0};
    cr_assert(sort_add(sort, rd_slice(key, key_len), rd_slice(value, value_len), &err), "%s",
              err.text);
}

/* Records of 16 to 40 bytes: in memory, in one round of runs, and in two. */
Test(sort, gives_every_record_in_order)
{
    static const uint64_t counts[] = {0, 1, 2, 9, 1000, 50000, 800000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        struct sort sort = {0};
        struct rd_err err = {0};
        struct rd_slice key, value;
        uint64_t sum = 0, last = 0, n = 0;
        bool end;
        cr_assert(sort_init(&sort, SORT_MEMORY_MIN, &err));
        for (uint64_t i = 0; i < counts[c]; i++) {
            uint8_t k[8], v[24] = {0};
            rd_put_be64(k, scramble(i));
            rd_put_be64(v, i);
            add(&sort, k, sizeof k, v, 8 + i % 17);
            sum += scramble(i);
        }
        cr_assert(sort_begin(&sort, &err), "%s", err.text);
        while (sort_next(&sort, &key, &value, &end, &err) && !end) {
            uint64_t got = rd_get_be64(key.ptr), i = rd_get_be64(value.ptr);
            cr_assert(got >= last && got == scramble(i) && value.len == 8 + i % 17);
            last = got;
            sum -= got;
            n++;
        }
        cr_assert(end && n == counts[c] && sum == 0);
        sort_done(&sort);
    }
}

Test(sort, orders_by_key_then_by_value_a_prefix_first)
{
    static const char *const keys[] = {"", "a", "a\x01", "abcdefgh", "abcdefgh1", "b"};
    struct sort sort = {0};
    struct rd_err err = {0};
    struct rd_slice key, value;
    bool end;
    cr_assert(sort_init(&sort, SORT_MEMORY_MIN, &err));
    for (size_t i = 6; i-- > 0;) {
        add(&sort, keys[i], strlen(keys[i]), "2", 1);
        add(&sort, keys[i], strlen(keys[i]), "1", 1);
    }
    cr_assert(sort_begin(&sort, &err));
    for (size_t i = 0; i < 12; i++) {
        cr_assert(sort_next(&sort, &key, &value, &end, &err) && !end);
        cr_assert(rd_slice_is(key, keys[i / 2]));
        cr_assert(rd_slice_is(value, i % 2 == 0 ? "1" : "2"));
    }
    cr_assert(sort_next(&sort, &key, &value, &end, &err) && end);
    sort_done(&sort);
}

Test(sort, refuses_a_record_that_is_too_long)
{
    static const uint8_t bytes[SORT_RECORD_MAX + 1];
    struct sort sort = {0};
    struct rd_err err = {0};
    cr_assert(sort_init(&sort, SORT_MEMORY_MIN, &err));
    add(&sort, bytes, SORT_RECORD_MAX, NULL, 0);
    cr_assert_not(sort_add(&sort, rd_slice(bytes, SORT_RECORD_MAX), rd_slice(bytes, 1), &err));
    cr_assert_eq(err.code, RD_ERR_LIMIT);
    sort_done(&sort);
}
