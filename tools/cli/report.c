/* report.c - errors, notes, progress and colour of a run; its beginning and its end. */
#include "base/lz4.h"
#include "base/pump.h"
#include "base/utf8.h"
#include "base/zlib.h"
#include "base/zstd.h"
#include "rdb/rdb.h"
#include "tools/cli/cli.h"
#include "tools/cli/file_hint.h"
#include "tools/cli/watch.h"
#include "json/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- colour ---- */

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0';
}

static bool wants_color(const struct cli *cli, FILE *stream)
{
    if (cli->color_when != CLI_AUTO)
        return cli->color_when == CLI_ALWAYS;
    if (is_set("NO_COLOR"))
        return false;
    const char *force = getenv("CLICOLOR_FORCE");
    if (force != NULL && force[0] != '\0' && strcmp(force, "0") != 0)
        return true;
    return isatty(fileno(stream == cli->wrap.from ? cli->wrap.to : stream)) == 1;
}

const char *cli_color(const struct cli *cli, FILE *stream, enum cli_color color)
{
    static const char *const sequences[] = {
        [CLI_PLAIN] = "\033[0m",  [CLI_BOLD] = "\033[1m",    [CLI_RED] = "\033[31m",
        [CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m", [CLI_DIM] = "\033[2m",
    };
    return wants_color(cli, stream) ? sequences[color] : "";
}

/* ---- progress ---- */

enum { TICK_BYTES = 256 * 1024, FIRST_MS = 1000, EACH_MS = 100, BAR = 20 };

/* For the signal handler: the progress bar is on the terminal's last line. */
static volatile sig_atomic_t bar_drawn;

static const char clear_line[] = "\r\033[K";

static uint64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void progress_clear(struct cli *cli)
{
    if (!cli->progress.drawn)
        return;
    fputs(clear_line, stderr);
    cli->progress.drawn = false;
    bar_drawn = 0;
}

static void print_progress_json(uint64_t done, uint64_t total)
{
    if (total == RD_NO_OFFSET)
        fprintf(stderr, "{\"progress\":{\"bytes\":%llu,\"total\":null}}\n",
                (unsigned long long)done);
    else
        fprintf(stderr, "{\"progress\":{\"bytes\":%llu,\"total\":%llu}}\n",
                (unsigned long long)done, (unsigned long long)total);
}

static int terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

/* "[=====     ]  45 %  1.2 GiB of 2.7 GiB  780 MiB/s  2 s left", or without what is unknown. */
static void render_bar(const struct cli_progress *progress, uint64_t done, uint64_t elapsed_ms,
                       char *line, size_t size)
{
    double rate = elapsed_ms > 0 ? (double)done * 1000 / (double)elapsed_ms : 0;
    struct rd_shown done_text = rd_show_bytes(done);
    struct rd_shown rate_text = rd_show_bytes((uint64_t)rate);
    if (progress->total == RD_NO_OFFSET || progress->total == 0 || done > progress->total) {
        snprintf(line, size, "%s  %s/s", done_text.s, rate_text.s);
        return;
    }
    double part = (double)done / (double)progress->total;
    char bar[BAR + 1];
    memset(bar, ' ', BAR);
    memset(bar, '=', (size_t)(part * (double)BAR));
    bar[BAR] = '\0';
    double left_ms = rate > 0 ? (double)(progress->total - done) * 1000 / rate : 0;
    snprintf(line, size, "[%s] %3d %%  %s of %s  %s/s  %s left", bar, (int)(part * 100),
             done_text.s, rd_show_bytes(progress->total).s, rate_text.s,
             rate > 0 && left_ms < 1e15 ? rd_show_duration((uint64_t)left_ms).s : "?");
}

void cli_progress_text(struct cli *cli, const char *text)
{
    if (cli->progress_when == CLI_WHEN_JSON) {
        fprintf(stderr, "%s\n", text);
        return;
    }
    fprintf(stderr, "%s%.*s", clear_line, terminal_columns() - 1, text);
    fflush(stderr);
    cli->progress.drawn = true;
    bar_drawn = 1;
}

static void draw(struct cli *cli, uint64_t done, uint64_t now_ms)
{
    struct cli_progress *progress = &cli->progress;
    progress->shown_ms = now_ms;
    if (cli->progress_when == CLI_WHEN_JSON) {
        print_progress_json(done, progress->total);
        return;
    }
    char line[256];
    render_bar(progress, done, now_ms - progress->start_ms, line, sizeof line);
    cli_progress_text(cli, line);
}

bool cli_progress_wanted(const struct cli *cli)
{
    switch ((enum cli_when)cli->progress_when) {
    case CLI_ALWAYS:
    case CLI_WHEN_JSON:
        return true;
    case CLI_NEVER:
        return false;
    case CLI_AUTO:
    default:
        return !cli->quiet && isatty(STDERR_FILENO) == 1;
    }
}

void cli_progress_begin(struct cli *cli, const char *what, uint64_t total)
{
    uint64_t now_ms = monotonic_ms();
    cli->progress = (struct cli_progress){
        .what = what,
        .total = total == 0 ? RD_NO_OFFSET : total,
        .next = cli_progress_wanted(cli) ? 0 : RD_NO_OFFSET,
        .start_ms = now_ms,
        .shown_ms = now_ms,
        .active = cli_progress_wanted(cli),
    };
    if (cli->progress.active && cli->progress_when != CLI_AUTO)
        draw(cli, 0, now_ms);
}

void cli_progress_slow(struct cli *cli, uint64_t done)
{
    struct cli_progress *progress = &cli->progress;
    if (!progress->active)
        return;
    uint64_t now_ms = monotonic_ms();
    progress->next = done + TICK_BYTES;
    if (cli->progress_when == CLI_AUTO && now_ms - progress->start_ms < FIRST_MS)
        return;
    if (now_ms - progress->shown_ms >= EACH_MS)
        draw(cli, done, now_ms);
}

void cli_progress_at(struct cli *cli, uint64_t done)
{
    if (RD_UNLIKELY(done >= cli->progress.next))
        cli_progress_slow(cli, done);
}

void cli_progress_end(struct cli *cli)
{
    struct cli_progress *progress = &cli->progress;
    if (progress->active && cli->progress_when != CLI_AUTO && progress->src != NULL)
        draw(cli, rd_src_offset(progress->src), monotonic_ms());
    progress_clear(cli);
    *progress = (struct cli_progress){.next = RD_NO_OFFSET};
}

static void tick(void *ctx)
{
    cli_tick(ctx);
}

bool cli_copy(struct cli *cli, struct rd_src *src, struct rd_sink *sink, struct rd_err *err)
{
    cli->progress.src = src;
    bool ok = rd_pump(src, sink, tick, cli, err);
    cli->progress.src = NULL;
    return ok;
}

/* ---- lines on stderr ---- */

static void print_lead(struct cli *cli)
{
    progress_clear(cli);
    fflush(stdout); /* keeps the order if both streams go to one place */
    fprintf(stderr, "redoubt%s%s: ", cli->tool != NULL ? " " : "",
            cli->tool != NULL ? cli->tool : "");
}

/* Texts may contain paths, of which a terminal obeys some characters. */
static void print_text(const char *text)
{
    enum { SHOWN_MAX = 16 << 10, ONE_MAX = 8 };
    char shown[SHOWN_MAX];
    size_t n = 0;
    for (const uint8_t *p = (const uint8_t *)text; *p != '\0' && n + ONE_MAX < sizeof shown;) {
        size_t len = rd_utf8_shown(p, strnlen((const char *)p, RD_UTF8_MAX));
        if (len > 0)
            memcpy(shown + n, p, len);
        else
            snprintf(shown + n, ONE_MAX, "\\x%02x", *p);
        n += len > 0 ? len : 4;
        p += len > 0 ? len : 1;
    }
    shown[n++] = '\n'; /* stderr has no buffer: the line is written at once */
    fwrite(shown, 1, n, stderr);
}

static void print_formatted(const char *fmt, va_list args) RD_PRINTF(1, 0);

static void print_formatted(const char *fmt, va_list args)
{
    enum { TEXT_MAX = 8 << 10 };
    char text[TEXT_MAX];
    vsnprintf(text, sizeof text, fmt, args);
    print_text(text);
}

static void print_hint(struct cli *cli)
{
    if (cli->hint[0] != '\0') {
        fprintf(stderr, "  %shint:%s ", cli_color(cli, stderr, CLI_BOLD),
                cli_color(cli, stderr, CLI_PLAIN));
        print_text(cli->hint);
    }
    cli->hint[0] = '\0';
}

void cli_hint(struct cli *cli, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(cli->hint, sizeof cli->hint, fmt, args);
    va_end(args);
}

/* In JSON, the error belongs to the top object, so open inner objects are closed first. */
static void add_error(struct cli *cli, const struct rd_err *err)
{
    int status;
    if (!cli->json || cli->failed || !cli_json_begin(cli, &status))
        return;
    cli->failed = true;
    if (cli->out.after_key)
        json_null(&cli->out);
    while (cli->out.depth > 1)
        json_end(&cli->out);
    json_key(&cli->out, "error");
    cli_json_err(&cli->out, err);
}

/* The argument that the error is about. The name in an error is for display: it is escaped and may
 * be cut, so it cannot be opened. */
static const char *path_of(const struct cli *cli, const struct rd_err *err)
{
    for (size_t i = 0; i < cli->n_args; i++) {
        struct rd_err named = {.code = err->code};
        rd_err_origin(&named, cli->args[i]);
        if (strcmp(named.origin, err->origin) == 0)
            return cli->args[i];
    }
    return NULL;
}

/* Whether the name of a file that does not exist looks like HOST:PORT. */
static bool is_place(const char *path)
{
    static const char digits[] = "0123456789";
    const char *colon = strchr(path, ':');
    size_t n = colon != NULL ? strspn(colon + 1, digits) : 0;
    bool port = n > 0 && n <= 5 && colon[1 + n] == '\0' && colon > path;
    return strchr(path, '/') == NULL && (port || strcmp(path, "localhost") == 0);
}

/* Whether a snapshot has a version that does not exist yet for this program. */
static bool is_newer(const struct rd_err *err)
{
    return err->code == RD_ERR_UNSUPPORTED && err->reason.id == RDB_REASON_VERSION &&
           err->reason.args[0] > err->reason.args[1] && (err->offset == 5 || err->offset == 6);
}

/* A hint about the argument that cannot be opened, or is another kind of file. */
static void hint_at_argument(struct cli *cli, const struct rd_err *err)
{
    static const char readers[] = " check-rdb convert diff doctor merge split stat ";
    const char *path = path_of(cli, err), *hint = file_hint(err, cli->tool, path);
    char tool[32];
    snprintf(tool, sizeof tool, " %.20s ", cli->tool != NULL ? cli->tool : "");
    if (is_newer(err))
        cli_hint(cli, "a later version of redoubt may read it: this is %s", REDOUBT_VERSION_STRING);
    else if (hint != NULL)
        cli_hint(cli, "%s", hint);
    else if (path != NULL && err->sys == ENOENT && is_place(path) && strstr(readers, tool) != NULL)
        cli_hint(cli, "for a server: redis://%s", path);
}

int cli_report(struct cli *cli, const struct rd_err *err)
{
    char line[1024];
    print_lead(cli);
    if (err->code == RD_ERR_USAGE) /* the word "usage" would not help the reader */
        snprintf(line, sizeof line, "%s%s%s", err->origin, err->origin[0] != '\0' ? ": " : "",
                 err->text);
    else
        rd_err_render(err, line, sizeof line);
    fprintf(stderr, "%s%s%s\n", cli_color(cli, stderr, CLI_RED), line,
            cli_color(cli, stderr, CLI_PLAIN));
    if (cli->hint[0] == '\0')
        hint_at_argument(cli, err);
    for (unsigned i = 0; i < err->n_doing; i++) {
        fputs("  while reading ", stderr);
        print_text(err->doing[i]);
    }
    print_hint(cli);
    return rd_err_exit_status(err->code);
}

bool cli_report_is_enough(const struct cli *cli, FILE *out)
{
    struct stat a, b;
    if (cli->json || cli->quiet)
        return false;
    if (isatty(fileno(out)) == 1 && isatty(STDERR_FILENO) == 1)
        return true;
    return fstat(fileno(out), &a) == 0 && fstat(STDERR_FILENO, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino && !S_ISCHR(a.st_mode);
}

/* The reader of the output has closed it, which is not an error of this program. */
static bool is_quiet(const struct rd_err *err)
{
    return err->sys == EPIPE && strcmp(err->origin, "standard output") == 0;
}

int cli_fail(struct cli *cli, const struct rd_err *err)
{
    int status = is_quiet(err) ? CLI_IO : cli_report(cli, err);
    add_error(cli, err);
    return status;
}

int cli_usage_error(struct cli *cli, const char *fmt, ...)
{
    struct rd_err err = {0};
    char text[RD_ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    rd_err_set(&err, RD_ERR_USAGE, RD_NO_OFFSET, "%s", text);
    cli_hint(cli, "redoubt%s%s --help", cli->tool != NULL ? " " : "",
             cli->tool != NULL ? cli->tool : "");
    return cli_fail(cli, &err);
}

void cli_warn(struct cli *cli, const char *fmt, ...)
{
    va_list args;
    print_lead(cli);
    fprintf(stderr, "%swarning:%s ", cli_color(cli, stderr, CLI_YELLOW),
            cli_color(cli, stderr, CLI_PLAIN));
    va_start(args, fmt);
    print_formatted(fmt, args);
    va_end(args);
}

static void print_note(struct cli *cli, const char *fmt, va_list args) RD_PRINTF(2, 0);

static void print_note(struct cli *cli, const char *fmt, va_list args)
{
    progress_clear(cli);
    fflush(stdout);
    print_formatted(fmt, args);
}

void cli_note(struct cli *cli, const char *fmt, ...)
{
    va_list args;
    if (cli->quiet)
        return;
    va_start(args, fmt);
    print_note(cli, fmt, args);
    va_end(args);
}

void cli_debug(struct cli *cli, const char *fmt, ...)
{
    va_list args;
    if (cli->verbose == 0)
        return;
    va_start(args, fmt);
    print_note(cli, fmt, args);
    va_end(args);
}

/* ---- input and output ---- */

bool cli_open_in(struct cli *cli, const char *path, struct rd_src **ret, struct rd_err *err)
{
    const struct rd_watch watch = cli_watch(cli);
    return rd_watch_open_file(&watch, path, ret, err);
}

void cli_close_in(struct cli *cli, struct rd_src *src)
{
    cli_progress_end(cli);
    rd_src_close(src);
}

static bool open_stdout(struct cli *cli, bool binary, struct rd_sink **ret, struct rd_err *err)
{
    if (cli->json) {
        cli_hint(cli, "use -o to write the output to a file");
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "the output and the JSON object of --json cannot both go to stdout");
    }
    if (binary && isatty(STDOUT_FILENO) == 1) {
        cli_hint(cli, "use -o to write to a file, or a pipe");
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "binary output is not written to a terminal");
    }
    fflush(stdout);
    return rd_sink_open_file(ret, "-", NULL, err);
}

typedef bool compressor(struct rd_sink **ret, struct rd_sink *inner, int level, struct rd_err *err);

/* The compression that the end of a file name asks for, or NULL. */
static compressor *compressor_of(const char *path)
{
    static const struct {
        const char *end;
        compressor *open;
    } known[] = {
        {".gz", rd_zlib_open_sink}, {".lz4", rd_lz4_open_sink}, {".zst", rd_zstd_open_sink}};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof known / sizeof *known; i++)
        if (strcasecmp(dot, known[i].end) == 0)
            return known[i].open;
    return NULL;
}

static bool is_stdout(const char *path)
{
    return path == NULL || strcmp(path, "-") == 0;
}

bool cli_check_out(struct cli *cli, const char *path, bool force, struct rd_err *err)
{
    if (is_stdout(path) || force || access(path, F_OK) != 0)
        return true;
    cli_hint(cli, "use --force to replace it");
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "already exists");
    rd_err_origin(err, path);
    return false;
}

