/* compat.c - check-aof under the name redis-check-aof (or valkey-check-aof).
 *
 * The options, the lines and their order, the offsets and the exit statuses 0 and 1 are those of
 * the servers' own tool, so that scripts for it keep working. That tool reads with the C library's
 * fgets() into 128 bytes, and numbers with strtol(). Its messages about a damaged line depend on
 * this, so the code here reads lines in the same way. Differences: a base that begins with VALKEY
 * is a snapshot, files are opened for writing only to be cut, and control characters in names are
 * escaped.
 */
#include "aof/manifest.h"
#include "tools/check_aof/check_aof.h"
#include "tools/check_rdb/check_rdb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE = 128,           /* that tool's buffer for a line with a number */
    ANNOTATION = 1024,    /* its buffer for an annotation */
    MANIFEST_LINE = 1024, /* its buffer for a line of a manifest */
    NAME_KEPT = 8         /* bytes of a command name, to recognise MULTI and EXEC */
};

enum outcome { FILE_OK, FILE_EMPTY, FILE_CUT, FILE_CUT_AT_TIME, FILE_BAD };

struct compat {
    struct rd_src *src;
    const char *path;     /* of the file that is checked */
    char shown[PATH_MAX]; /* the same, escaped */
    bool fix, last;
    bool listed;    /* the manifest names the file: a link is not followed */
    int64_t time_s; /* 0: none */
    int64_t line;   /* counted through all files */
    uint64_t at;    /* offset of the current read */
    int64_t multi;
    bool ended; /* a read reached the end of the file */
    char error[RD_ERR_TEXT_MAX + PATH_MAX];
};

/* Escapes all bytes that are not printable ASCII: also U+009B and U+202E control a terminal. */
static void escape(const char *name, char *dst, size_t size)
{
    rd_err_printable(dst, size, rd_slice_str(name));
}

/* ---- reading like stdio ---- */

/* Like fgets(): up to and including the line end, at most size - 1 bytes. False at the end of the
* file. */
static bool get_line(struct compat *c, char *buf, size_t size)
{
    struct rd_slice s;
    enum rd_src_status st = rd_src_need(c->src, size - 1, &s);
    size_t len = s.len < size - 1 ? s.len : size - 1;
    const uint8_t *lf = len > 0 ? memchr(s.ptr, '\n', len) : NULL;
    if (lf != NULL)
        len = (size_t)(lf - s.ptr) + 1;
    else if (st != RD_SRC_OK)
        c->ended = true;
    if (len == 0)
        return false;
    memset(buf, 0, size);
    memcpy(buf, s.ptr, len);
    rd_src_consume(c->src, len);
    return true;
}

/* Like fread(), but keeps only the first bytes and the last two; returns the number of bytes read.
 */
static uint64_t get_bytes(struct compat *c, uint64_t n, char *first, size_t n_first, char last[2])
{
    struct rd_slice s;
    uint64_t got = 0;
    while (got < n && rd_src_need(c->src, 1, &s) == RD_SRC_OK) {
        size_t len = s.len < n - got ? s.len : (size_t)(n - got);
        for (size_t i = 0; i < len && got + i < n_first; i++)
            first[got + i] = (char)s.ptr[i];
        last[0] = len > 1 ? (char)s.ptr[len - 2] : last[1];
        last[1] = (char)s.ptr[len - 1];
        rd_src_consume(c->src, len);
        got += len;
    }
    c->ended |= got < n;
    return got;
}

static bool fail(struct compat *c, const char *fmt, ...) RD_PRINTF(2, 3);

static bool fail(struct compat *c, const char *fmt, ...)
{
    va_list args;
    int len = snprintf(c->error, sizeof c->error, "0x%16llx: ", (unsigned long long)c->at);
    va_start(args, fmt);
    vsnprintf(c->error + len, sizeof c->error - (size_t)len, fmt, args);
    va_end(args);
    return false;
}

static bool line_end(struct compat *c, const char *p)
{
    if (p[0] != '\r' || p[1] != '\n')
        return fail(c, "Expected \\r\\n, got: %02x%02x", (unsigned)p[0], (unsigned)p[1]);
    c->line++;
    return true;
}

