#include "client/info.h"

#include <criterion/criterion.h>

static const char text[] = "# Server\r\nredis_version:7.0.15\r\nempty:\r\nused:17\nlast:x";

Test(info, fields_are_found_by_their_whole_name)
{
    static const struct {
        const char *name, *value; /* NULL: there is none */
    } cases[] = {{"redis_version", "7.0.15"},
                 {"empty", ""},
                 {"used", "17"},
                 {"last", "x"},
                 {"version", NULL},
                 {"redis", NULL},
                 {"", NULL},
                 {"# Server", NULL},
                 {"lastx", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rd_slice value;
        bool found = client_info_find(rd_slice_str(text), cases[i].name, &value);
        cr_expect(found == (cases[i].value != NULL), "%s", cases[i].name);
        cr_expect(!found || rd_slice_is(value, cases[i].value), "%s", cases[i].name);
    }
}

Test(info, numbers_and_parts)
{
    struct rd_slice line = rd_slice_str("ip=::1,port=7,lag=0,offset="), part;
    uint64_t n;
    cr_expect(client_info_u64(rd_slice_str(text), "used", &n) && n == 17);
    cr_expect(!client_info_u64(rd_slice_str(text), "last", &n));
    cr_expect(!client_info_u64((struct rd_slice){0}, "used", &n));
    cr_expect_eq(client_info_version(rd_slice_str("v:10.1.0-rc1\r\n"), "v"), 1001);
    cr_expect_eq(client_info_version(rd_slice_str("v:7\r\n"), "v"), 0);
    cr_expect_eq(client_info_version(rd_slice_str("w:7.2"), "v"), 0);
    cr_expect(client_info_part(line, "ip", &part) && rd_slice_is(part, "::1"));
    cr_expect(client_info_part(line, "lag", &part) && rd_slice_is(part, "0"));
    cr_expect(client_info_part(line, "offset", &part) && part.len == 0);
    cr_expect(!client_info_part(line, "state", &part));
}
