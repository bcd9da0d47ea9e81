#include <string.h>
#include <strings.h>

#include "repl/psync/priv.h"

/* How error replies begin. What is not here may pass: a master without memory for a fork, one whose
 * own master is away. */
static const struct {
    const char *begin;
    enum repl_class class;
} REFUSALS[] = {
    {"-NOAUTH", REPL_AUTH},
    {"-WRONGPASS", REPL_AUTH},
    {"-NOPERM", REPL_AUTH},
    {"-DENIED", REPL_AUTH},
    {"-ERR operation not permitted", REPL_AUTH}, /* NOAUTH, before 2.8 */
    {"-ERR invalid password", REPL_AUTH},        /* WRONGPASS, before 6.0 */
    {"-ERR unknown command", REPL_UNSUPPORTED},
    {"-ERR unknown subcommand", REPL_UNSUPPORTED},
};

static const char *const CLASS_WORDS[] = {
    [REPL_RETRY] = "retry",  [REPL_CLOSED] = "closed",           [REPL_TIMEOUT] = "timeout",
    [REPL_AUTH] = "auth",    [REPL_UNSUPPORTED] = "unsupported", [REPL_PROTOCOL] = "protocol",
    [REPL_NOMEM] = "memory",
};

enum repl_class repl_refuse_class(struct rd_slice line)
{
    for (size_t i = 0; i < sizeof REFUSALS / sizeof *REFUSALS; i++) {
        size_t len = strlen(REFUSALS[i].begin);
        if (line.len >= len && strncasecmp((const char *)line.ptr, REFUSALS[i].begin, len) == 0)
            return REFUSALS[i].class;
    }
    return REPL_RETRY;
}

/* `line` up to where `what` begins in it. */
static struct rd_slice before(struct rd_slice line, const char *what)
{
    const uint8_t *at = line.len > 0 ? memmem(line.ptr, line.len, what, strlen(what)) : NULL;
    return at != NULL ? rd_slice(line.ptr, (size_t)(at - line.ptr)) : line;
}

/* A server that does not know a command repeats its arguments, perhaps cut or with bytes replaced,
 * so that searching for the password alone would not do. */
struct rd_slice repl_refuse_discreet(struct rd_slice line, const char *password)
{
    line = before(line, " with args");
    return password[0] != 0 ? before(line, password) : line;
}

enum repl_event_kind repl_refuse(struct repl_psync *p, enum repl_class class, struct rd_slice text)
{
    char quoted[RD_ERR_TEXT_MAX - 60];
    if (text.len > 0) /* without the '-' */
        text = rd_slice(text.ptr + 1, text.len - 1);
    rd_err_quote(quoted, sizeof quoted, text);
    return repl_psync_fail(p, class, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the master refuses %s: %s",
                           repl_step_word(p->step), quoted);
}

const char *repl_class_word(enum repl_class class)
{
    return CLASS_WORDS[class];
}
