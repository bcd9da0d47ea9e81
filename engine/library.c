#include "engine/library.h"

#include "base/buf.h"
#include "base/crc64.h"
#include "base/endian.h"
#include "base/words.h"
#include "engine/snapshot_kept.h"

#include <strings.h>

enum { FOOTER = 10 /* version and checksum of a payload */, FILE_VERSION = 10 };

static const char wrong_payload[] = "DUMP payload version or checksum are wrong";
static const char no_header[] = "Missing library metadata";
static const char not_a_function[] = "given type is not a function";
static const char no_code[] = "Failed loading library payload";
static const char no_old_code[] = "Failed loading library blob"; /* of a release candidate */

/* ---- the first line ---- */

static bool is_name_byte(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The text of a word as a part of the code, where quotes surround it. A name that is written with
 * escapes is not found, and refused. */
static bool find_text(struct rd_slice line, struct rd_slice text, struct rd_slice *ret)
{
    const uint8_t *at = memmem(line.ptr, line.len, text.ptr, text.len);
    *ret = rd_slice(at, text.len);
    return at != NULL;
}

static bool find_name(struct rd_slice line, struct rd_slice word, struct engine_library *lib,
                      const char **ret_why)
{
    static const char key[] = "name=";
    size_t n = sizeof key - 1;
    if (word.len < n || strncasecmp((const char *)word.ptr, key, n) != 0) {
        *ret_why = "Invalid metadata value given";
        return false;
    }
    if (lib->name.len > 0) {
        *ret_why = "Invalid metadata value, name argument was given multiple times";
        return false;
    }
    bool sound = find_text(line, rd_slice(word.ptr + n, word.len - n), &lib->name);
    for (size_t i = 0; sound && i < lib->name.len; i++)
        sound = is_name_byte(lib->name.ptr[i]);
    if (!sound)
        *ret_why = "Library names can only contain letters, numbers, or underscores(_) and "
                   "must be at least one character long";
    return sound;
}

static bool find_parts(struct rd_slice line, const struct rd_words *words,
                       struct engine_library *lib, const char **ret_why)
{
    struct rd_slice first = words->argv[0];
    for (size_t i = 1; i < words->argc; i++)
        if (!find_name(line, words->argv[i], lib, ret_why))
            return false;
    if (lib->name.len > 0 && first.len > 2 &&
        find_text(line, rd_slice(first.ptr + 2, first.len - 2), &lib->language))
        return true;
    *ret_why = "Library name was not given";
    return false;
}

const uint8_t *engine_library_line_end(struct rd_slice code)
{
    const uint8_t *lf = memchr(code.ptr, '\n', code.len);
    return lf != NULL && memchr(code.ptr, '\0', (size_t)(lf - code.ptr)) == NULL ? lf : NULL;
}

bool engine_library_parse(struct rd_slice code, struct engine_library *ret, const char **ret_why)
{
    struct engine_library lib = {.code = code};
    if (code.len < 2 || code.ptr[0] != '#' || code.ptr[1] != '!') {
        *ret_why = no_header;
        return false;
    }
    const uint8_t *lf = engine_library_line_end(code);
    if (lf == NULL) {
        *ret_why = "Invalid library metadata";
        return false;
    }
    struct rd_slice line = rd_slice(code.ptr, (size_t)(lf - code.ptr));
    struct rd_words words = {0};
    bool ok = rd_words_split(&words, line) && words.argc > 0;
    if (ok)
        ok = find_parts(line, &words, &lib, ret_why);
    else
        *ret_why = "Invalid library metadata";
    rd_words_done(&words);
    if (ok)
        *ret = lib;
    return ok;
}

/* ---- records ---- */

struct walk {
    struct rd_buf code; /* of the current record */
    void *ctx;
    bool (*fn)(void *ctx, const struct engine_library *lib, struct rd_slice raw);
    bool unnamed; /* fn also gets code whose first line is wrong */
    const char *why;
};

static bool add_piece(struct walk *w, const struct rdb_string *s, struct rd_err *err)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice bytes = rdb_string_bytes(s, tmp);
    if (s->first)
        rd_buf_reset(&w->code);
    return rd_buf_add(&w->code, bytes.ptr, bytes.len) || rd_err_nomem(err, bytes.len);
}

static bool add_old(struct walk *w, const struct rdb_event *ev, struct rd_err *err)
{
    rd_buf_reset(&w->code);
    if (engine_extra_old_function(ev, &w->code))
        return true;
    w->why = no_old_code;
    return rd_err_set(err, RD_ERR_CORRUPT, ev->offset, "function in an unsupported format");
}

/* A whole library is in w->code. */
static bool take_library(struct walk *w, const struct rdb_event *ev, bool *ret_more,
                         struct rd_err *err)
{
    struct rd_slice code = rd_buf_slice(&w->code);
    struct engine_library lib;
    if (!engine_library_parse(code, &lib, &w->why)) {
        if (!w->unnamed)
            return rd_err_set(err, RD_ERR_CORRUPT, ev->offset, "library without a name");
        lib = (struct engine_library){.code = code};
    }
    *ret_more = w->fn(w->ctx, &lib, ev->raw);
    return true;
}

