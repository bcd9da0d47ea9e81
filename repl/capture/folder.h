/* folder.h - the numbered files of a capture's folder. */
#ifndef REPL_CAPTURE_FOLDER_H
#define REPL_CAPTURE_FOLDER_H

#include "repl/capture/format.h"

struct capture_name {
    uint64_t number, start;
};

struct capture_folder {
    const struct capture_name *name; /* by number */
    size_t n;
    struct rd_buf names;
};

/* Lists the files with the given ending; other names are ignored. */
bool repl_capture_folder_list(struct capture_folder *ret, const struct rd_fs *fs,
                              const char *ending, struct rd_err *err);
void repl_capture_folder_done(struct capture_folder *folder);

#endif
