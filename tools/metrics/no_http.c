/* no_http.c - what a program without libmicrohttpd answers. */
#include "tools/metrics/listen.h"

bool metrics_listener_start(struct metrics_listener **ret, const struct sockaddr *at,
                            const char *name, struct rd_err *err)
{
    (void)ret, (void)at;
    rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
               "this program was built without libmicrohttpd (-Dbrowse=disabled): write the "
               "metrics to a file");
    rd_err_origin(err, name);
    return false;
}

void metrics_listener_set(struct metrics_listener *listener, struct rd_slice text)
{
    (void)listener, (void)text;
}

void metrics_listener_stop(struct metrics_listener *listener)
{
    (void)listener;
}
