/* show.h - private to tools/show.
 *
 *     show.c      options
 *     aof.c       reads a log as a sequence of struct show_item
 *     capture.c   reads a capture in the same way
 *     pick.c      selects commands
 *     put.c       prints them: all lines, the last ones, context, or totals
 *     line.c      formats one command
 *     stats.c     totals; report.c prints them
 *     timeline.c  more about spans of time, for the page; html.c writes it
 *     keys.c      finds the keys of a command
 *     follow.c    a source that waits for more input
 */
#ifndef TOOLS_SHOW_SHOW_H
#define TOOLS_SHOW_SHOW_H

#include "aof/reader.h"
#include "base/buf.h"
#include "tools/check_aof/check_aof.h"
#include "tools/cli/filter.h"
#include "rebuild/place.h"
#include "rebuild/stream.h"

#define SHOW_NO_TIME INT64_MIN

enum { SHOW_COMMANDS = 16, SHOW_COMMAND = 64, SHOW_LONG = 128, SHOW_SHORT = 64 };

/* A command and its position. */
struct show_item {
    const struct resp_command *command;
    const char *file; /* NULL for a capture */
    size_t index;     /* in the file; for a capture: in the chapter */
    uint64_t number;  /* in the whole log; 0 for a capture */
    uint64_t offset;
    uint64_t len;
    uint64_t db;
    bool in_multi;
    int64_t time_us; /* or SHOW_NO_TIME */
};

/* ---- tools/show/follow.c ---- */

struct show_follow {
    struct aof_job *job;
    uint64_t seq; /* of the current file; 0: a single file */
    bool later;   /* the manifest names a later file, so the end of this one is final */
};

/* A source over a file that may grow: at its end it returns RD_SRC_MORE until a later file exists.
 * listed: a manifest names the file, so it must be a regular file and not a link. */
bool show_follow_open(struct show_follow *follow, const char *path, bool listed,
                      struct rd_src **ret, struct rd_err *err);

/* Waits a moment. */
void show_follow_pause(void);

/* Waits a moment, then checks whether the manifest names a later file. */
void show_follow_wait(struct show_follow *follow);

/* ---- tools/show/pick.c ---- */

struct show_pick {
    int64_t from_ms, until_ms; /* INT64_MIN: any */
    const char *from_text, *until_text;
    struct rebuild_place from, until; /* valid if the text is set */
    uint64_t min_size, max_size;      /* 0: any */
    struct filter keys, dbs;
    bool negate, key_rule;
    char commands[SHOW_COMMANDS][SHOW_COMMAND]; /* patterns, in lower case */
    size_t n_commands;
    uint64_t db; /* of the command whose keys are examined */
};

void show_pick_init(struct show_pick *pick, struct cli *cli);
void show_pick_done(struct show_pick *pick);

/* Checks the options and parses positions. */
bool show_pick_check(struct show_pick *pick, struct rd_err *err);

bool show_pick_active(const struct show_pick *pick);
bool show_pick_wants(struct show_pick *pick, const struct show_item *item);

/* For the options; ctx is the struct show_pick. */
bool show_pick_add_command(void *ctx, const char *value, struct rd_err *err);
bool show_pick_add_db(void *ctx, const char *value, struct rd_err *err);
bool show_pick_add_match(void *ctx, const char *value, struct rd_err *err);
bool show_pick_add_match_regex(void *ctx, const char *value, struct rd_err *err);
bool show_pick_add_prefix(void *ctx, const char *value, struct rd_err *err);
bool show_pick_add_slot(void *ctx, const char *value, struct rd_err *err);
bool show_pick_add_not(void *ctx, const char *value, struct rd_err *err);

/* ---- tools/show/line.c ---- */

struct show_form {
    bool json;      /* objects */
    bool numbered;  /* lines begin with the command's number in the log */
    bool context;   /* this command is shown as context only */
    size_t longest; /* arguments of more bytes are cut */
    size_t cut;     /* to so many */
};

struct show_snapshot {
    const char *file;
    uint64_t keys;
    char writer[64]; /* "Redis 7.0.15", or empty */
};

/* Each appends one line without its end, or one object. False: out of memory. */
bool show_line_item(struct rd_buf *buf, const struct show_item *item, const struct show_form *form);
bool show_line_snapshot(struct rd_buf *buf, const struct show_snapshot *s, bool json);
bool show_line_chapter(struct rd_buf *buf, const struct repl_capture_segment *segment, bool json);

/* ---- tools/show/keys.c ---- */

/* Calls fn for each key of a command until fn returns true, and then returns true. For an unknown
 * command, the first argument counts as its key. */
bool show_keys(const struct resp_command *cmd, bool (*fn)(void *ctx, struct rd_slice key),
               void *ctx);

/* ---- tools/show/stats.c ---- */

enum {
    SHOW_ROWS = 16384,   /* of a table; later names share one row */
    SHOW_NAME = 64,      /* bytes of a name that are kept */
    SHOW_SPANS = 4096,   /* of time */
    SHOW_SKETCH = 16384, /* registers of the count of different keys */
};

