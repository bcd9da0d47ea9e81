#include "base/mem.h"
#include "base/sized.h"
#include "rdb/beside.h"
#include "rdb/commands/commands_impl.h"
#include "rdb/library.h"
#include "rdb/omission_impl.h"
#include "rdb/plain.h"

#include <stdio.h>

enum { SINCE_FUNCTION = 10, SINCE_STREAM = 9, SINCE_ABSTTL = 9, SINCE_REPLACE = 7 };

#define CMD_PEXPIREAT "$9\r\nPEXPIREAT\r\n"

bool rdb_cmd_misuse(struct rdb_commands *c, const char *what)
{
    return rd_err_set(&c->err, RD_ERR_USAGE, RD_NO_OFFSET, "%s", what);
}

/* The expiries of members follow the value of their key. */
static bool has_key(const struct rdb_commands *c, enum rdb_omitted what)
{
    return c->state == CMD_KEY || c->state == CMD_VALUE ||
           (what == RDB_OMITTED_MEMBER_EXPIRY && c->type != NULL);
}

static struct rd_slice key_name(const struct rdb_commands *c)
{
    return rd_slice(c->key.ptr + c->key_at, c->key_len);
}

static bool fail_refused(struct rdb_commands *c, enum rdb_omitted what, const char *text)
{
    const struct rd_err_reason reason = {RDB_REASON_OMISSION, {what}};
    rd_err_set_reason(&c->err, RD_ERR_UNSUPPORTED, c->offset, reason, "%s", text);
    if (has_key(c, what)) {
        char name[128];
        rd_err_quote(name, sizeof name, key_name(c));
        rd_err_doing(&c->err, "%s %s in db %llu", rdb_kind_name(c->type->kind), name,
                     (unsigned long long)c->db);
    }
    return false;
}

static void report(struct rdb_commands *c, const struct cmd_refusal *r, const char *reason)
{
    struct rdb_omission omission = {.what = r->what,
                                    .reason = reason,
                                    .offset = c->offset,
                                    .element = r->element,
                                    .group = r->group};
    if (has_key(c, r->what)) {
        omission.type = c->type;
        omission.db = c->db;
        omission.key = key_name(c);
    }
    if (c->opts.omitted != NULL)
        c->opts.omitted(c->opts.omitted_ctx, &omission);
}

bool rdb_cmd_refuse(struct rdb_commands *c, const struct cmd_refusal *r)
{
    char reason[RD_ERR_TEXT_MAX];
    if (r->command != NULL)
        snprintf(reason, sizeof reason, "%s: the server has no %s", r->name, r->command);
    else
        snprintf(reason, sizeof reason, "%s: no command can create it", r->name);
    if (!c->opts.lossy)
        return fail_refused(c, r->what, reason);
    rdb_omitted_count(&c->loss, r->what);
    report(c, r, reason);
    return true;
}

bool rdb_commands_new(struct rdb_commands **ret, struct rd_sink *sink,
                      const struct rdb_commands_opts *opts, struct rd_err *err)
{
    struct rdb_commands *c = rd_calloc(1, sizeof *c);
    if (c == NULL)
        return rd_err_nomem(err, sizeof *c);
    if (!rd_sized_copy(&c->opts, sizeof c->opts, opts, err)) {
        rd_free(c);
        return false;
    }
    c->sink = sink;
    if (c->opts.max_elems == 0)
        c->opts.max_elems = RDB_COMMANDS_ELEMS;
    if (c->opts.max_bytes == 0)
        c->opts.max_bytes = RDB_COMMANDS_BYTES;
    c->selected = RDB_UNKNOWN;
    *ret = c;
    return true;
}

void rdb_commands_free(struct rdb_commands *c)
{
    if (c == NULL)
        return;
    struct rd_buf *bufs[] = {&c->out, &c->key, &c->held, &c->field, &c->after};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++)
        rd_buf_done(bufs[i]);
    rdb_cmd_stream_done(c);
    rd_free(c);
}

/* The end of every call: after a failure nothing more is accepted. */
static bool conclude(struct rdb_commands *c, bool ok, struct rd_err *err)
{
    if (RD_LIKELY(ok && !c->sink->failed))
        return true;
    if (c->err.code == RD_ERR_OK && c->sink->failed)
        rd_err_adopt(&c->err, rd_sink_err(c->sink));
    rd_err_nomem(&c->err, 0);
    c->failed = true;
    rd_err_adopt(err, &c->err);
    return false;
}

/* ---- keys ---- */

