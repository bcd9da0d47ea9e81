/* show_impl.h - what the parts of show share.
 *
 * show.c reads the log and chooses; show_line.c writes one command; show_keys.c knows which
 * arguments are keys; show_follow.c is the source that waits for more.
 */
#ifndef TOOLS_SHOW_IMPL_H
#define TOOLS_SHOW_IMPL_H

#include "aof/reader.h"
#include "base/buf.h"
#include "tools/check_aof_impl.h"
#include "tools/filter.h"

/* ---- show_keys.c ---- */

/* Calls fn for each key of a command until it returns true; then true. Of a command that is not
 * known, the first argument counts as its key. */
bool show_keys(const struct resp_command *cmd, bool (*fn)(void *ctx, struct rd_slice key),
               void *ctx);

/* Names without case. */
bool show_name_is(struct rd_slice name, const char *word);

/* ---- show_line.c ---- */

/* Appends the command as one line of text, without its end. `numbered`: its number in the log goes
 * in front; `full`: long arguments, too. */
bool show_line_text(struct rd_buf *buf, const struct aof_event *ev, bool numbered, bool full);

/* Appends it as one JSON object. */
bool show_line_json(struct rd_buf *buf, const struct aof_event *ev);

struct show_snapshot {
    const char *file;
    uint64_t keys;
    char writer[64]; /* "Redis 7.0.15", or empty */
};

bool show_snapshot_text(struct rd_buf *buf, const struct show_snapshot *s);
bool show_snapshot_json(struct rd_buf *buf, const struct show_snapshot *s);

/* ---- show_follow.c ---- */

struct show_follow {
    struct aof_job *job;
    uint64_t seq; /* of the file that is read; 0: one file */
    bool later;   /* the manifest names a later file: the end of this one is its end */
};

/* A source over a file that may grow: at its end it says RD_SRC_MORE until a later file is there.
 */
bool show_follow_open(struct show_follow *follow, const char *path, struct rd_src **ret,
                      struct rd_err *err);

/* Waits a moment, and looks whether the manifest names a later file. */
void show_follow_wait(struct show_follow *follow);

#endif
