/* access.c - decides who may read an output. */
#include "tools/cli/cli.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ALL = 0666, OWNER = 0600 };

struct access {
    unsigned mode;
    bool known; /* uid and gid are those of the first input */
    uid_t uid;
    gid_t gid;
};

static void narrow(struct access *access, const struct stat *st)
{
    access->mode &= st->st_mode & ALL;
    if (!access->known) {
        access->known = true;
        access->uid = st->st_uid;
        access->gid = st->st_gid;
    } else if (access->gid != st->st_gid) {
        access->mode &= ~(unsigned)S_IRWXG;
    }
}

/* The files of a folder hold the data; users who cannot enter the folder cannot read them. */
static void narrow_folder(struct access *access, const char *path, const struct stat *folder)
{
    const struct dirent *entry;
    struct stat st;
    DIR *dir = opendir(path);
    access->mode &= OWNER | ((folder->st_mode & S_IXGRP) != 0 ? S_IRGRP | S_IWGRP : 0U) |
                    ((folder->st_mode & S_IXOTH) != 0 ? S_IROTH | S_IWOTH : 0U);
    if (dir == NULL)
        access->mode &= OWNER;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            narrow(access, &st);
    if (dir != NULL)
        closedir(dir);
}

/* Standard input can be a redirected file. */
static void narrow_by(struct access *access, const char *arg)
{
    struct stat st;
    bool ok = strcmp(arg, "-") == 0 ? fstat(STDIN_FILENO, &st) == 0 : stat(arg, &st) == 0;
    if (ok && S_ISREG(st.st_mode))
        narrow(access, &st);
    else if (ok && S_ISDIR(st.st_mode))
        narrow_folder(access, arg, &st);
    else
        access->mode &= OWNER;
}

static unsigned get_umask(void)
{
    mode_t mask = umask(077);
    umask(mask);
    return mask;
}

void cli_choose_access(const struct cli *cli, const char *path, struct rd_sink_opts *opts)
{
    struct access access = {.mode = ALL};
    struct stat old;
    for (size_t i = 0; i < cli->n_args; i++)
        narrow_by(&access, cli->args[i]);
    if (cli->n_args == 0)
        access.mode = OWNER;
    opts->set_owner = opts->replace && stat(path, &old) == 0 && S_ISREG(old.st_mode);
    if (opts->set_owner) {
        opts->uid = old.st_uid;
        opts->gid = old.st_gid;
        access.mode &= old.st_mode;
        /* The group of the output may differ from the group that may read the inputs. */
        if (access.known && access.gid != old.st_gid && (access.mode & S_IROTH) == 0)
            access.mode &= ~(unsigned)S_IRWXG;
    } else {
        access.mode &= ~get_umask();
        opts->set_owner = access.known && (access.mode & S_IRWXG) != 0;
        opts->uid = (uid_t)-1;
        opts->gid = access.gid;
    }
    opts->mode = (access.mode & OWNER) != 0 ? access.mode : S_IRUSR | S_IWUSR;
}
