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

/* What is looked for: the file that is at the path, or one that was there. */
struct wanted {
    struct stat file;
    char replaced[PATH_MAX + 16]; /* as /proc calls it; empty: the file is wanted */
};

static bool leads_to(int dir, const char *name, const struct wanted *wanted)
{
    char path[sizeof wanted->replaced];
    struct stat target;
    if (wanted->replaced[0] == '\0')
        return fstatat(dir, name, &target, 0) == 0 && target.st_dev == wanted->file.st_dev &&
               target.st_ino == wanted->file.st_ino;
    ssize_t len = readlinkat(dir, name, path, sizeof path);
    return len == (ssize_t)strlen(wanted->replaced) &&
           memcmp(path, wanted->replaced, (size_t)len) == 0;
}

/* Whether a link of /proc/PID/fd leads to the file, and its descriptor may write. */
static bool is_writer(int dir, const char *name, const struct wanted *wanted)
{
    struct stat link;
    return fstatat(dir, name, &link, AT_SYMLINK_NOFOLLOW) == 0 && (link.st_mode & S_IWUSR) != 0 &&
           leads_to(dir, name, wanted);
}

static bool has_open(const char *pid, const struct wanted *wanted)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    DIR *dir = opendir(path);
    bool found = false;
    if (dir == NULL)
        return false;
    for (const struct dirent *e; !found && (e = readdir(dir)) != NULL;)
        found = e->d_name[0] != '.' && is_writer(dirfd(dir), e->d_name, wanted);
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

static bool is_held(const struct wanted *wanted, char ret_pid[24])
{
    DIR *dir = opendir("/proc");
    bool found = false;
    if (dir == NULL)
        return false;
    for (const struct dirent *e; !found && (e = readdir(dir)) != NULL;) {
        bool is_process = strspn(e->d_name, "0123456789") == strlen(e->d_name);
        found =
            is_process && strtol(e->d_name, NULL, 10) != getpid() && has_open(e->d_name, wanted);
        if (found)
            snprintf(ret_pid, 24, "%.20s", e->d_name);
    }
    closedir(dir);
    return found;
}

void holder_name(struct rd_err *err, const char *path)
{
    struct wanted wanted = {0};
    char pid[24];
    if (err != NULL && err->code == RD_ERR_LOCKED && stat(path, &wanted.file) == 0 &&
        is_held(&wanted, pid))
        add(err, pid);
}

bool holder_has_none_replaced(const char *path, struct rd_err *err)
{
    struct wanted wanted = {0};
    char pid[24], *real = realpath(path, NULL);
    if (real == NULL)
        return true;
    snprintf(wanted.replaced, sizeof wanted.replaced, "%s (deleted)", real);
    free(real);
    if (!is_held(&wanted, pid))
        return true;
    rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "a server is using the file");
    if (err != NULL)
        add(err, pid);
    return false;
}
