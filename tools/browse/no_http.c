/* no_http.c - what a program without libmicrohttpd answers. */
#include "tools/browse/browse.h"

bool browse_http_serve(const struct browse_http_opts *opts, struct rd_err *err)
{
    (void)opts;
    return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                      "this program was built without libmicrohttpd (-Dbrowse=disabled)");
}
