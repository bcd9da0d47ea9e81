/* json.c - the JSON of check-aof; docs/format/check-aof-json.md describes it. */
#include "tools/check_aof/check_aof.h"

static void put_time(struct json_write *json, const char *key, int64_t seconds)
{
    json_key(json, key);
    if (seconds == AOF_NO_TIME)
        json_null(json);
    else
        json_int(json, seconds);
}

/* 0: unknown. */
static void put_number(struct json_write *json, const char *key, uint64_t number)
{
    json_put_offset(json, key, number == 0 ? RD_NO_OFFSET : number);
}

static void put_bytes(struct json_write *json, const char *key, const char *text)
{
    json_key(json, key);
    if (text != NULL)
        json_bytes(json, rd_slice_str(text));
    else
        json_null(json);
}

static const char *sum_word(enum rdb_sum_state state)
{
    static const char *const words[] = {"unknown", "none", "disabled", "ok", "bad"};
    return words[state];
}

static void put_snapshot(struct json_write *json, const struct aof_check_file *f)
{
    json_key(json, "snapshot");
    if (!f->has_snapshot || f->detail == NULL) {
        json_null(json);
        return;
    }
    const struct rdb_check_result *res = &f->detail->snapshot;
    json_obj(json);
    json_put_str(json, "dialect", res->has_header ? rdb_dialect_name(res->dialect) : NULL);
    json_put_int(json, "version", res->version);
    put_time(json, "saved", f->saved);
    json_put_uint(json, "keys", res->keys);
    json_put_uint(json, "expires", res->expires);
    json_put_str(json, "checksum", sum_word(res->sum));
    json_put_uint(json, "end", res->end);
    json_end(json);
}

static void put_damage(struct json_write *json, const struct aof_check_file *f)
{
    json_key(json, "damage");
    if (!f->damaged) {
        json_null(json);
    } else if (f->detail != NULL) {
        cli_json_err(json, &f->detail->err);
    } else {
        json_obj(json);
        json_put_str(json, "code", rd_err_word(f->code));
        json_put_offset(json, "offset", f->broken_at);
        json_end(json);
    }
}

static void put_file(struct json_write *json, const struct aof_check_file *f)
{
    json_obj(json);
    put_bytes(json, "name", f->name);
    json_put_str(json, "type",
                 f->file == NULL             ? NULL
                 : f->file->type == AOF_BASE ? "base"
                                             : "incr");
    put_number(json, "seq", f->file != NULL ? f->file->seq : 0);
    json_put_str(json, "verdict", aof_verdict_word(f->verdict));
    json_put_str(json, "content", aof_content_name(f->content));
    json_put_offset(json, "size", f->size);
    json_put_uint(json, "ok_up_to", f->ok_up_to);
    put_number(json, "ok_up_to_line", f->ok_up_to_line);
    json_put_uint(json, "commands", f->commands);
    json_put_uint(json, "transactions", f->transactions);
    json_put_uint(json, "annotations", f->annotations);
    put_time(json, "first_time", f->first_time);
    put_time(json, "last_time", f->last_time);
    put_snapshot(json, f);
    static const char *const modes[] = {NULL, "lf", "crlf"};
    json_put_str(json, "text_mode", modes[f->text_mode]);
    put_damage(json, f);
    json_put_offset(json, "after", f->after);
    json_put_uint(json, "zeros", f->zeros);
    json_end(json);
}

void aof_job_json(struct json_write *json, const struct aof_job *job,
                  const struct aof_job_found *found)
{
    const struct aof_check_result *res = &found->res;
    put_bytes(json, "path", job->path);
    put_bytes(json, "manifest", job->has_manifest ? job->name : NULL);
    json_put_str(json, "verdict", aof_verdict_word(res->verdict));
    json_put_uint(json, "bytes", res->bytes);
    json_put_uint(json, "commands", res->commands);
    json_put_uint(json, "transactions", res->transactions);
    put_time(json, "first_time", res->first_time);
    put_time(json, "last_time", res->last_time);
    if (found->names != NULL)
        aof_job_names_json(json, found->names);
    json_key(json, "files");
    json_array(json);
    for (size_t i = 0; i < res->n_files; i++)
        put_file(json, res->files[i]);
    json_end(json);
    findings_json(json, &found->findings, true);
    findings_json_total(json, res->errors, res->warnings, res->infos);
}

void aof_job_json_step(struct json_write *json, const struct aof_repair_step *step,
                       const char *saved_as)
{
    bool cut = step->kind == AOF_REPAIR_CUT;
    json_obj(json);
    json_put_str(json, "action", cut ? "cut" : "set-aside");
    put_bytes(json, "file", step->name);
    json_put_uint(json, "size", step->size);
    if (cut)
        json_put_uint(json, "to", step->to);
    put_bytes(json, "saved_as", saved_as);
    json_end(json);
}
