/* fuzz_s3_answer.c - the readers of S3's answers take any bytes.
 *
 * The input is read as a page of a list, with and without a prefix, and as an error. Names that
 * come out are names of objects, and a list that continues says where.
 */
#include "archive/s3_answer.h"
#include "archive/store.h"

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
    size_t prefix, n;
};

static void on_object(void *arg, const char *name, uint64_t size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-_./";
    struct names *names = arg;
    (void)size;
    check(name[0] != '\0' && strlen(name) < ARCHIVE_NAME_MAX, "the length of a name");
    check(strspn(name, letters) == strlen(name), "a name that changes a URL");
    /* A name that is too long as a whole may be short enough without the prefix. */
    names->n += names->prefix + strlen(name) < ARCHIVE_NAME_MAX;
}

static size_t read_page(struct rd_slice xml, const char *prefix)
{
    struct archive_s3_next next;
    struct rd_err err = {0};
    struct names names = {.prefix = strlen(prefix)};
    if (!archive_s3_page(xml, prefix, on_object, &names, &next, &err))
        check(err.code == RD_ERR_PROTOCOL && err.text[0] != '\0', "a failure without an error");
    else
        check(!next.more || (next.token.len > 0 && next.token.ptr >= xml.ptr &&
                             next.token.ptr + next.token.len <= xml.ptr + xml.len),
              "a list that continues nowhere");
    return names.n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rd_slice xml = rd_slice(data, size);
    struct rd_err err = {0};
    check(read_page(xml, "some/where/") <= read_page(xml, ""), "more names with a prefix");
    archive_s3_refused(xml, "PUT", 500, &err);
    check(err.code == RD_ERR_PROTOCOL && err.text[0] != '\0', "an error without a text");
    for (const char *at = err.text; *at != '\0'; at++)
        check((uint8_t)*at >= ' ' && *at != 127, "a control character in an error");
    return 0;
}
