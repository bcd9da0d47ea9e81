/* json.c - errors as JSON. */
#include "rdb/rdb.h"
#include "tools/cli/cli.h"

/* What an upgrade must support. */
static void put_reason(struct json_write *json, const struct rd_err_reason *reason)
{
    if (reason->id == RDB_REASON_VERSION) {
        json_put_uint(json, "rdb_version", reason->args[0]);
        json_put_uint(json, "newest_rdb_version", reason->args[1]);
    } else if (reason->id == RDB_REASON_TYPE) {
        json_put_uint(json, "value_type", reason->args[0]);
    }
}

void cli_json_err(struct json_write *json, const struct rd_err *err)
{
    json_obj(json);
    json_put_str(json, "code", rd_err_word(err->code));
    if (err->offset != RD_NO_OFFSET)
        json_put_uint(json, "offset", err->offset);
    if (err->inner != RD_NO_OFFSET)
        json_put_uint(json, "inner", err->inner);
    if (err->origin[0] != '\0')
        json_put_str(json, "origin", err->origin);
    if (err->sys != 0)
        json_put_int(json, "errno", err->sys);
    put_reason(json, &err->reason);
    json_put_str(json, "text", err->text);
    json_key(json, "doing");
    json_array(json);
    for (unsigned i = 0; i < err->n_doing; i++)
        json_str(json, err->doing[i]);
    json_end(json);
    json_end(json);
}
