/* html.c - the versions of keys as a page.
 *
 * Each version is two objects: what happened, and the value afterwards. Both are in the spool. The
 * page has the last versions that fit, and the values of the last ones of these that fit. */
#include "tools/history/history.h"
#include "tools/page/page.h"

#include "tools/history_page.h"

enum {
    VERSIONS = 1000,
    EVENT_BYTES = 480000, /* of the page, for what happened */
    VALUE_BYTES = 430000, /* for values */
    ELEMENTS = 100,       /* of a value */
    CHANGES = 60,
    COMMANDS = 20,
    LINE_BYTES = 1000 /* of a command, an element or a change */
};

struct html_piece {
    uint64_t event, value;           /* bytes in the spool, one after the other */
    uint64_t event_cost, value_cost; /* on the page */
};

/* "<" takes six bytes on a page. */
static uint64_t cost_of(struct rd_slice json)
{
    uint64_t cost = json.len;
    for (size_t i = 0; i < json.len; i++)
        cost += json.ptr[i] == '<' ? 5 : 0;
    return cost;
}

/* ---- one version ---- */

/* The lines of a text, without blanks before them; those after `most` are counted. */
static void put_lines(struct json_write *json, const char *key, const char *more_key,
                      struct rd_slice text, uint64_t most)
{
    const uint8_t *at = text.ptr, *end = at + text.len;
    uint64_t n = 0;
    json_key(json, key);
    json_array(json);
    for (; at < end; n++) {
        const uint8_t *lf = memchr(at, '\n', (size_t)(end - at));
        const uint8_t *to = lf != NULL ? lf : end;
        while (at < to && *at == ' ')
            at++;
        size_t len = (size_t)(to - at);
        if (n < most)
            json_bytes(json, rd_slice(at, len < LINE_BYTES ? len : LINE_BYTES));
        at = to + (lf != NULL);
    }
    json_end(json);
    if (n > most)
        json_put_uint(json, more_key, n - most);
}

static void put_texts(const struct tool_history *h, const struct version *v,
                      struct json_write *json)
{
    struct rd_shown time = recorded_time(v->time_us);
    json_put_str(json, "at", v->time_us == INT64_MIN ? NULL : time.s);
    json_put_str(json, "place",
                 v->is_base ? h->in.tape.parts[v->place.part].name
                            : recorded_place(&h->in, v->place).s);
    json_put_str(json, "event", version_word(version_event(v)));
}

static bool put_event(const struct tool_history *h, const struct version *v,
                      struct json_write *json)
{
    struct rd_buf summary = {0};
    const struct history_mirror *m = v->mirror;
    bool ok = history_text_summary(h, v, &summary);
    json_obj(json);
    json_key(json, "key");
    json_bytes(json, m->name.len > LINE_BYTES ? rd_slice(m->name.ptr, LINE_BYTES) : m->name);
    json_put_uint(json, "db", m->db);
    put_texts(h, v, json);
    if (v->time_us != INT64_MIN)
        json_put_int(json, "ms", v->time_us / 1000);
    if (v->in_multi)
        json_put_bool(json, "multi", true);
    put_lines(json, "commands", "more_commands", rd_buf_slice(&v->commands), COMMANDS);
    json_key(json, "summary");
    json_bytes(json, rd_buf_slice(&summary));
    put_lines(json, "changes", "more_changes", rd_buf_slice(&v->changes), CHANGES);
    if (m->state == HISTORY_PRESENT) {
        json_put_str(json, "type", engine_type_name(m->type));
        json_put_uint(json, "length", recorded_length(m));
    }
    json_end(json);
    rd_buf_done(&summary);
    return ok;
}

/* Of values that do not exist or are unknown: null. */
static bool put_value(const struct version *v, struct json_write *json)
{
    struct recorded_values values;
    struct recorded_value value;
    struct rd_buf line = {0};
    uint64_t n = 0;
    if (v->mirror->state != HISTORY_PRESENT) {
        json_null(json);
        return true;
    }
    bool ok = recorded_values_begin(&values, v->mirror);
    json_array(json);
    while (ok && n < ELEMENTS && recorded_values_next(&values, &value)) {
        rd_buf_reset(&line);
        ok = recorded_put_value(&line, v->mirror, &value, HISTORY_CUT);
        json_bytes(json, rd_slice(line.ptr, line.len < LINE_BYTES ? line.len : LINE_BYTES));
        n++;
    }
    bool more = ok && recorded_values_next(&values, &value);
    if (more)
        json_null(json);
    json_end(json);
    recorded_values_end(&values);
    rd_buf_done(&line);
    return ok;
}

static bool append(struct tool_history *h, const struct version *v, bool is_value,
                   struct html_piece *piece, struct rd_err *err)
{
    struct rd_buf text = {0};
    struct rd_sink *sink;
    struct json_write json;
    if (!rd_sink_open_buf(&sink, &text, NULL, err))
        return false;
    json_init(&json, sink);
    bool ok = is_value ? put_value(v, &json) : put_event(h, v, &json);
    ok = rd_sink_close(sink, ok ? err : NULL) && (ok || rd_err_nomem(err, text.len)) &&
         spool_append(&h->spool, text.ptr, text.len, err);
    *(is_value ? &piece->value : &piece->event) = text.len;
    *(is_value ? &piece->value_cost : &piece->event_cost) = cost_of(rd_buf_slice(&text)) + 10;
    rd_buf_done(&text);
    return ok;
}

