/* modules.c - what proves the type of a module.
 *
 * A server that does not know the type of one value refuses the whole file. Damage in the nine
 * bytes of the type makes another one of it, and other bytes can read as the value of a module. The
 * type is proved if it is that of a published module, or if another record of the file has it, too.
 */
#include "base/endian.h"
#include "base/mem.h"
#include "rdb/modules.h"
#include "rdb/recover/recover_impl.h"

void rdb_recover_modules_done(struct rdb_recover_modules *m)
{
    rd_free(m->ids);
    *m = (struct rdb_recover_modules){0};
}

static struct rdb_recover_module *find(const struct rdb_recover_modules *m, uint64_t id)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->ids[i].id == id)
            return &m->ids[i];
    return NULL;
}

static bool add(struct rdb_recover_modules *m, uint64_t id, struct rd_err *err)
{
    struct rdb_recover_module *known = find(m, id);
    if (known != NULL) {
        known->n++;
        return true;
    }
    if (m->n == RDB_RECOVER_MODULES_MAX)
        return true;
    if (m->ids == NULL)
        m->ids = rd_calloc(RDB_RECOVER_MODULES_MAX, sizeof *m->ids);
    if (m->ids == NULL)
        return rd_err_nomem(err, RDB_RECOVER_MODULES_MAX * sizeof *m->ids);
    m->ids[m->n++] = (struct rdb_recover_module){.id = id, .n = 1};
    return true;
}

static bool count_span(struct scan *s, const struct span *span, struct rdb_recover_modules *ret,
                       struct rd_err *err)
{
    struct record rec = {.db = span->db};
    if (span->from == span->to)
        return true;
    bool ok = rdb_recover_scan_at(s, span->from, span->db, UINT64_MAX);
    for (uint64_t at = span->from; ok && at < span->to; at = rec.end) {
        ok = rdb_recover_record(s, &rec) == RDB_RECOVER_OK;
        if (ok && rec.has_module && rec.refused == NULL && !add(ret, rec.module_id, err))
            return false;
    }
    if (!ok)
        rd_err_adopt(err, &s->err);
    return ok || rd_err_set(err, RD_ERR_IO, span->from, "the input changed while it was read");
}

/* Whether the file ends with a checksum; 0 is none. */
static bool has_sum(struct scan *s, const struct plan *plan, bool *ret, struct rd_err *err)
{
    struct rd_slice bytes;
    *ret = plan->version >= RDB_VERSION_CHECKSUM;
    if (!*ret)
        return true;
    if (!rd_src_seek(s->file, s->size - RDB_TRAILER_LEN, err))
        return false;
    if (rd_src_need(s->file, RDB_TRAILER_LEN, &bytes) != RD_SRC_OK) {
        rd_err_adopt(err, rd_src_err(s->file));
        return rd_err_set(err, RD_ERR_IO, s->size, "the input changed while it was read");
    }
    *ret = rd_get_le64(bytes.ptr) != 0;
    return true;
}

bool rdb_recover_modules_count(struct scan *s, const struct plan *plan,
                               struct rdb_recover_modules *ret, struct rd_err *err)
{
    bool sum = true;
    if (!plan->has_modules || s->sealed)
        return true;
    /* Nothing is known to be wrong. */
    bool whole = rdb_recover_is_whole(plan, s->size) && !plan->guessed;
    if (whole && !has_sum(s, plan, &sum, err))
        return false;
    ret->all = whole && !sum;
    for (size_t i = 0; i < plan->n; i++)
        if (plan->spans[i].grade != RDB_GRADE_NONE && !count_span(s, &plan->spans[i], ret, err))
            return false;
    return true;
}

bool rdb_recover_module_is_proved(const struct rdb_recover_modules *m, uint64_t id)
{
    const struct rdb_recover_module *known = find(m, id);
    return m->all || rdb_module_is_known(id) || (known != NULL && known->n > 1);
}
