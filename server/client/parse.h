/* parse.h - commands out of a client's bytes; private to server/client/input.c and tests.
 *
 * The bytes of a command need not be there all at once: what was understood is kept, so that a long
 * command is not read again from its begin with each piece that comes. What is refused, and with
 * which words, is what 7.0 refuses.
 */
#ifndef SERVER_CLIENT_PARSE_H
#define SERVER_CLIENT_PARSE_H

#include "server/client/client.h"
#include "server/core/words.h"

enum client_parse {
    CLIENT_PARSE_COMMAND, /* in->argc arguments in in->argv; *ret_used bytes */
    CLIENT_PARSE_NOTHING, /* an empty command: *ret_used bytes to be passed over */
    CLIENT_PARSE_MORE,
    CLIENT_PARSE_FAIL /* *ret_error says why: "Protocol error: …" */
};

struct client_parse_limits {
    uint64_t max_bulk;
    bool authenticated;
};

enum { CLIENT_PARSE_LINE = 64 * 1024 }; /* the longest inline command, and line with a number */

/* in->base[0 .. len) is what is there, from the command's first byte on. words is used for inline
 * commands, whose arguments then lie in it. */
enum client_parse client_parse(struct client_input *in, size_t len, struct words *words,
                               const struct client_parse_limits *limits, size_t *ret_used,
                               const char **ret_error);

/* The command was run, or is to be read again from its begin. */
void client_parse_reset(struct client_input *in);

/* Its bytes moved. */
void client_parse_rebase(struct client_input *in, const uint8_t *base);

#endif
