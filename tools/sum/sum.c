/* sum.c - `redoubt sum`: prints digests of files and verifies lists of digests.
 *
 * A file is read once for all digests. Of an RDB (the magic REDIS with four digits, or VALKEY with
 * three) the last eight bytes are the CRC-64 of everything before them, little-endian, since
 * version 5; zeros mean that checksums were disabled in the server. The pass keeps the last eight
 * bytes in the window, so that it computes both checksums. For a compressed file the digests are
 * those of the file, and the checksum is that of the RDB in it.
 *
 * The CRC-64 over an RDB and its matching stored CRC-64 is always 0. For such a file the stored
 * value is used instead.
 */
#include "base/crc16.h"
#include "base/crc64.h"
#include "base/endian.h"
#include "base/zlib.h"
#include "rdb/version.h"
#include "tools/cli/file_kind.h"
#include "tools/sum/list.h"
#include "tools/tools.h"

#include <inttypes.h>

enum { TAIL = 8, CHECKSUM_SINCE = 5 };

enum stored { NOT_RDB, NO_CHECKSUM, TOO_SHORT, DISABLED, HOLDS, HOLDS_NOT, UNPACKED_NOT };

/* What one pass over a file finds. */
struct sums {
    bool wanted[SUM_KINDS];
    bool is_text; /* the bytes of the argument are summed, not a file */
    uint8_t digest[SUM_KINDS][RD_DIGEST_MAX];
    uint64_t size;
    enum stored stored;
    uint64_t version;
    uint64_t stored_crc;
    uint64_t computed_crc;
    bool packed;                  /* the RDB is in a compressed file */
    const struct file_kind *kind; /* of a file that is not an RDB, decompressed; or NULL */
    struct rd_err err;            /* UNPACKED_NOT: why */
};

struct pass {
    struct cli *cli;
    struct rd_src *src;
    const bool *wanted; /* by kind */
    struct rd_digest *digests[SUM_KINDS];
    bool crc_wanted; /* also to judge an RDB */
    uint64_t crc;
    uint16_t crc16;
    uint32_t crc32;
};

struct run {
    struct cli *cli;
    bool wanted[SUM_KINDS];
    bool is_text;
    bool slot;
    int status;
    uint64_t n_matched, n_differing, n_unreadable, n_malformed;
    struct rd_err err; /* of the first list that could not be read */
};

/* The version in an RDB's header. */
static bool is_rdb(struct rd_slice s, uint64_t *ret_version)
{
    enum rdb_dialect dialect;
    int version;
    if (!rdb_header_parse(s, &dialect, &version))
        return false;
    *ret_version = (uint64_t)version;
    return true;
}

static bool feed(struct pass *pass, struct rd_slice bytes, struct rd_err *err)
{
    if (pass->crc_wanted)
        pass->crc = rd_crc64(pass->crc, bytes.ptr, bytes.len);
    if (pass->wanted[SUM_CRC16])
        pass->crc16 = rd_crc16(pass->crc16, bytes.ptr, bytes.len);
    if (pass->wanted[SUM_CRC32])
        pass->crc32 = rd_zlib_crc32(pass->crc32, bytes.ptr, bytes.len);
    for (int kind = 0; kind < SUM_KINDS; kind++)
        if (pass->digests[kind] != NULL &&
            !rd_digest_update(pass->digests[kind], bytes.ptr, bytes.len, err))
            return false;
    rd_src_consume(pass->src, bytes.len);
    cli_tick(pass->cli);
    return true;
}

static void judge(struct sums *sums, uint64_t crc_before, struct rd_slice tail)
{
    if (sums->version < CHECKSUM_SINCE)
        sums->stored = NO_CHECKSUM;
    else if (sums->size < RDB_MAGIC_LEN + TAIL)
        sums->stored = TOO_SHORT;
    else {
        sums->stored_crc = rd_get_le64(tail.ptr);
        sums->computed_crc = crc_before;
        sums->stored = sums->stored_crc == 0            ? DISABLED
                       : sums->stored_crc == crc_before ? HOLDS
                                                        : HOLDS_NOT;
    }
}

