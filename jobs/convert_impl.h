/* convert_impl.h - private to jobs/convert*.c.
 *
 *     convert.c            reads a snapshot; copies values
 *     convert_rdb.c        converts to a snapshot
 *     convert_commands.c   converts to commands, or RESTORE with payloads
 *     convert_csv.c        converts to a table of keys
 *     convert_lines.c      reads JSON lines
 *     convert_server.c     the servers that a snapshot can be for
 *     convert_staged.c     staged values: of lines, and streams
 *     convert_view.c       what JSON lines and tables leave out
 *     convert_parts.c      converts keys in parts, on two threads
 *     convert_database.c   converts to a database of SQLite; rows_impl.h has the files below it
 *
 * For every kind of input, events arrive at convert_put(). A target that uses the serialized value
 * of a key calls convert_copy_value() in the KEY event; then no events of the value follow.
 */
#ifndef JOBS_CONVERT_IMPL_H
#define JOBS_CONVERT_IMPL_H

#include "jobs/convert.h"
#include "jobs/rows_impl.h"
#include "rdb/reader.h"

/* Chooses the target's dialect and version by the options and the input. A version implies the
 * dialect: Valkey's own numbers begin at 80. *ret_version 0: the newest. */
void convert_choose_target(const struct convert *job, enum rdb_dialect *ret_dialect,
                           int *ret_version);

/* convert_put() for an event of the job's reader. Also puts the strings that follow it, many per
 * call, and the entries of a stream as a whole. */
bool convert_put_run(struct convert *job, const struct rdb_event *ev, struct rd_err *err);

/* Between two keys of this database: puts the next keys that are plain (rdb/plain.h) and begin
 * before an offset, if the target supports it and no filter has to see each. */
bool convert_put_plain_run(struct convert *job, uint64_t db, uint64_t until, struct rd_err *err);

/* In a KEY event: copies the serialized value, without type and key, to a sink. */
bool convert_copy_value(struct convert *job, struct rd_sink *to, struct rd_err *err);

/* jobs/convert_view.c */
/* Reports what this event has that lines and tables do not hold. False: out of memory. */
bool convert_view_note(struct convert *job, const struct rdb_event *ev, struct rd_err *err);

/* jobs/convert_rdb.c */
bool convert_put_rdb(struct convert *job, const struct rdb_event *ev, struct rd_err *err);
bool convert_end_rdb(struct convert *job, struct rd_err *err);

/* jobs/convert_commands.c */
bool convert_put_command_texts(struct convert *job, const struct rdb_text *texts, size_t n,
                               struct rd_err *err);
bool convert_put_command_plain(struct convert *job, uint64_t db, const struct rdb_plain *keys,
                               size_t n, struct rd_err *err);
bool convert_put_command_entry(struct convert *job, struct rdb_stream_id id,
                               const struct rdb_text *texts, size_t n, struct rd_err *err);

/* Between two keys: the preceding commands have selected this database. */
void convert_select(struct convert *job, uint64_t db);

/* jobs/convert_csv.c */
bool convert_begin_csv(struct convert *job, struct rd_err *err);
bool convert_put_csv(struct convert *job, const struct rdb_event *ev, struct rd_err *err);
void convert_free_csv(struct csv *csv);

/* jobs/convert_database.c. convert_open_database() puts a sink for rows over the output. */
bool convert_open_database(struct convert *job, struct rd_err *err);
bool convert_begin_rows(struct convert *job, struct rd_err *err);
bool convert_put_rows(struct convert *job, const struct rdb_event *ev, struct rd_err *err);
bool convert_put_row_texts(struct convert *job, const struct rdb_text *texts, size_t n,
                           struct rd_err *err);
bool convert_put_row_plain(struct convert *job, uint64_t db, const struct rdb_plain *keys, size_t n,
                           struct rd_err *err);
bool convert_put_row_entry(struct convert *job, struct rdb_stream_id id,
                           const struct rdb_text *texts, size_t n, struct rd_err *err);

/* jobs/convert_lines.c: reads the whole input. */
bool convert_from_lines(struct convert *job, struct rd_err *err);

/* The options of a reader whose events a job puts. */
struct rdb_reader_opts convert_reader_opts(const struct convert *job);

/* jobs/convert_staged.c: convert_put_line() puts the value of a line (job->value); all its events
 * have the offset of the line. convert_put_stream(), in the KEY event of a stream, stages the
 * stream, passes its pending entries to the commands and puts it. */
bool convert_put_line(struct convert *job, const struct rdb_type *type, uint64_t offset,
                      struct rd_err *err);
bool convert_put_stream(struct convert *job, const struct rdb_event *key, struct rd_err *err);

/* jobs/convert_parts.c: whether the keys of this input can be converted in parts; and converts the
 * keys from the KEY event in *ev up to the first other event. *ret is then the last status of the
 * reader, and *ev its event, which was not put yet. False: a part failed. */
bool convert_parts_possible(const struct convert *job);
bool convert_parts_run(struct convert *job, struct rdb_event *ev, enum rdb_status *ret,
                       struct rd_err *err);

/* Prepares a target before the first event. */
bool convert_begin_target(struct convert *job, struct rd_err *err);

#endif
