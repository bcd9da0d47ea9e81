/* peer_password.c - reads a password from the terminal without showing it. */
#include "base/mem.h"
#include "tools/cli/peer_options.h"

#include <errno.h>
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

enum { INTERRUPT = 3 };

struct terminal {
    int in;
    int out;
    bool own;
    bool quiet; /* a terminal whose state must be restored */
    struct termios before;
};

/* Keys that would send a signal are read as bytes, because the state must be restored in any case.
 */
static void terminal_open(struct terminal *t)
{
    *t = (struct terminal){.in = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)};
    t->own = t->in >= 0;
    t->out = t->own ? t->in : STDERR_FILENO;
    if (!t->own)
        t->in = STDIN_FILENO;
    if (tcgetattr(t->in, &t->before) != 0)
        return;
    struct termios silent = t->before;
    silent.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ISIG);
    t->quiet = tcsetattr(t->in, TCSAFLUSH, &silent) == 0;
}

static void say(const struct terminal *t, const char *text)
{
    for (size_t len = strlen(text); len > 0;) {
        ssize_t n = write(t->out, text, len);
        if (n < 0 && errno != EINTR)
            return;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
}

static void terminal_close(struct terminal *t)
{
    say(t, "\n");
    if (t->quiet)
        tcsetattr(t->in, TCSAFLUSH, &t->before);
    if (t->own)
        close(t->in);
}

static bool read_secret(const struct terminal *t, char *line, size_t size, size_t *ret_len,
                        struct rd_err *err)
{
    size_t len = 0;
    while (len < size) {
        ssize_t n = read(t->in, line + len, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rd_err_sys(err, errno, "cannot read the password");
        if (n == 0 || line[len] == '\n')
            break;
        if (line[len] == INTERRUPT)
            return rd_err_set(err, RD_ERR_CANCELLED, RD_NO_OFFSET, "no password");
        len++;
    }
    *ret_len = len;
    return len < size || rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the password is too long");
}

bool peer_ask_password(const char *name, char **ret, struct rd_err *err)
{
    char prompt[sizeof(struct rd_shown_name) + 20];
    char *line = rd_alloc(CLIENT_SECRET_MAX);
    size_t len = 0;
    struct terminal t;
    if (line == NULL)
        return rd_err_nomem(err, CLIENT_SECRET_MAX);
    snprintf(prompt, sizeof prompt, "Password for %s: ", rd_show_plain(rd_slice_str(name)).s);
    terminal_open(&t);
    say(&t, prompt);
    bool ok = read_secret(&t, line, CLIENT_SECRET_MAX, &len, err);
    terminal_close(&t);
    char *copy = ok ? client_secret_copy(rd_slice(line, len), err) : NULL;
    explicit_bzero(line, CLIENT_SECRET_MAX);
    rd_free(line);
    if (copy != NULL)
        *ret = copy;
    return copy != NULL;
}
