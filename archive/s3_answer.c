#include "archive/s3_answer.h"

#include "archive/store.h"
#include "base/num.h"

#include <stdio.h>

struct rd_slice archive_s3_text(struct rd_slice xml, const char *tag)
{
    char open[64], close[64];
    size_t open_len = (size_t)snprintf(open, sizeof open, "<%s>", tag);
    size_t close_len = (size_t)snprintf(close, sizeof close, "</%s>", tag);
    const uint8_t *begin = xml.len > 0 ? memmem(xml.ptr, xml.len, open, open_len) : NULL;
    if (begin == NULL)
        return rd_slice(NULL, 0);
    begin += open_len;
    const uint8_t *end = memmem(begin, (size_t)(xml.ptr + xml.len - begin), close, close_len);
    return end != NULL ? rd_slice(begin, (size_t)(end - begin)) : rd_slice(NULL, 0);
}

/* Names become part of URLs. Names in a repository contain only these characters. */
static bool name_ok(struct rd_slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && memchr("-_./", c, 4) == NULL)
            return false;
    }
    return name.len > 0 && name.len < ARCHIVE_NAME_MAX;
}

static void take_entry(struct rd_slice entry, const char *prefix,
                       void (*each)(void *arg, const char *name, uint64_t size), void *arg)
{
    char text[ARCHIVE_NAME_MAX];
    uint64_t size = 0;
    size_t skip = strlen(prefix);
    struct rd_slice key = archive_s3_text(entry, "Key");
    if (key.len <= skip || memcmp(key.ptr, prefix, skip) != 0)
        return;
    struct rd_slice name = rd_slice(key.ptr + skip, key.len - skip);
    if (!name_ok(name) || !rd_num_get_u64(archive_s3_text(entry, "Size"), &size))
        return;
    snprintf(text, sizeof text, "%.*s", (int)name.len, (const char *)name.ptr);
    each(arg, text, size);
}

bool archive_s3_page(struct rd_slice xml, const char *prefix,
                     void (*each)(void *arg, const char *name, uint64_t size), void *arg,
                     struct archive_s3_next *ret, struct rd_err *err)
{
    struct rd_slice rest = xml, entry;
    while ((entry = archive_s3_text(rest, "Contents")).len > 0) {
        take_entry(entry, prefix, each, arg);
        const uint8_t *end = entry.ptr + entry.len;
        rest = rd_slice(end, (size_t)(xml.ptr + xml.len - end));
    }
    struct archive_s3_next next = {.more =
                                       rd_slice_is(archive_s3_text(xml, "IsTruncated"), "true")};
    if (next.more)
        next.token = archive_s3_text(xml, "NextContinuationToken");
    if (next.more && (next.token.len == 0 || memchr(next.token.ptr, '&', next.token.len) != NULL))
        return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                          "the listing of the store continues at an invalid position");
    *ret = next;
    return true;
}

bool archive_s3_refused(struct rd_slice xml, const char *method, long status, struct rd_err *err)
{
    char code[64], text[120];
    struct rd_slice reason = archive_s3_text(xml, "Code");
    rd_err_quote(code, sizeof code, reason);
    rd_err_quote(text, sizeof text, archive_s3_text(xml, "Message"));
    /* The answer to HEAD has no text. */
    if (reason.len > 0)
        return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                          "the store answered %s with status %ld, %s, %s", method, status, code,
                          text);
    return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the store answered %s with status %ld%s",
                      method, status, status == 403 ? ": it does not accept the access key" : "");
}
