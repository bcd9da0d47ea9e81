#include "rdb/check.h"

#include "base/copy.h"
#include "base/crc16.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/worker.h"
#include "rdb/foreign.h"
#include "rdb/imports.h"
#include "rdb/keylog.h"
#include "rdb/library.h"
#include "rdb/read/reader_impl.h"
#include "rdb/read/slot_info.h"
#include "rdb/reader.h"
#include "rdb/rest.h"
#include "rdb/unread.h"
#include "rdb/name_match.h"
#include "rdb/version.h"

#include <stdio.h>

enum { DATABASES_DEFAULT = 16, MODULES_KEPT = 32, WAITING = 1024 };

/* The announced numbers of a range of keys, and the numbers read. */
struct announced {
    bool open;
    uint64_t offset;
    uint64_t name; /* database or slot */
    uint64_t keys, expires;
    uint64_t seen_keys, seen_expires;
};

struct check {
    struct rdb_check_opts opts;
    struct rdb_check_result res;
    struct rdb_reader *reader;
    struct rd_worker *worker;
    struct rdb_keylog keys;
    struct rd_buf same_hash; /* struct rdb_suspect: keys whose hash an earlier key has */
    struct rdb_suspect waiting[WAITING]; /* to be compared */
    size_t n_waiting;
    uint64_t begin; /* where the snapshot begins in its source */
    struct announced db;
    struct announced slot;
    uint64_t db_now;
    struct rd_slice key; /* its name, during its event */
    uint64_t key_len;
    const struct rdb_type *type;
    uint64_t record;
    uint64_t modules[MODULES_KEPT];
    size_t n_modules;
    uint64_t empty_at;           /* start of the previous key, if it was empty; or RD_NO_OFFSET */
    bool zeros;                  /* a run of empty keys was reported */
    bool had_update;             /* a key can come again, and sizes mean nothing */
    struct rdb_imports *imports; /* NULL: none */
    uint64_t n_scripts;          /* fields named "lua" */
    uint64_t libraries_compiled, scripts_compiled;
    bool done;      /* the end mark was read */
    bool dragonfly; /* the field "redis-ver" names it */
    char text[256];
    struct rd_err *err;
};

struct finding {
    const char *word;
    enum rdb_severity severity;
};

static const struct finding findings[] = {
#define X(name, number, word, severity) [number] = {word, RDB_SEVERITY_##severity},
    RDB_FINDINGS(X)
#undef X
};

const char *rdb_severity_name(enum rdb_severity severity)
{
    static const char *const names[] = {"info", "warning", "error"};
    return names[severity];
}

static void count(struct rdb_check_result *res, enum rdb_severity severity)
{
    if (severity == RDB_SEVERITY_ERROR)
        res->errors++;
    else if (severity == RDB_SEVERITY_WARNING)
        res->warnings++;
    else
        res->infos++;
}

/* In a version that is not known yet, what would be damage may be as it must be. */
static void count_and_report(struct check *c, const struct rdb_finding *found)
{
    struct rdb_finding f = *found;
    bool may_be_so = c->res.newer && f.id != RDB_FINDING_UNSUPPORTED;
    if (may_be_so && f.severity == RDB_SEVERITY_ERROR)
        f.severity = RDB_SEVERITY_WARNING;
    count(&c->res, f.severity);
    if (c->opts.finding != NULL)
        c->opts.finding(c->opts.ctx, &f);
}

static void report_finding(struct check *c, struct rdb_finding *f)
{
    f->db = c->db_now;
    if (f->has_key) {
        f->key_len = c->key.len;
        f->key = rd_slice(c->key.ptr,
                          c->key.len < RDB_FINDING_KEY_MAX ? c->key.len : RDB_FINDING_KEY_MAX);
        f->type = c->type;
        f->record = c->record;
    }
    count_and_report(c, f);
}

