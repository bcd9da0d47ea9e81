/* master.h - a master with a few keys, whose data at every offset is known.
 *
 *     struct master master = {.offset = 1000};
 *     master_write(&master, key);
 *     len = master_put_state(&master, master.offset, snapshot);
 *     ... master_has_state(&master, restored, offset) ...
 */
#ifndef TESTS_SIM_MASTER_H
#define TESTS_SIM_MASTER_H

#include "base/slice.h"

enum {
    MASTER_KEYS = 6,
    MASTER_VALUE = 5, /* digits */
    MASTER_COMMANDS = 4000,
    MASTER_COMMAND = 64,
    MASTER_STATE = 400,
    MASTER_HEAD = 11 /* bytes of a snapshot before its keys */
};

struct master_command {
    uint64_t end;
    unsigned key, value;
};

struct master {
    struct master_command commands[MASTER_COMMANDS];
    size_t n;
    uint64_t offset; /* the end of its stream */
};

void master_write(struct master *m, unsigned key);
/* Returns the length. */
size_t master_put_command(const struct master_command *c, char ret[MASTER_COMMAND]);
/* The snapshot at an offset. */
size_t master_put_state(const struct master *m, uint64_t offset, uint8_t ret[MASTER_STATE]);
/* Whether a snapshot, which an engine may have saved, has the data of that offset. */
bool master_has_state(const struct master *m, struct rd_slice rdb, uint64_t offset);

#endif
