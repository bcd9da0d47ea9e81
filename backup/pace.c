#include "backup/pace.h"

#include "capture/clock.h"
#include "rebuild/data.h"

#include <stdio.h>

enum { KEYS = 10000, ROUND = 1000, VALUE = 100, TIME_US = 50000, NS_MAX = 1000000 };

static bool set_one(struct rebuild_data *data, uint64_t n, struct rd_err *err)
{
    char key[32];
    uint8_t value[VALUE] = {0};
    snprintf(key, sizeof key, "key:%06u", (unsigned)(n % KEYS));
    const struct rd_slice argv[] = {rd_slice_str("SET"), rd_slice_str(key),
                                    rd_slice(value, sizeof value)};
    const struct resp_command command = {.argc = 3, .argv = argv};
    const struct rebuild_step step = {.command = &command, .name = "the pace", .now_us = 1};
    return rebuild_data_apply(data, &step, err);
}

static uint64_t now_us(void)
{
    return (uint64_t)capture_stamp_now().boot_us;
}

bool backup_pace_measure(struct backup_pace *ret, struct rd_err *err)
{
    struct rebuild_data data;
    uint64_t n = 0, begin = now_us(), took = 0;
    bool ok = true;
    rebuild_data_begin(&data, 1);
    while (ok && took < TIME_US) {
        for (unsigned i = 0; ok && i < ROUND; i++)
            ok = set_one(&data, n++, err);
        took = now_us() - begin;
    }
    rebuild_data_end(&data);
    if (ok)
        ret->command_ns = 1 + took * 1000 / n;
    return ok;
}

uint64_t backup_pace_ms(const struct backup_pace *pace, uint64_t n_commands, uint64_t bytes)
{
    uint64_t command_ns = pace->command_ns < NS_MAX ? pace->command_ns : NS_MAX;
    if (n_commands > UINT64_MAX / 2 / NS_MAX || bytes > UINT64_MAX / 2 / BACKUP_PACE_BYTE_NS)
        return UINT64_MAX / NS_MAX;
    return (n_commands * command_ns + bytes * BACKUP_PACE_BYTE_NS) / NS_MAX;
}
