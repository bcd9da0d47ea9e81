#include "rdb/beside.h"

#include <string.h>

static const char mvcc[] = "mvcc-tstamp";

enum rdb_beside_aux rdb_beside_aux(struct rd_slice name)
{
    if (rd_slice_is(name, mvcc))
        return RDB_BESIDE_BEFORE;
    if (rd_slice_is(name, "keydb-subexpire-key"))
        return RDB_BESIDE_MEMBER;
    return rd_slice_is(name, "keydb-subexpire-when") ? RDB_BESIDE_WHEN : RDB_BESIDE_NONE;
}

/* A server that does not have the module would refuse the file because of this record. */
static void omit_module(struct rdb_beside *beside, const struct rdb_event *ev)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    rdb_module_name(ev->module.id, name);
    const struct rdb_omission omission = {.what = RDB_OMITTED_MODULE_AUX,
                                          .reason = "values of modules are excluded",
                                          .offset = ev->offset,
                                          .element = rd_slice_str(name)};
    beside->dropping = true;
    beside->n_omitted++;
    if (beside->omitted != NULL)
        beside->omitted(beside->omitted_ctx, &omission);
}

/* The field of a key that may be left out waits for the key. A longer one than KeyDB writes is
 * passed on. */
static bool hold_stamp(struct rdb_beside *beside, const struct rdb_string *value)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice text = rdb_string_bytes(value, tmp);
    if (value->more || !(value->first || value->is_int) || text.len > sizeof beside->held)
        return true;
    memcpy(beside->held, text.ptr, text.len);
    beside->held_len = text.len;
    beside->holds = true;
    return false;
}

static bool wants_aux(struct rdb_beside *beside, const struct rdb_event *ev)
{
    switch (rdb_beside_aux(ev->aux.name)) {
    case RDB_BESIDE_BEFORE:
        return hold_stamp(beside, &ev->aux.value);
    case RDB_BESIDE_MEMBER:
    case RDB_BESIDE_WHEN:
        return !beside->dropped_key;
    case RDB_BESIDE_NONE:
        break;
    }
    return true;
}

bool rdb_beside_wants_record(struct rdb_beside *beside, const struct rdb_event *ev)
{
    if (beside->dropping) {
        beside->dropping = ev->kind != RDB_VALUE_END;
        return false;
    }
    if (ev->kind == RDB_MODULE_AUX && beside->no_modules) {
        omit_module(beside, ev);
        return false;
    }
    return ev->kind != RDB_AUX || wants_aux(beside, ev);
}

void rdb_beside_drop(struct rdb_beside *beside)
{
    beside->dropped_key = true;
    beside->holds = false;
}

bool rdb_beside_keep(struct rdb_beside *beside, const struct rdb_event *key, struct rdb_event *ret)
{
    bool holds = beside->holds;
    beside->dropped_key = beside->holds = false;
    if (holds)
        *ret = (struct rdb_event){.kind = RDB_AUX,
                                  .offset = key->offset,
                                  .inner = RD_NO_OFFSET,
                                  .aux = {.name = rd_slice_str(mvcc),
                                          .value = {.ptr = beside->held,
                                                    .len = beside->held_len,
                                                    .total = beside->held_len,
                                                    .first = true}}};
    return holds;
}
