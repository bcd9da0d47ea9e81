#include "tools/cli/holder.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMMAND_MAX = 64 };

/* Whether a link of /proc/PID/fd leads to the file, and its descriptor may write. */
static bool is_writer(int dir, const char *name, const struct stat *file)
{
    struct stat link, target;
    return fstatat(dir, name, &link, AT_SYMLINK_NOFOLLOW) == 0 && (link.st_mode & S_IWUSR) != 0 &&
           fstatat(dir, name, &target, 0) == 0 && target.st_dev == file->st_dev &&
           target.st_ino == file->st_ino;
}

static bool has_open(const char *pid, const struct stat *file)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    DIR *dir = opendir(path);
    bool found = false;
    if (dir == NULL)
        return false;
    for (const struct dirent *e; !found && (e = readdir(dir)) != NULL;)
        found = e->d_name[0] != '.' && is_writer(dirfd(dir), e->d_name, file);
    closedir(dir);
    return found;
}

/* The process's name, escaped; empty if it has ended. */
static void read_command(const char *pid, char *dst, size_t size)
{
    char path[64], text[COMMAND_MAX];
    dst[0] = '\0';
    snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    size_t len = fread(text, 1, sizeof text, file);
    fclose(file);
    const char *end = memchr(text, '\n', len);
    rd_err_quote(dst, size, rd_slice(text, end != NULL ? (size_t)(end - text) : len));
}

static void add(struct rd_err *err, const char *pid)
{
    char command[COMMAND_MAX];
    size_t len = strlen(err->text);
    read_command(pid, command, sizeof command);
    if (command[0] != '\0')
        snprintf(err->text + len, sizeof err->text - len, ": %s, process %.20s", command, pid);
}

void holder_name(struct rd_err *err, const char *path)
{
    struct stat file;
    if (err == NULL || err->code != RD_ERR_LOCKED || stat(path, &file) != 0)
        return;
    DIR *dir = opendir("/proc");
    if (dir == NULL)
        return;
    bool found = false;
    for (const struct dirent *e; !found && (e = readdir(dir)) != NULL;) {
        bool is_process = strspn(e->d_name, "0123456789") == strlen(e->d_name);
        found = is_process && strtol(e->d_name, NULL, 10) != getpid() && has_open(e->d_name, &file);
        if (found)
            add(err, e->d_name);
    }
    closedir(dir);
}
