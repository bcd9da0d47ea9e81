/* line.h - what a command line does to the keys that it names.
 *
 *     struct rebuild_line line = {engine_command_resolve(argv, argc), argc, argv};
 *     struct rebuild_line_keys keys;
 *     rebuild_line_find_keys(&line, &keys);
 *     for (size_t i = 0; i < keys.n; i++)
 *         if (rebuild_line_writes(&keys.list[i]))
 *             ... argv[keys.list[i].index] of rebuild_line_db(&line, &keys.list[i], db) ...
 *     rebuild_line_keys_done(&keys);
 *
 * The line was accepted by a server, perhaps by one with later options.
 */
#ifndef REBUILD_LINE_H
#define REBUILD_LINE_H

#include "base/resp.h"
#include "engine/command.h"

enum { REBUILD_LINE_KEYS = 16 }; /* as many need no allocation */

/* A command line. command NULL: it is in no table. */
struct rebuild_line {
    const struct engine_command *command;
    size_t argc;
    const struct rd_slice *argv;
};

struct rebuild_line_keys {
    struct engine_key *list;
    size_t n;
    struct engine_key few[REBUILD_LINE_KEYS];
};

/* False: the arguments do not say which keys it uses; n is 0. */
bool rebuild_line_find_keys(const struct rebuild_line *line, struct rebuild_line_keys *ret);
void rebuild_line_keys_done(struct rebuild_line_keys *keys);

/* The database of a key, if `db` is selected: the copy of COPY can be in another one. */
unsigned rebuild_line_db(const struct rebuild_line *line, const struct engine_key *key,
                         unsigned db);

/* Whether the command says what the key is afterwards, whatever it was. */
bool rebuild_line_replaces(const struct rebuild_line *line, const struct engine_key *key);
/* Whether the command can change the key. */
bool rebuild_line_writes(const struct engine_key *key);
/* Whether what the key holds decides what other keys, or the key itself, hold afterwards. */
bool rebuild_line_reads(const struct rebuild_line *line, const struct engine_key *key);

/* The first argument is moved: afterwards the key does not exist. MOVE names the database of the
 * same key: rebuild_line_move_db(), or `otherwise`. */
bool rebuild_line_moves(const struct rebuild_line *line);
bool rebuild_line_is_move(const struct rebuild_line *line);
unsigned rebuild_line_move_db(const struct rebuild_line *line, unsigned otherwise);

/* Takes elements of its first key and gives them to the second, whatever that holds: SMOVE, LMOVE.
 */
bool rebuild_line_gives(const struct rebuild_line *line);

/* SORT with BY or GET reads keys that it does not name. */
bool rebuild_line_reads_more(const struct rebuild_line *line);

/* FLUSHALL and others that concern keys without naming them. */
bool rebuild_line_is_for_all_keys(const struct rebuild_line *line);

/* Whether an argument is this word, in any case. */
bool rebuild_line_arg_is(const struct rebuild_line *line, size_t i, const char *word);

/* Whether it has this name, in lower case: "config|get". */
bool rebuild_line_is(const struct rebuild_line *line, const char *name);

/* ---- copies of commands ---- */

/* Bytes of a block with the arguments of a command, and what they point to. */
size_t rebuild_line_copy_size(const struct resp_command *command);
/* Writes it. The arguments begin the block. */
void rebuild_line_copy(const struct resp_command *command, struct rd_slice *block);

#endif