struct show_row {
    char name[SHOW_NAME];
    uint8_t len;
    uint64_t commands, keys, bytes;
};

/* Names and their sums. */
struct show_table {
    struct show_row *rows;
    uint32_t *slots; /* by hash: the number of a row, from 1 */
    size_t n;
    struct show_row others;
};

struct show_span {
    uint64_t commands, keys, bytes;
};

enum {
    SHOW_SERIES = 48,      /* names of a table, the first ones, that are counted over time */
    SHOW_SAMPLES = 20,     /* lines of each span that are kept */
    SHOW_SAMPLE_MAX = 240, /* bytes of a line; the rest is cut */
};

/* The first commands of a span, as `redoubt show` prints them. */
struct show_sample {
    size_t n;
    char *lines[SHOW_SAMPLES];
};

/* For the page, in bounded memory. */
struct show_timeline {
    struct show_sample *samples; /* of each span */
    uint32_t *series[2];         /* by command, by prefix: SHOW_SERIES times SHOW_SPANS counts */
    struct rd_buf buf;
    bool nomem; /* an allocation failed */
};

bool show_timeline_new(struct show_timeline **ret, struct rd_err *err);
void show_timeline_free(struct show_timeline *line);
/* Joins each two spans. */
void show_timeline_widen(struct show_timeline *line);
/* A command in a span; `command` and `prefix` are the indexes of their rows. */
void show_timeline_add(struct show_timeline *line, const struct show_item *item, size_t span,
                       size_t command, size_t prefix);

struct show_stats {
    uint8_t key[16]; /* of the hashes */
    struct show_table commands, prefixes;
    struct show_span all;
    uint64_t timed; /* commands with a time */
    int64_t first_us, last_us;
    int64_t start_s; /* of the first span */
    int64_t width_s; /* of each span; doubled when there are too many spans */
    size_t n_spans;
    struct show_span *spans;
    uint8_t *sketch;
    uint64_t at_keys;               /* of the command being added */
    struct show_timeline *timeline; /* NULL: not wanted */
};

bool show_stats_init(struct show_stats *stats, struct rd_err *err);
void show_stats_done(struct show_stats *stats);
void show_stats_add(struct show_stats *stats, const struct show_item *item);

/* The approximate number of different keys, within a few percent. */
uint64_t show_stats_keys(const struct show_stats *stats);

/* ---- tools/show/report.c ---- */

/* Sorts the tables. */
void show_report_text(struct show_stats *stats, size_t top);
/* Writes the members of an open object. */
void show_report_json(struct show_stats *stats, struct json_write *json, size_t top);

/* ---- tools/show/html.c ---- */

/* Writes a self-contained page of less than 1 MB. */
bool show_html_write(struct rd_sink *out, const struct show_stats *stats, const char *path,
                     struct rd_err *err);

/* ---- tools/show/put.c ---- */

enum { SHOW_TAIL_MAX = 1000000, SHOW_CONTEXT_MAX = 10000 };

struct show {
    struct cli *cli;
    const char *path;
    const char *html_path; /* or NULL */
    const char *out_path;  /* of the lines; NULL: standard output */
    bool full, count, follow, ndjson, stats, force;
    uint64_t tail, before, after, cut, top;
    struct show_pick pick;

    /* the input */
    struct aof_job job;
    struct aof_manifest manifest;
    struct aof_reader *reader;
    struct show_follow waiting;
    uint64_t n_passed;           /* commands in files read by earlier readers */
    uint64_t number;             /* of the last command, in the whole log */
    uint64_t n_timed, n_untimed; /* commands of a log with and without a time annotation before */
    struct rebuild_stream capture;

    /* output */
    struct rd_sink *out; /* of the lines; NULL: standard output */
    struct show_form form;
    struct show_stats sums;
    struct rd_buf line;
    struct rd_buf *ring; /* the last lines, with --tail */
    uint64_t n_ring;     /* put in */
    struct rd_buf *held; /* lines of context before the next selected command */
    uint64_t n_held, first_held;
    uint64_t owed; /* lines of context left after a selected command */
    bool gap;      /* lines were skipped since the last one shown */
    uint64_t n_shown, n_seen;
};

bool show_put_begin(struct show *show, struct rd_err *err);
/* Call for every command, selected or not. */
bool show_put_item(struct show *show, const struct show_item *item, struct rd_err *err);
/* Prints a line in show->line that is not a command. */
void show_put_line(struct show *show);
/* Whether such lines are to be printed. */
bool show_put_notes(const struct show *show);
/* The end of the existing data: from now on lines are written immediately. False: the reader of the
 * output has closed it. */
bool show_put_caught_up(struct show *show, struct rd_err *err);
void show_put_end(struct show *show);
void show_put_done(struct show *show);

/* ---- tools/show/aof.c, tools/show/capture.c ---- */

bool show_aof(struct show *show, struct rd_err *err);
bool show_capture(struct show *show, struct rd_err *err);

#endif
