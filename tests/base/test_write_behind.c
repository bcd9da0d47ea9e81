#include "base/write_behind.h"

#include <criterion/criterion.h>
#include <pthread.h>

#include "base/buf.h"
#include "base/crc64.h"
#include "tests/base/system.h"
#include "tests/support/alloc_fault.h"

enum { N_SINKS = 3, N_WRITES = 4000, LEN_MAX = 3000 };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* A sink that fails when it has taken so many bytes, and says how it was closed. */
struct fragile {
    size_t left;
    bool fail_sync;
    unsigned closed, committed;
};

static bool fragile_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct fragile *fragile = impl;
    (void)ptr;
    if (len > fragile->left)
        return rd_err_set(err, RD_ERR_IO, 7, "full");
    fragile->left -= len;
    return true;
}

static bool fragile_sync(void *impl, struct rd_err *err)
{
    const struct fragile *fragile = impl;
    return !fragile->fail_sync || rd_err_set(err, RD_ERR_IO, 8, "not durable");
}

static bool fragile_close(void *impl, bool commit, struct rd_err *err)
{
    struct fragile *fragile = impl;
    (void)err;
    fragile->closed++;
    fragile->committed += commit;
    return true;
}

static bool open_before(struct rd_sink **ret, struct rd_write_behind *wb, struct fragile *fragile,
                        struct rd_err *err)
{
    static const struct rd_sink_ops ops = {fragile_write, fragile_sync, fragile_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = 1, .origin = "fragile");
    struct rd_sink *inner;
    return rd_sink_new(&inner, &ops, fragile, &opts, err) &&
           rd_write_behind_open(ret, wb, inner, err);
}

static struct rd_write_behind *begin(void)
{
    system_processors = 2;
    struct rd_write_behind *wb = rd_write_behind_new();
    cr_assert_not_null(wb);
    return wb;
}

/* One write in twenty is longer than a block. */
static void write_random(struct rd_sink *sink, struct rd_buf *copy, uint32_t *state)
{
    static uint8_t bytes[3 * RD_BEHIND_BLOCK];
    size_t len = next_random(state) % LEN_MAX;
    if (len % 20 == 0)
        len = RD_BEHIND_BLOCK - 10 + 61 * len;
    len = len < sizeof bytes ? len : sizeof bytes;
    memset(bytes, (int)next_random(state), len);
    cr_assert(rd_sink_write(sink, bytes, len));
    cr_assert(rd_buf_add(copy, bytes, len));
    cr_assert_eq(rd_sink_offset(sink), copy->len);
}

Test(wb, every_sink_gets_its_bytes_in_order)
{
    struct rd_write_behind *wb = begin();
    struct rd_sink *sinks[N_SINKS];
    struct rd_buf outs[N_SINKS] = {{0}}, copies[N_SINKS] = {{0}};
    struct rd_err err = {0};
    uint32_t state = 20261122;
    for (size_t i = 0; i < N_SINKS; i++) {
        struct rd_sink *inner;
        cr_assert(rd_sink_open_buf(&inner, &outs[i], NULL, &err));
        cr_assert(rd_write_behind_open(&sinks[i], wb, inner, &err));
        cr_assert(rd_sink_write(sinks[i], "abc", 3));
        cr_assert(rd_buf_add(&copies[i], "abc", 3));
        rd_sink_sum_begin(sinks[i], 9);
    }
    for (unsigned i = 0; i < N_WRITES; i++) {
        size_t which = next_random(&state) % N_SINKS;
        write_random(sinks[which], &copies[which], &state);
        if (i % 500 == 0)
            cr_assert(rd_sink_sync(sinks[which]));
    }
    for (size_t i = 0; i < N_SINKS; i++) {
        cr_expect_eq(rd_sink_sum(sinks[i]), rd_crc64(9, copies[i].ptr + 3, copies[i].len - 3));
        cr_assert(rd_sink_close(sinks[i], &err));
        cr_expect(rd_slice_eq(rd_buf_slice(&outs[i]), rd_buf_slice(&copies[i])), "sink %zu", i);
        rd_buf_done(&outs[i]);
        rd_buf_done(&copies[i]);
    }
    rd_write_behind_free(wb);
}

