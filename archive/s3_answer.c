#include "archive/s3_answer.h"

#include "archive/page.h"
#include "archive/xml.h"
#include "base/buf.h"

#include <stdio.h>

/* ---- characters ---- */

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

/* ---- a list of objects ---- */

struct list {
    struct archive_page page;
    bool escaped; /* encoding-type=url; may follow the keys */
    bool has_more, more;
    char token[ARCHIVE_POSITION_MAX];
};

static bool is_flag(struct rd_slice text, bool *ret)
{
    *ret = rd_slice_is(text, "true");
    return *ret || rd_slice_is(text, "false");
}

static bool end_in_page(void *ctx, unsigned depth, const char *name, struct rd_slice text)
{
    struct list *list = ctx;
    struct archive_page *page = &list->page;
    if (depth == 2 && strcmp(name, "Key") == 0)
        archive_page_key(page, text);
    else if (depth == 2 && strcmp(name, "Size") == 0)
        archive_page_size(page, text);
    else if (depth == 2 && strcmp(name, "ETag") == 0)
        archive_page_version(page, text);
    if (depth != 1)
        return true;
    if (strcmp(name, "Contents") == 0)
        return archive_page_end(page);
    archive_page_skip(page);
    if (strcmp(name, "IsTruncated") == 0)
        list->has_more = is_flag(text, &list->more);
    else if (strcmp(name, "EncodingType") == 0)
        list->escaped = rd_slice_is(text, "url");
    else if (strcmp(name, "NextContinuationToken") == 0 &&
             !archive_page_copy(list->token, sizeof list->token, text))
        return archive_page_wrong(page, "its next position is too long");
    return true;
}

static bool read_page(struct rd_slice xml, struct list *list, struct rd_err *err)
{
    if (!archive_xml(xml, "ListBucketResult", end_in_page, list, err))
        return archive_page_fail(&list->page, err);
    if (!list->has_more)
        return archive_page_bad("it does not say whether it is complete", err);
    return !list->more || list->token[0] != '\0' ||
           archive_page_bad("it is incomplete, and its next position is missing", err);
}

bool archive_s3_page(struct rd_slice xml, const char *prefix, size_t skip, archive_each_fn *each,
                     void *arg, struct archive_s3_next *ret, struct rd_err *err)
{
    struct list list = {.has_more = false};
    bool ok =
        read_page(xml, &list, err) && archive_page_check(&list.page, prefix, list.escaped, err);
    if (ok) {
        archive_page_each(&list.page, skip, each, arg);
        ret->more = list.more;
        snprintf(ret->token, sizeof ret->token, "%s", list.token);
    }
    archive_page_done(&list.page);
    return ok;
}

/* ---- a list of uploads ---- */

struct uploads {
    const char *prefix;
    size_t skip;
    void (*each)(void *arg, const char *name, const char *id);
    void *arg;
    bool has_more, bad;
    char key[ARCHIVE_PAGE_KEY_MAX], id[ARCHIVE_S3_ID_MAX];
    struct archive_s3_next_upload next;
};

static bool end_in_uploads(void *ctx, unsigned depth, const char *name, struct rd_slice text)
{
    struct uploads *u = ctx;
    bool ok = true;
    if (depth == 2 && strcmp(name, "Key") == 0)
        ok = archive_page_copy(u->key, sizeof u->key, text);
    else if (depth == 2 && strcmp(name, "UploadId") == 0)
        ok = archive_page_copy(u->id, sizeof u->id, text);
    else if (depth == 1 && strcmp(name, "IsTruncated") == 0)
        ok = u->has_more = is_flag(text, &u->next.more);
    else if (depth == 1 && strcmp(name, "NextKeyMarker") == 0)
        ok = archive_page_copy(u->next.key, sizeof u->next.key, text);
    else if (depth == 1 && strcmp(name, "NextUploadIdMarker") == 0)
        ok = archive_page_copy(u->next.id, sizeof u->next.id, text);
    if (depth == 1 && strcmp(name, "Upload") == 0) {
        if (strncmp(u->key, u->prefix, strlen(u->prefix)) == 0 && u->id[0] != '\0' &&
            archive_page_name_ok(u->key + u->skip))
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
    if (!archive_xml(xml, "ListMultipartUploadsResult", end_in_uploads, &u, err) || !u.has_more ||
        (u.next.more && u.next.key[0] == '\0'))
        return archive_page_bad(NULL, err);
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
        archive_page_copy(field->ret, field->size, text);
    return true;
}

bool archive_s3_field(struct rd_slice xml, const char *root, const char *name, char *ret,
                      size_t size, struct rd_err *err)
{
    struct field field = {name, ret, size};
    ret[0] = '\0';
    return archive_xml(xml, root, end_in_fields, &field, err);
}

struct error_field {
    struct field field;
    bool found;
};

static bool end_in_error(void *ctx, unsigned depth, const char *name, struct rd_slice text)
{
    struct error_field *e = ctx;
    e->found = depth == 1 && strcmp(name, e->field.name) == 0 && text.len > 0 &&
               archive_page_copy(e->field.ret, e->field.size, text);
    return !e->found;
}

bool archive_s3_error_field(struct rd_slice xml, const char *name, char *ret, size_t size)
{
    struct error_field e = {.field = {name, ret, size}};
    ret[0] = '\0';
    archive_xml(xml, "Error", end_in_error, &e, NULL);
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
