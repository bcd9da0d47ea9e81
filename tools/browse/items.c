#include "tools/browse/items.h"

#include "base/mem.h"
#include "base/show.h"
#include "json/write.h"

#include <string.h>
#include <unistd.h>

enum { ITEMS_MAX = 10000 };

size_t browse_items_n(const struct browse_items *items)
{
    return items->rows.len / sizeof(struct browse_item);
}

struct browse_item *browse_items_at(const struct browse_items *items, size_t i)
{
    return (struct browse_item *)(void *)items->rows.ptr + i;
}

static char *copy_text(const char *text)
{
    char *copy = rd_alloc(strlen(text) + 1);
    return copy != NULL ? strcpy(copy, text) : NULL;
}

struct browse_item *browse_items_add(struct browse_items *items, enum browse_kind kind,
                                     const char *path, const char *from, struct rd_err *err)
{
    struct browse_item item = {.kind = kind, .path = copy_text(path), .from = copy_text(from)};
    if (browse_items_n(items) >= ITEMS_MAX) {
        rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "more than %d files", ITEMS_MAX);
    } else if (item.path == NULL || item.from == NULL ||
               !rd_buf_add(&items->rows, &item, sizeof item)) {
        rd_err_nomem(err, strlen(path));
    } else {
        return browse_items_at(items, browse_items_n(items) - 1);
    }
    rd_free(item.path);
    rd_free(item.from);
    return NULL;
}

bool browse_items_list(const struct browse_items *items, struct rd_buf *ret, struct rd_err *err)
{
    struct rd_sink *sink;
    struct json_write json;
    if (!rd_sink_open_buf(&sink, ret, NULL, err))
        return false;
    json_init(&json, sink);
    json_obj(&json);
    json_key(&json, "files");
    json_array(&json);
    for (size_t i = 0; i < browse_items_n(items); i++) {
        const struct browse_item *item = browse_items_at(items, i);
        json_obj(&json);
        json_put_str(&json, "path", item->path);
        json_put_offset(&json, "bytes", item->size);
        json_put_bool(&json, "apart", item->apart);
        if (item->time_ms != 0)
            json_put_str(&json, "time", rd_show_time(item->time_ms).s);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    return rd_sink_close(sink, err);
}

void browse_items_done(struct browse_items *items)
{
    for (size_t i = 0; i < browse_items_n(items); i++) {
        rd_free(browse_items_at(items, i)->path);
        rd_free(browse_items_at(items, i)->from);
    }
    rd_buf_done(&items->rows);
    if (items->has_folder)
        close(items->folder);
    *items = (struct browse_items){.folder = 0};
}
