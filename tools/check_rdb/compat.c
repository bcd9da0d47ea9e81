/* compat.c - check-rdb under the name redis-check-rdb (or valkey-check-rdb).
 *
 * The lines, their order, their offsets and the exit statuses 0 and 1 are those of the servers' own
 * tool, so that scripts for it keep working; see docs/man. Differences: control characters in keys
 * are escaped, newer versions are read, and errors inside a value have messages of our own.
 *
 * That tool counts complete fields only: if the file ends inside a field, it prints the offset of
 * the field. To print the same offset, the code here walks the broken record again.
 */
#include "base/mem.h"
#include "rdb/reader.h"
#include "tools/check_rdb/check_rdb.h"

#include <inttypes.h>

enum { NO_TYPE = -1, VALUE_MAX = 1 << 20 };

struct compat {
    const char *path;
    struct rd_src *src;
    struct rdb_reader *reader;
    int64_t now_ms;
    const char *doing;
    bool has_header;
    bool in_key; /* the key is being read */
    struct rd_buf key;
    struct rd_buf aux;
    int type;              /* of the key, or NO_TYPE; 0 before the first key, as in that tool */
    bool expires, expired; /* of the key */
    uint64_t n_keys, n_expires, n_expired;
};

/* Prints bytes unchanged, except control characters. */
static void put_escaped(struct rd_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t c = bytes.ptr[i];
        bool c1 =
            c == 0xc2 && i + 1 < bytes.len && bytes.ptr[i + 1] >= 0x80 && bytes.ptr[i + 1] < 0xa0;
        if (c < 0x20 || c == 0x7f || c1 ||
            (c >= 0x80 && c < 0xa0 && (i == 0 || bytes.ptr[i - 1] < 0x80)))
            printf("\\x%02x", c);
        else
            putchar(c);
    }
}

static void put_offset(uint64_t offset)
{
    printf("[offset %" PRIu64 "] ", offset);
}

static void put_counts(const struct compat *c)
{
    printf("[info] %" PRIu64 " keys read\n", c->n_keys);
    printf("[info] %" PRIu64 " expires\n", c->n_expires);
    printf("[info] %" PRIu64 " already expired\n", c->n_expired);
}

static const char *type_word(int type)
{
    static const char *const words[] = {
        "string",         "list-linked",  "set-hashtable", "zset-v1",
        "hash-hashtable", "zset-v2",      "module-value",  "",
        "hash-zipmap",    "list-ziplist", "set-intset",    "zset-ziplist",
        "hash-ziplist",   "quicklist",    "stream",        "hash-listpack",
        "zset-listpack",  "quicklist-v2"};
    /* That tool's list omits 8, which no server writes; from 9 its numbers differ by one. */
    size_t index = type > 8 ? (size_t)type - 1 : (size_t)type;
    return index < sizeof words / sizeof *words ? words[index] : "unknown";
}

static void put_error(const struct compat *c, uint64_t offset, const char *text)
{
    puts("--- RDB ERROR DETECTED ---");
    put_offset(offset);
    puts(text);
    printf("[additional info] While doing: %s\n", c->doing);
    if (c->in_key) {
        fputs("[additional info] Reading key '", stdout);
        put_escaped(rd_buf_slice(&c->key));
        puts("'");
    }
    if (c->type != NO_TYPE)
        printf("[additional info] Reading type %d (%s)\n", c->type, type_word(c->type));
    put_counts(c);
}

/* ---- the broken record ---- */

struct probe {
    struct rd_src *src;
    uint64_t at; /* of the current field: the end of the complete fields */
};

static bool probe_bytes(struct probe *p, size_t n, struct rd_slice *ret)
{
    if (!rd_src_seek(p->src, p->at, NULL) || rd_src_need(p->src, n, ret) != RD_SRC_OK)
        return false;
    p->at += n;
    return true;
}

