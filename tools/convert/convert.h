/* convert.h - private to convert*.c.
 *
 *     tools/convert/convert.c    options; reads a snapshot; copies values
 *     tools/convert/rdb.c        converts to a snapshot
 *     tools/convert/commands.c   converts to commands, or RESTORE with payloads
 *     tools/convert/csv.c        converts to a table of keys
 *     tools/convert/lines.c      reads JSON lines
 *     tools/convert/server.c     the servers of --for
 *     tools/convert/staged.c     staged values: of lines, and streams
 *     tools/convert/view.c       what JSON lines and tables leave out
 *     tools/convert/parts.c      converts keys in parts, on two threads
 *     tools/convert/database.c   converts to a database of SQLite; rows.h has the files below it
 *
 * For every kind of input, events arrive at job_put(). A target that uses the serialized value of a
 * key calls job_copy_value() in the KEY event; then no events of the value follow.
 */
#ifndef TOOLS_CONVERT_CONVERT_H
#define TOOLS_CONVERT_CONVERT_H

#include "rdb/beside.h"
#include "rdb/commands.h"
#include "rdb/plain.h"
#include "rdb/reader.h"
#include "data/servers.h"
#include "rdb/writer.h"
#include "tools/cli/filter.h"
#include "tools/input/snapshot_in.h"
#include "data/ndjson.h"
#include "jobs/omitted.h"
#include "jobs/sized.h"
#include "data/stage.h"
#include "tools/convert/rows.h"

enum target { TO_RDB, TO_AOF, TO_RESP, TO_NDJSON, TO_CSV, TO_SQLITE, TO_NOTHING };

enum input { FROM_RDB, FROM_NDJSON, FROM_AOF, FROM_ANY };

/* The last key, for reports about data that belongs to it. */
struct view_key {
    struct rd_buf name;
    const struct rdb_type *type; /* NULL: none yet */
    uint64_t db;
    uint64_t n_metadata; /* classes that precede the next key */
};

/* The modules without which a server does not load the output. */
struct needs {
    char names[8][RDB_MODULE_NAME_LEN + 1];
    size_t n;
    bool more;
};

struct job {
    struct cli *cli;
    struct rd_watch watch; /* that of cli */
    int target;
    int input;
    uint64_t version; /* 0: as the input */
    int dialect;      /* -1: as the input */
    int server;       /* enum data_server; -1: none */
    bool lossy;
    bool meta;
    bool rewrite;
    bool force;
    bool restore;
    bool replace;
    uint64_t max_elems;
    uint64_t max_bytes;
    int strings;
    const char *path; /* the input */
    const char *out_path;
    struct filter filter;
    struct peer_opts servers;
    struct snapshot_in_opts log;

    struct spool spool; /* the snapshot built from a log */
    struct rd_src *src;
    struct rd_sink *out;
    bool (*put)(struct job *job, const struct rdb_event *ev, struct rd_err *err);
    bool (*put_texts)(struct job *job, const struct rdb_text *texts, size_t n, struct rd_err *err);
    bool (*put_plain)(struct job *job, uint64_t db, const struct rdb_plain *keys, size_t n,
                      struct rd_err *err);
    bool (*put_entry)(struct job *job, struct rdb_stream_id id, const struct rdb_text *texts,
                      size_t n, struct rd_err *err);
    uint64_t keys;
    bool may_be_empty; /* an output without keys is written, too */
    bool is_void;      /* no key matches the filter: nothing is written */

    /* The input: the reader of the snapshot, or of the value of a line. */
    struct rdb_reader *reader;
    struct sized sized;
    enum rdb_dialect in_dialect;
    int in_version;
    const struct stage *value; /* of a line; NULL: from the reader */
    struct rdb_beside beside;  /* records that go where their key goes */
    bool taken;                /* the value of this key was copied */
    bool free_encoding;        /* of this key: the target chooses it */

    /* The targets. */
    struct rdb_writer *writer;
    struct ndjson *lines;
    struct rdb_commands *commands;
    struct csv *csv;
    struct rows *rows;                /* for SQLite */
    const struct stat_layout *layout; /* of the memory of keys */
    uint64_t database_size;
    struct stage payload;     /* of RESTORE, or a stream */
    struct rd_buf key_meta;   /* metadata of the key, for its payload */
    struct rd_buf module_key; /* the name of a key whose module is not known yet */
    uint64_t module_db;
    struct rdb_writer *recoder; /* rewrites a value for the target's version */
    struct omitted *omitted;
    struct view_key view; /* of the lines or the table */
    struct needs needs;   /* of a snapshot for --for */
    bool is_part;         /* converts parts for another job */
};

/* Chooses the target's dialect and version by the options and the input. A version implies the
 * dialect: Valkey's own numbers begin at 80. *ret_version 0: the newest. */
void job_choose_target(const struct job *job, enum rdb_dialect *ret_dialect, int *ret_version);

/* Puts an event to the target, unless the filter drops it. */
bool job_put(struct job *job, const struct rdb_event *ev, struct rd_err *err);

/* The same for an event of the job's reader. Also puts the strings that follow it, many per call,
 * and the entries of a stream as a whole. */
bool job_put_run(struct job *job, const struct rdb_event *ev, struct rd_err *err);

/* Between two keys of this database: puts the next keys that are plain (rdb/plain.h) and begin
 * before an offset, if the target supports it and no filter has to see each. */
