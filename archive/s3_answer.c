#include "archive/s3_answer.h"

#include "archive/s3_xml.h"
#include "base/buf.h"
#include "base/num.h"

#include <stdio.h>

/* ---- characters ---- */

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool archive_s3_escape(char *ret, size_t size, struct rd_slice text, bool path)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (len + 4 > size)
            return false;
        if (is_letter(c) || memchr("-_.~", c, 4) != NULL || (path && c == '/'))
            ret[len++] = (char)c;
        else
            len += (size_t)snprintf(ret + len, size - len, "%%%02X", c);
    }
    ret[len] = '\0';
    return true;
}

/* The bytes of the character at *text, which is UTF-8; 0: it is not. */
static size_t utf8_len(const uint8_t *text)
{
    size_t n = text[0] < 0x80   ? 1
               : text[0] < 0xc2 ? 0
               : text[0] < 0xe0 ? 2
               : text[0] < 0xf0 ? 3
               : text[0] < 0xf5 ? 4
                                : 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

bool archive_s3_check_prefix(const char *prefix, struct rd_err *err)
{
    const char *part = prefix;
    for (const uint8_t *at = (const uint8_t *)prefix; *at != '\0';) {
        size_t n = utf8_len(at);
        if (n == 0 || *at < ' ' || *at == 127)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                              "a prefix in a bucket must be UTF-8 without control characters");
        at += n;
    }
    for (;;) {
        size_t len = strcspn(part, "/");
        if (len == 0 || (len <= 2 && strspn(part, ".") >= len))
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                              "no part of a prefix in a bucket may be empty, \".\" or \"..\"");
        if (part[len] == '\0')
            return true;
        part += len + 1;
    }
}

/* Names become part of URLs. Names in a repository contain only these characters. */
static bool name_ok(struct rd_slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_letter(name.ptr[i]) && memchr("-_./", name.ptr[i], 4) == NULL)
            return false;
    return name.len > 0 && name.len < ARCHIVE_NAME_MAX;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Decodes a text in place. S3 writes a space as a plus. */
static bool unescape(char *text)
{
    char *out = text;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at != '%') {
            *out++ = *at == '+' ? ' ' : *at;
            continue;
        }
        int high = hex_digit(at[1]), low = high >= 0 ? hex_digit(at[2]) : -1;
        if (low < 0 || (high == 0 && low == 0))
            return false;
        *out++ = (char)(high * 16 + low);
        at += 2;
    }
    *out = '\0';
    return true;
}

/* Copies a text without zero bytes. */
static bool copy(char *ret, size_t size, struct rd_slice text)
{
    if (text.len >= size || (text.len > 0 && memchr(text.ptr, 0, text.len) != NULL))
        return false;
    if (text.len > 0)
        memcpy(ret, text.ptr, text.len);
    ret[text.len] = '\0';
    return true;
}

/* ---- a list of objects ---- */

enum { KEY_MAX = 3 * 1024 + 1 };

struct entry {
    size_t key, version; /* their places in `keys` */
    uint64_t size;
};

struct page {
    struct rd_buf keys;    /* and versions, each with a zero byte */
    struct rd_buf entries; /* struct entry */
    bool no_memory;
    bool escaped; /* encoding-type=url; may follow the keys */
    bool has_more, more, has_key, has_size;
    char key[KEY_MAX], version[ARCHIVE_VERSION_MAX];
    uint64_t size;
    char token[ARCHIVE_S3_POSITION_MAX];
    const char *wrong;
};

static bool page_wrong(struct page *page, const char *wrong)
{
    page->wrong = wrong;
    return false;
}

static bool end_of_entry(struct page *page)
{
    bool whole = page->has_key && page->has_size;
    page->has_key = page->has_size = false;
    if (!whole)
        return page_wrong(page, "an object has no name or no size");
    size_t len = strlen(page->key) + 1;
    const struct entry entry = {
        .key = page->keys.len, .version = page->keys.len + len, .size = page->size};
    page->no_memory = !rd_buf_add(&page->keys, page->key, len) ||
                      !rd_buf_add(&page->keys, page->version, strlen(page->version) + 1) ||
                      !rd_buf_add(&page->entries, &entry, sizeof entry);
    page->version[0] = '\0';
    return !page->no_memory;
}

static bool is_flag(struct rd_slice text, bool *ret)
{
    *ret = rd_slice_is(text, "true");
    return *ret || rd_slice_is(text, "false");
}

