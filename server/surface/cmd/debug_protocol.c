/* DEBUG PROTOCOL: a value of each RESP type, for authors of clients. */
#include "server/surface/cmd/debug.h"

#include <stdio.h>

static void three(struct engine_reply *r)
{
    for (int i = 0; i < 3; i++)
        engine_reply_int(r, i);
}

static void put_map(struct engine_reply *r)
{
    engine_reply_map(r, 3);
    for (int i = 0; i < 3; i++) {
        engine_reply_int(r, i);
        engine_reply_bool(r, i == 1);
    }
}

static void put_raw(struct engine_reply *r, const char *text)
{
    if (!r->off)
        rd_buf_add(&r->buf, text, strlen(text));
}

static void put_attrib(struct engine_reply *r)
{
    if (r->proto == 3)
        put_raw(r, "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n");
    engine_reply_str(r, "Some real reply following the attribute");
}

static void put_push(struct engine_reply *r)
{
    if (r->proto == 2) {
        engine_reply_error(r, "ERR RESP2 is not supported by this command");
        return;
    }
    bool off = r->off; /* CLIENT REPLY OFF does not suppress a message */
    r->off = false;
    engine_reply_push(r, 2);
    engine_reply_str(r, "server-cpu-usage");
    engine_reply_int(r, 42);
    r->off = off;
    engine_reply_str(r, "Some real reply following the push reply");
}

static void put_string(struct engine_reply *r)
{
    engine_reply_str(r, "Hello World");
}

static void put_integer(struct engine_reply *r)
{
    engine_reply_int(r, 12345);
}

static void put_double(struct engine_reply *r)
{
    if (r->proto == 3)
        engine_reply_double(r, 3.141);
    else
        engine_reply_str(r, "3.141");
}

static void put_array(struct engine_reply *r)
{
    engine_reply_array(r, 3);
    three(r);
}

static void put_set(struct engine_reply *r)
{
    engine_reply_set(r, 3);
    three(r);
}

static void put_verbatim(struct engine_reply *r)
{
    engine_reply_verbatim(r, rd_slice_str("This is a verbatim\nstring"), "txt");
}

static void put_true(struct engine_reply *r)
{
    engine_reply_bool(r, true);
}

static void put_false(struct engine_reply *r)
{
    engine_reply_bool(r, false);
}

static void put_bignum(struct engine_reply *r)
{
    static const char digits[] = "1234567999999999999999999999999999999";
    if (r->proto == 2) {
        engine_reply_str(r, digits);
        return;
    }
    put_raw(r, "(");
    put_raw(r, digits);
    put_raw(r, "\r\n");
}

static const struct {
    const char *name;
    void (*put)(struct engine_reply *r);
} types[] = {
    {"string", put_string}, {"integer", put_integer},
    {"double", put_double}, {"null", engine_reply_null},
    {"array", put_array},   {"set", put_set},
    {"map", put_map},       {"attrib", put_attrib},
    {"push", put_push},     {"verbatim", put_verbatim},
    {"true", put_true},     {"false", put_false},
    {"bignum", put_bignum},
};

void cmd_debug_protocol(struct dispatch_call *call)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (dispatch_arg_is(call->argv[2], types[i].name)) {
            types[i].put(call->reply);
            return;
        }
    }
    engine_reply_error(call->reply,
                       "ERR Wrong protocol type name. Please use one of the following: "
                       "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|"
                       "false");
}
