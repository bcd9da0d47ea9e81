#include "sim_fs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Written (len > 0) at off, or cut there (len 0). */
struct change {
    size_t off;
    size_t len;
    uint8_t *bytes;
};

struct bytes {
    uint8_t *ptr;
    size_t len;
};

struct sim_inode {
    struct bytes now, durable;
    struct change *changes;
    size_t n_changes;
};

static void *must(void *ptr)
{
    if (ptr == NULL)
        abort();
    return ptr;
}

static uint8_t *copy_bytes(const uint8_t *ptr, size_t len)
{
    uint8_t *copy = must(malloc(len + 1));
    if (len > 0)
        memcpy(copy, ptr, len);
    return copy;
}

/* ---- contents ---- */

/* The first `part` bytes of a change; a cut happens as a whole. */
static void apply(struct bytes *to, const struct change *c, size_t part)
{
    size_t len = c->off + part;
    if (c->len > 0 && len < to->len)
        len = to->len;
    uint8_t *ptr = must(realloc(to->ptr, len + 1));
    if (len > to->len)
        memset(ptr + to->len, 0, len - to->len);
    if (part > 0)
        memcpy(ptr + c->off, c->bytes, part);
    *to = (struct bytes){ptr, len};
}

static void drop_changes(struct sim_inode *inode)
{
    for (size_t i = 0; i < inode->n_changes; i++)
        free(inode->changes[i].bytes);
    free(inode->changes);
    inode->changes = NULL;
    inode->n_changes = 0;
}

static void change_inode(struct sim_inode *inode, size_t off, const void *bytes, size_t len)
{
    size_t n = inode->n_changes++;
    inode->changes = must(realloc(inode->changes, inode->n_changes * sizeof *inode->changes));
    inode->changes[n] = (struct change){off, len, copy_bytes(bytes, len)};
    apply(&inode->now, &inode->changes[n], len);
}

static void sync_inode(struct sim_inode *inode, bool lost)
{
    for (size_t i = 0; i < inode->n_changes; i++)
        if (!lost || inode->changes[i].len == 0)
            apply(&inode->durable, &inode->changes[i], inode->changes[i].len);
    drop_changes(inode);
}

static size_t steps(const struct sim_inode *inode)
{
    size_t n = 0;
    for (size_t i = 0; i < inode->n_changes; i++)
        n += inode->changes[i].len > 0 ? inode->changes[i].len : 1;
    return n;
}

static struct bytes content_after(const struct sim_inode *inode, size_t n_steps)
{
    struct bytes b = {copy_bytes(inode->durable.ptr, inode->durable.len), inode->durable.len};
    for (size_t i = 0; i < inode->n_changes && n_steps > 0; i++) {
        size_t len = inode->changes[i].len;
        size_t part = len < n_steps ? len : n_steps;
        apply(&b, &inode->changes[i], part);
        n_steps -= len > 0 ? part : 1;
    }
    return b;
}

static int add_inode(struct sim_fs *sim)
{
    if (sim->n_inodes == SIM_INODES)
        abort();
    sim->inodes[sim->n_inodes] = must(calloc(1, sizeof(struct sim_inode)));
    return sim->n_inodes++;
}

/* ---- names ---- */

static int find_name(const struct sim_names *names, const char *name)
{
    for (unsigned i = 0; i < names->n; i++)
        if (strcmp(names->name[i], name) == 0)
            return (int)i;
    return -1;
}

static void remove_name(struct sim_names *names, const char *name, int inode)
{
    int at = find_name(names, name);
    if (at < 0 || names->inode[at] != inode)
        return;
    names->n--;
    memcpy(names->name[at], names->name[names->n], SIM_NAME);
    names->inode[at] = names->inode[names->n];
}

static void set_name(struct sim_names *names, const char *name, int inode)
{
    int at = find_name(names, name);
    if (at < 0) {
        if (names->n == SIM_NAMES)
            abort();
        at = (int)names->n++;
        snprintf(names->name[at], SIM_NAME, "%s", name);
    }
    names->inode[at] = inode;
}

