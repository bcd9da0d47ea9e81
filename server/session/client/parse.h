/* parse.h - parses commands from the bytes of a client; private to input.c and tests.
 *
 * A command can arrive in pieces. The parsed part is kept, so that a long command is not parsed
 * again from its start for each piece. Errors and their messages are those of Redis 7.0.
 */
#ifndef SERVER_SESSION_CLIENT_PARSE_H
#define SERVER_SESSION_CLIENT_PARSE_H

#include "base/words.h"
#include "server/session/client/client.h"

enum client_parse {
    CLIENT_PARSE_COMMAND, /* in->argc arguments in in->argv; *ret_used bytes */
    CLIENT_PARSE_NOTHING, /* an empty command: skip *ret_used bytes */
    CLIENT_PARSE_MORE,
    CLIENT_PARSE_FAIL /* *ret_error is the message: "Protocol error: …" */
};

struct client_parse_limits {
    uint64_t max_bulk;
    bool authenticated;
};

enum {
    CLIENT_PARSE_LINE = 64 * 1024
}; /* the longest inline command, and the longest line with a
                                         * number */

/* in->base[0 .. len) are the available bytes, from the first byte of the command on. words is used
 * for inline commands; their arguments then point into it. */
enum client_parse client_parse(struct client_input *in, size_t len, struct rd_words *words,
                               const struct client_parse_limits *limits, size_t *ret_used,
                               const char **ret_error);

/* The command was run, or will be parsed again from its start. */
void client_parse_reset(struct client_input *in);

/* The bytes of the input have moved. */
void client_parse_rebase(struct client_input *in, const uint8_t *base);

#endif
