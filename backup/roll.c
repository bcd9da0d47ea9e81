#include "backup/roll.h"

bool backup_roll_note(struct backup_roll *roll, uint64_t received, uint64_t changes,
                      uint64_t now_ms)
{
    if (received == roll->received)
        return false;
    if (roll->fresh_ms == 0)
        roll->fresh_ms = now_ms;
    if (roll->dirty_ms != 0 || changes == roll->changes)
        return false;
    roll->dirty_ms = now_ms;
    return true;
}

static uint64_t hold_ms(const struct backup_roll *roll)
{
    return roll->hold_ms > roll->interval_ms ? roll->hold_ms : roll->interval_ms;
}

bool backup_roll_due(const struct backup_roll *roll, uint64_t now_ms, uint64_t *ret_left_ms)
{
    *ret_left_ms = UINT64_MAX;
    if (roll->fresh_ms == 0)
        return false;
    uint64_t at_ms = roll->fresh_ms + hold_ms(roll);
    if (roll->dirty_ms != 0 && roll->dirty_ms + roll->interval_ms < at_ms)
        at_ms = roll->dirty_ms + roll->interval_ms;
    *ret_left_ms = at_ms > now_ms ? at_ms - now_ms : 0;
    return *ret_left_ms == 0;
}

void backup_roll_done(struct backup_roll *roll, uint64_t received, uint64_t changes)
{
    if (roll->dirty_ms != 0)
        roll->hold_ms = 0;
    else if (roll->fresh_ms != 0)
        roll->hold_ms =
            2 * hold_ms(roll) < BACKUP_ROLL_IDLE_MS ? 2 * hold_ms(roll) : BACKUP_ROLL_IDLE_MS;
    roll->received = received;
    roll->changes = changes;
    roll->fresh_ms = roll->dirty_ms = 0;
}
