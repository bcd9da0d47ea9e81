/* json.c - the JSON of check-rdb; docs/format/check-rdb-json.md describes it. */
#include "tools/check_rdb/check_rdb.h"

#include <inttypes.h>

static void put_hex(struct json_write *json, const char *key, uint64_t crc)
{
    char hex[17];
    snprintf(hex, sizeof hex, "%016" PRIx64, crc);
    json_put_str(json, key, hex);
}

static void put_text(struct json_write *json, const char *key, const struct check_file *file,
                     struct finding_text text)
{
    json_key(json, key);
    json_bytes(json, check_slice(file, text));
}

static void put_kind(struct json_write *json, const struct rdb_type *type)
{
    json_put_str(json, "type", type != NULL ? rdb_kind_name(type->kind) : NULL);
}

static void put_format(struct json_write *json, const struct check_file *file)
{
    const struct rdb_check_result *res = &file->res;
    json_key(json, "format");
    if (!res->has_header) {
        json_null(json);
    } else {
        json_obj(json);
        json_put_str(json, "dialect", rdb_dialect_name(res->dialect));
        json_put_int(json, "version", res->version);
        json_end(json);
    }
    json_key(json, "aux");
    json_obj(json);
    for (size_t i = 0; i < file->n_aux; i++) {
        json_key_bytes(json, check_slice(file, file->aux[i].name));
        json_bytes(json, check_slice(file, file->aux[i].value));
    }
    json_end(json);
}

static void put_content(struct json_write *json, const struct check_file *file)
{
    const struct rdb_check_result *res = &file->res;
    json_put_uint(json, "keys", res->keys);
    json_key(json, "keys_by_type");
    json_obj(json);
    for (int kind = 0; kind < RDB_KIND_COUNT; kind++)
        if (res->keys_by_kind[kind] > 0)
            json_put_uint(json, rdb_kind_name((enum rdb_kind)kind), res->keys_by_kind[kind]);
    json_end(json);
    json_put_uint(json, "expires", res->expires);
    json_put_uint(json, "expired", res->expired);
    json_put_uint(json, "databases", res->dbs);
    json_put_uint(json, "slots", file->slots);
    json_put_uint(json, "slot_imports", res->slot_imports);
    json_put_uint(json, "imported_keys", res->imported_keys);
    json_put_uint(json, "functions", res->functions);
    json_put_uint(json, "module_aux", res->module_aux);
    json_put_uint(json, "templates", res->templates);
}

static void put_sum(struct json_write *json, const struct rdb_check_result *res)
{
    json_key(json, "checksum");
    json_obj(json);
    json_put_str(json, "state", check_sum_word(res->sum));
    if (res->sum == RDB_SUM_OFF || res->sum == RDB_SUM_OK || res->sum == RDB_SUM_BAD) {
        put_hex(json, "stored", res->stored);
        put_hex(json, "computed", res->computed);
    }
    json_end(json);
}

static void put_loss(struct json_write *json, const struct check_file *file,
                     const struct check_loss *loss)
{
    json_obj(json);
    json_put_str(json, "kind", check_loss_word(loss->kind));
    json_put_uint(json, "from", loss->from);
    json_put_uint(json, "to", loss->to);
    put_text(json, "why", file, loss->why);
    json_put_offset(json, "at", loss->at);
    if (loss->resync.len > 0)
        put_text(json, "resync", file, loss->resync);
    if (loss->has_key) {
        json_put_uint(json, "db", loss->db);
        put_text(json, "key", file, loss->key);
        put_kind(json, loss->type);
    }
    if (loss->kind == RDB_LOSS_PARTIAL)
        json_put_uint(json, "kept", loss->kept);
    json_end(json);
}

static void put_losses(struct json_write *json, const char *name, const struct check_file *file,
                       bool keys)
{
    json_key(json, name);
    json_array(json);
    for (size_t i = 0; i < file->n_losses; i++)
        if ((file->losses[i].kind == RDB_LOSS_KEY) == keys)
            put_loss(json, file, &file->losses[i]);
    json_end(json);
}

