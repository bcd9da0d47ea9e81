/* test_store_s3.c - every status and body that a store in S3 can give, at every request: what the
 * store says of an object is true, or it is an error. */
#include "archive/store_s3.h"

#include "archive/remote.h"
#include "archive/s3_answer.h"
#include "base/buf.h"
#include "tests/archive/fake_s3.h"

#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdio.h>
#include <stdlib.h>

enum { PART = 20, FEW_BODIES = 1 };

#define KEY "some/where/"

static struct fake_s3 *fake;
static struct archive_store *store;

static int64_t a_moment(void)
{
    return 1700000000000;
}

static struct archive_store *open_with(const char *prefix)
{
    char endpoint[60];
    struct archive_store *opened;
    struct rd_err err = {0};
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", fake_s3_port(fake));
    const struct archive_s3_opts opts = {.endpoint = endpoint,
                                         .region = "us-east-1",
                                         .bucket = "vault",
                                         .prefix = prefix,
                                         .access_key = "key",
                                         .secret_key = "secret",
                                         .now_ms = a_moment,
                                         .part_size = PART,
                                         .tries = 2};
    cr_assert(archive_store_open_s3(&opened, &opts, &err), "%s", err.text);
    return opened;
}

static void begin(void)
{
    fake = fake_s3_start();
    fake_s3_part(fake, PART);
    store = open_with("some/where");
}

static void end(void)
{
    archive_store_close(store);
    fake_s3_stop(fake);
}

TestSuite(s3, .init = begin, .fini = end);

/* ---- what is tried ---- */

static const char small[] = "the bytes";
static const char large[] = "the bytes of an object that goes in parts";
static const char other[] = "other bytes";

static bool write_it(const char *text, struct rd_err *err)
{
    return archive_store_write(store, "t/a", rd_slice_str(text), err);
}

static bool holds(const char *text)
{
    return fake_s3_is(fake, KEY "t/a", text, strlen(text));
}

/* After a put: what it said is what is so. */
static void judge_put(const char *text, bool ok, const struct rd_err *err, const char *what)
{
    if (ok)
        cr_assert(holds(text), "%s: it is not stored", what);
    else if (archive_store_exists(err))
        cr_assert(fake_s3_has(fake, KEY "t/a") && !holds(text), "%s: it is not another", what);
    else if (err->reason.id != ARCHIVE_REASON_UNKNOWN)
        cr_assert(!holds(text), "%s: it is stored, but: %s", what, err->text);
}

static bool put_small(struct rd_err *err)
{
    return write_it(small, err);
}

static bool put_large(struct rd_err *err)
{
    return write_it(large, err);
}

static void judge_small(bool ok, const struct rd_err *err, const char *what)
{
    judge_put(small, ok, err, what);
}

/* It was there before: a refusal is none of the object. */
static void judge_again(bool ok, const struct rd_err *err, const char *what)
{
    cr_assert(holds(small), "%s: it is gone", what);
    cr_assert(ok || !archive_store_exists(err), "%s: it is the same", what);
}

static void judge_large(bool ok, const struct rd_err *err, const char *what)
{
    judge_put(large, ok, err, what);
}

static void add_other(void)
{
    fake_s3_set(fake, KEY "t/a", other, strlen(other));
}

static void add_small(void)
{
    fake_s3_set(fake, KEY "t/a", small, strlen(small));
}

static struct archive_object object;

static bool stat_it(struct rd_err *err)
{
    return store->ops->stat(store, "t/a", &object, err);
}

static void judge_stat(bool ok, const struct rd_err *err, const char *what)
{
    (void)err;
    bool there = fake_s3_has(fake, KEY "t/a");
    cr_assert(!ok || (object.there == there && object.size == (there ? strlen(small) : 0)),
              "%s: there %d, %zu bytes", what, object.there, (size_t)object.size);
}

static struct rd_buf got;

static bool read_it(struct rd_err *err)
{
    rd_buf_done(&got);
    return archive_store_read(store, "t/a", 100, &got, err);
}

static void judge_read(bool ok, const struct rd_err *err, const char *what)
{
    (void)err;
    cr_assert(!ok || rd_slice_is(rd_buf_slice(&got), small), "%s: %.*s", what, (int)got.len,
              (const char *)got.ptr);
    rd_buf_done(&got);
}

static char names[400];

static void add_name(void *arg, const struct archive_listed *listed)
{
    size_t len = strlen(names);
    (void)arg;
    snprintf(names + len, sizeof names - len, "%s %d ", listed->name, (int)listed->size);
}

static bool list_it(struct rd_err *err)
{
    names[0] = '\0';
    return store->ops->list(store, "t", add_name, NULL, err);
}

