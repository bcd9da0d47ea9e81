/* blame.c - `redoubt blame`: which command wrote each element of a value last.
 *
 *     user:17 in database 0: hash of 2 fields
 *     2024-05-01T12:00:00.250Z 1:1500 HSET "name" "Ann"
 *     2024-05-01T12:00:09.100Z 1:2210 HSET "age" "31"
 *     - 00000001-0.rdb snapshot "city" "Bern"
 */
#include "base/mem.h"
#include "tools/recorded/recorded.h"
#include "tools/recorded/values.h"
#include "tools/recorded/who.h"
#include "tools/tools.h"

#include <ctype.h>
#include <inttypes.h>

enum { BLAME_CUT = 128 };

struct blame {
    struct cli *cli;
    struct recorded in;
    bool json, full;
    int64_t until_ms;
    struct history_mirrors mirrors;
    uint64_t n; /* keys that exist */
    bool any_unknown;
};

static bool visit(void *ctx, const struct history_visit *visit, struct rd_err *err)
{
    struct blame *b = ctx;
    if (b->until_ms != INT64_MAX && visit->time_us != INT64_MIN &&
        visit->time_us / 1000 > b->until_ms)
        return true;
    return history_mirrors_visit(&b->mirrors, visit, err);
}

static void restart(void *ctx)
{
    struct blame *b = ctx;
    history_mirrors_reset(&b->mirrors);
}

/* ---- text ---- */

static bool put_command(struct rd_buf *out, const struct history_writer *w)
{
    const char *name = w->is_base ? "snapshot" : w->command == NULL ? "?" : w->command->name;
    bool ok = true;
    for (; ok && *name != '\0'; name++)
        ok = rd_buf_add_byte(out, *name == '|' ? ' '
                                  : w->is_base ? (uint8_t)*name
                                               : (uint8_t)toupper((unsigned char)*name));
    return ok;
}

static bool put_writer(const struct blame *b, uint32_t writer, struct rd_buf *out)
{
    const struct history_writer *w = &b->mirrors.writers[writer];
    const struct history_part *part = &b->in.tape.parts[w->place.part];
    return rd_buf_printf(out, "%s %s ", recorded_time(w->time_us).s,
                         w->is_base ? part->name : recorded_place(&b->in, w->place).s) &&
           put_command(out, w);
}

/* After a part: ", by 10.0.0.5:41234". */
static bool put_client(const struct blame *b, uint32_t writer, struct rd_buf *out)
{
    const struct history_writer *w = &b->mirrors.writers[writer];
    struct rd_slice client = recorded_who_of(&b->in, w->place);
    return !recorded_who_any(&b->in) || w->is_base ||
           rd_buf_printf(out, ", by %s", client.len > 0 ? rd_show_plain(client).s : "unknown");
}

static bool put_line(const struct blame *b, const struct history_mirror *m,
                     const struct recorded_value *value, struct rd_buf *out)
{
    return put_writer(b, value->writer, out) && rd_buf_add_byte(out, ' ') &&
           recorded_put_value(out, m, value, b->full ? SIZE_MAX : BLAME_CUT) &&
           put_client(b, value->writer, out) && rd_buf_add_byte(out, '\n');
}

static bool put_title(const struct history_mirror *m, struct rd_buf *out)
{
    uint64_t n = recorded_length(m);
    return cli_put_quoted(out, m->name, BLAME_CUT) &&
           rd_buf_printf(out, " in database %u: %s of %s %s\n", m->db, engine_type_name(m->type),
                         rd_show_count(n).s, recorded_unit(m, n));
}

static bool put_expiry(const struct blame *b, const struct history_mirror *m, struct rd_buf *out)
{
    return m->expire_ms == ENGINE_NO_EXPIRE ||
           (put_writer(b, m->expire_writer, out) &&
            rd_buf_printf(out, " expires %s", rd_show_time(m->expire_ms).s) &&
            put_client(b, m->expire_writer, out) && rd_buf_add_byte(out, '\n'));
}

/* ---- JSON ---- */

static void put_client_json(const struct blame *b, const struct history_writer *w,
                            struct json_write *json)
{
    struct rd_slice client = recorded_who_of(&b->in, w->place);
    if (!recorded_who_any(&b->in))
        return;
    json_key(json, "client");
    if (client.len > 0)
        json_bytes(json, client);
    else
        json_null(json);
}

static void put_writer_json(const struct blame *b, uint32_t writer, struct json_write *json)
{
    const struct history_writer *w = &b->mirrors.writers[writer];
    const struct history_part *part = &b->in.tape.parts[w->place.part];
    struct rd_buf name = {0};
    if (b->in.tape.is_capture)
        json_put_uint(json, "chapter", part->chapter);
    else
        json_put_str(json, "file", part->name);
    if (w->is_base)
        json_put_bool(json, "snapshot", true);
    else {
        json_put_uint(json, "offset", w->place.offset);
        put_command(&name, w);
        json_key(json, "command");
        json_bytes(json, rd_buf_slice(&name));
        rd_buf_done(&name);
        put_client_json(b, w, json);
    }
    if (w->time_us == INT64_MIN)
        return;
    json_put_int(json, "time_us", w->time_us);
    json_put_str(json, "time", recorded_time(w->time_us).s);
}