/* Reads a length: one byte and the bytes that it announces. special: a special string encoding. */
static bool probe_len(struct probe *p, uint64_t *ret, bool *ret_special)
{
    struct rd_slice s;
    if (!probe_bytes(p, 1, &s))
        return false;
    uint8_t first = s.ptr[0];
    *ret_special = first >> 6 == 3;
    *ret = first & 0x3f;
    if (first >> 6 == 1) {
        if (!probe_bytes(p, 1, &s))
            return false;
        *ret = *ret << 8 | s.ptr[0];
    } else if (first >> 6 == 2) {
        if (first > 0x81)
            return false;
        size_t n = first == 0x80 ? 4 : 8;
        if (!probe_bytes(p, n, &s))
            return false;
        *ret = 0;
        for (size_t i = 0; i < n; i++)
            *ret = *ret << 8 | s.ptr[i];
    }
    return true;
}

static bool probe_skip(struct probe *p, uint64_t n)
{
    if (rd_src_size(p->src) == RD_NO_OFFSET || n > rd_src_size(p->src) ||
        p->at > rd_src_size(p->src) - n)
        return false;
    p->at += n;
    return true;
}

static bool probe_string(struct probe *p)
{
    uint64_t len, whole;
    bool special;
    if (!probe_len(p, &len, &special))
        return false;
    if (!special)
        return probe_skip(p, len);
    if (len < 3)
        return probe_skip(p, UINT64_C(1) << len);
    return len == 3 && probe_len(p, &len, &special) && probe_len(p, &whole, &special) &&
           probe_skip(p, len);
}

/* Sets the state and moves p->at to the end of the complete fields. */
static void probe_opcode(struct compat *c, struct probe *p, uint8_t op)
{
    uint64_t n;
    bool special;
    switch (op) {
    case RDB_OP_AUX:
        c->doing = "read-aux";
        if (probe_string(p))
            probe_string(p);
        break;
    case RDB_OP_RESIZEDB:
    case RDB_OP_SELECTDB:
        c->doing = "read-len";
        if (probe_len(p, &n, &special) && op == RDB_OP_RESIZEDB)
            probe_len(p, &n, &special);
        break;
    case RDB_OP_MODULE_AUX:
        c->doing = "read-module-aux";
        probe_len(p, &n, &special);
        break;
    case RDB_OP_FUNCTION2:
    case RDB_OP_FUNCTION_PRE_GA:
        c->doing = "read-functions";
        probe_string(p);
        break;
    case RDB_OP_EOF:
        c->doing = "check-sum";
        break;
    default:
        c->doing = "read-type";
        break;
    }
}

/* Skips the expiry and access time that may precede a key; *ret is the opcode after them. */
static bool probe_prefix(struct compat *c, struct probe *p, uint8_t *ret)
{
    struct rd_slice s;
    uint64_t n;
    bool special;
    for (;;) {
        c->doing = "read-type";
        if (!probe_bytes(p, 1, &s))
            return false;
        *ret = s.ptr[0];
        bool whole;
        if (*ret == RDB_OP_EXPIRETIME || *ret == RDB_OP_EXPIRETIME_MS) {
            c->doing = "read-expire";
            whole = probe_skip(p, *ret == RDB_OP_EXPIRETIME ? 4 : 8);
        } else if (*ret == RDB_OP_FREQ) {
            whole = probe_skip(p, 1);
        } else if (*ret == RDB_OP_IDLE) {
            whole = probe_len(p, &n, &special);
        } else {
            return true;
        }
        if (!whole)
            return false;
    }
}

/* Whether the value is one string, plain or packed, and thus one field. */
static bool is_one_string(int type)
{
    return type == 0 || (type >= 9 && type <= 13) || type == 16 || type == 17;
}

/* Walks the record again up to the incomplete field. Returns true and sets *ret_type if its type is
 * unknown. */
static bool probe_record(struct compat *c, struct probe *p, uint8_t *ret_type)
{
    uint8_t op;
    if (!probe_prefix(c, p, &op))
        return false;
    enum rdb_dialect dialect = rdb_reader_dialect(c->reader);
    if (op >= RDB_OP_SLOT_INFO) {
        probe_opcode(c, p, op);
        return false;
    }
    *ret_type = op;
    if (rdb_type_find(dialect, rdb_reader_version(c->reader), op) == NULL)
        return true;
    c->type = op;
    c->doing = c->in_key ? "read-object-value" : "read-key";
    if (probe_string(p) && c->in_key && is_one_string(op))
        probe_string(p);
    return false;
}

/* ---- errors ---- */