/* Reads PREFIX NUMBER CRLF. False without an error at the end of the file. */
static bool get_number(struct compat *c, char prefix, long *ret)
{
    char buf[LINE + 2], *end;
    c->at = rd_src_offset(c->src);
    if (!get_line(c, buf, LINE))
        return false;
    buf[LINE] = buf[LINE + 1] = '\0';
    if (buf[0] != prefix)
        return fail(c, "Expected prefix '%c', got: '%c'", prefix, buf[0]);
    *ret = strtol(buf + 1, &end, 10);
    return line_end(c, end);
}

/* Reads a bulk string; stores its first bytes and a NUL. */
static bool get_string(struct compat *c, char *first, size_t size)
{
    long len;
    char last[2] = "";
    memset(first, 0, size);
    if (!get_number(c, '$', &len))
        return false;
    if (len < 0 || len > LONG_MAX - 2)
        return fail(c, "Expected to read string of %ld bytes, which is not in the suitable range",
                    len);
    c->at = rd_src_offset(c->src);
    uint64_t n = (uint64_t)len + 2;
    uint64_t got = get_bytes(c, n, first, size - 1, last);
    if (got != n)
        return fail(c, "Expected to read %ld bytes, got %ld bytes", len + 2, (long)got);
    if ((size_t)len < size)
        first[len] = '\0';
    return line_end(c, last);
}

/* ---- commands and annotations ---- */

static bool command(struct compat *c)
{
    char name[NAME_KEPT], unused[2];
    long argc;
    if (!get_number(c, '*', &argc))
        return false;
    for (long i = 0; i < argc; i++) {
        if (!(i == 0 ? get_string(c, name, sizeof name) : get_string(c, unused, sizeof unused)))
            return false;
        if (i > 0)
            continue;
        if (strcasecmp(name, "multi") == 0 && c->multi++ != 0)
            return fail(c, "Unexpected MULTI in AOF %s", c->shown);
        if (strcasecmp(name, "exec") == 0 && --c->multi != 0)
            return fail(c, "Unexpected EXEC in AOF %s", c->shown);
    }
    return true;
}

