/* sentinel_user.c - the user that runs a Sentinel, and what it may do with files. */
#include "tools/doctor/sentinel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- who ---- */

static bool read_process(const struct doctor *d, struct doctor_user *user)
{
    char path[120], line[DOCTOR_TEXT_MAX];
    unsigned found = 0;
    snprintf(path, sizeof path, "%s/status", d->host.proc);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        found += sscanf(line, "Uid: %*u %10u", &user->uid) == 1;
        found += sscanf(line, "Gid: %*u %10u", &user->gid) == 1;
        if (strncmp(line, "Groups:", 7) == 0)
            snprintf(user->groups, sizeof user->groups, "%s", line + 7);
    }
    if (file != NULL)
        fclose(file);
    snprintf(user->root, sizeof user->root, "%s/root", d->host.proc);
    snprintf(user->folder, sizeof user->folder, "%s/cwd", d->host.proc);
    return found == 2;
}

/* A file alone does not say who will run the Sentinel: its owner, unless the user who asks is not
 * root and would be refused anyhow. */
static bool read_owner(const struct doctor *d, struct doctor_user *user)
{
    struct stat st;
    if (stat(d->sentinel->file, &st) != 0)
        return false;
    bool as_root = geteuid() == 0;
    user->uid = as_root ? st.st_uid : geteuid();
    user->gid = as_root ? st.st_gid : getegid();
    return true;
}

bool doctor_find_user(const struct doctor *d, struct doctor_user *ret, char *why, size_t size)
{
    struct stat st;
    *ret = (struct doctor_user){0};
    if (d->file != NULL) {
        snprintf(why, size, "the file cannot be examined");
        return read_owner(d, ret);
    }
    snprintf(why, size, "%s", d->host.here ? "the process cannot be examined" : d->host.why);
    return d->host.here && read_process(d, ret) && stat(ret->root, &st) == 0;
}

/* ---- what it may do ---- */

static bool is_in_group(const struct doctor_user *user, unsigned gid)
{
    const char *at = user->groups;
    char *end;
    if (user->gid == gid)
        return true;
    for (unsigned long group = strtoul(at, &end, 10); end != at; group = strtoul(at, &end, 10)) {
        if (group == gid)
            return true;
        at = end;
    }
    return false;
}

static bool allows(const struct stat *st, const struct doctor_user *user, unsigned bits)
{
    unsigned mode = st->st_mode;
    if (user->uid == 0)
        return (bits & 1) == 0 || S_ISDIR(mode) || (mode & 0111) != 0;
    unsigned of = user->uid == st->st_uid         ? mode >> 6
                  : is_in_group(user, st->st_gid) ? mode >> 3
                                                  : mode;
    return (of & bits) == bits;
}

bool doctor_user_may(const struct doctor_user *user, const char *path, unsigned bits,
                     int *ret_error)
{
    char full[PATH_MAX + 80];
    struct stat st;
    struct statvfs fs;
    const char *before = path[0] == '/' ? user->root : user->folder;
    *ret_error = ENOTSUP;
    if (path[0] != '/' && before[0] == 0)
        return false;
    snprintf(full, sizeof full, path[0] == '/' ? "%s%s" : "%s/%s", before, path);
    *ret_error = 0;
    if (stat(full, &st) != 0)
        *ret_error = errno;
    else if ((bits & 2) != 0 && statvfs(full, &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0)
        *ret_error = EROFS;
    else if (!allows(&st, user, bits) || ((bits & 1) != 0 && S_ISDIR(st.st_mode) && bits == 1))
        *ret_error = EACCES;
    return *ret_error == 0;
}
