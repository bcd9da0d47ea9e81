/* line.c - one command as a line.
 *
 *     2024-05-01T12:00:00.250000Z 1:1500 [0] "SET" "k" "v"                     of a capture
 *     2024-05-01T12:00:00Z appendonly.aof.2.incr.aof:1234 [0] "SET" "k" "v"
 *     {"number":17,"time_s":1714564800,"file":"…","offset":1234,"length":29,"db":0,"multi":false,
 *      "command":[…]}
 */
#include "base/words.h"
#include "tools/cli/quote.h"
#include "tools/show/show.h"

#include <inttypes.h>

static bool put_argument(struct rd_buf *buf, struct rd_slice arg, const struct show_form *form)
{
    return rd_buf_add_byte(buf, ' ') &&
           cli_put_quoted(buf, arg, arg.len > form->longest ? form->cut : arg.len);
}

/* "FILE:OFFSET"; for a capture "CHAPTER:OFFSET". */
static bool put_place(struct rd_buf *buf, const struct show_item *item)
{
    bool ok = item->file != NULL ? rd_words_escape(buf, rd_slice_str(item->file))
                                 : rd_buf_printf(buf, "%zu", item->index);
    return ok && rd_buf_printf(buf, ":%" PRIu64 " [%" PRIu64 "%s]", item->offset, item->db,
                               item->in_multi ? " multi" : "");
}

/* Logs have seconds, captures microseconds. */
static bool put_time(struct rd_buf *buf, const struct show_item *item)
{
    if (item->time_us == SHOW_NO_TIME)
        return rd_buf_add(buf, "- ", 2);
    int64_t us =
        item->time_us % 1000000 < 0 ? item->time_us % 1000000 + 1000000 : item->time_us % 1000000;
    struct rd_shown second = aof_job_time((item->time_us - us) / 1000000);
    size_t len = strlen(second.s);
    if (item->file != NULL || second.s[len - 1] != 'Z')
        return rd_buf_printf(buf, "%s ", second.s);
    return rd_buf_printf(buf, "%.*s.%06" PRId64 "Z ", (int)len - 1, second.s, us);
}

static bool put_text(struct rd_buf *buf, const struct show_item *item, const struct show_form *form)
{
    const struct resp_command *cmd = item->command;
    bool ok = (!form->numbered || item->number == 0 ||
               rd_buf_printf(buf, "%" PRIu64 " ", item->number)) &&
              put_time(buf, item) && put_place(buf, item);
    for (size_t i = 0; ok && i < cmd->argc; i++)
        ok = put_argument(buf, cmd->argv[i], form);
    return ok;
}

/* ---- JSON ---- */

/* Creates the sink for an object; false: out of memory. */
static bool begin_json(struct json_write *json, struct rd_buf *buf)
{
    struct rd_sink *sink;
    if (!rd_sink_open_buf(&sink, buf, NULL, NULL))
        return false;
    json_init(json, sink);
    json_obj(json);
    return true;
}

static bool end_json(struct json_write *json)
{
    json_end(json);
    return rd_sink_close(json->out, NULL);
}

static void put_members(struct json_write *json, const struct show_item *item)
{
    if (item->file != NULL) {
        json_put_uint(json, "number", item->number);
        if (item->time_us != SHOW_NO_TIME)
            json_put_int(json, "time_s", item->time_us / 1000000);
        json_put_str(json, "file", item->file);
    } else {
        json_put_int(json, "time_us", item->time_us);
        json_put_uint(json, "chapter", item->index);
    }
    json_put_uint(json, "offset", item->offset);
    json_put_uint(json, "length", item->len);
    json_put_uint(json, "db", item->db);
    json_put_bool(json, "multi", item->in_multi);
}

static bool put_json(struct rd_buf *buf, const struct show_item *item, const struct show_form *form)
{
    const struct resp_command *cmd = item->command;
    struct json_write json;
    if (!begin_json(&json, buf))
        return false;
    put_members(&json, item);
    if (form->context)
        json_put_bool(&json, "context", true);
    json_key(&json, "command");
    json_array(&json);
    for (size_t i = 0; i < cmd->argc; i++)
        json_bytes(&json, cmd->argv[i]);
    json_end(&json);
    return end_json(&json);
}

bool show_line_item(struct rd_buf *buf, const struct show_item *item, const struct show_form *form)
{
    return form->json ? put_json(buf, item, form) : put_text(buf, item, form);
}

/* ---- snapshots ---- */

static bool snapshot_text(struct rd_buf *buf, const struct show_snapshot *s)
{
    return rd_buf_add(buf, "# ", 2) && rd_words_escape(buf, rd_slice_str(s->file)) &&
           rd_buf_printf(buf, ": snapshot: %s key%s%s", rd_show_count(s->keys).s,
                         s->keys == 1 ? "" : "s", s->writer[0] != '\0' ? ", written by " : "") &&
           rd_words_escape(buf, rd_slice_str(s->writer));
}

static bool snapshot_json(struct rd_buf *buf, const struct show_snapshot *s)
{
    struct json_write json;
    if (!begin_json(&json, buf))
        return false;
    json_put_str(&json, "file", s->file);
    json_key(&json, "snapshot");
    json_obj(&json);
    json_put_uint(&json, "keys", s->keys);
    if (s->writer[0] != '\0')
        json_put_str(&json, "written_by", s->writer);
    json_end(&json);
    return end_json(&json);
}

bool show_line_snapshot(struct rd_buf *buf, const struct show_snapshot *s, bool json)
{
    return json ? snapshot_json(buf, s) : snapshot_text(buf, s);
}

/* ---- chapters ---- */

static bool chapter_text(struct rd_buf *buf, const struct repl_capture_segment *segment,
                         const char *snapshot)
{
    if (!rd_buf_printf(buf, "# chapter %" PRIu64 ": history %s from offset %" PRIu64,
                       segment->chapter, segment->replid.hex, segment->chapter_start))
        return false;
    if (snapshot != NULL)
        return rd_buf_printf(buf, ", snapshot %s (%s)", snapshot,
                             rd_show_bytes(segment->snapshot_size).s);
    return !segment->begins || segment->continues || rd_buf_printf(buf, ", without a snapshot");
}

static bool chapter_json(struct rd_buf *buf, const struct repl_capture_segment *segment,
                         const char *snapshot)
{
    struct json_write json;
    if (!begin_json(&json, buf))
        return false;
    json_put_uint(&json, "chapter", segment->chapter);
    json_put_str(&json, "replid", segment->replid.hex);
    json_put_uint(&json, "offset", segment->chapter_start);
    json_put_bool(&json, "continues", segment->continues);
    if (snapshot != NULL) {
        json_key(&json, "snapshot");
        json_obj(&json);
        json_put_str(&json, "file", snapshot);
        json_put_uint(&json, "bytes", segment->snapshot_size);
        json_end(&json);
    }
    return end_json(&json);
}

bool show_line_chapter(struct rd_buf *buf, const struct repl_capture_segment *segment, bool json)
{
    char name[REPL_CAPTURE_NAME];
    const char *snapshot = NULL;
    if (segment->has_snapshot) {
        repl_capture_snapshot_name(segment, name);
        snapshot = name;
    }
    return json ? chapter_json(buf, segment, snapshot) : chapter_text(buf, segment, snapshot);
}
