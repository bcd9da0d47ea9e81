/* report.c - the plan, key by key:
 *
 *     "cart:9" in database 0: 2 changes
 *         "HSET" "cart:9" "total" "17"
 *         "HDEL" "cart:9" "voucher"
 *     conflict: "cart:9" "name": was "Ann", is "Bob" now
 */
#include "tools/undo/undo.h"

#include <inttypes.h>

enum { SHOWN = 10 };

/* ---- commands from their bytes ---- */

struct reading {
    struct rd_src *src;
    struct rd_resp_reader *reader;
};

static bool begin_reading(struct reading *r, const struct history_commands *commands)
{
    *r = (struct reading){.src = NULL};
    return rd_src_open_memory(&r->src, rd_buf_slice(&commands->bytes), NULL, NULL) &&
           rd_resp_reader_new(&r->reader, r->src, NULL, NULL);
}

static void end_reading(struct reading *r)
{
    rd_resp_reader_free(r->reader);
    rd_src_close(r->src);
}

/* ---- text ---- */

static bool put_commands(const struct history_commands *commands, bool all, struct rd_buf *out)
{
    struct reading r;
    struct resp_command command;
    uint64_t shown = 0;
    bool ok = begin_reading(&r, commands);
    while (ok && (all || shown < SHOWN) &&
           rd_resp_reader_next(r.reader, &command) == RESP_COMMAND) {
        ok = rd_buf_printf(out, "   ");
        for (size_t i = 0; ok && i < command.argc; i++)
            ok = rd_buf_add_byte(out, ' ') &&
                 cli_put_quoted(out, command.argv[i], all ? SIZE_MAX : UNDO_CUT);
        ok = ok && rd_buf_add_byte(out, '\n');
        shown++;
    }
    end_reading(&r);
    return ok &&
           (shown >= commands->n || rd_buf_printf(out, "    and %s more commands; -v shows all\n",
                                                  rd_show_count(commands->n - shown).s));
}

bool undo_put_lines(const struct history_commands *commands, struct rd_buf *out)
{
    struct reading r;
    struct resp_command command;
    bool ok = begin_reading(&r, commands);
    while (ok && rd_resp_reader_next(r.reader, &command) == RESP_COMMAND) {
        ok = cli_put_line(out, command.argv, command.argc, SIZE_MAX) && rd_buf_add_byte(out, '\n');
    }
    end_reading(&r);
    return ok;
}

static bool put_key(const struct undo_key *key, struct rd_buf *out)
{
    return cli_put_quoted(out, key->name, UNDO_CUT) &&
           rd_buf_printf(out, " in database %u: ", key->db);
}

static bool text_key(struct undo *u, const struct undo_key *key, const struct history_merge *merge,
                     struct rd_buf *out)
{
    if (!put_key(key, out))
        return false;
    if (key->unknown)
        return rd_buf_printf(out, "unknown, because of a command that cannot be replayed: left "
                                  "alone\n");
    if (merge->changes == 0 && merge->conflicts == 0 && u->conflict_text.len == 0)
        return rd_buf_printf(out, "nothing to take back\n");
    return rd_buf_printf(out, "%s change%s\n", rd_show_count(merge->changes).s,
                         rd_show_plural(merge->changes)) &&
           put_commands(&merge->redo, u->cli->verbose > 0, out) &&
           rd_buf_add(out, u->conflict_text.ptr, u->conflict_text.len);
}

static bool put_side(struct rd_buf *out, const char *word, struct rd_slice content)
{
    if (!rd_buf_printf(out, "%s ", word))
        return false;
    return content.ptr == NULL ? rd_buf_printf(out, "absent")
                               : cli_put_quoted(out, content, UNDO_CUT);
}

static bool text_conflict(const struct history_conflict *c, struct rd_buf *out)
{
    bool ok = rd_buf_printf(out, "    conflict: ");
    if (c->is_whole && c->before.ptr == NULL && c->now.ptr == NULL)
        return ok && rd_buf_printf(out, "the value was changed since, and its elements cannot be "
                                        "told apart\n");
    if (c->is_whole)
        ok = ok && rd_buf_printf(out, "the value");
    else if (c->is_expiry)
        ok = ok && rd_buf_printf(out, "the time to live");
    else
        ok = ok && cli_put_quoted(out, c->name, UNDO_CUT) &&
             (c->of != HISTORY_OF_EXPIRIES || rd_buf_printf(out, " expires:"));
    return ok && put_side(out, " was", c->before) && put_side(out, ", is", c->now) &&
           rd_buf_printf(out, " now\n");
}

