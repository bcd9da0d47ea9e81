#include "rdb/unread.h"

#include "rdb/version.h"

bool rdb_unread_is_number(const struct rd_err *err)
{
    return err->code == RD_ERR_UNSUPPORTED &&
           (err->reason.id == RDB_REASON_TYPE || err->reason.id == RDB_REASON_OPCODE);
}

void rdb_unread_newer(const struct rdb_check_result *res, struct rd_err *err)
{
    int newest = res->dialect == RDB_VALKEY ? RDB_VERSION_VALKEY_MAX : RDB_VERSION_REDIS_MAX;
    const struct rd_err_reason reason = {RDB_REASON_VERSION,
                                         {(uint64_t)res->version, (uint64_t)newest}};
    struct rd_err was = *err;
    bool stopped = was.code != RD_ERR_OK;
    uint64_t at = stopped ? was.offset : res->dialect == RDB_VALKEY ? 6 : 5;
    rd_err_reset(err);
    rd_err_set_reason(err, RD_ERR_UNSUPPORTED, at, reason,
                      "%s is newer than this program supports (%d)%s%s",
                      rdb_version_text(res->dialect, res->version).s, newest, stopped ? ": " : "",
                      stopped && rdb_unread_is_number(&was) ? "a value type or opcode is not known"
                      : stopped                             ? was.text
                                                            : "");
}

/* Types and opcodes that a known version has, and this program does not read. */
static bool is_not_read(const struct rdb_check_result *res, bool opcode, unsigned number)
{
    /* Later versions have types whose numbers are not known. */
    if (res->dialect == RDB_VALKEY)
        return res->version > RDB_VERSION_VALKEY_WHOLE;
    return res->version > RDB_VERSION_REDIS_WHOLE ||
           (!opcode && rdb_is_gcra(res->dialect, res->version, (uint8_t)number));
}

void rdb_unread_number(const struct rdb_check_result *res, bool dragonfly, struct rd_err *err)
{
    const struct rd_err was = *err;
    unsigned number = (unsigned)was.reason.args[0];
    bool opcode = was.reason.id == RDB_REASON_OPCODE;
    const char *what = opcode ? "opcode" : "value type";
    struct rdb_version_text version = rdb_version_text(res->dialect, res->version);
    if (!dragonfly && is_not_read(res, opcode, number))
        return;
    rd_err_reset(err);
    if (dragonfly)
        rd_err_set_reason(err, RD_ERR_UNSUPPORTED, was.offset, was.reason,
                          "%s %u is one of Dragonfly's own", what, number);
    else if (res->sum == RDB_SUM_OK)
        rd_err_set_reason(err, RD_ERR_UNSUPPORTED, was.offset, was.reason,
                          "%s %u is not known in %s; the checksum of the file matches, so it was "
                          "saved like this",
                          what, number, version.s);
    else
        rd_err_set_reason(err, RD_ERR_CORRUPT, was.offset, was.reason, "%s %u does not exist in %s",
                          what, number, version.s);
}
