/* recorded.h - the input of history, blame and undo: a capture or a log, its indexes, and keys.
 *
 *     struct recorded in;
 *     recorded_init(&in, cli);
 *     const struct cli_opt opts[] = {RECORDED_OPTIONS(&in), …, {0}};
 *     ... cli_parse() ...
 *     if (recorded_open(&in, &err) && recorded_add_names(&in, &err))
 *         ... history_replay() with in.tape, in.indexes and in.names ...
 *     recorded_close(&in);
 */
#ifndef TOOLS_RECORDED_RECORDED_H
#define TOOLS_RECORDED_RECORDED_H

#include "backup/extract.h"
#include "history/replay.h"
#include "history/who.h"
#include "tools/check_aof/check_aof.h"
#include "tools/cli/cli.h"
#include "tools/cli/quote.h"
#include "tools/vault/vault.h"

enum { RECORDED_MONITOR_FILES = 64 };

struct recorded {
    struct cli *cli;
    const char *in;     /* as given; NULL: look in the current folder */
    const char *config; /* not NULL: `in` is a target of backups */
    int64_t since_ms;   /* of a target: what was before does not matter; INT64_MIN: all does */
    const char *index_dir;
    bool no_index;
    uint64_t db; /* or RECORDED_ANY_DB */
    const char *prefix, *match;
    struct aof_job job; /* finds the manifest of a log */
    char path[PATH_MAX];
    struct history_tape tape;
    struct history_indexes indexes;
    char folder[PATH_MAX]; /* of the indexes */
    struct history_names names;
    bool is_open;
    struct vault vault; /* of a target, like what follows */
    struct backup_open open;
    bool has_open;
    struct backup_extract extract;
    struct history_base base;
    bool distrusted; /* indexes of the target are not used, because one was wrong */
    const char *monitor_files[RECORDED_MONITOR_FILES];
    size_t n_monitor_files;
    struct history_who *who; /* tools/recorded/who.h; NULL: no recording of MONITOR */
};

#define RECORDED_ANY_DB UINT64_MAX

/* clang-format off */
#define RECORDED_OPTIONS(r)                                                                        \
    {.name = "in", .letter = 'i', .kind = CLI_STRING, .arg = "SOURCE", .string = &(r)->in,         \
     .help = "the capture or log; default: in the current folder"},                                \
    {.name = "config", .kind = CLI_STRING, .arg = "FILE", .string = &(r)->config, .brief = true,   \
     .help = "--in is a target of this configuration of backups"},                                 \
    {.name = "db", .kind = CLI_COUNT, .arg = "N", .number = &(r)->db,                              \
     .help = "keys of this database only"},                                                        \
    {.name = "index-dir", .kind = CLI_STRING, .arg = "DIR", .string = &(r)->index_dir,             \
     .brief = true, .help = "keep the indexes of keys in DIR"},                                    \
    {.name = "no-index", .kind = CLI_FLAG, .flag = &(r)->no_index, .brief = true,                  \
     .help = "read everything instead of using indexes"}

#define RECORDED_PATTERNS(r)                                                                       \
    {.name = "prefix", .kind = CLI_STRING, .arg = "P", .string = &(r)->prefix,                     \
     .help = "keys that begin with P"},                                                            \
    {.name = "match", .kind = CLI_STRING, .arg = "GLOB", .string = &(r)->match,                    \
     .help = "keys that match a pattern"}

#define RECORDED_WHO(r)                                                                            \
    {.name = "monitor-file", .kind = CLI_EACH, .arg = "FILE", .each = recorded_add_monitor,        \
     .ctx = (r), .help = "name clients by an output of redis-cli monitor"}
/* clang-format on */

void recorded_init(struct recorded *r, struct cli *cli);
bool recorded_open(struct recorded *r, struct rd_err *err);
void recorded_close(struct recorded *r);
/* Whether the work failed because an index of the target was wrong. Then everything is closed and
 * open again without indexes, and the error is reset: begin again. Once. */
bool recorded_again(struct recorded *r, struct rd_err *err);

/* ---- private ---- */

bool recorded_open_target(struct recorded *r, struct rd_err *err);
/* The folder for indexes that are kept elsewhere than in the folder of a capture; NULL: none. */
const char *recorded_cache(struct recorded *r);

/* ---- the command line ---- */

/* For the option --monitor-file. */
bool recorded_add_monitor(void *ctx, const char *value, struct rd_err *err);

/* Whether the command line names keys. */
bool recorded_names_any(const struct recorded *r);

/* The arguments of the command line are keys; --prefix and --match add those that are found in the
 * data, which is read as a whole. */
bool recorded_add_names(struct recorded *r, struct rd_err *err);
/* The arguments alone. */
bool recorded_add_arguments(struct recorded *r, struct rd_err *err);

/* Whether a name matches --prefix and --match. */
bool recorded_matches(const struct recorded *r, struct rd_slice name);

/* Calls `each` for every key that was ever written, perhaps more than once, from all data. False
 * from it, with err set, ends. */
typedef bool (*recorded_name_fn)(void *ctx, struct rd_slice name);
bool recorded_each_name(struct recorded *r, recorded_name_fn each, void *ctx, struct rd_err *err);

/* "1:88172", "appendonly.aof.1.incr.aof:320": as --until-offset of convert takes it. */
struct recorded_text {
    char s[340];
};
struct recorded_text recorded_place(const struct recorded *r, struct history_place place);
/* The reverse. RD_ERR_USAGE. */
bool recorded_find_place(const struct recorded *r, const char *text, struct history_place *ret,
                         struct rd_err *err);
/* "2024-05-01T12:00:00.250Z", or "-". */
struct rd_shown recorded_time(int64_t time_us);

/* Whether a place comes before another one. */
bool recorded_is_before(struct history_place a, struct history_place b);

#endif
