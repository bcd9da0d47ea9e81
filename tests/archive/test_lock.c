#include "archive/lock.h"

#include "archive/repo.h"
#include "base/buf.h"
#include "tests/archive/folder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* A folder that has no locks of the system, as stores that are elsewhere. Before each request,
 * `meanwhile` does what another process does. */
static char path[64];
static struct archive_store *store;
static struct archive_store_ops ops;
static const struct archive_store_ops *folder_ops;
static int64_t age_ms;
static uint64_t now_ms;
static size_t n_requests, at_request;
static void (*meanwhile)(void);

static void count_request(void)
{
    void (*now)(void) = ++n_requests == at_request ? meanwhile : NULL;
    if (now != NULL) {
        meanwhile = NULL;
        now();
    }
}

static bool counted_put(struct archive_store *s, const char *name, struct rd_sink **ret,
                        struct rd_err *err)
{
    count_request();
    return folder_ops->put(s, name, ret, err);
}

static bool counted_list(struct archive_store *s, const char *folder, archive_each_fn *each,
                         void *arg, struct rd_err *err)
{
    count_request();
    return folder_ops->list(s, folder, each, arg, err);
}

static bool counted_remove(struct archive_store *s, const char *name, struct rd_err *err)
{
    count_request();
    return folder_ops->remove(s, name, err);
}

static bool known_age(struct archive_store *s, const char *name, int64_t *ret_ms,
                      struct rd_err *err)
{
    (void)s, (void)name, (void)err;
    *ret_ms = age_ms;
    return true;
}

static bool broken_list(struct archive_store *s, const char *folder, archive_each_fn *each,
                        void *arg, struct rd_err *err)
{
    (void)s, (void)folder, (void)each, (void)arg;
    return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "no answer");
}

static uint64_t clock_now(void)
{
    return now_ms;
}

static int64_t clock_wall(void)
{
    return 1700000000000;
}

static bool is_dead(const struct archive_lock_holder *holder)
{
    return holder->pid == 666;
}

static struct archive_lock a, b;

static void make(struct archive_lock *lock, const char *id, enum archive_lock_kind kind)
{
    struct archive_lock_opts opts = {.now_ms = clock_now, .wall_ms = clock_wall, .gone = is_dead};
    struct rd_err err = {0};
    snprintf(opts.self.id, sizeof opts.self.id, "%s", id);
    snprintf(opts.self.owner, sizeof opts.self.owner, "run %c", id[0]);
    opts.self.pid = 17;
    cr_assert(archive_lock_init(lock, "t", kind, &opts, &err), "%s", err.text);
}

static void begin(void)
{
    store = folder_open(path);
    folder_ops = store->ops;
    ops = *folder_ops;
    ops.lock = NULL;
    ops.age = NULL;
    ops.put = counted_put;
    ops.list = counted_list;
    ops.remove = counted_remove;
    store->ops = &ops;
    now_ms = 1000000;
    make(&a, "aaaaaaaaaaaaaaaa", ARCHIVE_LOCK_SETS);
    make(&b, "bbbbbbbbbbbbbbbb", ARCHIVE_LOCK_SETS);
}

static void end(void)
{
    archive_lock_done(&a);
    archive_lock_done(&b);
    store->ops = folder_ops;
    folder_remove(store, path);
}

TestSuite(lock, .init = begin, .fini = end);

static bool try(struct archive_lock *lock)
{
    struct rd_err err = {0};
    bool ok = archive_lock_try(lock, store, &err);
    cr_expect(ok || err.code == RD_ERR_LOCKED, "%s", err.text);
    return ok;
}

static bool renew(struct archive_lock *lock)
{
    struct rd_err err = {0};
    bool ok = archive_lock_renew(lock, store, &err);
    cr_expect(ok || err.code == RD_ERR_LOCKED, "%s", err.text);
    return ok;
}

static void add_one(void *arg, const struct archive_listed *object)
{
    (void)object;
    ++*(size_t *)arg;
}

static size_t n_objects(void)
{
    size_t n = 0;
    cr_assert(folder_ops->list(store, "t/locks/sets", add_one, &n, NULL));
    return n;
}

Test(lock, one_has_it_and_the_other_learns_who)
{
    struct rd_err err = {0};
    cr_assert(try(&a));
    cr_expect_not(archive_lock_try(&b, store, &err));
    cr_expect_eq(err.code, RD_ERR_LOCKED);
    cr_expect_not_null(strstr(err.text, "run a"), "%s", err.text);
    archive_lock_drop(&a, store);
    cr_expect_eq(n_objects(), 0);
    cr_expect(try(&b));
}

