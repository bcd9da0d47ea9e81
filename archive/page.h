/* page.h - a page of a list of the objects in a store; private to archive/.
 *
 *     static bool on_end(...) { ... archive_page_key(page, text) ... archive_page_end(page) ... }
 *     ... read the answer ...
 *     ok = archive_page_check(&page, "prefix/nightly/", false, &err);
 *     if (ok)
 *         archive_page_each(&page, strlen("prefix/"), each, arg);
 *     archive_page_done(&page);
 *
 * Answers come from a server that may be hostile. No object is passed on before the whole answer
 * was read, and all names were compared.
 */
#ifndef ARCHIVE_PAGE_H
#define ARCHIVE_PAGE_H

#include "archive/store.h"
#include "base/buf.h"

enum { ARCHIVE_PAGE_KEY_MAX = 3 * 1024 + 1, ARCHIVE_POSITION_MAX = 1025 };

/* Zeroed before its use. */
struct archive_page {
    struct rd_buf keys;    /* and versions, each with a zero byte */
    struct rd_buf entries; /* struct entry */
    bool no_memory;
    bool has_key, has_size; /* of the object that is being read */
    char key[ARCHIVE_PAGE_KEY_MAX], version[ARCHIVE_VERSION_MAX];
    uint64_t size;
    const char *wrong; /* what is wrong with the list; NULL: it cannot be read */
};

/* Notes what is wrong; false. */
bool archive_page_wrong(struct archive_page *page, const char *wrong);

/* The parts of an object. A version of another form is none. */
void archive_page_key(struct archive_page *page, struct rd_slice text);
void archive_page_size(struct archive_page *page, struct rd_slice text);
void archive_page_version(struct archive_page *page, struct rd_slice text);
/* The end of the object. False: a part is missing, or no_memory. */
bool archive_page_end(struct archive_page *page);
/* Forgets the parts of an object. */
void archive_page_skip(struct archive_page *page);

/* RD_ERR_PROTOCOL: a name does not begin with prefix. Decodes them first if they are escaped. */
bool archive_page_check(struct archive_page *page, const char *prefix, bool escaped,
                        struct rd_err *err);
/* Calls each(arg, object) for all objects with a name that a repository can have. The name is what
 * follows after `skip` bytes. */
void archive_page_each(const struct archive_page *page, size_t skip, archive_each_fn *each,
                       void *arg);
void archive_page_done(struct archive_page *page);

/* Sets err to RD_ERR_PROTOCOL; false. wrong may be NULL. */
bool archive_page_bad(const char *wrong, struct rd_err *err);
/* RD_ERR_PROTOCOL or RD_ERR_MEMORY, whatever ended the reading; false. */
bool archive_page_fail(const struct archive_page *page, struct rd_err *err);

/* Names become part of URLs: whether it consists of characters of a repository's names. */
bool archive_page_name_ok(const char *name);
/* Copies a text without zero bytes; false: it has one, or is too long. */
bool archive_page_copy(char *ret, size_t size, struct rd_slice text);
/* Decodes %XX in place, and a plus as a space. */
bool archive_page_unescape(char *text);

/* The positions where a list continues. Zeroed before its use. */
struct archive_positions {
    char seen[ARCHIVE_POSITION_MAX]; /* an earlier one */
    uint64_t n, until;               /* pages; the page after which `seen` is replaced */
};

/* To be called with each position. RD_ERR_PROTOCOL: they repeat, and would be read for ever. A
 * cycle of any length is found. */
bool archive_positions_move(struct archive_positions *p, const char *position, struct rd_err *err);

#endif
