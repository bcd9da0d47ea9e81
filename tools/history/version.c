#include "tools/history/history.h"

#include "base/mem.h"
#include "engine/value.h"

enum version_event version_event(const struct version *v)
{
    if (v->unknown)
        return VERSION_UNKNOWN;
    if (v->removed)
        return v->expired ? VERSION_EXPIRED : VERSION_REMOVED;
    if (v->moved_away)
        return VERSION_MOVED_AWAY;
    if (v->moved_here)
        return VERSION_MOVED_HERE;
    if (v->is_base)
        return VERSION_LOADED;
    return v->created ? VERSION_CREATED : VERSION_CHANGED;
}

const char *version_word(enum version_event event)
{
    static const char *const words[] = {
        [VERSION_LOADED] = "snapshot",       [VERSION_CREATED] = "created",
        [VERSION_CHANGED] = "changed",       [VERSION_REMOVED] = "removed",
        [VERSION_EXPIRED] = "expired",       [VERSION_MOVED_HERE] = "moved_here",
        [VERSION_MOVED_AWAY] = "moved_away", [VERSION_UNKNOWN] = "unknown",
    };
    return words[event];
}

static bool note_move(struct version *v, const struct history_edit *edit,
                      const struct history_mirror *m)
{
    bool here = m->state == HISTORY_PRESENT;
    v->moved_here |= here;
    v->moved_away |= !here;
    v->removed &= !here;
    rd_buf_reset(&v->other);
    v->other_db = (unsigned)edit->index;
    return rd_buf_add(&v->other, edit->name.ptr, edit->name.len);
}

static void note_removed(const struct tool_history *h, struct version *v)
{
    int64_t now_us = h->visit->time_us;
    v->removed = true;
    v->created = v->moved_here = false;
    v->expired =
        v->was_expire_ms != ENGINE_NO_EXPIRE && now_us != INT64_MIN &&
        v->was_expire_ms <= now_us / 1000 && h->visit->line != NULL &&
        h->visit->line->command != NULL &&
        (rebuild_line_is(h->visit->line, "del") || rebuild_line_is(h->visit->line, "unlink"));
}

static void count(struct version *v, const struct history_edit *edit)
{
    enum history_edit_kind kind = edit->kind;
    v->beside += edit->of != HISTORY_OF_VALUE;
    if (edit->of != HISTORY_OF_VALUE)
        return;
    v->added += kind == HISTORY_ADDED;
    v->gone += kind == HISTORY_REMOVED;
    v->changed += kind == HISTORY_CHANGED;
    v->written += kind == HISTORY_WRITTEN;
}

/* In the elements of a moved value nothing changes. */
static bool add_change(const struct tool_history *h, struct version *v,
                       const struct history_edit *edit)
{
    if (!h->patch || edit->kind == HISTORY_WRITTEN)
        return true;
    return h->json ? history_json_change(h, v->mirror, edit, &v->json_changes)
                   : history_text_change(h, v->mirror, edit, &v->changes);
}

bool version_add_edit(struct tool_history *h, struct version *v, const struct history_edit *edit)
{
    v->n_edits++;
    switch (edit->kind) {
    case HISTORY_KEY_CREATED:
        v->created = true;
        v->removed = v->moved_away = v->unknown = false;
        return true;
    case HISTORY_KEY_REMOVED:
        note_removed(h, v);
        return true;
    case HISTORY_KEY_MOVED:
        return note_move(v, edit, v->mirror);
    case HISTORY_KEY_UNKNOWN:
        v->unknown = true;
        return true;
    case HISTORY_EXPIRY:
        v->expiry = true;
        return true;
    default:
        count(v, edit);
        return add_change(h, v, edit);
    }
}

static bool add_json(struct version *v, const struct rebuild_line *line)
{
    struct rd_sink *sink;
    struct json_write json;
    if ((v->json.len > 0 && !rd_buf_add_byte(&v->json, ',')) ||
        !rd_sink_open_buf(&sink, &v->json, NULL, NULL))
        return false;
    json_init(&json, sink);
    json_array(&json);
    for (size_t i = 0; i < line->argc; i++)
        json_bytes(&json, line->argv[i]);
    json_end(&json);
    return rd_sink_close(sink, NULL);
}

/* Commands of one transaction are of one client. */
static bool add_client(const struct tool_history *h, struct version *v)
{
    struct rd_slice client = recorded_who_of(&h->in, h->visit->place);
    if (v->n_commands > 0 && !rd_slice_eq(rd_buf_slice(&v->client), client)) {
        rd_buf_reset(&v->client);
        return true;
    }
    rd_buf_reset(&v->client);
    return rd_buf_add(&v->client, client.ptr, client.len);
}

bool version_add_command(const struct tool_history *h, struct version *v)
{
    const struct rebuild_line *line = h->visit->line;
    if (line == NULL)
        return true;
    if (!add_client(h, v))
        return false;
    v->n_commands++;
    return (v->commands.len == 0 || rd_buf_add_byte(&v->commands, '\n')) &&
           cli_put_line(&v->commands, line->argv, line->argc, h->full ? SIZE_MAX : HISTORY_CUT) &&
           add_json(v, line);
}

struct rd_slice version_client(const struct version *v)
{
    return version_event(v) == VERSION_EXPIRED ? rd_slice(NULL, 0) : rd_buf_slice(&v->client);
}

void version_done(struct version *v)
{
    rd_buf_done(&v->other);
    rd_buf_done(&v->client);
    rd_buf_done(&v->commands);
    rd_buf_done(&v->json);
    rd_buf_done(&v->changes);
    rd_buf_done(&v->json_changes);
    *v = (struct version){.mirror = NULL};
}