static bool cut(const struct compat *c, uint64_t to)
{
    struct stat st;
    int more = c->listed ? O_NOFOLLOW : 0;
    int fd = open(c->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | more);
    bool ok = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
              ftruncate(fd, (off_t)to) == 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

enum annotated { GO_ON, STOP_HERE, GIVE_UP };

static enum annotated cut_at_time(struct compat *c)
{
    if (c->at == 0) {
        printf("AOF %s has nothing before timestamp %lld, aborting...\n", c->shown,
               (long long)c->time_s);
        return GIVE_UP;
    }
    if (!c->last) {
        printf("Failed to truncate AOF %s to timestamp %lld to offset %llu because it is not the "
               "last file.\n",
               c->shown, (long long)c->time_s, (unsigned long long)c->at);
        printf("If you insist, please delete all files after this file according to the manifest "
               "file and delete the corresponding records in manifest file manually. Then re-run "
               "redis-check-aof.\n");
        return GIVE_UP;
    }
    if (cut(c, c->at))
        return STOP_HERE;
    printf("Failed to truncate AOF %s to timestamp %lld\n", c->shown, (long long)c->time_s);
    return GIVE_UP;
}

static enum annotated annotation(struct compat *c)
{
    char buf[ANNOTATION], *end;
    c->at = rd_src_offset(c->src);
    if (!get_line(c, buf, sizeof buf)) {
        printf("Failed to read annotations from AOF %s, aborting...\n", c->shown);
        return GIVE_UP;
    }
    if (c->time_s == 0 || strncmp(buf, "#TS:", 4) != 0)
        return GO_ON;
    errno = 0;
    long long t = strtoll(buf + 4, &end, 10);
    if (errno != 0 || *end != '\r') {
        printf("Invalid timestamp annotation\n");
        return GIVE_UP;
    }
    return t <= c->time_s ? GO_ON : cut_at_time(c);
}

/* ---- one file ---- */

static bool answer_is_yes(void)
{
    char buf[2];
    fflush(stdout);
    return fgets(buf, sizeof buf, stdin) != NULL && (buf[0] == 'y' || buf[0] == 'Y');
}

static bool shrink(struct compat *c, const char *name, uint64_t size, uint64_t to)
{
    if (!c->last) {
        printf("Failed to truncate AOF %s because it is not the last file\n", name);
        return false;
    }
    printf("This will shrink the AOF %s from %llu bytes, with %llu bytes, to %llu bytes\n", name,
           (unsigned long long)size, (unsigned long long)(size - to), (unsigned long long)to);
    printf("Continue? [y/N]: ");
    if (!answer_is_yes()) {
        printf("Aborting...\n");
        return false;
    }
    if (cut(c, to))
        return true;
    printf("Failed to truncate AOF %s\n", name);
    return false;
}

/* Reads to the end or the first error; *ret_ok is the end of the last complete command. */
static enum annotated walk(struct compat *c, const char *name, uint64_t *ret_ok)
{
    struct rd_slice s;
    enum annotated next = GO_ON;
    while (next == GO_ON) {
        if (c->multi == 0)
            *ret_ok = rd_src_offset(c->src);
        if (rd_src_need(c->src, 1, &s) != RD_SRC_OK) {
            c->ended = true;
            return GO_ON;
        }
        if (s.ptr[0] == '#') {
            next = annotation(c);
        } else if (s.ptr[0] != '*') {
            printf("AOF %s format error\n", name);
            return GO_ON;
        } else if (!command(c)) {
            return GO_ON;
        }
    }
    return next;
}

/* False: exit with status 1. */
static bool conclude(struct compat *c, const char *name, uint64_t size, uint64_t ok,
                     enum outcome *ret)
{
    /* A read error is not the end of the file: the file is not cut. */
    const struct rd_err *err = rd_src_err(c->src);
    if (err->code != RD_ERR_OK) {
        printf("Cannot read file %s: %s, aborting...\n", c->shown, err->text);
        return false;
    }
    if (c->ended && c->multi != 0 && c->error[0] == '\0')
        fail(c, "Reached EOF before reading EXEC for MULTI");
    if (c->error[0] != '\0')
        printf("%s\n", c->error);
    *ret = FILE_OK;
    if (size == ok && c->time_s != 0)
        return true;
    printf("AOF analyzed: filename=%s, size=%llu, ok_up_to=%llu, ok_up_to_line=%lld, diff=%llu\n",
           name, (unsigned long long)size, (unsigned long long)ok, (long long)c->line,
           (unsigned long long)(size - ok));
    if (size == ok)
        return true;
    *ret = c->fix ? FILE_CUT : FILE_BAD;
    return !c->fix || shrink(c, name, size, ok);
}

static bool check_open(struct compat *c, const char *name, bool snapshot, uint64_t size,
                       enum outcome *ret)
{
    uint64_t ok = 0;
    if (snapshot) {
        uint64_t end;
        if (!check_rdb_compat_file(c->path, name, &end)) {
            printf("RDB preamble of AOF file is not sane, aborting.\n");
            return false;
        }
        printf("RDB preamble is OK, proceeding with AOF tail...\n");
        if (!rd_src_seek(c->src, end, NULL))
            return false;
    }
    switch (walk(c, name, &ok)) {
    case GO_ON:
        return conclude(c, name, size, ok, ret);
    case STOP_HERE:
        *ret = FILE_CUT_AT_TIME;
        return true;
    case GIVE_UP:
        break;
    }
    return false;
}

static bool check_file(struct compat *c, const char *name, const char *path, bool snapshot,
                       enum outcome *ret)
{
    struct stat st;
    c->path = path;
    escape(path, c->shown, sizeof c->shown);
    c->multi = 0;
    c->ended = false;
    struct rd_err err = {0};
    const struct rd_src_opts opts = RD_SRC_OPTS(.regular = c->listed);
    errno = 0;
    if (stat(path, &st) != 0 || access(path, c->fix || c->time_s != 0 ? R_OK | W_OK : R_OK) != 0 ||
        !rd_src_open_file(&c->src, path, &opts, &err)) {
        printf("Cannot open file %s: %s, aborting...\n", c->shown,
               err.code != RD_ERR_OK ? err.text : strerror(errno));
        return false;
    }
    *ret = FILE_EMPTY;
    bool ok = st.st_size == 0 || check_open(c, name, snapshot, (uint64_t)st.st_size, ret);
    rd_src_close(c->src);
    return ok;
}

static bool say(const struct compat *c, enum outcome outcome, const char *name, const char *kind)
{
    switch (outcome) {
    case FILE_OK:
        if (c->time_s != 0)
            printf("Truncate nothing in AOF %s to timestamp %lld\n", name, (long long)c->time_s);
        printf("%s %s is valid\n", kind, name);
        break;
    case FILE_EMPTY:
        printf("%s %s is empty\n", kind, name);
        break;
    case FILE_CUT_AT_TIME:
        printf("Successfully truncated AOF %s to timestamp %lld\n", name, (long long)c->time_s);
        break;
    case FILE_CUT:
        printf("Successfully truncated AOF %s\n", name);
        break;
    case FILE_BAD:
        printf("AOF %s is not valid. Use the --fix option to try fixing it.\n", name);
        return false;
    }
    return true;
}

/* ---- kinds of files ---- */

/* False: it cannot be opened, and the error was printed. */
static bool first_bytes(const char *path, bool listed, struct rd_src **ret)
{
    struct rd_err err = {0};
    const struct rd_src_opts opts = RD_SRC_OPTS(.regular = listed);
    if (rd_src_open_file(ret, path, &opts, &err))
        return true;
    char shown[PATH_MAX];
    escape(path, shown, sizeof shown);
    printf("Cannot open file %s: %s\n", shown, err.sys != 0 ? strerror(err.sys) : err.text);
    return false;
}

static bool is_snapshot(const char *path, bool listed, bool *ret)
{
    struct rd_src *src;
    struct rd_slice s;
    if (!first_bytes(path, listed, &src))
        return false;
    *ret =
        rd_src_need(src, RDB_MAGIC_LEN - 1, &s) == RD_SRC_OK && aof_content_of(s) == AOF_SNAPSHOT;
    rd_src_close(src);
    return true;
}

/* Whether the first line that is not a comment begins with "file". */
static bool is_manifest(const char *path, bool *ret)
{
    struct compat c = {.path = path};
    char buf[MANIFEST_LINE + 1];
    if (!first_bytes(path, false, &c.src))
        return false;
    *ret = false;
    while (get_line(&c, buf, sizeof buf))
        if (buf[0] != '#') {
            *ret = strncmp(buf, "file", 4) == 0;
            break;
        }
    rd_src_close(c.src);
    return true;
}

/* ---- the log ---- */

static bool check_one(struct compat *c, const char *path, bool snapshot)
{
    enum outcome outcome;
    char shown[PATH_MAX];
    printf("Start checking Old-Style AOF\n");
    c->last = true;
    escape(path, shown, sizeof shown);
    return check_file(c, shown, path, snapshot, &outcome) && say(c, outcome, shown, "AOF");
}

static bool check_listed(struct compat *c, const char *folder, const struct aof_file *file)
{
    char path[PATH_MAX], name[4 * AOF_NAME_MAX + 1];
    enum outcome outcome;
    bool base = file->type == AOF_BASE, snapshot = false;
    int len = snprintf(path, sizeof path, "%s/%s", folder, file->name);
    if (len < 0 || (size_t)len >= sizeof path)
        return false;
    if (base) {
        if (!is_snapshot(path, true, &snapshot))
            return false;
        printf("Start to check BASE AOF (%s format).\n", snapshot ? "RDB" : "RESP");
    }
    escape(file->name, name, sizeof name);
    return check_file(c, name, path, snapshot, &outcome) &&
           say(c, outcome, name, base ? "BASE AOF" : "INCR AOF");
}

static bool check_manifest(struct compat *c, const char *folder, const struct aof_manifest *m)
{
    const struct aof_file *last = NULL;
    bool incr = false;
    for (size_t i = 0; i < aof_manifest_count(m); i++)
        if (aof_manifest_file(m, i)->type != AOF_HISTORY)
            last = aof_manifest_file(m, i);
    for (size_t i = 0; i < aof_manifest_count(m); i++) {
        const struct aof_file *file = aof_manifest_file(m, i);
        if (file->type == AOF_HISTORY)
            continue;
        if (file->type == AOF_INCR && !incr)
            printf("Start to check INCR files.\n");
        incr = file->type == AOF_INCR;
        c->last = file == last;
        c->listed = true;
        if (!check_listed(c, folder, file))
            return false;
    }
    printf("All AOF files and manifest are valid\n");
    return true;
}

/* dirname() */
static void folder_of(const char *path, char *dst, size_t size)
{
    const char *slash = strrchr(path, '/');
    int len = slash == NULL ? 0 : slash == path ? 1 : (int)(slash - path);
    if (len == 0)
        snprintf(dst, size, ".");
    else
        snprintf(dst, size, "%.*s", len, path);
}

/* ---- a manifest that servers reject ---- */

struct refusal {
    bool found;
    enum aof_manifest_problem problem;
    unsigned line;
};

static void on_problem(void *ctx, enum aof_manifest_problem problem, uint64_t offset, unsigned line,
                       const char *text)
{
    struct refusal *r = ctx;
    (void)offset, (void)text;
    if (!r->found && aof_manifest_problem_fatal(problem))
        *r = (struct refusal){.found = true, .problem = problem, .line = line};
}

/* Prints a line as servers log it: process, time, and an empty line after it. */
static void log_line(const char *fmt, ...) RD_PRINTF(1, 2);

static void log_line(const char *fmt, ...)
{
    int64_t now_ms = cli_now_ms();
    time_t now = (time_t)(now_ms / 1000);
    struct tm tm;
    char when[64];
    va_list args;
    localtime_r(&now, &tm);
    strftime(when, sizeof when, "%d %b %Y %H:%M:%S", &tm);
    printf("%ld:C %s.%03d # ", (long)getpid(), when, (int)(now_ms % 1000));
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n\n");
}

/* Returns the line of that number, trimmed and escaped. */
static void read_line(struct rd_src *src, unsigned number, char *dst, size_t size)
{
    struct compat c = {.src = src};
    char buf[MANIFEST_LINE + 1] = "";
    bool ok = rd_src_seek(src, 0, NULL);
    for (unsigned i = 0; ok && i < number; i++)
        ok = get_line(&c, buf, sizeof buf);
    char *from = buf + strspn(buf, " \t\r\n"), *end = from + strlen(from);
    while (end > from && strchr(" \t\r\n", end[-1]) != NULL)
        *--end = '\0';
    escape(from, dst, size);
}

static void say_refusal(struct rd_src *src, const struct refusal *r)
{
    char line[4 * MANIFEST_LINE + 8];
    bool shows;
    const char *text = aof_manifest_problem_refusal(r->problem, &shows);
    log_line("\n*** FATAL AOF MANIFEST FILE ERROR ***");
    if (shows) {
        read_line(src, r->line, line, sizeof line);
        log_line("Reading the manifest file, at line %u", r->line);
        log_line(">>> '%s'", line);
    }
    log_line("%s", text);
}

static bool check_multi(struct compat *c, const char *path)
{
    char folder[PATH_MAX];
    struct aof_manifest m;
    struct refusal refusal = {0};
    struct rd_src *src;
    struct rd_err err = {0};
    printf("Start checking Multi Part AOF\n");
    if (!rd_src_open_file(&src, path, NULL, &err))
        return false;
    folder_of(path, folder, sizeof folder);
    aof_manifest_init(&m);
    bool ok = aof_manifest_read(&m, src, on_problem, &refusal, &err);
    if (!ok)
        log_line("%s", err.text);
    else if (refusal.found)
        say_refusal(src, &refusal);
    ok = ok && !refusal.found && check_manifest(c, folder, &m);
    aof_manifest_done(&m);
    rd_src_close(src);
    return ok;
}

static int check(struct compat *c, const char *path)
{
    bool manifest, snapshot;
    if (!is_manifest(path, &manifest))
        return CLI_FINDINGS;
    if (manifest)
        return check_multi(c, path) ? CLI_OK : CLI_FINDINGS;
    if (!is_snapshot(path, false, &snapshot))
        return CLI_FINDINGS;
    return check_one(c, path, snapshot) ? CLI_OK : CLI_FINDINGS;
}

static int usage(const char *name)
{
    printf("Usage: %s [--fix|--truncate-to-timestamp $timestamp] <file.manifest|file.aof>\n", name);
    return CLI_FINDINGS;
}

int check_aof_compat(struct cli *cli, int argc, char **argv)
{
    struct compat c = {.line = 1};
    char *end;
    (void)cli;
    if (argc == 2 && (strcmp(argv[1], "-v") == 0 || strcmp(argv[1], "--version") == 0)) {
        printf("%s %s\n", argv[0], REDOUBT_VERSION_STRING);
        return CLI_OK;
    }
    if (argc == 3 && strcmp(argv[1], "--fix") == 0) {
        c.fix = true;
    } else if (argc == 4 && strcmp(argv[1], "--truncate-to-timestamp") == 0) {
        errno = 0;
        c.time_s = strtoll(argv[2], &end, 10);
        if (errno != 0 || *end != '\0') {
            printf("Invalid timestamp, aborting...\n");
            return CLI_FINDINGS;
        }
    } else if (argc != 2) {
        return usage(argv[0]);
    }
    return check(&c, argv[argc - 1]);
}