static void apply_names(struct sim_names *names, const struct sim_change *c)
{
    if (c->from[0] != '\0')
        remove_name(names, c->from, c->inode);
    if (c->to[0] != '\0')
        set_name(names, c->to, c->inode);
}

static void change_names(struct sim_fs *sim, const char *from, const char *to, int inode)
{
    if (sim->n_changes == SIM_NAMES)
        abort();
    struct sim_change *c = &sim->changes[sim->n_changes++];
    snprintf(c->from, SIM_NAME, "%s", from);
    snprintf(c->to, SIM_NAME, "%s", to);
    c->inode = inode;
    apply_names(&sim->names, c);
}

static int inode_of(const struct sim_fs *sim, const char *name)
{
    int at = find_name(&sim->names, name);
    return at < 0 ? -ENOENT : sim->names.inode[at];
}

/* ---- faults ---- */

/* 0, or the negative errno that the call returns. *ret_bytes: a write takes at most so many. */
static int enter(struct sim_fs *sim, enum sim_call call, size_t *ret_bytes)
{
    if (sim->crashed)
        return -EIO;
    sim->n_calls++;
    sim->n_of[call]++;
    if (sim->n_calls == sim->crash_at) {
        sim->crashed = true;
        return -EIO;
    }
    for (unsigned i = 0; i < SIM_FAULTS; i++) {
        struct sim_fault *f = &sim->faults[i];
        unsigned at = f->call == SIM_ANY ? sim->n_calls : sim->n_of[call];
        if ((f->call != call && f->call != SIM_ANY) || f->n == 0 || at < f->n || f->times == 0)
            continue;
        if (f->bytes > 0 && ret_bytes != NULL && *ret_bytes > f->bytes) {
            *ret_bytes = f->bytes;
            f->bytes = 0;
            return 0;
        }
        f->times--;
        return -f->sys;
    }
    return 0;
}

/* ---- the calls ---- */

static int sim_open(void *ctx, const char *name, enum rd_fs_mode mode)
{
    struct sim_fs *sim = ctx;
    int result = enter(sim, SIM_OPEN, NULL);
    if (result < 0)
        return result;
    int inode = inode_of(sim, name);
    if (inode < 0) {
        if (mode != RD_FS_CREATE)
            return -ENOENT;
        inode = add_inode(sim);
        change_names(sim, "", name, inode);
    } else if (mode == RD_FS_CREATE && sim->inodes[inode]->now.len > 0) {
        change_inode(sim->inodes[inode], 0, NULL, 0);
    }
    for (int fd = 0; fd < SIM_FDS; fd++)
        if (sim->fds[fd] == 0) {
            sim->fds[fd] = inode + 1;
            sim->read_at[fd] = 0;
            sim->n_open++;
            return fd;
        }
    abort();
}

static int sim_close(void *ctx, int fd)
{
    struct sim_fs *sim = ctx;
    int result = enter(sim, SIM_CLOSE, NULL);
    if (sim->fds[fd] == 0)
        abort();
    sim->fds[fd] = 0;
    sim->locks[fd] = false;
    sim->n_open--;
    return result;
}

static struct sim_inode *inode_at(struct sim_fs *sim, int fd)
{
    if (fd < 0 || sim->fds[fd] == 0)
        abort();
    return sim->inodes[sim->fds[fd] - 1];
}

static ssize_t sim_read(void *ctx, int fd, void *dst, size_t size)
{
    struct sim_fs *sim = ctx;
    int result = enter(sim, SIM_READ, NULL);
    const struct bytes *b = &inode_at(sim, fd)->now;
    if (result < 0)
        return result;
    size_t n = b->len - sim->read_at[fd] < size ? b->len - sim->read_at[fd] : size;
    if (n > 0)
        memcpy(dst, b->ptr + sim->read_at[fd], n);
    sim->read_at[fd] += n;
    return (ssize_t)n;
}

