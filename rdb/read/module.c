/* module.c - module values, walked without knowing the module.
 *
 *     { opcode:len  operand }*  0
 *
 * Operands: 1, 2: a length (signed or unsigned); 3: binary32, 4: binary64, both little-endian; 5: a
 * string.
 */
#include "rdb/read/reader_impl.h"

static int end_aux(struct rdb_reader *r, struct rdb_event *ev, const struct cur *c)
{
    ev->kind = RDB_VALUE_END;
    ev->offset = rdb_read_offset(r);
    ev->inner = RD_NO_OFFSET;
    ev->raw = rd_slice(c->base, (size_t)(c->p - c->base));
    ev->value_end.count = r->n_elems;
    ev->value_end.bytes = ev->offset - r->value_off;
    rdb_read_consume(r, ev->raw.len);
    r->step = r->meta_left > 0 ? rdb_key_meta_step : rdb_record_step;
    r->detail = r->opts.detail;
    return RDB_EVENT;
}

static bool parse_item(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    (void)r;
    (void)arg;
    const uint8_t *p;
    uint64_t opcode, wide;
    uint32_t narrow;
    if (!rdb_cur_len(c, &opcode))
        return false;
    ev->item.opcode = opcode;
    switch (opcode) {
    case RDB_MODULE_END:
    case RDB_MODULE_STRING:
        return true;
    case RDB_MODULE_SINT:
    case RDB_MODULE_UINT:
        return rdb_cur_len(c, &ev->item.uint);
    case RDB_MODULE_FLOAT:
        if (!cur_take(c, 4, &p))
            return false;
        narrow = rd_get_le32(p);
        memcpy(&ev->item.f32, &narrow, 4);
        return true;
    case RDB_MODULE_DOUBLE:
        if (!cur_take(c, 8, &p))
            return false;
        wide = rd_get_le64(p);
        memcpy(&ev->item.f64, &wide, 8);
        return true;
    default:
        return rdb_cur_refuse(c, c->base, CUR_DAMAGED, "unknown opcode in a module's value");
    }
}

static int string_item(struct rdb_reader *r, size_t prefix, struct rdb_event *ev)
{
    int st;
    if (rdb_read_gives(r) || r->module_aux) {
        st = r->pieces.active ? rdb_read_piece(r, ev)
                              : rdb_read_prefixed(r, RDB_MODULE_ITEM, prefix, ev);
        if (st == RDB_EVENT && !ev->item.str.more)
            r->n_elems++;
        return st;
    }
    if (prefix > 0)
        rdb_read_consume(r, prefix);
    r->tail_due = 1; /* inside of a string */
    st = rdb_read_pass(r, rdb_read_checks(r));
    if (st == STEP_ON) {
        r->tail_due = 0;
        r->n_elems++;
    }
    return st;
}

int rdb_module_run(struct rdb_reader *r, struct rdb_event *ev)
{
    if (r->pieces.active || r->tail_due)
        return string_item(r, 0, ev);
    struct cur c;
    int st = rdb_read_parse(r, parse_item, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    size_t size = (size_t)(c.p - c.base);
    if (ev->item.opcode == RDB_MODULE_STRING)
        return string_item(r, size, ev);
    if (ev->item.opcode == RDB_MODULE_END) {
        if (r->module_aux)
            return end_aux(r, ev, &c);
        rdb_read_consume(r, size);
        r->pc++;
        return STEP_ON;
    }
    ev->kind = RDB_MODULE_ITEM;
    ev->offset = rdb_read_offset(r);
    ev->inner = RD_NO_OFFSET;
    ev->raw = rd_slice(c.base, size);
    rdb_read_consume(r, size);
    r->n_elems++;
    return rdb_read_gives(r) || r->module_aux ? RDB_EVENT : STEP_ON;
}
