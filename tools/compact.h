/* compact.h - converts a log or a capture to a snapshot of its data set.
 *
 *     struct compact_opts opts = {.until_ms = INT64_MIN};
 *     struct compact_result done;
 *     if (compact_is_log(path, &log, &err) && log)
 *         ok = compact_run(cli, path, &opts, sink, &done, &err);
 *
 * The log is replayed on an engine (engine/engine.h), which holds the whole data set in memory, and
 * the engine is saved. The replay can end at an offset or a time, and can skip commands, to restore
 * the data set before a mistake.
 */
#ifndef TOOLS_COMPACT_H
#define TOOLS_COMPACT_H

#include "base/sink.h"
#include "rdb/event.h"
#include "tools/cli/cli.h"
#include "tools/input/spool.h"

enum { COMPACT_SKIPS_MAX = 64, COMPACT_DATABASES = 1024 };

struct compact_opts {
    const char *until_offset; /* [FILE:]N: commands that begin there or later do not run; of a
                                 capture [CHAPTER:]N: those that end after it */
    int64_t until_ms; /* commands annotated with a later second do not, nor those of a capture that
                         came later; INT64_MIN: all run */
    const char *skip[COMPACT_SKIPS_MAX]; /* the number of a command, from 1, or FILE:OFFSET; of a
                                            capture [CHAPTER:]OFFSET */
    size_t n_skip;
    bool is_log; /* regardless of its first bytes */
    int from;    /* enum compact_from: --from, where a tool takes snapshots and logs alone */
};

enum compact_from { COMPACT_FROM_ANY, COMPACT_FROM_RDB, COMPACT_FROM_AOF };

struct compact_result {
    uint64_t commands; /* run */
    uint64_t skipped;
    uint64_t refused; /* that the engine answered with an error, as a server would have */
    uint64_t keys;
    char first_refused[RD_ERR_TEXT_MAX]; /* where, and the error */
};

/* Whether a path is a log: a folder (also of a capture), a manifest, a file that begins with a
 * command or an annotation, or one that begins with a snapshot marked as a preamble and does not
 * end like a snapshot. Standard input and pipes are not inspected, nor the data after the snapshot
 * in a compressed file: see compact_check_end(). False: it cannot be read. */
bool compact_is_log(const char *path, bool *ret, struct rd_err *err);

/* Commands that run scripts or functions, and unknown commands, are RD_ERR_UNSUPPORTED, with file
 * and offset: their effect is not in the log. */
bool compact_run(struct cli *cli, const char *path, const struct compact_opts *opts,
                 struct rd_sink *out, struct compact_result *ret, struct rd_err *err);

/* cli_open_in() for a tool that reads snapshots and logs: a log is compacted into the spool, which
 * must outlive the source. opts may be NULL; if an option is set, the input is a log. Failed and
 * skipped commands are reported on standard error. */
bool compact_open_in(struct cli *cli, const char *path, const struct compact_opts *opts,
                     struct spool *spool, struct rd_src **ret, struct rd_err *err);

/* In the TRAILER event of such a snapshot: RD_ERR_CHECKSUM on a checksum mismatch (zero: it has
 * none), and RD_ERR_USAGE if commands follow and --from is not given, because the snapshot alone
 * would not be the data of the file. */
bool compact_check_end(struct cli *cli, struct rd_src *src, const struct compact_opts *opts,
                       const struct rdb_event *ev, struct rd_err *err);

/* Closes the source, also after a failure: src may be NULL, and the spool empty. */
void compact_close_in(struct cli *cli, struct rd_src *src, struct spool *spool);

/* For CLI_EACH: --skip-command. ctx is the struct compact_opts. */
bool compact_add_skip(void *ctx, const char *value, struct rd_err *err);

/* The options of a tool, for its table; o points to the struct compact_opts. */
/* clang-format off */
#define COMPACT_OPTIONS(o)                                                                         \
    {.name = "until-offset", .kind = CLI_STRING, .arg = "N", .string = &(o)->until_offset,         \
     .help = "log: end before byte N, or FILE:N"},                                            \
    {.name = "until-time", .kind = CLI_TIME, .arg = "TIME", .time_ms = &(o)->until_ms,             \
     .help = "log: end after this second"},                                                       \
    {.name = "at-offset", .kind = CLI_STRING, .arg = "N", .string = &(o)->until_offset,            \
     .help = "capture: the data at byte N, or CHAPTER:N", .brief = true},                          \
    {.name = "at-time", .kind = CLI_TIME, .arg = "TIME", .time_ms = &(o)->until_ms,                \
     .help = "capture: the data at this time", .brief = true},                                     \
    {.name = "skip-command", .kind = CLI_EACH, .arg = "N", .each = compact_add_skip, .ctx = (o),   \
     .help = "log: omit the Nth command, or FILE:OFFSET"}
/* clang-format on */

/* --from, for a tool without the other options. "any" is not in the help. */
#define COMPACT_FROM_OPTION(o)                                                                     \
    {                                                                                              \
        .name = "from", .kind = CLI_ENUM, .arg = "rdb|aof", .words = "any|rdb|aof",                \
        .choice = &(o)->from, .help = "input format; default: detected", .brief = true             \
    }

/* Whether one of the options was given. */
bool compact_wanted(const struct compact_opts *opts);

#endif
