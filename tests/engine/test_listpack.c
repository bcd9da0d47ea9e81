#include "engine/listpack.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/mem.h"

enum { MODEL_MAX = 400, BLOB_MAX = 9 << 20 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* What a listpack should be: texts, each of its own allocation. */
struct model {
    struct rd_slice texts[MODEL_MAX];
    size_t n;
};

static struct rd_slice copy_text(struct rd_slice text)
{
    uint8_t *copy = malloc(text.len + 1);
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    return rd_slice(copy, text.len);
}

static void free_text(struct rd_slice text)
{
    free((void *)(uintptr_t)text.ptr);
}

static void model_insert(struct model *m, size_t at, struct rd_slice text)
{
    memmove(m->texts + at + 1, m->texts + at, (m->n - at) * sizeof *m->texts);
    m->texts[at] = copy_text(text);
    m->n++;
}

static void model_delete(struct model *m, size_t at, size_t n)
{
    n = n < m->n - at ? n : m->n - at;
    for (size_t i = 0; i < n; i++)
        free_text(m->texts[at + i]);
    memmove(m->texts + at, m->texts + at + n, (m->n - at - n) * sizeof *m->texts);
    m->n -= n;
}

static bool model_number(struct rd_slice text, long long *ret)
{
    char copy[32], back[32];
    if (text.len == 0 || text.len >= sizeof copy)
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    *ret = strtoll(copy, NULL, 10);
    snprintf(back, sizeof back, "%lld", *ret);
    return strlen(back) == text.len && strcmp(copy, back) == 0;
}

static size_t model_head(uint8_t *dst, struct rd_slice text, bool *ret_is_num)
{
    static const struct {
        unsigned head, bits, bytes;
    } forms[] = {{0xf1, 16, 2}, {0xf2, 24, 3}, {0xf3, 32, 4}, {0xf4, 64, 8}};
    long long num;
    *ret_is_num = model_number(text, &num);
    if (!*ret_is_num) {
        for (unsigned i = 0; i < 4; i++)
            dst[1 + i] = (uint8_t)(text.len >> (8 * i));
        dst[0] = (uint8_t)(text.len < 64     ? 0x80 + text.len
                           : text.len < 4096 ? 0xe0 + text.len / 256
                                             : 0xf0);
        dst[1] = (uint8_t)text.len;
        return text.len < 64 ? 1 : text.len < 4096 ? 2 : 5;
    }
    if (num >= 0 && num < 128) {
        dst[0] = (uint8_t)num;
        return 1;
    }
    if (num >= -4096 && num < 4096) {
        unsigned v = (unsigned)(num < 0 ? num + 8192 : num);
        dst[0] = (uint8_t)(0xc0 + v / 256);
        dst[1] = (uint8_t)v;
        return 2;
    }
    unsigned i = 0;
    while (forms[i].bits < 64 &&
           (num < -(1LL << (forms[i].bits - 1)) || num >= 1LL << (forms[i].bits - 1)))
        i++;
    dst[0] = (uint8_t)forms[i].head;
    for (unsigned k = 0; k < forms[i].bytes; k++)
        dst[1 + k] = (uint8_t)((unsigned long long)num >> (8 * k));
    return 1 + forms[i].bytes;
}

/* The entry of a text, written one byte after the other; returns its size. */
static size_t model_entry(uint8_t *dst, struct rd_slice text)
{
    static const size_t limits[] = {128, 16383, 2097151, 268435455, SIZE_MAX};
    bool is_num;
    size_t len = model_head(dst, text, &is_num);
    if (!is_num && text.len > 0) {
        memcpy(dst + len, text.ptr, text.len);
        len += text.len;
    }
    int n = 0;
    while (len >= limits[n])
        n++;
    for (int i = n; i >= 0; i--)
        dst[len + (size_t)(n - i)] = (uint8_t)(((len >> (7 * i)) & 127) | (i < n ? 128 : 0));
    return len + (size_t)n + 1;
}

static struct rd_slice model_blob(const struct model *m)
{
    static uint8_t blob[BLOB_MAX];
    size_t len = 6;
    for (size_t i = 0; i < m->n; i++)
        len += model_entry(blob + len, m->texts[i]);
    blob[len++] = 0xff;
    for (unsigned i = 0; i < 4; i++)
        blob[i] = (uint8_t)(len >> (8 * i));
    blob[4] = (uint8_t)m->n;
    blob[5] = (uint8_t)(m->n >> 8);
    return rd_slice(blob, len);
}

static void check_item(const uint8_t *p, struct rd_slice text)
{
    char tmp[RD_NUM_I64_MAX];
    long long num;
    struct engine_lp_item item = engine_lp_get(p);
    cr_assert(rd_slice_eq(engine_lp_item_text(item, tmp), text));
    cr_assert(engine_lp_item_eq(item, text));
    cr_assert_eq(item.is_num, model_number(text, &num));
    cr_assert(!item.is_num || (item.num == num && item.ptr == NULL && item.len == 0));
    cr_assert_eq(engine_lp_span(p), engine_lp_entry_size(text));
    cr_assert(!item.is_num || engine_lp_entry_size_int(item.num) == engine_lp_span(p));
    cr_assert_eq(engine_lp_span_back(p + engine_lp_span(p)), engine_lp_span(p));
}

/* Sanitizers and Valgrind count the bytes that were requested. The allocators of programs round
 * them up, and leave a block that shrinks as it is. */
#ifdef TESTS_SUPPORT_PLAIN_CRITERION_H
enum { EXACT = 0 };
#else
enum { EXACT = 1 };
#endif

/* The bytes, and every way to every position. */
static void check(uint8_t *lp, const struct model *m)
{
    struct rd_slice blob = model_blob(m);
    cr_assert(rd_slice_eq(rd_slice(lp, engine_lp_bytes(lp)), blob));
    cr_assert_eq(engine_lp_count(lp), m->n);
    cr_assert_geq(engine_usable(lp), blob.len);
    cr_assert(!EXACT || engine_usable(lp) <= 544 ||
              engine_usable(lp) <= blob.len + blob.len / 4 + 16);
    uint8_t *p = engine_lp_first(lp), *before = NULL;
    for (size_t i = 0; i < m->n; i++) {
        cr_assert_not_null(p);
        check_item(p, m->texts[i]);
        cr_assert(engine_lp_prev(lp, p) == before);
        cr_assert(engine_lp_at(lp, (long)i) == p);
        cr_assert(engine_lp_at(lp, (long)i - (long)m->n) == p);
        before = p;
        p = engine_lp_next(p);
    }
    cr_assert_null(p);
    cr_assert(engine_lp_last(lp) == before);
    cr_assert_null(engine_lp_at(lp, (long)m->n));
    cr_assert_null(engine_lp_at(lp, -(long)m->n - 1));
    cr_assert(engine_lp_at(lp, LONG_MAX) == NULL && engine_lp_at(lp, LONG_MIN) == NULL);
}

/* What Redis 7.0.15 made, as DUMP of a hash, a sorted set and a list shows it. Texts are apart by a
 * bar, a{62} is 62 letters; bytes are hexadecimal, 61*62 is 62 of them. */
static const struct sample {
    const char *name, *texts, *blob;
} samples[] = {
    {"integers of 7 and 13 bits", "0|127|128|-1|4095|4096|-4096|-4097",
     "1f 00 00 00 08 00 00 01 7f 01 c0 80 02 df ff 02 cf ff 02 f1 00 10 03 d0 00 02 f1 ff ef 03 "
     "ff"},
    {"integers of 16 and 24 bits", "32767|32768|-32768|-32769|8388607|8388608|-8388608|-8388609",
     "2f 00 00 00 08 00 f1 ff 7f 03 f2 00 80 00 04 f1 00 80 03 f2 ff 7f ff 04 f2 ff ff 7f 04 f3 "
     "00 00 80 00 05 f2 00 00 80 04 f3 ff ff 7f ff 05 ff"},
    {"integers of 32 and 64 bits",
     "2147483647|2147483648|-2147483648|-2147483649|9223372036854775807|9223372036854775808|"
     "-9223372036854775808|-9223372036854775809",
     "66 00 00 00 08 00 f3 ff ff ff 7f 05 f4 00 00 00 80 00*4 09 f3 00 00 00 80 05 f4 ff ff ff 7f "
     "ff*4 09 f4 ff*7 7f 09 93 39 32 32 33 33 37 32 30 33 36 38 35 34 37 37 35 38 30 38 14 f4 00*7 "
     "80 09 94 2d 39 32 32 33 33 37 32 30 33 36 38 35 34 37 37 35 38 30 39 15 ff"},
    {"what looks like an integer", "|-0|00|01| 1|+1|1 |-|0x1|1e3",
     "2e 00 00 00 0a 00 80 01 82 2d 30 03 82 30 30 03 82 30 31 03 82 20 31 03 82 2b 31 03 82 31 20 "
     "03 81 2d 02 83 30 78 31 04 83 31 65 33 04 ff"},
    {"strings of 62 to 65 bytes", "a{62}|b{63}|c{64}|d{65}",
     "0f 01 00 00 04 00 be 61*62 3f bf 62*63 40 e0 40 63*64 42 e0 41 64*65 43 ff"},
    {"back lengths of 127 and 128", "a{125}|b{126}",
     "09 01 00 00 02 00 e0 7d 61*125 7f e0 7e 62*126 01 80 ff"},
    {"strings of 4095 and 4096 bytes", "a{4095}|b{4096}",
     "11 20 00 00 02 00 ef ff 61*4095 20 81 f0 00 10 00 00 62*4096 20 85 ff"},
    {"back lengths around 16383", "a{16375}|b{16376}|c{16377}|d{16378}|e{16379}|f{16380}",
     "0d 80 01 00 06 00 f0 f7 3f 00 00 61*16375 7f fc f0 f8 3f 00 00 62*16376 7f fd f0 f9 3f 00 00 "
     "63*16377 7f fe f0 fa 3f 00 00 64*16378 00 ff ff f0 fb 3f 00 00 65*16379 01 80 80 f0 fc 3f 00 "
     "00 66*16380 01 80 81 ff"},
    {"back lengths around 2097151", "a{2097145}|b{2097146}|c{2097147}|d{2097148}",
     "14 00 80 00 04 00 f0 f9 ff 1f 00 61*2097145 7f ff fe f0 fa ff 1f 00 62*2097146 00 ff ff ff "
     "f0 fb ff 1f 00 63*2097147 01 80 80 80 f0 fc ff 1f 00 64*2097148 01 80 80 81 ff"},
    {"a sorted set", "3|-3|one|1|two and a half|2.5|4096|4096|far|1e+20",
     "3c 00 00 00 0a 00 03 01 df fd 02 83 6f 6e 65 04 01 01 8e 74 77 6f 20 61 6e 64 20 61 20 68 61 "
     "6c 66 0f 83 32 2e 35 04 f1 00 10 03 f1 00 10 03 83 66 61 72 04 85 31 65 2b 32 30 06 ff"},
    {"a list after LINSERT, LSET and LREM", "first|70000|in|300|y{70}",
     "63 00 00 00 05 00 85 66 69 72 73 74 06 f2 70 11 01 04 82 69 6e 03 c1 2c 02 e0 46 79*70 48 "
     "ff"},
};

static struct rd_slice sample_blob(const struct sample *s)
{
    static uint8_t blob[BLOB_MAX];
    size_t len = 0;
    for (const char *at = s->blob; *at != '\0'; at += *at == ' ') {
        char *next;
        uint8_t byte = (uint8_t)strtoul(at, &next, 16);
        size_t times = *next == '*' ? strtoul(next + 1, &next, 10) : 1;
        memset(blob + len, byte, times);
        len += times;
        at = next;
    }
    return rd_slice(blob, len);
}

static void sample_texts(const struct sample *s, struct model *ret)
{
    static char text[BLOB_MAX];
    size_t len = 0;
    ret->n = 0;
    for (const char *at = s->texts;; at++) {
        if (*at == '{') {
            char *close;
            size_t times = strtoul(at + 1, &close, 10);
            memset(text + len, text[len - 1], times - 1);
            len += times - 1;
            at = close;
        } else if (*at == '|' || *at == '\0') {
            model_insert(ret, ret->n, rd_slice(text, len));
            len = 0;
            if (*at == '\0')
                return;
        } else {
            text[len++] = *at;
        }
    }
}

static void check_and_free(uint8_t *lp, const struct model *m, const struct sample *s)
{
    check(lp, m);
    cr_assert(rd_slice_eq(rd_slice(lp, engine_lp_bytes(lp)), sample_blob(s)), "%s", s->name);
    engine_lp_free(lp);
}

Test(listpack, bytes_are_those_of_a_server_in_whatever_order_entries_come)
{
    for (size_t k = 0; k < sizeof samples / sizeof *samples; k++) {
        const struct sample *s = &samples[k];
        static struct model m;
        sample_texts(s, &m);
        uint8_t *forward = engine_lp_new(0), *backward = engine_lp_new(0);
        uint8_t *even = engine_lp_new(0), *other = engine_lp_new(0);
        for (size_t i = 0; i < m.n; i++) {
            engine_lp_append(&forward, m.texts[i]);
            engine_lp_prepend(&backward, m.texts[m.n - 1 - i]);
            engine_lp_append(&other, rd_slice_str("something else"));
            if (i % 2 == 0)
                engine_lp_append(&even, m.texts[i]);
        }
        for (size_t i = 0; i < m.n; i++) {
            if (i % 2 == 1)
                engine_lp_insert(&even, engine_lp_at(even, (long)i - 1), m.texts[i], true);
            engine_lp_replace(&other, engine_lp_at(other, (long)i), m.texts[i]);
        }
        check_and_free(forward, &m, s);
        check_and_free(backward, &m, s);
        check_and_free(even, &m, s);
        check_and_free(other, &m, s);
        check_and_free(engine_lp_from(sample_blob(s)), &m, s);
        model_delete(&m, 0, m.n);
    }
}

static void check_number(int64_t v)
{
    char text[RD_NUM_I64_MAX];
    static struct model m;
    uint8_t *lp = engine_lp_new(0), *p = engine_lp_append_int(&lp, v);
    model_insert(&m, 0, rd_slice(text, rd_num_put_i64(text, v)));
    cr_assert(p == engine_lp_first(lp));
    check(lp, &m);
    cr_assert(engine_lp_find(lp, p, m.texts[0], 0) == p);
    engine_lp_replace(&lp, engine_lp_first(lp), rd_slice_str("text"));
    engine_lp_replace_int(&lp, engine_lp_first(lp), v);
    check(lp, &m);
    engine_lp_insert_int(&lp, engine_lp_first(lp), v, false);
    model_insert(&m, 0, m.texts[0]);
    check(lp, &m);
    engine_lp_free(lp);
    model_delete(&m, 0, 2);
}

Test(listpack, numbers_are_right_at_the_border_of_every_width)
{
    for (unsigned bit = 0; bit < 64; bit++)
        for (uint64_t d = 0; d < 5; d++) {
            check_number((int64_t)(((uint64_t)1 << bit) + d - 2));
            check_number((int64_t)(0 - (((uint64_t)1 << bit) + d - 2)));
        }
}

/* Small and large numbers, short strings, and strings at the limits of heads and back lengths. */
static struct rd_slice random_text(uint64_t *seed)
{
    static const size_t borders[] = {63, 64, 125, 126, 127, 4095, 4096, 16377, 16378};
    static char text[20000];
    uint64_t bits = next_random(seed), kind = bits % 16;
    size_t len = (bits >> 8) % 24;
    if (kind < 5)
        return rd_slice(text, rd_num_put_i64(text, (int64_t)next_random(seed) >> (bits >> 8) % 64));
    if (kind == 5 && bits >> 60 == 0)
        len = borders[(bits >> 16) % (sizeof borders / sizeof *borders)];
    else if (kind == 5)
        len = (bits >> 16) % 300;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(kind % 2 == 0 ? next_random(seed) : 'a' + next_random(seed) % 3);
    return rd_slice(text, len);
}

/* One operation on both; the position it returns must be that of the index. */
static void change(uint8_t **lp, struct model *m, uint64_t *seed)
{
    uint64_t bits = next_random(seed);
    bool after = (bits & 16) != 0;
    size_t at = m->n == 0 ? 0 : (bits >> 32) % m->n;
    size_t n = 1 + (bits >> 24) % 3;
    uint8_t *p = engine_lp_at(*lp, (long)at), *got;
    struct rd_slice text = random_text(seed);
    uint64_t kind = m->n + 1 >= MODEL_MAX ? 8 + bits % 6 : m->n == 0 ? bits % 8 : bits % 14;
    if (kind < 8) {
        if (kind < 3 || m->n == 0)
            at = m->n, got = engine_lp_append(lp, text);
        else if (kind < 5)
            at = 0, got = engine_lp_prepend(lp, text);
        else
            at += after, got = engine_lp_insert(lp, p, text, after);
        model_insert(m, at, text);
    } else if (kind < 10) {
        got = engine_lp_replace(lp, p, text);
        model_insert(m, at, text);
        model_delete(m, at + 1, 1);
    } else if (kind < 12) {
        got = engine_lp_delete(lp, p);
        model_delete(m, at, 1);
    } else if (kind == 12) {
        got = engine_lp_delete_range(lp, p, n);
        model_delete(m, at, n);
    } else {
        engine_lp_delete_index(lp, after ? (long)at : (long)at - (long)m->n, n);
        model_delete(m, at, n);
        got = engine_lp_at(*lp, (long)at);
    }
    cr_assert(got == engine_lp_at(*lp, (long)at));
}

Test(listpack, random_operations_agree_with_a_model)
{
    for (uint64_t run = 1; run <= 30; run++) {
        uint64_t seed = run * UINT64_C(0x9e3779b97f4a7c15);
        cr_log_info("seed %" PRIu64, seed);
        static struct model m;
        uint8_t *lp = engine_lp_new(0);
        for (unsigned i = 0; i < 400; i++) {
            change(&lp, &m, &seed);
            check(lp, &m);
        }
        engine_lp_free(lp);
        model_delete(&m, 0, m.n);
    }
}

Test(listpack, entries_appended_together_are_those_appended_one_by_one)
{
    uint64_t seed = 7;
    for (int round = 0; round < 300; round++) {
        uint8_t *one = engine_lp_new(0), *many = engine_lp_new(0);
        for (int group = 0; group < 4; group++) {
            struct rd_slice texts[20];
            struct engine_lp_tail tail;
            size_t n = next_random(&seed) % 20, room = n * ENGINE_LP_TAIL_INT;
            for (size_t i = 0; i < n; i++) {
                texts[i] = copy_text(random_text(&seed));
                room += engine_lp_tail_room(texts[i]);
            }
            cr_assert(engine_lp_tail_begin(&tail, &many, room));
            for (size_t i = 0; i < n; i++) {
                int64_t num = (int64_t)next_random(&seed) >> next_random(&seed) % 64;
                engine_lp_append(&one, texts[i]);
                engine_lp_append_int(&one, num);
                engine_lp_tail_add(&tail, texts[i]);
                engine_lp_tail_add_int(&tail, num);
                free_text(texts[i]);
            }
            engine_lp_tail_end(&tail);
            cr_assert(engine_usable(many) >= engine_lp_bytes(many));
            cr_assert(rd_slice_eq(rd_slice(one, engine_lp_bytes(one)),
                                  rd_slice(many, engine_lp_bytes(many))));
        }
        engine_lp_free(one);
        engine_lp_free(many);
    }
}

Test(listpack, room_beyond_the_limit_is_refused)
{
    struct engine_lp_tail tail;
    uint8_t *lp = engine_lp_new(0), *before = lp;
    cr_assert(!engine_lp_tail_begin(&tail, &lp, UINT32_MAX));
    cr_assert(lp == before);
    engine_lp_free(lp);
}

Test(listpack, split_and_merge_are_each_others_inverse_at_every_entry)
{
    uint64_t seed = 77;
    static struct model m, left, right;
    for (size_t i = 0; i < 60; i++)
        model_insert(&m, i, random_text(&seed));
    uint8_t *lp = engine_lp_from(model_blob(&m));
    for (size_t i = 0; i < m.n; i++) {
        left = m, right = m;
        left.n = i;
        right.n = m.n - i;
        memmove(right.texts, m.texts + i, right.n * sizeof *m.texts);
        uint8_t *tail = engine_lp_split(&lp, engine_lp_at(lp, (long)i));
        check(lp, &left);
        check(tail, &right);
        uint8_t *copy = engine_lp_dup(tail);
        check(copy, &right);
        engine_lp_free(copy);
        cr_assert(engine_lp_merge(&lp, tail));
        check(lp, &m);
        engine_lp_free(tail);
    }
    uint8_t *empty = engine_lp_new(0);
    cr_assert(engine_lp_merge(&lp, empty));
    check(lp, &m);
    engine_lp_free(empty);
    engine_lp_free(lp);
    model_delete(&m, 0, m.n);
}

static uint8_t *find_slowly(uint8_t *lp, size_t from, struct rd_slice text, unsigned skip)
{
    for (size_t i = from; i < engine_lp_count(lp); i += skip + 1) {
        char tmp[RD_NUM_I64_MAX];
        uint8_t *p = engine_lp_at(lp, (long)i);
        if (rd_slice_eq(engine_lp_item_text(engine_lp_get(p), tmp), text))
            return p;
    }
    return NULL;
}

Test(listpack, find_returns_the_first_entry_that_is_the_text)
{
    uint64_t seed = 4242;
    uint8_t *lp = engine_lp_new(0);
    cr_assert_null(engine_lp_find(lp, engine_lp_first(lp), rd_slice_str(""), 0));
    for (unsigned i = 0; i < 300; i++)
        engine_lp_append(&lp, random_text(&seed));
    for (unsigned i = 0; i < 3000; i++) {
        char tmp[RD_NUM_I64_MAX];
        uint64_t bits = next_random(&seed);
        unsigned skip = bits % 4;
        size_t from = (bits >> 8) % 300;
        struct rd_slice text = random_text(&seed);
        if (i % 4 != 0)
            text =
                engine_lp_item_text(engine_lp_get(engine_lp_at(lp, (long)(bits >> 20) % 300)), tmp);
        uint8_t *p = engine_lp_at(lp, (long)from);
        cr_assert(engine_lp_find(lp, p, text, skip) == find_slowly(lp, from, text, skip));
    }
    engine_lp_free(lp);
}

Test(listpack, texts_that_differ_in_one_byte_are_distinguished)
{
    uint8_t text[80];
    for (size_t len = 1; len < sizeof text; len++) {
        uint8_t *lp = engine_lp_new(0);
        memset(text, 'x', sizeof text);
        engine_lp_append(&lp, rd_slice(text, len - 1));
        engine_lp_append(&lp, rd_slice(text, len + 1));
        for (size_t i = 0; i < len; i++) {
            text[i] = 'y';
            cr_assert_null(engine_lp_find(lp, engine_lp_first(lp), rd_slice(text, len), 0));
            uint8_t *p = engine_lp_append(&lp, rd_slice(text, len));
            cr_assert(engine_lp_find(lp, engine_lp_first(lp), rd_slice(text, len), 0) == p);
            text[i] = 'x';
        }
        cr_assert_null(engine_lp_find(lp, engine_lp_first(lp), rd_slice(text, len), 0));
        engine_lp_free(lp);
    }
}

Test(listpack, entries_in_wider_forms_than_needed_are_read_and_found)
{
    static const uint8_t blob[] = {
        55,   0,    0,   0,    9, 0,                      /* header */
        0xc0, 5,    2,   0xf1, 5, 0,    3, 0xf2, 5, 0, 0, /* 5 in 13, 16, 24 bits */
        4,    0xf3, 5,   0,    0, 0,    5,                /* in 32 */
        0xf4, 5,    0,   0,    0, 0,    0, 0,    0, 9,    /* in 64 */
        0x81, '5',  2,   0xe0, 1, '5',  3,                /* as strings */
        0xf0, 1,    0,   0,    0, '5',  6,                /**/
        0xe0, 2,    'a', 'b',  4, 0xff,
    };
    uint8_t copy[sizeof blob];
    memcpy(copy, blob, sizeof blob);
    copy[0] = sizeof blob;
    uint8_t *lp = engine_lp_from(rd_slice(copy, sizeof copy));
    uint8_t *p = engine_lp_first(lp);
    for (unsigned i = 0; i < 8; i++, p = engine_lp_next(p)) {
        struct engine_lp_item item = engine_lp_get(p);
        cr_assert_eq(item.is_num, i < 5);
        cr_assert(engine_lp_item_eq(item, rd_slice_str("5")));
        cr_assert_not(engine_lp_item_eq(item, rd_slice_str("05")));
        cr_assert_not(engine_lp_item_eq(item, rd_slice_str("")));
        cr_assert(engine_lp_find(lp, p, rd_slice_str("5"), 0) == p);
        cr_assert(engine_lp_find(lp, p, rd_slice_str("ab"), 0) == engine_lp_last(lp));
    }
    cr_assert(engine_lp_item_eq(engine_lp_get(p), rd_slice_str("ab")));
    cr_assert_null(engine_lp_next(p));
    cr_assert_eq(engine_lp_count(lp), 9);
    engine_lp_free(lp);
}

Test(listpack, more_entries_than_the_header_can_count_are_counted)
{
    uint8_t *lp = engine_lp_new(0), *small = engine_lp_new(0);
    for (int i = 0; i < 65534; i++)
        engine_lp_append_int(&lp, i);
    cr_assert(rd_get_le16(lp + 4) == 65534 && engine_lp_count(lp) == 65534);
    for (int i = 65534; i < 65540; i++) {
        engine_lp_append_int(&lp, i);
        cr_assert(rd_get_le16(lp + 4) == 65535 && engine_lp_count(lp) == (size_t)i + 1);
    }
    cr_assert_eq(engine_lp_get(engine_lp_at(lp, 65539)).num, 65539);
    cr_assert_eq(engine_lp_get(engine_lp_at(lp, -65540)).num, 0);
    cr_assert(engine_lp_at(lp, 65540) == NULL && engine_lp_at(lp, -65541) == NULL);
    uint8_t *right = engine_lp_split(&lp, engine_lp_at(lp, 65535));
    cr_assert(engine_lp_count(right) == 5 && rd_get_le16(right + 4) == 5);
    cr_assert(engine_lp_count(lp) == 65535 && rd_get_le16(lp + 4) == 65535);
    engine_lp_delete_index(&lp, 10, 65500);
    cr_assert_eq(engine_lp_count(lp), 35);
    cr_assert_eq(engine_lp_get(engine_lp_at(lp, -1)).num, 65534);
    engine_lp_append_int(&small, 1);
    cr_assert_eq(rd_get_le16(lp + 4), 65535);
    cr_assert(engine_lp_merge(&small, lp) && engine_lp_merge(&small, right));
    cr_assert(rd_get_le16(small + 4) == 41 && engine_lp_count(small) == 41);
    cr_assert(engine_lp_merge(&lp, right) && rd_get_le16(lp + 4) == 40);
    engine_lp_free(lp);
    engine_lp_free(right);
    engine_lp_free(small);
}

/* The text of the long ones is never looked at. */
Test(listpack, what_is_too_long_is_refused_and_changes_nothing)
{
    static const uint8_t back[] = {0x00, 0xff, 0xff, 0xff, 0xff, 0x01, 0x80, 0x80, 0x80, 0x80};
    static struct model m;
    uint8_t byte = 'a', *lp = engine_lp_new(0);
    model_insert(&m, 0, rd_slice_str("text"));
    engine_lp_append(&lp, m.texts[0]);
    cr_assert_null(engine_lp_append(&lp, rd_slice(&byte, UINT32_MAX)));
    cr_assert_null(engine_lp_prepend(&lp, rd_slice(&byte, UINT32_MAX - 21)));
    cr_assert_null(engine_lp_insert(&lp, engine_lp_first(lp), rd_slice(&byte, SIZE_MAX / 4), true));
    cr_assert_null(engine_lp_replace(&lp, engine_lp_first(lp), rd_slice(&byte, UINT32_MAX)));
    check(lp, &m);
    cr_assert(engine_lp_fits(lp, ((size_t)1 << 30) - 13));
    cr_assert_not(engine_lp_fits(lp, ((size_t)1 << 30) - 12));
    cr_assert(engine_lp_fits(NULL, (size_t)1 << 30) && !engine_lp_fits(NULL, SIZE_MAX));
    cr_assert_eq(engine_lp_entry_size(rd_slice(&byte, 268435449)), 268435454 + 4);
    cr_assert_eq(engine_lp_entry_size(rd_slice(&byte, 268435450)), 268435455 + 5);
    cr_assert_eq(engine_lp_span_back(back + 5), 268435455 + 5);
    cr_assert_eq(engine_lp_span_back(back + 10), 268435456 + 5);
    engine_lp_free(lp);
    model_delete(&m, 0, 1);
}

Test(listpack, memory_grows_in_steps_and_is_given_back)
{
    uint8_t *lp = engine_lp_new(0);
    size_t n_moves = 0, n = 20000;
    for (size_t i = 0; i < n; i++) {
        size_t before = engine_usable(lp);
        engine_lp_append(&lp, rd_slice_str("ten bytes."));
        n_moves += engine_usable(lp) != before;
        size_t len = engine_lp_bytes(lp);
        cr_assert(!EXACT || engine_usable(lp) <= len + len / 4 + 16 + (len < 512 ? 32 : 0));
    }
    cr_assert_lt(n_moves, 80);
    n_moves = 0;
    for (size_t i = 0; i < n; i++) {
        size_t before = engine_usable(lp);
        engine_lp_delete(&lp, engine_lp_last(lp));
        n_moves += engine_usable(lp) != before;
        cr_assert(!EXACT || engine_usable(lp) <= 544 ||
                  engine_usable(lp) <= engine_lp_bytes(lp) + engine_lp_bytes(lp) / 4 + 16);
    }
    cr_assert_lt(n_moves, 80);
    engine_lp_free(lp);
    lp = engine_lp_new(10000);
    const uint8_t *place = lp;
    while (engine_lp_bytes(lp) + 12 <= 10000)
        engine_lp_append(&lp, rd_slice_str("ten bytes."));
    cr_assert(lp == place);
    engine_lp_delete_index(&lp, 3, SIZE_MAX);
    cr_assert_eq(engine_lp_bytes(lp), 43);
    engine_lp_append(&lp, rd_slice_str("x"));
    engine_lp_shrink(&lp);
    cr_assert_leq(engine_usable(lp), 64);
    cr_assert_eq(engine_lp_count(lp), 4);
    engine_lp_free(lp);
}