bool cli_open_out_as_is(struct cli *cli, const char *path, bool force, bool binary,
                        struct rd_sink **ret, struct rd_err *err)
{
    if (is_stdout(path))
        return open_stdout(cli, binary, ret, err);
    struct rd_sink_opts opts = RD_SINK_OPTS(.replace = force);
    cli_choose_access(cli, path, &opts);
    if (rd_sink_open_file(ret, path, &opts, err))
        return true;
    if (err->code == RD_ERR_USAGE && !force)
        cli_hint(cli, "use --force to replace it");
    return false;
}

bool cli_is_compressed_out(const char *path)
{
    return !is_stdout(path) && compressor_of(path) != NULL;
}

bool cli_name_ends(const char *path, const char *format)
{
    if (path == NULL)
        return false;
    size_t len = cli_is_compressed_out(path) ? (size_t)(strrchr(path, '.') - path) : strlen(path);
    size_t n = strlen(format);
    return len > n + 1 && path[len - n - 1] == '.' && strncasecmp(path + len - n, format, n) == 0;
}

bool cli_open_out(struct cli *cli, const char *path, bool force, bool binary, struct rd_sink **ret,
                  struct rd_err *err)
{
    if (!cli_open_out_as_is(cli, path, force, binary, ret, err))
        return false;
    compressor *compress = is_stdout(path) ? NULL : compressor_of(path);
    if (compress == NULL || compress(ret, *ret, 0, err))
        return true;
    rd_sink_abort(*ret);
    return false;
}