static ssize_t sim_read_at(void *ctx, int fd, void *dst, size_t size, uint64_t offset)
{
    struct sim_fs *sim = ctx;
    size_t was = sim->read_at[fd];
    const struct bytes *b = &inode_at(sim, fd)->now;
    sim->read_at[fd] = offset < b->len ? (size_t)offset : b->len;
    ssize_t n = sim_read(ctx, fd, dst, size);
    sim->read_at[fd] = was;
    return n;
}

static ssize_t sim_write(void *ctx, int fd, const void *src, size_t size)
{
    struct sim_fs *sim = ctx;
    size_t n = sim->chunk > 0 && sim->chunk < size ? sim->chunk : size;
    int result = enter(sim, SIM_WRITE, &n);
    struct sim_inode *inode = inode_at(sim, fd);
    if (result < 0 && !(sim->crashed && sim->n_calls == sim->crash_at))
        return result;
    if (result < 0) {
        n = size / 2;
        sim->crash_at = 0;
    }
    if (n > 0)
        change_inode(inode, inode->now.len, src, n);
    return result < 0 ? result : (ssize_t)n;
}

static int sim_truncate(void *ctx, int fd, uint64_t size)
{
    struct sim_fs *sim = ctx;
    int result = enter(sim, SIM_TRUNCATE, NULL);
    struct sim_inode *inode = inode_at(sim, fd);
    if (result < 0)
        return result;
    if (size > inode->now.len)
        abort();
    change_inode(inode, (size_t)size, NULL, 0);
    return 0;
}

static int sim_sync(void *ctx, int fd)
{
    struct sim_fs *sim = ctx;
    int result = enter(sim, SIM_SYNC, NULL);
    struct sim_inode *inode = inode_at(sim, fd);
    if (!sim->crashed)
        sync_inode(inode, result < 0);
    return result;
}

static int sim_size(void *ctx, const char *name, uint64_t *ret)
{
    struct sim_fs *sim = ctx;
    int result = enter(sim, SIM_SIZE, NULL);
    int inode = result < 0 ? result : inode_of(sim, name);
    if (inode < 0)
        return inode;
    *ret = sim->inodes[inode]->now.len;
    return 0;
}

static int rename_to(struct sim_fs *sim, const char *from, const char *to)
{
    int result = enter(sim, SIM_RENAME, NULL);
    int inode = result < 0 ? result : inode_of(sim, from);
    if (inode < 0)
        return inode;
    change_names(sim, from, to, inode);
    return 0;
}

static int sim_rename(void *ctx, const char *from, const char *to)
{
    return rename_to(ctx, from, to);
}

static int sim_unlink(void *ctx, const char *name)
{
    struct sim_fs *sim = ctx;
    int result = enter(sim, SIM_UNLINK, NULL);
    int inode = result < 0 ? result : inode_of(sim, name);
    if (inode < 0)
        return inode;
    change_names(sim, name, "", inode);
    return 0;
}

static int sim_sync_folder(void *ctx, bool outside)
{
    struct sim_fs *sim = ctx;
    int result = enter(sim, SIM_SYNC_FOLDER, NULL);
    if (result < 0 || outside)
        return result;
    sim->durable_names = sim->names;
    sim->n_changes = 0;
    return 0;
}

static int sim_list(void *ctx, void (*each)(void *arg, const char *name), void *arg)
{
    struct sim_fs *sim = ctx;
    int result = enter(sim, SIM_LIST, NULL);
    for (unsigned i = 0; result == 0 && i < sim->names.n; i++)
        each(arg, sim->names.name[i]);
    return result;
}

static int sim_lock(void *ctx, const char *name)
{
    struct sim_fs *sim = ctx;
    int result = enter(sim, SIM_LOCK, NULL);
    if (result < 0)
        return result;
    int inode = inode_of(sim, name);
    for (int fd = 0; inode >= 0 && fd < SIM_FDS; fd++)
        if (sim->locks[fd] && sim->fds[fd] == inode + 1)
            return -EWOULDBLOCK;
    int fd = sim_open(ctx, name, RD_FS_CREATE);
    if (fd >= 0)
        sim->locks[fd] = true;
    return fd;
}

