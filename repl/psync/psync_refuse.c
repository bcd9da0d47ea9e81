#include <string.h>

#include "repl/psync/psync_impl.h"

static const char *const CLASS_WORDS[] = {
    [REPL_RETRY] = "retry",  [REPL_CLOSED] = "closed",           [REPL_TIMEOUT] = "timeout",
    [REPL_AUTH] = "auth",    [REPL_UNSUPPORTED] = "unsupported", [REPL_PROTOCOL] = "protocol",
    [REPL_NOMEM] = "memory",
};

/* The reason of an error line, which begins with '-'. */
static unsigned reason_of(struct rd_slice line)
{
    if (line.len == 0 || line.ptr[0] != '-')
        return 0;
    return rd_resp_error_reason(rd_slice(line.ptr + 1, line.len - 1));
}

/* Other errors may be temporary: a master without memory for a fork, or one whose own master is not
 * reachable. */
enum repl_class repl_refuse_class(struct rd_slice line)
{
    switch (reason_of(line)) {
    case RESP_REASON_NOAUTH:
    case RESP_REASON_NOAUTH_OLD:
    case RESP_REASON_WRONGPASS:
    case RESP_REASON_WRONGPASS_OLD:
    case RESP_REASON_NOPERM:
    case RESP_REASON_DENIED:
        return REPL_AUTH;
    case RESP_REASON_UNKNOWN_COMMAND:
    case RESP_REASON_UNKNOWN_SUBCOMMAND:
        return REPL_UNSUPPORTED;
    default:
        return REPL_RETRY;
    }
}

/* `line` up to where `what` begins in it. */
static struct rd_slice before(struct rd_slice line, struct rd_slice what)
{
    const uint8_t *at = line.len > 0 ? memmem(line.ptr, line.len, what.ptr, what.len) : NULL;
    return at != NULL ? rd_slice(line.ptr, (size_t)(at - line.ptr)) : line;
}

/* A server that does not know a command repeats its arguments, maybe truncated or with bytes
 * replaced, so searching for the password is not enough. */
struct rd_slice repl_refuse_discreet(struct rd_slice line, struct rd_slice password)
{
    line = before(line, rd_slice_str(" with args"));
    return password.len > 0 ? before(line, password) : line;
}

enum repl_event_kind repl_refuse(struct repl_psync *p, enum repl_class class, struct rd_slice text)
{
    char quoted[RD_ERR_TEXT_MAX - 60];
    unsigned reason = reason_of(text);
    if (text.len > 0) /* without the '-' */
        text = rd_slice(text.ptr + 1, text.len - 1);
    rd_err_quote(quoted, sizeof quoted, text);
    bool first = !p->failed;
    repl_psync_fail(p, class, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the master refuses %s: %s",
                    repl_step_word(p->step), quoted);
    if (first)
        p->err.reason.id = reason;
    return REPL_ERROR;
}

const char *repl_class_word(enum repl_class class)
{
    return CLASS_WORDS[class];
}
