/* snapshot_in.h - a snapshot as the input of a tool, or a log or a capture in its place.
 *
 *     struct snapshot_in_opts opts = SNAPSHOT_IN_ALL;
 *     struct spool spool = {0};
 *     struct rd_src *src;
 *     if (!snapshot_in_open(cli, path, &opts, &spool, &src, &err))
 *         ...
 *     ... read events; at the TRAILER: snapshot_in_check_end() ...
 *     snapshot_in_close(cli, src, &spool);
 *
 * A log or a capture is replayed (rebuild/rebuild.h), and its snapshot is in the spool.
 */
#ifndef TOOLS_INPUT_SNAPSHOT_IN_H
#define TOOLS_INPUT_SNAPSHOT_IN_H

#include "jobs/input.h"
#include "rdb/event.h"
#include "rebuild/rebuild.h"
#include "tools/cli/cli.h"
#include "tools/input/server_in.h"
#include "data/spool.h"

enum snapshot_in_from { SNAPSHOT_IN_FROM_ANY, SNAPSHOT_IN_FROM_RDB, SNAPSHOT_IN_FROM_AOF };

struct snapshot_in_opts {
    struct rebuild_opts rebuild;
    bool is_log; /* regardless of its first bytes */
    struct server_in_opts server;
    int from; /* enum snapshot_in_from: --input-format, for snapshots and logs only */
};

/* The initial value: all commands. */
#define SNAPSHOT_IN_ALL                                                                            \
    {                                                                                              \
        .rebuild = {.until_ms = INT64_MIN }                                                        \
    }

/* Whether a path is a log: a folder (also of a capture), a manifest, a file that begins with a
 * command or an annotation, or one that begins with a snapshot marked as a preamble and does not
 * end like a snapshot. Standard input and pipes are not inspected, nor the data after the snapshot
 * in a compressed file: see snapshot_in_check_end(). False: it cannot be read. */
bool snapshot_in_is_log(const char *path, bool *ret, struct rd_err *err);

/* cli_open_in() for a tool that reads snapshots and logs: a log is replayed into the spool, and a
 * server (its URL) is read into it. The spool must outlive the source. opts may be NULL; if an
 * option is set, the input is a log. Failed and skipped commands are reported on standard error. */
bool snapshot_in_open(struct cli *cli, const char *path, const struct snapshot_in_opts *opts,
                      struct spool *spool, struct rd_src **ret, struct rd_err *err);

/* Whether snapshot_in_open() would replay this path. */
bool snapshot_in_replays(const char *path, const struct snapshot_in_opts *opts, bool *ret,
                         struct rd_err *err);

/* Replays such a path and saves the dataset to the output that opts->open_out opens: for a tool
 * that would only copy the snapshot in the spool. Reports as snapshot_in_open() does. *ret_keys:
 * how many were saved. */
bool snapshot_in_rebuild(struct cli *cli, const char *path, const struct rebuild_opts *opts,
                         uint64_t *ret_keys, struct rd_err *err); /* once, before the tool ends */

/* In the TRAILER event of such a snapshot: RD_ERR_CHECKSUM on a checksum mismatch (zero: it has
 * none), and RD_ERR_USAGE if commands or another snapshot follow and --input-format is not given,
 * because the snapshot alone would not be the data of the file. Warns of other bytes. */
bool snapshot_in_check_end(struct cli *cli, struct rd_src *src, const struct snapshot_in_opts *opts,
                           const struct rdb_event *ev, struct rd_err *err);

/* Warns of the keys whose values a replay does not know, and of commands of which not even the keys
 * are known: the tool ends with a partial result then. kept: rebuild_opts.keep_unknown was set. */
void snapshot_in_warn_unknown(struct cli *cli, const struct rebuild_counts *counts, bool kept);

/* The same and, with -v, the numbers; and warns of commands that failed. */
void snapshot_in_report(struct cli *cli, const struct rebuild_counts *counts, bool kept);

/* Warns that a time was asked for of a capture that does not record when it was interrupted. */
void snapshot_in_warn_unrecorded(struct cli *cli);

/* Such an input for a job (jobs/). Both are borrowed; opts is not NULL. */
struct snapshot_in_job {
    struct cli *cli;
    const struct snapshot_in_opts *opts;
};

struct job_input snapshot_in_job(const struct snapshot_in_job *job, const char *path);

/* Closes the source, also after a failure: src may be NULL, and the spool empty. */
void snapshot_in_close(struct cli *cli, struct rd_src *src, struct spool *spool);

/* Ends the tool with an error, and without unfinished files, if the dataset exceeds the memory. */
void snapshot_in_watch_memory(struct cli *cli);

/* For CLI_EACH: --skip-command. ctx is the struct snapshot_in_opts. */
bool snapshot_in_add_skip(void *ctx, const char *value, struct rd_err *err);

/* The options of a tool, for its table; o points to the struct snapshot_in_opts. */
/* clang-format off */
#define SNAPSHOT_IN_OPTIONS(o)                                                                     \
    {.name = "until-offset", .kind = CLI_STRING, .arg = "N", .string = &(o)->rebuild.until_offset, \
     .help = "log: end before byte N, or FILE:N", .brief = true},                                  \
    {.name = "until", .kind = CLI_TIME, .arg = "TIME", .time_ms = &(o)->rebuild.until_ms,          \
     .help = "log: end after this second"},                                                        \
    {.name = "until-time", .kind = CLI_TIME, .arg = "TIME", .time_ms = &(o)->rebuild.until_ms},    \
    {.name = "at-offset", .kind = CLI_STRING, .arg = "N", .string = &(o)->rebuild.until_offset,    \
     .help = "capture: the data at byte N, or CHAPTER:N", .brief = true},                          \
    {.name = "at", .kind = CLI_TIME, .arg = "TIME", .time_ms = &(o)->rebuild.until_ms,             \
     .help = "capture: the data at this time", .brief = true},                                     \
    {.name = "at-time", .kind = CLI_TIME, .arg = "TIME", .time_ms = &(o)->rebuild.until_ms},       \
    {.name = "skip-command", .kind = CLI_EACH, .arg = "N", .ctx = (o),                             \
     .each = snapshot_in_add_skip, .brief = true,                                                  \
     .help = "log: omit the Nth command, or FILE:OFFSET"},                                         \
    {.name = "keep-unknown", .kind = CLI_FLAG, .flag = &(o)->rebuild.keep_unknown, .brief = true,  \
     .help = "keep the last known values of keys that unknown commands changed"}
/* clang-format on */

/* --input-format, for a tool without the other options. "any" is not in the help. --from is its
 * former name. */
/* clang-format off */
#define SNAPSHOT_IN_FROM_OPTION(o)                                                                 \
    {.name = "input-format", .kind = CLI_ENUM, .arg = "rdb|aof", .words = "any|rdb|aof",           \
     .choice = &(o)->from, .help = "input format; default: detected", .brief = true},              \
    {.name = "from", .kind = CLI_ENUM, .words = "any|rdb|aof", .choice = &(o)->from}
/* clang-format on */

#endif
