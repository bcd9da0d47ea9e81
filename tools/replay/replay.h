/* replay.h - private to tools/replay.
 *
 *     replay.c     options, and the sequence of steps
 *     stream.c     start and end; sends the commands, each at its time
 *     snapshot.c   sends the snapshot that the stream is based on
 *     expiry.c     moves expiries
 *     produced.c   entries of producers of streams
 *     send.c       sends commands and reads replies
 *     verify.c     compares the server with the capture
 *     report.c     prints the result
 */
#ifndef TOOLS_REPLAY_REPLAY_H
#define TOOLS_REPLAY_REPLAY_H

#include "client/peer.h"
#include "tools/cli/filter.h"
#include "tools/cli/peer_options.h"
#include "rebuild/stream.h"

enum {
    REPLAY_WINDOW = 1024, /* unanswered commands by default */
    REPLAY_WINDOW_MAX = 1 << 20,
    REPLAY_BYTES = 4 << 20, /* their bytes; a single command may be longer */
    REPLAY_ERRORS = 10,     /* that are reported */
    REPLAY_WORD = 48,
};

/* ---- tools/replay/send.c ---- */

/* A command without a reply yet. */
struct replay_sent {
    bool snapshot; /* of the snapshot: key is set, and there is no position */
    uint64_t chapter, offset;
    uint64_t len;
    char name[REPLAY_WORD], key[REPLAY_WORD]; /* cut; escaped when printed */
    uint8_t name_len, key_len;
};

struct replay_error {
    struct replay_sent sent;
    char text[RD_ERR_TEXT_MAX];
};

/* Finds the ends of commands in the bytes that are written. */
struct replay_scan {
    int state;
    uint64_t number, n_args, skip, at_arg;
};

struct replay_sender {
    struct client_peer *peer;
    struct replay_sent *ring; /* oldest first; owned */
    size_t window, first, n;
    uint64_t bytes; /* on their way */
    uint64_t n_sent, n_errors;
    struct replay_error errors[REPLAY_ERRORS];
    size_t n_shown;
    struct replay_scan scan;
    struct replay_sent scanned; /* the command being written */
};

bool replay_sender_init(struct replay_sender *s, struct client_peer *peer, size_t window,
                        struct rd_err *err);
void replay_sender_done(struct replay_sender *s);

/* Sends a command. If too many are unanswered, waits for replies. */
bool replay_send(struct replay_sender *s, const struct rd_slice *argv, size_t argc,
                 const struct replay_sent *sent, struct rd_err *err);

/* Waits for all replies. */
bool replay_drain(struct replay_sender *s, struct rd_err *err);

/* A sink for the commands of a snapshot, which sends them as they are written. */
bool replay_sink(struct replay_sender *s, struct rd_sink **ret, struct rd_err *err);

/* ---- tools/replay/expiry.c ---- */

struct replay_args {
    struct rd_slice *argv;
    size_t cap;
    char number[24];
};

/* The command with its absolute times moved by shift_ms; *argv is replaced if it has any. */
bool replay_move_expiry(struct replay_args *args, const struct rd_slice **argv, size_t argc,
                        int64_t shift_ms, struct rd_err *err);
bool replay_args_reserve(struct replay_args *args, size_t argc, struct rd_err *err);
void replay_args_done(struct replay_args *args);

/* ---- tools/replay/produced.c ---- */

struct replay_produced {
    bool leave_out;          /* it changes nothing */
    bool record;             /* argv follows the command */
    struct rd_slice argv[5]; /* XIDMPRECORD */
    uint8_t derived[16];     /* the name of an entry, in argv */
};

/* Replaces an XADD of a producer by what a client can send. */
bool replay_take_produced(struct replay_args *args, const struct rd_slice **argv, size_t *argc,
                          struct replay_produced *ret, struct rd_err *err);

/* ---- the whole run ---- */

struct replay_result {
    uint64_t snapshots, keys, snapshot_bytes;
    uint64_t commands, transactions, bytes; /* of the stream */
    uint64_t caught_up;                     /* of them: before the starting position */
    uint64_t discarded;                     /* transactions without an end */
    uint64_t chapter, from, to;             /* offsets: of the first command, and after the last */
    uint64_t to_chapter;
    int64_t first_us, last_us; /* recorded times of the first and last command sent */
    uint64_t elapsed_ms, late_ms;
};

struct tool_replay {
    struct cli *cli;
    const char *path;
    const char *speed; /* recorded, max, or a factor */
    double factor;     /* 0: no limit */
    int64_t from_ms, until_ms;
    const char *from_text, *until_text;
    bool no_snapshot, flush, replace, commands, dry_run, verify, no_expired;
    bool no_functions; /* of the snapshot */
    bool rehearses;    /* replay_fits() is under way */
    /* Called for each key of a snapshot before the filter sees it; it may change its name. NULL:
     * not. */
    bool (*on_key)(void *ctx, struct rdb_event *ev, struct rd_err *err);
    void *on_key_ctx;
    int expiry; /* enum replay_expiry */
    uint64_t window;
    struct peer_opts servers;
    struct client_target target;

    struct rebuild_stream in;
    struct rebuild_place from, until; /* valid if the text is set */
    size_t base;                      /* the segment in which reading begins */
    struct client_peer *peer;
    struct replay_sender sender;
    struct replay_args args;
    struct replay_result result;

    uint64_t db;            /* selected on the server; UINT64_MAX: unknown */
    int64_t least_shift_ms; /* by which an expiry was moved; INT64_MAX: none */
    bool in_multi;          /* on the server */
    bool at_time;           /* the starting position was reached */
    uint64_t start_ns;      /* when the first command after it was due */
};

enum replay_expiry { REPLAY_RELATIVE, REPLAY_RECORDED };

/* tools/replay/stream.c */
bool replay_find(struct tool_replay *replay, struct rd_err *err);
bool replay_stream(struct tool_replay *replay, struct rd_err *err);
uint64_t replay_now_ns(void);

/* tools/replay/snapshot.c: the snapshot of a segment. A dry run only counts its keys. */
bool replay_snapshot(struct tool_replay *replay, const struct repl_capture_segment *segment,
                     struct rd_err *err);
/* The same for any snapshot: sends the keys that match the filter, with expiries moved by shift_ms.
 */
bool replay_source(struct tool_replay *replay, struct rd_src *src, const struct filter *filter,
                   int64_t shift_ms, struct rd_err *err);
/* Whether the server of replay->peer can hold all keys that match the filter: an error names the
 * first one that it cannot. Nothing is sent. */
bool replay_fits(struct tool_replay *replay, struct rd_src *src, const struct filter *filter,
                 struct rd_err *err);
bool replay_snapshot_fits(struct tool_replay *replay, const struct repl_capture_segment *segment,
                          struct rd_err *err);
/* Empties the server, or checks that it is empty. */
bool replay_make_room(struct tool_replay *replay, struct rd_err *err);

/* tools/replay/verify.c */
bool replay_verify(struct tool_replay *replay, bool *ret_same, struct rd_err *err);

/* tools/replay/report.c */
void replay_report(const struct tool_replay *replay);

#endif