/* A version of another form is none. */
static void note_version(struct page *page, struct rd_slice text)
{
    bool ok = copy(page->version, sizeof page->version, text);
    for (size_t i = 0; ok && i < text.len; i++)
        ok = text.ptr[i] > ' ' && text.ptr[i] < 127;
    if (!ok)
        page->version[0] = '\0';
}

static bool end_in_page(void *ctx, unsigned depth, const char *name, struct rd_slice text)
{
    struct page *page = ctx;
    if (depth == 2 && strcmp(name, "Key") == 0)
        page->has_key = copy(page->key, sizeof page->key, text);
    else if (depth == 2 && strcmp(name, "Size") == 0)
        page->has_size = rd_num_get_u64(text, &page->size);
    else if (depth == 2 && strcmp(name, "ETag") == 0)
        note_version(page, text);
    if (depth != 1)
        return true;
    if (strcmp(name, "Contents") == 0)
        return end_of_entry(page);
    page->has_key = page->has_size = false;
    if (strcmp(name, "IsTruncated") == 0)
        page->has_more = is_flag(text, &page->more);
    else if (strcmp(name, "EncodingType") == 0)
        page->escaped = rd_slice_is(text, "url");
    else if (strcmp(name, "NextContinuationToken") == 0 &&
             !copy(page->token, sizeof page->token, text))
        return page_wrong(page, "its next position is too long");
    return true;
}

static bool bad_list(const char *wrong, struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the list of the store is not valid: %s",
                      wrong != NULL ? wrong : "it cannot be read");
}

static bool read_page(struct rd_slice xml, struct page *page, struct rd_err *err)
{
    if (!archive_s3_xml(xml, "ListBucketResult", end_in_page, page, err))
        return page->no_memory ? rd_err_nomem(err, page->keys.len) : bad_list(page->wrong, err);
    if (!page->has_more)
        return bad_list("it does not say whether it is complete", err);
    return !page->more || page->token[0] != '\0' ||
           bad_list("it is incomplete, and its next position is missing", err);
}

static bool check_keys(const struct page *page, const char *prefix, struct rd_err *err)
{
    const struct entry *entries = (const struct entry *)(const void *)page->entries.ptr;
    for (size_t i = 0; i < page->entries.len / sizeof *entries; i++) {
        char *key = (char *)page->keys.ptr + entries[i].key;
        if (page->escaped && !unescape(key))
            return bad_list("the name of an object is encoded incorrectly", err);
        if (strncmp(key, prefix, strlen(prefix)) != 0)
            return bad_list("it has objects that were not asked for", err);
    }
    return true;
}

/* No object is passed on before all keys were compared. */
bool archive_s3_page(struct rd_slice xml, const char *prefix, size_t skip, archive_each_fn *each,
                     void *arg, struct archive_s3_next *ret, struct rd_err *err)
{
    struct page page = {.has_more = false};
    bool ok = read_page(xml, &page, err) && check_keys(&page, prefix, err);
    const struct entry *entries = (const struct entry *)(const void *)page.entries.ptr;
    for (size_t i = 0; ok && i < page.entries.len / sizeof *entries; i++) {
        const char *keys = (const char *)page.keys.ptr;
        const char *version = keys + entries[i].version;
        const struct archive_listed object = {.name = keys + entries[i].key + skip,
                                              .size = entries[i].size,
                                              .version = version[0] != '\0' ? version : NULL};
        if (name_ok(rd_slice_str(object.name)))
            each(arg, &object);
    }
    if (ok) {
        ret->more = page.more;
        snprintf(ret->token, sizeof ret->token, "%s", page.token);
    }
    rd_buf_done(&page.keys);
    rd_buf_done(&page.entries);
    return ok;
}

/* ---- a list of uploads ---- */

struct uploads {
    const char *prefix;
    size_t skip;
    void (*each)(void *arg, const char *name, const char *id);
    void *arg;
    bool has_more, bad;
    char key[KEY_MAX], id[ARCHIVE_S3_ID_MAX];
    struct archive_s3_next_upload next;
};

