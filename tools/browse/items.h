/* items.h - what `redoubt browse` gives to the page: files, the files of a folder, bytes in a
 * spool, and sets of a repository; private to tools/browse/.
 */
#ifndef TOOLS_BROWSE_ITEMS_H
#define TOOLS_BROWSE_ITEMS_H

#include "archive/manifest.h"
#include "base/buf.h"
#include "base/err.h"
#include "data/spool.h"

#include <sys/stat.h>

enum browse_kind { BROWSE_FILE, BROWSE_SPOOL, BROWSE_SET };

/* What the page can open, one file of it. */
struct browse_item {
    enum browse_kind kind;
    char *path; /* the name in the page; owned */
    char *from; /* of BROWSE_FILE: where it is; of BROWSE_SET: the id; owned */
    uint64_t size;
    char file[ARCHIVE_FILE_NAME_MAX]; /* of BROWSE_SET */
    int64_t time_ms;
    bool beneath; /* of BROWSE_FILE: `from` is below the folder, not behind a symbolic link */
    bool apart;   /* the page opens it only when its user chooses it */
};

/* Zeroed: none. */
struct browse_items {
    struct rd_buf rows; /* struct browse_item */
    bool has_folder;
    int folder; /* its descriptor */
};

size_t browse_items_n(const struct browse_items *items);
struct browse_item *browse_items_at(const struct browse_items *items, size_t i);

/* Copies path and from. The row is valid until the next one is added. */
struct browse_item *browse_items_add(struct browse_items *items, enum browse_kind kind,
                                     const char *path, const char *from, struct rd_err *err);

/* The list as JSON for the page. */
bool browse_items_list(const struct browse_items *items, struct rd_buf *ret, struct rd_err *err);

void browse_items_done(struct browse_items *items);

/* files.c: adds a file, or the snapshots, logs and captures of a folder. */
bool browse_add_path(struct browse_items *items, const char *path, const struct stat *st,
                     struct rd_err *err);

/* Opens a BROWSE_FILE. In a folder no symbolic link is followed, whatever replaced its parts. */
bool browse_open_file(const struct browse_items *items, const struct browse_item *item, int *ret_fd,
                      uint64_t *ret_len, struct rd_err *err);

#endif