static void report(struct check *c, enum rdb_finding_id id, uint64_t offset, const char *text)
{
    struct rdb_finding f = {.id = id,
                            .word = findings[id].word,
                            .severity = findings[id].severity,
                            .offset = offset,
                            .inner = RD_NO_OFFSET,
                            .record = RD_NO_OFFSET,
                            .text = text};
    report_finding(c, &f);
}

static void report_key(struct check *c, enum rdb_finding_id id, uint64_t offset, const char *text)
{
    struct rdb_finding f = {.id = id,
                            .word = findings[id].word,
                            .severity = findings[id].severity,
                            .offset = offset,
                            .inner = RD_NO_OFFSET,
                            .has_key = true,
                            .text = text};
    report_finding(c, &f);
}

static void note(struct check *c, const struct rdb_event *ev)
{
    struct rdb_finding f = {.id = ev->note.id,
                            .word = rdb_note_word(ev->note.id),
                            .severity = rdb_note_severity(ev->note.id),
                            .offset = ev->offset,
                            .inner = ev->inner,
                            .record = ev->note.record,
                            .db = ev->note.db,
                            .key = ev->note.key,
                            .key_len = ev->note.key.len,
                            .type = ev->note.type,
                            .text = ev->note.text};
    f.has_key = ev->note.type != NULL;
    if (c->record == f.record)
        f.key_len = c->key_len;
    count_and_report(c, &f);
}

/* -- announced sizes -- */

