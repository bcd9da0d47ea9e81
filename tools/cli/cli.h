/* cli.h - shared by all tools of the program: options, errors, output, progress.
 *
 * A tool is one function. It describes its options in a table, calls cli_parse() to fill them in,
 * works on cli->args and returns an exit status:
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
 * Data goes to stdout, everything else to stderr. With --json the tool prints no text to stdout and
 * adds its fields to the object of cli->out; main() ends the object. The program checks stdout for
 * errors at its end; a tool can ignore the result of printf().
 */
#ifndef TOOLS_CLI_CLI_H
#define TOOLS_CLI_CLI_H

#include "base/buf.h"
#include "base/err.h"
#include "base/show.h"
#include "base/sink.h"
#include "base/slice.h"
#include "base/src.h"
#include "json/write.h"

#include <stdio.h>

/* All exit statuses. CLI_FINDINGS: damage or a difference was found; the tool itself did not fail.
 * rd_err_exit_status() returns the same numbers. */
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
    CLI_PAUSED = 9,   /* backups of the target are paused */
    CLI_SIGNAL = 128, /* and the number of the signal: SIGHUP 129, SIGINT 130, SIGTERM 143 */
    CLI_INTERRUPTED = 130,
};

/* ---- JSON (json/write.h) ---- */

/* An error as an object: code, offset, inner, origin, text, doing (those that are set). */
void cli_json_err(struct json_write *json, const struct rd_err *err);

/* ---- the state of one run ---- */

enum cli_when { CLI_AUTO, CLI_ALWAYS, CLI_NEVER, CLI_WHEN_JSON };

struct cli_progress {
    const struct rd_src *src; /* whose offset is shown; NULL: the caller reports the position */
    const char *what;
    uint64_t total; /* RD_NO_OFFSET: unknown */
    uint64_t next;  /* offset at which to check the clock again */
    uint64_t start_ms;
    uint64_t shown_ms;
    bool active;
    bool drawn;
};

/* A report that is being written: cli_wrap_begin(). */
struct cli_wrap {
    FILE *from, *to;
    char line[4096]; /* of the report: what there is of it */
    size_t len;
    bool whole; /* the line is longer, and is not broken */
};

struct cli {
    const char *tool; /* "check-rdb" */
    int64_t began_ms; /* the Unix time at which the tool started; commands without a time, of all
                         inputs, run at this time */
    bool compat;      /* called as redis-check-rdb or the like: the tool parses argv itself */
    bool whole_lines; /* the reader of a report breaks its lines: see cli_wrap_begin() */

    /* The common options. */
    bool json;
    bool quiet;
    unsigned verbose;  /* number of -v options */
    int progress_when; /* enum cli_when */
    int color_when;    /* enum cli_when */

    /* The arguments after the options. A URL is stored here without its user and password, which
     * are removed from argv too: cli_url() returns the complete URL. */
    char **args;
    size_t n_args;

    bool partial; /* the result is incomplete: exit status 8 instead of 0 */
    /* A bit for each of the first 64 arguments: the user was warned of its version. */
    uint64_t warned_version;
    uint64_t warned_rest; /* the same, of bytes after its snapshot */

    struct json_write out; /* with --json: inside the top object; else unusable */

    /* Private to cli_*.c. */
    struct cli_wrap wrap;
    char **urls; /* of each argument: the complete URL, or NULL */
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
    CLI_TIME,   /* absolute unix time in ms: see rd_time_get() */
    CLI_SPAN,   /* a length of time in ms: see rd_time_get_span() */
    CLI_ENUM,   /* one of words; *choice is its index */
    CLI_EACH,   /* each() is called for every occurrence, in order of the command line */
};

/* One option. An entry with neither name nor letter ends the table. If an option is not given, its
 * target is unchanged: initialize it with the default. */
struct cli_opt {
    const char *name; /* without dashes; NULL: only the letter */
    char letter;      /* 0: none */
    enum cli_kind kind;
    const char *arg;   /* name of the argument in the help; CLI_EACH: NULL: no argument */
    const char *help;  /* one short line, lower case, no full stop; NULL: not in the help */
    const char *words; /* CLI_ENUM: "rdb|aof|resp"; CLI_EACH: for completion, may be NULL */
    bool brief;        /* the help lists it by name only, in a paragraph with others */
    bool apart;        /* the help refers to redoubt(1), which describes it for all tools */
    union {
        bool *flag;
        const char **string;
        uint64_t *number; /* CLI_COUNT, CLI_SIZE, CLI_SPAN */
        int64_t *time_ms;
        int *choice;
        /* False with err set (RD_ERR_USAGE) if the value is invalid. value may be NULL.
         */
        bool (*each)(void *ctx, const char *value, struct rd_err *err);
    };
    void *ctx; /* for each() */
};