static bool read_records(struct walk *w, struct rdb_reader *reader, struct rd_slice records,
                         struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    bool more = true;
    while ((status = rdb_reader_next(reader, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_NOTE || (ev.kind == RDB_TRAILER && ev.offset > records.len))
            continue;
        if (ev.kind != RDB_FUNCTION) {
            w->why = not_a_function;
            return rd_err_set(err, RD_ERR_CORRUPT, ev.offset, "not a library");
        }
        if (!(ev.function.pre_ga ? add_old(w, &ev, err) : add_piece(w, &ev.function.code, err)))
            return false;
        if (!ev.function.code.more && !take_library(w, &ev, &more, err))
            return false;
        if (!more)
            return true;
    }
    if (status == RDB_END)
        return true;
    uint64_t at = rdb_reader_record(reader);
    uint8_t op = at < records.len ? records.ptr[at] : RDB_OP_FUNCTION2;
    w->why = op == RDB_OP_FUNCTION2         ? no_code
             : op == RDB_OP_FUNCTION_PRE_GA ? no_old_code
                                            : not_a_function;
    rd_err_adopt(err, rdb_reader_err(reader));
    return false;
}

/* Reads function records, with an end added for the reader. */
static bool walk_records(struct walk *w, struct rd_slice records, enum rdb_dialect dialect,
                         int version, struct rd_err *err)
{
    static const uint8_t end[1 + RDB_TRAILER_LEN] = {RDB_OP_EOF};
    const struct rdb_reader_opts how = RDB_READER_OPTS(.no_sum = true);
    struct rd_buf bytes = {0};
    struct rd_src *src = NULL;
    struct rdb_reader *reader;
    bool ok = rd_buf_add(&bytes, records.ptr, records.len) && rd_buf_add(&bytes, end, sizeof end);
    if (!ok)
        rd_err_nomem(err, records.len);
    ok = ok && rd_src_open_memory(&src, rd_slice(bytes.ptr, bytes.len), NULL, err);
    if (ok && rdb_reader_new_records(&reader, src, dialect, version, &how, err)) {
        ok = read_records(w, reader, records, err);
        rdb_reader_free(reader);
    } else {
        ok = false;
    }
    rd_src_close(src);
    rd_buf_done(&bytes);
    rd_buf_done(&w->code);
    return ok;
}

static struct engine_extra *extra(struct engine *e)
{
    if (e->extra == NULL) {
        e->extra = engine_calloc(1, sizeof *e->extra);
        e->extra->dialect = RDB_REDIS;
        e->extra->version = FILE_VERSION;
    }
    return e->extra;
}

static bool walk_engine(struct engine *e, struct walk *w, struct rd_err *err)
{
    const struct engine_extra *kept = e->extra;
    if (kept == NULL || kept->functions.len == 0)
        return true;
    int version = kept->version >= FILE_VERSION ? kept->version : FILE_VERSION;
    return walk_records(w, rd_slice(kept->functions.ptr, kept->functions.len), kept->dialect,
                        version, err);
}

/* ---- what is there ---- */

struct each {
    void *ctx;
    bool (*fn)(void *ctx, const struct engine_library *lib);
};

static bool on_each(void *ctx, const struct engine_library *lib, struct rd_slice raw)
{
    const struct each *each = ctx;
    (void)raw;
    return each->fn(each->ctx, lib);
}

bool engine_library_each(struct engine *e, void *ctx,
                         bool (*fn)(void *ctx, const struct engine_library *lib),
                         struct rd_err *err)
{
    struct each each = {ctx, fn};
    struct walk walk = {.ctx = &each, .fn = on_each};
    return walk_engine(e, &walk, err);
}

/* ---- changes ---- */

struct rewrite {
    struct rd_slice without; /* omits the library of this name */
    bool found;
    struct engine_kept_records records;
    uint64_t n;
};

static bool on_rewrite(void *ctx, const struct engine_library *lib, struct rd_slice raw)
{
    struct rewrite *r = ctx;
    (void)raw;
    if (rd_slice_eq(lib->name, r->without)) {
        r->found = true;
        return true;
    }
    engine_extra_add_function(&r->records, lib->code);
    r->n++;
    return true;
}

/* All libraries but one. */
static bool rewrite(struct engine *e, struct rd_slice without, struct rewrite *ret,
                    const char **ret_why)
{
    struct rd_err err = {0};
    struct walk walk = {.ctx = ret, .fn = on_rewrite};
    *ret = (struct rewrite){.without = without};
    if (walk_engine(e, &walk, &err))
        return true;
    engine_free(ret->records.ptr);
    *ret_why = "cannot read an existing library";
    return false;
}

static void adopt(struct engine *e, struct rewrite *r)
{
    struct engine_extra *kept = extra(e);
    engine_free(kept->functions.ptr);
    kept->functions = r->records;
    kept->n_functions = r->n;
}

static bool load(struct engine *e, struct rd_slice code, bool replace, const char **ret_why)
{
    struct engine_library lib;
    struct rewrite r;
    if (code.len > UINT32_MAX || !engine_library_parse(code, &lib, ret_why) ||
        !rewrite(e, lib.name, &r, ret_why))
        return false;
    if (r.found && !replace) {
        engine_free(r.records.ptr);
        *ret_why = "Library already exists";
        return false;
    }
    engine_extra_add_function(&r.records, code);
    r.n++;
    adopt(e, &r);
    return true;
}

bool engine_library_load(struct engine *e, struct rd_slice code, bool replace, const char **ret_why)
{
    struct engine_scope scope = engine_enter(e);
    bool ok = load(e, code, replace, ret_why);
    engine_leave(e, scope);
    engine_scripts_outdated(e);
    return ok;
}

bool engine_library_delete(struct engine *e, struct rd_slice name, const char **ret_why)
{
    struct rewrite r;
    struct engine_scope scope = engine_enter(e);
    bool ok = rewrite(e, name, &r, ret_why);
    if (ok && r.found) {
        adopt(e, &r);
    } else if (ok) {
        engine_free(r.records.ptr);
        *ret_why = "Library not found";
        ok = false;
    }
    engine_leave(e, scope);
    engine_scripts_outdated(e);
    return ok;
}

/* ---- DUMP and RESTORE ---- */

void engine_library_dump(const struct engine *e, struct rd_buf *out)
{
    const struct engine_extra *kept = e->extra;
    uint8_t footer[FOOTER] = {FILE_VERSION};
    size_t from = out->len;
    if (kept != NULL && kept->functions.len > 0)
        rd_buf_add(out, kept->functions.ptr, kept->functions.len);
    rd_buf_add(out, footer, 2);
    rd_put_le64(footer, rd_crc64(0, out->ptr + from, out->len - from));
    rd_buf_add(out, footer, 8);
}

static bool payload_holds(struct rd_slice payload, int *ret_version)
{
    if (payload.len < FOOTER)
        return false;
    size_t body = payload.len - FOOTER;
    *ret_version = payload.ptr[body] | payload.ptr[body + 1] << 8;
    if (rd_get_le64(payload.ptr + body + 2) != rd_crc64(0, payload.ptr, body + 2))
        return false;
    if (*ret_version < FILE_VERSION) /* libraries are written in one way only */
        *ret_version = FILE_VERSION;
    return true;
}

bool engine_library_read(struct rd_slice payload, void *ctx,
                         bool (*fn)(void *ctx, const struct engine_library *lib),
                         const char **ret_why)
{
    int version;
    struct rd_err err = {0};
    struct each each = {ctx, fn};
    struct walk walk = {.ctx = &each, .fn = on_each, .unnamed = true};
    if (!payload_holds(payload, &version)) {
        *ret_why = wrong_payload;
        return false;
    }
    bool ok = walk_records(&walk, rd_slice(payload.ptr, payload.len - FOOTER),
                           version >= 80 ? RDB_VALKEY : RDB_REDIS, version, &err);
    *ret_why = walk.why != NULL ? walk.why : "failed loading the given functions payload";
    return ok;
}

struct restore {
    struct engine *e;
    bool replace;
    const char *why;
};

static bool on_restore(void *ctx, const struct engine_library *lib, struct rd_slice raw)
{
    struct restore *r = ctx;
    (void)raw;
    return load(r->e, lib->code, r->replace, &r->why);
}

static bool restore(struct engine *e, struct rd_slice records, int version,
                    enum engine_library_policy policy, const char **ret_why)
{
    struct rd_err err = {0};
    struct restore r = {.e = e, .replace = policy == ENGINE_LIBRARY_REPLACE};
    struct walk walk = {.ctx = &r, .fn = on_restore};
    struct engine_kept_records before = {0};
    struct engine_extra *kept = extra(e);
    uint64_t n = kept->n_functions;
    engine_extra_add(&before, rd_slice(kept->functions.ptr, kept->functions.len));
    if (policy == ENGINE_LIBRARY_FLUSH) {
        kept->functions.len = 0;
        kept->n_functions = 0;
    }
    bool ok = walk_records(&walk, records, version >= 80 ? RDB_VALKEY : RDB_REDIS, version, &err);
    if (ok && r.why == NULL) {
        engine_free(before.ptr);
        return true;
    }
    engine_free(kept->functions.ptr);
    kept->functions = before;
    kept->n_functions = n;
    *ret_why = r.why != NULL ? r.why : "failed loading functions";
    return false;
}

bool engine_library_restore(struct engine *e, struct rd_slice payload,
                            enum engine_library_policy policy, const char **ret_why)
{
    int version;
    if (!payload_holds(payload, &version)) {
        *ret_why = wrong_payload;
        return false;
    }
    struct engine_scope scope = engine_enter(e);
    bool ok = restore(e, rd_slice(payload.ptr, payload.len - FOOTER), version, policy, ret_why);
    engine_leave(e, scope);
    engine_scripts_outdated(e);
    return ok;
}