/* ---- begin and end ---- */

static void remove_and_exit(int number)
{
    int saved = errno;
    rd_sink_unlink_all();
    if (bar_drawn && write(STDERR_FILENO, clear_line, sizeof clear_line - 1) < 0)
        errno = saved;
    _exit(CLI_SIGNAL + number);
}

/* The default action ends the process; no temporary file remains. */
static void remove_and_die(int number)
{
    rd_sink_unlink_all();
    signal(number, SIG_DFL);
    raise(number);
}

static void catch_signal(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler}, old;
    sigemptyset(&action.sa_mask);
    if (number == SIGPIPE)
        action.sa_flags = SA_NODEFER;
    /* A signal that the parent ignores (nohup, a background job) stays ignored. */
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void cli_catch_signals(void)
{
    catch_signal(SIGINT, remove_and_exit);
    catch_signal(SIGTERM, remove_and_exit);
    catch_signal(SIGHUP, remove_and_exit);
    catch_signal(SIGPIPE, remove_and_die);
}

/* If a standard stream is closed, the next file would get its number, and messages would be written
 * into data. Reading from the replacement gives nothing, writing to it fails. */
static void fill_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) == -1)
            return;
    }
}

void cli_begin(struct cli *cli, const char *tool)
{
    *cli = (struct cli){.tool = tool, .began_ms = cli_now_ms(), .progress = {.next = RD_NO_OFFSET}};
    fill_standard_streams();
}

