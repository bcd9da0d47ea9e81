/* Loaded into a server before the C library: fsyncs that are noted, and calls that fail.
 *
 *     REDOUBT_FAULTS=DIR     DIR/synced   one line for each fsync of a file that succeeded:
 *                                         "inode bytes", the size from before the call
 *                            DIR/fail     while it is there: "write 28", "sync 5": calls on files
 *                                         whose name has "aof" or "rdb" in it fail with this errno;
 *                                         "random 38": so does getrandom(); "stack 1": fsync calls
 *                                         itself until the stack is full
 *                            DIR/lookup   while it is there, names of hosts have no answer
 *                            DIR/clock    while it is there: "seconds" by which the wall clock
 *                                         is set, or "seconds alternate" for every second read
 *
 * The host one-address.test has the address 127.0.0.1; two-addresses.test has 127.0.0.2 and
 * 127.0.0.1.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *folder(void)
{
    return getenv("REDOUBT_FAULTS");
}

static int is_data(int fd)
{
    char link[40], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0)
        return 0;
    path[n] = '\0';
    const char *name = strrchr(path, '/');
    return name != NULL && (strstr(name, "aof") != NULL || strstr(name, "rdb") != NULL);
}

/* The text of a file in the folder; empty: there is none. Without the heap, since the server writes
 * in handlers of signals, too. */
static void read_order(const char *name, char dst[64])
{
    char path[512];
    int saved = errno;
    ssize_t n = 0;
    snprintf(path, sizeof path, "%s/%s", folder(), name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, dst, 63);
        close(fd);
    }
    dst[n > 0 ? n : 0] = '\0';
    errno = saved;
}

/* The errno that calls of this kind are to fail with; 0: none. */
static int ordered(const char *kind)
{
    char text[64], word[16] = "";
    int number = 0;
    if (folder() == NULL)
        return 0;
    read_order("fail", text);
    if (sscanf(text, "%15s %d", word, &number) != 2 || strcmp(word, kind) != 0)
        number = 0;
    return number;
}

static int failing(const char *kind, int fd)
{
    int number = ordered(kind);
    return number != 0 && is_data(fd) ? number : 0;
}

ssize_t getrandom(void *ptr, size_t len, unsigned flags)
{
    ssize_t (*real)(void *, size_t, unsigned) = NULL;
    int error = ordered("random");
    if (error != 0) {
        errno = error;
        return -1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "getrandom");
    return real(ptr, len, flags);
}

typedef int (*getaddrinfo_fn)(const char *, const char *, const struct addrinfo *,
                              struct addrinfo **);

static int look_up(getaddrinfo_fn real, const char *host, const char *service,
                   const struct addrinfo *hints, struct addrinfo **ret)
{
    if (strcmp(host, "one-address.test") == 0)
        return real("127.0.0.1", service, hints, ret);
    if (strcmp(host, "two-addresses.test") != 0)
        return real(host, service, hints, ret);
    int error = real("127.0.0.2", service, hints, ret);
    return error != 0 ? error : real("127.0.0.1", service, hints, &(*ret)->ai_next);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    getaddrinfo_fn real = NULL;
    char path[512];
    snprintf(path, sizeof path, "%s/lookup", folder());
    while (hints != NULL && (hints->ai_flags & (AI_NUMERICHOST | AI_PASSIVE)) == 0 &&
           access(path, F_OK) == 0)
        usleep(10000);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (host != NULL && hints != NULL && (hints->ai_flags & AI_NUMERICHOST) == 0)
        return look_up(real, host, service, hints, ret);
    return real(host, service, hints, ret);
}

/* Only the server's own calls come here: those of the C library do not. */
int clock_gettime(clockid_t id, struct timespec *ret)
{
    static unsigned reads;
    char text[64], word[16] = "";
    long seconds = 0;
    int (*real)(clockid_t, struct timespec *) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, ret);
    if (result != 0 || id != CLOCK_REALTIME || folder() == NULL)
        return result;
    read_order("clock", text);
    if (sscanf(text, "%ld %15s", &seconds, word) < 1)
        return 0;
    if (strcmp(word, "alternate") != 0 || reads++ % 2 == 0)
        ret->tv_sec += seconds;
    return 0;
}

static void note(const struct stat *st)
{
    char path[512], line[64];
    if (folder() == NULL || !S_ISREG(st->st_mode))
        return;
    snprintf(path, sizeof path, "%s/synced", folder());
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    int len = snprintf(line, sizeof line, "%llu %lld\n", (unsigned long long)st->st_ino,
                       (long long)st->st_size);
    ssize_t (*real)(int, const void *, size_t) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "write");
    if (real(fd, line, (size_t)len) != len)
        abort();
    close(fd);
}

/* The array is used after the call, which therefore needs a frame of its own. */
static int fill_stack(const volatile char *above) /* NOLINT(misc-no-recursion) */
{
    volatile char frame[4096];
    frame[0] = above[0];
    return frame[0] == 0 ? fill_stack(frame) + frame[0] : frame[0];
}

static int sync_by(const char *name, int fd)
{
    struct stat st;
    int (*real)(int) = NULL;
    int error = failing("sync", fd);
    if (error != 0) {
        errno = error;
        return -1;
    }
    if (failing("stack", fd) != 0)
        return fill_stack("");
    int known = fstat(fd, &st) == 0;
    *(void **)&real = dlsym(RTLD_NEXT, name);
    int result = real(fd);
    if (result == 0 && known)
        note(&st);
    return result;
}

int fsync(int fd)
{
    return sync_by("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_by("fdatasync", fd);
}

ssize_t write(int fd, const void *ptr, size_t len)
{
    ssize_t (*real)(int, const void *, size_t) = NULL;
    int error = fd > STDERR_FILENO ? failing("write", fd) : 0;
    if (error != 0) {
        errno = error;
        return -1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "write");
    return real(fd, ptr, len);
}