/* Servers before 4.0 count keys that expired during the save, and omit them. */
static bool is_expired_gap(const struct check *c, const struct announced *p)
{
    return c->res.version <= 7 && p->keys > p->seen_keys && p->expires > p->seen_expires &&
           p->keys - p->seen_keys == p->expires - p->seen_expires;
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void settle(struct check *c, struct announced *p, enum rdb_finding_id id, const char *what)
{
    if (p->open && !c->had_update && !is_expired_gap(c, p) &&
        (p->keys != p->seen_keys || p->expires != p->seen_expires)) {
        snprintf(
            c->text, sizeof c->text,
            "%s %llu should have %llu key%s, %llu of them with an expiry; it has %llu and %llu",
            what, (unsigned long long)p->name, (unsigned long long)p->keys, plural(p->keys),
            (unsigned long long)p->expires, (unsigned long long)p->seen_keys,
            (unsigned long long)p->seen_expires);
        report(c, id, p->offset, c->text);
    }
    p->open = false;
}

static void set_announced(struct announced *p, uint64_t offset, uint64_t name, uint64_t keys,
                          uint64_t expires)
{
    *p = (struct announced){
        .open = true, .offset = offset, .name = name, .keys = keys, .expires = expires};
}

static void settle_all(struct check *c)
{
    settle(c, &c->slot, RDB_FINDING_SLOT_SIZE, "slot");
    settle(c, &c->db, RDB_FINDING_DB_SIZE, "database");
}

/* Valkey keeps slot sizes in aux fields. */
static void slot_aux(struct check *c, const struct rdb_event *ev)
{
    char tmp[RD_NUM_I64_MAX];
    struct rdb_slot_info info;
    struct rd_slice value = rdb_string_bytes(&ev->aux.value, tmp);
    if (!rd_slice_is(ev->aux.name, "slot-info") || !ev->aux.value.first)
        return;
    if (ev->aux.value.more || !rdb_slot_info_parse(value, &info)) {
        report(c, RDB_FINDING_SLOT_INFO, ev->offset,
               "slot-info without a slot and at least two numbers; Valkey does not load it");
        return;
    }
    settle(c, &c->slot, RDB_FINDING_SLOT_SIZE, "slot");
    set_announced(&c->slot, ev->offset, info.slot, info.keys, info.expires);
}

/* -- imports of slots -- */

static void report_imports(struct check *c)
{
    for (size_t i = 0; c->imports != NULL && i < c->imports->n; i++) {
        const struct rdb_import *import = &c->imports->of[i];
        snprintf(c->text, sizeof c->text,
                 "import of slots %s under way, job %s: the %llu key%s of these slots "
                 "belong%s to another node, and are not the data of this server yet",
                 import->ranges, import->job, (unsigned long long)import->keys,
                 plural(import->keys), import->keys == 1 ? "s" : "");
        report(c, RDB_FINDING_SLOT_IMPORT, import->offset, c->text);
    }
}

/* -- keys -- */

static void report_duplicate(struct check *c, const struct rdb_suspect *s, const char *text)
{
    if (c->had_update)
        return;
    struct rdb_finding f = {
        .id = RDB_FINDING_DUPLICATE_KEY,
        .word = findings[RDB_FINDING_DUPLICATE_KEY].word,
        .severity = findings[RDB_FINDING_DUPLICATE_KEY].severity,
        .offset = s->offset,
        .inner = RD_NO_OFFSET,
        .record = s->offset,
        .db = s->db,
        .has_key = true,
        .key =
            rd_slice(s->name, s->name_len < sizeof s->name ? (size_t)s->name_len : sizeof s->name),
        .key_len = s->name_len,
        .type = s->type,
        .text = text};
    count_and_report(c, &f);
}

static void duplicate_key(void *ctx, const struct rdb_suspect *s)
{
    report_duplicate(ctx, s, "key that the database already has; servers refuse to load it");
}

static void same_hash(void *ctx, const struct rdb_suspect *s)
{
    struct check *c = ctx;
    if (!rd_buf_add(&c->same_hash, s, sizeof *s))
        rd_err_nomem(c->err, sizeof *s);
}

/* Reports keys whose names occur twice, byte by byte. If the input can be read only once, the hash
 * decides, and the finding says so. */
static bool compare_names(struct check *c, struct rd_src *src)
{
    const struct rdb_suspect *s = (const struct rdb_suspect *)(const void *)c->same_hash.ptr;
    size_t n = c->same_hash.len / sizeof *s;
    struct rdb_name_match match;
    if (n == 0 || c->err->code != RD_ERR_OK)
        return c->err->code == RD_ERR_OK;
    rdb_name_match_init(&match, src, c->res.dialect, c->res.version);
    enum rdb_name_match_status st =
        rdb_name_match_find(&match, &c->keys.key, c->begin, c->res.end, s, n, duplicate_key, c);
    rdb_name_match_done(&match);
    rd_err_adopt(c->err, &match.err);
    for (size_t i = 0; st == RDB_NAME_UNKNOWN && i < n; i++)
        report_duplicate(c, &s[i], rdb_duplicate_unproved);
    return c->err->code == RD_ERR_OK;
}

/* Zeros read as empty strings under empty keys, three bytes each. True: this key is another one of
 * them. */
static bool is_zeros(struct check *c, const struct rdb_event *ev)
{
    bool empty = ev->key.name.len == 0 && ev->key.type->id == RDB_TYPE_STRING;
    bool zeros = empty && c->empty_at != RD_NO_OFFSET && ev->key.record == c->empty_at + 3;
    if (zeros && !c->zeros)
        report_key(c, RDB_FINDING_ZEROED, c->empty_at, "consecutive empty keys: a range of zeros");
    c->zeros = zeros;
    c->empty_at = empty ? ev->key.record : RD_NO_OFFSET;
    return zeros;
}

static bool compare_waiting(struct check *c)
{
    size_t n = c->n_waiting;
    c->n_waiting = 0;
    return rdb_keylog_add(&c->keys, c->waiting, n, c->err);
}

/* Keys are compared many at once: see rdb/keylog.h. */
static bool wait_to_compare(struct check *c, const struct rdb_event *ev)
{
    struct rd_slice name = ev->key.name;
    struct rdb_suspect *key = &c->waiting[c->n_waiting++];
    key->hash = rdb_keylog_hash(&c->keys, ev->key.db, name);
    key->offset = ev->key.record;
    key->db = ev->key.db;
    key->type = ev->key.type;
    key->name_len = name.len;
    rd_copy_short(key->name, name.ptr, name.len < sizeof key->name ? name.len : sizeof key->name);
    return c->n_waiting < WAITING || compare_waiting(c);
}

static void count_key(struct check *c, const struct rdb_event *ev)
{
    struct rdb_check_result *res = &c->res;
    bool expires = ev->key.expire_ms != RDB_NO_EXPIRE;
    res->keys++;
    res->keys_by_kind[ev->key.type->kind]++;
    res->expires += expires;
    res->expired += expires && c->opts.now_ms != 0 && ev->key.expire_ms < c->opts.now_ms;
    c->db.seen_keys++;
    c->db.seen_expires += expires;
    c->slot.seen_keys++;
    c->slot.seen_expires += expires;
    if (RD_UNLIKELY(c->imports != NULL))
        c->res.imported_keys += rdb_imports_count(c->imports, ev->key.name);
}

static bool key(struct check *c, const struct rdb_event *ev)
{
    struct rd_slice name = ev->key.name;
    c->key = name;
    c->key_len = name.len;
    c->type = ev->key.type;
    c->record = ev->key.record;
    count_key(c, ev);
    if (c->slot.open && rd_hash_slot(name) != c->slot.name)
        report_key(c, RDB_FINDING_SLOT_KEY, ev->key.record, "key that belongs to another slot");
    if (c->opts.quick)
        return true;
    return is_zeros(c, ev) || wait_to_compare(c, ev);
}

static void needs_module(struct check *c, uint64_t id, uint64_t offset)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    for (size_t i = 0; i < c->n_modules; i++)
        if (c->modules[i] >> 10 == id >> 10)
            return;
    if (c->n_modules == MODULES_KEPT)
        return;
    c->modules[c->n_modules++] = id;
    rdb_module_name(id, name);
    snprintf(c->text, sizeof c->text, "loads only on a server that knows module type %s", name);
    report(c, RDB_FINDING_MODULE, offset, c->text);
}