static void judge_list(bool ok, const struct rd_err *err, const char *what)
{
    (void)err;
    cr_assert(!ok || strcmp(names, "t/a 9 t/b 5 t/c 5 t/d 5 t/e 5 ") == 0, "%s: %s", what, names);
}

static void add_many(void)
{
    static const char *const keys[] = {"t/b", "t/c", "t/d", "t/e", "u/a"};
    char key[40];
    add_small();
    for (size_t i = 0; i < 5; i++) {
        snprintf(key, sizeof key, KEY "%s", keys[i]);
        fake_s3_set(fake, key, "bytes", 5);
    }
    fake_s3_page(fake, 2);
}

static bool remove_it(struct rd_err *err)
{
    return store->ops->remove(store, "t/a", err);
}

static void judge_remove(bool ok, const struct rd_err *err, const char *what)
{
    (void)err;
    cr_assert(!ok || !fake_s3_has(fake, KEY "t/a"), "%s: it is still there", what);
    cr_assert(fake_s3_objects(fake) >= 5, "%s: others are gone", what);
}

static void nothing(void) {}

static const struct trial {
    const char *name;
    void (*prepare)(void);
    bool (*run)(struct rd_err *err);
    void (*judge)(bool ok, const struct rd_err *err, const char *what);
    bool right; /* without a fault it succeeds */
} trials[] = {
    {"put", nothing, put_small, judge_small, true},
    {"put of what exists", add_small, put_small, judge_again, true},
    {"put under another's name", add_other, put_small, judge_small, false},
    {"put in parts", nothing, put_large, judge_large, true},
    {"put in parts under another's name", add_other, put_large, judge_large, false},
    {"stat", add_small, stat_it, judge_stat, true},
    {"stat of nothing", nothing, stat_it, judge_stat, true},
    {"read", add_small, read_it, judge_read, true},
    {"list", add_many, list_it, judge_list, true},
    {"remove", add_many, remove_it, judge_remove, true},
};

/* ---- what is answered ---- */

static const int statuses[] = {200, 201, 202, 203, 204, 205, 206, 207, 226, 300, 301, 302,
                               303, 304, 305, 307, 308, 400, 401, 402, 403, 404, 405, 406,
                               407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421,
                               422, 423, 424, 425, 426, 428, 429, 431, 451, 499, 500, 501,
                               502, 503, 504, 505, 507, 508, 511, 520, 529, 599};

static const char *const bodies[] = {
    "<html><body>Please log in</body></html>",
    "",
    "<Error><Code>SlowDown</Code><Message>so it is</Message></Error>",
    "<Error><Code>NoSuchBucket</Code><Message>so it is</Message></Error>",
    "<e:Error xmlns:e=\"urn:x\"><e:Code>InternalError</e:Code></e:Error>",
    "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY a \"b\">]><Error><Code>&a;</Code></Error>",
    "{\"error\": \"no\"}",
    "<ListBucketResult></ListBucketResult>",
    "<Error><Code>cut",
};

static const struct fake_answer cuts[] = {
    {.cut = true},
    {.cut = true, .done = true},
    {.keep = 1},
    {.keep = 500},
    {.keep = 999},
    {.keep = 1, .whole = true},
    {.keep = 500, .whole = true},
    {.keep = 900, .whole = true},
    {.headers = ""}, /* the right answer without its headers */
};

static size_t n_tried;

static void try_one(const struct trial *trial, const struct fake_answer *answer, unsigned n,
                    bool always)
{
    char what[200];
    struct rd_err err = {0};
    snprintf(what, sizeof what, "%s, request %u%s: %d%s%s %.40s keep %d", trial->name, n,
             always ? " and later" : "", answer->status, answer->done ? " done" : "",
             answer->cut ? " cut" : "", answer->body != NULL ? answer->body : "-", answer->keep);
    fake_s3_clear(fake);
    trial->prepare();
    fake_s3_answer(fake, answer, n, always);
    bool ok = trial->run(&err);
    fake_s3_answer(fake, NULL, 0, false);
    cr_assert_eq(ok, err.code == RD_ERR_OK, "%s: %s", what, err.text);
    cr_assert(ok || err.text[0] != '\0', "%s", what);
    trial->judge(ok, &err, what);
    n_tried++;
}

/* S3's own word that it did not do what was asked for is believed. */
static bool refuses(int status, const char *body)
{
    return status >= 400 && status < 500 && strstr(body, "Error>") != NULL &&
           strstr(body, "cut") == NULL && strstr(body, "DOCTYPE") == NULL;
}

/* That an object was removed is believed with S3's status for it. */
static bool lies(const struct trial *trial, int status)
{
    return trial->run == remove_it && status == 204;
}