/* Feeds everything but the last eight bytes, then those. */
static bool feed_all(struct pass *pass, struct sums *sums, struct rd_err *err)
{
    struct rd_slice s = {0};
    bool rdb = false;
    enum rd_src_status status = rd_src_need(pass->src, FILE_KIND_HEAD, &s);
    if (status != RD_SRC_FAIL)
        sums->kind = file_kind_of(s);
    status = rd_src_need(pass->src, RDB_MAGIC_LEN, &s);
    if (status == RD_SRC_OK)
        rdb = is_rdb(s, &sums->version);
    pass->crc_wanted = rdb || sums->wanted[SUM_CRC64];
    for (; status == RD_SRC_OK; status = rd_src_need(pass->src, TAIL + 1, &s))
        if (!feed(pass, rd_slice(s.ptr, s.len - TAIL), err))
            return false;
    if (status == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(pass->src));
        return false;
    }
    uint64_t crc_before = pass->crc;
    if (!feed(pass, s, err))
        return false;
    sums->size = rd_src_offset(pass->src);
    if (rdb)
        judge(sums, crc_before, s);
    return true;
}

static bool end_digests(struct pass *pass, struct sums *sums, struct rd_err *err)
{
    bool holds = sums->stored == HOLDS && !sums->packed;
    uint64_t crc = holds ? sums->stored_crc : pass->crc;
    rd_put_be16(sums->digest[SUM_CRC16], pass->crc16);
    rd_put_be32(sums->digest[SUM_CRC32], pass->crc32);
    rd_put_be64(sums->digest[SUM_CRC64], crc);
    for (int kind = 0; kind < SUM_KINDS; kind++)
        if (pass->digests[kind] != NULL &&
            !rd_digest_end(pass->digests[kind], sums->digest[kind], err))
            return false;
    return true;
}

static bool begin_digests(struct pass *pass, const struct sums *sums, struct rd_err *err)
{
    for (int kind = SUM_SHA1; kind < SUM_KINDS; kind++)
        if (sums->wanted[kind] &&
            !rd_digest_new(&pass->digests[kind], sum_kind_digest((enum sum_kind)kind), err))
            return false;
    return true;
}

/* A source of what the pass reads, which feeds it on the way. */
static enum rd_src_status tee_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                   struct rd_err *err)
{
    struct pass *pass = impl;
    struct rd_slice s = {0};
    enum rd_src_status status = rd_src_need(pass->src, 1, &s);
    *ret_len = 0;
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(pass->src));
    if (status != RD_SRC_OK)
        return status;
    size_t n = s.len < cap ? s.len : cap;
    memcpy(buf, s.ptr, n);
    if (!feed(pass, rd_slice(s.ptr, n), err))
        return RD_SRC_FAIL;
    *ret_len = n;
    return RD_SRC_OK;
}

/* The checksum of the RDB that src gives, if it is one. */
static void judge_unpacked(struct rd_src *src, struct sums *sums)
{
    struct rd_slice s = {0};
    uint64_t crc = 0;
    enum rd_src_status status = rd_src_need(src, FILE_KIND_HEAD, &s);
    if (status != RD_SRC_FAIL)
        sums->kind = file_kind_of(s);
    status = rd_src_need(src, RDB_MAGIC_LEN, &s);
    if (status != RD_SRC_OK || !is_rdb(s, &sums->version))
        return;
    for (; status == RD_SRC_OK; status = rd_src_need(src, TAIL + 1, &s)) {
        crc = rd_crc64(crc, s.ptr, s.len - TAIL);
        rd_src_consume(src, s.len - TAIL);
    }
    sums->size = rd_src_offset(src) + s.len;
    sums->packed = true;
    judge(sums, crc, s);
    if (status != RD_SRC_FAIL)
        return;
    sums->stored = UNPACKED_NOT;
    sums->err = *rd_src_err(src);
}

