/* part.c - keeps the elements of a collection that are intact before the damage.
 *
 * The record is read twice, because the number of intact elements must be known before the last of
 * them is written. The result is read again, because elements may be damaged before the damage is
 * detected: a collection that servers would refuse is not kept.
 */
#include "rdb/recover/recover_impl.h"

#include "base/mem.h"
#include "rdb/writer.h"

enum { PART_MAX = 16 << 20, WRITTEN_LEAST = 6, WRITTEN_MOST = 12 };

bool rdb_recover_part_possible(int version, const struct rdb_type *type)
{
    return version >= WRITTEN_LEAST && type != NULL && type->kind != RDB_KIND_STRING &&
           type->kind != RDB_KIND_MODULE && type->kind != RDB_KIND_ARRAY &&
           type->id != RDB_TYPE_PATH_HASH &&
           (type->family == RDB_FAMILY_VALKEY || type->since <= WRITTEN_MOST);
}

/* Whether it failed for a reason outside the file. */
static bool is_our_failure(const struct rd_err *cause, struct rd_err *err)
{
    if (cause->code != RD_ERR_IO && cause->code != RD_ERR_MEMORY)
        return false;
    rd_err_adopt(err, cause);
    return true;
}

static uint64_t count_whole(struct rdb_reader *r)
{
    struct rdb_event ev;
    uint64_t n = 0;
    uint64_t left = 0; /* strings of a stream entry */
    bool stream = false;
    while (rdb_reader_next(r, &ev) == RDB_EVENT) {
        if (ev.kind == RDB_GROUP || ev.kind == RDB_STREAM || ev.kind == RDB_VALUE_END)
            break;
        if (ev.kind == RDB_ENTRY) {
            stream = true;
            left = 2 * ev.entry.n_fields;
            n += left == 0;
        } else if (ev.kind == RDB_ELEM && !ev.elem.str.more) {
            n += stream ? --left == 0 : ev.elem.role != RDB_ROLE_FIELD;
        }
    }
    return n;
}

/* The writer, and how much was written. */
struct feeder {
    struct rdb_writer *w;
    uint64_t kept;
    struct rdb_stream_id last;
    struct rd_err err;
};

static bool put_event(struct feeder *f, struct rdb_event *ev)
{
    ev->raw = rd_slice(NULL, 0);
    if (ev->kind == RDB_VALUE)
        ev->value.count = ev->value.nodes = RDB_UNKNOWN;
    if (ev->kind == RDB_ENTRY)
        f->last = ev->entry.id;
    return rdb_writer_put(f->w, ev, &f->err);
}

/* Writes the first `whole` elements, or as many as are certain. */
static bool put_elements(struct feeder *f, struct rdb_reader *r, uint64_t whole)
{
    struct rdb_event ev;
    uint64_t left = 0;
    bool stream = false;
    uint64_t used = 0;
    while (f->kept < whole && used < PART_MAX && rdb_reader_next(r, &ev) == RDB_EVENT) {
        if (!put_event(f, &ev))
            return false;
        if (ev.kind == RDB_ENTRY) {
            stream = true;
            left = 2 * ev.entry.n_fields;
            f->kept += left == 0;
        } else if (ev.kind == RDB_ELEM) {
            used += ev.elem.str.is_int ? 8 : ev.elem.str.len + 8;
            if (!ev.elem.str.more)
                f->kept += stream ? --left == 0 : ev.elem.role != RDB_ROLE_FIELD;
        }
    }
    return true;
}

static bool put_end(struct feeder *f, enum rdb_kind kind)
{
    struct rdb_event ev = {.kind = RDB_STREAM};
    ev.stream.length = f->kept;
    ev.stream.last_id = f->last;
    ev.stream.entries_added = f->kept;
    ev.stream.has_offsets = true;
    if (kind == RDB_KIND_STREAM && !put_event(f, &ev))
        return false;
    ev = (struct rdb_event){.kind = RDB_VALUE_END};
    return put_event(f, &ev);
}

/* Whether servers accept the record. */
static bool is_sound(const struct rdb_recover_part *part, bool *ret, struct rd_err *err)
{
    struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .notes = true);
    struct rdb_reader *r = NULL;
    struct rd_src *src;
    struct rdb_event ev;
    *ret = false;
    if (!rd_src_open_memory(&src, rd_buf_slice(&part->record), NULL, err))
        return false;
    bool ok = rdb_reader_new_records(&r, src, part->dialect, part->out_version, &opts, err);
    if (ok) {
        while (rdb_reader_next(r, &ev) == RDB_EVENT) {
            if (ev.kind == RDB_NOTE && rdb_note_severity(ev.note.id) == RDB_SEVERITY_ERROR)
                break;
            *ret = ev.kind == RDB_VALUE_END;
        }
        ok = !is_our_failure(rdb_reader_err(r), err);
    }
    rdb_reader_free(r);
    rd_src_close(src);
    return ok;
}

/* Writes the record to part->record. A record that the writer refuses is not kept. */
static bool write_part(struct rdb_recover_part *part, struct rdb_reader *r, enum rdb_kind kind,
                       uint64_t whole, struct rd_err *err)
{
    /* The newest version that can be written has the same types as later ones. */
    int newest = part->dialect == RDB_VALKEY ? RDB_VERSION_VALKEY_MIN : WRITTEN_MOST;
    struct rdb_writer_opts opts =
        RDB_WRITER_OPTS(.dialect = part->dialect,
                        .version = part->out_version < newest ? part->out_version : newest);
    struct feeder f = {0};
    struct rd_sink *sink;
    if (!rd_sink_open_buf(&sink, &part->record, NULL, err))
        return false;
    bool done = rdb_writer_new(&f.w, sink, &opts, &f.err) && put_elements(&f, r, whole) &&
                put_end(&f, kind);
    rdb_writer_free(f.w);
    bool ok = rd_sink_close(sink, err) && !is_our_failure(&f.err, err);
    if (ok && done) {
        part->kept = f.kept;
        part->record.len -= RDB_MAGIC_LEN;
        memmove(part->record.ptr, part->record.ptr + RDB_MAGIC_LEN, part->record.len);
    }
    return ok;
}

bool rdb_recover_part_read(struct rdb_recover_part *part, struct rd_src *src,
                           const struct record *rec, struct rd_err *err)
{
    struct rdb_reader_opts opts = RDB_READER_OPTS();
    struct rdb_reader *r = NULL;
    uint64_t whole = 0;
    bool sound = true;
    bool ok = rd_src_seek(src, rec->start, err) &&
              rdb_reader_new_records(&r, src, part->dialect, part->version, &opts, err);
    if (ok) {
        whole = count_whole(r);
        ok = !is_our_failure(rdb_reader_err(r), err) && rd_src_seek(src, rec->start, err);
    }
    if (ok && whole > 0) {
        rdb_reader_restart(r, rec->db);
        ok = write_part(part, r, rec->type->kind, whole, err);
    }
    if (ok && part->kept > 0)
        ok = is_sound(part, &sound, err);
    if (!sound)
        part->kept = 0;
    rdb_reader_free(r);
    return ok;
}
