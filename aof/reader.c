#include "aof/reader.h"

#include <strings.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"

enum { MAGIC_LEN = 9 };

enum state {
    AT_FILE,     /* before a file */
    AT_CONTENT,  /* it is open; its first bytes are not read yet */
    AT_SNAPSHOT, /* AOF_RDB is to be returned */
    IN_SNAPSHOT, /* the caller may have read a part of it */
    AT_COMMANDS,
    AT_FILE_END,
    AT_END
};

struct aof_reader {
    const struct aof_manifest *manifest; /* NULL: one file */
    struct aof_reader_opts opts;
    struct aof_log_opts log_opts;
    struct rdb_reader_opts rdb_opts;
    enum state state;
    unsigned pass;  /* the type of files being read */
    size_t next;    /* of the manifest's files */
    size_t n_begun; /* number of files begun */
    struct rd_src *src;
    const struct aof_file *file;
    const char *name;
    enum aof_content content;
    struct aof_log *log;
    struct rdb_reader *rdb;
    uint64_t db;
    int64_t time_s;
    bool open;       /* a transaction */
    bool open_inner; /* a script in it, with a MULTI and an EXEC of its own */
    uint64_t inner;  /* the first MULTI in the transaction, or RD_NO_OFFSET */
    uint64_t multi;
    uint64_t number;
    uint64_t safe; /* of the previous file, when it was closed */
    bool refused;  /* the command at err.offset is complete, but not allowed there */
    struct rd_err err;
};

static bool copy_opts(struct aof_reader *r, const struct aof_reader_opts *opts, struct rd_err *err)
{
    return rd_sized_copy(&r->opts, sizeof r->opts, opts, err) &&
           rd_sized_copy(&r->log_opts, sizeof r->log_opts, r->opts.log, err) &&
           rd_sized_copy(&r->rdb_opts, sizeof r->rdb_opts, r->opts.rdb, err);
}

/* NULL: failed. */
static struct aof_reader *new_reader(const struct aof_reader_opts *opts, struct rd_err *err)
{
    struct aof_reader *r = rd_calloc(1, sizeof *r);
    if (r == NULL) {
        rd_err_nomem(err, sizeof *r);
        return NULL;
    }
    if (!copy_opts(r, opts, err)) {
        rd_free(r);
        return NULL;
    }
    r->time_s = AOF_NO_TIME;
    return r;
}

bool aof_reader_new(struct aof_reader **ret, const struct aof_manifest *manifest,
                    const struct aof_reader_opts *opts, struct rd_err *err)
{
    struct aof_reader *r = new_reader(opts, err);
    if (r == NULL)
        return false;
    if (r->opts.open == NULL) {
        aof_reader_free(r);
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "opts.open is not set");
    }
    r->manifest = manifest;
    *ret = r;
    return true;
}

bool aof_reader_new_file(struct aof_reader **ret, struct rd_src *src,
                         const struct aof_reader_opts *opts, struct rd_err *err)
{
    struct aof_reader *r = new_reader(opts, err);
    if (r == NULL)
        return false;
    r->src = src;
    r->name = rd_src_origin(src);
    *ret = r;
    return true;
}

static void close_file(struct aof_reader *r)
{
    r->safe = aof_reader_safe(r);
    aof_log_free(r->log);
    rdb_reader_free(r->rdb);
    r->log = NULL;
    r->rdb = NULL;
    if (r->manifest != NULL)
        rd_src_close(r->src);
    r->src = NULL;
}

void aof_reader_free(struct aof_reader *r)
{
    if (r == NULL)
        return;
    close_file(r);
    rd_free(r);
}

const struct rd_err *aof_reader_err(const struct aof_reader *r)
{
    return &r->err;
}

struct aof_log *aof_reader_log(struct aof_reader *r)
{
    return r->log;
}

uint64_t aof_reader_safe(const struct aof_reader *r)
{
    if (r->open)
        return r->multi;
    if (r->refused)
        return r->err.offset;
    return r->log != NULL ? aof_log_whole(r->log) : r->safe;
}

static enum aof_status fail(struct aof_reader *r)
{
    rd_err_origin(&r->err, r->name);
    return AOF_FAIL;
}

static enum aof_status fail_as(struct aof_reader *r, const struct rd_err *err)
{
    rd_err_adopt(&r->err, err);
    return fail(r);
}

static enum aof_status fail_at(struct aof_reader *r, enum rd_err_code code, uint64_t offset,
                               const char *text)
{
    rd_err_set(&r->err, code, offset, "%s", text);
    return fail(r);
}

static enum aof_status give_event(struct aof_reader *r, enum aof_event_kind kind,
                                  struct aof_event *ret)
{
    *ret = (struct aof_event){.kind = kind,
                              .file = r->file,
                              .name = r->name,
                              .index = r->n_begun - 1,
                              .content = r->content,
                              .offset = rd_src_offset(r->src),
                              .db = r->db,
                              .time_s = r->time_s,
                              .number = r->number};
    return AOF_EVENT;
}

