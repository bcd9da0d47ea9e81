#include "archive/page.h"

#include "base/num.h"

#include <stdio.h>

/* ---- characters ---- */

bool archive_page_name_ok(const char *name)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./";
    size_t len = strspn(name, letters);
    return name[len] == '\0' && len > 0 && len < ARCHIVE_NAME_MAX;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

bool archive_page_unescape(char *text)
{
    char *out = text;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at != '%') {
            *out++ = *at == '+' ? ' ' : *at;
            continue;
        }
        int high = hex_digit(at[1]), low = high >= 0 ? hex_digit(at[2]) : -1;
        if (low < 0 || (high == 0 && low == 0))
            return false;
        *out++ = (char)(high * 16 + low);
        at += 2;
    }
    *out = '\0';
    return true;
}

bool archive_page_copy(char *ret, size_t size, struct rd_slice text)
{
    if (text.len >= size || (text.len > 0 && memchr(text.ptr, 0, text.len) != NULL))
        return false;
    if (text.len > 0)
        memcpy(ret, text.ptr, text.len);
    ret[text.len] = '\0';
    return true;
}

/* ---- objects ---- */

struct entry {
    size_t key, version; /* their places in `keys` */
    uint64_t size;
};

bool archive_page_wrong(struct archive_page *page, const char *wrong)
{
    page->wrong = wrong;
    return false;
}

void archive_page_key(struct archive_page *page, struct rd_slice text)
{
    page->has_key = archive_page_copy(page->key, sizeof page->key, text);
}

void archive_page_size(struct archive_page *page, struct rd_slice text)
{
    page->has_size = rd_num_get_u64(text, &page->size);
}

void archive_page_version(struct archive_page *page, struct rd_slice text)
{
    bool ok = archive_page_copy(page->version, sizeof page->version, text);
    for (size_t i = 0; ok && i < text.len; i++)
        ok = text.ptr[i] > ' ' && text.ptr[i] < 127;
    if (!ok)
        page->version[0] = '\0';
}

void archive_page_skip(struct archive_page *page)
{
    page->has_key = page->has_size = false;
}

bool archive_page_end(struct archive_page *page)
{
    bool whole = page->has_key && page->has_size;
    archive_page_skip(page);
    if (!whole)
        return archive_page_wrong(page, "an object has no name or no size");
    size_t len = strlen(page->key) + 1;
    const struct entry entry = {
        .key = page->keys.len, .version = page->keys.len + len, .size = page->size};
    page->no_memory = !rd_buf_add(&page->keys, page->key, len) ||
                      !rd_buf_add(&page->keys, page->version, strlen(page->version) + 1) ||
                      !rd_buf_add(&page->entries, &entry, sizeof entry);
    page->version[0] = '\0';
    return !page->no_memory;
}

/* ---- the whole page ---- */

bool archive_page_bad(const char *wrong, struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the list of the store is not valid: %s",
                      wrong != NULL ? wrong : "it cannot be read");
}

bool archive_page_fail(const struct archive_page *page, struct rd_err *err)
{
    return page->no_memory ? rd_err_nomem(err, page->keys.len) : archive_page_bad(page->wrong, err);
}

bool archive_page_check(struct archive_page *page, const char *prefix, bool escaped,
                        struct rd_err *err)
{
    const struct entry *entries = (const struct entry *)(const void *)page->entries.ptr;
    for (size_t i = 0; i < page->entries.len / sizeof *entries; i++) {
        char *key = (char *)page->keys.ptr + entries[i].key;
        if (escaped && !archive_page_unescape(key))
            return archive_page_bad("the name of an object is encoded incorrectly", err);
        if (strncmp(key, prefix, strlen(prefix)) != 0)
            return archive_page_bad("it has objects that were not asked for", err);
    }
    return true;
}

void archive_page_each(const struct archive_page *page, size_t skip, archive_each_fn *each,
                       void *arg)
{
    const struct entry *entries = (const struct entry *)(const void *)page->entries.ptr;
    for (size_t i = 0; i < page->entries.len / sizeof *entries; i++) {
        const char *keys = (const char *)page->keys.ptr;
        const char *version = keys + entries[i].version;
        const struct archive_listed object = {.name = keys + entries[i].key + skip,
                                              .size = entries[i].size,
                                              .version = version[0] != '\0' ? version : NULL};
        if (archive_page_name_ok(object.name))
            each(arg, &object);
    }
}

void archive_page_done(struct archive_page *page)
{
    rd_buf_done(&page->keys);
    rd_buf_done(&page->entries);
}

/* ---- positions ---- */

/* `seen` is moved to the current one after 1, 2, 4… pages. */
bool archive_positions_move(struct archive_positions *p, const char *position, struct rd_err *err)
{
    if (p->n > 0 && strcmp(p->seen, position) == 0)
        return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                          "the list of the store repeats a position");
    if (p->n++ == p->until) {
        snprintf(p->seen, sizeof p->seen, "%s", position);
        p->until = 2 * p->until + 1;
    }
    return true;
}
