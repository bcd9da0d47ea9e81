/* text.c - a version as text:
 *
 *     2024-05-01T12:00:09.100Z 1:2210 [0] "HSET" "user:17" "age" "31"
 *         changed: hash of 2 fields, 1 changed, expires 2024-05-02T12:00:00Z, by 10.0.0.5:41234
 *         - "age" "30"
 *         + "age" "31"
 */
#include "tools/history/history.h"

#include <inttypes.h>

#define INDENT "    "

static bool put_time(const struct version *v, struct rd_buf *out)
{
    return rd_buf_printf(out, "%s ", recorded_time(v->time_us).s);
}

/* The lines of a transaction, each with the same beginning. */
static bool put_commands(const struct tool_history *h, const struct version *v, struct rd_buf *out)
{
    const char *from = (const char *)v->commands.ptr, *end = from + v->commands.len;
    struct recorded_text place = recorded_place(&h->in, v->place);
    if (v->n_commands == 0)
        return put_time(v, out) &&
               rd_buf_printf(out, "%s [%u] snapshot\n",
                             v->is_base ? h->in.tape.parts[v->place.part].name : place.s,
                             v->mirror->db);
    while (from < end) {
        const char *lf = memchr(from, '\n', (size_t)(end - from));
        size_t len = lf != NULL ? (size_t)(lf - from) : (size_t)(end - from);
        if (!put_time(v, out) || !rd_buf_printf(out, "%s [%u%s] %.*s\n", place.s, v->mirror->db,
                                                v->in_multi ? " multi" : "", (int)len, from))
            return false;
        from += len + 1;
    }
    return true;
}

static bool put_key(const struct tool_history *h, const struct version *v, struct rd_buf *out)
{
    if (h->in.names.n <= 1)
        return true;
    return cli_put_quoted(out, v->mirror->name, HISTORY_CUT) && rd_buf_printf(out, " ");
}

static bool put_counts(const struct version *v, struct rd_buf *out)
{
    if (v->beside > 0 &&
        !rd_buf_printf(out, "%s",
                       v->mirror->type == ENGINE_HASH ? ", expiry of fields changed"
                                                      : ", consumer groups changed"))
        return false;
    if (v->added + v->gone + v->changed == 0)
        return v->written == 0 || rd_buf_printf(out, ", written again with the same content");
    return (v->added == 0 || rd_buf_printf(out, ", %" PRIu64 " added", v->added)) &&
           (v->changed == 0 || rd_buf_printf(out, ", %" PRIu64 " changed", v->changed)) &&
           (v->gone == 0 || rd_buf_printf(out, ", %" PRIu64 " removed", v->gone));
}

static bool put_state(const struct version *v, struct rd_buf *out)
{
    const struct history_mirror *m = v->mirror;
    uint64_t n = recorded_length(m);
    if (m->state != HISTORY_PRESENT)
        return true;
    bool is_string = m->type == ENGINE_STRING;
    if (!rd_buf_printf(out, ": %s of %s %s", engine_type_name(m->type), rd_show_count(n).s,
                       recorded_unit(m, n)) ||
        (!is_string && !v->created && !put_counts(v, out)))
        return false;
    if (m->expire_ms != ENGINE_NO_EXPIRE)
        return rd_buf_printf(out, ", expires %s", rd_show_time(m->expire_ms).s);
    return !v->expiry || v->created || rd_buf_printf(out, ", no longer expires");
}

static bool put_move(const struct version *v, const char *word, struct rd_buf *out)
{
    return rd_buf_printf(out, " %s ", word) &&
           cli_put_quoted(out, rd_buf_slice(&v->other), HISTORY_CUT) &&
           (v->other_db == v->mirror->db || rd_buf_printf(out, " of database %u", v->other_db));
}

/* The address is a text of the server. */
static bool put_client(const struct tool_history *h, const struct version *v, struct rd_buf *out)
{
    struct rd_slice client = version_client(v);
    if (!recorded_who_any(&h->in) || v->is_base || version_event(v) == VERSION_EXPIRED)
        return true;
    return rd_buf_printf(out, ", by %s", client.len > 0 ? rd_show_plain(client).s : "unknown");
}

