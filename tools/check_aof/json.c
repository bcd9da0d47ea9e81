/* json.c - the JSON of check-aof; docs/format/check-aof-json.md describes it. */
#include "tools/check_aof/check_aof.h"

static void put_time(struct cli_json *json, const char *key, int64_t seconds)
{
    cli_json_key(json, key);
    if (seconds == AOF_NO_TIME)
        cli_json_null(json);
    else
        cli_json_int(json, seconds);
}

/* 0: unknown. */
static void put_number(struct cli_json *json, const char *key, uint64_t number)
{
    cli_json_put_offset(json, key, number == 0 ? RD_NO_OFFSET : number);
}

static void put_bytes(struct cli_json *json, const char *key, const char *text)
{
    cli_json_key(json, key);
    if (text != NULL)
        cli_json_bytes(json, rd_slice_str(text));
    else
        cli_json_null(json);
}

static const char *sum_word(enum rdb_sum_state state)
{
    static const char *const words[] = {"unknown", "none", "disabled", "ok", "bad"};
    return words[state];
}

static void put_snapshot(struct cli_json *json, const struct aof_check_file *f)
{
    cli_json_key(json, "snapshot");
    if (!f->has_snapshot || f->detail == NULL) {
        cli_json_null(json);
        return;
    }
    const struct rdb_check_result *res = &f->detail->snapshot;
    cli_json_obj(json);
    cli_json_put_str(json, "dialect", res->has_header ? rdb_dialect_name(res->dialect) : NULL);
    cli_json_put_int(json, "version", res->version);
    put_time(json, "saved", f->saved);
    cli_json_put_uint(json, "keys", res->keys);
    cli_json_put_uint(json, "expires", res->expires);
    cli_json_put_str(json, "checksum", sum_word(res->sum));
    cli_json_put_uint(json, "end", res->end);
    cli_json_end(json);
}

static void put_damage(struct cli_json *json, const struct aof_check_file *f)
{
    cli_json_key(json, "damage");
    if (!f->damaged) {
        cli_json_null(json);
    } else if (f->detail != NULL) {
        cli_json_err(json, &f->detail->err);
    } else {
        cli_json_obj(json);
        cli_json_put_str(json, "code", rd_err_word(f->code));
        cli_json_put_offset(json, "offset", f->broken_at);
        cli_json_end(json);
    }
}

static void put_file(struct cli_json *json, const struct aof_check_file *f)
{
    cli_json_obj(json);
    put_bytes(json, "name", f->name);
    cli_json_put_str(json, "type",
                     f->file == NULL             ? NULL
                     : f->file->type == AOF_BASE ? "base"
                                                 : "incr");
    put_number(json, "seq", f->file != NULL ? f->file->seq : 0);
    cli_json_put_str(json, "verdict", aof_verdict_word(f->verdict));
    cli_json_put_str(json, "content", aof_content_name(f->content));
    cli_json_put_offset(json, "size", f->size);
    cli_json_put_uint(json, "ok_up_to", f->ok_up_to);
    put_number(json, "ok_up_to_line", f->ok_up_to_line);
    cli_json_put_uint(json, "commands", f->commands);
    cli_json_put_uint(json, "transactions", f->transactions);
    cli_json_put_uint(json, "annotations", f->annotations);
    put_time(json, "first_time", f->first_time);
    put_time(json, "last_time", f->last_time);
    put_snapshot(json, f);
    static const char *const modes[] = {NULL, "lf", "crlf"};
    cli_json_put_str(json, "text_mode", modes[f->text_mode]);
    put_damage(json, f);
    cli_json_put_offset(json, "after", f->after);
    cli_json_put_uint(json, "zeros", f->zeros);
    cli_json_end(json);
}

void aof_job_json(struct cli_json *json, const struct aof_job *job,
                  const struct aof_job_found *found)
{
    const struct aof_check_result *res = &found->res;
    put_bytes(json, "path", job->path);
    put_bytes(json, "manifest", job->has_manifest ? job->name : NULL);
    cli_json_put_str(json, "verdict", aof_verdict_word(res->verdict));
    cli_json_put_uint(json, "bytes", res->bytes);
    cli_json_put_uint(json, "commands", res->commands);
    cli_json_put_uint(json, "transactions", res->transactions);
    put_time(json, "first_time", res->first_time);
    put_time(json, "last_time", res->last_time);
    if (found->names != NULL)
        aof_job_names_json(json, found->names);
    cli_json_key(json, "files");
    cli_json_array(json);
    for (size_t i = 0; i < res->n_files; i++)
        put_file(json, res->files[i]);
    cli_json_end(json);
    findings_json(json, &found->findings, true);
    findings_json_total(json, res->errors, res->warnings, res->infos);
}

void aof_job_json_step(struct cli_json *json, const struct aof_repair_step *step,
                       const char *saved_as)
{
    bool cut = step->kind == AOF_REPAIR_CUT;
    cli_json_obj(json);
    cli_json_put_str(json, "action", cut ? "cut" : "set-aside");
    put_bytes(json, "file", step->name);
    cli_json_put_uint(json, "size", step->size);
    if (cut)
        cli_json_put_uint(json, "to", step->to);
    put_bytes(json, "saved_as", saved_as);
    cli_json_end(json);
}