Test(lock, a_renewed_lock_is_one_object_and_never_expires)
{
    cr_assert(try(&a));
    for (unsigned i = 0; i < 20; i++) {
        now_ms += ARCHIVE_LOCK_EXPIRE_MS - 1;
        cr_expect_not(try(&b), "%u", i);
        cr_assert(renew(&a), "%u", i);
        cr_expect_eq(n_objects(), 1);
    }
    cr_expect_not(try(&b));
    cr_expect(b.seen_alive);
}

Test(lock, one_that_is_not_renewed_is_taken_after_its_time_and_not_before)
{
    cr_assert(try(&a));
    cr_expect_not(try(&b));
    now_ms += ARCHIVE_LOCK_EXPIRE_MS - 1;
    cr_expect_not(try(&b));
    cr_expect_not(b.seen_alive);
    now_ms += 1;
    cr_assert(try(&b));
    cr_expect_eq(n_objects(), 1);
    cr_expect_not(renew(&a), "a stopped process that continues");
    cr_expect(a.lost);
    cr_expect(renew(&b), "the loser leaves nothing in the way");
}

Test(lock, the_time_of_expiry_is_that_of_the_holder)
{
    a.opts.self.expire_ms = 2 * ARCHIVE_LOCK_EXPIRE_MS;
    cr_assert(try(&a));
    cr_expect_not(try(&b));
    now_ms += ARCHIVE_LOCK_EXPIRE_MS + 1;
    cr_expect_not(try(&b));
}

Test(lock, who_looks_for_the_first_time_does_not_take_it_whatever_its_clock_says)
{
    cr_assert(try(&a));
    now_ms += 1000 * (uint64_t)ARCHIVE_LOCK_EXPIRE_MS;
    cr_expect_not(try(&b));
}

Test(lock, the_clock_of_the_store_may_tell)
{
    ops.age = known_age;
    cr_assert(try(&a));
    age_ms = ARCHIVE_LOCK_EXPIRE_MS - 1;
    cr_expect_not(try(&b));
    age_ms++;
    cr_expect(try(&b));
}

Test(lock, a_process_that_has_certainly_ended_holds_nothing)
{
    a.opts.self.pid = 666;
    cr_assert(try(&a));
    cr_expect(try(&b));
}

Test(lock, a_slow_holder_continues_if_no_other_took_the_lock)
{
    cr_assert(try(&a));
    now_ms += 10 * (uint64_t)ARCHIVE_LOCK_EXPIRE_MS;
    cr_expect(archive_lock_check(&a, store, NULL));
    cr_expect_not(try(&b));
}

Test(lock, a_check_asks_the_store_only_after_half_of_the_time)
{
    cr_assert(try(&a));
    size_t before = n_requests;
    cr_expect(archive_lock_check(&a, store, NULL));
    cr_expect_eq(n_requests, before);
    now_ms += ARCHIVE_LOCK_EXPIRE_MS / 2;
    cr_expect(archive_lock_check(&a, store, NULL));
    cr_expect_gt(n_requests, before);
}

Test(lock, one_that_was_broken_is_lost)
{
    cr_assert(try(&a));
    cr_assert(archive_lock_break(&b, store, NULL));
    cr_expect_not(archive_lock_confirm(&a, store, NULL));
    cr_expect_not(renew(&a));
    cr_expect(try(&b));
}

Test(lock, without_an_answer_the_time_decides)
{
    struct rd_err err = {0};
    cr_assert(try(&a));
    ops.list = broken_list;
    cr_expect(archive_lock_confirm(&a, store, NULL));
    cr_expect_not(archive_lock_renew(&a, store, &err));
    cr_expect_eq(err.code, RD_ERR_PROTOCOL);
    now_ms += ARCHIVE_LOCK_EXPIRE_MS;
    rd_err_reset(&err);
    cr_expect_not(archive_lock_confirm(&a, store, &err));
    cr_expect_eq(err.code, RD_ERR_PROTOCOL);
    ops.list = counted_list;
    cr_expect(renew(&a), "the network is back, and no other process has come");
    cr_expect_eq(n_objects(), 1);
}

