/* no_remote.c - what a program without libcurl answers instead of using the network. */
#include "archive/http.h"
#include "archive/store_azure.h"
#include "archive/store_s3.h"
#include "archive/store_sftp.h"
#include "archive/store_webdav.h"

bool archive_http_built(const char *what, struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                      "this program was built without libcurl, which %s need", what);
}

bool archive_http_ask(const struct archive_http *ask, long *ret_status, struct rd_buf *ret_body,
                      struct rd_err *err)
{
    (void)ask, (void)ret_status, (void)ret_body;
    return archive_http_built("requests over HTTP", err);
}

bool archive_store_open_s3(struct archive_store **ret, const struct archive_s3_opts *opts,
                           struct rd_err *err)
{
    (void)ret;
    if (opts->keys_done != NULL)
        opts->keys_done(opts->keys_ctx);
    return archive_http_built("repositories in S3", err);
}

bool archive_store_open_sftp(struct archive_store **ret, const struct archive_sftp_opts *opts,
                             struct rd_err *err)
{
    (void)ret, (void)opts;
    return archive_http_built("repositories on SFTP hosts", err);
}

bool archive_store_open_azure(struct archive_store **ret, const struct archive_azure_opts *opts,
                              struct rd_err *err)
{
    (void)ret, (void)opts;
    return archive_http_built("repositories in Azure", err);
}

bool archive_store_open_webdav(struct archive_store **ret, const struct archive_webdav_opts *opts,
                               struct rd_err *err)
{
    (void)ret, (void)opts;
    return archive_http_built("repositories on WebDAV servers", err);
}
