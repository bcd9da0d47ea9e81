#include "tools/cli/cli.h"

#include "base/buf.h"

#include <criterion/criterion.h>

Test(cli_json, an_error_shows_what_is_set)
{
    struct rd_err err = {0};
    struct rd_buf buf = {0};
    struct rd_sink *sink;
    struct json_write json;
    rd_err_origin(&err, "dump.rdb");
    rd_err_set_inner(&err, RD_ERR_CORRUPT, 7994, 31, "bad length");
    rd_err_origin(&err, "dump.rdb");
    rd_err_doing(&err, "element %d", 17);
    cr_assert(rd_sink_open_buf(&sink, &buf, NULL, NULL));
    json_init(&json, sink);
    cli_json_err(&json, &err);
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert(
        rd_slice_is(rd_buf_slice(&buf),
                    "{\"code\":\"corrupt\",\"offset\":7994,\"inner\":31,\"origin\":\"dump.rdb\","
                    "\"text\":\"bad length\",\"doing\":[\"element 17\"]}"),
        "%.*s", (int)buf.len, (char *)buf.ptr);
    rd_buf_done(&buf);
}
