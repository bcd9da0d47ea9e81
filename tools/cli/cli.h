/* cli.h - what every tool of the program shares: options, errors, output, progress.
 *
 * A tool is one function. It describes its options in a table, lets cli_parse() fill them in, does
 * its work on cli->args and returns an exit status:
 *
 *     int tool_sum(struct cli *cli, int argc, char **argv)
 *     {
 *         bool sha256 = false;
 *         const char *list = NULL;
 *         const struct cli_opt opts[] = {
 *             {.name = "sha256", .kind = CLI_FLAG, .flag = &sha256, .help = "print SHA-256"},
 *             {.name = "check", .letter = 'c', .kind = CLI_STRING, .arg = "LIST", .string = &list,
 *              .help = "verify the digests in LIST"},
 *             {0},
 *         };
 *         const struct cli_usage usage = {
 *             .synopsis = "[OPTION…] FILE…",
 *             .about = "Prints digests of files in the format of sha256sum.",
 *             .opts = opts,
 *             .min_args = 1,
 *             .max_args = CLI_MANY,
 *             .example = "redoubt sum --sha256 dump.rdb",
 *         };
 *         int status;
 *         if (!cli_parse(cli, &usage, argc, argv, &status))
 *             return status;
 *
 *         struct rd_err err = {0};
 *         struct rd_src *src;
 *         if (!cli_open_in(cli, cli->args[0], &src, &err))
 *             return cli_fail(cli, &err);
 *         while (... one record ...)
 *             cli_tick(cli);
 *         cli_close_in(cli, src);
 *         return CLI_OK;
 *     }
 *
 * Data goes to stdout, everything else to stderr. With --json the tool prints no text on stdout and
 * adds its fields to the one object that cli->out is writing; main() ends it. The program checks
 * at its end that stdout took everything; a tool need not look at what printf() returns.
 */
#ifndef TOOLS_CLI_CLI_H
#define TOOLS_CLI_CLI_H

#include "base/err.h"
#include "base/sink.h"
#include "base/slice.h"
#include "base/src.h"

#include <stdio.h>

/* The exit statuses; there are no others. CLI_FINDINGS is damage or difference found, not a failure
 * of the tool. rd_err_exit_status() gives the same numbers. */
enum cli_status {
    CLI_OK = 0,
    CLI_FINDINGS = 1,
    CLI_USAGE = 2,
    CLI_IO = 3,
    CLI_UNSUPPORTED = 4,
    CLI_LIMIT = 5,
    CLI_PROTOCOL = 6,
    CLI_LOCKED = 7,
    CLI_PARTIAL = 8,
    CLI_SIGNAL = 128, /* and the number of the signal: SIGHUP 129, SIGINT 130, SIGTERM 143 */
    CLI_INTERRUPTED = 130,
};

/* ---- JSON ----
 *
 * A streaming writer over a sink. It puts the commas and keeps the nesting; the caller gives keys
 * and values in turn. A failure to write sticks to the sink. Depth is at most CLI_JSON_DEPTH. */

enum { CLI_JSON_DEPTH = 60 };

struct cli_json {
    struct rd_sink *out; /* borrowed */
    uint64_t objects;    /* bit d: level d is an object */
    uint64_t started;    /* bit d: level d has an element */
    unsigned depth;
    bool after_key;
};

void cli_json_init(struct cli_json *json, struct rd_sink *out);
void cli_json_obj(struct cli_json *json);
void cli_json_array(struct cli_json *json);
/* Closes the innermost object or array. */
void cli_json_end(struct cli_json *json);
void cli_json_key(struct cli_json *json, const char *key);
void cli_json_key_bytes(struct cli_json *json, struct rd_slice key);

/* A string: UTF-8 as it is, control characters escaped, and each byte that is not UTF-8 as the lone
 * surrogate \udcXX, as Python's surrogateescape has it, so that no byte is lost. */