bool history_html_put(struct tool_history *h, const struct version *v, struct rd_err *err)
{
    struct html_piece piece = {0};
    return append(h, v, false, &piece, err) && append(h, v, true, &piece, err) &&
           (rd_buf_add(&h->pieces, &piece, sizeof piece) || rd_err_nomem(err, h->pieces.len));
}

/* ---- the page ---- */

struct html_choice {
    const struct html_piece *pieces;
    size_t n, first, first_value; /* the first version on the page, and the first with a value */
    uint64_t at;                  /* of the first version in the spool */
};

static struct html_choice choose(const struct tool_history *h)
{
    struct html_choice c = {.pieces = (const struct html_piece *)(const void *)h->pieces.ptr,
                            .n = h->pieces.len / sizeof(struct html_piece)};
    uint64_t events = 0, values = 0, most = h->last > 0 && h->last < VERSIONS ? h->last : VERSIONS;
    c.at = h->spool.size;
    for (c.first = c.n; c.first > 0 && c.n - c.first < most; c.first--) {
        const struct html_piece *p = &c.pieces[c.first - 1];
        if ((events += p->event_cost) > EVENT_BYTES && c.first < c.n)
            break;
        c.at -= p->event + p->value;
    }
    for (c.first_value = c.n; c.first_value > c.first; c.first_value--)
        if ((values += c.pieces[c.first_value - 1].value_cost) > VALUE_BYTES)
            break;
    return c;
}

/* Text that is JSON already. */
static bool copy(struct tool_history *h, uint64_t at, uint64_t len, struct rd_sink *out,
                 struct rd_err *err)
{
    struct rd_buf text = {0};
    bool ok = rd_buf_reserve(&text, (size_t)len) || rd_err_nomem(err, (size_t)len);
    ok = ok && spool_read(&h->spool, at, text.ptr, (size_t)len, err);
    if (ok)
        rd_sink_write(out, text.ptr, (size_t)len);
    rd_buf_done(&text);
    return ok;
}

static bool put_versions(struct tool_history *h, const struct html_choice *c, struct rd_sink *out,
                         struct rd_err *err)
{
    uint64_t at = c->at;
    bool ok = true;
    for (size_t i = c->first; ok && i < c->n; i++) {
        const struct html_piece *p = &c->pieces[i];
        rd_sink_write(out, i > c->first ? ",[" : "[", i > c->first ? 2 : 1);
        ok = copy(h, at, p->event, out, err);
        rd_sink_byte(out, ',');
        if (ok && i >= c->first_value)
            ok = copy(h, at + p->event, p->value, out, err);
        else
            rd_sink_write(out, "0", 1);
        rd_sink_byte(out, ']');
        at += p->event + p->value;
    }
    return ok;
}

static void put_head(const struct tool_history *h, const struct html_choice *c,
                     struct json_write *json)
{
    json_put_str(json, "source", h->in.path);
    json_key(json, "names");
    json_array(json);
    for (size_t i = 0; i < h->in.names.n && i < 3; i++)
        json_bytes(json, rd_slice(h->in.names.list[i].ptr, h->in.names.list[i].len < LINE_BYTES
                                                               ? h->in.names.list[i].len
                                                               : LINE_BYTES));
    json_end(json);
    json_put_uint(json, "keys", h->in.names.n);
    json_put_uint(json, "total", h->last > 0 && h->last < c->n ? h->last : c->n);
    json_put_bool(json, "who", recorded_who_any(&h->in));
}

static bool put_data(struct tool_history *h, struct rd_buf *ret, struct rd_err *err)
{
    const struct html_choice c = choose(h);
    struct rd_sink *sink;
    struct json_write json;
    if (!rd_sink_open_buf(&sink, ret, NULL, err))
        return false;
    json_init(&json, sink);
    json_obj(&json);
    put_head(h, &c, &json);
    json_key(&json, "versions");
    json_array(&json);
    bool ok = put_versions(h, &c, sink, err);
    json_end(&json);
    json_end(&json);
    return rd_sink_close(sink, ok ? err : NULL) && ok;
}

bool history_html_write(struct tool_history *h, struct rd_err *err)
{
    struct rd_buf data = {0};
    struct rd_sink *out;
    bool ok =
        put_data(h, &data, err) && cli_open_out(h->cli, h->html_path, h->force, false, &out, err);
    if (ok) {
        ok = page_write(out, rd_slice(history_page, sizeof history_page), rd_buf_slice(&data), err);
        if (ok)
            ok = rd_sink_close(out, err);
        else
            rd_sink_abort(out);
    }
    rd_buf_done(&data);
    return ok;
}