/* The next file of the manifest, grouped by type; NULL: no more. */
static const struct aof_file *next_file(struct aof_reader *r)
{
    static const enum aof_type order[] = {AOF_BASE, AOF_HISTORY, AOF_INCR};
    for (; r->pass < sizeof order / sizeof *order; r->pass++, r->next = 0)
        while (r->next < aof_manifest_count(r->manifest)) {
            const struct aof_file *file = aof_manifest_file(r->manifest, r->next++);
            if (file->type == order[r->pass] && (file->type != AOF_HISTORY || r->opts.history))
                return file;
        }
    return NULL;
}

static enum aof_status open_file(struct aof_reader *r)
{
    if (r->manifest == NULL && r->n_begun > 0)
        return AOF_END;
    if (r->manifest != NULL) {
        const struct aof_file *file = next_file(r);
        if (file == NULL)
            return AOF_END;
        r->file = file;
        r->name = file->name;
        r->safe = 0;
        if (!r->opts.open(r->opts.ctx, file, &r->src, &r->err))
            return fail(r);
        if (aof_file_holds_snapshot(file) && !rd_src_unwrap(&r->src, &r->err)) {
            rd_src_close(r->src);
            r->src = NULL;
            return fail(r);
        }
    }
    r->n_begun++;
    r->db = 0;
    r->open = r->open_inner = false;
    r->state = AT_CONTENT;
    return AOF_EVENT;
}

static enum aof_status begin_commands(struct aof_reader *r)
{
    if (!aof_log_new(&r->log, r->src, &r->log_opts, &r->err))
        return fail(r);
    r->state = AT_COMMANDS;
    return AOF_EVENT;
}

static enum aof_status look_at_content(struct aof_reader *r, struct aof_event *ret)
{
    struct rd_slice s;
    enum rd_src_status status = rd_src_need(r->src, MAGIC_LEN, &s);
    if (status == RD_SRC_MORE)
        return AOF_MORE;
    if (status == RD_SRC_FAIL)
        return fail_as(r, rd_src_err(r->src));
    r->content = aof_content_of(s);
    if (r->content == AOF_EMPTY && r->file != NULL && aof_file_holds_snapshot(r->file))
        return fail_at(r, RD_ERR_TRUNCATED, 0, "the snapshot is empty: its data is lost");
    if (r->content == AOF_SNAPSHOT)
        r->state = AT_SNAPSHOT;
    else if (begin_commands(r) == AOF_FAIL)
        return AOF_FAIL;
    return give_event(r, AOF_FILE_BEGIN, ret);
}

static enum aof_status give_snapshot(struct aof_reader *r, struct aof_event *ret)
{
    if (!rdb_reader_new(&r->rdb, r->src, &r->rdb_opts, &r->err))
        return fail(r);
    r->state = IN_SNAPSHOT;
    give_event(r, AOF_RDB, ret);
    ret->snapshot = r->rdb;
    return AOF_EVENT;
}

static bool checksum_fits(struct aof_reader *r, const struct rdb_event *ev)
{
    if (!ev->trailer.summed || ev->trailer.stored == 0 ||
        ev->trailer.stored == ev->trailer.computed)
        return true;
    fail_at(r, RD_ERR_CHECKSUM, ev->offset, "the checksum of the snapshot does not match");
    return false;
}

/* Skips the part of the snapshot that the caller did not read. */
static enum aof_status leave_snapshot(struct aof_reader *r)
{
    for (;;) {
        struct rdb_event ev = {0};
        enum rdb_status status = rdb_reader_next(r->rdb, &ev);
        if (status == RDB_EVENT && ev.kind == RDB_KEY)
            status = rdb_reader_skip_value(r->rdb);
        else if (status == RDB_EVENT && ev.kind == RDB_TRAILER && !checksum_fits(r, &ev))
            return AOF_FAIL;
        if (status == RDB_MORE)
            return AOF_MORE;
        if (status == RDB_FAIL)
            return fail_as(r, rdb_reader_err(r->rdb));
        if (status == RDB_END)
            break;
    }
    rdb_reader_free(r->rdb);
    r->rdb = NULL;
    rd_src_sum_stop(r->src);
    return begin_commands(r);
}

/* The database of a SELECT. "CRLF $LEN CRLF DIGITS CRLF" follows the name, even if the log returns
 * only names. */
static void select_db(struct aof_reader *r, const struct aof_log_entry *entry)
{
    const struct rd_slice name = entry->command.argv[0];
    const uint8_t *p = name.ptr + name.len + 2;
    const uint8_t *end = entry->bytes.ptr + entry->bytes.len;
    if (entry->command.argc != 2)
        return;
    const uint8_t *lf = memchr(p, '\n', (size_t)(end - p));
    uint64_t db;
    if (lf != NULL && end - lf > 3 && rd_num_get_u64(rd_slice(lf + 1, (size_t)(end - lf) - 3), &db))
        r->db = db;
}

static bool is(struct rd_slice name, const char *word)
{
    return strncasecmp((const char *)name.ptr, word, name.len) == 0;
}

static enum aof_status inner_fails(struct aof_reader *r)
{
    return fail_at(r, RD_ERR_CORRUPT, r->inner,
                   "MULTI inside a transaction, and an EXEC is missing");
}

