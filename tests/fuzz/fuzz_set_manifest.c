/* fuzz_set_manifest.c - the reader of manifests of sets takes any bytes, and what it took is
 * written so that it reads back.
 *
 * The input is read as it is, and once more with the digest at its end that belongs to it, for
 * mutations do not find that by themselves.
 */
#include "archive/manifest.h"
#include "archive/store.h"
#include "base/digest.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_set_manifest: %s\n", what);
    abort();
}

static void check_contents(const struct archive_manifest *m)
{
    check(archive_name_ok(m->id) && m->n_files > 0, "an id and files");
    for (size_t i = 0; i < m->n_files; i++)
        check(archive_name_ok(m->files[i].object) && archive_name_ok(m->files[i].name),
              "a name that leads elsewhere");
}

static void check_again(const struct archive_manifest *m)
{
    struct archive_manifest again;
    struct rd_buf text = {0};
    struct rd_err err = {0};
    check(archive_manifest_print(m, NULL, &text, &err), "printing");
    check(archive_manifest_parse(&again, rd_buf_slice(&text), NULL, &err), err.text);
    check(again.n_files == m->n_files && again.n_dbs == m->n_dbs && again.keys == m->keys &&
              strcmp(again.source, m->source) == 0,
          "something else reads back");
    archive_manifest_done(&again);
    rd_buf_done(&text);
}

static void read_text(struct rd_slice text)
{
    struct archive_manifest m;
    struct rd_err err = {0};
    if (!archive_manifest_parse(&m, text, NULL, &err)) {
        check(err.code != RD_ERR_OK, "a failure without an error");
        return;
    }
    check_contents(&m);
    check_again(&m);
    archive_manifest_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t sum[RD_DIGEST_MAX];
    char hex[RD_DIGEST_HEX];
    struct rd_buf text = {0};
    read_text(rd_slice(data, size));
    check(rd_digest_of(RD_DIGEST_SHA256, rd_slice(data, size), sum, NULL) &&
              rd_buf_add(&text, data, size) &&
              rd_buf_printf(&text, ",\n \"sha256\": \"%s\"}\n",
                            rd_digest_hex(hex, rd_slice(sum, 32))),
          "memory");
    read_text(rd_buf_slice(&text));
    rd_buf_done(&text);
    return 0;
}