static bool feed_packed(struct pass *pass, struct sums *sums, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = tee_read};
    struct rd_src_opts opts = RD_SRC_OPTS(.origin = rd_src_origin(pass->src));
    struct rd_src *src;
    struct rd_slice s;
    pass->crc_wanted = sums->wanted[SUM_CRC64];
    if (!rd_src_new(&src, &ops, pass, &opts, err))
        return false;
    bool ok = rd_src_decompress(&src, err);
    if (ok)
        judge_unpacked(src, sums);
    rd_src_close(src);
    /* What the unpacking did not get to. */
    enum rd_src_status status = RD_SRC_OK;
    while (ok && (status = rd_src_need(pass->src, 1, &s)) == RD_SRC_OK)
        ok = feed(pass, s, err);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(pass->src));
    sums->size = rd_src_offset(pass->src);
    return ok && status != RD_SRC_FAIL;
}

static bool is_packed(struct pass *pass)
{
    struct rd_slice s = {0};
    return rd_src_need(pass->src, 4, &s) == RD_SRC_OK && rd_src_is_packed(s);
}

static bool open_source(const struct sums *sums, const char *path, struct rd_src **ret,
                        struct rd_err *err)
{
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = path);
    return sums->is_text ? rd_src_open_memory(ret, rd_slice_str(path), &opts, err)
                         : rd_src_open_file(ret, path, NULL, err);
}

/* sums->wanted says what to compute. */
static bool sum_file(struct cli *cli, const char *path, struct sums *sums, struct rd_err *err)
{
    struct pass pass = {.cli = cli, .wanted = sums->wanted};
    if (!open_source(sums, path, &pass.src, err))
        return false;
    cli_progress_begin(cli, path, rd_src_size(pass.src));
    cli->progress.src = pass.src;
    bool ok = begin_digests(&pass, sums, err) &&
              (!sums->is_text && is_packed(&pass) ? feed_packed(&pass, sums, err)
                                                  : feed_all(&pass, sums, err)) &&
              end_digests(&pass, sums, err);
    cli_progress_end(cli);
    for (int kind = 0; kind < SUM_KINDS; kind++)
        rd_digest_free(pass.digests[kind]);
    rd_src_close(pass.src);
    return ok;
}

/* Findings do not hide that a file could not be read. */
static void raise_status(struct run *run, int status)
{
    if (run->status == CLI_OK || run->status == CLI_FINDINGS)
        run->status = status;
}

static void report(struct run *run, const struct rd_err *err)
{
    raise_status(run, cli_report(run->cli, err));
}

/* A name with any of these bytes is escaped. */
static void print_name(const char *bytes, const char *before, const char *name, const char *after)
{
    struct rd_buf escaped = {0};
    bool special = strpbrk(name, bytes) != NULL && sum_name_escape(&escaped, name);
    printf("%s%s%.*s%s\n", special ? "\\" : "", before, special ? (int)escaped.len : 1 << 30,
           special ? (const char *)escaped.ptr : name, after);
    rd_buf_done(&escaped);
}

/* The slot of a key in a cluster. */
static void print_slot(const char *key)
{
    char line[16];
    snprintf(line, sizeof line, "%u  ", rd_hash_slot(rd_slice_str(key)));
    print_name("\\\n\r", line, key, "");
}

static void print_digests(const char *path, const struct sums *sums)
{
    char line[RD_DIGEST_HEX + 2];
    for (int kind = 0; kind < SUM_KINDS; kind++) {
        if (!sums->wanted[kind])
            continue;
        size_t size = sum_kind_size((enum sum_kind)kind);
        rd_digest_hex(line, rd_slice(sums->digest[kind], size));
        memcpy(line + 2 * size, "  ", 3);
        print_name("\\\n\r", line, path, "");
    }
}

