/* history.h - private to `redoubt history`: the versions of keys.
 *
 *     history.c   the tool: options, and which versions are printed
 *     version.c   collects what one command, or one transaction, changed in one key
 *     text.c      a version as text
 *     json.c      a version as a JSON object
 *     html.c      the last versions as a page
 */
#ifndef TOOLS_HISTORY_HISTORY_H
#define TOOLS_HISTORY_HISTORY_H

#include "data/spool.h"
#include "history/mirror.h"
#include "tools/recorded/recorded.h"
#include "tools/recorded/values.h"
#include "tools/recorded/who.h"

enum { HISTORY_CUT = 128 };

enum version_event {
    VERSION_LOADED, /* a snapshot holds the key */
    VERSION_CREATED,
    VERSION_CHANGED,
    VERSION_REMOVED,
    VERSION_EXPIRED, /* removed after its time to live had ended */
    VERSION_MOVED_HERE,
    VERSION_MOVED_AWAY,
    VERSION_UNKNOWN
};

/* What happened to one key at one moment. */
struct version {
    const struct history_mirror *mirror;
    struct history_place place; /* of the first command */
    int64_t time_us;
    bool in_multi;
    uint64_t multi;
    bool is_base; /* by a snapshot, not by a command */
    bool created, removed, moved_here, moved_away, unknown, expired, expiry;
    int64_t was_expire_ms; /* before; for removals */
    struct rd_buf other;   /* the key to or from which it was moved */
    unsigned other_db;
    uint64_t added, gone, changed, written; /* elements */
    uint64_t beside;                        /* edits of groups or expiries of fields */
    struct rd_buf commands;                 /* quoted, one a line */
    struct rd_buf json;                     /* the same as JSON arrays, separated by commas */
    uint64_t n_commands;
    struct rd_buf client;       /* of all commands; empty: unknown, or several */
    struct rd_buf changes;      /* of --patch, in the form of the output */
    struct rd_buf json_changes; /* objects, separated by commas */
    uint64_t n_edits;
    bool begun;
};

struct tool_history {
    struct cli *cli;
    struct recorded in;
    bool json, patch, values, full;
    int64_t since_ms, until_ms;
    uint64_t last; /* -n; 0: all */
    const char *html_path;
    bool force;

    struct history_mirrors mirrors;
    struct version *open; /* by number of the mirror */
    size_t n_open;
    const struct history_visit *visit; /* of the command that runs */
    struct spool spool;                /* versions as they will be printed */
    struct rd_buf ends;                /* of each of them in the spool: uint64_t */
    struct rd_buf pieces;              /* of html.c, instead of ends */
    uint64_t n;                        /* versions */
};

enum version_event version_event(const struct version *v);
const char *version_word(enum version_event event);
bool version_add_edit(struct tool_history *h, struct version *v, const struct history_edit *edit);
bool version_add_command(const struct tool_history *h, struct version *v);
/* Empty: unknown. A key that expired was removed by the server. */
struct rd_slice version_client(const struct version *v);
void version_done(struct version *v);

bool history_text_put(const struct tool_history *h, const struct version *v, struct rd_buf *out);
/* What happened, in one line without its end. */
bool history_text_summary(const struct tool_history *h, const struct version *v,
                          struct rd_buf *out);
bool history_text_change(const struct tool_history *h, const struct history_mirror *m,
                         const struct history_edit *edit, struct rd_buf *out);
bool history_json_put(const struct tool_history *h, const struct version *v, struct rd_buf *out,
                      struct rd_err *err);
bool history_json_change(const struct tool_history *h, const struct history_mirror *m,
                         const struct history_edit *edit, struct rd_buf *out);
bool history_html_put(struct tool_history *h, const struct version *v, struct rd_err *err);
bool history_html_write(struct tool_history *h, struct rd_err *err);

#endif
