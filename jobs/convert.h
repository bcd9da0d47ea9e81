/* convert.h - converts a snapshot to another format, version or dialect.
 *
 *     static bool open_out(void *ctx, bool binary, struct rd_sink **ret, struct rd_err *err);
 *
 *     struct filter filter;
 *     struct convert_result result;
 *     struct convert_opts opts = CONVERT_OPTS;
 *     filter_init(&filter, now_ms);
 *     opts.in.path = "dump.rdb";
 *     opts.target = TO_NDJSON;
 *     opts.filter = &filter;
 *     opts.open_out = open_out;
 *     if (convert_run(&opts, watch, &result, &err))
 *         printf("%llu keys\n", (unsigned long long)result.keys);
 *     filter_done(&filter);
 *
 * Values that need no change are copied. Lines, commands and tables are made in parts, on two
 * threads. Memory does not grow with the input.
 *
 * Errors: those of rdb/reader.h, rdb/writer.h and data/ndjson_read.h; RD_ERR_UNSUPPORTED: the
 * target cannot hold a value, and `lossy` is not set; RD_ERR_USAGE: options that do not fit the
 * input.
 *
 * A caller that reads a snapshot itself puts its events to a struct convert: see below.
 */
#ifndef JOBS_CONVERT_H
#define JOBS_CONVERT_H

#include "data/filter.h"
#include "data/ndjson.h"
#include "data/servers.h"
#include "data/stage.h"
#include "jobs/input.h"
#include "jobs/omitted.h"
#include "jobs/sized.h"
#include "rdb/beside.h"
#include "rdb/commands.h"
#include "rdb/plain.h"
#include "rdb/writer.h"

enum convert_target { TO_RDB, TO_AOF, TO_RESP, TO_NDJSON, TO_CSV, TO_SQLITE, TO_NOTHING };

enum convert_from { FROM_RDB, FROM_NDJSON, FROM_AOF, FROM_ANY };

/* Opens an output of a job. */
typedef bool convert_open_fn(void *ctx, struct rd_sink **ret, struct rd_err *err);

struct convert_opts {
    struct job_input in;
    int from;         /* enum convert_from; FROM_AOF: the caller's input makes a snapshot of it */
    int target;       /* enum convert_target */
    uint64_t version; /* of a snapshot and its values; 0: as the input */
    int dialect;      /* enum rdb_dialect; -1: as the input */
    int server;       /* enum data_server; -1: none. See convert_set_server() */
    bool lossy;       /* leave out what the target cannot hold */
    bool meta;        /* of lines: all that a snapshot has of a key */
    bool rewrite;     /* values are encoded anew, also if they could be copied */
    bool restore;     /* of commands: RESTORE with payloads */
    bool replace;     /* … that replaces keys */
    uint64_t max_elems;
    uint64_t max_bytes; /* of a command; 0: the default of rdb/commands.h */
    int strings;        /* enum json_form, of lines */
    bool may_be_empty;  /* an output without keys is written, too */
    const struct filter *filter;
    /* Opens the output, which the job closes or aborts. binary: it is no text. */
    bool (*open_out)(void *ctx, bool binary, struct rd_sink **ret, struct rd_err *err);
    /* For an input that is no file, if the output is the snapshot that would be made of it: writes
     * the snapshot to the sink that open() opens, and says how many keys it has. *ret_done: it did
     * so; else the input is converted like others. NULL: never. */
    bool (*rebuild)(void *ctx, convert_open_fn *open, void *open_ctx, bool *ret_done,
                    uint64_t *ret_keys, struct rd_err *err);
    void *ctx;
    struct omitted *omitted; /* takes what is left out; may be NULL */
};

#define CONVERT_OPTS                                                                               \
    {                                                                                              \
        .from = FROM_ANY, .target = TO_NOTHING, .dialect = -1, .server = -1                        \
    }

/* The modules without which a server does not load the output. */
struct convert_needs {
    char names[8][RDB_MODULE_NAME_LEN + 1];
    size_t n;
    bool more;
};

struct convert_result {
    uint64_t keys;
    uint64_t bytes;           /* of the output, before compression */
    bool is_void;             /* no key matches the filter: nothing is written */
    enum rdb_dialect dialect; /* of a snapshot, and its version; 0: the newest, or no snapshot */
    int version;
    struct convert_needs needs; /* of a snapshot for a server */
};

/* ret is written in any case: keys also counts those before a failure. All is borrowed. */
bool convert_run(const struct convert_opts *opts, const struct rd_watch *watch,
                 struct convert_result *ret, struct rd_err *err);

/* Sets server, and the dialect and version that it reads. -1: none. */
void convert_set_server(struct convert_opts *opts, int server);
/* The name of the server, or NULL; and what it is for the library. */
const char *convert_server_name(const struct convert_opts *opts);
enum rdb_server convert_server(const struct convert_opts *opts);

/* ---- event by event ---- */

/* The last key, for reports about data that belongs to it. */
struct convert_view {
    struct rd_buf name;
    const struct rdb_type *type; /* NULL: none yet */
    uint64_t db;
    uint64_t n_metadata; /* classes that precede the next key */
};

/* The state of a conversion. A caller of the functions below sets o, watch, src, out and reader,
 * begins the commands, puts the events of its reader, ends the commands, and frees the target. */
struct convert {
    struct convert_opts o;
    const struct rd_watch *watch;

    struct spool spool; /* the snapshot built from a log */
    struct rd_src *src;
    struct rd_sink *out;
    bool (*put)(struct convert *job, const struct rdb_event *ev, struct rd_err *err);
    bool (*put_texts)(struct convert *job, const struct rdb_text *texts, size_t n,
                      struct rd_err *err);
    bool (*put_plain)(struct convert *job, uint64_t db, const struct rdb_plain *keys, size_t n,
                      struct rd_err *err);
    bool (*put_entry)(struct convert *job, struct rdb_stream_id id, const struct rdb_text *texts,
                      size_t n, struct rd_err *err);
    uint64_t keys;

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
    struct convert_view view;   /* of the lines or the table */
    struct convert_needs needs;
    bool is_part; /* converts parts for another job */
};

/* Puts an event to the target, unless the filter drops it. */
bool convert_put(struct convert *job, const struct rdb_event *ev, struct rd_err *err);

/* For a target of commands. */
bool convert_begin_commands(struct convert *job, struct rd_err *err);
bool convert_put_commands(struct convert *job, const struct rdb_event *ev, struct rd_err *err);
bool convert_end_commands(struct convert *job, struct rd_err *err);

void convert_free_target(struct convert *job);

#endif