bool job_put_plain_run(struct job *job, uint64_t db, uint64_t until, struct rd_err *err);

/* In a KEY event: copies the serialized value, without type and key, to a sink. */
bool job_copy_value(struct job *job, struct rd_sink *to, struct rd_err *err);

/* tools/convert/view.c */
/* Reports what this event has that lines and tables do not hold. False: out of memory. */
bool convert_view_note(struct job *job, const struct rdb_event *ev, struct rd_err *err);

/* tools/convert/server.c */
/* --from is the former name. */
/* clang-format off */
#define FORMAT_OPTIONS(input)                                                                      \
    {.name = "input-format", .kind = CLI_ENUM, .arg = "FORMAT", .words = "rdb|ndjson|aof",         \
     .choice = (input), .help = "format of IN; default: detected from its first bytes",            \
     .brief = true},                                                                               \
    {.name = "from", .kind = CLI_ENUM, .words = "rdb|ndjson|aof", .choice = (input)}
/* clang-format on */

#define FOR_OPTION(to)                                                                             \
    {                                                                                              \
        .name = "for", .kind = CLI_EACH, .arg = "SERVER", .words = DATA_SERVERS,                   \
        .each = data_server_add, .ctx = (to),                                                      \
        .help = "rdb, resp: redis-2.8 to redis-8.0, valkey-7.2 to -9"                              \
    }

/* Sets dialect and version as --for says, and refuses options that contradict. */
/* The server of a reply to INFO, an enum data_server, or -1; and what --for does with one. */
int convert_server_by_info(struct rd_slice info);
void convert_set_server(struct job *job, int server);
int convert_choose_server(struct job *job);
/* The server that --for names, for the library. */
enum rdb_server convert_server(const struct job *job);

/* What --for names, or NULL. */
const char *convert_server_name(const struct job *job);

/* tools/convert/rdb.c */
/* Names the modules that the server of --for needs. */
void convert_warn_modules(const struct job *job);

bool convert_put_rdb(struct job *job, const struct rdb_event *ev, struct rd_err *err);
bool convert_end_rdb(struct job *job, struct rd_err *err);

/* tools/convert/commands.c */
bool convert_begin_commands(struct job *job, struct rd_err *err);
bool convert_put_commands(struct job *job, const struct rdb_event *ev, struct rd_err *err);
bool convert_put_command_texts(struct job *job, const struct rdb_text *texts, size_t n,
                               struct rd_err *err);
bool convert_put_command_plain(struct job *job, uint64_t db, const struct rdb_plain *keys, size_t n,
                               struct rd_err *err);
bool convert_put_command_entry(struct job *job, struct rdb_stream_id id,
                               const struct rdb_text *texts, size_t n, struct rd_err *err);
bool convert_end_commands(struct job *job, struct rd_err *err);

/* Between two keys: the preceding commands have selected this database. */
void convert_select(struct job *job, uint64_t db);

/* tools/convert/csv.c */
bool convert_begin_csv(struct job *job, struct rd_err *err);
bool convert_put_csv(struct job *job, const struct rdb_event *ev, struct rd_err *err);
void convert_free_csv(struct csv *csv);

/* tools/convert/database.c. convert_open_database() puts a sink for rows over the output. */
bool convert_open_database(struct job *job, struct rd_err *err);
bool convert_begin_rows(struct job *job, struct rd_err *err);
bool convert_put_rows(struct job *job, const struct rdb_event *ev, struct rd_err *err);
bool convert_put_row_texts(struct job *job, const struct rdb_text *texts, size_t n,
                           struct rd_err *err);
bool convert_put_row_plain(struct job *job, uint64_t db, const struct rdb_plain *keys, size_t n,
                           struct rd_err *err);
bool convert_put_row_entry(struct job *job, struct rdb_stream_id id, const struct rdb_text *texts,
                           size_t n, struct rd_err *err);

/* tools/convert/lines.c: reads the whole input. */
bool convert_from_lines(struct job *job, struct rd_err *err);

/* The options of a reader whose events a job puts. */
struct rdb_reader_opts job_reader_opts(const struct job *job);

/* tools/convert/staged.c: convert_put_line() puts the value of a line (job->value); all its events
 * have the offset of the line. convert_put_stream(), in the KEY event of a stream, stages the
 * stream, passes its pending entries to the commands and puts it. */
bool convert_put_line(struct job *job, const struct rdb_type *type, uint64_t offset,
                      struct rd_err *err);
bool convert_put_stream(struct job *job, const struct rdb_event *key, struct rd_err *err);

/* tools/convert/parts.c: whether the keys of this input can be converted in parts; and converts the
 * keys from the KEY event in *ev up to the first other event. *ret is then the last status of the
 * reader, and *ev its event, which was not put yet. False: a part failed. */
bool convert_parts_possible(const struct job *job);
bool convert_parts_run(struct job *job, struct rdb_event *ev, enum rdb_status *ret,
                       struct rd_err *err);

/* convert.c: prepares a target before the first event; and frees the targets of a job. */
bool job_begin_target(struct job *job, struct rd_err *err);
void job_free_target(struct job *job);
/* convert.c: a job with the defaults of the options; and converts cli->args[0], for tools that
 * have something to convert: job->keys and job->is_void are the result. The filter stays the
 * caller's. */
struct job convert_defaults(struct cli *cli);
bool convert_run(struct job *job, struct rd_err *err);

#endif
