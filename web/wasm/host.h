/* host.h - what the page does for the tools: the bytes of files (host.js).
 *
 * Positions and sizes are doubles, which JavaScript has, and which are exact up to 8 PiB.
 */
#ifndef WEB_WASM_HOST_H
#define WEB_WASM_HOST_H

enum host_kind { HOST_NONE = 0, HOST_FILE = 1, HOST_FOLDER = 2 };

/* What has this name; a file's number is stored in *ret_file. */
extern int host_find(const char *path, int *ret_file);
/* Makes an empty file, also in place of another one; its number. */
extern int host_create(const char *path);
/* Another name for a file. */
extern void host_link(const char *from, const char *to);
/* Removes a name; how many other names the file has. */
extern int host_remove(const char *path);
extern void host_rename(const char *from, const char *to);
/* Copies the name of entry i of a folder; its length, or -1 after the last one. */
extern int host_entry(const char *path, int i, char *name, int cap);

extern double host_size(int file);
extern double host_changed(int file); /* in seconds since 1970 */
extern void host_resize(int file, double size);
/* The number of bytes; -1: they cannot be read or written. Less is read at the end only. */
extern int host_read(int file, double at, void *buf, int len);
extern int host_write(int file, double at, const void *buf, int len);
/* The last name or descriptor is gone: the bytes may go. */
extern void host_drop(int file);

/* Random bytes, at most 65536. */
extern void host_random(void *buf, int len);

#endif
