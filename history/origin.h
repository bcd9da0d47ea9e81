/* origin.h - which commands of clients can be behind a command of a stream.
 *
 * A server sends most commands to its replicas as the client sent them, or, if they change nothing,
 * not at all: these are plain. Others it replaces: SPOP by SREM, EXPIRE by PEXPIREAT.
 * A command that is in no list here can be replaced by anything: then less is known, and nothing
 * wrong.
 *
 *     if (!history_is_plain(&line))
 *         ... each word of history_products(&line) ...
 */
#ifndef HISTORY_ORIGIN_H
#define HISTORY_ORIGIN_H

#include "rebuild/line.h"

/* What a command of a stream says about where it comes from. */
struct history_product {
    const char *name; /* "hset"; HISTORY_ANYTHING: in no table */
    bool by_self; /* a server also writes it by itself: a key or a field expires or is evicted */
    bool delayed; /* a client may have asked for it long before: BLPOP */
};

#define HISTORY_ANYTHING "*"

struct history_product history_product_of(const struct rebuild_line *line);

/* What a command of a client that is not plain becomes: names, each between blanks, or " * ". */
const char *history_products(const struct rebuild_line *line);

/* Whether a command of a client is sent as it is, or not at all. */
bool history_is_plain(const struct rebuild_line *line);

/* Whether it becomes at most one command of the stream. */
bool history_is_once(const struct rebuild_line *line);

/* Whether it can wait, and happen later. */
bool history_is_blocking(const struct rebuild_line *line);

/* Whether a command of a client that is not plain can become a command that servers also write by
 * themselves: only if it says so, because EXPIRE and SET can be followed by a DEL of the server. */
bool history_makes_removal(const struct rebuild_line *line);

/* EVAL, FCALL and the like: the commands of the script follow. */
bool history_is_script(const struct rebuild_line *line);

#endif
