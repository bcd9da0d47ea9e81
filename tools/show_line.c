/* show_line.c - one command as a line.
 *
 *     2024-05-01T12:00:00Z appendonly.aof.2.incr.aof:1234 [0] "SET" "k" "v"
 *     {"number":17,"time_s":1714564800,"file":"…","offset":1234,"length":29,"db":0,"multi":false,
 *      "command":[…]}
 */
#include "tools/show_impl.h"

#include <inttypes.h>

enum { LONG_ARG = 128, SHORT_ARG = 64 };

static bool put_byte(struct rd_buf *buf, uint8_t c)
{
    static const char plain[] = "\"\\\n\r\t\a\b", letters[] = "\"\\nrtab";
    const char *found = c != 0 ? strchr(plain, c) : NULL;
    if (found != NULL)
        return rd_buf_printf(buf, "\\%c", letters[found - plain]);
    if (c >= 0x20 && c < 0x7f)
        return rd_buf_add_byte(buf, c);
    return rd_buf_printf(buf, "\\x%02x", c);
}

static bool put_argument(struct rd_buf *buf, struct rd_slice arg, bool full)
{
    size_t len = !full && arg.len > LONG_ARG ? SHORT_ARG : arg.len;
    if (!rd_buf_add(buf, " \"", 2))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!put_byte(buf, arg.ptr[i]))
            return false;
    return rd_buf_add_byte(buf, '"') &&
           (len == arg.len || rd_buf_printf(buf, "...(%zu bytes)", arg.len));
}

/* A name of a file without raw control bytes. */
static bool put_name(struct rd_buf *buf, const char *name)
{
    for (; *name != '\0'; name++)
        if (!put_byte(buf, (uint8_t)*name))
            return false;
    return true;
}

bool show_line_text(struct rd_buf *buf, const struct aof_event *ev, bool numbered, bool full)
{
    const struct resp_command *cmd = &ev->entry.command;
    bool ok =
        (!numbered || rd_buf_printf(buf, "%" PRIu64 " ", ev->number)) &&
        rd_buf_printf(buf, "%s ", ev->time_s == AOF_NO_TIME ? "-" : aof_job_time(ev->time_s).s);
    ok = ok && put_name(buf, ev->name) &&
         rd_buf_printf(buf, ":%" PRIu64 " [%" PRIu64 "%s]", ev->offset, ev->db,
                       ev->in_multi ? " multi" : "");
    for (size_t i = 0; ok && i < cmd->argc; i++)
        ok = put_argument(buf, cmd->argv[i], full);
    return ok;
}

bool show_line_json(struct rd_buf *buf, const struct aof_event *ev)
{
    const struct resp_command *cmd = &ev->entry.command;
    struct rd_sink *sink;
    struct cli_json json;
    if (!rd_sink_open_buf(&sink, buf, NULL, NULL))
        return false;
    cli_json_init(&json, sink);
    cli_json_obj(&json);
    cli_json_put_uint(&json, "number", ev->number);
    if (ev->time_s != AOF_NO_TIME)
        cli_json_put_int(&json, "time_s", ev->time_s);
    cli_json_put_str(&json, "file", ev->name);
    cli_json_put_uint(&json, "offset", ev->offset);
    cli_json_put_uint(&json, "length", ev->entry.len);
    cli_json_put_uint(&json, "db", ev->db);
    cli_json_put_bool(&json, "multi", ev->in_multi);
    cli_json_key(&json, "command");
    cli_json_array(&json);
    for (size_t i = 0; i < cmd->argc; i++)
        cli_json_bytes(&json, cmd->argv[i]);
    cli_json_end(&json);
    cli_json_end(&json);
    return rd_sink_close(sink, NULL);
}

bool show_snapshot_text(struct rd_buf *buf, const struct show_snapshot *s)
{
    return rd_buf_add(buf, "# ", 2) && put_name(buf, s->file) &&
           rd_buf_printf(buf, ": snapshot: %s key%s%s", cli_count(s->keys).s,
                         s->keys == 1 ? "" : "s", s->writer[0] != '\0' ? ", written by " : "") &&
           put_name(buf, s->writer);
}

bool show_snapshot_json(struct rd_buf *buf, const struct show_snapshot *s)
{
    struct rd_sink *sink;
    struct cli_json json;
    if (!rd_sink_open_buf(&sink, buf, NULL, NULL))
        return false;
    cli_json_init(&json, sink);
    cli_json_obj(&json);
    cli_json_put_str(&json, "file", s->file);
    cli_json_key(&json, "snapshot");
    cli_json_obj(&json);
    cli_json_put_uint(&json, "keys", s->keys);
    if (s->writer[0] != '\0')
        cli_json_put_str(&json, "written_by", s->writer);
    cli_json_end(&json);
    cli_json_end(&json);
    return rd_sink_close(sink, NULL);
}
