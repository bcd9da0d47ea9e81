#include "tools/replay/replay.h"

#include <inttypes.h>

/* The duration is never negative, although the recorded times can be anything. */
static uint64_t recorded_ms(const struct replay_result *r)
{
    return ((uint64_t)r->last_us - (uint64_t)r->first_us) / 1000;
}

/* ---- text ---- */

static void print_error(const struct replay_error *error)
{
    const struct replay_sent *sent = &error->sent;
    printf("  %s", rd_show_plain(rd_slice(sent->name, sent->name_len)).s);
    if (sent->snapshot)
        printf(" %s of the snapshot", rd_show_quote(rd_slice(sent->key, sent->key_len)).s);
    else
        printf(" at %" PRIu64 ":%" PRIu64, sent->chapter, sent->offset);
    printf(": %s\n", error->text);
}

static void print_stream(const struct tool_replay *replay)
{
    const struct replay_result *r = &replay->result;
    printf("stream    %s command%s, %s", rd_show_count(r->commands).s, rd_show_plural(r->commands),
           rd_show_bytes(r->bytes).s);
    if (r->transactions > 0)
        printf(", %s transaction%s", rd_show_count(r->transactions).s,
               rd_show_plural(r->transactions));
    if (r->chapter != 0)
        printf(", from %" PRIu64 ":%" PRIu64 " to %" PRIu64 ":%" PRIu64, r->chapter, r->from,
               r->to_chapter, r->to);
    printf("\n");
    if (r->caught_up > 0)
        printf("          %s of them before the start of the replay\n",
               rd_show_count(r->caught_up).s);
    if (r->discarded > 0)
        printf("          %s incomplete transaction%s omitted\n", rd_show_count(r->discarded).s,
               rd_show_plural(r->discarded));
    printf("time      recorded in %s", rd_show_duration(recorded_ms(r)).s);
    if (!replay->dry_run)
        printf(", sent in %s", rd_show_duration(r->elapsed_ms).s);
    if (!replay->dry_run && replay->factor > 0)
        printf(", at most %s late", rd_show_duration(r->late_ms).s);
    printf("\n");
}

static void print_text(const struct tool_replay *replay)
{
    const struct replay_result *r = &replay->result;
    const struct replay_sender *s = &replay->sender;
    if (replay->dry_run)
        printf("nothing was sent; without --dry-run this would be sent:\n");
    if (r->snapshots > 0)
        printf("snapshot  %s key%s, %s\n", rd_show_count(r->keys).s, rd_show_plural(r->keys),
               rd_show_bytes(r->snapshot_bytes).s);
    print_stream(replay);
    if (s->n_errors == 0)
        return;
    printf("errors    %s%s\n", rd_show_count(s->n_errors).s,
           s->n_errors > s->n_shown ? ", the first of them:" : ":");
    for (size_t i = 0; i < s->n_shown; i++)
        print_error(&s->errors[i]);
}

/* ---- JSON ---- */

static void put_error(struct json_write *json, const struct replay_error *error)
{
    const struct replay_sent *sent = &error->sent;
    json_obj(json);
    if (sent->snapshot) {
        json_key(json, "key");
        json_bytes(json, rd_slice(sent->key, sent->key_len));
    } else {
        json_put_uint(json, "chapter", sent->chapter);
        json_put_uint(json, "offset", sent->offset);
    }
    json_key(json, "command");
    json_bytes(json, rd_slice(sent->name, sent->name_len));
    json_put_str(json, "error", error->text);
    json_end(json);
}

static void put_place(struct json_write *json, const char *key, uint64_t chapter, uint64_t offset)
{
    json_key(json, key);
    json_obj(json);
    json_put_uint(json, "chapter", chapter);
    json_put_uint(json, "offset", offset);
    json_end(json);
}

static void put_json(const struct tool_replay *replay, struct json_write *json)
{
    const struct replay_result *r = &replay->result;
    const struct replay_sender *s = &replay->sender;
    json_put_bool(json, "dry_run", replay->dry_run);
    json_put_uint(json, "snapshots", r->snapshots);
    json_put_uint(json, "keys", r->keys);
    json_put_uint(json, "commands", r->commands);
    json_put_uint(json, "caught_up", r->caught_up);
    json_put_uint(json, "transactions", r->transactions);
    json_put_uint(json, "discarded", r->discarded);
    json_put_uint(json, "bytes", r->bytes);
    put_place(json, "from", r->chapter, r->from);
    put_place(json, "to", r->to_chapter, r->to);
    json_put_uint(json, "recorded_ms", recorded_ms(r));
    json_put_uint(json, "elapsed_ms", r->elapsed_ms);
    json_put_uint(json, "late_ms", r->late_ms);
    json_put_uint(json, "errors", s->n_errors);
    json_key(json, "first_errors");
    json_array(json);
    for (size_t i = 0; i < s->n_shown; i++)
        put_error(json, &s->errors[i]);
    json_end(json);
}

void replay_report(const struct tool_replay *replay)
{
    if (replay->cli->json)
        put_json(replay, &replay->cli->out);
    else if (!replay->cli->quiet)
        print_text(replay);
}
