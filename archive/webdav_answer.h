/* webdav_answer.h - parses the lists of a WebDAV server; private to archive/.
 *
 *     struct archive_webdav_list list = {0};
 *     if (!archive_webdav_parse(xml, "/backups/nightly", &list, &err))
 *         ... cut, not a list, or a list that leaves something open ...
 *     for (size_t i = 0; i < list.n; i++)
 *         ... archive_webdav_name(&list, i), list.entries[i] ...
 *     archive_webdav_list_done(&list);
 *
 * The answer to PROPFIND (RFC 4918, 9.1) comes from a server that may be hostile, or from what is
 * before it. It counts only as a whole, and only if it names the folder that was asked for.
 */
#ifndef ARCHIVE_WEBDAV_ANSWER_H
#define ARCHIVE_WEBDAV_ANSWER_H

#include "archive/store.h"
#include "base/buf.h"

enum { ARCHIVE_WEBDAV_PATH_MAX = 1200 };

struct archive_webdav_entry {
    size_t name; /* its place in names */
    bool is_folder;
    uint64_t size;                     /* of a file */
    int64_t modified_s;                /* getlastmodified, Unix time; -1: unknown */
    char version[ARCHIVE_VERSION_MAX]; /* a strong getetag; "": none */
};

/* Zeroed: an empty list. */
struct archive_webdav_list {
    struct archive_webdav_entry self; /* what was asked for; without a name */
    struct archive_webdav_entry *entries;
    size_t n, cap;
    struct rd_buf names; /* each with a zero byte */
};

/* path: the decoded path that was asked for, without a slash at its end ("": the root). Entries are
 * what is directly in it. RD_ERR_PROTOCOL: the document is not a whole list, lists something
 * elsewhere, lacks `path` itself, or leaves open whether an entry is a folder or how large it is.
 * A list that is not empty is replaced. */
bool archive_webdav_parse(struct rd_slice xml, const char *path, struct archive_webdav_list *ret,
                          struct rd_err *err);
const char *archive_webdav_name(const struct archive_webdav_list *list, size_t i);
void archive_webdav_list_done(struct archive_webdav_list *list);

/* Decodes %XX. False: it is not an escape, is a zero byte, or does not fit. */
bool archive_webdav_decode(char *ret, size_t size, struct rd_slice text);

#endif