void cli_json_bytes(struct cli_json *json, struct rd_slice bytes);
void cli_json_str(struct cli_json *json, const char *text); /* NULL: null */
void cli_json_int(struct cli_json *json, int64_t value);
void cli_json_uint(struct cli_json *json, uint64_t value);
/* Shortest digits that read back equal; the strings "inf", "-inf" and "nan" for those. */
void cli_json_double(struct cli_json *json, double value);
void cli_json_bool(struct cli_json *json, bool value);
void cli_json_null(struct cli_json *json);

/* An error as an object: code, offset, inner, origin, text, doing (those that are set). */
void cli_json_err(struct cli_json *json, const struct rd_err *err);

/* A key and its value in one call. */
void cli_json_put_str(struct cli_json *json, const char *key, const char *text);
void cli_json_put_int(struct cli_json *json, const char *key, int64_t value);
void cli_json_put_uint(struct cli_json *json, const char *key, uint64_t value);
void cli_json_put_bool(struct cli_json *json, const char *key, bool value);
/* RD_NO_OFFSET: null. */
void cli_json_put_offset(struct cli_json *json, const char *key, uint64_t offset);

/* ---- the state of one run ---- */

enum cli_when { CLI_AUTO, CLI_ALWAYS, CLI_NEVER, CLI_WHEN_JSON };

struct cli_progress {
    const struct rd_src *src; /* whose offset is shown; NULL: the caller says where it is */
    const char *what;
    uint64_t total; /* RD_NO_OFFSET: unknown */
    uint64_t next;  /* offset at which to look at the clock again */
    uint64_t start_ms;
    uint64_t shown_ms;
    bool active;
    bool drawn;
};

struct cli {
    const char *tool; /* "check-rdb" */
    bool compat;      /* called as redis-check-rdb or the like: the tool parses argv itself */

    /* The common options. */
    bool json;
    bool quiet;
    unsigned verbose;  /* how often -v was given */
    int progress_when; /* enum cli_when */
    int color_when;    /* enum cli_when */

    /* What is left after the options. A URL stands here without its user and password, which argv
     * has lost too: cli_url() has the whole. */
    char **args;
    size_t n_args;

    bool partial; /* something was left out: what would end with status 0 ends with 8 */

    struct cli_json out; /* with --json: inside the top object; else unusable */

    /* Private to cli_*.c. */
    char **urls; /* of each argument: the whole URL, or NULL */
    struct rd_sink *out_sink;
    struct cli_progress progress;
    char hint[RD_ERR_TEXT_MAX];
    bool failed; /* the "error" of the JSON object is written */
};

/* ---- options ---- */

enum cli_kind {
    CLI_FLAG,   /* --name sets *flag, --no-name clears it */
    CLI_STRING, /* *string borrows from argv */
    CLI_COUNT,  /* a decimal number */
    CLI_SIZE,   /* bytes: 64k, 64kb, 1gb … as in redis.conf */
    CLI_TIME,   /* absolute unix time in ms: see cli_get_time() */
    CLI_ENUM,   /* one of words; *choice is its index */
    CLI_EACH,   /* each() is called for every occurrence, in order of the command line */
};

/* One option. An entry with neither name nor letter ends the table. Options that were not given
 * leave their target as it is: initialize it with the default. */
struct cli_opt {
    const char *name; /* without dashes; NULL: only the letter */
    char letter;      /* 0: none */
    enum cli_kind kind;
    const char *arg;   /* what the help calls the argument; CLI_EACH: NULL means it takes none */
    const char *help;  /* one short line, lower case, no full stop; NULL: not in the help */
    const char *words; /* CLI_ENUM: "rdb|aof|resp" */
    bool brief;        /* the help has it by name only, in one paragraph with its like */
    union {
        bool *flag;
        const char **string;
        uint64_t *number; /* CLI_COUNT, CLI_SIZE */
        int64_t *time_ms;
        int *choice;
        /* False with err set (RD_ERR_USAGE) where the value is not acceptable. value may be NULL.
         */
        bool (*each)(void *ctx, const char *value, struct rd_err *err);
    };
    void *ctx; /* for each() */
};