/* Those that mean something to S3, or to something between: with all bodies, and for good. */
static bool is_common(int status)
{
    static const int common[] = {200, 204, 206, 301, 400, 403, 404, 409, 412, 500, 503};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (common[i] == status)
            return true;
    return getenv("REDOUBT_STORE_ALL") != NULL;
}

static void try_status(const struct trial *trial, int status, unsigned n, bool always)
{
    size_t n_bodies = is_common(status) && !always ? sizeof bodies / sizeof *bodies : FEW_BODIES;
    unsigned n_done = is_common(status) ? 2 : 1;
    if (getenv("REDOUBT_STORE_ALL") != NULL)
        n_bodies = sizeof bodies / sizeof *bodies;
    for (size_t k = 0; k < n_bodies; k++)
        for (unsigned done = lies(trial, status); done < n_done; done++) {
            const struct fake_answer answer = {
                .status = status, .body = bodies[k], .done = done != 0};
            if (done == 0 || !refuses(status, bodies[k]))
                try_one(trial, &answer, n, always);
        }
}

static void try_all_at(const struct trial *trial, unsigned n, bool always)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (!always || is_common(statuses[i]))
            try_status(trial, statuses[i], n, always);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        try_one(trial, &cuts[i], n, always);
}

Test(s3, what_it_says_is_true_with_every_answer_at_every_request, .timeout = 600)
{
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const struct trial *trial = &trials[i];
        struct rd_err err = {0};
        fake_s3_clear(fake);
        trial->prepare();
        fake_s3_answer(fake, NULL, 0, false);
        bool ok = trial->run(&err);
        cr_assert_eq(ok, trial->right, "%s: %s", trial->name, err.text);
        unsigned n = fake_s3_count(fake);
        trial->judge(ok, &err, trial->name);
        for (unsigned at = 1; at <= n; at++) {
            try_all_at(trial, at, false);
            try_all_at(trial, at, true);
        }
        cr_assert_eq(fake_s3_uploads(fake), 0, "%s", trial->name);
    }
    cr_log_info("%zu answers", n_tried);
}

/* ---- lists ---- */

static bool list_body(const char *body, struct rd_err *err)
{
    const struct fake_answer answer = {.status = 200, .body = body};
    fake_s3_answer(fake, &answer, 1, true);
    bool ok = list_it(err);
    fake_s3_answer(fake, NULL, 0, false);
    return ok;
}

#define ROOT(inner) "<ListBucketResult>" inner "</ListBucketResult>"
#define WHOLE       "<IsTruncated>false</IsTruncated>"
#define ENTRY(key)  "<Contents><Key>" key "</Key><Size>9</Size></Contents>"

Test(s3, a_range_is_appended_and_its_refusal_is_explained)
{
    struct rd_buf both = {0};
    struct rd_err err = {0};
    add_small();
    cr_assert(archive_store_range(store, "t/a", 0, 3, &both, &err), "%s", err.text);
    cr_assert(archive_store_range(store, "t/a", 3, 1, &both, &err), "%s", err.text);
    cr_expect_eq(both.len, 4);
    cr_expect_arr_eq(both.ptr, small, 4);
    cr_assert_not(archive_store_range(store, "t/b", 0, 1, &both, &err));
    cr_expect(strstr(err.text, "NoSuchKey") != NULL, "%s", err.text);
    cr_expect_eq(both.len, 4);
    rd_buf_done(&both);
}

Test(s3, lists_that_are_whole_are_understood)
{
    static const struct {
        const char *body, *names;
    } lists[] = {
        {ROOT(WHOLE), ""},
        {ROOT(WHOLE ENTRY(KEY "t/a")), "t/a 9 "},
        {"<?xml version=\"1.0\"?>\n<x:ListBucketResult xmlns:x=\"urn:s3\"><x:IsTruncated>false"
         "</x:IsTruncated><x:Contents><x:Size>9</x:Size><x:Key>" KEY "t/a</x:Key></x:Contents>"
         "</x:ListBucketResult>",
         "t/a 9 "},
        {ROOT(WHOLE "<EncodingType>url</EncodingType>" ENTRY("some%2Fwhere%2Ft%2fa")), "t/a 9 "},
        {ROOT("<EncodingType>url</EncodingType>" ENTRY("some/where/t/%61") WHOLE), "t/a 9 "},
        {ROOT(WHOLE ENTRY(KEY "t/&#97;")), "t/a 9 "},
        {ROOT(WHOLE ENTRY(KEY "t/a b") ENTRY(KEY "t/&lt;")), ""},
        {ROOT(WHOLE "<CommonPrefixes><Prefix>x</Prefix></CommonPrefixes>"), ""},
        {ROOT(WHOLE "<Contents><Owner><Key>x</Key></Owner><Key>" KEY "t/a</Key><Size>9</Size>"
                    "</Contents>"),
         "t/a 9 "},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct rd_err err = {0};
        cr_assert(list_body(lists[i].body, &err), "%zu: %s", i, err.text);
        cr_expect_str_eq(names, lists[i].names, "%zu: %s", i, names);
    }
}