/* Heartbeats whose list was not answered, or whose removals failed, leave their objects. */
static void leave_many(void)
{
    cr_assert(try(&a));
    ops.list = broken_list;
    for (unsigned i = 0; i < 100; i++)
        cr_expect_not(archive_lock_renew(&a, store, NULL));
    ops.list = counted_list;
    cr_assert_eq(n_objects(), 101);
}

Test(lock, any_number_of_objects_of_a_dead_run_expires)
{
    leave_many();
    cr_expect_not(try(&b));
    now_ms += ARCHIVE_LOCK_EXPIRE_MS - 1;
    cr_expect_not(try(&b));
    now_ms++;
    cr_assert(try(&b));
    cr_expect_eq(n_objects(), 1);
    cr_expect_not(renew(&a));
}

Test(lock, a_run_that_left_any_number_of_objects_keeps_its_lock)
{
    leave_many();
    cr_expect(archive_lock_confirm(&a, store, NULL));
    cr_expect(renew(&a));
    cr_expect_eq(n_objects(), 1);
    cr_expect_not(try(&b));
}

Test(lock, any_number_of_objects_is_reported_and_removed)
{
    struct archive_lock_report report;
    struct rd_err err = {0};
    leave_many();
    cr_assert(archive_lock_look(&b, store, &report, &err), "%s", err.text);
    cr_expect_eq(report.n, 101);
    cr_expect_eq(report.state, ARCHIVE_LOCK_UNKNOWN);
    cr_assert(archive_lock_break(&b, store, &err), "%s", err.text);
    cr_expect_eq(n_objects(), 0);
}

/* ---- two at the same time ---- */

static bool b_took, a_renewed;

static void b_tries(void)
{
    b_took = archive_lock_try(&b, store, NULL);
}

static void a_renews(void)
{
    a_renewed = archive_lock_renew(&a, store, NULL);
}

Test(lock, of_two_that_come_at_once_at_most_one_has_it)
{
    size_t n_taken = 0;
    for (size_t at = 1; at < 12; at++) {
        n_requests = 0;
        at_request = at;
        meanwhile = b_tries;
        b_took = false;
        bool a_took = archive_lock_try(&a, store, NULL);
        meanwhile = NULL;
        cr_expect_not(a_took && b_took, "at request %zu", at);
        n_taken += a_took || b_took;
        archive_lock_drop(&a, store);
        archive_lock_drop(&b, store);
        cr_expect_eq(n_objects(), 0, "at request %zu", at);
    }
    cr_expect_gt(n_taken, 8);
}

/* The holder comes back while another process takes its lock, at each request of the other. */
static bool counted_stat(struct archive_store *s, const char *name, struct archive_object *ret,
                         struct rd_err *err)
{
    count_request();
    return folder_ops->stat(s, name, ret, err);
}

static bool counted_get(struct archive_store *s, const char *name, struct rd_src **ret,
                        struct rd_err *err)
{
    count_request();
    return folder_ops->get(s, name, ret, err);
}

static void release_a(void)
{
    archive_lock_drop(&a, store);
}

static void renew_a(void)
{
    renew(&a);
}

/* Whoever waits for a lock looks at it while its holder removes or renews it. */
Test(lock, one_that_goes_at_any_request_of_a_look_is_no_error)
{
    ops.stat = counted_stat;
    ops.get = counted_get;
    for (at_request = 1; at_request < 12; at_request++) {
        cr_assert(try(&a));
        n_requests = 0;
        meanwhile = release_a;
        try(&b);
        meanwhile = NULL;
        archive_lock_drop(&b, store);
        archive_lock_drop(&a, store);
        cr_assert(try(&a));
        n_requests = 0;
        meanwhile = renew_a;
        cr_expect_not(try(&b), "%zu", at_request);
        meanwhile = NULL;
        cr_expect(renew(&a), "%zu", at_request);
        archive_lock_drop(&a, store);
    }
}

Test(lock, an_expired_lock_never_has_two_holders)
{
    for (size_t at = 1; at < 12; at++) {
        cr_assert(try(&a));
        cr_expect_not(try(&b));
        now_ms += ARCHIVE_LOCK_EXPIRE_MS;
        n_requests = 0;
        at_request = at;
        meanwhile = a_renews;
        a_renewed = false;
        bool took = archive_lock_try(&b, store, NULL);
        meanwhile = NULL;
        bool kept = archive_lock_renew(&a, store, NULL);
        cr_expect_not(took && kept, "at request %zu", at);
        cr_expect(!took || archive_lock_renew(&b, store, NULL), "at request %zu", at);
        archive_lock_drop(&a, store);
        archive_lock_drop(&b, store);
        cr_expect_eq(n_objects(), 0, "at request %zu", at);
    }
}