static void begin_line(const struct history_mirror *m, struct json_write *json, struct rd_sink *out)
{
    json_init(json, out);
    json_obj(json);
    json_key(json, "key");
    json_bytes(json, m->name);
    json_put_uint(json, "db", m->db);
    json_put_str(json, "type", engine_type_name(m->type));
}

static void put_line_json(const struct blame *b, const struct history_mirror *m,
                          const struct recorded_value *value, struct rd_sink *out)
{
    struct json_write json;
    begin_line(m, &json, out);
    recorded_json_value(&json, m, value, "value");
    put_writer_json(b, value->writer, &json);
    json_end(&json);
    rd_sink_byte(out, '\n');
}

static void put_expiry_json(const struct blame *b, const struct history_mirror *m,
                            struct rd_sink *out)
{
    struct json_write json;
    if (m->expire_ms == ENGINE_NO_EXPIRE)
        return;
    begin_line(m, &json, out);
    json_put_int(&json, "expires_ms", m->expire_ms);
    put_writer_json(b, m->expire_writer, &json);
    json_end(&json);
    rd_sink_byte(out, '\n');
}

/* ---- the whole ---- */

static bool print_values(const struct blame *b, const struct history_mirror *m,
                         struct rd_sink *sink)
{
    struct recorded_values values;
    struct recorded_value value;
    struct rd_buf out = {0};
    bool ok = recorded_values_begin(&values, m) && (b->json || put_title(m, &out));
    while (ok && recorded_values_next(&values, &value)) {
        if (b->json)
            put_line_json(b, m, &value, sink);
        else
            ok = put_line(b, m, &value, &out);
        rd_sink_write(sink, out.ptr, out.len);
        rd_buf_reset(&out);
    }
    if (b->json)
        put_expiry_json(b, m, sink);
    else if (ok)
        ok = put_expiry(b, m, &out);
    rd_sink_write(sink, out.ptr, out.len);
    recorded_values_end(&values);
    rd_buf_done(&out);
    return ok;
}

static bool is_wanted(const struct blame *b, const struct history_mirror *m)
{
    return (b->in.db == RECORDED_ANY_DB || m->db == b->in.db) &&
           history_names_has(&b->in.names, m->name);
}

static bool print(struct blame *b, struct rd_err *err)
{
    struct rd_sink *sink;
    bool ok = true;
    if (!cli_open_out(b->cli, NULL, false, false, &sink, err))
        return false;
    for (size_t i = 0; ok && i < b->mirrors.n; i++) {
        const struct history_mirror *m = b->mirrors.list[i];
        if (!is_wanted(b, m) || m->state == HISTORY_ABSENT)
            continue;
        b->n++;
        b->any_unknown |= m->state == HISTORY_UNKNOWN;
        if (m->state == HISTORY_UNKNOWN)
            cli_warn(b->cli, "%s in database %u: unknown since a command that cannot be replayed",
                     rd_show_quote(m->name).s, m->db);
        else
            ok = print_values(b, m, sink) || rd_err_nomem(err, 0);
    }
    if (ok)
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

static int run(struct blame *b)
{
    struct rd_err err = {0};
    const struct history_replay_opts opts = {.tape = &b->in.tape,
                                             .indexes = &b->in.indexes,
                                             .names = &b->in.names,
                                             .now_us = b->cli->began_ms * 1000,
                                             .visit = visit,
                                             .restart = restart,
                                             .ctx = b};
    bool ok = recorded_open(&b->in, &err) && recorded_add_names(&b->in, &err) &&
              recorded_who_find(&b->in, b->cli->began_ms * 1000, &err) &&
              history_replay(&opts, &err) && print(b, &err);
    if (!ok && recorded_again(&b->in, &err)) {
        restart(b);
        return run(b);
    }
    if (!ok)
        return cli_fail(b->cli, &err);
    if (b->n == 0) {
        if (b->in.names.n == 1)
            cli_note(b->cli, "%s does not exist at the end of what is recorded",
                     rd_show_quote(b->in.names.list[0]).s);
        else
            cli_note(b->cli, "none of these keys exists at the end of what is recorded");
        return CLI_FINDINGS;
    }
    return b->any_unknown ? CLI_PARTIAL : CLI_OK;
}

int tool_blame(struct cli *cli, int argc, char **argv)
{
    struct blame b = {.cli = cli, .until_ms = INT64_MAX};
    int status;
    recorded_init(&b.in, cli);
    const struct cli_opt opts[] = {
        RECORDED_OPTIONS(&b.in),
        RECORDED_PATTERNS(&b.in),
        RECORDED_WHO(&b.in),
        {.name = "until",
         .kind = CLI_TIME,
         .arg = "T",
         .time_ms = &b.until_ms,
         .help = "the value as of this time"},
        {.name = "full", .kind = CLI_FLAG, .flag = &b.full, .help = "do not shorten long elements"},
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] KEY…",
        .about = "Prints the command that wrote each field, member or element of a key last.",
        .opts = opts,
        .max_args = CLI_MANY,
        .json_lines = &b.json,
        .example = "redoubt blame cart:9 --in capture",
    };
    if (!cli_parse(cli, &usage, argc, argv, &status))
        return status;
    status = recorded_names_any(&b.in) ? run(&b) : cli_missing_argument(cli, &usage);
    history_mirrors_done(&b.mirrors);
    recorded_close(&b.in);
    return status;
}