/* Redis 3.2 writes MULTI and EXEC for a script that calls redis.replicate_commands(), also where
 * the script runs in a transaction. */
static enum aof_status multi(struct aof_reader *r, uint64_t offset, struct aof_event *ret)
{
    r->refused = r->open_inner;
    if (r->open_inner)
        return inner_fails(r);
    if (r->open) {
        ret->inner = r->open_inner = true;
        if (r->inner == RD_NO_OFFSET)
            r->inner = offset;
        return AOF_EVENT;
    }
    r->open = ret->in_multi = true;
    r->inner = RD_NO_OFFSET;
    r->multi = offset;
    return AOF_EVENT;
}

static enum aof_status exec(struct aof_reader *r, uint64_t offset, struct aof_event *ret)
{
    r->refused = !r->open;
    if (!r->open)
        return fail_at(r, RD_ERR_CORRUPT, offset, "EXEC outside a transaction");
    ret->inner = r->open_inner;
    r->open = r->open_inner;
    r->open_inner = false;
    return AOF_EVENT;
}

/* Servers that load a log keep the transaction open. */
static enum aof_status discard(struct aof_reader *r, uint64_t offset)
{
    r->refused = true;
    return fail_at(r, RD_ERR_CORRUPT, offset, "DISCARD in a transaction");
}

/* The effect of a command on the following ones, and its own state. */
static enum aof_status follow(struct aof_reader *r, struct aof_event *ret)
{
    const struct rd_slice name = ret->entry.command.argv[0];
    if (name.len == 6 && is(name, "select"))
        select_db(r, &ret->entry);
    else if (name.len == 5 && is(name, "multi"))
        return multi(r, ret->entry.offset, ret);
    else if (name.len == 4 && is(name, "exec"))
        return exec(r, ret->entry.offset, ret);
    else if (name.len == 7 && is(name, "discard") && r->open)
        return discard(r, ret->entry.offset);
    return AOF_EVENT;
}

static enum aof_status take_entry(struct aof_reader *r, struct aof_event *ret)
{
    static const enum aof_event_kind kinds[] = {
        [AOF_LOG_COMMAND] = AOF_COMMAND,   [AOF_LOG_ANNOTATION] = AOF_ANNOTATION,
        [AOF_LOG_LONG] = AOF_LONG,         [AOF_LOG_PIECE] = AOF_PIECE,
        [AOF_LOG_LONG_END] = AOF_LONG_END,
    };
    ret->in_multi = r->open;
    ret->inner = false;
    ret->kind = kinds[ret->entry.kind];
    if (ret->kind == AOF_COMMAND) {
        r->number++;
        if (follow(r, ret) == AOF_FAIL)
            return AOF_FAIL;
    } else if (ret->kind == AOF_LONG) {
        r->number++;
    } else if (ret->kind == AOF_ANNOTATION) {
        (void)aof_annotation_time(ret->entry.bytes, &r->time_s);
    }
    ret->file = r->file;
    ret->name = r->name;
    ret->index = r->n_begun - 1;
    ret->content = r->content;
    ret->offset = ret->entry.offset;
    ret->whole = 0;
    ret->snapshot = NULL;
    ret->db = r->db;
    ret->time_s = r->time_s;
    ret->multi = ret->in_multi ? r->multi : 0;
    ret->number = r->number;
    return AOF_EVENT;
}

static enum aof_status next_command(struct aof_reader *r, struct aof_event *ret)
{
    switch (aof_log_next(r->log, &ret->entry)) {
    case AOF_LOG_ENTRY:
        return take_entry(r, ret);
    case AOF_LOG_MORE:
        return AOF_MORE;
    case AOF_LOG_FAIL:
        return fail_as(r, aof_log_err(r->log));
    case AOF_LOG_END:
        break;
    }
    if (r->open && r->inner != RD_NO_OFFSET)
        return inner_fails(r);
    if (r->open)
        return fail_at(r, RD_ERR_TRUNCATED, rd_src_offset(r->src),
                       "the file ends inside a transaction");
    r->state = AT_FILE_END;
    give_event(r, AOF_FILE_END, ret);
    ret->whole = ret->offset;
    return AOF_EVENT;
}

/* A step without a result returns AOF_EVENT and a later state. */
enum aof_status aof_reader_next(struct aof_reader *r, struct aof_event *ret)
{
    enum aof_status status = AOF_EVENT;
    if (r->err.code != RD_ERR_OK)
        return AOF_FAIL;
    while (status == AOF_EVENT)
        switch (r->state) {
        case AT_FILE:
            status = open_file(r);
            break;
        case AT_CONTENT:
            return look_at_content(r, ret);
        case AT_SNAPSHOT:
            return give_snapshot(r, ret);
        case IN_SNAPSHOT:
            status = leave_snapshot(r);
            break;
        case AT_COMMANDS:
            return next_command(r, ret);
        case AT_FILE_END:
            close_file(r);
            r->state = AT_FILE;
            break;
        case AT_END:
            return AOF_END;
        }
    if (status == AOF_END)
        r->state = AT_END;
    return status;
}
