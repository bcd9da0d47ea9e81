/* test_azure_sign.c - Shared Key signatures. They were computed by the function signature() of
 * tests/support/azure_server.py, which shares no code with archive/azure_sign.c; the key is that of
 * its server.
 */
#include "archive/azure_sign.h"

#include <criterion/criterion.h>
#include <string.h>

#include "archive/base64.h"

static uint8_t key[64];
static char header[ARCHIVE_AZURE_SIGNATURE];

/* Of a request of 2026-01-31 with these headers. */
static const char *signature_of(const char *method, const char *url, uint64_t body_len,
                                const char *first, const char *second, const char *third)
{
    char date[ARCHIVE_AZURE_DATE];
    struct rd_err err = {0};
    const char *const headers[] = {
        "Expect:", first, second, third, date, "", "x-ms-version: 2021-08-06", NULL};
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (uint8_t)i;
    cr_assert(archive_azure_date(1769903999999, date, &err));
    cr_assert_str_eq(date, "x-ms-date: Sat, 31 Jan 2026 23:59:59 GMT");
    const struct archive_azure_signing signing = {.method = method,
                                                  .url = url,
                                                  .account = "redis",
                                                  .key = rd_slice(key, sizeof key),
                                                  .body_len = body_len,
                                                  .headers = headers};
    cr_assert(archive_azure_sign(&signing, header, &err), "%s", err.text);
    cr_assert_eq(strncmp(header, "Authorization: SharedKey redis:", 31), 0);
    return header + 31;
}

#define PUT "If-None-Match: *", "x-ms-blob-type: BlockBlob"

Test(azure_sign, another_implementation_makes_the_same_signatures)
{
    cr_expect_str_eq(signature_of("GET",
                                  "https://redis.blob.core.windows.net/backups?comp=list&marker="
                                  "2%210%3D&prefix=a%20b%2Fnightly%2F&restype=container",
                                  0, "", "", ""),
                     "JgAqM7Dn2t1QkcoROPQX+og98aWKhHkGYd++RK1H0jI=");
    cr_expect_str_eq(signature_of("PUT", "http://127.0.0.1:10000/redis/backups/a%20b/x", 12,
                                  "Content-Type: application/octet-stream", PUT),
                     "5msUhde0DZwZ59fC/jPyw6mNdu/QrhH2KpL6Rd3+shk=");
    cr_expect_str_eq(signature_of("GET", "https://redis.blob.core.windows.net/backups/x", 0,
                                  "Range: bytes=0-9", "", ""),
                     "Mmxt/Yf5J84dx9iLSwHfg38GdjTPjFbRzWLmlMf7qH8=");
    cr_expect_str_eq(signature_of("PUT", "https://redis.blob.core.windows.net/backups/x", 0,
                                  "Content-Type:", PUT),
                     "EDbLDNvaS8RIp+1nygNAqLx74CWeWtxv3l4smVVn4sI=");
}

static bool decodes(const char *text, const char *want)
{
    uint8_t bytes[8];
    size_t len;
    return archive_base64_get(rd_slice_str(text), bytes, sizeof bytes, &len) &&
           rd_slice_is(rd_slice(bytes, len), want);
}

Test(azure_sign, keys_are_base64)
{
    cr_expect(decodes("", ""));
    cr_expect(decodes("Zg==", "f"));
    cr_expect(decodes("Zm8=", "fo"));
    cr_expect(decodes("Zm9v", "foo"));
    cr_expect(decodes("+/+/", "\xfb\xff\xbf"));
    cr_expect(decodes("MTIzNDU2Nzg=", "12345678"));
    const char *const wrong[] = {
        "Z", "Zg", "Zg=", "Z===", "====", "Zm9v=", "Zm 9", "Zm9v\n", "MTIzNDU2Nzg5", "Zg==Zg=="};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_not(decodes(wrong[i], ""), "%s", wrong[i]);
}
