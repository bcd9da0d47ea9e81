/* command_args.h - parses the arguments of a command as written in the table.
 *
 *     struct engine_arg args[ENGINE_ARGS_MAX];
 *     size_t n;
 *     if (engine_args_parse("key@0 [EX seconds:integer]", args, &n))    // n == 2
 *         for (const struct engine_arg *a = &args[0]; a != NULL; a = engine_args_next(args, a))
 *             ... a->name, a->type ...
 *
 * The grammar, by example:
 *
 *     value                        a string of this name
 *     count:integer                other types: double, pattern, unix-time
 *     key@0                        a key, found by key spec 0; pattern:pattern@1
 *     NX                           a word to be written so; its name is nx
 *     CH=change  '*'=auto_id       words with another name; quotes unless in capital letters
 *     EX seconds:integer           a word before an argument. A comma parts a word from an argument
 *                                  that does not belong to it: LEFT, element
 *     order(ASC | DESC)            one of several
 *     limit(offset count)          several together
 *     [...]                        optional
 *     key@0...                     once or more often; ...+ with the word before each
 *     GET{6.2.0}  x{until 2.8.12}  came with, went with a version
 */
#ifndef ENGINE_COMMAND_ARGS_H
#define ENGINE_COMMAND_ARGS_H

#include <stdbool.h>

#include "base/slice.h"

/* More than any command has: the tests parse all of them. */
enum { ENGINE_ARGS_MAX = 64, ENGINE_ARGS_DEPTH = 8 };

#define ENGINE_ARG_TYPES(X)                                                                        \
    X(STRING, "string")                                                                            \
    X(INTEGER, "integer")                                                                          \
    X(DOUBLE, "double")                                                                            \
    X(PATTERN, "pattern")                                                                          \
    X(UNIX_TIME, "unix-time")                                                                      \
    X(KEY, "key")                                                                                  \
    X(PURE_TOKEN, "pure-token")                                                                    \
    X(ONEOF, "oneof")                                                                              \
    X(BLOCK, "block")

enum engine_arg_type {
#define X(name, word) ENGINE_ARG_##name,
    ENGINE_ARG_TYPES(X)
#undef X
        ENGINE_ARG_TYPE_COUNT
};

/* Slices point into the text. Without a version, len is 0. */
struct engine_arg {
    struct rd_slice name; /* for a word without its own name: the word, to be lower-cased */
    struct rd_slice token;
    struct rd_slice since;
    struct rd_slice deprecated_since;
    enum engine_arg_type type;
    int key_spec; /* -1: none */
    bool has_token;
    bool lower_name; /* the name is the token */
    bool optional;
    bool multiple;
    bool multiple_token;
    size_t n_args; /* of ONEOF and BLOCK: the first child is the next argument */
    size_t next;   /* index of the next argument on the same level, or 0 */
};

/* Parents come before their children. *ret_n: the number of arguments on the first level; the first
 * is args[0]. False: the text is malformed or has too many arguments. */
bool engine_args_parse(const char *text, struct engine_arg args[ENGINE_ARGS_MAX], size_t *ret_n);

static inline const struct engine_arg *engine_args_next(const struct engine_arg *args,
                                                        const struct engine_arg *arg)
{
    return arg->next == 0 ? NULL : &args[arg->next];
}

const char *engine_arg_type_name(enum engine_arg_type type);

#endif