enum { CLI_MANY = 1 << 30 };

struct cli_usage {
    const char *synopsis; /* what follows "redoubt TOOL "; long ones may hold newlines */
    const char *about;    /* one or two lines, each at most 78 columns */
    const struct cli_opt *opts;
    size_t min_args;
    size_t max_args;
    const char *example; /* one line, at most 78 columns, shown at the end of the help */
};

/* Parses argv[1…]: the tool's options and the common ones, in any order, mixed with arguments;
 * `--` ends them. A letter of the tool that ends the command line without its value means the
 * common one: -h alone asks for help, also where -h HOST is an option. False: there is nothing more
 * to do (help was asked for, or the command line is wrong and the error is printed); return
 * *ret_status. */
bool cli_parse(struct cli *cli, const struct cli_usage *usage, int argc, char **argv,
               int *ret_status);

/* An argument as it was given, with a password if it is a URL that has one: for whoever connects,
 * not to be printed. NULL where there are not so many. */
const char *cli_url(const struct cli *cli, size_t i);

/* ---- errors, warnings, notes ---- */

/* Prints the error with its context lines and the pending hint, adds "error" to the JSON object
 * (closing what is open inside it), and returns the exit status that belongs to the code. The last
 * thing a tool does. */
int cli_fail(struct cli *cli, const struct rd_err *err);

/* The same on stderr only, for a tool that continues (the next FILE): the tool reports the error in
 * JSON itself, with cli_json_err(). */
int cli_report(struct cli *cli, const struct rd_err *err);

/* Writes out what was printed so far; false with err, which names standard output. */
bool cli_flush(struct rd_err *err);

/* Tells the operator what to do about the error that is reported next. */
void cli_hint(struct cli *cli, const char *fmt, ...) RD_PRINTF(2, 3);

/* "redoubt TOOL: …" and where to find help; returns CLI_USAGE. */
int cli_usage_error(struct cli *cli, const char *fmt, ...) RD_PRINTF(2, 3);

/* Lines on stderr: always; unless -q; only with -v. Without "redoubt TOOL: " for the last two. */
void cli_warn(struct cli *cli, const char *fmt, ...) RD_PRINTF(2, 3);
void cli_note(struct cli *cli, const char *fmt, ...) RD_PRINTF(2, 3);
void cli_debug(struct cli *cli, const char *fmt, ...) RD_PRINTF(2, 3);

/* ---- input and output ---- */

/* Opens FILE (or "-") read-only, decompresses what is gzip, lz4 or zstd by its first bytes, and
 * begins the progress display. Close with cli_close_in(), which also ends the display. */
bool cli_open_in(struct cli *cli, const char *path, struct rd_src **ret, struct rd_err *err);
void cli_close_in(struct cli *cli, struct rd_src *src);

/* Opens OUT; NULL or "-" is stdout. An existing file is refused unless force, with a hint. With
 * binary, a terminal is refused. End it with rd_sink_close() or rd_sink_abort(). */
bool cli_open_out(struct cli *cli, const char *path, bool force, bool binary, struct rd_sink **ret,
                  struct rd_err *err);

/* Fills in mode and owner of the output `path`, which holds what the arguments of the command line
 * hold: nobody may read it who may not read all of them, or whom umask shuts out; what comes from
 * standard input, a pipe or a server is for the owner alone. A file that is replaced keeps its
 * owner and, within these limits, its permissions. */
void cli_choose_access(const struct cli *cli, const char *path, struct rd_sink_opts *opts);

/* ---- progress ---- */

/* For work that does not go through cli_open_in(). total may be RD_NO_OFFSET. */
void cli_progress_begin(struct cli *cli, const char *what, uint64_t total);
void cli_progress_at(struct cli *cli, uint64_t done);
void cli_progress_end(struct cli *cli);
/* Whether progress is shown, and for who draws a line of his own: it stands where the bar would
 * (with
 * --progress=json, as a line of its own). After cli_progress_begin(). */