/* Code that is there as a whole. Returns whether it was compiled. */
static bool compile(struct check *c, uint64_t offset, const char *what, struct rd_slice code)
{
    if (c->opts.compile == NULL)
        return false;
    const char *fault = c->opts.compile(c->opts.ctx, code);
    if (fault != NULL) {
        snprintf(c->text, sizeof c->text, "%s that does not compile; servers refuse it: %s", what,
                 fault);
        report(c, RDB_FINDING_CODE, offset, c->text);
    }
    return true;
}

static void script(struct check *c, const struct rdb_event *ev)
{
    const struct rdb_string *code = &ev->aux.value;
    char tmp[RD_NUM_I64_MAX];
    c->n_scripts += !code->more;
    if (code->first && !code->more)
        c->scripts_compiled += compile(c, ev->offset, "script", rdb_string_bytes(code, tmp));
}

static void function(struct check *c, const struct rdb_event *ev)
{
    const struct rdb_string *code = &ev->function.code;
    char tmp[RD_NUM_I64_MAX];
    const char *fault;
    if (!code->more)
        c->res.functions++;
    if (ev->function.pre_ga)
        report(c, RDB_FINDING_FUNCTION_OLD, ev->offset,
               "function in the format of a 7.0 release candidate; later servers refuse it");
    else if (code->first && !(code->more && code->len == 0) &&
             (fault = rdb_library_fault(rdb_string_bytes(code, tmp), !code->more)) != NULL)
        report(c, RDB_FINDING_FUNCTION, ev->offset, fault);
    else if (code->first && !code->more)
        c->libraries_compiled += compile(c, ev->offset, "function library",
                                         rdb_library_body(rdb_string_bytes(code, tmp)));
}

