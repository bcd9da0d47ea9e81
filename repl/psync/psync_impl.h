/* psync_impl.h - the inside of a struct repl_psync; private to repl/psync*.c.
 */
#ifndef REPL_PSYNC_PSYNC_IMPL_H
#define REPL_PSYNC_PSYNC_IMPL_H

#include "base/buf.h"
#include "repl/psync.h"

struct repl_psync {
    struct repl_psync_opts opts; /* its strings are our own */
    char *user, *ip, *version, *rdb_filter;
    struct rd_buf password; /* with_password; can contain any bytes */
    bool with_password;
    struct rd_src *src;
    struct rd_resp_reader *reader;
    enum repl_step step;
    size_t scanned; /* no end of the present line before this position */

    bool synced; /* by SYNC: no id, and the master takes no acknowledgement */
    bool has_place;
    struct repl_replid replid;
    struct repl_stream stream;
    struct repl_payload payload;
    bool streaming;
    uint64_t next_at; /* streaming: where on the connection the next command begins */

    struct rd_buf out;
    size_t out_done; /* bytes of it that are sent */

    bool ack_set; /* by the caller */
    uint64_t ack, ack_synced;
    bool asked; /* the last event was a GETACK */

    bool ticked;
    bool heard; /* bytes were fed since the last tick */
    uint64_t heard_ms, acked_ms;

    bool cut;
    bool failed;
    enum repl_class class;
    struct rd_err err;
};

/* A line of the input that is not consumed yet. REPL_MORE, REPL_ERROR, or REPL_REPLY: *ret is the
 * line without its end, *ret_whole how many bytes it has with it. */
enum repl_event_kind repl_psync_line(struct repl_psync *p, struct rd_slice *ret, size_t *ret_whole);
void repl_psync_take_line(struct repl_psync *p, size_t whole);

/* Appends a command to the output; NULL ends the arguments. If memory is exhausted, p fails. */
void repl_psync_put(struct repl_psync *p, const char *const argv[]);
void repl_psync_put_slices(struct repl_psync *p, size_t argc, const struct rd_slice argv[]);

/* The first failure stays. Returns REPL_ERROR. offset: of the wrong byte on the connection, or
 * RD_NO_OFFSET. */
enum repl_event_kind repl_psync_fail(struct repl_psync *p, enum repl_class class,
                                     enum rd_err_code code, uint64_t offset, const char *fmt, ...)
    RD_PRINTF(5, 6);

/* ---- repl/psync/greet.c ---- */

/* Sends the first command. */
void repl_greet_begin(struct repl_psync *p);

/* The next event of the steps up to REPL_STEP_SYNC. */
enum repl_event_kind repl_greet_next(struct repl_psync *p, struct repl_event *ret);

/* ---- repl/psync/psync_refuse.c ---- */

/* The class of an error reply; the line begins with '-'. */
enum repl_class repl_refuse_class(struct rd_slice line);

/* The part of an answer to AUTH that cannot contain the password. */
struct rd_slice repl_refuse_discreet(struct rd_slice line, struct rd_slice password);

/* Fails with the line; `text` is the part that may be reported. */
enum repl_event_kind repl_refuse(struct repl_psync *p, enum repl_class class, struct rd_slice text);

#endif
