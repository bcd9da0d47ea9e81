/* who_impl.h - private to who.c and who_join.c. */
#ifndef HISTORY_WHO_IMPL_H
#define HISTORY_WHO_IMPL_H

#include "base/buf.h"
#include "history/monitor_line.h"
#include "history/origin.h"
#include "history/who.h"

enum { WHO_NOBODY = 0 };

/* A command of the stream. Its hashes: of its arguments, then of its keys with its name. */
struct who_command {
    struct history_place place;
    int64_t time_us;
    size_t hashes, n_hashes; /* in who->hashes */
    struct history_product product;
    bool expiring; /* a DEL of a key whose time to live ended: the server may have written it */
    bool covered;
    size_t first, last; /* the lines that it can be, at the earliest and at the latest */
    uint32_t client;    /* WHO_NOBODY: unknown */
};

struct who_line {
    int64_t time_us;
    uint32_t client;
    bool once; /* it is behind one command at most */
};

/* A line can be behind commands with this hash. */
struct who_posting {
    uint64_t hash;
    uint32_t line;
    bool names; /* for certain: it is not only possible that the command comes from it */
};

/* A client that waits for a key, from its command to its next one. */
struct who_waiting {
    uint64_t hash; /* of the key and what it waits for; with any: of no key */
    int64_t from_us, until_us;
    uint32_t client; /* WHO_NOBODY: any */
    bool any, over;
};

struct who_piece {
    int64_t from_us, until_us;
};

struct history_who {
    struct history_who_opts opts;
    struct history_names clients; /* number + 1 */
    struct rd_buf commands, hashes, lines, postings, waiting, pieces, late;
    size_t n_waiting; /* that are not over */
    struct history_monitor_line line;
    uint32_t script; /* the client of the script whose commands follow */
    bool expiring;   /* the command that runs */
};

static inline struct who_command *who_commands(const struct history_who *who, size_t *ret_n)
{
    *ret_n = who->commands.len / sizeof(struct who_command);
    return (struct who_command *)(void *)who->commands.ptr;
}

static inline struct who_line *who_lines(const struct history_who *who)
{
    return (struct who_line *)(void *)who->lines.ptr;
}

static inline const uint64_t *who_hashes(const struct history_who *who,
                                         const struct who_command *command)
{
    return (const uint64_t *)(const void *)who->hashes.ptr + command->hashes;
}

#endif
