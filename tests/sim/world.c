#include "tests/sim/world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backup/places.h"
#include "backup/system.h"
#include "capture/clock.h"

struct world world;

/* ---- backup/system.h ---- */

const char *backup_env(const char *name)
{
    (void)name;
    return NULL;
}

int64_t backup_now_ms(void)
{
    return world.now_us / 1000;
}

uint64_t backup_boot_ms(void)
{
    return (uint64_t)world.now_us / 1000;
}

void backup_wait_ms(uint64_t ms)
{
    world.now_us += (int64_t)ms * 1000;
}

struct timespec backup_after_ms(uint64_t ms)
{
    uint64_t at_ms = backup_boot_ms() + ms;
    return (struct timespec){.tv_sec = (time_t)(at_ms / 1000),
                             .tv_nsec = (long)(at_ms % 1000) * 1000000};
}

bool backup_random(void *ret, size_t size, struct rd_err *err)
{
    uint8_t *at = ret;
    (void)err;
    for (size_t i = 0; i < size; i++) {
        world.seed = world.seed * 6364136223846793005 + 1442695040888963407;
        at[i] = (uint8_t)(world.seed >> 56);
    }
    return true;
}

void backup_host(char ret[ARCHIVE_TEXT_MAX])
{
    snprintf(ret, ARCHIVE_TEXT_MAX, "sim");
}

bool backup_spool(const struct backup_target *target, char ret[BACKUP_PATH_MAX], struct rd_err *err)
{
    (void)target;
    (void)err;
    snprintf(ret, BACKUP_PATH_MAX, "/spool");
    return true;
}

bool backup_spool_is_ours(const struct backup_target *target, const char *spool, struct rd_err *err)
{
    (void)target;
    (void)spool;
    (void)err;
    return true;
}

bool backup_spool_claim(const struct backup_target *target, const char *spool, struct rd_err *err)
{
    return backup_spool_is_ours(target, spool, err);
}

bool backup_run(const char *name, const char *command, const char *const *env, size_t max,
                struct rd_buf *ret, struct rd_err *err)
{
    (void)command;
    (void)env;
    (void)max;
    (void)ret;
    rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "there are no processes");
    rd_err_origin(err, name);
    return false;
}

bool backup_read_file(const char *path, size_t max, struct rd_buf *ret, struct rd_err *err)
{
    (void)max;
    if (world.key != NULL && strcmp(path, "/key") == 0)
        return rd_buf_add(ret, world.key, strlen(world.key)) || rd_err_nomem(err, max);
    return rd_err_sys(err, ENOENT, "there are no files");
}

/* ---- backup/places.h ---- */

bool backup_open_store(struct archive_store **ret, const struct backup_target *target,
                       const char *where, enum backup_mode mode, struct rd_err *err)
{
    (void)target;
    (void)mode;
    *ret = world.open(world.ctx, where, err);
    return *ret != NULL;
}

bool backup_open_again(struct archive_store **ret, const struct backup_target *target,
                       const char *where, const atomic_bool *cancel, struct rd_err *err)
{
    (void)cancel;
    return backup_open_store(ret, target, where, BACKUP_READ, err);
}

/* ---- capture/clock.h ---- */

uint64_t capture_now_ms(void)
{
    return backup_boot_ms();
}

int64_t capture_now_us(void)
{
    return world.now_us;
}

struct capture_stamp capture_stamp_now(void)
{
    return (struct capture_stamp){.boot_us = world.now_us, .us = world.now_us};
}
