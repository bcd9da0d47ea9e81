/* host.c - the process of a server on this host. */
#include "tools/doctor/doctor.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { AGE_TOLERANCE_S = 5 };

bool doctor_proc_u64(const char *path, const char *name, uint64_t *ret)
{
    char line[256];
    size_t len = strlen(name);
    unsigned long long value;
    bool found = false;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = strncmp(line, name, len) == 0 && line[len] == ':' &&
                sscanf(line + len + 1, "%20llu", &value) == 1;
    fclose(file);
    if (found)
        *ret = strstr(line, " kB") != NULL ? value << 10 : value;
    return found;
}

/* Reads a small file as a string. */
static bool read_text(char *dst, size_t size, const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t len = fread(dst, 1, size - 1, file);
    fclose(file);
    dst[len] = '\0';
    return len > 0;
}

/* Seconds since the process began. Its name, in parentheses, may contain anything. */
static bool process_age(const struct doctor *d, const char *process, double *ret)
{
    char path[120], text[2048];
    double up;
    unsigned long long start;
    snprintf(path, sizeof path, "%s/uptime", d->proc);
    if (!read_text(text, sizeof text, path) || sscanf(text, "%30lf", &up) != 1)
        return false;
    snprintf(path, sizeof path, "%s/stat", process);
    const char *at = read_text(text, sizeof text, path) ? strrchr(text, ')') : NULL;
    if (at == NULL || sscanf(at + 1,
                             " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                             "%*d %*d %20llu",
                             &start) != 1)
        return false;
    *ret = up - (double)start / (double)sysconf(_SC_CLK_TCK);
    return true;
}

/* The limit of the process's control group, version 2; 0: none. */
static uint64_t group_limit(const struct doctor *d)
{
    char path[400], text[300];
    unsigned long long limit;
    snprintf(path, sizeof path, "%s/cgroup", d->host.proc);
    const char *at = read_text(text, sizeof text, path) ? strstr(text, "0::/") : NULL;
    if (at == NULL)
        return 0;
    snprintf(path, sizeof path, "%s/fs/cgroup%.*s/memory.max", d->sys, (int)strcspn(at + 3, "\n"),
             at + 3);
    return read_text(text, sizeof text, path) && sscanf(text, "%20llu", &limit) == 1 ? limit : 0;
}

static void set_memory(struct doctor *d)
{
    char path[120];
    uint64_t limit = group_limit(d);
    snprintf(path, sizeof path, "%s/meminfo", d->proc);
    if (!doctor_proc_u64(path, "MemTotal", &d->host.memory))
        d->host.memory = 0;
    if (limit > 0 && (d->host.memory == 0 || limit < d->host.memory))
        d->host.memory = limit;
}

/* A local address may lead to another host or into a container, whose process ids are others. The
 * process is the server if it is as old as the server says. */
void doctor_find_process(struct doctor *d, bool near)
{
    struct doctor_host *host = &d->host;
    uint64_t pid, uptime;
    double age;
    struct rd_slice info = rd_buf_slice(&d->info);
    snprintf(host->why, sizeof host->why, "the server is not on this host");
    if (!near)
        return;
    snprintf(host->why, sizeof host->why, "the process of the server is not visible on this host");
    if (!client_info_u64(info, "process_id", &pid) ||
        !client_info_u64(info, "uptime_in_seconds", &uptime))
        return;
    snprintf(host->proc, sizeof host->proc, "%s/%llu", d->proc, (unsigned long long)pid);
    if (!process_age(d, host->proc, &age) || fabs(age - (double)uptime) > (double)AGE_TOLERANCE_S)
        return;
    host->here = true;
    host->why[0] = '\0';
    set_memory(d);
}