enum { CLI_MANY = 1 << 30 };

struct cli_usage {
    const char *synopsis; /* the text after "redoubt TOOL "; may contain newlines */
    const char *about;    /* one or two lines, each at most 78 columns */
    const struct cli_opt *opts;
    size_t min_args;
    size_t max_args;
    /* --json of this tool is one object a line, which the tool writes: it is stored here instead of
     * in cli->json. NULL: one object for the whole run. */
    bool *json_lines;
    const char *example; /* one line, at most 78 columns, shown at the end of the help */
};

/* Parses argv[1…]: the tool's options and the common ones, in any order, mixed with arguments; `--`
 * ends the options. If a letter of the tool ends the command line without its value, the common
 * option is used: -h alone prints the help, even if -h HOST is an option. False: the tool returns
 * *ret_status (the help or a usage error was printed). */
bool cli_parse(struct cli *cli, const struct cli_usage *usage, int argc, char **argv,
               int *ret_status);

/* Adds an argument, at most one, after those of the command line. text is changed as argv is, and
 * must outlive the run. */
bool cli_add_argument(struct cli *cli, char *text, struct rd_err *err);
/* Reports that there are too few arguments; returns CLI_USAGE. */
int cli_missing_argument(struct cli *cli, const struct cli_usage *usage);

/* Returns an argument as given, including the password of a URL. Use it to connect; do not print
 * it. NULL if the argument does not exist. */
const char *cli_url(const struct cli *cli, size_t i);

/* ---- errors, warnings, notes ---- */

/* Prints the error with its context lines and the pending hint, closes open objects and adds
 * "error" to the JSON object, and returns the exit status for the code. A tool returns right after
 * it. */
int cli_fail(struct cli *cli, const struct rd_err *err);

/* The same on stderr only, for a tool that continues with the next FILE. The tool writes the error
 * to JSON itself, with cli_json_err(). */
int cli_report(struct cli *cli, const struct rd_err *err);

/* Whether a report on `out` and the errors on stderr go to the same place, such as a terminal, so
 * that a report that has the errors is enough. */
bool cli_report_is_enough(const struct cli *cli, FILE *out);

/* Flushes stdout; false with err, which names standard output. */
bool cli_flush(struct rd_err *err);

/* Sets the hint that is printed with the next error. */
void cli_hint(struct cli *cli, const char *fmt, ...) RD_PRINTF(2, 3);

/* Prints "redoubt TOOL: …" and how to get help; returns CLI_USAGE. */
int cli_usage_error(struct cli *cli, const char *fmt, ...) RD_PRINTF(2, 3);

/* Print a line to stderr: always; except with -q; only with -v. The last two omit "redoubt TOOL: ".
*/
void cli_warn(struct cli *cli, const char *fmt, ...) RD_PRINTF(2, 3);
void cli_note(struct cli *cli, const char *fmt, ...) RD_PRINTF(2, 3);
void cli_debug(struct cli *cli, const char *fmt, ...) RD_PRINTF(2, 3);

/* Asks on standard error, unless `yes` is set. False, with a warning: the answer was not y. */
bool cli_ask(struct cli *cli, bool yes, const char *question);

/* ---- input and output ---- */

/* Opens FILE (or "-") read-only, decompresses it if its first bytes are those of gzip, lz4 or zstd,
 * and begins the progress display. Close it with cli_close_in(), which also ends the display. */
bool cli_open_in(struct cli *cli, const char *path, struct rd_src **ret, struct rd_err *err);
void cli_close_in(struct cli *cli, struct rd_src *src);

/* Opens OUT; NULL or "-" is stdout. Without force, fails with a hint if the file exists. With
 * binary, fails if it is a terminal. Names that end in .gz, .lz4 or .zst are compressed; _as_is()
 * compresses nothing. End it with rd_sink_close() or rd_sink_abort(). */
bool cli_open_out(struct cli *cli, const char *path, bool force, bool binary, struct rd_sink **ret,
                  struct rd_err *err);
