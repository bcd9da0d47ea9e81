/* priv.h - private to replay*.c.
 *
 *     replay.c            options, the order of things
 *     tools/replay/stream.c     from where to where; the commands, each at its time
 *     tools/replay/snapshot.c   the data set that they rest on
 *     tools/replay/expiry.c     expiries that are moved
 *     tools/replay/send.c       commands on their way, and what is answered
 *     tools/replay/verify.c     whether the server has what it should have
 *     tools/replay/report.c     prints the result
 */
#ifndef TOOLS_REPLAY_PRIV_H
#define TOOLS_REPLAY_PRIV_H

#include "tools/peer.h"
#include "tools/input/stream_in.h"

enum {
    REPLAY_WINDOW = 1024, /* commands on their way by default */
    REPLAY_WINDOW_MAX = 1 << 20,
    REPLAY_BYTES = 4 << 20, /* bytes of them; one command may have more */
    REPLAY_ERRORS = 10,     /* that are reported */
    REPLAY_WORD = 48,
};

/* ---- tools/replay/send.c ---- */

/* A command whose reply has not come. */
struct replay_sent {
    bool snapshot; /* of the snapshot: key is set, and no place */
    uint64_t chapter, offset;
    uint64_t len;
    char name[REPLAY_WORD], key[REPLAY_WORD]; /* cut; escaped when printed */
    uint8_t name_len, key_len;
};

struct replay_error {
    struct replay_sent sent;
    char text[RD_ERR_TEXT_MAX];
};

/* Finds where commands end in bytes that are written. */
struct replay_scan {
    int state;
    uint64_t number, n_args, skip, at_arg;
};

struct replay_sender {
    struct peer *peer;
    struct replay_sent *ring; /* oldest first; owned */
    size_t window, first, n;
    uint64_t bytes; /* on their way */
    uint64_t n_sent, n_errors;
    struct replay_error errors[REPLAY_ERRORS];
    size_t n_shown;
    struct replay_scan scan;
    struct replay_sent scanned; /* the command that is being written */
};

bool replay_sender_init(struct replay_sender *s, struct peer *peer, size_t window,
                        struct rd_err *err);
void replay_sender_done(struct replay_sender *s);

/* Sends a command; waits for answers while too many are due. */
bool replay_send(struct replay_sender *s, const struct rd_slice *argv, size_t argc,
                 const struct replay_sent *sent, struct rd_err *err);

/* Waits for all answers. */
bool replay_drain(struct replay_sender *s, struct rd_err *err);

/* A sink for the commands of a snapshot: they are sent as they are written. */
bool replay_sink(struct replay_sender *s, struct rd_sink **ret, struct rd_err *err);

/* ---- tools/replay/expiry.c ---- */

struct replay_args {
    struct rd_slice *argv;
    size_t cap;
    char number[24];
};

/* The command with its absolute times moved by shift_ms; *argv is replaced where it has any. */
bool replay_move_expiry(struct replay_args *args, const struct rd_slice **argv, size_t argc,
                        int64_t shift_ms, struct rd_err *err);
void replay_args_done(struct replay_args *args);

/* ---- all of it ---- */

struct replay_result {
    uint64_t snapshots, keys, snapshot_bytes;
    uint64_t commands, transactions, bytes; /* of the stream */
    uint64_t caught_up;                     /* of them: before the place where replaying begins */
    uint64_t discarded;                     /* transactions that did not end */
    uint64_t chapter, from, to;             /* offsets: of the first command, and after the last */
    uint64_t to_chapter;
    int64_t first_us, last_us; /* times of the commands that were sent at theirs */
    uint64_t elapsed_ms, late_ms;
};

struct replay {
    struct cli *cli;
    const char *path;
    const char *speed; /* recorded, max, or a factor */
    double factor;     /* 0: as fast as it goes */
    int64_t from_ms, until_ms;
    const char *from_text, *until_text;
    bool no_snapshot, flush, replace, commands, dry_run, verify, no_expired;
    int expiry; /* enum replay_expiry */
    uint64_t window;
    struct peer_opts servers;
    struct peer_target target;

    struct stream_in in;
    struct log_place from, until; /* valid where there is a text */
    size_t base;                  /* the segment where reading begins */
    struct peer *peer;
    struct replay_sender sender;
    struct replay_args args;
    struct replay_result result;

    uint64_t db;            /* selected on the server; UINT64_MAX: not known */
    int64_t least_shift_ms; /* by which an expiry was moved; INT64_MAX: none was */
    bool in_multi;          /* on the server */
    bool at_time;           /* the place where replaying begins was reached */
    uint64_t start_ns;      /* when the first command was due there */
};

enum replay_expiry { REPLAY_RELATIVE, REPLAY_RECORDED };

/* tools/replay/stream.c */
bool replay_find(struct replay *replay, struct rd_err *err);
bool replay_stream(struct replay *replay, struct rd_err *err);
uint64_t replay_now_ns(void);

/* tools/replay/snapshot.c: of a segment. With a dry run it is only counted. */
bool replay_snapshot(struct replay *replay, const struct repl_capture_segment *segment,
                     struct rd_err *err);
/* Empties the server, or finds out that it is empty. */
bool replay_make_room(struct replay *replay, struct rd_err *err);

/* tools/replay/verify.c */
bool replay_verify(struct replay *replay, bool *ret_same, struct rd_err *err);

/* tools/replay/report.c */
void replay_report(const struct replay *replay);

#endif