static void select_db(struct check *c, const struct rdb_event *ev)
{
    settle_all(c);
    c->db_now = ev->db;
    c->res.dbs++;
    if (ev->db >= DATABASES_DEFAULT)
        report(c, RDB_FINDING_HIGH_DB, ev->offset,
               "database above 15: needs a server with more databases than the default");
}

static void trailer(struct check *c, const struct rdb_event *ev)
{
    struct rdb_check_result *res = &c->res;
    settle_all(c);
    res->stored = ev->trailer.stored;
    res->computed = ev->trailer.computed;
    if (!ev->trailer.present) {
        res->sum = RDB_SUM_NONE;
        report(c, RDB_FINDING_CHECKSUM_NONE, ev->offset, "this version has no checksum");
    } else if (ev->trailer.stored == 0) {
        res->sum = RDB_SUM_OFF;
        report(c, RDB_FINDING_CHECKSUM_OFF, ev->offset, "saved with checksum disabled");
    } else if (ev->trailer.stored == ev->trailer.computed) {
        res->sum = RDB_SUM_OK;
    } else {
        res->sum = RDB_SUM_BAD;
        snprintf(c->text, sizeof c->text, "stored checksum %016llx, computed %016llx",
                 (unsigned long long)ev->trailer.stored, (unsigned long long)ev->trailer.computed);
        report(c, RDB_FINDING_CHECKSUM, rdb_reader_record(c->reader), c->text);
    }
}

/* Dragonfly writes snapshots with types and opcodes of its own under the version of Redis. */
static void note_writer(struct check *c, const struct rdb_event *ev)
{
    char tmp[RD_NUM_I64_MAX];
    c->dragonfly |= rd_slice_is(ev->aux.name, "redis-ver") &&
                    rdb_foreign_is_dragonfly(rdb_string_bytes(&ev->aux.value, tmp));
}

static void report_new_version(struct check *c)
{
    int version = c->res.version;
    bool valkey = c->res.dialect == RDB_VALKEY;
    if (c->res.newer || version <= (valkey ? RDB_VERSION_VALKEY_WHOLE : RDB_VERSION_REDIS_WHOLE))
        return;
    snprintf(c->text, sizeof c->text,
             "%s can have types or opcodes that this program does not read: they are \"not "
             "supported\", not damage",
             rdb_version_text(c->res.dialect, version).s);
    report(c, RDB_FINDING_NEW_VERSION, 0, c->text);
}

static bool event(struct check *c, const struct rdb_event *ev)
{
    struct rdb_check_result *res = &c->res;
    switch (ev->kind) {
    case RDB_HEADER:
        res->has_header = true;
        res->dialect = ev->header.dialect;
        res->version = ev->header.version;
        res->newer = !rdb_version_known(res->dialect, res->version);
        report_new_version(c);
        return true;
    case RDB_AUX:
        res->aux += !ev->aux.value.more;
        note_writer(c, ev);
        if (rd_slice_is(ev->aux.name, "lua"))
            script(c, ev);
        slot_aux(c, ev);
        return true;
    case RDB_DB:
        select_db(c, ev);
        return true;
    case RDB_DB_SIZE:
        set_announced(&c->db, ev->offset, c->db_now, ev->db_size.keys, ev->db_size.expires);
        return true;
    case RDB_SLOT:
        settle(c, &c->slot, RDB_FINDING_SLOT_SIZE, "slot");
        set_announced(&c->slot, ev->offset, ev->slot.slot, ev->slot.keys, ev->slot.expires);
        return true;
    case RDB_SLOT_IMPORT:
        c->res.slot_imports++;
        return rdb_imports_begin(&c->imports, ev, c->err);
    case RDB_SLOT_RANGE:
        rdb_imports_range(c->imports, ev);
        return true;
    case RDB_FUNCTION:
        function(c, ev);
        return true;
    case RDB_MODULE_AUX:
        res->module_aux++;
        needs_module(c, ev->module.id, ev->offset);
        return true;
    case RDB_TEMPLATE:
        res->templates++;
        return true;
    case RDB_UPDATE:
        c->had_update = true;
        return true;
    case RDB_KEY:
        return key(c, ev);
    case RDB_VALUE:
        if (ev->value.type->kind == RDB_KIND_MODULE)
            needs_module(c, ev->value.module_id, ev->offset);
        return true;
    case RDB_NOTE:
        note(c, ev);
        return true;
    case RDB_TRAILER:
        trailer(c, ev);
        return true;
    default:
        return true;
    }
}

