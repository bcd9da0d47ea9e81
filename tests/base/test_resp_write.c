#include "tests/base/resp_help.h"

static void put_everything(struct rd_sink *out, unsigned proto)
{
    rd_resp_put_simple(out, S("O\r\nK"));
    rd_resp_put_error(out, S("ERR no"));
    rd_resp_put_integer(out, INT64_MIN);
    rd_resp_put_bulk(out, S("a\r\nb"));
    rd_resp_put_null(out, proto);
    rd_resp_put_null_array(out, proto);
    rd_resp_put_map(out, proto, 1);
    rd_resp_put_set(out, proto, 1);
    rd_resp_put_bool(out, proto, true);
    rd_resp_put_array(out, 0);
    rd_resp_put_push(out, proto, 2);
    rd_resp_put_double(out, proto, 0.1);
    rd_resp_put_big(out, proto, S("123"));
    rd_resp_put_verbatim(out, proto, "txt", S("abc"));
}

static void expect_written(unsigned proto, const char *want)
{
    struct rd_buf buf = {0};
    struct rd_sink *out;
    cr_assert(rd_sink_open_buf(&out, &buf, NULL, NULL));
    put_everything(out, proto);
    cr_assert(rd_sink_close(out, NULL));
    rd_buf_add_byte(&buf, 0);
    cr_expect_str_eq((const char *)buf.ptr, want);
    rd_buf_done(&buf);
}

Test(resp_write, replies_are_written_in_both_versions)
{
    expect_written(2, "+O  K\r\n-ERR no\r\n:-9223372036854775808\r\n$4\r\na\r\nb\r\n$-1\r\n*-1\r\n"
                      "*2\r\n*1\r\n:1\r\n*0\r\n*2\r\n$3\r\n0.1\r\n$3\r\n123\r\n$3\r\nabc\r\n");
    expect_written(3, "+O  K\r\n-ERR no\r\n:-9223372036854775808\r\n$4\r\na\r\nb\r\n_\r\n_\r\n"
                      "%1\r\n~1\r\n#t\r\n*0\r\n>2\r\n,0.1\r\n(123\r\n=7\r\ntxt:abc\r\n");
}

Test(resp_write, written_commands_read_back)
{
    struct rd_buf bytes = mixed_stream(), back = {0};
    struct rd_sink *out;
    struct rd_src *src = memory(rd_buf_slice(&bytes));
    struct rd_resp_reader *r = reader_of(src, NULL);
    struct resp_command cmd;
    cr_assert(rd_sink_open_buf(&out, &back, NULL, NULL));
    while (rd_resp_reader_next(r, &cmd) == RESP_COMMAND)
        cr_assert(rd_resp_put_command(out, cmd.argv, cmd.argc));
    cr_assert(rd_sink_close(out, NULL));
    expect_same(&back, &bytes, "stream", 0);
    rd_resp_reader_free(r);
    rd_src_close(src);
    rd_buf_done(&back);
    rd_buf_done(&bytes);
}
