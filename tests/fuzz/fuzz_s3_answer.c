/* fuzz_s3_answer.c - the readers of the answers of S3, Azure and WebDAV take any bytes.
 *
 * The input is read as a page of a list, with and without a prefix, and as an error. Names that
 * come out are names of objects, and a list that continues says where.
 */
#include "archive/azure_list.h"
#include "archive/s3_answer.h"
#include "archive/store.h"
#include "archive/web.h"
#include "archive/webdav_answer.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_s3_answer: %s\n", what);
    abort();
}

struct names {
    size_t n;
};

static void check_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-_./";
    check(name[0] != '\0' && strlen(name) < ARCHIVE_NAME_MAX, "the length of a name");
    check(strspn(name, letters) == strlen(name), "a name that changes a URL");
}

static void on_object(void *arg, const struct archive_listed *object)
{
    struct names *names = arg;
    check_name(object->name);
    names->n++;
}

static void on_upload(void *arg, const char *name, const char *id)
{
    char escaped[ARCHIVE_S3_ESCAPED_MAX];
    (void)arg;
    check_name(name);
    check(archive_web_escape(escaped, sizeof escaped, rd_slice_str(id), false), "a long id");
    check(strpbrk(escaped, "&?#/ ") == NULL, "an id that changes a URL");
}

static void read_page(struct rd_slice xml, const char *prefix)
{
    struct archive_s3_next next;
    struct rd_err err = {0};
    struct names names = {.n = 0};
    if (!archive_s3_page(xml, prefix, strlen(prefix), on_object, &names, &next, &err))
        check((err.code == RD_ERR_PROTOCOL && err.text[0] != '\0' && names.n == 0) ||
                  err.code == RD_ERR_MEMORY,
              "a failure without an error");
    else
        check(!next.more || next.token[0] != '\0', "a list that continues nowhere");
}

static void read_azure_page(struct rd_slice xml, const char *prefix)
{
    char marker[ARCHIVE_POSITION_MAX];
    struct rd_err err = {0};
    struct names names = {.n = 0};
    if (!archive_azure_page(xml, prefix, strlen(prefix), on_object, &names, marker, &err))
        check((err.code == RD_ERR_PROTOCOL && err.text[0] != '\0' && names.n == 0) ||
                  err.code == RD_ERR_MEMORY,
              "a failure of Azure without an error");
}

/* Names are those of one folder, and a list that is refused is empty. */
static void read_folder(struct rd_slice xml, const char *path)
{
    struct rd_err err = {0};
    struct archive_webdav_list list = {.n = 0};
    if (!archive_webdav_parse(xml, path, &list, &err))
        check(((err.code == RD_ERR_PROTOCOL && err.text[0] != '\0') || err.code == RD_ERR_MEMORY) &&
                  list.n == 0,
              "a failure of WebDAV without an error");
    for (size_t i = 0; i < list.n; i++) {
        const char *name = archive_webdav_name(&list, i);
        check(name[0] != '\0' && strchr(name, '/') == NULL, "a name that is not in the folder");
    }
    archive_webdav_list_done(&list);
}

static void read_uploads(struct rd_slice xml, const char *prefix)
{
    struct archive_s3_next_upload next;
    struct rd_err err = {0};
    if (archive_s3_uploads(xml, prefix, strlen(prefix), on_upload, NULL, &next, &err))
        check(!next.more || next.key[0] != '\0', "a list of uploads that continues nowhere");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rd_slice xml = rd_slice(data, size);
    struct rd_err err = {0};
    char text[100];
    read_page(xml, "some/where/");
    read_page(xml, "");
    read_azure_page(xml, "some/where/");
    read_azure_page(xml, "");
    read_folder(xml, "/some/where");
    read_folder(xml, "");
    read_uploads(xml, "some/where/");
    if (size < sizeof text) {
        memcpy(text, data, size);
        text[size] = '\0';
        archive_s3_check_prefix(text, NULL);
    }
    archive_s3_refused(xml, "PUT", 500, &err);
    check(err.code == RD_ERR_PROTOCOL && err.text[0] != '\0', "an error without a text");
    for (const char *at = err.text; *at != '\0'; at++)
        check((uint8_t)*at >= ' ' && *at != 127, "a control character in an error");
    return 0;
}