static void bad_header(struct compat *c, struct probe *p)
{
    struct rd_slice s;
    char text[64];
    c->doing = "start";
    if (!probe_bytes(p, RDB_MAGIC_LEN, &s)) {
        put_error(c, 0, "Unexpected EOF reading RDB file");
        return;
    }
    size_t letters = memcmp(s.ptr, "REDIS", 5) == 0 ? 5 : memcmp(s.ptr, "VALKEY", 6) == 0 ? 6 : 0;
    snprintf(text, sizeof text, "Wrong signature trying to load DB from file");
    if (letters > 0) {
        int version = 0;
        for (size_t i = letters; i < RDB_MAGIC_LEN && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++)
            version = version * 10 + (s.ptr[i] - '0');
        snprintf(text, sizeof text, "Can't handle RDB format version %d", version);
    }
    put_error(c, RDB_MAGIC_LEN, text);
}

/* Prints an error inside a value, with a message of our own. */
static void bad_value(struct compat *c, uint64_t offset, const char *what)
{
    char text[RD_ERR_TEXT_MAX + 64];
    c->doing = c->in_key ? "read-object-value" : c->doing;
    snprintf(text, sizeof text, "Internal error in RDB reading offset %" PRIu64 " -> %s", offset,
             what);
    put_error(c, offset, text);
}

static void bad_record(struct compat *c, struct probe *p, const struct rd_err *err)
{
    char text[64];
    uint8_t type;
    p->at = rdb_reader_record(c->reader);
    if (probe_record(c, p, &type)) {
        snprintf(text, sizeof text, "Invalid object type: %u", type);
        put_error(c, p->at, text);
    } else if (err->code == RD_ERR_TRUNCATED) {
        bool one = !c->in_key || is_one_string(c->type);
        put_error(c, one ? p->at : err->offset, "Unexpected EOF reading RDB file");
    } else if (strcmp(c->doing, "read-functions") == 0) {
        put_error(c, err->offset, "Failed loading library, Failed loading library payload");
    } else {
        bad_value(c, is_one_string(c->type) ? p->at : err->offset, err->text);
    }
}

static void failed(struct compat *c, const struct rd_err *err)
{
    struct probe p = {0};
    if (!rd_src_open_file(&p.src, c->path, NULL, NULL))
        return;
    if (!c->has_header)
        bad_header(c, &p);
    else
        bad_record(c, &p, err);
    rd_src_close(p.src);
}

/* ---- events ---- */

static uint64_t end_of(const struct rdb_event *ev)
{
    return ev->offset + ev->raw.len;
}

static bool on_aux(struct compat *c, const struct rdb_event *ev)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice piece = rdb_string_bytes(&ev->aux.value, tmp);
    if (ev->aux.value.is_int || ev->aux.value.first)
        rd_buf_reset(&c->aux);
    if (c->aux.len < VALUE_MAX && !rd_buf_add(&c->aux, piece.ptr, piece.len))
        return false;
    if (!ev->aux.value.is_int && ev->aux.value.more)
        return true;
    put_offset(end_of(ev));
    fputs("AUX FIELD ", stdout);
    put_escaped(ev->aux.name);
    fputs(" = '", stdout);
    put_escaped(rd_buf_slice(&c->aux));
    puts("'");
    return true;
}

static bool on_key(struct compat *c, const struct rdb_event *ev)
{
    rd_buf_reset(&c->key);
    if (!rd_buf_add(&c->key, ev->key.name.ptr, ev->key.name.len))
        return false;
    c->in_key = true;
    c->doing = "read-object-value";
    c->type = ev->key.type->number;
    c->n_keys++;
    c->expires = ev->key.expire_ms != RDB_NO_EXPIRE;
    c->expired = c->expires && ev->key.expire_ms < c->now_ms;
    return true;
}

static void on_value_end(struct compat *c)
{
    if (!c->in_key)
        return;
    c->n_expires += c->expires;
    c->n_expired += c->expired;
    c->in_key = false;
    c->type = NO_TYPE;
}

/* The offset after the string of a packed value, or after the count of any other. */
static uint64_t after(struct compat *c)
{
    struct probe p = {0};
    uint8_t type;
    uint64_t n;
    bool special;
    if (!rd_src_open_file(&p.src, c->path, NULL, NULL))
        return 0;
    p.at = rdb_reader_record(c->reader);
    if (!probe_record(c, &p, &type) && !is_one_string(c->type))
        probe_len(&p, &n, &special);
    rd_src_close(p.src);
    return p.at;
}

