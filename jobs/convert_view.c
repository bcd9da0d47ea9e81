/* What JSON lines and tables leave out.
 *
 * Both are views of the keys: data beside the keys does not stop a conversion, but it is reported
 * like that of --lossy. Lines of --meta hold functions and aux fields. */
#include "rdb/library.h"
#include "jobs/convert_impl.h"

static const char *reason(const struct convert *job, bool meta_helps)
{
    if (job->o.target == TO_CSV)
        return "a table has no column for it";
    return meta_helps ? "only --meta has lines for it" : "JSON lines do not hold it";
}

static void report(const struct convert *job, struct rdb_omission omission, bool of_key)
{
    if (of_key && job->view.type != NULL) {
        omission.type = job->view.type;
        omission.db = job->view.db;
        omission.key = rd_buf_slice(&job->view.name);
    }
    if (job->o.omitted != NULL)
        omitted_add(job->o.omitted, &omission);
}

static bool note_key(struct convert *job, const struct rdb_event *ev, struct rd_err *err)
{
    struct convert_view *view = &job->view;
    rd_buf_reset(&view->name);
    if (!rd_buf_add(&view->name, ev->key.name.ptr, ev->key.name.len))
        return rd_err_nomem(err, ev->key.name.len);
    view->type = ev->key.type;
    view->db = ev->key.db;
    if (job->o.target != TO_NDJSON && ev->key.meta.len > 0)
        view->n_metadata = ev->key.meta.ptr[1]; /* the number of classes */
    for (; view->n_metadata > 0; view->n_metadata--)
        report(job,
               (struct rdb_omission){.what = RDB_OMITTED_KEY_METADATA,
                                     .reason = reason(job, false),
                                     .offset = ev->offset},
               true);
    return true;
}

static void note_function(const struct convert *job, const struct rdb_event *ev)
{
    char digits[RD_NUM_I64_MAX];
    const struct rdb_string *code = &ev->function.code;
    struct rdb_omission omission = {
        .what = RDB_OMITTED_FUNCTION, .reason = reason(job, true), .offset = ev->offset};
    if (job->o.meta || !(code->first || code->is_int))
        return;
    if (!ev->function.pre_ga)
        omission.element = rdb_library_name(rdb_string_bytes(code, digits));
    report(job, omission, false);
}

static void note_module(const struct convert *job, const struct rdb_event *ev)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    rdb_module_name(ev->module.id, name);
    report(job,
           (struct rdb_omission){.what = RDB_OMITTED_MODULE_AUX,
                                 .reason = reason(job, false),
                                 .offset = ev->offset,
                                 .element = rd_slice_str(name)},
           false);
}

static void note_member(const struct convert *job, const struct rdb_event *ev)
{
    char digits[RD_NUM_I64_MAX];
    const struct rdb_string *member = &ev->aux.value;
    if (job->o.meta || rdb_beside_aux(ev->aux.name) != RDB_BESIDE_MEMBER ||
        !(member->first || member->is_int))
        return;
    report(job,
           (struct rdb_omission){.what = RDB_OMITTED_MEMBER_EXPIRY,
                                 .reason = reason(job, true),
                                 .offset = ev->offset,
                                 .element = rdb_string_bytes(member, digits)},
           true);
}

bool convert_view_note(struct convert *job, const struct rdb_event *ev, struct rd_err *err)
{
    switch (ev->kind) {
    case RDB_KEY:
        return note_key(job, ev, err);
    case RDB_FUNCTION:
        note_function(job, ev);
        return true;
    case RDB_MODULE_AUX:
        note_module(job, ev);
        return true;
    case RDB_AUX:
        note_member(job, ev);
        return true;
    case RDB_SLOT_IMPORT:
        report(job,
               (struct rdb_omission){.what = RDB_OMITTED_SLOT_IMPORT,
                                     .reason = reason(job, false),
                                     .offset = ev->offset,
                                     .element = ev->slot_import.job},
               false);
        return true;
    default:
        return true;
    }
}