/* On stderr, whose lines must not carry control bytes of a name to a terminal. */
static void print_stored(struct cli *cli, const char *path, const struct sums *sums)
{
    char name[RD_ERR_TEXT_MAX];
    rd_err_quote(name, sizeof name, rd_slice_str(path));
    size_t len = strlen(name) - 2; /* without the quotes */
    const char *p = name + 1;
    switch (sums->stored) {
    case NOT_RDB:
        if (sums->kind != NULL && sums->kind->hint != NULL) /* not of plain text */
            cli_note(cli, "%.*s: another kind of file: %s, which has no stored CRC64", (int)len, p,
                     sums->kind->name);
        break;
    case NO_CHECKSUM:
        cli_note(cli, "%.*s: version %" PRIu64 " has no checksum", (int)len, p, sums->version);
        break;
    case TOO_SHORT:
        cli_note(cli, "%.*s: stored CRC64 missing: the file is truncated", (int)len, p);
        break;
    case DISABLED:
        cli_note(cli, "%.*s: checksum disabled", (int)len, p);
        break;
    case HOLDS:
        cli_note(cli, "%.*s: stored CRC64 matches: %016" PRIx64, (int)len, p, sums->stored_crc);
        break;
    case HOLDS_NOT:
        cli_note(cli, "%.*s: stored CRC64 mismatch: stored %016" PRIx64 ", computed %016" PRIx64,
                 (int)len, p, sums->stored_crc, sums->computed_crc);
        break;
    case UNPACKED_NOT:
        cli_note(cli, "%.*s: stored CRC64 unknown: %s", (int)len, p, sums->err.text);
        break;
    }
}

static void put_crc(struct json_write *json, const char *key, uint64_t crc)
{
    char hex[17];
    snprintf(hex, sizeof hex, "%016" PRIx64, crc);
    json_put_str(json, key, hex);
}

static void put_stored(struct json_write *json, const struct sums *sums)
{
    static const char *const words[] = {
        [NO_CHECKSUM] = "none", [TOO_SHORT] = "missing", [DISABLED] = "disabled",
        [HOLDS] = "holds",      [HOLDS_NOT] = "wrong",   [UNPACKED_NOT] = "unreadable",
    };
    if (sums->stored == NOT_RDB)
        return;
    json_key(json, "rdb");
    json_obj(json);
    json_put_uint(json, "version", sums->version);
    json_put_bool(json, "compressed", sums->packed);
    json_put_str(json, "checksum", words[sums->stored]);
    if (sums->stored == UNPACKED_NOT) {
        json_key(json, "error");
        cli_json_err(json, &sums->err);
    }
    if (sums->stored == DISABLED || sums->stored == HOLDS || sums->stored == HOLDS_NOT) {
        put_crc(json, "stored_crc64", sums->stored_crc);
        put_crc(json, "computed_crc64", sums->computed_crc);
    }
    json_end(json);
}

/* err is set where the file could not be read. */
static void put_file(struct json_write *json, const char *path, const struct sums *sums, bool slot,
                     const struct rd_err *err)
{
    char hex[RD_DIGEST_HEX];
    json_obj(json);
    json_key(json, sums->is_text ? "text" : "file");
    json_bytes(json, rd_slice_str(path));
    if (err->code != RD_ERR_OK) {
        json_key(json, "error");
        cli_json_err(json, err);
    } else {
        json_put_uint(json, "size", sums->size);
        if (slot)
            json_put_uint(json, "slot", rd_hash_slot(rd_slice_str(path)));
        for (int kind = 0; kind < SUM_KINDS; kind++)
            if (sums->wanted[kind])
                json_put_str(json, sum_kind_name((enum sum_kind)kind),
                             rd_digest_hex(hex, rd_slice(sums->digest[kind],
                                                         sum_kind_size((enum sum_kind)kind))));
        if (sums->stored != NOT_RDB || sums->kind != NULL)
            json_put_str(json, "kind", sums->stored != NOT_RDB ? "rdb" : sums->kind->word);
        put_stored(json, sums);
    }
    json_end(json);
}

static void sum_one(struct run *run, const char *path)
{
    struct cli *cli = run->cli;
    struct sums sums = {.is_text = run->is_text};
    struct rd_err err = {0};
    memcpy(sums.wanted, run->wanted, sizeof sums.wanted);
    bool ok = sum_file(cli, path, &sums, &err);
    if (!ok)
        report(run, &err);
    if (cli->json)
        put_file(&cli->out, path, &sums, run->slot, &err);
    else if (ok && run->slot)
        print_slot(path);
    if (ok && !cli->json)
        print_digests(path, &sums);
    if (!ok || run->is_text)
        return;
    print_stored(cli, path, &sums);
    if (sums.stored == HOLDS_NOT || sums.stored == TOO_SHORT || sums.stored == UNPACKED_NOT)
        raise_status(run, run->status == CLI_OK ? CLI_FINDINGS : run->status);
}