bool cli_progress_wanted(const struct cli *cli);
void cli_progress_text(struct cli *cli, const char *text);
void cli_progress_slow(struct cli *cli, uint64_t done);

/* Cheap enough to be called for every record: a comparison until 256 KiB more were read. */
static inline void cli_tick(struct cli *cli)
{
    const struct rd_src *src = cli->progress.src;
    if (src != NULL && RD_UNLIKELY(rd_src_offset(src) >= cli->progress.next))
        cli_progress_slow(cli, rd_src_offset(src));
}

/* ---- colour ---- */

enum cli_color { CLI_PLAIN, CLI_BOLD, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_DIM };

/* The sequence that switches to a colour on this stream (stdout or stderr), or "" where colour is
 * off: --color, else NO_COLOR, else CLICOLOR_FORCE, else whether it is a terminal. */
const char *cli_color(const struct cli *cli, FILE *stream, enum cli_color color);

/* ---- text ---- */

/* Returned by value, so that printf("%s", cli_bytes(n).s) works. */
struct cli_text {
    char s[48];
};

/* Bytes of a name or a text, escaped, cut with "..." to fit. */
struct cli_quoted {
    char s[300];
};

struct cli_quoted cli_quote(struct rd_slice bytes); /* "user:1" */
struct cli_quoted cli_plain(struct rd_slice bytes); /* the same without quotation marks */

/* Text of our own, in which names are quoted already: only what is not printable is escaped. */
struct cli_quoted cli_sentence(struct rd_slice text);

/* What cli_plain() gives, in a place of the caller's; size is 8 at least. */
void cli_escape(char *dst, size_t size, struct rd_slice bytes);

const char *cli_plural(uint64_t n);         /* "s", but of one */
struct cli_text cli_place(uint64_t offset); /* "557 (0x22d)" */
struct cli_text cli_bytes(uint64_t bytes);  /* "17 bytes", "1.4 MiB" */
struct cli_text cli_count(uint64_t count);  /* "1,234,567" */
struct cli_text cli_duration(uint64_t ms);  /* "0.8 s", "3 min 20 s", "2 h 5 min", "4 d 3 h" */
struct cli_text cli_time(int64_t unix_ms);  /* "2024-05-01T12:00:00.250Z", without .000 */

/* Reads a time: unix seconds, unix milliseconds (from 100,000,000,000 on), RFC 3339 (the time, its
 * seconds and its zone may be left out; UTC then), or -15m, -2h30m, -1d: so long before now. */
bool cli_get_time(const char *text, int64_t now_ms, int64_t *ret_ms);

/* The clock, in unix milliseconds. */
int64_t cli_now_ms(void);

/* Random bytes of the system: the key of hashes, new for each run. */
void cli_seed(uint64_t seed[2]);

/* ---- for main.c ---- */

void cli_begin(struct cli *cli, const char *tool);
/* Ends the JSON object with the exit status, flushes stdout and says what is left to exit with. */
int cli_end(struct cli *cli, int status);
/* With --json, opens the object on stdout unless it is open; false where stdout cannot be had. */
bool cli_json_begin(struct cli *cli, int *ret_status);
/* Ends the run where memory is used up in a place that cannot fail: with the error, and without the
 * files that were under way. */
_Noreturn void cli_out_of_memory(struct cli *cli, size_t size);
/* Clears what cli_parse() keeps of the command line; cli_end() does it. */
void cli_forget_arguments(struct cli *cli);
void cli_print_version(void);
/* Removes temporary files and exits with CLI_SIGNAL and the number at SIGINT, SIGTERM and SIGHUP;
 * ends quietly at SIGPIPE. */
void cli_catch_signals(void);
/* The name nearest to a mistyped word, or NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *names, size_t n);

#endif