static bool select_db(struct rdb_commands *c)
{
    if (c->selected == c->db)
        return true;
    c->selected = c->db;
    return rdb_cmd_head(&c->out, 2, CMD_VERB6("SELECT")) && rdb_cmd_bulk_u64(&c->out, c->db);
}

/* Metadata precede their key, whose name is known now. */
static bool omit_metadata(struct rdb_commands *c)
{
    static const struct cmd_refusal metadata = {.what = RDB_OMITTED_KEY_METADATA,
                                                .name = "metadata of a key"};
    for (; c->n_metadata > 0; c->n_metadata--)
        if (!rdb_cmd_refuse(c, &metadata))
            return false;
    return true;
}

static bool begin_key(struct rdb_commands *c, const struct rdb_event *ev)
{
    if (ev->key.meta.len > 0)
        c->n_metadata = ev->key.meta.ptr[1]; /* the number of classes */
    c->state = CMD_KEY;
    c->type = ev->key.type;
    c->db = ev->key.db;
    c->expire_ms = ev->key.expire_ms;
    c->idle_s = ev->key.idle_s;
    c->freq = ev->key.freq;
    c->stream.announced.n = 0;
    rd_buf_reset(&c->key);
    if (!rdb_cmd_bulk(&c->key, ev->key.name))
        return false;
    c->key_len = ev->key.name.len;
    c->key_at = c->key.len - 2 - c->key_len;
    return omit_metadata(c);
}

/* Commands and checks that precede the creation of the key. */
static bool open_key(struct rdb_commands *c)
{
    return select_db(c) && (!c->opts.replace || rdb_cmd_head_key(c, 2, CMD_VERB3("DEL")));
}

static bool refuse_key(struct rdb_commands *c, const char *name, const char *command)
{
    if (!rdb_cmd_refuse(
            c, &(struct cmd_refusal){.what = RDB_OMITTED_KEY, .name = name, .command = command}))
        return false;
    c->state = CMD_SKIP;
    return true;
}

static bool begin_value(struct rdb_commands *c, const struct rdb_event *ev)
{
    if (ev->kind != RDB_VALUE)
        return rdb_cmd_misuse(c, "a key has no value");
    switch (c->type->kind) {
    case RDB_KIND_STRING:
        c->state = CMD_VALUE;
        return open_key(c) && rdb_cmd_head_key(c, 3, CMD_VERB3("SET"));
    case RDB_KIND_LIST:
    case RDB_KIND_SET:
    case RDB_KIND_ZSET:
    case RDB_KIND_HASH:
        if (c->type->id == RDB_TYPE_PATH_HASH)
            return refuse_key(c, "path hash", NULL);
        c->state = CMD_VALUE;
        return open_key(c) && rdb_cmd_collection_begin(c, ev);
    case RDB_KIND_STREAM:
        if (!rdb_cmd_has(c, SINCE_STREAM))
            return refuse_key(c, "stream", "XADD");
        c->state = CMD_VALUE;
        rdb_cmd_stream_begin(c);
        return open_key(c);
    case RDB_KIND_MODULE:
        return refuse_key(c, "module value", NULL);
    case RDB_KIND_ARRAY:
        break;
    }
    return refuse_key(c, "array", NULL);
}

static bool put_expiry(struct rdb_commands *c)
{
    return c->expire_ms == RDB_NO_EXPIRE ||
           (rdb_cmd_head_key(c, 3, CMD_PEXPIREAT) && rdb_cmd_bulk_i64(&c->out, c->expire_ms));
}

static bool end_value(struct rdb_commands *c)
{
    enum rdb_kind kind = c->type->kind;
    bool ok = kind == RDB_KIND_STREAM   ? rdb_cmd_stream_end(c)
              : kind == RDB_KIND_STRING ? true
                                        : rdb_cmd_collection_end(c);
    c->state = CMD_RECORDS;
    return ok && put_expiry(c) && rdb_cmd_flush(c, CMD_FLUSH);
}

static bool put_value(struct rdb_commands *c, const struct rdb_event *ev)
{
    bool ends;
    if (ev->kind == RDB_VALUE_END)
        return end_value(c);
    if (c->type->kind == RDB_KIND_STREAM)
        return rdb_cmd_stream_event(c, ev);
    if (ev->kind != RDB_ELEM)
        return rdb_cmd_misuse(c, "values must be given by element");
    if (c->type->kind == RDB_KIND_STRING)
        return rdb_cmd_piece(c, &ev->elem.str, &ends);
    return rdb_cmd_collection_elem(c, ev);
}

/* ---- records ---- */