static bool structural(enum rd_err_code code)
{
    return code == RD_ERR_CORRUPT || code == RD_ERR_TRUNCATED || code == RD_ERR_UNSUPPORTED ||
           code == RD_ERR_LIMIT;
}

static enum rdb_finding_id finding_of(enum rd_err_code code)
{
    switch (code) {
    case RD_ERR_TRUNCATED:
        return RDB_FINDING_TRUNCATED;
    case RD_ERR_UNSUPPORTED:
        return RDB_FINDING_UNSUPPORTED;
    case RD_ERR_LIMIT:
        return RDB_FINDING_LIMIT;
    default:
        return RDB_FINDING_CORRUPT;
    }
}

/* The source is where the file cannot be read further, and its checksum covers the bytes before.
 * Reads the rest. If the last bytes are the checksum of all others, nothing is damaged. Where other
 * data follows a snapshot, its end is not known, and another checksum says nothing. */
static bool compare_sum(struct check *c, struct rd_src *src)
{
    uint64_t at = rd_src_offset(src);
    struct rdb_rest rest;
    if (c->res.version < RDB_VERSION_CHECKSUM || (c->opts.part && !rd_src_can_seek(src)))
        return true;
    if (!rdb_rest_read(src, rd_src_sum(src), &rest, c->err))
        return false;
    bool matches = rdb_rest_matches(&rest);
    if (matches || (rest.complete && rest.stored != 0 && !c->opts.part)) {
        c->res.stored = rest.stored;
        c->res.computed = rest.computed;
        c->res.sum = matches ? RDB_SUM_OK : RDB_SUM_BAD;
    }
    return !c->opts.part || rd_src_seek(src, at, c->err);
}

/* Whether what cannot be read is damaged, or not supported. *err: why the reader failed, or
 * RD_ERR_OK at the end of a file of a newer version. */
static bool classify(struct check *c, struct rd_src *src, struct rd_err *err)
{
    bool version = err->reason.id == RDB_REASON_VERSION && err->code == RD_ERR_UNSUPPORTED;
    if ((c->res.newer || rdb_unread_is_number(err)) && err->code != RD_ERR_OK &&
        !compare_sum(c, src))
        return false;
    if (c->res.newer)
        rdb_unread_newer(&c->res, err);
    else if (rdb_unread_is_number(err))
        rdb_unread_number(&c->res, c->dragonfly, err);
    else if (version && err->reason.args[0] <= err->reason.args[1])
        err->code = RD_ERR_CORRUPT; /* it exists nowhere */
    return true;
}

static void damaged(struct check *c, const struct rd_err *err)
{
    enum rdb_finding_id id = finding_of(err->code);
    c->res.damaged = true;
    c->res.err = *err;
    c->res.record = c->done ? err->offset : rdb_reader_record(c->reader);
    struct rdb_finding f = {.id = id,
                            .word = findings[id].word,
                            .severity = RDB_SEVERITY_ERROR,
                            .offset = err->offset,
                            .inner = err->inner,
                            .record = c->res.record,
                            .db = c->db_now,
                            .text = err->text};
    f.has_key = !c->done && rdb_reader_where(c->reader, &f.key, &f.type, &f.db);
    f.key_len = f.key.len;
    if (f.has_key && c->record == f.record)
        f.key_len = c->key_len;
    count_and_report(c, &f);
}

