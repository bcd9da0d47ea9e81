/* priv.h - private to convert*.c.
 *
 *     convert.c            options; a snapshot in; what goes over as it is
 *     tools/convert/rdb.c        to a snapshot
 *     tools/convert/commands.c   to commands, or RESTORE with payloads
 *     tools/convert/csv.c        to a table of keys
 *     tools/convert/lines.c      lines of JSON in
 *     tools/convert/staged.c     values that were set aside: of lines, and streams
 *     tools/convert/parts.c      keys in parts, on two threads
 *
 * Whatever the input is, events come to job_put(). A target that takes the serialized value of a
 * key asks for it with job_copy_value() in the KEY event; no events of the value follow then.
 */
#ifndef TOOLS_CONVERT_PRIV_H
#define TOOLS_CONVERT_PRIV_H

#include "rdb/commands.h"
#include "rdb/reader.h"
#include "rdb/writer.h"
#include "tools/compact.h"
#include "tools/json/ndjson.h"
#include "tools/input/sized.h"
#include "tools/input/stage.h"

enum target { TO_RDB, TO_AOF, TO_RESP, TO_NDJSON, TO_CSV, TO_NOTHING };

enum input { FROM_RDB, FROM_NDJSON, FROM_AOF, FROM_ANY };

struct job {
    struct cli *cli;
    int target;
    int input;
    uint64_t version; /* 0: as it comes */
    int dialect;      /* -1: as it comes */
    bool lossy;
    bool meta;
    bool rewrite;
    bool force;
    bool restore;
    bool replace;
    uint64_t max_elems;
    uint64_t max_bytes;
    int strings;
    const char *out_path;
    struct filter filter;
    struct compact_opts log;

    struct spool spool; /* the snapshot that a log amounts to */
    struct rd_src *src;
    struct rd_sink *out;
    bool (*put)(struct job *job, const struct rdb_event *ev, struct rd_err *err);
    bool (*put_texts)(struct job *job, const struct rdb_text *texts, size_t n, struct rd_err *err);
    bool (*put_plain)(struct job *job, uint64_t db, const struct rdb_plain *keys, size_t n,
                      struct rd_err *err);
    bool (*put_entry)(struct job *job, struct rdb_stream_id id, const struct rdb_text *texts,
                      size_t n, struct rd_err *err);
    uint64_t keys;
    bool is_void; /* no key matches the filter: there is no output */

    /* The input: the reader of the snapshot, or of the value of a line. */
    struct rdb_reader *reader;
    struct sized sized;
    enum rdb_dialect in_dialect;
    int in_version;
    const struct stage *value; /* of a line; NULL: the reader's */
    bool taken;                /* the value of this key was asked for */
    bool free_encoding;        /* of this key: the target chooses it */

    /* The targets. */
    struct rdb_writer *writer;
    struct ndjson *lines;
    struct rdb_commands *commands;
    struct csv *csv;
    struct stage payload;        /* … of RESTORE, or a stream */
    struct rdb_writer_loss lost; /* by what was written again for payloads */
    struct rdb_writer *recoder;  /* of a value that the target knows in another form */
    struct rdb_commands_loss parts_lost;
    bool is_part; /* it makes parts of what another job writes */
};

/* What the target's dialect and version are, by the options and by what the input is. A version
 * alone says whose it is: Valkey's own numbers begin at 80. *ret_version 0: the newest. */
void job_choose_target(const struct job *job, enum rdb_dialect *ret_dialect, int *ret_version);

/* Hands an event over, unless a filter holds it back. */
bool job_put(struct job *job, const struct rdb_event *ev, struct rd_err *err);

/* The same for an event of the job's reader; strings that follow it are taken many at a time, and
 * entries of a stream whole. */
bool job_put_run(struct job *job, const struct rdb_event *ev, struct rd_err *err);

/* Between two keys of this database: takes those that come next, are plain (rdb/plain.h) and begin
 * before an offset, if the target has a way for them and no filter looks at each. Calls again. */
bool job_put_plain_run(struct job *job, uint64_t db, uint64_t until, struct rd_err *err);

/* In a KEY event: the serialized value, without type and key, to a sink. */
bool job_copy_value(struct job *job, struct rd_sink *to, struct rd_err *err);

/* tools/convert/rdb.c */
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

/* From where it stands between two keys, the commands have selected this database. */
void convert_select(struct job *job, uint64_t db);

/* tools/convert/csv.c */
bool convert_begin_csv(struct job *job, struct rd_err *err);
bool convert_put_csv(struct job *job, const struct rdb_event *ev, struct rd_err *err);
void convert_free_csv(struct csv *csv);

/* tools/convert/lines.c: reads the whole input. */
bool convert_from_lines(struct job *job, struct rd_err *err);

/* tools/convert/staged.c: the value of a line (job->value), whose events all have its offset; and
 * in the KEY event of a stream that goes to commands, which are told what is pending in it: what
 * was not set aside yet is taken and put. */
bool convert_put_line(struct job *job, const struct rdb_type *type, uint64_t offset,
                      struct rd_err *err);
bool convert_put_stream(struct job *job, const struct rdb_event *key, struct rd_err *err);

/* tools/convert/parts.c: whether the keys of this input may be taken in parts; and from the KEY
 * event in *ev on, as far as there is nothing but keys, takes them. *ret is then what the reader
 * said last, with the event in *ev, which was not put yet. False: a part failed. */
bool convert_parts_possible(const struct job *job);
bool convert_parts_run(struct job *job, struct rdb_event *ev, enum rdb_status *ret,
                       struct rd_err *err);

/* convert.c: what a target needs before the first event; and the end of all of a job's own. */
bool job_begin_target(struct job *job, struct rd_err *err);
void job_free_target(struct job *job);
void convert_add_loss(struct rdb_commands_loss *to, const struct rdb_commands_loss *more);

#endif