enum verdict { MATCHES, DIFFERS, UNREADABLE };

static void print_verdict(struct run *run, const struct sum_line *line, enum verdict verdict)
{
    static const char *const texts[] = {": OK", ": FAILED", ": FAILED open or read"};
    static const char *const words[] = {"ok", "failed", "unreadable"};
    const char *name = (const char *)line->name.ptr;
    if (run->cli->json) {
        struct json_write *json = &run->cli->out;
        json_obj(json);
        json_key(json, "file");
        json_bytes(json, rd_buf_slice(&line->name));
        json_put_str(json, "digest", sum_kind_name(line->kind));
        json_put_str(json, "status", words[verdict]);
        json_end(json);
    } else if (verdict != MATCHES || !run->cli->quiet) {
        print_name("\n\r", "", name, texts[verdict]);
    }
}

/* Lists of before had 0 for every RDB whose checksum holds. */
static bool is_old_line(const struct sum_line *line, const struct sums *sums)
{
    static const uint8_t zeros[TAIL];
    return line->kind == SUM_CRC64 && sums->stored == HOLDS && !sums->packed &&
           memcmp(line->digest, zeros, TAIL) == 0;
}

static void check_line(struct run *run, const struct sum_line *line)
{
    struct sums sums = {0};
    struct rd_err err = {0};
    sums.wanted[line->kind] = true;
    if (!sum_file(run->cli, (const char *)line->name.ptr, &sums, &err)) {
        cli_report(run->cli, &err);
        run->n_unreadable++;
        print_verdict(run, line, UNREADABLE);
    } else if (memcmp(sums.digest[line->kind], line->digest, sum_kind_size(line->kind)) == 0 ||
               is_old_line(line, &sums)) {
        run->n_matched++;
        print_verdict(run, line, MATCHES);
    } else {
        run->n_differing++;
        print_verdict(run, line, DIFFERS);
    }
}

/* The next line without its end; RD_SRC_END when there is none. It is consumed, and readable until
 * the next call. */
static enum rd_src_status next_line(struct rd_src *list, struct rd_slice *ret)
{
    struct rd_slice s = {0};
    for (size_t scanned = 0;; scanned = s.len) {
        enum rd_src_status status = rd_src_need(list, scanned + 1, &s);
        if (status == RD_SRC_FAIL || (status != RD_SRC_OK && s.len == 0))
            return status;
        const uint8_t *lf = memchr(s.ptr + scanned, '\n', s.len - scanned);
        if (lf == NULL && status == RD_SRC_OK)
            continue;
        *ret = rd_slice(s.ptr, lf != NULL ? (size_t)(lf - s.ptr) : s.len);
        rd_src_consume(list, ret->len + (lf != NULL ? 1 : 0));
        return RD_SRC_OK;
    }
}

static bool check_lines(struct run *run, struct rd_src *list, struct rd_err *err)
{
    struct sum_line line = {0};
    struct rd_slice text;
    enum rd_src_status status;
    uint64_t n_lines = 0;
    while ((status = next_line(list, &text)) == RD_SRC_OK) {
        if (text.len > 0 && text.ptr[0] == '#')
            continue;
        n_lines++;
        if (sum_line_parse(&line, text)) {
            check_line(run, &line);
        } else {
            n_lines--;
            run->n_malformed++;
        }
    }
    sum_line_done(&line);
    if (status == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(list));
        return false;
    }
    if (n_lines == 0)
        rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "no line contains a checksum");
    rd_err_origin(err, rd_src_origin(list));
    return n_lines > 0;
}

static void check_list(struct run *run, const char *path)
{
    struct rd_src *list;
    struct rd_err err = {0};
    if (!rd_src_open_file(&list, path, NULL, &err)) {
        report(run, &err);
        rd_err_adopt(&run->err, &err);
        return;
    }
    if (!check_lines(run, list, &err)) {
        report(run, &err);
        rd_err_adopt(&run->err, &err);
    }
    rd_src_close(list);
}

