/* folder.h - a repository in a folder for the time of a test, and what the tests of archive/ share.
 */
#ifndef TESTS_ARCHIVE_FOLDER_H
#define TESTS_ARCHIVE_FOLDER_H

#include "archive/lock.h"
#include "archive/store.h"

#include <stdbool.h>

/* A new folder under /tmp, kept open as a store. */
struct archive_store *folder_open(char path[64]);
/* Closes the store and removes the folder with all that is in it. */
void folder_remove(struct archive_store *store, const char *path);

/* Takes the lock of the sets of target "t", for folder_unlock(). */
struct archive_lock *folder_lock(struct archive_store *store);
void folder_unlock(struct archive_lock *lock, struct archive_store *store);

/* Puts an object; reads it back as a terminated text, to be freed with free(). */
void folder_put(struct archive_store *store, const char *name, const char *text);
char *folder_get(struct archive_store *store, const char *name);

/* A regular file: whether it is there, its text replaced, one byte changed. */
bool folder_has(const char *path, const char *name);
void folder_write(const char *path, const char *name, const void *bytes, size_t len);

#endif
