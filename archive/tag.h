/* tag.h - names and values that users give to sets.
 *
 *     struct archive_tag_choice choice;
 *     if (!archive_tag_choice_parse(&choice, rd_slice_str("release=7.2"), &err))
 *         ...
 *     if (archive_tag_choice_has(&choice, m.tags, m.n_tags))
 *         ...
 *
 * The name of a tag consists of letters, digits and the characters - _ . and does not begin with a
 * dot. A value is UTF-8 without control characters, and may be empty. Pure functions.
 */
#ifndef ARCHIVE_TAG_H
#define ARCHIVE_TAG_H

#include "base/err.h"
#include "base/slice.h"

enum { ARCHIVE_TAGS_MAX = 32, ARCHIVE_TAG_NAME = 65, ARCHIVE_TAG_VALUE = 257 };

struct archive_tag {
    char name[ARCHIVE_TAG_NAME];
    char value[ARCHIVE_TAG_VALUE];
};

/* "NAME" or "NAME=VALUE". RD_ERR_USAGE. */
bool archive_tag_parse(struct archive_tag *ret, struct rd_slice text, struct rd_err *err);
bool archive_tag_ok(const struct archive_tag *tag);

/* Sets with a tag: with any value, or with this one. */
struct archive_tag_choice {
    struct archive_tag tag;
    bool any_value;
};

/* "NAME": any value. RD_ERR_USAGE. */
bool archive_tag_choice_parse(struct archive_tag_choice *ret, struct rd_slice text,
                              struct rd_err *err);
bool archive_tag_choice_has(const struct archive_tag_choice *choice, const struct archive_tag *tags,
                            size_t n);

#endif
