#include "sentinel/hello.h"

#include "base/num.h"
#include "sentinel/text_impl.h"

enum { FIELDS = 8 };

/* A field is never empty, except for a host that is not known yet. */
static bool split(struct rd_slice text, struct rd_slice fields[FIELDS])
{
    size_t n = 0;
    for (bool more = true; more; n++) {
        if (n == FIELDS)
            return false;
        more = sentinel_text_cut(&text, ',', &fields[n]);
    }
    return n == FIELDS;
}

bool sentinel_hello_read(struct rd_slice text, struct sentinel_hello *ret)
{
    struct rd_slice f[FIELDS];
    struct sentinel_hello hello = {0};
    if (!split(text, f) || !sentinel_text_port(f[1], &hello.port) ||
        !rd_num_get_u64(f[3], &hello.epoch) || !sentinel_text_port(f[6], &hello.master_port) ||
        !rd_num_get_u64(f[7], &hello.master_epoch))
        return false;
    hello.host = f[0];
    hello.id = f[2];
    hello.name = f[4];
    hello.master_host = f[5];
    if (!sentinel_text_is_id(hello.id) || hello.host.len == 0 || hello.master_host.len == 0)
        return false;
    *ret = hello;
    return true;
}

bool sentinel_hello_write(const struct sentinel_hello *h, struct rd_buf *out)
{
    return rd_buf_printf(
        out, "%.*s,%d,%.*s,%llu,%.*s,%.*s,%d,%llu", (int)h->host.len, (const char *)h->host.ptr,
        h->port, (int)h->id.len, (const char *)h->id.ptr, (unsigned long long)h->epoch,
        (int)h->name.len, (const char *)h->name.ptr, (int)h->master_host.len,
        (const char *)h->master_host.ptr, h->master_port, (unsigned long long)h->master_epoch);
}
