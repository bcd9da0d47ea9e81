#include "tools/cli/file_kind.h"

#include "rdb/version.h"

#include <ctype.h>
#include <string.h>

enum { TEXT_MIN = 32, BASE64_MIN = 64, TAR_MAGIC = 257, TAR_SUM = 148, TAR_SUM_LEN = 8 };

#define PACKED(name)                                                                               \
    "it is compressed with " name ": decompress it first (gzip, lz4 and zstd are supported)"
#define LOG " check-aof show replay "

/* Kinds with a fixed beginning. */
static const struct {
    const char *magic;
    size_t len;
    struct file_kind kind;
} known[] = {
    {"\xfd\x37zXZ\0", 6, {"xz", "an xz file", PACKED("xz"), NULL}},
    {"BZh", 3, {"bzip2", "a bzip2 file", PACKED("bzip2"), NULL}},
    {"PK\x03\x04", 4, {"zip", "a zip archive", PACKED("zip"), NULL}},
    {"\x1f\x8b\x08",
     3,
     {"gzip", "a gzip file", "it is compressed twice: decompress it first", NULL}},
    {"\x04\x22\x4d\x18",
     4,
     {"lz4", "an lz4 file", "it is compressed twice: decompress it first", NULL}},
    {"\x28\xb5\x2f\xfd",
     4,
     {"zstd", "a zstd file", "it is compressed twice: decompress it first", NULL}},
    {"\x7f"
     "ELF",
     4,
     {"elf", "a program", NULL, NULL}},
    {"%PDF-", 5, {"pdf", "a PDF document", NULL, NULL}},
    {"#TS:",
     4,
     {"aof", "an append-only log", "it looks like an append-only log: use redoubt check-aof", LOG}},
    {"file ",
     5,
     {"manifest", "the manifest of an append-only log",
      "it looks like the manifest of an append-only log: use redoubt check-aof", LOG}},
    {"{\"",
     2,
     {"json", "JSON lines",
      "it looks like JSON lines: use redoubt convert --to rdb to get a snapshot", " convert "}},
};

static const struct file_kind log_kind = {
    "aof", "an append-only log", "it looks like an append-only log: use redoubt check-aof", LOG};
static const struct file_kind capture_kind = {
    "capture", "a segment of a capture", "it looks like a segment of a capture: use its folder",
    NULL};
static const struct file_kind dump_kind = {
    "dump-payload", "a reply to DUMP",
    "it is the value of one key, as DUMP replies it: redis-cli -x RESTORE KEY 0 <FILE stores it",
    NULL};
static const struct file_kind dragonfly_kind = {"dragonfly", "a file of Dragonfly",
                                                "it is a snapshot of Dragonfly in its own format: "
                                                "SAVE RDB on that server writes one that other "
                                                "programs read",
                                                NULL};
static const struct file_kind tar_kind = {"tar", "a tar archive",
                                          "it is a tar archive: extract it first (tar -xf)", NULL};
static const struct file_kind html_kind = {"html", "an HTML page",
                                           "it may be an error page of a web server", NULL};
static const struct file_kind base64_kind = {"base64", "base64 text",
                                             "it is base64: decode it first (base64 -d)", NULL};
static const struct file_kind text_kind = {"text", "text", NULL, NULL};

static bool begins(struct rd_slice s, const char *text)
{
    size_t len = strlen(text);
    return s.len >= len && memcmp(s.ptr, text, len) == 0;
}

