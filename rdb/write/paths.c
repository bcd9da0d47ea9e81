/* Path hashes of Valkey 9.2. The number of fields precedes them, so that those of one path wait in
 * a spool; the paths wait in another one for their number. */
#include "rdb/write/write.h"

static bool end_path(struct rdb_writer *w)
{
    struct rdb_path_writer *p = &w->paths;
    if (p->n_paths == 0)
        return true;
    if (p->field_open || p->n_fields == 0)
        return rdb_write_misuse(w, "a path has no fields, or a field no value");
    return rdb_put_len(w->body.sink, p->n_fields) && rdb_spool_move(&w->side, w->body.sink);
}

static bool begin_path(struct rdb_writer *w, const struct rdb_string *path)
{
    char tmp[RD_NUM_I64_MAX];
    if (!path->first || path->more)
        return rdb_write_misuse(w, "a path is not in one piece");
    if (!end_path(w) || !rdb_spool_begin(w, &w->side))
        return false;
    w->paths.n_paths++;
    w->paths.n_fields = 0;
    return rdb_put_string(&w->put, w->body.sink, rdb_string_bytes(path, tmp));
}

bool rdb_paths_begin(struct rdb_writer *w)
{
    w->paths = (struct rdb_path_writer){0};
    return rdb_spool_begin(w, &w->body);
}

bool rdb_paths_elem(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_path_writer *p = &w->paths;
    bool ends;
    if (ev->kind != RDB_ELEM)
        return rdb_write_misuse(w, "a path hash has paths and fields");
    if (ev->elem.role == RDB_ROLE_PATH)
        return begin_path(w, &ev->elem.str);
    if (p->n_paths == 0 || ev->elem.role != (p->field_open ? RDB_ROLE_VALUE : RDB_ROLE_FIELD))
        return rdb_write_misuse(w, "a field, its value or its path is missing");
    if (!rdb_write_string(w, w->side.sink, &ev->elem.str, &ends))
        return false;
    if (ends) {
        p->n_fields += p->field_open;
        p->field_open = !p->field_open;
    }
    return true;
}

bool rdb_paths_end(struct rdb_writer *w)
{
    uint64_t n = w->paths.n_paths;
    if (w->count != RDB_UNKNOWN && w->count != n)
        return rdb_write_misuse(w, "a value has another number of paths than announced");
    return end_path(w) && rdb_write_prefix(w, RDB_TYPE_PATH_HASH) && rdb_put_len(w->out, n) &&
           rdb_spool_move(&w->body, w->out);
}