static bool refuse_function(struct rdb_commands *c, const struct rdb_event *ev)
{
    const struct rdb_string *code = &ev->function.code;
    bool lacks = !rdb_cmd_has(c, SINCE_FUNCTION);
    char digits[RD_NUM_I64_MAX];
    struct cmd_refusal r = {.what = RDB_OMITTED_FUNCTION,
                            .name = "function",
                            .command = lacks ? "FUNCTION LOAD" : NULL};
    if (!ev->function.pre_ga)
        r.element = rdb_library_name(rdb_string_bytes(code, digits));
    c->state = code->more ? CMD_SKIP : CMD_RECORDS;
    return rdb_cmd_refuse(c, &r);
}

/* The module's name. */
static bool refuse_module_aux(struct rdb_commands *c, const struct rdb_event *ev)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    rdb_module_name(ev->module.id, name);
    c->state = CMD_SKIP;
    return rdb_cmd_refuse(c, &(struct cmd_refusal){.what = RDB_OMITTED_MODULE_AUX,
                                                   .name = "module record",
                                                   .element = rd_slice_str(name)});
}

static bool put_function(struct rdb_commands *c, const struct rdb_event *ev)
{
    bool ends;
    const struct rdb_string *code = &ev->function.code;
    if (code->first && (ev->function.pre_ga || !rdb_cmd_has(c, SINCE_FUNCTION)))
        return refuse_function(c, ev);
    if (code->first && (!rdb_cmd_head(&c->out, c->opts.replace ? 4 : 3, "$8\r\nFUNCTION\r\n") ||
                        !rdb_cmd_bulk_str(&c->out, "LOAD") ||
                        (c->opts.replace && !rdb_cmd_bulk_str(&c->out, "REPLACE"))))
        return false;
    if (!rdb_cmd_piece(c, code, &ends))
        return false;
    c->state = ends ? CMD_RECORDS : CMD_FUNCTION;
    return true;
}

/* Other aux fields do not belong to the data. */
static bool put_aux(struct rdb_commands *c, const struct rdb_event *ev)
{
    char digits[RD_NUM_I64_MAX];
    const struct rdb_string *member = &ev->aux.value;
    if (rdb_beside_aux(ev->aux.name) != RDB_BESIDE_MEMBER || !(member->first || member->is_int))
        return true;
    return rdb_cmd_refuse(c, &(struct cmd_refusal){.what = RDB_OMITTED_MEMBER_EXPIRY,
                                                   .name = "expiry of a member",
                                                   .element = rdb_string_bytes(member, digits)});
}

static bool put_record(struct rdb_commands *c, const struct rdb_event *ev)
{
    switch (ev->kind) {
    case RDB_KEY:
        return begin_key(c, ev);
    case RDB_FUNCTION:
        return put_function(c, ev);
    case RDB_MODULE_AUX:
        return refuse_module_aux(c, ev);
    case RDB_KEY_META:
        c->state = CMD_SKIP;
        c->n_metadata++;
        return true;
    case RDB_SLOT_IMPORT:
        return rdb_cmd_refuse(c, &(struct cmd_refusal){.what = RDB_OMITTED_SLOT_IMPORT,
                                                       .name = "import of slots",
                                                       .element = ev->slot_import.job});
    case RDB_AUX:
        return put_aux(c, ev);
    case RDB_HEADER:
    case RDB_DB:
    case RDB_DB_SIZE:
    case RDB_SLOT:
    case RDB_SLOT_RANGE:
    case RDB_KEY_META_BEGIN:
    case RDB_TEMPLATE:
    case RDB_TRAILER:
        return true;
    default:
        return rdb_cmd_misuse(c, "an event outside its record");
    }
}

/* Handles the end of a module's items, a value, or the rest of a function. */
static bool skip(struct rdb_commands *c, const struct rdb_event *ev)
{
    if (ev->kind == RDB_VALUE_END || (ev->kind == RDB_FUNCTION && !ev->function.code.more))
        c->state = CMD_RECORDS;
    return true;
}

static bool dispatch(struct rdb_commands *c, const struct rdb_event *ev)
{
    if (c->failed)
        return false;
    if (ev->kind == RDB_NOTE)
        return true;
    switch (c->state) {
    case CMD_VALUE:
        return put_value(c, ev);
    case CMD_RECORDS:
    case CMD_FUNCTION:
        return put_record(c, ev);
    case CMD_KEY:
        return begin_value(c, ev);
    case CMD_SKIP:
        return skip(c, ev);
    case CMD_PAYLOAD:
        break;
    }
    return rdb_cmd_misuse(c, "an event during a payload");
}

bool rdb_commands_put(struct rdb_commands *c, const struct rdb_event *ev, struct rd_err *err)
{
    c->offset = ev->offset;
    return conclude(c, dispatch(c, ev), err);
}

