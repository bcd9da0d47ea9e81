/* test_s3_sign.c - signatures of requests. The examples are those of the manual of S3. */
#include "archive/s3_sign.h"

#include <criterion/criterion.h>
#include <string.h>

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static struct archive_s3_signing signing = {
    .dialect = &archive_s3_amazon,
    .method = "GET",
    .region = "us-east-1",
    .access = "AKIAIOSFODNN7EXAMPLE",
    .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    .digest = EMPTY,
    .now_ms = 1369353600999,
};
static char digest[ARCHIVE_S3_HEADER], date[ARCHIVE_S3_DATE], header[ARCHIVE_S3_SIGNATURE];

static const char *signature_of(const char *url)
{
    struct rd_err err = {0};
    signing.url = url;
    cr_assert(archive_s3_sign(&signing, digest, date, header, &err), "%s", err.text);
    return strstr(header, "Signature=") + strlen("Signature=");
}

Test(s3_sign, the_examples_of_the_manual_have_their_signatures)
{
    cr_assert_str_eq(signature_of("https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J"),
                     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    cr_assert_str_eq(date, "x-amz-date: 20130524T000000Z");
    cr_assert_str_eq(header,
                     "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/"
                     "us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;"
                     "x-amz-date, Signature="
                     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    cr_assert_str_eq(signature_of("https://examplebucket.s3.amazonaws.com/?lifecycle="),
                     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

/* Each is signed: another value is another signature. */
Test(s3_sign, what_decides_about_a_request_is_signed)
{
    struct archive_s3_signing usual = signing;
    char without[80];
    strcpy(without, signature_of("https://host/path?a=b"));
    cr_assert_str_neq(signature_of("https://host/path?a=c"), without);
    cr_assert_str_neq(signature_of("https://host/other?a=b"), without);
    cr_assert_str_neq(signature_of("https://host:81/path?a=b"), without);
    cr_assert_str_neq(signature_of("https://host/path"), without);
    signing.method = "PUT";
    cr_assert_str_neq(signature_of("https://host/path?a=b"), without);
    signing = usual;
    signing.headers[0] = "content-type: x";
    cr_assert_str_neq(signature_of("https://host/path?a=b"), without);
    cr_assert(strstr(header, "=content-type;host;x-amz-content-sha256;x-amz-date,") != NULL);
    signing = usual;
    signing.headers[0] = "x-amz-server-side-encryption: AES256";
    signing.headers[2] = "x-amz-security-token: x";
    cr_assert_str_neq(signature_of("https://host/path?a=b"), without);
    cr_assert(strstr(header, "x-amz-date;x-amz-security-token;x-amz-server-side-encryption,"));
    signing = usual;
    signing.now_ms += 1000;
    cr_assert_str_neq(signature_of("https://host/path?a=b"), without);
    signing = usual;
}

Test(s3_sign, a_secret_may_be_longer_than_a_block)
{
    char secret[ARCHIVE_S3_LOGIN_MAX + 2], first[80];
    struct rd_err err = {0};
    struct archive_s3_signing usual = signing;
    memset(secret, 'x', sizeof secret);
    secret[ARCHIVE_S3_LOGIN_MAX] = '\0';
    signing.secret = secret;
    strcpy(first, signature_of("https://host"));
    cr_assert_str_eq(signature_of("https://host/"), first);
    secret[ARCHIVE_S3_LOGIN_MAX - 1] = 'y';
    cr_assert_str_neq(signature_of("https://host/"), first);
    secret[ARCHIVE_S3_LOGIN_MAX] = 'x';
    secret[ARCHIVE_S3_LOGIN_MAX + 1] = '\0';
    cr_assert_not(archive_s3_sign(&signing, digest, date, header, &err));
    cr_assert_eq(err.code, RD_ERR_USAGE);
    signing = usual;
}
