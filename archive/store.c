#include "archive/store.h"

#include "base/buf.h"
#include "base/pump.h"

enum { COMPONENT_MAX = 100 };

void archive_store_close(struct archive_store *store)
{
    if (store != NULL)
        store->ops->close(store);
}

bool archive_store_read(struct archive_store *store, const char *name, size_t max,
                        struct rd_buf *ret, struct rd_err *err)
{
    struct rd_src *src;
    if (!store->ops->get(store, name, &src, err))
        return false;
    bool ok = rd_pump_to_buf(src, max, ret, err);
    rd_src_close(src);
    if (!ok)
        rd_err_origin(err, name);
    return ok;
}

bool archive_store_write(struct archive_store *store, const char *name, struct rd_slice bytes,
                         struct rd_err *err)
{
    struct rd_sink *sink;
    if (!store->ops->put(store, name, &sink, err))
        return false;
    rd_sink_write(sink, bytes.ptr, bytes.len);
    return rd_sink_close(sink, err);
}

static bool letter_ok(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

bool archive_name_ok(const char *name)
{
    size_t len = 0;
    for (; name[len] != '\0'; len++)
        if (!letter_ok(name[len]) || len == COMPONENT_MAX)
            return false;
    return len > 0 && name[0] != '.';
}