Test(wb, a_failure_shows_at_the_end_at_the_latest_and_others_go_on)
{
    static const uint8_t bytes[RD_BEHIND_BLOCK];
    struct rd_write_behind *wb = begin();
    struct fragile whole = {.left = SIZE_MAX}, broken = {.left = 5 * RD_BEHIND_BLOCK};
    struct rd_sink *good, *bad;
    struct rd_err err = {0};
    cr_assert(open_before(&good, wb, &whole, &err));
    cr_assert(open_before(&bad, wb, &broken, &err));
    for (unsigned i = 0; i < 4 * RD_BEHIND_BLOCKS; i++) {
        cr_assert(rd_sink_write(good, bytes, sizeof bytes - i));
        (void)rd_sink_write(bad, bytes, sizeof bytes - i);
    }
    cr_expect_not(rd_sink_sync(bad));
    rd_sink_sum_begin(bad, 0);
    cr_expect_eq(rd_sink_sum(bad), 0);
    cr_expect(rd_sink_sync(good));
    cr_expect_not(rd_sink_close(bad, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    cr_expect_eq(err.offset, 7);
    cr_expect_str_eq(err.origin, "fragile");
    rd_err_reset(&err);
    cr_expect(rd_sink_close(good, &err));
    cr_expect_eq(whole.committed, 1);
    cr_expect_eq(broken.closed, 1);
    cr_expect_eq(broken.committed, 0);
    rd_write_behind_free(wb);
}

Test(wb, a_failure_that_shows_at_the_sync_alone_is_reported)
{
    struct rd_write_behind *wb = begin();
    struct fragile fragile = {.left = 10, .fail_sync = true};
    struct rd_sink *sink;
    struct rd_err err = {0};
    cr_assert(open_before(&sink, wb, &fragile, &err));
    cr_assert(rd_sink_write(sink, "abc", 3));
    cr_expect_not(rd_sink_sync(sink));
    cr_expect_not(rd_sink_close(sink, &err));
    cr_expect_eq(err.offset, 8);
    cr_expect_eq(fragile.committed, 0);
    rd_write_behind_free(wb);
}

Test(wb, what_is_dropped_drops_the_sink_after)
{
    static const uint8_t bytes[RD_BEHIND_BLOCK];
    struct rd_write_behind *wb = begin();
    struct fragile fragile = {.left = SIZE_MAX};
    struct rd_sink *sink;
    struct rd_err err = {0};
    cr_assert(open_before(&sink, wb, &fragile, &err));
    for (unsigned i = 0; i < 20; i++)
        cr_assert(rd_sink_write(sink, bytes, sizeof bytes));
    rd_sink_abort(sink);
    cr_expect_eq(fragile.closed, 1);
    cr_expect_eq(fragile.committed, 0);
    rd_write_behind_free(wb);
}

static bool write_much(struct rd_write_behind *wb, struct fragile *fragile, struct rd_err *err)
{
    static const uint8_t bytes[2 * RD_BEHIND_BLOCK];
    struct rd_sink *sink;
    if (!open_before(&sink, wb, fragile, err))
        return false;
    for (unsigned i = 0; i < 6; i++)
        (void)rd_sink_write(sink, bytes, 1 + i * 20000u);
    return rd_sink_close(sink, err);
}

Test(wb, every_allocation_may_fail)
{
    size_t n;
    rd_write_behind_free(begin());
    for (n = 1;; n++) {
        struct fragile fragile = {.left = SIZE_MAX};
        struct rd_err err = {0};
        alloc_fault_begin(n);
        struct rd_write_behind *wb = rd_write_behind_new();
        bool ok = wb != NULL && write_much(wb, &fragile, &err);
        rd_write_behind_free(wb);
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        if (!result.failed)
            break;
        cr_assert_not(ok, "allocation %zu", n);
        cr_assert(wb == NULL || err.code == RD_ERR_MEMORY, "allocation %zu", n);
    }
    cr_assert_gt(n, 6);
}

Test(wb, there_is_none_without_a_thread)
{
    pthread_attr_t usual, greedy;
    pthread_getattr_default_np(&usual);
    pthread_attr_init(&greedy);
    cr_assert_eq(pthread_attr_setstacksize(&greedy, (size_t)1 << 62), 0); /* more than there is */
    pthread_setattr_default_np(&greedy);
    struct rd_write_behind *wb = rd_write_behind_new();
    pthread_setattr_default_np(&usual);
    cr_expect_null(wb);
    pthread_attr_destroy(&greedy);
    rd_write_behind_free(begin());
}

/* ---- a sink that is closed elsewhere ---- */

/* Writes when the other sink is closed, or has been waited for long enough. */
struct patient {
    pthread_mutex_t lock;
    pthread_cond_t closed;
    bool is_closed;
    bool writes; /* the thread has come here */
    struct rd_sink *other;
};

static bool patient_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct patient *patient = impl;
    (void)ptr, (void)len, (void)err;
    pthread_mutex_lock(&patient->lock);
    patient->writes = true;
    pthread_cond_broadcast(&patient->closed);
    while (!patient->is_closed)
        pthread_cond_wait(&patient->closed, &patient->lock);
    pthread_mutex_unlock(&patient->lock);
    return true;
}

static bool patient_sync(void *impl, struct rd_err *err)
{
    (void)impl, (void)err;
    return true;
}

static bool patient_close(void *impl, bool commit, struct rd_err *err)
{
    (void)impl, (void)commit, (void)err;
    return true;
}

static void *close_other(void *arg)
{
    struct patient *patient = arg;
    pthread_mutex_lock(&patient->lock);
    while (!patient->writes)
        pthread_cond_wait(&patient->closed, &patient->lock);
    pthread_mutex_unlock(&patient->lock);
    bool ok = rd_sink_close(patient->other, NULL);
    pthread_mutex_lock(&patient->lock);
    patient->is_closed = true;
    pthread_cond_broadcast(&patient->closed);
    pthread_mutex_unlock(&patient->lock);
    return ok ? arg : NULL;
}

/* The first one waited forever: closing the other withdrew the request to be woken. */
Test(wb, a_synced_sink_is_closed_while_another_is_synced, .timeout = 120)
{
    static const struct rd_sink_ops ops = {patient_write, patient_sync, patient_close};
    struct rd_write_behind *wb = begin();
    struct fragile fragile = {.left = SIZE_MAX};
    struct patient patient = {.lock = PTHREAD_MUTEX_INITIALIZER,
                              .closed = PTHREAD_COND_INITIALIZER};
    struct rd_sink *inner, *sink;
    pthread_t thread;
    void *closed = NULL;
    cr_assert(open_before(&patient.other, wb, &fragile, NULL));
    cr_assert(rd_sink_write(patient.other, "x", 1) && rd_sink_sync(patient.other));
    cr_assert(
        rd_sink_new(&inner, &ops, &patient, &RD_SINK_OPTS(.buffer = 1, .origin = "patient"), NULL));
    cr_assert(rd_write_behind_open(&sink, wb, inner, NULL));
    cr_assert_eq(pthread_create(&thread, NULL, close_other, &patient), 0);
    cr_assert(rd_sink_write(sink, "y", 1));
    cr_assert(rd_sink_sync(sink));
    cr_assert(rd_sink_close(sink, NULL));
    pthread_join(thread, &closed);
    cr_assert_not_null(closed);
    cr_assert_eq(fragile.committed, 1);
    rd_write_behind_free(wb);
}