static bool is_data(struct rd_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] != 0 && s.ptr[i] != '\n' && s.ptr[i] != '\r')
            return true;
    return false;
}

static const char *what_follows(struct rd_slice s)
{
    enum rdb_dialect dialect;
    int version;
    if (rdb_header_parse(s, &dialect, &version))
        return ", which begin like another snapshot";
    return s.ptr[0] == '*' ? ", which look like the commands of an append-only log" : "";
}

/* Counts the bytes after the trailer. */
static bool trailing(struct check *c, struct rd_src *src)
{
    const char *what = "";
    struct rd_slice s;
    for (;;) {
        switch (rd_src_need(src, c->res.trailing == 0 ? RDB_MAGIC_LEN : 1, &s)) {
        case RD_SRC_OK:
        case RD_SRC_END:
            if (s.len == 0)
                break;
            if (c->res.trailing == 0)
                what = what_follows(s);
            c->res.trailing_data |= is_data(s);
            c->res.trailing += s.len;
            rd_src_consume(src, s.len);
            continue;
        case RD_SRC_FAIL:
            if (!structural(rd_src_err(src)->code)) {
                rd_err_adopt(c->err, rd_src_err(src));
                return false;
            }
            report(c, RDB_FINDING_CONTAINER, rd_src_offset(src), rd_src_err(src)->text);
            break;
        case RD_SRC_MORE:
            break;
        }
        break;
    }
    if (c->res.trailing > 0) {
        snprintf(c->text, sizeof c->text, "%llu byte%s after the end of the snapshot%s",
                 (unsigned long long)c->res.trailing, plural(c->res.trailing), what);
        report(c, RDB_FINDING_TRAILING, c->res.end, c->text);
    }
    return true;
}

/* Servers run the code of a library to load it. */
static void report_not_run(struct check *c)
{
    unsigned long long n = c->libraries_compiled;
    if (n == 0)
        return;
    snprintf(
        c->text, sizeof c->text,
        "the code of %llu function librar%s was compiled, but not run: servers refuse the file "
        "if it fails",
        n, n == 1 ? "y" : "ies");
    report(c, RDB_FINDING_NOT_RUN, RD_NO_OFFSET, c->text);
}

/* Servers compile the code when they load the file, and refuse the file if that fails. */
static void report_code(struct check *c)
{
    unsigned long long libraries = c->res.functions - c->libraries_compiled;
    unsigned long long scripts = c->n_scripts - c->scripts_compiled;
    int len = 0;
    report_not_run(c);
    if (libraries == 0 && scripts == 0)
        return;
    len += snprintf(c->text, sizeof c->text, "the code of ");
    if (libraries > 0)
        len += snprintf(c->text + len, sizeof c->text - (size_t)len, "%llu function librar%s",
                        libraries, libraries == 1 ? "y" : "ies");
    if (scripts > 0)
        len += snprintf(c->text + len, sizeof c->text - (size_t)len, "%s%llu script%s",
                        libraries > 0 ? " and " : "", scripts, scripts == 1 ? "" : "s");
    snprintf(c->text + len, sizeof c->text - (size_t)len,
             " was not compiled: servers refuse the file if it does not compile");
    report(c, RDB_FINDING_LUA, RD_NO_OFFSET, c->text);
}

static void report_enterprise(struct check *c)
{
    uint64_t first;
    unsigned long long n = rdb_reader_enterprise(c->reader, &first);
    /* After damage these are bytes like any others. */
    if (c->res.damaged && first >= c->res.err.offset)
        n = 0;
    c->res.enterprise = n;
    if (n == 0)
        return;
    snprintf(c->text, sizeof c->text,
             "%llu opcode%s of Redis Enterprise (107 or 121): other servers refuse the file", n,
             n == 1 ? "" : "s");
    report(c, RDB_FINDING_ENTERPRISE, first, c->text);
}