bool cli_json_begin(struct cli *cli, int *ret_status)
{
    if (!cli->json || cli->out_sink != NULL)
        return true;
    struct rd_err err = {0};
    if (!rd_sink_open_file(&cli->out_sink, "-", NULL, &err)) {
        cli->json = false;
        *ret_status = cli_fail(cli, &err);
        return false;
    }
    json_init(&cli->out, cli->out_sink);
    json_obj(&cli->out);
    json_put_uint(&cli->out, "redoubt", 1);
    json_put_str(&cli->out, "tool", cli->tool);
    return true;
}

static bool end_json(struct cli *cli, int status, struct rd_err *err)
{
    if (cli->out_sink == NULL)
        return true;
    while (cli->out.depth > 1)
        json_end(&cli->out);
    json_put_int(&cli->out, "exit_status", status);
    json_end(&cli->out);
    rd_sink_byte(cli->out_sink, '\n');
    struct rd_sink *sink = cli->out_sink;
    cli->out_sink = NULL;
    cli->json = false;
    return rd_sink_close(sink, err);
}

/* An earlier write error sets a flag, but its reason is lost. */
static int reason_of_mark(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0 ? EPIPE : 0;
}

bool cli_ask(struct cli *cli, bool yes, const char *question)
{
    char answer[16];
    if (yes)
        return true;
    fflush(stdout);
    fprintf(stderr, "%s [y/N]: ", question);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
        return true;
    fputc('\n', stderr);
    cli_warn(cli, "nothing was changed; use --yes to confirm");
    return false;
}

bool cli_flush(struct rd_err *err)
{
    errno = 0;
    bool flushed = fflush(stdout) == 0;
    if (flushed && !ferror(stdout))
        return true;
    int sys = flushed ? reason_of_mark() : errno;
    if (sys != 0)
        rd_err_sys(err, sys, "cannot write");
    else
        rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "not all output could be written");
    rd_err_origin(err, "standard output");
    return false;
}

int cli_end(struct cli *cli, int status)
{
    struct rd_err err = {0};
    cli_progress_end(cli);
    if (cli->partial && status == CLI_OK)
        status = CLI_PARTIAL;
    bool ok = end_json(cli, status, &err);
    if (ok)
        ok = cli_flush(&err);
    if (!ok && (status == CLI_OK || status == CLI_FINDINGS || status == CLI_PARTIAL))
        status = is_quiet(&err) ? CLI_IO : cli_report(cli, &err);
    cli_forget_arguments(cli);
    return status;
}

_Noreturn void cli_out_of_memory(struct cli *cli, size_t size)
{
    struct rd_err err = {0};
    rd_sink_unlink_all();
    rd_err_nomem(&err, size);
    _exit(cli_end(cli, cli_fail(cli, &err)));
}