/* What a list's check adds up to, on stderr as sha256sum has it. */
static void conclude(struct run *run)
{
    struct cli *cli = run->cli;
    if (run->n_malformed > 0)
        cli_warn(cli, "malformed lines: %" PRIu64, run->n_malformed);
    if (run->n_unreadable > 0)
        cli_warn(cli, "files that could not be read: %" PRIu64, run->n_unreadable);
    if (run->n_differing > 0)
        cli_warn(cli, "digests that did not match: %" PRIu64, run->n_differing);
    if (run->n_unreadable + run->n_differing > 0 && run->status == CLI_OK)
        run->status = CLI_FINDINGS;
    if (cli->json) {
        json_put_uint(&cli->out, "matched", run->n_matched);
        json_put_uint(&cli->out, "differing", run->n_differing);
        json_put_uint(&cli->out, "unreadable", run->n_unreadable);
        json_put_uint(&cli->out, "malformed_lines", run->n_malformed);
        if (run->err.code != RD_ERR_OK) {
            json_key(&cli->out, "error");
            cli_json_err(&cli->out, &run->err);
        }
    }
}

static int sum_or_check(struct run *run, bool check)
{
    struct cli *cli = run->cli;
    if (cli->n_args == 0)
        return cli_usage_error(cli, "missing argument: %s", check ? "LIST" : "FILE");
    if (cli->json) {
        json_key(&cli->out, "files");
        json_array(&cli->out);
    }
    for (size_t i = 0; i < cli->n_args; i++) {
        if (check)
            check_list(run, cli->args[i]);
        else
            sum_one(run, cli->args[i]);
    }
    if (cli->json)
        json_end(&cli->out);
    if (check)
        conclude(run);
    return run->status;
}

int tool_sum(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli};
    bool check = false;
    const struct cli_opt opts[] = {
        {.name = "crc16",
         .kind = CLI_FLAG,
         .flag = &run.wanted[SUM_CRC16],
         .help = "CRC-16/XMODEM, of which slots are made"},
        {.name = "crc32",
         .kind = CLI_FLAG,
         .flag = &run.wanted[SUM_CRC32],
         .help = "CRC-32 as in gzip"},
        {.name = "crc64",
         .kind = CLI_FLAG,
         .flag = &run.wanted[SUM_CRC64],
         .help = "CRC-64 as in an RDB"},
        {.name = "sha1", .kind = CLI_FLAG, .flag = &run.wanted[SUM_SHA1], .help = "SHA-1"},
        {.name = "sha256",
         .kind = CLI_FLAG,
         .flag = &run.wanted[SUM_SHA256],
         .help = "SHA-256 (the default)"},
        {.name = "sha512", .kind = CLI_FLAG, .flag = &run.wanted[SUM_SHA512], .help = "SHA-512"},
        {.name = "text",
         .kind = CLI_FLAG,
         .flag = &run.is_text,
         .help = "sum the arguments themselves: names of keys"},
        {.name = "slot",
         .kind = CLI_FLAG,
         .flag = &run.slot,
         .help = "print the cluster slot of each argument, a key"},
        {.name = "check",
         .letter = 'c',
         .kind = CLI_FLAG,
         .flag = &check,
         .help = "verify the digests in each LIST"},
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] FILE…\n-c LIST…\n--text [OPTION…] TEXT…\n--slot KEY…",
        .about = "Prints digests of files in the format of sha256sum, all in one pass, and\n"
                 "verifies the stored CRC64 of RDB files. \"-\" is standard input.",
        .opts = opts,
        .max_args = CLI_MANY,
        .example = "redoubt sum --crc64 --sha256 dump.rdb >dump.sums && redoubt sum -c dump.sums",
    };
    int status;
    if (!cli_parse(cli, &usage, argc, argv, &status))
        return status;
    if (check && (run.is_text || run.slot))
        return cli_usage_error(cli, "--check cannot be used with %s",
                               run.slot ? "--slot" : "--text");
    bool any = run.slot;
    run.is_text = run.is_text || run.slot;
    for (int kind = 0; kind < SUM_KINDS; kind++)
        any = any || run.wanted[kind];
    run.wanted[SUM_SHA256] = run.wanted[SUM_SHA256] || !any;
    return sum_or_check(&run, check);
}