static void put_doubts(struct json_write *json, unsigned doubts)
{
    json_key(json, "doubts");
    json_array(json);
    for (unsigned i = 0; i < RDB_DOUBTS; i++)
        if ((doubts >> i & 1) != 0)
            json_bytes(json, rd_slice_str(rdb_doubt_word((enum rdb_doubt)(1u << i))));
    json_end(json);
}

static void put_runs(struct json_write *json, const struct check_file *file)
{
    json_put_uint(json, "n_runs", file->all_runs);
    json_key(json, "runs");
    json_array(json);
    for (size_t i = 0; i < file->n_runs; i++) {
        const struct rdb_salvage_run *run = &file->runs[i];
        json_obj(json);
        json_put_uint(json, "from", run->from);
        json_put_uint(json, "to", run->to);
        json_put_uint(json, "db", run->db);
        json_put_uint(json, "keys", run->keys);
        json_put_str(json, "anchors", rdb_grade_word(run->grade));
        put_doubts(json, run->doubts);
        json_put_bool(json, "left_out", run->left_out);
        json_end(json);
    }
    json_end(json);
    json_put_uint(json, "n_doubtful", file->all_doubts);
    json_key(json, "doubtful");
    json_array(json);
    for (size_t i = 0; i < file->n_doubts; i++) {
        const struct check_doubt *doubt = &file->doubts[i];
        json_obj(json);
        json_put_uint(json, "offset", doubt->offset);
        json_put_uint(json, "db", doubt->db);
        put_text(json, "key", file, doubt->key);
        put_kind(json, doubt->type);
        put_doubts(json, doubt->doubts);
        json_put_bool(json, "left_out", doubt->left_out);
        json_end(json);
    }
    json_end(json);
}

static void put_out(struct json_write *json, const struct check_file *file)
{
    json_key(json, "out");
    if (file->out == NULL) {
        json_null(json);
    } else {
        json_obj(json);
        json_key(json, "file");
        json_bytes(json, rd_slice_str(file->out));
        json_put_uint(json, "keys", file->out_keys);
        json_put_bool(json, "well_formed", file->well_formed);
        json_put_bool(json, "verified", check_is_verified(file));
        json_put_bool(json, "sealed", file->salvage.sealed);
        json_end(json);
    }
    json_key(json, "doubtful_out");
    if (file->doubtful == NULL)
        json_null(json);
    else
        json_bytes(json, rd_slice_str(file->doubtful));
}

static void put_corrected(struct json_write *json, const struct rdb_salvage_result *sv)
{
    static const char *const kinds[] = {
        [RDB_CORRECTION_NONE] = "none",         [RDB_CORRECTION_BYTE] = "byte",
        [RDB_CORRECTION_INSERTED] = "inserted", [RDB_CORRECTION_EXCHANGED] = "exchanged",
        [RDB_CORRECTION_MISSING] = "missing",   [RDB_CORRECTION_HEADER] = "header",
        [RDB_CORRECTION_TRANSFER] = "transfer",
    };
    json_key(json, "corrected");
    if (!sv->corrected) {
        json_null(json);
        return;
    }
    json_obj(json);
    json_put_str(json, "kind", kinds[sv->correction]);
    json_put_uint(json, "offset", sv->corrected_at);
    if (sv->correction == RDB_CORRECTION_BYTE) {
        json_put_uint(json, "from", sv->corrected_from);
        json_put_uint(json, "to", sv->corrected_to);
    } else if (sv->correction != RDB_CORRECTION_TRANSFER) {
        json_put_uint(json, "length", sv->corrected_len);
    }
    if (sv->correction == RDB_CORRECTION_MISSING || sv->correction == RDB_CORRECTION_HEADER) {
        json_key(json, "bytes");
        json_bytes(json, rd_slice(sv->restored, (size_t)sv->corrected_len));
    }
    if (sv->correction == RDB_CORRECTION_EXCHANGED)
        json_put_uint(json, "other", sv->corrected_other);
    json_end(json);
}