bool cli_open_out_as_is(struct cli *cli, const char *path, bool force, bool binary,
                        struct rd_sink **ret, struct rd_err *err);

/* For an output that is opened late: fails at once, as cli_open_out() would, if it exists. */
bool cli_check_out(struct cli *cli, const char *path, bool force, struct rd_err *err);

/* Whether cli_open_out() compresses a file of this name. */
bool cli_is_compressed_out(const char *path);
/* Whether the name of a file ends in .format, also before .gz, .lz4 or .zst. path may be NULL. */
bool cli_name_ends(const char *path, const char *format);

/* Fills in mode and owner of the output `path`, which contains data of the input files: only users
 * who can read all of them and whom umask allows may read it. If the data is from standard input, a
 * pipe or a server, only the owner may read it. A replaced file keeps its owner and, within these
 * limits, its permissions. */
void cli_choose_access(const struct cli *cli, const char *path, struct rd_sink_opts *opts);

/* ---- progress ---- */

/* For work without cli_open_in(). total may be RD_NO_OFFSET. */
void cli_progress_begin(struct cli *cli, const char *what, uint64_t total);
void cli_progress_at(struct cli *cli, uint64_t done);
void cli_progress_end(struct cli *cli);
/* Whether progress is shown; and prints a line of the tool in place of the bar (with
 * --progress=json, as a separate line). Call after cli_progress_begin(). */
bool cli_progress_wanted(const struct cli *cli);
void cli_progress_text(struct cli *cli, const char *text);
void cli_progress_slow(struct cli *cli, uint64_t done);

/* Updates the display. Cheap enough for every record: a comparison until 256 KiB more are read. */
static inline void cli_tick(struct cli *cli)
{
    const struct rd_src *src = cli->progress.src;
    if (src != NULL && RD_UNLIKELY(rd_src_offset(src) >= cli->progress.next))
        cli_progress_slow(cli, rd_src_offset(src));
}

/* Copies a source to its end into a sink, which stays open, and shows the progress. False: reading
 * or writing failed. */
bool cli_copy(struct cli *cli, struct rd_src *src, struct rd_sink *sink, struct rd_err *err);

/* ---- colour ---- */

enum cli_color { CLI_PLAIN, CLI_BOLD, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_DIM };

/* Returns the escape sequence of a colour for this stream (stdout or stderr), or "" if colour is
 * off. This depends on --color, else NO_COLOR, else CLICOLOR_FORCE, else whether it is a terminal.
 */
const char *cli_color(const struct cli *cli, FILE *stream, enum cli_color color);

/* ---- reports ---- */

/* What is printed to the returned stream until _end() goes to `out`, with its colours; lines of
 * more than 80 columns are broken at blanks. What follows a label of 10 letters stays right of it,
 * as in "  checksum   matches". Lines of 4,096 bytes are not broken, and none with
 * whole_lines. One at a time. */
FILE *cli_wrap_begin(struct cli *cli, FILE *out);
void cli_wrap_end(struct cli *cli);

/* ---- the system ---- */

/* The clock, in unix milliseconds. */
int64_t cli_now_ms(void);

/* What is added to the name of a file for a copy of it: ".redoubt-save-20240501T120000Z". */
enum { CLI_SUFFIX_MAX = 40 };
void cli_save_suffix(char ret[CLI_SUFFIX_MAX]);

/* Returns random bytes of the system, for the key of hashes. */
void cli_seed(uint64_t seed[2]);

/* ---- for main.c ---- */

void cli_begin(struct cli *cli, const char *tool);
/* Ends the JSON object with the exit status, flushes stdout and returns the final exit status. */
int cli_end(struct cli *cli, int status);
/* With --json, opens the object on stdout if it is not open; false if stdout cannot be opened. */
bool cli_json_begin(struct cli *cli, int *ret_status);
/* Exits after an out-of-memory condition in code that cannot fail: prints the error and removes
 * unfinished files. */
_Noreturn void cli_out_of_memory(struct cli *cli, size_t size);
/* Clears the copies of secrets from the command line; cli_end() calls it. */
void cli_forget_arguments(struct cli *cli);
void cli_print_version(void);
/* On SIGINT, SIGTERM and SIGHUP, removes temporary files and exits with CLI_SIGNAL plus the number;
 * on SIGPIPE, exits silently. */
void cli_catch_signals(void);
/* Returns the name most similar to a mistyped word, or NULL. */
const char *cli_nearest(const char *word, const char *const *names, size_t n);

#endif
