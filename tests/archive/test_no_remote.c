/* Compiled with archive/no_remote.c, as in a program without libcurl. */
#include <criterion/criterion.h>
#include <string.h>

#include "archive/http.h"
#include "archive/store_azure.h"
#include "archive/store_s3.h"
#include "archive/store_sftp.h"
#include "archive/store_webdav.h"

static void count(void *ctx)
{
    ++*(int *)ctx;
}

static void expect_refused(bool ok, struct rd_err *err, const char *text)
{
    cr_expect_not(ok);
    cr_expect_eq(err->code, RD_ERR_UNSUPPORTED);
    cr_expect_str_eq(err->text, text);
    rd_err_reset(err);
}

#define WITHOUT "this program was built without libcurl, which "

Test(no_remote, what_needs_the_network_is_refused_with_the_reason)
{
    struct archive_store *store = NULL;
    struct rd_err err = {0};
    long status;
    int done = 0;
    const struct archive_http ask = {.url = "http://127.0.0.1:1/"};
    expect_refused(archive_http_built("heartbeats", &err), &err, WITHOUT "heartbeats need");
    expect_refused(archive_http_ask(&ask, &status, NULL, &err), &err,
                   WITHOUT "requests over HTTP need");
    const struct archive_s3_opts s3 = {.bucket = "b", .keys_done = count, .keys_ctx = &done};
    expect_refused(archive_store_open_s3(&store, &s3, &err), &err,
                   WITHOUT "repositories in S3 need");
    cr_expect_eq(done, 1);
    const struct archive_sftp_opts sftp = {.url = "sftp://host/path"};
    expect_refused(archive_store_open_sftp(&store, &sftp, &err), &err,
                   WITHOUT "repositories on SFTP hosts need");
    const struct archive_azure_opts azure = {.account = "a"};
    expect_refused(archive_store_open_azure(&store, &azure, &err), &err,
                   WITHOUT "repositories in Azure need");
    const struct archive_webdav_opts webdav = {.url = "webdav://host/path"};
    expect_refused(archive_store_open_webdav(&store, &webdav, &err), &err,
                   WITHOUT "repositories on WebDAV servers need");
}