static void put_transfer(struct json_write *json, const struct rdb_salvage_result *sv)
{
    static const char *const before[] = {[RDB_BEFORE_NONE] = "none",
                                         [RDB_BEFORE_REPLICATION] = "replication",
                                         [RDB_BEFORE_TEXT] = "text",
                                         [RDB_BEFORE_BYTES] = "bytes",
                                         [RDB_BEFORE_SNAPSHOT] = "snapshot"};
    json_key(json, "transfer");
    if (sv->before == RDB_BEFORE_NONE && sv->after_len == 0 && sv->text == 0) {
        json_null(json);
        return;
    }
    json_obj(json);
    json_put_str(json, "before", before[sv->before]);
    json_put_uint(json, "before_length", sv->before_len);
    json_put_uint(json, "after_length", sv->after_len);
    json_put_bool(json, "crlf", (sv->text & RDB_TEXT_CRLF) != 0);
    json_put_bool(json, "utf8", (sv->text & RDB_TEXT_UTF8) != 0);
    json_end(json);
}

static void put_salvage(struct json_write *json, const struct check_file *file)
{
    const struct rdb_salvage_result *sv = &file->salvage;
    json_key(json, "salvage");
    if (!file->searched) {
        json_null(json);
        return;
    }
    json_obj(json);
    json_put_str(json, "dialect", rdb_dialect_name(sv->dialect));
    json_put_int(json, "version", sv->version);
    json_put_bool(json, "guessed_version", sv->guessed_version);
    json_put_uint(json, "keys", sv->keys);
    json_put_uint(json, "keys_dropped", sv->keys_dropped);
    json_put_uint(json, "keys_partial", sv->keys_partial);
    json_put_uint(json, "keys_unwanted", sv->keys_unwanted);
    json_put_uint(json, "modules_left_out", sv->modules_left_out);
    json_put_bool(json, "proved", sv->proved);
    put_corrected(json, sv);
    put_transfer(json, sv);
    json_put_uint(json, "keys_doubtful", sv->keys_doubted);
    json_put_uint(json, "keys_left_out", sv->keys_left_out);
    json_put_uint(json, "n_ranges", sv->ranges);
    json_put_uint(json, "bytes_lost", sv->bytes_lost);
    json_put_offset(json, "unpacked_until", file->torn);
    json_put_bool(json, "found_end", sv->found_end);
    put_losses(json, "ranges", file, false);
    put_losses(json, "dropped", file, true);
    put_runs(json, file);
    put_out(json, file);
    if (file->nothing_matched)
        json_put_bool(json, "nothing_matched", true);
    json_end(json);
}

static void put_other_kind(struct json_write *json, const struct check_file *file)
{
    struct rd_err err = check_other_kind(file);
    cli_json_err(json, &err);
}

static void put_checked(struct json_write *json, const struct check_file *file)
{
    const struct rdb_check_result *res = &file->res;
    json_put_str(json, "kind", file->kind != NULL ? file->kind->word : "rdb");
    json_put_offset(json, "size", file->size);
    put_format(json, file);
    put_content(json, file);
    put_sum(json, res);
    json_put_uint(json, "end", res->end);
    json_put_uint(json, "trailing", res->trailing);
    json_put_offset(json, "damage_offset", file->damage);
    json_put_offset(json, "breaks_at", res->damaged ? res->err.offset : RD_NO_OFFSET);
    json_put_offset(json, "broken_record", res->damaged ? res->record : RD_NO_OFFSET);
    json_key(json, "damage");
    if (file->kind != NULL)
        put_other_kind(json, file);
    else if (res->damaged)
        cli_json_err(json, &res->err);
    else
        json_null(json);
    findings_json(json, &file->findings, false);
    findings_json_total(json, res->errors, res->warnings, res->infos);
    put_salvage(json, file);
}

void check_json_put(struct json_write *json, const struct check_file *file)
{
    json_obj(json);
    json_key(json, "file");
    json_bytes(json, rd_slice_str(file->path));
    json_put_str(json, "verdict", check_verdict_word(file->verdict));
    if (file->err.code != RD_ERR_OK) {
        json_key(json, "error");
        cli_json_err(json, &file->err);
    }
    if (file->checked)
        put_checked(json, file);
    json_end(json);
}