Test(lock, what_this_run_had_before_a_failure_is_its_own)
{
    struct archive_lock again;
    cr_assert(try(&a));
    make(&again, "aaaaaaaaaaaaaaaa", ARCHIVE_LOCK_SETS);
    cr_expect(try(&again));
    cr_expect_eq(n_objects(), 1);
    archive_lock_done(&again);
}

Test(lock, numbers_are_not_used_again)
{
    cr_assert(try(&a));
    uint64_t number = a.number;
    archive_lock_drop(&a, store);
    cr_assert(try(&a));
    cr_expect_gt(a.number, number);
}

Test(lock, other_objects_are_not_locks)
{
    folder_put(store, "t/locks/sets/00000001-aaaaaaaaaaaaaaaa.new", "x");
    folder_put(store, "t/locks/sets/probe", "x");
    folder_put(store, "t/locks/sets/1-", "x");
    cr_expect(try(&a));
    cr_expect(renew(&a));
}

Test(lock, one_that_cannot_be_read_is_a_lock_all_the_same)
{
    static const char *const texts[] = {"", "{", "{\"format\": 1}", "no JSON"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        folder_put(store, "t/locks/sets/00000001-cccccccccccccccc", texts[i]);
        cr_expect_not(try(&a), "%s", texts[i]);
        now_ms += ARCHIVE_LOCK_EXPIRE_MS;
        cr_expect(try(&a), "%s", texts[i]);
        archive_lock_drop(&a, store);
    }
}

/* ---- locks of older versions ---- */

Test(lock, one_without_heartbeats_is_named_and_expires_by_the_clock_of_the_store)
{
    struct rd_err err = {0};
    folder_put(store, "t/lock", "redoubt backup, process 1 on pod, since 2026-01-01T00:00:00Z");
    cr_expect_not(archive_lock_try(&a, store, &err));
    cr_expect_not_null(strstr(err.text, "process 1 on pod"), "%s", err.text);
    cr_expect(a.is_old);
    now_ms += 1000 * (uint64_t)ARCHIVE_LOCK_EXPIRE_MS;
    cr_expect_not(try(&a), "its holder may be working all that time");
    ops.age = known_age;
    age_ms = ARCHIVE_LOCK_OLD_MS - 1;
    cr_expect_not(try(&a));
    age_ms++;
    cr_expect(try(&a));
    cr_expect_not(folder_has(path, "t/lock"));
}

Test(lock, an_old_one_of_an_archive_never_expires)
{
    struct archive_lock stream;
    make(&stream, "dddddddddddddddd", ARCHIVE_LOCK_STREAM);
    ops.age = known_age;
    age_ms = 100 * ARCHIVE_LOCK_OLD_MS;
    folder_put(store, "t/stream/lock", "redoubt archive, process 1 on pod");
    cr_expect_not(try(&stream));
    cr_assert(archive_lock_break(&stream, store, NULL));
    cr_expect(try(&stream));
    archive_lock_done(&stream);
}

/* ---- looking at it ---- */

static enum archive_lock_state look(struct archive_lock_report *ret)
{
    cr_assert(archive_lock_look(&b, store, ret, NULL));
    return ret->state;
}

Test(lock, a_look_tells_the_state_and_changes_nothing)
{
    struct archive_lock_report r;
    cr_expect_eq(look(&r), ARCHIVE_LOCK_FREE);
    cr_assert(try(&a));
    cr_expect_eq(look(&r), ARCHIVE_LOCK_UNKNOWN);
    cr_expect_str_eq(r.holder.owner, "run a");
    cr_expect_eq(r.holder.since_ms, clock_wall());
    cr_assert(renew(&a));
    cr_expect_eq(look(&r), ARCHIVE_LOCK_ALIVE);
    now_ms += ARCHIVE_LOCK_EXPIRE_MS;
    cr_expect_eq(look(&r), ARCHIVE_LOCK_EXPIRED);
    ops.age = known_age;
    age_ms = 7000;
    cr_assert(renew(&a));
    cr_expect_eq(look(&r), ARCHIVE_LOCK_ALIVE);
    cr_expect_eq(r.age_ms, 7000);
    archive_lock_drop(&a, store);
    a.opts.self.pid = 666;
    cr_assert(try(&a));
    cr_expect_eq(look(&r), ARCHIVE_LOCK_ENDED);
    archive_lock_drop(&a, store);
    folder_put(store, "t/lock", "redoubt backup, process 1 on pod");
    cr_expect_eq(look(&r), ARCHIVE_LOCK_OLD);
    cr_expect_str_eq(r.holder.owner, "redoubt backup, process 1 on pod");
}

