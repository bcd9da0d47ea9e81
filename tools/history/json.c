/* json.c - a version as a JSON object on one line; redoubt-history-json(5) describes it. */
#include "tools/history/history.h"

static void put_changed(struct json_write *json, const struct history_mirror *m,
                        const struct history_edit *edit, const char *op, struct rd_slice content)
{
    const struct recorded_value value = {
        .of = edit->of, .name = edit->name, .content = content, .index = edit->index};
    json_obj(json);
    json_put_str(json, "op", op);
    recorded_json_value(json, m, &value, "value");
    json_end(json);
}

bool history_json_change(const struct tool_history *h, const struct history_mirror *m,
                         const struct history_edit *edit, struct rd_buf *out)
{
    bool was = edit->kind == HISTORY_REMOVED || edit->kind == HISTORY_CHANGED;
    bool is = edit->kind == HISTORY_ADDED || edit->kind == HISTORY_CHANGED;
    struct rd_sink *sink;
    (void)h;
    for (int i = 0; i < 2; i++) {
        struct json_write json;
        if (!(i == 0 ? was : is))
            continue;
        if ((out->len > 0 && !rd_buf_add_byte(out, ',')) ||
            !rd_sink_open_buf(&sink, out, NULL, NULL))
            return false;
        json_init(&json, sink);
        put_changed(&json, m, edit, i == 0 ? "-" : "+", i == 0 ? edit->before : edit->after);
        if (!rd_sink_close(sink, NULL))
            return false;
    }
    return true;
}

static void put_place(const struct tool_history *h, const struct version *v,
                      struct json_write *json)
{
    const struct history_part *part = &h->in.tape.parts[v->place.part];
    if (h->in.tape.is_capture)
        json_put_uint(json, "chapter", part->chapter);
    else
        json_put_str(json, "file", part->name);
    if (!v->is_base)
        json_put_uint(json, "offset", v->place.offset);
    if (v->in_multi && v->multi != RD_NO_OFFSET)
        json_put_uint(json, "multi", v->multi);
    if (v->time_us == INT64_MIN)
        return;
    json_put_int(json, "time_us", v->time_us);
    json_put_str(json, "time", recorded_time(v->time_us).s);
}

static void put_state(const struct version *v, struct json_write *json)
{
    const struct history_mirror *m = v->mirror;
    if (m->state != HISTORY_PRESENT)
        return;
    json_put_str(json, "type", engine_type_name(m->type));
    json_put_uint(json, "length", recorded_length(m));
    if (m->expire_ms != ENGINE_NO_EXPIRE)
        json_put_int(json, "expires_ms", m->expire_ms);
}

/* Numbers of edits, except those of strings, which are about bytes. */
static void put_counts(const struct version *v, struct json_write *json)
{
    json_put_uint(json, "added", v->added);
    json_put_uint(json, "changed", v->changed);
    json_put_uint(json, "removed", v->gone);
    json_put_uint(json, "rewritten", v->written);
    if (v->mirror->type == ENGINE_STREAM)
        json_put_uint(json, "groups_changed", v->beside);
    if (v->mirror->type == ENGINE_HASH)
        json_put_uint(json, "expiries_changed", v->beside);
}

static bool put_values(const struct version *v, struct json_write *json)
{
    struct recorded_values values;
    struct recorded_value value;
    bool ok = recorded_values_begin(&values, v->mirror);
    json_key(json, "value");
    json_array(json);
    while (ok && recorded_values_next(&values, &value)) {
        json_obj(json);
        recorded_json_value(json, v->mirror, &value, "value");
        json_end(json);
    }
    json_end(json);
    recorded_values_end(&values);
    return ok;
}

static void put_client(const struct tool_history *h, const struct version *v,
                       struct json_write *json)
{
    struct rd_slice client = version_client(v);
    if (!recorded_who_any(&h->in) || v->n_commands == 0)
        return;
    json_key(json, "client");
    if (client.len > 0)
        json_bytes(json, client);
    else
        json_null(json);
}

static void put_moved(const struct version *v, struct json_write *json)
{
    enum version_event event = version_event(v);
    if (event != VERSION_MOVED_HERE && event != VERSION_MOVED_AWAY)
        return;
    json_key(json, event == VERSION_MOVED_HERE ? "from_key" : "to_key");
    json_bytes(json, rd_buf_slice(&v->other));
    json_put_uint(json, event == VERSION_MOVED_HERE ? "from_db" : "to_db", v->other_db);
}

/* Text that is JSON already. */
static void put_made(struct json_write *json, const char *key, const struct rd_buf *made)
{
    json_key(json, key);
    json_array(json);
    rd_sink_write(json->out, made->ptr, made->len);
    json_end(json);
}

bool history_json_put(const struct tool_history *h, const struct version *v, struct rd_buf *out,
                      struct rd_err *err)
{
    struct rd_sink *sink;
    struct json_write json;
    if (!rd_sink_open_buf(&sink, out, NULL, err))
        return false;
    json_init(&json, sink);
    json_obj(&json);
    json_key(&json, "key");
    json_bytes(&json, v->mirror->name);
    json_put_uint(&json, "db", v->mirror->db);
    put_place(h, v, &json);
    json_put_str(&json, "event", version_word(version_event(v)));
    if (v->n_commands > 0)
        put_made(&json, "commands", &v->json);
    put_client(h, v, &json);
    put_moved(v, &json);
    put_state(v, &json);
    put_counts(v, &json);
    if (h->patch)
        put_made(&json, "changes", &v->json_changes);
    bool ok = !h->values || v->mirror->state != HISTORY_PRESENT || put_values(v, &json);
    json_end(&json);
    rd_sink_byte(sink, '\n');
    return rd_sink_close(sink, err) && (ok || rd_err_nomem(err, 0));
}