bool rdb_commands_pending(struct rdb_commands *c, const struct rdb_pending_ids *ids,
                          struct rd_err *err)
{
    return conclude(c, !c->failed && rdb_cmd_stream_announce(c, ids->ids, ids->n), err);
}

static bool put_texts(struct rdb_commands *c, const struct rdb_text *texts, size_t n)
{
    if (c->failed)
        return false;
    if (c->state == CMD_SKIP)
        return true;
    if (c->state != CMD_VALUE || c->type->kind == RDB_KIND_STRING ||
        c->type->kind == RDB_KIND_STREAM || c->has_ttl || (c->open && c->fixed))
        return rdb_cmd_misuse(c, "strings outside a collection");
    return rdb_cmd_collection_texts(c, texts, n);
}

bool rdb_commands_put_texts(struct rdb_commands *c, const struct rdb_text *texts, size_t n,
                            struct rd_err *err)
{
    return conclude(c, put_texts(c, texts, n), err);
}

/* ---- without events ---- */

#define SET_HEAD "*3\r\n" CMD_VERB3("SET")

static bool put_plain(struct rdb_commands *c, const struct rdb_plain *key)
{
    char digits[RD_NUM_I64_MAX];
    struct rd_slice value = key->value;
    if (key->is_int)
        value = rd_slice(digits, rd_num_put_i64(digits, key->num));
    if (c->opts.replace &&
        (!rdb_cmd_head(&c->out, 2, CMD_VERB3("DEL")) || !rdb_cmd_bulk(&c->out, key->name)))
        return false;
    if (!rdb_cmd_room(&c->out, sizeof SET_HEAD + key->name.len + value.len + 2 * CMD_AROUND))
        return false;
    memcpy(c->out.ptr + c->out.len, SET_HEAD, sizeof SET_HEAD - 1);
    c->out.len += sizeof SET_HEAD - 1;
    rdb_cmd_bulk_fast(&c->out, key->name);
    rdb_cmd_bulk_fast(&c->out, value);
    return key->expire_ms == RDB_NO_EXPIRE ||
           (rdb_cmd_head(&c->out, 3, CMD_PEXPIREAT) && rdb_cmd_bulk(&c->out, key->name) &&
            rdb_cmd_bulk_i64(&c->out, key->expire_ms));
}

static bool put_plain_keys(struct rdb_commands *c, uint64_t db, const struct rdb_plain *keys,
                           size_t n)
{
    if (c->failed)
        return false;
    if (c->state != CMD_RECORDS)
        return rdb_cmd_misuse(c, "keys outside their values");
    c->db = db;
    if (n > 0 && !select_db(c))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!put_plain(c, &keys[i]) || !rdb_cmd_flush(c, CMD_FLUSH))
            return false;
    return true;
}

bool rdb_commands_put_plain(struct rdb_commands *c, uint64_t db, const struct rdb_plain *keys,
                            size_t n, struct rd_err *err)
{
    return conclude(c, put_plain_keys(c, db, keys, n), err);
}

static bool put_entry(struct rdb_commands *c, struct rdb_stream_id id, const struct rdb_text *texts,
                      size_t n)
{
    if (c->failed)
        return false;
    if (c->state == CMD_SKIP)
        return true;
    if (c->state != CMD_VALUE || c->type->kind != RDB_KIND_STREAM || c->stream.strings_left > 0)
        return rdb_cmd_misuse(c, "an entry outside a stream");
    return rdb_cmd_stream_entry(c, id, texts, n);
}

bool rdb_commands_put_entry(struct rdb_commands *c, struct rdb_stream_id id,
                            const struct rdb_text *texts, size_t n, struct rd_err *err)
{
    return conclude(c, put_entry(c, id, texts, n), err);
}

/* ---- payloads ---- */

/* A TTL of 0 means none, so a key that expired long ago gets the next smallest. Servers before 5.0
 * know only relative times: PEXPIREAT follows there. */
static int64_t restore_ttl(const struct rdb_commands *c)
{
    if (c->expire_ms == RDB_NO_EXPIRE || !rdb_cmd_has(c, SINCE_ABSTTL))
        return 0;
    return c->expire_ms > 0 ? c->expire_ms : 1;
}

/* Omits what the server's RESTORE does not accept. */
static bool prepare_restore(struct rdb_commands *c)
{
    if (!rdb_cmd_has(c, SINCE_ABSTTL)) {
        c->idle_s = RDB_UNKNOWN;
        c->freq = RDB_UNKNOWN;
    }
    return select_db(c) && (!c->opts.replace || rdb_cmd_has(c, SINCE_REPLACE) ||
                            rdb_cmd_head_key(c, 2, CMD_VERB3("DEL")));
}