bool history_text_summary(const struct tool_history *h, const struct version *v, struct rd_buf *out)
{
    static const char *const words[] = {
        [VERSION_LOADED] = "in the snapshot",
        [VERSION_CREATED] = "created",
        [VERSION_CHANGED] = "changed",
        [VERSION_REMOVED] = "removed",
        [VERSION_EXPIRED] = "removed because it had expired",
        [VERSION_MOVED_HERE] = "moved",
        [VERSION_MOVED_AWAY] = "moved",
        [VERSION_UNKNOWN] = "unknown from here on: this command cannot be replayed",
    };
    enum version_event event = version_event(v);
    if (!rd_buf_printf(out, "%s", words[event]))
        return false;
    if (event == VERSION_EXPIRED && !rd_buf_printf(out, " at %s", rd_show_time(v->was_expire_ms).s))
        return false;
    if ((event == VERSION_MOVED_HERE && !put_move(v, "from", out)) ||
        (event == VERSION_MOVED_AWAY && !put_move(v, "to", out)))
        return false;
    return put_state(v, out) && put_client(h, v, out);
}

/* ---- changes ---- */

/* A page has none. */
static const char *color_of(const struct tool_history *h, enum cli_color color)
{
    return h->html_path != NULL ? "" : cli_color(h->cli, stdout, color);
}

static bool put_sign(const struct tool_history *h, char sign, struct rd_buf *out)
{
    const char *color = color_of(h, sign == '+' ? CLI_GREEN : CLI_RED);
    return rd_buf_printf(out, INDENT "%s%c ", color, sign);
}

/* An ID of a stream, from its bytes. */
static bool put_name(const struct history_mirror *m, const struct history_edit *edit, size_t cut,
                     struct rd_buf *out)
{
    if (edit->of == HISTORY_OF_GROUPS)
        return rd_buf_printf(out, "group ") && cli_put_quoted(out, edit->name, cut);
    if (edit->of == HISTORY_OF_EXPIRIES)
        return cli_put_quoted(out, edit->name, cut) && rd_buf_printf(out, " expires");
    if (m->type == ENGINE_STREAM)
        return recorded_put_id(out, edit->name);
    if (m->type == ENGINE_LIST)
        return rd_buf_printf(out, "[%" PRIu64 "]", edit->index);
    if (m->type == ENGINE_STRING)
        return edit->index == 0 || rd_buf_printf(out, "at %" PRIu64, edit->index);
    return cli_put_quoted(out, edit->name, cut);
}

static bool put_element(const struct tool_history *h, const struct history_mirror *m,
                        const struct history_edit *edit, char sign, struct rd_slice content,
                        struct rd_buf *out)
{
    size_t cut = h->full ? SIZE_MAX : HISTORY_CUT;
    if (!put_sign(h, sign, out) || !put_name(m, edit, cut, out))
        return false;
    bool has_content = m->type != ENGINE_SET;
    if (has_content && out->ptr[out->len - 1] != ' ' && !rd_buf_add_byte(out, ' '))
        return false;
    if (has_content && !recorded_put_content(out, m, edit->of, content, cut))
        return false;
    return rd_buf_printf(out, "%s\n", color_of(h, CLI_PLAIN));
}

bool history_text_change(const struct tool_history *h, const struct history_mirror *m,
                         const struct history_edit *edit, struct rd_buf *out)
{
    bool was = edit->kind == HISTORY_REMOVED || edit->kind == HISTORY_CHANGED;
    bool is = edit->kind == HISTORY_ADDED || edit->kind == HISTORY_CHANGED;
    if (m->type == ENGINE_STRING && edit->kind == HISTORY_CHANGED && edit->before.len == 0)
        was = false; /* bytes after the end */
    return (!was || put_element(h, m, edit, '-', edit->before, out)) &&
           (!is || put_element(h, m, edit, '+', edit->after, out));
}

/* ---- the whole ---- */

static bool put_values(const struct tool_history *h, const struct history_mirror *m,
                       struct rd_buf *out)
{
    struct recorded_values values;
    struct recorded_value value;
    size_t cut = h->full ? SIZE_MAX : HISTORY_CUT;
    bool ok = recorded_values_begin(&values, m);
    while (ok && recorded_values_next(&values, &value))
        ok = rd_buf_printf(out, INDENT "= ") && recorded_put_value(out, m, &value, cut) &&
             rd_buf_add_byte(out, '\n');
    recorded_values_end(&values);
    return ok;
}

bool history_text_put(const struct tool_history *h, const struct version *v, struct rd_buf *out)
{
    return put_commands(h, v, out) && rd_buf_printf(out, INDENT) && put_key(h, v, out) &&
           history_text_summary(h, v, out) && rd_buf_add_byte(out, '\n') &&
           rd_buf_add(out, v->changes.ptr, v->changes.len) &&
           (!h->values || v->mirror->state != HISTORY_PRESENT || put_values(h, v->mirror, out));
}