Test(lock, of_a_folder_it_is_the_lock_of_the_system)
{
    struct archive_store *other;
    struct archive_lock_report r;
    store->ops = folder_ops;
    cr_assert(archive_store_open_posix(&other, path, true, NULL));
    cr_assert(try(&a));
    cr_assert(archive_lock_look(&b, other, &r, NULL));
    cr_expect_eq(r.state, ARCHIVE_LOCK_ALIVE);
    cr_expect_str_eq(r.holder.owner, "run a");
    cr_expect_not(archive_lock_try(&b, other, NULL));
    cr_expect(archive_lock_confirm(&a, store, NULL));
    cr_assert(archive_lock_break(&b, other, NULL));
    cr_expect_not(archive_lock_confirm(&a, store, NULL), "its file was removed");
    cr_expect(archive_lock_try(&b, other, NULL));
    archive_lock_drop(&b, other);
    cr_assert(archive_lock_look(&a, other, &r, NULL));
    cr_expect_eq(r.state, ARCHIVE_LOCK_FREE);
    archive_store_close(other);
}

/* ---- a set ---- */

static const char id[] = "20240229T000000Z-00000001";

static bool commit(struct archive_repo *repo, uint64_t size, struct rd_err *err)
{
    struct archive_manifest m = {.target = "t"};
    struct archive_file file = {.name = "dump.rdb", .object = "dump.rdb", .stored.bytes = size};
    strcpy(m.id, id);
    cr_assert(archive_manifest_add_file(&m, &file, NULL));
    bool ok = archive_repo_commit(repo, &m, rd_slice_str("{}"), err);
    archive_manifest_done(&m);
    return ok;
}

Test(lock, a_manifest_is_written_only_under_the_lock_and_for_objects_that_are_there)
{
    struct archive_repo repo = {.store = store, .target = "t"};
    struct rd_err err = {0};
    folder_put(store, "t/sets/20240229T000000Z-00000001/dump.rdb", "12345");
    cr_expect_not(commit(&repo, 5, &err));
    cr_expect_eq(err.code, RD_ERR_USAGE);
    repo.lock = &a;
    rd_err_reset(&err);
    cr_expect_not(commit(&repo, 5, &err));
    cr_expect_eq(err.code, RD_ERR_LOCKED);
    a.lost = false;
    cr_assert(try(&a));
    rd_err_reset(&err);
    cr_expect_not(commit(&repo, 6, &err));
    cr_expect_eq(err.code, RD_ERR_IO, "%s", err.text);
    cr_expect_not(folder_has(path, "t/sets/20240229T000000Z-00000001/manifest.json"));
    rd_err_reset(&err);
    cr_expect(commit(&repo, 5, &err), "%s", err.text);
}

/* Whatever happens between two requests, the manifest is not there when another has the lock. */
static void b_takes(void)
{
    cr_assert(archive_lock_break(&b, store, NULL));
    b_took = archive_lock_try(&b, store, NULL);
}

Test(lock, a_lock_that_is_lost_at_any_request_leaves_no_manifest)
{
    size_t n_refused = 0;
    folder_put(store, "t/sets/20240229T000000Z-00000001/dump.rdb", "12345");
    for (size_t at = 1; at < 12; at++) {
        struct archive_repo repo = {.store = store, .target = "t", .lock = &a};
        b_took = false;
        cr_assert(try(&a));
        n_requests = 0;
        at_request = at;
        meanwhile = b_takes;
        bool ok = commit(&repo, 5, NULL);
        meanwhile = NULL;
        cr_expect_eq(ok, folder_has(path, "t/sets/20240229T000000Z-00000001/manifest.json"));
        cr_expect(!ok || !b_took, "at request %zu", at);
        n_refused += !ok;
        archive_lock_drop(&a, store);
        archive_lock_drop(&b, store);
        cr_assert(
            folder_ops->remove(store, "t/sets/20240229T000000Z-00000001/manifest.json", NULL));
    }
    cr_expect_gt(n_refused, 4);
}
