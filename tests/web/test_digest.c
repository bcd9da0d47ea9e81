/* The digests of the page, beside those of OpenSSL. */
#include "base/digest.h"

#include <criterion/criterion.h>
#include <openssl/evp.h>

#include "tests/support/alloc_fault.h"

enum { LONGEST = 160 }; /* more than two blocks */

static const struct {
    enum rd_digest_kind kind;
    const EVP_MD *(*openssl)(void);
} kinds[] = {{RD_DIGEST_SHA1, EVP_sha1}, {RD_DIGEST_SHA256, EVP_sha256}};

Test(page_digest, every_length_and_cut_gives_what_openssl_gives)
{
    uint8_t bytes[LONGEST], here[RD_DIGEST_MAX], there[RD_DIGEST_MAX];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 151 + i / 7);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct rd_digest *digest;
        cr_assert(rd_digest_new(&digest, kinds[i].kind, NULL));
        for (size_t len = 0; len <= LONGEST; len++) {
            cr_assert(EVP_Digest(bytes, len, there, NULL, kinds[i].openssl(), NULL));
            for (size_t cut = 0; cut <= len; cut++) {
                cr_assert(rd_digest_update(digest, bytes, cut, NULL));
                cr_assert(rd_digest_update(digest, bytes + cut, len - cut, NULL));
                cr_assert(rd_digest_end(digest, here, NULL));
                cr_assert_arr_eq(here, there, rd_digest_size(kinds[i].kind), "%s, %zu bytes, %zu",
                                 rd_digest_name(kinds[i].kind), len, cut);
            }
        }
        rd_digest_free(digest);
    }
}

Test(page_digest, another_digest_is_refused)
{
    struct rd_digest *digest = NULL;
    struct rd_err err = {0};
    cr_expect_not(rd_digest_new(&digest, RD_DIGEST_SHA512, &err));
    cr_expect_eq(err.code, RD_ERR_UNSUPPORTED);
    cr_expect_null(digest);
}

Test(page_digest, failing_allocation_is_an_error)
{
    uint8_t sum[RD_DIGEST_MAX];
    struct rd_err err = {0};
    alloc_fault_begin(1);
    bool ok = rd_digest_of(RD_DIGEST_SHA1, rd_slice_str("abc"), sum, &err);
    struct alloc_fault_result result = alloc_fault_end();
    cr_expect(!ok && result.failed);
    cr_expect_eq(err.code, RD_ERR_MEMORY);
}