Test(s3, what_is_no_whole_list_is_an_error_and_not_an_empty_one)
{
    static const char *const bodies_of_lists[] = {
        "",
        "<html><body>no</body></html>",
        "<ListBucketResult>" WHOLE ENTRY(KEY "t/a"),
        "<ListBucketResult>" WHOLE "<Contents><Key>" KEY "t/a</Key>",
        ROOT(ENTRY(KEY "t/a")),
        ROOT("<IsTruncated>maybe</IsTruncated>"),
        ROOT("<IsTruncated>true</IsTruncated>" ENTRY(KEY "t/a")),
        ROOT(WHOLE "<Contents><Key>" KEY "t/a</Key></Contents>"),
        ROOT(WHOLE "<Contents><Size>9</Size></Contents>"),
        ROOT(WHOLE "<Contents><Key>" KEY "t/a</Key><Size>-1</Size></Contents>"),
        ROOT(WHOLE ENTRY("else/where/t/a")),
        ROOT(WHOLE "<EncodingType>url</EncodingType>" ENTRY(KEY "t/%zz")),
        ROOT(WHOLE) ROOT(WHOLE),
        "<!DOCTYPE ListBucketResult>" ROOT(WHOLE),
        "<Error><Code>InternalError</Code></Error>",
        "<a><b><c><d><e><f><g><h><i><j><k><l><m><n><o><p><q><r><s>",
        ROOT("<IsTruncated>true</IsTruncated><NextContinuationToken>t0</NextContinuationToken>"),
    };
    for (size_t i = 0; i < sizeof bodies_of_lists / sizeof *bodies_of_lists; i++) {
        struct rd_err err = {0};
        cr_assert_not(list_body(bodies_of_lists[i], &err), "%s", bodies_of_lists[i]);
        cr_expect_eq(err.code, RD_ERR_PROTOCOL, "%s", bodies_of_lists[i]);
    }
}

/* A store that ignores the prefix of the request lists the sets of other targets, too. */
Test(s3, a_list_of_another_folder_is_an_error_and_nothing_of_it_is_passed_on)
{
    static const char *const others[] = {"u/a", "t2/a", "t", "x"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char body[400];
        struct rd_err err = {0};
        snprintf(body, sizeof body, ROOT(WHOLE ENTRY(KEY "t/a") ENTRY(KEY "%s")), others[i]);
        cr_assert_not(list_body(body, &err), "%s", others[i]);
        cr_expect_eq(err.code, RD_ERR_PROTOCOL, "%s", others[i]);
        cr_expect_str_eq(names, "", "%s: %s", others[i], names);
    }
}

Test(s3, a_list_that_was_cut_at_any_byte_is_an_error)
{
    char body[400];
    snprintf(body, sizeof body, "%s", ROOT(WHOLE ENTRY(KEY "t/a") ENTRY(KEY "t/b")));
    for (size_t len = strlen(body); len-- > 0;) {
        struct rd_err err = {0};
        body[len] = '\0';
        cr_assert_not(list_body(body, &err), "%s", body);
    }
}

/* ---- prefixes and parts ---- */

Test(s3, prefixes_that_cannot_be_keys_are_refused)
{
    static const char *const bad[] = {"",    "a//b", "/a",   "a/",   ".",    "..",      "a/../b",
                                      "a/.", "a\nb", "\x7f", "\xff", "\xc3", "\xed\xa0"};
    static const char *const good[] = {"a", "...", ".a", "a b", "a%b", "\xc3\xbc", "a+b&c"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rd_err err = {0};
        cr_assert_not(archive_s3_check_prefix(bad[i], &err), "%s", bad[i]);
        cr_expect_eq(err.code, RD_ERR_USAGE);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_assert(archive_s3_check_prefix(good[i], NULL), "%s", good[i]);
}

Test(s3, parts_grow_so_that_the_largest_object_fits)
{
    double bytes = 0;
    size_t last = 0;
    for (size_t n = 0; n < 10000; n++) {
        size_t size = archive_remote_part_size(ARCHIVE_S3_PART, n);
        cr_assert(size >= last && size <= (size_t)5 << 30, "part %zu", n);
        last = size;
        bytes += (double)size;
    }
    cr_expect_gt(bytes / (1ull << 40), 4.9);
    cr_expect_eq(archive_remote_part_size(ARCHIVE_S3_PART, 999), (size_t)ARCHIVE_S3_PART);
}