static bool finish(struct check *c, struct rd_src *src)
{
    if (!compare_waiting(c) || !rdb_keylog_finish(&c->keys, same_hash, c, c->err) ||
        !compare_names(c, src))
        return false;
    if (c->keys.lost > 0) {
        snprintf(c->text, sizeof c->text, "%llu key%s not checked for duplicates",
                 (unsigned long long)c->keys.lost, c->keys.lost == 1 ? " was" : "s were");
        report(c, RDB_FINDING_KEYS_SKIPPED, RD_NO_OFFSET, c->text);
    }
    report_imports(c);
    report_code(c);
    report_enterprise(c);
    if (c->res.expired > 0) {
        snprintf(c->text, sizeof c->text,
                 "%llu key%s expired: a master drops expired keys when it loads the file",
                 (unsigned long long)c->res.expired, c->res.expired == 1 ? " has" : "s have");
        report(c, RDB_FINDING_EXPIRED, RD_NO_OFFSET, c->text);
    }
    return c->res.damaged || c->opts.part || trailing(c, src);
}

static bool run(struct check *c, struct rd_src *src)
{
    struct rdb_event ev;
    enum rdb_status st;
    while ((st = rdb_reader_next(c->reader, &ev)) == RDB_EVENT) {
        if (!event(c, &ev))
            return false;
        if (c->opts.event != NULL)
            c->opts.event(c->opts.ctx, &ev);
        if (ev.kind == RDB_KEY && c->opts.tick != NULL)
            c->opts.tick(c->opts.ctx, ev.offset);
    }
    if (st == RDB_FAIL) {
        const struct rd_err *err = rdb_reader_err(c->reader);
        if (!structural(err->code)) {
            rd_err_adopt(c->err, err);
            return false;
        }
    }
    c->done = st != RDB_FAIL;
    c->res.end = rd_src_offset(src);
    struct rd_err why = *rdb_reader_err(c->reader);
    if (st == RDB_FAIL || c->res.newer) {
        if (!classify(c, src, &why))
            return false;
        damaged(c, &why);
    }
    return finish(c, src);
}

static bool open_reader(struct check *c, struct rd_src *src)
{
    const struct rdb_check_opts *opts = &c->opts;
    unsigned threads = opts->quick || opts->single_thread ? 1 : opts->threads;
    c->worker = rd_worker_new((threads == 0 ? RD_TEAM_WORKERS : threads) - 1);
    const struct rdb_reader_opts how =
        RDB_READER_OPTS(.detail = opts->quick ? RDB_DETAIL_FRAMES : RDB_DETAIL_CHECK,
                        .notes = !opts->quick, .batch = true, .newer = true, .updates = true,
                        .seed = {opts->seed[0], opts->seed[1]}, .worker = c->worker);
    return rdb_keylog_init(&c->keys, opts->spool, opts->seed, c->err) &&
           rdb_reader_new(&c->reader, src, &how, c->err);
}

bool rdb_check(struct rd_src *src, const struct rdb_check_opts *opts, struct rdb_check_result *ret,
               struct rd_err *err)
{
    struct rd_err own = {0};
    if (!rd_sized_is_set(ret, err))
        return false;
    struct check *c = rd_calloc(1, sizeof *c);
    rd_sized_return(ret, &RDB_CHECK_RESULT(), sizeof *ret);
    if (c == NULL)
        return rd_err_nomem(err, sizeof *c);
    c->err = err != NULL ? err : &own;
    c->empty_at = RD_NO_OFFSET;
    c->begin = rd_src_offset(src);
    bool ok = rd_sized_copy(&c->opts, sizeof c->opts, opts, c->err) && open_reader(c, src);
    if (ok)
        ok = run(c, src);
    rd_sized_return(ret, &c->res, sizeof c->res);
    rdb_reader_free(c->reader);
    rd_worker_free(c->worker);
    rdb_keylog_done(&c->keys);
    rd_buf_done(&c->same_hash);
    rd_free(c->imports);
    rd_free(c);
    return ok;
}