/* ---- JSON ---- */

static bool put_conflict(const struct history_conflict *c, struct rd_buf *out)
{
    struct rd_sink *sink;
    struct json_write json;
    if ((out->len > 0 && !rd_buf_add_byte(out, ',')) || !rd_sink_open_buf(&sink, out, NULL, NULL))
        return false;
    json_init(&json, sink);
    json_obj(&json);
    json_put_str(&json, "of",
                 c->is_whole                    ? "value"
                 : c->is_expiry                 ? "expiry"
                 : c->of == HISTORY_OF_EXPIRIES ? "field_expiry"
                                                : "element");
    if (!c->is_whole && !c->is_expiry) {
        json_key(&json, "name");
        json_bytes(&json, c->name);
    }
    for (int i = 0; i < 2; i++) {
        struct rd_slice side = i == 0 ? c->before : c->now;
        json_key(&json, i == 0 ? "before" : "now");
        if (side.ptr == NULL)
            json_null(&json);
        else
            json_bytes(&json, side);
    }
    json_end(&json);
    return rd_sink_close(sink, NULL);
}

static bool put_commands_json(const struct history_commands *commands, struct json_write *json)
{
    struct reading r;
    struct resp_command command;
    bool ok = begin_reading(&r, commands);
    json_key(json, "commands");
    json_array(json);
    while (ok && rd_resp_reader_next(r.reader, &command) == RESP_COMMAND) {
        json_array(json);
        for (size_t i = 0; i < command.argc; i++)
            json_bytes(json, command.argv[i]);
        json_end(json);
    }
    json_end(json);
    end_reading(&r);
    return ok;
}

static bool put_undo_key(struct undo *u, const struct undo_key *key,
                         const struct history_merge *merge, struct rd_buf *out)
{
    struct rd_sink *sink;
    struct json_write json;
    if (!rd_sink_open_buf(&sink, out, NULL, NULL))
        return false;
    json_init(&json, sink);
    json_obj(&json);
    json_key(&json, "key");
    json_bytes(&json, key->name);
    json_put_uint(&json, "db", key->db);
    json_put_bool(&json, "unknown", key->unknown);
    json_put_uint(&json, "changes", merge->changes);
    json_key(&json, "conflicts");
    json_array(&json);
    rd_sink_write(sink, u->conflict_text.ptr, u->conflict_text.len);
    json_end(&json);
    bool ok = put_commands_json(&merge->redo, &json);
    json_end(&json);
    rd_sink_byte(sink, '\n');
    return rd_sink_close(sink, NULL) && ok;
}

/* ---- both ---- */

bool undo_report_conflict(void *ctx, const struct history_conflict *conflict, struct rd_err *err)
{
    struct undo *u = ctx;
    bool ok = u->json ? put_conflict(conflict, &u->conflict_text)
                      : text_conflict(conflict, &u->conflict_text);
    return ok || rd_err_nomem(err, conflict->now.len);
}

bool undo_report_key(struct undo *u, const struct undo_key *key, const struct history_merge *merge)
{
    struct rd_buf out = {0};
    bool is_idle = !key->unknown && merge->redo.n == 0 && u->conflict_text.len == 0;
    if (is_idle && u->any) /* the commands do not say which keys they changed: not this one */
        return true;
    bool ok = u->json ? put_undo_key(u, key, merge, &out) : text_key(u, key, merge, &out);
    rd_sink_write(u->report, out.ptr, out.len);
    rd_buf_done(&out);
    rd_buf_reset(&u->conflict_text);
    return ok;
}

void undo_report_refused(struct undo *u, const struct undo_key *key, const char *why)
{
    u->refused++;
    cli_warn(u->cli, "%s in database %u was left alone: %s", rd_show_quote(key->name).s, key->db,
             why);
}