/* The same, case-insensitive; text is in lower case. */
static bool begins_as(struct rd_slice s, const char *text)
{
    size_t len = strlen(text);
    if (s.len < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (tolower(s.ptr[i]) != text[i])
            return false;
    return true;
}

/* Whether the header has a valid tar checksum: the sum of its bytes in octal digits, with the
 * checksum field counted as blanks. */
static bool is_tar(struct rd_slice s)
{
    unsigned sum = 0, stored = 0;
    size_t digits = 0;
    if (s.len < FILE_KIND_HEAD || s.ptr[0] == '\0')
        return false;
    for (size_t i = 0; i < FILE_KIND_HEAD; i++)
        sum += i >= TAR_SUM && i < TAR_SUM + TAR_SUM_LEN ? ' ' : s.ptr[i];
    for (size_t i = TAR_SUM; i < TAR_SUM + TAR_SUM_LEN; i++) {
        if (s.ptr[i] >= '0' && s.ptr[i] <= '7') {
            stored = stored * 8 + (s.ptr[i] - (unsigned)'0');
            digits++;
        } else if (s.ptr[i] != ' ' || digits > 0) {
            break;
        }
    }
    return digits > 0 && stored == sum;
}

static bool is_html(struct rd_slice s)
{
    static const char *const tags[] = {"<!doctype html", "<html", "<head", "<body"};
    if (begins(s, "\xef\xbb\xbf"))
        s = rd_slice(s.ptr + 3, s.len - 3);
    while (s.len > 0 && isspace(s.ptr[0]))
        s = rd_slice(s.ptr + 1, s.len - 1);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (begins_as(s, tags[i]))
            return true;
    return false;
}

/* Base64 of snapshots and compressed files begins with known letters. Other data is recognised by
 * letters of both cases and digits without a blank. */
static bool is_base64(struct rd_slice s)
{
    static const char *const heads[] = {"UkVESVM", "VkFMS0VZ", "H4sI", "KLUv/", "BCJNGE"};
    bool upper = false, lower = false, digit = false, known_head = false;
    size_t n = 0;
    for (; n < s.len; n++) {
        uint8_t c = s.ptr[n];
        upper = upper || (c >= 'A' && c <= 'Z');
        lower = lower || (c >= 'a' && c <= 'z');
        digit = digit || (c >= '0' && c <= '9');
        if (!(isalnum(c) && c < 0x80) && strchr("+/=\r\n", c) == NULL)
            return false;
        if (c == '\0')
            return false;
    }
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        known_head = known_head || begins(s, heads[i]);
    return known_head || (n >= BASE64_MIN && upper && lower && digit);
}

static bool is_text(struct rd_slice s)
{
    bool line = false;
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = s.ptr[i];
        line = line || c == '\n';
        if (c >= 0x7f || (c < 0x20 && c != '\n' && c != '\r' && c != '\t'))
            return false;
    }
    return line && s.len >= TEXT_MIN;
}

static bool is_log(struct rd_slice s)
{
    return s.len >= 2 && s.ptr[0] == '*' && s.ptr[1] >= '1' && s.ptr[1] <= '9';
}

const struct file_kind *file_kind_of_foreign(enum rdb_foreign foreign)
{
    switch (foreign) {
    case RDB_FOREIGN_DRAGONFLY:
        return &dragonfly_kind;
    case RDB_FOREIGN_DUMP:
        return &dump_kind;
    case RDB_FOREIGN_NONE:
        break;
    }
    return NULL;
}

const struct file_kind *file_kind_of(struct rd_slice head)
{
    const struct rd_slice all = head;
    size_t at;
    const struct file_kind *foreign = file_kind_of_foreign(rdb_foreign_of(head));
    if (foreign != NULL)
        return foreign;
    if (head.len > FILE_KIND_HEAD)
        head.len = FILE_KIND_HEAD;
    if (begins(head, "REDIS") || begins(head, "VALKEY"))
        return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (head.len >= known[i].len && memcmp(head.ptr, known[i].magic, known[i].len) == 0)
            return &known[i].kind;
    if (is_log(head))
        return &log_kind;
    if (begins(head, "RDCAPT\r\n"))
        return &capture_kind;
    if (is_tar(head))
        return &tar_kind;
    if (is_html(head))
        return &html_kind;
    if (is_base64(head))
        return &base64_kind;
    return is_text(head) && !rdb_header_find(all, &at) ? &text_kind : NULL;
}