static int sim_outside(void *ctx, const char *name)
{
    char path[SIM_NAME];
    snprintf(path, sizeof path, "../%s", name);
    struct sim_fs *sim = ctx;
    int result = enter(sim, SIM_SIZE, NULL);
    return result < 0 ? result : inode_of(sim, path) >= 0;
}

static int sim_adopt(void *ctx, const char *name)
{
    char path[SIM_NAME];
    snprintf(path, sizeof path, "../%s", name);
    return rename_to(ctx, path, name);
}

struct rd_fs sim_fs_calls(struct sim_fs *sim)
{
    return (struct rd_fs){
        .ctx = sim,
        .open = sim_open,
        .close = sim_close,
        .read = sim_read,
        .write = sim_write,
        .read_at = sim_read_at,
        .truncate = sim_truncate,
        .sync = sim_sync,
        .size = sim_size,
        .rename = sim_rename,
        .unlink = sim_unlink,
        .sync_folder = sim_sync_folder,
        .list = sim_list,
        .lock = sim_lock,
        .outside = sim_outside,
        .adopt = sim_adopt,
    };
}

/* ---- life and death ---- */

struct sim_fs *sim_fs_new(void)
{
    return must(calloc(1, sizeof(struct sim_fs)));
}

void sim_fs_free(struct sim_fs *sim)
{
    for (int i = 0; i < sim->n_inodes; i++) {
        drop_changes(sim->inodes[i]);
        free(sim->inodes[i]->now.ptr);
        free(sim->inodes[i]->durable.ptr);
        free(sim->inodes[i]);
    }
    free(sim);
}

void sim_fs_put(struct sim_fs *sim, const char *name, struct rd_slice bytes)
{
    int inode = add_inode(sim);
    change_inode(sim->inodes[inode], 0, bytes.ptr, bytes.len);
    sync_inode(sim->inodes[inode], false);
    set_name(&sim->names, name, inode);
    set_name(&sim->durable_names, name, inode);
}

bool sim_fs_get(const struct sim_fs *sim, const char *name, struct rd_slice *ret)
{
    int inode = inode_of(sim, name);
    if (inode < 0)
        return false;
    *ret = rd_slice(sim->inodes[inode]->now.ptr, sim->inodes[inode]->now.len);
    return true;
}

static size_t steps_left(size_t n, unsigned contents, int inode)
{
    switch (contents) {
    case SIM_NONE:
        return 0;
    case SIM_ALL:
        return n;
    case SIM_HALF:
        return n / 2;
    default:
        return (size_t)(((uint64_t)contents * 2654435761u + (uint64_t)inode * 40503u) >> 7) %
               (n + 1);
    }
}

struct sim_fs *sim_fs_after_crash(const struct sim_fs *sim, unsigned contents, uint32_t names)
{
    struct sim_fs *left = sim_fs_new();
    struct sim_names kept = sim->durable_names;
    for (unsigned i = 0; i < sim->n_changes; i++)
        if ((names >> (i % 32) & 1) != 0)
            apply_names(&kept, &sim->changes[i]);
    for (unsigned i = 0; i < kept.n; i++) {
        const struct sim_inode *inode = sim->inodes[kept.inode[i]];
        struct bytes b = content_after(inode, steps_left(steps(inode), contents, kept.inode[i]));
        sim_fs_put(left, kept.name[i], rd_slice(b.ptr, b.len));
        free(b.ptr);
    }
    return left;
}

void sim_fs_after_kill(struct sim_fs *sim)
{
    memset(sim->fds, 0, sizeof sim->fds);
    memset(sim->locks, 0, sizeof sim->locks);
    memset(sim->faults, 0, sizeof sim->faults);
    sim->n_open = 0;
    sim->crash_at = 0;
    sim->chunk = 0;
    sim->crashed = false;
}