static bool has_absttl(const struct rdb_commands *c)
{
    return c->expire_ms != RDB_NO_EXPIRE && rdb_cmd_has(c, SINCE_ABSTTL);
}

static bool has_replace(const struct rdb_commands *c)
{
    return c->opts.replace && rdb_cmd_has(c, SINCE_REPLACE);
}

static bool begin_restore(struct rdb_commands *c, uint64_t len)
{
    struct rd_buf *out = &c->out;
    if (c->state != CMD_KEY)
        return rdb_cmd_misuse(c, "a payload must follow its key");
    if (!prepare_restore(c))
        return false;
    size_t n_args = 4u + has_replace(c) + has_absttl(c) + 2u * (c->idle_s != RDB_UNKNOWN) +
                    2u * (c->freq != RDB_UNKNOWN);
    if (!rdb_cmd_head_key(c, n_args, CMD_VERB7("RESTORE")) ||
        !rdb_cmd_bulk_i64(out, restore_ttl(c)) || !rdb_cmd_room(out, CMD_AROUND))
        return false;
    out->len = (size_t)(rdb_cmd_bulk_head(out->ptr + out->len, len) - out->ptr);
    if (!rdb_cmd_flush(c, 0))
        return false;
    c->payload_end = rd_sink_offset(c->sink) + len;
    c->state = CMD_PAYLOAD;
    return true;
}

bool rdb_commands_restore_begin(struct rdb_commands *c, uint64_t len, struct rd_sink **ret,
                                struct rd_err *err)
{
    if (!conclude(c, !c->failed && begin_restore(c, len), err))
        return false;
    *ret = c->sink;
    return true;
}

static bool end_restore(struct rdb_commands *c)
{
    struct rd_buf *out = &c->out;
    if (c->sink->failed)
        return false;
    if (c->state != CMD_PAYLOAD || rd_sink_offset(c->sink) != c->payload_end)
        return rdb_cmd_misuse(c, "a payload differs from its announced length");
    c->state = CMD_RECORDS;
    return rd_buf_add(out, "\r\n", 2) && (!has_replace(c) || rdb_cmd_bulk_str(out, "REPLACE")) &&
           (!has_absttl(c) || rdb_cmd_bulk_str(out, "ABSTTL")) &&
           (c->idle_s == RDB_UNKNOWN ||
            (rdb_cmd_bulk_str(out, "IDLETIME") && rdb_cmd_bulk_u64(out, c->idle_s))) &&
           (c->freq == RDB_UNKNOWN ||
            (rdb_cmd_bulk_str(out, "FREQ") && rdb_cmd_bulk_u64(out, c->freq))) &&
           (rdb_cmd_has(c, SINCE_ABSTTL) || put_expiry(c));
}

bool rdb_commands_restore_end(struct rdb_commands *c, struct rd_err *err)
{
    return conclude(c, !c->failed && end_restore(c), err);
}

static bool refuse(struct rdb_commands *c, const char *what)
{
    if (c->state != CMD_KEY)
        return rdb_cmd_misuse(c, "a value is refused after its key");
    if (!refuse_key(c, what, NULL))
        return false;
    c->state = CMD_RECORDS;
    return true;
}

bool rdb_commands_refuse(struct rdb_commands *c, const char *what, struct rd_err *err)
{
    return conclude(c, !c->failed && refuse(c, what), err);
}

static bool drop(struct rdb_commands *c)
{
    if (c->state != CMD_KEY)
        return rdb_cmd_misuse(c, "a value is dropped after its key");
    c->state = CMD_RECORDS;
    return true;
}

bool rdb_commands_drop(struct rdb_commands *c, struct rd_err *err)
{
    return conclude(c, !c->failed && drop(c), err);
}

void rdb_commands_selected(struct rdb_commands *c, uint64_t db)
{
    c->selected = db;
}

bool rdb_commands_select(struct rdb_commands *c, uint64_t db, struct rd_err *err)
{
    c->db = db;
    return conclude(c, !c->failed && select_db(c), err);
}

bool rdb_commands_end(struct rdb_commands *c, struct rd_err *err)
{
    bool whole = c->failed || c->state == CMD_RECORDS ||
                 rdb_cmd_misuse(c, "a snapshot ends in the middle of a record");
    return conclude(c, !c->failed && whole && rdb_cmd_flush(c, 0), err);
}

const struct rdb_omitted_counts *rdb_commands_loss(const struct rdb_commands *c)
{
    return &c->loss;
}