static bool end_in_uploads(void *ctx, unsigned depth, const char *name, struct rd_slice text)
{
    struct uploads *u = ctx;
    bool ok = true;
    if (depth == 2 && strcmp(name, "Key") == 0)
        ok = copy(u->key, sizeof u->key, text);
    else if (depth == 2 && strcmp(name, "UploadId") == 0)
        ok = copy(u->id, sizeof u->id, text);
    else if (depth == 1 && strcmp(name, "IsTruncated") == 0)
        ok = u->has_more = is_flag(text, &u->next.more);
    else if (depth == 1 && strcmp(name, "NextKeyMarker") == 0)
        ok = copy(u->next.key, sizeof u->next.key, text);
    else if (depth == 1 && strcmp(name, "NextUploadIdMarker") == 0)
        ok = copy(u->next.id, sizeof u->next.id, text);
    if (depth == 1 && strcmp(name, "Upload") == 0) {
        if (strncmp(u->key, u->prefix, strlen(u->prefix)) == 0 && u->id[0] != '\0' &&
            name_ok(rd_slice_str(u->key + u->skip)))
            u->each(u->arg, u->key + u->skip, u->id);
        u->key[0] = u->id[0] = '\0';
    }
    u->bad = u->bad || !ok;
    return ok;
}

bool archive_s3_uploads(struct rd_slice xml, const char *prefix, size_t skip,
                        void (*each)(void *arg, const char *name, const char *id), void *arg,
                        struct archive_s3_next_upload *ret, struct rd_err *err)
{
    struct uploads u = {.prefix = prefix, .skip = skip, .each = each, .arg = arg};
    if (!archive_s3_xml(xml, "ListMultipartUploadsResult", end_in_uploads, &u, err) ||
        !u.has_more || (u.next.more && u.next.key[0] == '\0'))
        return bad_list(NULL, err);
    *ret = u.next;
    return true;
}

/* ---- single fields ---- */

struct field {
    const char *name;
    char *ret;
    size_t size;
};

static bool end_in_fields(void *ctx, unsigned depth, const char *name, struct rd_slice text)
{
    const struct field *field = ctx;
    if (depth == 1 && strcmp(name, field->name) == 0)
        copy(field->ret, field->size, text);
    return true;
}

bool archive_s3_field(struct rd_slice xml, const char *root, const char *name, char *ret,
                      size_t size, struct rd_err *err)
{
    struct field field = {name, ret, size};
    ret[0] = '\0';
    return archive_s3_xml(xml, root, end_in_fields, &field, err);
}

struct error_field {
    struct field field;
    bool found;
};

static bool end_in_error(void *ctx, unsigned depth, const char *name, struct rd_slice text)
{
    struct error_field *e = ctx;
    e->found = depth == 1 && strcmp(name, e->field.name) == 0 && text.len > 0 &&
               copy(e->field.ret, e->field.size, text);
    return !e->found;
}

bool archive_s3_error_field(struct rd_slice xml, const char *name, char *ret, size_t size)
{
    struct error_field e = {.field = {name, ret, size}};
    ret[0] = '\0';
    archive_s3_xml(xml, "Error", end_in_error, &e, NULL);
    return e.found;
}

bool archive_s3_is_error(struct rd_slice xml, const char *code)
{
    char text[ARCHIVE_S3_CODE_MAX];
    return archive_s3_error_field(xml, "Code", text, sizeof text) && strcmp(text, code) == 0;
}

bool archive_s3_refused(struct rd_slice xml, const char *method, long status, struct rd_err *err)
{
    char code[ARCHIVE_S3_CODE_MAX], message[ARCHIVE_S3_TEXT_MAX], quoted[ARCHIVE_S3_CODE_MAX];
    char text[120];
    /* The answer to HEAD has no text. */
    if (!archive_s3_error_field(xml, "Code", code, sizeof code))
        return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                          "the store answered %s with status %ld%s", method, status,
                          status == 403 ? ": it does not accept the access key" : "");
    archive_s3_error_field(xml, "Message", message, sizeof message);
    return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                      "the store answered %s with status %ld, %s, %s", method, status,
                      rd_err_quote(quoted, sizeof quoted, rd_slice_str(code)),
                      rd_err_quote(text, sizeof text, rd_slice_str(message)));
}

/* ---- parts ---- */

enum { PARTS_EQUAL = 1000, PARTS_STEP = 64 };

size_t archive_s3_part_size(size_t base, size_t n)
{
    return n < PARTS_EQUAL ? base : base * (1 + (n - PARTS_EQUAL) / PARTS_STEP + 1);
}