/* Whether that tool continues. It rejects values that it would not load, and empty collections,
 * which it reports as "Unexpected EOF". It does not compare the ids of a stream's entries. */
static bool on_note(struct compat *c, const struct rdb_event *ev)
{
    if (ev->note.id == RDB_NOTE_EMPTY_COLLECTION) {
        put_error(c, after(c), "Unexpected EOF reading RDB file");
        return false;
    }
    if (rdb_note_severity(ev->note.id) != RDB_SEVERITY_ERROR || ev->note.id == RDB_NOTE_ENTRY_ORDER)
        return true;
    bad_value(c, is_one_string(c->type) ? after(c) : ev->offset, ev->note.text);
    return false;
}

static bool on_trailer(struct compat *c, const struct rdb_event *ev)
{
    uint64_t end = rd_src_offset(c->src);
    if (ev->trailer.present && ev->trailer.stored != 0 &&
        ev->trailer.stored != ev->trailer.computed) {
        c->doing = "check-sum";
        put_error(c, end, "RDB CRC error");
        return false;
    }
    if (ev->trailer.present) {
        put_offset(end);
        puts(ev->trailer.stored == 0
                 ? "RDB file was saved with checksum disabled: no check performed."
                 : "Checksum OK");
    }
    put_offset(end);
    puts("\\o/ RDB looks OK! \\o/");
    put_counts(c);
    return true;
}

/* False: the check has failed. */
static bool on_event(struct compat *c, const struct rdb_event *ev)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    switch (ev->kind) {
    case RDB_HEADER:
        c->has_header = true;
        return true;
    case RDB_AUX:
        return on_aux(c, ev);
    case RDB_DB:
        put_offset(end_of(ev));
        printf("Selecting DB ID %" PRIu64 "\n", ev->db);
        return true;
    case RDB_MODULE_AUX:
        rdb_module_name(ev->module.id, name);
        put_offset(end_of(ev));
        printf("MODULE AUX for: %s\n", name);
        return true;
    case RDB_KEY:
        return on_key(c, ev);
    case RDB_VALUE_END:
        on_value_end(c);
        return true;
    case RDB_NOTE:
        return on_note(c, ev);
    case RDB_TRAILER:
        return on_trailer(c, ev);
    default:
        return true;
    }
}

static bool check(struct compat *c)
{
    struct rdb_event ev;
    enum rdb_status st;
    while ((st = rdb_reader_next(c->reader, &ev)) == RDB_EVENT)
        if (!on_event(c, &ev))
            return false;
    if (st == RDB_FAIL)
        failed(c, rdb_reader_err(c->reader));
    return st == RDB_END;
}

bool check_rdb_compat_file(const char *path, const char *name, uint64_t *ret_end)
{
    struct compat c = {.path = path, .now_ms = cli_now_ms(), .doing = "start"};
    struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .notes = true);
    struct rd_err err = {0};
    cli_seed(opts.seed);
    put_offset(0);
    fputs("Checking RDB file ", stdout);
    put_escaped(rd_slice_str(name));
    putchar('\n');
    bool ok = rd_src_open_file(&c.src, path, NULL, &err) &&
              rdb_reader_new(&c.reader, c.src, &opts, &err) && check(&c);
    if (ok)
        *ret_end = rd_src_offset(c.src);
    rdb_reader_free(c.reader);
    rd_src_close(c.src);
    rd_buf_done(&c.key);
    rd_buf_done(&c.aux);
    return ok;
}

int check_rdb_compat(struct cli *cli, int argc, char **argv)
{
    (void)cli;
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : argc > 0 ? argv[0] : "redis-check-rdb";
    if (argc != 2) {
        fprintf(stderr, "Usage: %s <rdb-file-name>\n", name);
        return CLI_FINDINGS;
    }
    if (strcmp(argv[1], "-v") == 0 || strcmp(argv[1], "--version") == 0) {
        printf("%s %s\n", name, REDOUBT_VERSION_STRING);
        return CLI_OK;
    }
    uint64_t end;
    return check_rdb_compat_file(argv[1], argv[1], &end) ? CLI_OK : CLI_FINDINGS;
}
