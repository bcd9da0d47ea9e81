#include "archive/tag.h"

#include <stdio.h>
#include <string.h>

#include "archive/store.h"
#include "base/utf8.h"

static bool is_printable(const char *text)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + strlen(text);
    for (size_t len; at < end; at += len)
        if ((len = rd_utf8_shown(at, (size_t)(end - at))) == 0)
            return false;
    return true;
}

bool archive_tag_ok(const struct archive_tag *tag)
{
    return archive_name_ok(tag->name) && is_printable(tag->value);
}

static bool parse(struct archive_tag *ret, struct rd_slice text, bool *ret_value,
                  struct rd_err *err)
{
    char quoted[80];
    struct archive_tag tag = {.value = ""};
    const uint8_t *sign = memchr(text.ptr, '=', text.len);
    size_t len = sign != NULL ? (size_t)(sign - text.ptr) : text.len;
    size_t rest = sign != NULL ? text.len - len - 1 : 0;
    rd_err_quote(quoted, sizeof quoted, text);
    if (len >= sizeof tag.name || rest >= sizeof tag.value)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "the tag %s is too long: a name has at most %zu bytes, a value %zu",
                          quoted, sizeof tag.name - 1, sizeof tag.value - 1);
    memcpy(tag.name, text.ptr, len);
    if (rest > 0)
        memcpy(tag.value, sign + 1, rest);
    if (strlen(tag.name) != len || strlen(tag.value) != rest || !archive_tag_ok(&tag))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "invalid tag %s: use NAME or NAME=VALUE, with letters, digits, - _ and . "
                          "in the name, and no control characters in the value",
                          quoted);
    *ret = tag;
    *ret_value = sign != NULL;
    return true;
}

bool archive_tag_parse(struct archive_tag *ret, struct rd_slice text, struct rd_err *err)
{
    bool has_value;
    return parse(ret, text, &has_value, err);
}

bool archive_tag_choice_parse(struct archive_tag_choice *ret, struct rd_slice text,
                              struct rd_err *err)
{
    bool has_value;
    if (!parse(&ret->tag, text, &has_value, err))
        return false;
    ret->any_value = !has_value;
    return true;
}

bool archive_tag_choice_has(const struct archive_tag_choice *choice, const struct archive_tag *tags,
                            size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(tags[i].name, choice->tag.name) == 0 &&
            (choice->any_value || strcmp(tags[i].value, choice->tag.value) == 0))
            return true;
    return false;
}
